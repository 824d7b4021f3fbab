#!/usr/bin/env python3
"""gen_convert_golden.py - writes tests/golden/conversions.h: corner cases of
each dtype and their bits in every other.

Computed with exact fractions by the rules in lowbit.h: floats round once, to
nearest even; to integers, truncate and saturate, NaN becomes 0; integers wrap; to
bool is != 0. Where numpy and ml_dtypes follow the same rules, their results must
be the same. Needs both.

    python3 tools/gen_convert_golden.py > tests/golden/conversions.h
"""
from fractions import Fraction

import ml_dtypes
import numpy as np

FLOATS = {  # significant bits, smallest normal exponent, largest exponent + 1, size
    "F32": (24, -126, 128, 32), "F16": (11, -14, 16, 16),
    "BF16": (8, -126, 128, 16), "F64": (53, -1022, 1024, 64),
}
INTS = {f"{s}{b}": (s == "I", b) for s in "IU" for b in (8, 16, 32, 64)}
DTYPES = ["F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64", "U8", "U16",
          "U32", "U64", "BOOL"]
NUMPY = {"F32": np.float32, "F16": np.float16, "F64": np.float64,
         "BF16": ml_dtypes.bfloat16}
INF, NAN = "inf", "nan"


def encode(name, negative, x):
    """The bits of |x| (a Fraction, INF or NAN) rounded to a float dtype."""
    digits, min_exp, max_exp, bits = FLOATS[name]
    sign = negative << (bits - 1)
    one = 1 << (digits - 1)
    inf = ((1 << (bits - digits)) - 1) * one
    if x == NAN:
        return sign | inf | one >> 1
    if x == INF:
        return sign | inf
    if x == 0:
        return sign
    e = min_exp
    while x >= Fraction(2) ** (e + 1):
        e += 1
    unit = Fraction(2) ** (e - digits + 1)
    n, rest = divmod(x, unit)
    if rest > unit / 2 or (rest == unit / 2 and n % 2):
        n += 1
    n = int(n)
    if n * unit >= Fraction(2) ** max_exp:
        return sign | inf
    return sign | (n if e == min_exp else (e - min_exp) * one + n)


def decode(name, raw):
    """(negative, |x|) of the bits of a float dtype."""
    digits, min_exp, _, bits = FLOATS[name]
    one, negative = 1 << (digits - 1), raw >> (bits - 1)
    magnitude = raw & ((1 << (bits - 1)) - 1)
    e, f = divmod(magnitude, one)
    if e == (1 << (bits - digits)) - 1:
        return negative, NAN if f else INF
    unit = Fraction(2) ** (min_exp - digits + 1)
    return negative, Fraction(f) * unit if e == 0 else \
        (f + one) * unit * Fraction(2) ** (e - 1)


def to_int(name, negative, x):
    signed, bits = INTS[name]
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed \
        else (0, (1 << bits) - 1)
    if x == NAN:
        return 0
    n = high + 1 if x == INF else int(x)
    n = -n if negative else n
    return max(low, min(high, n)) & ((1 << bits) - 1)


def convert(source, raw, target):
    if source in FLOATS:
        negative, x = decode(source, raw)
    elif source == "BOOL":
        negative, x = 0, Fraction(raw)
    else:
        signed, bits = INTS[source]
        n = raw - (1 << bits) if signed and raw >> (bits - 1) else raw
        negative, x = int(n < 0), Fraction(abs(n))
    if target == source:
        return raw
    if target == "BOOL":
        return int(x != 0)
    if target in FLOATS:
        return encode(target, negative, x)
    if source in FLOATS:
        return to_int(target, negative, x)
    n = -int(x) if negative else int(x)
    return n & ((1 << INTS[target][1]) - 1)


