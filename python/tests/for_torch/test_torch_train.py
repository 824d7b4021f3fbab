"""Training: low-rank adapters on a packed base, straight-through weights, memory."""

import gc

import pytest
import torch

import lowbit
import lowbit.torch as lt
from lowbit.torch import _packed


def randn(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Adapted(torch.nn.Module):
    """A packed base and trained factors, as in QLoRA."""

    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base
        self.a = torch.nn.Parameter(randn(rank, base.in_features) / 8)
        self.b = torch.nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.a.T @ self.b.T


def adapted(config):
    w1, w2 = randn(96, 64) / 8, randn(8, 96, seed=2) / 8
    return torch.nn.Sequential(
        Adapted(lt.Linear.from_array(lt.quantize(w1, config))),
        torch.nn.GELU(),
        Adapted(lt.Linear.from_array(lt.quantize(w2, config))),
    )


def dense_twin(m):
    """The same with decoded weights in float64."""
    layers = []
    for layer in m:
        if isinstance(layer, Adapted):
            base = torch.nn.Linear(layer.base.in_features, layer.base.out_features, False)
            base.weight = torch.nn.Parameter(layer.base.weight, requires_grad=False)
            layer = Adapted(base)
        layers.append(layer)
    return torch.nn.Sequential(*layers).double()


@pytest.mark.parametrize("config", ["nf4", "int8", "ternary", "q4_0"])
def test_adapters(config):
    """Gradients through the frozen base, and 30 steps, against float64."""
    m = adapted(config)
    twin = dense_twin(m)
    data, target = randn(32, 64, seed=3), randn(32, 8, seed=4)
    losses = []
    for model, x, t in ((m, data, target), (twin, data.double(), target.double())):
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 0.02)
        losses.append([])
        for _ in range(30):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), t)
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
        losses[-1] += [p.grad.norm().item() for p in model.parameters() if p.requires_grad]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert losses[0][29] < 0.8 * losses[0][0]
    assert all(isinstance(p, torch.nn.Parameter) for p in m.parameters())
    assert {n.split(".")[-1] for n, _ in m.named_parameters()} == {"a", "b"}


def test_input_gradient_alone():
    """The base needs no activations: x is not kept for backward."""
    m = lt.Linear(64, 32, bias=False)
    x = randn(4, 64).requires_grad_()
    saved = m(x).grad_fn.saved_tensors
    assert {t.data_ptr() for t in saved} == {t.data_ptr() for t in m.packed.parts}


@pytest.mark.parametrize("config", ["int8", "ternary", "binary", "nf4"])
@pytest.mark.parametrize("clip", [False, True])
def test_straight_through(config, clip):
    """The gradients of the library's tape, at HIGHEST."""
    if clip and config not in ("ternary", "binary"):
        pytest.skip("clip_gradient is for ternary and binary")
    config = lowbit.QuantizationConfig(config, **({"clip_gradient": True} if clip else {}))
    m = lt.StraightThroughLinear(64, 32, config=config)
    with torch.no_grad():
        m.weight.copy_(randn(32, 64) / 8)
    x, dy = randn(5, 64, seed=2).requires_grad_(), randn(5, 32, seed=3)
    y = m(x)
    y.backward(dy)

    def f(x, w, b):
        return lowbit.linear(x, lowbit.straight_through(w, config), b)

    arrays = [lowbit.array(t.detach()) for t in (x, m.weight, m.bias)]
    value, grads = lowbit.vjp(f, *arrays, cotangent=lowbit.array(dy))
    assert torch.equal(y, torch.from_dlpack(value))
    for got, want in zip((x, m.weight, m.bias), grads):
        want = torch.from_dlpack(want)
        assert (got.grad - want).abs().max() <= 2e-6 * want.abs().max()
    assert torch.equal(m.pack()(x), y)


def test_straight_through_learns():
    torch.manual_seed(0)
    dense = torch.nn.Linear(32, 16)
    m = lt.StraightThroughLinear.from_linear(dense, "ternary")
    assert m.weight is dense.weight
    x = randn(256, 32)
    target = x @ torch.sign(randn(16, 32, seed=9)).T
    optimizer = torch.optim.Adam(m.parameters(), 0.01)
    losses = []
    for _ in range(150):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(m(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_memory_is_flat():
    """Steps leave nothing behind: the library's bytes, arrays of tensors, objects."""
    m = adapted("nf4")
    ste = lt.StraightThroughLinear(64, 64, config="int8")
    params = [p for p in [*m.parameters(), *ste.parameters()] if p.requires_grad]
    optimizer = torch.optim.SGD(params, 1e-3)
    x = randn(8, 64)

    def steps(n):
        for _ in range(n):
            optimizer.zero_grad()
            m(ste(x)).square().mean().backward()
            optimizer.step()
        optimizer.zero_grad()
        gc.collect()
        info = lowbit.context_info()
        return info["bytes_in_use"], info["bytes_peak"], len(_packed._arrays)

    steps(20)
    first = steps(20)
    assert steps(1000) == first
