/* test_dottab.c - the kernels of dottab.h (lookup-table gemv) against their
 * definition computed element by element, with guard pages around all memory.
 */
/* ctest: simde skip-tsan skip-ref */
#include <stdlib.h>

#include "base/cpu.h"
#include "check.h"
#include "draws.h"
#include "fenced.h"
#include "kernels/dottab.h"

enum { ROOM = 1 << 16, TABLE = LB_DOTTAB_TABLE, COLUMNS = LB_DOTTAB_COLUMNS };

static fenced in, out;

/* At the end of the memory, or at its beginning. */
static void *place(const fenced *f, size_t bytes, bool end)
{
    char *const room = f->map + f->page;
    return end ? room + ROOM - bytes : room;
}

/* ---- tables ------------------------------------------------------------- */

static int number(const float *x, int64_t n, int64_t k, float factor)
{
    return k < n ? (int)lrintf(x[k] * factor) : 0;
}

/* The value of entry e of table t. */
static int entry(const float *x, int64_t n, float factor, bool high_first,
                 int64_t t, int e)
{
    int sum = 0;
    for (int bit = 0; bit < 4; bit++) {
        const int at = (int)(t % 2) * 4 + bit;
        const int one =
            number(x, n, t / 2 * 8 + (high_first ? 7 - at : at), factor);
        sum += (e >> bit & 1) * one - (one < 0 ? one : 0);
    }
    return sum;
}

static void check_tables(const lb_dottab *k, int64_t n, int rows,
                         bool high_first)
{
    const int64_t tables = (n + 7) / 8 * 2, apart = (int64_t)rows * TABLE;
    float *x = place(&in, (size_t)n * sizeof *x, n % 2);
    for (int64_t i = 0; i < n; i++)
        x[i] = n % 5 ? random_float() : n % 2 ? 1 : -1;
    const size_t size = (size_t)(tables * apart);
    uint8_t *to = place(&out, size, true);
    memset(to, 0x5a, size);
    int32_t sum, low, sum_want = 0, low_want = 0;
    const float factor = LB_DOTTAB_MOST_X;
    k->tables(n, x, factor, high_first, to, apart, &sum, &low);
    bool ok = true;
    for (int64_t t = 0; t < tables; t++) {
        for (int e = 0; e < 16; e++) {
            const uint8_t *at = to + t * apart;
            ok = ok && at[e] + 256 * at[16 + e] ==
                           entry(x, n, factor, high_first, t, e);
        }
        for (int64_t b = TABLE; b < apart; b++)
            ok = ok && to[t * apart + b] == 0x5a;
    }
    for (int64_t i = 0; i < n; i++) {
        const int one = number(x, n, i, factor);
        sum_want += one;
        low_want += one < 0 ? one : 0;
    }
    CHECK(ok && sum == sum_want && low == low_want);
}

/* ---- dots --------------------------------------------------------------- */

static double sum_of(int rows, int64_t bytes, const uint8_t *tables,
                     const uint8_t *codes, int i, int j)
{
    int64_t sum = 0;
    for (int64_t t = 0; t < 2 * bytes; t++) {
        const int code = codes[t / 2 * COLUMNS + j] >> (t % 2 * 4) & 15;
        const uint8_t *at = tables + (t * rows + i) * TABLE;
        sum += at[code] + 256 * at[16 + code];
    }
    return (double)sum;
}

/* most: every byte of the tables is 255. */
static void check_dots(const lb_dottab *k, int rows, int64_t bytes, bool first,
                       bool most)
{
    const size_t table_bytes = (size_t)(2 * bytes * rows * TABLE);
    const size_t code_bytes = (size_t)(bytes * COLUMNS);
    const int64_t ldc = COLUMNS + 8;
    float ws[COLUMNS], *c, old[LB_DOTTAB_MR * (COLUMNS + 8)];
    lb_dottab_head head;
    uint8_t *tables = place(&in, table_bytes, true);
    uint8_t *codes = place(&in, code_bytes, false);
    for (size_t i = 0; i < table_bytes; i++)
        tables[i] = (uint8_t)(most ? 255 : random_bits());
    for (size_t i = 0; i < code_bytes; i++)
        codes[i] = (uint8_t)random_bits();
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
    k->dots(rows, bytes, tables, codes, -2, &head, ws, first,
            (lb_dottab_ahead){(uintptr_t)codes, bytes, 64}, c, ldc);
    bool ok = true;
    for (int i = 0; i < rows; i++) {
        for (int64_t j = 0; j < ldc && i * ldc + j < (int64_t)size; j++) {
            const int64_t e = i * ldc + j;
            if (j >= COLUMNS) {
                ok = ok && c[e] == old[e];
                continue;
            }
            const double sum =
                sum_of(rows, bytes, tables, codes, i, (int)j) * -2;
            const double scale = (double)ws[j] * (double)head.scale[i];
            const double before = first ? 0 : (double)old[e];
            const double want = (sum + (double)head.base[i]) * scale + before;
            const double size_of_it =
                fabs((sum + (double)head.base[i]) * scale) + fabs(before);
            ok = ok && fabs((double)c[e] - want) <= 0x1p-22 * size_of_it;
        }
    }
    CHECK(ok);
}

/* ---- all of them -------------------------------------------------------- */

static void check_kernel(const lb_dottab *k)
{
    for (int64_t n = 0; n <= 300; n++)
        for (int i = 0; i < 4; i++)
            check_tables(k, n, 1 + i / 2, i % 2);
    for (int rows = 1; rows <= LB_DOTTAB_MR; rows++)
        for (int64_t bytes = 0; bytes <= LB_DOTTAB_KC / 8; bytes++)
            for (int i = 0; i < 4; i++)
                check_dots(k, rows, bytes, i & 1, i & 2);
}

int main(void)
{
    in = fenced_open(ROOM - 1);
    out = fenced_open(ROOM - 1);
    for (int level = 0; level <= LB_LEVEL_AVX512VNNI; level++) {
        const lb_cpu cpu = {.level = (lb_level)level};
        const lb_dottab *kernel = lb_dottab_for(&cpu);
        if (kernel && lb_level_available(cpu.level)) check_kernel(kernel);
    }
    return check_report("dottab");
}
