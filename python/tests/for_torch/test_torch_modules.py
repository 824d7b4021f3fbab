"""Modules: state_dict, copies, dtypes, replacing layers of a model."""

import copy
import io
import pickle

import pytest
import torch
from torch_samples import packed, weight  # noqa: F401

import lowbit
import lowbit.torch as lt


def linear(config="nf4", **options):
    torch.manual_seed(5)
    return lt.Linear.from_linear(torch.nn.Linear(512, 24), config, **options)


def x(rows=3, columns=512):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(2))


def test_every_format(packed):
    """Copies, pickles and states compute the same bits."""
    m = lt.Linear.from_array(packed, torch.ones(24))
    assert (m.in_features, m.out_features, m.format) == (512, 24, packed.format)
    assert f"format={m.format}" in repr(m) and f"bits={m.bits:.4g}" in repr(m)
    assert torch.equal(m.weight, lt.dequantize(packed))
    want = m(x())
    file = io.BytesIO()
    torch.save(m.state_dict(), file)
    file.seek(0)
    other = linear()
    other.load_state_dict(torch.load(file, weights_only=True))
    assert other.format == m.format
    for same in (copy.deepcopy(m), pickle.loads(pickle.dumps(m)), other):
        assert torch.equal(same(x()), want)
        assert same.packed.parts[0].data_ptr() != m.packed.parts[0].data_ptr()


def test_dtypes_leave_the_bytes_alone(packed):
    m = lt.Linear.from_array(packed, torch.ones(24))
    before = [t.clone() for t in m.packed.parts]
    m.to(torch.bfloat16)
    assert m.dtype == m.bias.dtype == m.weight.dtype == torch.bfloat16
    assert all(a.equal(b) and a.dtype == b.dtype for a, b in zip(before, m.packed.parts))
    assert torch.equal(m.weight, lt.dequantize(packed).bfloat16())
    assert m(x().bfloat16()).dtype == torch.bfloat16
    assert m.half().dtype == torch.float16 and m.float().dtype == torch.float32
    assert torch.equal(m.weight, lt.dequantize(packed))


def test_other_devices():
    with pytest.raises(RuntimeError, match="lowbit computes on the CPU"):
        linear()._apply(lambda t: torch.empty(t.shape, device="meta").as_subclass(Elsewhere))
    assert linear().to("meta").packed.parts[0].device.type == "meta"
    m = linear()
    m.share_memory()
    assert m.packed.parts[0].is_shared() and torch.equal(m(x()), linear()(x()))


class Elsewhere(torch.Tensor):
    device = torch.device("cuda:0")


def test_names_of_bitsandbytes():
    assert set(linear("nf4").state_dict()) == {
        "bias", "weight", "weight.absmax", "weight.quant_map",
        "weight.quant_state.bitsandbytes__nf4",
    }  # fmt: skip
    double = linear(lowbit.QuantizationConfig("nf4", double_quant=True)).state_dict()
    assert {"weight.nested_absmax", "weight.nested_quant_map"} < set(double)
    absmax = lowbit.QuantizationConfig("int8", meaning="absmax")
    assert set(linear(absmax).state_dict()) == {"bias", "weight", "SCB", "weight_format"}
    assert set(linear("q4_0").state_dict()) == {"bias", "weight.blocks", "weight.lowbit"}


ROUND = {
    "nf4": {},
    "nf4 double": {"double_quant": True},
    "nf4 block 32": {"block_size": 32},
    "nf4 flat": {"blocks": "flat"},
    "int8 absmax": {"meaning": "absmax"},
    "int8 columns": {"axes": 0},
    "ternary rows": {"scale": "row"},
}


@pytest.mark.parametrize("name", ROUND)
@pytest.mark.parametrize("shape", [(24, 512), (7, 100), (5, 33)])
def test_states(name, shape):
    w = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    packed = lt.quantize(w, name.split()[0], **ROUND[name])
    m, other = lt.Linear.from_array(packed), lt.Linear(shape[1], shape[0], False)
    other.load_state_dict(m.state_dict())
    assert torch.equal(other.weight, m.weight) and other.format == m.format
    assert other.packed.nbytes == packed.nbytes


