"""interop_tensors.py - quantized tensors of lowbit and of other programs.

bitsandbytes, gguf and numpy decode lowbit's output to the same values as lowbit,
bit for bit, and vice versa. Codes are equal if the other program can encode. Uses
generated values and published weights. Seeds are fixed.
"""
import importlib.util
import pathlib
import tempfile

import bitsandbytes.functional as bnb
import gguf
import numpy as np
import safetensors
import safetensors.numpy
import safetensors.torch
import torch

import native_numpy
from interop_common import check, done, ggml_type, lowbit, native_values

BLOCKS = ["q8_0", "q4_0", "iq4_nl", "tq1_0", "tq2_0"]
READ_ONLY = ["q4_1", "q5_0", "q5_1", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_xs",
             "iq3_s", "iq3_xxs", "iq2_s", "iq2_xs", "iq2_xxs", "iq1_m", "iq1_s",
             "gguf_mxfp4"]
TYPES = ["int8", "nf4", "ternary", "binary", "dynamic8", *BLOCKS]


def same(got, want, what):
    """Shape, dtype and bits."""
    check(got.dtype == want.dtype and got.shape == want.shape,
          f"{what}: {got.dtype} {tuple(got.shape)}, "
          f"not {want.dtype} {tuple(want.shape)}")
    if isinstance(got, torch.Tensor):
        got, want = (x.contiguous().view(torch.uint8).numpy()
                     for x in (got.reshape(-1), want.reshape(-1)))
    check(got.tobytes() == want.tobytes(), f"{what}: other numbers")


def matrices(dtype):
    """Whole blocks, odd shapes, blocks of zeros, outliers."""
    g = torch.Generator().manual_seed(5)

    def normal(*shape):
        return torch.randn(*shape, generator=g)
    made = {"even": normal(96, 256), "odd": normal(37, 50), "one": normal(1, 3),
            "small": normal(64, 64) * 1e-3, "tall": normal(700, 33)}
    made["zeros"] = normal(16, 128)
    made["zeros"][3:9] = 0
    made["far"] = normal(40, 64)
    made["far"][::7, 5] *= 300
    return {f"{k}.weight": v.to(dtype) for k, v in made.items()}


def write(path, made):
    safetensors.torch.save_file({k: v.contiguous() for k, v in made.items()},
                                path)


def dense(path, *options):
    """The arrays of a file, decoded by lowbit."""
    wide = f"{path}.wide.safetensors"
    lowbit("dequantize", path, "-o", wide, *options)
    return safetensors.torch.load_file(wide)


# ---- bitsandbytes -----------------------------------------------------------

def bnb4(tensors, name):
    """Loaded by Params4bit.from_prequantized."""
    own = {k: v for k, v in tensors.items() if k.startswith(name + ".")}
    state = bnb.QuantState.from_dict(own, device=torch.device("cpu"))
    return bnb.dequantize_4bit(tensors[name], state)


def bnb8(tensors, name):
    scb = tensors[name.removesuffix("weight") + "SCB"]
    return bnb.int8_vectorwise_dequant(tensors[name], scb)


def bnb4_pack(made, double, blocksize):
    out = {}
    for name, w in made.items():
        codes, state = bnb.quantize_4bit(w, blocksize=blocksize,
                                         compress_statistics=double,
                                         quant_type="nf4")
        out[name] = codes
        out |= {f"{name}.{k}": v for k, v in state.as_dict(packed=True).items()}
    return out


def bnb8_pack(made):
    out = {}
    for name, w in made.items():
        codes, scb, _ = bnb.int8_vectorwise_quant(w.to(torch.float16))
        out[name] = codes
        out[name.removesuffix("weight") + "SCB"] = scb
        out[name + "_format"] = torch.tensor(0, dtype=torch.uint8)
    return out


def check_bnb(d, made, what, options, pack, decode, exact):
    src, ours, theirs = (f"{d}/{n}.safetensors" for n in ("src", "o", "t"))
    write(src, made)
    lowbit("quantize", src, "-o", ours, "--layout", "bnb", "--include", ".",
           *options)
    mine, other = safetensors.torch.load_file(ours), pack(made)
    values = dense(ours)
    write(theirs, other)
    theirs_here = dense(theirs)
    check(set(mine) == set(other), f"{what}: names {sorted(mine)}")
    for name in made:
        same(values[name], decode(mine, name), f"{what}: our {name}")
        same(theirs_here[name], decode(other, name), f"{what}: their {name}")
    for name in other if exact else made:
        same(mine[name], other[name], f"{what}: tensor {name}")


