"""golden_functions.py - the functions of tests/golden/gradients.txt, in jax.

Each returns a scalar. `quantized` lists the operands with straight-through
quantization, for which `run` gets a quantizer as its first argument; `make` makes
the operands: normally distributed, rounded to bf16, or integers.
"""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from golden_text import BF16


class Function:
    def __init__(self, run, make, quantized=()):
        self.name, self.run = run.__name__, run
        self.make, self.quantized = make, quantized


def normal(*shape, times=1.0, plus=0.0, positive=False):
    """-1 in a shape: the row length that the format requires, or 16."""
    def make(rng, wide):
        size = [(wide or 16) if n == -1 else n for n in shape]
        x = rng.standard_normal(size)
        return ((np.abs(x) if positive else x) * times + plus).astype(BF16)
    return make


def integers(most, *shape):
    return lambda rng, wide: rng.integers(0, most, shape).astype(np.int32)


def mse(y, t):
    return jnp.mean((y - t) ** 2)


def entropy(z, labels):
    z = jax.nn.log_softmax(z, -1)
    return -jnp.mean(jnp.take_along_axis(z, labels[..., None], -1))


# ---- networks ---------------------------------------------------------------

def mlp(ste, x, w1, b1, w2, b2, labels):
    h = jax.nn.gelu(x @ w1 + b1, approximate=False)
    return entropy(h @ w2 + b2, labels)


def conv(x, w, lhs, rhs, out, stride=(1, 1), pad=((0, 0), (0, 0)),
         dilation=(1, 1), groups=1):
    return lax.conv_general_dilated(
        x, w, stride, pad, rhs_dilation=dilation, feature_group_count=groups,
        dimension_numbers=(lhs, rhs, out))


def conv_net(ste, x, w1, b1, w2, w3, labels):
    y = conv(x, w1, "NHWC", "HWIO", "NHWC", (2, 1), ((1, 1), (1, 0)))
    y = jax.nn.silu(y + b1)
    y = jnp.tanh(conv(y, w2, "NHWC", "HWIO", "NHWC", (2, 2), ((0, 1), (1, 1))))
    return entropy(jnp.mean(y, (1, 2)) @ w3, labels)


def conv_strides(ste, x, w, c):
    """Strides larger than the kernel, and of three."""
    y = conv(x, w, "NCHW", "OIHW", "NCHW", (3, 2), ((2, 1), (0, 2)))
    return jnp.sum(c * y * y)


def conv_groups(ste, x, w, c):
    y = conv(x, w, "NCHW", "OIHW", "NCHW", (1, 2), ((1, 1), (0, 0)), (2, 1), 2)
    return jnp.sum(c * c * y * y)


