"""xla_ffi.h against the header of the installed jaxlib: sizes, offsets, constants."""

import devices  # noqa: F401, I001: before jax

import shutil
import subprocess
from pathlib import Path

import jax
import pytest

SOURCE = Path(__file__).parents[2] / "src"

# Ours, theirs, members as (ours, theirs).
STRUCTS = [
    ("ffi_extension", "BASE", ["struct_size", "type", "next"]),
    ("ffi_version", "XLA_FFI_Api_Version",
     [("major", "major_version"), ("minor", "minor_version")]),
    ("ffi_metadata", "XLA_FFI_Metadata", [("version", "api_version"), "traits"]),
    ("ffi_metadata_extension", "XLA_FFI_Metadata_Extension", ["metadata"]),
    ("ffi_error_args", "XLA_FFI_Error_Create_Args", ["message", ("code", "errc")]),
    ("ffi_api", "XLA_FFI_Api",
     [("version", "api_version"), ("internal", "internal_api"),
      ("error_create", "XLA_FFI_Error_Create")]),
    ("ffi_buffer", "XLA_FFI_Buffer", ["dtype", "data", "rank", "dims"]),
    ("ffi_buffers", "XLA_FFI_Args", ["size", "types", ("item", "args")]),
    ("ffi_buffers", "XLA_FFI_Rets", ["size", "types", ("item", "rets")]),
    ("ffi_span", "XLA_FFI_ByteSpan", ["ptr", "len"]),
    ("ffi_array", "XLA_FFI_Array", ["dtype", "size", "data"]),
    ("ffi_attrs", "XLA_FFI_Attrs", ["size", "types", "names", ("item", "attrs")]),
    ("ffi_frame", "XLA_FFI_CallFrame",
     ["api", ("context", "ctx"), "stage", "args", "rets", "attrs"]),
]  # fmt: skip
# Runtimes append members to these; only what is used must be where we think.
MAY_GROW = {"ffi_api", "ffi_frame", "ffi_metadata"}
CONSTANTS = {
    "FFI_EXTENSION_METADATA": "XLA_FFI_Extension_Metadata",
    "FFI_INVALID_ARGUMENT": "XLA_FFI_Error_Code_INVALID_ARGUMENT",
    "FFI_RESOURCE_EXHAUSTED": "XLA_FFI_Error_Code_RESOURCE_EXHAUSTED",
    "FFI_BUFFER": "XLA_FFI_ArgType_BUFFER",
    "FFI_ATTR_ARRAY": "XLA_FFI_AttrType_ARRAY",
    "FFI_ATTR_STRING": "XLA_FFI_AttrType_STRING",
    "FFI_MAJOR": "XLA_FFI_API_MAJOR",
    **{
        f"FFI_{t}": f"XLA_FFI_DataType_{t}"
        for t in "PRED S8 S16 S32 S64 U8 U16 U32 U64 F16 F32 F64 BF16".split()
    },
}


def program():
    yield '#include "xla/ffi/api/c_api.h"\n#include "xla_ffi.h"'
    yield "#if XLA_FFI_API_MINOR >= 4\n#define BASE XLA_FFI_InternalExtension"
    yield "#else\n#define BASE XLA_FFI_Extension_Base\n#endif"
    for ours, theirs, members in STRUCTS:
        order = "<=" if ours in MAY_GROW else "=="
        yield f'_Static_assert(sizeof({ours}) {order} sizeof({theirs}), "{theirs}");'
        for m in members:
            a, b = (m, m) if isinstance(m, str) else m
            yield (
                f"_Static_assert(offsetof({ours}, {a}) == offsetof({theirs}, {b}) && "
                f"sizeof((({ours} *)0)->{a}) == sizeof((({theirs} *)0)->{b}), "
                f'"{theirs}.{b}");'
            )
    for ours, theirs in CONSTANTS.items():
        yield f'_Static_assert((int){ours} == (int){theirs}, "{theirs}");'
    yield '_Static_assert(FFI_MINOR <= XLA_FFI_API_MINOR, "a newer version");'


def test_declarations(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler")
    source = tmp_path / "abi.c"
    source.write_text("\n".join(program()) + "\n")
    command = [compiler, "-std=c11", "-fsyntax-only", f"-I{SOURCE}"]
    subprocess.run([*command, f"-isystem{jax.ffi.include_dir()}", source], check=True)


def test_declarations_are_compared(tmp_path):
    """A wrong one would be found."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler")
    wrong = (SOURCE / "xla_ffi.h").read_text().replace("int64_t rank;", "int32_t rank;")
    (tmp_path / "xla_ffi.h").write_text(wrong)
    source = tmp_path / "abi.c"
    source.write_text("\n".join(program()) + "\n")
    command = [compiler, "-std=c11", "-fsyntax-only", f"-I{tmp_path}"]
    command += [f"-isystem{jax.ffi.include_dir()}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode and "XLA_FFI_Buffer.rank" in done.stderr
