"""native_numpy.py - arrays of lowbit's `native` files, with numpy alone.

load(path) is {name: values}: docs/formats.md, "Files", as a program. With a
name, of that array only. GGUF's block types are left to the package gguf.
"""
import json
import numpy as np
f = np.float32
TYPE = dict(F64="<f8", F32="<f4", F16="<f2", BF16="<u2", I8="<i1", U8="<u1")
NF4 = f([-1, -.6961928009986877, -.5250730514526367, -.39491748809814453, -.28444138169288635, -.18477343022823334,
         -.09105003625154495, 0, .07958029955625534, .16093020141124725, .24611230194568634, .33791524171829224,
         .44070982933044434, .5626170039176941, .7229568362236023, 1])

def dynamic_map():  # ends of 2^e parts of [.1, 1], one rounding each; midpoints
    out = [f(0), f(1)]
    for n in 2 ** np.arange(7):
        i, step = np.arange(n + 1), float(f(f(1) - f(.1)) / f(n))
        x = f(np.where(i < (n + 1) // 2, float(f(.1)) + step * i, 1 - step * (n - i)))
        mid = f(10. ** (np.log2(n) - 6)) * ((x[1:] + x[:-1]) / f(2))
        out += [*mid, *-mid]
    return np.sort(f(out))

def rounded(x, dtype):  # f32 to f16 or bf16, to nearest even, and back
    u = f(x).view("<u4")
    u = (u + 0x7fff + (u >> 16 & 1) >> 16 << 16).astype("<u4")
    return f(x.astype("<f2")) if dtype.lower() == "f16" else u.view("<f4") if dtype.lower() == "bf16" else x

def spread(part, groups, stored):  # an entry for each element
    for axis, (g, n) in enumerate(zip(groups, stored)):
        part = np.repeat(part, g or n, axis).take(range(n), axis)
    return f(part)

def codes(part, bits, n, high_first=False):  # the first n fields of each row of bytes
    at = np.arange(0, 8, bits)[::-1 if high_first else 1]
    return (part[..., None] >> at & (1 << bits) - 1).reshape(*part.shape[:-1], -1)[..., :n]

def decode(tensor, name, d):
    part, dtype, stored, fmt = {}, {}, d["stored"], d["format"]
    for k, p in d["parts"].items():
        whole, dtype[k] = (decode(tensor, f"{name}.{k}", p["array"]), "F32") if "array" in p else tensor[f"{name}.{k}"]
        part[k] = whole if k in ("codes", "table") else spread(whole, p["groups"], stored)
    n, c = (stored or [1])[-1], part["codes"]
    if fmt == "nf4":
        w = part.get("table", NF4).ravel()[codes(c, 4, n, True)] * part["absmax"]
    elif fmt == "dynamic8":
        w = part.get("table", dynamic_map()).ravel()[c] * part["absmax"] + part.get("offset", f(0))
    else:
        w = f({"int8": lambda: c, "ternary": lambda: codes(c, 2, n) - 1, "binary": lambda: codes(c, 1, n) * 2 - 1}[fmt]())
        s, meaning = part.get("scale", f(1)), d["meaning"]
        w = w / s if meaning == 2 else w * s * f(1 / 127) if meaning == 1 else rounded(w * s, dtype.get("scale", "F32"))
    return rounded(w, d["dtype"]).reshape(d["shape"])

def load(path, only=None):
    raw = open(path, "rb").read()
    begin = 8 + int.from_bytes(raw[:8], "little")
    head, tensor = json.loads(raw[8:begin]), {}
    meta = head.pop("__metadata__", {})
    for k, t in head.items():
        a = np.frombuffer(raw, TYPE[t["dtype"]], int(np.prod(t["shape"])), begin + t["data_offsets"][0])
        a = (a.astype("<u4") << 16).view("<f4") if t["dtype"] == "BF16" else a
        tensor[k] = a.reshape(t["shape"]), t["dtype"]
    plain = {k: v for k, v in tensor.items() if not any(k.startswith(m[7:] + ".") for m in meta if m.startswith("lowbit."))}
    made = {k[7:]: decode(tensor, k[7:], json.loads(v)) for k, v in meta.items() if k.startswith("lowbit.") and only in (None, k[7:])}
    return {**{k: a for k, (a, _) in plain.items()}, **made}
