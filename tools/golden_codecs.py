"""golden_codecs.py - the cases of each codec: codes, scales, decoded values.

native and bnb-cuda come from golden_rules.py. eformer uses the same rules, and
must agree with eformer itself except for two differences: flushing of subnormals,
and a clamp that eformer lacks. bnb-cpu comes from bitsandbytes itself.
"""
import numpy as np

import golden_packages as packages
import golden_rules as rules
from golden_inputs import NF4
from golden_text import BF16, DTYPES, NAMES, bits_of

F32 = np.float32


class Counts(dict):
    def more(self, what, n=1):
        self[what] = self.get(what, 0) + int(n)


COUNTS = Counts()


def same(a, b):
    return (a.shape == b.shape and a.dtype == b.dtype
            and np.array_equal(bits_of(a), bits_of(b)))


def insist(ok, what):
    if not ok:
        raise SystemExit(f"gen_golden: {what}")


def label(keys, x):
    return DTYPES[keys["dtype"]] if keys.get("dtype") else x.dtype


def axes_of(keys, x):
    axes = keys.get("axes") or (-1,)
    return tuple(a % x.ndim for a in axes) if x.ndim else ()


# ---- one case of each format ------------------------------------------------
# Each yields (word, array) pairs for x with these keys.

def int8_case(x, keys):
    if keys.get("block"):
        codes, scale = rules.int8_blocks(x, keys["block"])
        wide = rules.spread(scale, keys["block"], x.shape[-1])
        return ([("codes", codes), ("part scale", scale)],
                rules.int8_values(codes, wide))
    codes, scale = rules.int8(x, axes_of(keys, x), keys["compat"])
    bnb = keys["compat"] in ("bnb-cuda", "bnb-cpu")
    v = rules.int8_values(codes, scale, "absmax" if bnb else "scale")
    out = [("codes", codes)]
    if x.size or not scale.size:
        out.append(("part scale" if x.ndim else "part scale*", scale))
    if keys["compat"] == "eformer":
        check_eformer_int8(x, keys, codes, scale, v)
    if keys["compat"] == "bnb-cpu":
        got = packages.bnb_int8(x)
        insist(same(got[0], codes) and same(got[1], scale.reshape(-1))
               and same(got[2], v), "int8 of bitsandbytes has another rule")
    return out, v


def check_eformer_int8(x, keys, codes, scale, v):
    if not x.size or not x.ndim or x.dtype == np.float64:
        return
    with np.errstate(all="ignore"):
        pc, ps, pv = packages.eformer_int8(x, axes_of(keys, x))
        fc, fs = rules.int8(x, axes_of(keys, x), "eformer", True, 128)
        fv = rules.int8_values(fc, fs, flush=True).astype(x.dtype)
    insist(same(pc, fc) and same(ps, fs) and same(pv, fv),
           f"int8 of eformer differs by more than flushing: {keys}")
    COUNTS.more("eformer int8 codes", codes.size)
    COUNTS.more("eformer int8 codes that flushing or -128 changes",
                np.sum(pc != codes))


def nf4_case(x, keys):
    compat, block = keys["compat"], keys.get("block", 64)
    flat = compat in ("bnb-cuda", "bnb-cpu")
    if compat == "bnb-cpu":
        return nf4_bnb_case(x, keys, block)
    row = x.reshape(-1) if flat or not x.ndim else x
    codes, most = rules.nf4(row, block, compat)
    poly = keys.get("decode") == "poly"
    v = rules.nf4_values(codes, most, block, POLY if poly else NF4)
    star = "*" if flat or not x.ndim else ""
    out = [("codes", codes.reshape(x.shape)),
           ("part codes" + star, rules.nibbles(codes)),
           ("part absmax" + star, most)]
    if compat == "eformer":
        packed = rules.eformer_packed(codes, block)
        check_eformer_nf4(x, block, packed, most)
        if x.ndim and x.size:
            out += [("export eformer packed", packed),
                    ("export eformer absmax", most)]
    return out, v.reshape(x.shape)


