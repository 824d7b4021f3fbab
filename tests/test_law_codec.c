/* test_law_codec.c - laws 1 and 2, for every format and variant that has an
 * encoder, with values of every kind and every length.
 *
 * 1 The error is at most the format's bound times the largest |x| of the
 *   elements that share a scale, if that and the scale are zero or normal;
 *   otherwise at most that |x|. Zeros stay zeros. Values that are not finite
 *   are refused with their index, or clamped. The size is that of the layout.
 * 2 Encoding the decoded values gives the same codes. If the encoder searches,
 *   it gives values within the bound of the decoded ones, whose total squared
 *   error is not larger than that of the first encoding.
 *
 * The parts table shows which elements share a scale: those with a common entry
 * in the part that is flagged as scale, otherwise in the first part. The latter
 * formats store the scale inside the blocks, all of them as f16. It is taken as
 * normal for |x| from 2^-6, where 128 codes have steps of 2^-13, to the largest
 * value of the format, by default 2^15; above that there is no bound. If the
 * mean is subtracted, |x| is the distance from it. If scales are quantized, the
 * bound includes their error.
 */
/* ctest: simde long=--all skip-tsan */
#include "codec_inputs.h"
#include "core/core.h"
#include "kernels/convert.h"
#include "laws.h"
#include "numbers.h"

/* Exceptions of some formats, and why. */
typedef enum zeros { STAY, MOVE_WITH_GROUP, MOVE_WITH_ALL } zeros;
static const struct {
    const char *name; /* of a format, or of a variant */
    zeros zeros;      /* whether zeros stay: always, in groups of zeros, ... */
    bool codes_move;  /* codes need not be stable */
    double largest;   /* the largest magnitude; 0: the format's */
} except[] = {
    {"binary", MOVE_WITH_GROUP, false, 0},            /* has no code for 0 */
    {"iq4_nl", MOVE_WITH_GROUP, false, 0},            /* no level is 0 */
    {"nf4, poly", MOVE_WITH_GROUP, true, 0},          /* cannot represent 0 */
    {"dynamic8, centered", MOVE_WITH_ALL, true, 0},   /* subtracts the mean */
    {"dynamic8, bnb-cpu", MOVE_WITH_GROUP, false, 0}, /* by a lookup table */
    {"int8, bnb-cuda", STAY, false, 65504},           /* converted to f16 */
    {"int8, bnb-cpu", STAY, false, 65504},
    {"uint8, asymmetric", STAY, true, 0}, /* bf16 rounds 255 by half a step */
};

typedef struct codec {
    lb_ctx *cx;
    const sample_format *f;
    lb_dtype from, label;
    zeros zeros;
    bool codes_move;
    double largest;
    codec_levels levels;
    double first, second; /* squared errors: of both encodings */
} codec;

static long arrays, elements, within, below, stable, unstable;

/* ---- one array ----------------------------------------------------------- */

typedef struct trial {
    codec *c;
    codec_kind kind;
    lb_shape shape;
    lb_quant_config config;
    lb_quant q;
    int64_t n;
    lb_array *source, *a; /* before and after */
    double *x, *y;        /* their elements */
    double origin, bound; /* the reference for |x|, and the format's bound */
    int64_t *group;       /* of each element */
    int64_t groups;
    double *most, *moved; /* of each group: |x|, and the error of the scale,
                           * times the largest code */
    bool *good;           /* whose scale and |x| are zero or normal */
    bool *asked;          /* to which a bound applies */
} trial;

static void say(const trial *t, int64_t i, const char *what)
{
    if (!check_fails(i == t->n)) return;
    fprintf(stderr, "%s, %s from %s%s, %s: %s", t->c->f->name,
            lb_dtype_name(t->c->label), lb_dtype_name(t->c->from),
            LB_SHOW(&t->shape), codec_kind_name(t->kind), what);
    if (i >= 0)
        fprintf(stderr, ": element %lld is %.9g, decoded %.9g, largest %.9g",
                (long long)i, t->x[i], t->y[i], t->most[t->group[i]]);
    if (*lb_error(t->c->cx)) fprintf(stderr, ": %s", lb_error(t->c->cx));
    fprintf(stderr, "\n");
}

