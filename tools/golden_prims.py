"""golden_prims.py - each primitive on quantized operands, in every position.

    quantized NAME INPUT KEY=VALUE...  an operand: lb_quantize of an input
    call NAME PRIMITIVE KEY=VALUE... : OPERAND...
    out TOLERANCE ARRAY
    end

Results are those of lax in f64 on the decoded values, rounded once to the
dtype of the result (integers: lax on the codes). exact: equal bits; rel:T: an
error of at most T * |expected|; abs:T: of at most T. + - * / and sqrt of 16- and
32-bit floats are exact although they are rounded twice: f64 has enough bits.
"""
import jax
import numpy as np
from jax import lax

import golden_codecs as codecs
from golden_text import DTYPES, LONGEST, NAMES, array_words, keys_text

HEAD = "golden_prims.txt - primitives on quantized operands by jax,"
F32 = np.float32
ULP = {"f32": 2.0 ** -23, "f16": 2.0 ** -10, "bf16": 2.0 ** -7}

# Operand names end in these keys; rows end with partial blocks.
FORMATS = {
    "int8": {"format": "int8", "compat": "native"},
    "nf4": {"format": "nf4", "compat": "native", "block": 4},
    "ternary": {"format": "ternary", "compat": "native", "scale": "row"},
    "binary": {"format": "binary", "compat": "native", "scale": "block",
               "block": 4},
    "dynamic8": {"format": "dynamic8", "compat": "native", "block": 16},
}
OTHERS = {
    "int8c": {"format": "int8", "compat": "native", "axes": (0,)},
    "int8s": {"format": "int8", "compat": "eformer"},
    "nf4flat": {"format": "nf4", "compat": "bnb-cpu", "block": 32},
    "ternarys": {"format": "ternary", "compat": "eformer"},
    "binarys": {"format": "binary", "compat": "eformer"},
    "ternaryt": {"format": "ternary", "compat": "native"},
}
NEXT = dict(zip(FORMATS, [*list(FORMATS)[1:], "int8"]))


class Operand:
    """The name, the values in the dtype, and the values before rounding, which
    products take."""

    def __init__(self, name, values, exact=None):
        self.name, self.values = name, values
        self.exact = values if exact is None else exact
        self.f64 = values.astype(np.float64)
        self.stored = self.exact.astype(np.float64)


class Calls:
    def __init__(self, golden):
        self.golden, self.made, self.rng = golden, {}, np.random.default_rng(7)

    def dense(self, name, array):
        if name not in self.made:
            self.golden.input(name, array)
            self.made[name] = Operand(name, array)
        return self.made[name]

    def normal(self, name, shape, dtype=F32, positive=False):
        if name in self.made:
            return self.made[name]
        x = self.rng.standard_normal(shape).astype(F32)
        return self.dense(name, (np.abs(x) + F32(.1) if positive else
                                 x).astype(dtype))

    def quantized(self, source, kind):
        """source: the dense operand."""
        name = f"{source.name}.{kind}"
        if name in self.made:
            return self.made[name]
        keys = {**FORMATS, **OTHERS}[kind]
        with jax.enable_x64(False):  # for eformer
            _, v = codecs.MAKERS[keys["format"]](source.values, keys)
        integers = (keys["compat"] == "eformer" and
                    keys["format"] in ("ternary", "binary"))
        d = np.int8 if integers else source.values.dtype
        self.golden.add(f"quantized {name} {source.name}{keys_text(keys)}")
        self.made[name] = Operand(name, v.astype(d), v)
        return self.made[name]

    def call(self, prim, keys, operands, out, tol="exact"):
        g = self.golden
        g.cases += 1
        names = " ".join(o.name for o in operands)
        g.add(f"call {prim}_{g.cases:03d} {prim}{keys_text(keys)} : {names}")
        longest = LONGEST["out"] if tol == "exact" else None
        g.add(f"out {tol} {array_words(np.asarray(out), longest=longest)}")
        g.add("end")
        codecs.COUNTS.more(f"calls of {prim}")


def rounded(x, like):
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(like.values.dtype)


def rel(operand, ulps):
    return f"rel:{ulps * ULP[NAMES[operand.values.dtype]]:.3g}"


# ---- elementwise ------------------------------------------------------------

UNARY = {"sqrt": (lax.sqrt, True, 0), "exp": (lax.exp, False, 2),
         "log": (lax.log, True, 2)}
BINARY = {"lt": (lax.lt, 0), "add": (lax.add, 0), "mul": (lax.mul, 0),
          "div": (lax.div, 0), "max": (lax.max, 0), "pow": (lax.pow, 2)}


