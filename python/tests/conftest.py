"""Shared by the tests: samples of arrays."""

import importlib.util
import os

import numpy as np
import pytest

import lowbit

collect_ignore = [] if importlib.util.find_spec("torch") else ["for_torch"]
# Threads of torch that spin would slow down all tests on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

FORMATS = [name for name in lowbit.formats() if lowbit.can_quantize(name)]


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture(params=["dense", *FORMATS])
def matrix(request, rng):
    """A matrix in each format, which all formats can store."""
    w = lowbit.array(rng.standard_normal((6, 512)).astype("f4"))
    return w if request.param == "dense" else lowbit.quantize(w, request.param)
