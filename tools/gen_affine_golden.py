"""gen_affine_golden.py GPTQMODEL AUTOAWQ - writes tests/golden/affine: model
directories with integer weights of other programs, and what those programs decode.

    X/config.json, X/model.safetensors    as the program stores them
    X/values.safetensors                  the decoded arrays

GPTQMODEL and AUTOAWQ are the unpacked sources of gptqmodel 7.7.0 and autoawq 0.2.9,
of which only functions on torch tensors are used. Also needs torch,
compressed-tensors 0.20.0, mlx 0.32.4, transformers 5.22 and safetensors. Seeds are fixed.

values are f32, computed from scales in f32, or (MLX) of the dtype of the scales,
which is that of MLX's arithmetic.
"""
import json
import os
import sys

import mlx.core as mx
import numpy as np
import torch
from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32
from compressed_tensors.compressors.pack_quantized.helpers import unpack_from_int32
from compressed_tensors.quantization.lifecycle.forward import dequantize
from compressed_tensors.quantization import QuantizationArgs
from safetensors.torch import save_file
from transformers.integrations.gemma_quant import _unpack_int2, _unpack_int4

from foreign_unpack import awq_packing, gptq_codes, gptq_source

WHERE = os.path.join(os.path.dirname(__file__), "..", "tests/golden/affine")
F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32
P = "model.layers.0.mlp.down_proj"
rng = np.random.default_rng(7)
count = 0


def put_json(where, name, value):
    with open(os.path.join(where, name), "w", encoding="utf-8") as f:
        json.dump(value, f, indent=1)
        f.write("\n")


def write(name, config, tensors, values, beside=None):
    """beside: a file of settings, which config.json then does not have."""
    where = os.path.join(WHERE, name)
    os.makedirs(where, exist_ok=True)
    config = {"model_type": "llama", **config}
    if beside:
        put_json(where, beside, config.pop("quantization_config"))
    put_json(where, "config.json", config)
    for file, data in (("model", tensors), ("values", values)):
        data = {k: v.contiguous() for k, v in data.items()}
        save_file(data, os.path.join(where, file + ".safetensors"), {"format": "pt"})


def words(*shape):
    return torch.from_numpy(rng.integers(-2**31, 2**31, shape, dtype=np.int64).astype(np.int32))


def scales(dtype, *shape):
    """Of many magnitudes and both signs, subnormal ones of the dtype among them."""
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 1, shape)
    x.flat[::11] = 3e-7 if dtype == F16 else 2e-39
    return torch.from_numpy(x).to(dtype)


# ---- GPTQ -------------------------------------------------------------------

