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

from ._lowbit import __version__ as __version__
from ._lowbit import _from_bytes, _from_parts, _from_view
from .array_api import *
from .array_api import __array_api_version__ as __array_api_version__
from . import array_api as array_api, files as files
from . import _methods as _methods
from ._config import config as config
from ._functions import compile as compile, jit as jit
from ._functions import grad as grad, value_and_grad as value_and_grad
from ._functions import ste as ste, vjp as vjp
from ._optimizers import SGD as SGD, Adam as Adam, AdamW as AdamW
from ._optimizers import schedule_rate as schedule_rate
from ._quantize import QuantizationConfig as QuantizationConfig
from ._quantize import QuantizationType as QuantizationType
from ._quantize import from_codes as from_codes, from_parts as from_parts
from ._quantize import quantize as quantize
from ._quantize import straight_through as straight_through
from .files import File as File, load as load, open as open, save as save
