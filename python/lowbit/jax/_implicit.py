"""ImplicitArray: objects that stand for an array, and handlers of primitives on them."""

from __future__ import annotations

import dataclasses
import inspect
import math
import operator
import types
import typing
import warnings
from typing import Any, Callable, ClassVar, Iterator

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np

_AUX = "implicit_array_aux"


def aux_field(metadata: dict[str, Any] | None = None, **kwargs: Any) -> Any:
    """A dataclass field that is static: not a child of the pytree."""
    return dataclasses.field(metadata={**(metadata or {}), _AUX: True}, **kwargs)


class UninitializedAval(Exception):
    """An ImplicitArray without a shape or dtype, whose value cannot be traced either."""


class _Lazy:
    """shape and dtype: the given one, else the class's, else that of materialize()."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        if owner is None:
            return None  # the field's default
        given = owner.__dict__.get("_" + self.name)
        if given is None:
            given = getattr(owner, f"compute_{self.name}")()
        return given

    def __set__(self, owner: Any, value: Any) -> None:
        owner.__dict__["_" + self.name] = value


# What eformer's handlers annotate dense operands with.
OrginArray = jax.Array


@dataclasses.dataclass(eq=False)
class ImplicitArray:
    """Base of arrays that materialize when an operation needs their values.

    A subclass is a dataclass with a method materialize(). Its fields are children of the
    pytree, except those made by aux_field. Inside implicit(fn), and with operators,
    primitives are handled by functions of `register`; without one, the array is
    materialized, with a warning for the first time if warn_on_materialize is set.
    """

    commute_ops: ClassVar[bool] = True
    warn_on_materialize: ClassVar[bool] = True
    default_shape: ClassVar[Any] = None
    default_dtype: ClassVar[Any] = None
    shape: Any = aux_field(kw_only=True, default=None)
    dtype: Any = aux_field(kw_only=True, default=None)

    def __init_subclass__(
        cls, commute_ops: bool = True, warn_on_materialize: bool = True, **kwargs: Any
    ) -> None:
        super().__init_subclass__(**kwargs)
        cls.commute_ops = commute_ops
        cls.warn_on_materialize = warn_on_materialize
        for name in ("shape", "dtype"):  # by keyword here as well, where redefined
            field = cls.__dict__.get(name)
            if isinstance(field, dataclasses.Field):
                field.kw_only = True
        jax.tree_util.register_pytree_with_keys_class(cls)

    def materialize(self) -> jax.Array:
        raise NotImplementedError(f"{type(self).__name__} has no materialize()")

    def _traced(self) -> Any:
        try:
            return jax.eval_shape(lambda a: a.materialize(), self)
        except Exception as error:
            raise UninitializedAval(
                f"{type(self).__name__} was made without shape and dtype, and "
                f"materialize() fails: {error}"
            ) from error

    def compute_shape(self) -> Any:
        return self.default_shape if self.default_shape is not None else self._traced().shape

    def compute_dtype(self) -> Any:
        return self.default_dtype if self.default_dtype is not None else self._traced().dtype

    @property
    def aval(self) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(tuple(self.shape), self.dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @classmethod
    def default_handler(cls, primitive: Any, *args: Any, params: Any = None) -> Any:
        """Runs a primitive on materialized operands."""
        return bind(primitive, [materialized(a) for a in args], params or {})

    def tree_flatten_with_keys(self) -> Any:
        children, static = [], []
        for field in dataclasses.fields(self):
            # Given shapes are static; those that follow from the children do not stay.
            value = self.__dict__.get(field.name, self.__dict__.get("_" + field.name))
            if field.metadata.get(_AUX):
                static.append((field.name, value))
            else:
                children.append((jax.tree_util.GetAttrKey(field.name), value))
        return children, tuple(static)

    @classmethod
    def tree_unflatten(cls, static: Any, children: Any) -> Any:
        a = object.__new__(cls)
        names = [f.name for f in dataclasses.fields(cls) if not f.metadata.get(_AUX)]
        for name, value in (*zip(names, children), *static):
            setattr(a, name, value)
        return a

    def astype(self, dtype: Any) -> Any:
        return _interpreted(lambda a: a.astype(dtype), self)

    # numpy's arrays leave operators to us.
    __array_ufunc__ = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("an implicit array cannot be lent without a copy")
        return np.asarray(self.materialize(), dtype)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar has no length")
        return int(self.shape[0])

    def __getitem__(self, key: Any) -> Any:
        return _interpreted(lambda a: a[key], self)

    def __iter__(self) -> Iterator[Any]:
        # By __getitem__ it would not end: JAX has no index that is out of range.
        return (self[i] for i in range(len(self)))

    @property
    def T(self) -> Any:
        return _interpreted(lambda a: a.T, self)

    def transpose(self, *axes: Any) -> Any:
        return _interpreted(lambda a: a.transpose(*axes), self)

    def reshape(self, *shape: Any) -> Any:
        return _interpreted(lambda a: a.reshape(*shape), self)


ImplicitArray.shape = _Lazy("shape")
ImplicitArray.dtype = _Lazy("dtype")


def _interpreted(fn: Callable[..., Any], *args: Any) -> Any:
    from ._interpreter import implicit

    return implicit(fn)(*args)


def _add_operators() -> None:
    """x + y and the rest, with jax.numpy's meaning."""

    def binary(fn: Any) -> Any:
        return lambda a, b: _operate(fn, a, b)

    def reflected(fn: Any) -> Any:
        return lambda a, b: _operate(fn, b, a)

    names = "add sub mul truediv floordiv mod pow matmul lshift rshift and or xor".split()
    for name in names:
        fn = getattr(operator, name + "_" if name in ("and", "or") else name)
        setattr(ImplicitArray, f"__{name}__", binary(fn))
        setattr(ImplicitArray, f"__r{name}__", reflected(fn))
    for name in ("lt", "le", "gt", "ge"):
        setattr(ImplicitArray, f"__{name}__", binary(getattr(operator, name)))
    for name in ("neg", "abs", "invert", "pos"):
        fn = getattr(operator, name)
        setattr(ImplicitArray, f"__{name}__", lambda a, fn=fn: _interpreted(fn, a))


