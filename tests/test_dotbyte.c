/* test_dotbyte.c - the kernels of dotbyte.h, on every level, against their
 * definition computed element by element, with guard pages around all memory.
 */
/* ctest: simde amx bochs a53 skip-tsan skip-ref */
#include <stdlib.h>

#include "base/cpu.h"
#include "check.h"
#include "draws.h"
#include "fenced.h"
#include "kernels/dotbyte.h"

static const struct subject {
    const lb_dotbyte *kernel;
    lb_level level;
    bool (*has)(void); /* what else it needs */
} subjects[] = {
    {&lb_dotbyte_ref, LB_LEVEL_REF, NULL},
    {&lb_dotword_ref, LB_LEVEL_REF, NULL},
#if defined(__x86_64__)
    {&lb_dotbyte_avx2, LB_LEVEL_AVX2, NULL},
    {&lb_dotbyte_vnni, LB_LEVEL_AVX512VNNI, NULL},
    {&lb_dotword_avx2, LB_LEVEL_AVX2, NULL},
    {&lb_dotwide_avx2, LB_LEVEL_AVX2, NULL},
    {&lb_dotword_vnni, LB_LEVEL_AVX512VNNI, NULL},
    {&lb_dotbyte_amx, LB_LEVEL_AMX, NULL},
    {&lb_dotword_amx, LB_LEVEL_AMX, NULL},
#elif defined(__aarch64__)
    {&lb_dotbyte_dotprod, LB_LEVEL_NEON, lb_cpu_has_dotprod},
    {&lb_dotword_neon, LB_LEVEL_NEON, NULL},
#endif
};
enum { N_SUBJECTS = sizeof subjects / sizeof *subjects };

static bool runs_here(const struct subject *s)
{
#if defined(LB_SIMDE)
    (void)s;
    return true;
#else
    return lb_level_available(s->level) && (!s->has || s->has());
#endif
}

enum {
    STEP = LB_DOTBYTE_STEP,
    LINES = LB_DOTBYTE_LINES,
    BYTES = LB_DOTBYTE_BYTES,
    KC = LB_DOTBYTE_KC,
    BLOCKS = KC / STEP,
    ROOM = 1 << 19
};

/* ---- memory next to guard pages ------------------------------------------ */

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

/* ---- numbers ------------------------------------------------------------- */

static void fill_bytes(void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)p)[i] = (uint8_t)random_bits();
}

static void whose(const lb_dotbyte *k, const char *what, int64_t n)
{
    fprintf(stderr, "%s: %s, K = %lld\n", k->name, what, (long long)n);
}

/* Position of element i of a row of w, with quads `apart` bytes apart. */
static int64_t at(const lb_dotbyte *k, int fields, int64_t i, int64_t apart)
{
    const int64_t place = i / fields, quad = 4 / k->size;
    return (place / quad * fields + i % fields) * apart +
           place % quad * k->size;
}

/* The same in a row of x: words that meet bytes come as the pairs 0 and 2, 1
 * and 3 of each quad. */
static int64_t x_at(const lb_dotbyte *k, int fields, int64_t i, int64_t apart)
{
    const int64_t w = at(k, fields, i, 4);
    if (k->x_size == k->size) return w / 4 * apart + w % 4;
    return (w / 4 * 2 + w % 2) * apart + w % 4 / 2 * 2;
}

/* Bit fields that alternate along K. */
static int in_turn(const lb_dotbyte *k, int bits)
{
    return 8 * k->size / bits;
}

/* Codes that can be packed. */
static bool packs(const lb_dotbyte *k, int bits)
{
    return k->along &&
           (k->widths ? k->widths & bits : bits <= 2 || k->most_w == 255);
}

