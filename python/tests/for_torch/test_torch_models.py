"""Against bitsandbytes and transformers: states in both directions, and the models of other
programs in LOWBIT_CASES (a directory; skipped without it)."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch

hf = pytest.importorskip("transformers")
bnb = pytest.importorskip("bitsandbytes")

import bitsandbytes.nn.modules  # noqa: E402

import lowbit  # noqa: E402
import lowbit.torch as lt  # noqa: E402
from lowbit.torch._ops import dequantize_op  # noqa: E402
from lowbit.torch._packed import with_dtype  # noqa: E402

CASES = Path(os.environ.get("LOWBIT_CASES", "/nonexistent")) / "transformers"
KINDS = [d.parent.name for d in sorted(CASES.glob("*/config.json"))]
# It would repack weights on first use.
bitsandbytes.nn.modules.has_avx512bf16 = lambda: False
hf.logging.set_verbosity_error()


def randn(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# ---- bitsandbytes


def linear4(weight, double=False, kind="nf4"):
    m = bnb.nn.Linear4bit(
        weight.shape[1], weight.shape[0], False, torch.float32, double, kind
    )
    m.weight = bnb.nn.Params4bit(
        weight.clone(), requires_grad=False, quant_type=kind, compress_statistics=double
    )
    return m.to("cpu")


def linear8(weight):
    m = bnb.nn.Linear8bitLt(
        weight.shape[1], weight.shape[0], False, has_fp16_weights=False
    )
    m.weight = bnb.nn.Int8Params(weight.clone(), requires_grad=False, has_fp16_weights=False)
    return m.to("cpu")


def decoded4(m):
    """By its definition: dequantize_4bit decodes rows of partial blocks wrongly on CPUs."""
    state, packed = m.weight.quant_state, m.weight.data.flatten()
    codes = torch.stack([packed >> 4, packed & 15], 1).flatten().long()
    absmax = state.absmax
    if state.nested:
        inner = state.state2
        scale = inner.absmax.repeat_interleave(inner.blocksize)[: absmax.numel()]
        absmax = inner.code[absmax.long()] * scale + state.offset
    values = state.code[codes] * absmax.repeat_interleave(state.blocksize)[: codes.numel()]
    return values.view(state.shape)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("kind", ["nf4", "fp4"])
@pytest.mark.parametrize("shape", [(24, 256), (6, 96)])
def test_from_linear4bit(shape, kind, double):
    theirs = linear4(randn(*shape), double, kind)
    ours = lt.Linear.from_linear(theirs)
    assert torch.equal(ours.weight, decoded4(theirs))
    loaded = lt.Linear(shape[1], shape[0], False)
    loaded.load_state_dict(theirs.state_dict())
    assert torch.equal(loaded.weight, ours.weight)
    x = randn(3, shape[1], seed=2)
    want = x.double() @ ours.weight.double().T
    assert (ours(x) - want).norm() <= 2e-6 * want.norm()


@pytest.mark.parametrize("double", [False, True])
def test_to_linear4bit(double):
    """bitsandbytes loads our state and decodes the same values."""
    config = lowbit.QuantizationConfig("nf4", double_quant=double)
    ours = lt.Linear.from_linear(torch.nn.Linear(256, 24, False), config)
    state = {k.removeprefix("weight."): t for k, t in ours.state_dict().items()}
    data = state.pop("weight")
    theirs = bnb.nn.Params4bit.from_prequantized(data, state, device="cpu")
    values = bnb.functional.dequantize_4bit(theirs.data, theirs.quant_state)
    assert torch.equal(values, ours.weight)
    assert set(linear4(randn(24, 256), double).state_dict()) == set(ours.state_dict())


def test_repacked_weights_are_refused():
    """What bitsandbytes makes of a layer on CPUs with AVX512-BF16."""
    theirs = linear4(randn(64, 256))
    theirs.weight.data, _ = bnb.functional._convert_weight_packed_for_cpu(
        theirs.weight.data, theirs.weight.quant_state
    )
    with pytest.raises(lowbit.UnsupportedError, match=r"repacked this \(64, 256\) weight"):
        lt.Linear.from_linear(theirs)
    state = theirs.state_dict()  # unpacks the weight, but not its scales
    with pytest.raises(RuntimeError, match=r"absmax has shape \(4, 64\)"):
        lt.Linear(256, 64, False).load_state_dict(state)


def test_int8():
    theirs = linear8(randn(24, 256))
    ours = lt.Linear.from_linear(theirs)
    scb, codes = theirs.weight.SCB, theirs.weight.data
    want = (codes.float() * scb[:, None]) * (1 / 127)
    assert torch.equal(ours.weight, want)
    state = ours.state_dict()
    assert torch.equal(state["SCB"], scb) and torch.equal(state["weight"], codes)
    again = linear8(torch.zeros(24, 256))
    again.load_state_dict(state)
    assert torch.equal(again.weight.SCB, scb) and torch.equal(again.weight.data, codes)


# ---- models


def config_of(kind):
    return json.loads((CASES / kind / "config.json").read_text())


def base():
    return hf.LlamaForCausalLM.from_pretrained(CASES / "base", dtype=torch.float32).eval()


class CLlama:
    """The model computed by the library alone, in f32 at HIGHEST."""

    def __init__(self, kind):
        self.config = config_of(kind)
        self.w = lowbit.load(CASES / kind)
        heads = self.config["num_attention_heads"]
        self.heads, self.kv = heads, self.config["num_key_value_heads"]
        self.size = self.config["hidden_size"] // heads

    def linear(self, x, name):
        return lowbit.linear(x, self.w[name + ".weight"], dtype="f32", precision="highest")

    def norm(self, x, name):
        weight = lowbit.astype(self.w[name + ".weight"], "f32")
        return lowbit.rms_norm(x, weight, self.config["rms_norm_eps"])

    def split(self, x, name, heads):
        x = self.linear(x, name).reshape((x.shape[0], heads, self.size))
        return lowbit.permute_dims(x, (1, 0, 2))

    def attention(self, x, at):
        theta = self.config["rope_parameters"]["rope_theta"]
        q = lowbit.rope(self.split(x, at + "q_proj", self.heads), base=theta)
        k = lowbit.rope(self.split(x, at + "k_proj", self.kv), base=theta)
        v = self.split(x, at + "v_proj", self.kv)
        y = lowbit.attention(q, k, v, causal=True)
        y = lowbit.permute_dims(y, (1, 0, 2)).reshape((x.shape[0], self.heads * self.size))
        return self.linear(y, at + "o_proj")

    def mlp(self, x, at):
        gate, up = self.linear(x, at + "gate_proj"), self.linear(x, at + "up_proj")
        return self.linear(lowbit.swiglu(gate, up), at + "down_proj")

    def __call__(self, ids):
        x = lowbit.astype(lowbit.embedding(self.w["model.embed_tokens.weight"], ids), "f32")
        for i in range(self.config["num_hidden_layers"]):
            at = f"model.layers.{i}."
            x = x + self.attention(self.norm(x, at + "input_layernorm"), at + "self_attn.")
            x = x + self.mlp(self.norm(x, at + "post_attention_layernorm"), at + "mlp.")
        return self.linear(self.norm(x, "model.norm"), "lm_head")


@pytest.mark.parametrize("kind", KINDS)
def test_logits(kind):
    """Replaced linears have the library's bits, and the model its logits at HIGHEST.

    In f32: torch and the library differ in attention and norms, by the order of sums.
    """
    model = base()
    report = lt.load_linear(model, CASES / kind, precision="highest")
    assert len(report.replaced) == (0 if kind == "base" else 14), report
    seen = []

    def compare(module, args, y):
        x = args[0].reshape(-1, module.in_features)
        want = lowbit.linear(x.detach(), module.packed.array(), precision="highest")
        seen.append(torch.equal(y.reshape(-1, module.out_features), torch.from_dlpack(want)))

    for module in model.modules():
        if isinstance(module, lt.Linear):
            module.register_forward_hook(compare)
    ids = torch.arange(16)[None]
    with torch.no_grad():
        ours = model(input_ids=ids).logits[0]
    assert all(seen) and len(seen) == len(report.replaced)
    want = torch.from_dlpack(CLlama(kind)(lowbit.array(list(range(16)))))
    assert (ours - want).abs().max() <= 1e-5 * want.abs().max()
    # What transformers computed, in bf16 (with BitNet's activations rounded to int8).
    noted = torch.from_numpy(np.load(CASES / f"logits_{kind}.npy"))
    far = (ours - noted.reshape(ours.shape)).norm() / noted.norm()
    assert far < (0.1 if kind.startswith("nf4") else 0.02)  # see decoded4


@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind):
    """Of the loss by the embeddings, through all packed linears, against float64.

    Products take what is stored, which the weight's dtype does not round.
    """
    model = base()
    lt.load_linear(model, CASES / kind)
    exact = base()
    for name, module in model.named_modules():
        if isinstance(module, lt.Linear):
            parts = [getattr(module, n) for n in module._parts]
            stored = dequantize_op(parts, with_dtype(module._spec, torch.float32))
            exact.get_submodule(name).weight.data = stored
    exact.double()
    ids, grads = torch.arange(16)[None], []
    for m in (model, exact):
        x = m.get_input_embeddings()(ids).detach().requires_grad_()
        loss = m(inputs_embeds=x, labels=ids).loss
        loss.backward()
        assert math.isfinite(loss.item())
        grads.append(x.grad.double())
    assert (grads[0] - grads[1]).norm() <= 1e-5 * grads[1].norm()


@pytest.mark.parametrize("kind", [k for k in KINDS if k in ("nf4", "int8")])
def test_models_of_bitsandbytes(kind):
    """A model that transformers has loaded with bitsandbytes, its linears replaced."""
    theirs = hf.LlamaForCausalLM.from_pretrained(CASES / kind).eval()
    ids = torch.arange(16)[None]
    with torch.no_grad():
        want = theirs(input_ids=ids).logits.float()
        report = lt.replace_linear(theirs, precision="highest")
        got = theirs(input_ids=ids).logits.float()
    assert len(report.replaced) == 14
    far = (got - want).norm() / want.norm()
    assert far < (0.1 if kind == "nf4" else 0.02)  # see decoded4
