"""quantize and straight_through, with eformer's names and signatures."""

from __future__ import annotations

import dataclasses
import enum
import functools
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from . import _calls, _sharding
from ._arrays import QuantizedArray, StraightThrough
from ._ffi import _WORDS, Coding
from ._implicit import ImplicitArray, materialized
from ._interpreter import always, rules


class QuantizationType(enum.StrEnum):
    """The formats that quantize() makes."""

    NF4 = "nf4"
    INT8 = "int8"
    TERNARY = "ternary"
    BINARY = "binary"

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise ValueError(
            f"Unsupported quantization type: {value!r}. Supported types: {', '.join(cls)}"
        )


def _type(value: Any) -> QuantizationType:
    return QuantizationType(getattr(value, "value", value))


@dataclasses.dataclass(frozen=True)
class QuantizationConfig:
    """How to quantize.

    dtype: a QuantizationType or its name. block_size: elements that share a scale, for
    nf4, and for others with scale="block". simulate: a dense array of the quantized
    values. use_kernel=False: run portable reference code. double_quant: scales in 8 bits,
    with a scale for each 256 of them, as in QLoRA (nf4: 4.13 bits instead of 4.5).

    axis: int8's axes that share a scale (default: the last). materialize: dtype of the
    values (default: the array's). compat="eformer" gives eformer's bits. scale ("none",
    "tensor", "row", "block"), threshold ("std", "absmean"), decode ("table", "poly") and
    on_nonfinite ("error", "clamp") are those of lb_quant_config in lowbit.h.
    """

    dtype: QuantizationType | str = QuantizationType.NF4
    block_size: int = 64
    simulate: bool = False
    use_kernel: bool = True
    axis: Any = None
    materialize: Any = None
    compat: str = "native"
    scale: str | None = None
    threshold: str | None = None
    decode: str | None = None
    on_nonfinite: str | None = None
    double_quant: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.dtype, str):
            object.__setattr__(self, "dtype", _type(self.dtype))
        for name in ("compat", "scale", "threshold", "decode", "on_nonfinite"):
            value = getattr(self, name)
            if value is not None and value not in _WORDS[name]:
                raise ValueError(
                    f"QuantizationConfig: {name} is {value!r}, not one of "
                    f"{', '.join(_WORDS[name])}"
                )


def _config(config: Any, dtype: Any, block_size: Any, simulate: bool) -> QuantizationConfig:
    if isinstance(config, QuantizationConfig):
        return config
    if config is not None and hasattr(config, "block_size"):  # eformer's own class
        return QuantizationConfig(
            _type(config.dtype), config.block_size, config.simulate, config.use_kernel
        )
    given = config if config is not None else dtype
    if given is None:
        given = QuantizationType.NF4
    return QuantizationConfig(_type(given), block_size, simulate)


_CODES_ONLY = ("ternary", "binary")


def _coding(c: QuantizationConfig, x: Any, training: bool = False) -> Coding:
    format = str(_type(c.dtype))
    if not jnp.issubdtype(x.dtype, jnp.floating):
        raise TypeError(f"quantize: an array of floats, not {x.dtype}")
    options: dict[str, Any] = {"source": x.dtype.name}
    if c.compat != "native":
        options["compat"] = c.compat
    for name in ("scale", "threshold", "decode", "on_nonfinite"):
        if getattr(c, name) is not None:
            options[name] = getattr(c, name)
    if not c.use_kernel:
        options["reference"] = True
    if c.double_quant:
        options["double_quant"] = True
    if format == "nf4" or c.scale == "block":
        options["block_size"] = _block_size(format, c.block_size)
    if format == "int8" and c.scale != "block":
        options["axes"] = _axes(c.axis, x.ndim)
    elif c.axis is not None:
        raise ValueError(f"quantize: axis is for int8, not {format}")
    dtype = c.materialize
    if dtype is None:
        codes = format in _CODES_ONLY and c.compat == "eformer" and not training
        dtype = jnp.int8 if codes else x.dtype
    if format in _CODES_ONLY and c.compat == "eformer" and c.scale is None:
        options["scale"] = "none"
    return Coding(format, jnp.dtype(dtype), tuple(sorted(options.items())))


def _block_size(format: str, size: Any) -> int:
    if not isinstance(size, (int, np.integer)) or isinstance(size, bool):
        raise TypeError(f"quantize: block_size is {size!r}, not an integer")
    if size < 1 or (format == "nf4" and size % 2):
        even = "even and " if format == "nf4" else ""
        raise ValueError(f"quantize: block_size is {size}; it must be {even}positive")
    return int(size)


