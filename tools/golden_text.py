"""golden_text.py - writes the text format of golden files: lines of words.

    # a comment
    input NAME ARRAY            an input of cases; all are in golden_inputs.txt
    case NAME INPUT KEY=VALUE.. lb_quantize of it, or ("-") read from its parts
    codes ARRAY                 the result of lb_codes
    part NAME ARRAY             the result of lb_component
    export LAYOUT NAME ARRAY    the result of lb_export
    values ARRAY                the result of lb_materialize
    convert ARRAY               the same after lb_convert to the array's dtype
    end
    total N                     the last line: N inputs, cases and calls

ARRAY is three words: a dtype; a shape, (3,4), or [12] if only the number of
elements matters; the bits of all elements in hex, each with as many digits as
its dtype has, or "fnv:" and the FNV-1a hash (64 bits) of their little-endian
bytes, or "-" if there are none.
"""
import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": BF16,
          "f64": np.float64, "i8": np.int8, "i32": np.int32, "i64": np.int64,
          "u8": np.uint8, "bool": np.bool_}
NAMES = {np.dtype(v): k for k, v in DTYPES.items()}
# Maximum number of elements that are written; longer arrays have a hash.
LONGEST = {"codes": 250, "part": 320, "export": 200, "values": 48,
           "convert": 24, "out": 72}


def name_of(a):
    return NAMES[np.asarray(a).dtype]


def bits_of(a):
    a = np.ascontiguousarray(a)
    return a.reshape(-1).view({1: "u1", 2: "<u2", 4: "<u4",
                               8: "<u8"}[a.dtype.itemsize])


def fnv(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def shape_words(shape, flat=False):
    if flat:
        return f"[{int(np.prod(shape, dtype=np.int64))}]"
    return "(" + ",".join(map(str, shape)) + ")"


def array_words(a, flat=False, longest=None):
    a = np.asarray(a)
    bits = bits_of(a)
    if a.size == 0:
        text = "-"
    elif longest is not None and a.size > longest:
        text = f"fnv:{fnv(bits.tobytes()):016x}"
    else:
        digits = 2 * a.dtype.itemsize
        text = "".join(f"{int(b):0{digits}x}" for b in bits)
    return f"{name_of(a)} {shape_words(a.shape, flat)} {text}"


def keys_text(keys):
    def one(v):
        return ",".join(map(str, v)) if isinstance(v, (tuple, list)) else str(v)
    return "".join(f" {k}={one(v)}" for k, v in keys.items() if v is not None)


class Golden:
    """A file that is being written."""

    def __init__(self, path, head, versions):
        self.path, self.lines, self.cases, self.inputs = path, [], 0, 0
        for line in head.strip().splitlines():
            self.add("# " + line)
        self.add("# " + ", ".join(f"{k} {v}" for k, v in versions.items()))

    def add(self, line):
        self.lines.append(line.rstrip())

    def input(self, name, a):
        self.inputs += 1
        self.add(f"input {name} {array_words(a)}")

    def case(self, name, source, keys, expect):
        """expect: (word, array) pairs; word: what precedes ARRAY, ending in *
        if the shape does not matter, in ! if all elements are written,
        however many."""
        self.cases += 1
        self.add(f"case {name} {source}{keys_text(keys)}")
        for word, a in expect:
            if a is None:
                continue
            first = word.rstrip("*!").split()[0]
            longest = None if "!" in word else LONGEST[first]
            words = array_words(a, "*" in word, longest)
            self.add(f"{word.rstrip('*!')} {words}")
        self.add("end")

    def write(self):
        self.add(f"total {self.inputs + self.cases}")
        with open(self.path, "w", encoding="ascii") as f:
            f.write("\n".join(self.lines) + "\n")