def unary_calls(c, x, positive, kinds):
    for prim, (fn, wants_positive, ulps) in UNARY.items():
        for kind in kinds:
            q = c.quantized(positive if wants_positive else x, kind)
            out = rounded(fn(q.f64), q)
            c.call(prim, {}, [q], out, rel(q, ulps) if ulps else "exact")
    for i, kind in enumerate(kinds):
        q = c.quantized(positive, kind)
        for y in (2, 3, -1) if i else (0, 1, 2, -2, 5):
            out = rounded(lax.integer_pow(q.f64, y), q)
            c.call("integer_pow", {"y": y}, [q], out, rel(q, 1 + 2 * abs(y)))


def binary_calls(c, x, y, p, kinds, prims=BINARY):
    """Quantized on the left, on the right, both in one format, both in two."""
    for prim in prims:
        fn, ulps = BINARY[prim]
        a = p if prim == "pow" else x
        for kind in kinds:
            qa, qb = c.quantized(a, kind), c.quantized(y, kind)
            other = c.quantized(y, NEXT.get(kind, kind))
            for l, r in ((qa, y), (a, qb), (qa, qb), (qa, other)):
                out = np.asarray(fn(l.f64, r.f64))
                if prim != "lt":
                    out = rounded(out, l)
                c.call(prim, {}, [l, r], out, rel(l, ulps) if ulps else "exact")


def integer_calls(c):
    """eformer's ternary and binary arrays are integers."""
    x, y = c.normal("mx", (5, 9)), c.normal("my", (5, 9))
    t, b = c.quantized(x, "ternarys"), c.quantized(y, "binarys")
    d = c.dense("mi", c.rng.integers(-9, 10, (5, 9)).astype(np.int8))
    for prim in ("lt", "add", "mul", "div", "max"):
        fn = BINARY[prim][0]
        for l, r in ((t, d), (d, b), (d, t), (t, b), (b, t), (b, b)):
            c.call(prim, {}, [l, r], fn(l.values, r.values))
    for q in (t, b):
        for n in (0, 1, 2, 3):
            c.call("integer_pow", {"y": n}, [q], lax.integer_pow(q.values, n))
        s = lax.reduce(q.values, np.int8(0), lax.add, (1,))
        c.call("reduce", {"op": "sum", "axes": (1,)}, [q], s)
        wide = lax.dot_general(q.values, d.values, (((1,), (1,)), ((), ())),
                               preferred_element_type=np.int32)
        c.call("dot_general", {"lc": (1,), "rc": (1,), "preferred": "i32"},
               [q, d], wide)
        for to in ("f32", "i32", "bool", "bf16"):
            c.call("convert_element_type", {"dtype": to}, [q],
                   q.values.astype(DTYPES[to]))


def convert_calls(c, x, half, kinds):
    for source in (x, *half):
        for kind in kinds:
            q = c.quantized(source, kind)
            for to in ("f16", "bf16", "f32", "f64"):
                c.call("convert_element_type", {"dtype": to}, [q],
                       q.exact.astype(DTYPES[to]))
            if source is x:
                for to in ("i32", "bool"):
                    c.call("convert_element_type", {"dtype": to}, [q],
                           q.values.astype(DTYPES[to]))


# ---- sums and products ------------------------------------------------------

def reduce_calls(c, x3, kinds):
    for kind in kinds:
        q = c.quantized(x3, kind)
        for axes in ((0,), (2,), (0, 1, 2), (1, 2)):
            s = np.sum(q.f64, axis=axes)
            most = float(np.max(np.sum(np.abs(q.f64), axis=axes)))
            c.call("reduce", {"op": "sum", "axes": axes}, [q], rounded(s, q),
                   f"abs:{1e-6 * most:.3g}")
        for op, fn, start in (("max", lax.max, -np.inf),
                              ("min", lax.min, np.inf)):
            out = lax.reduce(q.f64, np.float64(start), fn, (1,))
            c.call("reduce", {"op": op, "axes": (1,)}, [q], rounded(out, q))
        out = lax.reduce(q.f64, np.float64(1), lax.mul, (2,))
        c.call("reduce", {"op": "prod", "axes": (2,)}, [q], rounded(out, q),
               "rel:3e-06")


def product_tol(sizes, out, like):
    """K roundings of partial sums, each at most half a unit of the sum of
    magnitudes, and one of the result."""
    k, most = sizes
    d = NAMES[like.dtype]
    last = 0 if d == "f32" else ULP[d] * float(np.max(np.abs(out)))
    return f"abs:{k * 2.0 ** -24 * most + last:.3g}"


