"""The array API standard (2024.12), as far as lowbit's operations cover it.

lowbit.array_api is what x.__array_namespace__() returns; all of it is in lowbit as well.
Arrays are immutable, the default dtypes are float32 and int32, and there are no complex
dtypes. Not covered: sort, argsort, unique_*, fft and linalg beyond products.
"""

from __future__ import annotations

import builtins as _b
import math as _math

from . import _lowbit
from ._lowbit import *

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ._lowbit import ArrayLike, Axes, DTypeLike, Shape

__array_api_version__ = "2024.12"

bool_, int_, float_ = _b.bool, _b.int, _b.float

pi = _math.pi
e = _math.e
inf = _math.inf
nan = _math.nan
newaxis = None

_FLOATS = (float16, bfloat16, float32, float64)
_SIGNED = (int8, int16, int32, int64)
_UNSIGNED = (uint8, uint16, uint32, uint64)


def _is_float(x):
    return x.dtype.kind == "f"


def _dtype_of(x):
    """The dtype of an array, or of a dtype."""
    return x.dtype if isinstance(x, Array) else x


def _axis(axis, ndim):
    if not -ndim <= axis < ndim:
        raise AxisError(f"axis {axis} is out of range for {ndim} axes")
    return axis % ndim


# ---- dtypes --------------------------------------------------------------------


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> bool_:
    """Whether dtype is of a kind: a dtype, "bool", "signed integer", "unsigned integer",
    "integral", "real floating", "complex floating", "numeric", or a tuple of them.

    >>> isdtype(float32, "real floating")
    True
    """
    if isinstance(kind, tuple):
        return _b.any(isdtype(dtype, k) for k in kind)
    kinds = {
        "bool": "b",
        "signed integer": "i",
        "unsigned integer": "u",
        "integral": "iu",
        "real floating": "f",
        "complex floating": "",
        "numeric": "iuf",
    }
    if isinstance(kind, str):
        if kind not in kinds:
            raise ArgumentError(f"{kind!r} is not a kind of dtypes")
        return dtype.kind in kinds[kind] and kinds[kind] != ""
    return dtype == kind


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype that operations on arrays, dtypes and Python numbers have."""
    result = None
    weak = [x for x in arrays_and_dtypes if isinstance(x, (bool_, int_, float_))]
    for x in arrays_and_dtypes:
        if isinstance(x, (bool_, int_, float_)):
            continue
        result = _dtype_of(x) if result is None else promote_types(result, _dtype_of(x))
    if result is None:
        raise ArgumentError("result_type needs an array or a dtype")
    for x in weak:
        if isinstance(x, float_) and result.kind != "f":
            result = float32
        elif not isinstance(x, bool_) and result.kind == "b":
            result = int32
    return result


def can_cast(from_: DType | Array, to: DType, /) -> bool_:
    """Whether promotion of from_ and to gives to."""
    return promote_types(_dtype_of(from_), to) == to


class finfo:
    """Limits of a float dtype.

    >>> finfo(float32).bits
    32
    """

    _limits = {  # bits, digits of the significand, least exponent, largest value
        "float16": (16, 10, -14, 65504.0),
        "bfloat16": (16, 7, -126, (2 - 2.0**-7) * 2.0**127),
        "float32": (32, 23, -126, (2 - 2.0**-23) * 2.0**127),
        "float64": (64, 52, -1022, (2 - 2.0**-52) * 2.0**1023),
    }

    def __init__(self, type, /):
        self.dtype = _dtype_of(type)
        if self.dtype.kind != "f":
            raise DtypeError(f"{self.dtype} is not a float dtype")
        self.bits, digits, least, self.max = self._limits[self.dtype.name]
        self.min = -self.max
        self.eps = 2.0**-digits
        self.smallest_normal = 2.0**least

    def __repr__(self):
        return f"finfo({self.dtype})"


class iinfo:
    """Limits of an integer dtype."""

    def __init__(self, type, /):
        self.dtype = _dtype_of(type)
        if self.dtype.kind not in "iu":
            raise DtypeError(f"{self.dtype} is not an integer dtype")
        self.bits = 8 * self.dtype.itemsize
        signed = self.dtype.kind == "i"
        self.max = 2 ** (self.bits - signed) - 1
        self.min = -(2 ** (self.bits - 1)) if signed else 0

    def __repr__(self):
        return f"iinfo({self.dtype})"


def astype(
    x: Array, dtype: DTypeLike, /, *, copy: bool_ = True, device: object = None
) -> Array:
    """x converted to dtype. A packed array stays packed if dtype is a float."""
    return _lowbit.astype(x, dtype)


# ---- making arrays --------------------------------------------------------------


def ones(shape: Shape, *, dtype: DTypeLike | None = None, device: object = None) -> Array:
    """Ones; float32 by default."""
    return full(shape, 1, dtype=dtype or float32)


def empty(
    shape: Shape, *, dtype: DTypeLike | None = None, device: object = None
) -> Array:
    """Zeros, because arrays are immutable."""
    return _lowbit.zeros(shape, dtype=dtype)


def zeros(
    shape: Shape, *, dtype: DTypeLike | None = None, device: object = None
) -> Array:
    """Zeros; float32 by default.

    >>> zeros((2, 3)).shape
    (2, 3)
    """
    return _lowbit.zeros(shape, dtype=dtype)


def zeros_like(
    x: Array, /, *, dtype: DTypeLike | None = None, device: object = None
) -> Array:
    """Zeros of x's shape."""
    return _lowbit.zeros(x.shape, dtype=dtype or x.dtype)


