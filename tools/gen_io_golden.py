#!/usr/bin/env python3
"""gen_io_golden.py - writes tests/golden/io: files of other programs.

Small files written by the packages themselves, and listing.txt, which lists their
content: names, types, shapes and hashes of the bytes, from numpy.

Needs Python 3.11.4 or later: the zipfile of earlier versions writes other bytes.

    python3 -m venv V && V/bin/pip install safetensors gguf numpy ml_dtypes \\
        huggingface_hub
    V/bin/python tools/gen_io_golden.py tests/golden/io

listing.txt, one item per line, words separated by spaces, special bytes in names
as %XX:

    file PATH KIND TWIN        TWIN: the file that rewriting it must produce, or -
                               if the bytes may differ
    meta KEY TYPE ITEM N HEX   the value's bytes as in lb_meta
    tensor NAME TYPE DTYPE SHAPE ORDER SIZE HASH
    shards LIMIT SIZES SHARDS  huggingface_hub's split
"""
import json
import os
import struct
import sys
import zipfile

import gguf
import ml_dtypes
import numpy as np
import safetensors
from huggingface_hub.serialization._base import (
    split_state_dict_into_shards_factory)

OUT = sys.argv[1]
LINES = []
RNG = np.random.default_rng(6)

OURS = {"float32": "f32", "float16": "f16", "bfloat16": "bf16",
        "float64": "f64", "int8": "i8", "int16": "i16", "int32": "i32",
        "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32",
        "uint64": "u64", "bool": "bool"}


def fnv(data):
    h = 0xcbf29ce484222325
    for b in bytes(data):
        h = (h ^ b) * 0x100000001b3 % 2**64
    return f"{h:016x}"


def word(name):
    ok = set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
             b"._-/()[]',<>|")
    text = "".join(chr(b) if b in ok else f"%{b:02X}"
                   for b in name.encode())
    return text or "%"


def dims(shape):
    return "x".join(map(str, shape)) or "-"


def tensor(name, kind, dtype, shape, data, order="C"):
    data = bytes(data)
    LINES.append(f"tensor {word(name)} {word(kind)} {dtype} {dims(shape)} "
                 f"{order} {len(data)} {fnv(data)}")


def begin(path, kind, twin=None):
    LINES.append(f"file {path} {kind} {path if twin is None else twin}")
    return os.path.join(OUT, path)


def numbers(shape, dtype):
    n = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(RNG.bytes(n), np.uint8).view(dtype).reshape(shape)


# ---- safetensors ------------------------------------------------------------

ST = {"float64": "F64", "float32": "F32", "bfloat16": "BF16", "float16": "F16",
      "int64": "I64", "uint64": "U64", "int32": "I32", "uint32": "U32",
      "int16": "I16", "uint16": "U16", "int8": "I8", "uint8": "U8",
      "bool": "BOOL", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
      "float8_e8m0fnu": "F8_E8M0", "float8_e4m3fnuz": "F8_E4M3FNUZ",
      "float8_e5m2fnuz": "F8_E5M2FNUZ", "float4_e2m1fn_x2": "F4",
      "complex64": "C64"}
SIZE = {"F64": 8, "I64": 8, "U64": 8, "C64": 8, "F32": 4, "I32": 4, "U32": 4,
        "BF16": 2, "F16": 2, "I16": 2, "U16": 2}


def st_bytes(dtype, shape):
    count = int(np.prod(shape)) * SIZE.get(ST[dtype], 1)
    data = RNG.bytes(count)
    return bytes(b & 1 for b in data) if dtype == "bool" else data


def st_file(path, entries, meta, twin=None):
    """entries: (name, dtype, shape). The order in the file is the writer's."""
    where = begin(path, "safetensors", twin)
    made = {n: np.frombuffer(st_bytes(d, s), np.uint8) for n, d, s in entries}
    specs = {n: safetensors.TensorSpec(dtype=d, shape=list(s),
                                       data_ptr=made[n].ctypes.data,
                                       data_len=made[n].nbytes)
             for n, d, s in entries}
    safetensors.serialize_file(specs, where, meta)
    for key, value in (meta or {}).items():
        LINES.append(f"meta {word(key)} 8 0 1 {value.encode().hex() or '-'}")
    with open(where, "rb") as f:
        raw = f.read()
    head = json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])
    head.pop("__metadata__", None)
    for name, info in sorted(head.items(),
                             key=lambda x: (x[1]["data_offsets"], x[0])):
        ours = {v: OURS.get(k, "none") for k, v in ST.items()}
        tensor(name, info["dtype"], ours[info["dtype"]], info["shape"],
               made[name].tobytes())


