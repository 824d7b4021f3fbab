#!/usr/bin/env python3
"""Writes model directories as text (tests/text_directory.h): seeds of fuzz_layouts.

    tools/gen_fuzz_layouts.py tests/golden/affine tests/golden/floats \\
        tests/golden/layouts fuzz/corpus/layouts

One for each directory with weights, named after it. Values of each tensor are its
first ones, repeated; of a tensor of at most 64 elements they are all there.
"""

import json
import os
import struct
import sys

WIDTH = {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2,
         "BF16": 2, "I16": 2, "U16": 2}  # fmt: skip
INTEGER = {8: "Q", 4: "I", 2: "H", 1: "B"}


def tensors(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        data = file.read()
    header.pop("__metadata__", None)
    for name, t in sorted(header.items(), key=lambda i: i[1]["data_offsets"]):
        begin, end = t["data_offsets"]
        yield name, t["dtype"], t["shape"], data[begin:end]


def line(name, kind, shape, data):
    width = WIDTH.get(kind, 1)
    few = data[: 64 * width] if len(data) <= 64 * width else data[: 8 * width]
    values = struct.unpack(f"<{len(few) // width}{INTEGER[width]}", few)
    text = f"{name} {kind} {' '.join(map(str, shape))}".rstrip()
    return f"{text} = {' '.join(map(str, values))}\n" if values else text + "\n"


def seed(directory, files):
    text = ""
    for name in "config.json", "quantize_config.json", "quant_config.json":
        path = os.path.join(directory, name)
        if not text and os.path.exists(path):
            with open(path) as file:
                text = (name + "\n" if name != "config.json" else "") + file.read()
    text = text.rstrip("\n") + "\n--\n"
    for weights in files:
        text += "".join(line(*t) for t in tensors(os.path.join(directory, weights)))
    return text


def main():
    *sources, target = sys.argv[1:]
    os.makedirs(target, exist_ok=True)
    for source in sources:
        for directory, _, files in sorted(os.walk(source)):
            seeds = {}  # shards of a model belong together
            for weights in sorted(files):
                if weights.endswith(".safetensors") and weights != "values.safetensors":
                    name = os.path.relpath(directory, source).replace("/", "_")
                    if not weights.startswith("model"):
                        name = weights.removesuffix(".safetensors")
                    seeds.setdefault(name, []).append(weights)
            for name, weights in seeds.items():
                with open(os.path.join(target, name + ".txt"), "w") as file:
                    file.write(seed(directory, weights))


main()
