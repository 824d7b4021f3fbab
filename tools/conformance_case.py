"""conformance_case.py - writes StableHLO cases, and generates their inputs."""
import json
import math
import os
import shutil

import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16
DTYPES = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32,
    "i64": np.int64, "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32,
    "ui64": np.uint64, "f16": np.float16, "bf16": BF16, "f32": np.float32,
    "f64": np.float64,
}
NAMES = {np.dtype(v): k for k, v in DTYPES.items()}
FLOATS = ["f16", "bf16", "f32", "f64"]
SIGNED = ["i8", "i16", "i32", "i64"]
UNSIGNED = ["ui8", "ui16", "ui32", "ui64"]
INTS = SIGNED + UNSIGNED


def name_of(a):
    return NAMES[np.asarray(a).dtype]


class Writer:
    def __init__(self, root, only):
        self.root, self.only, self.names = root, only, set()
        self.written = 0

    def case(self, name):
        while name in self.names:
            name += "_"
        self.names.add(name)
        return Case(self, name)


class Case:
    """A program under construction: const(), op(), then expect()."""

    def __init__(self, writer, name):
        self.writer, self.name = writer, name
        self.consts, self.ops, self.checks, self.arrays = {}, [], [], {}
        self.n = 0

    def const(self, a):
        a = np.asarray(a)
        v = f"v{self.n}"
        self.n += 1
        self.arrays[v] = a
        self.consts[v] = {"npy": f"{v}.npy", "shape": list(a.shape),
                          "dtype": name_of(a)}
        return v

    def op(self, op, ins, shape, dtype, **attrs):
        v = f"v{self.n}"
        self.n += 1
        self.ops.append({
            "op": op, "ins": ins, "outs": [v],
            "out_types": [{"shape": [int(s) for s in shape], "dtype": dtype}],
            "attrs": attrs})
        return v

    def expect(self, got, want, how="check.expect_close", **tolerance):
        entry = [how, got, self.const(want)]
        if tolerance:
            entry.append(tolerance)
        self.checks.append(entry)
        return self

    def write(self):
        if self.writer.only and not self.name.startswith(self.writer.only):
            return
        self.writer.written += 1
        d = os.path.join(self.writer.root, self.name)
        shutil.rmtree(d, ignore_errors=True)
        os.makedirs(d)
        for v, a in self.arrays.items():
            if a.dtype == BF16:
                a = a.view(np.uint16)
            np.save(os.path.join(d, f"{v}.npy"), a)
        with open(os.path.join(d, "case.json"), "w") as f:
            json.dump({"source": "gen_conformance_cases.py",
                       "check": self.checks, "ops": self.ops,
                       "consts": self.consts}, f, indent=1)


def one_op(w, name, op, args, want, how=None, tolerance=None, **attrs):
    """The common case: constants, one operation, one check."""
    want = np.asarray(want)
    c = w.case(name)
    ins = [c.const(a) for a in args]
    got = c.op(op, ins, want.shape, name_of(want), **attrs)
    is_float = name_of(want) in FLOATS
    if how is None:
        how = "check.expect_close" if is_float else "check.expect_eq"
    c.expect(got, want, how, **(tolerance or {})).write()


# ---- numbers -------------------------------------------------------------

def round_to(x, dtype):
    """Exact real numbers (Python ints, or floats up to f64) to dtype, once."""
    flat = np.ravel(np.asarray(x, object))
    if dtype == "f64":
        out = np.array([float(v) for v in flat], np.float64)
    elif dtype == "bf16":
        # By hand: ml_dtypes goes through f32 and rounds twice.
        out = np.array([bf16_bits(sticky(v)) for v in flat],
                       np.uint16).view(BF16)
    else:
        with np.errstate(over="ignore"):
            out = np.array([sticky(v) for v in flat],
                           np.float64).astype(DTYPES[dtype])
    return out.reshape(np.shape(x))


def sticky(v):
    """v as a f64 that rounds to any narrower type as v itself would."""
    if not isinstance(v, (int, np.integer)) or isinstance(v, bool):
        return float(v)
    v = int(v)
    sign, m = (-1, -v) if v < 0 else (1, v)
    extra = m.bit_length() - 53
    if extra <= 0:
        return float(v)
    kept = m >> extra
    if m & ((1 << extra) - 1):
        kept |= 1
    return sign * math.ldexp(kept, extra)


def bf16_bits(v):
    if math.isnan(v):
        return 0x7FC0
    sign = 0x8000 if math.copysign(1.0, v) < 0 else 0
    a = abs(v)
    if math.isinf(a):
        return sign | 0x7F80
    if a == 0:
        return sign
    e = max(math.frexp(a)[1] - 1, -126)
    q = math.ldexp(a, 7 - e)          # exact: a power of two
    lo = math.floor(q)
    rest = q - lo
    if rest > 0.5 or (rest == 0.5 and lo % 2):
        lo += 1
    if lo >= 256:
        lo, e = lo // 2, e + 1
    if e > 127:
        return sign | 0x7F80
    return sign | (lo if lo < 128 else (lo - 128) | (e + 127) << 7)


def limits(dtype):
    if dtype == "i1":
        return 0, 1
    i = np.iinfo(DTYPES[dtype])
    return int(i.min), int(i.max)


def int_samples(dtype, rng, n=24):
    lo, hi = limits(dtype)
    edge = [lo, lo + 1, hi, hi - 1, 0, 1, 2, 3, 7, hi // 2, lo // 2]
    edge += [-1, -2, -3] if lo < 0 else []
    rand = rng.integers(lo, hi, n, dtype=DTYPES[dtype], endpoint=True)
    return np.concatenate([np.array(edge, DTYPES[dtype]), rand])


def float_samples(dtype, rng, n=64):
    f = ml_dtypes.finfo(DTYPES[dtype])
    tiny, sub, big = (float(f.tiny), float(f.smallest_subnormal),
                      float(f.max))
    edge = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 1.5, -1.5,
            2.5, -2.5, 2, 3, -3, tiny, -tiny, sub, -sub, big, -big, 88.0,
            -88.0, 1e-3, 100.5, -1e-4]
    spread = rng.standard_normal(n) * 10.0 ** rng.uniform(-4, 3, n)
    with np.errstate(over="ignore"):
        return np.concatenate([edge, spread]).astype(DTYPES[dtype])


def normal(dtype, rng, shape):
    """Something unremarkable of any dtype."""
    if dtype == "i1":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype in FLOATS:
        return rng.standard_normal(shape).astype(DTYPES[dtype])
    lo = 0 if dtype in UNSIGNED else -9
    return rng.integers(lo, 9, shape).astype(DTYPES[dtype])
