"""Quantizing, with eformer's names and signatures."""

from __future__ import annotations

from . import _lowbit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from ._lowbit import Array, ArrayLike, Shape

    Config: TypeAlias = "QuantizationConfig | str | dict[str, Any] | Any"


class QuantizationType(str):
    """The formats by eformer's names: QuantizationType.NF4 is "nf4".

    >>> QuantizationType.NF4
    'nf4'
    >>> QuantizationType("int8")
    'int8'
    """

    __slots__ = ()
    NF4: QuantizationType
    INT8: QuantizationType
    TERNARY: QuantizationType
    BINARY: QuantizationType

    def __new__(cls, name: str) -> QuantizationType:
        known = [f for f in _lowbit.formats() if _lowbit.can_quantize(f)]
        if str(name) not in known:
            raise _lowbit.ArgumentError(
                f"{name!r} is not a format (one of {', '.join(known)})"
            )
        return super().__new__(cls, name)

    @property
    def value(self) -> str:
        return str(self)


for _name in ("NF4", "INT8", "TERNARY", "BINARY"):
    setattr(QuantizationType, _name, QuantizationType(_name.lower()))
del _name


class QuantizationConfig:
    """How to quantize.

    dtype: the format, a QuantizationType or its name ("nf4"). block_size: elements that
    share a scale (default: the format's). simulate: return a dense array of the quantized
    values. use_kernel=False: run the portable reference code. Other options are those of
    lb_quant_config in lowbit.h: axes, scale, meaning, threshold, blocks, compat ("native",
    "eformer", "bnb-cuda", "bnb-cpu"), decode, on_nonfinite ("error", "clamp"),
    double_quant, center, clip_gradient; and materialize, the dtype of the values.

    >>> QuantizationConfig("int8", axes=0)
    QuantizationConfig('int8', axes=0)
    """

    __slots__ = ("dtype", "block_size", "simulate", "use_kernel", "options")

    def __init__(
        self,
        dtype: str | QuantizationType = "nf4",
        block_size: int | None = None,
        simulate: bool = False,
        use_kernel: bool = True,
        **options: Any,
    ) -> None:
        self.dtype = _format(dtype)
        self.block_size = block_size
        self.simulate = simulate
        self.use_kernel = use_kernel
        self.options = options

    def as_dict(self) -> dict[str, Any]:
        """The options as members of lb_quant_config."""
        if self.block_size == 0:  # in lb_quant_config: the default
            raise _lowbit.ArgumentError("block_size is 0 (None is the default)")
        options = dict(self.options)
        materialize = options.pop("materialize", None)
        return {
            "format": self.dtype,
            "block_size": self.block_size,
            "simulate": self.simulate,
            "reference": not self.use_kernel,
            "dtype": materialize,
            **options,
        }

    def __repr__(self) -> str:
        words = [repr(str(self.dtype))]
        if self.block_size is not None:
            words.append(f"block_size={self.block_size}")
        if self.simulate:
            words.append("simulate=True")
        if not self.use_kernel:
            words.append("use_kernel=False")
        words += [f"{name}={value!r}" for name, value in self.options.items()]
        return f"QuantizationConfig({', '.join(words)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QuantizationConfig):
            return NotImplemented
        return self.as_dict() == other.as_dict()

    __hash__ = None  # type: ignore[assignment]


def _format(dtype: Any) -> str:
    """The name of a format; enums of other packages have it as their value."""
    return str(getattr(dtype, "value", dtype))


def _config(
    config_or_format: Any,
    dtype: Any,
    block_size: int | None,
    simulate: bool,
    use_kernel: bool,
    options: dict[str, Any],
) -> dict[str, Any]:
    given = config_or_format if config_or_format is not None else dtype
    if isinstance(given, dict):
        return {**given, **options}
    if isinstance(given, QuantizationConfig) or hasattr(given, "block_size"):
        if not isinstance(given, QuantizationConfig):  # eformer's own class
            given = QuantizationConfig(
                given.dtype, given.block_size, given.simulate, given.use_kernel
            )
        return {**given.as_dict(), **options}
    if given is None:
        given = "nf4"
    return QuantizationConfig(
        given, block_size, simulate, use_kernel, **options
    ).as_dict()


def quantize(
    array: ArrayLike,
    config: Config | None = None,
    dtype: str | QuantizationType | None = None,
    block_size: int | None = None,
    simulate: bool = False,
    use_kernel: bool = True,
    **options: Any,
) -> Array:
    """Quantize an array.

    config: a QuantizationConfig, a format's name, or the config of another array. Or the
    options of QuantizationConfig by name. The gradient is the identity.

    >>> q = quantize([[1.0, -2.0], [3.0, 4.0]], "int8")
    >>> q.config["format"]
    'int8'
    """
    return _lowbit._quantize(
        array,
        _config(config, dtype, block_size, simulate, use_kernel, options),
    )


def straight_through(
    array: ArrayLike,
    config: Config | None = None,
    dtype: str | QuantizationType | None = None,
    block_size: int | None = None,
    simulate: bool = False,
    use_kernel: bool = True,
    **options: Any,
) -> Array:
    """Like quantize, but the result always has a float dtype, as training requires."""
    return _lowbit._straight_through(
        array,
        _config(config, dtype, block_size, simulate, use_kernel, options),
    )


def from_codes(config: Config, codes: ArrayLike, scale: ArrayLike | None = None) -> Array:
    """A quantized array of existing codes (integers) and scales.

    >>> from_codes({"format": "ternary", "scale": "none"}, [[1, 0, -1, 1]]).tolist()
    [[1.0, 0.0, -1.0, 1.0]]
    """
    return _lowbit._from_codes(_config(config, None, None, False, True, {}), codes, scale)


def from_parts(
    config: Config, shape: Shape, parts: dict[str, Any], layout: str | None = None
) -> Array:
    """A quantized array of stored parts, a dict as Array.parts returns it.

    layout: None for the format's own one, "eformer" for eformer's.
    """
    return _lowbit._from_parts(
        _config(config, None, None, False, True, {}), shape, parts, layout
    )
