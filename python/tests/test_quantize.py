"""quantize and its relatives with eformer's signatures."""

import enum

import numpy as np
import pytest
from conftest import FORMATS

import lowbit
from lowbit import QuantizationConfig, QuantizationType


@pytest.fixture
def w(rng):
    return rng.standard_normal((8, 512)).astype("f4")


def same(a, b):
    return a.format == b.format and a.tobytes() == b.tobytes() and a.nbytes == b.nbytes


def test_signatures(w):
    q = lowbit.quantize(w, "nf4", block_size=32)
    assert q.config["block_size"] == 32
    for other in (
        lowbit.quantize(w, QuantizationConfig("nf4", 32)),
        lowbit.quantize(w, QuantizationConfig(QuantizationType.NF4, block_size=32)),
        lowbit.quantize(w, dtype=QuantizationType.NF4, block_size=32),
        lowbit.quantize(w, q.config),
        lowbit.quantize(w, {"format": "nf4", "block_size": 32}),
        lowbit.quantize(lowbit.array(w), "nf4", block_size=32),
    ):
        assert same(q, other)
    assert lowbit.quantize(w).format == "nf4"


def test_eformers_own_classes(w):
    class Type(enum.Enum):
        INT8 = "int8"

    class Config:
        dtype, block_size, simulate, use_kernel = Type.INT8, None, False, True

    assert same(lowbit.quantize(w, Config()), lowbit.quantize(w, "int8"))
    assert same(lowbit.quantize(w, dtype=Type.INT8), lowbit.quantize(w, "int8"))


def test_options(w):
    dense = lowbit.quantize(w, "int8", simulate=True)
    assert dense.format == "dense"
    assert dense.tobytes() == lowbit.quantize(w, "int8").tobytes()
    assert lowbit.quantize(w, "int8", axes=0).parts["scale"].shape == (1, 512)
    assert lowbit.quantize(w, "int8", axes=(0, 1)).parts["scale"].shape == (1, 1)
    assert lowbit.quantize(w, "ternary", scale="row").config["scale"] == "row"
    assert lowbit.quantize(w, "ternary", compat="eformer").dtype == lowbit.int8
    assert lowbit.straight_through(w, "ternary", compat="eformer").dtype.kind == "f"
    assert lowbit.quantize(w, "nf4", materialize="bfloat16").dtype == "bfloat16"
    assert lowbit.quantize(w, "nf4", use_kernel=False).config["reference"]
    assert lowbit.quantize(w, "nf4", double_quant=True).parts["absmax"].format != "dense"


def test_errors(w):
    with pytest.raises(lowbit.ArgumentError, match="nf5.*nf4"):
        lowbit.quantize(w, "nf5")
    with pytest.raises(lowbit.ArgumentError, match="blocksize"):
        lowbit.quantize(w, "nf4", blocksize=3)
    with pytest.raises(lowbit.ArgumentError, match="native, eformer"):
        lowbit.quantize(w, "nf4", compat="other")
    with pytest.raises(lowbit.ArgumentError, match="INT4"):
        QuantizationType("INT4")
    with pytest.raises(lowbit.DtypeError):
        lowbit.quantize([1, 2, 3])
    bad = w.copy()
    bad[3, 5] = np.nan
    with pytest.raises(lowbit.Error, match=r"3,5|1541"):
        lowbit.quantize(bad)
    assert lowbit.quantize(bad, on_nonfinite="clamp")[3, 5].item() == 0


def test_config_class():
    c = QuantizationConfig("int8", axes=0, compat="eformer")
    assert eval(repr(c)) == c != QuantizationConfig("int8")
    assert c.dtype == QuantizationType.INT8 == "int8" == QuantizationType.INT8.value
    assert QuantizationConfig().block_size is None


@pytest.mark.parametrize("name", FORMATS)
def test_parts_make_the_array_again(name, w):
    q = lowbit.quantize(w, name)
    again = lowbit.from_parts(q.config, q.shape, q.parts)
    assert same(q, again)
    assert lowbit.component(q, next(iter(q.parts))).shape is not None
    with pytest.raises(lowbit.ArgumentError, match="no part"):
        lowbit.component(q, "other")


def test_codes():
    q = lowbit.from_codes({"format": "int8"}, [[1, -2], [3, 127]], [[0.5], [2.0]])
    assert q.tolist() == [[0.5, -1.0], [6.0, 254.0]]
    assert lowbit.codes(q).tolist() == [[1, -2], [3, 127]]
    with pytest.raises(lowbit.ArgumentError, match="5"):
        lowbit.from_codes({"format": "ternary", "scale": "none"}, [[5]])


def test_eformers_layout(w):
    q = lowbit.quantize(w, "nf4", compat="eformer")
    parts = {name: lowbit.export(q, "eformer", name) for name in ("packed", "absmax")}
    assert parts["packed"].shape == (8, 8, 32)
    again = lowbit.from_parts(q.config, w.shape, parts, "eformer")
    assert same(q, again)


def test_kernels():
    assert isinstance(lowbit.is_kernel_available(), bool)
    assert not lowbit.is_kernel_available("no such format")
    assert lowbit.can_quantize("nf4") and not lowbit.can_quantize("q4_k")


@pytest.mark.parametrize("name", FORMATS)
def test_products_are_near_those_of_decoded_values(name, w, rng):
    q = lowbit.quantize(w, name)
    x = rng.standard_normal((3, 512)).astype("f4")
    want = x.astype("f8") @ np.asarray(q, "f8").T
    for precision, bound in (("highest", 1e-5), ("fast", 1e-3), ("fastest", 3e-2)):
        with lowbit.config(precision=precision):
            y = np.asarray(x @ q.T, "f8")
        assert np.linalg.norm(y - want) <= bound * np.linalg.norm(want)
        y = np.asarray(lowbit.linear(x, q, precision=precision), "f8")
        assert np.linalg.norm(y - want) <= bound * np.linalg.norm(want)