def check_eformer_nf4(x, block, packed, most):
    if not x.size or not x.ndim or x.dtype == np.float64:
        return
    with np.errstate(all="ignore"):
        pp, pm, pv = packages.eformer_nf4(x, block)
        fc, fm = rules.nf4(x, block, "eformer", True)
        fv = rules.nf4_values(fc, fm, block, POLY, True).astype(x.dtype)
    insist(same(pp, rules.eformer_packed(fc, block)) and same(pm, fm)
           and same(pv, fv),
           f"nf4 of eformer differs by more than flushing: {x.dtype} {x.shape}")
    COUNTS.more("eformer nf4 bytes", packed.size)
    COUNTS.more("eformer nf4 bytes that flushing changes", np.sum(pp != packed))


def nf4_bnb_case(x, keys, block):
    double = keys.get("double") == "yes"
    got = packages.bnb_nf4(x, block, double)
    codes = np.stack([got["codes"] >> 4, got["codes"] & 15], -1).reshape(-1)
    codes = codes[:x.size]
    out = [("codes", codes.reshape(x.shape)),
           ("part codes*!" if double and block == 32 else "part codes*",
            got["codes"])]
    if double:
        steps = MAP[got["absmax"]] * rules.spread(got["nested"], 256,
                                                  len(got["absmax"]))
        most = steps + got["offset"]
        # Its mean is summed in torch's order: use inputs that do not depend on it.
        plain = packages.bnb_nf4(x, block)["absmax"].astype(np.float64)
        if F32(rules.math.fsum(plain) / len(plain)) != got["offset"][0]:
            raise rules.Unclear("offset")
        out += [("part absmax.codes*!", got["absmax"]),
                ("part absmax.absmax*!", got["nested"]),
                ("part absmax.offset*", got["offset"]),
                ("part absmax*", most)]
    else:
        most = got["absmax"]
        out.append(("part absmax*", most))
    v = rules.nf4_values(codes, most, block).reshape(x.shape)
    if keys.get("dtype") is None:
        insist(same(got["values"], v.astype(x.dtype)),
               "nf4 of bitsandbytes decodes otherwise")
    return out, v


def signs_case(x, keys):
    compat, fmt = keys["compat"], keys["format"]
    plain = compat == "eformer" or keys.get("dtype") == "i8"
    scale_kind = keys.get("scale") or ("none" if plain else "tensor")
    block = keys.get("block", 64)
    codes, scale = rules.signs(x, scale_kind, block, fmt,
                               keys.get("threshold", "std"), compat)
    v = rules.sign_values(codes, scale, block)
    out = [("codes", codes)]
    if scale is not None and (x.size or not scale.size):
        out.append(("part scale" if x.ndim else "part scale*", scale))
    if x.ndim and x.size and x.shape[0] % 4 == 0 and scale is None:
        packed = rules.eformer_two_bits(codes)
        out.append(("export eformer packed", packed))
        if compat == "eformer" and x.dtype != np.float64:
            pp, pv = packages.eformer_signs(x, fmt)
            COUNTS.more(f"eformer {fmt} codes", codes.size)
            # Flushing a subnormal loses its sign.
            differ = np.sum(pv != codes)
            COUNTS.more(f"eformer {fmt} codes that flushing changes", differ)
            small = np.abs(x.astype(F32)) < F32(2.0 ** -126)
            insist(np.array_equal((pv != codes) & ~small, np.zeros_like(small))
                   and (differ or same(pp, packed)),
                   f"{fmt} of eformer differs: {x.dtype} {x.shape}")
    return out, v


def dynamic8_case(x, keys):
    compat, block = keys["compat"], keys.get("block", 256)
    if compat == "bnb-cpu":
        codes, most, v = packages.bnb_dynamic8(x, block)
        v32 = (MAP[codes.reshape(-1)]
               * rules.spread(most, block, x.size)).reshape(x.shape)
        insist(same(v, v32.astype(x.dtype)),
               "dynamic8 of bitsandbytes decodes otherwise")
        return [("codes", codes), ("part absmax*", most)], v32
    flat = compat == "bnb-cuda" or not x.ndim
    row = (x.reshape(-1) if flat else x).astype(F32)
    offset = None
    if keys.get("center"):
        offset = np.zeros((1,) * row.ndim, F32)
        offset.fill(rules.rounded_mean(row.reshape(-1).astype(np.float64)))
        row = row - offset
    codes, most = rules.dynamic8(row, block, MAP, compat)
    v = MAP[codes] * rules.spread(most, block, codes.shape[-1])
    if offset is not None:
        v = v + offset
    star = "*" if flat else ""
    return [("codes", codes.reshape(x.shape)), ("part absmax" + star, most),
            ("part offset" + star, offset)], v.reshape(x.shape)


