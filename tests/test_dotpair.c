/* test_dotpair.c - the kernels of dotpair.h (half-table lookup) against their
 * definition computed element by element, with guard pages around all memory.
 */
/* ctest: simde skip-tsan skip-ref */
#include <float.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "check.h"
#include "draws.h"
#include "fenced.h"
#include "kernels/dotpair.h"

enum {
    ROOM = 1 << 16,
    TABLE = LB_DOTPAIR_TABLE,
    COLUMNS = LB_DOTPAIR_COLUMNS,
    EACH = LB_DOTPAIR_EACH,
    MOST = LB_DOTPAIR_BYTES
};

static fenced in, out;

/* At the end of the memory, or at its beginning. */
static void *place(const fenced *f, size_t bytes, bool end)
{
    char *const room = f->map + f->page;
    return end ? room + ROOM - bytes : room;
}

/* ---- x ------------------------------------------------------------------ */

static void check_largest(const lb_dotpair *k, lb_dotpair_kind kind, int64_t n,
                          float special)
{
    const int64_t group = kind == LB_DOTPAIR_SIGNS ? 4 : 2;
    float *x = place(&in, (size_t)n * sizeof *x, n % 2), most = 0, lane = 0;
    for (int64_t i = 0; i < n; i++)
        x[i] = random_float();
    if (special != 0 && n) x[n / 2] = special;
    if (special == FLT_MAX && n > 1) x[(n / 2) ^ (n / 2 + 1 < n)] = -FLT_MAX;
    float sums = 0;
    for (int64_t i = 0; i < n; i++) {
        sums = i % group ? sums + fabsf(x[i]) : fabsf(x[i]);
        most = fmaxf(most, fabsf(x[i]));
        lane = fmaxf(lane, sums);
    }
    float got_lane;
    const float got = k->largest[kind](n, x, &got_lane);
    if (isnan(special) && n)
        CHECK(isnan(got));
    else
        CHECK(got == most &&
              (isinf(lane) ? isinf(got_lane)
                           : fabsf(got_lane - lane) <= 0x1p-22f * lane));
}

static int number(const float *x, int64_t n, int64_t k, float factor)
{
    return k < n ? (int)lrintf(x[k] * factor) : 0;
}

/* The element of bit field `at` in the bytes of a table. */
static int64_t place_of(lb_dotpair_kind kind, bool high_first, int at)
{
    const int fields = kind == LB_DOTPAIR_SIGNS ? 8 : 4;
    return high_first ? at / fields * fields + fields - 1 - at % fields : at;
}

/* The value of entry e, from eight elements in bit field order. */
static int entry(lb_dotpair_kind kind, const int *x, int e)
{
    if (kind == LB_DOTPAIR_SIGNS) {
        const int *of = x + e / 8 * 4;
        int sum = of[3];
        for (int i = 0; i < 3; i++)
            sum += e >> i & 1 ? of[i] : -of[i];
        return sum;
    }
    const int a = x[e / 4 * 2], b = x[e / 4 * 2 + 1];
    const int all[4] = {a, b, a + b, a - b};
    return all[e % 4];
}

static void check_tables(const lb_dotpair *k, lb_dotpair_kind kind, int64_t n,
                         int rows, bool high_first)
{
    const int64_t tables = (n + EACH - 1) / EACH, apart = (int64_t)rows * TABLE;
    float *x = place(&in, (size_t)n * sizeof *x, n % 2);
    for (int64_t i = 0; i < n; i++) /* some of the largest magnitude */
        x[i] = n % 5 ? random_float() : n % 2 ? 1 : -1;
    const size_t size = (size_t)(tables * apart);
    uint8_t *to = place(&out, size, true);
    memset(to, 0x5a, size);
    const int group = kind == LB_DOTPAIR_SIGNS ? 4 : 2;
    const float factor = (float)LB_DOTPAIR_MOST / (float)group;
    int32_t want = 0;
    const int32_t sum = k->tables(kind, n, x, factor, high_first, to, apart);
    bool ok = true;
    for (int64_t t = 0; t < tables; t++) {
        const uint8_t *at = to + t * apart;
        int of[EACH];
        for (int f = 0; f < EACH; f++) {
            of[f] =
                number(x, n, t * EACH + place_of(kind, high_first, f), factor);
            want += of[f];
        }
        for (int e = 0; e < 16; e++)
            ok = ok && at[e] + 256 * at[16 + e] ==
                           entry(kind, of, e) + LB_DOTPAIR_OFFSET;
        for (int64_t b = TABLE; b < apart; b++)
            ok = ok && at[b] == 0x5a;
    }
    CHECK(ok && sum == want);
}