def ones_like(
    x: Array, /, *, dtype: DTypeLike | None = None, device: object = None
) -> Array:
    """Ones of x's shape."""
    return full(x.shape, 1, dtype=dtype or x.dtype)


def empty_like(
    x: Array, /, *, dtype: DTypeLike | None = None, device: object = None
) -> Array:
    """Zeros of x's shape."""
    return zeros_like(x, dtype=dtype)


def full_like(
    x: Array,
    /,
    fill_value: float_,
    *,
    dtype: DTypeLike | None = None,
    device: object = None,
) -> Array:
    """An array of x's shape filled with one value."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype)


def arange(
    start: float_,
    /,
    stop: float_ | None = None,
    step: float_ = 1,
    *,
    dtype: DTypeLike | None = None,
    device: object = None,
) -> Array:
    """start, start + step, ... below stop.

    >>> arange(5).tolist()
    [0, 1, 2, 3, 4]
    """
    if stop is None:
        start, stop = 0, start
    n = _b.max(_math.ceil((stop - start) / step), 0)
    whole = _b.all(isinstance(x, int_) for x in (start, stop, step))
    if dtype is None:
        dtype = int32 if whole else float32
        if whole and _b.max(_b.abs(start), _b.abs(stop)) >= 2**31:
            dtype = int64
    work = int64 if whole else float64
    index = iota(n, 0, work)
    return _lowbit.astype(index * step + start, dtype)


def linspace(
    start: float_,
    stop: float_,
    /,
    num: int_,
    *,
    dtype: DTypeLike | None = None,
    device: object = None,
    endpoint: bool_ = True,
) -> Array:
    """num values from start to stop at equal distances."""
    steps = num - 1 if endpoint else num
    index = iota(num, 0, float64)
    x = index * ((stop - start) / steps) + start if steps > 0 else index + start
    if endpoint and num > 1:
        x = where(
            iota(num, 0) == num - 1, _lowbit.full((), float_(stop), dtype=float64), x
        )
    return _lowbit.astype(x, dtype or float32)


def eye(
    n_rows: int_,
    n_cols: int_ | None = None,
    /,
    *,
    k: int_ = 0,
    dtype: DTypeLike | None = None,
    device: object = None,
) -> Array:
    """Ones on the k-th diagonal."""
    shape = (n_rows, n_rows if n_cols is None else n_cols)
    k = _b.max(-shape[0], _b.min(k, shape[1]))
    return _lowbit.astype(iota(shape, 0) + k == iota(shape, 1), dtype or float32)


def _below(x, k):
    k = _b.max(-x.shape[-2], _b.min(k, x.shape[-1]))
    return iota(x.shape, -2) + k >= iota(x.shape, -1)


def tril(x: Array, /, *, k: int_ = 0) -> Array:
    """x with zeros above the k-th diagonal."""
    return where(_below(x, k), x, zeros_like(x))


def triu(x: Array, /, *, k: int_ = 0) -> Array:
    """x with zeros below the k-th diagonal."""
    return where(_below(x, k - 1), zeros_like(x), x)


def meshgrid(*arrays: Array, indexing: str = "xy") -> list[Array]:
    """Coordinate arrays of a grid."""
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"indexing is {indexing!r}: not 'xy' or 'ij'")
    n = len(arrays)
    order = list(range(n))
    if indexing == "xy" and n > 1:
        order[:2] = 1, 0
    shape = tuple(arrays[k].size for k in order)
    return [
        broadcast_to(
            reshape(x, tuple(x.size if order[i] == k else 1 for i in range(n))), shape
        )
        for k, x in enumerate(arrays)
    ]


# ---- elementwise -------------------------------------------------------------------


def isnan(x: Array, /) -> Array:
    """Whether x is NaN."""
    return x != x


def isinf(x: Array, /) -> Array:
    """Whether x is infinite."""
    return _lowbit.abs(x) == inf if _is_float(x) else x != x


def logical_not(x: Array, /) -> Array:
    """not x"""
    return bitwise_invert(_lowbit.astype(x, bool))


def logical_and(x: Array, y: Array, /) -> Array:
    """Elementwise logical and."""
    return bitwise_and(_lowbit.astype(x, bool), _lowbit.astype(y, bool))


def logical_or(x: Array, y: Array, /) -> Array:
    """Elementwise logical or."""
    return bitwise_or(_lowbit.astype(x, bool), _lowbit.astype(y, bool))


def logical_xor(x: Array, y: Array, /) -> Array:
    """Elementwise logical exclusive or."""
    return bitwise_xor(_lowbit.astype(x, bool), _lowbit.astype(y, bool))


def positive(x: Array, /) -> Array:
    """x"""
    return x


def sign(x: Array, /) -> Array:
    """-1, 0 or 1; NaN for NaN. 0 for -0, unlike XLA."""
    return _lowbit.sign(x) + 0


def square(x: Array, /) -> Array:
    """x * x"""
    return x * x


def reciprocal(x: Array, /) -> Array:
    """1 / x"""
    return 1 / x


def trunc(x: Array, /) -> Array:
    """x rounded toward zero."""
    return where(x < 0, ceil(x), floor(x)) if _is_float(x) else x


def signbit(x: Array, /) -> Array:
    """Whether the sign bit is set, also of -0.0 and NaN."""
    bits = {2: int16, 4: int32, 8: int64}[x.dtype.itemsize]
    return bitcast(x, bits) < 0


def copysign(x: Array, y: Array, /) -> Array:
    """x with the sign of y."""
    dtype = result_type(x, y)
    size = _lowbit.abs(asarray(x, dtype=dtype))
    return where(signbit(asarray(y, dtype=dtype)), -size, size)


def nextafter(x: Array, y: Array, /) -> Array:
    """The float next to x in the direction of y."""
    dtype = result_type(x, y)
    x, y = broadcast_arrays(asarray(x, dtype=dtype), asarray(y, dtype=dtype))
    bits = bitcast(x, {2: int16, 4: int32, 8: int64}[dtype.itemsize])
    away = equal(x < y, x > 0)  # from zero: its bits, as an integer, grow
    next = bitcast(bits + where(away, ones_like(bits), -1), dtype)
    tiny = copysign(bitcast(ones_like(bits), dtype), y)
    next = where(x == y, y, where(x == 0, tiny, next))
    return where(logical_or(isnan(x), isnan(y)), nan, next)


def conj(x: Array, /) -> Array:
    """x, because there are no complex dtypes."""
    return x


def real(x: Array, /) -> Array:
    """x, because there are no complex dtypes."""
    return x


def imag(x: Array, /) -> Array:
    """Zeros, because there are no complex dtypes."""
    return zeros_like(x)


def log2(x: Array, /) -> Array:
    """Base-2 logarithm."""
    return _lowbit.astype(log(_lowbit.astype(x, float64)) / _math.log(2), x.dtype)


def log10(x: Array, /) -> Array:
    """Base-10 logarithm."""
    return _lowbit.astype(log(_lowbit.astype(x, float64)) / _math.log(10), x.dtype)


def logaddexp(x: Array, y: Array, /) -> Array:
    """log(exp(x) + exp(y))"""
    most = maximum(x, y)
    rest = log1p(exp(-_lowbit.abs(x - y)))
    return where(x == y, most + _math.log(2), most + rest)


def hypot(x: Array, y: Array, /) -> Array:
    """sqrt(x**2 + y**2) without overflow."""
    dtype = result_type(x, y)
    x, y = _lowbit.abs(x), _lowbit.abs(y)
    most, least = maximum(x, y), minimum(x, y)
    ratio = least / where(most == 0, ones_like(most), most)
    size = most * sqrt(1 + ratio * ratio)
    return _lowbit.astype(where(logical_or(isinf(x), isinf(y)), inf, size), dtype)


def _in_f64(fn):
    """fn computed in float64 and rounded once to the dtype of x."""

    def of(x, /):
        return _lowbit.astype(fn(_lowbit.astype(x, float64)), x.dtype)

    return of


def _odd(fn):
    """An odd function, given for x >= 0."""

    def of(x):
        y = fn(_lowbit.abs(x))
        return where(signbit(x), -y, y)

    return of


sinh = _in_f64(
    _odd(
        lambda x: where(
            x > 700, exp(x - _math.log(2)), (expm1(x) + expm1(x) / (expm1(x) + 1)) / 2
        )
    )
)
sinh.__doc__ = "Hyperbolic sine."
cosh = _in_f64(lambda x: exp(_lowbit.abs(x) - _math.log(2)) + exp(-_lowbit.abs(x)) / 2)
cosh.__doc__ = "Hyperbolic cosine."
asinh = _in_f64(
    _odd(
        lambda x: where(
            x > 1e8, log(x) + _math.log(2), log1p(x + x * x / (1 + sqrt(x * x + 1)))
        )
    )
)
asinh.__doc__ = "Inverse hyperbolic sine."
acosh = _in_f64(
    lambda x: where(
        x > 1e8, log(x) + _math.log(2), log1p((x - 1) + sqrt(x - 1) * sqrt(x + 1))
    )
)
acosh.__doc__ = "Inverse hyperbolic cosine."
atanh = _in_f64(_odd(lambda x: log1p(2 * x / (1 - x)) / 2))
atanh.__doc__ = "Inverse hyperbolic tangent."
atan = _in_f64(lambda x: atan2(x, ones_like(x)))
atan.__doc__ = "Inverse tangent."
asin = _in_f64(lambda x: atan2(x, sqrt((1 - x) * (1 + x))))
asin.__doc__ = "Inverse sine."
acos = _in_f64(lambda x: atan2(sqrt((1 - x) * (1 + x)), x))
acos.__doc__ = "Inverse cosine."


def clip(
    x: Array, /, min: ArrayLike | None = None, max: ArrayLike | None = None
) -> Array:
    """x limited to min ... max."""
    dtype = x.dtype
    if min is not None:
        x = maximum(x, min)
    if max is not None:
        x = minimum(x, max)
    return _lowbit.astype(x, dtype)


# ---- structure ------------------------------------------------------------------------


def reshape(x: Array, /, shape: Shape, *, copy: bool_ | None = None) -> Array:
    """x in another shape. One size may be -1."""
    return _lowbit.reshape(x, shape)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to."""
    rank = _b.max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for s in shapes:
        for k, n in enumerate(s, rank - len(s)):
            if n != 1 and out[k] not in (1, n):
                raise ShapeError(f"shapes {shapes} do not broadcast")
            out[k] = n if n != 1 else out[k]
    return tuple(out)


