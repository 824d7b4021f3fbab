"""Quantized arrays under JAX's transformations, and what their products become."""

import devices  # noqa: F401, I001: before jax

import copy
import pickle
import re
import resource
import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings, strategies as st

import lowbit
from lowbit.jax import (
    Array1B,
    Array8B,
    ArrayNF4,
    QuantizationConfig,
    QuantizationType,
    dot_general,
    implicit,
    quantize,
    straight_through,
)

FORMATS = [str(t) for t in QuantizationType]


def normal(i, *shape):
    return jax.random.normal(jax.random.key(i), shape, jnp.float32)


@pytest.fixture(params=FORMATS)
def q(request):
    return quantize(normal(0, 96, 70), request.param)


def close(a, b, bound=1e-5):
    a, b = np.asarray(a, "f8"), np.asarray(b, "f8")
    assert a.shape == b.shape
    assert np.abs(a - b).max(initial=0) <= bound * max(1, np.abs(b).max(initial=0))


def same(a, b):
    assert np.array_equal(np.asarray(a), np.asarray(b))


def to_lowbit(q):
    """The same array in the Python package."""
    options = dict(q._static.coding.options)
    config = {"format": q.format, **options}
    parts = {k: np.asarray(v) for k, v in q.parts.items()}
    return lowbit.from_parts(config, q._stored, parts)


# ---- values ---------------------------------------------------------------------


def test_same_bits_as_the_library(q):
    ours = lowbit.quantize(np.asarray(normal(0, 96, 70)), q.format)
    for name, part in q.parts.items():
        same(part, ours.parts[name])
    same(q, lowbit.materialize(ours))
    same(q.codes(), lowbit.codes(ours))
    assert q.nbytes == ours.nbytes


def test_product_has_the_bits_of_the_library(q):
    for x in (normal(1, 5, 96), normal(1, 96)):
        same(jax.jit(lambda x, q: x @ q)(x, q), np.asarray(x) @ to_lowbit(q))
    same(q @ normal(2, 70), to_lowbit(q) @ np.asarray(normal(2, 70)))
    y = normal(2, 5, 70)
    same(y @ q.T, np.asarray(y) @ to_lowbit(q).T)


@pytest.mark.parametrize("word, ours", [("highest", "highest"), ("high", "fast"),
                                        ("default", "fastest")])  # fmt: skip
def test_precision(q, word, ours):
    x = normal(1, 8, 96)
    with jax.default_matmul_precision(word):
        got = jax.jit(lambda x, q: x @ q)(x, q)
    with lowbit.config(precision=ours):
        same(got, np.asarray(x) @ to_lowbit(q))


def test_shapes(q):
    for shape in [(1,), (7,), (3, 5), (2, 3, 9), (0, 4), (4, 0), ()]:
        x = jax.random.normal(jax.random.key(3), shape)
        a = quantize(x, q.format)
        assert a.shape == shape and a.materialize().shape == shape
        again = jax.tree.unflatten(*reversed(jax.tree.flatten(a)))
        same(again, a)


def test_text(q, capsys):
    print(q)
    out = capsys.readouterr().out
    assert type(q).__name__ in out and "(96,70)" in out and "..." in out
    assert "nbytes" not in repr(jax.tree.map(lambda a: None, q))


# ---- transformations --------------------------------------------------------------


def calls(fn, *args):
    """Names of the custom calls in a jaxpr, with those inside of others."""
    return re.findall(r"target_name=(\w+)", str(jax.make_jaxpr(fn)(*args)))


def test_one_call_and_no_decode(q):
    x = normal(1, 8, 96)
    assert calls(jax.jit(lambda x, q: x @ q), x, q) == ["lowbit_dot_general"]
    assert calls(jax.jit(implicit(lambda x, q: x @ q)), x, q) == ["lowbit_dot_general"]

    def loss(x, q):
        return jnp.sum((x @ q) ** 2)

    both = jax.jit(jax.grad(loss))
    assert calls(both, x, q) == ["lowbit_dot_general"] * 2
    text = both.lower(x, q).compile().as_text()
    assert len(re.findall(r"custom_call_target=\"lowbit_dot_general", text)) == 2
    assert "lowbit_decode" not in text