static int word_at(const void *p)
{
    int16_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* Inputs: a byte of x, a byte of w, or a word of either. */
static int number_x(const lb_dotbyte *k, const void *p)
{
    return k->x_size == 1 ? *(const int8_t *)p : word_at(p);
}
static int number_w(const lb_dotbyte *k, const void *p)
{
    return k->size == 1 ? *(const uint8_t *)p : word_at(p);
}

/* ---- x ------------------------------------------------------------------- */

/* A row with ties, zeros and values of the largest magnitude. */
static void fill_x(float *x, int64_t n, int most)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = i % 5 == 1   ? (float)(int)(i % 9 - 4) * 0.5f
               : i % 5 == 2 ? -0.0f
               : i % 7 == 3 ? (float)(i % 2 ? most : -most)
                            : random_float() * (float)most;
}

static void check_round(const lb_dotbyte *k, int64_t n, int planes, int fields,
                        int rows, bool end)
{
    if (check_thins_short()) return;
    const int64_t apart = (int64_t)rows * 4, whole = up(n, STEP);
    const int64_t plane = whole * rows, quads = whole * k->x_size / 4;
    const size_t size =
        whole ? (size_t)((planes - 1) * plane + (quads - 1) * apart + 4) : 0;
    float *x = place(&in, (size_t)n * sizeof *x, end);
    int8_t *to = place(&out, size, end);
    fill_x(x, n, planes == 2 || k->x_size == 2 ? 32639 : 127);
    memset(to, 0x55, size);
    const int32_t sum = k->round(n, x, 1, planes, fields, to, apart, plane);
    int64_t want = 0;
    bool ok = true;
    for (int64_t i = 0; i < whole; i++) {
        const long v = i < n ? lrint((double)x[i]) : 0;
        const int8_t *p = to + x_at(k, fields, i, apart);
        ok = ok && v == (planes == 2 ? 256 * p[0] + p[plane] : number_x(k, p));
        want += v;
    }
    for (int64_t q = 0; q + 1 < quads; q++) /* other rows are unchanged */
        for (int64_t b = 4; b < apart; b++)
            ok = ok && to[q * apart + b] == 0x55;
    if (check_fails(ok && sum == want)) whose(k, "round", n);
}

/* The same of a row that lies by itself, digit by digit. */
static void check_round_row(const lb_dotbyte *k, int64_t n, int planes,
                            int fields, bool end)
{
    if (check_thins_short()) return;
    const int64_t whole = up(n, STEP), plane = whole + 64;
    const int digits = planes * k->size;
    const size_t size = (size_t)((digits - 1) * plane + whole);
    float *x = place(&in, (size_t)n * sizeof *x, end);
    int8_t *to = place(&out, size, end);
    fill_x(x, n, digits == 2 ? 32639 : 127);
    memset(to, 0x55, size);
    const int32_t sum = k->round(n, x, 1, planes, fields, to, 0, plane);
    int64_t want = 0;
    bool ok = true;
    for (int64_t i = 0; i < whole; i++) {
        const long v = i < n ? lrint((double)x[i]) : 0;
        const int8_t *p = to + at(k, fields, i, 4) / k->size;
        ok = ok && v == (digits == 2 ? 256 * p[0] + p[plane] : p[0]);
        want += v;
    }
    for (int64_t b = whole; b < plane && digits == 2; b++)
        ok = ok && to[b] == 0x55;
    if (check_fails(ok && sum == want)) whose(k, "round", n);
}

/* ---- w ------------------------------------------------------------------- */

static lb_dotbyte_codes random_codes(const lb_dotbyte *k, int bits, bool high)
{
    lb_dotbyte_codes c = {.bits = bits, .high_first = high};
    for (int i = 0; i < 16; i++)
        c.number[i] =
            (uint8_t)(random_bits() % ((unsigned)k->most_w + 1)); /* any */
    for (int i = 1 << bits; i < 16 && bits < 8; i++)
        c.number[i] = c.number[i & ((1 << bits) - 1)];
    for (int i = 0; i < 16; i++)
        c.level[i] = (int16_t)random_within(1 << 14);
    return c;
}

static int number_of(const lb_dotbyte *k, const lb_dotbyte_codes *c,
                     const uint8_t *line, int64_t i)
{
    if (c->bits == 8) return (int8_t)line[i] + (k->size == 1 ? 128 : 0);
    const int per = 8 / c->bits, p = (int)(i % per);
    const int field = c->high_first ? per - 1 - p : p;
    const int code = line[i / per] >> (field * c->bits) & ((1 << c->bits) - 1);
    return k->size == 2 ? c->level[code] : c->number[code];
}

