"""torch.func (grad, vmap, jvp), which does not know the gradients of custom operators."""

import pytest
import torch

import lowbit
import lowbit.torch as lt


def randn(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(params=["nf4", "int8", "q4_0"])
def layer(request):
    torch.manual_seed(0)
    return lt.Linear.from_linear(torch.nn.Linear(64, 32), request.param)


def dense(m, x):
    return torch.nn.functional.linear(x, m.weight, m.bias)


def close(a, b):
    return (a - b).abs().max() <= 1e-5 * b.abs().max()


def test_grad(layer):
    x, y = randn(5, 64), randn(5, 32, seed=2)

    def loss(f):
        return lambda x: (f(x).sin() * y).sum()

    want = torch.func.grad(loss(lambda x: dense(layer, x)))(x)
    assert close(torch.func.grad(loss(layer))(x), want)
    hessian = torch.func.jacrev(torch.func.grad(loss(layer)))(x)
    assert close(
        hessian, torch.func.jacrev(torch.func.grad(loss(lambda x: dense(layer, x))))(x)
    )

    def of_bias(bias):
        return torch.func.functional_call(layer, {"bias": bias}, (x,)).square().sum()

    bias = layer.bias.detach()
    want = (2 * dense(layer, x)).sum(0)
    assert close(torch.func.grad(of_bias)(bias), want)


def test_jvp(layer):
    """Forward mode has the tangent: without a rule, torch gives zeros."""
    x, t = randn(5, 64), randn(5, 64, seed=2)
    y, dy = torch.func.jvp(layer, (x,), (t,))
    assert close(y, dense(layer, x)) and close(dy, t @ layer.weight.T)
    assert close(torch.func.jacfwd(layer)(x[0]), layer.weight)
    both = torch.func.jvp(
        lambda x, b: torch.func.functional_call(layer, {"bias": b}, (x,)),
        (x, layer.bias.detach()),
        (t, torch.ones(32)),
    )[1]
    assert close(both, t @ layer.weight.T + 1)


def test_vmap(layer):
    x, biases = randn(3, 5, 64), randn(3, 32, seed=2)
    assert close(torch.vmap(layer)(x), layer(x))
    assert close(torch.vmap(layer, in_dims=1, out_dims=1)(x), layer(x))

    def biased(bias, x):
        return torch.func.functional_call(layer, {"bias": bias}, (x,))

    rows = x @ layer.weight.T
    assert close(torch.vmap(biased)(biases, x), rows + biases[:, None])
    assert close(torch.vmap(biased, (0, None))(biases, x[0]), rows[:1] + biases[:, None])
    per_sample = torch.vmap(torch.func.grad(lambda x: layer(x).square().sum()))(x)
    assert close(per_sample, 2 * layer(x) @ layer.weight)
    assert close(torch.func.jacrev(layer)(x[0, 0]), layer.weight)


def test_integers_are_refused(layer):
    with pytest.raises(lowbit.DtypeError, match="x is torch.int64, not a float dtype"):
        layer(torch.ones(2, 64, dtype=torch.int64))
