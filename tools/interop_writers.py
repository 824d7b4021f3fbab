"""interop_writers.py SOURCES - what lowbit writes loads in the programs whose layouts
it writes, and they decode the same bits.

    compressed-tensors   transformers loads the directory; each module is decompressed
    mlx                  mlx-lm loads the directory; each module is dequantized
    fp8                  transformers loads the directory and dequantizes it
    gptq, awq            the unpacking code of GPTQModel and AutoAWQ, whose sources
                         are in the directory SOURCES

Directories are quantized from a small random model, or moved from files of other
programs (tests/golden). Seeds are fixed.
"""
import json
import pathlib
import shutil
import sys
import tempfile

import bitsandbytes.functional as bnb
import mlx.core as mx
import numpy as np
import safetensors.torch
import torch
import transformers as hf
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationConfig
from compressed_tensors.utils import match_named_modules
from mlx_lm.utils import load_model
from transformers.integrations.finegrained_fp8 import Fp8Dequantize

from foreign_unpack import awq_packing, gptq_codes, gptq_source
from interop_common import check, done, lowbit

GOLDEN = pathlib.Path(__file__).parent.parent / "tests/golden"
F32 = torch.float32
hf.logging.set_verbosity_error()
hf.logging.disable_progress_bar()


# ---- directories ------------------------------------------------------------

def save_model(path):
    torch.manual_seed(3)
    config = hf.LlamaConfig(
        hidden_size=256, intermediate_size=512, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, vocab_size=96,
        max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0,
        tie_word_embeddings=False)
    hf.LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(path)


def tensors(path):
    out = {}
    for file in path.glob("*.safetensors"):
        out |= safetensors.torch.load_file(file)
    return out


def config(path):
    return json.loads((path / "config.json").read_text(encoding="utf-8"))


def values(path):
    """What lowbit decodes, by name, in the dtype of each array."""
    wide = path.with_name(f"{path.name}.wide.safetensors")
    lowbit("dequantize", path, "-o", wide)
    return safetensors.torch.load_file(wide)


def move(src, out, to, *options):
    shutil.rmtree(out, ignore_errors=True)
    lowbit("convert", src, "-o", out, "--to", to, *options)


def modules(stored, suffix):
    """Prefixes of tensors with that suffix, and their other tensors."""
    at = [k.removesuffix(suffix) for k in stored if k.endswith(suffix)]
    check(at, f"no tensor {suffix}")
    return {p: {k.removeprefix(p): v for k, v in stored.items() if k.startswith(p)}
            for p in at}


def same(got, want, what):
    """The same bits, in the narrower of the dtypes; a NaN is any NaN."""
    dtype = want.dtype if got.dtype == F32 else got.dtype
    got, want = got.to(dtype), want.to(dtype)
    got, want = got.contiguous(), want.contiguous()
    check(got.shape == want.shape and got.dtype == want.dtype,
          f"{what}: {got.dtype} {tuple(got.shape)}, not {want.dtype} "
          f"{tuple(want.shape)}")
    nan = got.isnan()
    check(torch.equal(nan, want.isnan()), f"{what}: NaN")
    zero = torch.zeros_like(got)
    got, want = torch.where(nan, zero, got), torch.where(nan, zero, want)
    check(torch.equal(got.view(torch.uint8), want.view(torch.uint8)),
          f"{what}: other values")


def load(path, what, **how):
    """transformers finds all tensors, and nothing else."""
    model, info = hf.AutoModelForCausalLM.from_pretrained(
        path, output_loading_info=True, **how)
    check(not any(info.values()), f"{what}: {info}")
    with torch.no_grad():
        y = model(torch.arange(16)[None]).logits
    check(bool(y.isfinite().all()), f"{what}: logits are not finite")
    return model


# ---- compressed-tensors -----------------------------------------------------

def scheme_of(settings, name):
    """The group of a module of class Linear."""
    model = torch.nn.Module()
    at = model
    *path, last = name.split(".")
    for part in path:
        at.add_module(part, torch.nn.Module())
        at = getattr(at, part)
    at.add_module(last, torch.nn.Linear(1, 1))
    found = [g for g in settings.config_groups.values()
             if any(n == name for n, _ in match_named_modules(model, g.targets))]
    check(len(found) == 1, f"{name} is in {len(found)} groups")
    return found[0]


