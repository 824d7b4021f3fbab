"""Every public function of lowbit.h and lowbit_io.h is called by the extension, or listed
here. Trees are dicts in Python, and meshes are for C programs: lowbit_tree.h and
lowbit_mesh.h are not bound."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lowbit
from lowbit import _lowbit

ROOT = Path(__file__).parents[2]
HEADERS = [
    "lowbit.h",
    "lowbit_functions.h",
    "lowbit_inspect.h",
    "lowbit_nn.h",
    "lowbit_io.h",
]

NOT_CALLED = {
    "lb_keep": "arrays of Python hold references",
    "lb_drop": "arrays of Python hold references",
    "lb_status_name": "exceptions have classes",
    "lb_read_rows": "x[lo:hi].tobytes()",
    "lb_read_f32": "numpy.asarray(x, 'f4')",
    "lb_to_string": "lb_to_string_with has options",
    "lb_compile": "lb_compile_many covers it",
    "lb_run": "lb_run_many covers it",
    "lb_update_in_place": "arrays of Python are immutable: dynamic_update_slice",
    "lb_slice_axis": "x[..., lo:hi]",
    "lb_load": "lowbit.load(path, name)",
    "lb_file_find_meta": "File.metadata() is a dict",
    "lb_rules_read": "files.shard takes the texts",
    "lb_saver_open": "lb_save takes all arrays at once; files.* do not load them",
    "lb_saver_next": "as lb_saver_open",
    "lb_saver_put": "as lb_saver_open",
    "lb_saver_close": "as lb_saver_open",
    "lb_choose_weights": "files.quantize uses it by default",
    "lb_selection_choose": "files.quantize uses it for patterns",
    "lb_tree_load": "lowbit.load(path) is a dict",
    "lb_tree_load_file": "lowbit.load(path) is a dict",
    "lb_tree_save": "lowbit.save(path, dict)",
    "lb_tree_quantize_selected": "lowbit.quantize of the dict's arrays",
    "lb_file_load_sharded": "meshes",
    "lb_rules_place": "meshes",
    "lb_rules_check": "meshes",
}


def public_functions():
    for name in HEADERS:
        text = (ROOT / "include" / name).read_text()
        yield from re.findall(r"^LB_API [^(;]*?\b(lb_\w+)\(", text, re.M)


def called_functions():
    called = set()
    for pattern in ("*.c", "*.h", "*.def"):
        for path in (ROOT / "python" / "src").glob(pattern):
            text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
            called |= set(re.findall(r"\b(lb_\w+)\b", text))
    return called


def test_every_function_is_called():
    public, called = set(public_functions()), called_functions()
    assert len(public) > 150
    missing = public - called - set(NOT_CALLED)
    assert not missing, (
        f"{missing}: add a row to python/src/py_calls.def and a sample to "
        "test_calls.py, or a reason to NOT_CALLED above"
    )
    assert not set(NOT_CALLED) & called, "listed, but called"
    assert set(NOT_CALLED) <= public


def table():
    text = (ROOT / "python" / "src" / "py_calls.def").read_text()
    return re.findall(r'^CALL\((\w+), "([^"]*)", "(\w+)"', text, re.M)


@pytest.mark.parametrize("row", table(), ids=lambda row: row[0])
def test_table_rows(row):
    name, signature, _ = row
    function = getattr(_lowbit, name)
    assert str(inspect.signature(function)) == f"({signature})"
    with pytest.raises(TypeError, match="missing argument"):
        function()
    with pytest.raises(TypeError, match="unexpected keyword"):
        function(no_such_argument=1)
    with pytest.raises(TypeError, match="too many"):
        function(*range(9))


def test_public_names_have_docs():
    for name in dir(lowbit):
        value = getattr(lowbit, name)
        if not name.startswith("_") and callable(value):
            assert value.__doc__, name


def test_stubs_are_up_to_date():
    script = ROOT / "tools" / "gen_python_stubs.py"
    subprocess.run([sys.executable, script, "--check"], check=True)
