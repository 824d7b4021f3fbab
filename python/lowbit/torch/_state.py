"""Names of packed weights in a state_dict: bitsandbytes' where it can store them, else ours.

bitsandbytes, nf4 in blocks that do not cross rows, or int8 with a scale per row that is an
absolute maximum:

    weight                                  weight
    weight.absmax                           SCB
    weight.quant_map                        weight_format
    weight.quant_state.bitsandbytes__nf4

lowbit, any format: the tensors of a `native` file, and its descriptor as bytes:

    weight.codes, weight.absmax, ...        weight.lowbit
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

import lowbit

from ._packed import NAMES, Packed, info

_MARKS = tuple(f"weight.quant_state.bitsandbytes__{kind}" for kind in ("nf4", "fp4"))
_LONG = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "f64": "float64"}
_SHORT = {long: short for short, long in _LONG.items()}


def _text(d: dict[str, Any]) -> Tensor:
    return torch.frombuffer(bytearray(json.dumps(d).encode()), dtype=torch.uint8)


def _json(what: str, t: Tensor) -> dict[str, Any]:
    try:
        d = json.loads(bytes(t.to(torch.uint8).flatten().tolist()))
        if isinstance(d, dict):
            return d
    except ValueError:
        pass
    raise lowbit.ContentError(f"{what} is not a JSON object")


@functools.lru_cache
def nf4_map() -> Tensor:
    """The 16 values of NF4, from codes 0 ... 15 with an absmax of 1."""
    q = lowbit.from_codes(
        {"format": "nf4", "block_size": 16},
        lowbit.array([list(range(16))], dtype="uint8"),
        lowbit.array([[1.0]]),
    )
    return torch.from_dlpack(lowbit.materialize(q)).flatten().clone()


@functools.lru_cache
def dynamic_map() -> Tensor:
    """The 256 values of bitsandbytes' signed dynamic map."""
    q = lowbit.from_codes(
        {"format": "dynamic8", "block_size": 256},
        lowbit.array([list(range(256))], dtype="uint8"),
        lowbit.array([[1.0]]),
    )
    return torch.from_dlpack(lowbit.materialize(q)).flatten().clone()


# ---- to a state_dict


def to_state(q: Packed) -> dict[str, Tensor]:
    """By names after the module's prefix."""
    d = json.loads(q.spec)
    parts = dict(zip(q.names, q.parts))
    return _to_bnb4(d, parts) or _to_bnb8(d, parts) or _to_native(d, parts)


def _to_native(d: dict[str, Any], parts: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"weight.{n}": t for n, t in parts.items()} | {"weight.lowbit": _text(d)}


def _block(d: dict[str, Any]) -> int:
    """Elements of a block, if no block crosses a row or the rows are stored as one."""
    g = d["parts"]["absmax"]["groups"]
    rows = all(n == 1 for n in g[:-1]) and g[-1] > 0
    whole = len(d["stored"]) == 1 or d["stored"][-1] % max(g[-1], 2) == 0
    return g[-1] if rows and whole else 0


def _to_bnb4(d: dict[str, Any], parts: dict[str, Tensor]) -> dict[str, Tensor] | None:
    if d["format"] != "nf4" or not _block(d) or d["dtype"] not in _LONG:
        return None
    size = math.prod(d["shape"])
    state: dict[str, Any] = {
        "quant_type": "nf4",
        "blocksize": _block(d),
        "dtype": _LONG[d["dtype"]],
        "shape": d["shape"],
    }
    table = parts.get("table")
    # Of its own for each weight: writers refuse tensors that share memory.
    levels = nf4_map().clone() if table is None else table.flatten()
    if table is not None and not torch.equal(levels, nf4_map()):
        return None  # fp4, or other values
    out = {"weight": parts["codes"].reshape(-1, 1), "weight.quant_map": levels}
    if size % 2:
        return None
    nested = d["parts"]["absmax"].get("array")
    if nested is None:
        if parts["absmax"].dtype != torch.float32:
            return None
        out["weight.absmax"] = parts["absmax"].flatten()
    else:
        if len(nested["stored"]) != 1 or "absmax.offset" not in parts:
            return None
        table = parts.get("absmax.table")
        state["nested_blocksize"] = nested["parts"]["absmax"]["groups"][-1]
        state["nested_dtype"] = "float32"
        state["nested_offset"] = float(parts["absmax.offset"])
        out["weight.absmax"] = parts["absmax.codes"].flatten()
        out["weight.nested_absmax"] = parts["absmax.absmax"].flatten()
        out["weight.nested_quant_map"] = (
            dynamic_map().clone() if table is None else table.flatten()
        )
    return out | {_MARKS[0]: _text(state)}


