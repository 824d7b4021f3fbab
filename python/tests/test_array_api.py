"""Functions of the array API that are composed in Python. The standard's own test suite
(tools/array-api-tests) covers all of them; these run without it.
"""

import numpy as np
import pytest

import lowbit


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_nextafter(dtype):
    f = np.finfo(dtype)
    values = [0, -0.0, 1, -1, f.tiny, -f.smallest_subnormal, f.max, np.inf, -np.inf, np.nan]
    x, y = np.meshgrid(np.array(values, dtype), np.array(values, dtype))
    with np.errstate(all="ignore"):
        want = np.where(x == y, y, np.nextafter(x, y))  # numpy's f2 keeps x's sign
    got = np.asarray(lowbit.nextafter(lowbit.array(x), lowbit.array(y)))
    assert got.dtype == want.dtype
    assert np.array_equal(got, want, equal_nan=True)
    seen = ~np.isnan(want)
    assert np.array_equal(np.signbit(got[seen]), np.signbit(want[seen]))
    assert lowbit.nextafter(lowbit.array(1.0), 2).item() > 1


def test_real_arrays_as_complex():
    x = lowbit.array([1.0, -2.0])
    assert lowbit.conj(x) is x and lowbit.real(x) is x
    assert lowbit.imag(x).tolist() == [0, 0]


def test_empty_masks():
    for shape, mask in [((0, 1), (0, 0)), ((2, 3), (2, 0)), ((0, 3, 1), (0, 0))]:
        want = np.zeros(shape, "f4")[np.zeros(mask, bool)]
        assert lowbit.zeros(shape)[lowbit.zeros(mask, dtype="bool")].shape == want.shape
    with pytest.raises(IndexError):
        lowbit.zeros((2, 3))[lowbit.zeros((1, 3), dtype="bool")]


def test_signatures():
    x = lowbit.zeros((2, 3))
    assert lowbit.broadcast_to(x, shape=(4, 2, 3)).shape == (4, 2, 3)
    assert lowbit.expand_dims(x, 1).shape == (2, 1, 3)


def test_special_cases():
    x = lowbit.array([-0.0, 0.0, -3.0])
    assert str(lowbit.sign(x).tolist()) == "[0.0, 0.0, -1.0]"
    assert np.isnan(np.asarray(lowbit.acosh(lowbit.array([0.5, -1.0, -2.0, -1e30])))).all()
    y = np.array([1, 1 + 1e-6, 1.5, 1e9, np.inf], "f4")
    np.testing.assert_allclose(lowbit.acosh(lowbit.array(y)), np.arccosh(y), rtol=1e-6)
