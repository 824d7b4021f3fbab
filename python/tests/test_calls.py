"""Functions of the table py_calls.def against numpy, on dense and packed arrays."""

import math

import numpy as np
import pytest
from conftest import FORMATS
from test_complete import table

import lowbit
from lowbit import _lowbit


def erf(x):
    return np.vectorize(math.erf)(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gelu_tanh(x):
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def logical(fn):
    return lambda x, y: fn(x.astype(np.uint64), y.astype(np.uint64)).astype(np.int64)


# By the name of the function: what numpy gives for float64 operands.
FLOAT_1 = {
    "negative": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "exp": np.exp,
    "log": lambda x: np.log(x),
    "expm1": np.expm1,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "erf": erf,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "round_away": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "isfinite": np.isfinite,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x * sigmoid(x),
    "gelu": lambda x: x / 2 * (1 + erf(x / math.sqrt(2))),
    "gelu_tanh": gelu_tanh,
    "softmax": softmax,
    "log_softmax": lambda x: np.log(softmax(x)),
    "rms_norm": lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5),
    "layer_norm": layer_norm,
    "permute_dims": np.transpose,
    "flip": np.flip,
    "squeeze": np.squeeze,
    "expand_dims": lambda x: x[None],
    "reduce_sum": np.sum,
    "reduce_prod": np.prod,
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "_var": np.var,
    "max": np.max,
    "min": np.min,
    "all": np.all,
    "any": np.any,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "materialize": lambda x: x,
    "stop_gradient": lambda x: x,
}
FLOAT_2 = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "div": np.divide,
    "rem": np.fmod,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "pow": lambda x, y: np.power(np.abs(x), y),
    "atan2": np.arctan2,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "matmul": lambda x, y: x @ y.T,
    "swiglu": lambda x, y: x * sigmoid(x) * y,
    "squared_error": lambda x, y: np.mean((x - y) ** 2),
}
INT = {
    "bitwise_invert": np.invert,
    "popcount": lambda x: np.vectorize(lambda v: bin(int(v) & 0xFFFFFFFF).count("1"))(x),
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
    "shift_right_arithmetic": np.right_shift,
    "shift_right_logical": lambda x, y: (x.view("u4") >> y.view("u4")).view("i4"),
    "reduce_and": np.bitwise_and.reduce,
    "reduce_or": np.bitwise_or.reduce,
}
I4 = np.array([[3, -7, 12], [5, 100, -1]], "i4")
# Expressions of lowbit and numpy that must be equal.
OTHER = {
    "astype": lambda: (lowbit.astype(I4, "int8"), I4.astype("i1")),
    "bitcast": lambda: (lowbit.bitcast(I4, "float32"), I4.view("f4")),
    "integer_pow": lambda: (lowbit.integer_pow(I4, 3), I4**3),
    "where": lambda: (lowbit.where(I4 > 3, I4, 0), np.where(I4 > 3, I4, 0)),
    "clamp": lambda: (lowbit.clamp(0, I4, 9), np.clip(I4, 0, 9)),
    "reshape": lambda: (_lowbit.reshape(I4, (3, -1)), I4.reshape(3, -1)),
    "reshape_permuted": lambda: (
        lowbit.reshape_permuted(I4, (1, 0), (2, 3)),
        I4.T.reshape(2, 3),
    ),
    "broadcast_to": lambda: (
        lowbit.broadcast_to(I4, (2, 2, 3)),
        np.broadcast_to(I4, (2, 2, 3)),
    ),
    "broadcast_in_dim": lambda: (
        lowbit.broadcast_in_dim(I4, (3, 4, 2), (2, 0)),
        np.broadcast_to(I4.T[:, None], (3, 4, 2)),
    ),
    "take": lambda: (_lowbit.take(I4, [2, 0], axis=1), I4[:, [2, 0]]),
    "embedding": lambda: (lowbit.embedding(I4, [1, 1]), I4[[1, 1]]),
    "cross_entropy": lambda: (
        lowbit.cross_entropy(np.zeros((2, 4), "f4"), [1, 2]),
        np.full(2, np.log(np.float32(4))),
    ),
    "iota": lambda: (lowbit.iota((2, 3), 0), np.indices((2, 3))[0].astype("i4")),
    "zeros": lambda: (_lowbit.zeros(3, dtype="int8"), np.zeros(3, "i1")),
    "random_permutation": lambda: (
        np.sort(lowbit.random_permutation(1, 9)),
        np.arange(9),
    ),
    "random_bits": lambda: (
        lowbit.random_bits((1, 2), 4) == lowbit.random_bits((1, 3), 4),
        np.zeros(4, bool),
    ),
    "random_uniform": lambda: (
        lowbit.floor(lowbit.random_uniform(1, 99, lo=2, hi=3)),
        np.full(99, 2, "f4"),
    ),
    "random_normal": lambda: (
        np.round(np.asarray(lowbit.random_normal(1, 100000)).std(), 2),
        np.float32(1),
    ),
    "quantize_scales": lambda: (
        lowbit.quantize_scales(lowbit.quantize(np.ones((4, 64), "f4"))).format,
        "nf4",
    ),
    "codes": lambda: (
        lowbit.codes(lowbit.quantize(np.eye(4, dtype="f4"), "int8")),
        np.eye(4, dtype="i1") * 127,
    ),
}


