"""Quantized arrays as pytrees: Array8B, ArrayNF4 and Array1B.

The children are the library's parts: codes as packed bytes, and scales. What bytes do not
show (format, dtype, size of the last axis, order of the axes) is static. The shape follows
from the parts, so that arrays stay whole where JAX maps over leading axes of leaves:
vmap, scan, shard_map.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _calls, _sharding
from ._ffi import PER_BYTE, SCALE_PARTS, Coding, parts_of, scale_coding
from ._implicit import ImplicitArray

# nf4: codes in the padding of the last byte and block, as in eformer.
_PADDING = 0x77


@dataclasses.dataclass(frozen=True)
class _Static:
    coding: Coding
    pad: int | None = 0  # elements that the last byte of a row has room for; None: a scalar
    perm: tuple[int, ...] | None = None  # of the last axes, counted from the end
    sharding: Any = None


class QuantizedArray(ImplicitArray):
    """An array stored as codes and scales; see quantize()."""

    _parts: dict[str, Any]
    _static: _Static

    @classmethod
    def _make(cls, static: _Static, parts: dict[str, Any]) -> Any:
        a: Any = object.__new__(_CLASSES.get(static.coding.format, cls))
        a._static, a._parts = static, parts
        return a

    @classmethod
    def _encode(cls, coding: Coding, x: Any) -> Any:
        """x quantized; integers are codes."""
        names = [name for name, *_ in parts_of(coding, x.shape) if name != "table"]
        parts = _calls.encode(coding, x)
        return cls._make(
            _Static(_settled(coding), _pad(coding, x.shape)), dict(zip(names, parts))
        )

    # -- pytree --

    def tree_flatten_with_keys(self) -> Any:
        keys = [jax.tree_util.GetAttrKey(name) for name in self._parts]
        return tuple(zip(keys, self._parts.values())), (tuple(self._parts), self._static)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Any:
        names, static = aux
        return cls._make(static, dict(zip(names, children)))

    def _replace(self, **changes: Any) -> Any:
        return self._make(dataclasses.replace(self._static, **changes), dict(self._parts))

    # -- what it is --

    @property
    def _stored(self) -> tuple[int, ...]:
        codes = self._parts["codes"]
        return _calls.stored_shape(self._static.coding, self._static.pad, codes.shape)

    @property
    def _axes(self) -> tuple[int, ...]:
        """The stored axis of each axis."""
        rank = len(self._stored)
        return _calls.full_perm(self._static.perm, rank) or tuple(range(rank))

    @property
    def shape(self) -> tuple[int, ...]:
        stored = self._stored
        return tuple(stored[k] for k in self._axes)

    @property
    def dtype(self) -> np.dtype:
        return self._static.coding.dtype

    @property
    def format(self) -> str:
        """The library's name of the format: "nf4"."""
        return self._static.coding.format

    @property
    def parts(self) -> dict[str, Any]:
        """The stored arrays by name, in the order of the stored axes."""
        return dict(self._parts)

    @property
    def nbytes(self) -> int:
        """Bytes of codes and scales."""
        return sum(int(np.prod(p.shape)) * p.dtype.itemsize for p in self._parts.values())

    @property
    def sharding(self) -> Any:
        """What with_sharding was given; None if nothing."""
        return self._static.sharding

    @property
    def is_sharded(self) -> bool:
        return self.sharding is not None

    @property
    def side(self) -> _calls.Side:
        s = self._static
        return _calls.Side(s.coding, s.pad, s.perm)

    @property
    def leaves(self) -> tuple[Any, ...]:
        return tuple(self._parts.values())

    @property
    def by_rows(self) -> bool:
        """Whether slices along axis 0 are slices of the parts."""
        if len(self.shape) < 2 or self._axes[0] != 0:
            return False
        # Scales in 8 bits are one row, after axes that jax.vmap has added.
        row = self._parts.get("absmax.codes", self._parts.get("scale.codes"))
        return row is None or row.ndim > 1

    # -- values --

    def materialize(self) -> jax.Array:
        """The values as a dense array."""
        s = self._static
        values = _calls.decode(s.coding, s.pad, s.perm, *self.leaves)
        return _sharding.constrain(values, self.sharding)

    dequantize = materialize

    def delete(self) -> None:
        """Frees the memory of the parts now."""
        for part in self._parts.values():
            if hasattr(part, "delete"):
                part.delete()

    def _scales(self, name: str) -> Any:
        """The scales, decoded if they are quantized themselves."""
        if name in self._parts or f"{name}.codes" not in self._parts:
            return self._parts.get(name)
        parts = [self._parts[f"{name}.{part}"] for part in SCALE_PARTS]
        values = _calls.decode(scale_coding(), 0, None, *parts)
        plain = dataclasses.replace(self._static.coding, options=tuple(
            o for o in self._static.coding.options if o[0] != "double_quant"
        ))  # fmt: skip
        lead = parts[0].ndim - 1
        inner = self._stored[lead:]
        (shape,) = (a.shape for n, _, a in parts_of(plain, inner) if n == name)
        return values.reshape(*self._stored[:lead], *shape)

    def codes(self) -> jax.Array:
        """One integer for each element, in the order of the stored axes."""
        return _unpacked(self.format, self._parts["codes"], self._stored)

    def astype(self, dtype: Any) -> Any:
        """Another dtype of the values: a float dtype is only recorded."""
        dtype = jnp.dtype(dtype)
        if dtype == self.dtype:
            return self
        if not jnp.issubdtype(dtype, jnp.floating):
            return self.materialize().astype(dtype)
        coding = dataclasses.replace(self._static.coding, dtype=dtype)
        return self._replace(coding=coding)

    def transpose(self, *axes: Any) -> Any:
        """The same bytes in another order of the axes."""
        rank = len(self.shape)
        if len(axes) == 1 and not isinstance(axes[0], int):
            (axes,) = axes
        order = tuple(reversed(range(rank))) if not axes or axes[0] is None else axes
        order = tuple(int(k) + rank if k < 0 else int(k) for k in order)
        if sorted(order) != list(range(rank)):
            raise ValueError(f"transpose: {order} is not an order of {rank} axes")
        now = self._axes
        sharding = _sharding.permuted(self.sharding, order, rank)
        return self._replace(
            perm=_tail(tuple(now[k] for k in order)), sharding=sharding
        )

    @property
    def T(self) -> Any:
        return self.transpose()

    def stacked(self) -> Any:
        """The array with every part sliceable along axis 0, for jax.lax.scan; dense if
        the axis is not the first stored one."""
        n = self.shape[0] if self.shape else 0
        if not self.by_rows:
            return self.materialize()
        parts = {
            name: jnp.broadcast_to(p, (n, *p.shape[1:])) if p.shape[0] != n else p
            for name, p in self._parts.items()
        }
        return self._make(dataclasses.replace(self._static, sharding=None), parts)

    # -- sharding --

    def with_sharding(self, sharding: Any, relaxed: bool = False) -> Any:
        """The array with its parts on the devices of a mesh.

        sharding: a NamedSharding; a PartitionSpec, in a context of a mesh; or None, which
        forgets it. Entries of the spec that cannot be applied to codes (the axis is not
        divisible, or blocks would be cut) are an error that names the numbers; with
        relaxed they are dropped, with a warning.
        """
        named = _sharding.named(sharding, relaxed)
        if named is None:
            return self._replace(sharding=None)
        specs, kept = _sharding.part_specs(
            named, self.shape, self._axes, self._stored, self._static.coding,
            {name: tuple(p.shape) for name, p in self._parts.items()}, relaxed,
        )
        placed = {
            name: _sharding.place(part, named.mesh, specs[name])
            for name, part in self._parts.items()
        }
        return self._make(dataclasses.replace(self._static, sharding=kept), placed)

    reshard = with_sharding

    def with_mesh_and_axis(self, mesh_and_axis: Any, relaxed: bool = False) -> Any:
        """with_sharding for a mesh and None, a PartitionSpec, a tuple, or a name."""
        return self.with_sharding(_sharding.from_mesh_and_axis(mesh_and_axis), relaxed)

    # -- text --

    def describe(self) -> str:
        size = ",".join(map(str, self.shape))
        words = [f"{self.format} {self.dtype.name}({size})", f"{self.nbytes} bytes"]
        if self.is_sharded:
            words.append(f"{self.sharding.spec}")
        return f"{type(self).__name__} " + ", ".join(words)

    def __repr__(self) -> str:
        try:
            text = self.describe()
        except Exception:  # leaves that are no arrays, inside jax.tree
            return f"{type(self).__name__}({self._parts})"
        if any(isinstance(p, jax.core.Tracer) for p in self.leaves):
            return text
        if not all(isinstance(p, jax.Array) and not p.is_deleted() for p in self.leaves):
            return text
        return f"{text}\n{np.asarray(self.materialize())}"


