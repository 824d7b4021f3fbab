#!/usr/bin/env python3
"""gen_gguf_grids.py - writes src/kernels/gguf_grids.c from gguf-py.

    pip install gguf
    python3 tools/gen_gguf_grids.py > src/kernels/gguf_grids.c

Each point of a grid becomes one integer: its coordinates are indices of the
magnitudes, 2 bits each for 8 dimensions and 3 for 4.
"""
import importlib.metadata

import numpy as np
from gguf import quants

GRIDS = [("iq2_xxs", quants.IQ2_XXS), ("iq2_xs", quants.IQ2_XS),
         ("iq2_s", quants.IQ2_S), ("iq3_xxs", quants.IQ3_XXS),
         ("iq3_s", quants.IQ3_S), ("iq1", quants.IQ1_S)]


def points(kind):
    kind.init_grid()
    grid = kind.grid.reshape(kind.grid_shape)
    levels = list(kind.grid_map)
    bits = 16 // kind.grid_shape[1]
    bits = 3 if bits == 4 else bits
    assert len(levels) <= 1 << bits
    index = np.vectorize(levels.index)(grid)
    return (index << bits * np.arange(kind.grid_shape[1])).sum(-1)


def table(name, values):
    print(f"\nconst uint16_t lb_gguf_{name}[{len(values)}] = {{")
    line = "   "
    for v in values:
        if len(line) + len(v) + 2 > 80:
            print(line)
            line = "   "
        line += f" {v},"
    print(line + "\n};")


def main():
    print("/* gguf_grids.c - the grids of ggml's IQ types: see gguf_decode.h. Made by\n"
          " * tools/gen_gguf_grids.py from gguf-py "
          + importlib.metadata.version("gguf") + ".\n"
          " *\n"
          " * The grids are data of ggml (MIT license, Copyright (c) 2023-2026 The ggml\n"
          " * authors).\n"
          " */\n"
          '#include "kernels/gguf_decode.h"\n\n/* clang-format off */')
    for name, kind in GRIDS:
        table(name, [f"0x{v:x}" for v in points(kind)])


main()
