"""golden_inputs.py - inputs of golden cases: named arrays of f32, f16 and bf16, of
every rank up to 4, with contents that are difficult for codecs."""
import numpy as np

from golden_text import BF16, DTYPES

NF4 = np.array([
    0xbf800000, 0xbf3239b1, 0xbf066b30, 0xbeca32a0, 0xbe91a24d, 0xbe3d353f,
    0xbdba7871, 0x00000000, 0x3da2faff, 0x3e24cae3, 0x3e7c04dd, 0x3ead033a,
    0x3ee1a4b8, 0x3f1007ab, 0x3f3913b3, 0x3f800000], np.uint32).view(np.float32)


def normal(rng, shape):
    return rng.standard_normal(shape).astype(np.float32)


def weights(rng, shape):
    return np.float32(0.02) * normal(rng, shape)


def heavy(rng, shape):
    """A few elements are up to a thousand times larger than most."""
    x = normal(rng, shape)
    return x * np.exp2(rng.geometric(0.4, shape).clip(1, 11) - 1).astype("f4")


def ties(rng, shape):
    """Every row has absmax 127/8, so that k/16 is halfway between codes."""
    k = rng.integers(-253, 254, shape)
    x = (k.astype(np.float32) / 16).reshape(shape)
    if x.size:
        x.reshape(-1, x.shape[-1])[:, 0] = 127 / 8
    return x


def levels(rng, shape):
    """Blocks of 64: 1, then around each boundary between two codes of nf4 the
    f32 numbers next to it, times a power of two."""
    mid = (NF4[:-1].astype(np.float64) + NF4[1:]) / 2
    at = mid.astype(np.float32).view(np.int32)
    near = np.stack([(at + d).view(np.float32) for d in (-1, 0, 1, 2)], 1)
    block = np.concatenate([[np.float32(1)], near.reshape(-1), NF4[[3, 8, 0]]])
    n = int(np.prod(shape))
    many = np.tile(block, -(-n // 64)).reshape(-1, 64)
    many *= np.exp2(np.arange(len(many)) % 5 - 2).astype(np.float32)[:, None]
    return many.reshape(-1)[:n].reshape(shape).astype(np.float32)


def zeros(rng, shape):
    """Zeros of both signs; every other run of 32 has other values."""
    x = normal(rng, shape).reshape(-1)
    i = np.arange(x.size)
    x[i // 32 % 2 == 0] = 0
    x[(i // 32 % 2 == 0) & (i % 3 == 0)] = -0.0
    return x.reshape(shape)


def nothing(rng, shape):
    x = np.zeros(shape, np.float32)
    x.reshape(-1)[::2] = -0.0
    return x


def one(rng, shape):
    x = np.zeros(shape, np.float32)
    x.reshape(-1)[x.size // 3] = -3.25
    return x


def subnormal(rng, shape):
    """The largest value of a group is subnormal, but far from the smallest one."""
    x = (normal(rng, shape) * np.float32(1e-39)).reshape(-1)
    x[::16] = np.where(x[::16] < 0, -1, 1) * np.float32(4e-39)
    return x.reshape(shape)


def subnormal16(rng, shape):
    """The same for f16, whose smallest normal number is 6.1e-5."""
    x = (normal(rng, shape) * np.float32(1e-5)).reshape(-1)
    x[::16] = np.where(x[::16] < 0, -1, 1) * np.float32(4e-5)
    return x.reshape(shape)


def tiny(rng, shape):
    """Normal numbers whose quotients by 127 may be subnormal."""
    return normal(rng, shape) * np.float32(1e-36)


def huge(rng, shape):
    return (normal(rng, shape) * np.float32(3e37)).clip(-3e38, 3e38)


def huge16(rng, shape):
    return (normal(rng, shape) * np.float32(20000)).clip(-65504, 65504)


def mantissa(rng, shape):
    """Each row has another of the 128 mantissas of bf16 as absmax: some scales,
    absmax / 127, round down so far that quotients reach -127.5."""
    x = normal(rng, shape).clip(-0.99, 0.99)
    x[:, 0] = -1 - np.arange(shape[0]) / 128
    return x


def quotients(rng, shape):
    """Blocks of 32 for nf4. Most values get another code if they are multiplied
    by 1/absmax instead of divided by absmax."""
    x = normal(rng, shape).clip(-0.4, 0.4)
    mid = ((NF4[:-1] + NF4[1:]) / 2)
    for i in range(x.size):
        if i % 32 == 0:
            x[i] = most = np.float32(rng.uniform(0.5, 1))
            inverse = np.float32(1) / most
            continue
        for m in rng.permutation(mid):
            at = (m * most).view(np.int32) + rng.permutation(9) - 4
            near = at.astype(np.int32).view(np.float32)
            found = near[np.searchsorted(mid, near / most)
                         != np.searchsorted(mid, near * inverse)]
            if len(found):
                x[i] = found[0]
                break
    return x


SHAPES = [(), (1,), (7,), (64,), (100,), (257,), (3, 100), (4, 64), (5, 33),
          (8, 30), (1, 1), (2, 3, 20), (4, 1, 9), (2, 2, 3, 10), (4, 3, 1, 6)]
EMPTY = [(0,), (3, 0), (0, 5), (2, 0, 4)]
KINDS = {
    normal: SHAPES + EMPTY, weights: [(3, 100), (4, 2, 20)],
    heavy: [(130,), (4, 70)], ties: [(4, 33), (64,)], levels: [(192,), (4, 50)],
    zeros: [(4, 96), (67,)], nothing: [(4, 9), (1,)], one: [(4, 50), (5,)],
    subnormal: [(4, 40), (35,)], tiny: [(4, 40)], huge: [(4, 40)],
    mantissa: [(128, 3)], quotients: [(116,), (57,)],
}
ONLY16 = {subnormal: subnormal16, huge: huge16}


def make_inputs():
    """{name: (kind, array)}, names such as heavy_4x70_bf16."""
    out = {}
    for d, dtype in DTYPES.items():
        if d not in ("f32", "f16", "bf16"):
            continue
        for k, (kind, shapes) in enumerate(KINDS.items()):
            if (d == "f16" and kind is tiny
                    or d != "bf16" and kind is mantissa
                    or d != "f32" and kind is quotients):
                continue
            make = ONLY16.get(kind, kind) if d == "f16" else kind
            for s, shape in enumerate(shapes):
                rng = np.random.default_rng([1, k, s, dtype(0).itemsize,
                                             dtype is BF16])
                word = "x".join(map(str, shape)) or "scalar"
                x = make(rng, shape)
                out[f"{kind.__name__}_{word}_{d}"] = (kind.__name__,
                                                      x.astype(dtype))
    for shape in [(3, 21), (2, 2, 17)]:  # f64 is rounded to f32 first
        rng = np.random.default_rng([2, *shape])
        word = "x".join(map(str, shape))
        out[f"normal_{word}_f64"] = ("normal", rng.standard_normal(shape))
    return out


def make_large():
    """For blocks of up to 4096 values, and more than 256 of them."""
    out = {}
    for d, shape in (("bf16", (83, 101)), ("f16", (4400,)), ("f32", (2100,))):
        rng = np.random.default_rng([3, *shape])
        word = "x".join(map(str, shape))
        x = weights(rng, shape).astype(DTYPES[d])
        out[f"weights_{word}_{d}"] = ("weights", x)
    return out
