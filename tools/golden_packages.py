"""golden_packages.py - the results of eformer and bitsandbytes, as numpy arrays.

eformer must run without XLA's algebraic simplifier, which would replace its
divisions by products with reciprocals; bitsandbytes without torch.compile.
gen_golden.py sets both before it imports this file.
"""
import bitsandbytes.functional as bnb
import jax
import jax.numpy as jnp
import numpy as np
import torch
from eformer.ops.quantization import Array8B, ArrayNF4, quantize

from golden_text import BF16

# ---- eformer ----------------------------------------------------------------


def eformer_int8(x, axes):
    q = Array8B.quantize(jnp.asarray(x), axis=tuple(axes))
    return tuple(np.asarray(a) for a in (q.weight, q.scale, q.materialize()))


def eformer_nf4(x, block):
    """(packed, absmax, values decoded by the polynomial, in x's shape)."""
    q = ArrayNF4.quantize(jnp.asarray(x), block_size=block)
    v = np.asarray(q.materialize())[..., :x.shape[-1]]
    return np.asarray(q.packed), np.asarray(q.absmax), v


def eformer_poly():
    """The decoded value of each code for absmax 1."""
    packed = jnp.asarray([[[2 * i << 4 | 2 * i + 1 for i in range(8)]]],
                         jnp.uint8)
    q = ArrayNF4(packed=packed, absmax=jnp.ones((1, 1)), block_size=16,
                 shape=(1, 16), dtype=jnp.float32)
    return np.asarray(q.materialize()).reshape(-1)


def eformer_signs(x, fmt):
    """(packed, values); the number of rows of x is a multiple of four."""
    q = quantize(jnp.asarray(x), dtype=fmt)
    return np.asarray(q.weight), np.asarray(q.materialize())


# ---- bitsandbytes -----------------------------------------------------------

def to_torch(x):
    if x.dtype == BF16:
        return torch.from_numpy(x.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(x.copy())


def to_numpy(t):
    if t.dtype == torch.bfloat16:
        return t.contiguous().view(torch.int16).numpy().view(BF16)
    return t.contiguous().numpy()


def bnb_nf4(x, block, double=False):
    """A dict: codes (bytes), values, and absmax or, with double, nested
    (absmax of the absmax), table and offset."""
    packed, state = bnb.quantize_4bit(to_torch(x), blocksize=block,
                                      compress_statistics=double,
                                      quant_type="nf4")
    out = {"codes": to_numpy(packed).reshape(-1),
           "values": to_numpy(bnb.dequantize_4bit(packed,
                                                  state)).reshape(x.shape),
           "absmax": to_numpy(state.absmax).reshape(-1)}
    if double:
        out["nested"] = to_numpy(state.state2.absmax).reshape(-1)
        out["table"] = to_numpy(state.state2.code)
        out["offset"] = to_numpy(state.offset).reshape(-1)
        assert state.state2.blocksize == 256
    return out


def bnb_dynamic8(x, block):
    codes, state = bnb.quantize_blockwise(to_torch(x), blocksize=block)
    return (to_numpy(codes), to_numpy(state.absmax).reshape(-1),
            to_numpy(bnb.dequantize_blockwise(codes, state)))


def bnb_map():
    return to_numpy(bnb.create_dynamic_map())


def bnb_int8(x):
    """(codes, SCB, values), converted to f16 first, as transformers does."""
    a = to_torch(x).to(torch.float16).reshape(-1, x.shape[-1])
    codes, scb, _ = bnb.int8_vectorwise_quant(a)
    values = bnb.int8_vectorwise_dequant(codes, scb)
    return (to_numpy(codes).reshape(x.shape), to_numpy(scb),
            to_numpy(values).reshape(x.shape))


def versions():
    import eformer
    import bitsandbytes
    import ml_dtypes
    import platform
    from importlib.metadata import version
    del eformer
    return {"python": platform.python_version(), "numpy": np.__version__,
            "ml_dtypes": ml_dtypes.__version__, "jax": jax.__version__,
            "jaxlib": version("jaxlib"), "eformer": version("eformer"),
            "torch": torch.__version__,
            "bitsandbytes": bitsandbytes.__version__}
