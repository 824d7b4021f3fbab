"""ggml_numpy.py - decodes GGUF's block types with numpy, after docs/formats.md.

numbers(fmt, blocks): u8 (.., blocks, bytes of a block) as f32 (.., elements).
A block consists of d, an f16, and codes, in either order. Codes of a run of bytes
are in this order: the first code of each byte, then the second ones, and so on.
"""
import numpy as np

BYTE = np.arange(256)[:, None]
IQ4_NL = np.array([-127, -104, -83, -65, -49, -35, -22, -10,
                   1, 13, 25, 38, 53, 69, 89, 113])
CODES = {  # of each byte
    "q8_0": BYTE.astype("i1"),
    "q4_0": (BYTE >> [0, 4] & 15) - 8,
    "iq4_nl": IQ4_NL[BYTE >> [0, 4] & 15],
    "tq1_0": ((BYTE * 3 ** np.arange(5) & 255) * 3 >> 8) - 1,
    "tq2_0": (BYTE >> [0, 2, 4, 6] & 3) - 1,
}


def flat(a):
    """The last two axes as one."""
    return a.reshape(*a.shape[:-2], a.shape[-2] * a.shape[-1])


def numbers(fmt, blocks):
    d_last = fmt in ("tq1_0", "tq2_0")
    d, codes = np.split(np.roll(blocks, 2, -1) if d_last else blocks, [2], -1)
    runs = np.split(codes, [32, 48] if fmt == "tq1_0" else [32], -1)
    w = [flat(CODES[fmt][run].swapaxes(-1, -2)) for run in runs]
    # tq1_0: the last four bytes have four, and no fifth
    w = np.concatenate(w, -1)[..., :256]
    return flat(np.float32(d.copy().view("<f2")) * np.float32(w))
