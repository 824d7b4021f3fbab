"""Arrays in files: safetensors, GGUF, npy, npz, and directories of models.

lowbit.open, load and save work with arrays. The functions quantize, convert, dequantize,
shard, merge, info, check, stats and diff are the verbs of the command `lowbit`, from file to
file with bounded memory; their reports are dicts with the members of docs/json.md.
"""

from __future__ import annotations

import math as _math
import os as _os
import struct as _struct
import warnings as _warnings

from . import _lowbit
from ._lowbit import ContentError, Error, FileError, ShapeError, UnsupportedError
from ._quantize import _config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ._lowbit import Array, ArrayLike, _Index, _Path, _Sums

    Report = dict[str, Any]
    Progress = Callable[[int, int], object]

__all__ = [
    "File",
    "can_save",
    "check",
    "convert",
    "dequantize",
    "diff",
    "info",
    "load",
    "merge",
    "open",
    "quantize",
    "save",
    "shard",
    "stats",
]

_PIECE = 64 << 20  # bytes of values that check, stats and diff decode at a time


# ---- reading ---------------------------------------------------------------------------


class File(_lowbit.File):
    """An open file: a mapping from names to arrays, with safetensors' methods.

    Arrays are loaded on access, in the format in which they are stored: the tensors of a
    quantized array are one array. Loaded arrays stay valid after close. They may use the
    mapped file, which must not change then.
    """

    def keys(self) -> list[str]:
        """The names of all arrays, in file order."""
        return self.names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.entry(name) is not None

    def __getitem__(self, name: str) -> Array:
        if name not in self:
            raise KeyError(name)
        return self.load(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The array of this name, or default."""
        return self.load(name) if name in self else default

    def get_tensor(self, name: str) -> Array:
        """The array of this name."""
        return self.load(name)

    def get_slice(self, name: str) -> Slice:
        """An array whose slices are loaded by indexing: get_slice(name)[2:4, :64]."""
        entry = self.entry(name)
        if entry is None:
            raise KeyError(name)
        return Slice(self, entry)

    def values(self) -> Iterator[Array]:
        """All arrays, one at a time."""
        return (self.load(name) for name in self.names())

    def items(self) -> Iterator[tuple[str, Array]]:
        """Names and arrays, one at a time."""
        return ((name, self.load(name)) for name in self.names())

    def entries(self) -> list[Report]:
        """The entries of the header for each array, as dicts."""
        found = (self.entry(name) for name in self.names())
        return [entry for entry in found if entry is not None]

    def __enter__(self) -> File:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Slice:
    """An array in a file. Indexing it loads a part."""

    __slots__ = ("_file", "_entry")

    def __init__(self, file: File, entry: Report) -> None:
        self._file = file
        self._entry = entry

    def get_shape(self) -> list[int]:
        """The shape of the whole array."""
        return list(self._entry["shape"])

    def get_dtype(self) -> str:
        """The type as spelled in the file."""
        return str(self._entry["type"])

    def __getitem__(self, key: _Index | tuple[_Index, ...]) -> Array:
        name, shape = self._entry["name"], self._entry["shape"]
        keys = key if isinstance(key, tuple) else (key,)
        start, count, rest = _box(keys, shape)
        if start is None:
            return self._file.load(name)[key]
        wide = (start[:1] + [0] * (len(shape) - 1), count[:1] + list(shape[1:]))
        for first, size in ((start, count), wide):
            if 0 in size:
                break
            try:
                x = self._file.load(name, tuple(first), tuple(size))
            except ShapeError:  # inside a block
                continue
            if (first, size) != (start, count):
                x = x[
                    tuple(
                        slice(a, a + n) if k else slice(None)
                        for k, (a, n) in enumerate(zip(start, count))
                    )
                ]
            return x[rest]
        return self._file.load(name)[key]


def _box(keys: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """The box that holds the elements of a basic index, and the index inside of it; None if
    the index is of another kind."""
    given = sum(k is not ... and k is not None for k in keys)
    full: list[int | slice] = []
    for k in keys:
        if k is ...:
            full += [slice(None)] * (len(shape) - given)
        elif isinstance(k, (int, slice)) and not isinstance(k, bool):
            full.append(k)
        else:
            return None, None, None
    full += [slice(None)] * (len(shape) - len(full))
    if len(full) != len(shape) or not shape:
        return None, None, None
    start: list[int] = []
    count: list[int] = []
    rest: list[int | slice] = []
    for k, n in zip(full, shape):
        if isinstance(k, int):
            if not -n <= k < n:
                return None, None, None
            start.append(k % n)
            count.append(1)
            rest.append(0)
        else:
            at = range(*k.indices(n))
            low = min(at[0], at[-1]) if at else 0
            start.append(low)
            count.append(abs(at[-1] - at[0]) + 1 if at else 0)
            rest.append(slice(None, None, k.step))
    return start, count, tuple(rest)


def open(
    path: _Path,
    *,
    map: bool = True,
    raw: bool = False,
    linear_class: str | None = None,
    framework: object = None,
    device: str = "cpu",
) -> File:
    """Open a file, or a directory of a model, to load its arrays.

    map: map the file (False: read it; for files that other programs may truncate). raw: list
    the tensors of quantized arrays. linear_class: for BitNet files, "bitlinear" or
    "autobitlinear". framework and device are there for programs written for safetensors.

    >>> with open(model) as f:
    ...     f.keys(), f["w"].format
    (['b', 'w'], 'dense')
    """
    if device != "cpu":
        raise UnsupportedError(f"device {device!r}: 'cpu' is the only one")
    return File(_os.fspath(path), map=map, raw=raw, linear_class=linear_class)


def load(path: _Path, name: str | None = None) -> Any:
    """An array of a file, or all of them as a dict.

    >>> sorted(load(model))
    ['b', 'w']
    """
    with open(path) as f:
        return dict(f.items()) if name is None else f.load(name)


# ---- writing ---------------------------------------------------------------------------

_U8, _I8, _U16, _I16, _U32, _I32, _F32, _BOOL, _STRING, _ARRAY, _U64, _I64, _F64 = range(
    13
)


def _meta_value(value: object) -> tuple[int, bytes]:
    """The type of a metadata value, and its bytes as stored in GGUF."""
    if isinstance(value, bool):
        return _BOOL, _struct.pack("<?", value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise _lowbit.ArgumentError(f"metadata {value} does not fit in 64 bits")
        return _I64, _struct.pack("<q", value)
    if isinstance(value, float):
        return _F64, _struct.pack("<d", value)
    if isinstance(value, str):
        return _STRING, value.encode("utf-8", "surrogateescape")
    raise TypeError(f"metadata cannot be {type(value).__name__}: {value!r}")


def _meta(key: str, value: object) -> tuple[str, int, int, int, bytes]:
    if not isinstance(value, (list, tuple)):
        kind, data = _meta_value(value)
        return key, kind, 0, 1, data
    items = [_meta_value(v) for v in value]
    kinds = {kind for kind, _ in items} or {_STRING}
    if len(kinds) > 1:
        raise TypeError(f"metadata {key!r}: items of several types")
    kind = kinds.pop()
    if kind == _STRING:
        items = [(kind, _struct.pack("<Q", len(data)) + data) for _, data in items]
    return key, _ARRAY, kind, len(items), b"".join(data for _, data in items)


def _kind(path: _Path, kind: str | None) -> str:
    if kind is not None:
        return kind
    end = _os.fsdecode(path).rpartition(".")[2].lower()
    return end if end in ("gguf", "npy", "npz") else "safetensors"


def save(
    path: _Path,
    arrays: Mapping[str, ArrayLike],
    *,
    metadata: Mapping[str, object] | None = None,
    kind: str | None = None,
    layout: str | None = None,
    max_shard_size: int = 0,
    sync: bool = True,
) -> None:
    """Write a dict of arrays to a file, which appears when it is complete.

    kind: "safetensors", "gguf", "npy", "npz" (default: by the name's ending). layout: of
    quantized arrays in safetensors, "native", "bnb", "bitnet" or "eformer". metadata: a dict
    (safetensors: of strings). max_shard_size: path is a directory of files of at most so many
    bytes.

    >>> save(small, {"w": load(model, "w")})
    >>> load(small, "w").shape
    (4, 8)
    """
    if not hasattr(arrays, "keys"):
        raise TypeError(
            "save(path, arrays): arrays must be a dict of names and arrays, not"
            f" {type(arrays).__name__}"
        )
    for name in arrays:
        if not isinstance(name, str):
            raise TypeError(f"names must be strings, not {name!r}")
    _lowbit._save(
        path,
        list(arrays),
        list(arrays.values()),
        [_meta(k, v) for k, v in (metadata or {}).items()],
        kind=_kind(path, kind),
        layout=layout,
        max_shard=max_shard_size,
        sync=sync,
    )


def can_save(array: Array, kind: str | None = None, layout: str | None = None) -> bool:
    """Whether a kind of file, and a layout, can store an array."""
    return _lowbit._can_save(array, kind, layout)


# ---- jobs from file to file ------------------------------------------------------------


def _place(
    source: _Path, output: _Path | None, kind: str | None, dry_run: bool, force: bool
) -> tuple[_Path, str | None, bool]:
    """The path and kind of the output, and whether it is a directory."""
    if output is None:
        if not dry_run:
            raise _lowbit.ArgumentError("an output path is needed, unless dry_run is set")
        return "", kind, _os.path.isdir(source) and kind is None
    text = _os.fsdecode(output)
    named = text.rpartition(".")[2].lower() in ("safetensors", "gguf", "npy", "npz")
    if _os.path.isdir(output):
        directory = True
    else:
        directory = text.endswith("/") or (
            not named and kind is None and _os.path.isdir(source)
        )
    empty = directory and _os.path.isdir(output) and not _os.listdir(output)
    if _os.path.lexists(output) and not (force or dry_run or empty):
        raise FileExistsError(f"{text} already exists (force=True overwrites it)")
    return output, None if directory else _kind(output, kind), directory


def _add(sums: Any, more: Any) -> Any:
    return tuple(
        max(a, b) if k == 7 else a + b for k, (a, b) in enumerate(zip(sums, more))
    )


_NO_SUMS = (0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0)


def _finite(x: float) -> float | None:
    return x if _math.isfinite(x) else None


def _error(sums: Any) -> Report:
    """nrmse, max and cosine of sums; None where nothing was compared."""
    if not sums[0]:
        return {"nrmse": None, "max": None, "cosine": None}
    nrmse, cosine = _lowbit._difference(*sums)
    return {"nrmse": _finite(nrmse), "max": sums[7], "cosine": _finite(cosine)}


def _report(source: _Path, output: _Path, dry_run: bool, result: Any) -> Report:
    arrays, notes, warned = result
    total, values = _NO_SUMS, 0
    for row in arrays:
        total = _add(total, row.pop("sums"))
        values += _math.prod(row["shape"])
    for text in warned:
        _warnings.warn(text, stacklevel=3)
    written = sum(row["output_bytes"] for row in arrays)
    return {
        "source": _os.fsdecode(source),
        "output": None if dry_run else _os.fsdecode(output),
        "dry_run": dry_run,
        "resumed": sum(row["resumed"] for row in arrays),
        "parameters": values,
        "source_bytes": sum(row["bytes"] for row in arrays),
        "output_bytes": written,
        "bits_per_weight": 8 * written / values if values else None,
        **_error(total),
        "notes": notes,
        "warnings": warned,
        "arrays": arrays,
    }


def quantize(
    source: _Path,
    output: _Path | None = None,
    type: Any = "nf4",
    *,
    include: str | Iterable[str] = (),
    exclude: str | Iterable[str] = (),
    override: str | Iterable[str] = (),
    recipe: _Path | None = None,
    types: Sequence[Any] = (),
    target_bpw: float = 0.0,
    target_size: int = 0,
    kind: str | None = None,
    layout: str | None = None,
    fallback: str = "keep",
    max_memory: int = 0,
    measure: bool = True,
    dry_run: bool = False,
    resume: bool = False,
    strict: bool = False,
    verify: bool = False,
    sync: bool = True,
    force: bool = False,
    linear_class: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Report:
    """Quantize a checkpoint: a file, or a directory of a model.

    type: a format's name, a QuantizationConfig, or the options of lowbit.quantize. include,
    exclude, override: patterns of names, as in `lowbit quantize`; recipe: a file of them.
    target_bpw, target_size: bits per element, or bytes, of the output; each array gets one of
    types (default: of all). progress: a function of (bytes done, bytes in all). An exception
    that it raises, as Ctrl-C, stops the job; resume=True continues it.

    >>> report = quantize(model, small, "int8", include=["."])
    >>> report["arrays"][0]["output_format"]
    'int8'
    """
    output, kind, directory = _place(source, output, kind, dry_run, force)
    config = _config(type, None, None, False, True, options)
    selection = [("include", p) for p in _texts(include)]
    selection += [("exclude", p) for p in _texts(exclude)]
    selection += [("override", p) for p in _texts(override)]
    if recipe is not None:
        selection.append(("recipe", _os.fsdecode(recipe)))
    result = _lowbit._quantize_file(
        source,
        output,
        config=config,
        selection=selection,
        others=[_config(t, None, None, False, True, {}) for t in types],
        kind=kind,
        layout=layout,
        directory=directory,
        max_memory=max_memory,
        sync=sync,
        measure=measure,
        dry_run=dry_run,
        resume=resume,
        strict=strict,
        verify=verify,
        fallback=fallback,
        target_bits=target_bpw,
        target_bytes=target_size,
        linear_class=linear_class,
        progress=progress,
    )
    return _report(source, output, dry_run, result)


def _texts(patterns: str | Iterable[str]) -> Iterable[str]:
    return [patterns] if isinstance(patterns, str) else patterns


def convert(
    source: _Path,
    output: _Path | None = None,
    *,
    dtype: Any = None,
    keep: bool = True,
    kind: str | None = None,
    layout: str | None = None,
    max_memory: int = 0,
    measure: bool = False,
    dry_run: bool = False,
    resume: bool = False,
    strict: bool = True,
    verify: bool = False,
    sync: bool = True,
    force: bool = False,
    linear_class: str | None = None,
    progress: Progress | None = None,
    to: str | None = None,
    allow: str = "exact",
    block_size: int = 0,
) -> Report:
    """Convert a checkpoint to another kind of file, layout or dtype.

    Packed arrays stay packed (keep) or are an error (strict) where the output cannot store
    them; dtype is that of dense floats. to moves packed arrays to a layout ("mlx", ...), a
    type ("q4_1", ...) or "gguf", with the same codes. An array that cannot be moved exactly is
    an error, unless allow is "rounded" or "requantize".

    >>> convert(model, half, dtype="float16")["arrays"][0]["output_dtype"]
    'f16'
    """
    allowed = ("exact", "rounded", "requantize")
    if allow not in allowed:
        raise _lowbit.ArgumentError(f"allow is {allow!r}, not exact, rounded or requantize")
    output, kind, directory = _place(source, output, kind, dry_run, force)
    result = _lowbit._convert_file(
        source,
        output,
        dtype=dtype,
        keep=keep,
        kind=kind,
        layout=layout,
        directory=directory,
        max_memory=max_memory,
        sync=sync,
        measure=measure,
        dry_run=dry_run,
        resume=resume,
        strict=strict,
        verify=verify,
        linear_class=linear_class,
        progress=progress,
        target=to,
        allow=allowed.index(allow),
        block_size=block_size,
    )
    return _report(source, output, dry_run, result)


def dequantize(source: _Path, output: _Path | None = None, **options: Any) -> Report:
    """Decode all packed arrays of a checkpoint; options as those of convert."""
    return convert(source, output, keep=False, strict=False, **options)


def shard(
    source: _Path,
    output: _Path,
    mesh: str,
    rules: Iterable[str],
    *,
    relaxed: bool = False,
    dry_run: bool = False,
    sync: bool = True,
) -> Report:
    """Split a checkpoint into one file per rank of a mesh such as "dp=2,tp=4".

    rules: texts "PATTERN=P(None, tp)". relaxed: drop what does not fit.
    """
    arrays, _, _ = _lowbit._shard_file(
        source, output, mesh, list(rules), relaxed=relaxed, dry_run=dry_run, sync=sync
    )
    return {
        "source": _os.fsdecode(source),
        "output": None if dry_run else _os.fsdecode(output),
        "dry_run": dry_run,
        "mesh": mesh,
        "arrays": arrays,
    }


def merge(source: _Path, output: _Path, *, sync: bool = True) -> Report:
    """Reassemble a checkpoint that shard has split."""
    _lowbit._merge_file(source, output, sync)
    with open(output) as f:
        arrays = f.entries()
    return {
        "source": _os.fsdecode(source),
        "output": _os.fsdecode(output),
        "arrays": arrays,
    }


# ---- looking at files ------------------------------------------------------------------


def info(path: _Path, *, linear_class: str | None = None) -> Report:
    """The content of a file: kind, metadata, arrays, and the quantization method.

    >>> info(model)["parameters"]
    40
    """
    with open(path, linear_class=linear_class) as f:
        arrays = f.entries()
        method = f.method()
        known = method is None or method["decoded"]
        return {
            "path": _os.fsdecode(path),
            "kind": f.kind,
            "parameters": sum(_math.prod(a["shape"]) for a in arrays) if known else None,
            "bytes": sum(a["bytes"] for a in arrays),
            "quantization": method,
            "metadata": f.metadata(),
            "arrays": arrays,
        }


def _pieces(file: File, entry: Report) -> Iterator[Array]:
    """The array in pieces of whole rows, of at most _PIECE bytes if possible."""
    name, shape = entry["name"], entry["shape"]
    row = 8 * _math.prod(shape[1:])
    rows = max(1, _PIECE // row) if row else 1
    if not shape or shape[0] <= rows:
        yield file.load(name)
        return
    at = 0
    while at < shape[0]:
        n = min(rows, shape[0] - at)
        try:
            x = file.load(name, (at,) + (0,) * (len(shape) - 1), (n, *shape[1:]))
        except ShapeError:
            if at:
                raise
            yield file.load(name)
            return
        yield x
        at += n


def _examined(file: File, entry: Report) -> Report:
    total: Report = {}
    for x in _pieces(file, entry):
        found = _lowbit._examine(x)
        if not total:
            total = found
            continue
        if found["finite"]:
            least, most = (
                (total["min"], total["max"])
                if total["finite"]
                else (_math.inf, -_math.inf)
            )
            total["min"], total["max"] = min(least, found["min"]), max(most, found["max"])
        for key in found:
            if key not in ("min", "max", "sound"):
                total[key] += found[key]
        total["sound"] = total["sound"] and found["sound"]
    return total


def check(path: _Path, *, linear_class: str | None = None) -> Report:
    """Validate a file: read every array and look for NaN, infinities and invalid codes.

    >>> check(model)["invalid"]
    0
    """
    rows, invalid, unsupported, values = [], 0, 0, 0
    with open(path, linear_class=linear_class) as f:
        kind = f.kind
        for entry in f.entries():
            row = {**entry, "status": "ok", "message": None}
            row.update(nan=0, infinite=0, invalid_codes=0, invalid_scales=0)
            try:
                found = _examined(f, entry)
            except UnsupportedError as e:
                row.update(status="unsupported", message=str(e))
                unsupported += 1
            except (ContentError, FileError) as e:
                row.update(status="invalid", message=str(e))
                invalid += 1
            else:
                values += found["values"]
                for key in ("nan", "infinite", "invalid_codes", "invalid_scales"):
                    row[key] = found[key]
                if not found["sound"]:
                    wrong = [
                        f"{found[k]} {k}"
                        for k in row
                        if found.get(k)
                        and k in ("nan", "infinite", "invalid_codes", "invalid_scales")
                    ]
                    row.update(status="invalid", message=", ".join(wrong))
                    invalid += 1
            rows.append(row)
    return {
        "path": _os.fsdecode(path),
        "kind": kind,
        "arrays": rows,
        "invalid": invalid,
        "unsupported": unsupported,
        "values": values,
    }


def stats(path: _Path, *, bins: int = 40, linear_class: str | None = None) -> Report:
    """Statistics, histograms of values, and counts of codes, for each array.

    >>> stats(model)["arrays"][1]["max"]
    1.0
    """
    rows = []
    with open(path, linear_class=linear_class) as f:
        kind = f.kind
        for entry in f.entries():
            row = {
                **entry,
                "message": None,
                "min": None,
                "max": None,
                "mean": None,
                "std": None,
                "zeros": None,
                "nan": None,
                "infinite": None,
                "histogram": None,
                "codes": None,
            }
            rows.append(row)
            try:
                found = _examined(f, entry)
                for key in ("zeros", "nan", "infinite"):
                    row[key] = found[key]
                n = found["finite"]
                if n:
                    mean = found["sum"] / n
                    row.update(min=found["min"], max=found["max"], mean=mean)
                    row["std"] = _math.sqrt(max(found["squares"] / n - mean * mean, 0.0))
                    _histograms(f, entry, row, bins)
            except Error as e:
                row["message"] = str(e)
    return {"path": _os.fsdecode(path), "kind": kind, "arrays": rows}


def _histograms(f: File, entry: Report, row: Report, bins: int) -> None:
    low, high = row["min"], row["max"]
    if low == high:
        low, high = low - 0.5, high + 0.5
    values: Report | None = None
    codes: list[int] | None = None
    for x in _pieces(f, entry):
        more = _lowbit._histogram(x, low, high, bins)
        if values is None:
            values = more
        else:
            for key in ("below", "above"):
                values[key] += more[key]
            values["counts"] = [a + b for a, b in zip(values["counts"], more["counts"])]
        counts = _lowbit._code_counts(x) if x.format != "dense" else None
        if counts is not None:
            codes = [a + b for a, b in zip(codes or [0] * 256, counts)]
    row["histogram"] = values
    if codes is not None:
        row["codes"] = {"first": 0, "counts": codes}


def diff(
    first: _Path,
    second: _Path,
    *,
    tolerance: float = 0.0,
    linear_class: str | None = None,
) -> Report:
    """Compare two files array by array, whatever their formats.

    >>> diff(model, model)["nrmse"]
    0.0
    """
    rows: list[Report] = []
    total: _Sums = _NO_SUMS
    compared = 0
    with (
        open(first, linear_class=linear_class) as f,
        open(second, linear_class=linear_class) as g,
    ):
        for entry in f.entries():
            other = g.entry(entry["name"])
            row = {**entry, "in": "both" if other else "first", "second": other}
            sums: _Sums = _NO_SUMS
            why: str | None = None
            if other and other["shape"] != entry["shape"]:
                why = "different shapes"
            elif other:
                try:
                    sums = _compared(f, g, entry)
                    compared += 1
                except Error as e:
                    why = str(e)
            rows.append(_diff_row(row, sums, why, tolerance))
            total = _add(total, sums)
        for entry in g.entries():
            if f.entry(entry["name"]) is None:
                row = {**entry, "in": "second", "second": None}
                rows.append(_diff_row(row, _NO_SUMS, None, tolerance))
    differ = sum(row["differs"] for row in rows)
    return {
        "first": _os.fsdecode(first),
        "second": _os.fsdecode(second),
        "tolerance": tolerance,
        "compared": compared,
        "differ": differ,
        "values": total[0],
        "differing": total[1],
        "nonfinite": total[2],
        **_error(total),
        "arrays": rows,
    }


def _compared(f: File, g: File, entry: Report) -> _Sums:
    sums: _Sums = _NO_SUMS
    shape = entry["shape"]
    at = 0
    for x in _pieces(f, entry):
        if not shape or x.shape[0] == shape[0]:
            y = g.load(entry["name"])
        else:
            y = g.get_slice(entry["name"])[at : at + x.shape[0]]
            at += x.shape[0]
        sums = _lowbit._compare(x, y, sums)
    return sums


def _diff_row(row: Report, sums: _Sums, why: str | None, tolerance: float) -> Report:
    error = _error(sums)
    over = error["nrmse"] is None or error["nrmse"] > tolerance or sums[2] > 0
    if row["in"] == "both" and why is None and sums[0] == 0:
        over = False  # no elements
    return {
        **row,
        "message": why,
        "values": sums[0],
        "differing": sums[1],
        "nonfinite": sums[2],
        **error,
        "differs": over,
    }