def broadcast_arrays(*arrays: Array) -> list[Array]:
    """All arrays in the shape that they broadcast to."""
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return [broadcast_to(x, shape) for x in arrays]


def stack(arrays: Sequence[Array], /, *, axis: int_ = 0) -> Array:
    """Joins arrays of one shape along a new axis."""
    ndim = arrays[0].ndim + 1
    return concat([expand_dims(x, axis=axis) for x in arrays], axis=_axis(axis, ndim))


def unstack(x: Array, /, *, axis: int_ = 0) -> tuple[Array, ...]:
    """The slices of x along an axis, as a tuple."""
    x = moveaxis(x, axis, 0)
    return tuple(x[i] for i in range(x.shape[0]))


def moveaxis(
    x: Array, source: int_ | Sequence[int_], destination: int_ | Sequence[int_], /
) -> Array:
    """Moves axes of x to other positions."""
    source = [source] if isinstance(source, int_) else source
    destination = [destination] if isinstance(destination, int_) else destination
    source = [_axis(k, x.ndim) for k in source]
    destination = [_axis(k, x.ndim) for k in destination]
    order = [k for k in range(x.ndim) if k not in source]
    for to, k in sorted(zip(destination, source)):
        order.insert(to, k)
    return permute_dims(x, axes=order)


