"""Quantized arrays on a mesh of eight host devices: under jit and shard_map, and threads."""

import devices  # noqa: F401, I001: before jax

import json
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from test_jax_arrays import FORMATS, calls, close, normal, same

from lowbit.jax import Array8B, QuantizationConfig, implicit, quantize, straight_through

SPECS = [("dp", None), (None, "tp"), ("dp", "tp"), ("tp", "dp"), ()]


@pytest.fixture
def mesh():
    return Mesh(np.array(jax.devices()).reshape(4, 2), ("dp", "tp"))


def put(mesh, a, *spec):
    place = NamedSharding(mesh, PartitionSpec(*spec))
    return a.with_sharding(place) if hasattr(a, "with_sharding") else jax.device_put(a, place)


def compiled(fn, *args):
    """Shapes of the library's calls on a device, and what is gathered."""
    text = jax.jit(fn).lower(*args).compile().as_text()
    # One device's call has its own name; XLA encloses those with several results.
    found = re.findall(r"= \(?(\w+\[[\d,]*\]).* custom-call\(.*target=\"lowbit", text)
    return found, re.findall(r"= (\w+\[[\d,]*\])\S* all-gather", text)


@pytest.mark.parametrize("format", FORMATS)
def test_products(mesh, format):
    """Each device multiplies its part of the packed bytes, which are not gathered."""
    w, x = normal(0, 128, 256), normal(1, 16, 128)
    q = quantize(w, format)
    rows = put(mesh, x, "dp")

    def product(x, q):
        return x @ q

    for spec in SPECS:
        placed = put(mesh, q, *spec)
        assert placed.is_sharded
        y = jax.jit(product)(rows, placed)
        close(y, x @ q)  # fewer rows may be summed in another order
        ways = {"dp": 4, "tp": 2, None: 1}
        k, n = (*(ways[a] for a in spec), 1, 1)[:2]
        m = 4 if "dp" not in spec else 1  # rows of x, unless the axis is taken
        (call,), gathered = compiled(product, rows, placed)
        assert call == f"f32[{16 // m},{256 // n}]", (spec, call)
        assert not [g for g in gathered if not g.startswith("f32[16,")], (spec, gathered)
        (values,), gathered = compiled(lambda q: q.materialize(), placed)
        assert values == f"f32[{128 // k},{256 // n}]" and not gathered
        same(jax.jit(lambda q: q.materialize())(placed), q)


@pytest.mark.parametrize("format", FORMATS)
def test_gradients(mesh, format):
    x, w = normal(1, 16, 128), normal(0, 128, 256) / 16
    q, rows = quantize(w, format), put(mesh, x, "dp")

    def loss(x, q):
        return jnp.sum(jnp.sin(x @ q))

    @implicit
    def trained(w, x):
        return jnp.sum(jnp.sin(x @ straight_through(w, dtype=format)))

    for spec in SPECS:
        placed = put(mesh, q, *spec)
        close(jax.jit(jax.grad(loss))(rows, placed), jax.grad(loss)(x, q))
        _, gathered = compiled(jax.grad(loss), rows, placed)
        assert not [g for g in gathered if g.startswith(("u8", "s8"))]
        close(jax.jit(jax.grad(trained))(put(mesh, w, *spec), rows), jax.grad(trained)(w, x))


def test_batches_and_transposes(mesh):
    """Stacked weights cut along the stack, transposed ones along either axis."""
    w, x = normal(0, 8, 64, 128), normal(1, 8, 5, 64)
    stack = jax.vmap(lambda w: quantize(w, "nf4"))(w)
    placed = stack.with_sharding(NamedSharding(mesh, PartitionSpec("dp", None, "tp")))

    def each(x, q):
        return jax.vmap(lambda x, q: x @ q)(x, q)

    close(jax.jit(each)(x, placed), each(x, stack))
    assert compiled(each, x, placed) == (["f32[2,5,64]"], [])
    q = quantize(w[0], "int8")
    turned = put(mesh, q, "dp", "tp").T
    y = normal(2, 16, 128)
    close(jax.jit(lambda y, q: y @ q)(y, turned), y @ q.T)
    assert compiled(lambda y, q: y @ q, y, turned) == (["f32[16,16]"], [])


def test_results_are_rounded_once(mesh):
    """Devices' sums of 16-bit products are added in f32."""
    x = normal(1, 16, 128).astype("bfloat16")
    q = quantize(normal(0, 128, 256).astype("bfloat16"), "int8")
    placed = put(mesh, q, "dp")
    assert compiled(lambda x, q: x @ q, x, placed) == (["f32[16,256]"], [])
    y, whole = jax.jit(lambda x, q: x @ q)(x, placed), x @ q
    assert y.dtype == jnp.bfloat16
    assert float(jnp.mean(y == whole)) > 0.99  # f32 sums in another order