/* The same, times the scale of row `line` of those along K. */
static int times_ratio(const lb_dotbyte_codes *c, int number, int64_t line,
                       int64_t i)
{
    if (!c->ratio) return number;
    const int ratio = c->ratio[i / c->share * c->apart + line];
    if (c->bits == 8) number *= 64;
    return (int)floor((number * (double)ratio + 16384) / 32768);
}

/* The same in a panel. */
static int held(const lb_dotbyte *k, int number)
{
    return k->size == 2 ? number : (uint8_t)(number - k->bias);
}

static void check_along(const lb_dotbyte *k, int bits, bool high, int64_t n,
                        int64_t gap, bool end)
{
    if (check_thins_short()) return;
    const lb_dotbyte_codes c = random_codes(k, bits, high);
    const int64_t bytes = (n * bits + 7) / 8, step = bytes + gap;
    const size_t size = (size_t)((LINES - 1) * step + bytes);
    const int64_t quads = up(n, STEP) * k->size / 4;
    const int64_t apart = (int64_t)k->nr * 4;
    const size_t room = quads ? (size_t)((quads - 1) * apart + LINES * 4) : 0;
    uint8_t *from = place(&in, size, end), *to = place(&out, room, end);
    fill_bytes(from, size);
    memset(to, 0x55, room);
    k->along(&c, from, step, n, 1 << 30, to);
    bool ok = true;
    for (int l = 0; l < LINES; l++)
        for (int64_t i = 0; i < n; i++)
            ok = ok && number_w(k, to + at(k, in_turn(k, bits), i, apart) +
                                       (int64_t)l * 4) ==
                           held(k, number_of(k, &c, from + l * step, i));
    for (int64_t q = 0; q + 1 < quads; q++) /* other rows are unchanged */
        for (int64_t b = (int64_t)LINES * 4; b < apart; b++)
            ok = ok && to[q * apart + b] == 0x55;
    if (check_fails(ok)) whose(k, "along", n);
}

/* Panels that are `panel` bytes apart contain the values of n rows of codes. */
static bool holds(const lb_dotbyte *k, const lb_dotbyte_codes *c,
                  const uint8_t *from, int64_t step, int64_t n, int64_t bytes,
                  const uint8_t *to, int64_t panel)
{
    const int64_t fields = 8 / c->bits, quad = 4 / k->size;
    bool ok = true;
    for (int64_t j = 0; j < bytes * fields; j++) {
        const int64_t byte = j / fields;
        const int64_t slot =
            byte / 16 * 16 * fields + j % fields * 16 + byte % 16;
        const uint8_t *row = to + slot / k->nr * panel + slot % k->nr * 4;
        for (int64_t i = 0; i < n; i++)
            ok = ok &&
                 number_w(k, row + i / quad * k->nr * 4 + i % quad * k->size) ==
                     held(k, times_ratio(c, number_of(k, c, from + i * step, j),
                                         i, j));
    }
    return ok;
}

/* In two steps: quads in place of panels, in exactly their space, then panels
 * one by one, which are read before the next. */
static void check_staged(const lb_dotbyte *k, const lb_dotbyte_codes *c,
                         const uint8_t *from, int64_t step, int64_t n,
                         int64_t bytes, bool end)
{
    static uint8_t all[BYTES * 8 * KC];
    const int64_t quads = up(n, 4) / 4, apart = quads * 64 + (end ? 0 : 64);
    const int64_t fields = 8 / c->bits, panel = quads * k->nr * 4;
    const size_t size = (size_t)(3 * apart + quads * 64);
    uint8_t *const to = place(&out, size, end);
    memset(to, 0x55, size);
    k->quads(from, step, n, bytes, to, apart);
    for (int64_t p = 0; p < BYTES * fields / k->nr; p++) {
        const int64_t vector = p * k->nr / 16;
        k->panel(c, to + vector / fields * apart, n, (int)(vector % fields),
                 all + p * panel);
    }
    bool ok = holds(k, c, from, step, n, bytes, all, panel);
    for (int64_t i = quads * 64; i < apart; i++)
        ok = ok && to[i] == 0x55 && to[apart + i] == 0x55;
    if (check_fails(ok)) whose(k, "quads", n);
}

