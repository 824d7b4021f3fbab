"""Modules with packed weights: Linear, Embedding; and one that trains floats through a
quantizer, StraightThroughLinear."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import lowbit

from . import _ops, _state
from ._packed import Packed, info, with_dtype

_PRECISIONS = (None, "highest", "fast", "fastest")


class _PackedModule(torch.nn.Module):
    """A module whose weight is packed: its parts are buffers, which no dtype converts."""

    _spec: str
    _parts: tuple[str, ...]  # names of the buffers

    def _hold(self, packed: Packed) -> None:
        if len(packed.shape) != 2:
            raise lowbit.ShapeError(
                f"{type(self).__name__}: the weight has shape {tuple(packed.shape)}, "
                "not (out, in)"
            )
        for name in getattr(self, "_parts", ()):
            delattr(self, name)
        self._spec = packed.spec
        self._parts = tuple("weight_" + n.replace(".", "_") for n in packed.names)
        for name, t in zip(self._parts, packed.parts):
            self.register_buffer(name, t, persistent=False)

    @property
    def packed(self) -> Packed:
        """The weight as stored."""
        return Packed(self._spec, [getattr(self, n) for n in self._parts])

    @property
    def weight(self) -> Tensor:
        """The weight, decoded by each access."""
        return _ops.dequantize_op([getattr(self, n) for n in self._parts], self._spec)

    @property
    def dtype(self) -> torch.dtype:
        """Of the decoded weight."""
        return info(self._spec).dtype

    @property
    def format(self) -> str:
        return info(self._spec).format

    @property
    def bits(self) -> float:
        """Bits per weight, scales included."""
        return self.packed.bits

    @property
    def config(self) -> dict[str, Any]:
        """How lowbit.quantize makes such weights; an error for layouts of other programs
        that it does not make."""
        return self.packed.array().config

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        parts = {n: self._buffers.pop(n) for n in self._parts}
        try:
            super()._apply(fn, recurse)
            probe = fn(torch.empty(0, dtype=self.dtype))
            if probe.device.type not in ("cpu", "meta"):
                raise RuntimeError(
                    f"lowbit computes on the CPU: a packed {type(self).__name__} cannot "
                    f"be moved to {probe.device}"
                )
            if probe.is_floating_point() and probe.dtype != self.dtype:
                self._spec = with_dtype(self._spec, probe.dtype)
            for name, t in parts.items():
                # As bytes, which .to(dtype) leaves alone.
                moved = fn(t.reshape(-1).view(torch.uint8))
                if moved.data_ptr() != t.data_ptr() or moved.device != t.device:
                    parts[name] = moved.view(t.dtype).view(t.shape)
        finally:
            for name, t in parts.items():
                self._buffers[name] = t
        return self

    # ---- state_dict

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, t in _state.to_state(self.packed).items():
            destination[prefix + name] = t

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        own = _state.own_names(state_dict, prefix)
        rest = {k: v for k, v in state_dict.items() if k not in own.values()}
        super()._load_from_state_dict(
            rest, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
        if not own:
            missing_keys.append(prefix + "weight")
            return
        state = {name: state_dict[key] for name, key in own.items()}
        try:
            found = _state.from_state(state, info(self._spec).shape, self.dtype, self._spec)
            if found is None:  # floats
                found = _ops.quantize(state["weight"].to(self.dtype), self.config)
            self._hold(found)
        except (lowbit.Error, KeyError) as e:
            error_msgs.append(f'While loading "{prefix}weight": {e}')

    def extra_repr(self) -> str:
        return f"format={self.format}, bits={self.bits:.4g}"


def _checked(precision: str | None) -> str | None:
    if precision not in _PRECISIONS:
        raise lowbit.ArgumentError(
            f"precision is {precision!r}: not one of highest, fast, fastest, None"
        )
    return precision


class Linear(_PackedModule):
    """A linear layer with a frozen packed weight.

    config: as in lowbit.quantize. precision: "highest", "fast" or "fastest" (default: that
    of lowbit.config, else highest). The bias is an ordinary parameter. The gradient for the
    input is computed with the packed weight.

    >>> Linear(128, 64, config="int8")
    Linear(in_features=128, out_features=64, bias=True, format=int8, bits=8.25)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        config: Any = "nf4",
        *,
        precision: str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        made = torch.nn.Linear(in_features, out_features, bias, dtype=dtype)
        self._init(_ops.quantize(made.weight, config), made.bias, precision)

    def _init(
        self, packed: Packed, bias: torch.nn.Parameter | None, precision: str | None
    ) -> None:
        self.precision = _checked(precision)
        self._hold(packed)
        self.out_features, self.in_features = packed.shape
        self.register_parameter("bias", bias)

    @classmethod
    def from_array(
        cls,
        weight: Packed | lowbit.Array,
        bias: Tensor | None = None,
        *,
        precision: str | None = None,
    ) -> Linear:
        """With an array that exists, of any format, as lowbit.open reads it."""
        self = cls.__new__(cls)
        torch.nn.Module.__init__(self)
        if isinstance(weight, lowbit.Array):
            weight = Packed.from_array(weight)
        if bias is not None and not isinstance(bias, torch.nn.Parameter):
            bias = torch.nn.Parameter(bias.detach().clone(), requires_grad=False)
        self._init(weight, bias, precision)
        return self

    @classmethod
    def from_linear(
        cls, linear: torch.nn.Module, config: Any = "nf4", *, precision: str | None = None
    ) -> Linear:
        """A torch.nn.Linear, quantized; or bitsandbytes' Linear4bit or Linear8bitLt as it is.

        The bias is shared.
        """
        packed = _from_bitsandbytes(linear)
        if packed is None:
            packed = _ops.quantize(linear.weight, config)
        made = cls.from_array(packed, linear.bias, precision=precision)
        return made.train(linear.training)

    from_float = from_linear

    def forward(self, x: Tensor) -> Tensor:
        if torch.is_autocast_enabled("cpu"):
            x = x.to(torch.get_autocast_dtype("cpu"))
        parts = [getattr(self, n) for n in self._parts]
        return _ops.linear_any(x, parts, self.bias, self._spec, self.precision or "")

    def extra_repr(self) -> str:
        words = [
            f"in_features={self.in_features}",
            f"out_features={self.out_features}",
            f"bias={self.bias is not None}",
            super().extra_repr(),
        ]
        if self.precision:
            words.append(f"precision={self.precision}")
        return ", ".join(words)