def matrix_transpose(x: Array, /) -> Array:
    """x with its last two axes swapped."""
    return x.mT


def roll(x: Array, /, shift: int_ | Sequence[int_], *, axis: Axes = None) -> Array:
    """x with elements moved along an axis, from the end to the start."""
    if axis is None:
        return reshape(roll(reshape(x, (-1,)), shift, axis=0), x.shape)
    if isinstance(axis, int_):
        axis = (axis,)
    shifts = (shift,) * len(axis) if isinstance(shift, int_) else shift
    for k, n in zip(axis, shifts):
        k = _axis(k, x.ndim)
        if x.shape[k] == 0:
            continue
        at = -n % x.shape[k]
        before = (slice(None),) * k
        if at:
            x = concat(
                [x[(*before, slice(at, None))], x[(*before, slice(0, at))]], axis=k
            )
    return x


def tile(x: Array, repetitions: Sequence[int_], /) -> Array:
    """Repeats x along its axes."""
    rank = _b.max(x.ndim, len(repetitions))
    shape = (1,) * (rank - x.ndim) + x.shape
    times = (1,) * (rank - len(repetitions)) + tuple(repetitions)
    for k, n in enumerate(times):
        wide = shape[:k] + (n,) + shape[k:]
        x = broadcast_to(reshape(x, shape[:k] + (1,) + shape[k:]), wide)
        shape = shape[:k] + (n * shape[k],) + shape[k + 1 :]
        x = reshape(x, shape)
    return x


