#!/usr/bin/env python3
"""gen_small_float_golden.py - writes tests/golden/small_float_values.h: values and codes of
floats of 8 and 4 bits, and scales of mxfp4 and mxfp8.

    pip install numpy ml_dtypes torch compressed-tensors
    python3 tools/gen_small_float_golden.py > tests/golden/small_float_values.h

Values of all codes and codes of numbers, with all ties, come from ml_dtypes; scales
from compressed-tensors (generate_mx_scales in f32); whole arrays from numpy in f32.
"""
import importlib.metadata

import ml_dtypes
import numpy as np
import torch
from compressed_tensors.quantization.utils.mxfp_utils import generate_mx_scales

KINDS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
         "e2m1": ml_dtypes.float4_e2m1fn}


def values(dtype, n):
    v = np.arange(n, dtype=np.uint8).view(dtype).astype(np.float32)
    return np.where(np.isnan(v), np.float32(np.nan), v)


def print_table(kind, name, values, form):
    print(f"static const {kind} {name}[] = {{")
    each = 14 if kind == "uint8_t" else 6
    for i in range(0, len(values), each):
        print("    " + " ".join(form(v) for v in values[i:i + each]))
    print("};")


def bits(v):
    return "0x%08x," % np.float32(v).view(np.uint32)


def inputs(dtype, n, largest):
    """Every finite value, and what is between and just beside the middles."""
    v = np.unique(np.abs(values(dtype, n)))
    v = v[np.isfinite(v)].astype(np.float32)
    v = v[v <= largest]
    mid = ((v[1:].astype(np.float64) + v[:-1]) / 2).astype(np.float32)
    x = np.concatenate([v, mid, np.nextafter(mid, np.float32(0)),
                        np.nextafter(mid, np.float32(np.inf))])
    return np.concatenate([x, -x])


def random_bits(n, seed):
    out, s = np.zeros(n, np.uint32), seed
    for i in range(n):
        s = (s * 1664525 + 1013904223) % 2**32
        out[i] = s
    return out


def digest(u):
    h = 0xcbf29ce484222325
    for b in np.ascontiguousarray(u).tobytes():
        h = (h ^ b) * 0x100000001b3 % 2**64
    return h


def tiles(x, b):
    """Scales (max / largest) of tiles of b x b, and the scale of each element."""
    rows, cols = x.shape
    grid = np.zeros((-(-rows // b), -(-cols // b)), np.float32)
    for i in range(grid.shape[0]):
        for j in range(grid.shape[1]):
            grid[i, j] = np.abs(x[i * b:i * b + b, j * b:j * b + b]).max()
    return grid, lambda g: np.kron(g, np.ones((b, b), np.float32))[:rows, :cols]


def main():
    print("/* small_float_values.h - made by tools/gen_small_float_golden.py with\n"
          f" * ml_dtypes {importlib.metadata.version('ml_dtypes')} and compressed-tensors "
          f"{importlib.metadata.version('compressed-tensors')}. */\n"
          "#include <stdint.h>\n\n/* clang-format off */")
    for name, dtype in KINDS.items():
        n = 16 if name == "e2m1" else 256
        most = float(ml_dtypes.finfo(dtype).max)
        print_table("uint32_t", f"golden_{name}", values(dtype, n), bits)
        x = inputs(dtype, n, most)
        codes = x.astype(dtype).view(np.uint8)
        print_table("uint32_t", f"golden_{name}_in", x, bits)
        print_table("uint8_t", f"golden_{name}_out", codes, lambda c: f"{c},")
    e8m0 = values(ml_dtypes.float8_e8m0fnu, 256)
    print_table("uint32_t", "golden_e8m0", e8m0, bits)
    most = np.array([1, 1.4, 1.5, 1.7499999, 1.75, 1.76, 1.9999999, 2, 3, 3.49, 3.5, 6,
                     7, 448, 449, 511, 512, 1e-20, 1e20, 0.001, 2.0**-100], np.float32)
    print_table("uint32_t", "golden_most", most, bits)
    for b in (4, 8):
        e = generate_mx_scales(torch.from_numpy(most), num_bits=b)
        print_table("uint8_t", f"golden_scale{b}", e.to(torch.uint8).numpy(),
                    lambda c: f"{c},")
    # Arrays of shape (200,300) in tiles of 128, with values (u32 - 2^31) 2^-28.
    u = random_bits(200 * 300, 7).reshape(200, 300)
    x = ((u.astype(np.float64) - 2.0**31) * 2.0**-28).astype(np.float32)
    print("static const struct {\n    const char *name;\n"
          "    uint64_t codes, scale;\n} golden_arrays[] = {")
    for name in ("e4m3", "e5m2"):
        most = np.float32(ml_dtypes.finfo(KINDS[name]).max)
        grid, spread = tiles(x, 128)
        scale = grid / most
        codes = np.clip(x / spread(scale), -most, most).astype(KINDS[name])
        print(f'    {{"fp8_{name}", 0x{digest(codes.view(np.uint8)):016x}, '
              f"0x{digest(scale):016x}}},")
    print("};\n/* clang-format on */")


main()
