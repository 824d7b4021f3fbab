#!/usr/bin/env python3
"""gen_float_layouts_golden.py - writes tests/golden/floats: small model directories
with floats of 8 and 4 bits, and what the programs that define them decode.

    pip install numpy ml_dtypes torch transformers compressed-tensors mlx mlx-cpu gguf
    python3 tools/gen_float_layouts_golden.py tests/golden/floats

Codes and scales are random bytes, with the extremes among them: NaN codes, subnormal
and huge scales, the bytes 0, 1, 254 and 255 of powers of two. A case is a directory of
the kinds fp8, mxfp4 and nvfp4 of tools/conformance.
"""
import json
import pathlib
import struct
import sys

import ml_dtypes
import mlx.core as mx
import numpy as np
import torch
from compressed_tensors.compressors.mx_utils import decompress_mx_scale
from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
from compressed_tensors.quantization import QuantizationArgs
from compressed_tensors.quantization.lifecycle.forward import dequantize
from gguf import GGMLQuantizationType, quants
from safetensors.torch import save_file
from transformers.integrations.finegrained_fp8 import Fp8Dequantize
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

rng = np.random.default_rng(11)
E4M3, E5M2, E8M0 = torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu
NAME = "model.layers.0.mlp.down_proj"


def random_bytes(*shape):
    return torch.from_numpy(rng.integers(0, 256, shape, dtype=np.uint8))


def codes8(dtype, *shape):
    return random_bytes(*shape).view(dtype)


def powers(*shape, extreme=True):
    e = rng.integers(100, 140, shape, dtype=np.uint8)
    if extreme:
        flat = e.reshape(-1)
        some = rng.permutation(flat.size)[:4]
        flat[some] = np.array([0, 1, 254, 255], np.uint8)[:len(some)]
    return torch.from_numpy(e)


def floats(*shape, dtype=torch.float32):
    x = rng.lognormal(-4, 2, shape).astype(np.float32)
    flat = x.reshape(-1)
    if flat.size > 2:
        flat[1], flat[2] = 1e-41, 3e36
    return torch.from_numpy(x).to(dtype)


def case(root, kind, name, tensors, expected, method, files=None, index=False,
         **config):
    at = pathlib.Path(root) / kind / name
    at.mkdir(parents=True, exist_ok=True)
    tensors = {k: v.clone().contiguous() for k, v in tensors.items()}
    tensors["model.norm.weight"] = torch.ones(8, dtype=torch.bfloat16)
    if index: # each tensor in a shard of its own
        keys = sorted(tensors)
        shard = {k: f"model-{i + 1:05d}-of-{len(keys):05d}.safetensors"
                 for i, k in enumerate(keys)}
        for k in keys:
            save_file({k: tensors[k]}, at / shard[k], {"format": "pt"})
        (at / "model.safetensors.index.json").write_text(
            json.dumps({"metadata": {}, "weight_map": shard}, indent=2) + "\n")
    else:
        save_file(tensors, at / "model.safetensors", {"format": "pt"})
    if method is not None:
        config["quantization_config"] = method
    (at / "config.json").write_text(json.dumps({"model_type": "llama", **config},
                                               indent=1) + "\n")
    for k, v in (files or {}).items():
        (at / k).write_text(json.dumps(v, indent=1) + "\n")
    if not isinstance(expected, np.ndarray):
        expected = expected.to(torch.float32).numpy()
    x = np.ascontiguousarray(expected, np.float32)
    np.save(at / "expected_f32.npy", x)
    with np.errstate(over="ignore"):
        np.save(at / "expected_bf16_bits.npy",
                x.astype(ml_dtypes.bfloat16).view(np.uint16))


def transformers_fp8(weight, scale):
    return Fp8Dequantize(None)._dequantize_one(weight, scale,
                                               output_dtype=torch.float32)


def spread(weight, scale, block):
    """In f32; edge blocks are short."""
    rows, cols = weight.shape
    s = scale.to(torch.float32).repeat_interleave(block[0], 0)
    s = s.repeat_interleave(block[1], 1)
    return weight.to(torch.float32) * s[:rows, :cols]