/* ---- codes -------------------------------------------------------------- */

/* The value of a code. */
static int level(lb_dotpair_kind kind, int code)
{
    return kind == LB_DOTPAIR_SIGNS ? 2 * code - 1 : code - 1;
}

/* Half `half` of a byte of codes, against the transposed form: the same sum for
 * any values. */
static bool is_sum(lb_dotpair_kind kind, int64_t byte, int half, int code,
                   int index, int sign)
{
    const int bits = lb_dotpair_bits(kind), per = 4 / bits;
    int x[EACH], sum = 0;
    for (int i = 0; i < EACH; i++)
        x[i] = 1 << 3 * i | 1; /* no two sums are the same */
    const int first = (int)(byte % bits) * (8 / bits) + half * per;
    for (int i = 0; i < per; i++)
        sum += level(kind, code >> i * bits & ((1 << bits) - 1)) * x[first + i];
    return index >= 0 && index < 16 && abs(sign) <= 1 &&
           sign * entry(kind, x, index) == sum;
}

static void check_index(const lb_dotpair *k, lb_dotpair_kind kind,
                        int64_t bytes, bool end)
{
    const size_t from_bytes = (size_t)(bytes * COLUMNS);
    const size_t to_bytes = LB_DOTPAIR_HEAD + (size_t)bytes * LB_DOTPAIR_BYTE;
    uint8_t *from = place(&in, from_bytes, end);
    uint8_t *to = place(&out, to_bytes, end);
    bool ok = true;
    for (size_t i = 0; i < from_bytes; i++) {
        from[i] = (uint8_t)random_bits();
        if (kind == LB_DOTPAIR_TRITS) /* no code of 3 */
            from[i] &= (uint8_t) ~(from[i] >> 1 & 0x55);
    }
    k->index(kind, bytes, from, to);
    for (int r = 0; r < COLUMNS; r++) {
        const int v = r / 8 % 2, lane = r % 8 + r / 16 * 8;
        int sum = 0;
        for (int64_t b = 0; b < bytes; b++) {
            const uint8_t *at = to + LB_DOTPAIR_HEAD + b * LB_DOTPAIR_BYTE;
            for (int half = 0; half < 2; half++) {
                const int e = 64 * v + 2 * lane + half;
                const int sign = at[e + 32] == 255 ? -1 : at[e + 32];
                ok = ok && is_sum(kind, b, half,
                                  from[b * COLUMNS + r] >> 4 * half & 15, at[e],
                                  sign);
                sum += sign;
            }
        }
        int16_t begin;
        memcpy(&begin, to + 32 * v + 2 * lane, sizeof begin);
        ok = ok && begin == -128 * sum;
    }
    CHECK(ok);
}

/* ---- dots --------------------------------------------------------------- */

/* The product of row r of w and row i of x. */
static double sum_of(lb_dotpair_kind kind, int rows, int64_t bytes,
                     const uint8_t *tables, const uint8_t *codes, int i, int r)
{
    const int v = r / 8 % 2, lane = r % 8 + r / 16 * 8;
    int64_t sum = 0;
    for (int64_t b = 0; b < bytes; b++) {
        const uint8_t *at =
            tables + (b / lb_dotpair_bits(kind) * rows + i) * TABLE;
        const uint8_t *code =
            codes + LB_DOTPAIR_HEAD + b * LB_DOTPAIR_BYTE + 64 * v + 2 * lane;
        for (int half = 0; half < 2; half++)
            sum += (int8_t)code[32 + half] *
                   (at[code[half]] + 256 * at[16 + code[half]] -
                    LB_DOTPAIR_OFFSET);
    }
    return (double)sum;
}

static void fill_codes(int64_t bytes, uint8_t *codes, bool most)
{
    int16_t begin[COLUMNS] = {0};
    for (int64_t b = 0; b < bytes; b++)
        for (int e = 0; e < 64; e++) {
            uint8_t *at = codes + LB_DOTPAIR_HEAD + b * LB_DOTPAIR_BYTE +
                          e / 32 * 64 + e % 32;
            const int sign = most ? -1 : (int)(random_bits() % 3) - 1;
            at[0] = random_bits() % 16;
            at[32] = (uint8_t)sign;
            begin[e / 2] = (int16_t)(begin[e / 2] - 128 * sign);
        }
    memcpy(codes, begin, sizeof begin);
}

