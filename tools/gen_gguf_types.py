#!/usr/bin/env python3
"""gen_gguf_types.py - writes tests/golden/gguf_types.h.

Hashes of the blocks that ggml stores for values given by a formula (the same as
in tests/test_gguf_types.c), and of the values that they decode to. The blocks
come from ggml-quants.c, built here for baseline x86-64, which does not contract;
the values come from ggml and from gguf-py, which must agree. If gguf-py has an
encoder, it must agree as well, with one exception (see below).

    pip install numpy gguf
    tools/gen_gguf_types.py GGML COMMIT > tests/golden/gguf_types.h

GGML is the directory `ggml` of llama.cpp at that commit. With --bound it prints
the largest error that the search of IQ4_NL can cause instead, and needs neither.
"""
import ctypes
import importlib.metadata
import os
import subprocess
import sys
import tempfile

import numpy as np

# name, elements per block, bytes, half-steps to the largest code
TYPES = [("q8_0", 32, 34, 254), ("q4_0", 32, 18, 16), ("iq4_nl", 32, 18, 254),
         ("tq1_0", 256, 54, 2), ("tq2_0", 256, 66, 2)]
STUBS = """
#include <stddef.h>
void ggml_abort(const char *f, int l, const char *t, ...) { __builtin_trap(); }
const char *ggml_type_name(int t) { return ""; }
size_t ggml_type_size(int t) { return 0; }
size_t ggml_row_size(int t, long n) { return 0; }
"""


class Draw:
    """24 bits at a time."""

    def __init__(self, seed):
        self.s = seed

    def __call__(self):
        self.s = (self.s * 1664525 + 1013904223) % 2**32
        return self.s >> 8


def numbers(kind, e, m, n, seed):
    """All are exact in f32."""
    r, x = Draw(seed), []
    for i in range(n):
        if kind == "flat":
            v = (r() - 2**23) * 2.0**(e - 23)
        elif kind == "tail":
            v = (r() - 2**23) * 2.0**(e - 23 - r() % 12)
        elif kind == "half":
            v = (r() % (2 * abs(m) + 1) - abs(m)) * 2.0**(e - 1)
            v = m * 2.0**(e - 1) if i == 0 else v
        elif kind == "one":
            v = -3.25 * 2.0**e if i == 5 else 0.0
        else:
            v = -0.0 if kind == "minus" else 0.0
        x.append(v)
    x = np.array(x, np.float64)
    assert (x == x.astype(np.float32)).all()
    return x.astype(np.float32)


