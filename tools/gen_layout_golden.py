"""gen_layout_golden.py - writes tests/golden/layouts: quantized arrays as tensors.

bitsandbytes quantizes and decodes the arrays in `bnb`; `bitnet`, `eformer` and
`native` are written and decoded here with numpy. X.values, next to X.safetensors,
has the decoded arrays, in the dtype they load as. Seeds are fixed; needs
bitsandbytes, torch, safetensors and ml_dtypes.
"""
import json
import os

import bitsandbytes.functional as F
import ml_dtypes
import native_numpy
import numpy as np
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch

WHERE = os.path.join(os.path.dirname(__file__), "..", "tests/golden/layouts")
BF16 = ml_dtypes.bfloat16
f32 = np.float32


def path(name):
    full = os.path.join(WHERE, name)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    return full


# ---- bitsandbytes -----------------------------------------------------------

def bnb4(tensors, values, name, shape, dtype, block, kind, nested):
    x = torch.randn(shape, dtype=torch.float32).to(dtype)
    q, state = F.quantize_4bit(x, blocksize=block, quant_type=kind,
                               compress_statistics=nested)
    tensors[name] = q
    for k, v in state.as_dict(packed=True).items():
        tensors[f"{name}.{k}"] = v
    # fp4 has two zeros: its kernel decodes one as -0, its map as 0
    values[name] = F.dequantize_4bit(q, state) + 0.0


def bnb():
    torch.manual_seed(3)
    t, v = {}, {}
    bf, half, single = torch.bfloat16, torch.float16, torch.float32
    bnb4(t, v, "plain.weight", (6, 100), bf, 64, "nf4", False)
    bnb4(t, v, "odd.weight", (5, 13), half, 64, "nf4", False)
    bnb4(t, v, "wide.weight", (4, 64), single, 128, "nf4", False)
    bnb4(t, v, "nested.weight", (70, 300), bf, 64, "nf4", True)
    bnb4(t, v, "stack.weight", (3, 8, 32), single, 64, "nf4", True)
    t["norm.weight"] = v["norm.weight"] = torch.randn(7).to(bf)
    t["bytes.weight"] = v["bytes.weight"] = torch.arange(5, dtype=torch.uint8)
    save_torch(t, path("bnb4.safetensors"), {"format": "pt"})
    save_torch(v, path("bnb4.values"))
    t, v = {}, {}
    bnb4(t, v, "fp4.weight", (3, 70), bf, 64, "fp4", False)
    save_torch(t, path("fp4.safetensors"), {"format": "pt"})
    save_torch(v, path("fp4.values"))
    t, v = {}, {}
    for name, shape in (("a", (7, 33)), ("b.c", (2, 5))):
        q, scb, _ = F.int8_vectorwise_quant(torch.randn(shape).half())
        t[f"{name}.weight"], t[f"{name}.SCB"] = q, scb
        t[f"{name}.weight_format"] = torch.tensor(0, dtype=torch.uint8)
        v[f"{name}.weight"] = torch.from_numpy(
            q.numpy().astype(f32) * scb.numpy()[:, None] * f32(1 / 127))
    t["a.bias"] = v["a.bias"] = torch.randn(7).half()
    save_torch(t, path("bnb8.safetensors"), {"format": "pt"})
    save_torch(v, path("bnb8.values"))


# ---- BitNet -----------------------------------------------------------------

