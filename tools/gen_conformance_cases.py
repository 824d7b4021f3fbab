#!/usr/bin/env python3
"""gen_conformance_cases.py - writes StableHLO cases for tools/conformance.

usage: gen_conformance_cases.py DIR [--only PREFIX] [--seed N]

DIR gets one directory for each case, in the layout that the kind `stablehlo`
reads. Expected values come from jax where XLA defines them. Where the reference
is the correctly rounded result, they come from numpy in a wider type, rounded
once. Needs jax and numpy; the library is not involved.
"""
import argparse
import itertools
import math
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import numpy as np
from conformance_case import (BF16, DTYPES, FLOATS, INTS, SIGNED, UNSIGNED,
                              Writer, float_samples, int_samples, limits,
                              name_of, normal, one_op, round_to)
from jax import lax

# Tolerance of a result in this dtype, in units in the last place, if the
# expected value is exact.
ULPS = {"f16": 1, "bf16": 1, "f32": 4, "f64": 4}


# ---- elementwise ---------------------------------------------------------

def vectorized(f):
    return lambda x: np.array([f(v) for v in np.ravel(x)], np.longdouble)


def rsqrt(x):
    return np.longdouble(1) / np.sqrt(x)


def logistic(x):
    return np.longdouble(1) / (np.longdouble(1) + np.exp(-x))


def round_away(x):
    a = np.abs(x)
    down = np.floor(a)
    return np.copysign(np.where(a - down >= 0.5, down + 1, down), x)


UNARY = {
    "abs": np.abs, "cbrt": np.cbrt, "ceil": np.ceil, "cosine": np.cos,
    "erf": vectorized(math.erf), "exponential": np.exp,
    "exponential_minus_one": np.expm1, "floor": np.floor, "log": np.log,
    "log_plus_one": np.log1p, "logistic": logistic, "negate": np.negative,
    "round_nearest_afz": round_away, "round_nearest_even": np.rint,
    "rsqrt": rsqrt, "sign": np.sign, "sine": np.sin, "sqrt": np.sqrt,
    "tan": np.tan, "tanh": np.tanh,
}
EXACT = {"abs", "ceil", "floor", "negate", "round_nearest_afz",
         "round_nearest_even", "sign", "sqrt"}


def unary_floats(w, rng):
    for dtype in FLOATS:
        x = float_samples(dtype, rng)
        for op, f in UNARY.items():
            with np.errstate(all="ignore"):
                if dtype == "f64" and op in EXACT:
                    want = f(x)
                else:
                    want = f(x.astype(np.longdouble)).astype(np.float64)
                    want = round_to(want, dtype)
            ulps = 0 if op in EXACT else ULPS[dtype]
            one_op(w, f"unary_{op}_{dtype}", op, [x], want,
                   tolerance={"max_ulp_difference": ulps})
        one_op(w, f"unary_is_finite_{dtype}", "is_finite", [x],
               np.isfinite(x.astype(np.float64)))


def unary_ints(w, rng):
    for dtype in INTS:
        x = int_samples(dtype, rng)
        for op, f in (("abs", lax.abs), ("sign", lax.sign),
                      ("negate", lax.neg), ("not", lax.bitwise_not),
                      ("popcnt", lax.population_count)):
            if dtype in UNSIGNED and op == "abs":
                continue
            one_op(w, f"unary_{op}_{dtype}", op, [x], f(x))
    b = np.array([True, False])
    one_op(w, "unary_not_i1", "not", [b], ~b)


def pairs(x):
    a, b = np.meshgrid(x, x, indexing="ij")
    return a.copy(), b.copy()


