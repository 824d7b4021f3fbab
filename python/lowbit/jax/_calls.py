"""Encode, decode and products with derivatives and batching rules.

The custom calls of _ffi.py know neither: here each is wrapped in custom_partitioning
(_partition.py), in custom_vmap, which adds a leading axis to the operands, and in
custom_vjp, whose backward pass makes the same calls.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap

from . import _ffi, _partition
from ._ffi import PER_BYTE, Coding

# ---- batching -------------------------------------------------------------------


def _leading(size: int, batched: list[bool], args: tuple[Any, ...]) -> list[Any]:
    """All arguments with a leading batch axis."""
    return [
        a if b else jnp.broadcast_to(a, (size, *a.shape)) for a, b in zip(args, batched)
    ]


@functools.lru_cache(maxsize=None)
def _decoder(coding: Coding, pad: int | None, perm: tuple[int, ...] | None) -> Any:
    @custom_vmap
    def call(*parts: Any) -> Any:
        stored = stored_shape(coding, pad, parts[0].shape)
        full = full_perm(perm, len(stored))
        buffers = _ffi.buffers(coding, parts, len(stored))

        def on_device(*buffers: Any) -> Any:
            shape = stored_shape(coding, pad, buffers[0].shape)
            return _ffi.decode_call(coding, buffers, shape, full)

        cuts = _partition.decode_cuts(coding, buffers, stored, full)
        return _partition.partitioned(cuts, on_device)(*buffers)

    @call.def_vmap
    def batch(size: int, batched: list[bool], *parts: Any) -> Any:
        return call(*_leading(size, batched, parts)), True

    return call


@functools.lru_cache(maxsize=None)
def _encoder(coding: Coding) -> Any:
    @custom_vmap
    def call(x: Any) -> Any:
        parts = [aval for name, _, aval in _ffi.parts_of(coding, x.shape) if name != "table"]
        cuts = _partition.encode_cuts(coding, x, parts)
        encode = functools.partial(_ffi.encode_call, coding)
        return _partition.partitioned(cuts, encode)(x)

    @call.def_vmap
    def batch(size: int, batched: list[bool], x: Any) -> Any:
        if x.ndim > 1 and _is_by_rows(coding):
            out = call(x)
        else:
            out = jax.lax.map(call, x)
        return out, tuple(True for _ in out)

    return call


def _is_by_rows(coding: Coding) -> bool:
    """Whether slices along the first axis can be encoded as one array."""
    if coding.get("double_quant"):
        return False
    if coding.format == "int8":
        return all(axis < 0 for axis in coding.get("axes") or ())
    return coding.format == "nf4" or coding.get("scale") in ("row", "block")


def stored_shape(coding: Coding, pad: int | None, codes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an array from that of its codes. pad: elements that the last byte of a
    row has room for; None: a scalar."""
    if coding.format in ("int8", "dynamic8"):
        return tuple(codes)
    if pad is None:
        return ()
    last = codes[-1] * PER_BYTE[coding.format] - pad if codes else -1
    if last < 0:
        raise ValueError(
            f"{coding.format}: codes {codes} have no room for rows with {pad} elements less"
        )
    return (*codes[:-1], last)


def full_perm(perm: tuple[int, ...] | None, rank: int) -> tuple[int, ...] | None:
    """A permutation of the last axes, counted from the end, as one of all axes."""
    if perm is None:
        return None
    if len(perm) > rank:
        raise ValueError(
            f"a transposed array lost axes ({len(perm)} are permuted, {rank} exist): "
            "transpose after jax.vmap or jax.lax.scan, or materialize first"
        )
    return (*range(rank - len(perm)), *(rank + k for k in perm))


# ---- encoding and decoding ------------------------------------------------------


@functools.partial(jax.jit, static_argnums=0, inline=True)
def encode(coding: Coding, x: Any) -> tuple[jax.Array, ...]:
    return _encoder(coding)(x)


