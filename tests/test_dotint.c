/* test_dotint.c - the kernels of dotint.h, on every level, against their
 * definition computed element by element, with guard pages around all memory.
 */
/* ctest: simde bochs skip-tsan skip-ref */
#include <float.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "check.h"
#include "draws.h"
#include "fenced.h"
#include "kernels/dotint.h"

static const struct subject {
    const lb_dotint *kernel;
    lb_level level;
} subjects[] = {
    {&lb_dotint_ref, LB_LEVEL_REF},
#if defined(__x86_64__)
    {&lb_dotint_avx2, LB_LEVEL_AVX2},
    {&lb_dotint_avx512, LB_LEVEL_AVX512},
    {&lb_dotint_vnni, LB_LEVEL_AVX512VNNI},
#elif defined(__aarch64__)
    {&lb_dotint_neon, LB_LEVEL_NEON},
#endif
};
enum { N_SUBJECTS = sizeof subjects / sizeof *subjects };

static bool runs_here(lb_level level)
{
#if defined(LB_SIMDE)
    (void)level;
    return true;
#else
    return lb_level_available(level);
#endif
}

enum { STEP = LB_DOTINT_STEP, MOST = LB_DOTINT_DEEP + 128, ROOM = 1 << 16 };
enum { ROWS = 3 }; /* of codes */

/* ---- memory next to guard pages ---------------------------------------- */

static char *room(const fenced *f)
{
    return f->map + f->page;
}

/* At its end, or at its beginning. */
static void *place(const fenced *f, size_t bytes, bool end)
{
    return end ? room(f) + ROOM - bytes : room(f);
}

static fenced in, out;

/* ---- numbers ------------------------------------------------------------ */

static void fill_bytes(void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)p)[i] = (uint8_t)random_bits();
}

static void whose(const lb_dotint *k, const char *what, int64_t n)
{
    fprintf(stderr, "%s: %s, K = %lld\n", k->name, what, (long long)n);
}

/* ---- the order of a panel ----------------------------------------------- */

typedef struct {
    int place[STEP]; /* of each element of a step */
} order;

/* Found by rounding single values; every position must occur once. */
static order order_of(const lb_dotint *k)
{
    order o;
    _Alignas(64) int16_t to[STEP];
    unsigned met = 0;
    for (int i = 0; i < STEP; i++) {
        float x[STEP] = {0};
        x[i] = 1;
        memset(to, 1, sizeof to);
        k->round(STEP, x, 7, to, k->lanes);
        o.place[i] = -1;
        for (int j = 0; j < STEP; j++)
            if (to[j] == 7)
                o.place[i] = j;
            else
                CHECK(to[j] == 0);
        CHECK(o.place[i] >= 0);
        if (o.place[i] >= 0) met |= 1u << o.place[i];
    }
    CHECK(met == 0xffffffffu);
    return o;
}

/* Element i of a row whose vectors are `apart` apart. */
static int16_t at(const lb_dotint *k, const order *o, const int16_t *row,
                  int64_t apart, int64_t i)
{
    const int64_t p = i / STEP * STEP + o->place[i % STEP];
    return row[p / k->lanes * apart + p % k->lanes];
}

/* Space for n values of a row, and nothing after them. */
static int16_t *row_room(const lb_dotint *k, int64_t n, int64_t apart)
{
    const int64_t vectors = up(n, STEP) / k->lanes;
    const int64_t size = vectors ? (vectors - 1) * apart + k->lanes : 0;
    int16_t *to = place(&out, (size_t)size * sizeof *to, true);
    memset(room(&out), 0x55, ROOM);
    return to;
}

/* Memory between vectors is unchanged. */
static bool gaps_are_left(const lb_dotint *k, const int16_t *row, int64_t n,
                          int64_t apart)
{
    const int64_t vectors = up(n, STEP) / k->lanes;
    for (int64_t v = 0; v + 1 < vectors; v++)
        for (int64_t i = k->lanes; i < apart; i++)
            if (row[v * apart + i] != 0x5555) return false;
    return true;
}

