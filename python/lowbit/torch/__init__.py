"""lowbit.torch: linears and embeddings with packed weights for PyTorch on CPUs.

>>> import torch, lowbit.torch
>>> linear = lowbit.torch.Linear.from_linear(torch.nn.Linear(256, 64), "nf4")
>>> linear(torch.ones(2, 256)).shape
torch.Size([2, 64])

Products run on the packed bytes, forward and backward. The operators are custom ones of
torch (torch.ops.lowbit), so autograd and torch.compile know them. See docs/torch.md.
"""

try:
    import torch as _torch
except ImportError as e:
    raise ImportError(
        "lowbit.torch needs PyTorch 2.4 or later, which cannot be imported: "
        f"{e} (pip install torch)"
    ) from e
if not hasattr(_torch.library, "register_autograd"):
    raise ImportError(f"lowbit.torch needs PyTorch 2.4 or later, not {_torch.__version__}")

from ._modules import Embedding as Embedding, Linear as Linear
from ._modules import StraightThroughLinear as StraightThroughLinear
from ._ops import dequantize as dequantize, embedding as embedding
from ._ops import linear as linear, quantize as quantize
from ._packed import Packed as Packed
from ._replace import Report as Report, load_linear as load_linear
from ._replace import replace_linear as replace_linear
