"""eformer's conformance cases of QuantizationConfig, quantize and straight_through.

Verdicts are those of tools/conformance. Known bugs of eformer are corrected: the shape is not
padded to whole blocks; scalars, empty arrays and any number of rows are accepted; the error
about an unknown type lists the known ones.
"""

import math
import re

import numpy as np
import pytest
from test_conformance import MANIFEST, read, values

import lowbit
from lowbit import QuantizationConfig, QuantizationType

CASES = [case for case in MANIFEST["cases"] if "calls" in case]
CALLS = [(case, call) for case in CASES for call in case["calls"]]


def parse(text, x):
    """The function, the array and the arguments by name of a call, which is Python but for
    remarks and the names of two arrays. A config is used, too: eformer accepts some that it
    refuses then."""
    text = text.partition("  [")[0].replace(" as string", "")
    text = re.sub(r"('\w+') as enum", r"QuantizationType(\1)", text)
    text = text.replace("bf16 x", "x.astype('bfloat16')")
    text = text.replace("int32 array", "x.astype('int32')")
    if text.startswith("QuantizationConfig"):
        text = f"quantize(x, config={text})"
    names = {
        "x": x,
        "zeros": lambda *shape: lowbit.zeros(shape),
        "QuantizationConfig": QuantizationConfig,
        "QuantizationType": QuantizationType,
        "quantize": lambda x, **words: (lowbit.quantize, x, words),
        "straight_through": lambda x, **words: (lowbit.straight_through, x, words),
    }
    return eval(text, names)


def is_excused(x, config):
    """Whether eformer refuses a valid call."""
    rows = config.dtype in ("ternary", "binary") and x.ndim and x.shape[0] % 4
    valid = x.dtype.kind == "f" and (config.block_size is None or config.block_size > 0)
    return valid and (x.ndim == 0 or x.size == 0 or rows)


def check_refused(call, config, types):
    with pytest.raises((lowbit.Error, TypeError)) as error:
        call()
    if config.dtype in lowbit.formats():  # eformer's, or one that only lowbit has
        return
    assert isinstance(error.value, ValueError)
    assert all(t in str(error.value) for t in types)


def check_result(got, x, config, result, packed):
    """packed: lowbit's straight_through returns the packed array, which eformer decodes."""
    options = {**config.as_dict(), "compat": "eformer", "simulate": False}
    quantized = lowbit.quantize(x, {**options, "dtype": got.dtype})
    dense = result.get("class") == "dense" and not packed
    assert got.format == ("dense" if dense else config.dtype)
    codes = config.dtype in ("ternary", "binary")
    assert got.dtype == result.get("dtype", lowbit.int8 if codes else x.dtype)
    np.testing.assert_array_equal(values(got), values(quantized))
    want = list(x.shape)
    if config.dtype == "nf4" and x.ndim:
        block = 2 * lowbit.export(quantized, "eformer", "packed").shape[-1]
        assert result.get("block_size", block) == block
        want[-1] = math.ceil(want[-1] / block) * block
    assert got.shape == x.shape and result.get("shape", want) == want
    if "axis" in result:
        scale = [1 if k - x.ndim in result["axis"] else n for k, n in enumerate(x.shape)]
        assert quantized.parts["scale"].shape == tuple(scale)


@pytest.mark.parametrize(
    "case, call", CALLS, ids=[f"{case['id']}-{call['call']}" for case, call in CALLS]
)
def test_calls(case, call):
    function, x, words = parse(call["call"], read(case["inputs"]["x"]))
    config = words.get("config") or QuantizationConfig(
        words.get("dtype", "nf4"), words.get("block_size"), words.get("simulate", False)
    )
    types = case["params"]["types"]

    def made():
        return function(x, compat="eformer", **words)

    refused = "exception" in call and not is_excused(x, config)
    if refused or config.dtype not in types:
        check_refused(made, config, types)
        return
    packed = function is lowbit.straight_through and not config.simulate
    result = call.get("result", {})
    if result.get("class") == "QuantizationConfig":
        result = {}
    check_result(made(), x, config, result, packed)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_defaults(case):
    x, want = read(case["inputs"]["x"]), case["params"]["defaults"]
    config, q = QuantizationConfig(), lowbit.quantize(x)
    have = {name: str(getattr(config, name)) for name in want}
    assert {**have, "block_size": str(q.config["block_size"])} == want
    assert q.format == want["dtype"]
    for t in case["params"]["types"]:
        assert QuantizationType(t).value == t
        assert lowbit.quantize(x, QuantizationType(t)).format == t
