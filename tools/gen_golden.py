#!/usr/bin/env python3
"""gen_golden.py - writes the golden files of the formats, tests/golden/*.txt.

From other implementations: numpy by the definitions, eformer and bitsandbytes on a
CPU, jax for the primitives (golden_*.py in this directory; golden_text.py
describes the files). In a temporary virtual environment:

    python3 -m venv v
    v/bin/pip install numpy ml_dtypes 'jax==0.10.*' plum-dispatch==2.3.2 chex \\
        optax ml-collections mergedeep tblib pyyaml contextlib2 jaxtyping \\
        braceexpand fsspec tensorstore safetensors tqdm psutil msgpack \\
        torch bitsandbytes
    v/bin/pip install --no-deps eformer==0.0.101
    v/bin/python tools/gen_golden.py

torch for CPUs is sufficient. The CPU must support fused multiply-add: without it,
eformer's polynomial has other bits.
"""
import os
import sys

sys.dont_write_bytecode = True
os.environ["XLA_FLAGS"] = "--xla_disable_hlo_passes=algsimp"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TORCHDYNAMO_DISABLE"] = "1"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import golden_codecs as codecs  # noqa: E402
import golden_packages as packages  # noqa: E402
import golden_prims as prims  # noqa: E402
from golden_inputs import make_inputs, make_large  # noqa: E402
from golden_text import Golden  # noqa: E402

MADE = "made by tools/gen_golden.py; tools/golden_text.py describes the format"
INPUTS = "golden_inputs.txt - the arrays that the golden cases quantize,"
NATIVE = "codec_native.txt - numpy in f32 by the definitions of the formats,"
EFORMER = """codec_eformer.txt - eformer with XLA's algebraic simplifier off, except
that subnormals are kept and int8 codes clamped to -127,"""
BNB_CPU = "codec_bnb_cpu.txt - bitsandbytes on a CPU,"
BNB_CUDA = """codec_bnb_cuda.txt - numpy in f32 with the formulas and thresholds
of bitsandbytes on a GPU,"""


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "..", "tests", "golden")
    versions = packages.versions()

    def begin(head):
        path = os.path.join(folder, head.split()[0])
        return Golden(path, head + "\n" + MADE, versions)

    inputs, large = make_inputs(), make_large()
    files = {k: begin(h) for k, h in (
        ("inputs", INPUTS), ("native", NATIVE), ("eformer", EFORMER),
        ("bnb-cpu", BNB_CPU), ("bnb-cuda", BNB_CUDA))}
    for name, (_, x) in (inputs | large).items():
        files["inputs"].input(name, x)
    files["inputs"].input("dynamic_map", codecs.MAP)
    for compat in ("native", "eformer"):
        codecs.int8_cases(files[compat], inputs, compat)
        codecs.nf4_cases(files[compat], inputs, compat)
        for fmt in ("ternary", "binary"):
            codecs.sign_cases(files[compat], inputs, fmt, compat)
    codecs.int8_block_cases(files["native"], inputs)
    codecs.dynamic8_cases(files["native"], inputs)
    codecs.read_cases(files["native"])
    for compat in ("bnb-cpu", "bnb-cuda"):
        codecs.bnb_cases(files[compat], inputs, large, compat)
    files["prims"] = begin(prims.HEAD)
    prims.all_calls(files["prims"])
    for f in files.values():
        f.write()
        print(f"{os.path.getsize(f.path):8d} {f.cases:4d} cases  "
              f"{os.path.basename(f.path)}")
    for what, n in sorted(codecs.COUNTS.items()):
        print(f"{n:8d} {what}")


if __name__ == "__main__":
    main()
