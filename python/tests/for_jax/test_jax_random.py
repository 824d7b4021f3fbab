"""Random and malformed arguments: functions and handlers return arrays or raise, and never
crash. EXAMPLES is the number of examples of each (default: 8); `make nightly-jax` tries more
with AddressSanitizer."""

import devices  # noqa: F401, I001: before jax

import os
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_jax_arrays import FORMATS

import lowbit.jax as lj
from lowbit.jax import _ffi

EXPECTED = (
    TypeError,
    ValueError,
    LookupError,
    ArithmeticError,
    NotImplementedError,
    RuntimeError,  # and XLA's
    AttributeError,  # None and numbers where arrays belong
)
# Every example compiles programs.
quick = settings(
    max_examples=int(os.environ.get("EXAMPLES", 8)),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*it is materialized"),
    pytest.mark.filterwarnings("ignore:.*truncated to dtype"),
    pytest.mark.filterwarnings("ignore:.*out of bounds"),
]

DTYPES = ["float32", "float16", "bfloat16", "int8", "uint8", "int32", "uint4", "bool",
          "complex64", "float8_e4m3fn"]  # fmt: skip
sizes = st.sampled_from([0, 1, 2, 4, 5, 32, 64, 70])
shapes = st.lists(sizes, max_size=3).map(tuple)


