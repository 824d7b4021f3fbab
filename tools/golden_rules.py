"""golden_rules.py - a second implementation of each codec, in numpy.

numpy's 16-bit arithmetic computes in f32 and rounds once: with at most half the
bits of f32 that is correctly rounded. `flush` sets f32 and bf16 operands and
results below 2^-126 to zero, like XLA on a CPU and unlike lowbit; it shows that
nothing else differs.
"""
import math

import numpy as np

from golden_inputs import NF4
from golden_text import BF16

F32 = np.float32
TINY = {np.dtype(np.float32): 2.0 ** -126, np.dtype(np.float16): 2.0 ** -14,
        np.dtype(BF16): 2.0 ** -126}

# The largest f32 that is rounded to the lower code, for each pair of neighbours:
# from bitsandbytes' decision tree on a GPU.
NF4_CUDA = np.array([
    0xbf591cd9, 0xbf1c5270, 0xbeeb8480, 0xbeadea76, 0xbe703cec, 0xbe0d38bc,
    0xbd3a7871, 0x3d22faff, 0x3df64863, 0x3e5067e0, 0x3e9582d4, 0x3ec753f9,
    0x3f006d03, 0x3f248daf, 0x3f5c89d9], np.uint32).view(np.float32)


def flushed(x, flush):
    if not flush or x.dtype == np.float16:
        return x
    small = np.abs(x.astype(F32)) < F32(2.0 ** -126)
    return np.where(small, np.copysign(x.dtype.type(0), x), x).astype(x.dtype)


def absmax(x, axes):
    """Over axes, which are kept with size 1; 0 for an empty group."""
    most = np.max(np.abs(x), axis=axes, keepdims=True, initial=0)
    return most.astype(x.dtype)


# ---- int8 -------------------------------------------------------------------

def int8(x, axes, compat, flush=False, clamp=127):
    """(codes, scale); axes: a tuple of non-negative axes."""
    with np.errstate(all="ignore"):
        if compat in ("bnb-cuda", "bnb-cpu"):
            x = x.astype(np.float16).astype(F32)
            scale = absmax(x, axes)
            times = (F32(127) / scale if compat == "bnb-cuda" else
                     F32(1) / scale * F32(127))
            q = np.where(scale == 0, F32(0), np.rint(x * times))
        elif compat == "eformer":
            x = flushed(x.astype(F32) if x.dtype == np.float64 else x, flush)
            d = x.dtype.type
            scale = flushed(absmax(x, axes) / d(127), flush) + d(TINY[x.dtype])
            q = np.rint(flushed(x / scale, flush).astype(F32))
        else:
            x = x.astype(F32)
            scale = absmax(x, axes) / F32(127)
            q = np.where(scale == 0, F32(0), np.rint(x / scale))
        return np.clip(q, -clamp, 127).astype(np.int8), scale


def int8_blocks(x, block):
    """(codes, scale) with a scale for each block of the last axis."""
    b = blocks_of(x, block)
    codes, scale = int8(b, (b.ndim - 1,), "native")
    codes = codes.reshape(*x.shape[:-1], b.shape[-2] * block)
    return codes[..., :x.shape[-1]], scale[..., 0]


def int8_values(codes, scale, meaning="scale", flush=False):
    """f32, each rounded to the scale's dtype."""
    with np.errstate(all="ignore"):
        if meaning == "absmax":
            return (codes.astype(F32) * scale.astype(F32)) * (F32(1) / F32(127))
        if meaning == "inverse":
            return codes.astype(F32) / scale.astype(F32)
        v = codes.astype(scale.dtype) * scale
        return flushed(v, flush).astype(F32)


# ---- nf4 --------------------------------------------------------------------

