#!/usr/bin/env python3
"""gen_python_stubs.py [--check] - writes _lowbit.pyi and array_api.pyi in python/lowbit.

Functions of the table python/src/py_calls.def get their signatures from it, the rest of
the extension is python/src/stubs.pyi. array_api.pyi has the signatures of array_api.py,
which hides names of builtins that a type checker would need. With --check, fails if a file
is not up to date.
"""

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1] / "python"
TYPES = {
    "a": "ArrayLike",
    "k": "ArrayLike",
    "n": "ArrayLike | None",
    "A": "Axes",
    "s": "Shape",
    "i": "_int",
    "f": "_float",
    "b": "_bool",
    "d": "DTypeLike",
    "r": "Key",
}


def stub(name, signature, kinds):
    kinds = iter(kinds)
    words = []
    for word in signature.split(", "):
        if word not in "/*":
            parameter, _, default = word.partition("=")
            kind = TYPES[next(kinds)]
            if default == "None" and kind == "DTypeLike":
                kind += " | None"
            word = f"{parameter}: {kind}" + (f" = {default}" if default else "")
        words.append(word)
    return f"def {name}({', '.join(words)}) -> Array: ..."


def extension():
    table = (ROOT / "src" / "py_calls.def").read_text()
    rows = re.findall(r'^CALL\((\w+), "([^"]*)", "(\w+)"', table, re.M)
    text = (ROOT / "src" / "stubs.pyi").read_text()
    text += "\n# ---- generated from py_calls.def by tools/gen_python_stubs.py\n\n"
    return text + "\n".join(stub(*row) for row in rows) + "\n"


class Hidden(ast.NodeTransformer):
    """Names of builtins as stubs.pyi has them."""

    def visit_Name(self, node):
        names = {"bool_": "_bool", "int_": "_int", "float_": "_float"}
        return ast.Name(names.get(node.id, node.id))


def array_api(exported):
    tree = ast.parse((ROOT / "lowbit" / "array_api.py").read_text())
    own = {"finfo", "iinfo"}
    lines = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.returns:
            own.add(node.name)
            node.body = [ast.Expr(ast.Constant(...))]
            node = Hidden().visit(node)
            lines.append(ast.unparse(node).replace(":\n    ...", ": ..."))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            name = ast.unparse(node.targets[0])
            if name.isalpha():
                own.add(name)
                lines.append(f"def {name}(x: Array, /) -> Array: ...")
    names = re.findall(r"^(?:def|class) ([a-zA-Z]\w*)", exported, re.M)
    names += re.findall(r"^(\w+): DType$", exported, re.M)
    imported = sorted(set(names) - own - {"File", "Optimizer", "Program"})
    return f"""# Generated from array_api.py by tools/gen_python_stubs.py.

from builtins import bool as _bool, float as _float, int as _int
from collections.abc import Sequence
from typing import Any

from ._lowbit import ArrayLike, Axes, DTypeLike, Shape
from ._lowbit import (
    {", ".join(f"{name} as {name}" for name in imported)},
)

__array_api_version__: str
pi: _float
e: _float
inf: _float
nan: _float
newaxis: None

class finfo:
    def __init__(self, type: DType | Array, /) -> None: ...
    dtype: DType
    bits: _int
    eps: _float
    max: _float
    min: _float
    smallest_normal: _float

class iinfo:
    def __init__(self, type: DType | Array, /) -> None: ...
    dtype: DType
    bits: _int
    max: _int
    min: _int

class _Info:
    def capabilities(self) -> dict[str, Any]: ...
    def default_device(self) -> str: ...
    def default_dtypes(self, *, device: object = None) -> dict[str, DType | None]: ...
    def devices(self) -> list[str]: ...
    def dtypes(
        self, *, device: object = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]: ...

""" + "\n".join(lines) + "\n"


def main():
    stubs = {"_lowbit.pyi": extension()}
    stubs["array_api.pyi"] = array_api(stubs["_lowbit.pyi"])
    for name, text in stubs.items():
        to = ROOT / "lowbit" / name
        if sys.argv[1:] != ["--check"]:
            to.write_text(text)
        elif not to.exists() or to.read_text() != text:
            sys.exit(f"{to} is not up to date: run tools/gen_python_stubs.py")


main()