def _from_bitsandbytes(linear: torch.nn.Module) -> Packed | None:
    """The weight of a quantized layer of bitsandbytes, by its state."""
    kind = type(linear).__name__
    if kind not in ("Linear4bit", "LinearNF4", "LinearFP4", "Linear8bitLt"):
        return None
    shape = (linear.out_features, linear.in_features)
    held = getattr(linear.weight, "quant_state", None)
    if getattr(held, "packing_format_for_cpu", False):
        raise lowbit.UnsupportedError(
            f"{kind}: bitsandbytes has repacked this {shape} weight on its first use and "
            "rounded its scales to bf16: replace linears before the model is used"
        )
    state = linear.state_dict()
    if kind == "Linear8bitLt" and "SCB" not in state:
        scb = getattr(linear.weight, "SCB", None)
        if scb is None:
            return None  # not quantized yet
        state = {"weight": linear.weight.data, "SCB": scb}
    dtype = linear.bias.dtype if linear.bias is not None else torch.float32
    return _state.from_state(state, shape, dtype, "{}")


class Embedding(_PackedModule):
    """A table of frozen packed rows.

    >>> Embedding(1000, 64, config="q8_0")(torch.tensor([[1, 2, 999]])).shape
    torch.Size([1, 3, 64])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        config: Any = "int8",
        *,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        made = torch.nn.Embedding(num_embeddings, embedding_dim, dtype=dtype)
        self._init(_ops.quantize(made.weight, config), None)

    def _init(self, packed: Packed, padding_idx: int | None) -> None:
        self._hold(packed)
        self.num_embeddings, self.embedding_dim = packed.shape
        self.padding_idx = padding_idx

    @classmethod
    def from_array(cls, table: Packed | lowbit.Array) -> Embedding:
        """With an array that exists, of any format."""
        self = cls.__new__(cls)
        torch.nn.Module.__init__(self)
        if isinstance(table, lowbit.Array):
            table = Packed.from_array(table)
        self._init(table, None)
        return self

    @classmethod
    def from_embedding(cls, embedding: torch.nn.Embedding, config: Any = "int8") -> Embedding:
        """A torch.nn.Embedding, quantized."""
        if embedding.max_norm is not None:
            raise lowbit.UnsupportedError(
                f"Embedding: max_norm={embedding.max_norm} would change packed rows"
            )
        made = cls.from_array(_ops.quantize(embedding.weight, config))
        made.padding_idx = embedding.padding_idx  # rows are frozen: it has no effect
        return made.train(embedding.training)

    from_float = from_embedding

    def forward(self, ids: Tensor) -> Tensor:
        return _ops.embedding_op(ids, [getattr(self, n) for n in self._parts], self._spec)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, {super().extra_repr()}"


class StraightThroughLinear(torch.nn.Linear):
    """A linear layer that trains float weights and computes with quantized ones.

    The weight is quantized in each call; its gradient is that at the quantized weight.
    pack() returns the Linear that computes the same.

    >>> StraightThroughLinear(64, 8, config="ternary").pack().format
    'ternary'
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        config: Any = "ternary",
        *,
        precision: str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, dtype=dtype)
        self._config = _ops.config_text(config)
        self.precision = _checked(precision)

    @classmethod
    def from_linear(
        cls,
        linear: torch.nn.Linear,
        config: Any = "ternary",
        *,
        precision: str | None = None,
    ) -> StraightThroughLinear:
        """Shares the parameters of a torch.nn.Linear."""
        out_features, in_features = linear.weight.shape
        made = cls(1, 1, False, config, precision=precision)
        made.in_features, made.out_features = in_features, out_features
        made.weight, made.bias = linear.weight, linear.bias
        return made.train(linear.training)

    def forward(self, x: Tensor) -> Tensor:
        return _ops.ste_linear_op(
            x, self.weight, self.bias, self._config, self.precision or ""
        )

    def pack(self) -> Linear:
        packed = _ops.quantize(self.weight, json.loads(self._config))
        return Linear.from_array(packed, self.bias, precision=self.precision)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, format={json.loads(self._config)['format']}"