def cases(length, m):
    """kind, exponent, half-steps, elements, seed. In the last two of "half", ties
    determine the result of IQ4_NL: among its candidates, and at the end."""
    yield from [("flat", 0, 0, 2 * length + length // 2 + 3, 1),
                ("flat", 0, 0, 1, 2), ("flat", -3, 0, length - 1, 3),
                ("flat", 2, 0, length + 1, 4), ("tail", 1, 0, 2 * length, 5),
                ("tail", -7, 0, length, 6), ("half", 0, m, 2 * length, 7),
                ("half", 0, -m, 2 * length + 5, 8), ("half", -3, m, 33, 9),
                ("half", 0, -300, 32, 187), ("half", 0, 197, 32, 471),
                ("zero", 0, 0, length + 2, 0), ("minus", 0, 0, 3, 0),
                ("one", 0, 0, length, 0), ("one", 5, 0, 7, 0)]
    # d is large, infinite, subnormal, or 0 although codes are not
    yield from [("flat", e, 0, length + 3, 10)
                for e in (15, 20, 40, 127, -11, -20, -28, -35, -49, -51,
                          -110)]


def reference(ggml):
    with tempfile.TemporaryDirectory() as d:
        stubs, so = os.path.join(d, "stubs.c"), os.path.join(d, "quants.so")
        with open(stubs, "w", encoding="ascii") as f:
            f.write(STUBS)
        subprocess.run(
            ["cc", "-O2", "-std=gnu11", "-ffp-contract=off", "-w", "-fPIC",
             "-shared", "-D_GNU_SOURCE", "-I", f"{ggml}/include", "-I",
             f"{ggml}/src", f"{ggml}/src/ggml-quants.c", stubs, "-o", so,
             "-lm"], check=True)
        return ctypes.CDLL(so)


def encode(lib, name, x, blocks, size):
    to = np.zeros(blocks * size, np.uint8)
    n = ctypes.c_int64(x.size)
    if name == "iq4_nl":  # the only one with weights; has 2 * 7 + 2 candidates
        lib.quantize_iq4_nl(x.ctypes, to.ctypes, ctypes.c_int64(1), n, None)
    else:
        getattr(lib, f"quantize_row_{name}_ref")(x.ctypes, to.ctypes, n)
    return to


def decode(lib, quants, kind, name, raw, n):
    out = np.zeros(n, np.float32)
    getattr(lib, f"dequantize_row_{name}")(raw.ctypes, out.ctypes,
                                           ctypes.c_int64(n))
    with np.errstate(all="ignore"):
        also = quants.dequantize(raw.reshape(1, -1), kind).reshape(-1)
    assert np.array_equal(out, also, equal_nan=True), name
    assert (np.signbit(out) == np.signbit(also))[~np.isnan(out)].all(), name
    return out


def digest(x):
    h = 0xcbf29ce484222325
    u = np.where(np.isnan(x), 0x7fc00000, x.view(np.uint32)).astype("<u4")
    for b in u.tobytes():
        h = (h ^ b) * 0x100000001b3 % 2**64
    return h


def hexes(raw):
    text = raw.tobytes().hex()
    return "\n".join(f'    "{text[i:i + 68]}"' for i in range(0, len(text), 68))


def random_blocks(size, d_at, count):
    r = Draw(size)
    raw = np.array([r() >> 16 for _ in range(size * count)], np.uint8)
    raw = raw.reshape(count, size)
    high = raw[:, d_at + 1]
    high[high & 0x7c == 0x7c] &= 0xfb  # neither infinite nor NaN
    return raw.reshape(-1)


def main(ggml, commit):
    from gguf import GGMLQuantizationType, quants
    lib = reference(ggml)
    print("/* gguf_types.h - made by tools/gen_gguf_types.py from ggml-quants.c"
          f"\n * of llama.cpp {commit} and gguf-py "
          + importlib.metadata.version("gguf") + ". */\n#include <stdint.h>\n"
          "\n/* clang-format off */\nstatic const struct {\n"
          "    const char *type, *kind;\n    int exponent, halves, n, seed;\n"
          "    uint64_t decoded;\n    const char *bytes;\n"
          "} gguf_golden_encoded[] = {")
    for name, length, size, m in TYPES:
        kind = GGMLQuantizationType[name.upper()]
        for case in cases(length, m):
            x = numbers(*case)
            blocks = -(-x.size // length)
            filled = np.zeros(blocks * length, np.float32)
            filled[:x.size] = x
            raw = encode(lib, name, filled, blocks, size)
            # the exception: gguf-py uses the sign of a block's first zero for d
            if name != "iq4_nl" and case[0] != "minus":
                with np.errstate(all="ignore"):
                    also = quants.quantize(filled, kind).view(np.uint8)
                assert np.array_equal(raw, also), (name, case)
            value = decode(lib, quants, kind, name, raw, filled.size)[:x.size]
            row = ", ".join(str(k) for k in case[1:])
            print(f'{{"{name}", "{case[0]}", {row}, '
                  f"0x{digest(value):016x},\n{hexes(raw)}}},")
    print("};\n/* Blocks of random bytes. */\nstatic const struct {\n"
          "    const char *type;\n    int count;\n    uint64_t decoded;\n"
          "} gguf_golden_decoded[] = {")
    for name, length, size, _ in TYPES:
        raw = random_blocks(size, size - 2 if name[0] == "t" else 0, 64)
        value = decode(lib, quants, GGMLQuantizationType[name.upper()], name,
                       raw, 64 * length)
        print(f'{{"{name}", 64, 0x{digest(value):016x}}},')
    print("};\n/* clang-format on */")


# ---- the bound of IQ4_NL -----------------------------------------------------

TABLE = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53,
                  69, 89, 113], float)
MIDDLE = (TABLE[:-1] + TABLE[1:]) / 2


def extremes(most, ratio):
    """The minimum and maximum of v^2 w (v - ratio * w) over |v| <= most, where w is
    the table's value nearest to v: cubics on the intervals of constant w."""
    lo, hi = np.append(-most, MIDDLE), np.append(MIDDLE, most)
    inside = np.clip(2 * ratio * TABLE / 3, lo, hi)
    zero = np.clip(0, lo, hi)
    v, w = np.concatenate([lo, hi, inside, zero]), np.tile(TABLE, 4)
    h = v * v * w * (v - ratio * w)
    return h.min(), h.max()


def ratio_end(peak, end):
    """The minimum (end 0) or maximum (1) of d * id = sum v^3 w / sum v^2 w^2 over
    blocks with one element v = peak and 31 elements that are not larger. A ratio
    is possible only if the term of peak, v^2 w (v - ratio w), and 31 others can
    add up to 0: the others are 0 or as large as possible with the other sign."""
    w = TABLE[np.sum(peak >= MIDDLE)]
    side = (1, -1)[end]
    lo, hi = 0.0, 2.0
    for _ in range(60):
        ratio = (lo + hi) / 2
        term = side * peak * peak * w * (peak - ratio * w)
        rest = min(0, side * extremes(abs(peak), ratio)[end])
        if (term + 31 * rest <= 0) == (end == 0):
            hi = ratio
        else:
            lo = ratio
    return (lo, hi)[end]


def bound():
    """Relative to max|x|: values beyond the ends of the table lose 1 - 113 d, others
    at most half of its widest gap, 12 d; f16 changes 113 d and 127 d by 2^-11."""
    worst = 0
    for peak in [127.0] + [t - 127.0 for t in range(-7, 8)]:
        least, most = ratio_end(peak, 0), ratio_end(peak, 1)
        d, large = least / abs(peak), most / abs(peak)
        lost = max(1 - 113 * d + 113 * d * 2**-11,
                   12 * large + 127 * large * 2**-11)
        worst = max(worst, lost)
        print(f"peak {peak}: d id in [{least:.5f}, {most:.5f}], d >= "
              f"{d:.6f}: {lost:.5f}")
    print(f"bound {worst:.5f}")


if sys.argv[1:] == ["--bound"]:
    bound()
elif len(sys.argv) == 3:
    main(*sys.argv[1:])
else:
    sys.exit(__doc__)
