"""Typed uses of the package, which `make test-python` checks with mypy --strict."""

from pathlib import Path
from typing import Any, assert_type

import numpy as np
import lowbit

x = lowbit.array([[1, 2], [3, 4]], dtype="float32")
assert_type(x, lowbit.Array)
assert_type(x @ np.ones((2, 2), "f4") + 1, lowbit.Array)
assert_type(x[0, ::2, None, ...], lowbit.Array)
assert_type(x.shape, tuple[int, ...])
assert_type(x == 1, lowbit.Array)
q = lowbit.quantize(x, "int8", axes=0)
assert_type(q, lowbit.Array)
assert_type(lowbit.quantize(x, lowbit.QuantizationConfig("nf4", 32)), lowbit.Array)
assert_type(lowbit.softmax(x, axis=-1), lowbit.Array)
assert_type(lowbit.sum(x, axis=(0, 1)), lowbit.Array)
assert_type(lowbit.open(Path("a")), lowbit.File)


def loss(p: dict[str, lowbit.Array]) -> lowbit.Array:
    return lowbit.mean(p["w"])


value, gradient = lowbit.value_and_grad(loss)({"w": x})
report: dict[str, Any] = lowbit.files.quantize("a", "b", "nf4")
with lowbit.config(threads=1), lowbit.open("a") as f:
    assert_type(f["w"], lowbit.Array)
    assert_type(f.keys(), list[str])
lowbit.softmax(x, axis="0")  # type: ignore[arg-type]
lowbit.quantize(x, block_size="32")  # type: ignore[arg-type]
