/* gemvq_x.c - the vector, rounded and in the order in which codes come out. */
#include <math.h>
#include <string.h>

#include "kernels/gemvq.h"
#include "kernels/gemvq_sets.h"

enum { LINE = 64 };

static size_t lines_of(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

static int64_t groups_of(const lb_gemvq_kernel *q, int64_t k)
{
    return (k + q->group - 1) / q->group;
}

static size_t slot_size(lb_gemvq_kind kind)
{
    return kind == LB_GEMVQ_F32 ? 4 : kind == LB_GEMVQ_I8 ? 1 : 2;
}

static int64_t panel_of(lb_gemvq_kind kind)
{
    return kind == LB_GEMVQ_I16 ? LB_GEMVQ_I16_PANEL : LB_GEMVQ_I8_PANEL;
}

/* The next part of a block of memory; none yet, when only its size is asked. */
static void *take(char *memory, size_t *size, size_t bytes)
{
    char *at = memory ? memory + *size : NULL;
    *size += lines_of(bytes);
    return at;
}

static size_t place(const lb_gemvq_kernel *q, int64_t k, char *memory,
                    lb_gemvq_x *x)
{
    const int64_t groups = groups_of(q, k), n = groups * q->group;
    size_t size = 0;
    *x = (lb_gemvq_x){.k = k, .groups = groups, .unit = 1};
    x->number = take(memory, &size, (size_t)n * sizeof(float));
    if (!q->rows) return size;
    x->slots = take(memory, &size, (size_t)n * slot_size(q->kind));
    if (q->kind == LB_GEMVQ_F32) return size;
    const size_t panels = (size_t)(n / panel_of(q->kind) + 1);
    x->x_scale = take(memory, &size, panels * sizeof(float));
    x->x_sum = take(memory, &size, panels * sizeof(int32_t));
    return size;
}

void lb_gemvq_x_place(const lb_gemvq_kernel *q, int64_t k, void *memory,
                      lb_gemvq_x *x)
{
    place(q, k, memory, x);
}

size_t lb_gemvq_x_size(const lb_gemvq_kernel *q, int64_t k)
{
    lb_gemvq_x x;
    return place(q, k, NULL, &x);
}

/* The bits of the largest magnitude: what is not finite is larger than all. */
static int32_t largest(const float *x, int64_t n)
{
    int32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t u;
        memcpy(&u, &x[i], sizeof u);
        u &= INT32_MAX;
        most = u > most ? u : most;
    }
    return most;
}

