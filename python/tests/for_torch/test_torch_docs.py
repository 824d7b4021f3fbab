"""The examples of docs/torch.md and of the docstrings of lowbit.torch."""

import re

import torch
from test_docs import ROOT, run

import lowbit
import lowbit.torch


def test_tutorial(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "torch.md").read_text()
    blocks = re.findall(r"^```pycon\n(.*?)^```", text, re.M | re.S)
    assert run("\n".join(blocks), "torch.md", {}) > 30
    assert not re.findall(r"^```(python|py)$", text, re.M), "use pycon: it runs"


def test_docstrings():
    names = {**vars(lowbit.torch), "lowbit": lowbit, "torch": torch}
    public = [v for n, v in vars(lowbit.torch).items() if not n.startswith("_")]
    documented = [lowbit.torch, *(v for v in public if callable(v))]
    assert len(documented) == 12 and all(v.__doc__ for v in documented)
    tried = sum(
        run(v.__doc__, getattr(v, "__name__", "lowbit.torch"), dict(names))
        for v in documented
        if ">>>" in v.__doc__
    )
    assert tried > 8