def test_bitsandbytes(d):
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        made = matrices(dtype)
        for size in (64, 128, 4096):
            # bitsandbytes 0.50.2 on a CPU uses scales of other blocks if a block
            # consists of several whole rows.
            some = {k: v for k, v in made.items() if size <= v.shape[1] or
                    size % v.shape[1]}
            check_bnb(d, some, f"nf4 {size} {dtype}",
                      ["--type", "nf4", "--block-size", size],
                      lambda m, s=size: bnb4_pack(m, False, s), bnb4, True)
        check_bnb(d, made, f"nf4 twice {dtype}",
                  ["--type", "nf4", "--double-quant"],
                  lambda m: bnb4_pack(m, True, 64), bnb4, False)
        check_bnb(d, made, f"int8 {dtype}", ["--type", "int8"], bnb8_pack, bnb8,
                  True)


# ---- gguf -------------------------------------------------------------------

def gguf_values(path):
    """Decoded by the package, as f32."""
    out = {}
    for t in gguf.GGUFReader(path).tensors:
        x = gguf.quants.dequantize(t.data, t.tensor_type)
        out[t.name] = np.float32(x).reshape([int(n) for n in t.shape[::-1]])
    return out


def gguf_bytes(rng, kind, w):
    """Encoded by the package or, if it has no encoder, random bytes that are
    finite as f16."""
    try:
        return gguf.quants.quantize(w, kind)
    except NotImplementedError:
        block, size = gguf.GGML_QUANT_SIZES[kind]
        n = w.size // block
        raw = rng.integers(0, 256, (n, size), np.uint8) & 0xbb
        return raw.reshape(*w.shape[:-1], -1)


def can_encode(kind):
    try:
        gguf.quants.quantize(np.zeros((1, 256), np.float32), kind)
        return True
    except NotImplementedError:
        return False