def repeat(
    x: Array, repeats: int_ | Sequence[int_] | Array, /, *, axis: int_ | None = None
) -> Array:
    """Repeats each element of x."""
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = _axis(axis, x.ndim)
    if isinstance(repeats, int_):
        repeats = [repeats]
    elif isinstance(repeats, Array):
        repeats = repeats.tolist() if repeats.ndim else [repeats.item()]
    if len(repeats) == 1:
        repeats = list(repeats) * x.shape[axis]
    index = [i for i, n in enumerate(repeats) for _ in range(n)]
    return take(x, asarray(index, dtype=int32), axis=axis)


def take(x: Array, indices: Array, /, *, axis: int_ | None = None) -> Array:
    """x[indices] along an axis; indices are checked."""
    if axis is None:
        if x.ndim != 1:
            raise AxisError("take: axis is needed for more than one axis")
        axis = 0
    return x[(slice(None),) * _axis(axis, x.ndim) + (indices,)]


def take_along_axis(x: Array, indices: Array, /, *, axis: int_ = -1) -> Array:
    """Elements of x at other indices for each slice along an axis."""
    axis = _axis(axis, x.ndim)
    shape = broadcast_shapes(
        x.shape[:axis] + (1,) + x.shape[axis + 1 :],
        indices.shape[:axis] + (1,) + indices.shape[axis + 1 :],
    )
    x = broadcast_to(x, shape[:axis] + x.shape[axis : axis + 1] + shape[axis + 1 :])
    at = shape[:axis] + indices.shape[axis : axis + 1] + shape[axis + 1 :]
    keys = [
        broadcast_to(indices, at) if k == axis else iota(at, k, int64)
        for k in range(x.ndim)
    ]
    return x[tuple(keys)]


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """The indices of nonzero elements, one array per axis."""
    if x.ndim == 0:
        raise AxisError("nonzero: a 0-dimensional array has no indices")
    mask = x != 0
    return tuple(iota(x.shape, k, int64)[mask] for k in range(x.ndim))