def fp8(root):
    deepseek = {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3",
                "weight_block_size": [16, 32]}
    w, s = codes8(E4M3, 48, 96), floats(3, 3)
    case(root, "fp8", "deepseek_v3",
         {f"{NAME}.weight": w, f"{NAME}.weight_scale_inv": s},
         transformers_fp8(w, s), deepseek, torch_dtype="bfloat16", index=True)
    w, s = codes8(E4M3, 40, 70), floats(3, 3)
    case(root, "fp8", "edges", {f"{NAME}.weight": w, f"{NAME}.weight_scale_inv": s},
         spread(w, s, (16, 32)), deepseek)
    s = floats(4, 5)
    case(root, "fp8", "padded", {f"{NAME}.weight": w, f"{NAME}.weight_scale_inv": s},
         spread(w, s, (16, 32)), deepseek)
    w, s = codes8(E4M3, 32, 64), powers(2, 2).view(E8M0)
    ue8m0 = dict(deepseek, scale_fmt="ue8m0")
    case(root, "fp8", "e8m0", {f"{NAME}.weight": w, f"{NAME}.weight_scale_inv": s},
         transformers_fp8(w, s), ue8m0)
    case(root, "fp8", "e8m0_as_u8",
         {f"{NAME}.weight": w, f"{NAME}.weight_scale_inv": s.view(torch.uint8)},
         transformers_fp8(w, s.view(torch.uint8)), ue8m0)
    case(root, "fp8", "deepseek_v4", {f"{NAME}.weight": w, f"{NAME}.scale": s},
         transformers_fp8(w, s), deepseek)
    w, s = codes8(E4M3, 3, 32, 48), floats(3, 2, 3)
    stacked = torch.stack([transformers_fp8(a, b) for a, b in zip(w, s)])
    case(root, "fp8", "experts", {"model.layers.0.mlp.experts.gate_up_proj": w,
                                  "model.layers.0.mlp.experts.gate_up_proj_scale_inv": s},
         stacked, dict(deepseek, weight_block_size=[16, 16]))
    w, s = codes8(E4M3, 24, 40), floats(1)[0]
    case(root, "fp8", "mistral", {f"{NAME}.weight": w, f"{NAME}.qscale_weight": s,
                                  f"{NAME}.qscale_act": s},
         w.to(torch.float32) * s, None)
    w, s = codes8(E5M2, 24, 40), floats(1)[0]
    modelopt = {"hf_quant_config.json": {
        "producer": {"name": "modelopt"},
        "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": None}}}
    case(root, "fp8", "modelopt", {f"{NAME}.weight": w, f"{NAME}.weight_scale": s,
                                   f"{NAME}.input_scale": s},
         w.to(torch.float32) * s, None, modelopt)
    w, s = codes8(E4M3, 24, 40), floats(24)
    case(root, "fp8", "modelopt_rows",
         {f"{NAME}.weight": w, f"{NAME}.weight_scale": s},
         w.to(torch.float32) * s[:, None], None, modelopt)
    w, s = codes8(E4M3, 24, 40), floats(24, 1, dtype=torch.bfloat16)
    args = QuantizationArgs(num_bits=8, type="float", strategy="channel")
    ct = {"quant_method": "compressed-tensors", "format": "float-quantized"}
    case(root, "fp8", "ct_rows", {f"{NAME}.weight": w, f"{NAME}.weight_scale": s},
         dequantize(w, s.to(torch.float32), args=args), ct)
    w, s = codes8(E4M3, 40, 70), floats(3, 5)
    args = QuantizationArgs(num_bits=8, type="float", strategy="block",
                            block_structure=[16, 16])
    case(root, "fp8", "ct_blocks", {f"{NAME}.weight": w, f"{NAME}.weight_scale": s},
         dequantize(w, s, args=args), dict(deepseek, **ct, weight_block_size=[16, 16]))
    w, s = codes8(E4M3, 8, 96), powers(8, 3)
    args = QuantizationArgs(num_bits=8, type="float", strategy="group", group_size=32)
    case(root, "fp8", "ct_mxfp8", {f"{NAME}.weight": w, f"{NAME}.weight_scale": s},
         dequantize(w, decompress_mx_scale(s).to(torch.float32), args=args),
         dict(ct, format="mxfp8-quantized"))
    mlx_case(root, "fp8", "mxfp8", 32, 8)