def check_theirs(rng, path, kind, made):
    """A file that the package wrote, decoded by both, and a copy of it."""
    w = gguf.GGUFWriter(path, "llama")
    for k, v in made.items():
        w.add_tensor(k, gguf_bytes(rng, kind, v), raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    here, there = dense(path, "--dtype", "f32"), gguf_values(path)
    for k in made:
        same(here[k].numpy(), there[k], f"gguf {kind.name}: their {k}")
    lowbit("convert", path, "-o", f"{path}.copy.gguf")
    for a, b in zip(gguf.GGUFReader(path).tensors,
                    gguf.GGUFReader(f"{path}.copy.gguf").tensors, strict=True):
        check(a.name == b.name and a.tensor_type == b.tensor_type, f"{a.name}: copied")
        same(np.asarray(b.data), np.asarray(a.data), f"gguf {kind.name}: copy of {a.name}")


def test_gguf(d):
    rng = np.random.default_rng(3)
    made = {"a.weight": rng.normal(size=(40, 512)), "b.weight":
            rng.normal(size=(3, 5, 256)), "c.weight": rng.normal(size=(8, 256))}
    made = {k: np.float32(v) for k, v in made.items()}
    made["c.weight"][2:4] = 0
    src = f"{d}/src.safetensors"
    safetensors.numpy.save_file(made, src)
    for fmt in BLOCKS:
        kind = ggml_type(fmt)
        ours, theirs = f"{d}/ours.gguf", f"{d}/theirs.gguf"
        lowbit("quantize", src, "-o", ours, "--type", fmt, "--include", ".",
               "--container-only")
        here, there = dense(ours, "--dtype", "f32"), gguf_values(ours)
        check(set(there) == set(made), f"gguf {fmt}: names")
        for t in gguf.GGUFReader(ours).tensors:
            check(t.tensor_type == kind, f"gguf {fmt}: {t.name} is not")
            same(here[t.name].numpy(), there[t.name], f"gguf {fmt}: {t.name}")
            if can_encode(kind):
                same(np.asarray(t.data).reshape(-1),
                     gguf.quants.quantize(made[t.name], kind).reshape(-1),
                     f"gguf {fmt}: codes of {t.name}")
        check_theirs(rng, theirs, kind, made)
    for fmt in READ_ONLY:
        check_theirs(rng, f"{d}/theirs.gguf",
                     ggml_type(fmt), made)


# ---- numpy ------------------------------------------------------------------

def test_numpy(d):
    rng = np.random.default_rng(4)
    made = {"w": rng.normal(size=(9, 70)), "half": np.float16(rng.normal(size=7)),
            "bytes": rng.integers(0, 256, (2, 3, 4), np.uint8),
            "turned": np.asfortranarray(np.float32(rng.normal(size=(5, 6))))}
    np.savez(f"{d}/a.npz", **made)
    lowbit("convert", f"{d}/a.npz", "-o", f"{d}/b.safetensors")
    lowbit("convert", f"{d}/b.safetensors", "-o", f"{d}/c.npz")
    there = safetensors.numpy.load_file(f"{d}/b.safetensors")
    with np.load(f"{d}/c.npz") as z:
        check(set(z.files) == set(there) == set(made), "npz: names")
        for k, v in made.items():
            same(there[k], np.ascontiguousarray(v), f"npz: our {k}")
            same(z[k], np.ascontiguousarray(v), f"npz: {k} and back")
    for k, v in made.items():
        np.save(f"{d}/a.npy", v)
        lowbit("convert", f"{d}/a.npy", "-o", f"{d}/b.npy")
        same(np.load(f"{d}/b.npy"), np.ascontiguousarray(v), f"npy: {k}")
    # quantized, then dequantized for numpy
    lowbit("quantize", f"{d}/c.npz", "-o", f"{d}/q.safetensors", "--type",
           "nf4", "--include", "^w$")
    lowbit("dequantize", f"{d}/q.safetensors", "-o", f"{d}/d.npz")
    with np.load(f"{d}/d.npz") as z:
        want = native_numpy.load(f"{d}/q.safetensors")["w"]
        same(z["w"], want.astype(z["w"].dtype), "npz: a packed array")


# ---- published weights ------------------------------------------------------

def test_published(d):
    """Real weights in every type, and in every layout that can store it."""
    where = importlib.util.find_spec("silero_vad").submodule_search_locations[0]
    src = next(pathlib.Path(where).rglob("*.safetensors"))
    matrix = f"{d}/matrix.safetensors"  # as a linear layer has it
    with safetensors.safe_open(src, "pt") as f:
        write(matrix, {"lstm.weight": f.get_tensor("lstm_cell.weight_ih")})
    for fmt in TYPES:
        q = f"{d}/q.safetensors"
        lowbit("quantize", src, "-o", q, "--type", fmt, "--include",
               r"conv\d\.weight")  # rows of 3 gain nothing in some
        here, packed = dense(q), native_values(q)
        check(len(packed) >= 6, f"{fmt}: only {list(packed)} are packed")
        for k, w in packed.items():
            same(np.float32(here[k].float()), np.float32(w),
                 f"{fmt}: published {k}")
    for options, decode in ((["nf4"], bnb4), (["nf4", "--double-quant"], bnb4),
                            (["int8"], bnb8)):
        lowbit("quantize", matrix, "-o", q, "--layout", "bnb", "--type",
               *options)
        same(dense(q)["lstm.weight"],
             decode(safetensors.torch.load_file(q), "lstm.weight"),
             f"bnb {options}: published")
    for fmt in BLOCKS:
        out = f"{d}/q.gguf"
        lowbit("quantize", src, "-o", out, "--type", fmt, "--container-only")
        there, here = gguf_values(out), dense(out, "--dtype", "f32")
        for k in there:
            same(here[k].numpy(), there[k], f"gguf {fmt}: published {k}")
    for layout, fmt in (("eformer", "int8"), ("eformer", "nf4"),
                        ("eformer", "ternary"), ("eformer", "binary"),
                        ("bitnet", "ternary")):
        extra = ["--linear-class", "bitlinear"] if layout == "bitnet" else []
        extra += ["--threshold", "absmean"] if layout == "bitnet" else []
        lowbit("quantize", matrix, "-o", q, "--layout", layout, "--type", fmt,
               *extra)
        with safetensors.safe_open(q, "pt") as f:
            check(all(f.get_tensor(k).numel() for k in f.keys()) and f.keys(),
                  f"{layout}: {fmt}")


with tempfile.TemporaryDirectory() as folder:
    for test in (test_bitsandbytes, test_gguf, test_numpy, test_published):
        test(folder)
        done(test.__name__[5:])
