"""Packed: a quantized array as tensors and a text.

torch stores, copies and traces tensors; lowbit computes with an Array, which shares their
memory. The text is the array's descriptor (docs/formats.md): with the parts it is what a
`native` file contains. Arrays are made once for the same tensors: making one checks that all
codes are valid.
"""

from __future__ import annotations

import functools
import json
import math
import weakref
from typing import Any, NamedTuple

import torch

import lowbit
from lowbit import _lowbit

DTYPES = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f64": torch.float64,
    "i8": torch.int8,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


class Info(NamedTuple):
    """What a descriptor says."""

    format: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    names: tuple[str, ...]  # of the parts


def _names(described: dict[str, Any], prefix: str = "") -> list[str]:
    found = []
    for name, part in described["parts"].items():
        if "array" in part:
            found += _names(part["array"], f"{prefix}{name}.")
        else:
            found.append(prefix + name)
    return found


@functools.lru_cache(maxsize=4096)
def info(spec: str) -> Info:
    try:
        d = json.loads(spec)
        names = tuple(_names(d))
        return Info(str(d["format"]), DTYPES[d["dtype"]], tuple(d["shape"]), names)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as e:
        raise lowbit.ContentError(
            f"{spec[:80]!r} is not the descriptor of an array: {e!r}"
        ) from e


# ---- arrays of tensors


class _Entry(NamedTuple):
    spec: str
    tensors: tuple[weakref.ref[torch.Tensor], ...]
    state: tuple[int, ...]
    array: lowbit.Array


_arrays: dict[int, _Entry] = {}  # by id of the first part, while it lives


def _state(parts: list[torch.Tensor]) -> tuple[int, ...]:
    """Changes if a tensor is written to, or gets other memory."""
    versions = (0 if t.is_inference() else t._version for t in parts)
    return (*versions, *(t.data_ptr() for t in parts))


def _remember(
    spec: str, parts: list[torch.Tensor], array: lowbit.Array
) -> lowbit.Array:
    key = id(parts[0])
    _arrays[key] = _Entry(
        spec,
        (
            weakref.ref(parts[0], lambda _: _arrays.pop(key, None)),
            *(weakref.ref(t) for t in parts[1:]),
        ),
        _state(parts),
        array,
    )
    return array


def array_of(spec: str, parts: list[torch.Tensor]) -> lowbit.Array:
    """The Array of these tensors, which shares their memory."""
    entry = _arrays.get(id(parts[0])) if parts else None
    if (
        entry is not None
        and entry.spec == spec
        and len(entry.tensors) == len(parts)
        and all(r() is t for r, t in zip(entry.tensors, parts))
        and entry.state == _state(parts)
    ):
        return entry.array
    names = info(spec).names
    if len(names) != len(parts):
        raise lowbit.ArgumentError(
            f"{len(parts)} tensors, but the descriptor has {len(names)} parts: "
            + ", ".join(names)
        )
    shared = {n: lowbit.asarray(t.detach().contiguous()) for n, t in zip(names, parts)}
    return _remember(spec, parts, _lowbit._from_descriptor(spec, shared))


# ---- packed weights


class Packed:
    """A quantized array as tensors: parts, in the order of the descriptor `spec`.

    >>> q = Packed.from_array(lowbit.quantize(lowbit.ones((4, 64)), "nf4"))
    >>> q
    Packed(nf4, (4, 64), torch.float32, 4.5 bits)
    >>> q.array().format
    'nf4'
    """

    __slots__ = ("spec", "parts")

    def __init__(self, spec: str, parts: list[torch.Tensor]) -> None:
        self.spec, self.parts = spec, list(parts)

    @staticmethod
    def from_array(array: lowbit.Array) -> Packed:
        """The tensors share the array's memory and must not be written to."""
        if array.format == "dense":
            raise lowbit.ArgumentError(
                f"Packed: {array.describe()} is not quantized (lowbit.quantize)"
            )
        try:
            spec, stored = _lowbit._to_parts(array)
        except lowbit.UnsupportedError:  # a view: its parts, copied
            array = _lowbit._from_parts(array.config, array.shape, array.parts)
            spec, stored = _lowbit._to_parts(array)
        parts = [torch.from_dlpack(a) for a in stored.values()]
        _remember(spec, parts, array)
        return Packed(spec, parts)

    def array(self) -> lowbit.Array:
        """The lowbit.Array that shares these tensors' memory."""
        return array_of(self.spec, self.parts)

    @property
    def shape(self) -> torch.Size:
        return torch.Size(info(self.spec).shape)

    @property
    def dtype(self) -> torch.dtype:
        """Of the decoded values."""
        return info(self.spec).dtype

    @property
    def format(self) -> str:
        return info(self.spec).format

    @property
    def names(self) -> tuple[str, ...]:
        """Of the parts: "codes", "absmax", ..."""
        return info(self.spec).names

    @property
    def nbytes(self) -> int:
        return sum(t.nbytes for t in self.parts)

    @property
    def bits(self) -> float:
        """Bits per element, scales included."""
        return 8 * self.nbytes / max(1, math.prod(self.shape))

    def to(self, dtype: torch.dtype) -> Packed:
        """The same bytes, decoded to another float dtype."""
        return Packed(with_dtype(self.spec, dtype), self.parts)

    def __repr__(self) -> str:
        return f"Packed({self.format}, {tuple(self.shape)}, {self.dtype}, {self.bits:.4g} bits)"


@functools.lru_cache(maxsize=4096)
def with_dtype(spec: str, dtype: torch.dtype) -> str:
    if dtype not in NAMES:
        raise lowbit.DtypeError(f"{dtype} is not a dtype that packed arrays decode to")
    d = json.loads(spec)
    return json.dumps({**d, "dtype": NAMES[dtype]})
