"""Buffers, DLPack and __array__, in both directions."""

import gc
import sys

import numpy as np
import pytest

import lowbit

DTYPES = "f4 f2 f8 i1 i2 i4 i8 u1 u2 u4 u8 ?".split()


# numpy 1 exchanges no bools and no read-only arrays by DLPack.
NEW_NUMPY = int(np.__version__.split(".")[0]) >= 2


def address(x):
    return x.__array_interface__["data"][0]


def big(dtype="f4"):
    return np.arange(3 * 1000).reshape(3, 1000).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_round_trip(dtype):
    n = np.arange(12).reshape(3, 4).astype(dtype)
    x = lowbit.array(n)
    assert x.dtype == n.dtype and x.dtype.name == n.dtype.name
    assert np.dtype(x.dtype) == n.dtype
    ways = [np.asarray, lambda x: np.asarray(memoryview(x))]
    if NEW_NUMPY or dtype != "?":
        ways.append(np.from_dlpack)
        assert lowbit.from_dlpack(n).tolist() == n.tolist()
    for way in ways:
        back = way(x)
        assert back.dtype == n.dtype and np.array_equal(back, n)
        assert not back.flags.writeable or (way is np.from_dlpack and not NEW_NUMPY)
    assert x.tolist() == n.tolist() and x.tobytes() == n.tobytes()
    empty = np.zeros((2, 0, 3), dtype)
    assert all(way(lowbit.array(empty)).shape == (2, 0, 3) for way in ways)


def test_no_copies():
    n = big()
    x = lowbit.asarray(n)
    assert address(np.asarray(x)) == address(n)
    assert address(np.from_dlpack(x)) == address(n)
    assert address(np.asarray(lowbit.from_dlpack(n))) == address(n)
    assert address(np.asarray(lowbit.asarray(n.T)).T) != 0
    assert address(np.asarray(lowbit.array(n))) != address(n)
    assert address(np.array(x)) != address(n) and np.array(x).flags.writeable
    lowbit.asarray(n, copy=False)
    for bad in (n[:, ::2], 1.5, [1, 2]):
        with pytest.raises((ValueError, BufferError)):
            lowbit.asarray(bad, copy=False)
    with pytest.raises(ValueError):
        lowbit.asarray(n, dtype="float16", copy=False)


def test_the_source_is_released():
    n = big()
    before = sys.getrefcount(n)
    x = lowbit.asarray(n)
    view = x[1:]
    assert sys.getrefcount(n) > before
    del x
    assert view[0, 0].item() == 1000
    del view
    lowbit.zeros(1)
    assert sys.getrefcount(n) == before
    x = lowbit.from_dlpack(n)
    del x
    lowbit.zeros(1)
    gc.collect()
    assert sys.getrefcount(n) == before


def test_results_do_not_share_memory_with_operands():
    n = big()
    for result in (
        lowbit.reshape(n, (1000, 3)),
        lowbit.permute_dims(n),
        lowbit.flip(n),
        lowbit.astype(n, "float32"),
        lowbit.materialize(n),
        lowbit.broadcast_to(n, (2, 3, 1000)),
    ):
        want = np.array(result)
        n += 1
        assert np.array_equal(np.asarray(result), want)


@pytest.mark.parametrize(
    "change",
    [
        lambda n: n.T,
        lambda n: n[::2, ::-3],
        lambda n: n[:, 5:7],
        lambda n: np.broadcast_to(n[0], (4, 1000)),
        lambda n: n.reshape(3, 10, 100).transpose(1, 2, 0),
        lambda n: np.frombuffer(b"x" + n.tobytes(), "u1")[1:].view("f4"),
    ],
)
def test_any_strides(change):
    n = change(big())
    assert np.array_equal(np.asarray(lowbit.asarray(n)), n)
    assert np.array_equal(np.asarray(lowbit.array(n)), n)
    assert np.array_equal(np.asarray(lowbit.array(n) + n), n + n)
    if NEW_NUMPY or n.flags.writeable:
        n = n if n.flags.aligned else n.copy()
        assert np.array_equal(np.asarray(lowbit.from_dlpack(n)), n)


def test_unaligned():
    x = lowbit.asarray(np.frombuffer(b"x" + bytes(8000), "u1")[1:].view("f4"))
    assert x.shape == (2000,)


def test_buffers_of_views():
    x = lowbit.asarray(big())
    for view, want in ((x.T, big().T), (x[:, ::-2], big()[:, ::-2])):
        assert np.array_equal(np.asarray(memoryview(view)), want)
        assert np.array_equal(np.from_dlpack(view), want)


def test_packed_arrays_have_no_buffer(matrix):
    if matrix.format == "dense":
        return
    for export in (memoryview, np.from_dlpack, bytes):
        with pytest.raises(BufferError, match=matrix.format):
            export(matrix)
    with pytest.raises(ValueError, match="decode"):
        matrix.__array__(copy=False)
    assert np.asarray(matrix).dtype == np.float32
    assert np.asarray(matrix, "f8").dtype == np.float64


def test_refused():
    for bad in (big(">f4"), np.zeros(2, "c8"), np.array(["a"]), np.zeros(2, "M8[s]")):
        with pytest.raises((lowbit.DtypeError, TypeError, ValueError)):
            lowbit.asarray(bad)
    with pytest.raises(lowbit.ShapeError, match="9 axes"):
        lowbit.asarray(np.zeros((1,) * 9))
    with pytest.raises(BufferError):
        lowbit.zeros(2).__dlpack__(stream=1)
    with pytest.raises(BufferError):
        lowbit.zeros(2).__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError):
        memoryview(lowbit.zeros(2))[0] = 1


def test_old_and_new_capsules():
    x = lowbit.asarray(big())
    assert '"dltensor"' in repr(x.__dlpack__())
    assert '"dltensor_versioned"' in repr(x.__dlpack__(max_version=(1, 0)))
    assert x.__dlpack_device__() == (1, 0)

    class Old:  # as torch was before DLPack 1.0
        def __dlpack__(self, stream=None):
            return x.__dlpack__()

    assert lowbit.from_dlpack(Old()).shape == (3, 1000)
    assert (x + Old()).shape == (3, 1000)


def test_objects_with_array():
    class Series:
        def __array__(self, dtype=None, copy=None):
            return big()

    assert lowbit.asarray(Series()).shape == (3, 1000)
    assert lowbit.sqrt(Series()).shape == (3, 1000)


def test_bfloat16():
    x = lowbit.array([1.5, -2.0], "bfloat16")
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(x)
    ml_dtypes = pytest.importorskip("ml_dtypes")
    n = np.asarray(x)
    assert n.dtype == ml_dtypes.bfloat16 and n.tolist() == [1.5, -2.0]
    assert lowbit.array(n).dtype == lowbit.bfloat16
    assert (x + n).tolist() == [3, -4] and lowbit.array(n).tolist() == [1.5, -2.0]
    assert np.dtype(lowbit.bfloat16) == n.dtype


def test_torch():
    torch = pytest.importorskip("torch")
    x = lowbit.asarray(big())
    t = torch.from_dlpack(x)
    assert t.data_ptr() == address(np.asarray(x))
    assert np.array_equal(np.asarray(lowbit.from_dlpack(t)), big())
    b = torch.ones(3, dtype=torch.bfloat16)
    assert lowbit.asarray(b).dtype == lowbit.bfloat16 == torch.bfloat16
    assert (x @ torch.ones(1000, 2)).shape == (3, 2)