def test_files(tmp_path):
    """A state loads what lowbit saves, and lowbit opens what a state saves."""
    from_file = pytest.importorskip("safetensors.torch")
    for config in ("nf4", "q4_0", lowbit.QuantizationConfig("int8", meaning="absmax")):
        m = linear(config)
        lowbit.save(tmp_path / "w.safetensors", {"weight": m.packed.array()})
        state = from_file.load_file(tmp_path / "w.safetensors")
        other = linear(config)
        with torch.no_grad():
            other.bias.zero_()
        other.load_state_dict({**state, "bias": m.bias})
        assert torch.equal(other(x()), m(x()))
    m = linear("nf4")
    from_file.save_file(m.state_dict(), tmp_path / "state.safetensors")
    with lowbit.open(tmp_path / "state.safetensors") as f:
        assert f["weight"].format == "nf4"
        assert f["weight"].tobytes() == m.packed.array().tobytes()


def test_float_states_are_quantized():
    torch.manual_seed(1)
    dense, m = torch.nn.Linear(512, 24), linear("int8")
    m.load_state_dict(dense.state_dict())
    assert m.format == "int8"
    assert torch.equal(m.weight, lt.dequantize(lt.quantize(dense.weight, "int8")))


def test_wrong_states():
    m = linear()
    good = m.state_dict()
    mark = "weight.quant_state.bitsandbytes__nf4"
    before = m(x())

    def refused(match, **changes):
        state = {**good, **{k.replace("_at_", "."): v for k, v in changes.items()}}
        with pytest.raises(RuntimeError, match=match):
            m.load_state_dict({k: v for k, v in state.items() if v is not None})
        assert torch.equal(m(x()), before)

    refused("not a JSON object", **{mark: torch.ones(3, dtype=torch.uint8)})
    refused("no valid", **{mark: torch.tensor(list(b"{}"), dtype=torch.uint8)})
    refused("96 elements, not 192", **{"weight.absmax": good["weight.absmax"][:96]})
    refused("bytes of weights", weight=good["weight"][:-1])
    refused("absmax", **{"weight.absmax": None})
    refused("Missing key", **dict.fromkeys(good))
    small = lt.Linear(256, 24).state_dict()
    with pytest.raises(RuntimeError, match=r"weight \(24, 256\), the module \(24, 512\)"):
        m.load_state_dict(small)
    with pytest.raises(RuntimeError, match="no tensor weight.codes"):
        linear("int8").load_state_dict({"weight.scale": torch.ones(24, 1), "bias": m.bias})
    scb = {"weight": torch.ones(24, 512, dtype=torch.int8), "SCB": torch.ones(23)}
    with pytest.raises(RuntimeError, match="SCB has 23 elements"):
        m.load_state_dict({**scb, "bias": m.bias})


def test_autocast():
    m = linear()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert m(x()).dtype == torch.bfloat16


def test_embedding_module():
    torch.manual_seed(0)
    dense = torch.nn.Embedding(50, 64, padding_idx=0)
    m = lt.Embedding.from_embedding(dense, "int8")
    ids = torch.tensor([[0, 3], [49, 3]])
    assert torch.equal(m(ids), m.weight[ids]) and m.padding_idx == 0
    assert torch.equal(lt.Embedding.from_array(m.packed)(ids), m(ids))
    other = lt.Embedding(50, 64, "nf4")
    other.load_state_dict(m.state_dict())
    assert torch.equal(other(ids), m(ids)) and "format=int8" in repr(other)
    with pytest.raises(lowbit.UnsupportedError, match="max_norm=1"):
        lt.Embedding.from_embedding(torch.nn.Embedding(4, 64, max_norm=1.0))


def test_precision():
    assert "precision=fast" in repr(linear(precision="fast"))
    m = linear("int8", precision="fastest")
    assert not torch.equal(m(x()), linear("int8", precision="highest")(x()))
    with pytest.raises(lowbit.ArgumentError, match="'best'"):
        linear(precision="best")
    with lowbit.config(precision="fastest"):
        assert torch.equal(linear("int8")(x()), m(x()))


# ---- whole models


def model():
    torch.manual_seed(0)
    block = lambda: torch.nn.ModuleDict(  # noqa: E731
        {"up": torch.nn.Linear(64, 128), "down": torch.nn.Linear(128, 64)}
    )
    m = torch.nn.Module()
    m.embed = torch.nn.Embedding(100, 64)
    m.layers = torch.nn.ModuleList([block(), block()])
    m.gate = torch.nn.Linear(64, 4)
    m.conv = torch.nn.Conv1d(64, 64, 3)
    m.lm_head = torch.nn.Linear(64, 100, bias=False)
    m.lm_head.weight = m.embed.weight
    return m


