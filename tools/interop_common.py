"""interop_common.py - shared by the programs of the interop suite."""
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
    """Run the command with -q."""
    words = [str(w) for w in words]
    r = subprocess.run([LOWBIT, *words, "-q", "--no-sync", "--force"],
                       capture_output=True, text=True)
    check(r.returncode == 0, f"lowbit {' '.join(words)}: {r.stderr}")


def done(what):
    print(f"interop: {what}: {CHECKS} checks so far", flush=True)


def ggml_type(fmt):
    """The package's name of a format."""
    return gguf.GGMLQuantizationType[fmt.removeprefix("gguf_").upper()]


def native_values(path):
    """Decodes layout native with numpy, and GGUF types also with gguf."""
    made = native_numpy.load(path)
    with safetensors.safe_open(path, "numpy") as f:
        meta = {k[7:]: json.loads(v) for k, v in f.metadata().items()
                if k.startswith("lowbit.")}
        blocks = {k: f.get_tensor(f"{k}.blocks") for k in meta
                  if "blocks" in meta[k]["parts"]}
    for k, b in blocks.items():
        kind = ggml_type(meta[k]["format"])
        w = gguf.quants.dequantize(b.reshape(*b.shape[:-2], -1), kind)
        w = native_numpy.rounded(w[..., :made[k].shape[-1]], meta[k]["dtype"])
        check(w.tobytes() == made[k].tobytes(), f"{path}: {k} is not gguf's")
    return {k: made[k] for k in meta}
