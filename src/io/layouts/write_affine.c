/* write_affine.c - see write_affine.h. */
#include "io/layouts/write_affine.h"

#include <string.h>

#include "core/core.h"
#include "io/layouts/writers.h"
#include "io/util/json_text.h"

/* By bits. */
static const char *const formats[] = {NULL,   "int1", "int2", "int3", "int4",
                                      "int5", "int6", "int7", "uint8"};
enum { BITS = sizeof formats / sizeof *formats };

/* Parts of these formats. */
enum { SCALE = 1, ZERO = 2, BIAS = 3 };

bool lb_packed_facts_of(const lb_described *d, lb_packed_facts *f)
{
    const int last = d->shape.rank - 1;
    const lb_described_part *scale = lb_described_part_of(d, "scale");
    const lb_described_part *zero = lb_described_part_of(d, "zero");
    *f = (lb_packed_facts){0};
    for (int b = 1; b < BITS; b++)
        if (strcmp(d->format, formats[b]) == 0) f->bits = b;
    if (!f->bits || !scale || last < 1 ||
        !lb_shape_equal(&d->shape, &d->stored))
        return false;
    f->row = d->shape.dim[last];
    f->rows = f->row ? lb_shape_size(&d->shape) / f->row : 0;
    f->group = scale->table.g[last] ? scale->table.g[last] : f->row;
    f->groups = f->group ? lb_ceil_div(f->row, f->group) : 0;
    f->scale = scale->array ? LB_NO_DTYPE : scale->elem;
    f->zero = zero != NULL;
    f->bias = lb_described_part_of(d, "bias") != NULL;
    f->listed = lb_described_part_of(d, "group") != NULL;
    return f->row > 0 && f->rows > 0 &&
           (!zero || (!zero->array && zero->elem == LB_U8));
}

/* ---- moves --------------------------------------------------------------- */

void lb_put_module(lb_bytes *to, const char *name)
{
    size_t n = strlen(name);
    (void)lb_name_ends(name, ".weight", &n);
    lb_json_put(to, name, n, true);
}

/* Characters with a meaning in patterns are escaped. */
void lb_put_pattern(lb_bytes *to, const char *before, const char *name)
{
    lb_bytes text = {.heap = to->heap};
    size_t n = strlen(name);
    (void)lb_name_ends(name, ".weight", &n);
    lb_bytes_put(&text, before, strlen(before));
    for (size_t i = 0; i < n; i++) {
        if (strchr(".^$*+?()[]{}|\\", name[i])) lb_bytes_put(&text, "\\", 1);
        lb_bytes_put(&text, name + i, 1);
    }
    lb_bytes_put(&text, "$", 1);
    to->failed = to->failed || text.failed;
    if (!text.failed) lb_json_put(to, (const char *)text.at, text.n, true);
    lb_bytes_free(&text);
}

int lb_packed_bits(const lb_moving *m)
{
    if (!m->scheme || m->scheme->levels != LB_LEVELS_INT) return 0;
    const int bits = lb_scheme_bits(m->scheme);
    return bits < 8 ? bits : 8;
}

int64_t lb_packed_group(const lb_moving *m)
{
    const int last = m->a->shape.rank - 1;
    const int64_t row = last < 0 ? 0 : m->a->shape.dim[last];
    const int64_t g = m->scheme && last >= 0 ? m->scheme->g[last] : 0;
    if (m->block_size) return m->block_size;
    return g && g < row ? g : row;
}

lb_dtype lb_packed_scale(const lb_moving *m)
{
    const lb_store *s = m->a->store;
    const int last = s->shape.rank - 1;
    for (int p = 0; p < LB_MAX_PARTS && s->fmt->part[p].name; p++) {
        if (strcmp(s->fmt->part[p].name, "scale") != 0 || !s->part[p].a)
            continue;
        const lb_dtype d = s->part[p].a->dtype;
        return d == LB_F16 || d == LB_BF16 ? d : LB_F32;
    }
    /* Blocks with an f16, times small scales if there are several groups. */
    const lb_part *blocks = &s->part[0];
    const bool several = m->scheme && last >= 0 && blocks->own &&
                         m->scheme->g[m->a->shape.rank - 1] < blocks->g[last];
    return several ? LB_F32 : LB_F16;
}

