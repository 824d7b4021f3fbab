"""lowbit.Array: attributes, operators, conversion, copying."""

import copy
import gc
import operator
import pickle
import weakref

import numpy as np
import pytest

import lowbit


def test_attributes():
    q = lowbit.quantize(np.ones((4, 64), "f4"), "nf4")
    assert (q.shape, q.ndim, q.size, q.itemsize) == ((4, 64), 2, 256, 4)
    assert (q.format, q.nbytes, q.bits) == ("nf4", 144, 4.5)
    assert q.dtype == lowbit.float32 == "float32" == np.dtype("f4")
    assert q.device == "cpu" and q.T.shape == (64, 4) == q.mT.shape
    assert q.config["format"] == "nf4" and q.config["block_size"] == 64
    assert set(q.parts) == {"codes", "absmax"} and q.parts["absmax"].shape == (4, 1)
    assert lowbit.zeros(3).parts == {}
    with pytest.raises(lowbit.Error, match="dense"):
        lowbit.zeros(3).config
    with pytest.raises(IndexError, match="mT"):
        lowbit.zeros(3).mT


def test_text():
    x = lowbit.array([[1.5, 2.0]])
    assert repr(x) == "dense f32(1,2), 8 bytes\n[[1.5 2. ]]"
    assert x.describe() == "dense f32(1,2), 8 bytes"
    assert x.to_string(header=False) == "[[1.5 2. ]]"
    long = lowbit.zeros(100000).to_string(threshold=-1)
    assert len(long) > 200000 and "..." not in long


OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
]


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
@pytest.mark.parametrize(
    "other", [3, 2.5, np.float32(1.5), np.arange(1.0, 4, dtype="f4")]
)
def test_operators(op, other):
    n = np.array([[1, -2, 3], [4, 5, -6]], "f4")
    x = lowbit.array(n)
    for got, want in [
        (op(x, other), op(n, other)),
        (op(other, x), op(other, n)),
        (op(x, x), op(n, n)),
    ]:
        assert isinstance(got, lowbit.Array)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)


def test_integer_operators():
    n = np.array([1, -2, 30], "i4")
    x = lowbit.array(n)
    for op in (operator.and_, operator.or_, operator.xor, operator.lshift):
        assert op(x, 3).tolist() == op(n, 3).tolist()
    assert (x >> 1).tolist() == (n >> 1).tolist()
    assert (1 << lowbit.array([1, 2])).tolist() == [2, 4]
    assert (~x).tolist() == (~n).tolist() and (-x).tolist() == (-n).tolist()
    assert abs(x).tolist() == [1, 2, 30] and (+x) is x
    assert (x**2).tolist() == [1, 4, 900] and (2 ** lowbit.array([3])).tolist() == [8]
    assert (x / 2).tolist() == [0.5, -1.0, 15.0]


def test_numbers_are_weak():
    h = lowbit.zeros(2, dtype="float16")
    assert (h + 1).dtype == (h * 2.5).dtype == (1 - h).dtype == lowbit.float16
    assert (lowbit.zeros(2, dtype="int8") + 1).dtype == lowbit.int8
    assert (lowbit.zeros(2, dtype="int8") + 1.5).dtype == lowbit.float32
    assert (h + np.float64(1)).dtype == lowbit.float64
    with pytest.raises(lowbit.Error, match="300"):
        lowbit.zeros(2, dtype="int8") + 300
    with pytest.raises(OverflowError):
        lowbit.zeros(2) + 2**100


def test_matmul_operators():
    n = np.arange(12, dtype="f4").reshape(3, 4)
    x = lowbit.array(n)
    assert (x @ n.T).tolist() == (n.T.T @ n.T).tolist() == (n @ x.T).tolist()
    assert (np.ones(3, "f4") @ x).tolist() == n.sum(0).tolist()


def test_unknown_operands():
    x = lowbit.zeros(2)
    for other in ("a", b"ab", {}, [1, 2], 1j):
        with pytest.raises(TypeError):
            x + other
    assert (x == None) is False and (x != "a") is True  # noqa: E711


def test_one_element():
    one = lowbit.array([[2.5]])
    assert one.item() == float(one) == 2.5 and int(one) == 2 and complex(one) == 2.5
    assert bool(lowbit.array(0)) is False and bool(lowbit.array(True)) is True
    assert [10, 20, 30][lowbit.array(1)] == 20
    with pytest.raises(ValueError, match="2 elements"):
        bool(lowbit.zeros(2))
    with pytest.raises(TypeError):
        operator.index(one)
    with pytest.raises(TypeError, match="len"):
        len(lowbit.array(1))


def test_immutable_and_unhashable():
    x = lowbit.zeros(2)
    with pytest.raises(TypeError):
        x[0] = 1
    with pytest.raises(TypeError):
        hash(x)
    with pytest.raises(TypeError):
        lowbit.Array()
    with pytest.raises(AttributeError):
        x.shape = (1, 2)


def test_astype_and_reshape(matrix):
    assert matrix.astype("float16").format == matrix.format
    assert matrix.astype(lowbit.int32).format == "dense"
    assert matrix.reshape(12, 256).shape == matrix.reshape((12, -1)).shape == (12, 256)
    assert matrix.transpose(1, 0).shape == matrix.transpose().shape == (512, 6)
    want = np.asarray(matrix)
    assert np.array_equal(np.asarray(matrix.T), want.T)
    assert np.array_equal(np.asarray(matrix.reshape(12, 256)), want.reshape(12, 256))