def test_gradient(q):
    x = normal(1, 8, 96)
    dense = q.materialize()

    def loss(x, w):
        return jnp.sum(jnp.sin(x @ w))

    close(jax.jit(jax.grad(loss))(x, q), jax.grad(loss)(x, dense))
    close(jax.grad(lambda x: loss(q, x))(normal(2, 70, 3)),
          jax.grad(lambda x: loss(dense, x))(normal(2, 70, 3)))  # fmt: skip

    def cubes(w):
        return jax.jacrev(jax.grad(lambda v: jnp.sum((v @ w) ** 3)))(x[0])

    close(cubes(q), cubes(dense))


def test_gradient_of_scales(q):
    """The gradient of a scale, against finite differences of the decoded values."""
    x, v = normal(1, 8, 96), normal(4, 8, 70)

    def loss(q):
        return jnp.sum((x @ q) * v)

    g = jax.jit(jax.grad(loss, allow_int=True))(q)
    name = list(q.parts)[1]
    scale, got = q.parts[name], g.parts[name]
    moved = {**q.parts, name: scale + normal(5, *scale.shape)}
    moved = q._make(q._static, moved)
    difference = float(loss(moved) - loss(q))
    close(jnp.sum(got * normal(5, *scale.shape)), difference, 1e-4)

    through = jax.grad(lambda q: jnp.sum(x @ q.materialize() * v), allow_int=True)(q)
    close(through.parts[name], got, 1e-4)


def test_vmap(q):
    x = normal(1, 4, 3, 96)
    close(jax.vmap(lambda x: x @ q)(x), x @ q.materialize())
    columns = x.transpose(0, 2, 1)
    close(jax.vmap(lambda x: q.T @ x, out_axes=1)(columns),
          jnp.einsum("kn,bks->nbs", q.materialize(), columns))  # fmt: skip
    grads = jax.vmap(jax.grad(lambda x: jnp.sum((x @ q) ** 2)))(x)
    close(grads, jax.grad(lambda x: jnp.sum((x @ q.materialize()) ** 2))(x))
    w = normal(2, 4, 96, 70)
    each = jax.vmap(lambda w: quantize(w, q.format))(w)
    assert each.shape == w.shape
    same(each.materialize()[1], quantize(w[1], q.format))
    close(jax.vmap(lambda x, q: x @ q)(x, each), x @ each.materialize())
    close(jax.vmap(lambda q: x[0] @ q)(each), x[0] @ each.materialize())
    out = jax.vmap(jax.grad(lambda x, q: jnp.sum((x @ q) ** 2)))(x, each)
    close(out, jax.grad(lambda x: jnp.sum((x @ each.materialize()) ** 2))(x))


def test_scan(q):
    w = normal(2, 5, 64, 64) / 8
    layers = jax.vmap(lambda w: quantize(w, q.format))(w)

    def forward(x, layers):
        return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, layers)[0]

    x = normal(1, 3, 64)
    dense = layers.materialize()
    for fn in (forward, jax.jit(forward), jax.jit(implicit(forward))):
        close(fn(x, layers), forward(x, dense))
    assert "lowbit_dot_general" in calls(implicit(forward), x, layers)
    assert "lowbit_decode" not in calls(implicit(forward), x, layers)
    close(jax.grad(lambda x: forward(x, layers).sum())(x),
          jax.grad(lambda x: forward(x, dense).sum())(x))  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*it is materialized")
