"""Scales in 8 bits (QuantizationConfig(double_quant=True))."""

import devices  # noqa: F401, I001: before jax

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_jax_arrays import calls, close, normal, same

import lowbit
from lowbit.jax import QuantizationConfig, implicit, quantize, straight_through

DOUBLE = QuantizationConfig("nf4", double_quant=True)


def double(w, format="nf4"):
    """By the library."""
    config = lowbit.QuantizationConfig(format, double_quant=True)
    return lowbit.quantize(np.asarray(w), config)


@pytest.mark.parametrize("shape", [(96, 70), (3, 40, 129), (5,), (0, 4), ()])
def test_bits_of_the_library(shape):
    w = jax.random.normal(jax.random.key(0), shape)
    q, ours = quantize(w, DOUBLE), double(w)
    assert list(q.parts) == ["codes", "absmax.codes", "absmax.absmax", "absmax.offset"]
    same(q, lowbit.materialize(ours))
    assert q.nbytes == ours.nbytes
    plain = quantize(w, "nf4")
    same(q.packed, plain.packed)
    assert q.absmax.shape == plain.absmax.shape
    close(q.absmax, plain.absmax, 0.02)
    again = jax.tree.unflatten(*reversed(jax.tree.flatten(q)))
    same(again, q)


def test_products():
    w, x = normal(0, 128, 256), normal(1, 16, 128)
    q, dense = quantize(w, DOUBLE), quantize(w, DOUBLE).materialize()

    def loss(x, w):
        return jnp.sum(jnp.sin(x @ w))

    same(jax.jit(lambda x, q: x @ q)(x, q), np.asarray(x) @ double(w))
    close(jax.jit(jax.grad(loss))(x, q), jax.grad(loss)(x, dense), 1e-4)
    close(normal(2, 3, 256) @ q.T, normal(2, 3, 256) @ dense.T)
    fn = jax.jit(jax.grad(loss))
    assert calls(fn, x, q) == ["lowbit_dot_general"] * 2
    same(x @ straight_through(w, DOUBLE), x @ dense)
    with pytest.raises(NotImplementedError, match="double_quant"):
        jax.grad(loss, argnums=1, allow_int=True)(x, q)
    for format in ("int8", "ternary"):
        config = QuantizationConfig(format, double_quant=True)
        same(quantize(w, config), lowbit.materialize(double(w, format)))
        assert quantize(w, config).scale.shape == quantize(w, format).scale.shape


@pytest.mark.filterwarnings("ignore:.*it is materialized")
def test_stacked_layers():
    """Under vmap and scan every layer has blocks of scales of its own."""
    w, x = normal(0, 4, 64, 64) / 8, normal(1, 3, 64)
    layers = jax.vmap(lambda w: quantize(w, DOUBLE))(w)
    dense = jnp.stack([quantize(v, DOUBLE).materialize() for v in w])
    same(layers, dense)
    close(layers.absmax, quantize(w).absmax, 0.02)

    def forward(x, layers):
        return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, layers)[0]

    for fn in (forward, jax.jit(implicit(forward))):
        close(fn(x, layers), forward(x, dense))
    close(jax.vmap(lambda q: x @ q)(layers), jax.vmap(lambda w: x @ w)(dense))
    same(implicit(lambda a, i: a[i])(layers, jnp.array([1, 3])), dense[jnp.array([1, 3])])
    q = quantize(w[0], DOUBLE)
    for fn in (lambda a: a[2:5], lambda a: a[None], lambda a: jnp.concatenate([a, a]),
               lambda a: a[jnp.array([1, 3])]):  # fmt: skip
        same(np.asarray(implicit(fn)(q)), fn(dense[0]))