def _to_bnb8(d: dict[str, Any], parts: dict[str, Tensor]) -> dict[str, Tensor] | None:
    if d["format"] != "int8" or d["meaning"] != 1 or d["stored"] != d["shape"]:
        return None
    if d["parts"].get("scale", {}).get("groups") != [1, 0]:
        return None
    return {
        "weight": parts["codes"],
        "SCB": parts["scale"].flatten(),
        "weight_format": torch.tensor(0, dtype=torch.uint8),
    }


# ---- from a state_dict


def own_names(names: Iterable[str], prefix: str) -> dict[str, str]:
    """Those of the weight of a module, by their names after its prefix."""
    return {
        n.removeprefix(prefix): n
        for n in names
        if n.startswith(prefix) and is_ours(n.removeprefix(prefix))
    }


def is_ours(name: str) -> bool:
    """Whether a name after the prefix belongs to the weight."""
    return name in ("weight", "SCB", "weight_format") or name.startswith("weight.")


def from_state(
    state: dict[str, Tensor], shape: tuple[int, ...], dtype: torch.dtype, spec: str
) -> Packed | None:
    """The packed weight; None if it is a float tensor. spec: of the present weight, for
    states of `native` files, which have no descriptor."""
    mark = next((m for m in _MARKS if m in state), None)
    if mark:
        found = _from_bnb4(state, mark)
    elif "SCB" in state:
        found = _from_bnb8(state, dtype)
    elif "weight" in state:
        return None
    else:
        found = _from_native(state, spec)
    found.array()  # checks all of it
    if tuple(found.shape) != tuple(shape):
        raise lowbit.ShapeError(
            f"the state has a weight {tuple(found.shape)}, the module {tuple(shape)}"
        )
    return found


def _packed(d: dict[str, Any], parts: dict[str, Tensor]) -> Packed:
    spec = json.dumps({"layout": "native", **d})
    missing = [n for n in info(spec).names if n not in parts]
    if missing:
        raise lowbit.ContentError(
            f"the state has no tensor {', '.join(f'weight.{n}' for n in missing)}"
        )
    return Packed(spec, [parts[n].detach().clone() for n in info(spec).names])


def _from_native(state: dict[str, Tensor], spec: str) -> Packed:
    text = state.get("weight.lowbit")
    d = json.loads(spec) if text is None else _json("weight.lowbit", text)
    parts = {
        n.removeprefix("weight."): t for n, t in state.items() if n.startswith("weight.")
    }
    return _packed(d, parts)


def _from_bnb8(state: dict[str, Tensor], dtype: torch.dtype) -> Packed:
    codes, scb = state["weight"], state["SCB"]
    rows = codes.shape[0] if codes.dim() == 2 else -1
    if scb.numel() != rows or codes.dtype != torch.int8:
        raise lowbit.ContentError(
            f"SCB has {scb.numel()} elements, weight is {codes.dtype} "
            f"{tuple(codes.shape)}, not torch.int8 ({scb.numel()}, ...)"
        )
    layout = state.get("weight_format")
    if layout is not None and int(layout) != 0:
        raise lowbit.UnsupportedError(
            f"weight_format is {int(layout)}: only 0, row-major, can be loaded"
        )
    shape = list(codes.shape)
    d = {
        "format": "int8",
        "dtype": NAMES[dtype],
        "shape": shape,
        "stored": shape,
        "meaning": 1,
        "parts": {"codes": {"groups": [1, 1]}, "scale": {"groups": [1, 0]}},
    }
    return _packed(d, {"codes": codes, "scale": _float("SCB", scb).reshape(-1, 1)})


