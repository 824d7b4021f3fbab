"""What primitives do with quantized arrays: products run on packed bytes, structure that
whole blocks can express keeps them, and the rest is decoded."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _calls
from ._arrays import QuantizedArray, StraightThrough
from ._implicit import ImplicitArray, _handlers, materialized
from ._interpreter import rules

_Packed = (QuantizedArray, StraightThrough)

# lb_precision by JAX's. None: the library's default, LOWBIT_PRECISION or highest.
_PRECISIONS = {
    None: 0,
    jax.lax.Precision.HIGHEST: 1,
    jax.lax.Precision.HIGH: 2,
    jax.lax.Precision.DEFAULT: 3,
}


def _precision(given: Any) -> int:
    if isinstance(given, (tuple, list)):
        given = given[0]
    if isinstance(given, str):
        given = jax.lax.Precision(given)
    if given is None and jax.config.jax_default_matmul_precision is not None:
        with contextlib.suppress(ValueError):
            given = jax.lax.Precision(jax.config.jax_default_matmul_precision)
    return _PRECISIONS.get(given, 1)


def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    **unused: Any,
) -> jax.Array:
    """jax.lax.dot_general of operands of which some are quantized: one call of the
    library, on the packed bytes, also in its derivatives.

    precision: None or HIGHEST for f32 sums of exact products, HIGH for activations
    rounded to 16 bits, DEFAULT for 8 bits (jax.default_matmul_precision works too).
    """
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    operands = [a if isinstance(a, _Packed) else jnp.asarray(materialized(a)) for a in (lhs, rhs)]
    ranks = [a.ndim for a in operands]
    dims = _calls.Dims(
        *(
            tuple(int(k) + ranks[i] if k < 0 else int(k) for k in axes)
            for axes, i in (
                (lhs_contract, 0),
                (rhs_contract, 1),
                (lhs_batch, 0),
                (rhs_batch, 1),
            )
        )
    )
    for k, n in zip(
        (*dims.lhs_contract, *dims.lhs_batch), (*dims.rhs_contract, *dims.rhs_batch)
    ):
        if operands[0].shape[k] != operands[1].shape[n]:
            shapes = " and ".join(str(tuple(a.shape)) for a in operands)
            raise TypeError(f"dot_general: axes {k} and {n} of {shapes} differ in size")
    dtype = preferred_element_type
    if dtype is None:
        dtype = jnp.promote_types(operands[0].dtype, operands[1].dtype)
    sides = [a.side if isinstance(a, _Packed) else _calls.Side() for a in operands]
    leaves = [a.leaves if isinstance(a, _Packed) else (a,) for a in operands]
    p = _calls.Product(
        dims, sides[0], sides[1], jnp.dtype(dtype), _precision(precision)
    )
    return _calls.product(p, *map(tuple, leaves))


def matmul(a: Any, b: Any) -> Any:
    """a @ b of a quantized array and a vector or matrix; NotImplemented for others."""
    if not any(type(x).__module__ == __package__ + "._arrays" for x in (a, b)):
        return NotImplemented  # a subclass may have handlers
    if any(isinstance(x, ImplicitArray) and not isinstance(x, _Packed) for x in (a, b)):
        return NotImplemented
    ranks = [len(x.shape) for x in (a, b)]
    if min(ranks) < 1 or ranks[1] > 2 or "dot_general" in _handlers:
        return NotImplemented
    return dot_general(a, b, (((ranks[0] - 1,), (0,)), ((), ())))


def _dot(lhs: Any, rhs: Any, **params: Any) -> Any:
    if not any(isinstance(a, _Packed) for a in (lhs, rhs)):
        return NotImplemented
    return dot_general(lhs, rhs, **params)


def _transpose(a: Any, *, permutation: Any) -> Any:
    if isinstance(a, StraightThrough):
        return StraightThrough(
            a.array.transpose(permutation), a.quantized.transpose(permutation)
        )
    return a.transpose(permutation) if isinstance(a, QuantizedArray) else NotImplemented


def _convert(a: Any, *, new_dtype: Any, **unused: Any) -> Any:
    if isinstance(a, QuantizedArray):
        return a.astype(new_dtype)
    return NotImplemented


def _is_rows(a: Any) -> bool:
    """Whether the first axis is that of the parts, so that they can be taken apart."""
    return isinstance(a, QuantizedArray) and a.by_rows


def _of_rows(a: QuantizedArray, fn: Any) -> QuantizedArray:
    """fn applied along the first axis of every part that has one."""
    parts = {
        name: p if p.shape[0] == 1 != a.shape[0] else fn(p) for name, p in a.parts.items()
    }
    return a._make(dataclasses.replace(a._static, sharding=None), parts)


def _gather(
    a: Any, indices: Any, *, dimension_numbers: Any, slice_sizes: Any, **params: Any
) -> Any:
    """Whole rows of a table: only those are decoded."""
    d = dimension_numbers
    rows = (
        _is_rows(a)
        and not isinstance(indices, ImplicitArray)
        and tuple(d.start_index_map) == (0,)
        and tuple(d.collapsed_slice_dims) == (0,)
        and not d.operand_batching_dims
        and tuple(slice_sizes) == (1, *a.shape[1:])
    )
    if not rows or params.get("fill_value") is not None:
        return NotImplemented
    n = indices.ndim - 1
    if tuple(d.offset_dims) != tuple(range(n, n + len(a.shape) - 1)):
        return NotImplemented
    mode = params["mode"]
    index = indices[..., 0]
    inside = (index >= 0) & (index < a.shape[0])
    safe = jnp.clip(index, 0, a.shape[0] - 1)
    found = _of_rows(a, lambda p: p[safe.reshape(-1)])
    values = found.materialize().reshape(*index.shape, *a.shape[1:])
    if mode in (jax.lax.GatherScatterMode.CLIP, jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS):
        return values
    if not jnp.issubdtype(a.dtype, jnp.floating):
        return NotImplemented
    mask = inside.reshape(*index.shape, *[1] * (len(a.shape) - 1))
    return jnp.where(mask, values, jnp.asarray(jnp.nan, a.dtype))


def _is_whole_behind(a: Any, start: Any, limit: Any) -> bool:
    return all(s == 0 and l == n for s, l, n in zip(start[1:], limit[1:], a.shape[1:]))


def _slice(a: Any, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    if not _is_rows(a) or not _is_whole_behind(a, start_indices, limit_indices):
        return NotImplemented
    if strides is not None and any(s != 1 for s in strides[1:]):
        return NotImplemented
    step = strides[0] if strides else 1
    return _of_rows(a, lambda p: p[start_indices[0] : limit_indices[0] : step])


def _dynamic_slice(a: Any, *starts: Any, slice_sizes: Any) -> Any:
    if not _is_rows(a) or tuple(slice_sizes[1:]) != tuple(a.shape[1:]):
        return NotImplemented
    start = jnp.clip(starts[0], 0, a.shape[0] - slice_sizes[0])
    return _of_rows(
        a, lambda p: jax.lax.dynamic_slice_in_dim(p, start, slice_sizes[0], 0)
    )


def _concatenate(*arrays: Any, dimension: int) -> Any:
    first = arrays[0]
    same = dimension == 0 and all(
        _is_rows(a) and a._static == first._static
        and set(a.parts) == set(first.parts)
        and all(p.shape[0] == a.shape[0] for p in a.parts.values())
        for a in arrays
    )
    if not same:
        return NotImplemented
    parts = {k: jnp.concatenate([a.parts[k] for a in arrays]) for k in first.parts}
    return first._make(dataclasses.replace(first._static, sharding=None), parts)


def _reshape(a: Any, *, new_sizes: Any, **unused: Any) -> Any:
    """Axes of size 1 in front, which removing or adding leaves every block whole."""
    if not isinstance(a, QuantizedArray) or a._static.perm is not None or len(a.shape) < 2:
        return NotImplemented
    if a._static.coding.get("double_quant"):
        return NotImplemented
    old, new = list(a.shape), list(new_sizes)
    while len(old) > 1 and old[0] == 1:
        del old[0]
    while len(new) > 1 and new[0] == 1:
        del new[0]
    if old != new or len(new) < 1:
        return NotImplemented
    if a.format == "int8" and len(old) < len(a._static.coding.get("axes") or (-1,)):
        return NotImplemented
    n = len(new_sizes)
    parts = {}
    for name, p in a.parts.items():
        own = p.shape[len(p.shape) - len(old) :]
        parts[name] = p.reshape((1,) * (n - len(old)) + own)
    return a._make(dataclasses.replace(a._static, sharding=None), parts)


def _squeeze(a: Any, *, dimensions: Any) -> Any:
    sizes = [n for k, n in enumerate(a.shape) if k not in dimensions]
    return _reshape(a, new_sizes=sizes)


def _expand(a: Any, *, shape: Any, broadcast_dimensions: Any, **unused: Any) -> Any:
    n = len(a.shape)
    if tuple(broadcast_dimensions) != tuple(range(len(shape) - n, len(shape))):
        return NotImplemented
    return _reshape(a, new_sizes=shape) if all(s == 1 for s in shape[:-n]) else NotImplemented


def _on_leaves(primitive: Any) -> Any:
    """What shard_map inserts, on each part."""
    return lambda a, **params: jax.tree.map(lambda p: primitive.bind(p, **params), a)


for _name in ("pvary", "pcast"):
    _primitive = getattr(jax.lax, _name + "_p", None)
    if _primitive is not None:
        rules[_name] = _on_leaves(_primitive)

rules.update(
    dot_general=_dot,
    transpose=_transpose,
    convert_element_type=_convert,
    gather=_gather,
    slice=_slice,
    dynamic_slice=_dynamic_slice,
    concatenate=_concatenate,
    reshape=_reshape,
    squeeze=_squeeze,
    broadcast_in_dim=_expand,
)
