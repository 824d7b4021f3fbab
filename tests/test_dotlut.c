/* test_dotlut.c - the lookup tables of dotlut.h: packed rows times packed codes
 * against the sums that they stand for, and each level's panels against the
 * reference's, byte by byte, with guard pages around all memory.
 */
/* ctest: simde skip-tsan skip-ref */
#include <stdlib.h>

#include "base/cpu.h"
#include "check.h"
#include "draws.h"
#include "fenced.h"
#include "kernels/dotlut.h"

enum {
    KC = LB_DOTBYTE_KC,
    NR = LB_DOTLUT_NR,
    MR = 2,
    LINES = LB_DOTBYTE_LINES,
    BYTES = LB_DOTBYTE_BYTES,
    PANELS = BYTES * 8 / NR,
    PANEL = LB_DOTLUT_HEAD + KC / 8 * LB_DOTLUT_BYTE,
    ROOM = 1 << 18
};

static fenced in, out;

static void *place(const fenced *f, size_t bytes, bool end)
{
    char *const room = f->map + f->page;
    return end ? room + ROOM - bytes : room;
}

static int64_t steps(int64_t n)
{
    return up(n, LB_DOTBYTE_STEP);
}

static int64_t panel_bytes(int64_t n)
{
    return LB_DOTLUT_HEAD + steps(n) / 8 * LB_DOTLUT_BYTE;
}

static lb_dotbyte_codes random_codes(void)
{
    lb_dotbyte_codes c = {.bits = 1, .high_first = random_bits() & 1};
    c.number[random_bits() & 1] = 2;
    return c;
}

static void fill(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)random_bits();
}

/* 1 or -1: what code i of a line stands for. */
static int sign_of(const lb_dotbyte_codes *c, const uint8_t *line, int64_t i)
{
    const int64_t bit = c->high_first ? 7 - i % 8 : i % 8;
    return c->number[line[i / 8] >> bit & 1] - 1;
}

/* Two rows of x as integers, and packed. */
typedef struct {
    int32_t number[MR][KC];
    int8_t *tables;
} x_rows;

static void make_x(const lb_dotbyte *k, int rows, int64_t n, bool largest,
                   x_rows *x)
{
    const int64_t apart = (int64_t)rows * LB_DOTLUT_TABLE;
    x->tables = place(&out, (size_t)(steps(n) / 8 * apart), true);
    for (int i = 0; i < rows; i++) {
        float *const from = place(&in, (size_t)n * sizeof(float), true);
        int64_t sum = 0;
        for (int64_t e = 0; e < n; e++) {
            from[e] = largest ? (float)(random_bits() & 1 ? LB_DOTLUT_MOST_X
                                                          : -LB_DOTLUT_MOST_X)
                              : random_float() * LB_DOTLUT_MOST_X;
            x->number[i][e] = (int32_t)lrint((double)from[e]);
            sum += x->number[i][e];
        }
        CHECK(k->round(n, from, 1, 1, 1,
                       x->tables + (ptrdiff_t)i * LB_DOTLUT_TABLE, apart,
                       0) == sum);
    }
}

/* Tiles of the panel w, whose row j has the signs that `sign` gives, and which
 * has `there` rows. */
typedef int signs(const lb_dotbyte_codes *c, const uint8_t *from, int64_t step,
                  int64_t j, int64_t i);

static int sign_along(const lb_dotbyte_codes *c, const uint8_t *from,
                      int64_t step, int64_t j, int64_t i)
{
    return sign_of(c, from + j * step, i);
}

static int sign_across(const lb_dotbyte_codes *c, const uint8_t *from,
                       int64_t step, int64_t j, int64_t i)
{
    return sign_of(c, from + i * step, j);
}

/* One element of a tile, for row j of w. */
static bool is_sum(const x_rows *x, int i, int64_t n, signs *sign,
                   const lb_dotbyte_codes *c, const uint8_t *from, int64_t step,
                   int64_t j, float ws, const lb_dotbyte_x *of, float old,
                   float got)
{
    int64_t sum = of->start[i];
    for (int64_t e = 0; e < n; e++)
        sum += (int64_t)x->number[i][e] * sign(c, from, step, j, e);
    return got == fmaf((float)sum * ws, of->scale[i], old);
}

