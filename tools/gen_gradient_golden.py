#!/usr/bin/env python3
"""gen_gradient_golden.py - writes tests/golden/gradients.txt: the gradients of
composed functions, by jax.

The functions are in golden_functions.py, and under the same names in
tests/golden_functions.c. In a temporary virtual environment:

    python3 -m venv v
    v/bin/pip install numpy ml_dtypes gguf 'jax==0.10.*'
    v/bin/python tools/gen_gradient_golden.py

    call NAME FUNCTION [dtype=D] KEY=VALUE.. : OPERAND..
    value f32=T bf16=T ARRAY    the result of the function
    grad I f32=T bf16=T ARRAY   its gradient with respect to operand I
    end

Inputs are exact in bf16, and are converted to the dtype under test. Expected
values and gradients are in f64. The tolerance is T times the largest value in the
array: T is four times the error of jax with arrays of that dtype, and at least 16
(bf16: 4) units in the last place.

Straight-through estimators get the quantized values from numpy by the formats'
definitions (golden_rules.py) or, for GGUF's types, from the package gguf; their
derivative is the identity.
"""
import importlib.metadata
import os
import platform
import sys

sys.dont_write_bytecode = True
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import golden_functions as functions  # noqa: E402
import golden_rules as rules  # noqa: E402
from golden_text import BF16, Golden, array_words, keys_text  # noqa: E402
from native_numpy import TABLE  # noqa: E402

jax.config.update("jax_enable_x64", True)

F32 = np.float32
STEP = {"f32": 16 * 2.0 ** -24, "bf16": 4 * 2.0 ** -8}
DTYPE = {"f32": jnp.float32, "bf16": jnp.bfloat16}
HEAD = """gradients.txt - values and gradients of composed functions by jax,
made by tools/gen_gradient_golden.py, which describes the format"""


# ---- quantized values -------------------------------------------------------

def ggml(w, kind):
    import gguf
    of = gguf.GGMLQuantizationType[kind.upper()]
    if kind == "iq4_nl":  # has no encoder there: see levels_of
        return w.astype(F32)
    return gguf.quants.dequantize(gguf.quants.quantize(w.astype(F32), of), of)


