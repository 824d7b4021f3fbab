"""Random and malformed arguments: functions return arrays or raise, and never crash."""

import pytest

hypothesis = pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from test_complete import table  # noqa: E402

import lowbit  # noqa: E402
from lowbit import _lowbit  # noqa: E402

EXPECTED = (
    TypeError,
    ValueError,
    ArithmeticError,
    LookupError,
    MemoryError,
    NotImplementedError,
    BufferError,
    AttributeError,
    OSError,
    lowbit.Error,
)

shapes = st.lists(st.integers(0, 5), max_size=4).map(tuple)
dtypes = st.sampled_from(
    ["f32", "f16", "bf16", "f64", "i8", "i32", "i64", "u8", "u64", "bool"]
)
dense = st.builds(
    lambda shape, dtype, seed: lowbit.astype(
        3 * lowbit.random_normal(seed, shape), dtype
    ),
    shapes,
    dtypes,
    st.integers(0, 99),
)
packed = st.builds(
    lambda rows, columns, format: lowbit.quantize(lowbit.ones((rows, columns)), format),
    st.integers(0, 4),
    st.sampled_from([0, 1, 7, 64, 256]),
    st.sampled_from(["int8", "nf4", "ternary", "binary", "dynamic8"]),
)
views = st.one_of(dense, packed, packed.map(lambda q: q.T), dense.map(lambda x: x.T))
numbers = st.one_of(
    st.integers(-3, 9),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.complex_numbers(),
    st.none(),
)
slices = st.builds(slice, numbers, numbers, numbers)
values = st.recursive(
    st.one_of(
        views, numbers, st.text(max_size=5), st.binary(max_size=9), slices, st.just(...)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.tuples(inner, inner)),
    max_leaves=5,
)
quick = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def attempt(call, *args, **kwargs):
    try:
        result = call(*args, **kwargs)
    except EXPECTED:
        return
    if isinstance(result, lowbit.Array):
        result.tobytes()
        repr(result)


@pytest.mark.parametrize("row", table(), ids=lambda row: row[0])
def test_table(row):
    name, signature, kinds = row
    names = [w.split("=")[0] for w in signature.split(", ") if w not in "/*"]
    function = getattr(_lowbit, name)
    by_name = signature.partition("/")[2] or (signature if "/" not in signature else "")
    n_positional = len(
        [w for w in signature.split("*")[0].split(", ") if w and w not in "/*"]
    )

    @quick
    @given(st.data())
    def run(data):
        arrays = {"a": views, "k": views, "n": views}
        args = [data.draw(st.one_of(arrays.get(kind, values), values)) for kind in kinds]
        words = dict(zip(names[n_positional:], args[n_positional:])) if by_name else {}
        attempt(function, *args[:n_positional], **words)

    run()


@quick
@given(views, values)
def test_indices(x, key):
    attempt(lambda: x[key])


@quick
@given(views, values, st.sampled_from("+-*/%@&|^<>"))
def test_operators(x, y, operator):
    attempt(eval, f"x {operator} y", {"x": x, "y": y})
    attempt(eval, f"y {operator} x", {"x": x, "y": y})


@quick
@given(values, st.one_of(dtypes, values), st.one_of(st.none(), st.booleans()))
def test_conversion(value, dtype, copy):
    attempt(lowbit.asarray, value, dtype=dtype, copy=copy)
    attempt(lowbit.from_dlpack, value)
    attempt(lowbit.full, value, 1)


OTHERS = [
    "concat", "pad", "dynamic_slice", "dynamic_update_slice", "dot_general", "linear",
    "conv_general_dilated", "gather", "scatter_add", "rope", "attention", "promote_types", "key_fold",
    "reduce", "component", "export", "is_kernel_available", "set_dense", "explain",
    "_quantize", "_straight_through", "_from_codes", "_from_parts", "_from_bytes",
    "_from_view", "sample", "top_k",
    "_value_and_grad", "_vjp", "_ste", "_compare", "_difference", "_examine", "_histogram",
    "_code_counts", "_save", "_can_save", "_to_parts", "_from_descriptor", "_use_threads",
]  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_others(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # _save
    function = getattr(_lowbit, name)
    options = st.dictionaries(
        st.sampled_from(["format", "block_size", "axes", "dtype", "scale", "compat"]),
        st.one_of(values, st.sampled_from(["nf4", "int8", "row", "eformer"])),
    )
    argument = st.one_of(views, values, options, st.just(lambda *a: a[0]))

    with lowbit.config():  # set_dense is for this context

        @quick
        @given(st.lists(argument, max_size=5))
        def run(args):
            attempt(function, *args)

        run()
