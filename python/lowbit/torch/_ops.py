"""The operators torch.ops.lowbit.*: kernels, shapes for tracing, gradients.

A packed weight is an argument `parts` (tensors) with `spec` (its descriptor). It is frozen:
no operator has a gradient for it. Tensors are lent to the library by DLPack, and results
are lent back: nothing is copied, unless an input is not row-major.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import lowbit
from lowbit import _lowbit
from lowbit._quantize import _config

from ._packed import NAMES, Packed, array_of, info

_LIB = torch.library.Library("lowbit", "DEF")
_DTYPES = {
    dtype: getattr(lowbit, str(dtype).removeprefix("torch.")) for dtype in NAMES
}


def _define(schema: str, kernel: Callable[..., Any], fake: Callable[..., Any]) -> Any:
    """An operator; tracing and opcheck need it to be functional."""
    name = schema.partition("(")[0]
    _LIB.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    _LIB.impl(name, kernel, "CPU")
    torch.library.register_fake(f"lowbit::{name}", fake, lib=_LIB)
    return getattr(torch.ops.lowbit, name)


def _gradient(
    name: str, setup: Callable[..., None], backward: Callable[..., Any]
) -> None:
    torch.library.register_autograd(
        f"lowbit::{name}", backward, setup_context=setup, lib=_LIB
    )


def _lent(x: Tensor) -> lowbit.Array:
    x = x.detach()
    return lowbit.asarray(x if x.is_contiguous() else x.contiguous())


def _rows(x: Tensor, columns: int) -> Tensor:
    """x as a matrix, if its last axis fits: otherwise the library's error names its shape."""
    if x.dim() == 2 or not x.dim() or x.shape[-1] != columns:
        return x
    return x.reshape(x.numel() // columns if columns else x.shape[:-1].numel(), columns)


def _result(y: lowbit.Array, x: Tensor, columns: int) -> Tensor:
    out = torch.from_dlpack(y)
    return out if x.dim() == 2 else out.view(*x.shape[:-1], columns)


def _product(
    x: Tensor,
    w: lowbit.Array,
    bias: Tensor | None,
    precision: str,
    in_out: bool,
) -> Tensor:
    if not x.is_floating_point():
        raise lowbit.DtypeError(f"linear: x is {x.dtype}, not a float dtype")
    # The library's threads are those that torch would use.
    _lowbit._use_threads(torch.get_num_threads())
    k, n = w.shape if in_out else w.shape[::-1]
    y = _lowbit.linear(
        _lent(_rows(x, k)),
        w,
        None if bias is None else _lent(bias),
        dtype=_DTYPES.get(x.dtype, x.dtype),
        precision=precision or None,
        in_out=in_out,
    )
    return _result(y, x, n)


def _check_last(who: str, x: Tensor, size: int) -> None:
    if not x.dim() or x.shape[-1] != size:
        raise lowbit.ShapeError(
            f"{who}: x has shape ({','.join(map(str, x.shape))}), "
            f"but the weight requires {size} columns"
        )


# ---- linear


def _linear(
    x: Tensor, parts: list[Tensor], bias: Tensor | None, spec: str, precision: str
) -> Tensor:
    return _product(x, array_of(spec, parts), bias, precision, False)


def _linear_fake(
    x: Tensor, parts: list[Tensor], bias: Tensor | None, spec: str, precision: str
) -> Tensor:
    rows, columns = info(spec).shape
    _check_last("linear", x, columns)
    return x.new_empty((*x.shape[:-1], rows))


def _linear_setup(ctx: Any, inputs: Any, output: Any) -> None:
    _, parts, bias, ctx.spec, ctx.precision = inputs
    ctx.bias_dtype = None if bias is None else bias.dtype
    ctx.save_for_backward(*parts)


def _linear_backward(ctx: Any, dy: Tensor) -> Any:
    parts = list(ctx.saved_tensors)
    dx = db = None
    if ctx.needs_input_grad[0]:
        dx = linear_dx_op(dy, parts, ctx.spec, ctx.precision)
    if ctx.needs_input_grad[2]:
        db = dy.reshape(-1, dy.shape[-1]).sum(0, dtype=torch.float32)
        db = db.to(ctx.bias_dtype)
    return dx, [None] * len(parts), db, None, None


linear_op = _define(
    "linear(Tensor x, Tensor[] parts, Tensor? bias, str spec, str precision) -> Tensor",
    _linear,
    _linear_fake,
)
_gradient("linear", _linear_setup, _linear_backward)


# ---- its gradient for x: dy (..., out) with w (out, in)


def _linear_dx(dy: Tensor, parts: list[Tensor], spec: str, precision: str) -> Tensor:
    return _product(dy, array_of(spec, parts), None, precision, True)


def _linear_dx_fake(
    dy: Tensor, parts: list[Tensor], spec: str, precision: str
) -> Tensor:
    rows, columns = info(spec).shape
    _check_last("linear_dx", dy, rows)
    return dy.new_empty((*dy.shape[:-1], columns))


def _linear_dx_setup(ctx: Any, inputs: Any, output: Any) -> None:
    _, parts, ctx.spec, ctx.precision = inputs
    ctx.save_for_backward(*parts)


def _linear_dx_backward(ctx: Any, g: Tensor) -> Any:
    parts = list(ctx.saved_tensors)
    return linear_op(g, parts, None, ctx.spec, ctx.precision), [None] * len(parts), None, None


linear_dx_op = _define(
    "linear_dx(Tensor dy, Tensor[] parts, str spec, str precision) -> Tensor",
    _linear_dx,
    _linear_dx_fake,
)
_gradient("linear_dx", _linear_dx_setup, _linear_dx_backward)


# ---- both under torch.func (vmap, grad, jvp), which custom operators do not support


class _Functional(torch.autograd.Function):
    """linear, or linear_dx if `turned`. packed: (parts, spec), which is not batched."""

    @staticmethod
    def forward(
        x: Tensor,
        bias: Tensor | None,
        packed: tuple[list[Tensor], str],
        precision: str,
        turned: bool,
    ) -> Tensor:
        parts, spec = packed
        if turned:
            return linear_dx_op(x, parts, spec, precision)
        return linear_op(x, parts, bias, spec, precision)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, bias, ctx.packed, ctx.precision, ctx.turned = inputs
        ctx.bias_dtype = None if bias is None else bias.dtype

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:
        dx = _Functional.apply(dy, None, ctx.packed, ctx.precision, not ctx.turned)
        db = None
        if ctx.bias_dtype is not None:
            db = dy.reshape(-1, dy.shape[-1]).sum(0, dtype=torch.float32)
            db = db.to(ctx.bias_dtype)
        return dx, db, None, None, None

    @staticmethod
    def jvp(ctx: Any, x: Tensor | None, bias: Tensor | None, *unused: Any) -> Any:
        if x is None:
            raise NotImplementedError("lowbit.torch: a tangent of the bias, but none of x")
        return _Functional.apply(x, bias, ctx.packed, ctx.precision, ctx.turned)

    @staticmethod
    def vmap(
        info: Any,
        in_dims: Any,
        x: Tensor,
        bias: Tensor | None,
        packed: Any,
        precision: str,
        turned: bool,
    ) -> Any:
        at, at_bias = in_dims[:2]
        x = x.unsqueeze(0) if at is None else x.movedim(at, 0)
        if bias is None or at_bias is None:
            return _Functional.apply(x, bias, packed, precision, turned), 0
        y = _Functional.apply(x, None, packed, precision, turned)
        bias = bias.movedim(at_bias, 0)
        return y + bias.view(len(bias), *[1] * (y.dim() - 2), -1).to(y.dtype), 0


def linear_any(
    x: Tensor, parts: list[Tensor], bias: Tensor | None, spec: str, precision: str
) -> Tensor:
    if not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active():
        return _Functional.apply(x, bias, (parts, spec), precision, False)
    return linear_op(x, parts, bias, spec, precision)


# ---- embedding


def _embedding(ids: Tensor, parts: list[Tensor], spec: str) -> Tensor:
    table = array_of(spec, parts)
    flat = ids.detach().reshape(-1)
    if flat.is_floating_point() or flat.is_complex() or flat.dtype == torch.bool:
        raise lowbit.DtypeError(f"embedding: indices are {ids.dtype}, not integers")
    if flat.numel():
        low, high = (int(i) for i in torch.aminmax(flat))
        if low < 0 or high >= table.shape[0]:
            raise IndexError(
                f"embedding: index {low if low < 0 else high} is out of range "
                f"for {table.shape[0]} rows"
            )
    _lowbit._use_threads(torch.get_num_threads())
    rows = lowbit.materialize(lowbit.embedding(table, lowbit.asarray(flat)))
    return torch.from_dlpack(rows).view(*ids.shape, table.shape[1])


def _embedding_fake(ids: Tensor, parts: list[Tensor], spec: str) -> Tensor:
    found = info(spec)
    return ids.new_empty((*ids.shape, found.shape[1]), dtype=found.dtype)


embedding_op = _define(
    "embedding(Tensor ids, Tensor[] parts, str spec) -> Tensor",
    _embedding,
    _embedding_fake,
)


# ---- quantize and dequantize


def config_text(config: Any = None, **options: Any) -> str:
    """The options of lowbit.quantize as a text, which operators can have."""
    d = {**_config(config, None, None, False, True, {}), **options}
    d = {k: v for k, v in d.items() if v is not None and v is not False}
    for key, value in d.items():
        if not isinstance(value, (str, int, float, tuple, list)):
            d[key] = getattr(value, "name", None) or str(value).removeprefix("torch.")
    return json.dumps(d, sort_keys=True)


@functools.lru_cache(maxsize=256)
def plan(
    shape: tuple[int, ...], dtype: torch.dtype, config: str
) -> list[tuple[tuple[int, ...], torch.dtype]]:
    """Shapes and dtypes of the parts that quantizing a tensor of this shape makes."""
    zeros = lowbit.zeros(shape, dtype=_DTYPES.get(dtype, dtype))
    _, parts = _lowbit._to_parts(_lowbit._quantize(zeros, json.loads(config)))
    return [(a.shape, getattr(torch, a.dtype.name)) for a in parts.values()]


def _quantize(x: Tensor, config: str) -> list[Tensor]:
    _lowbit._use_threads(torch.get_num_threads())
    return Packed.from_array(_lowbit._quantize(_lent(x), json.loads(config))).parts


def _quantize_fake(x: Tensor, config: str) -> list[Tensor]:
    parts = plan(tuple(int(n) for n in x.shape), x.dtype, config)
    return [x.new_empty(shape, dtype=dtype) for shape, dtype in parts]


quantize_op = _define(
    "quantize(Tensor x, str config) -> Tensor[]", _quantize, _quantize_fake
)


def _dequantize(parts: list[Tensor], spec: str) -> Tensor:
    _lowbit._use_threads(torch.get_num_threads())
    return torch.from_dlpack(lowbit.materialize(array_of(spec, parts)))


def _dequantize_fake(parts: list[Tensor], spec: str) -> Tensor:
    found = info(spec)
    return parts[0].new_empty(found.shape, dtype=found.dtype)


dequantize_op = _define(
    "dequantize(Tensor[] parts, str spec) -> Tensor", _dequantize, _dequantize_fake
)


# ---- linear with a float weight that is quantized in each step


def _ste_linear(
    x: Tensor, w: Tensor, bias: Tensor | None, config: str, precision: str
) -> Tensor:
    q = _lowbit._straight_through(_lent(w), json.loads(config))
    return _product(x, q, bias, precision, False)


def _ste_linear_fake(
    x: Tensor, w: Tensor, bias: Tensor | None, config: str, precision: str
) -> Tensor:
    _check_last("ste_linear", x, w.shape[1])
    return x.new_empty((*x.shape[:-1], w.shape[0]))


def _ste_linear_setup(ctx: Any, inputs: Any, output: Any) -> None:
    x, w, bias, ctx.config, ctx.precision = inputs
    ctx.bias_dtype = None if bias is None else bias.dtype
    ctx.save_for_backward(x, w)


def _ste_linear_backward(ctx: Any, dy: Tensor) -> Any:
    x, w = ctx.saved_tensors
    rows = dy.reshape(-1, dy.shape[-1])
    dx = dw = db = None
    if ctx.needs_input_grad[0]:
        dx = ste_linear_dx_op(dy, w, ctx.config, ctx.precision)
    if ctx.needs_input_grad[1]:
        dw = rows.t().to(w.dtype) @ x.reshape(-1, x.shape[-1]).to(w.dtype)
        if "clip_gradient" in ctx.config:
            dw = ste_gradient_op(dw, w, ctx.config)
    if ctx.needs_input_grad[2]:
        db = rows.sum(0, dtype=torch.float32).to(ctx.bias_dtype)
    return dx, dw, db, None, None


def _ste_linear_dx(dy: Tensor, w: Tensor, config: str, precision: str) -> Tensor:
    q = _lowbit._straight_through(_lent(w), json.loads(config))
    return _product(dy, q, None, precision, True)


def _ste_linear_dx_fake(dy: Tensor, w: Tensor, config: str, precision: str) -> Tensor:
    return dy.new_empty((*dy.shape[:-1], w.shape[1]))


def _ste_gradient(dw: Tensor, w: Tensor, config: str) -> Tensor:
    options = json.loads(config)
    _, (g,) = lowbit.vjp(
        lambda a: _lowbit._straight_through(a, options),
        lowbit.array(w.detach()),
        cotangent=lowbit.array(dw.detach()),
    )
    return torch.from_dlpack(lowbit.astype(g, _DTYPES[dw.dtype])).clone()


ste_linear_op = _define(
    "ste_linear(Tensor x, Tensor w, Tensor? bias, str config, str precision) -> Tensor",
    _ste_linear,
    _ste_linear_fake,
)
ste_linear_dx_op = _define(
    "ste_linear_dx(Tensor dy, Tensor w, str config, str precision) -> Tensor",
    _ste_linear_dx,
    _ste_linear_dx_fake,
)
ste_gradient_op = _define(
    "ste_gradient(Tensor dw, Tensor w, str config) -> Tensor",
    _ste_gradient,
    lambda dw, w, config: torch.empty_like(dw, memory_format=torch.contiguous_format),
)
_gradient("ste_linear", _ste_linear_setup, _ste_linear_backward)


# ---- functions


def quantize(x: Tensor, config: Any = "nf4", **options: Any) -> Packed:
    """A tensor quantized to any format of lowbit; config as in lowbit.quantize.

    >>> quantize(torch.ones(4, 64), "int8").format
    'int8'
    """
    text = config_text(config, **options)
    if x.is_meta:  # a weight that will be loaded
        packed = quantize(torch.zeros_like(x, device="cpu"), config, **options)
        return Packed(packed.spec, [t.to("meta") for t in packed.parts])
    return Packed.from_array(_lowbit._quantize(_lent(x), json.loads(text)))


def dequantize(packed: Packed) -> Tensor:
    """The values, as a dense tensor of packed.dtype."""
    return dequantize_op(packed.parts, packed.spec)


def linear(
    x: Tensor, weight: Packed, bias: Tensor | None = None, *, precision: str | None = None
) -> Tensor:
    """x (..., in) times the transpose of weight (out, in), plus bias, in x's dtype.

    precision: "highest", "fast" or "fastest" (default: that of lowbit.config). The gradient
    for x is computed with the packed weight, which has none itself.
    """
    return linear_any(x, weight.parts, bias, weight.spec, precision or "")


def embedding(ids: Tensor, table: Packed) -> Tensor:
    """Rows of a packed table, decoded; an index out of range is an IndexError."""
    return embedding_op(ids, table.parts, table.spec)