static void check_across(const lb_dotbyte *k, int bits, bool high, int64_t n,
                         int64_t bytes, int64_t gap, bool end)
{
    if (check_thins_short()) return;
    static int16_t ratio[BYTES * 8 / 32][KC];
    lb_dotbyte_codes c = random_codes(k, bits, high);
    const int64_t step = bytes + gap, fields = 8 / bits;
    const size_t size = (size_t)((n - 1) * step + bytes);
    const int64_t panel = up(n, STEP) * k->size * k->nr;
    for (int i = 0; i < BYTES / 4 * KC; i++)
        ratio[i / KC][i % KC] = (int16_t)(random_bits() % (1 << 14));
    c.share = (int64_t)32 << (n % 3);
    c.apart = KC;
    if (k->size == 2 && n % 2) c.ratio = ratio[0];
    const size_t room = (size_t)(BYTES * fields / k->nr * panel);
    uint8_t *from = place(&in, size, end), *to = place(&out, room, end);
    fill_bytes(from, size);
    k->across(&c, from, step, n, bytes, 1 << 30, to, panel);
    if (check_fails(holds(k, &c, from, step, n, bytes, to, panel)))
        whose(k, "across", n);
    if (k->quads && bits < 8) check_staged(k, &c, from, step, n, bytes, end);
}

/* ---- tiles --------------------------------------------------------------- */

typedef enum { ANY, LOWEST, HIGHEST, OPPOSITE } extreme;

static int extreme_x(extreme e, int most)
{
    return e == ANY ? random_within(most) : e == LOWEST ? -most : most;
}

static int extreme_w(const lb_dotbyte *k, extreme e)
{
    if (k->size == 2)
        return e == ANY      ? random_within(LB_DOTWORD_MOST_W)
               : e == LOWEST ? -LB_DOTWORD_MOST_W
                             : LB_DOTWORD_MOST_W;
    return e == ANY       ? (int)(random_bits() % ((unsigned)k->most_w + 1))
           : e == HIGHEST ? k->most_w
                          : 0;
}

/* Panels of the largest K; values of x are kept unpacked as well. */
typedef struct {
    int x[LB_DOTBYTE_MAX_MR][KC];
    int w[LB_DOTBYTE_MAX_NR][KC];
} numbers;

static void put_number(int size, int number, void *to)
{
    const int16_t word = (int16_t)number;
    if (size == 2)
        memcpy(to, &word, sizeof word);
    else
        *(uint8_t *)to = (uint8_t)number;
}

/* Rows by themselves: digit by digit, and zeros after each. */
static void lay_rows(const numbers *v, int rows, int digits, int64_t depth,
                     int64_t row, int8_t *x)
{
    for (int i = 0; i < rows; i++)
        for (int64_t e = 0; e < row; e++) {
            const int number = e < depth ? v->x[i][e] : 0;
            const int high = (int)floor((number + 128) / 256.0);
            int8_t *const p = x + i * row + e;
            *p = (int8_t)(digits == 2 ? high : number);
            if (digits == 2) p[rows * row] = (int8_t)(number - 256 * high);
        }
}

static void lay(const lb_dotbyte *k, const numbers *v, int rows, int planes,
                int64_t depth, int8_t *x, uint8_t *w)
{
    const int64_t plane = rows * depth, quad = 4 / k->size;
    if (k->by_row) lay_rows(v, rows, planes * k->size, depth, up(depth, 64), x);
    for (int i = 0; i < rows && !k->by_row; i++)
        for (int64_t e = 0; e < depth; e++) {
            int8_t *p = x + (ptrdiff_t)i * 4 + x_at(k, 1, e, (int64_t)rows * 4);
            const int high = (int)floor((v->x[i][e] + 128) / 256.0);
            put_number(k->x_size, planes == 2 ? high : v->x[i][e], p);
            if (planes == 2) p[plane] = (int8_t)(v->x[i][e] - 256 * high);
        }
    for (int j = 0; j < k->nr; j++)
        for (int64_t e = 0; e < depth; e++)
            put_number(k->size, held(k, v->w[j][e]),
                       w + (e / quad * k->nr + j) * 4 + e % quad * k->size);
    if (k->split) k->split(w, depth);
}

