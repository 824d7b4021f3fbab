"""eformer's conformance cases: codecs, primitives, straight-through, gradients.

The cases are not part of the project: skipped unless they are in $CONFORMANCE/seed
(default: ../shared/conformance). tools/conformance checks the same ones through C.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import lowbit
from lowbit import _lowbit

ROOT = Path(__file__).parents[2]
CASES = (
    Path(os.environ.get("CONFORMANCE", ROOT.parent / "shared" / "conformance")) / "seed"
)
INDEX = CASES / "index.json"
MANIFEST = json.loads(INDEX.read_text()) if INDEX.exists() else {"cases": []}


def cases(*groups):
    chosen = [c for c in MANIFEST["cases"] if c["group"] in groups]
    return pytest.mark.parametrize("case", chosen, ids=[c["id"] for c in chosen])


def read(ref):
    """The array of a reference, and its values as float64 or integers."""
    if "number" in ref:
        return lowbit.full((), float(ref["number"]), dtype=ref["dtype"])
    n = np.load(CASES / ref["file"])
    if ref["dtype"] == "bf16":
        return lowbit.bitcast(n, "bfloat16")
    x = lowbit.array(n)
    assert x.dtype == ref["dtype"]
    return x


def values(x):
    return np.asarray(x if x.dtype != "bfloat16" else x.astype("float32"))


def check(got, ref, what=""):
    check_close(got, read(ref), ref["tol"], ref.get("tol_of"), what)


def check_close(got, want, tol, tol_of, what=""):
    assert got.shape == want.shape and got.dtype == want.dtype, what
    a, b = values(got), values(want)
    if tol == "exact":
        same = (a == b) & (
            np.signbit(a) == np.signbit(b) if a.dtype.kind == "f" else True
        )
        assert np.all(same | ((a != a) & (b != b))), what
        return
    a, b = a.astype("f8"), b.astype("f8")
    finite = np.isfinite(b)
    assert np.array_equal(a[~finite], b[~finite], equal_nan=True), what
    most = (
        np.abs(b[finite]).max(initial=0)
        if tol_of == "array"
        else np.abs(b[finite])
    )
    tiny = float(lowbit.finfo(want.dtype).smallest_normal)
    assert np.all(np.abs(a[finite] - b[finite]) <= np.maximum(tol * most, tiny)), what


def config_of(format, params, dtype=None, decode="table"):
    axis = params.get("axis")
    return {
        "format": format,
        "compat": "eformer",
        "axes": axis if format == "int8" else None,
        "block_size": params.get("block_size"),
        "materialize": dtype,
        "decode": decode if format == "nf4" else None,
    }


def make(x, config):
    config = dict(config)
    dtype = config.pop("materialize")
    if x.dtype.kind == "f":
        return lowbit.quantize(x, {**config, "dtype": dtype})
    return lowbit.from_codes({**config, "scale": "none", "dtype": dtype}, x)


PARTS = {"codes": "weight", "scale": "scale", "packed": "packed", "absmax": "absmax"}


@cases(1, 2, 3, 9)
def test_codecs(case):
    format = case["op"].split("_")[0].replace("pack2", "ternary")
    x = read(case["inputs"]["x"])
    codes_given = x.dtype.kind != "f"
    config = config_of(format, case["params"], x.dtype if codes_given else None)
    q = make(x, config)
    for name, ref in case["outputs"].items():
        if name in PARTS:
            check(lowbit.export(q, "eformer", PARTS[name]), ref, name)
        if name == "codes":
            check(lowbit.codes(q), ref, name)
        if not name.startswith("values"):
            continue
        decode = "poly" if name.startswith("values_poly") else "table"
        as_asked = config_of(format, case["params"], ref["dtype"], decode)
        check(lowbit.materialize(make(x, as_asked)), ref, name)
        parts = {PARTS[k]: read(r) for k, r in case["outputs"].items() if k in PARTS}
        config = {**as_asked, "dtype": as_asked["materialize"]}
        del config["materialize"]
        again = lowbit.from_parts(config, x.shape, parts, "eformer")
        check(lowbit.materialize(again), ref, name)


def conv(x, w, p):
    spec = [s.replace("N", "b").replace("C", "f") for s in p["dimension_numbers"]]
    spec[1] = spec[1].replace("O", "o").replace("I", "i")
    spec = [s.replace("H", "0").replace("W", "1") for s in spec]
    lo, hi = zip(*p["padding"])
    return lowbit.conv_general_dilated(
        x,
        w,
        stride=p["window_strides"],
        padding=(lo, hi),
        lhs_dilation=p["lhs_dilation"],
        rhs_dilation=p["rhs_dilation"],
        feature_groups=p["feature_group_count"],
        lhs=spec[0],
        rhs=spec[1],
        out=spec[2],
        dtype=p.get("preferred_element_type"),
    )


def dot(x, y, p):
    return lowbit.dot_general(
        x,
        y,
        (p["lhs_contract"], p["rhs_contract"]),
        (p["lhs_batch"], p["rhs_batch"]),
        dtype=p.get("preferred_element_type"),
    )


def gather(x, i, p):
    words = {k: v for k, v in p.items() if k != "meaning"}
    return lowbit.gather(x, i, index_vector_dim=i.ndim - 1, **words)


OPS = {
    "lt": lambda x, y, p: x < y,
    "add": lambda x, y, p: x + y,
    "mul": lambda x, y, p: x * y,
    "max": lambda x, y, p: lowbit.maximum(x, y),
    "div": lambda x, y, p: lowbit.div(x, y),
    "pow": lambda x, y, p: x**y,
    "integer_pow": lambda x, p: lowbit.integer_pow(x, p["y"]),
    "exp": lambda x, p: lowbit.exp(x),
    "sqrt": lambda x, p: lowbit.sqrt(x),
    "log": lambda x, p: lowbit.log(x),
    "convert_element_type": lambda x, p: x.astype(p["new_dtype"]),
    "transpose": lambda x, p: x.transpose(*p["permutation"]),
    "reshape": lambda x, p: x.reshape(p["new_sizes"]),
    "broadcast_in_dim": lambda x, p: lowbit.broadcast_in_dim(
        x, p["shape"], p["broadcast_dimensions"]
    ),
    "concatenate": lambda *a: lowbit.concat(a[:-1], axis=a[-1]["dimension"]),
    "gather": gather,
    "dot_general": dot,
    "matmul": lambda x, y, p: x @ y,
    "conv_general_dilated": conv,
}


def reduce(x, p, dtype):
    x = x.astype(dtype)  # jax sums small integers in i32
    if p["kind"] in ("max", "min"):
        return getattr(lowbit, p["kind"])(x, axis=tuple(p["axes"]))
    return getattr(_lowbit, f"reduce_{p['kind']}")(x, p["axes"])


def nf4_values(entry):
    """Of a stored operand, in f32: not rounded to its dtype."""
    table = np.array([int(bits, 16) for bits in MANIFEST["nf4_table_bits"]], "u4")
    packed = values(read(entry["packed"]))
    codes = np.stack([packed >> 4, packed & 15], axis=-1).reshape(*packed.shape[:-1], -1)
    absmax = values(read(entry["absmax"])).astype("f4")
    w = (table.view("f4")[codes] * absmax[..., None]).reshape(*codes.shape[:-2], -1)
    return lowbit.array(w[..., : entry["shape"][-1]])


def unclamped(q, entry):
    """The values of an operand by eformer if it has codes of -128, which are -127 here and
    are the only difference; None if it has none."""
    codes = values(read(entry["codes"])) if "codes" in entry else np.zeros(0)
    if not np.any(codes == -128):
        return None
    want = read(entry["values"])
    np.testing.assert_array_equal(values(lowbit.codes(q)), np.maximum(codes, -127))
    same = codes > -128
    np.testing.assert_array_equal(values(lowbit.materialize(q))[same], values(want)[same])
    return want


def operand(entry, decode):
    """The array, the entry of its table, and its values by eformer where they differ."""
    if "array" in entry:
        return read(entry["array"]), None, None
    o = MANIFEST["operands"][entry["operand"]]
    config = config_of(o["format"], o["params"], o["dtype"], decode)
    if "values_poly" not in o:
        config["decode"] = None
    q = make(read(o["x"]), config)
    return q, o, unclamped(q, o)


def run(case, arrays, dtype):
    op, p = case["op"], case["params"]
    got = reduce(arrays[0], p, dtype) if op == "reduce" else OPS[op](*arrays, p)
    return got if got.format == "dense" else lowbit.materialize(got)


def check_converted(got, ref, x, entry):
    """A conversion of a packed nf4 array only changes the dtype of its values: they are
    rounded once, while eformer rounds them to the operand's dtype first."""
    w = nf4_values(entry)
    assert got.dtype == read(ref).dtype and got.tobytes() == w.astype(got.dtype).tobytes()
    check(w.astype(x.dtype).astype(got.dtype), ref)