bool lb_packed_symmetric(const lb_moving *m, int bits)
{
    const lb_scheme *s = m->scheme;
    return s && bits > 0 && !s->bias && s->zero_least == s->zero_most &&
           s->zero_least - s->least == 1 << (bits - 1);
}

void lb_packed_target(const lb_moving *m, int bits, int64_t group,
                      lb_dtype scale, lb_move_plan *to)
{
    const int last = m->a->shape.rank - 1;
    const bool row = last >= 0 && group >= m->a->shape.dim[last];
    const lb_quant_config c = {.format = formats[bits],
                               .block_size = row ? 0 : group,
                               .scale = row ? LB_SCALE_ROW : LB_SCALE_DEFAULT};
    *to = (lb_move_plan){.target.config = c, .encode = c};
    to->target.elem[SCALE] = scale;
    to->encode.center = true;
}

/* ---- parts --------------------------------------------------------------- */

/* GPTQ's first version, and native files, may have larger ones than codes. */
static bool check_zeros(lb_ctx *cx, const lb_array *zero, int bits)
{
    const uint8_t *z = lb_data(zero);
    for (int64_t i = 0; i < lb_size(zero); i++)
        if (z[i] >> bits)
            return lb_fail(cx, LB_E_UNSUPPORTED,
                           "zero point %d does not fit into %d bits", z[i],
                           bits);
    return true;
}

lb_array *lb_packed_words(lb_ctx *cx, lb_array *a)
{
    lb_array *codes = lb_materialize(cx, lb_component(cx, a, "codes"));
    const int last = lb_rank(a) - 1;
    if (!codes) return NULL;
    const int64_t rows = lb_size(a) / lb_dim(a, last);
    return lb_from(cx, LB_U32, LB_SHAPE(rows, lb_size(codes) / rows / 4),
                   lb_data(codes));
}

lb_array *lb_packed_entries(lb_ctx *cx, lb_array *a, const char *part,
                            const lb_packed_facts *f, lb_dtype dtype)
{
    lb_array *x = lb_component(cx, a, part);
    const int64_t rows = lb_size(a) / f->row;
    if (!x && !lb_error_status(cx) && strcmp(part, "zero") == 0) {
        x = lb_full_int(cx, LB_U8, LB_SHAPE(rows, f->groups),
                        1 << (f->bits - 1));
        return x;
    }
    x = lb_reshape(cx, lb_materialize(cx, x), LB_SHAPE(rows, f->groups));
    if (x && strcmp(part, "zero") == 0 && !check_zeros(cx, x, f->bits))
        return NULL;
    return x && lb_dtype_of(x) != dtype ? lb_convert(cx, x, dtype) : x;
}

lb_array *lb_packed_zeros(lb_ctx *cx, lb_array *a, const lb_packed_facts *f)
{
    const int bits = f->bits;
    const int64_t rows = lb_size(a) / f->row,
                  words = lb_ceil_div(rows * bits, 32);
    lb_array *zero =
        lb_materialize(cx, lb_packed_entries(cx, a, "zero", f, LB_U8));
    const lb_shape shape = LB_SHAPE(words, f->groups);
    lb_array *out = lb_dense(cx, LB_U32, &shape);
    if (!zero || !out) return NULL;
    const uint8_t *from = lb_data(zero);
    uint32_t *to = out->store->data;
    memset(to, 0, out->store->data_size);
    for (int64_t n = 0; n < rows; n++)
        for (int64_t g = 0; g < f->groups; g++) {
            const uint64_t z = from[n * f->groups + g];
            const int64_t bit = n * bits, w = bit / 32;
            const uint64_t both = z << bit % 32;
            to[w * f->groups + g] |= (uint32_t)both;
            if (both >> 32)
                to[(w + 1) * f->groups + g] |= (uint32_t)(both >> 32);
        }
    return out;
}
