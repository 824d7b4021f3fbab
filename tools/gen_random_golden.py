#!/usr/bin/env python3
"""gen_random_golden.py - writes tests/golden/random.h.

A second implementation, from the definitions only: Philox 4x32-10 as in its paper,
checked against the vectors published with Random123, and the values made from its
words as described at the top of src/prims/random.c. Quantiles come from Python's
statistics module. Has no dependencies.

    tools/gen_random_golden.py > tests/golden/random.h
"""
import struct
from math import frexp, ldexp
from statistics import NormalDist

M32 = 0xFFFFFFFF
SEED, STREAM = 0x0123456789ABCDEF, 0xFEDCBA9876543210

KNOWN = [  # counter, key, output
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((M32, M32, M32, M32), (M32, M32),
     (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
     (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]


def philox(counter, key):
    c, (k0, k1) = counter, key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = (p1 >> 32 ^ c[1] ^ k0, p1 & M32, p0 >> 32 ^ c[3] ^ k1, p0 & M32)
        k0, k1 = k0 + 0x9E3779B9 & M32, k1 + 0xBB67AE85 & M32
    return c


def block(seed, stream, n):
    return philox((n & M32, n >> 32, stream & M32, stream >> 32),
                  (seed & M32, seed >> 32))


def word(i):
    return block(SEED, STREAM, i // 4)[i % 4]


def wide(i):
    return word(2 * i) | word(2 * i + 1) << 32


def fold(n):
    w = block(SEED ^ 0xA5A5A5A5A5A5A5A5, STREAM, n)
    return w[0] | w[1] << 32, w[2] | w[3] << 32


def f32_bits(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def f16_bits(x):
    return struct.unpack("<H", struct.pack("<e", x))[0]


def bf16_bits(x):
    """Of a normal number, rounded once to 8 bits, ties to even."""
    m, e = frexp(x)
    return f32_bits(ldexp(round(ldexp(m, 8)), e - 8)) >> 16


def as_f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def f64_bits(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def uniform(bits, width, digits, lo=0.0, hi=1.0):
    return lo + (bits >> (width - digits)) / 2.0 ** digits * (hi - lo)


def permutation(n):
    a = list(range(n))
    at = 0
    for i in range(n - 1, 0, -1):
        while True:
            j = word(at) & ((1 << i.bit_length()) - 1)
            at += 1
            if j <= i:
                break
        a[i], a[j] = a[j], a[i]
    return a


def ties(index, digits, bits):
    """Values slightly above the midpoint of two neighbours in [1, 2), to which f32
    would round them: detects double rounding."""
    lo = 2.0 ** -digits + 2.0 ** -40
    values = [uniform(word(i), 32, digits, lo, lo + 2) for i in index]
    assert any(bits(as_f32(x)) != bits(x) for x in values)
    return [bits(x) for x in values]


def table(kind, name, values, fmt):
    print(f"static const {kind} {name}[] = {{")
    line = "   "
    for v in values:
        text = " " + fmt(v) + ","
        if len(line) + len(text) > 79:
            print(line)
            line = "   "
        line += text
    print(line + "\n};")


def main():
    for counter, key, out in KNOWN:
        assert philox(counter, key) == out, (counter, key)
    x8 = lambda v: f"0x{v:08x}u"
    x16 = lambda v: f"UINT64_C(0x{v:016x})"
    x4 = lambda v: f"0x{v:04x}"
    print("/* random.h - what src/prims/random.c must give; written by\n"
          " * tools/gen_random_golden.py, not by hand. */")
    print("/* clang-format off */")
    table("uint32_t", "KNOWN_PHILOX",
          [w for row in KNOWN for part in row for w in part], x8)
    print(f"#define GOLDEN_KEY \\\n    (lb_key) {{ {x16(SEED)}, "
          f"{x16(STREAM)} }}")
    # Near the ends of tiles and blocks, and at large indices.
    index = list(range(10)) + list(range(2045, 2051)) + [65535, 65536, 1000002]
    table("int64_t", "GOLDEN_INDEX", index, str)
    table("uint32_t", "GOLDEN_U32", [word(i) for i in index], x8)
    table("uint64_t", "GOLDEN_U64", [wide(i) for i in index], x16)
    table("uint64_t", "GOLDEN_FOLD_N", [0, 1, 2, 1 << 40, (1 << 64) - 1], x16)
    table("uint64_t", "GOLDEN_FOLD",  # seed, stream
          [x for n in (0, 1, 2, 1 << 40, (1 << 64) - 1) for x in fold(n)], x16)
    table("uint32_t", "GOLDEN_UNIFORM_F32",
          [f32_bits(uniform(word(i), 32, 24)) for i in index], x8)
    table("uint32_t", "GOLDEN_UNIFORM_F32_WIDE",  # -2.5 <= x < 7.1
          [f32_bits(uniform(word(i), 32, 24, -2.5, 7.1)) for i in index], x8)
    table("uint16_t", "GOLDEN_UNIFORM_F16",
          [f16_bits(uniform(word(i), 32, 11)) for i in index], x4)
    table("uint16_t", "GOLDEN_UNIFORM_BF16",
          [f32_bits(uniform(word(i), 32, 8)) >> 16 for i in index], x4)
    table("uint16_t", "GOLDEN_TIES_F16", ties(index, 11, f16_bits), x4)
    table("uint16_t", "GOLDEN_TIES_BF16", ties(index, 8, bf16_bits), x4)
    table("uint64_t", "GOLDEN_UNIFORM_F64",
          [f64_bits(uniform(wide(i), 64, 53)) for i in index], x16)
    quantile = NormalDist().inv_cdf
    table("double", "GOLDEN_NORMAL_32",
          [quantile((word(i) + 0.5) / 2 ** 32) for i in index], repr)
    table("double", "GOLDEN_NORMAL_64",
          [quantile((wide(i) + 0.5) / 2 ** 64) for i in index], repr)
    table("int64_t", "GOLDEN_PERMUTATION_10", permutation(10), str)
    table("int64_t", "GOLDEN_PERMUTATION_33", permutation(33), str)
    print("/* clang-format on */")


if __name__ == "__main__":
    main()