def binary_ints(w, rng):
    ops = {"add": lax.add, "subtract": lax.sub, "multiply": lax.mul,
           "divide": lax.div, "remainder": lax.rem, "maximum": lax.max,
           "minimum": lax.min, "and": lax.bitwise_and, "or": lax.bitwise_or,
           "xor": lax.bitwise_xor}
    shifts = {"shift_left": lax.shift_left,
              "shift_right_arithmetic": lax.shift_right_arithmetic,
              "shift_right_logical": lax.shift_right_logical}
    for dtype in INTS:
        a, b = pairs(int_samples(dtype, rng))
        for op, f in ops.items():
            one_op(w, f"binary_{op}_{dtype}", op, [a, b], f(a, b))
        bits = 8 * np.dtype(DTYPES[dtype]).itemsize
        counts = [0, 1, 2, bits - 1, bits, bits + 1, 100]
        counts += [-1, -bits] if dtype in SIGNED else []
        a, b = np.meshgrid(int_samples(dtype, rng),
                           np.array(counts, DTYPES[dtype]), indexing="ij")
        for op, f in shifts.items():
            one_op(w, f"binary_{op}_{dtype}", op, [a, b], f(a, b))
        base = np.arange(0 if dtype in UNSIGNED else -4, 5)
        a, b = np.meshgrid(base.astype(DTYPES[dtype]),
                           np.arange(0, 9).astype(DTYPES[dtype]),
                           indexing="ij")
        lo, hi = limits(dtype)
        exact = [int(p) ** int(q) for p, q in zip(a.ravel(), b.ravel())]
        want = np.array([(v - lo) % (hi - lo + 1) + lo for v in exact],
                        DTYPES[dtype]).reshape(a.shape)
        one_op(w, f"binary_power_{dtype}", "power", [a, b], want)
    a, b = pairs(np.array([True, False]))
    for op, f in (("and", np.logical_and), ("or", np.logical_or),
                  ("xor", np.logical_xor), ("maximum", np.logical_or),
                  ("minimum", np.logical_and), ("add", np.logical_or),
                  ("multiply", np.logical_and)):
        one_op(w, f"binary_{op}_i1", op, [a, b], f(a, b))


def binary_floats(w, rng):
    ops = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply,
           "divide": np.divide, "remainder": np.fmod, "maximum": np.maximum,
           "minimum": np.minimum, "power": np.power, "atan2": np.arctan2}
    for dtype in FLOATS:
        a, b = pairs(float_samples(dtype, rng, 16))
        for op, f in ops.items():
            with np.errstate(all="ignore"):
                want = f(a.astype(np.longdouble), b.astype(np.longdouble))
                if dtype == "f64":
                    want = f(a, b)
                else:
                    want = round_to(want.astype(np.float64), dtype)
            ulps = ULPS[dtype] if op in ("power", "atan2") else 0
            one_op(w, f"binary_{op}_{dtype}", op, [a, b], want,
                   tolerance={"max_ulp_difference": ulps})


def comparisons(w, rng):
    ops = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less,
           "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal}
    for dtype in DTYPES:
        x = (float_samples(dtype, rng, 8) if dtype in FLOATS else
             np.array([False, True]) if dtype == "i1" else
             int_samples(dtype, rng, 4))
        a, b = pairs(x)
        kind = ("FLOAT" if dtype in FLOATS else
                "SIGNED" if dtype in SIGNED else "UNSIGNED")
        for d, f in ops.items():
            with np.errstate(invalid="ignore"):
                want = f(a, b)
            one_op(w, f"compare_{d}_{dtype}", "compare", [a, b], want,
                   direction=d)
            one_op(w, f"compare_{d}_typed_{dtype}", "compare", [a, b], want,
                   direction=d, compare_type=kind)


def selections(w, rng):
    for dtype in DTYPES:
        a, b = normal(dtype, rng, (3, 4)), normal(dtype, rng, (3, 4))
        p = rng.integers(0, 2, (3, 4)).astype(np.bool_)
        one_op(w, f"select_{dtype}", "select", [p, a, b], np.where(p, a, b),
               how="check.expect_eq")
        one_op(w, f"select_scalar_{dtype}", "select", [np.bool_(True), a, b],
               a, how="check.expect_eq")
        if dtype == "i1":
            continue
        lo, hi = DTYPES[dtype](1), DTYPES[dtype](3)
        x = normal(dtype, rng, (4, 5))
        one_op(w, f"clamp_{dtype}", "clamp", [lo, x, hi],
               lax.clamp(lo, x, hi), how="check.expect_eq")
        # hi < lo: the result is hi
        los, his = normal(dtype, rng, (4, 5)), normal(dtype, rng, (4, 5))
        one_op(w, f"clamp_full_{dtype}", "clamp", [los, x, his],
               np.minimum(np.maximum(x, los), his), how="check.expect_eq")
    nan = np.float32("nan")
    x = np.array([nan, 1, -5, 9], np.float32)
    one_op(w, "clamp_nan", "clamp", [np.float32(0), x, np.float32(2)],
           np.array([nan, 1, 0, 2], np.float32), how="check.expect_eq")


def converted(x, to):
    """lowbit's rules: to nearest even, truncate and saturate, wrap."""
    src = name_of(x)
    if to == "i1":
        return x != 0
    if to in FLOATS:
        if src in FLOATS:
            return round_to(x.astype(np.float64), to)
        return round_to(np.array([int(v) for v in x], object), to)
    lo, hi = limits(to)
    out = []
    for v in x:
        if src in FLOATS:
            v = float(v)
            v = (0 if math.isnan(v) else hi if v >= float(hi) + 1 else
                 lo if v <= float(lo) else int(max(min(v, hi), lo)
                                               if math.isinf(v) else v))
            v = max(lo, min(hi, int(v)))
        out.append((int(v) - lo) % (hi - lo + 1) + lo)
    return np.array(out, DTYPES[to])