@pytest.mark.parametrize(
    "config, spec, cut",
    [
        ("nf4", ("dp", "tp"), ("dp", "tp")),
        ("int8", ("dp", "tp"), ("dp", None)),  # a row shares a scale
        (QuantizationConfig("int8", axis=0), ("dp", "tp"), (None, "tp")),
        ("ternary", ("dp", "tp"), (None, None)),  # all elements do
        (QuantizationConfig("ternary", scale="row"), ("dp", "tp"), ("dp", None)),
        (QuantizationConfig("binary", scale="block"), ("dp", "tp"), ("dp", "tp")),
        (QuantizationConfig("nf4", double_quant=True), ("dp", "tp"), (None, None)),
    ],
)
def test_encoding(mesh, config, spec, cut):
    """Quantizers run where the array is, on what does not share a scale."""
    w = normal(0, 128, 256)
    q = quantize(w, config)
    placed = put(mesh, w, *spec)
    made = jax.jit(lambda w: quantize(w, config))(placed)
    for name, part in q.parts.items():
        same(made.parts[name], part)
    spec = PartitionSpec(*cut, *[None] * (2 - len(cut)))
    got = made.parts["codes"].sharding.spec
    assert PartitionSpec(*got, *[None] * (2 - len(got))) == spec


def test_codes_are_cut(mesh):
    codes = jax.random.randint(jax.random.key(0), (64, 64), -1, 2, "int8")
    from lowbit.jax import Array1B

    made = jax.jit(Array1B.quantize)(put(mesh, codes, "dp", "tp"))
    same(made, codes)
    assert made.parts["codes"].sharding.spec == PartitionSpec("dp", "tp")


def test_what_cannot_be_cut_is_gathered(mesh):
    """Axes that devices do not divide, and blocks that they would cut."""
    x = normal(1, 16, 120)
    for shape in [(120, 70), (120, 66)]:
        q = quantize(normal(0, *shape), "nf4")
        parts = {k: put(mesh, p, "tp") for k, p in q.parts.items()}
        fn = jax.jit(lambda x, q: x @ q, out_shardings=NamedSharding(mesh, PartitionSpec()))
        close(fn(x, q._make(q._static, parts)), x @ q)
    q = Array8B.quantize(normal(0, 120, 30), axis=0)
    close(jax.jit(lambda x, q: x @ q)(put(mesh, x, "dp"), q), x @ q)


@pytest.mark.parametrize("spec", [("tp", "dp"), (None, ("dp", "tp")), (("tp", "dp"), None)])
@pytest.mark.parametrize("columns", [128, 192, 384, 512])
def test_parts_of_axes(mesh, spec, columns):
    """Fewer blocks than devices: the partitioner would cut along a part of an axis."""
    w, x = put(mesh, normal(0, 64, columns), *spec), normal(1, 16, 64)
    q = quantize(normal(0, 64, columns), "nf4")
    made = jax.jit(lambda w: quantize(w, "nf4"))(w)
    for name, part in q.parts.items():
        same(made.parts[name], part)
    close(jax.jit(lambda x, w: x @ quantize(w, "nf4"))(x, w), x @ q)
    y = put(mesh, normal(2, 16, columns), *spec)
    close(jax.jit(lambda y, q: y @ q.T)(y, q), y @ q.T)


def test_double_quantization(mesh):
    q = quantize(normal(0, 128, 256), QuantizationConfig("nf4", double_quant=True))
    with pytest.raises(ValueError, match="scales in 8 bits .double_quant. cannot be cut"):
        put(mesh, q, "dp")
    x = normal(1, 16, 128)
    fn = jax.jit(lambda x, q: x @ q)
    close(fn(put(mesh, x, "dp"), put(mesh, q)), x @ q)
    assert compiled(fn, put(mesh, x, "dp"), put(mesh, q))[0] == ["f32[4,256]"]


def test_shard_map(mesh):
    w, x = normal(0, 128, 256), normal(1, 16, 128)
    q = quantize(w, "nf4")
    spec = PartitionSpec(None, "tp")
    placed = q.with_sharding(NamedSharding(mesh, spec))
    fn = jax.shard_map(
        lambda x, q: x @ q, mesh=mesh, in_specs=(PartitionSpec("dp"), spec),
        out_specs=PartitionSpec("dp", "tp"),
    )  # fmt: skip
    assert calls(fn, x, placed) == ["lowbit_dot_general"]
    close(jax.jit(fn)(x, placed), x @ q)
    rows = q.with_sharding(NamedSharding(mesh, PartitionSpec("dp")))
    of_rows = jax.shard_map(
        lambda q: q.materialize(), mesh=mesh, in_specs=(PartitionSpec("dp"),),
        out_specs=PartitionSpec("dp"),
    )  # fmt: skip
    same(of_rows(rows), q)


THREADS = """
import os, sys, json
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax, jax.numpy as jnp
from lowbit.jax import quantize
q = quantize(jax.random.normal(jax.random.key(0), (512, 512)), "nf4")
def count(): return len(os.listdir("/proc/self/task"))
fn = jax.pmap(lambda x, q: x @ q, in_axes=(0, None))
x = jnp.ones((8, 16, 512))
before = count()
for _ in range(20):
    fn(x, q).block_until_ready()
print(json.dumps([before, count(), os.cpu_count()]))
"""


def test_threads_are_bounded():
    """Eight devices multiply at once: one pool of workers, not eight."""
    out = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, check=True)
    before, after, cores = json.loads(out.stdout)
    assert after - before <= cores + 16  # XLA starts threads of its own for pmap
