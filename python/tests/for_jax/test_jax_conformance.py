"""eformer's conformance cases through lowbit.jax, with the verdicts of tools/conformance.

The cases are not part of the project: skipped unless they are in $CONFORMANCE/seed
(default: ../shared/conformance). CASES_EVERY=8: every eighth one of a group.
"""

import devices  # noqa: F401, I001: before jax

import ast
import contextlib
import json
import os
import re
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from lowbit.jax import (
    Array1B,
    Array8B,
    ArrayNF4,
    ImplicitArray,
    QuantizationConfig,
    QuantizationType,
    implicit,
    quantize,
    straight_through,
)

ROOT = Path(__file__).parents[3]
CASES = (
    Path(os.environ.get("CONFORMANCE", ROOT.parent / "shared" / "conformance")) / "seed"
)


def manifest(name):
    path = CASES / name
    return json.loads(path.read_text()) if path.exists() else {}


MANIFEST = manifest("index.json")
SHARDING = manifest("sharding.json")
DTYPES = {
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "bool": "bool",
}
CLASSES = {"int8": Array8B, "nf4": ArrayNF4, "ternary": Array1B, "binary": Array1B}


EVERY = int(os.environ.get("CASES_EVERY", 1))


def cases(*groups):
    chosen = [c for c in MANIFEST.get("cases", []) if c["group"] in groups]
    return pytest.mark.parametrize("case", chosen[::EVERY], ids=lambda c: c["id"])


def numpy_of(ref):
    if "number" in ref:
        return np.array(float(ref["number"]), DTYPES[ref["dtype"]])
    n = np.load(CASES / ref["file"])
    return n.view(ml_dtypes.bfloat16) if ref["dtype"] == "bf16" else n


def read(ref):
    return jnp.asarray(numpy_of(ref))


def check(got, ref, what=""):
    want = numpy_of(ref)
    assert got.shape == want.shape and got.dtype == DTYPES[ref["dtype"]], what
    a, b = np.asarray(got), want
    if a.dtype == ml_dtypes.bfloat16:
        a, b = a.astype("f4"), b.astype("f4")
    tol = ref["tol"]
    if tol == "exact":
        same = a == b
        if a.dtype.kind == "f":
            same &= np.signbit(a) == np.signbit(b)
        assert np.all(same | ((a != a) & (b != b))), what
        return
    tiny = float(ml_dtypes.finfo(want.dtype).smallest_normal)
    a, b = a.astype("f8"), b.astype("f8")
    finite = np.isfinite(b)
    assert np.array_equal(a[~finite], b[~finite], equal_nan=True), what
    of_array = np.abs(b[finite]).max(initial=0)
    most = of_array if ref["tol_of"] == "array" else np.abs(b[finite])
    assert np.all(np.abs(a[finite] - b[finite]) <= np.maximum(tol * most, tiny)), what


def config_of(format, params, dtype=None, decode="table"):
    axis = params.get("axis")
    return QuantizationConfig(
        format,
        params.get("block_size") or 64,
        axis=axis if format == "int8" else None,
        compat="eformer",
        decode=decode if format == "nf4" else None,
        materialize=dtype and DTYPES[dtype],
    )


def make(x, format, params, dtype=None, decode="table"):
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return Array1B.quantize(x, dtype=dtype and DTYPES[dtype])
    return quantize(x, config_of(format, params, dtype, decode))


def from_parts(format, parts, shape, dtype, decode):
    """The array of eformer's parts."""
    if format == "int8":
        return Array8B(parts["scale"], parts["codes"], dtype=dtype)
    if format == "nf4":
        return ArrayNF4(
            parts["packed"], parts["absmax"], shape=shape, dtype=dtype, decode=decode
        )
    return Array1B(parts["packed"], shape=shape, dtype=dtype)


