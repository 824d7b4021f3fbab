/* dense.c - the leaf: no parts, just the bytes of its dtype, row-major. */
#include "kernels/convert.h"
#include "lowbit_ext.h"

static const void *at(const lb_store *s, int64_t e)
{
    return (const char *)s->data + (size_t)e * lb_dtype_size(s->elem);
}

static void decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                   int64_t n, void *out)
{
    lb_convert_kernel_for(cpu)->load(s->elem, at(s, first), 1, n, out);
}

static void decode_strided(const lb_cpu *cpu, const lb_store *s, int64_t first,
                           int64_t step, int64_t n, void *out)
{
    lb_convert_kernel_for(cpu)->load(s->elem, at(s, first), step, n, out);
}

extern const lb_format lb_format_dense;
const lb_format lb_format_dense = {
    .struct_size = sizeof(lb_format),
    .name = "dense",
    .decode = decode,
    .decode_strided = decode_strided,
};