def _operate(fn: Any, a: Any, b: Any) -> Any:
    for x in (a, b):
        if not isinstance(x, (ImplicitArray, jax.Array, np.ndarray, np.generic, int, float)):
            return NotImplemented
    if fn is operator.matmul:
        from ._rules import matmul

        result = matmul(a, b)
        if result is not NotImplemented:
            return result
    if isinstance(a, np.ndarray):
        a = jnp.asarray(a)
    return _interpreted(fn, a, b)


_add_operators()


def is_array(a: Any) -> bool:
    """Whether a is an array of numpy or JAX."""
    return isinstance(a, (np.ndarray, np.generic, jax.Array))


def materialized(a: Any) -> Any:
    """a as a dense array, if it is implicit, at any depth."""
    while isinstance(a, ImplicitArray):
        a = a.materialize()
    return a


def bind(primitive: Any, args: list[Any], params: dict[str, Any]) -> Any:
    """Runs a primitive of a jaxpr; what a call's jaxpr becomes depends on the version."""
    bound = primitive.get_bind_params(params)
    if isinstance(bound, tuple):
        return primitive.bind(*bound[0], *args, **bound[1])
    return primitive.bind(*args, **bound)


# ---- handlers ------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Handler:
    fn: Callable[..., Any]
    precedence: int
    number: int  # in the order of registration
    takes_primitive: bool
    operands: tuple[Any, ...]  # tuples of classes
    rest: Any  # of *args, or None
    keywords: frozenset[str] | None  # None: any

    def distance(self, args: list[Any]) -> int | None:
        """How far the annotations are from the arguments' classes; None: no match."""
        n = len(self.operands)
        if len(args) < n or (len(args) > n and self.rest is None):
            return None
        total = 0
        for a, wanted in zip(args, (*self.operands, *[self.rest] * (len(args) - n))):
            steps = [_steps(a, c) for c in wanted]
            known = [s for s in steps if s is not None]
            if not known:
                return None
            total += min(known)
        return total

    def __call__(self, primitive: Any, args: list[Any], params: dict[str, Any]) -> Any:
        if self.keywords is not None:
            params = {k: v for k, v in params.items() if k in self.keywords}
        return self.fn(*([primitive] if self.takes_primitive else []), *args, **params)