def blocks_of(x, block):
    """(..., blocks, block), the last block padded with zeros."""
    short = -x.shape[-1] % block
    x = np.concatenate([x, np.zeros((*x.shape[:-1], short), x.dtype)], -1)
    return x.reshape(*x.shape[:-1], x.shape[-1] // block, block)


def nf4(x, block, compat, flush=False):
    """(codes, absmax) with blocks along the last axis; for bitsandbytes, of
    the array as one row."""
    with np.errstate(all="ignore"):
        if compat == "eformer" and x.dtype != np.float64:
            b = blocks_of(flushed(x, flush), block)
            most = absmax(b, -1)
            v = b / (most + b.dtype.type(TINY[b.dtype]))
            v = flushed(v, flush).astype(F32)
        else:
            b = blocks_of(x.astype(F32), block)
            most = absmax(b, -1)
            if compat == "bnb-cuda":
                v = b * (F32(1) / most)
            else:
                v = np.where(most == 0, F32(0), b / most)
        if compat == "bnb-cuda":
            codes = np.sum(v[..., None] > NF4_CUDA, -1)
        else:
            codes = np.argmin(np.abs(v[..., None] - NF4), -1)
    codes = codes.astype(np.uint8).reshape(*x.shape[:-1], b.shape[-2] * block)
    return codes[..., :x.shape[-1]], most[..., 0]


def spread(scale, block, n):
    """One value for each element of the last axis."""
    return np.repeat(scale, block, axis=-1)[..., :n]


def nf4_values(codes, most, block, table=NF4, flush=False):
    v = table[codes] * spread(most.astype(F32), block, codes.shape[-1])
    return flushed(v, flush)


def dynamic8(x, block, levels, compat):
    """(codes, absmax) with blocks along the last axis. Values are first rounded
    to the middle of one of 65,536 cells, as in bitsandbytes on a CPU; with
    compat native, zeros are not. bitsandbytes on a GPU skips this step, and
    ties go to the even code."""
    b = blocks_of(x.astype(F32), block)
    most = absmax(b, -1)
    with np.errstate(all="ignore"):
        if compat == "bnb-cuda":
            v = (b * (F32(1) / most))[..., None]
            mid = F32(0.5) * (levels[:-1] + levels[1:])
            odd = np.arange(255) % 2 == 1
            codes = np.sum((v > mid) | (odd & (v == mid)), -1)
        else:
            v = np.where(b == 0, F32(0), b / most)
            place = np.floor((v + F32(1)) * F32(0.5) * F32(65535) + F32(0.5))
            at = F32(2) * place.astype(F32) / F32(65535) - F32(1)
            near = np.argmin(np.abs(at[..., None].astype(np.float64)
                                    - levels.astype(np.float64)), -1)
            codes = np.where(b == 0, 127, near)
    codes = codes.astype(np.uint8).reshape(*x.shape[:-1], b.shape[-2] * block)
    return codes[..., :x.shape[-1]], most[..., 0]


def nibbles(codes, filler=7):
    """High half first; a row of odd length ends with the filler."""
    if codes.shape[-1] % 2:
        last = np.full((*codes.shape[:-1], 1), filler, np.uint8)
        codes = np.concatenate([codes, last], -1)
    return (codes[..., 0::2] << 4 | codes[..., 1::2]).astype(np.uint8)


def eformer_packed(codes, block):
    """(..., blocks, block/2), the last block padded with code 7."""
    short = -codes.shape[-1] % block
    more = np.full((*codes.shape[:-1], short), 7, np.uint8)
    c = np.concatenate([codes, more], -1)
    return nibbles(c).reshape(*c.shape[:-1], c.shape[-1] // block, block // 2)


# ---- ternary and binary -----------------------------------------------------

def half_std(x, dtype, nudge=1.0):
    """Half the population's standard deviation; variance, root and half each
    rounded to dtype. nudge: a factor, to detect values close to a boundary."""
    with np.errstate(all="ignore"):
        mean = math.fsum(x) / len(x)
        var = math.fsum((v - mean) ** 2 for v in x) / len(x) * nudge
        if dtype == np.float64:
            return F32(0.5 * math.sqrt(var))
        d = np.dtype(dtype).type
        root = d(np.sqrt(F32(d(var)))) if dtype != F32 else np.sqrt(F32(var))
        return d(0.5) * root


def groups_of(x, scale, block):
    """Index lists of the groups that share a scale, in the scale's order, and
    the scale's shape."""
    n = np.arange(x.size).reshape(x.shape)
    if scale in ("none", "tensor") or x.ndim == 0:
        return [n.reshape(-1)], (1,) * x.ndim
    step = block if scale == "block" else max(x.shape[-1], 1)
    rows = n.reshape(-1, x.shape[-1]) if x.size else []
    out = [r[i:i + step] for r in rows for i in range(0, x.shape[-1], step)]
    last = -(-x.shape[-1] // step) if scale == "block" else 1
    return out, (*x.shape[:-1], last)


class Unclear(Exception):
    """A code or the last bit of a scale depends on the order of a sum: the
    case cannot be used."""


def rounded_mean(v):
    """A sum that is the same for any order of the f64 values."""
    sums = (math.fsum(v), sum(v), sum(v[::-1]), float(np.sum(v)))
    if len({F32(s / len(v)) for s in sums}) > 1:
        raise Unclear("mean")
    return F32(sums[0] / len(v))


def ternary_group(x, threshold, dtype):
    """(codes, scale) of one group of f64 values."""
    if threshold == "absmean":
        mean = rounded_mean(np.abs(x))
        if mean == 0:
            return np.zeros(len(x), np.int8), mean
        v = x.astype(F32) / mean
        if np.any(np.abs(np.abs(v) - 0.5) < 1e-6):
            raise Unclear("absmean")
        return np.clip(np.rint(v), -1, 1).astype(np.int8), mean
    found = []
    for nudge in (1, 1 - 4e-6, 1 + 4e-6):
        t = float(half_std(x, dtype, nudge))
        found.append((x > t).astype(np.int8) - (x < -t))
    if not all(np.array_equal(found[0], f) for f in found):
        raise Unclear("threshold")
    kept = np.abs(x[found[0] != 0])
    return found[0], rounded_mean(kept) if len(kept) else F32(0)


def signs(x, scale, block, fmt, threshold="std", compat="native"):
    """(codes, scale) of ternary and binary."""
    own = compat == "eformer" and x.dtype != np.float64
    dtype = x.dtype.type if own else F32
    if compat == "native" and dtype is F32:
        dtype = np.float64  # rounded once, at the end
    f = x.astype(F32).astype(np.float64).reshape(-1)
    codes = np.zeros(x.size, np.int8)
    groups, shape = groups_of(x, scale, block)
    scales = np.zeros(len(groups), F32)
    for g, i in enumerate(groups):
        if not len(i):
            continue
        if fmt == "binary":
            codes[i] = np.where(f[i] >= 0, 1, -1)
            scales[g] = rounded_mean(np.abs(f[i])) if scale != "none" else 0
        else:
            codes[i], scales[g] = ternary_group(f[i], threshold, dtype)
    if scale == "none":
        return codes.reshape(x.shape), None
    size = int(np.prod(shape))
    return (codes.reshape(x.shape),
            np.resize(scales, size).reshape(shape) if size else
            np.zeros(shape, F32))


def sign_values(codes, scale, block=None):
    if scale is None:
        return codes.astype(F32)
    if codes.ndim and scale.shape[-1] not in (1, codes.shape[-1]):
        scale = spread(scale, block, codes.shape[-1])
    return codes.astype(F32) * scale


def eformer_two_bits(codes):
    """Byte row i holds rows i, i+R, i+2R, i+3R of code+1 from the low bits."""
    rows = -(-codes.shape[0] // 4)
    more = np.full((4 * rows - codes.shape[0], *codes.shape[1:]), 0, np.int8)
    c = (np.concatenate([codes, more]) + 1).astype(np.uint8)
    c = c.reshape(4, rows, *codes.shape[1:])
    return c[0] | c[1] << 2 | c[2] << 4 | c[3] << 6