def safetensors_files():
    plain = [(f"{d}_{len(s)}", d, s) for d in ST for s in [(3, 2)]]
    st_file("types.safetensors", plain, None)
    st_file("shapes.safetensors",
            [("scalar", "float32", ()), ("none", "bfloat16", (0, 5)),
             ("one", "int8", (1,)), ("deep", "uint8", (1,) * 9 + (2,)),
             ("a.b", "float16", (2, 3)), ("a-b", "float16", (2, 3))],
            {"format": "pt"})
    st_file("names.safetensors",
            [("", "uint8", (1,)), ("sp ace", "uint8", (2,)),
             ("quo\"te\\", "uint8", (3,)), ("tab\tnew\nbell\x07\x1f",
                                            "uint8", (4,)),
             ("/slash\x7f", "uint8", (5,)), ("\u00e9\u4e2d\U0001f600", "uint8",
                                             (6,))],
            {"k\u00e9y \"q\"": "v\u00e4lue\n\\\u0001"})
    st_file("empty.safetensors", [], None)


def shard_files():
    os.makedirs(os.path.join(OUT, "sharded"), exist_ok=True)
    names = ["model-00001-of-00002.safetensors",
             "model-00002-of-00002.safetensors"]
    lines, total, where = [], 0, {}
    for k, name in enumerate(names):
        first = len(LINES)
        st_file("sharded/" + name,
                [(f"layer.{k}.w\u00e9", "float16", (2, 2 + k)),
                 (f"layer.{k}.b", "float32", (3,))], {"format": "pt"})
        mine = [x for x in LINES[first:] if x.startswith("tensor")]
        lines += mine
        total += sum(int(x.split()[6]) for x in mine)
        for e in (f"layer.{k}.w\u00e9", f"layer.{k}.b"):
            where[e] = name
    index = {"metadata": {"total_size": total}, "weight_map": where}
    path = begin("sharded/model.safetensors.index.json", "safetensors_index",
                 "-")
    with open(path, "w") as f:
        f.write(json.dumps(index, indent=2, sort_keys=True) + "\n")
    LINES.append("meta format 8 0 1 " + b"pt".hex())
    LINES.extend(lines)


def shard_plans():
    for limit, sizes in [(10, [4, 4, 4, 11, 3, 10, 1]), (10, [11]), (10, [10]),
                         (5, [1] * 12), (7, [3, 9, 3, 9, 3]), (8, [0, 8, 0, 1]),
                         (3, [4, 4, 1]), (100, [1, 2, 3])]:
        state = {f"t{i:02}": n for i, n in enumerate(sizes)}
        plan = split_state_dict_into_shards_factory(
            state, get_storage_size=lambda n: n, max_shard_size=limit,
            filename_pattern="m{suffix}")
        files = list(plan.filename_to_tensors)
        at = [files.index(plan.tensor_to_filename[k]) for k in state]
        LINES.append(f"shards {limit} {','.join(map(str, sizes))} "
                     f"{','.join(map(str, at))}")


# ---- gguf -------------------------------------------------------------------

GGUF_PLAIN = [("float32", "F32"), ("float16", "F16"), ("float64", "F64"),
              ("int8", "I8"), ("int16", "I16"), ("int32", "I32"),
              ("int64", "I64")]


def gguf_file(path, fill, twin=None):
    where = begin(path, "gguf", twin)
    w = gguf.GGUFWriter(where, "test")
    first = len(LINES)
    LINES.append(f"meta general.architecture 8 0 1 {b'test'.hex()}")
    tensors = fill(w)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    del first
    for t in tensors:
        tensor(*t)


def gguf_value(key, kind, item, n, data):
    LINES.append(f"meta {word(key)} {kind} {item} {n} {data.hex() or '-'}")


