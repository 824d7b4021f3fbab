/* conv_windows.c - blocks of windows, filled from the input as it is.
 *
 * A block goes run by run along the last axis of space. For one element of the
 * kernel a run reads the input at equal distances, with zeros where it would
 * read padding or, in a dilated input, between elements.
 */
#include "prims/conv_windows.h"

#include <string.h>

#include "core/core.h"

/* One run: places [x, x + n) of the last axis at one place of the others. */
typedef struct {
    int64_t at; /* of the input, in this batch and group */
    int64_t place[LB_MAX_SPATIAL];
    int64_t x, n;
} run;

static void read_line(const lb_conv_windows *w, const lb_cpu *cpu, int64_t e,
                      int64_t stride, int64_t n, char *to)
{
    const size_t size = lb_ctype_size(w->source.type);
    if (!w->elements) {
        lb_line_read(cpu, w->a, e, stride, n, w->source.type, to);
        return;
    }
    const char *from = w->elements + e * (int64_t)size;
    if (stride == 1)
        memcpy(to, from, (size_t)n * size);
    else if (size == 4)
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * 4, from + i * stride * 4, 4);
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * 8, from + i * stride * 8, 8);
}

static int64_t ceil_of(int64_t a, int64_t b) /* a / b upward, b > 0 */
{
    return a > 0 ? (a - 1) / b + 1 : a / b;
}

/* The kernel's element k counted as it runs over the input. */
static int64_t along(const lb_conv_space *s, int64_t k)
{
    const int64_t i = s->reversed ? s->kernel - 1 - k : k;
    return i * s->rhs_dilation - s->pad_lo;
}

/* Place o reads o*stride + shift of the input without dilation. */
static void fill_dense(const lb_conv_windows *w, const lb_cpu *cpu,
                       const lb_conv_space *s, int64_t at, int64_t shift,
                       int64_t x, int64_t n, char *to)
{
    const size_t size = lb_ctype_size(w->source.type);
    const int64_t step = w->a->stride[s->lhs];
    const int64_t lo = lb_max_i64(x, ceil_of(-shift, s->stride));
    const int64_t hi = lb_min_i64(x + n, ceil_of(s->in - shift, s->stride));
    const int64_t lead = lb_min_i64(lo - x, n);
    const int64_t got = lb_max_i64(hi - lo, 0);
    memset(to, 0, (size_t)lead * size);
    /* Of one element the stride may be any, and too large to multiply. */
    if (got)
        read_line(w, cpu, at + (lo * s->stride + shift) * step,
                  got > 1 ? s->stride * step : 0, got,
                  to + (size_t)lead * size);
    memset(to + (size_t)(lead + got) * size, 0,
           (size_t)(n - lead - got) * size);
}

/* The element of the input at p, dilated; -1: none. */
static int64_t element_at(const lb_conv_space *s, int64_t p)
{
    if (p < 0 || p % s->lhs_dilation) return -1;
    const int64_t e = p / s->lhs_dilation;
    return e < s->in ? e : -1;
}

static void fill_run(const lb_conv_windows *w, const lb_cpu *cpu, const run *r,
                     const int64_t *kernel, int64_t at, char *to)
{
    const lb_conv *v = w->v;
    const int last = v->spaces - 1;
    const size_t size = lb_ctype_size(w->source.type);
    for (int k = 0; k < last; k++) {
        const lb_conv_space *s = &v->space[k];
        const int64_t e =
            element_at(s, r->place[k] * s->stride + along(s, kernel[k]));
        if (e < 0) {
            memset(to, 0, (size_t)r->n * size);
            return;
        }
        at += e * w->a->stride[s->lhs];
    }
    const lb_conv_space *s = &v->space[last];
    const int64_t shift = along(s, kernel[last]);
    if (s->lhs_dilation == 1) {
        fill_dense(w, cpu, s, at, shift, r->x, r->n, to);
        return;
    }
    memset(to, 0, (size_t)r->n * size);
    for (int64_t i = 0; i < r->n; i++, to += size) {
        const int64_t e = element_at(s, (r->x + i) * s->stride + shift);
        if (e >= 0) read_line(w, cpu, at + e * w->a->stride[s->lhs], 1, 1, to);
    }
}

/* The run that begins at a row, no longer than most. */
static run run_at(const lb_conv_windows *w, int64_t group, int64_t row,
                  int64_t most)
{
    const lb_conv *v = w->v;
    const int last = v->spaces - 1;
    run r = {0};
    for (int k = last; k >= 0; row /= v->space[k--].size)
        r.place[k] = row % v->space[k].size;
    if (v->by_batch) row += group * v->batch;
    r.at = row * w->a->stride[v->lhs_b];
    if (!v->by_batch) r.at += group * v->in_features * w->a->stride[v->lhs_f];
    r.x = r.place[last];
    r.n = lb_min_i64(most, v->space[last].size - r.x);
    return r;
}

/* Positions run inside: tmp[kk*m + r]. */
static lb_block get(const lb_source *source, const lb_cpu *cpu, int64_t group,
                    int64_t row, int64_t m, int64_t k0, int64_t kc, void *tmp)
{
    const lb_conv_windows *w = (const lb_conv_windows *)(const void *)source;
    const lb_conv *v = w->v;
    const size_t size = lb_ctype_size(source->type);
    int64_t first[1 + LB_MAX_SPATIAL], k = k0;
    if (kc == 0) return (lb_block){tmp, 1, m}; /* a kernel may be empty */
    for (int s = v->spaces - 1; s >= 0; k /= v->space[s--].kernel)
        first[1 + s] = k % v->space[s].kernel;
    first[0] = k;
    for (int64_t i = 0; i < m;) {
        const run r = run_at(w, group, row + i, m - i);
        int64_t at[1 + LB_MAX_SPATIAL];
        memcpy(at, first, sizeof at);
        char *to = (char *)tmp + (size_t)i * size;
        for (int64_t kk = 0; kk < kc; kk++, to += (size_t)m * size) {
            fill_run(w, cpu, &r, at + 1, r.at + at[0] * w->a->stride[v->lhs_f],
                     to);
            int s = v->spaces;
            for (; s > 0 && ++at[s] == v->space[s - 1].kernel; s--)
                at[s] = 0;
            if (s == 0) at[0]++;
        }
        i += r.n;
    }
    return (lb_block){tmp, 1, m};
}

void lb_conv_windows_make(lb_conv_windows *w, const lb_array *a,
                          const lb_conv *v, lb_ctype type)
{
    const lb_ctype natural = lb_ctype_of(a->dtype);
    *w =
        (lb_conv_windows){.source = {.get = get, .type = type}, .a = a, .v = v};
    if (lb_dtype_size(a->dtype) == lb_ctype_size(type) &&
        (natural == type || (natural == LB_C_I64 && type == LB_C_U64)))
        w->elements = lb_elements(a);
}
