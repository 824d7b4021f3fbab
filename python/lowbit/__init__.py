"""Quantized arrays: values stored in 8, 4, 2 or 1 bits.

>>> import lowbit
>>> w = lowbit.random_normal(0, (256, 64))
>>> q = lowbit.quantize(w, "nf4")
>>> q.format, q.nbytes
('nf4', 9216)
>>> x = lowbit.random_normal(1, (8, 256))
>>> (x @ q).shape
(8, 64)

Arrays are immutable and work with Python's operators, numpy's indices, and numpy's
arrays as operands. See docs/python.md for a tutorial.
"""

from ._lowbit import *
from ._lowbit import __version__
from ._lowbit import _from_bytes, _from_parts
from ._config import config
from ._functions import (
    compile,
    jit,
    grad,
    ste,
    value_and_grad,
    vjp,
)
from ._optimizers import SGD, Adam, AdamW, schedule_rate
from ._quantize import (
    QuantizationConfig,
    QuantizationType,
    from_codes,
    from_parts,
    quantize,
    straight_through,
)
from .array_api import *
from .array_api import __array_api_version__
from . import files
from .files import load, open, save