def diff(
    x: Array,
    /,
    *,
    axis: int_ = -1,
    n: int_ = 1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Array:
    """Differences of neighbors, n times."""
    axis = _axis(axis, x.ndim)
    parts = [p for p in (prepend, x, append) if p is not None]
    x = concat(parts, axis=axis) if len(parts) > 1 else x
    before = (slice(None),) * axis
    for _ in range(n):
        later, earlier = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = not_equal(later, earlier) if x.dtype == bool else later - earlier
    return x


# ---- statistics ----------------------------------------------------------------------------


def _empty_axes(axis):
    return axis is not None and not isinstance(axis, int_) and len(axis) == 0


def sum(
    x: Array,
    /,
    *,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    keepdims: bool_ = False,
) -> Array:
    """Sum. Integers are promoted as in jax.numpy, unless dtype is given."""
    if dtype is not None:
        x = _lowbit.astype(x, dtype)
        y = (
            _lowbit.reduce_sum(x, axis)
            if not keepdims
            else _lowbit.sum(x, axis=axis, keepdims=True)
        )
        return _lowbit.astype(y, dtype)
    return _lowbit.sum(x, axis=axis, keepdims=keepdims)


def prod(
    x: Array,
    /,
    *,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    keepdims: bool_ = False,
) -> Array:
    """Product. Integers are promoted as in jax.numpy, unless dtype is given."""
    if dtype is not None:
        x = _lowbit.astype(x, dtype)
    y = _lowbit.prod(x, axis=axis, keepdims=keepdims)
    return y if dtype is None else _lowbit.astype(y, dtype)


def var(
    x: Array, /, *, axis: Axes = None, correction: float_ = 0.0, keepdims: bool_ = False
) -> Array:
    """Variance; correction 1: of a sample."""
    y = _lowbit._var(x, axis, keepdims)
    if not correction:
        return y
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int_) else axis
    n = _math.prod(x.shape[k] for k in axes)
    return y * (n / (n - correction) if n > correction else nan)


