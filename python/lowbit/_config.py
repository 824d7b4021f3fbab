"""lowbit.config: options of the library for a part of a program."""

from __future__ import annotations

from . import _lowbit


class config:
    """Options for the operations of this thread in a with statement.

    threads: number of threads (default: all cores). precision: "highest", "fast" or
    "fastest", for products with packed weights. dense: "allow", "log" (as warnings)
    or "deny" operations that would make a packed array dense. isa: the highest
    instruction set to use. debug: more checks. keep_bytes: limit of freed memory kept
    for reuse.

    >>> import lowbit
    >>> with lowbit.config(threads=1, precision="fast"):
    ...     lowbit.context_info()["threads"]
    1
    """

    __slots__ = ("_options",)

    def __init__(
        self,
        *,
        threads: int = 0,
        precision: str | None = None,
        dense: str | None = None,
        isa: str | None = None,
        debug: bool = False,
        keep_bytes: int = 0,
    ) -> None:
        self._options = {
            "threads": threads,
            "precision": precision,
            "dense": dense,
            "isa": isa,
            "debug": debug,
            "keep_bytes": keep_bytes,
        }

    def __enter__(self) -> config:
        _lowbit._push_config(**self._options)
        return self

    def __exit__(self, *exception: object) -> None:
        _lowbit._pop_config()