def test_control_flow(q):
    x = normal(1, 3, 96)
    dense = q.materialize()

    @implicit
    def branch(flag, x, w):
        return jax.lax.cond(flag, lambda: x @ w, lambda: x @ w * 2)

    @implicit
    def loop(x, w):
        return jax.lax.fori_loop(0, 3, lambda i, c: c + jnp.sum(x @ w), 0.0)

    @implicit
    def until(x, w):
        return jax.lax.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] @ w @ w.T / 99), (0, x)
        )[1]

    for flag in (True, False):
        close(jax.jit(branch)(flag, x, q), (x @ dense) * (1 if flag else 2))
    close(jax.jit(loop)(x, q), 3 * jnp.sum(x @ dense), 1e-4)
    close(jax.jit(until)(x, q), until(x, dense), 1e-4)
    close(jax.jit(implicit(jax.checkpoint(lambda x, w: x @ w)))(x, q), x @ dense)


def test_frozen_in_optax(q):
    """Adapters are trained, the quantized base is not, in one tree of parameters."""
    x, y = normal(1, 16, 96), normal(2, 16, 70)
    params = {"base": q, "a": normal(3, 96, 4), "b": jnp.zeros((4, 70))}
    frozen = {"base": "frozen", "a": "trained", "b": "trained"}
    tx = optax.multi_transform(
        {"trained": optax.adam(1e-2), "frozen": optax.set_to_zero()}, frozen
    )

    def loss(adapters, base):
        return jnp.mean((x @ base + x @ adapters["a"] @ adapters["b"] - y) ** 2)

    state = tx.init(params)

    @jax.jit
    def step(params, state):
        base = params["base"]
        adapters = {k: params[k] for k in "ab"}
        value, grads = jax.value_and_grad(loss)(adapters, base)
        zeros = jax.tree.map(jnp.zeros_like, base)
        updates, state = tx.update({"base": zeros, **grads}, state, params)
        return optax.apply_updates(params, updates), state, value

    first = None
    for _ in range(20):
        params, state, value = step(params, state)
        first = value if first is None else first
    assert value < first
    for a, b in zip(jax.tree.leaves(params["base"]), jax.tree.leaves(q)):
        same(a, b)


@pytest.mark.parametrize("format", FORMATS)
def test_training_step_has_the_gradients_of_the_tape(format):
    """Bit for bit, with the cotangent of the product given."""
    x, w, c = normal(1, 16, 64), normal(2, 64, 32) / 4, normal(3, 16, 32)

    @jax.jit
    @implicit
    def loss(params, x):
        return jnp.sum((x @ straight_through(params["w"], dtype=format)) * c)

    grads = jax.grad(loss, argnums=(0, 1))({"w": w}, x)
    a, b, d = (lowbit.array(np.asarray(v)) for v in (w, x, c))
    wanted = lowbit.grad(
        lambda w, x: lowbit.sum(x @ lowbit.straight_through(w, format) * d),
        argnums=(0, 1),
    )(a, b)
    same(grads[0]["w"], wanted[0])
    same(grads[1], wanted[1])
    tx = optax.sgd(0.5)
    updates, _ = tx.update(grads[0], tx.init({"w": w}), {"w": w})
    same(optax.apply_updates({"w": w}, updates)["w"], np.asarray(a - 0.5 * wanted[0]))


# ---- primitives -----------------------------------------------------------------


def test_structure_stays_packed(q):
    dense = q.materialize()
    for fn in (
        lambda a: a.T,
        lambda a: a[8:24],
        lambda a: a[None],
        lambda a: a[None][0],
        lambda a: a.astype("bfloat16"),
        lambda a: jax.lax.dynamic_slice(a, (4, 0), (8, 70)),
        lambda a: jnp.concatenate([a, a]) if q.format != "int8" else a,
    ):
        out = jax.jit(implicit(fn))(q)
        if q.format in ("ternary", "binary") and not isinstance(out, type(q)):
            out = implicit(fn)(q.T.T)
        same(np.asarray(out, "f4"), np.asarray(fn(dense), "f4"))