MAKERS = {"int8": int8_case, "nf4": nf4_case, "ternary": signs_case,
          "binary": signs_case, "dynamic8": dynamic8_case}


def add_case(golden, name, x, keys, converts=()):
    """False if the case is Unclear, and omitted."""
    try:
        out, v = MAKERS[keys["format"]](x, keys)
    except rules.Unclear as e:
        COUNTS.more(f"left out as unclear: {e}")
        return False
    d = label(keys, x)
    if keys["format"] in ("ternary", "binary") and (
            keys["compat"] == "eformer" and not keys.get("dtype")):
        d = np.int8
    with np.errstate(all="ignore"):
        out.append(("values", v.astype(d)))
        for c in converts:
            out.append(("convert", v.astype(DTYPES[c])))
    words = "_".join([keys["format"], keys["compat"]]) + f"_{golden.cases:03d}"
    shown = {k: w for k, w in keys.items() if (k, w) != ("compat", "native")}
    golden.case(words, name, shown, out)
    COUNTS.more(f"cases {keys['format']} {keys['compat']}")
    return True


# ---- which cases ------------------------------------------------------------

AXES = {1: [None, (0,)], 2: [None, (0,), (0, 1), (-2,)],
        3: [None, (1,), (0, 2), (-3, -2), (0, 1, 2)],
        4: [None, (1,), (0, -1), (1, 2, 3), (2,), (0, 1, 2, 3)]}
BLOCKS = [None, 16, 32, 128, 2, 10, 256]
OTHER = {"f32": "bf16", "f16": "f32", "bf16": "f32", "f64": None}


def int8_cases(golden, inputs, compat):
    for i, (name, (kind, x)) in enumerate(inputs.items()):
        many = AXES.get(x.ndim, [None])
        if kind != "normal" or not x.size:
            many = [many[0], many[i % len(many)]] if i % 2 else many[:1]
        elif x.dtype != F32 or compat == "eformer":
            many = [many[0], many[i % len(many)]]
        for j, axes in enumerate(dict.fromkeys(many)):
            keys = {"format": "int8", "compat": compat, "axes": axes}
            converts = ()
            if (i + j) % 5 == 1 and x.dtype != np.float64:
                keys["dtype"] = OTHER[NAMES[x.dtype]]
            elif (i + j) % 5 == 3:
                converts = ["f32", "f64"]
            add_case(golden, name, x, keys, converts)


def int8_block_cases(golden, inputs):
    for i, (name, (kind, x)) in enumerate(inputs.items()):
        if x.ndim and kind in ("normal", "zeros", "subnormal") and i % 2:
            add_case(golden, name, x, {"format": "int8", "compat": "native",
                                       "block": (16, 7)[i % 3 == 0]})


def dynamic8_cases(golden, inputs):
    for i, (name, (kind, x)) in enumerate(inputs.items()):
        keys = {"format": "dynamic8", "compat": "native"}
        if i % 3:
            keys["block"] = (16, 64)[i % 2]
        if i % 4 == 1 and x.size:
            keys["center"] = "yes"
        if kind not in ("tiny", "huge", "levels") and (i % 2 or x.ndim < 2):
            add_case(golden, name, x, keys, ["f32"] if i % 5 == 0 else ())


def nf4_cases(golden, inputs, compat):
    for i, (name, (kind, x)) in enumerate(inputs.items()):
        last = x.shape[-1] if x.ndim else 1
        blocks = [BLOCKS[(i + k) % len(BLOCKS)] for k in (0, 3)]
        if not x.size or last < 16:
            blocks = blocks[:1]
        if kind == "levels":
            blocks.append(None)
        if kind == "quotients":
            blocks = [32]
        for j, block in enumerate(dict.fromkeys(blocks)):
            keys = {"format": "nf4", "compat": compat, "block": block}
            if block is None:
                del keys["block"]
            converts = ()
            if (i + j) % 5 == 2 and x.dtype != np.float64:
                keys["dtype"] = OTHER[NAMES[x.dtype]]
            elif (i + j) % 5 == 4:
                converts = ["f32", "f16"]
            if compat == "eformer" and (i + j) % 3 == 0:
                keys["decode"] = "poly"
            add_case(golden, name, x, keys, converts)