static bool is_normal(lb_dtype d, double v)
{
    const number_layout l = number_layout_of(d);
    return fabs(v) >= ldexp(1, l.min_exp) && fabs(v) < ldexp(1, l.max_exp);
}

static double half_value(uint16_t u)
{
    static double table[1 << 16];
    static bool made;
    for (uint32_t i = 0; !made && i < 1 << 16; i++)
        table[i] = (double)number_from_float(LB_F16, i);
    made = true;
    return table[u];
}

static double value_at(lb_dtype d, const char *at)
{
    uint32_t u = 0;
    uint16_t h;
    float f;
    memcpy(&h, at, sizeof h);
    if (d == LB_F16) return half_value(h);
    if (d != LB_BF16 && d != LB_F32) return (double)number_at(d, at);
    u = (uint32_t)h << 16;
    if (d == LB_F32) memcpy(&u, at, sizeof u);
    memcpy(&f, &u, sizeof f);
    return (double)f;
}

/* All elements, as doubles. */
static double *values(lb_ctx *cx, lb_array *a)
{
    const int64_t n = lb_size(a);
    const size_t each = lb_dtype_size(a->dtype);
    char *raw = malloc((size_t)n * each + 8);
    double *v = malloc((size_t)n * sizeof *v + 1);
    if (!raw || !v) abort();
    CHECK(lb_read(cx, a, raw, (size_t)n * each));
    for (int64_t i = 0; i < n; i++)
        v[i] = value_at(a->dtype, raw + (size_t)i * each);
    free(raw);
    return v;
}

/* ---- groups -------------------------------------------------------------- */

/* The part whose entries define groups. */
static int group_part(const lb_store *s)
{
    for (int p = 0; p < LB_MAX_PARTS; p++)
        if (s->fmt->part[p].scale && s->part[p].a) return p;
    return 0;
}

/* The index of a part's entry for element e, and their number: computed from
 * the table independently of the library. */
static int64_t entry(const lb_shape *s, const lb_part *p, int64_t e)
{
    int64_t at = 0, step = 1;
    for (int k = s->rank - 1; k >= 0; k--) {
        const int64_t i = k ? e % s->dim[k] : e, g = p->g[k];
        if (k) e /= s->dim[k];
        if (!g) continue;
        at += (g == 1 ? i : i / g) * step;
        step *= (s->dim[k] + g - 1) / g;
    }
    return at;
}

static int64_t entries(const lb_shape *s, const lb_part *p)
{
    int64_t n = 1;
    for (int k = 0; k < s->rank; k++)
        n *= p->g[k] ? (s->dim[k] + p->g[k] - 1) / p->g[k] : 1;
    return n;
}

/* Without a scale, values are codes: there is no bound. */
static bool is_unscaled(const lb_store *s)
{
    for (int p = 0; p < LB_MAX_PARTS; p++)
        if (s->fmt->part[p].scale && !s->part[p].a) return true;
    return false;
}

static void *zeroed(int64_t n, size_t each)
{
    void *p = calloc((size_t)n + 1, each);
    if (!p) abort();
    return p;
}

/* With a subtracted mean: the index of the first such value. */
static void find_origin(trial *t)
{
    lb_quant plain = t->q;
    const lb_format *fmt = t->c->f->fmt;
    bool offset = false;
    for (int p = 0; p < LB_MAX_PARTS && fmt->part[p].name; p++)
        offset = offset || strcmp(fmt->part[p].name, "offset") == 0;
    plain.center = plain.center && !offset;
    t->bound = fmt->bound ? fmt->bound(&plain) : 0;
    if (t->q.center && offset)
        t->origin = lb_item(t->c->cx, lb_component(t->c->cx, t->a, "offset"));
}

