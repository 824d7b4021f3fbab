"""The examples of docs/python.md and of docstrings."""

import doctest
import re
from pathlib import Path

import pytest

import lowbit
from lowbit import array_api, files

ROOT = Path(__file__).parents[2]


def run(examples, name, globs):
    test = doctest.DocTestParser().get_doctest(examples, globs, name, None, 0)
    said = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)
    return runner.tries


def test_tutorial(tmp_path, monkeypatch):
    pytest.importorskip("numpy")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "python.md").read_text()
    blocks = re.findall(r"^```pycon\n(.*?)^```", text, re.M | re.S)
    assert run("\n".join(blocks), "python.md", {}) > 30
    assert not re.findall(r"^```(python|py)$", text, re.M), "use pycon: it runs"


def documented():
    for module in (lowbit, array_api, files):
        yield module.__name__, module
        for name in dir(module):
            value = getattr(module, name)
            if not name.startswith("_") and callable(value):
                yield f"{module.__name__}.{name}", value
    for kind in (lowbit.SGD, files.File, lowbit.Array):
        for name in dir(kind):
            if not name.startswith("_"):
                yield f"{kind.__name__}.{name}", getattr(kind, name)


def test_docstrings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    w = lowbit.ones((4, 8))
    tried = 0
    for name, value in documented():
        doc = getattr(value, "__doc__", None)
        if not doc or ">>>" not in doc:
            continue
        for old in tmp_path.glob("*"):
            old.unlink()
        lowbit.save("model.safetensors", {"w": w, "b": lowbit.ones(8)})
        module = files if name.startswith("lowbit.files") else lowbit
        paths = {k: f"{k}.safetensors" for k in ("model", "small", "half")}
        tried += run(doc, name, {**vars(module), "lowbit": lowbit, **paths})
    assert tried > 25
