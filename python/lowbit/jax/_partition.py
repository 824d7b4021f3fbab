"""How XLA's partitioner splits a call of the library over the devices of a mesh.

Each axis of a computation has a number, and each dimension of its buffers is one of these
axes, or none: the axis k of a product's weight is axis 0 of its codes and of its scales. An
axis can be cut into `pieces`, so that no byte and no block is cut. Devices compute with
their pieces; where axes that are summed over are cut, the results are added.

Packed operands stay where they are: an axis is cut as they are placed, then as the dense
operands and the result are. A dense operand that is cut along a summed axis, with whole
packed operands, is gathered.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any, Callable

import jax
from jax.experimental.custom_partitioning import (
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)
from jax.sharding import NamedSharding, PartitionSpec

from ._ffi import Coding, Operand

Axes = tuple[int | None, ...]  # of a buffer's dimensions


@dataclasses.dataclass(frozen=True)
class Cuts:
    """What can be cut: the axes of the buffers' dimensions, and the pieces of axes."""

    operands: tuple[Axes, ...]
    packed: tuple[bool, ...]  # which operands are parts of packed arrays
    results: tuple[Axes, ...]
    pieces: dict[int, int]
    summed: frozenset[int] = frozenset()


def part_axes(
    coding: Coding, stored: tuple[int, ...], parts: list[Any], axes: Axes
) -> tuple[list[Axes], dict[int, int]]:
    """The axes of the dimensions of each part, and the pieces of axes, of an array whose
    stored axes have these numbers."""
    rank = len(stored)
    if coding.get("double_quant"):  # blocks of its scales cross rows
        nothing: list[Axes] = [(None,) * len(part.shape) for part in parts]
        return nothing, {axis: 1 for axis in axes if axis is not None}
    pieces = {axis: n for axis, n in zip(axes, stored) if axis is not None}
    if rank and axes[-1] is not None:
        n, group = stored[-1], coding.group
        pieces[axes[-1]] = n // group if n % group == 0 else 1

    def of(part: Any) -> Axes:
        dims = tuple(part.shape)
        found = [
            axis if n == size or (k == rank - 1 and n > 1) else None
            for k, (axis, n, size) in enumerate(zip(axes, dims, stored))
        ]
        # Scalars and the library's tables have dimensions of their own.
        return (*found, *[None] * (len(dims) - len(found)))

    return [of(p) for p in parts], pieces


def is_by_pieces(coding: Coding, source: Any, found: list[Axes], axis: int | None) -> bool:
    """Whether pieces of an axis can be encoded by themselves: nothing else has a part in
    their scales, and thresholds follow scales."""
    scaled = len(found) > 1
    codes_only = not jax.numpy.issubdtype(source, jax.numpy.floating)
    return (scaled or codes_only) and all(axis in axes for axes in found)


def partitioned(
    cuts: Cuts, call: Callable[..., Any], summing: Callable[..., Any] | None = None
) -> Any:
    """call, a function of the buffers, with a rule for the partitioner. summing: what is
    called instead if the results of devices are added."""
    if not any(n > 1 for n in cuts.pieces.values()):
        return call

    def whole(*buffers: Any) -> Any:
        return call(*buffers)

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        many = isinstance(result, (tuple, list))
        results = tuple(result) if many else (result,)
        chosen = _choose(cuts, mesh, args, results)
        added = tuple(n for a in sorted(cuts.summed) for n in chosen.get(a, ()))

        def on_device(*buffers: Any) -> Any:
            if not added or summing is None:
                return call(*buffers)
            total = jax.lax.psum(summing(*buffers), added)
            return total.astype(result.dtype)

        places = tuple(_sharding(mesh, axes, chosen) for axes in cuts.results)
        return (
            mesh,
            on_device,
            places if many else places[0],
            tuple(_sharding(mesh, axes, chosen) for axes in cuts.operands),
        )

    def infer(mesh: Any, args: Any, result: Any) -> Any:
        chosen = _choose(cuts, mesh, args, ())
        places = tuple(_sharding(mesh, axes, chosen) for axes in cuts.results)
        return places if isinstance(result, (tuple, list)) else places[0]

    def rule(mesh: Any, operands: Any, results: Any) -> SdyShardingRule:
        return _rule(cuts, [t.shape for t in operands], [t.shape for t in results])

    fn = custom_partitioning(whole)
    fn.def_partition(
        partition,
        infer_sharding_from_operands=infer,
        # Decoding fails if Shardy has cut along a part of a mesh's axis.
        decode_shardings=False,
        sharding_rule=rule,
    )
    return fn


def _entries(mesh: Any, array: Any) -> list[tuple[str, ...]]:
    """The axes of the mesh that cut each dimension; nothing if no spec can say it."""
    shape, place = tuple(array.shape), array.sharding
    entries: list[tuple[str, ...]] = [() for _ in shape]
    if place is None or mesh.empty or not math.prod(shape):
        return entries
    found = place.devices_indices_map(shape)
    first = mesh.devices.flat[0]
    for k, name in enumerate(mesh.axis_names):
        if mesh.devices.shape[k] == 1:
            continue
        next_one = mesh.devices[tuple(int(i == k) for i in range(mesh.devices.ndim))]
        for d in range(len(shape)):
            if found[first][d] != found[next_one][d]:
                entries[d] = (*entries[d], name)
    for entry in itertools.product(*(itertools.permutations(e) for e in entries)):
        wanted = NamedSharding(mesh, PartitionSpec(*entry))
        try:
            if wanted.devices_indices_map(shape) == found:
                return list(entry)
        except ValueError:  # not divisible
            break
    return [() for _ in shape]


