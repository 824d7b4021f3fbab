"""Files: open, load, save, and the verbs of the command as functions."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from conftest import FORMATS

import lowbit
from lowbit import files


@pytest.fixture
def arrays(rng):
    return {
        "w": rng.standard_normal((64, 512)).astype("f4"),
        "h": rng.standard_normal((4, 6)).astype("f2"),
        "i": np.arange(7),
        "scalar": np.float32(3),
        "empty": np.zeros((0, 5), "f4"),
    }


@pytest.fixture
def model(tmp_path, arrays):
    path = tmp_path / "model.safetensors"
    lowbit.save(path, arrays, metadata={"by": "tests"})
    return path


@pytest.mark.parametrize("kind", ["safetensors", "npz"])
def test_round_trip(tmp_path, arrays, kind):
    path = tmp_path / f"a.{kind}"
    lowbit.save(path, arrays)
    again = lowbit.load(path)
    assert set(again) == set(arrays)
    for name, x in arrays.items():
        assert np.array_equal(np.asarray(again[name]), x)
        assert again[name].dtype == x.dtype and again[name].shape == x.shape
    if kind == "npz":
        with np.load(path) as f:
            assert np.array_equal(f["w"], arrays["w"])


def test_numpy_and_gguf(tmp_path, arrays):
    lowbit.save(tmp_path / "w.npy", {"w": arrays["w"]})
    assert np.array_equal(np.load(tmp_path / "w.npy"), arrays["w"])
    q = lowbit.quantize(arrays["w"], "q4_0")
    meta = {
        "general.name": "x",
        "n": -3,
        "f": 0.5,
        "yes": True,
        "list": ["a", "b"],
        "ns": [1, 2],
    }
    lowbit.save(tmp_path / "w.gguf", {"w": q}, metadata=meta)
    with lowbit.open(tmp_path / "w.gguf") as f:
        assert f.kind == "gguf" and f["w"].format == "q4_0"
        assert {k: f.metadata()[k] for k in meta} == meta
        assert f["w"].tobytes() == q.tobytes()
    with pytest.raises(TypeError, match="several types"):
        lowbit.save(tmp_path / "bad.gguf", {}, metadata={"a": [1, "x"]})


@pytest.mark.parametrize("format", FORMATS)
def test_formats(tmp_path, arrays, format):
    q = lowbit.quantize(arrays["w"], format)
    path = tmp_path / "q.safetensors"
    lowbit.save(path, {"w": q})
    with lowbit.open(path) as f:
        assert f["w"].format == format and f["w"].tobytes() == q.tobytes()
        assert f.entry("w")["format"] == format
        for key in (
            3,
            slice(2, 40, 5),
            (..., slice(256, 512)),
            (slice(None, None, -1), 7),
        ):
            want = np.asarray(q)[key]
            assert np.array_equal(np.asarray(f.get_slice("w")[key]), want)
    assert lowbit.files.can_save(q)


def test_open(model, arrays):
    with lowbit.open(str(model), framework="np") as f:
        assert f.kind == "safetensors" and len(f) == 5
        assert set(f.keys()) == set(arrays) == set(f) and "w" in f and "x" not in f
        assert f.metadata() == {"by": "tests"} and f.method() is None
        assert f.get_tensor("w").tobytes() == f["w"].tobytes() == arrays["w"].tobytes()
        assert f.get("x") is None and dict(f.items())["scalar"].item() == 3
        s = f.get_slice("w")
        assert s.get_shape() == [64, 512] and s.get_dtype() == "F32"
        for key in (
            0,
            -1,
            slice(None),
            (slice(3, 9), slice(1, 70, 3)),
            (..., 5),
            [1, 2],
            None,
            (slice(9, 3, -2), 0),
            slice(4, 4),
        ):
            assert np.array_equal(np.asarray(s[key]), arrays["w"][key])
        with pytest.raises(IndexError):
            s[64]
        with pytest.raises(KeyError):
            f["x"]
        with pytest.raises(KeyError):
            f.get_slice("x")
        w = f["w"]
    assert w.tobytes() == arrays["w"].tobytes()
    with pytest.raises(ValueError, match="closed"):
        f.keys()
    f.close()


def test_slices_read_no_more_than_needed(model):
    with lowbit.open(model, map=False) as f:
        before = f.bytes_read
        f.get_slice("w")[10:12]
        assert f.bytes_read - before == 2 * 512 * 4


def test_errors(tmp_path, model):
    with pytest.raises(lowbit.FileError) as caught:
        lowbit.open(tmp_path / "missing")
    assert isinstance(caught.value, OSError)
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(model.read_bytes()[:200])
    with pytest.raises(lowbit.ContentError):
        lowbit.open(bad)
    with pytest.raises(lowbit.Error, match="nope"):
        lowbit.load(model, "nope")
    with pytest.raises(TypeError):
        lowbit.save(tmp_path / "x", {1: lowbit.zeros(2)})
    with pytest.raises(lowbit.FileError):
        lowbit.save(tmp_path / "no" / "such" / "x.safetensors", {"a": lowbit.zeros(2)})
    assert not (tmp_path / "x").exists()


def test_shards(tmp_path, arrays):
    lowbit.save(tmp_path / "dir", {k: arrays[k] for k in "wh"}, max_shard_size=1000)
    assert (tmp_path / "dir" / "model.safetensors.index.json").exists()
    assert np.array_equal(np.asarray(lowbit.load(tmp_path / "dir", "w")), arrays["w"])


def test_quantize(tmp_path, model, arrays):
    out = tmp_path / "q.safetensors"
    seen = []
    r = files.quantize(model, out, "int8", axes=1, progress=lambda *a: seen.append(a))
    rows = {row["name"]: row for row in r["arrays"]}
    assert rows["w"]["output_format"] == "int8" and rows["i"]["kept"]
    want = lowbit.quantize(arrays["w"], "int8", axes=1)
    assert lowbit.load(out, "w").tobytes() == want.tobytes()
    error = np.linalg.norm(np.asarray(want) - arrays["w"]) / np.linalg.norm(arrays["w"])
    assert abs(r["nrmse"] - error) < 1e-6 and abs(rows["w"]["nrmse"] - error) < 1e-6
    assert seen and seen[-1][0] == seen[-1][1]
    assert r["output_bytes"] < r["source_bytes"] and json.dumps(r)
    with pytest.raises(FileExistsError):
        files.quantize(model, out)
    files.quantize(model, out, force=True)
    assert lowbit.load(out, "w").format == "nf4"


def test_quantize_selects(tmp_path, model):
    r = files.quantize(model, dry_run=True, exclude="w", include=["h"])
    assert {a["name"]: a["kept"] is None for a in r["arrays"]}["h"] and r[
        "output"
    ] is None
    r = files.quantize(model, dry_run=True, override=["w=ternary:scale=row"])
    assert {a["name"]: a["output_format"] for a in r["arrays"]}["w"] == "ternary"
    with pytest.warns(UserWarning, match="nothing_like_it"):
        files.quantize(model, dry_run=True, exclude="nothing_like_it")
    with pytest.raises(lowbit.Error):
        files.quantize(model, dry_run=True, exclude="(")
    with pytest.raises(lowbit.ArgumentError, match="output"):
        files.quantize(model)


def test_target(tmp_path, model):
    r = files.quantize(
        model, tmp_path / "q.safetensors", target_bpw=6.5, types=["nf4", "int8"]
    )
    assert r["output_bytes"] * 8 <= 6.5 * r["parameters"] + 8 * 2000


def test_callbacks_stop_a_job(tmp_path, rng):
    model, out = tmp_path / "model.safetensors", tmp_path / "q.safetensors"
    w = rng.standard_normal((1024, 1024)).astype("f4")
    lowbit.save(model, {f"w{k}": w for k in range(8)})

    def stop(done, total):
        if done > total / 2:
            raise KeyError("stop")

    with pytest.raises(KeyError):
        files.quantize(model, out, progress=stop)
    assert not out.exists() and (tmp_path / "q.safetensors.partial").exists()
    files.quantize(model, out, resume=True)
    files.quantize(model, tmp_path / "again.safetensors")
    assert out.read_bytes() == (tmp_path / "again.safetensors").read_bytes()


def test_save_takes_a_dict(tmp_path):
    x = lowbit.zeros((100, 100))
    for arrays in (x, [x], "x"):
        with pytest.raises(TypeError, match=f"a dict .* not {type(arrays).__name__}$"):
            lowbit.save(tmp_path / "x.safetensors", arrays)
    with pytest.raises(TypeError, match="not str$"):
        lowbit.save({"x": x}, str(tmp_path / "x.safetensors"))
    assert not os.listdir(tmp_path)


KILLED = """
import resource, signal, sys
import lowbit
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
lowbit.save(sys.argv[1], {"w": lowbit.zeros((1000, 1000)), "v": lowbit.ones(9)})
"""


@pytest.mark.parametrize("kind", ["safetensors", "gguf", "npz"])
@pytest.mark.parametrize("limit", [0, 10, 100_000, 3_999_999])
def test_killed_save(tmp_path, kind, limit):
    """Nothing is left, where the file system supports files without a name."""
    path = tmp_path / f"x.{kind}"
    try:
        os.close(os.open(tmp_path, os.O_TMPFILE | os.O_RDWR))
        left = []
    except OSError:
        left = [f"{path.name}.partial"]
    for old in (False, True):
        if old:
            lowbit.save(path, {"old": lowbit.ones(3)})
        r = subprocess.run([sys.executable, "-c", KILLED, path, str(limit)])
        assert r.returncode == -signal.SIGXFSZ
        assert sorted(os.listdir(tmp_path)) == [path.name] * old + left
        if old:
            assert lowbit.load(path)["old"].tolist() == [1, 1, 1]
    lowbit.save(path, {"new": lowbit.zeros(3)})
    assert os.listdir(tmp_path) == [path.name]
    assert list(lowbit.load(path)) == ["new"]


def test_convert_and_dequantize(tmp_path, model, arrays):
    r = files.convert(model, tmp_path / "h.safetensors", dtype="float16")
    assert {a["name"]: a["output_dtype"] for a in r["arrays"]}["w"] == "f16"
    files.quantize(model, tmp_path / "q.safetensors", "int8")
    files.convert(tmp_path / "q.safetensors", tmp_path / "q.npz", keep=False)
    assert np.load(tmp_path / "q.npz")["w"].shape == (64, 512)
    files.dequantize(tmp_path / "q.safetensors", tmp_path / "d.safetensors")
    q, d = (lowbit.load(tmp_path / f"{n}.safetensors", "w") for n in "qd")
    assert (q.format, d.format) == ("int8", "dense") and q.tobytes() == d.tobytes()


def test_convert_to_another_type(tmp_path, model):
    q, to = tmp_path / "q.safetensors", tmp_path / "to.safetensors"
    files.quantize(model, q, "q4_0")
    r = files.convert(q, to, to="q8_0")
    assert {a["name"]: a["moved"] for a in r["arrays"]}["w"] == "moved"
    assert lowbit.load(to, "w").tobytes() == lowbit.load(q, "w").tobytes()
    with pytest.raises(lowbit.DeniedError, match="cannot be moved to nf4"):
        files.convert(q, to, to="nf4", force=True)
    files.convert(q, to, to="nf4", allow="requantize", force=True)
    assert lowbit.load(to, "w").format == "nf4"
    with pytest.raises(lowbit.ArgumentError, match="allow is 'all', not exact"):
        files.convert(q, to, to="nf4", allow="all")


def test_info_check_stats_diff(tmp_path, model, arrays):
    i = files.info(model)
    assert i["parameters"] == 64 * 512 + 24 + 7 + 1 and i["metadata"] == {"by": "tests"}
    assert files.check(model)["invalid"] == 0
    bad = dict(arrays, w=arrays["w"].copy())
    bad["w"][3, 4] = np.nan
    lowbit.save(tmp_path / "bad.safetensors", bad)
    c = files.check(tmp_path / "bad.safetensors")
    assert c["invalid"] == 1 and c["values"] == i["parameters"]
    s = {a["name"]: a for a in files.stats(model)["arrays"]}
    assert s["w"]["min"] == arrays["w"].min() and s["w"]["max"] == arrays["w"].max()
    np.testing.assert_allclose(s["w"]["mean"], arrays["w"].mean(), atol=1e-6)
    np.testing.assert_allclose(s["w"]["std"], arrays["w"].std(), rtol=1e-5)
    assert sum(s["w"]["histogram"]["counts"]) == arrays["w"].size
    assert s["empty"]["min"] is None
    same = files.diff(model, model)
    assert same["differ"] == 0 and same["nrmse"] == 0 and same["compared"] == 5
    files.quantize(model, tmp_path / "q.safetensors", "int8", axes=1)
    d = files.diff(model, tmp_path / "q.safetensors", tolerance=0.1)
    assert d["differ"] == 0 and 0 < d["nrmse"] < 0.1
    lowbit.save(tmp_path / "one.safetensors", {"w": arrays["w"][:3], "new": arrays["i"]})
    d = files.diff(model, tmp_path / "one.safetensors")
    rows = {a["name"]: a for a in d["arrays"]}
    assert rows["w"]["message"] == "different shapes" and rows["new"]["in"] == "second"
    assert d["compared"] == 0 and d["differ"] == 6


def test_pieces(monkeypatch, tmp_path, model, arrays):
    want = files.check(model), files.stats(model), files.diff(model, model)
    monkeypatch.setattr(files, "_PIECE", 8 * 512 * 10)
    assert files.check(model) == want[0] and files.diff(model, model) == want[2]
    for a, b in zip(files.stats(model)["arrays"], want[1]["arrays"]):
        assert a["min"] == b["min"] and a["histogram"] == b["histogram"]
    files.quantize(model, tmp_path / "q.safetensors", "nf4")
    assert files.diff(model, tmp_path / "q.safetensors", tolerance=0.2)["differ"] == 0
    rows = {a["name"]: a for a in files.stats(tmp_path / "q.safetensors")["arrays"]}
    assert sum(rows["w"]["codes"]["counts"]) == 64 * 512 and rows["h"]["codes"] is None


def test_shard_and_merge(tmp_path, model):
    r = files.shard(model, tmp_path / "s", "tp=2", ["^w$=P(tp, None)"])
    assert {a["name"]: a["rule"] for a in r["arrays"]}["w"] == "^w$"
    files.merge(tmp_path / "s", tmp_path / "m.safetensors")
    assert (tmp_path / "m.safetensors").read_bytes() == model.read_bytes()


def run(*words):
    path = os.pathsep.join(p for p in sys.path if p)
    return subprocess.run(
        [sys.executable, "-m", "lowbit", *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


def test_command(tmp_path, model):
    assert run("--version").stdout == f"lowbit {lowbit.__version__}\n"
    assert run("info").returncode == 2
    assert run("info", tmp_path / "none").returncode == 1
    assert (
        run(
            "quantize", model, "-o", tmp_path / "c.safetensors", "--type", "nf4"
        ).returncode
        == 0
    )
    files.quantize(model, tmp_path / "p.safetensors", "nf4")
    assert (tmp_path / "c.safetensors").read_bytes() == (
        tmp_path / "p.safetensors"
    ).read_bytes()


@pytest.mark.parametrize("verb", ["info", "check", "stats", "diff"])
def test_reports_are_those_of_the_command(verb, tmp_path, model):
    files.quantize(model, tmp_path / "q.safetensors", "int8", axes=1)
    paths = [str(tmp_path / "q.safetensors")]
    if verb == "diff":
        paths.insert(0, str(model))
    theirs = json.loads(run(verb, "--json", *paths).stdout)
    ours = json.loads(json.dumps(getattr(files, verb)(*paths)))
    assert len(ours["arrays"]) == len(theirs["arrays"])
    for a, b in zip([ours, *ours["arrays"]], [theirs, *theirs["arrays"]]):
        for key in a.keys() & b.keys() - {
            "arrays",
            "histogram",
            "codes",
            "metadata",
            "second",
        }:
            if isinstance(a[key], float):
                assert a[key] == pytest.approx(b[key], rel=1e-5, abs=1e-6), key
            elif key not in ("tolerance", "differ", "differs"):
                assert a[key] == b[key], key
        # Of arrays, ours always have these members, the command's only in info.
        assert a.keys() - {"layout", "tensors"} <= b.keys()