def test_replace_linear():
    m = model()
    report = lt.replace_linear(m, "nf4", precision="fast")
    assert report.replaced == [
        f"layers.{i}.{name}" for i in range(2) for name in ("up", "down")
    ]
    assert report.kept == {
        "embed": "an embedding (embeddings=True)",
        "gate": "router",
        "conv": "Conv1d is not a linear",
        "lm_head": "output head",
    }
    assert m.layers[0]["up"].format == "nf4" and m.layers[0]["up"].precision == "fast"
    assert report.after < report.before and "4 of 8 replaced" in str(report)
    assert report[1]["bits"] == 4.5 and report[1]["shape"] == (128, 64)
    again = lt.replace_linear(m, "int8")
    assert not again.replaced and again.kept["layers.0.up"] == "already packed"


def test_patterns():
    m = model()
    report = lt.replace_linear(
        m,
        {r"\.up$": "int8", r"\.1\.down$": "q8_0", "lm_head|embed": "int8"},
        exclude=r"layers\.0\.up",
        include=["layers", "lm_head", "embed"],
    )
    assert report.replaced == ["embed", "layers.1.up", "layers.1.down", "lm_head"]
    assert report.kept["layers.0.up"] == r"excluded by 'layers\\.0\\.up'"
    assert report.kept["layers.0.down"] == "no config for it"
    assert report.kept["gate"] == "not included"
    assert m.layers[1]["down"].format == "q8_0" and isinstance(m.embed, lt.Embedding)
    for options in ({"include": "q_proj"}, {"exclude": ["layers", "q_proj"]}):
        m = model()
        with pytest.raises(lowbit.ArgumentError, match="'q_proj' matches no module"):
            lt.replace_linear(m, "nf4", **options)
        assert isinstance(m.layers[0]["up"], torch.nn.Linear)
    with pytest.raises(lowbit.ArgumentError, match="config='q_proj' matches no"):
        lt.replace_linear(model(), {"q_proj": "nf4"})
    with pytest.raises(lowbit.Error, match="unknown format"):
        lt.replace_linear(model(), "nf5")


def test_load_linear(tmp_path):
    m = model()
    arrays = {
        "layers.0.up.weight": weight("int8", 128, 64),
        "embed.weight": weight("nf4", 100, 64),
        "lm_head.weight": lowbit.ones((100, 64)),
    }
    lowbit.save(tmp_path / "m.safetensors", arrays)
    report = lt.load_linear(m, tmp_path / "m.safetensors", precision="highest")
    assert report.replaced == ["embed", "layers.0.up"]
    assert report.kept["lm_head"] == "the file has floats"
    assert report.kept["gate"] == "the file has no gate.weight"
    y = m.layers[0]["up"](x(3, 64))
    want = lowbit.linear(x(3, 64), arrays["layers.0.up.weight"], m.layers[0]["up"].bias.detach())
    assert torch.equal(y, torch.from_dlpack(want))
    lowbit.save(tmp_path / "m.safetensors", {"gate.weight": weight("int8", 5, 64)})
    with pytest.raises(lowbit.ShapeError, match=r"gate has shape \(4, 64\)"):
        lt.load_linear(model(), tmp_path / "m.safetensors")


CONFIGS = ["nf4", lowbit.QuantizationConfig("nf4", double_quant=True), "int8", "q4_0",
           lowbit.QuantizationConfig("int8", meaning="absmax")]  # fmt: skip


@pytest.mark.parametrize("config", CONFIGS)
def test_states_are_files(config, tmp_path):
    """Writers of safetensors refuse tensors that share memory; load_linear reads the file."""
    save_file = pytest.importorskip("safetensors.torch").save_file
    models = [torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(2))) for _ in "ab"]
    lt.replace_linear(models[0], config)
    state = models[0].state_dict()
    assert len({t.data_ptr() for t in state.values()}) == len(state)
    save_file(state, tmp_path / "model.safetensors")
    report = lt.load_linear(models[1], tmp_path / "model.safetensors")
    assert report.replaced == ["0", "1"]
    for a, b in zip(*models):
        assert torch.equal(a.weight, b.weight) and a.format == b.format
    narrow = torch.nn.Sequential(torch.nn.Linear(64, 32))
    with pytest.raises(lowbit.ShapeError, match="64"):
        lt.load_linear(narrow, tmp_path / "model.safetensors")


@pytest.mark.parametrize("config", CONFIGS)
def test_made_without_memory(config):
    """On the device meta, as frameworks make a model before they load it."""
    with torch.device("meta"):
        m = lt.Linear(64, 32, config=config)
    assert all(t.is_meta for t in (m.bias, *m.packed.parts))
    torch.manual_seed(0)
    whole = lt.Linear(64, 32, config=config)
    m.load_state_dict(whole.state_dict(), assign=True)
    assert torch.equal(m(x(3, 64)), whole(x(3, 64)))
