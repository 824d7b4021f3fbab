/* test_outerint.c - the kernels of outerint.h against their definition computed
 * column by column, with guard pages around all memory. */
/* ctest: simde skip-tsan skip-ref */
#include <math.h>

#include "base/cpu.h"
#include "check.h"
#include "draws.h"
#include "fenced.h"
#include "kernels/outerint.h"

enum {
    MR = LB_OUTERINT_MR,
    KC = LB_OUTERINT_KC,
    COLUMNS = LB_OUTERINT_COLUMNS,
    TILE = LB_OUTERINT_TILE,
    ROOM = 1 << 16
};

static fenced codes_room, ratio_room, x_room, c_room, panel_room;
static fenced next_codes_room, next_ratio_room, next_panel_room;

/* ---- x ------------------------------------------------------------------- */

static void check_round(const lb_outerint *kernel, int64_t n)
{
    const size_t size = (size_t)(n + n % 2) * sizeof(int16_t);
    float *const x = fenced_end(&x_room, (size_t)n * sizeof *x);
    int16_t *const to = fenced_end(&c_room, size);
    const float factor = 32639;
    int32_t sum = 0;
    bool ok = true;
    for (int64_t k = 0; k < n; k++)
        x[k] = k % 7 ? random_float() : ((float)k + 0.5f) / factor;
    const int32_t got = kernel->round(n, x, factor, to);
    for (int64_t k = 0; k < n + n % 2; k++) {
        const int want = k < n ? (int)lrintf(x[k] * factor) : 0;
        ok = ok && to[k] == want;
        sum += want;
    }
    CHECK(ok && got == sum && fenced_kept(&c_room, to, size));
}

/* ---- panels -------------------------------------------------------------- */

/* Every column is at one position. */
static void check_order(void)
{
    for (int bits = 4; bits <= 8; bits *= 2)
        for (int high = 0; high < 3; high++) {
            bool there[COLUMNS] = {false};
            for (int p = 0; p < COLUMNS; p++) {
                const int column = high < 2 ? lb_outerint_column(bits, high, p)
                                            : lb_outerint_twos_column(p);
                if (!check_fails(column >= 0 && column < COLUMNS))
                    there[column] = true;
            }
            for (int j = 0; j < COLUMNS; j++)
                CHECK(there[j]);
        }
}

/* The value of row k and column j; for codes that are not shifted down, times
 * the corresponding power of 2. */
static int number(const lb_outerint_lines *w, int high_first, int64_t k,
                  int column)
{
    const int bits = w->bits, fields = 8 / bits, at = column % fields;
    const int shift = bits * (high_first ? fields - 1 - at : at);
    const int byte = w->codes[k * w->step + column / fields];
    const int code = byte >> shift & ((1 << bits) - 1);
    if (!w->fine) return bits == 8 ? (int8_t)byte : code * (1 << shift);
    const double level = bits == 8 ? (int8_t)byte * 64 : w->level[code];
    return (int)floor(level * w->ratio[k] / 32768 + 0.5);
}

static void check_pack(const lb_outerint *kernel, int bits, bool fine,
                       int64_t n, bool high_first)
{
    const int64_t step = 8 * bits + (int)(random_bits() % 40),
                  pairs = (n + 1) / 2;
    const size_t bytes = (size_t)((n - 1) * step + 8 * bits);
    const size_t size = (size_t)(pairs * 2 * COLUMNS) * sizeof(int16_t);
    uint8_t *const codes = fenced_end(&codes_room, bytes);
    int16_t *const ratio =
        fenced_end(&ratio_room, (size_t)pairs * 2 * sizeof *ratio);
    int16_t *const to = fenced_end(&panel_room, size);
    int16_t level[16];
    for (size_t i = 0; i < bytes; i++)
        codes[i] = (uint8_t)random_bits();
    for (int64_t k = 0; k < 2 * pairs; k++)
        ratio[k] = (int16_t)(random_bits() % (bits == 8 ? 32768 : 16385));
    for (int i = 0; i < 16; i++)
        level[i] = (int16_t)(16384 - (int)(random_bits() % 32769));
    level[0] = -16384;
    const lb_outerint_lines w = {bits, fine, level, ratio, codes, step, n};
    kernel->pack(&w, to);
    bool ok = fenced_kept(&panel_room, to, size);
    for (int64_t k = 0; k < 2 * pairs; k++)
        for (int p = 0; p < COLUMNS; p++) {
            const int64_t tile = p / TILE, at = k / 2 * TILE + p % TILE;
            const int got = to[(tile * pairs * TILE + at) * 2 + k % 2];
            const int column = lb_outerint_column(bits, high_first, p);
            ok = ok && got == (k < n ? number(&w, high_first, k, column) : 0);
        }
    if (check_fails(ok))
        fprintf(stderr, "%s: %d bits, fine %d, %lld lines\n", kernel->name,
                bits, fine, (long long)n);
}