def check_ct(path, what):
    """Decompressed by compressed-tensors, with scales in f32."""
    settings = QuantizationConfig.model_validate(config(path)["quantization_config"])
    want = values(path)
    for p, own in modules(tensors(path), ".weight_scale").items():
        scheme = scheme_of(settings, p)
        form = scheme.format or settings.format
        if own[".weight_scale"].dtype in (torch.bfloat16, torch.float16):
            own[".weight_scale"] = own[".weight_scale"].float()
        kind = BaseCompressor.get_value_from_registry(getattr(form, "value", form))
        got = kind.decompress({k[1:]: v for k, v in own.items()}, scheme)["weight"]
        same(got, want[p + ".weight"], f"{what}: {p}")


CT = [["int4"], ["int4", "--block-size", "32"], ["int4", "--scale", "row"],
      ["int1"], ["int2"], ["int3"], ["int5"], ["int6"], ["int7"], ["uint8"], ["int8"],
      ["q4_0"], ["q8_0"], ["mxfp4"], ["mxfp8"], ["fp8_e4m3"],
      ["fp8_e4m3", "--scale", "row"], ["fp8_e4m3", "--scale", "tensor"],
      ["int4", "--override", "down=int8", "--override", "q_proj=mxfp4"]]
CT_MOVED = ["affine/awq", "affine/gptq_3_sym", "affine/gptq_2_bf16",
            "affine/auto_round_v2", "affine/ct_int8_list", "floats/fp8/mlx_mxfp8",
            "floats/fp8/deepseek_v4", "floats/fp8/deepseek_v3", "floats/fp8/mistral",
            "floats/mxfp4/mlx_mxfp4", "floats/nvfp4/ct", "floats/nvfp4/mlx_nvfp4",
            "floats/nvfp4/modelopt"]


def test_compressed_tensors(d, model):
    for options in CT:
        what = f"compressed-tensors {' '.join(options)}"
        lowbit("quantize", model, "-o", d / "ct", "--layout", "compressed-tensors",
               "--type", *options)
        check_ct(d / "ct", what)
        load(d / "ct", what)
    for name in CT_MOVED:
        move(GOLDEN / name, d / "moved", "compressed-tensors", "--allow", "rounded")
        check_ct(d / "moved", f"{name} as compressed-tensors")


# ---- MLX --------------------------------------------------------------------

def to_torch(a):
    """In its own dtype."""
    wide = torch.from_numpy(np.array(a.astype(mx.float32)))
    return wide.to({mx.bfloat16: torch.bfloat16, mx.float16: torch.float16}.get(
        a.dtype, F32))


def check_mlx(path, what):
    """Dequantized by mlx, in the dtype of the scales."""
    said = config(path)["quantization"]
    stored, want = mx.load(str(path / "model.safetensors")), values(path)
    check(any(k.endswith(".scales") for k in stored), f"{what}: no scales")
    for k in [k for k in stored if k.endswith(".scales")]:
        p = k.removesuffix(".scales")
        own = said | said.get(p, {})
        got = mx.dequantize(stored[p + ".weight"], stored[k], stored.get(p + ".biases"),
                            group_size=own["group_size"], bits=own["bits"],
                            mode=own["mode"])
        same(to_torch(got), want[p + ".weight"], f"{what}: {p}")


MLX = [["int4"], ["int4", "--block-size", "32"], ["int2", "--block-size", "128"],
       ["int3"], ["int5"], ["int6"], ["uint8"], ["q4_0"], ["q8_0"], ["mxfp4"],
       ["mxfp8"], ["int4", "--override", "down=int6", "--override", "q_proj=mxfp4"]]
MLX_MOVED = ["affine/awq", "affine/gptq_4_sym", "affine/ct_3", "affine/ct_8",
             "floats/fp8/ct_mxfp8", "floats/mxfp4/ct", "floats/nvfp4/mlx_nvfp4"]


def test_mlx(d, model):
    for options in MLX:
        what = f"mlx {' '.join(options)}"
        lowbit("quantize", model, "-o", d / "mlx", "--layout", "mlx", "--type",
               *options)
        check_mlx(d / "mlx", what)
        loaded, _ = load_model(d / "mlx", lazy=False)
        y = loaded(mx.arange(16)[None])
        check(bool(mx.isfinite(y).all()), f"{what}: logits are not finite")
    for name in MLX_MOVED:
        move(GOLDEN / name, d / "moved", "mlx")
        check_mlx(d / "moved", f"{name} as mlx")


# ---- GPTQ, AWQ --------------------------------------------------------------