static float as_float(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void lb_gemvq_x_range(lb_gemvq_x *x)
{
    const float most = as_float(largest(x->number, x->k));
    if (most == 0 || !isfinite(most) || (most >= 0x1p-60f && most <= 0x1p60f))
        return;
    /* Downwards no farther than need be: small numbers may get lost. */
    const int e = ilogbf(most) - (most > 1 ? 60 : 0);
    const double by = ldexp(1, -e);
    for (int64_t i = 0; i < x->k; i++)
        x->number[i] = (float)(by * (double)x->number[i]);
    x->unit *= ldexp(1, e);
}

/* ---- slots -------------------------------------------------------------- */

void lb_gemvq_places(const lb_gemvq_kernel *q, bool high_first, uint16_t *to)
{
    int n = 1;
    to[0] = 0;
    for (int i = 0; i < 5 && q->order.n[i]; i++) {
        uint16_t *next = to + n;
        for (int d = 1; d < q->order.n[i]; d++)
            for (int s = 0; s < n; s++)
                *next++ = (uint16_t)(to[s] + d * q->order.stride[i]);
        n *= q->order.n[i];
    }
    /* The other end of the byte: places within it are counted from there. */
    for (int s = 0; s < n && high_first; s++)
        to[s] = (uint16_t)(to[s] ^ (8 / q->bits - 1));
}

float lb_gemvq_round(const float *x, int64_t n, float most, int32_t *to)
{
    const float size = as_float(largest(x, n));
    if (size == 0 || !isfinite(size)) {
        memset(to, 0, (size_t)n * sizeof *to);
        return size == 0 ? 0 : NAN;
    }
    /* Next to numbers near 1, which there are, smaller ones do not count. */
    const float top = size < 0x1p-100f ? 0x1p-100f : size;
    const float by = most / top;
    for (int64_t i = 0; i < n; i++) /* to the nearest, ties to even */
        to[i] = (int32_t)((x[i] * by + 0x1.8p23f) - 0x1.8p23f);
    return top / most;
}

/* Numbers of a panel to where they belong. */
static void put_i16(const lb_gemvq_kernel *q, const uint16_t *place_of,
                    const int32_t *whole, int64_t groups, int16_t *to)
{
    const int n = q->group;
    for (int64_t g = 0; g < groups; g++, whole += n, to += n)
        for (int s = 0; s < n; s++)
            to[s] = (int16_t)whole[place_of[s]];
}

/* Every 4th or 8th byte, n of them; strides that compilers know. */
static void every(const int8_t *from, int stride, int n, int8_t *to)
{
    for (int i = 0; i < n && stride == 4; i++)
        to[i] = from[4 * i];
    for (int i = 0; i < n && stride == 8; i++)
        to[i] = from[8 * i];
}

/* Vectors of as many numbers as a group has bytes, one for each code of a byte:
 * of high and of low in turns, or of low alone. */
static void put_i8(const lb_gemvq_kernel *q, bool high_first,
                   const int32_t *whole, int64_t n, int8_t *to)
{
    int8_t high[LB_GEMVQ_I8_PANEL], low[LB_GEMVQ_I8_PANEL];
    const int per = 8 / q->bits, width = q->group / per;
    for (int64_t i = 0; i < n; i++) {
        low[i] = (int8_t)(uint8_t)whole[i];
        high[i] = (int8_t)((whole[i] + 128) >> 8);
    }
    for (int64_t g = 0; g < n; g += q->group)
        for (int f = 0; f < per; f++) {
            const int64_t at = g + (high_first ? per - 1 - f : f);
            if (q->kind == LB_GEMVQ_I8X2) {
                every(high + at, per, width, to);
                to += width;
            }
            every(low + at, per, width, to);
            to += width;
        }
}

static void order_whole(const lb_gemvq_kernel *q, bool high_first,
                        lb_gemvq_x *x)
{
    int32_t whole[LB_GEMVQ_I8_PANEL];
    uint16_t place_of[LB_GEMVQ_GROUP] = {0};
    const int64_t panel = panel_of(q->kind), n = x->groups * q->group;
    const float most = q->kind == LB_GEMVQ_I16    ? LB_GEMVQ_X16
                       : q->kind == LB_GEMVQ_I8X2 ? LB_GEMVQ_X8X2
                                                  : LB_GEMVQ_X8;
    if (q->kind == LB_GEMVQ_I16) lb_gemvq_places(q, high_first, place_of);
    for (int64_t at = 0, p = 0; at < n; at += panel, p++) {
        const int64_t m = n - at < panel ? n - at : panel;
        x->x_scale[p] = lb_gemvq_round(x->number + at, m, most, whole);
        x->x_sum[p] = 0;
        for (int64_t i = 0; i < m; i++)
            x->x_sum[p] += whole[i];
        if (q->kind == LB_GEMVQ_I16)
            put_i16(q, place_of, whole, m / q->group, (int16_t *)x->slots + at);
        else
            put_i8(q, high_first, whole, m,
                   (int8_t *)x->slots + at * (int64_t)slot_size(q->kind));
    }
}

static void order_f32(const lb_gemvq_kernel *q, bool high_first, lb_gemvq_x *x)
{
    uint16_t place_of[LB_GEMVQ_GROUP] = {0};
    float *to = x->slots;
    const float *from = x->number;
    lb_gemvq_places(q, high_first, place_of);
    for (int64_t g = 0; g < x->groups; g++, from += q->group, to += q->group)
        for (int s = 0; s < q->group; s++)
            to[s] = from[place_of[s]];
}

void lb_gemvq_x_order(const lb_gemvq_kernel *q, bool high_first, lb_gemvq_x *x)
{
    for (int64_t i = x->k; i < x->groups * q->group; i++)
        x->number[i] = 0;
    if (q->kind == LB_GEMVQ_F32)
        order_f32(q, high_first, x);
    else
        order_whole(q, high_first, x);
}

/* ---- scales of columns -------------------------------------------------- */

size_t lb_gemvq_each_size(const lb_gemvq_kernel *q, int64_t n)
{
    const int64_t groups = groups_of(q, n);
    return lines_of((size_t)(groups * q->group) * sizeof(float)) +
           lines_of((size_t)groups * sizeof(bool));
}

static size_t up_at(const lb_gemvq_kernel *q, int64_t n)
{
    return lines_of((size_t)(groups_of(q, n) * q->group) * sizeof(float));
}

lb_gemvq_each lb_gemvq_each_of(const lb_gemvq_kernel *q, bool high_first,
                               const float *scale, int64_t n, void *memory)
{
    uint16_t place[LB_GEMVQ_GROUP] = {0};
    float *const slots = memory;
    bool *const up = (bool *)((char *)memory + up_at(q, n));
    lb_gemvq_places(q, high_first, place);
    for (int64_t g = 0; g < n; g += q->group)
        for (int s = 0; s < q->group; s++) {
            const int64_t at = g + place[s];
            slots[g + s] = at < n ? scale[at] : 1;
        }
    if (q->look) q->look(slots, groups_of(q, n), up);
    return (lb_gemvq_each){slots, up};
}

lb_gemvq_each lb_gemvq_each_at(const lb_gemvq_kernel *q, int64_t n,
                               const void *memory, int64_t j)
{
    const char *const up = (const char *)memory + up_at(q, n);
    return (lb_gemvq_each){(const float *)memory + j,
                           (const bool *)up + j / q->group};
}
