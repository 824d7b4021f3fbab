"""Methods with numpy's names and arguments, next to numpy's."""

import copy
import pickle

import numpy as np
import pytest

import lowbit

X = np.array([[3.5, -1, 0, 7], [2, 2, -8, 0.25], [1, 0, 0, -4]], "f4")


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "max", "min"])
def test_reductions(name):
    x = lowbit.array(X)
    for args in [(), (0,), (1,), (-1,), ((0, 1),)]:
        got, want = getattr(x, name)(*args), getattr(X, name)(*args)
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)
        got = getattr(np, name)(x, *args)  # numpy's functions call the method
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)
    assert getattr(x, name)(axis=1, keepdims=True).shape == (3, 1)
    with pytest.raises(TypeError, match="immutable"):
        getattr(x, name)(out=np.zeros((), "f4"))
    with pytest.raises(lowbit.AxisError, match="2"):
        getattr(x, name)(2)


@pytest.mark.parametrize("name", ["any", "all", "argmax", "argmin"])
def test_choices(name):
    x = lowbit.array(X)
    for args in [(), (0,), (1,)]:
        assert getattr(x, name)(*args).tolist() == getattr(X, name)(*args).tolist()


def test_arguments_of_reductions():
    x = lowbit.array(X)
    assert x.sum(dtype="float64").dtype == lowbit.float64
    assert x.mean(0, "float64").dtype == lowbit.float64
    np.testing.assert_allclose(x.std(ddof=1).item(), X.std(ddof=1), rtol=1e-6)
    np.testing.assert_allclose(x.var(0, ddof=1).tolist(), X.var(0, ddof=1), rtol=1e-6)


def test_quantized():
    q = lowbit.quantize(lowbit.random_normal(0, (32, 64)), "nf4")
    np.testing.assert_allclose(q.sum(1).tolist(), np.asarray(q).sum(1), rtol=1e-4, atol=1e-5)
    assert q.numpy().tobytes() == np.asarray(q).tobytes()
    assert q.flatten().shape == (2048,)
    assert q[None].squeeze().shape == q[None].squeeze(0).shape == (32, 64)
    assert q.dot(q.T).tobytes() == (q @ q.T).tobytes()
    assert pickle.loads(pickle.dumps(q)).max().item() == copy.deepcopy(q).max().item()


def test_python_functions():
    x = lowbit.array(X)
    assert 7.0 in x and 7.5 not in x and lowbit.array(-8.0) in x
    assert f"{x[0, 0]:.3f}" == "3.500" and f"{x.sum():8.2f}" == "    2.75"
    assert f"{lowbit.array(5):04d}" == "0005" and f"{x}" == str(x)
    with pytest.raises((TypeError, ValueError), match="format"):
        f"{x:.3f}"
    assert round(x).tolist() == np.round(X).tolist()
    with pytest.raises(ValueError, match="2 digits"):
        round(x, 2)
    for got, want in zip(divmod(x, 2), divmod(X, 2)):
        assert got.tolist() == want.tolist()


def test_immutable():
    x = lowbit.array(X)
    with pytest.raises(TypeError, match="immutable: use lowbit.where"):
        x[0] = 1
    y = x
    y += 1
    assert x.tolist() == X.tolist() and y.tolist() == (X + 1).tolist()


def test_traced():
    f = lowbit.compile(lambda x: (x.mean(1, keepdims=True) - x).std().sum())
    g = lowbit.grad(lambda x: (x.sum(0) ** 2).mean())
    np.testing.assert_allclose(
        f(lowbit.array(X)).item(), (X.mean(1, keepdims=True) - X).std(), rtol=1e-5
    )
    np.testing.assert_allclose(
        g(lowbit.array(X)).tolist(), np.tile(X.sum(0) / 2, (3, 1)), rtol=1e-6
    )