@cases(1, 2, 3, 9)
def test_codecs(case):
    format = case["op"].split("_")[0].replace("pack2", "ternary")
    x = read(case["inputs"]["x"])
    p, out = case["params"], case["outputs"]
    q = make(x, format, p)
    assert type(q) is CLASSES[format]
    names = {"codes": "weight", "scale": "scale", "packed": "packed", "absmax": "absmax"}
    for name in names.keys() & out.keys():
        check(getattr(q, names[name]), out[name], name)
    parts = {name: read(out[name]) for name in names.keys() & out.keys()}
    for name, ref in out.items():
        if not name.startswith("values"):
            continue
        decode = "poly" if name.startswith("values_poly") else "table"
        asked = make(x, format, p, ref["dtype"], decode)
        check(asked.materialize(), ref, name)
        check(jax.jit(lambda a: a.materialize())(asked), ref, f"{name} in jit")
        again = from_parts(format, parts, x.shape, DTYPES[ref["dtype"]], decode)
        check(again.materialize(), ref, f"{name} of parts")


# ---- group 4 --------------------------------------------------------------------


def calls():
    for case in MANIFEST.get("cases", []):
        for i, call in enumerate(case.get("calls", [])):
            yield pytest.param(case, call, id=f"{case['id']}[{i}]")


def evaluated(text, x):
    """The value of a call as the manifest writes it."""
    text = text.split("  [")[0]
    text = re.sub(r"'(\w+)' as string", r"'\1'", text)
    text = re.sub(r"'(\w+)' as enum", r"QuantizationType('\1')", text)
    text = re.sub(r"\b(bf16|f16|f32) (x|array)", r"x.astype('\1')", text)
    text = re.sub(r"\b(int32) array", r"x.astype('i32')", text)
    text = re.sub(r"zeros\(([\d, ]*)\)", r"zeros((\1))", text)
    for short, name in DTYPES.items():
        text = text.replace(f"astype('{short}')", f"astype('{name}')")

    def with_compat(fn):
        def call(array, config=None, dtype=None, **words):
            if config is None:
                kind = "nf4" if dtype is None else dtype
                if isinstance(kind, str):
                    config = QuantizationConfig(kind, compat="eformer", **words)
                else:
                    return fn(array, dtype=dtype, **words)
            else:
                kind = config.dtype
                config = QuantizationConfig(
                    kind, config.block_size, config.simulate, compat="eformer"
                )
            return fn(array, config)

        return call

    known = {
        "x": x,
        "zeros": jnp.zeros,
        "quantize": with_compat(quantize),
        "straight_through": with_compat(straight_through),
        "QuantizationConfig": QuantizationConfig,
        "QuantizationType": QuantizationType,
    }
    return eval(text, known)


@pytest.mark.parametrize("case, call", list(calls())[::EVERY])
def test_calls(case, call):
    text, result = call["call"], call.get("result")
    types = case["params"]["types"]
    x = read(case["inputs"]["x"]).astype("float32")
    # Refused by eformer without need: scalars, empty arrays, numbers of rows.
    needless = "zeros(" in text or "[:3]" in text
    if result is None and not needless:
        with pytest.raises((ValueError, TypeError)) as error:
            evaluated(text, x)
        if "not a valid" in call["message"] or "Supported" in call["message"]:
            assert all(t in str(error.value) for t in types)
        return
    got = evaluated(text, x)
    if call.get("accepted"):
        return
    if result is None:
        assert got is not None
        return
    name = "dense" if isinstance(got, jax.Array) else type(got).__name__
    assert name == result["class"]
    assert got.dtype == DTYPES[result["dtype"]]
    want = list(result["shape"])
    if "nf4" in text or name == "ArrayNF4" or text in ("straight_through(x)",):
        # Unpadded; the package's last axis is whole blocks.
        assert want[-1] >= got.shape[-1]
        want[-1:] = got.shape[-1:]
    assert list(got.shape) == want
    for member in ("block_size", "axis"):
        if member in result:
            value = getattr(got, member)
            assert (list(value) if member == "axis" else value) == result[member]


def test_defaults():
    for case in MANIFEST.get("cases", []):
        if case["group"] != 4:
            continue
        for name, value in case["params"]["defaults"].items():
            assert str(getattr(QuantizationConfig(), name)) == value
        assert [str(t) for t in QuantizationType] == case["params"]["types"]


# ---- group 5 --------------------------------------------------------------------


def conv(x, w, p):
    return jax.lax.conv_general_dilated(
        x,
        w,
        p["window_strides"],
        p["padding"],
        p["lhs_dilation"],
        p["rhs_dilation"],
        tuple(p["dimension_numbers"]),
        p["feature_group_count"],
        preferred_element_type=preferred(p),
    )