/* ---- x ------------------------------------------------------------------ */

static void check_largest(const lb_dotint *k, int64_t n, bool end)
{
    float *x = place(&in, (size_t)n * sizeof *x, end), lane;
    double sum = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        x[i] = random_float() * (i % 7 == 3 ? 1e-39f : 3);
        most = fmax(most, fabs((double)x[i]));
        sum += fabs((double)x[i]);
    }
    CHECK(k->largest(n, x, &lane) == (float)most);
    /* There are eight lanes. */
    CHECK((double)lane * 8 >= sum * 0.999999);
    CHECK((double)lane <= sum * 1.000001);
    if (n == 0) return;
    const int64_t where = random_bits() % n;
    x[where] = -INFINITY;
    CHECK(k->largest(n, x, &lane) == INFINITY);
    x[where] = -NAN;
    CHECK(isnan(k->largest(n, x, &lane)));
}

/* The sum of a lane in the documented order: pairs within a vector, and all
 * that are eight pairs apart; vectors of eight have single values instead of
 * pairs. */
static void check_lanes(const lb_dotint *k, const order *o)
{
    float x[MOST], lane;
    double sum[8] = {0}, most = 0;
    for (int i = 0; i < MOST; i++) {
        x[i] = random_float();
        const int at = o->place[i % STEP];
        sum[k->lanes == 8 ? at % 8 : at % 16 / 2] += fabs((double)x[i]);
    }
    for (int l = 0; l < 8; l++)
        most = fmax(most, sum[l]);
    k->largest(MOST, x, &lane);
    CHECK_NEAR((double)lane, most, 1e-5 * most);
}

static void check_round(const lb_dotint *k, const order *o, int64_t n,
                        int64_t rows, bool end)
{
    if (check_thins_short()) return;
    const int64_t apart = rows * k->lanes;
    float *x = place(&in, (size_t)n * sizeof *x, end);
    int16_t *to = row_room(k, n, apart);
    for (int64_t i = 0; i < n; i++)
        x[i] = i % 5 == 1   ? (float)(int)(i % 9 - 4) * 0.5f /* a tie */
               : i % 5 == 2 ? -0.0f
                            : random_float() * 32767;
    int64_t sum = -k->round(n, x, 1, to, apart);
    bool ok = gaps_are_left(k, to, n, apart);
    for (int64_t i = 0; i < up(n, STEP); i++) {
        const long want = i < n ? lrint((double)x[i]) : 0;
        ok = ok && at(k, o, to, apart, i) == want;
        sum += want;
    }
    ok = ok && sum == 0;
    if (check_fails(ok)) whose(k, "round", n);
}

/* ---- bytes -------------------------------------------------------------- */

static int code_of(const uint8_t *codes, int bits, bool high_first, int64_t i)
{
    const int per = 8 / bits, p = (int)(i % per);
    const int field = high_first ? per - 1 - p : p;
    return codes[i / per] >> (field * bits) & ((1 << bits) - 1);
}

static void check_unpack(const lb_dotint *k, int bits, bool high_first,
                         int64_t n, bool end)
{
    if (check_thins_short()) return;
    const size_t bytes = (size_t)((n * bits + 7) / 8);
    uint8_t *codes = place(&in, bytes, end);
    int8_t *to = place(&out, (size_t)up(n, STEP), true), number[16];
    fill_bytes(codes, bytes);
    fill_bytes(number, sizeof number);
    k->unpack(bits, high_first, number, n, codes, to);
    bool ok = true;
    for (int64_t i = 0; i < n; i++)
        ok = ok && to[i] == number[code_of(codes, bits, high_first, i)];
    if (check_fails(ok)) whose(k, "unpack", n);
}