static void find_scales(trial *t, int p)
{
    const lb_store *s = t->a->store;
    lb_ctx *cx = t->c->cx;
    lb_quant_config plain = t->config;
    plain.double_quant = false;
    double *scale = values(cx, s->part[p].a), *exact = NULL;
    if (t->config.double_quant)
        exact =
            values(cx, lb_quantize(cx, t->source, &plain)->store->part[p].a);
    for (int64_t g = 0; g < t->groups; g++) {
        const double m = t->most[g];
        const bool normal = is_normal(s->part[p].a->dtype, scale[g]);
        t->asked[g] = true;
        t->good[g] = m == 0 || (is_normal(LB_F32, m) && normal);
        if (!exact || exact[g] == 0) continue;
        t->moved[g] = fabs((scale[g] - exact[g]) * (m / exact[g]));
        if (scale[g] * exact[g] < 0) t->good[g] = false; /* codes change sign */
    }
    free(scale);
    free(exact);
}

static void find_groups(trial *t)
{
    const lb_store *s = t->a->store;
    const int p = group_part(s);
    t->groups = entries(&s->shape, &s->part[p]);
    t->group = zeroed(t->n, sizeof *t->group);
    t->most = zeroed(t->groups, sizeof *t->most);
    t->moved = zeroed(t->groups, sizeof *t->moved);
    t->good = zeroed(t->groups, sizeof *t->good);
    t->asked = zeroed(t->groups, sizeof *t->asked);
    find_origin(t);
    for (int64_t e = 0; e < t->n; e++) {
        const int64_t g = t->group[e] = entry(&s->shape, &s->part[p], e);
        const double size = fabs(t->x[e] - t->origin);
        if (size > t->most[g]) t->most[g] = size;
    }
    if (s->fmt->part[p].scale) {
        find_scales(t, p);
        return;
    }
    const double most = s->fmt->largest > 0 ? (double)s->fmt->largest : 0x1p15;
    for (int64_t g = 0; g < t->groups; g++) {
        t->asked[g] = t->most[g] <= most;
        t->good[g] = t->most[g] == 0 || t->most[g] >= 0x1p-6;
    }
}

/* ---- law 1 --------------------------------------------------------------- */

static bool is_near(const trial *t, int64_t i)
{
    const codec *c = t->c;
    const number_layout l = number_layout_of(c->label);
    const int64_t g = t->group[i];
    const double m = t->most[g], unit = t->good[g] ? t->bound : 1;
    double may = unit * m * (1 + 0x1p-20) + t->moved[g];
    /* The largest value may have no successor. */
    if (!isfinite(t->y[i]))
        return fabs(t->x[i]) + may >= ldexp(1, l.max_exp) * (1 - 0x1p-9);
    if (c->label != LB_F32) /* rounds once more */
        may += ldexp(fabs(t->y[i]), -l.digits) + ldexp(1, l.min_exp - l.digits);
    return fabs(t->y[i] - t->x[i]) <= may;
}

static void check_errors(const trial *t)
{
    const codec *c = t->c;
    const bool unscaled = is_unscaled(t->a->store);
    bool all_zero = true;
    int64_t i = 0;
    for (; i < t->n; i++)
        all_zero = all_zero && t->x[i] == 0;
    for (i = 0; i < t->n; i++) {
        const bool moves = c->zeros == STAY ? false
                           : unscaled       ? true
                           : c->zeros == MOVE_WITH_GROUP
                               ? t->most[t->group[i]] != 0
                               : !all_zero;
        if (t->x[i] == 0 && t->y[i] != 0 && !moves) break;
    }
    say(t, i, "a zero that is none");
    for (i = 0; i < t->n && t->bound != 0 && !unscaled; i++) {
        if (!t->asked[t->group[i]]) continue;
        if (!is_near(t, i)) break;
        *(t->good[t->group[i]] ? &within : &below) += 1;
    }
    if (t->bound != 0 && !unscaled) say(t, i, "too far off");
    elements += t->n;
}

