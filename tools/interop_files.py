"""interop_files.py PROGRAM WRITER - round trips of files with random content.

The packages write files and PROGRAM copies them with lowbit's readers and writers.
The copies have the same bytes where the format allows only one encoding, and the
packages read the same content from them. WRITER writes quantized arrays in the
native layout, which numpy decodes independently. Seeds are fixed.
"""
import json
import subprocess
import sys
import tempfile

import gguf
import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy

from interop_common import check, done, native_values

PROGRAM = sys.argv[1]
WRITER = sys.argv[2]


def copy(kind, src, dst):
    r = subprocess.run([PROGRAM, "--copy", kind, src, dst],
                       capture_output=True, text=True)
    check(r.returncode == 0, f"{kind}: {src}: {r.stderr}")


def same_bytes(a, b):
    with open(a, "rb") as f, open(b, "rb") as g:
        return f.read() == g.read()


def shape(rng, most):
    rank = int(rng.integers(0, most + 1))
    return tuple(int(n) for n in rng.integers(0, 7, rank))


def numbers(rng, dims, dtype):
    n = int(np.prod(dims)) * np.dtype(dtype).itemsize
    a = np.frombuffer(rng.bytes(n), np.uint8)
    if np.dtype(dtype) == bool:
        return (a & 1).astype(bool).reshape(dims)
    return a.view(dtype).reshape(dims)


def name(rng, i):
    parts = ["model", "w\u00e9ight", "layers.3", "a\"b\\c", "\u4e2d", "sp ce",
             "\x01"]
    return ".".join(rng.choice(parts, 3)) + f".{i}"


# ---- safetensors ------------------------------------------------------------

def read_header(path):
    with open(path, "rb") as f:
        raw = f.read()
    n = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8:8 + n]), raw[8 + n:]


def test_safetensors(rng, d):
    types = [np.float32, np.float16, np.float64, np.int8, np.int16, np.int32,
             np.int64, np.uint8, np.uint16, np.uint32, np.uint64, bool,
             ml_dtypes.bfloat16]
    src, dst = f"{d}/a.safetensors", f"{d}/b.safetensors"
    for round_ in range(40):
        made = {}
        for i in range(int(rng.integers(0, 12))):
            t = types[int(rng.integers(len(types)))]
            made[name(rng, i)] = numbers(rng, shape(rng, 5), t)
        keys = [{}, {"format": "pt"}, {"\u00e9": "\n\"", "b": "", "a": "x"}]
        meta = keys[round_ % 3] or None
        safetensors.numpy.save_file(made, src, meta)
        copy("safetensors", src, dst)
        one = meta is None or len(meta) == 1
        check(not one or same_bytes(src, dst), "safetensors: other bytes")
        check(read_header(src) == read_header(dst), "safetensors: a header")
        with safetensors.safe_open(dst, "numpy") as f:
            check(f.metadata() == meta, "safetensors: metadata")
            check(set(f.keys()) == set(made), "safetensors: names")
            for k in f.keys():
                a = f.get_tensor(k)
                check(a.tobytes() == made[k].tobytes() and
                      a.shape == made[k].shape, f"safetensors: {k}")


# ---- gguf -------------------------------------------------------------------

def gguf_values(rng, w):
    w.add_uint32("n", int(rng.integers(2**32)))
    w.add_float64("d", float(rng.normal()))
    w.add_bool("yes", bool(rng.integers(2)))
    w.add_array("tokens", [name(rng, i) for i in range(20)])
    w.add_array("scores", [float(x) for x in rng.normal(size=9)])
    w.add_array("nested", [[1, 2, 3], [4]])