def _axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Counted from the end, so that they stay right if leading axes are removed."""
    axes = (-1,) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    if rank == 0:
        return ()
    for k in axes:
        if not -rank <= k < rank:
            raise ValueError(f"quantize: axis {k} of an array of {rank} axes")
    if len({k % rank for k in axes}) != len(axes):
        raise ValueError(f"quantize: axes {axes} name an axis twice")
    return tuple(k % rank - rank for k in axes)


def quantize(
    array: Any,
    config: Any = None,
    dtype: Any = None,
    block_size: int = 64,
    simulate: bool = False,
) -> Any:
    """Quantizes an array: an Array8B, ArrayNF4 or Array1B; a dense array with simulate.

    config: a QuantizationConfig, which takes precedence, or the name of a format. The
    result has the array's sharding; devices must not share blocks. For training see
    straight_through.
    """
    c = _config(config, dtype, block_size, simulate)
    x = jnp.asarray(materialized(array))
    q = QuantizedArray._encode(_coding(c, x), x)
    if c.simulate:
        return q.materialize()
    sharding = None if isinstance(x, jax.core.Tracer) else x.sharding
    if isinstance(sharding, jax.sharding.NamedSharding) and sharding.mesh.size > 1:
        q = q.with_sharding(sharding)
    return q


# ---- straight-through -----------------------------------------------------------

# One primitive: quantize and decode, with the identity as derivative. Inside implicit
# functions its result stays packed.
straight_through_p = Primitive("straight_through")


def _through(x: Any, *, coding: Coding) -> Any:
    return QuantizedArray._encode(coding, x).materialize()


def _through_jvp(primals: Any, tangents: Any, *, coding: Coding) -> Any:
    out = straight_through_p.bind(*primals, coding=coding)
    (t,) = tangents
    if isinstance(t, ad.Zero):
        return out, ad.Zero.from_primal_value(out)
    return out, jax.lax.convert_element_type(t, out.dtype)


def _through_batched(args: Any, axes: Any, *, coding: Coding) -> Any:
    x = jnp.moveaxis(args[0], axes[0], 0)
    fn = functools.partial(_through, coding=coding)
    return jax.vmap(fn)(x), 0


straight_through_p.def_impl(jax.jit(_through, static_argnames="coding"))
straight_through_p.def_abstract_eval(
    lambda x, *, coding: jax.core.ShapedArray(x.shape, coding.dtype)
)
ad.primitive_jvps[straight_through_p] = _through_jvp
batching.primitive_batchers[straight_through_p] = _through_batched
mlir.register_lowering(
    straight_through_p, mlir.lower_fun(_through, multiple_results=False)
)


def _through_packed(x: Any, *, coding: Coding) -> Any:
    x = materialized(x)
    fixed = jax.lax.stop_gradient(x)
    return StraightThrough(x, QuantizedArray._encode(coding, fixed))


rules["straight_through"] = _through_packed
always.add("straight_through")


def straight_through(
    array: Any, config: Any = None, dtype: Any = None, block_size: int = 64
) -> jax.Array:
    """The values of quantize() in the array's dtype, with the identity as gradient.

    The result is dense. In a function made by implicit, products with it run on the packed
    codes.
    """
    c = _config(config, dtype, block_size, False)
    x = jnp.asarray(materialized(array))
    return straight_through_p.bind(x, coding=_coding(c, x, training=True))


def straight_through_8bit(weights: Any, axis: Any = None) -> jax.Array:
    return straight_through(weights, QuantizationConfig("int8", axis=axis))


def straight_through_nf4(weights: Any, block_size: int = 64) -> jax.Array:
    return straight_through(weights, QuantizationConfig("nf4", block_size))


def straight_through_1bit(weights: Any, axis: Any = None) -> jax.Array:
    """The values of quantize(weights, "ternary"); axis is accepted and does nothing."""
    return straight_through(weights, QuantizationConfig("ternary"))


def ste(fn: Callable[..., Any]) -> Callable[..., Any]:
    """fn with the identity as its derivative by the first argument, and none by others.

    fn returns an array of the first argument's shape, or an implicit one, which is
    materialized.
    """

    @functools.wraps(fn)
    def wrapped(x: Any, *args: Any, **kwargs: Any) -> Any:
        @jax.custom_jvp
        def through(x: Any) -> Any:
            return materialized(fn(x, *args, **kwargs))

        @through.defjvp
        def derivative(primals: Any, tangents: Any) -> Any:
            out = through(*primals)
            if out.shape != primals[0].shape:
                raise ValueError(
                    f"ste: {fn.__name__} changes the shape, {primals[0].shape} to "
                    f"{out.shape}, so its gradient cannot be the identity"
                )
            return out, tangents[0].astype(out.dtype)

        return through(x)

    return wrapped
