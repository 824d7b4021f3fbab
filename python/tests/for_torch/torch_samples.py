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
    parts = {}
    if name == "nvfp4":
        scale = rng.uniform(0.5, 2, (rows, columns // 16)).astype("f4")
        parts["scale"] = lowbit.quantize(scale, "fp8_e4m3", scale="tensor")
    for part, least, limit in (("blocks", 1, 0x38), ("codes", 120, 130)):
        parts[part] = np.zeros((rows, 1), "u1")
        try:
            lowbit.from_parts({"format": name}, (rows, columns), parts)
        except lowbit.ShapeError as e:  # part blocks has shape (24,1), not (24,2,54) for ..
            wanted = str(e).partition("not (")[2].partition(")")[0].split(",")
            shape = [int(n) for n in wanted]
            parts[part] = rng.integers(least, limit, shape, dtype="u1")
            return lowbit.from_parts({"format": name}, (rows, columns), parts)
        except lowbit.ArgumentError:  # it has no such part
            del parts[part]
    raise AssertionError(f"no sample of {name}")


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