def conversions(w, rng):
    for src, to in itertools.product(DTYPES, DTYPES):
        if src in FLOATS:
            x = float_samples(src, rng, 40)
            more = [127.5, 128, 255.9, -128.9, -129, 256, 32767.6, 65535.5,
                    2147483648.0, 4294967296.0, 9.3e18, 1.9e19, -9.3e18,
                    1 + 2.0 ** -8, 1 + 2.0 ** -8 + 2.0 ** -30,
                    1 + 2.0 ** -11, 1 + 2.0 ** -11 + 2.0 ** -40,
                    1 + 3 * 2.0 ** -8 - 2.0 ** -35]
            with np.errstate(over="ignore"):
                x = np.concatenate([x, np.array(more).astype(DTYPES[src])])
        elif src == "i1":
            x = np.array([False, True])
        else:
            x = int_samples(src, rng, 40)
            hi = limits(src)[1]
            # Just above a tie of bf16 and of f32: detects double rounding.
            ties = [(1 << k) + (1 << (k - b)) + d for k in range(10, 63)
                    for b in (8, 11, 24) for d in (0, 1) if k > b]
            x = np.concatenate([x, np.array([t for t in ties if t <= hi],
                                            DTYPES[src])])
        one_op(w, f"convert_{src}_{to}", "convert", [x], converted(x, to),
               how="check.expect_eq")


# ---- structure -----------------------------------------------------------

def broadcasts(w, rng):
    shapes = [((), (2, 3), ()), ((3,), (2, 3), (1,)), ((2,), (2, 3), (0,)),
              ((2, 3), (3, 2), (1, 0)), ((2, 3, 4), (4, 2, 3), (1, 2, 0)),
              ((1, 3), (3, 5), (1, 0)), ((3, 1), (2, 4, 3), (2, 1)),
              ((1, 1), (2, 2), (1, 0)), ((0,), (3, 0), (1,)),
              ((1,), (0, 2), (0,)), ((4, 2), (2, 3, 4, 5), (2, 0))]
    for dtype in DTYPES:
        for i, (src, dst, dims) in enumerate(shapes):
            if dtype not in ("f32", "i8", "i1") and i not in (1, 4):
                continue
            x = normal(dtype, rng, src)
            one_op(w, f"broadcast_in_dim_{i}_{dtype}", "broadcast_in_dim", [x],
                   unsorted_broadcast(x, dst, dims), how="check.expect_eq",
                   dims=list(dims))
    x = normal("f32", rng, (2, 3))
    one_op(w, "broadcast_prefix", "broadcast", [x],
           np.broadcast_to(x, (4, 1, 2, 3)), broadcast_sizes=[4, 1])


def unsorted_broadcast(x, shape, dims):
    order = np.argsort(dims)
    full = [1] * len(shape)
    for k in dims:
        full[k] = x.shape[dims.index(k)]
    return np.broadcast_to(np.transpose(x, order).reshape(full), shape).copy()


def movements(w, rng):
    x = normal("f32", rng, (2, 3, 4, 5))
    for perm in itertools.permutations(range(4)):
        one_op(w, "transpose_" + "".join(map(str, perm)), "transpose", [x],
               x.transpose(perm), how="check.expect_eq", dims=list(perm))
    for dtype in DTYPES:
        x = normal(dtype, rng, (3, 5, 4))
        one_op(w, f"transpose_{dtype}", "transpose", [x],
               x.transpose(2, 0, 1), how="check.expect_eq", dims=[2, 0, 1])
        for dims in ([], [0], [1, 2], [2, 0, 1]):
            one_op(w, f"reverse_{len(dims)}_{dtype}", "reverse", [x],
                   np.flip(x, dims), how="check.expect_eq", dims=dims)
        one_op(w, f"reshape_{dtype}", "reshape", [x], x.reshape(6, 1, 10),
               how="check.expect_eq")
        one_op(w, f"slice_{dtype}", "slice", [x], x[1:3, 0:5:2, 3:4],
               how="check.expect_eq", slices=[[1, 3], [0, 5, 2], [3, 4, 1]])
        parts = [normal(dtype, rng, (2, n, 3)) for n in (1, 0, 4, 2)]
        one_op(w, f"concatenate_{dtype}", "concatenate", parts,
               np.concatenate(parts, 1), how="check.expect_eq", dim=1)
        for axis in range(3):
            shape = (3, 4, 2)
            want = np.broadcast_to(
                np.arange(shape[axis]).reshape(
                    [-1 if k == axis else 1 for k in range(3)]), shape)
            if dtype != "i1":
                one_op(w, f"iota_{axis}_{dtype}", "iota", [],
                       want.astype(DTYPES[dtype]), how="check.expect_eq",
                       dim=axis)
    x = normal("f32", rng, (0, 3))
    one_op(w, "reshape_empty", "reshape", [x], x.reshape(3, 0, 7))
    one_op(w, "reshape_scalar", "reshape", [np.full((1, 1), 2.5, np.float32)],
           np.float32(2.5))
    one_op(w, "slice_empty", "slice", [normal("f32", rng, (4, 3))],
           np.zeros((0, 3), np.float32), slices=[[2, 2], [0, 3]])
    c = w.case("chain_transpose_reshape")
    x = normal("f32", rng, (4, 6))
    t = c.op("transpose", [c.const(x)], (6, 4), "f32", dims=[1, 0])
    r = c.op("reshape", [t], (24,), "f32")
    s = c.op("slice", [r], (8,), "f32", slices=[[1, 24, 3]])
    c.expect(s, x.T.reshape(24)[1:24:3], "check.expect_eq").write()