@cases(5)
def test_primitives(case):
    for output, decode in (("out", "table"), ("out_poly", "poly")):
        ref = case["outputs"].get(output)
        if ref is None:
            continue
        arrays, entries, theirs = zip(*(operand(e, decode) for e in case["operands"]))
        got = run(case, arrays, ref["dtype"])
        if any(v is not None for v in theirs):
            both = [(x, v if v is not None else x) for x, v in zip(arrays, theirs)]
            dense = [x if x is v else lowbit.materialize(x) for x, v in both]
            same = run(case, dense, ref["dtype"])
            check_close(got, same, ref["tol"], ref.get("tol_of"))
            got = run(case, [v for _, v in both], ref["dtype"])
        lazy = case["op"] == "convert_element_type" and arrays[0].format == "nf4"
        if lazy and arrays[0].dtype != "float32" and got.dtype.kind == "f":
            check_converted(got, ref, arrays[0], entries[0])
        else:
            check(got, ref, output)


@cases(6)
def test_straight_through(case):
    inputs = {k: read(r) for k, r in case["inputs"].items()}
    p, out = case["params"], case["outputs"]
    decode = "poly" if p.get("decode") == "polynomial" else "table"
    config = config_of(p["format"], p, decode=decode)
    del config["materialize"]
    if p["format"] != "nf4":
        config["block_size"] = None
    if case["op"] == "straight_through":
        x = inputs["w"]
        y, (g,) = lowbit.vjp(
            lambda w: lowbit.materialize(lowbit.straight_through(w, config)),
            x,
            cotangent=inputs["cotangent"],
        )
        check(y, out["value"], "value")
        check(g, out["gradient"], "gradient")
        return
    wrong = [flag for flag in case.get("flags", []) if flag.startswith("package wrong")]
    if p["computed_by"].startswith("the package") and wrong:
        pytest.skip(f"eformer's own: {wrong[0]}")
    train(inputs, p, config, out)


