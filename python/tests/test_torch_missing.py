"""lowbit does not import torch, and lowbit.torch without it is a clear error."""

import subprocess
import sys


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )


def test_lowbit_does_not_import_torch():
    code = "import sys, lowbit, lowbit.files; print('torch' in sys.modules)"
    assert run(code).stdout == "False\n"


def test_without_torch():
    code = "import sys; sys.modules['torch'] = None\nimport lowbit.torch"
    result = run(code)
    assert result.returncode == 1
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: lowbit.torch needs PyTorch 2.4 or later")
    assert last.endswith("(pip install torch)")
