"""torch.compile without graph breaks. Inductor's C++ takes most of a minute, so the graphs
run as traced here; tools/check-torch-models compiles them."""

import pytest
import torch
from torch_samples import ENCODED

import lowbit.torch as lt
from lowbit.torch import _packed


def randn(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def compiled(m, **options):
    torch._dynamo.reset()
    return torch.compile(m, fullgraph=True, backend="aot_eager", **options)


@pytest.mark.parametrize("config", ENCODED)
def test_forward_and_backward(config):
    m = torch.nn.Sequential(lt.Linear(512, 32, config=config), torch.nn.GELU(), lt.Linear(32, 8))
    f = compiled(m)
    x = randn(3, 512).requires_grad_()
    y = f(x)
    assert torch.equal(y, m(x))
    (got,) = torch.autograd.grad(f(x).sum(), x)
    (want,) = torch.autograd.grad(m(x).sum(), x)
    assert torch.equal(got, want)
    n = len(_packed._arrays)
    arrays = [layer.packed.array() for layer in (m[0], m[2])]
    f(x).sum().backward()
    assert [layer.packed.array() for layer in (m[0], m[2])] == arrays or all(
        a is b for a, b in zip(arrays, [m[0].packed.array(), m[2].packed.array()])
    )
    assert len(_packed._arrays) == n


def test_dynamic_shapes():
    m = lt.Linear(64, 32)
    f = compiled(m, dynamic=True)
    for rows in (2, 3, 5, 8):
        assert torch.equal(f(randn(rows, 64)), m(randn(rows, 64)))
        assert torch.equal(f(randn(2, rows, 64)), m(randn(2, rows, 64)))


def test_other_operators():
    table, ste = lt.Embedding(50, 64), lt.StraightThroughLinear(64, 16, config="ternary")
    f = compiled(lambda ids: ste(table(ids)).sum())
    ids = torch.tensor([[1, 2], [3, 49]])
    assert torch.allclose(f(ids), ste(table(ids)).sum())
    f(ids).backward()
    assert ste.weight.grad.abs().sum() > 0
    dense = compiled(lambda m: m.weight * 2)
    assert torch.equal(dense(table), table.weight * 2)