static int64_t bytes_of(const lb_shape *s, const lb_part *p, lb_dtype d)
{
    return entries(s, p) * (p->own ? p->own : 1) * (int64_t)lb_dtype_size(d);
}

/* The bytes of the layout, recursively for scales that are quantized. */
static int64_t table_bytes(lb_ctx *cx, const lb_quant *q, lb_dtype from,
                           const lb_array *a)
{
    lb_layout l;
    int64_t n = 0;
    if (q && !lb_layout_of(cx, q, from, &a->shape, &l)) return -1;
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        const lb_array *part = a->store->part[p].a;
        const lb_part *line = q ? &l.part[p] : &a->store->part[p];
        if (q && !l.elem[p] != !part) return -1;
        if (!part) continue;
        n += part->store->data
                 ? bytes_of(q ? &l.stored : &a->store->shape, line, part->dtype)
                 : table_bytes(cx, NULL, from, part);
    }
    return n;
}

static void check_size(const trial *t)
{
    const int64_t want = table_bytes(t->c->cx, &t->q, t->c->from, t->a);
    const bool ok = (int64_t)lb_nbytes(t->a) == want &&
                    lb_shape_equal(&t->a->shape, &t->shape) &&
                    t->a->dtype == t->c->label &&
                    strcmp(lb_format_of(t->a), t->c->f->fmt->name) == 0;
    say(t, ok ? t->n : -1, "its size, shape, dtype or format");
}

/* Unused bits of a row's last byte have the format's padding, so that equal
 * values have equal bytes. */
static void check_filler(const trial *t)
{
    const lb_store *s = t->a->store;
    const lb_code_kind *k = &s->fmt->codes;
    if (!k->bits || 8 % k->bits || k->bits == 8 || !t->n || t->config.compat)
        return;
    const int per = 8 / k->bits, mask = (1 << k->bits) - 1;
    const int64_t row = s->shape.rank ? s->shape.dim[s->shape.rank - 1] : 1;
    const int64_t bytes = (row + per - 1) / per;
    const uint8_t *byte = lb_part_bytes(s, 0);
    bool ok = true;
    for (int64_t r = 0; r < t->n / row; r++)
        for (int i = (int)(row % per); i > 0 && i < per; i++) {
            const int shift = (k->high_first ? per - 1 - i : i) * k->bits;
            const int place = byte[(r + 1) * bytes - 1] >> shift & mask;
            ok = ok && place == k->filler;
        }
    say(t, ok ? t->n : -1, "its filler");
}

/* ---- law 2 --------------------------------------------------------------- */

/* Entries of the first part whose elements are all in good groups. */
static bool *good_entries(const trial *t)
{
    const lb_store *s = t->a->store;
    const int64_t n = entries(&s->shape, &s->part[0]);
    bool *good = zeroed(n, 1);
    memset(good, 1, (size_t)n);
    for (int64_t e = 0; e < t->n; e++)
        if (!t->good[t->group[e]] || !t->asked[t->group[e]] ||
            (t->y[e] != 0 && number_is_float(t->c->label) &&
             !is_normal(t->c->label, t->y[e])))
            good[entry(&s->shape, &s->part[0], e)] = false;
    return good;
}

static void same_codes(const trial *t, const lb_array *again)
{
    const lb_store *s = t->a->store, *r = again->store;
    const int64_t n = entries(&s->shape, &s->part[0]);
    const size_t each =
        (size_t)bytes_of(&s->shape, &s->part[0], s->part[0].a->dtype) /
        (size_t)(n ? n : 1);
    const char *x = lb_part_bytes(s, 0), *y = lb_part_bytes(r, 0);
    bool *good = good_entries(t);
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        const size_t at = (size_t)i * each;
        *(good[i] ? &stable : &unstable) += 1;
        wrong += good[i] && memcmp(x + at, y + at, each) != 0;
    }
    say(t, wrong ? -1 : t->n, "encoded again, other codes");
    free(good);
}