def test_every_row_has_a_sample():
    samples = FLOAT_1.keys() | FLOAT_2.keys() | INT.keys() | OTHER.keys()
    assert {row[0] for row in table()} == samples


def check(got, want):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    if got.dtype.kind in "biu":
        assert np.array_equal(got, want)
    else:
        np.testing.assert_allclose(got, want, rtol=3e-5, atol=3e-6)


@pytest.mark.parametrize("name", FLOAT_1)
def test_of_one_array(name, matrix):
    if name in ("log", "sqrt", "rsqrt", "log1p", "log_softmax"):
        matrix = lowbit.abs(matrix) + 0.25
    if name in ("reduce_prod", "prod"):
        matrix = matrix[:1, :8]
    decoded = np.asarray(matrix, "f8")
    check(getattr(_lowbit, name)(matrix), FLOAT_1[name](decoded))


@pytest.mark.parametrize("name", FLOAT_2)
def test_of_two_arrays(name, matrix, rng):
    x = rng.standard_normal(matrix.shape).astype("f4")
    decoded = np.asarray(matrix, "f8")
    function = getattr(_lowbit, name)
    if name == "pow":
        check(function(np.abs(x), matrix), FLOAT_2[name](x.astype("f8"), decoded))
    elif name == "matmul":
        check(function(x, matrix.T), FLOAT_2[name](x.astype("f8"), decoded))
    elif name in ("remainder", "rem", "floor_divide"):
        y = x + np.copysign(1, x)
        f4 = np.asarray(matrix)
        check(function(matrix, y), FLOAT_2[name](f4, y))
    else:
        with np.errstate(divide="ignore"):
            check(function(x, matrix), FLOAT_2[name](x.astype("f8"), decoded))


@pytest.mark.parametrize("name", INT)
def test_of_integers(name):
    function = getattr(_lowbit, name)
    if name in ("reduce_and", "reduce_or"):
        check(function(I4, 0), INT[name](I4))
    elif name in ("bitwise_invert", "popcount"):
        check(function(I4), INT[name](I4))
    else:
        y = np.array([[1, 2, 3], [4, 5, 6]], "i4")
        check(function(I4, y), INT[name](I4, y))


