"""native_numpy.py - load(path): {name: values} of a native file, with numpy, after docs/formats.md."""
import json
import numpy as np
from ggml_numpy import flat, numbers
f, byte = np.float32, np.arange(256)[:, None]
NF4 = f([-1, -.696192801, -.525073051, -.394917488, -.284441382, -.18477343, -.0910500363, 0, .0795802996,
         .160930201, .246112302, .337915242, .440709829, .562617004, .722956836, 1])
i, tenth, rest = [np.arange(2 ** e + 1) / 2 ** e for e in range(7)], float(f(.1)), float(f(1) - f(.1))
x = [f(np.where(i < .5, tenth + rest * i, 1 - rest * (1 - i))) for i in i]  # .1 to 1, from the nearer end
half = np.concatenate([f(10. ** (e - 6)) * ((x[1:] + x[:-1]) / f(2)) for e, x in enumerate(x)])
TABLE = {"nf4": NF4, "dynamic8": np.sort(f([*half, *-half, 0, 1]))}
CODES = {"int8": byte.astype("i1"), "ternary": (byte >> [0, 2, 4, 6] & 3) - 1,  # in each byte
         "binary": (byte >> np.arange(8) & 1) * 2 - 1, "nf4": byte >> [4, 0] & 15, "dynamic8": byte}
def rounded(x, dtype):  # f32 to f16 or bf16, to nearest even, and back
    bf16 = ((u := f(x).view("u4")) + 0x7fff + (u >> 16 & 1) & 0xffff0000).view(f)
    return f(np.float16(x)) if dtype == "f16" else bf16 if dtype == "bf16" else x
def spread(a, groups, stored):  # an entry for each element
    for axis, (g, n) in enumerate(zip(groups, stored)):
        a = np.repeat(a, g or n, axis).take(range(n), axis)
    return f(a)
def decode(tensor, name, d):
    fmt, part, dtype, n = d["format"], {}, {}, (d["stored"] or [1])[-1]
    for k, p in d["parts"].items():
        a, dtype[k] = (decode(tensor, f"{name}.{k}", p["array"]), "f32") if "array" in p else tensor.pop(f"{name}.{k}")
        part[k] = np.atleast_1d(a) if k in ("codes", "blocks", "table") else spread(a, p["groups"], d["stored"])
    w = numbers(fmt, part["blocks"]) if "blocks" in part else flat(CODES[fmt][part["codes"].view("u1")])
    w = f(part.get("table", TABLE[fmt])).ravel()[w[..., :n]] if fmt in TABLE else f(w[..., :n])
    s, meaning = part.get("scale", part.get("absmax", f(1))), d["meaning"]
    w = w / s if meaning == 2 else w * s * f(1 / 127) if meaning == 1 else rounded(w * s, dtype.get("scale"))
    return rounded(w + part.get("offset", f(-0.)), d["dtype"]).reshape(d["shape"])
def load(path):
    raw, tensor = np.fromfile(path, "u1"), {}
    head = json.loads(raw[8:(begin := 8 + int(raw[:8].view("<u8")[0]))].tobytes())
    about = {k[7:]: json.loads(v) for k, v in head.pop("__metadata__", {}).items() if k.startswith("lowbit.")}
    for k, t in head.items():
        kind = {"BF16": "<u2", "BOOL": "?"}.get(t["dtype"]) or f"<{t['dtype'][0].lower()}{int(t['dtype'][1:]) // 8}"
        a = raw[begin:][slice(*t["data_offsets"])].view(kind).reshape(t["shape"])
        tensor[k] = (a.astype("u4") << 16).view(f) if t["dtype"] == "BF16" else a, t["dtype"].lower()
    made = {k: decode(tensor, k, d) for k, d in about.items()}
    return {k: a for k, (a, _) in tensor.items()} | made
