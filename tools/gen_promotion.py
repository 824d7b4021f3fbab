#!/usr/bin/env python3
"""gen_promotion.py - writes tests/golden/promotion.h: the common
dtype of two operands, as in jax.numpy. Needs jax.

A row of the table is the left operand, a column the right one; the last two of
each are Python's int and float, which are weak. 64-bit types are enabled in jax.
If the result is a float that is the dtype of no strong operand (f* in its lattice:
an integer and a weak float, or i64 and u64), lowbit uses f32; if it is such an
integer (bool and a weak int), i32.

    python3 tools/gen_promotion.py > tests/golden/promotion.h
"""

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

DTYPES = [
    ("LB_F32", jnp.float32), ("LB_F16", jnp.float16),
    ("LB_BF16", jnp.bfloat16), ("LB_F64", jnp.float64),
    ("LB_I8", jnp.int8), ("LB_I16", jnp.int16), ("LB_I32", jnp.int32),
    ("LB_I64", jnp.int64), ("LB_U8", jnp.uint8), ("LB_U16", jnp.uint16),
    ("LB_U32", jnp.uint32), ("LB_U64", jnp.uint64), ("LB_BOOL", jnp.bool_),
]
NAME = {jnp.dtype(d): n for n, d in DTYPES}
OPERANDS = [(n, jnp.ones((), d)) for n, d in DTYPES]
OPERANDS += [("int", 1), ("float", 1.0)]


def meet(x, y):
    """The dtype's name and whether the result is weak."""
    out = jnp.maximum(x, y)
    if not out.weak_type:
        return NAME[out.dtype], 0
    is_float = jnp.issubdtype(out.dtype, jnp.floating)
    return "LB_F32" if is_float else "LB_I32", 1


def main():
    print("/* promotion.h - made by tools/gen_promotion.py with jax "
          f"{jax.__version__}. */")
    print("#include \"lowbit.h\"\n")
    print("/* clang-format off */")
    print("static const struct { unsigned char dtype, weak; } "
          f"promotion[{len(OPERANDS)}][{len(OPERANDS)}] = {{")
    for name, x in OPERANDS:
        cells = ["{%s,%d}" % meet(x, y) for _, y in OPERANDS]
        print(f"    /* {name} */ {{")
        for i in range(0, len(cells), 5):
            print("        " + ", ".join(cells[i:i + 5]) + ",")
        print("    },")
    print("};")
    print("/* clang-format on */")


if __name__ == "__main__":
    main()
