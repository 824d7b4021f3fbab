#!/usr/bin/env python3
"""gen_gguf_decode_golden.py - writes tests/golden/gguf_read_only.h: hashes of the values
of random blocks of the GGUF types that lowbit only reads.

    pip install numpy gguf xllamacpp
    python3 tools/gen_gguf_decode_golden.py > tests/golden/gguf_read_only.h

The values come from ggml (exported by xllamacpp) and from gguf-py, which must agree in
all bits (NaNs count as equal) if gguf-py knows the type. Bytes are arbitrary: scales
are also huge, subnormal, infinite and NaN.
"""
import ctypes
import importlib.metadata

import numpy as np
import xllamacpp
from gguf import GGMLQuantizationType, quants

# as ggml spells it, elements per block, bytes
TYPES = [("q4_1", 32, 20), ("q5_0", 32, 22), ("q5_1", 32, 24), ("q2_K", 256, 84),
         ("q3_K", 256, 110), ("q4_K", 256, 144), ("q5_K", 256, 176),
         ("q6_K", 256, 210), ("iq4_xs", 256, 136), ("iq3_s", 256, 110),
         ("iq3_xxs", 256, 98), ("iq2_s", 256, 82), ("iq2_xs", 256, 74),
         ("iq2_xxs", 256, 66), ("iq1_m", 256, 56), ("iq1_s", 256, 50),
         ("mxfp4", 32, 17), ("nvfp4", 64, 36), ("q2_0", 64, 18), ("q1_0", 128, 18)]
BLOCKS = 300


def random_bytes(n, seed):
    out, s = np.zeros(n, np.uint8), seed
    for i in range(n):
        s = (s * 1664525 + 1013904223) % 2**32
        out[i] = s >> 24
    return out


def digest(x):
    h = 0xcbf29ce484222325
    u = np.where(np.isnan(x), 0x7fc00000, x.view(np.uint32)).astype("<u4")
    for b in u.tobytes():
        h = (h ^ b) * 0x100000001b3 % 2**64
    return h


def main():
    lib = ctypes.CDLL(xllamacpp.xllamacpp.__file__)
    print("/* gguf_read_only.h - made by tools/gen_gguf_decode_golden.py from ggml\n"
          f" * (xllamacpp {importlib.metadata.version('xllamacpp')}) and gguf-py "
          f"{importlib.metadata.version('gguf')}. */\n#include <stdint.h>\n\n"
          "/* clang-format off */\n"
          "static const struct {\n    const char *name;\n    int len, size;\n"
          "    uint64_t values; /* of GOLDEN_BLOCKS blocks */\n} golden[] = {")
    for name, length, size in TYPES:
        raw = random_bytes(BLOCKS * size, size)
        out = np.zeros(BLOCKS * length, np.float32)
        getattr(lib, f"dequantize_row_{name}")(raw.ctypes, out.ctypes,
                                               ctypes.c_int64(out.size))
        kind = getattr(GGMLQuantizationType, name.upper(), None)
        if kind is not None and hasattr(quants, name.upper()):
            with np.errstate(all="ignore"):
                also = quants.dequantize(raw.reshape(1, -1), kind).reshape(-1)
            same = (out.view(np.uint32) == also.view(np.uint32)) | (
                np.isnan(out) & np.isnan(also))
            assert same.all(), name
        own = "gguf_" if name in ("mxfp4", "nvfp4") else ""  # which are others
        print(f'    {{"{own}{name.lower()}", {length}, {size}, '
              f"0x{digest(out):016x}}},")
    print(f"}};\n/* clang-format on */\n\nenum {{ GOLDEN_BLOCKS = {BLOCKS} }};")


main()