/* A row's part of a panel: all of its values, and starts and scales of each of
 * its blocks. */
typedef struct {
    int64_t share, apart;
    int32_t start[BLOCKS * (LB_DOTBYTE_MAX_MR + 3)];
    float xs[BLOCKS * (LB_DOTBYTE_MAX_MR + 3)];
    float ws[BLOCKS * (LB_DOTBYTE_MAX_NR + 5)];
} blocks;

static void fill_tile(const lb_dotbyte *k, int rows, int64_t depth, int most,
                      int offset, extreme how, numbers *v, blocks *b)
{
    memset(b->start, 0, sizeof b->start);
    for (int i = 0; i < rows; i++)
        for (int64_t e = 0; e < depth; e++) {
            v->x[i][e] = extreme_x(how, most < 32639 ? most : 32639);
            b->start[e / b->share * b->apart + i] +=
                (k->bias - offset) * v->x[i][e];
        }
    for (int j = 0; j < k->nr; j++)
        for (int64_t e = 0; e < depth; e++)
            v->w[j][e] = extreme_w(k, how);
    for (size_t i = 0; i < sizeof b->xs / sizeof *b->xs; i++)
        b->xs[i] = random_float();
    for (size_t j = 0; j < sizeof b->ws / sizeof *b->ws; j++)
        b->ws[j] = random_float();
}

/* One element of a tile, block by block. */
static float want_tile(const numbers *v, const blocks *b, int64_t w_apart,
                       int64_t depth, int offset, int i, int j, float c)
{
    int64_t at = 0;
    for (int64_t n = 0; n == 0 || at < depth; n++) {
        int64_t sum = 0;
        for (; at < depth && at < (n + 1) * b->share; at++)
            sum += (int64_t)v->x[i][at] * (v->w[j][at] - offset);
        c = fmaf((float)sum * b->ws[n * w_apart + j], b->xs[n * b->apart + i],
                 c);
    }
    return c;
}

static void check_tile(const lb_dotbyte *k, int rows, int planes, int64_t depth,
                       int64_t share, bool first, extreme how)
{
    if (check_thins_short()) return;
    static numbers v;
    static blocks b;
    const int nr = k->nr;
    /* The largest sum of words. */
    const int most = k->size == 2 ? (int)(LB_DOTWORD_SUM / (depth + 1) / 8 * 8)
                     : planes == 2 || k->x_size == 2 ? 32639
                                                     : 127;
    /* Bytes represent at most 128. */
    const int offset = k->size == 2      ? 0
                       : k->most_w < 128 ? (int)(random_bits() % 2)
                                         : 128;
    const int64_t deep = k->by_row ? up(depth, 64) : depth;
    const int64_t lines = k->by_row ? k->mr : rows * planes;
    const size_t xb = (size_t)(lines * deep * k->x_size);
    const size_t wb = (size_t)(nr * deep * k->size);
    const int64_t w_apart = depth % 3 ? nr + 5 : 0;
    int8_t *x = place(&in, xb, false);
    float *c = place(&out, (size_t)(rows * nr) * sizeof *c, true);
    float old[LB_DOTBYTE_MAX_MR * LB_DOTBYTE_MAX_NR];
    uint8_t *const bytes = place(&in, wb, true);
    const lb_dotbyte_w w = {bytes, b.ws, w_apart};
    b.share = share;
    b.apart = rows + 3;
    fill_tile(k, rows, depth, most, offset, how, &v, &b);
    for (int e = 0; e < rows * nr; e++)
        c[e] = old[e] = random_float() * 1e6f;
    lay(k, &v, rows, planes, depth, x, bytes);
    const lb_dotbyte_x rows_of = {.rows = rows,
                                  .planes = planes,
                                  .bytes = x,
                                  .plane = rows * deep,
                                  .row = deep,
                                  .start = b.start,
                                  .scale = b.xs,
                                  .share = share,
                                  .apart = b.apart};
    lb_dotbyte_ask ask = {.at = random_bits(), /* anywhere */
                          .step = random_within(5000),
                          .column = 64,
                          .rows = 1 + random_bits() % 40,
                          .columns = random_bits() % 4};
    ask.left = ask.rows;
    if (k->begin) k->begin(share);
    k->tile(&rows_of, k->by_row ? up(depth, STEP) : depth, &w, first, c,
            how == ANY ? &ask : NULL);
    if (k->end) k->end();
    bool ok = true;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < nr; j++) {
            const int e = i * nr + j;
            ok = ok && c[e] == want_tile(&v, &b, w_apart, depth, offset, i, j,
                                         first ? 0 : old[e]);
        }
    if (check_fails(ok)) whose(k, planes == 2 ? "two planes" : "tile", depth);
}

