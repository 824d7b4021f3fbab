/* small_float_encode.c - encoders of float_groups.h.
 *
 * fp8: scale = max |x| / largest code, code = x / scale, to the nearest, ties
 * to even (DeepSeek's rule). Inverse: scale = largest code / max |x|. In
 * phases, because a group may have elements of many rows: max |x| of all
 * groups, collected in any order in the memory of the scales; then scales; then
 * codes.
 *
 * mxfp8 and mxfp4: scale = 2^k, with which max |x| is in (224, 448] or in
 * [3.5, 7): compressed-tensors' rule, but for 448 itself. OCP's own rule has
 * [256, 512) and [4, 8), where values above 448 and 6 lose up to 12 and 25 %.
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "formats/config.h"
#include "formats/float_groups.h"

enum { CODES = LB_SMALL_CODES, SCALE = LB_SMALL_SCALE };
enum { FIND, MAKE, PUT }; /* phases */
enum { PIECE = 4096, SOME = 1024 };

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float peak(const float *x, int64_t n)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t a = bits_of(x[i]) & 0x7fffffff;
        most = a > most ? a : most;
    }
    float p;
    memcpy(&p, &most, sizeof p);
    return p;
}

/* ---- fp8 ----------------------------------------------------------------- */

void lb_small_prepare(const lb_quant *q, lb_store *to)
{
    const lb_array *scale = to->part[SCALE].a;
    (void)q;
    if (scale) memset(scale->store->data, 0, scale->store->data_size);
}

static int64_t pieces_of(const lb_shape *shape)
{
    const int64_t n = lb_shape_size(shape);
    const int64_t row = shape->rank ? shape->dim[shape->rank - 1] : 1;
    return n ? n / row * ((row + PIECE - 1) / PIECE) : 0;
}

static bool has_scale(const lb_quant *q)
{
    return lb_small_scale(q) != LB_SCALE_NONE;
}

static lb_layout layout_of(const lb_call *c)
{
    const lb_quant *q = c->params;
    lb_layout l = {.stored = c->in[0]->shape,
                   .dtype = q->dtype ? q->dtype : c->in[0]->dtype,
                   .run = 1};
    q->format->layout(NULL, q, c->in[0]->dtype, &c->in[0]->shape, &l);
    return l;
}

void lb_small_plan(const lb_call *c, lb_plan *to)
{
    const lb_layout l = layout_of(c);
    const lb_shape scales = lb_part_shape(&l.stored, &l.part[SCALE]);
    to->per_thread = PIECE * sizeof(float);
    to->phases = PUT + 1;
    to->units[PUT] = pieces_of(&c->in[0]->shape);
    if (!has_scale(c->params)) return;
    to->units[FIND] = to->units[PUT];
    to->units[MAKE] = (lb_shape_size(&scales) + SOME - 1) / SOME;
}

/* Floats without a sign are ordered like their bits. */
static void raise_peak(float *at, float x)
{
    _Atomic uint32_t *most = (_Atomic uint32_t *)(void *)at;
    const uint32_t mine = bits_of(x);
    uint32_t seen = atomic_load_explicit(most, memory_order_relaxed);
    while (mine > seen &&
           !atomic_compare_exchange_weak_explicit(
               most, &seen, mine, memory_order_relaxed, memory_order_relaxed))
        continue;
}

static void put_scales(const lb_work *w, const lb_quant *q, lb_store *to)
{
    const lb_small_type *type = q->format->type;
    const float largest = lb_small_largest(type->kind);
    const int64_t n = lb_shape_size(&to->part[SCALE].a->shape);
    float *scale = lb_part_place(to, SCALE);
    for (int64_t i = w->lo * SOME; i < w->hi * SOME && i < n; i++)
        scale[i] = q->meaning == LB_MEANS_INVERSE ? largest / scale[i]
                                                  : scale[i] / largest;
}

