#!/usr/bin/env python3
"""gen_llama_golden.py - a small Llama with random weights, and what a reference in
numpy and double precision computes with it. Needs numpy and a built lowbit.

    python3 tools/gen_llama_golden.py build/lowbit

writes tests/golden/llama/model.safetensors and tests/golden/llama/expected.txt: the
prompt, then a line for each format with its name, the mean negative log-likelihood of
the prompt, and the greedy continuation. lowbit quantizes and decodes the weights
(other tests compare its codecs with the original ones); the reference computes with
them independently.

    python3 tools/gen_llama_golden.py --bench LAYERS WIDE HEADS KV_HEADS HIDDEN \\
        VOCABULARY DIR

writes DIR/model.safetensors, and DIR/model.bin and DIR/tokenizer.bin for llama2.c:
random weights for measuring speed. llama2.c rotates adjacent elements instead of
halves, so it generates another text.
"""

import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

THETA, EPS = 1e4, 1e-5
FORMATS = ["int8", "nf4", "ternary", "binary", "dynamic8", "q8_0", "q4_0", "iq4_nl"]


def names(layers):
    for i in range(layers):
        for name in ("input_layernorm", "self_attn.q_proj", "self_attn.k_proj",
                     "self_attn.v_proj", "self_attn.o_proj",
                     "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj",
                     "mlp.down_proj"):
            yield f"model.layers.{i}.{name}.weight"


def random_model(rng, layers, wide, heads, kv_heads, hidden, vocabulary):
    kv = wide // heads * kv_heads
    shape = {"q_proj": (wide, wide), "k_proj": (kv, wide), "v_proj": (kv, wide),
             "o_proj": (wide, wide), "gate_proj": (hidden, wide),
             "up_proj": (hidden, wide), "down_proj": (wide, hidden)}

    def matrix(rows, columns):
        return rng.standard_normal((rows, columns)) / np.sqrt(columns)

    w = {"model.embed_tokens.weight": rng.standard_normal((vocabulary, wide))}
    for name in names(layers):
        key = name.split(".")[-2]
        w[name] = (matrix(*shape[key]) if key in shape
                   else 1 + 0.1 * rng.standard_normal(wide))
    w["model.norm.weight"] = 1 + 0.1 * rng.standard_normal(wide)
    w["lm_head.weight"] = 2 * matrix(vocabulary, wide)
    return {name: a.astype(np.float32) for name, a in w.items()}