def sign_choices(fmt):
    """Cycles through the scales, thresholds and dtypes."""
    out = []
    for scale in (None, "none", "tensor", "row", "block"):
        for threshold in (None, "absmean") if fmt == "ternary" else (None,):
            out.append({"scale": scale, "threshold": threshold})
    out.append({"dtype": "i8"})
    return out


def sign_cases(golden, inputs, fmt, compat):
    choices = sign_choices(fmt) if compat == "native" else [{}]
    at = 0
    for name, (kind, x) in inputs.items():
        if kind in ("levels", "quotients", "mantissa") or (
                kind in ("subnormal", "tiny", "huge") and compat == "native"):
            continue
        each = 2 if kind == "normal" and x.ndim > 1 and x.size else 1
        for _ in range(min(each, len(choices))):
            keys = {"format": fmt, "compat": compat,
                    **choices[at % len(choices)]}
            if keys.get("scale") == "block":
                keys["block"] = [16, 64, 7][at % 3]
            keys = {k: v for k, v in keys.items() if v is not None}
            if compat == "eformer" and at % 4 == 3:
                keys["dtype"] = "f32"
            add_case(golden, name, x, keys,
                     ["f32"] if at % 4 == 1 and "dtype" not in keys else ())
            at += 1


def bnb_cases(golden, inputs, large, compat):
    cuda = compat == "bnb-cuda"
    sizes = [32, 64, 128, 256, 512, 1024, 2048, 4096]
    i = 0
    for name, (kind, x) in inputs.items():
        # On a GPU, whether subnormals are flushed depends on compiler options, and
        # the filler after a last block of zeros is unknown.
        bad = cuda and (kind in ("subnormal", "tiny", "huge")
                        or x.size % 2 and x.reshape(-1)[-1] == 0)
        if not x.size or not x.ndim or x.dtype == np.float64 or bad:
            continue
        i += 1
        keys = {"format": "nf4", "compat": compat,
                "block": 32 if kind == "quotients" else sizes[i % 5]}
        if i % 5 == 2:
            keys["dtype"] = OTHER[NAMES[x.dtype]]
        add_case(golden, name, x, keys, ["f32"] if i % 5 == 4 else ())
        if not cuda and i % 3 == 0:
            add_case(golden, name, x, {**keys, "block": 32, "double": "yes"})
        if kind != "huge":  # f16 cannot hold it
            add_case(golden, name, x,
                     {"format": "int8", "compat": compat, "dtype": "f32"})
        if kind in ("normal", "heavy", "weights", "zeros"):
            add_case(golden, name, x, {"format": "dynamic8", "compat": compat,
                                       "block": [64, 256, 4096][i % 3]})
    for name, (kind, x) in large.items():
        for block in sizes:
            add_case(golden, name, x, {"format": "nf4", "compat": compat,
                                       "block": block})
            if not cuda and block < 256:
                add_case(golden, name, x, {"format": "nf4", "compat": compat,
                                           "block": block, "double": "yes"})


def read_cases(golden):
    """Arrays made from codes and scales: bitsandbytes' int8, both kinds of
    BitNet, 16-bit scales."""
    rng = np.random.default_rng(11)
    for fmt, most in (("int8", 127), ("ternary", 1), ("binary", 1)):
        for d in ("f32", "f16", "bf16"):
            for meaning in ("scale", "absmax", "inverse"):
                if meaning == "absmax" and fmt != "int8":
                    continue
                codes = rng.integers(-most, most + 1, (5, 12)).astype(np.int8)
                if fmt == "binary":
                    codes = np.where(codes < 0, -1, 1).astype(np.int8)
                shape = (1, 1) if d == "bf16" and fmt != "int8" else (5, 1)
                scale = rng.uniform(0.01, 2, shape).astype(DTYPES[d])
                keys = {"format": fmt, "meaning": meaning,
                        "dtype": ("f32", "bf16")[golden.cases % 2]}
                if fmt != "int8":
                    keys["scale"] = "row" if shape[0] == 5 else "tensor"
                v = rules.int8_values(codes, scale, meaning)
                golden.case(f"read_{golden.cases:03d}", "-", keys,
                            [("codes", codes), ("part scale", scale),
                             ("values!", v.astype(DTYPES[keys["dtype"]]))])
                COUNTS.more("cases of reading")


POLY = packages.eformer_poly()
MAP = packages.bnb_map()