def _choose(cuts: Cuts, mesh: Any, args: Any, results: Any) -> dict[int, tuple[str, ...]]:
    """The axes of the mesh that each axis is cut along; each of them is used once."""
    chosen: dict[int, tuple[str, ...]] = {}
    some_packed = any(cuts.packed)

    def take(axes: Axes, array: Any, sums: bool) -> None:
        for axis, entry in zip(axes, _entries(mesh, array)):
            used = {n for taken in chosen.values() for n in taken}
            names = tuple(n for n in entry if n not in used)
            ways = math.prod(mesh.shape[n] for n in names)
            if ways == 1 or axis is None or axis in chosen:
                continue
            if cuts.pieces[axis] % ways == 0 and (sums or axis not in cuts.summed):
                chosen[axis] = names

    for packed in (True, False):
        for axes, of_packed, arg in zip(cuts.operands, cuts.packed, args):
            if of_packed == packed:
                take(axes, arg, packed or not some_packed)
    for axes, result in zip(cuts.results, results):
        take(axes, result, False)
    return chosen


def _sharding(mesh: Any, axes: Axes, chosen: dict[int, tuple[str, ...]]) -> NamedSharding:
    entries = [chosen.get(axis) if axis is not None else None for axis in axes]
    return NamedSharding(mesh, PartitionSpec(*entries))


def _rule(cuts: Cuts, operands: Any, results: Any) -> SdyShardingRule:
    """Shardy's: a dimension is a factor for the pieces of its axis, and one for what a
    piece has of it; other dimensions are whole."""
    sizes: dict[str, int] = {}
    alone: set[str] = set()  # factors that are all of a dimension
    fixed: list[str] = []

    def mapping(axes: Axes, shape: Any) -> ArrayMapping:
        found: list[Any] = []
        for axis, n in zip(axes, shape):
            own = f"w{len(sizes)}"
            pieces = 1 if axis is None else cuts.pieces[axis]
            if pieces <= 1:
                sizes[own] = n
                alone.add(own)
                fixed.append(own)
                found.append(own)
                continue
            factor = f"a{axis}"
            sizes[factor] = pieces
            if n == pieces:
                alone.add(factor)
                found.append(factor)
            else:
                sizes[own] = n // pieces
                fixed.append(own)
                found.append(CompoundFactor(factor, own))
        return ArrayMapping(*found)

    maps = [
        tuple(mapping(axes, shape) for axes, shape in zip(lists, shapes))
        for lists, shapes in ((cuts.operands, operands), (cuts.results, results))
    ]
    return SdyShardingRule(
        *maps,
        reduction_factors=tuple(
            f"a{axis}" for axis in sorted(cuts.summed) if f"a{axis}" in sizes
        ),
        need_replication_factors=tuple(fixed),
        **{name: n for name, n in sizes.items() if name not in alone},
    )


def product_cuts(
    contract: tuple[tuple[int, ...], tuple[int, ...]],
    batch: tuple[tuple[int, ...], tuple[int, ...]],
    free: tuple[list[int], list[int]],
    sides: tuple[Operand, Operand],
) -> Cuts:
    number: list[dict[int, int]] = [{}, {}]
    count = 0
    for pairs in (zip(*batch), zip(*contract)):
        for k, n in pairs:
            number[0][k] = number[1][n] = count
            count += 1
    for i in range(2):
        for k in free[i]:
            number[i][k] = count
            count += 1
    operands: list[Axes] = []
    packed: list[bool] = []
    pieces: dict[int, int] = {}
    for i, side in enumerate(sides):
        logical = [number[i][k] for k in range(len(side.shape))]
        found: list[Axes] = [tuple(logical)]
        own = dict(zip(logical, side.shape))
        if side.coding is not None:
            axes = [0] * len(logical)
            for k, s in enumerate(side.perm or range(len(logical))):
                axes[s] = logical[k]
            found, own = part_axes(side.coding, side.shape, side.buffers, tuple(axes))
        operands += found
        packed += [side.coding is not None] * len(found)
        for axis, n in own.items():
            pieces[axis] = math.gcd(pieces.get(axis, n), n)
    result = [
        *(number[0][k] for k in batch[0]),
        *(number[0][k] for k in free[0]),
        *(number[1][k] for k in free[1]),
    ]
    summed = frozenset(number[0][k] for k in contract[0])
    return Cuts(tuple(operands), tuple(packed), (tuple(result),), pieces, summed)


def decode_cuts(
    coding: Coding, buffers: list[Any], stored: tuple[int, ...], perm: Any
) -> Cuts:
    axes = tuple(range(len(stored)))
    found, pieces = part_axes(coding, stored, buffers, axes)
    out = tuple(perm) if perm else axes
    return Cuts(tuple(found), (True,) * len(found), (out,), pieces)


def encode_cuts(coding: Coding, x: Any, parts: list[Any]) -> Cuts:
    axes = tuple(range(len(x.shape)))
    found, pieces = part_axes(coding, tuple(x.shape), parts, axes)
    pieces = {
        axis: n if is_by_pieces(coding, x.dtype, found, axis) else 1
        for axis, n in pieces.items()
    }
    return Cuts((axes,), (False,), tuple(found), pieces)