static void check_turn(const lb_dotint *k, int64_t n, int64_t ld)
{
    const int8_t *line[LB_DOTINT_LINES];
    const size_t bytes = (size_t)(LB_DOTINT_LINES * n);
    int8_t *from = place(&in, bytes, true);
    int8_t *to = place(&out, (size_t)((n - 1) * ld + LB_DOTINT_LINES), true);
    fill_bytes(from, bytes);
    for (int l = 0; l < LB_DOTINT_LINES; l++)
        line[(l * 5) % LB_DOTINT_LINES] = from + l * n;
    memset(room(&out), 0x55, ROOM);
    k->turn(line, n, to, ld);
    bool ok = true;
    for (int64_t p = 0; p < n; p++) {
        for (int l = 0; l < LB_DOTINT_LINES; l++)
            ok = ok && to[p * ld + l] == line[l][p];
        for (int64_t l = LB_DOTINT_LINES; l < ld && p < n - 1; l++)
            ok = ok && to[p * ld + l] == 0x55;
    }
    if (check_fails(ok)) whose(k, "turn", n);
}

/* ---- w ------------------------------------------------------------------ */

static void check_ratios(const lb_dotint *k, int64_t n, float size, bool end)
{
    float *s = place(&in, (size_t)n * sizeof *s, end);
    int16_t *to = place(&out, (size_t)n * sizeof *to, end);
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        s[i] = random_float() * size;
        most = fmax(most, fabs((double)s[i]));
    }
    float got = -1;
    k->ratios(1, n, s, n, 16384, to, n, &got);
    bool ok = got == (float)most;
    for (int64_t i = 0; i < n; i++)
        ok = ok && fabs(to[i] - (double)s[i] / most * 16384) <= 0.51;
    if (check_fails(ok)) whose(k, "ratios", n);
    int16_t *same = malloc((size_t)n * sizeof *same + 1);
    lb_dotint_ref.ratios(1, n, s, n, 16384, same, n, &got);
    CHECK(n == 0 || !memcmp(same, to, (size_t)n * sizeof *to));
    free(same);
    if (n == 0) return;
    s[n - 1] = NAN;
    k->ratios(1, n, s, n, 16384, to, n, &got);
    CHECK(!isfinite(got));
    memset(s, 0, (size_t)n * sizeof *s);
    k->ratios(1, n, s, n, 16384, to, n, &got);
    CHECK(got == 0);
    for (int64_t i = 0; i < n; i++)
        CHECK_EQ_I(to[i], 0);
}

/* Several rows have the results of each row alone. */
static void check_ratio_rows(const lb_dotint *k, int64_t n)
{
    enum { MANY = 5, LD = 40 };
    float s[MANY * LD], most[MANY], one;
    int16_t to[MANY * LD], alone[LD];
    for (int i = 0; i < MANY * LD; i++)
        s[i] = i / LD == 3 ? 0 : random_float();
    s[2 * LD] = INFINITY;
    k->ratios(MANY, n, s, LD, 32767, to, LD, most);
    for (int r = 0; r < MANY; r++) {
        k->ratios(1, n, s + (ptrdiff_t)r * LD, LD, 32767, alone, LD, &one);
        CHECK(one == most[r]);
        CHECK(!memcmp(alone, to + (ptrdiff_t)r * LD, (size_t)n * sizeof *to));
    }
}

/* Rows of codes of one kind, before a guard page. */
typedef struct {
    lb_dotint_codes w;
    int8_t number[16];
    int16_t level[16];
    int16_t ratio[ROWS * MOST];
    float ws[2 * ROWS];
} rows_of_codes;

static int per_byte(const lb_dotint_codes *w)
{
    if (w->kind == LB_DOTINT_BITS) return 8;
    return w->kind == LB_DOTINT_FIELDS ? 8 / w->bits : 1;
}