@pytest.mark.parametrize("name", OTHER)
def test_others(name):
    got, want = OTHER[name]()
    if isinstance(want, str):
        assert got == want
    else:
        check(got, want)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_integer_division_rounds_down(name, dtype):
    least = 0 if dtype[0] == "u" else -9
    x, y = np.meshgrid(np.arange(least, 10), [k for k in range(least, 10) if k])
    x, y = x.astype(dtype), y.astype(dtype)
    check(getattr(lowbit, name)(x, y), getattr(np, name)(x, y))


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min", "all", "any"])
def test_axes(name, axis, keepdims, rng):
    x = rng.standard_normal((2, 3, 4)).astype("f4")
    got = getattr(lowbit, name)(x, axis=axis, keepdims=keepdims)
    check(got, getattr(np, name)(x, axis=axis, keepdims=keepdims))


def test_attention(rng):
    q, k, v = (rng.standard_normal((h, 5, 8)).astype("f4") for h in (4, 2, 2))
    scores = q @ np.repeat(k, 2, 0).transpose(0, 2, 1) / 8**0.5
    seen = np.tril(np.ones((5, 5), bool))
    for causal in (False, True):
        masked = np.where(seen, scores, -np.inf) if causal else scores
        want = softmax(masked) @ np.repeat(v, 2, 0)
        check(lowbit.attention(q, k, v, causal=causal), want)
    few = softmax(scores[:, :, :3]) @ np.repeat(v, 2, 0)[:, :3]
    check(lowbit.attention(q, k, v, valid=3), few)
    turned = q.transpose(1, 0, 2)
    check(
        lowbit.attention(turned, k, v, q_positions_first=True).transpose(1, 0, 2),
        softmax(scores) @ np.repeat(v, 2, 0),
    )
    with pytest.raises(lowbit.Error):
        lowbit.attention(q, k[:1, :, :3], v)


def test_rope(rng):
    x = rng.standard_normal((2, 5, 8)).astype("f4")
    angle = np.arange(5)[:, None] * 100.0 ** (-np.arange(4) / 4)
    c, s = np.cos(angle), np.sin(angle)
    a, b = x[..., :4], x[..., 4:]
    want = np.concatenate([a * c - b * s, a * s + b * c], -1)
    check(lowbit.rope(x, base=100), want)
    check(lowbit.rope(x[:, 2:], base=100, offset=2), want[:, 2:])
    check(lowbit.rope(x[:, 2:], [2, 3, 4], base=100), want[:, 2:])
    with pytest.raises(lowbit.ArgumentError, match="llama3"):
        lowbit.rope(x, scaling="other")


def test_top_k(matrix):
    decoded = np.asarray(matrix)
    values, indices = lowbit.top_k(matrix, 3)
    order = np.argsort(-decoded, axis=-1, kind="stable")[..., :3]
    check(indices, order.astype("i4"))
    check(values, np.take_along_axis(decoded, order, -1))
    with pytest.raises(lowbit.Error):
        lowbit.top_k(matrix, matrix.shape[-1] + 1)


def test_sample(rng):
    logits = rng.standard_normal((500, 8)).astype("f4")
    check(lowbit.sample(1, logits, temperature=0), logits.argmax(-1).astype("i4"))
    check(lowbit.sample(1, logits, top_k=1), logits.argmax(-1).astype("i4"))
    tokens = np.asarray(lowbit.sample((1, 2), np.tile(logits[0], (20000, 1))))
    share = np.bincount(tokens, minlength=8) / 20000
    np.testing.assert_allclose(share, softmax(logits[0]), atol=0.02)
    few = np.asarray(lowbit.sample(3, np.tile(logits[0], (2000, 1)), top_k=2))
    assert set(few) == set(np.argsort(logits[0])[-2:])
    likely = np.asarray(lowbit.sample(3, np.tile(logits[0], (2000, 1)), min_p=0.5))
    p = softmax(logits[0])
    assert set(likely) == set(np.flatnonzero(p >= p.max() / 2))
    with pytest.raises(lowbit.Error):
        lowbit.sample(1, logits, temperature=-1)


def test_formats_are_covered():
    assert {"int8", "nf4", "ternary", "binary", "q4_0"} <= set(FORMATS)
