"""The code examples of eformer's documentation run with lowbit.jax in their import lines.

They are read from the docstrings and the README of the installed package
(tools/jax_requirements.txt installs it without its dependencies; it is not imported). A
name that an example uses without defining it is given by NAMES.
"""

import devices  # noqa: F401, I001: before jax

import ast
import importlib.metadata
import re
import textwrap
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from lowbit.jax import ArrayNF4, _implicit

MODULES = [
    "jaximus/__init__.py",
    "jaximus/_imus.py",
    "ops/quantization/__init__.py",
    "ops/quantization/_config.py",
    "ops/quantization/implicit_array_1bit.py",
    "ops/quantization/implicit_array_8bit.py",
    "ops/quantization/implicit_array_nf4.py",
    "ops/quantization/quantization_functions.py",
]
# How many examples a version of eformer has in these files, and in the README about them.
COUNTS = {"0.0.101": (31, 1)}

# Examples that cannot run, with eformer neither: the class that they define lacks a method
# that they call.
INCOMPLETE = {"jaximus._imus.ImplicitArray.0": "has no attribute 'quantize'"}


def package():
    try:
        distribution = importlib.metadata.distribution("eformer")
    except importlib.metadata.PackageNotFoundError:
        return None, None
    return distribution, Path(str(distribution.locate_file("eformer")))


DISTRIBUTION, ROOT = package()


def documented(path):
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "name", "module"), text


def sources(text):
    """The code of a docstring: lines with prompts as one program, and fenced blocks."""
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        yield textwrap.dedent(block)
    fenced = re.sub(r"```.*?```", "", text, flags=re.S)
    # Each "Example" heading begins a new program.
    for part in re.split(r"^Example", fenced, flags=re.M):
        lines = re.findall(r"^ *(?:>>>|\.\.\.)(?: (.*)|)$", part, re.M)
        if lines:
            yield "\n".join(lines)


def examples():
    if ROOT is None:
        return
    for module in MODULES:
        for name, text in documented(ROOT / module):
            for i, source in enumerate(sources(text)):
                where = module.replace(".py", "").replace("/", ".")
                yield pytest.param(source, id=f"{where}.{name}.{i}")


def readme():
    if DISTRIBUTION is None:
        return
    text = DISTRIBUTION.metadata.get_payload()
    for i, block in enumerate(re.findall(r"```python\n(.*?)```", text, re.S)):
        if "eformer.ops.quantization" in block or "eformer.jaximus" in block:
            yield pytest.param(block, id=f"README.{i}")


def changed(source):
    """With the import lines changed, and nothing else."""
    modules = r"from eformer\.(?:jaximus|ops\.quantization)(?:\.\w+)* import"
    source = re.sub(modules, "from lowbit.jax import", source)
    assert "eformer" not in source
    return source


def names():
    """What examples use without defining it."""
    from lowbit import jax as lowbit_jax

    weights = jax.random.normal(jax.random.key(0), (128, 256))

    class Numpy:
        """jax.numpy, with a function that an example takes for one of its own."""

        def __getattr__(self, name):
            return getattr(jnp, name)

        def randn(self, *shape):
            return jax.random.normal(jax.random.key(0), shape)

    return {
        **{name: getattr(lowbit_jax, name) for name in
           ("ArrayNF4", "ImplicitArray", "QuantizationConfig", "QuantizationType",
            "implicit", "quantize", "register", "straight_through", "ste",
            "use_implicit", "i8tou8", "u4toi4", "i4tou4", "quantize_int8",
            "dequantize_int8", "single_quantize_and_pack_nf4", "single_dequantize_nf4",
            "quantize_and_pack_nf4", "dequantize_nf4", "nf4_use_kernel")},
        "jax": jax,
        "jnp": Numpy(),
        "weights": weights,
        "weight_fp32": weights,
        "fp32_weights": weights,
        "inputs": jnp.ones((32, 128)),
        "input": jnp.ones((32, 128)),
        "targets": jnp.zeros((32, 256)),
        "nf4_weight": ArrayNF4.quantize(weights),
        "nf4_weights": ArrayNF4.quantize(weights),
        "quantized_weight": ArrayNF4.quantize(weights),
        "dense": jnp.ones((256, 128)),
        "array": weights,
        "nf4_kernel": lambda x, packed, absmax: x @ ArrayNF4(packed, absmax),
        "nf4_transpose_kernel": lambda x, packed, absmax: ArrayNF4(packed, absmax) @ x,
        "optimized_quantized_kernel": lambda x, w: x @ w.materialize(),
        "optimized_nf4_add": lambda x, y: x.materialize() + y.materialize(),
        "dequantize": lambda data, scale, block: data * scale,
        "packed": ArrayNF4.quantize(weights).packed,
        "absmax": ArrayNF4.quantize(weights).absmax,
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*it is materialized")
@pytest.mark.parametrize("source", [*examples(), *readme()])
def test_example(source, monkeypatch, request):
    monkeypatch.setattr(_implicit, "_handlers", {})  # examples register some
    code = compile(changed(source), "example", "exec")
    reason = INCOMPLETE.get(request.node.callspec.id)
    if reason is None:
        exec(code, names())
        return
    with pytest.raises(AttributeError, match=reason):
        exec(code, names())


def test_all_are_found():
    if ROOT is None:
        pytest.skip("eformer is not installed")
    found = len(list(examples())), len(list(readme()))
    assert COUNTS.get(DISTRIBUTION.version, found) == found


@pytest.mark.parametrize("format", ["nf4", "int8", "ternary", "binary"])
def test_power(format, capsys):
    from lowbit.jax import implicit, quantize

    q = quantize(jax.random.normal(jax.random.key(0), (256, 64), "f2"), format)
    squares = jax.jit(implicit(lambda x: x**2))(q)
    assert jnp.array_equal(squares, q.materialize() ** 2)
    print(q)
    assert type(q).__name__ in capsys.readouterr().out
