"""implicit(fn): runs the primitives of fn with handlers for implicit arrays.

fn is traced to a jaxpr, in which implicit arrays are ordinary arrays, and the jaxpr is
run with the implicit arrays in their places. Calls are entered, loops and branches become
loops and branches over pytrees.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np

from ._implicit import ImplicitArray, bind, handle, materialized, warn_once


def is_implicit(a: Any) -> bool:
    return isinstance(a, ImplicitArray)


def _is_traced(a: Any) -> bool:
    return isinstance(a, (ImplicitArray, jax.Array, np.ndarray, np.generic))


class _Implicit:
    """implicit(fn) is fn with handlers for implicit arrays among its arguments.

    Arguments are pytrees; numbers, strings and other objects that are not arrays are
    passed as they are. Results may be implicit arrays. As a context manager it does
    nothing: operators on implicit arrays always use handlers.
    """

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return _run(fn, args, kwargs)

        return wrapped

    def __enter__(self) -> _Implicit:
        return self

    def __exit__(self, *exception: object) -> None:
        return None


implicit = use_implicit = _Implicit()


def _run(fn: Any, args: Any, kwargs: Any) -> Any:
    leaves, tree = jax.tree.flatten((args, kwargs), is_leaf=is_implicit)
    traced = [k for k, a in enumerate(leaves) if _is_traced(a)]
    out_tree = None
    kinds: list[Any] = []

    def flat(*values: Any) -> list[Any]:
        nonlocal out_tree
        full = list(leaves)
        for k, v in zip(traced, values):
            full[k] = v
        args, kwargs = jax.tree.unflatten(tree, full)
        out, out_tree = jax.tree.flatten(fn(*args, **kwargs), is_leaf=is_implicit)
        return out

    # Results that are implicit arrays already, made inside fn, are taken apart.
    def split(*values: Any) -> list[Any]:
        nonlocal kinds
        out = flat(*values)
        kinds = [jax.tree.flatten(a) for a in out]
        kinds = [(len(parts), tree) for parts, tree in kinds]
        return [p for a in out for p in jax.tree.leaves(a)]

    inputs = [leaves[k] for k in traced]
    avals = [a.aval if is_implicit(a) else a for a in inputs]
    closed = jax.make_jaxpr(split)(*avals)
    values = iter(run_jaxpr(closed, inputs))
    out = []
    for n, kind in kinds:
        parts = list(itertools.islice(values, n))
        whole = n == 1 and kind == jax.tree.structure(0)
        out.append(
            parts[0] if whole else jax.tree.unflatten(kind, map(materialized, parts))
        )
    return jax.tree.unflatten(out_tree, out)


# ---- jaxprs ---------------------------------------------------------------------


def _opened(closed: Any) -> tuple[Any, list[Any]]:
    """The jaxpr and its constants, of either kind of jaxpr."""
    if hasattr(closed, "consts") and hasattr(closed, "jaxpr"):
        return closed.jaxpr, list(closed.consts)
    return closed, []


def run_jaxpr(closed: Any, args: list[Any]) -> list[Any]:
    jaxpr, consts = _opened(closed)
    values: dict[Any, Any] = {}

    def read(v: Any) -> Any:
        return v.val if hasattr(v, "val") else values[v]

    values.update(zip(jaxpr.constvars, consts))
    values.update(zip(jaxpr.invars, args))
    for eqn in jaxpr.eqns:
        with eqn.ctx.manager:
            out = run_equation(eqn, [read(v) for v in eqn.invars])
        if not eqn.primitive.multiple_results:
            out = [out]
        values.update(zip(eqn.outvars, out))
    return [read(v) for v in jaxpr.outvars]


def run_equation(eqn: Any, args: list[Any]) -> Any:
    primitive, params = eqn.primitive, eqn.params
    rule = _control.get(primitive.name)
    if any(map(is_implicit, args)):
        result = handle(primitive, args, params)
        if result is NotImplemented and rule:
            result = rule(params, args)
        if result is NotImplemented and primitive.name in rules:
            result = rules[primitive.name](*args, **params)
        if result is not NotImplemented:
            return result
        if primitive.name not in _elementwise:
            for a in filter(is_implicit, args):
                warn_once(primitive, a)
        return bind(primitive, [materialized(a) for a in args], params)
    if primitive.name in always:
        return rules[primitive.name](*args, **params)
    if rule and _makes_implicit(params):
        result = rule(params, args)
        if result is not NotImplemented:
            return result
    return bind(primitive, args, params)


# Rules by the primitive's name: of the formats, in other files. They may decline with
# NotImplemented.
rules: dict[str, Callable[..., Any]] = {}
# Primitives whose rule is used without implicit operands as well.
always: set[str] = set()

# Results of these are dense by nature: nothing to warn about.
_elementwise = frozenset(
    "lt le gt ge eq ne integer_pow pow div sqrt add sub mul max min exp log neg abs sign "
    "rem tanh logistic rsqrt square cbrt sin cos erf erf_inv erfc log1p expm1 floor ceil "
    "round clamp select_n is_finite exp2 tan atan2 nextafter and or xor not stop_gradient "
    "conv_general_dilated reduce reduce_sum reduce_max reduce_min reduce_prod reduce_and "
    "reduce_or argmax argmin cumsum sort copy copy_p custom_jvp_call bitcast_convert_type "
    "reduce_precision convert_element_type".split()
)


def _makes_implicit(params: Any) -> bool:
    """Whether a primitive of `always` is in the jaxprs of a call, at any depth."""
    return any(
        eqn.primitive.name in always or _makes_implicit(eqn.params)
        for closed in _jaxprs(params)
        for eqn in _opened(closed)[0].eqns
    )


def _jaxprs(params: Any) -> Any:
    for value in params.values():
        for v in value if isinstance(value, (tuple, list)) else (value,):
            if hasattr(v, "eqns") or hasattr(v, "jaxpr"):
                yield v


# ---- calls, loops and branches --------------------------------------------------


def _call(params: Any, args: list[Any]) -> Any:
    return run_jaxpr(params.get("jaxpr") or params["call_jaxpr"], args)


def _remat(params: Any, args: list[Any]) -> Any:
    words = {k: params[k] for k in ("prevent_cse", "policy") if k in params}
    run = jax.checkpoint(lambda *a: run_jaxpr(params["jaxpr"], list(a)), **words)
    return run(*args)


def _cond(params: Any, args: list[Any]) -> Any:
    def branch(closed: Any) -> Any:
        return lambda *a: [materialized(v) for v in run_jaxpr(closed, list(a))]

    index, *operands = args
    branches = [branch(b) for b in params["branches"]]
    return jax.lax.switch(jnp.asarray(index, jnp.int32), branches, *operands)


def _while(params: Any, args: list[Any]) -> Any:
    n, m = params["cond_nconsts"], params["body_nconsts"]
    for_cond, for_body, state = args[:n], args[n : n + m], args[n + m :]
    return jax.lax.while_loop(
        lambda s: run_jaxpr(params["cond_jaxpr"], [*for_cond, *s])[0],
        lambda s: list(
            map(materialized, run_jaxpr(params["body_jaxpr"], [*for_body, *s]))
        ),
        [materialized(a) for a in state],
    )


def _scan(params: Any, args: list[Any]) -> Any:
    if "ft_in" in params:  # from jax 0.11 on
        consts, carry, xs = map(list, params["ft_in"].update(args).unpack())
    else:
        n, m = params["num_consts"], params["num_carry"]
        consts, carry, xs = args[:n], args[n : n + m], args[n + m :]
    n_carry = len(carry)
    xs = [a.stacked() if hasattr(a, "stacked") else materialized(a) for a in xs]

    def body(carry: Any, xs: Any) -> Any:
        out = run_jaxpr(params["jaxpr"], [*consts, *carry, *xs])
        out = [materialized(a) for a in out]
        return out[:n_carry], out[n_carry:]

    state, ys = jax.lax.scan(
        body,
        [materialized(a) for a in carry],
        xs,
        length=params["length"],
        reverse=params["reverse"],
        unroll=params["unroll"],
    )
    return [*state, *ys]


_control: dict[str, Callable[[Any, list[Any]], Any]] = {
    "jit": _call,
    "pjit": _call,
    "closed_call": _call,
    "core_call": _call,
    "remat": _remat,
    "remat2": _remat,
    "checkpoint": _remat,
    "cond": _cond,
    "while": _while,
    "scan": _scan,
}
