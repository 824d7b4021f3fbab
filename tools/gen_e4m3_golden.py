#!/usr/bin/env python3
"""gen_e4m3_golden.py - writes tests/golden/e4m3_numbers.h.

float8_e4m3fn of ml_dtypes: the f32 bits of each of the 256 codes, and the codes of
f32 values: for each pair of adjacent codes the midpoint (a tie) and its two
neighbours, and random values, up to 464 (where ml_dtypes starts to return NaN), of
either sign.

    pip install numpy ml_dtypes
    tools/gen_e4m3_golden.py > tests/golden/e4m3_numbers.h
"""
import ml_dtypes
import numpy as np

F8 = ml_dtypes.float8_e4m3fn
MOST = np.float32(464)


def bits(x):
    return x.astype(np.float32).view(np.uint32)


def numbers():
    value = np.arange(0x7F, dtype=np.uint8).view(F8).astype(np.float32)
    middle = (value[1:] + value[:-1]) / 2  # exact: needs one more bit
    near = np.concatenate([np.nextafter(middle, np.float32(0)), middle,
                           np.nextafter(middle, np.float32(1e9)), value])
    draw = np.random.default_rng(1).uniform(-14, np.log2(MOST), 500)
    tiny = np.array([0, 1e-45, 1e-38, 2**-11, MOST], np.float32)
    a = np.concatenate([near, np.exp2(draw).astype(np.float32), tiny])
    sign = np.random.default_rng(2).choice([-1, 1], a.size)
    return np.concatenate([a * sign.astype(np.float32), [np.float32(-0.0)]])


def table(rows, each):
    for i in range(0, len(rows), each):
        print("".join(rows[i:i + each]))


def main():
    code = np.arange(256, dtype=np.uint8)
    x = numbers().astype(np.float32)
    print("/* e4m3_numbers.h - made by tools/gen_e4m3_golden.py with ml_dtypes"
          f"\n * {ml_dtypes.__version__}: the f32 bits of each code, and the "
          "codes of some f32. */\n#include <stdint.h>\n\n/* clang-format off */")
    print("static const uint32_t e4m3_golden_value[256] = {")
    table([f"0x{u:08x}," for u in bits(code.view(F8))], 7)
    print("};\nstatic const struct {\n    uint32_t x;\n    uint8_t code;\n"
          "} e4m3_golden_code[] = {")
    table([f"{{0x{u:08x},0x{c:02x}}}," for u, c in
           zip(bits(x), x.astype(F8).view(np.uint8))], 4)
    print("};\n/* clang-format on */")


main()