/* Slots of a panel that are rows of w: row[slot], or -1. */
static void check_tile(const lb_dotbyte *k, const uint8_t *panel,
                       const int64_t *row, int64_t n, signs *sign,
                       const lb_dotbyte_codes *c, const uint8_t *from,
                       int64_t step)
{
    static x_rows x;
    const int rows = 1 + (int)(random_bits() & 1);
    const int32_t start[MR] = {random_within(1000), random_within(1000)};
    const float scale[MR] = {random_float(), random_float()};
    const bool first = random_bits() & 1;
    float ws[NR], c0[MR * NR], got[MR * NR];
    make_x(k, rows, n, n % 3 == 0, &x);
    for (int e = 0; e < MR * NR; e++) {
        ws[e % NR] = random_float();
        got[e] = c0[e] = random_float();
    }
    const lb_dotbyte_x of = {.rows = rows,
                             .planes = 1,
                             .bytes = x.tables,
                             .start = start,
                             .scale = scale,
                             .share = KC,
                             .apart = MR};
    k->tile(&of, steps(n), &(lb_dotbyte_w){panel, ws, 0}, first, got, NULL);
    bool ok = true;
    for (int e = 0; e < rows * NR; e++) {
        const int i = e / NR, slot = e % NR;
        if (row[slot] >= 0)
            ok = ok && is_sum(&x, i, n, sign, c, from, step, row[slot],
                              ws[slot], &of, first ? 0 : c0[e], got[e]);
    }
    if (check_fails(ok))
        fprintf(stderr, "%s, K = %lld\n", k->name, (long long)n);
}

static void check_along(const lb_dotbyte *k, int64_t n, bool end)
{
    static uint8_t codes[LINES * (KC / 8 + 9)], panel[PANEL], want[PANEL];
    const lb_dotbyte_codes c = random_codes();
    const int64_t bytes = (n + 7) / 8, step = bytes + n % 3 * 4;
    const size_t size = (size_t)((LINES - 1) * step + bytes);
    const int64_t room = panel_bytes(n) - 64; /* of one half */
    int64_t row[NR];
    fill(codes, size);
    uint8_t *const from = place(&in, size, end);
    uint8_t *const to = place(&out, (size_t)room, !end);
    memcpy(from, codes, size);
    memset(to, 0x55, (size_t)room);
    memset(want, 0x55, sizeof want);
    memset(panel, 0x55, sizeof panel);
    k->along(&c, from, step, n, 0, to);
    memcpy(panel, to, (size_t)room);
    lb_dotlut_ref.along(&c, codes, step, n, 0, want);
    bool ok = true;
    for (int64_t b = LB_DOTLUT_HEAD; b < room; b++)
        ok = ok && panel[b] == want[b];
    CHECK(ok && !memcmp(panel, want, 32));
    for (int s = 0; s < NR; s++)
        row[s] = s < LINES ? s : -1;
    check_tile(k, panel, row, n, sign_along, &c, codes, step);
}

static void check_across(const lb_dotbyte *k, int64_t n, int64_t bytes,
                         bool end)
{
    static uint8_t codes[KC * (BYTES + 5)], want[PANELS * PANEL];
    const lb_dotbyte_codes c = random_codes();
    const int64_t step = bytes + n % 4, panel = panel_bytes(n);
    const size_t size = (size_t)((n - 1) * step + bytes);
    fill(codes, size);
    uint8_t *const from = place(&in, size, end);
    uint8_t *const to = place(&out, (size_t)(PANELS * panel), !end);
    static uint8_t got[PANELS * PANEL];
    memcpy(from, codes, size);
    k->across(&c, from, step, n, bytes, 0, to, panel);
    memcpy(got, to, (size_t)(PANELS * panel));
    lb_dotlut_ref.across(&c, codes, step, n, bytes, 0, want, panel);
    for (int64_t p = 0; p < PANELS; p++) {
        int64_t row[NR];
        bool any = false, ok = true;
        for (int64_t s = 0; s < NR; s++) {
            const int64_t slot = p * NR + s; /* 16 bytes, field by field */
            const int64_t byte = slot / 128 * 16 + slot % 16;
            row[s] = byte < bytes ? byte * 8 + slot / 16 % 8 : -1;
            any = any || row[s] >= 0;
            const int64_t at = p * panel + s / 16 * 64 + s % 16 * 2;
            for (int64_t b = 0; b < steps(n) / 8 && row[s] >= 0; b++) {
                const int64_t e = at + LB_DOTLUT_HEAD + b * LB_DOTLUT_BYTE;
                ok = ok && !memcmp(got + e, want + e, 2) &&
                     !memcmp(got + e + 32, want + e + 32, 2);
            }
            ok = ok && (row[s] < 0 || !memcmp(got + at, want + at, 2));
        }
        CHECK(ok);
        if (any)
            check_tile(k, got + p * panel, row, n, sign_across, &c, codes,
                       step);
    }
}

static void check_kernel(const lb_dotbyte *k)
{
    for (int64_t n = 1; n <= KC; n += n < 140 ? 1 : 31) {
        if (check_thins_short()) continue;
        check_along(k, n, n & 1);
        check_across(k, n, 1 + (n * 7) % BYTES, n & 1);
    }
    check_along(k, KC, true);
    check_across(k, KC, BYTES, true);
}

int main(void)
{
    in = fenced_open(ROOM - 1);
    out = fenced_open(ROOM - 1);
    check_kernel(&lb_dotlut_ref);
#if defined(__x86_64__)
#if !defined(LB_SIMDE)
    if (lb_level_available(LB_LEVEL_AVX2))
#endif
        check_kernel(&lb_dotlut_avx2);
#endif
    return check_report("dotlut");
}
