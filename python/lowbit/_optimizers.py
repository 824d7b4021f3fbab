"""Optimizers of trees of parameters."""

from __future__ import annotations

from . import _lowbit
from ._trees import flatten, unflatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class _Optimizer:
    """state: the format of the moments between steps, a dict of lb_quant_config such as
    {"format": "dynamic8"} (default: float32). schedule: "constant" or "cosine", over
    `steps` steps to least * rate, after `warmup` steps. clip_norm: limit of the norm of
    all gradients together."""

    _method: str | None = None

    def __init__(self, params: Any, rate: float = 0.0, **options: Any) -> None:
        leaves, self._structure = flatten(params)
        self._own = _lowbit.Optimizer(leaves, method=self._method, rate=rate, **options)

    def step(self, params: Any, grads: Any) -> Any:
        """The updated parameters, as a tree.

        >>> import lowbit
        >>> p = {"w": lowbit.array([1.0, 2.0])}
        >>> o = lowbit.SGD(p, rate=0.5)
        >>> o.step(p, {"w": lowbit.array([1.0, 1.0])})["w"].tolist()
        [0.5, 1.5]
        """
        leaves, structure = flatten(params)
        slopes, shape_of_grads = flatten(grads)
        if structure != self._structure or shape_of_grads != structure:
            raise _lowbit.ArgumentError(
                "step: parameters and gradients must have the structure of the "
                "optimizer's parameters"
            )
        return unflatten(structure, self._own.step(leaves, slopes))

    @property
    def steps(self) -> int:
        """Completed steps."""
        return self._own.steps

    def state(self) -> dict[str, _lowbit.Array]:
        """The arrays of the state, a dict; with lowbit.save and restore, training goes on
        with the same bits."""
        return self._own.state()

    def restore(self, state: Mapping[str, _lowbit.Array]) -> None:
        """Continues from a state."""
        own = self._own.state()
        if set(own) != set(state):
            raise _lowbit.ArgumentError(
                f"restore: the state has {sorted(state)}, not {sorted(own)}"
            )
        self._own.restore({name: state[name] for name in own})


class SGD(_Optimizer):
    """Gradient descent; options: momentum, nesterov, decay, clip_norm, schedule."""

    _method = "sgd"


class Adam(_Optimizer):
    """Adam; options: beta1, beta2, eps, decay, clip_norm, schedule, state."""

    _method = "adam"


class AdamW(_Optimizer):
    """Adam with decoupled weight decay."""

    _method = "adamw"


def schedule_rate(step: int, **options: Any) -> float:
    """The rate of a step for the options of an optimizer, without defaults.

    >>> schedule_rate(0, rate=1.0, warmup=4)
    0.25
    """
    return _lowbit._schedule_rate(step, **options)