def dot_call(c, l, r, contract, batch=((), ())):
    dims = (contract, batch)
    out = lax.dot_general(l.stored, r.stored, dims)
    most = lax.dot_general(np.abs(l.stored), np.abs(r.stored), dims)
    k = int(np.prod([l.values.shape[i] for i in contract[0]]))
    like = (l.values if l.values.dtype == r.values.dtype else
            np.zeros(0, F32))
    keys = {"lc": contract[0], "rc": contract[1], "lb": batch[0] or None,
            "rb": batch[1] or None}
    c.call("dot_general", keys, [l, r], np.asarray(out).astype(like.dtype),
           product_tol((k, float(np.max(most))), np.asarray(out), like))


def dot_calls(c, kinds):
    pairs = [
        (c.normal("dx", (5, 18)), c.normal("dy", (18, 7)), ((1,), (0,)),
         ((), ())),
        (c.normal("dx", (5, 18)), c.normal("dz", (9, 18)), ((1,), (1,)),
         ((), ())),
        (c.normal("bx", (2, 3, 12)), c.normal("by", (2, 12, 4)), ((2,), (1,)),
         ((0,), (0,))),
        (c.normal("ex", (3, 4, 5)), c.normal("ey", (5, 4, 6)),
         ((1, 2), (1, 0)), ((), ())),
    ]
    for n, (x, y, contract, batch) in enumerate(pairs):
        for kind in kinds:
            qx, qy = c.quantized(x, kind), c.quantized(y, kind)
            other = c.quantized(y, NEXT.get(kind, kind))
            for l, r in ((qx, y), (x, qy), (qx, qy), (qx, other))[:4 if n < 3
                                                                else 3]:
                dot_call(c, l, r, contract, batch)
    for d in ("bf16", "f16"):  # also two dtypes
        x = c.normal(f"dx{d}", (5, 18), DTYPES[d])
        y = c.normal(f"dy{d}", (18, 7), DTYPES[d])
        for kind in kinds:
            qy = c.quantized(y, kind)
            dot_call(c, x, qy, ((1,), (0,)))
            dot_call(c, c.quantized(x, kind), y, ((1,), (0,)))
            dot_call(c, c.normal("dx", (5, 18)), qy, ((1,), (0,)))
    for kind in OTHERS:
        if not kind.endswith("ys"):
            dot_call(c, c.normal("dx", (5, 18)),
                     c.quantized(c.normal("dy", (18, 7)), kind), ((1,), (0,)))
            dot_call(c, c.quantized(c.normal("dx", (5, 18)), kind),
                     c.normal("dz", (9, 18)), ((1,), (1,)))


CONVS = [  # labels, strides, padding, dilations of lhs and rhs, groups
    ("bf01 oi01 bf01", (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1), 1),
    ("bf01 oi01 bf01", (2, 1), ((1, 0), (2, 1)), (1, 2), (2, 1), 1),
    ("b01f 01io b01f", (1, 2), ((1, 1), (0, 1)), (1, 1), (1, 1), 1),
    ("bf01 oi01 bf01", (1, 1), ((0, 1), (1, 0)), (1, 1), (1, 1), 3),
]