def levels_of(kind, shape, rng):
    """Values that a GGUF type represents exactly, with a scale of 2^-4."""
    import gguf
    of = gguf.GGMLQuantizationType[kind.upper()]
    n, size = gguf.GGML_QUANT_SIZES[of]
    data = rng.integers(0, 256, (*shape[:-1], shape[-1] // n, size), np.uint8)
    data[..., :2] = np.frombuffer(np.float16(2.0 ** -9).tobytes(), np.uint8)
    data[..., 2] = 0xf0  # the last level and the first
    return gguf.quants.dequantize(data.reshape(*shape[:-1], -1), of)


def decoded(w, keys):
    """The f32 values of w quantized, before rounding to a dtype."""
    fmt, block = keys["format"], keys.get("block", 64)
    if fmt == "int8":
        return rules.int8_values(*rules.int8(w, (w.ndim - 1,), "native"))
    if fmt == "nf4":
        return rules.nf4_values(*rules.nf4(w, block, "native"), block)
    if fmt == "dynamic8":
        levels = TABLE["dynamic8"]
        codes, most = rules.dynamic8(w, block, levels, "native")
        return levels[codes] * rules.spread(most, block, w.shape[-1])
    if fmt in ("ternary", "binary"):
        codes, scale = rules.signs(w, keys["scale"], block, fmt)
        return rules.sign_values(codes, scale, block)
    return ggml(w, fmt)


def kept(w, keys):
    """Where a clipped gradient passes: up to the largest decoded value, plus one
    bf16 step."""
    if not keys.get("clip"):
        return np.ones(w.shape, bool)
    block = keys.get("block", w.shape[-1])
    reach = np.max(np.abs(rules.blocks_of(decoded(w, keys), block)), -1)
    reach = rules.spread(reach, block, w.shape[-1]) * (1 + 2.0 ** -8)
    off = np.abs(np.abs(w.astype(np.float64)) / reach - 1)
    assert np.min(off) > 1e-3, "a number at the edge of the scale's range"
    return np.abs(w.astype(np.float64)) <= reach


@jax.custom_vjp
def straight(w, value, mask):
    return value


straight.defvjp(lambda w, value, mask: (value, (value, mask)),
                lambda kept, g: (g * kept[1], jnp.zeros_like(kept[0]),
                                 jnp.zeros_like(kept[1])))


# ---- a call -----------------------------------------------------------------

class Estimator:
    """The quantizer of a function: the k-th call returns the k-th array. label:
    the dtype that values are rounded to."""

    def __init__(self, keys, weights, label):
        self.keys, self.at, self.made = keys, 0, []
        for w in weights:
            v = decoded(w, keys)
            v = v.astype(BF16) if label == "bf16" else v
            self.made.append((v.astype(np.float64), kept(w, keys)))

    def __call__(self, w):
        v, mask = self.made[self.at]
        self.at += 1
        return straight(w, jnp.asarray(v).astype(w.dtype),
                        jnp.asarray(mask).astype(w.dtype))


def run(fn, args, dtype, keys, label):
    floats = [i for i, a in enumerate(args) if a.dtype == BF16]
    cast = [jnp.asarray(a.astype(np.float64)).astype(dtype) if i in floats
            else jnp.asarray(a) for i, a in enumerate(args)]

    def of(*some):
        mine = list(cast)
        for i, a in zip(floats, some):
            mine[i] = a
        quantized = fn.quantized if keys.get("format") else ()
        ste = Estimator(keys, [args[i] for i in quantized], label)
        return fn.run(ste, *mine)

    value, grads = jax.value_and_grad(of, tuple(range(len(floats))))(
        *(cast[i] for i in floats))
    arrays = [np.asarray(a).astype(np.float64) for a in (value, *grads)]
    return floats, arrays


def off(got, want):
    most = np.max(np.abs(want), initial=0)
    return np.max(np.abs(got - want), initial=0) / most if most else 0.0


def call(golden, name, fn, args, keys, dtypes):
    label = dtypes[0] if keys.get("format") else None
    floats, want = run(fn, args, jnp.float64, keys, label)
    words = ""
    for d in dtypes:
        _, got = run(fn, args, DTYPE[d], keys, label)
        t = max(4 * max(off(g, w) for g, w in zip(got, want)), STEP[d])
        words += f" {d}={t:.2g}"
    golden.cases += 1
    names = []
    for i, a in enumerate(args):
        names.append(f"{name}.{i}")
        golden.input(names[-1], a)
    golden.add(f"call {name} {fn.name}{keys_text(keys)} : {' '.join(names)}")
    golden.add(f"value{words} {array_words(want[0].astype(F32))}")
    for i, a in zip(floats, want[1:]):
        golden.add(f"grad {i}{words} {array_words(a.astype(F32))}")
    golden.add("end")
    print(f"{name:24s}{words}")


FORMATS = [
    {"format": "int8"},
    {"format": "nf4", "block": 16},
    {"format": "ternary", "scale": "row"},
    {"format": "ternary", "scale": "block", "block": 8},
    {"format": "binary", "scale": "row"},
    {"format": "binary", "scale": "tensor"},
    {"format": "dynamic8", "block": 16},
    {"format": "q8_0"}, {"format": "q4_0"}, {"format": "iq4_nl"},
    {"format": "tq1_0"}, {"format": "tq2_0"},
]
CLIPPED = [{**k, "clip": "yes"} for k in FORMATS
           if k["format"] in ("int8", "nf4", "ternary", "binary")]
LONG = {"q8_0": 32, "q4_0": 32, "iq4_nl": 32, "tq1_0": 256, "tq2_0": 256}


def inputs_of(fn, keys, rng):
    """Arrays for a function. If GGUF's types require longer rows, the last axis of
    the operands that it multiplies has that length."""
    wide = LONG.get(keys.get("format"), 0)
    args = []
    for i, make in enumerate(fn.make):
        a = make(rng, wide) if wide else make(rng, None)
        if keys.get("format") == "iq4_nl" and i in fn.quantized:
            a = levels_of("iq4_nl", a.shape, rng).astype(BF16)
        args.append(a)
    return args


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "..", "tests", "golden",
        "gradients.txt")
    versions = {"python": platform.python_version()} | {
        p: importlib.metadata.version(p) for p in ("numpy", "jax", "gguf")}
    golden = Golden(path, HEAD, versions)
    rng = np.random.default_rng(77)
    for fn in functions.PLAIN:
        call(golden, fn.name, fn, inputs_of(fn, {}, rng), {}, ("f32", "bf16"))
    for fn, every in functions.QUANTIZED:
        for k, keys in enumerate(FORMATS + CLIPPED if every else FORMATS[:4]):
            args = inputs_of(fn, keys, rng)
            for d in ("f32", "bf16"):
                call(golden, f"{fn.name}_{k:02d}_{d}", fn, args,
                     {**keys, "dtype": d}, (d,))
    golden.write()


if __name__ == "__main__":
    main()
