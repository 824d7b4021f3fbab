/* affine_recode.c - codes and parameters of the affine formats (lb_recode). */
#include "formats/affine.h"

#include <string.h>

#include "formats/recode.h"
#include "kernels/affine_decode.h"

enum {
    CODES = LB_AFFINE_CODES,
    SCALE = LB_AFFINE_SCALE,
    ZERO = LB_AFFINE_ZERO,
    BIAS = LB_AFFINE_BIAS,
    GROUP = LB_AFFINE_GROUP
};

static bool is_float(lb_dtype d)
{
    return d >= LB_F32 && d <= LB_F64;
}

static int default_zero(const lb_store *s)
{
    const lb_affine_type *t = s->fmt->type;
    return s->part[BIAS].a ? 0 : 1 << (t->bits - 1);
}

/* Zero points that are floats are part of the bias. Groups that are listed have
 * no order along a row. */
static bool scheme(const lb_store *s, lb_scheme *to)
{
    const lb_affine_type *t = s->fmt->type;
    const lb_array *zero = s->part[ZERO].a;
    const bool real = zero && is_float(zero->dtype);
    if (s->part[GROUP].a) return false;
    *to = (lb_scheme){.most = (1 << t->bits) - 1,
                      .zero_least = default_zero(s),
                      .zero_most = default_zero(s),
                      .bias = s->part[BIAS].a || real,
                      .stores = !real};
    if (zero && !real) {
        to->zero_least = 0;
        to->zero_most = 255;
    }
    for (int k = 0; k < s->shape.rank; k++) {
        to->g[k] = s->part[SCALE].g[k];
        for (int p = ZERO; p <= BIAS; p++)
            if (s->part[p].a && s->part[p].g[k] != to->g[k]) return false;
    }
    return true;
}

static int64_t int_entry(const lb_store *s, int part, int64_t e)
{
    static const lb_cpu plain = {.level = LB_LEVEL_REF};
    const lb_array *a = s->part[part].a;
    const int64_t at = lb_part_entry(s, part, e);
    int64_t value = 0; /* i64 or u64 */
    lb_tile_read_flat(&plain, a, at, 1, lb_ctype_of(a->dtype), &value);
    return value;
}

/* Zero points of other dtypes, which no target has, to an int. */
static int clamped(int64_t v)
{
    return v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : (int)v;
}

static lb_qparam param(const lb_store *s, int64_t e)
{
    const lb_array *zero = s->part[ZERO].a;
    lb_qparam p = {.scale = lb_recode_get(s, SCALE, e),
                   .zero = default_zero(s)};
    if (s->part[BIAS].a) p.bias = lb_recode_get(s, BIAS, e);
    if (!zero) return p;
    p.zero = 0;
    if (is_float(zero->dtype))
        p.bias -= p.scale * lb_recode_get(s, ZERO, e);
    else
        p.zero = clamped(int_entry(s, ZERO, e));
    return p;
}

/* With a bias of 16 bits, values are rounded so that codes of 8 bits cannot be
 * told from them. Others follow from values, which is faster. */
static bool get_codes(const lb_store *s, int64_t first, int64_t n,
                      int16_t *code)
{
    enum { SOME = 256 };
    const lb_affine_type *t = s->fmt->type;
    const lb_array *bias = s->part[BIAS].a;
    const int64_t at = first % s->shape.dim[s->shape.rank - 1];
    uint8_t some[SOME];
    if (!bias || bias->dtype == LB_F32) return false;
    const uint8_t *row = (const uint8_t *)lb_part_bytes(s, CODES) +
                         lb_part_entry(s, CODES, first - at);
    for (int64_t i = 0; i < n; i += SOME) {
        const int64_t m = n - i < SOME ? n - i : SOME;
        lb_affine_ref.codes(t->bits, row, at + i, m, some);
        for (int64_t k = 0; k < m; k++)
            code[i + k] = some[k];
    }
    return true;
}

/* Codes that begin with a byte, and an entry. */
static void put_codes(const lb_affine_type *t, const int16_t *code, int64_t n,
                      uint8_t *to)
{
    enum { SOME = 256 };
    uint8_t small[SOME];
    if (n % t->elements)
        memset(to + n / t->elements * t->bytes, 0, (size_t)t->bytes);
    for (int64_t i = 0; i < n; i += SOME) {
        const int64_t m = n - i < SOME ? n - i : SOME;
        for (int64_t k = 0; k < m; k++)
            small[k] = (uint8_t)code[i + k];
        lb_affine_pack(t->bits, small, m, to + i / 8 * t->bits);
    }
}

static void set(lb_store *to, int64_t e, const lb_qparam *p)
{
    lb_recode_set(to, SCALE, e, p->scale);
    if (to->part[BIAS].a) lb_recode_set(to, BIAS, e, p->bias);
    if (to->part[ZERO].a)
        ((uint8_t *)lb_part_place(to, ZERO))[lb_part_entry(to, ZERO, e)] =
            (uint8_t)p->zero;
}

static void put(lb_store *to, int64_t first, int64_t n, const int16_t *code,
                const lb_qparam *p)
{
    uint8_t *byte = lb_part_place(to, CODES);
    put_codes(to->fmt->type, code, n, byte + lb_part_entry(to, CODES, first));
    set(to, first, p);
}

const lb_recode lb_affine_recode = {.scheme = scheme,
                                    .param = param,
                                    .codes = get_codes,
                                    .put = put,
                                    .set = set};
