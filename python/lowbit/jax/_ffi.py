"""The library's handlers as JAX functions: encode, decode and products.

A quantized array crosses as its parts (u8 or i8 codes, scales) and a description of them
in the attributes of the call; see python/src/py_ffi.h. Nothing is copied on the way in.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _lowbit

for _name, _capsule in _lowbit._ffi_handlers().items():
    jax.ffi.register_ffi_target(_name, _capsule, platform="cpu")
del _name, _capsule

# Values of lb_dtype and of the enums of lb_quant_config.
_DTYPES = {
    name: code + 1
    for code, name in enumerate(
        "float32 float16 bfloat16 float64 int8 int16 int32 int64 "
        "uint8 uint16 uint32 uint64 bool".split()
    )
}
_WORDS = {
    "compat": ("native", "eformer", "bnb-cuda", "bnb-cpu"),
    "decode": ("table", "poly"),
    "scale": ("default", "none", "tensor", "row", "block"),
    "meaning": ("scale", "absmax", "inverse"),
    "threshold": ("std", "absmean"),
    "blocks": ("default", "in-rows", "flat"),
    "on_nonfinite": ("error", "clamp"),
}
# The parts of scales in 8 bits (double_quant), and their numbers in the library.
SCALE_PARTS = {"codes": 0, "absmax": 1, "offset": 3}
# Elements in a byte of codes.
PER_BYTE = {"int8": 1, "nf4": 2, "ternary": 4, "binary": 8, "dynamic8": 1}


def dtype_code(dtype: Any) -> int:
    name = jnp.dtype(dtype).name
    if name not in _DTYPES:
        raise TypeError(f"lowbit has no dtype {name}")
    return _DTYPES[name]


@dataclasses.dataclass(frozen=True)
class Coding:
    """How an array is stored, apart from its shape: the static part of a pytree."""

    format: str
    dtype: np.dtype
    options: tuple[tuple[str, Any], ...] = ()  # sorted members of lb_quant_config

    def get(self, name: str, default: Any = None) -> Any:
        return dict(self.options).get(name, default)

    def config(self) -> dict[str, Any]:
        return {
            "format": self.format,
            "dtype": self.dtype.name,
            **dict(self.options),
        }

    @property
    def block_size(self) -> int:
        return self.get("block_size") or (256 if self.format == "dynamic8" else 64)

    @property
    def group(self) -> int:
        """Elements of the last axis that must stay together."""
        grouped = self.format in ("nf4", "dynamic8") or self.get("scale") == "block"
        return self.block_size if grouped else PER_BYTE[self.format]


def parts_of(coding: Coding, shape: tuple[int, ...]) -> list[tuple[str, int, Any]]:
    """(name, index, ShapeDtypeStruct) of each part of such an array."""
    # The dtype of eformer's scales is that of the input, which quantize records.
    source = coding.get("source") or coding.dtype.name
    config = {k: v for k, v in coding.config().items() if k != "source"}
    return [
        (name, index, jax.ShapeDtypeStruct(dims, _numpy_dtype(dtype)))
        for name, index, dtype, dims in _lowbit._ffi_parts(config, source, shape)
    ]


def _numpy_dtype(dtype: Any) -> np.dtype:
    return jnp.dtype(str(dtype).rsplit(".", 1)[-1])


def scale_coding() -> Coding:
    """How double_quant stores scales."""
    return Coding("dynamic8", jnp.dtype("float32"), (("center", True),))


@functools.lru_cache(maxsize=None)
def poly_table() -> np.ndarray:
    """The values of eformer's polynomial."""
    q = _lowbit._quantize([[0.0, 0.0]], {"format": "nf4", "decode": "poly"})
    return np.array(q.parts["table"], np.float32).reshape(-1)


def _spec(
    coding: Coding,
    mask: int,
    shape: tuple[int, ...],
    perm: tuple[int, ...] | None,
    axes: tuple[int, ...] = (),
) -> np.ndarray:
    words = {
        name: known.index(coding.get(name) or known[0]) for name, known in _WORDS.items()
    }
    return np.array(
        [
            dtype_code(coding.dtype),
            mask,
            coding.get("block_size") or 0,
            *words.values(),
            bool(coding.get("reference")),
            bool(coding.get("center")),
            bool(coding.get("double_quant")),
            len(axes),
            *axes,
            len(shape),
            *shape,
            *((0,) if perm is None else (len(perm), *perm)),
        ],
        np.int64,
    )


def buffers(coding: Coding | None, parts: tuple[Any, ...], rank: int) -> list[Any]:
    """The buffers of an operand: its parts, and its levels if they are not the format's."""
    if coding is None:
        return [parts[0]]
    if coding.get("decode") != "poly":
        return list(parts)
    return [*parts, jnp.asarray(poly_table()).reshape((1,) * rank + (-1,))]


def _attributes(
    i: int,
    coding: Coding | None,
    n: int,
    shape: tuple[int, ...],
    perm: tuple[int, ...] | None,
) -> dict[str, Any]:
    """Of operand i, which has n buffers."""
    if coding is None:
        return {}
    mask = (1 << n) - 1
    if coding.get("double_quant"):
        mask >>= len(SCALE_PARTS) - 1  # they are one part
    elif coding.format == "dynamic8":
        mask = sum(1 << part for part in SCALE_PARTS.values())
    # Without axes: parts show which axes share a scale, also where leading ones were removed.
    return {f"f{i}": coding.format, f"a{i}": _spec(coding, mask, shape, perm)}


def decode_call(
    coding: Coding,
    parts: tuple[Any, ...],
    shape: tuple[int, ...],
    perm: tuple[int, ...] | None,
) -> jax.Array:
    """parts: as buffers() returns them."""
    out = tuple(shape[k] for k in perm) if perm else shape
    call = jax.ffi.ffi_call("lowbit_decode", jax.ShapeDtypeStruct(out, coding.dtype))
    return call(*parts, **_attributes(0, coding, len(parts), shape, perm))


def encode_call(coding: Coding, x: Any) -> tuple[jax.Array, ...]:
    """The parts of x quantized; integers are codes."""
    parts = [p for p in parts_of(coding, x.shape) if p[0] != "table"]
    mask = sum(1 << index for index in {index for _, index, _ in parts})
    spec = _spec(coding, mask, x.shape, None, coding.get("axes") or ())
    call = jax.ffi.ffi_call("lowbit_encode", [aval for _, _, aval in parts])
    return tuple(call(x, f0=coding.format, a0=spec))


@dataclasses.dataclass(frozen=True)
class Operand:
    """Of a product. coding: None if it is dense; shape: the stored one."""

    coding: Coding | None
    buffers: list[Any]
    shape: tuple[int, ...]
    perm: tuple[int, ...] | None

    def attributes(self, i: int) -> dict[str, Any]:
        return _attributes(i, self.coding, len(self.buffers), self.shape, self.perm)


def dot_general_call(
    lhs: Operand, rhs: Operand, dims: np.ndarray, out: jax.ShapeDtypeStruct
) -> jax.Array:
    call = jax.ffi.ffi_call("lowbit_dot_general", out)
    words = {**lhs.attributes(0), **rhs.attributes(1)}
    return call(*lhs.buffers, *rhs.buffers, **words, dims=dims)