@functools.partial(jax.jit, static_argnums=(0, 1, 2), inline=True)
def decode(coding: Coding, pad: Any, perm: Any, *parts: Any) -> jax.Array:
    if len(parts) > 1:
        return _decode(coding, pad, perm, *parts)
    return _decoder(coding, pad, perm)(*parts)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _decode(coding: Coding, pad: Any, perm: Any, *parts: Any) -> jax.Array:
    return _decoder(coding, pad, perm)(*parts)


def _decode_fwd(coding: Coding, pad: Any, perm: Any, *parts: Any) -> Any:
    return _decode(coding, pad, perm, *parts), parts


def _decode_bwd(coding: Coding, pad: Any, perm: Any, parts: Any, g: Any) -> Any:
    return scale_gradient(coding, pad, perm, parts, g)


_decode.defvjp(_decode_fwd, _decode_bwd)


def scale_gradient(coding: Coding, pad: Any, perm: Any, parts: Any, g: Any) -> Any:
    """Gradients of the parts of an array whose gradient is g: values are linear in the
    scale, so it is g times the values with scale 1, summed over the elements that share
    it."""
    if coding.get("meaning") == "inverse":
        raise NotImplementedError("there is no gradient to a scale of meaning inverse")
    if coding.get("double_quant") or coding.format == "dynamic8":
        raise NotImplementedError(
            "there is no gradient to scales that are quantized themselves (double_quant)"
        )
    codes, scale = parts
    wide = dataclasses.replace(coding, dtype=jnp.dtype("float32"))
    unit = _decoder(wide, pad, None)(codes, jnp.ones_like(scale))
    full = full_perm(perm, g.ndim)
    if full:
        g = g.transpose(np.argsort(full))
    g = g.astype(jnp.float32) * unit
    for axis, n in enumerate(scale.shape):
        if n == g.shape[axis]:
            continue
        each = 1 if n == 1 else coding.block_size
        if n == 1:
            g = g.sum(axis, keepdims=True)
            continue
        width = [(0, n * each - g.shape[axis] if k == axis else 0) for k in range(g.ndim)]
        g = jnp.pad(g, width)
        g = g.reshape(*g.shape[:axis], n, each, *g.shape[axis + 1 :]).sum(axis + 1)
    return None, g.astype(scale.dtype)


# ---- products -------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Side:
    """What the leaves of an operand are: one dense array, or the parts of a quantized
    one; with `through`, before them the array that gradients go to."""

    coding: Coding | None = None
    pad: int | None = None
    perm: tuple[int, ...] | None = None
    through: bool = False

    def shape(self, leaves: tuple[Any, ...]) -> tuple[int, ...]:
        if self.coding is None:
            return tuple(leaves[0].shape)
        stored = stored_shape(self.coding, self.pad, leaves[self.through].shape)
        full = full_perm(self.perm, len(stored))
        return tuple(stored[k] for k in full) if full else stored

    def buffers(self, leaves: tuple[Any, ...]) -> list[Any]:
        return _ffi.buffers(self.coding, leaves, len(self.shape(leaves)))

    def operand(self, buffers: list[Any]) -> _ffi.Operand:
        first = tuple(buffers[0].shape)
        if self.coding is None:
            return _ffi.Operand(None, buffers, first, None)
        stored = stored_shape(self.coding, self.pad, first)
        return _ffi.Operand(self.coding, buffers, stored, full_perm(self.perm, len(stored)))