_ANY_DISTANCE = 100
_handlers: dict[str, list[_Handler]] = {}


def _steps(a: Any, wanted: Any) -> int | None:
    if wanted is Any or wanted is inspect.Parameter.empty or wanted is object:
        return _ANY_DISTANCE
    if not isinstance(wanted, type):
        return _ANY_DISTANCE  # a protocol or a type variable
    if isinstance(a, ImplicitArray):
        mro = type(a).__mro__
        return mro.index(wanted) if wanted in mro else None
    if issubclass(wanted, ImplicitArray):
        return None
    return 1 if wanted is jax.Array or isinstance(a, wanted) else None


def _classes(annotation: Any) -> tuple[Any, ...]:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return tuple(c for a in typing.get_args(annotation) for c in _classes(a))
    return (typing.get_origin(annotation) or annotation,)


def register(primitive: Any, *, precedence: int = 0) -> Callable[[Any], Any]:
    """Makes a function the handler of a primitive on implicit arrays.

    primitive: a primitive of JAX or its name, as in jaxprs ("dot_general"). The function
    gets the operands and the primitive's parameters as keywords, and before them the
    primitive if its first argument is called primitive. Annotations of operands choose
    among handlers: first by precedence, then by how specific they are, then the last one
    registered. A handler may return NotImplemented.
    """
    name = getattr(primitive, "name", primitive)
    if not isinstance(name, str):
        raise TypeError(f"register: a primitive or its name, not {primitive!r}")

    def decorate(fn: Any) -> Any:
        try:
            hints = typing.get_type_hints(fn)
        except Exception:  # annotations of names that do not exist here
            hints = {}
        Parameter = inspect.Parameter
        operands: list[Any] = []
        rest = None
        keywords: set[str] | None = set()
        takes_primitive = False
        for i, p in enumerate(inspect.signature(fn).parameters.values()):
            classes = _classes(hints.get(p.name, Any))
            if p.kind is Parameter.VAR_KEYWORD:
                keywords = None
            elif p.kind is Parameter.VAR_POSITIONAL:
                rest = classes
            elif p.kind is Parameter.KEYWORD_ONLY:
                if keywords is not None:
                    keywords.add(p.name)
            elif i == 0 and (
                p.name == "primitive" or jax.extend.core.Primitive in classes
            ):
                takes_primitive = True
            elif p.default is Parameter.empty:
                operands.append(classes)
            elif keywords is not None:
                keywords.add(p.name)
        _handlers.setdefault(name, []).append(
            _Handler(
                fn,
                precedence,
                sum(map(len, _handlers.values())),
                takes_primitive,
                tuple(operands),
                rest,
                None if keywords is None else frozenset(keywords),
            )
        )
        return fn

    return decorate


def handle(primitive: Any, args: list[Any], params: dict[str, Any]) -> Any:
    """The result of the best handler; NotImplemented if there is none."""
    found = []
    for h in _handlers.get(primitive.name, ()):
        distance = h.distance(args)
        if distance is not None:
            found.append((-h.precedence, distance, -h.number, h))
    for *_, h in sorted(found, key=lambda f: f[:3]):
        result = h(primitive, args, params)
        if result is not NotImplemented:
            return result
    return NotImplemented


_warned: set[tuple[str, str]] = set()


def warn_once(primitive: Any, a: ImplicitArray) -> None:
    key = (primitive.name, type(a).__name__)
    if not type(a).warn_on_materialize or key in _warned:
        return
    _warned.add(key)
    warnings.warn(
        f"{key[0]} has no handler for {key[1]}: it is materialized", stacklevel=2
    )
