"""replace_linear and load_linear: packed modules in place of a model's linears."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

import lowbit

from . import _state
from ._modules import Embedding, Linear, _PackedModule

# Output heads and routers are small, and models are sensitive to them.
_KEPT = {
    r"(^|\.)(lm_head|embed_out|output|score)$": "output head",
    r"(^|\.)(router|gate)$": "router",
}


class Report(list[dict[str, Any]]):
    """What became of the modules that have matrices: a dict for each.

    name, kind (the class), shape, status ("replaced" or "kept"), why (it was kept), format,
    bytes before and after, bits per weight. print(report) shows a table.
    """

    @property
    def replaced(self) -> list[str]:
        return [row["name"] for row in self if row["status"] == "replaced"]

    @property
    def kept(self) -> dict[str, str]:
        """Names and reasons."""
        return {row["name"]: row["why"] for row in self if row["status"] == "kept"}

    @property
    def before(self) -> int:
        return sum(row["before"] for row in self)

    @property
    def after(self) -> int:
        return sum(row["after"] for row in self)

    def __str__(self) -> str:
        lines = []
        for row in self:
            what = row["why"]
            if row["status"] == "replaced":
                what = f"{row['format']}, {row['bits']:.4g} bits"
            shape = ",".join(map(str, row["shape"]))
            lines.append(f"{row['status']:8}  {row['name']}  ({shape})  {what}")
        lines.append(
            f"{len(self.replaced)} of {len(self)} replaced: "
            f"{self.before:,} bytes before, {self.after:,} after"
        )
        return "\n".join(lines)


class _Patterns:
    """Regular expressions, each of which must match a name."""

    def __init__(self, what: str, patterns: str | Iterable[str] | None) -> None:
        self.what = what
        self.given = [patterns] if isinstance(patterns, str) else list(patterns or ())
        self.unused = set(self.given)

    def match(self, name: str) -> str | None:
        found = None
        for p in self.given:
            if re.search(p, name):
                self.unused.discard(p)
                found = found or p
        return found

    def check(self, names: list[str]) -> None:
        for p in sorted(self.unused):
            near = difflib.get_close_matches(p, names, 3, 0.3) or names[:3]
            raise lowbit.ArgumentError(
                f"{self.what}={p!r} matches no module (there are {', '.join(near)})"
            )


def _matrices(model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module, Any]]:
    """Modules with a parameter of their own of at least two axes, and its shape."""
    for name, module in model.named_modules():
        if isinstance(module, _PackedModule):
            yield name, module, module.packed.shape
            continue
        own = [p for p in module.parameters(recurse=False) if p.dim() > 1]
        if own:
            yield name, module, max(own, key=torch.Tensor.numel).shape


def _bytes(module: torch.nn.Module) -> int:
    own = list(module.parameters(recurse=False)) + list(module.buffers(recurse=False))
    return sum(t.nbytes for t in own)


def _shared(model: torch.nn.Module) -> set[int]:
    """Parameters that several modules have."""
    seen: set[int] = set()
    several: set[int] = set()
    for module in model.modules():
        for p in module.parameters(recurse=False):
            (several if id(p) in seen else seen).add(id(p))
    return several


def _put(model: torch.nn.Module, name: str, module: torch.nn.Module) -> None:
    parent, _, child = name.rpartition(".")
    setattr(model.get_submodule(parent), child, module)


def _walk(
    model: torch.nn.Module,
    include: str | Iterable[str] | None,
    exclude: str | Iterable[str] | None,
    choose: Callable[[str, torch.nn.Module, bool], torch.nn.Module | str],
) -> Report:
    """choose returns a module, or the reason why there is none. It is called before any
    module is replaced: an error leaves the model as it was."""
    wanted, unwanted = _Patterns("include", include), _Patterns("exclude", exclude)
    report, made = Report(), dict[str, Any]()
    rows = list(_matrices(model))
    for name, module, shape in rows:
        row: dict[str, Any] = {"name": name, "kind": type(module).__name__}
        row["shape"] = tuple(shape)
        row |= {"status": "kept", "why": None, "format": None, "bits": None}
        row["before"] = row["after"] = _bytes(module)
        asked = wanted.match(name)
        if not name:
            new: torch.nn.Module | str = "the model itself"
        elif pattern := unwanted.match(name):
            new = f"excluded by {pattern!r}"
        elif wanted.given and not asked:
            new = "not included"
        else:
            new = choose(name, module, asked is not None)
        if isinstance(new, str):
            row["why"] = new
        else:
            made[name] = new
            row |= {"status": "replaced", "format": new.format, "bits": new.bits}
            row["after"] = _bytes(new)
        report.append(row)
    for patterns in (wanted, unwanted):
        patterns.check([name for name, _, _ in rows])
    for name, new in made.items():
        _put(model, name, new)
    return report


def replace_linear(
    model: torch.nn.Module,
    config: Any = "nf4",
    *,
    include: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] | None = None,
    embeddings: bool = False,
    precision: str | None = None,
) -> Report:
    """Quantizes the linears of a model in place.

    config: as in lowbit.quantize, or a dict of patterns and such configs: the first pattern
    that matches counts. include, exclude: regular expressions that are searched in the
    modules' names; one that matches nothing is an error. Output heads, routers, and
    weights that several modules share are kept unless included. embeddings: also
    torch.nn.Embedding. Linears of bitsandbytes keep their bytes.

    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU())
    >>> print(replace_linear(model, "int8"))
    replaced  0  (64,64)  int8, 8.5 bits
    1 of 1 replaced: 16,640 bytes before, 4,608 after
    """
    shared = _shared(model)
    recipe = (
        _Patterns("config", config)
        if isinstance(config, dict) and "format" not in config
        else None
    )

    def choose(
        name: str, module: torch.nn.Module, asked: bool
    ) -> torch.nn.Module | str:
        bnb = type(module).__name__ in ("Linear4bit", "Linear8bitLt")
        if isinstance(module, _PackedModule):
            return "already packed"
        if type(module) is torch.nn.Embedding:
            if not embeddings and not asked:
                return "an embedding (embeddings=True)"
        elif type(module) is not torch.nn.Linear and not bnb:
            return f"{type(module).__name__} is not a linear"
        if not asked:
            for pattern, why in _KEPT.items():
                if re.search(pattern, name):
                    return why
            if id(module.weight) in shared:
                return "its weight is shared"
        of = config
        if recipe is not None:
            found = recipe.match(name)
            if found is None:
                return "no config for it"
            of = config[found]
        if isinstance(module, torch.nn.Embedding):
            return Embedding.from_embedding(module, of)
        return Linear.from_linear(module, of, precision=precision)

    report = _walk(model, include, exclude, choose)
    if recipe is not None:
        recipe.check([row["name"] for row in report])
    return report


def load_linear(
    model: torch.nn.Module,
    path: Any,
    *,
    include: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] | None = None,
    precision: str | None = None,
    rename: Callable[[str], str] | None = None,
) -> Report:
    """Replaces linears and embeddings by the packed arrays of a file or model directory.

    Of a module NAME the array NAME.weight, or rename("NAME.weight") (for GGUF's names), is
    used, in any format that lowbit.open reads, or as the state_dict of packed modules has it
    (save_pretrained). Dense arrays are not loaded.
    """
    with lowbit.open(path) as f:
        found = {e["name"]: e for e in f.entries()}

        def packed(at: str, shape: tuple[Any, ...]) -> Any:
            if at in found:
                return f.load(at)
            own = _state.own_names(found, at.removesuffix("weight"))
            state = {short: torch.from_dlpack(f.load(n)) for short, n in own.items()}
            return _state.from_state(state, shape, torch.float32, "{}")

        def choose(
            name: str, module: torch.nn.Module, asked: bool
        ) -> torch.nn.Module | str:
            at = f"{name}.weight"
            at = rename(at) if rename else at
            if at not in found and f"{at}.lowbit" not in found:
                return f"the file has no {at}"
            if at in found and found[at]["format"] in (None, "dense"):
                return "the file has floats"
            shape = (
                (module.num_embeddings, module.embedding_dim)
                if isinstance(module, torch.nn.Embedding)
                else (
                    getattr(module, "out_features", None),
                    getattr(module, "in_features", None),
                )
            )
            if at in found and shape != tuple(found[at]["shape"]):
                raise lowbit.ShapeError(
                    f"{name} has shape {shape}, {at} in the file {found[at]['shape']}"
                )
            if isinstance(module, torch.nn.Embedding):
                return Embedding.from_array(packed(at, shape))
            return Linear.from_array(
                packed(at, shape), getattr(module, "bias", None), precision=precision
            ).train(module.training)

        return _walk(model, include, exclude, choose)