def _tail(order: tuple[int, ...]) -> tuple[int, ...] | None:
    """A permutation without axes in front that stay, counted from the end."""
    rank = len(order)
    fixed = 0
    while fixed < rank and order[fixed] == fixed:
        fixed += 1
    return tuple(k - rank for k in order[fixed:]) or None


def _pad(coding: Coding, shape: tuple[int, ...]) -> int | None:
    return -shape[-1] % PER_BYTE[coding.format] if shape else None


def _settled(coding: Coding) -> Coding:
    """Without options that matter only to the encoder."""
    dropped = ("source", "on_nonfinite", "threshold")
    options = tuple(o for o in coding.options if o[0] not in dropped)
    return dataclasses.replace(coding, options=options)


def _unpacked(format: str, codes: Any, shape: tuple[int, ...]) -> jax.Array:
    if format == "int8":
        return codes
    per = PER_BYTE[format]
    bits = 8 // per
    order = range(per)[::-1] if format == "nf4" else range(per)
    fields = [(codes >> (k * bits)) & ((1 << bits) - 1) for k in order]
    wide = jnp.stack(fields, -1).reshape(*codes.shape[:-1], -1)
    flat = wide[..., : shape[-1]] if shape else wide.reshape(-1)[0]
    if format == "nf4":
        return flat
    signed = flat.astype(jnp.int8)
    return signed - 1 if format == "ternary" else 2 * signed - 1