def train(inputs, p, config, out):
    """Each step in float64 and in float32; as in tools/conformance, the next weights of both
    come from the gradient in float64: rounding could flip a code."""
    w = inputs["w"]

    def loss(w, x, y):
        return lowbit.squared_error(x @ lowbit.straight_through(w, config), y)

    step = lowbit.value_and_grad(loss)
    data = {t: [inputs[k].astype(t) for k in "xy"] for t in ("float64", "float32")}
    losses = {t: [] for t in data}
    for i in range(p["steps"]):
        gradients = {}
        for t, (x, y) in data.items():
            value, gradients[t] = step(w, x, y)
            losses[t].append(value.astype("float32"))
            if f"grad_{i}" in out:
                check(gradients[t], out[f"grad_{i}"], f"grad_{i} in {t}")
        w = w - p["lr"] * gradients["float64"]
    for t, list_of_losses in losses.items():
        check(lowbit.stack(list_of_losses), out["losses"], f"losses in {t}")
    check(w, out["w_final"], "w_final")


def ste(format, **options):
    return lambda w: lowbit.straight_through(w, format, compat="eformer", **options)


def mean(x, axis=None):
    return lowbit.mean(x, axis=axis, keepdims=axis is not None)


def softmax_loss(x, w, onehot):
    z = x @ w
    m = lowbit.max(z, axis=1, keepdims=True)
    s = lowbit.log(lowbit.sum(lowbit.exp(z - m), axis=1)) + lowbit.squeeze(m, 1)
    return lowbit.mean(s - lowbit.sum(z * onehot, axis=1))


def conv_nhwc(x, w, stride, pad):
    return lowbit.conv_general_dilated(
        x, w, stride=stride, padding=(pad, pad), lhs="b01f", rhs="01io", out="b01f"
    )


def rounded(x):
    b = x.astype("bfloat16")
    return (b * b).astype("float32")