def pack_rows(codes):
    """transformers' pack_weights: rows i, i + R, .. in a row of bytes."""
    rows = -(-codes.shape[0] // 4)
    out = np.zeros((rows, *codes.shape[1:]), np.uint8)
    for i, row in enumerate(codes):
        out[i % rows] |= (row + 1).astype(np.uint8) << 2 * (i // rows)
    return out


def bitnet(rng):
    for kind in ("bitlinear", "autobitlinear"):
        codes = rng.integers(-1, 2, (12, 20))
        scale = f32([20.25 if kind == "bitlinear" else 0.046875]).astype(BF16)
        w = codes / f32(scale) if kind == "bitlinear" else codes * f32(scale)
        w = f32(w)
        save_file({"q.weight": pack_rows(codes), "q.weight_scale": scale,
                   "norm.weight": f32([1, 2]).astype(BF16)},
                  path(f"{kind}/model.safetensors"), {"format": "pt"})
        save_file({"q.weight": w.astype(BF16),
                   "norm.weight": f32([1, 2]).astype(BF16)},
                  path(f"{kind}/model.values"))
        config = {"model_type": "llama", "quantization_config": {
            "quant_method": "bitnet", "linear_class": kind,
            "quantization_mode": "offline"}}
        if kind == "bitlinear":
            del config["quantization_config"]["linear_class"]  # the default
        with open(path(f"{kind}/config.json"), "w") as out:
            out.write(json.dumps(config, indent=2) + "\n")


# ---- eformer ----------------------------------------------------------------

def describe(meta, name, **d):
    meta[f"lowbit.{name}"] = json.dumps(d)


def eformer(rng, layout):
    """layout: "eformer", or "seed", its former name in descriptors"""
    t, v, meta = {}, {}, {}
    for name, n, dtype in (("whole", 128, f32), ("cut", 100, BF16)):
        c = rng.integers(0, 16, (4, 128)).astype(np.uint8)
        c[:, n:] = 7
        absmax = rng.normal(size=(4, 2)).astype(f32).__abs__().astype(dtype)
        t[f"{name}.packed"] = (c[:, ::2] << 4 | c[:, 1::2]).reshape(4, 2, 32)
        t[f"{name}.absmax"] = absmax
        w = native_numpy.NF4[c] * np.repeat(f32(absmax), 64, 1)
        v[name] = w[:, :n].astype(dtype)
    describe(meta, "cut", layout=layout, format="nf4", dtype="bf16",
             shape=[4, 100])
    for name, shape, dtype in (("row", (5, 1), f32), ("column", (1, 9), BF16),
                               ("all", (1, 1), f32)):
        c = rng.integers(-127, 128, (5, 9)).astype(np.int8)
        s = rng.normal(size=shape).astype(dtype)
        t[f"{name}.weight"], t[f"{name}.scale"] = c, s
        v[name] = (f32(c) * f32(s)).astype(dtype)
    for name in ("ternary", "binary"):
        c = rng.integers(-1, 2, (6, 7))
        if name == "binary":
            c[c == 0] = 1
        t[f"{name}.packed"] = pack_rows(c)
        describe(meta, name, layout=layout, format=name, dtype="i8",
                 shape=[6, 7])
        v[name] = c.astype(np.int8)
    t["lone.packed"] = v["lone.packed"] = np.arange(6, dtype=np.uint8)
    save_file(t, path(f"{layout}.safetensors"), meta)
    save_file(v, path("eformer.values"))


# ---- native -----------------------------------------------------------------

class Native:
    """Tensors of random parts, and their layout."""

    def __init__(self, rng):
        self.rng, self.tensors, self.meta = rng, {}, {}

    def part(self, name, shape, dtype):
        r = self.rng
        if dtype == "packed":
            a = r.integers(0, 256, shape).astype(np.uint8)
        elif dtype == np.int8:
            a = r.integers(-127, 128, shape).astype(dtype)
        else:
            a = (r.normal(size=shape) + 3).astype(dtype)
        self.tensors[name] = a

    def array(self, name, fmt, dtype, shape, parts, stored=None, meaning=0):
        """parts: name -> groups, dtype and optionally an own axis."""
        stored = stored or list(shape)
        d = {"format": fmt, "dtype": dtype, "shape": list(shape),
             "stored": stored, "meaning": meaning, "parts": {}}
        for k, (groups, kind, *own) in parts.items():
            dims = [-(-n // g) if g else 1 for n, g in zip(stored, groups)]
            d["parts"][k] = {"groups": groups}
            if own:
                d["parts"][k]["own"] = own[0]
            if isinstance(kind, dict):
                flat = [int(np.prod(dims))]
                d["parts"][k]["array"] = self.array(
                    f"{name}.{k}", "dynamic8", "f32", dims, kind, flat)
            else:
                self.part(f"{name}.{k}", dims + own, kind)
        return d

    def add(self, name, *rest, **more):
        d = {"layout": "native", **self.array(name, *rest, **more)}
        self.meta[f"lowbit.{name}"] = json.dumps(d)


def native(rng):
    n = Native(rng)
    i8, u8 = np.int8, "packed"
    n.add("int8.row", "int8", "f32", (5, 9),
          {"codes": ([1, 1], i8), "scale": ([1, 0], f32)})
    n.add("int8.column", "int8", "bf16", (5, 9),
          {"codes": ([1, 1], i8), "scale": ([0, 1], f32)})
    n.add("int8.all", "int8", "f32", (5, 2, 9),
          {"codes": ([1, 1, 1], i8), "scale": ([0, 0, 0], f32)})
    n.add("int8.block", "int8", "f16", (5, 9),
          {"codes": ([1, 1], i8), "scale": ([1, 4], f32)})
    n.add("int8.bf16", "int8", "bf16", (5, 9),
          {"codes": ([1, 1], i8), "scale": ([1, 0], BF16)})
    n.add("int8.absmax", "int8", "f32", (5, 9),
          {"codes": ([1, 1], i8), "scale": ([1, 0], f32)}, meaning=1)
    n.add("int8.inverse", "int8", "f32", (5, 9),
          {"codes": ([1, 1], i8), "scale": ([1, 0], f32)}, meaning=2)
    n.add("nf4.rows", "nf4", "bf16", (3, 75),
          {"codes": ([1, 2], u8), "absmax": ([1, 64], f32)})
    n.add("nf4.flat", "nf4", "f32", (3, 75),
          {"codes": ([2], u8), "absmax": ([32], f32)}, stored=[225])
    n.add("nf4.table", "nf4", "f32", (3, 70),
          {"codes": ([1, 2], u8), "absmax": ([1, 64], f32),
           "table": ([0, 0], f32, 16)})
    n.add("nf4.double", "nf4", "f32", (3, 75),
          {"codes": ([1, 2], u8), "absmax": ([1, 64], {
              "codes": ([1], u8), "absmax": ([256], f32),
              "offset": ([0], f32)})})
    n.add("dynamic8", "dynamic8", "f32", (2, 300),
          {"codes": ([1, 1], u8), "absmax": ([1, 256], f32)})
    n.add("binary.row", "binary", "f32", (4, 19),
          {"codes": ([1, 8], u8), "scale": ([1, 0], f32)})
    n.add("binary.none", "binary", "i8", (4, 19), {"codes": ([1, 8], u8)})
    n.add("ternary.all", "ternary", "bf16", (4, 19),
          {"codes": ([1, 4], u8), "scale": ([0, 0], f32)})
    n.add("ternary.inverse", "ternary", "f32", (4, 19),
          {"codes": ([1, 4], u8), "scale": ([0, 0], f32)}, meaning=2)
    for k, a in n.tensors.items():  # 3 is not a code
        if k.startswith("ternary") and k.endswith("codes"):
            for s in range(0, 8, 2):
                a[(a >> s & 3) == 3] ^= 1 << s
    n.tensors["plain"] = f32([1, 2, 3])
    save_file(n.tensors, path("native.safetensors"), n.meta)
    v = native_numpy.load(path("native.safetensors"))
    kinds = {"f32": f32, "f16": np.float16, "bf16": BF16, "i8": np.int8}
    for k in v:
        d = json.loads(n.meta.get(f"lowbit.{k}", '{"dtype": "f32"}'))
        v[k] = np.ascontiguousarray(v[k].astype(kinds[d["dtype"]]))
    save_file(v, path("native.values"))


if __name__ == "__main__":
    bnb()
    bitnet(np.random.default_rng(5))
    for layout in ("seed", "eformer"):
        eformer(np.random.default_rng(6), layout)
    native(np.random.default_rng(7))