def pads(w, rng):
    for i in range(60):
        dtype = list(DTYPES)[i % 13]
        rank = int(rng.integers(1, 4))
        x = normal(dtype, rng, rng.integers(0, 5, rank))
        config = []
        for n in x.shape:
            inner = int(rng.integers(0, 3))
            wide = n + max(n - 1, 0) * inner
            lo = int(rng.integers(-3, 4))
            hi = int(rng.integers(max(-3, -wide - lo), 4))
            config.append((lo, hi, inner))
        v = normal(dtype, rng, ())
        one_op(w, f"pad_{i}_{dtype}", "pad", [x, v], lax.pad(x, v, config),
               how="check.expect_eq", low=[c[0] for c in config],
               high=[c[1] for c in config], interior=[c[2] for c in config])


def dynamics(w, rng):
    x = normal("f32", rng, (5, 4, 3))
    for dtype in INTS:
        lo, hi = limits(dtype)
        for k, start in enumerate([(0, 0, 0), (1, 2, 1), (hi, 3, hi // 2),
                                   (lo, 1, max(lo, -1))]):
            starts = [DTYPES[dtype](s) for s in start]
            sizes = (2, 3, 1)
            at = [max(0, min(s, n - m)) for s, n, m in
                  zip(start, x.shape, sizes)]
            box = tuple(slice(a, a + m) for a, m in zip(at, sizes))
            one_op(w, f"dynamic_slice_{k}_{dtype}", "dynamic_slice",
                   [x] + starts, x[box], how="check.expect_eq",
                   sizes=list(sizes))
            u = normal("f32", rng, sizes)
            want = x.copy()
            want[box] = u
            one_op(w, f"dynamic_update_slice_{k}_{dtype}",
                   "dynamic_update_slice", [x, u] + starts, want,
                   how="check.expect_eq")
    for dtype in DTYPES:
        x, u = normal(dtype, rng, (4, 6)), normal(dtype, rng, (2, 2))
        want = x.copy()
        want[2:4, 3:5] = u
        one_op(w, f"dynamic_update_slice_{dtype}", "dynamic_update_slice",
               [x, u, np.int32(2), np.int32(3)], want, how="check.expect_eq")
    one_op(w, "dynamic_slice_scalar", "dynamic_slice", [np.float32(3)],
           np.float32(3), sizes=[])
    one_op(w, "dynamic_update_slice_scalar", "dynamic_update_slice",
           [np.float32(3), np.float32(4)], np.float32(4))


# ---- contraction ---------------------------------------------------------

def reductions(w, rng):
    ops = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum,
           "minimum": np.minimum, "and": np.bitwise_and,
           "or": np.bitwise_or}
    axes = [[0], [1], [2], [0, 1], [2, 0], [1, 2], [0, 1, 2], []]
    for dtype, (op, f) in itertools.product(DTYPES, ops.items()):
        if (dtype in FLOATS and op in ("and", "or")):
            continue
        x = normal(dtype, rng, (3, 4, 5))
        init = normal(dtype, rng, ())
        if dtype == "i1":
            f = {"add": np.logical_or, "multiply": np.logical_and}.get(op, f)
        for dims in axes:
            wide = x.astype(np.float64) if dtype in FLOATS else x
            start = wide.dtype.type(init)
            r = wide
            for k in sorted(dims, reverse=True):
                r = f.reduce(r, axis=k, dtype=wide.dtype)
            with np.errstate(over="ignore"):
                want = np.asarray(f(start, r)).astype(DTYPES[dtype])
            one_op(w, f"reduce_{op}_{''.join(map(str, dims))}_{dtype}",
                   "reduce", [x, init], want, dimensions=dims, applies=op)
        e = normal(dtype, rng, (3, 0, 2))
        one_op(w, f"reduce_{op}_empty_{dtype}", "reduce", [e, init],
               np.full((3, 2), init), dimensions=[1], applies=op)
    x = np.array([[np.nan, 1, 2], [3, 4, 5]], np.float32)
    inf = np.float32(np.inf)
    one_op(w, "reduce_maximum_nan", "reduce", [x, -inf], x.max(1),
           dimensions=[1], applies="maximum")
    one_op(w, "reduce_minimum_nan", "reduce", [x, inf], x.min(1),
           dimensions=[1], applies="minimum")
    x = rng.standard_normal((100, 1000)).astype(np.float32)
    one_op(w, "reduce_add_long", "reduce", [x, np.float32(0)],
           x.astype(np.float64).sum(1).astype(np.float32), dimensions=[1],
           applies="add", tolerance={"rtol": 1e-5, "atol": 1e-4})


