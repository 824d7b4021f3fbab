/* conv_windows.c - fills blocks of windows from the input.
 *
 * For one kernel element, positions are traversed in runs along the last
 * spatial axis. A run reads the input at equal distances, with zeros for
 * padding and, in a dilated input, between elements.
 */
#include "matmul/conv_windows.h"

#include <string.h>

#include "core/core.h"

/* Current position of a traversal. */
typedef struct {
    int64_t batch; /* of the input */
    int64_t place[LB_MAX_SPATIAL];
} position;

/* A kernel element: its index, what it adds to the offset in the input and to
 * each position, and the positions [lo, hi) of the last axis at which it meets
 * the input, if that is not dilated. */
typedef struct {
    int64_t feature, at[LB_MAX_SPATIAL];
    int64_t offset, shift[LB_MAX_SPATIAL], lo, hi;
} tap;

static void read_line(const lb_conv_windows *w, const lb_cpu *cpu, int64_t e,
                      int64_t stride, int64_t n, size_t size, char *to)
{
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

/* Divisors are usually 1, and divisions are slow. */

static int64_t ceil_of(int64_t a, int64_t b) /* rounds up, b > 0 */
{
    if (b == 1) return a;
    return a > 0 ? (a - 1) / b + 1 : a / b;
}

/* The offset of kernel element k in the input. */
static int64_t along(const lb_conv_space *s, int64_t k)
{
    const int64_t i = s->reversed ? s->kernel - 1 - k : k;
    return i * s->rhs_dilation - s->pad_lo;
}

static void start_taps(const lb_conv *v, int64_t group, int64_t k, tap *t)
{
    for (int i = v->spaces - 1; i >= 0; k /= v->space[i--].kernel)
        t->at[i] = k % v->space[i].kernel;
    t->feature = k + (v->by_batch ? 0 : group * v->in_features);
}

static void next_tap(const lb_conv *v, tap *t)
{
    int k = v->spaces;
    while (k > 0 && ++t->at[k - 1] == v->space[k - 1].kernel)
        t->at[--k] = 0;
    if (k == 0) t->feature++;
}

static void aim_tap(const lb_conv_windows *w, tap *t)
{
    const lb_conv *v = w->v;
    const lb_conv_space *last = &v->space[v->spaces - 1];
    for (int i = 0; i < v->spaces; i++)
        t->shift[i] = along(&v->space[i], t->at[i]);
    const int64_t shift = t->shift[v->spaces - 1];
    t->offset = t->feature * w->a->stride[v->lhs_f];
    t->lo = ceil_of(-shift, last->stride);
    t->hi = ceil_of(last->in - shift, last->stride);
}

/* The input element at dilated position p; -1: none. */
static int64_t element_at(const lb_conv_space *s, int64_t p)
{
    if (p < 0) return -1;
    if (s->lhs_dilation > 1) {
        if (p % s->lhs_dilation) return -1;
        p /= s->lhs_dilation;
    }
    return p < s->in ? p : -1;
}

/* The offset of a run's row in the input; false: only padding. */
static bool line_at(const lb_conv_windows *w, const tap *t, const position *p,
                    int64_t *at)
{
    const lb_conv *v = w->v;
    *at = t->offset + p->batch * w->a->stride[v->lhs_b];
    for (int k = 0; k < v->spaces - 1; k++) {
        const lb_conv_space *s = &v->space[k];
        const int64_t e = element_at(s, p->place[k] * s->stride + t->shift[k]);
        if (e < 0) return false;
        *at += e * w->a->stride[s->lhs];
    }
    return true;
}

static void clear(char *to, int64_t n, size_t size)
{
    if (n > 0) memset(to, 0, (size_t)n * size);
}

/* n positions of the last axis starting at x. */
static void fill_line(const lb_conv_windows *w, const lb_cpu *cpu, const tap *t,
                      int64_t at, int64_t x, int64_t n, size_t size, char *to)
{
    const int last = w->v->spaces - 1;
    const lb_conv_space *s = &w->v->space[last];
    const int64_t step = w->a->stride[s->lhs], shift = t->shift[last];
    if (s->lhs_dilation > 1) {
        clear(to, n, size);
        for (int64_t i = 0; i < n; i++, to += size) {
            const int64_t e = element_at(s, (x + i) * s->stride + shift);
            if (e >= 0) read_line(w, cpu, at + e * step, 1, 1, size, to);
        }
        return;
    }
    const int64_t lo = lb_max_i64(x, t->lo), hi = lb_min_i64(x + n, t->hi);
    const int64_t lead = lb_min_i64(lo - x, n), got = lb_max_i64(hi - lo, 0);
    clear(to, lead, size);
    /* With one element the stride is arbitrary, and multiplying it may
     * overflow. */
    if (got)
        read_line(w, cpu, at + (lo * s->stride + shift) * step,
                  got > 1 ? s->stride * step : 0, got, size,
                  to + (size_t)lead * size);
    clear(to + (size_t)(lead + got) * size, n - lead - got, size);
}

static position position_at(const lb_conv *v, int64_t group, int64_t row)
{
    position p = {0};
    for (int k = v->spaces - 1; k >= 0; row /= v->space[k--].size)
        p.place[k] = row % v->space[k].size;
    p.batch = row + (v->by_batch ? group * v->batch : 0);
    return p;
}

/* Advances to the next row. */
static void step_on(const lb_conv *v, position *p)
{
    int k = v->spaces - 1;
    p->place[k] = 0;
    while (k > 0 && ++p->place[k - 1] == v->space[k - 1].size)
        p->place[--k] = 0;
    if (k == 0) p->batch++;
}

/* Positions are the inner axis: tmp[kk*m + r]. */
static lb_block get(const lb_source *source, const lb_cpu *cpu, int64_t group,
                    int64_t row, int64_t m, int64_t k, int64_t kc, void *tmp)
{
    const lb_conv_windows *w = (const lb_conv_windows *)(const void *)source;
    const lb_conv *v = w->v;
    const int last = v->spaces - 1;
    const size_t size = lb_ctype_size(source->type);
    const position first = position_at(v, group, row);
    char *to = tmp;
    tap t = {0};
    if (kc > 0) start_taps(v, group, k, &t); /* a kernel may be empty */
    for (int64_t kk = 0; kk < kc; kk++, next_tap(v, &t)) {
        position p = first;
        aim_tap(w, &t);
        for (int64_t i = 0, n; i < m; i += n, to += (size_t)n * size) {
            const int64_t x = p.place[last];
            int64_t at;
            n = lb_min_i64(m - i, v->space[last].size - x);
            if (line_at(w, &t, &p, &at))
                fill_line(w, cpu, &t, at, x, n, size, to);
            else
                clear(to, n, size);
            step_on(v, &p);
        }
    }
    return (lb_block){tmp, 1, m};
}

void lb_conv_windows_make(lb_conv_windows *w, const lb_array *a,
                          const lb_conv *v, lb_ctype type)
{
    const lb_ctype natural = lb_ctype_of(a->dtype);
    *w = (lb_conv_windows){
        .source = {.get = get, .type = type, .across = true}, .a = a, .v = v};
    if (lb_dtype_size(a->dtype) == lb_ctype_size(type) &&
        (natural == type || (natural == LB_C_I64 && type == LB_C_U64)))
        w->elements = lb_elements(a);
}
