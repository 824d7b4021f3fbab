"""Quantized arrays in JAX: products in jitted functions run on packed bytes.

>>> import jax, jax.numpy as jnp
>>> from lowbit.jax import quantize
>>> w = jax.random.normal(jax.random.key(0), (256, 128))
>>> q = quantize(w, "nf4")
>>> q.shape, q.nbytes
((256, 128), 18432)
>>> y = jax.jit(lambda x, q: x @ q)(jnp.ones((8, 256)), q)
>>> y.shape
(8, 128)

The names are those of eformer's modules ops.quantization and jaximus. See docs/jax.md.
"""

try:
    import jax as _jax
except ImportError as error:
    raise ImportError(
        "lowbit.jax needs jax, which is not installed: pip install 'jax>=0.10'"
    ) from error

if not hasattr(_jax, "ffi") or _jax.version.__version_info__ < (0, 10):
    raise ImportError(f"lowbit.jax needs jax 0.10 or later, not {_jax.__version__}")

from ._arrays import Array1B as Array1B
from ._arrays import Array8B as Array8B
from ._arrays import ArrayNF4 as ArrayNF4
from ._arrays import QuantizedArray as QuantizedArray
from ._functions import dequantize_int8 as dequantize_int8
from ._functions import dequantize_nf4 as dequantize_nf4
from ._functions import get_nf4 as get_nf4
from ._functions import i4tou4 as i4tou4, i8tou8 as i8tou8, u4toi4 as u4toi4
from ._functions import is_kernel_available as is_kernel_available
from ._functions import matmul_bf16_int8_weight_only as matmul_bf16_int8_weight_only
from ._functions import nf4_use_kernel as nf4_use_kernel
from ._functions import nf4xf32_to_f32 as nf4xf32_to_f32
from ._functions import pack_weights_1bit as pack_weights_1bit
from ._functions import quantize_and_pack_nf4 as quantize_and_pack_nf4
from ._functions import quantize_int8 as quantize_int8
from ._functions import safe_delete as safe_delete
from ._functions import safe_materialize as safe_materialize
from ._functions import single_dequantize_nf4 as single_dequantize_nf4
from ._functions import single_quantize_and_pack_nf4 as single_quantize_and_pack_nf4
from ._functions import unpack_weights_1bit as unpack_weights_1bit
from ._implicit import ImplicitArray as ImplicitArray
from ._implicit import OrginArray as OrginArray
from ._implicit import UninitializedAval as UninitializedAval
from ._implicit import aux_field as aux_field
from ._implicit import is_array as is_array
from ._implicit import register as register
from ._interpreter import implicit as implicit, use_implicit as use_implicit
from ._quantize import QuantizationConfig as QuantizationConfig
from ._quantize import QuantizationType as QuantizationType
from ._quantize import quantize as quantize
from ._quantize import ste as ste
from ._quantize import straight_through as straight_through
from ._quantize import straight_through_1bit as straight_through_1bit
from ._quantize import straight_through_8bit as straight_through_8bit
from ._quantize import straight_through_nf4 as straight_through_nf4
from ._rules import dot_general as dot_general