@dataclasses.dataclass(frozen=True)
class Dims:
    """dot_general's dimension numbers, for operands whose ranks may grow in front."""

    lhs_contract: tuple[int, ...]
    rhs_contract: tuple[int, ...]
    lhs_batch: tuple[int, ...]
    rhs_batch: tuple[int, ...]

    def attribute(self, dtype: Any, precision: int) -> np.ndarray:
        lists = (self.lhs_contract, self.rhs_contract, self.lhs_batch, self.rhs_batch)
        flat = [i for axes in lists for i in (len(axes), *axes)]
        return np.array([*flat, _ffi.dtype_code(dtype), precision], np.int64)

    def shape(self, lhs: tuple[int, ...], rhs: tuple[int, ...]) -> tuple[int, ...]:
        return (
            *(lhs[k] for k in self.lhs_batch),
            *(lhs[k] for k in self.free(0, len(lhs))),
            *(rhs[k] for k in self.free(1, len(rhs))),
        )

    def free(self, side: int, rank: int) -> list[int]:
        taken = (
            (*self.lhs_contract, *self.lhs_batch)
            if side == 0
            else (*self.rhs_contract, *self.rhs_batch)
        )
        return [k for k in range(rank) if k not in taken]

    def with_axis(self, lhs: bool, rhs: bool) -> Dims:
        """With a new first axis in one operand or, as a batch axis, in both."""
        l, r = int(lhs), int(rhs)
        both = (0,) if lhs and rhs else ()
        return Dims(
            tuple(k + l for k in self.lhs_contract),
            tuple(k + r for k in self.rhs_contract),
            (*both, *(k + l for k in self.lhs_batch)),
            (*both, *(k + r for k in self.rhs_batch)),
        )


@dataclasses.dataclass(frozen=True)
class Product:
    dims: Dims
    lhs: Side
    rhs: Side
    dtype: Any
    precision: int

    def cuts(self, lhs: _ffi.Operand, rhs: _ffi.Operand) -> _partition.Cuts:
        d = self.dims
        free = d.free(0, len(lhs.shape)), d.free(1, len(rhs.shape))
        contract = (d.lhs_contract, d.rhs_contract)
        return _partition.product_cuts(
            contract, (d.lhs_batch, d.rhs_batch), free, (lhs, rhs)
        )


@functools.lru_cache(maxsize=None)
def _multiplier(p: Product, n_lhs: int) -> Any:
    """The custom call; n_lhs: how many leaves are those of lhs."""

    @custom_vmap
    def call(*leaves: Any) -> Any:
        lhs, rhs = p.lhs.buffers(leaves[:n_lhs]), p.rhs.buffers(leaves[n_lhs:])

        def on_device(p: Product, *buffers: Any) -> Any:
            first, second = list(buffers[: len(lhs)]), list(buffers[len(lhs) :])
            a, b = p.lhs.operand(first), p.rhs.operand(second)
            shape = p.dims.shape(p.lhs.shape(tuple(first)), p.rhs.shape(tuple(second)))
            out = jax.ShapeDtypeStruct(shape, p.dtype)
            return _ffi.dot_general_call(a, b, p.dims.attribute(p.dtype, p.precision), out)

        # Sums of the devices are rounded to 16 bits once.
        wide = p.dtype
        if jnp.issubdtype(wide, jnp.floating) and wide.itemsize < 4:
            wide = jnp.dtype("float32")
        summing = functools.partial(on_device, dataclasses.replace(p, dtype=wide))
        call = functools.partial(on_device, p)
        cuts = p.cuts(p.lhs.operand(lhs), p.rhs.operand(rhs))
        return _partition.partitioned(cuts, call, summing)(*lhs, *rhs)

    @call.def_vmap
    def batch(size: int, batched: list[bool], *leaves: Any) -> Any:
        sides = batched[:n_lhs], batched[n_lhs:]
        l, r = map(any, sides)
        full: list[Any] = []
        for side, args in zip(sides, (leaves[:n_lhs], leaves[n_lhs:])):
            full += _leading(size, side, args) if any(side) else args
        wide = dataclasses.replace(p, dims=p.dims.with_axis(l, r))
        out = _multiplier(wide, n_lhs)(*full)
        # A free axis of one operand comes after the batch axes, and after lhs's axes.
        at = 0
        if not (l and r):
            at = len(p.dims.lhs_batch)
        if r and not l:
            at += len(p.dims.free(0, len(p.lhs.shape(leaves[:n_lhs]))))
        return jnp.moveaxis(out, at, 0), True

    return call


def _call(p: Product, lhs: tuple[Any, ...], rhs: tuple[Any, ...]) -> jax.Array:
    """Without leaves that only gradients go to."""
    lhs, rhs = lhs[p.lhs.through :], rhs[p.rhs.through :]
    sides = [dataclasses.replace(s, through=False) for s in (p.lhs, p.rhs)]
    plain = Product(p.dims, sides[0], sides[1], p.dtype, p.precision)
    return _multiplier(plain, len(lhs))(*lhs, *rhs)


