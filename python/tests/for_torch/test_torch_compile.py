"""torch.compile without graph breaks. Inductor's C++ takes most of a minute, so the graphs
run as traced; with LOWBIT_TORCH_BACKEND=inductor (make nightly-torch) they are compiled."""

import os

import pytest
import torch
from torch_samples import ENCODED

import lowbit.torch as lt
from lowbit.torch import _packed


def randn(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def compiled(m, **options):
    torch._dynamo.reset()
    backend = os.environ.get("LOWBIT_TORCH_BACKEND", "aot_eager")
    return torch.compile(m, fullgraph=True, backend=backend, **options)


def same(a, b):
    """Inductor computes what is around the products in another order."""
    return (a - b).abs().max() <= 1e-5 * b.abs().max()


@pytest.mark.parametrize("config", ENCODED)
def test_forward_and_backward(config):
    m = torch.nn.Sequential(lt.Linear(512, 32, config=config), torch.nn.GELU(), lt.Linear(32, 8))
    f = compiled(m)
    x = randn(3, 512).requires_grad_()
    y = f(x)
    assert same(y, m(x))
    (got,) = torch.autograd.grad(f(x).sum(), x)
    (want,) = torch.autograd.grad(m(x).sum(), x)
    assert same(got, want)
    n = len(_packed._arrays)
    arrays = [layer.packed.array() for layer in (m[0], m[2])]
    f(x).sum().backward()
    again = [layer.packed.array() for layer in (m[0], m[2])]
    assert all(a is b for a, b in zip(arrays, again)) and len(_packed._arrays) == n


def test_dynamic_shapes():
    m = lt.Linear(64, 32)
    f = compiled(m, dynamic=True)
    for rows in (2, 3, 5, 8):
        assert same(f(randn(rows, 64)), m(randn(rows, 64)))
        assert same(f(randn(2, rows, 64)), m(randn(2, rows, 64)))


def test_other_operators():
    table, ste = lt.Embedding(50, 64), lt.StraightThroughLinear(64, 16, config="ternary")
    f = compiled(lambda ids: ste(table(ids)).sum())
    ids = torch.tensor([[1, 2], [3, 49]])
    assert torch.allclose(f(ids), ste(table(ids)).sum())
    f(ids).backward()
    assert ste.weight.grad.abs().sum() > 0
    dense = compiled(lambda m: m.weight * 2)
    assert same(dense(table), table.weight * 2)
