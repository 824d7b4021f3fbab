/* runs.c - see runs.h. The only caller of decode, except unpack.c.
 *
 * Formats decode consecutive elements. Others are picked from a span that is
 * decoded completely, on the stack. Decoders may read nested parts the same
 * way, so several spans may be on the stack at once.
 */
#include "core/runs.h"

#include <string.h>

#include "kernels/convert.h"

enum {
    SPAN = 4096, /* bytes decoded at a time to pick from */
    ASIDE = 256  /* elements converted at a time */
};

/* Decodes n <= LB_RUN consecutive elements, split at the ends of stored
 * rows. */
static void decode_rows(const lb_cpu *cpu, const lb_store *s, int64_t first,
                        int64_t n, char *out)
{
    const int rank = s->shape.rank;
    const int64_t row = rank ? s->shape.dim[rank - 1] : 1;
    const size_t size = lb_ctype_size(s->ctype);
    for (int64_t m; n > 0; first += m, n -= m, out += (size_t)m * size) {
        m = lb_min_i64(n, row - first % row);
        s->fmt->decode(cpu, s, first, m, out);
    }
}

/* n elements at from, from + step, ... */
static void pick(size_t size, const char *from, int64_t step, int64_t n,
                 char *to)
{
    switch (size) {
    case 1:
        for (int64_t i = 0; i < n; i++)
            to[i] = from[i * step];
        return;
    case 4:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * 4, from + i * step * 4, 4);
        return;
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * 8, from + i * step * 8, 8);
    }
}

/* Elements first, first + step, ...: at most LB_RUN, in the store's ctype. */
static void decode_run(const lb_cpu *cpu, const lb_store *s, int64_t first,
                       int64_t step, int64_t n, char *out)
{
    if (s->fmt->decode_strided) {
        s->fmt->decode_strided(cpu, s, first, step, n, out);
        return;
    }
    if (step == 1) {
        decode_rows(cpu, s, first, n, out);
        return;
    }
    _Alignas(64) char span[SPAN];
    const size_t size = lb_ctype_size(s->ctype);
    const int64_t gap = step < 0 ? -step : step;
    const int64_t room = lb_min_i64(SPAN / (int64_t)size, LB_RUN);
    const int64_t most = gap ? (room - 1) / gap + 1 : n;
    for (int64_t i = 0, m; i < n; i += m) {
        m = lb_min_i64(n - i, most);
        const int64_t back = step < 0 ? (m - 1) * gap : 0;
        decode_rows(cpu, s, first + i * step - back, (m - 1) * gap + 1, span);
        pick(size, span + (size_t)back * size, step, m, out + (size_t)i * size);
    }
}

/* The decoded ctype is the requested one: only rounding is needed. */
static void read_there(const lb_cpu *cpu, const lb_array *a, int64_t first,
                       int64_t stride, int64_t n, char *out)
{
    const lb_store *s = a->store;
    const lb_convert_kernel *to = lb_convert_kernel_for(cpu);
    const size_t size = lb_ctype_size(s->ctype);
    for (int64_t i = 0, m; i < n; i += m, out += (size_t)m * size) {
        m = lb_min_i64(n - i, LB_RUN);
        decode_run(cpu, s, first + i * stride, stride, m, out);
        if (!s->data) to->round(a->dtype, m, out);
    }
}

/* The decoded ctype must be converted. */
static void read_aside(const lb_cpu *cpu, const lb_array *a, int64_t first,
                       int64_t stride, int64_t n, lb_ctype c, char *out)
{
    const lb_store *s = a->store;
    const lb_convert_kernel *to = lb_convert_kernel_for(cpu);
    const lb_ctype label = lb_ctype_of(a->dtype);
    const size_t size = lb_ctype_size(c);
    _Alignas(64) char buf[2][ASIDE * 8];
    for (int64_t i = 0, m; i < n; i += m, out += (size_t)m * size) {
        m = lb_min_i64(n - i, ASIDE);
        char *run = buf[0];
        decode_run(cpu, s, first + i * stride, stride, m, run);
        if (s->ctype != label) {
            to->store(s->ctype, run, lb_widest_of(label), m, buf[1]);
            run = buf[1];
        }
        if (!s->data) to->round(a->dtype, m, run);
        if (label == c)
            memcpy(out, run, (size_t)m * size);
        else
            to->store(label, run, lb_widest_of(c), m, out);
    }
}

void lb_run_read(const lb_cpu *cpu, const lb_array *a, int64_t first,
                 int64_t stride, int64_t n, lb_ctype c, void *out)
{
    const lb_store *s = a->store;
    if (s->ctype == c && s->data && s->fmt->decode_strided)
        s->fmt->decode_strided(cpu, s, first, stride, n, out);
    else if (s->ctype == c && lb_ctype_of(a->dtype) == c)
        read_there(cpu, a, first, stride, n, out);
    else
        read_aside(cpu, a, first, stride, n, c, out);
}