def test_scales_along_an_axis_that_goes():
    w = normal(0, 5, 64, 32)
    q = Array8B.quantize(w, axis=0)
    dense = q.materialize()

    def rows(x, w):
        return jax.lax.scan(lambda x, w: (x + jnp.sum(jnp.dot(x, w)), None), x, w)[0]

    x = normal(1, 2, 64)
    close(jax.jit(implicit(rows))(x, q), rows(x, dense))
    one = Array8B.quantize(w[:1, 0], axis=0)
    same(implicit(lambda a: a.reshape(32))(one), one.materialize().reshape(32))


@pytest.mark.filterwarnings("ignore:.*it is materialized")
def test_rows_of_a_table(q):
    index = jnp.array([[3, 95], [0, 3]])
    fn = implicit(lambda t, i: t[i])
    same(fn(q, index), q.materialize()[index])
    (call,) = [
        line for line in str(jax.make_jaxpr(fn)(q, index)).splitlines()
        if "result_avals" in line
    ]  # fmt: skip
    assert "[4,70]" in call  # four rows are decoded, not the table
    with_missing = jnp.array([1, 500])  # jnp.take fills what is out of range with NaN
    assert np.array_equal(
        np.asarray(implicit(lambda t, i: jnp.take(t, i, axis=0))(q, with_missing)),
        np.asarray(jnp.take(q.materialize(), with_missing, axis=0)),
        equal_nan=True,
    )


def test_mixed_formats_and_operators():
    a, b = quantize(normal(0, 8, 64), "nf4"), quantize(normal(1, 64, 8), "int8")
    x, y = a.materialize(), b.materialize()
    close(a @ b, x @ y)
    same(a + 1, x + 1)
    same(2 - a, 2 - x)
    same(a * b.T, x * y.T)
    same(-a, -x)
    same(a < 0, x < 0)
    same(a[2:4], x[2:4])
    same(a.reshape(-1), x.reshape(-1))
    same(np.ones((3, 8), "f4") @ a, jnp.ones((3, 8)) @ a)
    with pytest.raises(TypeError):
        a + "1"


def test_iteration_ends():
    q = quantize(normal(0, 3, 64), "int8")
    rows = list(q)
    assert len(rows) == 3
    same(rows[2], q.materialize()[2])


@pytest.mark.parametrize("config", [*FORMATS, QuantizationConfig("nf4", double_quant=True)])
def test_copies(config):
    """Pickles, copies, and what jax.device_get makes."""
    q, x = quantize(normal(0, 8, 64), config), normal(1, 2, 8)
    for other in (pickle.loads(pickle.dumps(q)), copy.deepcopy(q), jax.device_get(q)):
        assert type(other) is type(q)
        same(other, q)
        same(x @ other, x @ q)


def test_empty_bytes():
    assert quantize(jnp.zeros((0, 4)), "nf4").packed.shape == (0, 1, 32)


def test_warns_once():
    q = quantize(normal(0, 4, 64), "int8")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            implicit(jnp.cumprod)(q)
            implicit(lambda a: jnp.flip(a))(q)
            implicit(jnp.exp)(q)
    said = [str(w.message) for w in seen if "materialized" in str(w.message)]
    assert len(said) == len(set(said)) >= 2
    assert not any("exp " in s for s in said)


# ---- errors -----------------------------------------------------------------------