def mlx_case(root, kind, mode, group, bits):
    n = 96
    w = random_bytes(8, n * bits // 8)
    s = random_bytes(8, n // group) if mode == "nvfp4" else powers(8, n // group)
    x = mx.dequantize(mx.array(w.numpy().view(np.uint32)), mx.array(s.numpy()),
                      group_size=group, bits=bits, mode=mode, dtype=mx.float32)
    how = {"group_size": group, "bits": bits, "mode": mode}
    case(root, kind, f"mlx_{mode}",
         {f"{NAME}.weight": w.view(torch.uint32), f"{NAME}.scales": s}, np.array(x),
         how, quantization=how)


def mxfp4(root):
    b, s = random_bytes(2, 6, 3, 16), powers(2, 6, 3)
    x = convert_moe_packed_tensors(b, s, dtype=torch.float32)
    case(root, "mxfp4", "gpt_oss", {"model.layers.0.mlp.experts.down_proj_blocks": b,
                                    "model.layers.0.mlp.experts.down_proj_scales": s},
         x, {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]},
         torch_dtype="bfloat16")
    w, s = random_bytes(6, 48).view(torch.int8), powers(6, 3).view(E8M0)
    case(root, "mxfp4", "deepseek_v4", {f"{NAME}.weight": w, f"{NAME}.scale": s},
         transformers_fp8(w, s), {"quant_method": "fp8", "weight_block_size": [128, 128]})
    w, s = random_bytes(6, 48), powers(6, 3)
    args = QuantizationArgs(num_bits=4, type="float", strategy="group", group_size=32)
    case(root, "mxfp4", "ct", {f"{NAME}.weight_packed": w, f"{NAME}.weight_scale": s},
         dequantize(unpack_fp4_from_uint8(w, 6, 96, dtype=torch.float32),
                    decompress_mx_scale(s).to(torch.float32), args=args),
         {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized"})
    mlx_case(root, "mxfp4", "mxfp4", 32, 4)


def nvfp4(root):
    table = np.array([0, .5, 1, 1.5, 2, 3, 4, 6], np.float32)
    table = np.concatenate([table, -table])

    def e2m1(w):
        w = w.numpy()
        return table[np.stack([w & 15, w >> 4], -1).reshape(*w.shape[:-1], -1)]

    def modelopt(w, s, two): # e2m1 * (scale * scale_2), each in f32
        by = s.to(torch.float32).numpy() * two
        return e2m1(w) * np.repeat(by, 16, -1)
    files = {"hf_quant_config.json": {
        "producer": {"name": "modelopt"},
        "quantization": {"quant_algo": "NVFP4", "group_size": 16}}}
    w, s, two = random_bytes(6, 48), codes8(E4M3, 6, 6), torch.tensor(0.00314159)
    case(root, "nvfp4", "modelopt", {f"{NAME}.weight": w, f"{NAME}.weight_scale": s,
                                     f"{NAME}.weight_scale_2": two},
         modelopt(w, s, two.numpy()), None, files)
    w, s, two = random_bytes(3, 4, 24), codes8(E4M3, 3, 4, 3), floats(3)
    case(root, "nvfp4", "modelopt_experts",
         {f"{NAME}.weight": w, f"{NAME}.weight_scale": s, f"{NAME}.weight_scale_2": two},
         modelopt(w, s, two.numpy()[:, None, None]), None, files)
    w, s, by = random_bytes(6, 48), codes8(E4M3, 6, 6), torch.tensor([431.7])
    args = QuantizationArgs(num_bits=4, type="float", strategy="tensor_group",
                            group_size=16)
    case(root, "nvfp4", "ct", {f"{NAME}.weight_packed": w, f"{NAME}.weight_scale": s,
                               f"{NAME}.weight_global_scale": by},
         dequantize(unpack_fp4_from_uint8(w, 6, 96, dtype=torch.float32),
                    s.to(torch.float32), args=args, global_scale=by),
         {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"})
    mlx_case(root, "nvfp4", "nvfp4", 16, 4)


def write_gguf(path, tensors):
    """name -> (shape, type, bytes); gguf-py does not know I2_S."""
    out = struct.pack("<4sIqq", b"GGUF", 3, len(tensors), 0)
    at = 0
    for name, (shape, kind, data) in tensors.items():
        out += struct.pack("<q", len(name)) + name.encode()
        out += struct.pack(f"<I{len(shape)}qIq", len(shape), *shape[::-1], kind, at)
        at += -(-len(data) // 32) * 32
    for _, _, data in tensors.values():
        out += bytes(-len(out) % 32) + data
    path.write_bytes(out + bytes(-len(out) % 32))


def gguf(root):
    """NVFP4 with its second tensor, and I2_S as bitnet.cpp's converter packs it."""
    at = pathlib.Path(root) / "gguf"
    at.mkdir(parents=True, exist_ok=True)

    def nvfp4(*shape):
        raw = random_bytes(*shape[:-1], shape[-1] // 64 * 36).numpy()
        return raw, quants.dequantize(raw, GGMLQuantizationType.NVFP4)
    up, up_x = nvfp4(5, 192)
    exps, exps_x = nvfp4(3, 4, 64)
    scale, scales = np.float32([0.0123]), np.float32([0.5, 3e-5, 7.7])
    t = rng.integers(-1, 2, (6, 256))
    code = (t + 1).astype(np.uint8).reshape(-1, 4, 32) # of 128, 32 in each pair of bits
    packed = code[:, 0] << 6 | code[:, 1] << 4 | code[:, 2] << 2 | code[:, 3]
    s = np.float32(0.0371)
    write_gguf(at / "scaled.gguf", {
        "up.weight": (up_x.shape, 40, up.tobytes()),
        "up.scale": ((1,), 0, scale.tobytes()),
        "exps.weight": (exps_x.shape, 40, exps.tobytes()),
        "exps.scale": ((3,), 0, scales.tobytes()),
        "alone.weight": (up_x.shape, 40, up.tobytes()),
        "q.weight": (t.shape, 36, packed.tobytes() + s.tobytes() + bytes(28)),
        "norm.weight": ((4,), 0, np.ones(4, np.float32).tobytes()),
    })
    np.savez(at / "values.npz", **{
        "up.weight": up_x * scale, "exps.weight": exps_x * scales[:, None, None],
        "alone.weight": up_x, "q.weight": t.astype(np.float32) * s})


for make in (fp8, mxfp4, nvfp4, gguf):
    make(sys.argv[1])