static rows_of_codes *make_codes(lb_dotint_codes w, bool end)
{
    static rows_of_codes c;
    const int64_t bytes = up(w.depth, per_byte(&w)) / per_byte(&w);
    c.w = w;
    c.w.step = bytes + (end ? 0 : 3);
    c.w.n = ROWS;
    const size_t all = (size_t)((c.w.n - 1) * c.w.step + bytes);
    uint8_t *codes = place(&in, all, end);
    fill_bytes(codes, all);
    fill_bytes(c.number, sizeof c.number);
    for (int i = 0; i < 16; i++)
        c.level[i] = (int16_t)random_within(16384);
    for (size_t i = 0; i < sizeof c.ratio / sizeof *c.ratio; i++)
        c.ratio[i] = (int16_t)random_within(16384);
    for (size_t i = 0; i < sizeof c.ws / sizeof *c.ws; i++)
        c.ws[i] = random_float();
    c.w.codes = codes;
    c.w.number = c.number;
    c.w.level = c.level;
    c.w.ratio = c.ratio;
    c.w.ratio_step = MOST;
    c.w.ws = c.ws;
    c.w.ws_step = 2;
    c.w.ahead = end ? 0 : 4096;
    return &c;
}

/* The code at position i of a row, in bit field order if that is its kind; -1:
 * none. */
static int code_in_row(const lb_dotint_codes *w, int64_t j, int64_t i)
{
    const uint8_t *codes = w->codes + j * w->step;
    const int fields = w->kind == LB_DOTINT_FIELDS ? 8 / w->bits : 1;
    const int64_t byte = i / (32 * fields) * 32 + i % 32;
    const int field = (int)(i / 32 % fields);
    if (byte * fields + field >= w->depth) return -1;
    switch (w->kind) {
    case LB_DOTINT_BITS:
        return code_of(codes, 1, w->high_first, i);
    case LB_DOTINT_FIELDS:
        return codes[byte] >> (field * w->bits) & ((1 << w->bits) - 1);
    case LB_DOTINT_FIELD:
        return codes[i] >> w->field & w->mask;
    default:
        return codes[i];
    }
}

static int number_in_row(const lb_dotint_codes *w, int64_t j, int64_t i)
{
    const int code = code_in_row(w, j, i);
    if (code < 0) return 0;
    const bool bytes = w->kind == LB_DOTINT_BYTES;
    const int byte = code < 128 ? code : code - 256;
    if (!w->fine)
        return bytes                        ? byte
               : w->kind == LB_DOTINT_FIELD ? w->number[code]
                                            : w->least + w->slope * code;
    const int32_t level = bytes ? byte * 64 : w->level[code];
    const int32_t ratio = w->ratio[j * w->ratio_step + i / w->g];
    return (int)floor(level * (double)ratio / 32768 + 0.5);
}

/* The largest K of the kernels. */
static int64_t whole(const lb_dotint_codes *w)
{
    const int fields = w->kind == LB_DOTINT_FIELDS ? 8 / w->bits : 1;
    return up(w->depth, (int64_t)STEP * fields);
}

static void check_pack(const lb_dotint *k, const order *o,
                       const lb_dotint_codes *w)
{
    const int64_t apart = (int64_t)k->nr * k->lanes, n = whole(w);
    for (int64_t j = 0; j < w->n; j++) {
        int16_t *to = row_room(k, n, apart);
        k->pack(w, j, to, apart);
        bool ok = gaps_are_left(k, to, n, apart);
        for (int64_t i = 0; i < n; i++)
            ok = ok && (code_in_row(w, j, i) < 0 ||
                        at(k, o, to, apart, i) == number_in_row(w, j, i));
        if (check_fails(ok)) whose(k, "pack", w->depth);
    }
}

/* Rows of x in the kernels' layout, with zeros where there is no code. */
typedef struct {
    _Alignas(64) int16_t x[LB_DOTINT_MAX_MR * MOST];
    lb_dotint_head head;
    int number[LB_DOTINT_MAX_MR][MOST]; /* in order */
} rows_of_x;