def gguf_values(w):
    scalars = [("u8", "add_uint8", 0, "<B", 200), ("i8", "add_int8", 1, "<b", -3),
               ("u16", "add_uint16", 2, "<H", 60000),
               ("i16", "add_int16", 3, "<h", -30000),
               ("u32", "add_uint32", 4, "<I", 4000000000),
               ("i32", "add_int32", 5, "<i", -2000000000),
               ("f32", "add_float32", 6, "<f", 1.5),
               ("bool", "add_bool", 7, "<?", True),
               ("u64", "add_uint64", 10, "<Q", 2**64 - 1),
               ("i64", "add_int64", 11, "<q", -2**63),
               ("f64", "add_float64", 12, "<d", -0.1)]
    for key, add, kind, fmt, value in scalars:
        getattr(w, add)("x." + key, value)
        gguf_value("x." + key, kind, 0, 1, struct.pack(fmt, value))
    w.add_string("x.text", "h\u00e9llo")
    gguf_value("x.text", 8, 0, 1, "h\u00e9llo".encode())
    w.add_array("x.ints", [1, -2, 3])
    gguf_value("x.ints", 9, 5, 3, struct.pack("<3i", 1, -2, 3))
    w.add_array("x.floats", [0.5, 2.0])
    gguf_value("x.floats", 9, 6, 2, struct.pack("<2f", 0.5, 2.0))
    w.add_array("x.words", ["a", "", "xyz"])
    gguf_value("x.words", 9, 8, 3, b"".join(
        struct.pack("<Q", len(s)) + s for s in (b"a", b"", b"xyz")))
    w.add_array("x.nested", [[1, 2], [3]])
    gguf_value("x.nested", 9, 9, 2, struct.pack("<IQ2i", 5, 2, 1, 2) +
               struct.pack("<IQi", 5, 1, 3))
    return []


def gguf_tensors(w):
    out = []
    for dtype, kind in GGUF_PLAIN:
        a = numbers((2, 3), dtype)
        w.add_tensor(kind + ".t", a)
        out.append((kind + ".t", kind, OURS[dtype], (2, 3), a.tobytes()))
    bf = numbers((4, 1, 2), "uint16")
    w.add_tensor("bf.t", bf.view(np.uint8).reshape(4, 1, 4),
                 raw_dtype=gguf.GGMLQuantizationType.BF16)
    out.append(("bf.t", "BF16", "bf16", (4, 1, 2), bf.tobytes()))
    for q in gguf.GGMLQuantizationType:
        block, size = gguf.GGML_QUANT_SIZES[q]
        # Q8_1: gguf-py has an f32 in place of the two f16 in ggml's struct
        if block == 1 or q.name == "Q8_1":
            continue
        a = np.frombuffer(RNG.bytes(2 * size), np.uint8).reshape(2, size)
        w.add_tensor(q.name.lower(), a, raw_dtype=q)
        out.append((q.name.lower(), q.name, "none", (2, block), a.tobytes()))
    return out


def gguf_aligned(w):
    w.add_custom_alignment(128)
    gguf_value("general.alignment", 4, 0, 1, struct.pack("<I", 128))
    a, b = numbers((3,), "float32"), numbers((2, 2, 1, 5), "int8")
    w.add_tensor("a", a)
    w.add_tensor("b", b)
    return [("a", "F32", "f32", (3,), a.tobytes()),
            ("b", "I8", "i8", (2, 2, 1, 5), b.tobytes())]


def gguf_files():
    gguf_file("values.gguf", gguf_values)
    gguf_file("types.gguf", gguf_tensors)
    gguf_file("aligned.gguf", gguf_aligned)
    # version 2 has the same layout; writing gives version 3
    with open(os.path.join(OUT, "aligned.gguf"), "rb") as f:
        raw = bytearray(f.read())
    raw[4] = 2
    first = max(i for i, x in enumerate(LINES) if x.startswith("file"))
    same = LINES[first + 1:]
    with open(begin("version2.gguf", "gguf", "aligned.gguf"), "wb") as f:
        f.write(raw)
    LINES.extend(same)


# ---- numpy ------------------------------------------------------------------

NPY = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
       "uint64", "float16", "float32", "float64"]


def npy_line(name, a, order="C"):
    """The bytes as returned by lb_reader_read: little-endian, in storage order."""
    kind = a.dtype.str if a.dtype.names is None else str(a.dtype.descr)
    if a.dtype == ml_dtypes.bfloat16:
        kind = "|V2"
    ours = "none" if kind == "|V2" else OURS.get(a.dtype.newbyteorder("=").name,
                                                 "none")
    data = a.astype(a.dtype.newbyteorder("<")).tobytes(order)
    tensor(name, kind, ours, a.shape, data, order)


