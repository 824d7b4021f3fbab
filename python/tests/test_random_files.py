"""Random and malformed arguments of functions that are not in the table of primitives: of
files, and of those written in Python. They return or raise, and never crash."""

import inspect
import itertools

import pytest

hypothesis = pytest.importorskip("hypothesis")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from test_complete import table  # noqa: E402
from test_random_arguments import attempt, quick, views  # noqa: E402

import lowbit  # noqa: E402
from lowbit import files  # noqa: E402

VERBS = sorted(set(files.__all__) - {"File"})
# Small or far too large: no sizes that can be allocated slowly.
numbers = st.one_of(
    st.integers(-3, 9),
    st.sampled_from([2**62, 2**63, -(2**63), 2**100]),
    st.sampled_from([0.5, -1.0, 1e300, float("nan"), float("inf"), 1j]),
    st.booleans(),
    st.none(),
)
words = st.sampled_from(
    ["nf4", "int8", "q4_0", "dense", "f16", "float32", "safetensors", "gguf", "npz", "npy"]
    + ["native", "eformer", "bnb", "bitnet", "exact", "any", "keep", "error", "", "\0", "w"]
    + ["x=2", ".*=P(x)", "w=nf4", "(", "\udc80"]
)
plain = st.one_of(numbers, words, st.binary(max_size=5), views)
values = st.one_of(
    plain,
    st.lists(st.one_of(plain, st.lists(plain, max_size=2)), max_size=3),
    st.dictionaries(st.one_of(words, numbers), plain, max_size=3),
    st.just(lambda *a: a[0]),
)


@pytest.fixture
def paths(tmp_path, monkeypatch):
    """Inputs, good and bad, and names that cannot be outputs outside of tmp_path."""
    monkeypatch.chdir(tmp_path)
    dense = {"w": lowbit.ones((4, 64)), "b": lowbit.arange(3)}
    packed = {"w": lowbit.quantize(dense["w"], "nf4"), "b": dense["b"]}
    q4_0 = {"w": lowbit.quantize(dense["w"], "q4_0")}
    lowbit.save("dense.safetensors", dense, sync=False)
    lowbit.save("dense.npz", dense, sync=False)
    lowbit.save("packed.safetensors", packed, sync=False)
    lowbit.save("packed.gguf", q4_0, sync=False)
    lowbit.save("model", dense, max_shard_size=100, sync=False)
    whole = (tmp_path / "dense.safetensors").read_bytes()
    (tmp_path / "cut").write_bytes(whole[:-1])
    (tmp_path / "bad").write_bytes(whole.replace(b"w", b'"'))
    (tmp_path / "empty").touch()
    names = [p.name for p in tmp_path.iterdir()]
    return st.sampled_from(names + ["missing", "no/where", "a\0b", "", b"dense.npz"])


def arguments(function, paths):
    """Arguments by position and by name, mostly of the right number and names."""
    by_name = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    options = st.dictionaries(
        st.sampled_from([*by_name, "block_size", "axes", "no_such_option"]),
        values,
        max_size=4,
    )
    return st.tuples(st.lists(st.one_of(paths, values), max_size=3), options)


@pytest.mark.parametrize("name", VERBS)
def test_files(name, paths):
    function = getattr(files, name)
    outputs = (f"out{k}" for k in itertools.count())
    output = st.one_of(paths, st.sampled_from(["out.npz", "out.gguf", "out/"]))

    @quick
    @given(st.data(), st.sampled_from(["source", "both", "none"]))
    def run(data, given_paths):
        args, options = data.draw(arguments(function, paths))
        if given_paths != "none":
            args[:1] = [data.draw(paths)]
        if given_paths == "both":
            new = st.builds(lambda: next(outputs))
            args[1:2] = [data.draw(st.one_of(new, output))]
        if "sync" in inspect.signature(function).parameters:
            options.setdefault("sync", False)
        attempt(function, *args, **options)

    run()


@quick
@given(
    st.dictionaries(words, values, max_size=3),
    st.sampled_from(["gguf", "safetensors", "npz"]),
)
def test_metadata(tmp_path, metadata, kind):
    path, arrays = tmp_path / "x", {"w": lowbit.ones(3)}
    attempt(lowbit.save, path, arrays, metadata=metadata, kind=kind, sync=False)


@pytest.mark.parametrize(
    "name", ["load", "entry", "get", "get_slice", "get_tensor", "__getitem__", "close"]
)
def test_open_file(name, paths):
    @quick
    @given(st.sampled_from(["dense.npz", "packed.safetensors"]), st.lists(values))
    def run(path, args):
        with lowbit.open(path) as f:
            attempt(getattr(f, name), *args)
            attempt(getattr(f, name), "w", *args)
            attempt(lambda: f.get_slice("w")[tuple(args)])
            attempt(f.keys)

    run()


IN_TABLE = {name for name, _, _ in table()}
OTHERS = [
    name
    for name, value in inspect.getmembers(lowbit, callable)
    if not name.startswith("_")
    and name not in {*IN_TABLE, *files.__all__, "Array"}
    and not (inspect.isclass(value) and issubclass(value, Exception))
]


@pytest.mark.parametrize("name", [*OTHERS, "quantize"])
def test_python_functions(name):
    function = getattr(lowbit, name)

    @quick
    @given(st.lists(values, max_size=4))
    def run(args):
        with lowbit.config():
            attempt(function, *args)

    run()