def preferred(p):
    t = p.get("preferred_element_type")
    return t and DTYPES[t]


def dot(x, y, p):
    dims = (p["lhs_contract"], p["rhs_contract"]), (p["lhs_batch"], p["rhs_batch"])
    return jax.lax.dot_general(x, y, dims, preferred_element_type=preferred(p))


def gather(x, i, p):
    dims = {k: tuple(v) for k, v in p.items() if k not in ("meaning", "slice_sizes")}
    numbers = jax.lax.GatherDimensionNumbers(**dims)
    return jax.lax.gather(x, i, numbers, p["slice_sizes"], mode="clip")


def reduce(x, p):
    return getattr(jnp, p["kind"])(x, axis=tuple(p["axes"]))


OPS = {
    "lt": lambda x, y, p: x < y,
    "add": lambda x, y, p: x + y,
    "mul": lambda x, y, p: x * y,
    "max": lambda x, y, p: jnp.maximum(x, y),
    "div": lambda x, y, p: jax.lax.div(x, y),
    "pow": lambda x, y, p: x**y,
    "integer_pow": lambda x, p: jax.lax.integer_pow(x, p["y"]),
    "exp": lambda x, p: jnp.exp(x),
    "sqrt": lambda x, p: jnp.sqrt(x),
    "log": lambda x, p: jnp.log(x),
    "convert_element_type": lambda x, p: x.astype(DTYPES[p["new_dtype"]]),
    "transpose": lambda x, p: x.transpose(p["permutation"]),
    "reshape": lambda x, p: x.reshape(p["new_sizes"]),
    "broadcast_in_dim": lambda x, p: jax.lax.broadcast_in_dim(
        x, p["shape"], p["broadcast_dimensions"]
    ),
    "concatenate": lambda *a: jnp.concatenate(a[:-1], axis=a[-1]["dimension"]),
    "gather": gather,
    "reduce": reduce,
    "dot_general": dot,
    "matmul": lambda x, y, p: x @ y,
    "conv_general_dilated": conv,
}


def operand(entry, decode):
    """The array, and whether the cases and the library agree about its codes."""
    if "array" in entry:
        return read(entry["array"]), True
    o = MANIFEST["operands"][entry["operand"]]
    if "values_poly" not in o:
        decode = "table"
    q = make(read(o["x"]), o["format"], o["params"], o["dtype"], decode)
    clamped = "codes" in o and np.any(numpy_of(o["codes"]) == -128)
    return q, not clamped


@pytest.mark.filterwarnings("ignore:.*it is materialized")
@cases(5)
def test_primitives(case):
    op, p = case["op"], case["params"]
    for output, decode in (("out", "table"), ("out_poly", "poly")):
        ref = case["outputs"].get(output)
        if ref is None:
            continue
        operands = [operand(e, decode) for e in case["operands"]]
        if not all(agreed for _, agreed in operands):
            pytest.skip("eformer has codes of -128, which lowbit clamps")
        arrays = [a for a, _ in operands]
        lazy = op == "convert_element_type" and isinstance(arrays[0], ArrayNF4)
        if lazy and arrays[0].dtype != "float32" and ref["dtype"] in ("f32", "f16", "bf16"):
            pytest.skip("a conversion of a packed array only changes its label")
        function = implicit(lambda *a: OPS[op](*a, p))
        for how, fn in (("eager", function), ("jit", jax.jit(function))):
            got = fn(*arrays)
            if isinstance(got, ImplicitArray):
                got = got.materialize()
            check(got, ref, f"{output}, {how}")


# ---- groups 6 and 8 -------------------------------------------------------------


@cases(6)
def test_straight_through(case):
    inputs = {k: read(r) for k, r in case["inputs"].items()}
    p, out = case["params"], case["outputs"]
    decode = "poly" if p.get("decode") == "polynomial" else "table"
    config = config_of(p["format"], p, decode=decode)
    if case["op"] == "straight_through":
        y, back = jax.vjp(lambda w: straight_through(w, config), inputs["w"])
        check(y, out["value"], "value")
        check(back(inputs["cotangent"])[0], out["gradient"], "gradient")
        return
    if p["computed_by"] == "the package's straight_through" and p["format"] == "ternary":
        pytest.skip("eformer's straight_through packs truncated values")
    with jax.enable_x64(True):
        train(inputs, p, config, out)


