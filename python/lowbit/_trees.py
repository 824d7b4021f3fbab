"""Trees: nested dicts, lists and tuples of arrays, flattened to lists.

A structure is hashable: two trees with equal structures have the same places for arrays.
Leaves that are not arrays (numbers, strings, None, ...) are part of the structure.
"""

from __future__ import annotations

from . import _lowbit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any


_LEAF = "array"


def is_array(x: Any) -> bool:
    """Whether x is an array of lowbit, numpy or torch."""
    if isinstance(x, _lowbit.Array):
        return True
    return hasattr(x, "__dlpack__") or hasattr(x, "__array_interface__")


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The arrays of a tree, and its structure."""
    leaves: list[Any] = []
    return leaves, _walk(tree, leaves)


def _walk(tree: Any, leaves: list[Any]) -> Any:
    if is_array(tree):
        leaves.append(tree)
        return _LEAF
    if isinstance(tree, dict):
        return (
            "dict",
            tuple(tree),
            tuple(_walk(v, leaves) for v in tree.values()),
        )
    if isinstance(tree, (list, tuple)):
        return (type(tree), None, tuple(_walk(v, leaves) for v in tree))
    return ("constant", type(tree), tree)


def unflatten(structure: Any, leaves: Iterable[Any]) -> Any:
    """The tree of this structure with these arrays."""
    return _build(structure, iter(leaves))


def _build(structure: Any, leaves: Iterator[Any]) -> Any:
    if structure is _LEAF or structure == _LEAF:
        return next(leaves)
    kind, names, items = structure
    if kind == "constant":
        return items
    values = [_build(item, leaves) for item in items]
    if kind == "dict":
        return dict(zip(names, values))
    if kind in (list, tuple):
        return kind(values)
    return kind(*values)  # a named tuple