/* most: all bytes of the tables are the smallest or the largest. */
static void check_dots(const lb_dotpair *k, lb_dotpair_kind kind, int rows,
                       int64_t bytes, bool first, bool most)
{
    const size_t table_bytes =
        (size_t)(bytes / lb_dotpair_bits(kind) * rows * TABLE);
    const size_t code_bytes = LB_DOTPAIR_HEAD + (size_t)bytes * LB_DOTPAIR_BYTE;
    const int64_t ldc = COLUMNS + 5;
    float ws[COLUMNS], *c, old[LB_DOTPAIR_MR * (COLUMNS + 5)];
    lb_dotpair_head head;
    uint8_t *tables = place(&in, table_bytes, true);
    uint8_t *codes = place(&in, code_bytes, false);
    for (size_t i = 0; i < table_bytes; i++)
        tables[i] = (uint8_t)(most ? (bytes / 2 % 2 ? 255 : 0) : random_bits());
    fill_codes(bytes, codes, most);
    const size_t size = (size_t)((rows - 1) * ldc + COLUMNS);
    c = place(&out, size * sizeof *c, true);
    for (size_t i = 0; i < size; i++)
        c[i] = old[i] = random_float() * 1e6f;
    for (int j = 0; j < COLUMNS; j++)
        ws[j] = random_float();
    for (int i = 0; i < rows; i++) {
        head.scale[i] = random_float();
        head.base[i] = random_float() * 1e7f;
    }
    k->dots(kind, rows, bytes, tables, codes, -2, &head, ws, first, c, ldc);
    bool ok = true;
    for (size_t e = 0; e < size; e++) {
        const int i = (int)(e / (size_t)ldc), j = (int)(e % (size_t)ldc);
        if (j >= COLUMNS) {
            ok = ok && c[e] == old[e];
            continue;
        }
        const double sum = sum_of(kind, rows, bytes, tables, codes, i, j) * -2 +
                           (double)head.base[i];
        const double scale = (double)ws[j] * (double)head.scale[i];
        const double before = first ? 0 : (double)old[e];
        const double off = fabs((double)c[e] - (sum * scale + before));
        /* The base may cancel most of a sum, but is rounded with it. */
        ok = ok && off <= 0x1p-22 * (fabs(sum * scale) + fabs(before)) +
                              0x1p-22 * fabs(scale) * 1e7;
    }
    CHECK(ok);
}

/* ---- all of them -------------------------------------------------------- */

static void check_kind(const lb_dotpair *k, lb_dotpair_kind kind)
{
    const int bits = lb_dotpair_bits(kind);
    for (int64_t bytes = 0; bytes <= MOST; bytes += bits)
        for (int end = 0; end < 2; end++)
            check_index(k, kind, bytes, end);
    for (int64_t n = 0; n <= 300; n++)
        for (int i = 0; i < 4; i++)
            check_tables(k, kind, n, 1 + i / 2, i % 2);
    static const float specials[] = {0, INFINITY, -INFINITY, NAN, FLT_MAX};
    for (int64_t n = 0; n <= 70; n++)
        for (int i = 0; i < 5; i++)
            check_largest(k, kind, n, specials[i]);
    for (int rows = 1; rows <= LB_DOTPAIR_MR; rows++)
        for (int64_t bytes = 0; bytes <= MOST; bytes += bits)
            for (int i = 0; i < 4; i++)
                check_dots(k, kind, rows, bytes, i & 1, i & 2);
}

int main(void)
{
    in = fenced_open(ROOM - 1);
    out = fenced_open(ROOM - 1);
    for (int level_of = 0; level_of <= LB_LEVEL_AMX; level_of++) {
        const lb_cpu cpu = {.level = (lb_level)level_of};
        const lb_dotpair *kernel = lb_dotpair_for(&cpu);
        if (!kernel || !lb_level_available(cpu.level)) continue;
        check_kind(kernel, LB_DOTPAIR_SIGNS);
        check_kind(kernel, LB_DOTPAIR_TRITS);
    }
    return check_report("dotpair");
}