def std(
    x: Array, /, *, axis: Axes = None, correction: float_ = 0.0, keepdims: bool_ = False
) -> Array:
    """Standard deviation; correction 1: of a sample."""
    return sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def _cumulative(fn, x, axis, dtype, include_initial, initial):
    """fn accumulated along the axis, in log2(n) steps."""
    if axis is None:
        if x.ndim != 1:
            raise AxisError("axis is needed for more than one axis")
        axis = 0
    axis = _axis(axis, x.ndim)
    if dtype is None and x.dtype.kind in "iub" and x.dtype.itemsize < 4:
        dtype = uint32 if x.dtype.kind == "u" else int32
    x = x if dtype is None else _lowbit.astype(x, dtype)
    lo = [0] * x.ndim
    step, size = 1, x.shape[axis]
    while step < size:
        lo[axis] = step
        hi = [-n for n in lo]
        x = fn(x, pad(x, tuple(lo), tuple(hi), value=initial))
        step *= 2
    if include_initial:
        lo[axis] = 1
        x = pad(x, tuple(lo), value=initial)
    return x


def cumulative_sum(
    x: Array,
    /,
    *,
    axis: int_ | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool_ = False,
) -> Array:
    """Sums of all elements up to each one.

    >>> cumulative_sum(asarray([1, 2, 3])).tolist()
    [1, 3, 6]
    """
    return _cumulative(add, x, axis, dtype, include_initial, 0)


def cumulative_prod(
    x: Array,
    /,
    *,
    axis: int_ | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool_ = False,
) -> Array:
    """Products of all elements up to each one."""
    return _cumulative(multiply, x, axis, dtype, include_initial, 1)


def count_nonzero(x: Array, /, *, axis: Axes = None, keepdims: bool_ = False) -> Array:
    """Number of nonzero elements."""
    return sum(_lowbit.astype(x != 0, int32), axis=axis, keepdims=keepdims)


def searchsorted(
    x1: Array, x2: Array, /, *, side: str = "left", sorter: Array | None = None
) -> Array:
    """The indices at which elements of x2 would be inserted into the sorted x1."""
    if sorter is not None:
        x1 = take(x1, sorter, axis=0)
    x2 = expand_dims(x2, axis=x2.ndim)
    before = x1 < x2 if side == "left" else x1 <= x2
    return sum(_lowbit.astype(before, int32), axis=-1)


# ---- products --------------------------------------------------------------------------------


def tensordot(
    x: Array, y: Array, /, *, axes: int_ | tuple[Sequence[int_], Sequence[int_]] = 2
) -> Array:
    """Product over the last axes of x and the first of y, or over pairs of axes."""
    if isinstance(axes, int_):
        axes = (range(x.ndim - axes, x.ndim), range(axes))
    pair = tuple(tuple(a) for a in axes)
    return dot_general(x, y, pair)


def vecdot(x: Array, y: Array, /, *, axis: int_ = -1) -> Array:
    """Dot products of vectors along an axis."""
    n, m = x.shape[_axis(axis, x.ndim)], y.shape[_axis(axis, y.ndim)]
    if n != m:
        raise ShapeError(f"vecdot: vectors of {n} and {m} elements")
    x, y = broadcast_arrays(x, y)
    return sum(x * y, axis=axis, dtype=result_type(x, y))


def __array_namespace_info__() -> _Info:
    """Devices, dtypes and capabilities."""
    return _Info()


class _Info:
    def capabilities(self):
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": 8,
        }

    def default_device(self):
        return "cpu"

    def default_dtypes(self, *, device=None):
        return {
            "real floating": float32,
            "complex floating": None,
            "integral": int32,
            "indexing": int64,
        }

    def devices(self):
        return ["cpu"]

    def dtypes(self, *, device=None, kind=None):
        every = (*_SIGNED, *_UNSIGNED, float32, float64, bool)
        return {t.name: t for t in every if kind is None or isdtype(t, kind)}


_OTHERS = {"File", "Optimizer", "Program", "TYPE_CHECKING", "annotations"}
_OTHERS |= {"bool_", "int_", "float_"}
__all__ = [n for n in globals() if not n.startswith("_") and n not in _OTHERS]