def _check(ok: bool, sentence: str) -> None:
    if not ok:
        raise ValueError(sentence)


def _values_dtype(who: str, scale: Any, dtype: Any) -> np.dtype:
    """The dtype of values with these scales: the given one, or theirs."""
    floats = ("float32", "float16", "bfloat16", "float64")
    _check(scale.dtype.name in floats, f"{who}: scales are {scale.dtype}, not floats")
    dtype = jnp.dtype(dtype if dtype is not None else scale.dtype)
    _check(dtype.name in floats, f"{who}: dtype is {dtype}, not one of {', '.join(floats)}")
    return dtype


class Array8B(QuantizedArray):
    """8-bit codes with a scale for each group of elements.

    Array8B.quantize(array, axis=) makes one; Array8B(scale, weight) of existing codes and
    scales. axis: the axes that share a scale (default: the last one).
    """

    def __init__(
        self,
        scale: Any,
        weight: Any = None,
        axis: Any = None,
        sharding: Any = None,
        *,
        shape: Any = None,
        dtype: Any = None,
    ) -> None:
        if weight is None:  # Array8B(array)
            made = self.quantize(scale, dtype=dtype, axis=axis)
            self._static, self._parts = made._static, made._parts
            return
        weight = jnp.asarray(weight)
        scale = jnp.asarray(scale)
        _check(weight.dtype == jnp.int8, f"Array8B: weight is {weight.dtype}, not int8")
        if scale.ndim == 0:
            scale = scale.reshape((1,) * weight.ndim)
        _check(
            scale.ndim == weight.ndim
            and all(s in (1, w) for s, w in zip(scale.shape, weight.shape)),
            f"Array8B: scale {scale.shape} does not broadcast to weight {weight.shape}",
        )
        _check(
            shape is None or tuple(shape) == weight.shape,
            f"Array8B: shape {shape} of a weight {weight.shape}",
        )
        if not isinstance(weight, jax.core.Tracer) and weight.size:
            _check(
                int(weight.min()) > -128,
                "Array8B: a code is -128 (codes are -127 to 127)",
            )
        coding = Coding("int8", _values_dtype("Array8B", scale, dtype), _axis_option(axis))
        self._static = _Static(coding, sharding=sharding)
        self._parts = {"codes": weight, "scale": scale}

    @classmethod
    def quantize(
        cls,
        array: Any,
        dtype: Any = None,
        axis: Any = None,
        *,
        compat: str = "native",
    ) -> Array8B:
        """array in 8 bits; dtype: of the values (default: the array's)."""
        from ._quantize import QuantizationConfig, quantize

        config = QuantizationConfig("int8", axis=axis, compat=compat, materialize=dtype)
        return quantize(array, config)

    @property
    def weight(self) -> Any:
        """The codes."""
        return self._in_order(self._parts["codes"])

    @property
    def scale(self) -> Any:
        return self._in_order(self._scales("scale"))

    @property
    def axis(self) -> tuple[int, ...]:
        """The axes that share a scale, from the end."""
        rank = len(self._stored)
        stored = self._static.coding.get("axes") or (-1,)
        stored = [k % rank for k in stored] if rank else []
        return tuple(k - rank for k, s in enumerate(self._axes) if s in stored)

    def _in_order(self, part: Any) -> Any:
        return part if self._static.perm is None else part.transpose(self._axes)


