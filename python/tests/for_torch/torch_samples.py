"""Shared by the tests of lowbit.torch: packed weights in every format.

The directory is not called torch, which `import torch` would find.
"""

import numpy as np
import pytest

import lowbit

ENCODED = [f for f in lowbit.formats() if lowbit.can_quantize(f)]
READ_ONLY = [f for f in lowbit.formats() if f != "dense" and f not in ENCODED]


def read_only(name, rows, columns):
    """An array of a format that can only be read: bytes for which every scale is finite."""
    rng = np.random.default_rng(7)
    parts = {
        "nvfp4": lambda: {
            "codes": rng.integers(0, 256, (rows, columns // 2), dtype="u1"),
            "scale": lowbit.quantize(
                rng.uniform(0.5, 2, (rows, columns // 16)).astype("f4"),
                "fp8_e4m3",
                scale="tensor",
            ),
        },
        "e8m0": lambda: {"codes": rng.integers(120, 130, (rows, columns), dtype="u1")},
    }
    if name in parts:
        return lowbit.from_parts({"format": name}, (rows, columns), parts[name]())
    message = ""
    for n in range(1, 300):  # bytes of a block: those of the error are tried
        try:
            blocks = rng.integers(1, 0x38, (rows, *blocks_of(message, n)), dtype="u1")
            return lowbit.from_parts({"format": name}, (rows, columns), {"blocks": blocks})
        except lowbit.ShapeError as e:
            message = str(e)
    raise AssertionError(message)


def blocks_of(message, n):
    """The shape that "part blocks has shape (..), not (..) for .." requires."""
    _, _, wanted = message.partition("not (")
    return [int(k) for k in wanted.partition(")")[0].split(",")[1:]] or (1, n)


def weight(name, rows=24, columns=512):
    """A quantized array of any format."""
    if name in READ_ONLY:
        return read_only(name, rows, columns)
    w = np.random.default_rng(3).standard_normal((rows, columns)).astype("f4")
    return lowbit.quantize(w, name)


@pytest.fixture(params=[*ENCODED, *READ_ONLY])
def packed(request):
    """A packed weight (24,512) in every format of the registry."""
    from lowbit.torch import Packed

    return Packed.from_array(weight(request.param))