def gptq_module(env, P, bits, rows, columns, group, dtype=F16, sym=False, v1=True,
                order=None):
    groups = -(-columns // group)
    qweight = words(columns * bits // 32, rows)
    qzeros = words(groups, rows * bits // 32)
    if sym:
        z = torch.full((groups, rows), 2**(bits - 1) - v1, dtype=torch.int64)
        qzeros = pack_to_int32((z - 2**(bits - 1)).to(torch.int8), bits)
    s = scales(dtype, groups, rows)
    w, z = gptq_codes(env, qweight, qzeros, bits, (groups, rows))
    g_idx = torch.arange(columns) // group
    if order == "random":
        g_idx = g_idx[torch.from_numpy(rng.permutation(columns))]
    w32 = s.float()[g_idx] * (w.int() - (z.int() + v1)[g_idx]).float()
    tensors = {P + ".qweight": qweight, P + ".qzeros": qzeros, P + ".scales": s}
    if order:
        tensors[P + ".g_idx"] = g_idx.int()
    return tensors, {P + ".weight": w32.T}


def gptq(env, name, bits, rows, columns, group, dtype=F16, sym=False, v1=True, order=None,
         config=None, beside=None):
    made = gptq_module(env, P, bits, rows, columns, group, dtype, sym, v1, order)
    if config is None:
        config = {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": sym,
                  "desc_act": order == "random",
                  "checkpoint_format": "gptq" if v1 else "gptq_v2"}
    write(name, {"quantization_config": config}, *made, beside)


def gptq_dynamic(env):
    """Modules with settings of their own, and one that is not quantized."""
    where = "model.layers.0.mlp."
    tensors, values = {}, {}
    for module, bits, group in (("down_proj", 4, 32), ("up_proj", 8, 64),
                                ("gate_proj", 2, 16)):
        some, decoded = gptq_module(env, where + module, bits, 32, 128, group)
        tensors.update(some)
        values.update(decoded)
    tensors[where + "router.weight"] = torch.from_numpy(
        rng.standard_normal((4, 32))).to(F16)
    config = {"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": False,
              "desc_act": False, "checkpoint_format": "gptq",
              "dynamic": {"-:.*router": {}, "+:.*up_proj": {"bits": 8, "group_size": 64},
                          "+:.*gate_proj": {"bits": 2, "group_size": 16}}}
    write("gptq_dynamic", {"quantization_config": config}, tensors, values)


def more_gptq(source):
    """Planes of bits, which are a stream for 4 bits; AutoGPTQ's file of settings."""
    env = gptq_source(source)
    gptq_dynamic(env)
    gptq(env, "gptq_planar", 4, 32, 64, 32, v1=False,
         config={"quant_method": "gptq", "bits": 4, "group_size": 32,
                 "checkpoint_format": "gptq_p"})
    gptq(env, "gptq_settings_beside", 4, 32, 96, 48, beside="quantize_config.json",
         config={"bits": 4, "group_size": 48, "damp_percent": 0.01, "desc_act": False,
                 "sym": False, "true_sequential": True})


def all_gptq(source):
    env = gptq_source(source)
    gptq(env, "gptq_4_sym", 4, 32, 128, 64, sym=True, order="rows")
    gptq(env, "gptq_4_asym", 4, 40, 96, 32)
    gptq(env, "gptq_4_short_group", 4, 32, 96, 64, v1=False)
    gptq(env, "gptq_2_bf16", 2, 32, 64, 32, dtype=BF16, v1=False)
    gptq(env, "gptq_3_act_order", 3, 32, 128, 32, order="random")
    gptq(env, "gptq_3_sym", 3, 64, 96, 96, sym=True)
    gptq(env, "gptq_8_asym", 8, 20, 64, 32, order="random")
    gptq(env, "gptq_8_row_f32", 8, 8, 64, 64, dtype=F32, v1=False)
    for packing, v1 in (("auto_round", False), ("auto_round:auto_gptq", True)):
        config = {"quant_method": "auto-round", "bits": 4, "group_size": 32,
                  "packing_format": packing}
        gptq(env, "auto_round_" + ("v1" if v1 else "v2"), 4, 16, 64, 32, v1=v1,
             config=config)


# ---- AWQ --------------------------------------------------------------------

def awq(unpack, name, rows, columns, group, zero=True, beside=None):
    qweight, qzeros = words(columns, rows // 8), words(columns // group, rows // 8)
    if not zero:
        qzeros = torch.full_like(qzeros, -2004318072)  # 0x88888888
    s = scales(F16, columns // group, rows)
    w = unpack.dequantize_gemm(qweight, qzeros, s.float(), 4, group)
    tensors = {P + ".qweight": qweight, P + ".qzeros": qzeros, P + ".scales": s}
    if not zero:
        del tensors[P + ".qzeros"]
    config = {"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": zero,
              "version": "gemm", "modules_to_not_convert": None}
    if beside: # as llm-awq and the first AutoAWQ spelled it
        config = {"zero_point": zero, "q_group_size": group, "w_bit": 4,
                  "version": "GEMM"}
    write(name, {"quantization_config": config}, tensors, {P + ".weight": w.T}, beside)


def all_awq(source):
    unpack = awq_packing(source)
    awq(unpack, "awq", 40, 128, 64)
    awq(unpack, "awq_symmetric", 16, 64, 32, zero=False)


# ---- compressed-tensors -----------------------------------------------------

def ct_config(bits, group, sym, packed, targets="Linear"):
    weights = {"num_bits": bits, "type": "int", "symmetric": sym,
               "strategy": "group" if group else "channel", "group_size": group or None}
    form = "pack-quantized" if packed else "int-quantized"
    return {"quantization_config": {
        "quant_method": "compressed-tensors", "format": form,
        "quantization_status": "compressed",
        "config_groups": {"group_0": {"targets": [targets], "weights": weights}},
        "ignore": ["lm_head"]}}


def padded(q, bits):
    """The packing of versions before 0.17: 32 / bits codes per word, no straddling."""
    each = 32 // bits
    u = np.zeros((q.shape[0], -(-q.shape[1] // each) * each), np.uint64)
    u[:, :q.shape[1]] = q.numpy().astype(np.int64) + 2**(bits - 1)
    shift = np.arange(each, dtype=np.uint64) * np.uint64(bits)
    packed = (u.reshape(q.shape[0], -1, each) << shift).sum(2)
    return torch.from_numpy(packed.astype(np.uint32).view(np.int32))


def ct(name, bits, rows, columns, group, dtype, sym=True, packed=True, order=False,
       old=False, tensor=False, config=None):
    groups = -(-columns // group) if group else 1
    half = 2**(bits - 1)
    q = torch.from_numpy(rng.integers(-half, half, (rows, columns)).astype(np.int8))
    q.view(-1)[:2] = torch.tensor([-half, half - 1])
    s = scales(dtype, 1) if tensor else scales(dtype, rows, groups)
    z = None
    if not sym:
        z = torch.from_numpy(rng.integers(-half, half, (rows, groups)).astype(np.int8))
    g_idx = torch.arange(columns) // group if group else None
    if order:
        g_idx = g_idx[torch.from_numpy(rng.permutation(columns))]
    if order or tensor or (group and columns % group):
        s32 = s.float() if tensor else s.float()[:, g_idx]
        w = (q.float() - (z.float()[:, g_idx] if z is not None else 0)) * s32
    else:
        args = QuantizationArgs(num_bits=bits, symmetric=sym, group_size=group or None,
                                strategy="group" if group else "channel")
        w = dequantize(q, s.float(), z, args, dtype=F32)
        # Their decode is in the dtype of the scales: the same, rounded once.
        assert torch.equal(dequantize(q, s, z, args), w.to(dtype))
    tensors = {P + ".weight_scale": s}
    if packed:
        tensors[P + ".weight_packed"] = padded(q, bits) if old else pack_to_int32(q, bits)
        tensors[P + ".weight_shape"] = torch.tensor([rows, columns])
        if not old:
            back = unpack_from_int32(tensors[P + ".weight_packed"], bits, q.shape)
            assert torch.equal(back, q)
    else:
        tensors[P + ".weight"] = q
    if z is not None:
        tensors[P + ".weight_zero_point"] = pack_to_int32(z, bits, 0) if packed else z
    if order:
        tensors[P + ".weight_g_idx"] = g_idx.int()
    targets = "re:.*down_proj$" if bits == 3 else "Linear"
    config = config or ct_config(bits, group, sym, packed, targets)
    write(name, config, tensors, {P + ".weight": w})
    if not packed and not tensor:  # the same without an axis of groups
        flat = {k: v if v.dim() < 2 or v.shape[1] > 1 else v.flatten()
                for k, v in tensors.items()}
        write(name + "_list", config, flat, {P + ".weight": w})


def all_ct():
    for bits in range(1, 9):
        ct(f"ct_{bits}", bits, 24, 96, 32, BF16 if bits % 2 else F16, sym=bits % 3 > 0)
    ct("ct_4_channel", 4, 13, 40, 0, F32)
    ct("ct_4_order", 4, 16, 64, 16, BF16, sym=False, order=True)
    ct("ct_5_odd_columns", 5, 6, 37, 0, BF16)
    ct("ct_4_short_group", 4, 9, 72, 32, F16)
    for bits in (3, 5, 6):
        ct(f"ct_{bits}_padded", bits, 10, 64, 32, F16, old=True)
    ct("ct_int8", 8, 20, 48, 0, BF16, packed=False)
    ct("ct_int8_asym", 8, 20, 48, 0, F32, sym=False, packed=False)
    ct("ct_int8_tensor", 8, 12, 40, 0, BF16, packed=False, tensor=True)


# ---- MLX --------------------------------------------------------------------

def torch_of(a):
    if a.dtype == mx.bfloat16:
        return torch.from_numpy(np.array(a.view(mx.uint16))).view(BF16)
    if a.dtype == mx.uint32:
        return torch.from_numpy(np.array(a).view(np.int32)).view(torch.uint32)
    return torch.from_numpy(np.array(a))


def mlx(name, dtype, modules, metal=False):
    tensors, values, config = {}, {}, {"group_size": 64, "bits": 4, "mode": "affine"}
    for module, (bits, group, *shape) in modules.items():
        w = mx.array(rng.standard_normal(shape).astype(np.float32)).astype(dtype)
        w = mx.where(mx.abs(w) > 2, w * 30, w)
        q, s, b = mx.quantize(w, group_size=group, bits=bits)
        assert bool(mx.any(s < 0)) and bool(mx.any(s > 0))
        v = mx.dequantize(q, s, b, group_size=group, bits=bits)
        tensors[module + ".weight"] = torch_of(q)
        tensors[module + ".scales"] = torch_of(s)
        tensors[module + (".qbiases" if metal else ".biases")] = torch_of(b)
        values[module + ".weight"] = torch_of(v)
        if (bits, group) != (4, 64):
            config[module] = {"group_size": group, "bits": bits}
    if metal:
        config["quant_method"] = "metal"
    both = {"quantization_config": config}
    write(name, both if metal else {**both, "quantization": config}, tensors, values)


def all_mlx():
    mx.set_default_device(mx.cpu)
    for dtype, word in ((mx.float16, "f16"), (mx.bfloat16, "bf16"), (mx.float32, "f32")):
        mlx("mlx_" + word, dtype,
            {f"model.layers.{b}.mlp.up_proj": (b, g, 8, 128)
             for b, g in ((2, 64), (3, 32), (4, 64), (5, 64), (6, 128), (8, 32))})
    mlx("mlx_experts", mx.bfloat16, {"model.layers.0.switch_mlp.up_proj": (4, 64, 3, 4, 64)})
    mlx("mlx_metal", mx.float16, {P: (4, 64, 8, 64)}, metal=True)


# ---- Gemma ------------------------------------------------------------------

def gemma():
    """4 and 2 bits in bytes, low first, minus 8 and 2, times the row's scale."""
    tensors, values = {}, {}
    for module, bits in (("model.layers.0.q_proj", 4), ("model.layers.0.up_proj", 2),
                         ("model.layers.0.down_proj", 8)):
        half = 2**(bits - 1)
        q = rng.integers(-half, half, (12, 48))
        s = scales(F32, 12, 1)
        u = (q + half).reshape(12, -1, 8 // bits) << (np.arange(8 // bits) * bits)
        tensors[module + ".weight"] = torch.from_numpy(
            q.astype(np.int8) if bits == 8 else u.sum(2).astype(np.uint8))
        unpack = {4: _unpack_int4, 2: _unpack_int2}.get(bits)
        if unpack:
            assert np.array_equal(unpack(tensors[module + ".weight"], 48).numpy(), q)
        tensors[module + ".weight_scale"] = s
        tensors[module + ".input_activation_scale"] = torch.zeros(())
        values[module + ".weight"] = torch.from_numpy(q).float() * s
    config = {"quant_method": "gemma", "num_bits": 4,
              "module_quant_configs": {".*up_proj": {"num_bits": 2},
                                       ".*down_proj": {"num_bits": 8}}}
    write("gemma", {"quantization_config": config}, tensors, values)


all_gptq(sys.argv[1])
all_awq(sys.argv[2])
all_ct()
all_mlx()
gemma()
# Last: the random numbers of the cases above must not change.
more_gptq(sys.argv[1])
awq(awq_packing(sys.argv[2]), "awq_settings_beside", 24, 96, 32,
    beside="quant_config.json")
ct("ct_preset", 4, 16, 256, 128, BF16, config={"quantization_config": {
    "quant_method": "compressed-tensors", "format": "pack-quantized",
    "quantization_status": "compressed", "config_groups": {"W4A16": ["Linear"]},
    "ignore": []}})
