"""Transformations of functions of trees of arrays: gradients, compilation."""

from __future__ import annotations

from . import _lowbit
from ._trees import flatten, unflatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ._lowbit import Array, ArrayLike


def value_and_grad(
    fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """A function that returns fn's value, a float scalar, and its gradients.

    argnums: which arguments, trees of float arrays, to differentiate by; an integer or
    several. has_aux: fn returns (value, other results).

    >>> import lowbit
    >>> f = value_and_grad(lambda x: lowbit.sum(x * x))
    >>> value, gradient = f(lowbit.array([1.0, 2.0]))
    >>> value.item(), gradient.tolist()
    (5.0, [2.0, 4.0])
    """
    several = not isinstance(argnums, int)
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def wrapped(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        chosen = tuple(args[k] for k in numbers)
        leaves, structure = flatten(chosen)
        aux: Any = None

        def of_leaves(*arrays: Array) -> Any:
            nonlocal aux
            full = list(args)
            for k, tree in zip(numbers, unflatten(structure, arrays)):
                full[k] = tree
            result = fn(*full, **kwargs)
            if has_aux:
                result, aux = result
            return result

        value, grads = _lowbit._value_and_grad(of_leaves, leaves, len(leaves))
        trees = unflatten(structure, grads)
        grads = trees if several else trees[0]
        return ((value, aux), grads) if has_aux else (value, grads)

    return wrapped


def grad(fn: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that returns the gradients of fn alone; see value_and_grad.

    >>> import lowbit
    >>> grad(lambda x: x * x)(lowbit.array(3.0)).item()
    6.0
    """
    both = value_and_grad(fn, argnums)
    return lambda *args, **kwargs: both(*args, **kwargs)[1]


def vjp(fn: Callable[..., Array], *args: Any, cotangent: ArrayLike) -> tuple[Array, Any]:
    """fn(*args), an array, and the gradients of sum(fn(*args) * cotangent).

    The gradients are a tuple with a tree for each argument.
    """
    leaves, structure = flatten(args)
    value, grads = _lowbit._vjp(
        lambda *arrays: fn(*unflatten(structure, arrays)),
        leaves,
        len(leaves),
        cotangent,
    )
    return value, unflatten(structure, grads)


def ste(fn: Callable[[Array], Array]) -> Callable[[ArrayLike], Array]:
    """fn, which must keep the shape of its array, with the identity as derivative."""
    return lambda x: _lowbit._ste(fn, x)


class compile:
    """A function of trees of arrays that is traced once and then runs fused.

    Every structure of arguments, shapes, dtypes and formats is traced once, by a call of
    fn on arrays without elements. Results have the same bits as those of fn. check: trace
    on every call and compare. The first call with a structure runs fn itself.

    >>> import lowbit
    >>> @compile
    ... def f(x, w):
    ...     return lowbit.relu(x @ w)
    >>> w = lowbit.quantize(lowbit.random_normal(0, (64, 32)), "int8")
    >>> f(lowbit.random_normal(1, (4, 64)), w).shape
    (4, 32)
    """

    __slots__ = ("_fn", "_options", "_programs", "__weakref__", "__dict__")

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        check: bool = False,
        cache: int = 16,
        fold_bytes: int = 0,
    ) -> None:
        self._fn = fn
        self._options: dict[str, Any] = {
            "check": check,
            "cache": cache,
            "fold_bytes": fold_bytes,
        }
        self._programs: dict[Any, tuple[_lowbit.Program, Any]] = {}
        self.__wrapped__ = fn
        self.__doc__ = fn.__doc__
        self.__name__ = getattr(fn, "__name__", "compiled")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        found = self._programs.get(structure)
        if found is None:
            return self._first(structure, args, kwargs)
        program, out = found
        return unflatten(out, program(leaves))

    def _first(self, structure: Any, args: Any, kwargs: Any) -> Any:
        result = self._fn(*args, **kwargs)
        leaves, out = flatten(result)

        def of_leaves(*arrays: Array) -> Sequence[Array]:
            args, kwargs = unflatten(structure, arrays)
            leaves, now = flatten(self._fn(*args, **kwargs))
            if now != out:
                raise TypeError(
                    "a compiled function must return the same structure every time"
                )
            return leaves

        program = _lowbit.Program(of_leaves, len(leaves), **self._options)
        self._programs[structure] = program, out
        return result

    def stats(self) -> dict[str, int]:
        """The numbers of programs, traces, runs and eager calls, as a dict."""
        total = {"programs": 0, "traces": 0, "runs": 0, "eager": 0}
        for program, _ in self._programs.values():
            for name, n in program.stats().items():
                total[name] += n
        return total

    def explain(self, form: str = "text") -> str:
        """Describes the steps of all programs as text, JSON or a Graphviz drawing."""
        return "\n".join(
            program.explain(form)
            for program, _ in self._programs.values()
            if program.stats()["programs"]
        )


jit = compile