def test_pickle_and_copy(matrix):
    assert copy.copy(matrix) is matrix is copy.deepcopy(matrix) is matrix.copy()
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(matrix, protocol))
        assert again.format == matrix.format and again.dtype == matrix.dtype
        assert again.nbytes == matrix.nbytes
        assert again.tobytes() == matrix.tobytes()
    assert pickle.loads(pickle.dumps(matrix.dtype)) is matrix.dtype


VIEWS = {
    "transposed": lambda q: q.T,
    "inside blocks": lambda q: q[1:9, 3:7],
    "steps": lambda q: q[::-1, ::5],
    "repeated": lambda q: lowbit.broadcast_to(q[None, :, :64], (3, *q[:, :64].shape)),
    "empty": lambda q: q.T[5:5],
    "bfloat16": lambda q: q.T.astype("bf16"),
    "reshaped": lambda q: q.reshape(-1, 32)[1],
}


@pytest.mark.parametrize("view", VIEWS)
def test_pickle_of_views(matrix, view):
    x = VIEWS[view](matrix)
    again = pickle.loads(pickle.dumps(x))
    assert (again.format, again.shape, again.dtype) == (x.format, x.shape, x.dtype)
    assert again.tobytes() == x.tobytes()


def test_views_from_pickles_are_checked():
    q = lowbit.quantize(np.ones((4, 64), "f4"))
    assert lowbit._from_view(q, (2, 3), (-64, 0), 64).tolist() == [[1] * 3] * 2
    for base, shape, strides, offset in [
        (q, (4, 64), (64, 1), 1),
        (q, (4, 64), (64, -1), 0),
        (q, (4,), (64, 1), 0),
        (q, (-1,), (1,), 0),
        (q, (2,), (2**62,), 0),
        (q, (2**62, 2**62), (0, 0), 0),
        (q.T, (1,), (1,), 0),
        (q[1:], (4, 64), (64, 1), 0),
    ]:
        with pytest.raises((ValueError, lowbit.Error)):
            lowbit._from_view(base, shape, strides, offset)


@pytest.mark.parametrize("dtype", lowbit.array_api.__array_namespace_info__().dtypes())
def test_pickle_of_dtypes(dtype):
    x = lowbit.astype(lowbit.arange(6), dtype).reshape(2, 3)
    again = pickle.loads(pickle.dumps(x))
    assert again.dtype == dtype and again.tolist() == x.tolist()


def test_lifetime():
    x = lowbit.zeros((1000, 1000))
    dead = weakref.ref(x)
    view, buffer = x[10:20], memoryview(x)
    del x
    gc.collect()
    assert dead() is not None  # the buffer holds it
    buffer.release()
    assert dead() is None and view.tolist()[0][0] == 0
    before = lowbit.context_info()["bytes_in_use"]
    for _ in range(100):
        lowbit.zeros((1000, 1000)) + 1
    assert lowbit.context_info()["bytes_in_use"] <= before + 1000
    del view
    assert lowbit.context_info()["bytes_in_use"] < before


def test_iteration():
    x = lowbit.array([[1, 2], [3, 4]])
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]] and len(x) == 2
    a, b = x
    assert b.tolist() == [3, 4]


@pytest.mark.parametrize(
    "value, shape, dtype",
    [
        (1, (), "int32"),
        (2**40, (), "int64"),
        (1.5, (), "float32"),
        (True, (), "bool"),
        ([], (0,), "float32"),
        ([[], []], (2, 0), "float32"),
        ([True, False], (2,), "bool"),
        ([1, True], (2,), "int32"),
        ([[1, 2], [3, 4.5]], (2, 2), "float32"),
        ([np.float32(1), np.int8(2)], (2,), "float32"),
        (np.float64(3), (), "float64"),
        (b"ab", (2,), "uint8"),
    ],
)
def test_from_python(value, shape, dtype):
    x = lowbit.array(value)
    assert x.shape == shape and x.dtype == dtype
    want = list(value) if isinstance(value, bytes) else np.asarray(value).tolist()
    assert x.tolist() == want
    assert lowbit.array(value, "float16").dtype == lowbit.float16


@pytest.mark.parametrize(
    "value", [[[1], [2, 3]], [1, [2]], [[1], 2], ["a"], [None], object(), {1: 2}]
)
def test_refused(value):
    with pytest.raises((TypeError, ValueError)):
        lowbit.array(value)


def test_lists_of_arrays():
    x = lowbit.array([1.5, 2.5])
    assert lowbit.array([x[0], x[1]]).tolist() == [1.5, 2.5]
    assert lowbit.array([lowbit.array(True), False]).dtype == lowbit.bool
    assert lowbit.array([[lowbit.array(3)]]).dtype == lowbit.int32
    with pytest.raises(ValueError):
        lowbit.array([x, x])


def test_too_deep():
    value = 1
    for _ in range(9):
        value = [value]
    with pytest.raises(lowbit.ShapeError):
        lowbit.array(value)
