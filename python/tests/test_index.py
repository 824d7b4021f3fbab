"""x[...] against numpy, on dense and packed arrays."""

import itertools

import numpy as np
import pytest

import lowbit

BASIC = [
    0,
    -1,
    slice(None),
    slice(1, None),
    slice(None, None, -1),
    slice(3, 0, -2),
    slice(2, 2),
    None,
    ...,
]
MASK = np.array([True, False, True])
ADVANCED = [[0, 2], np.array([[1], [-1]]), MASK]


def check(x, n, key):
    try:
        want = n[key]
    except IndexError:
        with pytest.raises(IndexError):
            x[key]
        return
    got = np.asarray(x[key])
    assert got.shape == want.shape, key
    assert np.array_equal(got, want), key


def arrays():
    n = np.arange(3 * 4 * 5, dtype="f4").reshape(3, 4, 5)
    return lowbit.array(n), n


def test_basic():
    x, n = arrays()
    for count in range(4):
        for key in itertools.product(BASIC, repeat=count):
            if key.count(...) < 2:
                check(x, n, key)
    for key in BASIC:
        check(x, n, key)


def test_advanced():
    x, n = arrays()
    x, n = x[:, :3, :3], n[:, :3, :3]
    for key in itertools.product([0, slice(None, None, -1), None, *ADVANCED], repeat=3):
        check(x, n, key)
    for key in itertools.product([slice(None), None, ..., *ADVANCED], repeat=2):
        if sum(k is ... for k in key) < 2:
            check(x, n, key)


def test_masks():
    x, n = arrays()
    check(x, n, n % 3 == 0)
    check(x, n, n[:, :, 0] % 3 == 0)
    check(x, n, (slice(None), n[0] % 3 == 0))
    check(x, n, n < 0)
    assert x[lowbit.array(n > 50)].tolist() == n[n > 50].tolist()
    assert x[lowbit.array([2, 0])].tolist() == n[[2, 0]].tolist()
    assert x[lowbit.array(1)].tolist() == n[1].tolist()


@pytest.mark.parametrize(
    "key",
    [
        3,
        -4,
        (0, 0, 0, 0),
        ([3],),
        ([-4],),
        1.5,
        "a",
        [0.5],
        (..., ...),
        np.ones(4, bool),
    ],
)
def test_refused(key):
    x, _ = arrays()
    with pytest.raises((IndexError, TypeError, ValueError)):
        x[key]


def test_truth_and_wrong_masks():
    x, n = arrays()
    for key in (True, False, np.ones((3, 4), bool)):
        check(x, n, key)
    assert x[lowbit.array(True)].shape == (1, 3, 4, 5)
    for bad in (np.ones(2, bool), np.ones((3, 5), bool), np.ones((3, 4, 5, 1), bool)):
        with pytest.raises(IndexError):
            x[bad]
    empty = lowbit.zeros((0, 0, 2))
    assert empty[np.ones((0, 0), bool)].shape == (0, 2)


def test_packed(matrix):
    n = np.asarray(matrix)
    for key in [
        0,
        slice(1, 4),
        (slice(None), slice(256, 512)),
        (slice(None), 7),
        (slice(None, None, -2), slice(3, 300, 7)),
        [4, 0, 4],
        (slice(None), [300, 2]),
        ([0, 5], [1, 511]),
        n[:, 0] > 0,
    ]:
        check(matrix, n, key)
    assert matrix[1:4].format == matrix[:, 256:].format == matrix.format


def test_empty():
    x = lowbit.zeros((0, 3))
    assert x[:, 1].shape == (0,) and x[[]].shape == (0, 3)
    with pytest.raises(IndexError):
        x[0]