static void no_worse(const trial *t, lb_array *again)
{
    codec *c = t->c;
    const number_layout l = number_layout_of(c->label);
    double *z = values(c->cx, again);
    int64_t i = 0;
    for (; i < t->n; i++) {
        const int64_t g = t->group[i];
        const double first = t->y[i] - t->x[i], second = z[i] - t->y[i];
        const double may = t->most[g] * (1 + t->bound) *
                               (t->bound + ldexp(1, -l.digits) + 0x1p-20) +
                           ldexp(1, l.min_exp - l.digits);
        *(t->good[g] && t->asked[g] ? &stable : &unstable) += 1;
        if (!t->good[g] || !t->asked[g]) continue;
        if (fabs(second) > may) break;
        if (t->kind != CODEC_NORMAL && t->kind != CODEC_TAIL) continue;
        c->first += first * first;
        c->second += second * second;
    }
    say(t, i, "encoded again, worse");
    free(z);
}

static void check_stable(const trial *t)
{
    const codec *c = t->c;
    for (int64_t i = 0; i < t->n; i++)
        if (!isfinite(t->y[i])) return;
    lb_array *decoded = lb_materialize(c->cx, t->a);
    if (!number_is_float(c->label))
        decoded = lb_convert(c->cx, decoded, c->from);
    lb_array *again = lb_quantize(c->cx, decoded, &t->config);
    say(t, again ? t->n : -1, "encoded again");
    if (!again) return;
    if (c->f->fmt->searches)
        no_worse(t, again);
    else
        same_codes(t, again);
}

/* The largest value that can be encoded. */
static double largest(const codec *c)
{
    const number_layout l = number_layout_of(c->from);
    const double most = ldexp(1 - ldexp(1, -l.digits), l.max_exp);
    const double takes =
        c->largest > 0 ? c->largest : (double)c->f->fmt->largest;
    const double f32 = 0x1.fffffep127;
    return takes > 0 && takes < most ? takes : most < f32 ? most : f32;
}

/* Larger values are refused, and clamped if requested. */
static void check_largest(trial *t)
{
    const codec *c = t->c;
    const double most = largest(c);
    int64_t n = 0;
    for (int64_t i = 0; i < t->n; i++) {
        if (!(fabs(t->x[i]) > most)) continue;
        t->x[i] = copysign(most, t->x[i]);
        n++;
    }
    if (!n) return;
    const bool none = !lb_quantize(c->cx, t->source, &t->config) &&
                      lb_error_status(c->cx) == LB_E_ARG;
    say(t, none ? t->n : -1, "not refused");
    lb_clear(c->cx);
    t->config.on_nonfinite = LB_NONFINITE_CLAMP;
}

static void try_one(codec *c, codec_kind kind, lb_shape shape)
{
    if (check_thins()) return;
    trial t = {.c = c, .kind = kind, .shape = shape};
    t.n = lb_shape_size(&shape);
    void *data = zeroed(t.n, lb_dtype_size(c->from));
    codec_fill(kind, &c->levels, c->from, (uint64_t)arrays, t.n, data);
    sample_config(c->f, shape.rank, c->label, &t.config);
    lb_enter(c->cx);
    t.source = lb_from(c->cx, c->from, shape, data);
    t.x = values(c->cx, t.source);
    check_largest(&t);
    t.a = lb_quantize(c->cx, t.source, &t.config);
    const bool ok =
        t.a && lb_quant_of(c->cx, "law", &t.config, shape.rank, &t.q);
    say(&t, ok ? t.n : -1, "refused");
    if (ok) {
        arrays++;
        t.y = values(c->cx, t.a);
        find_groups(&t);
        check_errors(&t);
        check_size(&t);
        check_filler(&t);
        if (t.config.compat == LB_COMPAT_NATIVE && !c->codes_move)
            check_stable(&t);
    }
    lb_clear(c->cx);
    lb_leave(c->cx);
    void *const block[] = {data,   t.x,     t.y,    t.group,
                           t.most, t.moved, t.good, t.asked};
    for (size_t i = 0; i < sizeof block / sizeof *block; i++)
        free(block[i]);
}