def check_gptq(code, path, what):
    """In f32, from the codes and zero points that GPTQModel unpacks."""
    said = config(path)["quantization_config"]
    check(said["checkpoint_format"] == "gptq_v2", f"{what}: not version 2")
    want = values(path)
    for p, own in modules(tensors(path), ".qweight").items():
        s = own[".scales"]
        w, z = gptq_codes(code, own[".qweight"], own[".qzeros"], said["bits"], s.shape)
        g = own[".g_idx"]
        got = s.float()[g] * (w.int() - z.int()[g]).float()
        same(got.T, want[p + ".weight"], f"{what}: {p}")


def test_gptq(d, model, sources):
    code = gptq_source(sources / "gptqmodel-7.7.0")
    for options in (["int4"], ["int4", "--block-size", "32"], ["int2"], ["int3"],
                    ["uint8"], ["int4", "--scale", "row"], ["q4_0"], ["q8_0"]):
        lowbit("quantize", model, "-o", d / "gptq", "--layout", "gptq", "--type",
               *options)
        check_gptq(code, d / "gptq", f"gptq {' '.join(options)}")
    for name in ("affine/awq", "affine/auto_round_v2", "affine/gptq_3_sym",
                 "affine/ct_4", "affine/ct_8", "affine/gptq_4_short_group"):
        move(GOLDEN / name, d / "moved", "gptq")
        check_gptq(code, d / "moved", f"{name} as gptq")


def check_awq(code, path, what):
    said = config(path)["quantization_config"]
    want = values(path)
    for p, own in modules(tensors(path), ".qweight").items():
        group = said["group_size"]
        if group == -1:
            group = own[".qweight"].shape[0]
        got = code.dequantize_gemm(own[".qweight"], own[".qzeros"],
                                   own[".scales"].float(), said["bits"], group)
        same(got.T, want[p + ".weight"], f"{what}: {p}")


def test_awq(d, model, sources):
    code = awq_packing(sources / "autoawq-0.2.9")
    for options in (["int4"], ["int4", "--block-size", "32"], ["q4_0"],
                    ["int4", "--scale", "row"]):
        lowbit("quantize", model, "-o", d / "awq", "--layout", "awq", "--type",
               *options)
        check_awq(code, d / "awq", f"awq {' '.join(options)}")
    for name in ("affine/gptq_4_sym", "affine/auto_round_v2", "affine/ct_4"):
        move(GOLDEN / name, d / "moved", "awq")
        check_awq(code, d / "moved", f"{name} as awq")


# ---- FP8, bitsandbytes ------------------------------------------------------

def check_fp8(path, what):
    want = values(path)
    for p, own in modules(tensors(path), ".weight_scale_inv").items():
        got = Fp8Dequantize(None)._dequantize_one(
            own[".weight"], own[".weight_scale_inv"].float(), output_dtype=F32)
        same(got, want[p + ".weight"], f"{what}: {p}")


def test_fp8(d, model):
    for options in ([], ["--block-size", "64"]):
        what = f"fp8 {' '.join(options)}"
        lowbit("quantize", model, "-o", d / "fp8", "--layout", "fp8", "--type",
               "fp8_e4m3", *options)
        check_fp8(d / "fp8", what)
        whole = load(d / "fp8", what,
                     quantization_config=hf.FineGrainedFP8Config(dequantize=True))
        want = values(d / "fp8")
        for k, v in whole.state_dict().items():
            same(v, want[k], f"{what}, dequantized by transformers: {k}")
    for name in ("fp8/deepseek_v3", "fp8/deepseek_v4"):
        move(GOLDEN / "floats" / name, d / "moved", "fp8")
        check_fp8(d / "moved", f"{name} as fp8")


def test_bnb(d, model):
    """int8 rows whose scales become bitsandbytes' by a move."""
    lowbit("quantize", model, "-o", d / "int8", "--type", "int8", "--layout",
           "compressed-tensors")
    lowbit("convert", d / "int8", "-o", d / "bnb", "--to", "bnb", "--allow", "rounded")
    want = values(d / "bnb")
    for p, own in modules(tensors(d / "bnb"), ".SCB").items():
        got = bnb.int8_vectorwise_dequant(own[".weight"], own[".SCB"])
        same(got, want[p + ".weight"], f"bnb: {p}")
    load(d / "bnb", "bnb")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        made, src = folder / "model", pathlib.Path(sys.argv[1])
        save_model(made)
        for test, more in ((test_compressed_tensors, ()), (test_mlx, ()),
                           (test_gptq, (src,)), (test_awq, (src,)), (test_fp8, ()),
                           (test_bnb, ())):
            test(folder, made, *more)
            done(test.__name__[5:])
