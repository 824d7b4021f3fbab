#!/usr/bin/env python3
"""gen_print_golden.py - writes tests/golden/print.txt: arrays as printed
by numpy's array2string. Needs numpy 2.4.

    python3 tools/gen_print_golden.py > tests/golden/print.txt

A case is a line
    dtype shape precision threshold edge width suppress lines
then a line with the elements in hexadecimal, little-endian, then the text.
"""

import sys

import numpy as np

NAMES = {"f2": "f16", "f4": "f32", "f8": "f64", "i1": "i8", "i2": "i16", "i4": "i32",
         "i8": "i64", "u1": "u8", "u2": "u16", "u4": "u32", "u8": "u64", "b1": "bool"}


def case(a, precision=8, threshold=1000, edge=3, width=75, suppress=False):
    a = np.ascontiguousarray(a).reshape(np.shape(a))
    text = np.array2string(a, max_line_width=width, precision=precision,
                           suppress_small=suppress,
                           threshold=sys.maxsize if threshold < 0 else threshold,
                           edgeitems=edge)
    shape = ",".join(map(str, a.shape)) or "-"
    lines = text.split("\n")
    print(NAMES[a.dtype.str[1:]], shape, precision or -1, threshold, edge, width,
          int(suppress), len(lines))
    print(a.tobytes().hex() or "-")
    print(text)


def floats(rng):
    special = [0.0, -0.0, 1.0, -1.0, 0.1, 1 / 3, 2.5, 100.0, 1e-4, 9e-5, 999.0, 1e3,
               1001.0, 65504.0, 1e5, 999999.0, 1e6, 99999999.0, 1e8, 1e-7, 5e-324,
               1.5e-45, 6e-8, 1e30, 1.7976931348623157e308, 123456.789, 0.30000000000000004,
               np.nan, np.inf, -np.inf, 16777216.0, 2049.0, 1e100, 1e-100]
    for t in ("f2", "f4", "f8"):
        with np.errstate(over="ignore"):
            every = np.array(special).astype(t)
        for x in every:
            case(x)
            case(np.array([x, 1], t))
            case(np.array([x, -2.25, 0], t), precision=3)
        case(every)
        case(every, precision=0, suppress=True)
        case(every[np.isfinite(every)])
        case(np.array([np.nan, 1], t))
        case(np.array([np.nan, -np.inf], t))
        case(np.array([np.inf, 1e-6], t))
        for precision in (0, 1, 4, 8, 17):
            for suppress in (False, True):
                for scale in (1, 1e-3, 30, 1e-6, 1e4):
                    a = (rng.standard_normal((3, 4)) * scale).astype(t)
                    case(a, precision=precision, suppress=suppress)
        case(rng.standard_normal((2, 3, 2, 2)).astype(t), precision=4)
        case(rng.standard_normal((5, 40)).astype(t))
        case(rng.standard_normal((2, 17)).astype(t), width=40)
        case(rng.standard_normal((2, 17)).astype(t), width=1)
        case(np.round(rng.standard_normal(50) * 4).astype(t) / 4, width=20)
    case(np.zeros((0,), "f4"))
    case(np.zeros((3, 0, 2), "f8"))


def integers(rng):
    for t in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        info = np.iinfo(t)
        case(np.array([info.min, 0, info.max], t))
        case(np.array(info.max, t))
        case(rng.integers(0, 100, (4, 5)).astype(t))
        case(np.arange(60).astype(t).reshape(3, 20), width=30)
    case(np.array(True))
    case(np.array([True, True]))
    case(rng.integers(0, 2, (3, 40)) == 1)


def summaries():
    a = np.arange(-700, 701).astype("i2")
    case(a)
    case(a, edge=1)
    case(a, threshold=-1)
    case(a[:1000])
    case((a / 8).astype("f4"), edge=5, width=40)
    for shape in ((24, 50), (2, 600), (600, 2), (5, 6, 7, 8), (7, 3, 60), (1, 1, 1200)):
        n = int(np.prod(shape))
        case((np.arange(n) % 100).astype("u1").reshape(shape))
        case((np.arange(n) % 100).astype("u1").reshape(shape), threshold=10, edge=2)
    case(np.arange(8).astype("u1"), threshold=4, edge=4)
    case(np.arange(9).astype("u1"), threshold=4, edge=4)


def main():
    print("# numpy", np.__version__)
    rng = np.random.default_rng(29)
    floats(rng)
    integers(rng)
    summaries()


main()