def scalar(dtype):
    return {"shape": [], "dtype": dtype}


def step(op, ins, out, dtype, **attrs):
    return {"op": op, "ins": ins, "outs": [out], "out_types": [scalar(dtype)],
            "attrs": attrs}


def variadic(w, rng):
    """The extreme element and its first index, like argmax of jax.numpy."""
    for dtype, (way, f) in itertools.product(
            FLOATS + INTS, {"GT": np.argmax, "LT": np.argmin}.items()):
        x = normal(dtype, rng, (4, 9))
        i = np.broadcast_to(np.arange(9, dtype=np.int32), x.shape)
        lo, hi = limits(dtype) if dtype in INTS else (-np.inf, np.inf)
        at = f(x.astype(np.float64) if dtype in FLOATS else x, axis=1)
        kind = ("FLOAT" if dtype in FLOATS else
                "SIGNED" if dtype in SIGNED else "UNSIGNED")
        c = w.case(f"reduce_arg_{way}_{dtype}")
        first = np.asarray(lo if way == "GT" else hi).astype(DTYPES[dtype])
        ins = [c.const(a) for a in (x, i, first, np.int32(9))]
        v = c.op("reduce", ins, (4,), dtype, dimensions=[1])
        c.ops[-1]["outs"].append("index")
        c.ops[-1]["out_types"].append({"shape": [4], "dtype": "i32"})
        c.ops[-1]["region"] = {
            "args": ["a", "b", "c", "d"],
            "ops": [
                step("compare", ["a", "c"], "p", "i1", direction=way,
                     compare_type=kind),
                step("compare", ["a", "c"], "q", "i1", direction="EQ",
                     compare_type=kind),
                step("compare", ["b", "d"], "r", "i1", direction="LT",
                     compare_type="SIGNED"),
                step("and", ["q", "r"], "s", "i1"),
                step("or", ["p", "s"], "t", "i1"),
                step("select", ["p", "a", "c"], "x", dtype),
                step("select", ["t", "b", "d"], "y", "i32")],
            "returns": ["x", "y"]}
        c.expect(v, np.take_along_axis(x, at[:, None], 1)[:, 0],
                 "check.expect_eq")
        c.expect("index", at.astype(np.int32), "check.expect_eq").write()


def dot(a, b, dims, out):
    wide = np.float64 if out in FLOATS else DTYPES[out]
    r = lax.dot_general(np.asarray(a, wide), np.asarray(b, wide), dims,
                        precision="highest")
    return np.asarray(r).astype(DTYPES[out])


