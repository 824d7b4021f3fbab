"""Imported before jax by every test here: skips them without it, and asks for eight host
devices, which the tests of sharding need."""

import os

import pytest

os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
).strip()
os.environ.setdefault("JAX_PLATFORMS", "cpu")

jax = pytest.importorskip("jax", reason="jax is not installed")
# Most of a test's time is compilation.
jax.config.update("jax_disable_most_optimizations", True)