/* ---- values that are not finite ------------------------------------------ */

static void refused(const codec *c, lb_shape shape, const double *bad,
                    const int64_t *at, int n, const char *say_index)
{
    enum { MOST = 1024 };
    static char data[2][MOST * 8];
    lb_quant_config config;
    const size_t each = lb_dtype_size(c->from);
    const double most = largest(c);
    codec_fill(CODEC_NORMAL, &c->levels, c->from, 3, lb_shape_size(&shape),
               data[0]);
    memcpy(data[1], data[0], sizeof data[0]);
    for (int i = 0; i < n; i++) {
        const double mended = isnan(bad[i]) ? 0 : copysign(most, bad[i]);
        lb_store_run(LB_C_F64, &bad[i], c->from, 1,
                     data[0] + (size_t)at[i] * each);
        lb_store_run(LB_C_F64, &mended, c->from, 1,
                     data[1] + (size_t)at[i] * each);
    }
    sample_config(c->f, shape.rank, c->label, &config);
    lb_enter(c->cx);
    lb_array *x = lb_from(c->cx, c->from, shape, data[0]);
    lb_array *mended = lb_from(c->cx, c->from, shape, data[1]);
    const size_t before = lb_bytes_in_use(c->cx);
    const bool none = !lb_quantize(c->cx, x, &config);
    const char *s = lb_error(c->cx);
    if (check_fails(none && lb_error_status(c->cx) == LB_E_ARG &&
                    strstr(s, say_index) && strstr(s, c->f->fmt->name)))
        fprintf(stderr, "%s: \"%s\", not %s\n", c->f->name, s, say_index);
    CHECK_EQ_I(lb_bytes_in_use(c->cx), before);
    lb_clear(c->cx);
    config.on_nonfinite = LB_NONFINITE_CLAMP;
    lb_text why;
    if (check_fails(sample_same(lb_quantize(c->cx, x, &config),
                                lb_quantize(c->cx, mended, &config), &why)))
        fprintf(stderr, "%s, clamped: %s %s\n", c->f->name, why.s,
                lb_error(c->cx));
    lb_clear(c->cx);
    lb_leave(c->cx);
}

static void not_finite(const codec *c)
{
    const double inf = (double)INFINITY, nan = (double)NAN;
    refused(c, LB_SHAPE(1), &nan, (const int64_t[]){0}, 1, "element (0)");
    refused(c, LB_SHAPE(300), &inf, (const int64_t[]){299}, 1, "element (299)");
    refused(c, LB_SHAPE(3, 100), (const double[]){nan, -inf, inf},
            (const int64_t[]){250, 137, 288}, 3, "element (1,37)");
    refused(c, LB_SHAPE(2, 3, 70), (const double[]){-inf, nan},
            (const int64_t[]){209, 211}, 2, "element (0,2,69)");
}

/* ---- everything ---------------------------------------------------------- */

/* The decoded ramp, of which every other element is +-1, so that all groups
 * have the same scale: its levels. */
