"""eformer's functions on arrays and packed bytes."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

import jax
import jax.numpy as jnp

from .. import _lowbit
from ._arrays import Array1B, Array8B, ArrayNF4
from ._ffi import poly_table
from ._implicit import ImplicitArray
from ._quantize import QuantizationConfig, quantize
from ._rules import dot_general


def safe_materialize(arr: Any) -> tuple[Any, bool]:
    """(the dense array, whether arr was implicit)"""
    if isinstance(arr, ImplicitArray):
        return arr.materialize(), True
    return arr, False


def safe_delete(arr: Any, materialized: bool) -> None:
    """Does nothing: memory is freed with the last reference."""


def is_kernel_available(format: str = "nf4") -> bool:
    """Whether the library has code for this CPU's vector instructions for a format."""
    return _lowbit.is_kernel_available(format)


@contextlib.contextmanager
def nf4_use_kernel(value: bool) -> Iterator[None]:
    """Does nothing, as eformer's does on a CPU: QuantizationConfig(use_kernel=False)
    selects the portable reference code."""
    yield


def matmul_bf16_int8_weight_only(lhs_bf16: Any, rhs_q_int8: Any, rhs_scale: Any) -> jax.Array:
    """lhs (..., M, K) times the int8 codes (K, N) times their scale, as bf16. Sums are
    f32, and the result is rounded once."""
    q = Array8B(rhs_scale, rhs_q_int8, dtype=jnp.float32)
    lhs = jnp.asarray(lhs_bf16)
    numbers = (((lhs.ndim - 1,), (0,)), ((), ()))
    return dot_general(lhs, q, numbers, preferred_element_type=jnp.bfloat16)


def quantize_int8(x: Any, axis: Any = -1) -> tuple[jax.Array, jax.Array]:
    """(codes, scale)"""
    q = Array8B.quantize(x, axis=axis)
    return q.weight, q.scale


def dequantize_int8(quants: Any, scales: Any) -> jax.Array:
    return Array8B(scales, quants).materialize()


def quantize_and_pack_nf4(blocks: Any, block_size: int = 64) -> tuple[jax.Array, jax.Array]:
    """(packed (..., blocks, block_size / 2), absmax (..., blocks))"""
    q = ArrayNF4.quantize(blocks, block_size)
    return q.packed, q.absmax


def dequantize_nf4(packed_values: Any, absmax: Any, block_size: int) -> jax.Array:
    """(..., blocks * block_size), as f32, with the table of levels."""
    q = ArrayNF4(packed_values, absmax, block_size, dtype=jnp.float32)
    return q.materialize()


single_quantize_and_pack_nf4 = quantize_and_pack_nf4
single_dequantize_nf4 = dequantize_nf4


def pack_weights_1bit(quantized_weights: Any) -> jax.Array:
    """-1, 0 and 1 in two bits each: byte row i has rows i, i + R, i + 2 R, i + 3 R."""
    return Array1B.quantize(quantized_weights).weight


def unpack_weights_1bit(packed: Any, dtype: Any) -> jax.Array:
    packed = jnp.asarray(packed)
    shape = (4 * packed.shape[0], *packed.shape[1:])
    return Array1B(packed, shape=shape, dtype=dtype).materialize()


def get_nf4() -> jax.Array:
    """The sixteen levels."""
    codes = jnp.arange(16, dtype=jnp.uint8)
    packed = (codes[0::2] << 4 | codes[1::2]).reshape(1, 8)
    return ArrayNF4(packed, jnp.ones(1, jnp.float32)).materialize()


def nf4xf32_to_f32(x: Any) -> jax.Array:
    """eformer's polynomial at the codes x; its error is up to 1.5 % of the maximum."""
    return jnp.asarray(poly_table())[jnp.asarray(x)]


def i8tou8(x: Any) -> jax.Array:
    x = jnp.asarray(x, jnp.int32)
    return jnp.where(x < 0, x + 256, x)


def u4toi4(x: Any) -> jax.Array:
    x = jnp.asarray(x, jnp.int32)
    return jnp.where(x >= 8, x - 16, x)


def i4tou4(x: Any) -> jax.Array:
    x = jnp.asarray(x, jnp.int32)
    return jnp.where(x < 0, x + 16, x)
