"""Where the parts of a quantized array are on a mesh."""

from __future__ import annotations

import math
import warnings
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ._ffi import Coding


def named(sharding: Any, relaxed: bool = False) -> NamedSharding | None:
    """A PartitionSpec takes the mesh of the context; its names may be unknown if relaxed."""
    if sharding is None or isinstance(sharding, NamedSharding):
        return sharding
    if not isinstance(sharding, PartitionSpec):
        raise TypeError(
            f"with_sharding: a NamedSharding, a PartitionSpec or None, not {sharding!r}"
        )
    mesh = _mesh_of_context()
    if mesh is None:
        raise ValueError(
            f"with_sharding: {sharding} without a mesh; use "
            "NamedSharding(mesh, spec), or a PartitionSpec inside `with mesh:`"
        )
    if relaxed:
        sharding = PartitionSpec(*(_known(mesh, entry) for entry in sharding))
    return NamedSharding(mesh, sharding)


def _known(mesh: Any, entry: Any) -> Any:
    names = entry if isinstance(entry, tuple) else (entry,)
    known = tuple(name for name in names if name in mesh.shape)
    if len(known) < len(names) and entry is not None:
        _refuse(f"{entry} is not an axis of the mesh {tuple(mesh.shape)}", True)
    return known if isinstance(entry, tuple) else (known or (None,))[0]


def _mesh_of_context() -> Any:
    from jax.interpreters import pxla

    with warnings.catch_warnings():  # `with mesh:` is deprecated, but eformer's way
        warnings.simplefilter("ignore", DeprecationWarning)
        resources = getattr(pxla, "thread_resources", None)
    if resources is not None and not resources.env.physical_mesh.empty:
        return resources.env.physical_mesh
    abstract = jax.sharding.get_abstract_mesh()
    return None if abstract is None or abstract.empty else abstract


def from_mesh_and_axis(mesh_and_axis: Any) -> NamedSharding:
    mesh, axis = mesh_and_axis
    if not isinstance(mesh, Mesh):
        raise TypeError(f"with_mesh_and_axis: a mesh and an axis, not {mesh!r} first")
    if axis is None:
        spec = PartitionSpec()
    elif isinstance(axis, PartitionSpec):
        spec = axis
    elif isinstance(axis, str):
        spec = PartitionSpec(axis)
    else:
        spec = PartitionSpec(*axis)
    return NamedSharding(mesh, spec)


def _ways(mesh: Any, entry: Any) -> int:
    names = entry if isinstance(entry, tuple) else (entry,)
    return math.prod(mesh.shape[name] for name in names)


def part_specs(
    sharding: NamedSharding,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    stored: tuple[int, ...],
    coding: Coding,
    parts: dict[str, tuple[int, ...]],
    relaxed: bool,
) -> tuple[dict[str, PartitionSpec], NamedSharding]:
    """The spec of each part, and the sharding of the array with the entries that fit.

    axes: the stored axis of each axis. A part of size 1 along an axis is on all devices
    of it.
    """
    entries = list(sharding.spec)
    if len(entries) > len(shape):
        _refuse(
            f"{sharding.spec} has {len(entries)} entries for an array of {len(shape)} axes",
            relaxed,
        )
        entries = entries[: len(shape)]
    entries += [None] * (len(shape) - len(entries))
    for k, entry in enumerate(entries):
        if entry is None or entry == ():
            continue
        n, ways = shape[k], _ways(sharding.mesh, entry)
        last = axes[k] == len(stored) - 1
        problem = None
        if coding.get("double_quant") and ways > 1:
            problem = "scales in 8 bits (double_quant) cannot be cut"
        elif n % ways:
            problem = f"axis {k} has {n} elements for {ways} devices"
        elif last and n // ways % coding.group:
            problem = (
                f"axis {k} has {n // ways} elements on each of {ways} devices, which cuts "
                f"groups of {coding.group} ({coding.format})"
            )
        if problem:
            _refuse(f"{sharding.spec}: {problem}", relaxed)
            entries[k] = None
    place = {axes[k]: entry for k, entry in enumerate(entries)}
    specs = {
        name: PartitionSpec()
        if coding.get("double_quant")
        else PartitionSpec(
            *(place.get(k) if n != 1 or stored[k] == 1 else None
              for k, n in enumerate(dims[: len(stored)]))
        )
        for name, dims in parts.items()
    }
    while entries and entries[-1] is None and len(entries) > len(sharding.spec):
        entries.pop()
    return specs, NamedSharding(sharding.mesh, PartitionSpec(*entries))


def _refuse(problem: str, relaxed: bool) -> None:
    if not relaxed:
        raise ValueError(f"with_sharding: {problem}; relaxed=True drops such entries")
    warnings.warn(f"with_sharding: {problem}: dropped", stacklevel=3)


def place(part: Any, mesh: Any, spec: PartitionSpec) -> Any:
    return constrain(part, NamedSharding(mesh, spec))


def constrain(a: Any, sharding: Any) -> Any:
    if not isinstance(sharding, NamedSharding):
        return a
    if isinstance(a, jax.core.Tracer):
        if jax.sharding.get_abstract_mesh().manual_axes:
            return a  # inside shard_map, where a is one device's part
        return jax.lax.with_sharding_constraint(a, sharding)
    return jax.device_put(a, sharding)


def permuted(sharding: Any, order: tuple[int, ...], rank: int) -> Any:
    if not isinstance(sharding, NamedSharding):
        return sharding
    entries = [*sharding.spec, *[None] * (rank - len(sharding.spec))]
    return NamedSharding(sharding.mesh, PartitionSpec(*(entries[k] for k in order)))