def dots(w, rng):
    for i in range(80):
        sizes = [int(n) for n in rng.integers(1, 5, 8)]
        n_batch, n_con = int(rng.integers(0, 3)), int(rng.integers(0, 3))
        n_lhs, n_rhs = int(rng.integers(0, 3)), int(rng.integers(0, 3))
        batch = sizes[:n_batch]
        con = sizes[2:2 + n_con]
        left = [("b", k, n) for k, n in enumerate(batch)]
        left += [("c", k, n) for k, n in enumerate(con)]
        right = list(left)
        left += [("f", 0, n) for n in sizes[4:4 + n_lhs]]
        right += [("f", 0, n) for n in sizes[6:6 + n_rhs]]
        left = [left[k] for k in rng.permutation(len(left))]
        right = [right[k] for k in rng.permutation(len(right))]

        def where(side, kind, n):
            return [[d[:2] for d in side].index((kind, k)) for k in range(n)]

        lb, rb = where(left, "b", n_batch), where(right, "b", n_batch)
        lc, rc = where(left, "c", n_con), where(right, "c", n_con)
        src, out = [("f32", "f32"), ("f64", "f64"), ("bf16", "bf16"),
                    ("bf16", "f32"), ("f16", "f16"), ("f16", "f32"),
                    ("i8", "i32"), ("i32", "i32"), ("ui8", "ui8"),
                    ("i64", "i64")][i % 10]
        a = normal(src, rng, [d[2] for d in left])
        b = normal(src, rng, [d[2] for d in right])
        one_op(w, f"dot_general_{i}_{src}_{out}", "dot_general", [a, b],
               dot(a, b, ((lc, rc), (lb, rb)), out), lhs_contracting=lc,
               rhs_contracting=rc, lhs_batching=lb, rhs_batching=rb,
               precision=["DEFAULT", "HIGHEST"])
    a, b = normal("f32", rng, (3, 0)), normal("f32", rng, (0, 4))
    one_op(w, "dot_general_empty", "dot_general", [a, b],
           np.zeros((3, 4), np.float32), lhs_contracting=[1],
           rhs_contracting=[0], lhs_batching=[], rhs_batching=[])
    for k, (s, t) in enumerate([((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 2)),
                                ((3, 4), (4, 2))]):
        a, b = normal("f32", rng, s), normal("f32", rng, t)
        one_op(w, f"dot_{k}", "dot", [a, b], a @ b)
    a, b = normal("f32", rng, (65, 130)), normal("f32", rng, (130, 77))
    one_op(w, "dot_general_large", "dot_general", [a, b],
           dot(a, b, (((1,), (0,)), ((), ())), "f32"), lhs_contracting=[1],
           rhs_contracting=[0], lhs_batching=[], rhs_batching=[])


def convolutions(w, rng):
    for i in range(90):
        n = int(rng.integers(1, 4)) if i % 9 else 0
        groups = int(rng.integers(1, 4)) if i % 3 == 1 else 1
        batches = int(rng.integers(2, 4)) if i % 3 == 2 else 1
        f_in = int(rng.integers(1, 3))
        f_out = groups * batches * int(rng.integers(1, 3))
        space = [int(s) for s in rng.integers(3, 7, n)]
        window = [int(s) for s in rng.integers(1, 4, n)]
        stride = [int(s) for s in rng.integers(1, 3, n)]
        ld = [int(s) for s in rng.integers(1, 3, n)]
        rd = [int(s) for s in rng.integers(1, 3, n)]
        pad = [[int(rng.integers(-1, 3)), int(rng.integers(-1, 3))]
               for _ in range(n)]
        reverse = [bool(v) for v in rng.integers(0, 2, n)]
        axes = [str(k) for k in range(n)]
        labels = [list(rng.permutation(base + axes)) for base in
                  (["b", "f"], ["o", "i"], ["b", "f"])]
        size = {"b": batches * int(rng.integers(1, 3)), "f": f_in * groups,
                **{str(k): s for k, s in enumerate(space)}}
        ksize = {"o": f_out, "i": f_in,
                 **{str(k): s for k, s in enumerate(window)}}
        src, out = [("f32", "f32"), ("f64", "f64"), ("bf16", "bf16"),
                    ("f16", "f16"), ("bf16", "f32"), ("i32", "i32"),
                    ("i8", "i32")][i % 7]
        lhs = normal(src, rng, [size[c] for c in labels[0]])
        rhs = normal(src, rng, [ksize[c] for c in labels[1]])
        flip = [labels[1].index(str(k)) for k in range(n) if reverse[k]]
        wide = np.float64 if out in FLOATS else DTYPES[out]
        numbers = lax.ConvDimensionNumbers(
            *[tuple(labels[t].index(c) for c in first + axes)
              for t, first in enumerate((["b", "f"], ["o", "i"],
                                         ["b", "f"]))])
        want = lax.conv_general_dilated(
            lhs.astype(wide), np.flip(rhs, flip).astype(wide), stride, pad,
            ld, rd, numbers, feature_group_count=groups,
            batch_group_count=batches, precision="highest")
        attrs = dict(lhs_spec=[str(c) for c in labels[0]],
                     rhs_spec=[str(c) for c in labels[1]],
                     out_spec=[str(c) for c in labels[2]], stride=stride,
                     pad=pad, lhs_dilate=ld, rhs_dilate=rd, reverse=reverse,
                     batch_group_count=batches, feature_group_count=groups)
        one_op(w, f"convolution_{i}_{src}_{out}", "convolution", [lhs, rhs],
               np.asarray(want).astype(DTYPES[out]), **attrs)