@st.composite
def arrays(draw, shapes=shapes, dtypes=st.sampled_from(DTYPES)):
    """Small integers in any dtype, or anything in bytes; sometimes what is no number."""
    shape, dtype = draw(shapes), draw(dtypes)
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    limit = 256 if dtype == "uint8" else 3
    values = rng.integers(-1 if limit == 3 else 0, limit, shape).astype("f4")
    if values.size and draw(st.integers(0, 5)) == 0:
        values.flat[0] = draw(st.sampled_from([np.nan, np.inf, -1e30, 1e-40]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return jnp.asarray(values).astype(dtype)


numbers = st.one_of(
    st.integers(-3, 9),
    st.sampled_from([16, 64, 2**31, -(2**63), 2**64]),
    st.floats(),
    st.booleans(),
    st.none(),
)
words = st.sampled_from(
    ["nf4", "int8", "ternary", "row", "block", "eformer", "poly", "x", "", "float32", "int4"]
)
values = st.one_of(arrays(), numbers, words, st.lists(numbers, max_size=2), shapes)
configs = st.builds(
    lambda options: attempt(lj.QuantizationConfig, **options),
    st.fixed_dictionaries(
        {"dtype": st.one_of(st.sampled_from(FORMATS), values)},
        optional={
            "block_size": st.one_of(st.sampled_from([2, 6, 32, 64]), numbers),
            "axis": st.one_of(st.integers(-3, 2), st.lists(st.integers(-3, 2), max_size=2)),
            "materialize": st.one_of(st.sampled_from(DTYPES), values),
            "compat": st.sampled_from(["native", "eformer", "bnb-cuda", "bnb-cpu"]),
            "scale": st.sampled_from(["none", "tensor", "row", "block"]),
            "threshold": st.sampled_from(["std", "absmean"]),
            "decode": st.sampled_from(["table", "poly"]),
            "on_nonfinite": st.sampled_from(["error", "clamp"]),
            "double_quant": st.booleans(),
            "simulate": st.booleans(),
            "use_kernel": st.booleans(),
        },
    ),
)


def attempt(call, *args, **kwargs):
    try:
        return jax.block_until_ready(call(*args, **kwargs))
    except EXPECTED:
        return None


def use(q):
    """What can be done with an array, if it is one."""
    if not isinstance(q, lj.QuantizedArray):
        return
    repr(q)
    values = attempt(q.materialize)
    assert values is None or (values.shape == q.shape and values.dtype == q.dtype)
    for name in ("weight", "scale", "packed", "absmax", "axis", "block_size"):
        attempt(getattr, q, name)
    attempt(q.codes)
    attempt(lambda: q.T)
    if len(q.shape) == 2:
        y = attempt(lambda: jnp.ones((2, q.shape[0]), "bfloat16") @ q)
        assert y is None or y.shape == (2, q.shape[1])


@quick
@given(st.one_of(arrays(), arrays(dtypes=st.just("float32"))), st.one_of(configs, values))
def test_quantize(x, config):
    use(attempt(lj.quantize, x, config))
    y = attempt(lj.straight_through, x, config)
    assert y is None or y.shape == x.shape


scales = arrays(dtypes=st.sampled_from(["float32", "float16", "int8"]))


@quick
@given(
    st.one_of(arrays(dtypes=st.just("uint8")), values),
    st.one_of(scales, values),
    st.one_of(st.none(), values),
    st.one_of(st.none(), shapes),
    st.one_of(st.none(), st.sampled_from(DTYPES), values),
)
def test_parts(codes, scale, third, shape, dtype):
    """Arrays of given codes and scales."""
    if isinstance(codes, jax.Array) and codes.ndim > 1 and isinstance(scale, jax.Array):
        scale = jnp.ones(codes.shape[:-1], scale.dtype)
    use(attempt(lj.ArrayNF4, codes, scale, third, shape=shape, dtype=dtype))
    use(attempt(lj.ArrayNF4, codes, scale, shape=shape, decode="poly"))
    use(attempt(lj.Array1B, codes, shape=shape, dtype=dtype))
    use(attempt(lj.Array1B.quantize, codes, dtype))
    signed = codes.astype("int8") if isinstance(codes, jax.Array) else codes
    use(attempt(lj.Array8B, scale, signed, third, shape=shape, dtype=dtype))


FUNCTIONS = ["matmul_bf16_int8_weight_only", "quantize_int8", "dequantize_int8",
             "quantize_and_pack_nf4", "dequantize_nf4", "pack_weights_1bit",
             "unpack_weights_1bit", "nf4xf32_to_f32", "i8tou8", "safe_materialize",
             "is_kernel_available", "straight_through_1bit", "straight_through_8bit",
             "straight_through_nf4"]  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    @quick
    @given(st.lists(values, max_size=4))
    def run(args):
        attempt(getattr(lj, name), *args)

    run()


@quick
@given(st.sampled_from(FORMATS), arrays(), st.data())
def test_operations(format, x, data):
    """Operators and functions of jax.numpy on a packed array and anything."""
    q = lj.quantize(jnp.linspace(-1, 1, 70 * 64).reshape(70, 64), format)
    if data.draw(st.booleans()):
        q = q.T
    index = data.draw(st.one_of(numbers, st.lists(numbers, max_size=2).map(tuple), arrays()))
    attempt(lambda: q[index])
    attempt(lambda: q @ x)
    attempt(lambda: x @ q)
    attempt(lambda: q + x)
    axes = data.draw(st.lists(st.integers(-3, 2), max_size=3))
    attempt(lambda: q.transpose(*axes))
    attempt(lambda: q.reshape(*data.draw(shapes)))
    attempt(lambda: q.astype(data.draw(st.sampled_from(DTYPES))))
    dims = data.draw(st.tuples(*[st.lists(st.integers(-3, 2), max_size=2)] * 4))
    numbers_of = ((dims[0], dims[1]), (dims[2], dims[3]))
    attempt(lambda: lj.dot_general(x, q, numbers_of))
    attempt(lambda: lj.implicit(jnp.einsum)(data.draw(st.sampled_from(
        ["ij,jk->ik", "ij,ij->", "ij,kj->ik", "i,ij->j"])), x, q))  # fmt: skip


@quick
@given(st.sampled_from(FORMATS), st.booleans(), st.lists(arrays(), max_size=3), st.data())
def test_leaves(format, double, others, data):
    """Pytrees whose leaves were replaced: other shapes, dtypes and contents."""
    config = lj.QuantizationConfig(format, double_quant=double)
    q = lj.quantize(jnp.linspace(-1, 1, 64 * 130).reshape(64, 130), config)
    leaves, tree = jax.tree.flatten(q)
    for k in range(len(leaves)):
        part = np.array(leaves[k])
        part.view(np.uint8).flat[:: data.draw(st.integers(1, 9))] = data.draw(st.integers(0, 255))
        leaves[k] = jnp.asarray(part)
    for x in others:
        leaves[data.draw(st.integers(0, len(leaves) - 1))] = x
    broken = attempt(jax.tree.unflatten, tree, leaves)
    attempt(lambda: use(broken))
    attempt(jax.jit(lambda x, q: x @ q), jnp.ones((3, 64)), broken)
    attempt(jax.jit(lambda x, q: x @ q.T), jnp.ones((3, 130)), broken)
    attempt(jax.vmap(lambda q: q.materialize()), broken)


words64 = st.one_of(
    st.integers(-2, 9), st.sampled_from([64, 130, 255, 2**31, 2**32 + 1, 2**62, -(2**63)])
)


def spoil(data, attribute):
    """Some integers replaced, or the list cut or longer."""
    numbers = list(attribute)
    for _ in range(data.draw(st.integers(0, 3))):
        numbers[data.draw(st.integers(0, len(numbers) - 1))] = data.draw(words64)
    if data.draw(st.integers(0, 3)) == 0:
        numbers = numbers[: data.draw(st.integers(0, len(numbers)))]
        numbers += data.draw(st.lists(words64, max_size=3))
    return np.array(numbers, np.int64)


names = st.sampled_from([*FORMATS, "dynamic8", "q4_0", "dense", "", "x" * 80, "mxfp4"])


@quick
@given(st.sampled_from(FORMATS), st.booleans(), st.lists(arrays(), max_size=2), st.data())
def test_handlers(format, double, others, data):
    """The library's handlers themselves, with attributes and buffers of other sizes."""
    config = lj.QuantizationConfig(format, double_quant=double)
    q = lj.quantize(jnp.linspace(-1, 1, 8 * 64).reshape(8, 64), config)
    coding, parts = q._static.coding, list(q.leaves)
    for x in others:
        if data.draw(st.booleans()):
            parts[data.draw(st.integers(0, len(parts) - 1))] = x
        else:
            parts = parts[: data.draw(st.integers(0, len(parts)))] + [x]
    # Those of a valid call.
    words = _ffi._attributes(0, coding, len(q.leaves), (8, 64), data.draw(
        st.sampled_from([None, (0, 1), (1, 0), (1, 1), (5, 0), (0,)])))  # fmt: skip
    f0 = data.draw(st.one_of(st.just(format), names))
    a0 = spoil(data, words["a0"])
    shape = data.draw(st.one_of(st.sampled_from([(8, 64), (64, 8), (3, 64), (3, 8)]), shapes))
    out = jax.ShapeDtypeStruct(shape, data.draw(st.sampled_from(["float32", "uint8"])))

    def call(name, out, *buffers, **attributes):
        attempt(jax.jit(lambda *b: jax.ffi.ffi_call(name, out)(*b, **attributes)), *buffers)

    call("lowbit_decode", out, *parts, f0=f0, a0=a0)
    dims = spoil(data, [1, 1, 1, 0, 0, 0, 1, 0])
    x = data.draw(st.one_of(st.just(jnp.ones((3, 8))), arrays()))
    call("lowbit_dot_general", out, x, *parts, f1=f0, a1=a0, dims=dims)
    call("lowbit_dot_general", out, *parts, x, f0=f0, a0=a0, dims=dims)
    call("lowbit_dot_general", out, *parts, *parts, f0=f0, a0=a0, f1=f0, a1=a0, dims=dims)
    call("lowbit_dot_general", out, x)
    parts_out = [jax.ShapeDtypeStruct(p.shape, p.dtype) for p in parts]
    call("lowbit_encode", parts_out or [out], x, f0=f0, a0=a0)
    call("lowbit_encode", [out], x, a0=np.float32(1), f0=np.int64(3))
    call("lowbit_decode", [out, out], *parts, f0=f0, a0="text")