def conv_shapes(labels, groups):
    size = {"b": 2, "f": 3, "0": 4, "1": 5}
    kernel = {"o": 3 if groups > 1 else 4, "i": 3 // groups, "0": 3, "1": 2}
    lhs, rhs, _ = labels.split()
    return (tuple(size[w] for w in lhs), tuple(kernel[w] for w in rhs))


def conv_calls(c, kinds):
    spell = {"b": "N", "f": "C", "0": "H", "1": "W", "o": "O", "i": "I"}
    for n, (labels, stride, pad, ldil, rdil, groups) in enumerate(CONVS):
        left, right = conv_shapes(labels, groups)
        x, y = c.normal(f"cx{n}", left), c.normal(f"cy{n}", right)
        names = ["".join(spell[w] for w in part) for part in labels.split()]
        keys = dict(zip(("lhs", "rhs", "res"), labels.split()))
        keys |= {"stride": stride, "lo": [p[0] for p in pad],
                 "hi": [p[1] for p in pad], "ldil": ldil, "rdil": rdil,
                 "groups": groups}

        def conv(a, b):
            return np.asarray(lax.conv_general_dilated(
                a, b, stride, pad, ldil, rdil, tuple(names), groups))
        k = int(np.prod(right)) // right[labels.split()[1].index("o")]
        for kind in kinds:
            qx, qy = c.quantized(x, kind), c.quantized(y, kind)
            other = c.quantized(y, NEXT[kind])
            for l, r in ((qx, y), (x, qy), (qx, qy), (qx, other))[:4 if n == 0
                                                                else 3]:
                most = float(np.max(conv(np.abs(l.stored), np.abs(r.stored))))
                out = conv(l.stored, r.stored)
                c.call("conv_general_dilated", keys, [l, r], rounded(out, l),
                       product_tol((k, most), out, l.values))


# ---- structure --------------------------------------------------------------

def structure_calls(c, x, x3, y, kinds):
    for kind in kinds:
        q, q3, z = (c.quantized(x, kind), c.quantized(x3, kind),
                    c.quantized(y, kind))
        other = c.quantized(y, NEXT.get(kind, kind))
        for a, perm in ((q, (1, 0)), (q3, (2, 0, 1)), (q3, (1, 0, 2))):
            c.call("transpose", {"perm": perm}, [a],
                   lax.transpose(a.values, perm))
        for a, shape in ((q, (45,)), (q, (5, 3, 3)), (q, (9, 5)),
                         (q3, (6, 7)), (q3, (1, 42))):
            c.call("reshape", {"shape": shape}, [a],
                   lax.reshape(a.values, shape))
        for l, r in ((q, y), (x, z), (q, z), (q, other)):
            for axis in (0, 1):
                c.call("concatenate", {"axis": axis}, [l, r],
                       lax.concatenate([l.values, r.values], axis))
        for shape, dims in (((2, 5, 9), (1, 2)), ((9, 3, 5), (2, 0))):
            out = broadcast_in_dim(q.values, shape, dims)
            c.call("broadcast_in_dim", {"shape": shape, "dims": dims}, [q], out)
        gather_calls(c, q, q3)


def broadcast_in_dim(a, shape, dims):
    """lax requires sorted dims: transposes first."""
    order = np.argsort(dims)
    return lax.broadcast_in_dim(lax.transpose(a, order), shape,
                                tuple(np.sort(dims)))


def gather_calls(c, q, q3):
    rows = c.dense("rows", np.array([[3], [0], [4], [9], [-2]], np.int32))
    places = c.dense("places", np.array([[1, 1], [4, 8], [0, 0]], np.int32))
    cases = [  # operand, starts, offset, collapsed, map, sizes, bounds
        (q, rows, (1,), (0,), (0,), (1, 9), "clip"),
        (q, rows, (1,), (0,), (0,), (1, 9), "fill"),
        (q, rows, (0,), (1,), (1,), (5, 1), "clip"),
        (q, places, (1, 2), (), (0, 1), (2, 3), "clip"),
        (q3, places, (1,), (0, 1), (1, 0), (1, 1, 7), "clip"),
    ]
    for a, s, offset, collapsed, start_map, sizes, bounds in cases:
        dims = lax.GatherDimensionNumbers(offset, collapsed, start_map)
        out = lax.gather(a.values, s.values, dims, sizes, mode=bounds)
        keys = {"offset": offset, "collapsed": collapsed, "map": start_map,
                "sizes": sizes, "bounds": bounds}
        c.call("gather", {k: v for k, v in keys.items() if v != ()}, [a, s],
               out)


def all_calls(golden):
    c = Calls(golden)
    kinds = list(FORMATS)
    with jax.enable_x64(True):
        x, y = c.normal("mx", (5, 9)), c.normal("my", (5, 9))
        p, x3 = c.normal("mp", (5, 9), positive=True), c.normal("mt", (2, 3, 7))
        unary_calls(c, x, p, kinds)
        binary_calls(c, x, y, p, kinds)
        integer_calls(c)
        half = []
        for d in ("bf16", "f16"):
            h = [c.normal(f"{n}{d}", (4, 9), DTYPES[d], n == "hp")
                 for n in ("hx", "hy", "hp")]
            unary_calls(c, h[0], h[2], kinds[:2])
            binary_calls(c, *h, kinds[:2], ("add", "mul", "div", "lt", "pow"))
            half.append(h[0])
        convert_calls(c, x, half, [*kinds, "int8s", "nf4flat"])
        reduce_calls(c, x3, [*kinds, "int8c", "nf4flat"])
        dot_calls(c, kinds)
        conv_calls(c, kinds)
        structure_calls(c, x, x3, y, [*kinds, "int8c", "nf4flat"])