def train(inputs, p, config, out):
    """Each step in float64 and in float32; as in tools/conformance, the next weights of both
    come from the gradient in float64: rounding could flip a code."""
    w = inputs["w"]

    @implicit
    def loss(w, x, y):
        return jnp.mean((x @ straight_through(w, config) - y) ** 2)

    step = jax.jit(jax.value_and_grad(loss))
    data = {t: [inputs[k].astype(t) for k in "xy"] for t in ("float64", "float32")}
    losses = {t: [] for t in data}
    for i in range(p["steps"]):
        gradients = {}
        for t, (x, y) in data.items():
            value, gradients[t] = step(w, x, y)
            losses[t].append(value.astype("float32"))
            if f"grad_{i}" in out:
                check(gradients[t], out[f"grad_{i}"], f"grad_{i} in {t}")
        w = w - jnp.asarray(p["lr"], w.dtype) * gradients["float64"]
    for t, list_of_losses in losses.items():
        check(jnp.stack(list_of_losses), out["losses"], f"losses in {t}")
    check(w, out["w_final"], "w_final")


def ste(format, **options):
    config = QuantizationConfig(format, compat="eformer", **options)
    return lambda w: straight_through(w, config)


def softmax_loss(x, w, onehot):
    z = x @ w
    m = jnp.max(z, axis=1, keepdims=True)
    s = jnp.log(jnp.sum(jnp.exp(z - m), axis=1)) + jnp.squeeze(m, 1)
    return jnp.mean(s - jnp.sum(z * onehot, axis=1))


def rms_norm(x, g):
    return x / jnp.sqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-6) * g


def layer_norm(x, g, b):
    u = x - jnp.mean(x, -1, keepdims=True)
    return u / jnp.sqrt(jnp.mean(u**2, -1, keepdims=True) + 1e-5) * g + b


def conv_nhwc(x, w):
    dims = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, w, (1, 1), [(1, 1)] * 2, dimension_numbers=dims)


def rounded(x):
    b = x.astype("bfloat16")
    return (b * b).astype("float32")


def concatenated(a, b, c):
    return jnp.sum(c * jnp.concatenate([a.T, b.T]).reshape(2, -1))


def smooth_max(x):
    m = jnp.max(x, axis=1)
    return jnp.log(jnp.sum(jnp.exp(x - m[:, None]), axis=1)) + m


R = jax.nn.relu
S = jnp.sum
M = jnp.mean
# By the text of the case.
FORMULAS = {
    "mean((x@w + b - y)^2)": lambda x, w, b, y: M((x @ w + b - y) ** 2),
    "z = x@w; mean(log": softmax_loss,
    "mean((max(x@w1 + b1": lambda x, w1, b1, w2, b2, y: M(
        (R(x @ w1 + b1) @ w2 + b2 - y) ** 2
    ),
    "s = softmax(q@k^T": lambda q, k, v, c: S(c * (jax.nn.softmax(q @ k.T / 8**0.5) @ v)),
    "sum(c * x / sqrt(mean(x^2,-1)": lambda x, g, c: S(c * rms_norm(x, g)),
    "u = x - mean(x,-1)": lambda x, g, b, c: S(c * layer_norm(x, g, b)),
    "sum(max(conv(x, w), 0)^2)": lambda x, w: S(R(conv_nhwc(x, w)) ** 2) / 64,
    "sum(c * t[idx])": lambda t, idx, c: S(c * t[idx]),
    "sum(c * reshape(concat": concatenated,
    "sum(c * x^p)": lambda x, p, c: S(c * x**p),
    "sum(c * log(a / b))": lambda a, b, c: S(c * jnp.log(a / b)),
    "sum(exp(a[:,None]": lambda a, b, c: S(jnp.exp(a[:, None] - b[None, :]) * c),
    "sum(c * (x^3 - 2 x^-2))": lambda x, c: S(c * (x**3 - 2 * x**-2)),
    "sum(sqrt(a * b))": lambda a, b: S(jnp.sqrt(a * b)),
    "sum(c * max(a, b))": lambda a, b, c: S(c * jnp.maximum(a, b)),
    "sum(c * max(x, axis 1))": lambda x, c: S(c * jnp.max(x, axis=1)),
    "sum(c * (log(sum(exp(x - max), 1)) + max))": lambda x, c: S(c * smooth_max(x)),
    "sum(c * f32(bf16(x)^2))": lambda x, c: S(c * rounded(x)),
    "mean((x @ ste_int8(w) - y)": lambda x, w, y: M((x @ ste("int8")(w) - y) ** 2),
    "mean((x @ ste_nf4(w": lambda x, w, y: M(
        (x @ ste("nf4", block_size=16)(w) - y) ** 2
    ),
    "mean((x @ ste_ternary(w": lambda x, w, y: M((x @ ste("ternary")(w) - y) ** 2),
    "mean((x @ ste_binary(w": lambda x, w, y: M((x @ ste("binary")(w) - y) ** 2),
    "mean((max(x @ ste_int8(w1)": lambda x, w1, w2, y: M(
        (R(x @ ste("int8")(w1)) @ ste("nf4", block_size=16)(w2) - y) ** 2
    ),
    "mean(max(x @ int8(w), 0)^2)": lambda x, w: M(R(x @ w) ** 2),
    "mean(max(x @ nf4(w": lambda x, w: M(R(x @ w) ** 2),
    "sum(conv(x, int8(w))^2)": lambda x, w: S(conv_nhwc(x, w) ** 2) / 64,
    "mean((x @ int8(w) + (x@a)@b": lambda x, w, a, b, y: M(
        (x @ w + (x @ a) @ b - y) ** 2
    ),
}


