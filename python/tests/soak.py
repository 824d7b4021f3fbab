"""soak.py SECONDS - eight threads with arrays, contexts, programs and files of their own.

Prints the memory in use after each tenth of the time, and fails if it still grows in the
second half. Run it with the package on PYTHONPATH; with sanitizers also for a short time.
"""

import gc
import pickle
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import lowbit

THREADS = 8
GROWTH = 16 << 20  # bytes: of fragmentation, not of leaks


def arrays(rng, _):
    x = rng.standard_normal((64, 256)).astype("f4")
    q = lowbit.quantize(x, str(rng.choice(["nf4", "int8", "ternary", "q4_0"])))
    y = rng.standard_normal((3, 256)).astype("f4") @ q.T
    assert y.shape == (3, 64)
    assert pickle.loads(pickle.dumps(q.T)).tobytes() == q.T.tobytes()
    assert np.asarray(lowbit.asarray(x)[::2]).tobytes() == x[::2].tobytes()


def errors(rng, _):
    n = int(rng.integers(3, 9))
    try:
        lowbit.zeros((2, n)) @ lowbit.zeros((n + 1, 2))
    except lowbit.ShapeError as e:
        assert str(n) in str(e)
    else:
        raise AssertionError("no error")


def contexts(rng, _):
    with lowbit.config(threads=int(rng.integers(1, 4)), precision="fast"):
        q = lowbit.quantize(lowbit.random_normal(1, (128, 128)), "int8")
        lowbit.softmax(lowbit.random_normal(2, (40, 128)) @ q).tobytes()


def gradients(rng, own):
    if "step" not in own:
        own["p"] = {"w": lowbit.zeros((32, 4)), "b": lowbit.zeros(4)}
        optimizer = lowbit.Adam(own["p"], rate=0.01)

        @lowbit.compile
        def step(p, x):
            value, grads = lowbit.value_and_grad(
                lambda p, x: lowbit.sum((x @ lowbit.straight_through(p["w"], "int8")
                                         + p["b"]) ** 2)
            )(p, x)
            return value, optimizer.step(p, grads)

        own["step"] = step
    x = rng.standard_normal((5, 32)).astype("f4")
    _, own["p"] = own["step"](own["p"], x)


def files(rng, own):
    path = own["dir"] / f"{rng.integers(3)}.{rng.choice(['safetensors', 'npz'])}"
    x = rng.standard_normal((16, 64)).astype("f4")
    lowbit.save(path, {"x": x, "y": lowbit.array(x[0])})
    with lowbit.open(path) as f:
        assert f.get_slice("x")[3:5].tobytes() == x[3:5].tobytes()


def work(seed, until, own, failed):
    rng = np.random.default_rng(seed)
    try:
        while time.monotonic() < until and not failed:
            (arrays, errors, contexts, gradients, files)[rng.integers(5)](rng, own)
            own["count"] = own.get("count", 0) + 1
    except BaseException as e:
        failed.append(e)
        raise


def resident():
    gc.collect()
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4096


def main():
    seconds = float(sys.argv[1])
    begin = time.monotonic()
    failed, sizes = [], []
    with tempfile.TemporaryDirectory() as d:
        own = [{"dir": Path(d) / str(k)} for k in range(THREADS)]
        for o in own:
            o["dir"].mkdir()
        threads = [
            threading.Thread(target=work, args=(k, begin + seconds, own[k], failed))
            for k in range(THREADS)
        ]
        for t in threads:
            t.start()
        for k in range(10):
            time.sleep(max(0, begin + seconds * (k + 1) / 10 - time.monotonic()))
            sizes.append(resident())
        for t in threads:
            t.join()
    count = sum(o.get("count", 0) for o in own)
    print(f"{count} rounds, MB: {' '.join(str(s >> 20) for s in sizes)}")
    if failed:
        sys.exit(f"soak: {failed[0]!r}")
    if max(sizes[5:]) > max(sizes[:5]) + GROWTH:
        sys.exit("soak: memory grows")


main()