def split_heads(x):
    b, t, d = x.shape
    return x.reshape(b, t, 2, d // 2).transpose(0, 2, 1, 3)


def attend(q, k, v):
    t = q.shape[2]
    s = (q @ k.transpose(0, 1, 3, 2)) * (1 / np.sqrt(q.shape[3]))
    i = np.arange(t)
    s = jnp.where(jnp.asarray(i[:, None] >= i), s, jnp.asarray(-1e9, s.dtype))
    return jax.nn.softmax(s, -1) @ v


def attention(ste, q, k, v, c):
    return jnp.sum(c * attend(q, k, v))


def rms(x, g):
    return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * g


def norm(x, g, b):
    u = x - jnp.mean(x, -1, keepdims=True)
    return u / jnp.sqrt(jnp.mean(u * u, -1, keepdims=True) + 1e-5) * g + b


def block(ste, x, wq, wk, wv, wo, up, down, g1, g2, b2):
    h = rms(x, g1)
    a = attend(*(split_heads(h @ w) for w in (wq, wk, wv)))
    x = x + a.transpose(0, 2, 1, 3).reshape(x.shape) @ wo
    h = jax.nn.gelu(norm(x, g2, b2) @ up, approximate=True)
    y = x + h @ down
    return jnp.mean(y * y)


def layer_norm(ste, x, g, b, c):
    return jnp.sum(c * norm(x, g, b))


def cross_entropy(ste, z, labels):
    return entropy(z, labels)


def language(ste, table, places, tokens, labels):
    """Rows of a table, some repeated, and the table as the weights of a product."""
    x = jnp.tanh(table[tokens] + places)
    return entropy(x @ table.T, labels)


# ---- structure --------------------------------------------------------------

def joined(ste, a, b, c):
    y = jnp.concatenate([a.T, b, a.T * b], 1).reshape(2, -1)
    return jnp.sum(c * y * y[::-1])


def views(ste, x, y, c):
    """Reshape, transpose, broadcast, strided slices, reverse, padding."""
    t = x.reshape(2, 3, 4).transpose(2, 0, 1)           # (4,2,3)
    t = t * jnp.broadcast_to(y[:, None, :], (4, 2, 3))  # y (4,3)
    u = t[::-1, :, 0:3:2]                               # (4,2,2)
    p = lax.pad(u, jnp.zeros((), u.dtype), ((1, 0, 1), (0, 1, 0), (-1, 1, 1)))
    return jnp.sum(c * jnp.exp(p.reshape(8, -1)))


def dynamic(ste, x, u, c):
    y = lax.dynamic_update_slice(x, u * u, (1, 2))
    z = lax.dynamic_slice(y, (0, 1), (3, 3))
    return jnp.sum(c * z * z)


def scattered(ste, x, u, index):
    return jnp.sum(x.at[index].add(u * u) ** 3)


# ---- elementwise and reductions ---------------------------------------------

def smooth(ste, x, p):
    y = jnp.exp(-x * x) + jnp.log(p) * jax.nn.sigmoid(x) + lax.rsqrt(p)
    y = y + lax.erf(x) * jnp.sin(p) - jnp.cos(x) / p + jnp.sqrt(p) * x ** 3
    return jnp.sum(y * jnp.power(p, x) + jnp.log1p(p) * jnp.expm1(x))


def corners(ste, x, y):
    a = jnp.maximum(x, y) * jnp.abs(x) + jnp.minimum(x, 0.5 * y)
    b = lax.clamp(jnp.asarray(-0.5, x.dtype), x, jnp.asarray(0.7, x.dtype))
    return jnp.sum(jnp.where(x < y, a, b * y) * jnp.floor(3 * x))


def reductions(ste, x, c):
    y = jnp.prod(x, 1) + jnp.max(x, 1) * jnp.min(x, 1) + jnp.var(x, 1)
    return jnp.sum(c * y) + jnp.mean(jnp.sum(x, 0) ** 2)


def batched(ste, a, b, v):
    """(2,1,3,4) @ (5,4,3) @ (3)"""
    return jnp.sum(jnp.tanh(a @ b @ v))


def stopped(ste, x, y):
    s = lax.stop_gradient(x)
    return jnp.sum(x * s * y + s ** 2 + lax.stop_gradient(x * y))


@jax.custom_vjp
def steps(x):
    return jnp.round(x * 4) / 4


steps.defvjp(lambda x: (steps(x), None), lambda _, g: (g,))


def own_steps(ste, x, y):
    return jnp.sum(steps(x * y) ** 2 * y)


PLAIN = [
    Function(mlp, [normal(5, 6), normal(6, 9, times=.5), normal(9),
                   normal(9, 4, times=.5), normal(4), integers(4, 5)]),
    Function(conv_net, [normal(2, 7, 6, 2), normal(3, 3, 2, 4, times=.4),
                        normal(4), normal(2, 3, 4, 3, times=.4),
                        normal(3, 3), integers(3, 2)]),
    Function(conv_strides, [normal(2, 3, 8, 7), normal(4, 3, 2, 1),
                            normal(2, 4, 4, 5)]),
    Function(conv_groups, [normal(2, 4, 6, 5), normal(6, 2, 3, 2),
                           normal(2, 6, 4, 2)]),
    Function(attention, [normal(2, 2, 5, 4)] * 4),
    Function(block, [normal(2, 5, 8), *[normal(8, 8, times=.4)] * 4,
                     normal(8, 12, times=.4), normal(12, 8, times=.4),
                     normal(8, plus=1, times=.2), normal(8, plus=1, times=.2),
                     normal(8)]),
    Function(layer_norm, [normal(3, 4, 9, plus=.5), normal(9), normal(9),
                          normal(3, 4, 9)]),
    Function(cross_entropy, [normal(3, 4, 7, times=3), integers(7, 3, 4)]),
    Function(language, [normal(11, 6), normal(5, 6), integers(11, 3, 5),
                        integers(11, 3, 5)]),
    Function(joined, [normal(3, 4), normal(4, 3), normal(2, 18)]),
    Function(views, [normal(6, 4), normal(4, 3), normal(8, 9)]),
    Function(dynamic, [normal(5, 6), normal(2, 3), normal(3, 3)]),
    Function(scattered, [normal(6, 3), normal(8, 3), integers(6, 8)]),
    Function(smooth, [normal(4, 5), normal(4, 5, positive=True, plus=.5)]),
    Function(corners, [normal(6, 7), normal(6, 7)]),
    Function(reductions, [normal(5, 6), normal(5)]),
    Function(batched, [normal(2, 1, 3, 4), normal(5, 4, 3), normal(3)]),
    Function(stopped, [normal(3, 5), normal(3, 5)]),
    Function(own_steps, [normal(4, 5), normal(4, 5)]),
]


# ---- through quantizers -----------------------------------------------------

def straight_rows(ste, w, x, t):
    """x @ ste(w)^T: a scale per output."""
    return mse(x @ ste(w).T, t)


def straight_two(ste, w1, w2, x, labels):
    return entropy(jnp.tanh(x @ ste(w1).T) @ ste(w2), labels)


def straight_conv(ste, w, x, c):
    k = ste(w).reshape(4, 2, 2, 4)
    return jnp.mean(c * conv(x, k, "NHWC", "OHWI", "NHWC", (2, 2)) ** 2)


def straight_mixed(ste, w, x):
    """Operations other than products: gathered rows, sums, elementwise."""
    q = ste(w)
    return jnp.sum(jnp.exp(q[1:3] * 0.1)) + jnp.sum(jnp.max(q, 1) * x)


def adapter(ste, w, a, b, x, t):
    """A constant base, and gradients of A and B."""
    return mse(x @ lax.stop_gradient(ste(w)).T + (x @ a) @ b, t)


QUANTIZED = [  # and whether with every format
    (Function(straight_rows, [normal(3, -1), normal(4, -1), normal(4, 3)],
              (0,)), True),
    (Function(straight_two, [normal(5, -1, times=.5), normal(5, 16),
                             normal(4, -1), integers(16, 4)], (0, 1)), False),
    (Function(straight_conv, [normal(4, 16), normal(2, 4, 6, 4),
                              normal(2, 2, 3, 4)], (0,)), False),
    (Function(straight_mixed, [normal(4, -1), normal(4)], (0,)), False),
    (Function(adapter, [normal(5, -1), normal(16, 2), normal(2, 5),
                        normal(4, -1), normal(4, 5)], (0,)), False),
]