/* ---- all of them --------------------------------------------------------- */

static void check_lengths(const lb_dotbyte *k)
{
    for (int64_t n = 0; n <= 300; n++)
        for (int i = 0; i < 4; i++) {
            const bool end = i & 1;
            const int rows = 1 + (int)((n + i) % k->mr);
            if (i > 0 && !packs(k, (k->size == 2 ? 16 : 8) >> i)) continue;
            if (k->by_row) {
                check_round_row(k, n, 1, 1 << i, end);
                if (k->size == 1) check_round_row(k, n, 2, 1 << i, end);
                continue;
            }
            check_round(k, n, 1, 1 << i, rows, end);
            check_round(k, n, 1, 1 << i, 1, !end);
            if (!k->planes && k->most_w < 255) continue;
            if (k->x_size == 2) continue;
            check_round(k, n, 2, 1 << i, rows, end);
            check_round(k, n, 2, 1 << i, 1, !end);
        }
    for (int64_t n = 1; n <= 300 && k->along; n++)
        for (int bits = 1; bits <= 8; bits *= 2)
            for (int i = 0; i < 4; i++) {
                if (!packs(k, bits)) continue;
                check_along(k, bits, i & 1, n, n % 3 * 7, i & 2);
                if (k->across && n % 3 == i % 3)
                    check_across(k, bits, i & 1, n, 1 + (n * 11 + i) % BYTES,
                                 n % 4 * 9, i & 2);
            }
    for (int64_t bytes = 1; bytes <= BYTES && k->across; bytes++)
        check_across(k,
                     packs(k, 8)   ? 8
                     : packs(k, 4) ? 4
                                   : 2,
                     false, 7, bytes, 3, true);
}

static void check_kernel(const lb_dotbyte *k)
{
    static const int64_t shares[] = {32, 64, 96, 256};
    CHECK(k->mr <= LB_DOTBYTE_MAX_MR && k->nr <= LB_DOTBYTE_MAX_NR);
    CHECK(k->nr % LINES == 0);
    check_lengths(k);
    for (int rows = 1; rows <= k->mr; rows++)
        for (int64_t depth = 0; depth <= KC; depth += depth < 64 ? 4 : 64)
            for (int how = 0; how < 4; how++) {
                const int64_t share = how & 2 ? KC : shares[depth / 4 % 4];
                check_tile(k, rows, 1, depth, share, how & 1, (extreme)how);
                if (k->size == 1 && k->x_size == 1 &&
                    (!k->by_row || 2 * rows <= k->mr))
                    check_tile(k, rows, 2, depth, share, how & 1, (extreme)how);
            }
}

int main(void)
{
    in = fenced_open(ROOM - 1);
    out = fenced_open(ROOM - 1);
    for (int i = 0; i < N_SUBJECTS; i++)
        if (runs_here(&subjects[i])) check_kernel(subjects[i].kernel);
    return check_report("dotbyte");
}
