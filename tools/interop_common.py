"""interop_common.py - what the interop suite's programs share."""
import json
import os
import subprocess
import sys

import gguf
import safetensors

import native_numpy

LOWBIT = os.environ.get("LOWBIT", "build/lowbit")
CHECKS = 0


def check(ok, what):
    global CHECKS
    CHECKS += 1
    if not ok:
        sys.exit(f"interop: {what}")


def lowbit(*words):
    """Runs the command, without talk."""
    words = [str(w) for w in words]
    r = subprocess.run([LOWBIT, *words, "-q", "--no-sync", "--force"],
                       capture_output=True, text=True)
    check(r.returncode == 0, f"lowbit {' '.join(words)}: {r.stderr}")


def done(what):
    print(f"interop: {what}: {CHECKS} checks so far", flush=True)


def native_values(path, name):
    """An array of our own layout, by numpy, and of GGUF's types by gguf."""
    with safetensors.safe_open(path, "numpy") as f:
        d = json.loads(f.metadata()[f"lowbit.{name}"])
        if "blocks" not in d["parts"]:
            return native_numpy.load(path, name)[name]
        blocks = f.get_tensor(f"{name}.blocks")
    kind = gguf.GGMLQuantizationType[d["format"].upper()]
    w = gguf.quants.dequantize(blocks.reshape(*blocks.shape[:-2], -1), kind)
    return native_numpy.rounded(w[..., :d["shape"][-1]], d["dtype"])