/* ---- tiles --------------------------------------------------------------- */

typedef struct {
    int rows;
    int64_t pairs;
    bool first;
    int most; /* not 0: all values of x and w have this magnitude, with signs
               * that make sums as large as possible */
} subject;

static double sum_of(const subject *s, const int16_t *x, const int16_t *w,
                     int64_t i, int64_t p)
{
    double sum = 0;
    for (int64_t k = 0; k < 2 * s->pairs; k++)
        sum += (double)x[i * KC + k] * w[(k / 2 * TILE + p) * 2 + k % 2];
    return sum;
}

static int16_t *numbers(const fenced *room, int64_t n, int most, int fixed)
{
    int16_t *const v = fenced_end(room, (size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] =
            (int16_t)(fixed ? fixed
                            : (int)(random_bits() % (uint32_t)(2 * most + 1)) -
                                  most);
    return v;
}

static void check_tile(const lb_outerint *kernel, const subject *s)
{
    enum { LD = TILE + 3 };
    const int16_t *x = numbers(&x_room, (s->rows - 1) * KC + 2 * s->pairs,
                               32639, s->most ? 32639 : 0);
    const int16_t *w = numbers(&panel_room, s->pairs * 2 * TILE, 127, s->most);
    const int64_t size = (s->rows - 1) * LD + TILE;
    float *const c = fenced_end(&c_room, (size_t)size * sizeof *c);
    float old[MR * LD], ws[TILE], part[2] = {1, -0.25f};
    lb_outerint_head head;
    for (int64_t e = 0; e < size; e++)
        c[e] = old[e] = random_float() * 1e6f;
    for (int p = 0; p < TILE; p++)
        ws[p] = random_float();
    for (int i = 0; i < MR; i++) {
        head.scale[i] = random_float();
        head.base[i] = random_float() * 1e6f;
    }
    kernel->tile(s->rows, s->pairs, x, w, &head, part, ws, s->first, c, LD);
    bool ok = fenced_kept(&c_room, c, (size_t)size * sizeof *c);
    for (int64_t e = 0; e < size; e++) {
        const int64_t i = e / LD, p = e % LD;
        if (p >= TILE) {
            ok = ok && memcmp(c + e, old + e, sizeof *c) == 0;
            continue;
        }
        const double sum = sum_of(s, x, w, i, p) * (double)part[p / 8];
        const double scale = (double)ws[p] * (double)head.scale[i];
        const double before = s->first ? 0 : (double)old[e];
        const double base = (double)head.base[i];
        const double most =
            (fabs(sum) + fabs(base)) * fabs(scale) + fabs(before);
        ok = ok && fabs((double)c[e] - (sum + base) * scale - before) <=
                       0x1p-22 * most;
    }
    if (check_fails(ok))
        fprintf(stderr, "%s: %d rows, %lld pairs, first %d, most %d\n",
                kernel->name, s->rows, (long long)s->pairs, s->first, s->most);
}

/* ---- pipelined panels ---------------------------------------------------- */

/* Lines that become a panel: twos, or fine numbers of 4 bits. */
typedef struct {
    lb_outerint_lines w;
    bool twos;
    int64_t pairs;
    uint8_t *panel; /* next to its guard page */
    size_t size;
} fed;

static fed make_lines(bool twos, int64_t n, int fill, const int16_t *level,
                      const fenced *codes_at, const fenced *ratio_at,
                      const fenced *panel_at)
{
    const int64_t width = twos ? 64 : 32;
    const int64_t step = width + (int)(random_bits() % 40);
    fed f = {.twos = twos, .pairs = (n + 1) / 2};
    const size_t bytes = (size_t)((n - 1) * step + width);
    uint8_t *const codes = fenced_end(codes_at, bytes);
    int16_t *const ratio =
        fenced_end(ratio_at, (size_t)(2 * f.pairs) * sizeof *ratio);
    for (size_t i = 0; i < bytes; i++)
        codes[i] = (uint8_t)(fill < 0 ? random_bits() : (uint32_t)fill);
    for (int64_t k = 0; k < 2 * f.pairs; k++)
        ratio[k] = (int16_t)(random_bits() % 16385);
    f.w =
        (lb_outerint_lines){twos ? 8 : 4, !twos, level, ratio, codes, step, n};
    f.size = (size_t)(f.pairs * COLUMNS * (twos ? 2 : 4));
    f.panel = fenced_end(panel_at, f.size);
    return f;
}

static lb_outerint_feed feed_of(const fed *f)
{
    const int64_t asks = 1 + (int)(random_bits() % KC);
    return (lb_outerint_feed){
        .codes = f->w.codes,
        .level = f->w.level,
        .ratio = f->w.ratio,
        .step = f->w.step,
        .n = f->w.n,
        .to = f->panel,
        .apart = (int64_t)f->size / LB_OUTERINT_TILES,
        .ask = (uintptr_t)f->w.codes / 64 * 64,
        .asks = asks,
        .ask_step = f->w.step,
        .ask_bytes = LB_OUTERINT_ASK * (1 + (int)(random_bits() % 4)),
    };
}

static int column_of(const fed *f, int p)
{
    return f->twos ? lb_outerint_twos_column(p)
                   : lb_outerint_column(4, false, p);
}

/* Row k at position p, as stored. */
static int stored(const fed *f, int64_t k, int p)
{
    const int64_t tile = p / TILE, at = p % TILE;
    const uint8_t *from = f->panel + tile * (int64_t)f->size / 4;
    if (f->twos) return from[k / 2 * 32 + at % 8 * 4 + k % 2 * 2 + at / 8];
    int16_t one;
    memcpy(&one, from + (k / 2 * TILE + at) * 4 + k % 2 * 2, sizeof one);
    return one;
}

static bool panel_is(const fed *f, const fenced *room)
{
    bool ok = fenced_kept(room, f->panel, f->size);
    for (int64_t k = 0; k < 2 * f->pairs; k++)
        for (int p = 0; p < COLUMNS; p++) {
            const int column = column_of(f, p);
            const int want = k < f->w.n ? number(&f->w, false, k, column) : 0;
            const int as =
                f->twos ? (want & 255) ^ (column % 2 ? 0 : 128) : want;
            ok = ok && stored(f, k, p) == as;
        }
    return ok;
}

/* All rows with a panel, while another one is packed. */
static void check_fed(const lb_outerint *kernel, bool twos, int rows, int64_t n,
                      int64_t next_n, int fill)
{
    enum { LD = COLUMNS + 5 };
    int16_t level[16];
    for (int i = 0; i < 16; i++)
        level[i] = (int16_t)(16384 - (int)(random_bits() % 32769));
    fed now =
        make_lines(twos, n, fill, level, &codes_room, &ratio_room, &panel_room);
    lb_outerint_feed f = feed_of(&now);
    (twos ? kernel->feed_twos : kernel->feed_fine)(&f);
    bool ok = f.n == 0 && panel_is(&now, &panel_room);
    fed next = make_lines(twos, next_n, -1, level, &next_codes_room,
                          &next_ratio_room, &next_panel_room);
    f = feed_of(&next);
    const int most_x = twos ? 32639 : 1600;
    const int16_t *x = numbers(&x_room, (rows - 1) * KC + 2 * now.pairs, most_x,
                               fill < 0 ? 0 : -most_x);
    const bool first = random_bits() % 2;
    const int64_t size = (rows - 1) * LD + COLUMNS;
    float *const c = fenced_end(&c_room, (size_t)size * sizeof *c);
    float old[MR * LD], ws[COLUMNS];
    lb_outerint_head head = {.scale = {0}};
    for (int64_t e = 0; e < size; e++)
        c[e] = old[e] = random_float() * 1e6f;
    for (int p = 0; p < COLUMNS; p++)
        ws[p] = random_float();
    for (int i = 0; i < rows; i++) {
        head.scale[i] = random_float();
        for (int64_t k = 0; k < 2 * now.pairs; k++)
            head.raised[i] -= 128 * x[i * KC + k];
    }
    if (twos)
        kernel->panel_twos(rows, now.pairs, x, now.panel, &head, ws, first, c,
                           LD, &f);
    else
        kernel->panel_fine(rows, now.pairs, x,
                           (const int16_t *)(const void *)now.panel, &head, ws,
                           first, c, LD, &f);
    (twos ? kernel->feed_twos : kernel->feed_fine)(&f);
    ok = ok && f.n == 0 && panel_is(&next, &next_panel_room) &&
         panel_is(&now, &panel_room) &&
         fenced_kept(&c_room, c, (size_t)size * sizeof *c);
    for (int64_t e = 0; e < size; e++) {
        const int64_t i = e / LD, p = e % LD;
        if (p >= COLUMNS) {
            ok = ok && memcmp(c + e, old + e, sizeof *c) == 0;
            continue;
        }
        int64_t sum = 0;
        for (int64_t k = 0; k < n; k++)
            sum += x[i * KC + k] *
                   number(&now.w, false, k, column_of(&now, (int)p));
        /* The result has a single value. */
        const float want =
            fmaf((float)sum * ws[p], head.scale[i], first ? 0 : old[e]);
        ok = ok && c[e] == want;
    }
    if (check_fails(ok))
        fprintf(stderr, "%s: %s, %d rows, %lld lines, then %lld, fill %d\n",
                kernel->name, twos ? "twos" : "fine", rows, (long long)n,
                (long long)next_n, fill);
}

/* ---- all of them --------------------------------------------------------- */

static void check_kernel(const lb_outerint *kernel)
{
    for (int64_t n = 0; n <= 300; n++)
        check_round(kernel, n);
    for (int64_t n = 1; n <= KC; n++)
        for (int high = 0; high < 2; high++) {
            for (int bits = 4; bits <= 8; bits *= 2)
                check_pack(kernel, bits, false, n, high);
            check_pack(kernel, 4, true, n, high);
            check_pack(kernel, 8, true, n, high);
        }
    for (int rows = 1; rows <= MR; rows++)
        for (int64_t pairs = 0; pairs <= KC / 2; pairs++)
            for (int first = 0; first < 2; first++)
                for (int i = 0; i < 3; i++) {
                    static const int most[] = {0, 240, -240};
                    const subject s = {rows, pairs, first, most[i]};
                    check_tile(kernel, &s);
                }
    for (int rows = 1; rows <= MR; rows++)
        for (int64_t n = 1; n <= KC; n++)
            for (int i = 0; i < 4; i++) {
                static const int fill[] = {-1, 0x80, 0x7f, 0xff};
                const int64_t next = 1 + (int)(random_bits() % KC);
                check_fed(kernel, true, rows, n, i ? next : KC, fill[i]);
                check_fed(kernel, false, rows, n, i ? next : KC, -1);
            }
}

int main(void)
{
    codes_room = fenced_open(ROOM);
    ratio_room = fenced_open(ROOM);
    x_room = fenced_open(ROOM);
    c_room = fenced_open(ROOM);
    panel_room = fenced_open(ROOM);
    next_codes_room = fenced_open(ROOM);
    next_ratio_room = fenced_open(ROOM);
    next_panel_room = fenced_open(ROOM);
    check_order();
    check_kernel(&lb_outerint_ref);
#if defined(__x86_64__)
#if !defined(LB_SIMDE)
    if (lb_level_available(LB_LEVEL_AVX2))
#endif
        check_kernel(&lb_outerint_avx2);
#endif
    fenced_close(&codes_room);
    fenced_close(&ratio_room);
    fenced_close(&x_room);
    fenced_close(&c_room);
    fenced_close(&panel_room);
    fenced_close(&next_codes_room);
    fenced_close(&next_ratio_room);
    fenced_close(&next_panel_room);
    return check_report("outerint");
}