static rows_of_x *make_x(const lb_dotint *k, const order *o,
                         const lb_dotint_codes *w, int rows, bool worst)
{
    static rows_of_x x;
    const int most = w->fine ? 262143 * 8 / (int)(LB_DOTINT_DEEP) : 32767;
    for (int r = 0; r < rows; r++) {
        x.head.sum[r] = 0;
        x.head.scale[r] = random_float();
        for (int64_t i = 0; i < whole(w); i++) {
            const int64_t p = i / STEP * STEP + o->place[i % STEP];
            const int64_t v = p / k->lanes, l = p % k->lanes;
            const int one = code_in_row(w, 0, i) < 0 ? 0
                            : worst                  ? -most
                                                     : random_within(most);
            x.x[(v * rows + r) * k->lanes + l] = (int16_t)one;
            x.number[r][i] = one;
            x.head.sum[r] += one;
        }
    }
    return &x;
}

/* Lanes, or halves, are rounded before they are added, and then the result
 * three times. */
static bool right_sum(const lb_dotint_codes *w, const rows_of_x *x, int r,
                      int64_t j, double old, double got)
{
    int64_t sum = 0, size = 0;
    for (int64_t i = 0; i < whole(w); i++) {
        const int64_t one = (int64_t)x->number[r][i] * number_in_row(w, j, i);
        sum += one;
        size += one < 0 ? -one : one;
    }
    const double scale =
        (double)x->head.scale[r] * (double)w->ws[j * w->ws_step];
    const double want = (double)sum * scale + old;
    const double slack =
        0x1p-23 * ((double)size * fabs(scale) + fabs(want) + fabs(old));
    return fabs(got - want) <= (w->fine ? 4 : 2) * slack;
}

/* The same rows as words, if required. */
static lb_dotint_codes as_words(const lb_dotint *k, const lb_dotint_codes *w)
{
    lb_dotint_codes to = *w;
    const size_t row = (size_t)whole(w) * sizeof(int16_t);
    char *const words = place(&out, (size_t)w->n * row, true);
    for (int64_t j = 0; j < w->n; j++)
        k->pack(w, j, (int16_t *)(void *)(words + j * (int64_t)row), k->lanes);
    to.kind = LB_DOTINT_WORDS;
    to.codes = (const uint8_t *)words;
    to.step = (int64_t)row;
    to.depth = whole(w);
    to.ahead = 0;
    return to;
}

static void check_dots(const lb_dotint *k, const order *o,
                       const lb_dotint_codes *w, int rows, bool first,
                       bool worst, bool words)
{
    const int64_t ldc = rows + 3;
    const rows_of_x *x = make_x(k, o, w, rows, worst);
    const size_t size = (size_t)((w->n - 1) * ldc + rows);
    const lb_dotint_codes v = words ? as_words(k, w) : *w;
    float *c = place(&out, size * sizeof *c, false);
    float old[ROWS * (LB_DOTINT_MAX_MR + 3)];
    for (size_t i = 0; i < size; i++)
        c[i] = old[i] = random_float() * 1e6f;
    k->dots(&v, rows, x->x, &x->head, first, c, ldc);
    bool ok = true;
    for (int64_t j = 0; j < w->n; j++)
        for (int r = 0; r < ldc && j * ldc + r < (int64_t)size; r++) {
            const int64_t e = j * ldc + r;
            const double before = first ? 0 : (double)old[e];
            ok = ok && (r < rows ? right_sum(w, x, r, j, before, (double)c[e])
                                 : c[e] == old[e]);
        }
    if (check_fails(ok)) whose(k, "dots", w->depth);
}

static void check_rows(const lb_dotint *k, const order *o, lb_dotint_codes kind,
                       int64_t n, bool end)
{
    kind.depth = n;
    const lb_dotint_codes *w = &make_codes(kind, end)->w;
    check_pack(k, o, w);
    if (!k->dots) return;
    const int rows = 1 + (int)(random_bits() % (uint32_t)k->mr);
    check_dots(k, o, w, rows, n & 1, n % 4 == 3, n % 3 == 0);
    if (n % 50 == 0) check_dots(k, o, w, k->mr, false, true, n % 100);
}