def gguf_tensors(rng, w):
    made = {}
    quants = [q for q, (n, _) in gguf.GGML_QUANT_SIZES.items()
              if n > 1 and q.name != "Q8_1"]  # gguf-py: f32 where ggml has f16
    for i in range(int(rng.integers(0, 12))):
        dims = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 4)))
        if i % 2:
            t = rng.choice([np.float32, np.float16, np.float64, np.int8,
                            np.int16, np.int32, np.int64])
            made[f"t{i}"] = numbers(rng, dims, t)
            w.add_tensor(f"t{i}", made[f"t{i}"])
        else:
            q = quants[int(rng.integers(len(quants)))]
            dims = dims[:-1] + (dims[-1] * gguf.GGML_QUANT_SIZES[q][1],)
            made[f"t{i}"] = numbers(rng, dims, np.uint8)
            w.add_tensor(f"t{i}", made[f"t{i}"], raw_dtype=q)
    return made


def test_gguf(rng, d):
    src, dst = f"{d}/a.gguf", f"{d}/b.gguf"
    for round_ in range(40):
        w = gguf.GGUFWriter(src, "llama")
        if round_ % 3 == 1:
            w.add_custom_alignment(2**int(rng.integers(3, 9)))
        gguf_values(rng, w)
        made = gguf_tensors(rng, w)
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.write_tensors_to_file()
        w.close()
        copy("gguf", src, dst)
        check(same_bytes(src, dst), "gguf: other bytes")
        r = gguf.GGUFReader(dst)
        check([t.name for t in r.tensors] == list(made), "gguf: names")
        for t in r.tensors:
            check(t.data.tobytes() == made[t.name].tobytes(), f"gguf: {t.name}")


# ---- numpy ------------------------------------------------------------------

NPY = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]


def test_npy(rng, d):
    src, dst = f"{d}/a.npy", f"{d}/b.npy"
    for _ in range(60):
        a = numbers(rng, shape(rng, 6), np.dtype(rng.choice(NPY)))
        if rng.integers(3) == 0:
            a = np.asfortranarray(a)
        np.save(src, a)
        copy("npy", src, dst)
        check(same_bytes(src, dst), f"npy: other bytes: {a.dtype} {a.shape}")
        check(np.load(dst).tobytes() == a.tobytes(), "npy: numbers")


def has_64_bit_sizes(path):
    """Whether zipfile wrote the first member like Python 3.11.4 and later."""
    with open(path, "rb") as f:
        head = f.read(26)
    return head[:4] != b"PK\3\4" or head[18:26] == b"\xff" * 8


def test_npz(rng, d):
    src, dst = f"{d}/a.npz", f"{d}/b.npz"
    for round_ in range(20):
        many = 70000 if round_ == 19 else int(rng.integers(0, 9))
        made = {name(rng, i): numbers(rng, shape(rng, 2), np.dtype("f4"))
                for i in range(min(many, 9))}
        made.update({f"m{i}": np.uint8(i % 256) for i in range(9, many)})
        np.savez(src, **made)
        copy("npz", src, dst)
        check(not has_64_bit_sizes(src) or same_bytes(src, dst),
              f"npz: other bytes: {many} arrays")
        stored = dst + ".stored.npz"
        np.savez_compressed(src, **made)
        copy("npz", src, stored)
        check(same_bytes(dst, stored), "npz: deflated is read otherwise")
        with np.load(dst) as z:
            check(set(z.files) == set(made), "npz: names")
            for k in z.files[:20]:
                check(z[k].tobytes() == made[k].tobytes(), f"npz: {k}")


# ---- native layout ----------------------------------------------------------

def test_native(_rng, d):
    path, values = f"{d}/native.safetensors", f"{d}/values.safetensors"
    r = subprocess.run([WRITER, "--write", path, values], capture_output=True,
                       text=True)
    check(r.returncode == 0, f"native: {r.stderr}")
    made, want = native_values(path), safetensors.numpy.load_file(values)
    check(set(made) == set(want), "native: names")
    for name, got in made.items():
        check(got.shape == want[name].shape and
              np.float32(got).tobytes() == want[name].tobytes(),
              f"native: {name}")


with tempfile.TemporaryDirectory() as where:
    for test in (test_safetensors, test_gguf, test_npy, test_npz, test_native):
        test(np.random.default_rng(7), where)
        done(test.__name__[5:])
