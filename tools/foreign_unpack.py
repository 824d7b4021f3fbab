"""foreign_unpack.py - GPTQModel's and AutoAWQ's own unpacking code, without CUDA.

The packages cannot be installed on a machine without it. Of their unpacked source
archives only functions on torch tensors are run, compiled by themselves.
"""
import ast
import importlib.util
import os
import types

import torch


def functions(path, cls, names, env):
    """Functions and methods of a class, compiled by themselves."""
    with open(path, encoding="utf-8") as f:
        tree = ast.parse(f.read())
    body = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in names]
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == cls:
            body += [n for n in node.body
                     if isinstance(n, ast.FunctionDef) and n.name in names]
    exec(compile(ast.Module(body, []), path, "exec"), env)
    return env


def gptq_source(source):
    """The functions of gptqmodel that gptq_codes needs."""
    path = os.path.join(source, "gptqmodel/nn_modules/qlinear/__init__.py")
    return functions(path, "PackableQuantLinear",
                     ("dequantize_weight", "_init_wf_unsqueeze_buffers"),
                     {"t": torch, "nn": torch.nn,
                      "_torch_right_shift": torch.bitwise_right_shift,
                      "_torch_left_shift": torch.bitwise_left_shift})


def gptq_codes(env, qweight, qzeros, bits, shape):
    """Codes (columns, rows) and zero points (groups, rows) of a linear layer with
    scales of that shape."""
    me = types.SimpleNamespace(
        planar=False, bits=bits, qweight=qweight, qzeros=qzeros, maxq=2**bits - 1,
        pack_factor=32 // bits, scales=torch.empty(shape), pack_dtype_bits=32,
        dequant_dtype=torch.int16 if bits == 8 else torch.int8, enable_wf_unsqueeze=True,
        _buffers={}, _wf_device=lambda: "cpu")
    me.register_buffer = lambda name, v, persistent: setattr(me, name, v)
    me._init_wf_unsqueeze_buffers = lambda: env["_init_wf_unsqueeze_buffers"](me)
    me._dequantize_from_codes = lambda w, z, num_itr: (w, z)
    return env["dequantize_weight"](me)


def awq_packing(source):
    """The module awq.utils.packing_utils of autoawq."""
    spec = importlib.util.spec_from_file_location(
        "packing", os.path.join(source, "awq/utils/packing_utils.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