def npy_file(path, a, twin=None, version=None):
    where = begin(path, "npy", twin)
    with open(where, "wb") as f:
        np.lib.format.write_array(f, a, version=version)
    fortran = a.flags.f_contiguous and not a.flags.c_contiguous
    npy_line(path[:-4], a, "F" if fortran else "C")


def npy_array(shape, dtype):
    if dtype == "bool":
        return numbers(shape, "uint8") < 128
    return numbers(shape, dtype)


def npy_files():
    for d in NPY:
        npy_file(f"{d}.npy", npy_array((2, 3), d))
    npy_file("scalar.npy", npy_array((), "float32"))
    npy_file("vector.npy", npy_array((5,), "float64"))
    npy_file("none.npy", npy_array((0, 4), "int16"))
    npy_file("rank9.npy", npy_array((1,) * 8 + (2,), "uint8"))
    npy_file("fortran.npy", np.asfortranarray(npy_array((3, 400), "int16")))
    npy_file("long.npy", npy_array((1000,), "uint8"))
    # these are only read, or written in another form
    npy_file("big.npy", npy_array((2, 3), ">f4"), "-")
    npy_file("complex.npy", npy_array((3,), ">c8"), "-")
    npy_file("text.npy", np.array(["ab", "cde"]), "-")
    npy_file("bytes.npy", np.array([b"ab", b"cde"]), "-")
    npy_file("fields.npy", np.zeros(2, [("a", "<i4"), ("b", ">f8", (2,)),
                                        (("title", "c"), "|u1")]), "-")
    npy_file("fields1.npy", np.ones(2, [("\u00e9", "<i4")]), "-")
    npy_file("fields3.npy", np.ones(2, [("\u4e2d", "<i4")]), "-")
    npy_file("time.npy", np.array([5, 6], "<M8[us]"), "-")
    npy_file("bf16.npy", npy_array((4,), "uint16").view(ml_dtypes.bfloat16),
             "-")
    npy_file("version2.npy", npy_array((2, 2), "float32"), "-", (2, 0))
    npy_file("version3.npy", npy_array((2, 2), "float32"), "-", (3, 0))


def npz_files():
    arrays = {"w": npy_array((3, 4), "float32"), "b": npy_array((), "int64"),
              "n": npy_array((0, 2), "uint8"), "\u00e9/x": np.zeros(300, "i2"),
              "mask": npy_array((9,), "bool")}
    np.savez(begin("stored.npz", "npz"), **arrays)
    for k, a in arrays.items():
        npy_line(k, a)
    np.savez_compressed(begin("deflated.npz", "npz", "stored.npz"), **arrays)
    for k, a in arrays.items():
        npy_line(k, a)
    np.savez(begin("nothing.npz", "npz"))
    zip_files(arrays)


def zip_files(arrays):
    """Archives in forms of ZIP that numpy.savez writes only for large files, or
    other programs do: 64-bit records, sizes behind the data, names in code page
    437, comments, deflate beside stored."""
    class Unseekable:
        def __init__(self, f):
            self.write, self.flush = f.write, f.flush

    class Old(zipfile.ZipInfo):
        def _encodeFilenameFlags(self):
            return self.filename.encode("cp437"), self.flag_bits

    def write(to, method, info=zipfile.ZipInfo, wide=False, note=b""):
        with zipfile.ZipFile(to, "w") as z:
            z.comment = note
            for k, a in arrays.items():
                member = info(k + ".npy")
                member.compress_type, member.comment = method, note
                member.extra = note and b"\xfe\xca\3\0abc"
                with z.open(member, "w", force_zip64=wide) as f:
                    np.lib.format.write_array(f, np.asanyarray(a))
        for k, a in arrays.items():
            npy_line(k, a)

    limits = zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT
    zipfile.ZIP64_LIMIT = zipfile.ZIP_FILECOUNT_LIMIT = 0
    path = begin("zip64.npz", "npz", "-")
    write(path, zipfile.ZIP_STORED, wide=True)
    zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT = limits
    path = begin("streamed.npz", "npz", "-")
    with open(path, "wb") as f:
        write(Unseekable(f), zipfile.ZIP_DEFLATED)
    path = begin("named.npz", "npz", "-")
    write(path, zipfile.ZIP_STORED, Old, note=b"PK\5\6" + bytes(30))


safetensors_files()
shard_files()
shard_plans()
gguf_files()
npy_files()
npz_files()
with open(os.path.join(OUT, "listing.txt"), "w") as f:
    f.write("\n".join(LINES) + "\n")