def _axis_option(axis: Any) -> tuple[tuple[str, Any], ...]:
    if axis is None:
        return ()
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return (("axes", axes),)


class _Packed(QuantizedArray):
    def _check_order(self) -> None:
        _check(
            self._static.perm is None,
            f"{type(self).__name__}: a transposed array has no bytes in eformer's layout; "
            "materialize() it, or use the array before transposing",
        )


class ArrayNF4(_Packed):
    """4-bit codes of 16 fixed levels, with an absolute maximum for each block.

    ArrayNF4.quantize(array, block_size) makes one, as does ArrayNF4(array);
    ArrayNF4(packed, absmax, block_size) one of bytes in eformer's layout: (..., blocks,
    block_size / 2), of which shape= may use a part of the last block. decode="poly"
    decodes with eformer's polynomial instead of the table of levels.
    """

    def __init__(
        self,
        packed: Any,
        absmax: Any = None,
        block_size: int | None = None,
        sharding: Any = None,
        *,
        shape: Any = None,
        dtype: Any = None,
        decode: str = "table",
    ) -> None:
        if absmax is None:  # ArrayNF4(array)
            made = self.quantize(packed, block_size or 64)
            self._static, self._parts = made._static, made._parts
            return
        packed, absmax = jnp.asarray(packed), jnp.asarray(absmax)
        _check(packed.dtype == jnp.uint8, f"ArrayNF4: packed is {packed.dtype}, not uint8")
        _check(packed.ndim >= 2, f"ArrayNF4: packed is {packed.shape}, not (..., blocks, bytes)")
        size = 2 * packed.shape[-1]
        _check(
            block_size in (None, size),
            f"ArrayNF4: block_size is {block_size}, but a block has {size} elements",
        )
        _check(
            absmax.shape == packed.shape[:-1],
            f"ArrayNF4: absmax is {absmax.shape} for {packed.shape[:-1]} blocks",
        )
        n = packed.shape[-2] * size
        full = (*packed.shape[:-2], n)
        shape = full if shape is None else tuple(shape)
        _check(
            shape[:-1] == full[:-1] and shape != () and n - size < shape[-1] <= n,
            f"ArrayNF4: shape {shape} of blocks for {full}",
        )
        codes = packed.reshape(*full[:-1], n // 2)[..., : (shape[-1] + 1) // 2]
        options = (("block_size", size), ("decode", decode))
        coding = Coding("nf4", _values_dtype("ArrayNF4", absmax, dtype), options)
        self._static = _Static(coding, shape[-1] % 2, sharding=sharding)
        self._parts = {"codes": codes, "absmax": absmax}

    @classmethod
    def quantize(
        cls,
        array: Any,
        block_size: int = 64,
        *,
        compat: str = "native",
        verbose: bool = False,
    ) -> ArrayNF4:
        """array in 4 bits; verbose is accepted and does nothing."""
        from ._quantize import QuantizationConfig, quantize

        return quantize(array, QuantizationConfig("nf4", block_size, compat=compat))

    @property
    def block_size(self) -> int:
        return self._static.coding.block_size

    @property
    def absmax(self) -> Any:
        """(..., blocks)"""
        self._check_order()
        return self._scales("absmax")

    @property
    def packed(self) -> Any:
        """The codes in eformer's layout: (..., blocks, block_size / 2), the first element
        in the high bits, the last block filled up."""
        self._check_order()
        codes = self._parts["codes"]
        blocks = -(-self._stored[-1] // self.block_size) if self._stored else 1
        codes = codes if self._stored else codes.reshape(1)
        missing = blocks * self.block_size // 2 - codes.shape[-1]
        width = [(0, 0)] * (codes.ndim - 1) + [(0, missing)]
        full = jnp.pad(codes, width, constant_values=_PADDING) if missing else codes
        return full.reshape(*codes.shape[:-1], blocks, self.block_size // 2)


class Array1B(_Packed):
    """Codes -1, 0, 1 in 2 bits, or -1, 1 in one bit, with or without a scale.

    Array1B.quantize(codes) stores given codes; Array1B(array) does so for integers, and
    quantizes floats as quantize(array, "ternary"). Array1B(weight, shape=, dtype=) is of
    bytes in eformer's layout.
    """

    def __init__(self, weight: Any, *, shape: Any = None, dtype: Any = None) -> None:
        from ._quantize import QuantizationConfig, quantize

        weight = jnp.asarray(weight)
        if shape is not None:
            codes = _unpack_rows(weight, tuple(shape))
            made = self.quantize(codes, dtype=dtype)
        elif jnp.issubdtype(weight.dtype, jnp.floating):
            made = quantize(weight, QuantizationConfig("ternary", materialize=dtype))
        else:
            made = self.quantize(weight, dtype=dtype)
        self._static, self._parts = made._static, made._parts

    @classmethod
    def quantize(cls, array: Any, dtype: Any = None, axis: Any = None) -> Array1B:
        """Stores an array of -1, 0 and 1, of any dtype; other values are an error.

        dtype: of the values (default: the array's). axis is accepted and does nothing.
        """
        array = jnp.asarray(array)
        dtype = jnp.dtype(dtype or array.dtype)
        if dtype.name not in ("int8", "float32", "float16", "bfloat16", "float64"):
            dtype = jnp.dtype("int8")
        codes = array
        if not jnp.issubdtype(array.dtype, jnp.integer):
            # Values that are no codes become 2, which the encoder refuses.
            exact = (array == -1) | (array == 0) | (array == 1)
            codes = jnp.where(exact, array, 2).astype(jnp.int8)
        coding = Coding("ternary", dtype, (("scale", "none"),))
        return cls._encode(coding, codes)

    @property
    def scale(self) -> Any:
        """The scale; None if the values are the codes."""
        return self._scales("scale")

    @property
    def weight(self) -> Any:
        """The codes in eformer's layout: byte row i has rows i, i + R, i + 2 R, i + 3 R
        of code + 1, at bits 0, 2, 4, 6."""
        self._check_order()
        codes = self.codes()
        if not self._stored:
            codes = codes.reshape(1)
        rows = -(-codes.shape[0] // 4)
        width = [(0, 4 * rows - codes.shape[0])] + [(0, 0)] * (codes.ndim - 1)
        fields = (jnp.pad(codes, width) + 1).astype(jnp.uint8)
        fields = fields.reshape(4, rows, *codes.shape[1:])
        return fields[0] | fields[1] << 2 | fields[2] << 4 | fields[3] << 6

    packed = weight


def _unpack_rows(weight: Any, shape: tuple[int, ...]) -> jax.Array:
    rows = -(-shape[0] // 4) if shape else 1
    _check(
        weight.dtype == jnp.uint8 and weight.shape == (rows, *shape[1:]),
        f"Array1B: weight is {weight.dtype}{weight.shape}, not uint8{(rows, *shape[1:])}",
    )
    fields = jnp.concatenate([(weight >> k) & 3 for k in (0, 2, 4, 6)])
    return (fields.astype(jnp.int8) - 1)[: shape[0]].reshape(shape)


_CLASSES = {"int8": Array8B, "nf4": ArrayNF4, "ternary": Array1B, "binary": Array1B}


class StraightThrough(ImplicitArray):
    """Quantized values whose gradient is that of the array they were made from: what
    straight_through returns inside implicit functions."""

    def __init__(self, array: Any, quantized: QuantizedArray) -> None:
        self.array, self.quantized = array, quantized

    def tree_flatten_with_keys(self) -> Any:
        keys = map(jax.tree_util.GetAttrKey, ("array", "quantized"))
        return tuple(zip(keys, (self.array, self.quantized))), None

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Any:
        a = object.__new__(cls)
        a.array, a.quantized = children
        return a

    @property
    def shape(self) -> tuple[int, ...]:
        return self.quantized.shape

    @property
    def dtype(self) -> Any:
        return self.quantized.dtype

    @property
    def side(self) -> _calls.Side:
        return dataclasses.replace(self.quantized.side, through=True)

    @property
    def leaves(self) -> tuple[Any, ...]:
        return (self.array, *self.quantized.leaves)

    def materialize(self) -> jax.Array:
        return _through(self.array, self.quantized.materialize())


@jax.custom_jvp
def _through(array: Any, values: Any) -> Any:
    return values


@_through.defjvp
def _through_jvp(primals: Any, tangents: Any) -> Any:
    return primals[1], tangents[0].astype(primals[1].dtype)
