"""Random and malformed arguments: operators return tensors or raise, and never crash."""

import pytest
import torch

hypothesis = pytest.importorskip("hypothesis")

import json  # noqa: E402

from torch_samples import ENCODED, weight  # noqa: E402
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import lowbit  # noqa: E402
import lowbit.torch as lt  # noqa: E402
from lowbit.torch import _ops, _packed, _state  # noqa: E402

EXPECTED = (lowbit.Error, RuntimeError, ValueError, TypeError, IndexError, KeyError, OverflowError)
quick = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int8,
          torch.int64, torch.uint8, torch.bool, torch.complex64]  # fmt: skip
shapes = st.builds(
    lambda lead, last: [*lead, *last],
    st.lists(st.integers(0, 4), max_size=3),
    st.lists(st.sampled_from([0, 1, 24, 511, 512]), max_size=1),
)
tensors = st.builds(
    lambda shape, dtype, flip: (torch.ones(shape) * 3).to(dtype).mT
    if flip and len(shape) > 1
    else torch.ones(shape).to(dtype),
    shapes,
    st.sampled_from(DTYPES),
    st.booleans(),
)
packs = st.sampled_from(ENCODED).map(lambda f: lt.Packed.from_array(weight(f)))
words = st.one_of(st.sampled_from(["", "highest", "fast", "fastest"]), st.text(max_size=4))


def attempt(call, *args):
    try:
        return call(*args)
    except EXPECTED:
        return None


@quick
@given(packs, tensors, st.one_of(st.none(), tensors), words)
def test_products(packed, x, bias, precision):
    y = attempt(_ops.linear_op, x, packed.parts, bias, packed.spec, precision)
    assert y is None or y.shape == (*x.shape[:-1], 24)
    attempt(_ops.linear_dx_op, x, packed.parts, packed.spec, precision)
    attempt(_ops.embedding_op, x, packed.parts, packed.spec)
    attempt(_ops.ste_linear_op, x, x, bias, '{"format": "int8"}', precision)


@quick
@given(packs, st.lists(tensors, max_size=3), st.randoms(use_true_random=False))
def test_parts(packed, others, random):
    """Parts of other shapes and dtypes, random bytes as parts, and missing parts."""
    parts = [t.clone() for t in packed.parts]
    for t in others:
        parts[random.randrange(len(parts))] = t
    attempt(_packed.array_of, packed.spec, parts)
    parts = [t.clone() for t in packed.parts]
    for t in parts:
        flat = t.view(torch.uint8).flatten()
        for _ in range(20):
            flat[random.randrange(flat.numel())] = random.randrange(256)
    y = attempt(_ops.linear_op, torch.ones(2, 512), parts, None, packed.spec, "")
    assert y is None or y.shape == (2, 24)


pytestmark = pytest.mark.filterwarnings("ignore:Casting complex")
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6))
trees = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


@quick
@given(packs, st.data())
def test_descriptors(packed, data):
    """Any member of a descriptor replaced by anything, at any depth."""
    d = json.loads(packed.spec)
    at = d
    while True:
        key = data.draw(st.sampled_from(sorted(at)))
        if isinstance(at[key], dict) and data.draw(st.booleans()):
            at = at[key]
            continue
        at[key] = data.draw(st.one_of(trees, st.lists(st.integers(0, 600), max_size=3)))
        break
    attempt(_packed.array_of, json.dumps(d), [t.clone() for t in packed.parts])
    attempt(_packed.array_of, json.dumps(d)[: data.draw(st.integers(0, 200))], packed.parts)


@quick
@given(st.sampled_from(["nf4", "int8", "q4_0", "ternary"]), st.data())
def test_states(name, data):
    config = lowbit.QuantizationConfig(name, **({"meaning": "absmax"} if name == "int8" else {}))
    m = lt.Linear(512, 24, False, config)
    state = m.state_dict()
    for _ in range(data.draw(st.integers(1, 3))):
        key = data.draw(st.sampled_from(sorted(state)))
        state[key] = data.draw(tensors)
    if data.draw(st.booleans()):
        mark = next((k for k in state if "bitsandbytes" in k), "weight.lowbit")
        state[mark] = _state._text(
            {**data.draw(st.dictionaries(st.text(max_size=4), trees)), "shape": [24, 512],
             "blocksize": data.draw(scalars), "dtype": "float32"}
        )  # fmt: skip
    attempt(m.load_state_dict, state)
    assert m(torch.ones(1, 512)).shape == (1, 24)


@quick
@given(tensors, st.dictionaries(st.sampled_from(
    ["format", "block_size", "axes", "scale", "compat", "double_quant"]),
    st.one_of(scalars, st.sampled_from([*ENCODED, "row", 32, 64]))))  # fmt: skip
def test_quantize(x, config):
    packed = attempt(lt.quantize, x, config)
    if packed is not None:
        assert lt.dequantize(packed).shape == x.shape
    attempt(_ops.quantize_op, x, json.dumps(config, default=str))