/* Elements [first, first + n) of a row, which share scale entries in turn. */
static void put_piece(const lb_work *w, const lb_quant *q, lb_store *to,
                      int64_t first, int64_t n)
{
    const lb_small_type *type = q->format->type;
    const int last = to->shape.rank - 1;
    const int64_t g = last < 0 || !has_scale(q) ? 0 : to->part[SCALE].g[last];
    const int64_t column = last < 0 ? 0 : first % to->shape.dim[last];
    float *scale = has_scale(q) ? lb_part_place(to, SCALE) : NULL;
    uint8_t *code =
        (uint8_t *)lb_part_place(to, CODES) + lb_part_entry(to, CODES, first);
    const float *x = w->phase == FIND
                         ? lb_source_peek(w, first, n, w->scratch)
                         : lb_source_again(w, first, n, w->scratch);
    for (int64_t i = 0, m; i < n; i += m) {
        m = g ? g - (column + i) % g : n;
        if (m > n - i) m = n - i;
        float *s = scale ? scale + lb_part_entry(to, SCALE, first + i) : NULL;
        if (w->phase == FIND) {
            raise_peak(s, peak(x + i, m));
            continue;
        }
        float by = s ? *s : 1;
        lb_small_encode(type->kind, x + i, m, by,
                        q->meaning == LB_MEANS_INVERSE, code + i);
    }
}

void lb_small_encode_phases(const lb_work *w)
{
    const lb_quant *q = w->call->params;
    lb_store *to = w->out->store;
    const int last = to->shape.rank - 1;
    const int64_t row = last < 0 ? 1 : to->shape.dim[last];
    if (w->phase == MAKE) {
        put_scales(w, q, to);
        return;
    }
    const int64_t each = (row + PIECE - 1) / PIECE;
    for (int64_t u = w->lo; u < w->hi; u++) {
        const int64_t at = u % each * PIECE;
        put_piece(w, q, to, u / each * row + at,
                  row - at < PIECE ? row - at : PIECE);
    }
}

/* ---- mxfp8, mxfp4 -------------------------------------------------------- */

/* The byte e of 2^(e - 127) for a block. */
static uint8_t exponent_of(lb_small kind, float most)
{
    const uint32_t bits = bits_of(most), m = bits & 0x7fffff;
    const uint32_t limit = kind == LB_E2M1 ? 0x600000 : 0x600001;
    const int drop = kind == LB_E2M1 ? 2 : 8;
    const int e = (int)(bits >> 23) + (m >= limit) - drop;
    return (uint8_t)(e > 0 ? e : 0);
}

static void put_halves(const uint8_t *code, int64_t n, uint8_t *to)
{
    for (int64_t i = 0; i + 1 < n; i += 2)
        to[i / 2] = (uint8_t)(code[i] | code[i + 1] << 4);
    if (n % 2) to[n / 2] = code[n - 1];
}

void lb_small_encode_run(const lb_cpu *cpu, const lb_quant *q, lb_store *to,
                         int64_t first, int64_t n, const float *x)
{
    enum { BLOCK = 32 };
    const lb_small_type *type = q->format->type;
    const bool halves = type->kind == LB_E2M1;
    uint8_t *code =
        (uint8_t *)lb_part_place(to, CODES) + lb_part_entry(to, CODES, first);
    uint8_t *scale =
        (uint8_t *)lb_part_place(to, SCALE) + lb_part_entry(to, SCALE, first);
    (void)cpu;
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t m = n - at < BLOCK ? n - at : BLOCK;
        const float most = peak(x + at, m);
        const uint8_t e = exponent_of(type->kind, most);
        const uint32_t bits = lb_e8m0_bits(e);
        uint8_t block[BLOCK];
        float by;
        memcpy(&by, &bits, sizeof by);
        lb_small_encode(type->kind, x + at, m, by, false,
                        halves ? block : code + at);
        if (halves) put_halves(block, m, code + at / 2);
        *scale++ = e;
    }
}