/* The largest sums of panels: no lane and no half may overflow. */
static void check_deepest(const lb_dotint *k, const order *o, bool words)
{
    lb_dotint_codes kind[] = {
        {.kind = LB_DOTINT_BYTES},
        {.kind = LB_DOTINT_FIELDS,
         .bits = 2,
         .least = -LB_DOTINT_LINE,
         .slope = 40},
        {.kind = LB_DOTINT_BITS, .least = LB_DOTINT_LINE, .slope = -120},
        {.kind = LB_DOTINT_BYTES, .fine = true, .g = 1},
    };
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++) {
        kind[i].depth = k->kc;
        rows_of_codes *c = make_codes(kind[i], false);
        for (size_t j = 0; j < sizeof c->ratio / sizeof *c->ratio; j++)
            c->ratio[j] = -LB_DOTINT_NUMBER_RATIO;
        const bool bytes = kind[i].kind == LB_DOTINT_BYTES;
        memset((void *)room(&in), bytes ? 0x80 : 0, ROOM / 4);
        check_dots(k, o, &c->w, k->mr, false, true, words);
    }
}

/* Every kind of codes. */
static void check_kinds(const lb_dotint *k, const order *o, int64_t n, bool end)
{
    if (check_thins_short()) return;
    lb_dotint_codes w = {.kind = LB_DOTINT_BYTES};
    check_rows(k, o, w, n, end);
    for (int high = 0; high < 2; high++) {
        w = (lb_dotint_codes){.kind = LB_DOTINT_BITS, .high_first = high};
        w.least = high ? 1 : -3;
        w.slope = high ? -2 : 4;
        check_rows(k, o, w, n, end);
    }
    for (int bits = 2; bits <= 4; bits *= 2) {
        w = (lb_dotint_codes){.kind = LB_DOTINT_FIELDS, .bits = bits};
        w.least = bits == 2 ? -1 : -8;
        w.slope = 1;
        check_rows(k, o, w, n, end);
    }
    w = (lb_dotint_codes){.kind = LB_DOTINT_FIELDS, .bits = 4, .fine = true};
    w.g = n % 2 ? 64 : 128;
    check_rows(k, o, w, n, end);
    w = (lb_dotint_codes){.kind = LB_DOTINT_BYTES, .fine = true};
    for (w.g = 1; w.g <= 96; w.g = w.g == 1 ? 32 : w.g + 64)
        check_rows(k, o, w, n, end);
    for (int bits = 1; bits <= 4; bits *= 2)
        for (int field = 0; field < 8; field += bits) {
            w = (lb_dotint_codes){.kind = LB_DOTINT_FIELD, .field = field};
            w.mask = (1 << bits) - 1;
            check_rows(k, o, w, n, end);
            w.fine = true;
            w.g = n % 2 ? 1 : 32;
            check_rows(k, o, w, n, end);
        }
}

/* ---- tiles -------------------------------------------------------------- */

typedef struct {
    int16_t x[LB_DOTINT_MAX_MR * LB_DOTINT_KC];
    int16_t w[LB_DOTINT_MAX_NR * LB_DOTINT_KC];
} panels;

/* Rows of integers in the kernels' layout: in any order, if it is the same for
 * both. */
static void fill_panels(const lb_dotint *k, int rows, int64_t depth, bool fine,
                        bool worst, panels *p)
{
    const int most_x = fine ? 4000 : 32767, most_w = fine ? 8192 : 128;
    for (int64_t i = 0; i < rows * depth; i++)
        p->x[i] = (int16_t)(worst ? -most_x : random_within(most_x));
    for (int64_t i = 0; i < k->nr * depth; i++)
        p->w[i] = (int16_t)(worst ? -most_w : random_within(most_w));
}

static int64_t sum_of(const lb_dotint *k, const panels *p, int rows, int i,
                      int j, int64_t depth)
{
    int64_t sum = 0;
    for (int64_t e = 0; e < depth; e++) {
        const int64_t v = e / k->lanes, l = e % k->lanes;
        sum += (int64_t)p->x[(v * rows + i) * k->lanes + l] *
               p->w[(v * k->nr + j) * k->lanes + l];
    }
    return sum;
}