R = lowbit.relu
S = lowbit.sum
# By the text of the case.
FORMULAS = {
    "mean((x@w + b - y)^2)": lambda x, w, b, y: mean((x @ w + b - y) ** 2),
    "z = x@w; mean(log": softmax_loss,
    "mean((max(x@w1 + b1": lambda x, w1, b1, w2, b2, y: mean(
        (R(x @ w1 + b1) @ w2 + b2 - y) ** 2
    ),
    "s = softmax(q@k^T": lambda q, k, v, c: S(c * (lowbit.softmax(q @ k.T / 8**0.5) @ v)),
    "sum(c * x / sqrt(mean(x^2,-1)": lambda x, g, c: S(c * lowbit.rms_norm(x, g, 1e-6)),
    "u = x - mean(x,-1)": lambda x, g, b, c: S(c * lowbit.layer_norm(x, g, b, 1e-5)),
    "sum(max(conv(x, w), 0)^2)": lambda x, w: S(R(conv_nhwc(x, w, 1, 1)) ** 2) / 64,
    "sum(c * t[idx])": lambda t, idx, c: S(c * t[idx]),
    "sum(c * reshape(concat": lambda a, b, c: S(
        c * lowbit.concat([a.T, b.T]).reshape(2, -1)
    ),
    "sum(c * x^p)": lambda x, p, c: S(c * x**p),
    "sum(c * log(a / b))": lambda a, b, c: S(c * lowbit.log(a / b)),
    "sum(exp(a[:,None]": lambda a, b, c: S(lowbit.exp(a[:, None] - b[None, :]) * c),
    "sum(c * (x^3 - 2 x^-2))": lambda x, c: S(c * (x**3 - 2 * x**-2)),
    "sum(sqrt(a * b))": lambda a, b: S(lowbit.sqrt(a * b)),
    "sum(c * max(a, b))": lambda a, b, c: S(c * lowbit.maximum(a, b)),
    "sum(c * max(x, axis 1))": lambda x, c: S(c * lowbit.max(x, axis=1)),
    "sum(c * (log(sum(exp(x - max), 1)) + max))": lambda x, c: S(
        c
        * (
            lowbit.log(S(lowbit.exp(x - lowbit.max(x, axis=1, keepdims=True)), axis=1))
            + lowbit.max(x, axis=1)
        )
    ),
    "sum(c * f32(bf16(x)^2))": lambda x, c: S(c * rounded(x)),
    "mean((x @ ste_int8(w) - y)": lambda x, w, y: mean((x @ ste("int8")(w) - y) ** 2),
    "mean((x @ ste_nf4(w": lambda x, w, y: mean(
        (x @ ste("nf4", block_size=16)(w) - y) ** 2
    ),
    "mean((x @ ste_ternary(w": lambda x, w, y: mean((x @ ste("ternary")(w) - y) ** 2),
    "mean((x @ ste_binary(w": lambda x, w, y: mean((x @ ste("binary")(w) - y) ** 2),
    "mean((max(x @ ste_int8(w1)": lambda x, w1, w2, y: mean(
        (R(x @ ste("int8")(w1)) @ ste("nf4", block_size=16)(w2) - y) ** 2
    ),
    "mean(max(x @ int8(w), 0)^2)": lambda x, w: mean(R(x @ w) ** 2),
    "mean(max(x @ nf4(w": lambda x, w: mean(R(x @ w) ** 2),
    "sum(conv(x, int8(w))^2)": lambda x, w: S(conv_nhwc(x, w, 1, 1) ** 2) / 64,
    "mean((x @ int8(w) + (x@a)@b": lambda x, w, a, b, y: mean(
        (x @ w + (x @ a) @ b - y) ** 2
    ),
}


@cases(8)
def test_gradients(case):
    p = case["params"]
    names = list(case["inputs"])
    arrays = [read(r) for r in case["inputs"].values()]
    formula = next(f for text, f in FORMULAS.items() if p["expression"].startswith(text))
    for format in ("int8", "nf4"):
        if f" {format}(w" in p["expression"]:
            k = names.index("w")
            options = {"axes": p.get("axis")} if format == "int8" else {"block_size": 16}
            arrays[k] = lowbit.quantize(arrays[k], format, compat="eformer", **options)
    by = tuple(names.index(n) for n in p["differentiate"])
    value, gradients = lowbit.value_and_grad(formula, argnums=by)(*arrays)
    check(value, case["outputs"]["value"], "value")
    for name, g in zip(p["differentiate"], gradients):
        check(g, case["outputs"][f"d_{name}"], name)