def test_errors_arrive_from_compiled_functions():
    x = normal(0, 4, 64).at[2, 3].set(jnp.nan)
    with pytest.raises(Exception, match=r"element \(2,3\) of f32\(4,64\) is nan"):
        jax.block_until_ready(jax.jit(lambda x: quantize(x, "nf4"))(x))
    with pytest.raises(Exception, match="code 2 of element 3 is invalid"):
        jax.block_until_ready(jax.jit(Array1B.quantize)(jnp.array([0, 1, -1, 2])))


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: quantize(normal(0, 4, 4), "int4"), "nf4, int8, ternary, binary"),
        (lambda: quantize(normal(0, 4, 4), block_size=3), "block_size is 3"),
        (lambda: quantize(normal(0, 4, 4), block_size=2.0), "not an integer"),
        (lambda: quantize(jnp.ones((4, 4), int)), "an array of floats, not int32"),
        (lambda: Array8B.quantize(normal(0, 4, 4), axis=2), "axis 2"),
        (lambda: Array8B(jnp.ones((4, 2)), jnp.ones((4, 4), "int8")), "broadcast"),
        (lambda: Array8B(jnp.ones(()), jnp.full((4, 4), -128, "int8")), "-128"),
        (lambda: ArrayNF4(jnp.ones((4, 2, 8), "uint8"), jnp.ones((4, 3))), "absmax"),
        (lambda: Array1B(jnp.ones((2, 4), "uint8"), shape=(16, 4)), "weight"),
        (lambda: Array8B(jnp.ones((4, 1), int), jnp.ones((4, 4), "int8")), "int32, not floats"),
        (lambda: ArrayNF4(jnp.ones((4, 2, 8), "uint8"), jnp.ones((4, 2)), dtype="int8"),
         "dtype is int8"),
        (lambda: QuantizationConfig(compat="other"), "eformer"),
        (lambda: normal(0, 3, 5) @ quantize(normal(0, 4, 4)), "(3, 5) and (4, 4)"),
    ],
)
def test_refusals(make, sentence):
    with pytest.raises((ValueError, TypeError)) as error:
        make()
    assert sentence in str(error.value)


# ---- memory and random arrays ----------------------------------------------------


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def test_memory_stays():
    """A thousand steps of training, with products forward and backward."""
    x, y = normal(1, 16, 128), normal(2, 16, 64)
    q = quantize(normal(0, 128, 128), "nf4")

    @jax.jit
    @implicit
    def step(w, q):
        def loss(w):
            return jnp.mean((jnp.tanh(x @ q) @ straight_through(w, dtype="int8") - y) ** 2)

        return w - 0.01 * jax.grad(loss)(w)

    w = normal(3, 128, 64)
    for _ in range(100):
        w = step(w, q)
    before = resident()
    for _ in range(1000):
        w = step(w, q)
    jax.block_until_ready(w)
    assert resident() - before < 8 << 20


SIZES = st.integers(0, 5) | st.sampled_from([7, 63, 64, 65, 130])


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    shape=st.lists(SIZES, min_size=0, max_size=3),
    format=st.sampled_from(FORMATS),
    block=st.sampled_from([2, 6, 32, 64, 100]),
    dtype=st.sampled_from(["float32", "float16", "bfloat16"]),
    compat=st.sampled_from(["native", "eformer"]),
    data=st.data(),
)
def test_random_arrays(shape, format, block, dtype, compat, data):
    """Values and products of arrays of any shape, or an exception."""
    x = jax.random.normal(jax.random.key(len(shape)), shape).astype(dtype)
    axis = None
    if format == "int8":
        axis = data.draw(st.none() | st.integers(-4, 4))
    config = QuantizationConfig(format, block, axis=axis, compat=compat)
    if axis is not None and shape and not -len(shape) <= axis < len(shape):
        with pytest.raises(ValueError, match="axis"):
            quantize(x, config)
        return
    q = quantize(x, config)
    dense = q.materialize()
    assert q.shape == x.shape == dense.shape
    if len(shape) != 2 or dense.dtype == jnp.int8:
        return
    v = jnp.ones((3, shape[0]), dtype)
    close(v @ q, jnp.matmul(v.astype("f4"), dense.astype("f4")), 2e-2)
    with pytest.raises(TypeError, match="differ in size"):
        jnp.ones((3, shape[0] + 1)) @ q


def test_without_jax():
    """import lowbit does not import jax; lowbit.jax without it has a clear error."""
    script = (
        "import sys, lowbit; assert 'jax' not in sys.modules\n"
        "sys.modules['jax'] = None\n"
        "try: import lowbit.jax\n"
        "except ImportError as e: assert 'needs jax' in str(e); print('refused')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "refused\n", done.stderr