def gather_config(rng, batching):
    """Random valid dimension numbers: operand, indices and attributes."""
    n_batch = int(rng.integers(1, 3)) if batching else 0
    rank = n_batch + int(rng.integers(1, 4))
    operand = [int(s) for s in rng.integers(2, 6, rank)]
    dims = [int(k) for k in rng.permutation(rank)]
    obd = sorted(dims[:n_batch])
    rest = dims[n_batch:]
    collapsed = sorted(rest[:int(rng.integers(0, len(rest) + 1))])
    start_map = [int(k) for k in
                 rng.permutation(rest)[:int(rng.integers(1, len(rest) + 1))]]
    sizes = [1 if k in obd or k in collapsed else
             int(rng.integers(0, operand[k] + 1)) for k in range(rank)]
    # The shape of the indices without the vector axis: batch and other axes.
    free = [int(s) for s in rng.integers(1, 4, int(rng.integers(0, 3)))]
    order = [int(k) for k in rng.permutation(n_batch + len(free))]
    batch_sizes = [operand[k] for k in obd] + free
    index = [batch_sizes[k] for k in order]
    vector = int(rng.integers(0, len(index) + 1))
    index.insert(vector, len(start_map))
    sib = []
    for k in range(n_batch):
        at = order.index(k)
        sib.append(at + (at >= vector))
    n_offset = rank - n_batch - len(collapsed)
    out_rank = n_offset + len(index) - 1
    offset = sorted(int(k) for k in rng.permutation(out_rank)[:n_offset])
    return operand, index, dict(
        offset_dims=offset, collapsed_slice_dims=collapsed,
        operand_batching_dims=obd, start_indices_batching_dims=sib,
        start_index_map=start_map, index_vector_dim=vector,
        slice_sizes=sizes)


def gather_reference(x, starts, d, visit):
    """Calls visit(result index, operand index) for every element, with starts
    clamped: by the definition, without the gather of any library."""
    vector = d["index_vector_dim"]
    batch_shape = [n for k, n in enumerate(starts.shape) if k != vector]
    free = [k for k in range(x.ndim) if k not in d["collapsed_slice_dims"]
            and k not in d["operand_batching_dims"]]
    rank = len(batch_shape) + len(free)
    batch_axes = [k for k in range(rank) if k not in d["offset_dims"]]
    shape = [0] * rank
    for k, n in zip(batch_axes, batch_shape):
        shape[k] = n
    for k, axis in zip(d["offset_dims"], free):
        shape[k] = d["slice_sizes"][axis]
    for out in np.ndindex(*shape):
        batch = [out[k] for k in batch_axes]
        at = [0] * x.ndim
        for j, axis in enumerate(d["start_index_map"]):
            full = batch[:vector] + [j] + batch[vector:]
            at[axis] = int(starts[tuple(full)])
        start = list(at)
        at = [max(0, min(a, n - s)) for a, n, s in
              zip(at, x.shape, d["slice_sizes"])]
        inside = at == start
        for axis, k in zip(d["operand_batching_dims"],
                           d["start_indices_batching_dims"]):
            at[axis] = batch[k - (k > vector)]
        for k, axis in zip(d["offset_dims"], free):
            at[axis] += out[k]
        visit(out, tuple(at), inside)
    return shape


def gathers(w, rng):
    for i in range(120):
        operand, index, d = gather_config(rng, batching=i % 2 == 1)
        dtype = ["f32", "i32", "bf16", "ui8", "i1", "f64"][i % 6]
        itype = INTS[i % 8]
        x = normal(dtype, rng, operand)
        lo = 0 if itype in UNSIGNED else -2
        starts = rng.integers(lo, 8, index).astype(DTYPES[itype])
        found = {}
        shape = gather_reference(x, starts, d,
                                 lambda o, a, _: found.update({o: x[a]}))
        want = np.zeros(shape, DTYPES[dtype])
        for o, v in found.items():
            want[o] = v
        one_op(w, f"gather_{i}_{dtype}_{itype}", "gather", [x, starts], want,
               how="check.expect_eq", indices_are_sorted=False, **d)