def write(path, weights):
    header, at = {}, 0
    for name, a in weights.items():
        header[name] = {"dtype": "F32", "shape": a.shape,
                        "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for a in weights.values():
            f.write(a.tobytes())


def read(path):
    data = Path(path).read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    header.pop("__metadata__", None)
    for name, e in header.items():
        lo, hi = e["data_offsets"]
        a = np.frombuffer(data[8 + n + lo:8 + n + hi], np.float32)
        yield name, a.reshape(e["shape"]).astype(np.float64)


def norm(x, w):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * w


def rotate(x):
    """x: (positions, heads, size), the halves of each head rotated against each
    other."""
    t, _, d = x.shape
    angle = np.arange(t)[:, None, None] * THETA ** (-2 * np.arange(d // 2) / d)
    a, b = x[..., :d // 2], x[..., d // 2:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle),
                           b * np.cos(angle) + a * np.sin(angle)], -1)


def logits(w, tokens, layers, heads):
    x = w["model.embed_tokens.weight"][tokens]
    t = len(tokens)
    for i in range(layers):
        def at(name, i=i):
            return w[f"model.layers.{i}.{name}.weight"]

        h = norm(x, at("input_layernorm"))
        q, k, v = (h @ at(f"self_attn.{n}_proj").T for n in "qkv")
        size = q.shape[1] // heads
        q = rotate(q.reshape(t, heads, size))
        k, v = rotate(k.reshape(t, -1, size)), v.reshape(t, -1, size)
        k, v = (np.repeat(a, heads // a.shape[1], 1) for a in (k, v))
        s = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(size)
        s = np.where(np.tri(t, dtype=bool), s, -np.inf)
        s = np.exp(s - s.max(-1, keepdims=True))
        s /= s.sum(-1, keepdims=True)
        h = np.einsum("hqk,khd->qhd", s, v).reshape(t, -1)
        x = x + h @ at("self_attn.o_proj").T
        h = norm(x, at("post_attention_layernorm"))
        gate, up = h @ at("mlp.gate_proj").T, h @ at("mlp.up_proj").T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ at("mlp.down_proj").T
    return norm(x, w["model.norm.weight"]) @ w["lm_head.weight"].T


def expected(w, prompt, n, layers, heads):
    y = logits(w, prompt, layers, heads)[:-1]
    nll = (np.log(np.exp(y).sum(-1)) - y[np.arange(len(y)), prompt[1:]]).mean()
    tokens = list(prompt)
    margin = np.inf
    for _ in range(n):
        y = logits(w, tokens, layers, heads)[-1]
        first, second = np.sort(y)[:-3:-1]
        margin = min(margin, first - second)
        tokens.append(int(y.argmax()))
    # Rounding must not decide which token is next.
    assert margin > 1e-3, margin
    return f"{nll:.6f} " + " ".join(map(str, tokens[len(prompt):]))


def golden(lowbit):
    sizes = {"layers": 2, "wide": 32, "heads": 4, "kv_heads": 2, "hidden": 96,
             "vocabulary": 64}
    rng = np.random.default_rng(2)
    weights = random_model(rng, **sizes)
    prompt = [int(t) for t in rng.integers(0, sizes["vocabulary"], 20)]
    to = Path(__file__).parent.parent / "tests/golden/llama"
    to.mkdir(exist_ok=True)
    write(to / "model.safetensors", weights)
    lines = ["prompt 0 " + " ".join(map(str, prompt))]
    with tempfile.TemporaryDirectory() as tmp:
        for format in ["dense", *FORMATS]:
            file = to / "model.safetensors"
            if format != "dense":
                kind = ["--layout", "native"]
                if format in ("q8_0", "q4_0", "iq4_nl"):
                    kind = ["--container-only"]
                packed = f"{tmp}/{format}." + ("gguf" if "_" in format
                                               else "safetensors")
                file = f"{tmp}/{format}-decoded.safetensors"
                subprocess.run([lowbit, "quantize", to / "model.safetensors", "-o",
                                packed, "--type", format, "--include",
                                "proj|embed_tokens|lm_head", "-q", *kind], check=True)
                subprocess.run([lowbit, "dequantize", packed, "-o", file, "-q",
                                "--dtype", "f32"], check=True)
            w = dict(read(file))
            assert len(w) == len(weights)
            assert all(a.shape == weights[k].shape for k, a in w.items())
            lines.append(f"{format} " + expected(w, prompt, 24, sizes["layers"],
                                                 sizes["heads"]))
    (to / "expected.txt").write_text("\n".join(lines) + "\n")


def bench(layers, wide, heads, kv_heads, hidden, vocabulary, to):
    w = random_model(np.random.default_rng(1), layers, wide, heads, kv_heads, hidden,
                     vocabulary)
    Path(to).mkdir(parents=True, exist_ok=True)
    write(f"{to}/model.safetensors", w)
    groups = ["input_layernorm", "self_attn.q_proj", "self_attn.k_proj",
              "self_attn.v_proj", "self_attn.o_proj", "post_attention_layernorm",
              "mlp.gate_proj", "mlp.down_proj", "mlp.up_proj"]
    with open(f"{to}/model.bin", "wb") as f:  # a negative size: lm_head of its own
        f.write(struct.pack("<7i", wide, hidden, layers, heads, kv_heads, -vocabulary,
                            512))
        f.write(w["model.embed_tokens.weight"].tobytes())
        for name in groups:
            for i in range(layers):
                f.write(w[f"model.layers.{i}.{name}.weight"].tobytes())
        f.write(w["model.norm.weight"].tobytes())
        f.write(bytes(512 * wide // heads * 4))  # tables that are no longer used
        f.write(w["lm_head.weight"].tobytes())
    with open(f"{to}/tokenizer.bin", "wb") as f:
        f.write(struct.pack("<i", 8))
        for i in range(vocabulary):
            text = b"t%d " % i
            f.write(struct.pack("<fi", 0.0, len(text)) + text)


if __name__ == "__main__":
    if len(sys.argv) == 9 and sys.argv[1] == "--bench":
        bench(*map(int, sys.argv[2:8]), sys.argv[8])
    elif len(sys.argv) == 2:
        golden(sys.argv[1])
    else:
        sys.exit(__doc__)