@functools.partial(jax.jit, static_argnums=0, inline=True)
def product(p: Product, lhs: tuple[Any, ...], rhs: tuple[Any, ...]) -> jax.Array:
    """dot_general of two operands, given as leaves."""
    return _product(p, lhs, rhs)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _product(p: Product, lhs: tuple[Any, ...], rhs: tuple[Any, ...]) -> jax.Array:
    return _call(p, lhs, rhs)


# None or () in residuals: whether gradients of the leaves of a side are wanted.
def _product_fwd(p: Product, lhs: tuple[Any, ...], rhs: tuple[Any, ...]) -> Any:
    wanted = [
        tuple(() if leaf.perturbed else None for leaf in side) for side in (lhs, rhs)
    ]
    lhs, rhs = (tuple(leaf.value for leaf in side) for side in (lhs, rhs))
    # Differentiable again, for derivatives of derivatives.
    return _product(p, lhs, rhs), (lhs, rhs, wanted)


def _product_bwd(p: Product, residuals: Any, g: Any) -> Any:
    lhs, rhs, wanted = residuals
    if isinstance(g, jax.custom_derivatives.SymbolicZero):
        return tuple(None for _ in lhs), tuple(None for _ in rhs)
    return (
        _side_gradient(p, 0, lhs, rhs, wanted[0], g),
        _side_gradient(p, 1, rhs, lhs, wanted[1], g),
    )


_product.defvjp(_product_fwd, _product_bwd, symbolic_zeros=True)


def _side_gradient(
    p: Product, number: int, own: Any, other: Any, wanted: Any, g: Any
) -> Any:
    """The gradients of the leaves of operand `number`."""
    if all(w is None for w in wanted):
        return tuple(None for _ in own)
    side = (p.lhs, p.rhs)[number]
    shape = side.shape(own)
    if side.coding is None or side.through:
        gradient = _operand_gradient(p, number, shape, other, g, own[0].dtype)
        return (gradient, *(None for _ in own[1:]))
    gradient = _operand_gradient(p, number, shape, other, g, jnp.dtype("float32"))
    return scale_gradient(side.coding, side.pad, side.perm, own, gradient)


def _operand_gradient(
    p: Product, number: int, shape: Any, other: Any, g: Any, dtype: Any
) -> jax.Array:
    """g times the other operand, contracted over the other's free axes."""
    d = p.dims
    batch = (d.lhs_batch, d.rhs_batch)
    contract = (d.lhs_contract, d.rhs_contract)
    of_other = 1 - number
    n_batch = len(batch[0])
    ranks = [0, 0]
    ranks[number] = len(shape)
    ranks[of_other] = len((p.lhs, p.rhs)[of_other].shape(other))
    free = [d.free(k, ranks[k]) for k in range(2)]
    # Axes of g: batch, free of lhs, free of rhs.
    start = n_batch + (len(free[0]) if of_other == 1 else 0)
    of_g = tuple(range(start, start + len(free[of_other])))
    rows = tuple(range(n_batch))
    contracted = tuple(free[of_other])
    # Axes contracted in p remain, in the other operand's order.
    order = sorted(range(len(contract[0])), key=lambda i: contract[of_other][i])
    remain = [contract[number][i] for i in order]
    if number == 0:
        dims = Dims(of_g, contracted, rows, batch[1])
        back = Product(dims, Side(), p.rhs, dtype, p.precision)
        out = _product(back, (g,), other)
        axes = [*batch[0], *free[0], *remain]
    else:
        dims = Dims(contracted, of_g, batch[0], rows)
        back = Product(dims, p.lhs, Side(), dtype, p.precision)
        out = _product(back, other, (g,))
        axes = [*batch[1], *remain, *free[1]]
    if axes == sorted(axes):
        return out
    return out.transpose(np.argsort(axes))