def check(source, raw, target, got):
    """Results of numpy and ml_dtypes where they round once."""
    trusted = {("F64", "F32"), ("F64", "F16"), ("F32", "F16"),
               ("F32", "BF16"), ("F32", "F64"), ("F16", "F32"),
               ("F16", "F64"), ("BF16", "F32"), ("I32", "F64"),
               ("I64", "F64"), ("I64", "F32"), ("U64", "F32"),
               ("U64", "F64"), ("U32", "F32"), ("I32", "F32")}
    if (source, target) not in trusted:
        return
    types = dict(NUMPY, I32=np.int32, I64=np.int64, U32=np.uint32,
                 U64=np.uint64)
    size = np.dtype(types[source]).itemsize
    x = np.frombuffer(raw.to_bytes(size, "little"), types[source])
    with np.errstate(all="ignore"):
        y = x.astype(types[target])
    if y[0] != y[0]:
        assert decode(target, got)[1] == NAN
        return
    assert int.from_bytes(y.tobytes(), "little") == got, (source, raw, target)


def values(name):
    """Bits of a dtype that are hard to convert."""
    if name == "BOOL":
        return [0, 1]
    if name in INTS:
        signed, bits = INTS[name]
        top = 1 << (bits - 1)
        list_ = [0, 1, (1 << bits) - 1, top, top - 1, top + 1]
        # halfway between floats of 8, 11, 24 and 53 bits, and the neighbours
        for digits in (8, 11, 24, 53):
            if bits > digits + 1:
                tie = (1 << digits) + 1
                room = bits - digits - 2
                list_ += [tie, tie + 2, (tie << room) + 1, (tie << room) - 1]
        return sorted(set(list_))
    one = Fraction(1)
    tiny = Fraction(1, 1 << 40)
    numbers = [one / 2, 3 * one / 2, 5 * one / 2, Fraction(127) + one / 2,
               Fraction(128), Fraction(255) + one / 2, Fraction(256),
               Fraction(32768), Fraction(65504), Fraction(65519),
               Fraction(65520), Fraction(1 << 31), Fraction(1 << 32),
               Fraction(1 << 63), Fraction(1 << 64), Fraction(10) ** 38]
    if name == "F64":
        half16, half8 = Fraction(1, 1 << 11), Fraction(1, 1 << 8)
        numbers += [one + half16 + tiny, one + half16 - tiny, one + half16,
                    one + half8 + tiny, one + half8, one + 3 * half16,
                    Fraction(2) ** -25 + Fraction(2) ** -60,
                    Fraction(2) ** -25, Fraction(2) ** -134,
                    Fraction(2) ** -134 + Fraction(2) ** -170,
                    Fraction(2) ** -150 * Fraction(5, 4),
                    Fraction((1 << 53) - 1), Fraction(10) ** 39]
    digits, _, _, bits = FLOATS[name]
    raws = {encode(name, n, x) for x in numbers for n in (0, 1)}
    inf = encode(name, 0, INF)
    ends = [0, 1, (1 << (digits - 1)) - 1, 1 << (digits - 1), inf - 1, inf]
    raws |= {e | s << (bits - 1) for e in ends for s in (0, 1)}
    raws.add(encode(name, 0, NAN))
    if name in ("F32", "F16", "BF16"):  # negative values are analogous
        raws = {r for r in raws if not r >> (bits - 1) or r % 3 == 0}
    return sorted(raws)


def main():
    print("/* conversions.h - made by tools/gen_convert_golden.py: the bits of a "
          "value, and\n * those it converts to in each dtype, in order. */")
    print('#include "lowbit.h"\n')
    print("/* clang-format off */")
    print("static const struct {\n    unsigned char dtype;\n"
          "    unsigned long long from, to[LB_N_DTYPES - 1];\n"
          "} convert_golden[] = {")
    for source in DTYPES:
        for raw in values(source):
            cells = []
            for target in DTYPES:
                got = convert(source, raw, target)
                check(source, raw, target, got)
                cells.append(f"{got:#x}" if got > 9 else str(got))
            text = "{LB_%s, %#x, {" % (source, raw) + ",".join(cells) + "}},"
            while len(text) > 80:
                cut = text.rindex(",", 0, 80) + 1
                print(text[:cut])
                text = text[cut:]
            print(text)
    print("};")
    print("/* clang-format on */")


if __name__ == "__main__":
    main()