static void check_tile(const lb_dotint *k, int rows, int64_t depth, bool fine,
                       bool first, bool worst)
{
    if (check_thins_short()) return;
    const int nr = k->nr, size = rows * nr;
    const size_t xb = (size_t)(rows * depth) * sizeof(int16_t);
    const size_t wb = (size_t)(nr * depth) * sizeof(int16_t);
    static panels p;
    fill_panels(k, rows, depth, fine, worst, &p);
    int16_t *w = place(&in, wb, true), *x = place(&in, xb, false);
    memcpy(x, p.x, xb);
    memcpy(w, p.w, wb);
    float xs[LB_DOTINT_MAX_MR * LB_DOTINT_MAX_NR], ws[LB_DOTINT_MAX_NR];
    float *c = place(&out, (size_t)size * sizeof *c, true), old[64];
    for (int i = 0; i < size; i++) {
        xs[i] = random_float();
        c[i] = old[i] = random_float() * 1e6f;
    }
    for (int j = 0; j < nr; j++)
        ws[j] = random_float();
    k->tile(rows, depth, x, w, xs, ws, fine, first, c);
    bool ok = true;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < nr; j++) {
            const int e = i * nr + j;
            const int64_t sum = sum_of(k, &p, rows, i, j, depth);
            const float t = (float)sum * ws[j];
            const float want = fmaf(t, xs[e], first ? 0 : old[e]);
            const double slack = 1e-6 * (fabs((double)t * (double)xs[e]) +
                                         0x1p13 * 0x1p18 * (fine ? 1 : 0));
            ok = ok && (fine ? fabs((double)c[e] - (double)want) <=
                                   slack + 1e-6 * fabs((double)want)
                             : c[e] == want);
        }
    if (check_fails(ok)) whose(k, fine ? "fine tile" : "tile", depth);
}

/* ---- all of them -------------------------------------------------------- */

static void check_lengths(const lb_dotint *k, const order *o)
{
    for (int64_t n = 0; n <= 300; n++) {
        for (int end = 0; end < 2; end++) {
            check_largest(k, n, end);
            check_round(k, o, n, 1 + n % k->mr, end);
            check_kinds(k, o, n, end);
            check_ratios(k, n, n % 3 ? 1 : 1e-40f, end);
            for (int high = 0; high < 2; high++)
                for (int bits = 1; bits <= 4; bits *= 2)
                    check_unpack(k, bits, high, n, end);
        }
    }
    for (int64_t n = LB_DOTINT_PLACES; n <= 256; n += LB_DOTINT_PLACES)
        for (int64_t ld = LB_DOTINT_LINES; ld < 60; ld += 13)
            check_turn(k, n, ld);
}

static void check_kernel(const lb_dotint *k)
{
    const order o = order_of(k);
    CHECK(k->mr <= LB_DOTINT_MAX_MR && k->nr <= LB_DOTINT_MAX_NR);
    CHECK(k->mr * k->nr <= LB_DOTINT_SCALES);
    CHECK(STEP % k->lanes == 0);
    check_lanes(k, &o);
    for (int64_t n = 1; n <= 40; n++)
        check_ratio_rows(k, n);
    check_lengths(k, &o);
    for (int words = 0; words < 2 && k->dots; words++)
        check_deepest(k, &o, words);
    for (int rows = 1; rows <= k->mr && k->tile; rows++)
        for (int64_t depth = 0; depth <= LB_DOTINT_KC; depth += STEP)
            for (int i = 0; i < 8; i++)
                check_tile(k, rows, depth, i & 1, i & 2, i & 4);
}

int main(void)
{
    in = fenced_open(ROOM - 1);
    out = fenced_open(ROOM - 1);
    for (int i = 0; i < N_SUBJECTS; i++)
        if (runs_here(subjects[i].level)) check_kernel(subjects[i].kernel);
    return check_report("dotint");
}
