"""The operators: values and gradients against float64, shapes, dtypes, opcheck, errors."""

import pytest
import torch
from torch_samples import packed, weight  # noqa: F401
from torch.library import opcheck

import lowbit
import lowbit.torch as lt
from lowbit.torch import _ops, _packed

# Of the norm of the result; bf16 and f16 are rounded once more.
BOUNDS = {"highest": 2e-6, "fast": 6e-4, "fastest": 3e-2}
ROUNDING = {torch.float32: 0, torch.bfloat16: 4e-3, torch.float16: 5e-4}


def exact(packed):
    """The weight in float64, from the library's own decoder."""
    return torch.from_dlpack(lowbit.materialize(packed.array())).double()


def far(got, want):
    return ((got.double() - want).norm() / want.norm()).item()


def randn(*shape, seed=1, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("precision", BOUNDS)
def test_linear(packed, precision):
    x, bias = randn(2, 5, 512).requires_grad_(), randn(24).requires_grad_()
    y = lt.linear(x, packed, bias, precision=precision)
    assert y.shape == (2, 5, 24) and y.dtype == torch.float32
    w = exact(packed)
    assert far(y, x.double() @ w.T + bias.double()) < BOUNDS[precision]
    dy = randn(2, 5, 24, seed=2)
    y.backward(dy)
    assert far(x.grad, dy.double() @ w) < BOUNDS[precision]
    assert far(bias.grad, dy.double().sum((0, 1))) < 1e-6


@pytest.mark.parametrize("dtype", ROUNDING, ids=str)
@pytest.mark.parametrize("rows", [0, 1, 3, 40])
def test_dtypes(dtype, rows):
    packed = lt.quantize(randn(24, 512), "nf4")
    x = randn(rows, 512, dtype=dtype).requires_grad_()
    y = lt.linear(x, packed)
    (dx,) = torch.autograd.grad(y, x, torch.ones_like(y))
    assert y.dtype == dx.dtype == dtype and y.shape == (rows, 24) and dx.shape == x.shape
    if rows:
        assert far(y, x.detach().double() @ exact(packed).T) < 2e-6 + ROUNDING[dtype]


def test_float64():
    packed = lt.quantize(randn(24, 512), "int8")
    x = randn(3, 512, dtype=torch.float64)
    assert far(lt.linear(x, packed), x @ exact(packed).T) < 1e-12


def test_shapes():
    packed = lt.quantize(randn(24, 512), "nf4")
    want = lt.linear(randn(6, 512), packed)
    x = randn(6, 512)
    assert lt.linear(x[0], packed).shape == (24,)
    assert torch.equal(lt.linear(x.view(1, 2, 1, 3, 1, 1, 1, 1, 1, 512), packed).view(6, 24), want)
    wide = torch.stack([x, x + 1], dim=2)  # every second element
    assert torch.equal(lt.linear(wide[:, :, 0], packed), want)
    assert torch.equal(lt.linear(x.T.contiguous().T, packed), want)
    assert torch.equal(lt.linear(x.flip(0), packed).flip(0), want)
    assert lt.linear(x[:, None].expand(6, 4, 512), packed).shape == (6, 4, 24)
    assert lt.linear(torch.empty(2, 0, 3, 512), packed).shape == (2, 0, 3, 24)


def test_results_may_be_written():
    """They are the library's memory, which nobody else has."""
    packed = lt.quantize(randn(24, 512), "nf4")
    y = lt.linear(randn(2, 512), packed)
    copy = y.clone()
    y.add_(1)
    assert torch.equal(lt.linear(randn(2, 512), packed), copy)


def test_embedding(packed):
    ids = torch.tensor([[3, 0, 23], [3, 3, 7]], dtype=torch.int32)
    rows = lt.embedding(ids, packed)
    assert torch.equal(rows.double(), exact(packed)[ids.long()])
    assert torch.equal(lt.embedding(ids.long()[:, 1:], packed), rows[:, 1:])
    assert lt.embedding(torch.empty(2, 0, dtype=torch.int64), packed).shape == (2, 0, 512)


def test_second_derivatives():
    """x W^T is linear: the derivative of its gradient by dy is W again."""
    packed = lt.quantize(randn(8, 16, dtype=torch.float64), "int8")
    x = randn(3, 16, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: lt.linear(x, packed), x)
    assert torch.autograd.gradgradcheck(lambda x: lt.linear(x, packed), x)


def test_quantize():
    x = randn(24, 512)
    packed = lt.quantize(x.T, "nf4", block_size=8)
    want = lowbit.quantize(lowbit.asarray(x.T.contiguous()), "nf4", block_size=8)
    assert packed.array().tobytes() == want.tobytes() and packed.bits == want.bits
    made = torch.ops.lowbit.quantize(x.T, _ops.config_text("nf4", block_size=8))
    assert all(map(torch.equal, made, packed.parts))
    assert torch.equal(lt.dequantize(packed).double(), exact(packed))
    half = packed.to(torch.bfloat16)
    assert torch.equal(lt.dequantize(half), lt.dequantize(packed).bfloat16())


def samples():
    """Arguments for each operator."""
    packed = lt.quantize(randn(24, 512), "nf4", double_quant=True)
    parts, spec = packed.parts, packed.spec
    x, w = randn(3, 512).requires_grad_(), randn(24, 512).requires_grad_()
    bias, dy = randn(24).requires_grad_(), randn(3, 24).requires_grad_()
    config = _ops.config_text("ternary", clip_gradient=True)
    return {
        "linear": (x, parts, bias, spec, ""),
        "linear_dx": (dy, parts, spec, "fast"),
        "embedding": (torch.tensor([[1, 2, 3]]), parts, spec),
        "quantize": (w.detach(), config),
        "dequantize": (parts, spec),
        "ste_linear": (x, w, bias, config, ""),
        "ste_linear_dx": (dy.detach(), w.detach(), config, ""),
        "ste_gradient": (w.detach(), w.detach(), config),
    }


def test_all_operators_have_samples():
    names = {n for n, _ in vars(_ops).items() if n.endswith("_op")}
    assert {n.removesuffix("_op") for n in names} == set(samples())


@pytest.mark.parametrize("name", samples())
def test_opcheck(name):
    result = opcheck(getattr(torch.ops.lowbit, name).default, samples()[name])
    assert set(result.values()) == {"SUCCESS"}


def test_errors():
    packed = lt.quantize(randn(24, 512), "nf4")
    with pytest.raises(lowbit.ShapeError, match=r"x has 511 features, but w \(24,512\)"):
        lt.linear(randn(2, 511), packed)
    with pytest.raises(lowbit.ShapeError, match="requires 512 columns"):
        lt.linear(torch.empty(2, 511, device="meta"), packed)
    with pytest.raises(lowbit.Error, match="x is torch.int32, not a float dtype"):
        lt.linear(torch.ones(2, 512, dtype=torch.int32), packed)
    with pytest.raises(lowbit.Error, match="precision is 'best': not one of highest"):
        lt.linear(randn(2, 512), packed, precision="best")
    with pytest.raises(ValueError, match="bias"):
        lt.linear(randn(2, 512), packed, randn(23))
    with pytest.raises(IndexError, match="index 24 is out of range for 24 rows"):
        lt.embedding(torch.tensor([3, 24]), packed)
    with pytest.raises(IndexError, match="index -1 is out of range"):
        lt.embedding(torch.tensor([-1]), packed)
    with pytest.raises(lowbit.Error, match="not integers"):
        lt.embedding(randn(3), packed)
    with pytest.raises(lowbit.Error, match="unknown format"):
        lt.quantize(randn(24, 512), "nf5")
    with pytest.raises(lowbit.ArgumentError, match="is not quantized"):
        lt.Packed.from_array(lowbit.ones((2, 3)))
    with pytest.raises(lowbit.ArgumentError, match="2 parts: codes, absmax"):
        _packed.array_of(packed.spec, packed.parts[:1])
    with pytest.raises(lowbit.Error, match="1 element|nan|NaN"):
        lt.quantize(torch.tensor([[float("nan")]]), "int8")


def test_descriptors_are_checked():
    packed = lt.quantize(randn(24, 512), "int8")
    codes, scale = packed.parts
    for text in ("", "{", "[]", '{"format": "int8"}', packed.spec.replace("512", "513")):
        with pytest.raises(lowbit.Error):
            _packed.array_of(text, [codes.clone(), scale.clone()])
    shares = packed.spec.replace('"groups": [1, 0]', '"groups": [7, 3]')
    assert shares != packed.spec
    with pytest.raises(lowbit.ContentError, match="layout that this format does not"):
        _packed.array_of(shares, [codes.clone(), scale.clone()])
    wrong = codes.clone()
    wrong[3, 5] = -128
    with pytest.raises(lowbit.Error, match="-128"):
        _packed.array_of(packed.spec, [wrong, scale])


def test_arrays_are_made_once_and_freed():
    n = len(_packed._arrays)
    packed = lt.Packed(*(lambda q: (q.spec, [t.clone() for t in q.parts]))(samples_packed()))
    first = packed.array()
    assert packed.array() is first
    lt.linear(randn(1, 512), packed)
    assert packed.array() is first
    packed.parts[0].bitwise_xor_(1)  # noticed: the codes are checked again
    assert packed.array() is not first
    del packed, first
    assert len(_packed._arrays) == n


def samples_packed():
    return lt.Packed.from_array(weight("nf4"))


def test_memory_is_shared():
    packed = lt.Packed.from_array(weight("int8"))
    stored = lowbit.asarray(packed.array().parts["codes"])
    assert torch.from_dlpack(stored).data_ptr() == packed.parts[0].data_ptr()
    copies = lt.Packed(packed.spec, [t.clone() for t in packed.parts])
    stored = copies.array().parts["codes"]
    assert torch.from_dlpack(stored).data_ptr() == copies.parts[0].data_ptr()


def test_views_become_whole_arrays():
    q = weight("nf4")
    part = lt.Packed.from_array(q[4:12])
    assert part.shape == (8, 512) and part.array().tobytes() == q[4:12].tobytes()


def test_threads_follow_torch():
    n = torch.get_num_threads()
    packed = samples_packed()
    try:
        for threads in (1, 2, n):
            torch.set_num_threads(threads)
            lt.linear(randn(2, 512), packed)
            assert lowbit.context_info()["threads"] == threads
        with lowbit.config(threads=1):  # the user's choice is kept
            lt.linear(randn(2, 512), packed)
            assert lowbit.context_info()["threads"] == 1
    finally:
        torch.set_num_threads(n)
        lt.linear(randn(2, 512), packed)