@pytest.mark.filterwarnings("ignore:.*it is materialized")
@cases(8)
def test_gradients(case):
    p = case["params"]
    names = list(case["inputs"])
    arrays = [read(r) for r in case["inputs"].values()]
    formula = next(f for text, f in FORMULAS.items() if p["expression"].startswith(text))
    for format in ("int8", "nf4"):
        if f" {format}(w" in p["expression"]:
            k = names.index("w")
            axis = p.get("axis") if format == "int8" else None
            config = QuantizationConfig(format, 16, axis=axis, compat="eformer")
            arrays[k] = quantize(arrays[k], config)
    by = tuple(names.index(n) for n in p["differentiate"])
    for wrap in (lambda f: f, jax.jit):
        fn = wrap(jax.value_and_grad(implicit(formula), argnums=by))
        value, gradients = fn(*arrays)
        check(value, case["outputs"]["value"], "value")
        for name, g in zip(p["differentiate"], gradients):
            check(g, case["outputs"][f"d_{name}"], name)


# ---- group 7 --------------------------------------------------------------------


def sharding_cases(kind):
    chosen = SHARDING.get(kind, [])[::EVERY]
    return pytest.mark.parametrize("it", chosen, ids=lambda it: None)


# JAX refuses names when a NamedSharding is made; DuplicateSpecError is an Exception.
REFUSALS = Exception


def mesh_of(it):
    n = int(np.prod(it["mesh"]))
    return Mesh(np.array(jax.devices()[:n]).reshape(it["mesh"]), tuple(it["names"]))


def spec_of(spec):
    return PartitionSpec(*(tuple(e) if isinstance(e, list) else e for e in spec))


def normal(shape):
    return jax.random.normal(jax.random.key(1), shape, "float32")


@sharding_cases("maps")
def test_maps(it):
    """Each device holds this part of the codes, in every format whose blocks allow it."""
    mesh, spec = mesh_of(it), spec_of(it["spec"])
    q = Array8B.quantize(normal(it["shape"]), axis=tuple(range(len(it["shape"]))))
    q = q.with_sharding(NamedSharding(mesh, spec))
    devices = list(mesh.devices.flat)
    held = {s.device: s for s in q.weight.addressable_shards}
    for device, want, replica in zip(devices, it["shards"], it["replica_id"]):
        shard = held[device]
        got = [list(s.indices(n)[:2]) for s, n in zip(shard.index, it["shape"])]
        assert got == want and shard.replica_id == replica
    assert q.weight.sharding.is_fully_replicated == it["fully_replicated"]
    assert q.materialize().sharding.is_equivalent_to(
        NamedSharding(mesh, spec), len(it["shape"])
    )