def _from_bnb4(state: dict[str, Tensor], mark: str) -> Packed:
    said = _json(mark, state[mark])
    try:
        shape = [int(n) for n in said["shape"]]
        block = int(said["blocksize"])
        dtype = _SHORT[said["dtype"]]
        parts = {"codes": state["weight"].flatten()}
        absmax = state["weight.absmax"]
        levels = _float("weight.quant_map", state["weight.quant_map"].flatten())
    except (KeyError, TypeError, ValueError) as e:
        raise lowbit.ContentError(f"{mark}: no valid {e}") from e
    size = math.prod(shape)
    if block < 1 or parts["codes"].numel() * 2 - size not in (0, 1):
        raise lowbit.ContentError(
            f"{mark}: blocks of {block}, and {parts['codes'].numel()} bytes of weights "
            f"for shape {tuple(shape)}"
        )
    if absmax.dim() != 1:
        raise lowbit.ContentError(
            f"weight.absmax has shape {tuple(absmax.shape)}, not one axis: bitsandbytes "
            "saves it transposed, rounded to bf16, after a layer was used on some CPUs"
        )
    # Rows of whole blocks are stored as rows, which products read fastest.
    rows = bool(shape) and shape[-1] % block == 0 and shape[-1] % 2 == 0
    stored = shape if rows else [size]
    ones = [1] * (len(stored) - 1)
    groups: dict[str, Any] = {
        "codes": {"groups": [*ones, 2]},
        "absmax": {"groups": [*ones, block]},
    }
    scales = [*stored[:-1], -(-stored[-1] // block)]
    if "nested_blocksize" in said:
        n = math.prod(scales)
        inner = {
            "codes": {"groups": [1]},
            "absmax": {"groups": [int(said["nested_blocksize"])]},
            "table": {"groups": [0], "own": 256},
            "offset": {"groups": [0]},
        }
        groups["absmax"]["array"] = {
            "format": "dynamic8",
            "dtype": "f32",
            "shape": scales,
            "stored": [n],
            "meaning": 0,
            "parts": inner,
        }
        nested = {
            "codes": absmax,
            "absmax": state["weight.nested_absmax"].flatten(),
            "table": _float(
                "weight.nested_quant_map", state["weight.nested_quant_map"].reshape(1, -1)
            ),
            "offset": torch.tensor([said["nested_offset"]], dtype=torch.float32),
        }
        if torch.equal(nested["table"].flatten(), dynamic_map()):
            del nested["table"], inner["table"]
        parts |= {f"absmax.{name}": t for name, t in nested.items()}
    else:
        parts["absmax"] = _reshaped(
            "weight.absmax", _float("weight.absmax", absmax), scales
        )
    if not torch.equal(levels, nf4_map()):
        groups["table"] = {"groups": [0] * len(stored), "own": 16}
        parts["table"] = _reshaped("weight.quant_map", levels, [1] * len(stored) + [16])
    width = [*stored[:-1], -(-stored[-1] // 2)]
    parts["codes"] = _reshaped("weight", parts["codes"], width)
    d = {
        "format": "nf4",
        "dtype": dtype,
        "shape": shape,
        "stored": stored,
        "meaning": 0,
        "parts": groups,
    }
    return _packed(d, parts)


def _float(name: str, t: Tensor) -> Tensor:
    if not t.is_floating_point():
        raise lowbit.ContentError(f"{name} is {t.dtype}, not a float dtype")
    return t.float()


def _reshaped(name: str, t: Tensor, shape: list[int]) -> Tensor:
    if t.numel() != math.prod(shape):
        raise lowbit.ContentError(
            f"{name} has {t.numel()} elements, not {math.prod(shape)}"
        )
    return t.reshape(shape)