static void find_levels(codec *c)
{
    enum { N = 4096 };
    static float x[N];
    lb_quant_config config;
    for (int i = 0; i < N; i++)
        x[i] = i % 2 ? (float)(i - N / 2) / (N / 2) : i % 4 ? -1.0f : 1.0f;
    sample_config(c->f, 1, c->f->config.dtype ? c->f->config.dtype : LB_F32,
                  &config);
    lb_enter(c->cx);
    lb_array *a = lb_from(c->cx, LB_F32, LB_SHAPE(N), x);
    a = lb_quantize(c->cx, a, &config);
    lb_array *values_f32 = lb_materialize(c->cx, lb_convert(c->cx, a, LB_F32));
    CHECK(values_f32 != NULL);
    if (values_f32) codec_levels_from(&c->levels, lb_data(values_f32), N);
    CHECK(c->levels.n > 1);
    lb_clear(c->cx);
    lb_leave(c->cx);
}

/* Whether a run skips the dtype: for most lengths, and for variants, only one
 * of the three in turn is tested. */
static bool thins(const sample_format *f, int64_t n, int d, int kind)
{
    if (law_run.all) return false;
    if (!f->variant && (n < 20 || n > 300)) return false;
    if (f->variant && n > 70 && n < 300 && (n + kind) % 5) return true;
    return (n + d + kind) % 3 != 0;
}

static void every_length(codec *c, int d)
{
    for (int kind = 0; kind < CODEC_KINDS; kind++)
        for (int64_t n = 0; n <= 4097; n++) {
            if (n == 301) n = 511;
            if (n == 514) n = 4095;
            if (thins(c->f, n, d, kind)) continue;
            try_one(c, (codec_kind)kind, LB_SHAPE(n));
            if (n < 600 && (n % 16 == 1 || n % 64 == 0 || n == 31)) {
                try_one(c, (codec_kind)kind, LB_SHAPE(3, n));
                try_one(c, (codec_kind)kind, LB_SHAPE(2, 2, n));
                try_one(c, (codec_kind)kind, LB_SHAPE(n, 3));
            }
        }
    try_one(c, CODEC_NORMAL, (lb_shape){0});
    try_one(c, CODEC_NORMAL, LB_SHAPE(3, 0, 2));
}

static void every_dtype(lb_ctx *cx, const sample_format *f)
{
    static const lb_dtype from[] = {LB_F32, LB_F16, LB_BF16, LB_F64};
    codec c = {.cx = cx, .f = f};
    for (size_t i = 0; i < sizeof except / sizeof *except; i++) {
        if (strcmp(except[i].name, f->name) != 0 &&
            strcmp(except[i].name, f->fmt->name) != 0)
            continue;
        c.zeros = except[i].zeros;
        c.codes_move = except[i].codes_move;
        c.largest = except[i].largest;
    }
    find_levels(&c);
    for (int d = 0; d < 4; d++) {
        c.from = from[d];
        c.label = f->config.dtype ? f->config.dtype : from[d];
        not_finite(&c);
        if (c.from != LB_F64) every_length(&c, d);
    }
    if (check_fails(c.second <= c.first))
        fprintf(stderr,
                "%s: encoded again, errors of %g on the whole, not %g\n",
                f->name, sqrt(c.second), sqrt(c.first));
}

int main(int argc, char **argv)
{
    law_args(argc, argv);
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    CHECK(cx != NULL);
    if (!cx) return check_report("laws 1 and 2, codecs");
    CHECK(sample_add_outside(cx));
    sample_format_list list = law_formats(cx);
    int n = 0;
    for (int i = 0; i < list.n; i++) {
        const sample_format *f = &list.item[i];
        if (!f->fmt || !lb_is_encodable(f->fmt)) continue;
        if (n++ % law_run.shares == law_run.share) every_dtype(cx, f);
    }
    printf("%d formats and variants, %ld arrays, %ld elements: %ld within the "
           "bound, %ld below it; %ld entries of codes stable, %ld not asked\n",
           n, arrays, elements, within, below, stable, unstable);
    sample_formats_free(&list);
    lb_close(cx);
    return check_report("laws 1 and 2, codecs");
}