@sharding_cases("refused")
def test_refused(it):
    q = Array8B.quantize(normal(it["shape"])) if it["shape"] else Array8B.quantize(
        jnp.float32(1)
    )
    if it["device_put"].get("accepted"):
        pytest.skip("accepted by the package's device_put")
    with pytest.raises(REFUSALS):
        q.with_sharding(NamedSharding(mesh_of(it), spec_of(it["spec"])))


def quantized(it):
    x = normal(it["array"])
    kind, word, value = it["format"].split(" ", 2)
    if kind == "int8":
        return x, QuantizationConfig("int8", axis=ast.literal_eval(value))
    return x, QuantizationConfig("nf4", int(value))


def placed(a):
    """The spec of an array, with None for each axis that is whole."""
    spec = getattr(a.sharding, "spec", ())
    full = [*spec, *[None] * (a.ndim - len(spec))]
    return [list(e) if isinstance(e, tuple) and len(e) > 1 else
            e[0] if isinstance(e, tuple) and e else e or None for e in full]


def wanted(part, ndim):
    spec = part["spec"] if isinstance(part["spec"], list) else []
    spec = [e[0] if isinstance(e, list) and len(e) == 1 else e or None for e in spec]
    return [*spec, *[None] * (ndim - len(spec))]


def check_placed(q, parts, what):
    names = {"weight": "codes", "scale": "scale", "packed": "codes", "absmax": "absmax"}
    for theirs, part in parts.items():
        a = q.parts[names[theirs]]
        order = q._axes if what == "transposed" else range(len(q.shape))
        got = placed(a)
        got = [got[k] for k in order]
        # Their packed has an axis inside of blocks, which is never cut here.
        assert got == wanted(part, len(got))[: len(got)], (what, theirs)


@pytest.mark.filterwarnings("ignore:with_sharding")
@sharding_cases("components")
def test_components(it):
    mesh, how = mesh_of(it), it["how"]
    x, config = quantized(it)
    spec = spec_of(it["spec"])
    if how.startswith("quantize"):
        check_quantized(it, x, config, mesh, spec)
        return
    q = quantize(x, config)
    context = contextlib.nullcontext()

    def place():
        if how == "with_mesh_and_axis":
            return q.with_mesh_and_axis((mesh, it["spec"] and spec), relaxed=True)
        if "PartitionSpec" in how:
            return q.with_sharding(spec, relaxed=True)
        if how.startswith("reshard"):
            whole = q.with_sharding(NamedSharding(mesh, PartitionSpec()))
            return whole.reshard(NamedSharding(mesh, spec), relaxed=True)
        return q.with_sharding(NamedSharding(mesh, spec), relaxed=True)

    if "without a mesh" in how:
        with pytest.raises(ValueError):
            place()
        return
    if "inside" in how:
        context = mesh
    if not it.get("accepted"):
        with context, pytest.raises(REFUSALS):
            place()
        return
    with context:
        a = place()
    assert a.is_sharded
    result = it["result"]
    check_placed(a, result["components"], "placed")
    if it["format"].startswith("int8"):
        check_placed(a.T, result["transposed"]["components"], "transposed")
    assert np.array_equal(np.asarray(a), np.asarray(q))


def check_quantized(it, x, config, mesh, spec):
    if not it.get("accepted"):
        with pytest.raises(REFUSALS):
            jax.device_put(x, NamedSharding(mesh, spec))
        return
    x = jax.device_put(x, NamedSharding(mesh, spec))
    try:
        q = quantize(x, config)
    except ValueError as error:
        assert "cuts groups" in str(error)
        with pytest.raises(ValueError, match="cuts groups"):
            quantize(np.asarray(x), config).with_sharding(NamedSharding(mesh, spec))
        return
    check_placed(q, it["result"]["components"], "quantized")
    assert np.array_equal(np.asarray(q), np.asarray(quantize(np.asarray(x), config)))


@sharding_cases("with_mesh_and_axis")
def test_mesh_and_axis(it):
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("dp", "tp"))
    axis = eval(it["axis"], {"P": PartitionSpec, "PartitionSpec": PartitionSpec})
    q = Array8B.quantize(normal((16, 16))).with_mesh_and_axis((mesh, axis))
    assert wanted({"spec": it["spec"]}, 2) == placed(q.weight)
