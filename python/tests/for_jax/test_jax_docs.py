"""The examples of docs/jax.md and of the package's docstrings."""

import devices  # noqa: F401, I001: before jax

import doctest
import re
from pathlib import Path

import pytest

import lowbit.jax
from lowbit.jax import _implicit

ROOT = Path(__file__).parents[3]


def run(text, name):
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    said = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)
    return runner.tries


@pytest.mark.filterwarnings("ignore:.*it is materialized")
def test_tutorial(monkeypatch):
    monkeypatch.setattr(_implicit, "_handlers", {})
    text = (ROOT / "docs" / "jax.md").read_text()
    blocks = re.findall(r"^```pycon\n(.*?)^```", text, re.M | re.S)
    assert run("\n".join(blocks), "jax.md") > 40
    assert not re.findall(r"^```(python|py)$", text, re.M), "use pycon: it runs"


def test_docstring():
    assert run(lowbit.jax.__doc__, "lowbit.jax") > 4
