"""Methods of arrays with numpy's arguments: functions of array_api, and what Python's own
functions call. They are added to the extension's class when lowbit is imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from . import array_api as xp
from ._lowbit import Array

if TYPE_CHECKING:
    from ._lowbit import ArrayLike, DTypeLike

    _Base = Array
else:
    _Base = object

_Axes = int | Sequence[int] | None


def _call(
    fn: Callable[..., Array], x: Array, axis: _Axes, keepdims: bool, out: None, **more: Any
) -> Array:
    """numpy's functions call these methods with out=None."""
    if out is not None:
        raise TypeError(f"{fn.__name__}: out is an array, and arrays are immutable")
    return fn(x, axis=axis, keepdims=keepdims, **more)


class _Methods(_Base):  # type: ignore[misc] # Array is final
    def sum(
        self,
        axis: _Axes = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
    ) -> Array:
        """lowbit.sum."""
        return _call(xp.sum, self, axis, keepdims, out, dtype=dtype)

    def prod(
        self,
        axis: _Axes = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
    ) -> Array:
        """lowbit.prod."""
        return _call(xp.prod, self, axis, keepdims, out, dtype=dtype)

    def mean(
        self,
        axis: _Axes = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
    ) -> Array:
        """lowbit.mean."""
        x = self if dtype is None else self.astype(dtype)
        return _call(xp.mean, x, axis, keepdims, out)

    def var(
        self,
        axis: _Axes = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
    ) -> Array:
        """lowbit.var; ddof is its correction."""
        x = self if dtype is None else self.astype(dtype)
        return _call(xp.var, x, axis, keepdims, out, correction=ddof)

    def std(
        self,
        axis: _Axes = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
    ) -> Array:
        """lowbit.std; ddof is its correction."""
        x = self if dtype is None else self.astype(dtype)
        return _call(xp.std, x, axis, keepdims, out, correction=ddof)

    def max(
        self, axis: _Axes = None, out: None = None, keepdims: bool = False
    ) -> Array:
        """lowbit.max."""
        return _call(xp.max, self, axis, keepdims, out)

    def min(
        self, axis: _Axes = None, out: None = None, keepdims: bool = False
    ) -> Array:
        """lowbit.min."""
        return _call(xp.min, self, axis, keepdims, out)

    def any(
        self, axis: _Axes = None, out: None = None, keepdims: bool = False
    ) -> Array:
        """lowbit.any."""
        return _call(xp.any, self, axis, keepdims, out)

    def all(
        self, axis: _Axes = None, out: None = None, keepdims: bool = False
    ) -> Array:
        """lowbit.all."""
        return _call(xp.all, self, axis, keepdims, out)

    def argmax(
        self, axis: int | None = None, out: None = None, *, keepdims: bool = False
    ) -> Array:
        """lowbit.argmax."""
        return _call(xp.argmax, self, axis, keepdims, out)

    def argmin(
        self, axis: int | None = None, out: None = None, *, keepdims: bool = False
    ) -> Array:
        """lowbit.argmin."""
        return _call(xp.argmin, self, axis, keepdims, out)

    def squeeze(self, axis: _Axes = None) -> Array:
        """Without that axis, or all axes of size 1."""
        if axis is None:
            axis = tuple(k for k, n in enumerate(self.shape) if n == 1)
        return xp.squeeze(self, axis=axis)

    def flatten(self) -> Array:
        """The elements along one axis."""
        return self.reshape(-1)

    def dot(self, other: ArrayLike) -> Array:
        """self @ other."""
        return self @ other

    def numpy(self) -> Any:
        """numpy.asarray(self), which decodes a quantized array."""
        import numpy

        return numpy.asarray(self)

    def __contains__(self, value: ArrayLike) -> bool:
        return bool(xp.any(self == value))

    def __format__(self, spec: str) -> str:
        """Of one element, for specifications of numbers; any array's text for none."""
        if spec and self.size == 1:
            return format(self.item(), spec)
        return format(str(self), spec)

    def __round__(self, digits: int | None = None) -> Array:
        if digits:
            raise ValueError(f"round: {digits} digits, only 0 are supported")
        return xp.round(self)

    def __divmod__(self, other: ArrayLike) -> tuple[Array, Array]:
        return self // other, self % other

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TypeError(
            "arrays are immutable: use lowbit.where(mask, new, x) or"
            " lowbit.dynamic_update_slice(x, new, start)"
        )


for _name, _value in vars(_Methods).items():
    if callable(_value):
        _value.__qualname__ = f"Array.{_name}"
        setattr(Array, _name, _value)