def scatters(w, rng):
    for i in range(60):
        operand, index, d = gather_config(rng, batching=i % 2 == 1)
        dtype = ["f32", "i32", "f64", "i8"][i % 4]
        x = normal(dtype, rng, operand)
        starts = rng.integers(0, 4, index).astype(np.int32)
        hits = []
        shape = gather_reference(x, starts, d,
                                 lambda o, a, ok: hits.append((o, a, ok)))
        u = normal(dtype, rng, shape)
        want = x.copy()
        for o, a, ok in hits:
            if ok:
                want[a] += u[o]
        one_op(w, f"scatter_{i}_{dtype}", "scatter", [x, starts, u], want,
               applies="add", update_window_dims=d["offset_dims"],
               inserted_window_dims=d["collapsed_slice_dims"],
               input_batching_dims=d["operand_batching_dims"],
               scatter_indices_batching_dims=d["start_indices_batching_dims"],
               scatter_dims_to_operand_dims=d["start_index_map"],
               index_vector_dim=d["index_vector_dim"],
               indices_are_sorted=False, unique_indices=False)


# ---- equivalent forms ----------------------------------------------------

def forms(w, rng):
    """Operations that take attributes as operands, and identities."""
    def ints(*v):
        return np.array(v, np.int64)

    x = normal("f32", rng, (3, 4))
    v = np.float32(7)
    one_op(w, "form_dynamic_reshape", "dynamic_reshape", [x, ints(2, 6)],
           x.reshape(2, 6))
    one_op(w, "form_dynamic_broadcast", "dynamic_broadcast_in_dim",
           [x, ints(4, 2, 3)], unsorted_broadcast(x, (4, 2, 3), (2, 0)),
           dims=[2, 0])
    one_op(w, "form_dynamic_iota", "dynamic_iota", [ints(2, 3)],
           np.array([[0, 1, 2]] * 2, np.int32), dim=1)
    one_op(w, "form_dynamic_pad", "dynamic_pad",
           [x, v, ints(1, -1), ints(0, 2), ints(1, 0)],
           lax.pad(x, v, [(1, 0, 1), (-1, 2, 0)]))
    one_op(w, "form_real_dynamic_slice", "real_dynamic_slice",
           [x, ints(1, 0), ints(3, 4), ints(1, 2)], x[1:3, 0:4:2])
    one_op(w, "form_dynamic_gather", "dynamic_gather",
           [x, ints(2, 0), ints(1, 4)], x[[2, 0]], offset_dims=[1],
           collapsed_slice_dims=[0], start_index_map=[0], index_vector_dim=1)
    one_op(w, "form_get_dimension_size", "get_dimension_size", [x],
           np.int32(4), dimension=1)
    one_op(w, "form_slice_generic", "stablehlo.slice", [x], x[1:3, 1:4:2],
           start_indices=[1, 1], limit_indices=[3, 4], strides=[1, 2])
    one_op(w, "form_square", "chlo.square", [x], x * x)
    one_op(w, "form_real", "real", [x], x)
    one_op(w, "form_bitcast_same", "bitcast_convert", [x], x)
    for dtype in INTS + FLOATS:
        a = normal(dtype, rng, (3, 8))
        for to in INTS + FLOATS:
            ratio = np.dtype(DTYPES[to]).itemsize // a.dtype.itemsize
            part = a[:, :ratio] if ratio > 1 else a
            want = lax.bitcast_convert_type(part, DTYPES[to])
            one_op(w, f"bitcast_convert_{dtype}_{to}", "bitcast_convert",
                   [part], want, how="check.expect_eq")
    one_op(w, "form_reduce_precision", "reduce_precision", [x],
           x.astype(BF16).astype(np.float32), how="check.expect_eq",
           exponent_bits=8, mantissa_bits=7)
    one_op(w, "form_constant_splat", "constant", [],
           np.full((2, 2), 1.5, BF16), value=1.5)
    one_op(w, "form_constant_list", "constant", [],
           np.array([[1, -2], [3, 4]], np.int8), value=[[1, -2], [3, 4]])
    c = w.case("form_barrier")
    a, b = normal("f32", rng, (2,)), normal("i8", rng, (3,))
    c.op("optimization_barrier", [c.const(a), c.const(b)], (2,), "f32")
    c.ops[-1]["outs"].append("second")
    c.ops[-1]["out_types"].append({"shape": [3], "dtype": "i8"})
    c.expect(c.ops[-1]["outs"][0], a, "check.expect_eq")
    c.expect("second", b, "check.expect_eq").write()


GROUPS = [unary_floats, unary_ints, binary_ints, binary_floats, comparisons,
          selections, conversions, broadcasts, movements, pads, dynamics,
          reductions, variadic, dots, convolutions, gathers, scatters, forms]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("dir")
    p.add_argument("--only", default="", help="cases whose name begins so")
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    w = Writer(a.dir, a.only)
    for k, group in enumerate(GROUPS):
        group(w, np.random.default_rng([a.seed, k]))
    print(f"{w.written} cases")


if __name__ == "__main__":
    main()
