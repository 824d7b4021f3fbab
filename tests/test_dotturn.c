/* test_dotturn.c - the kernels of dotturn.h (bit transposition) against their
 * definition computed byte by byte, with guard pages around all memory. */
/* ctest: simde skip-tsan skip-ref */
#include <stdlib.h>

#include "base/cpu.h"
#include "check.h"
#include "draws.h"
#include "fenced.h"
#include "kernels/dotturn.h"

enum { ROOM = 1 << 16, COLUMNS = LB_DOTTURN_ROWS };

static fenced in, out;

/* At the end of the memory, or at its beginning. */
static void *place(const fenced *f, size_t bytes, bool end)
{
    char *const room = f->map + f->page;
    return end ? room + ROOM - bytes : room;
}

static void check_along(const lb_dotturn *k, int64_t bytes, int64_t step,
                        bool end)
{
    const size_t size = (size_t)((COLUMNS - 1) * step + bytes);
    uint8_t *from = place(&in, size, end);
    for (size_t i = 0; i < size; i++)
        from[i] = (uint8_t)random_bits();
    uint8_t *to = place(&out, (size_t)(bytes * COLUMNS), end);
    k->along(from, step, bytes, end ? 4096 : 0, to);
    bool ok = true;
    for (int64_t b = 0; b < bytes; b++)
        for (int r = 0; r < COLUMNS; r++)
            ok = ok && to[b * COLUMNS + r] == from[r * step + b];
    CHECK(ok);
}

/* Byte b of row r of a strip has bit fields of n rows. */
static void check_across(const lb_dotturn *k, int bits, int64_t bytes,
                         int64_t wide, int64_t step, bool end)
{
    const int64_t n = 8 / bits, lines = bytes * n;
    const int64_t apart = bytes * COLUMNS + 32 * (bytes % 3);
    const int64_t strips = wide * n;
    const size_t size =
        lines && wide ? (size_t)((lines - 1) * step + wide * LB_DOTTURN_WIDE)
                      : 0;
    uint8_t *from = place(&in, size, end);
    for (size_t i = 0; i < size; i++)
        from[i] = (uint8_t)random_bits();
    const size_t room =
        strips ? (size_t)((strips - 1) * apart + bytes * COLUMNS) : 0;
    uint8_t *to = place(&out, room, true);
    memset(to, 0x5a, room);
    k->across(bits, from, step, bytes, wide, to, apart);
    bool ok = true;
    for (size_t i = 0; i < room; i++) {
        const int64_t strip = (int64_t)i / apart, at = (int64_t)i % apart;
        int want = 0;
        for (int64_t l = 0; l < n && at < bytes * COLUMNS; l++) {
            const int64_t place_in = strip / n * COLUMNS + at % COLUMNS;
            const int byte = from[(at / COLUMNS * n + l) * step + place_in];
            want |= (byte >> strip % n * bits & ((1 << bits) - 1)) << l * bits;
        }
        ok = ok && to[i] == (at < bytes * COLUMNS ? want : 0x5a);
    }
    CHECK(ok);
}

static void check_kernel(const lb_dotturn *k)
{
    for (int64_t bytes = 0; bytes <= 128; bytes += LB_DOTTURN_BYTES)
        for (int64_t step = bytes; step < bytes + 70; step += 23)
            for (int end = 0; end < 2; end++)
                check_along(k, bytes, step, end);
    for (int64_t bytes = 0; bytes <= 20; bytes++)
        for (int64_t wide = 0; wide <= 3; wide++)
            for (int i = 0; i < 4; i++)
                check_across(k, 1 + i / 2, bytes, wide, wide * 32 + bytes % 7,
                             i % 2);
}

int main(void)
{
    in = fenced_open(ROOM - 1);
    out = fenced_open(ROOM - 1);
    for (int level = 0; level <= LB_LEVEL_AMX; level++) {
        const lb_cpu cpu = {.level = (lb_level)level};
        const lb_dotturn *kernel = lb_dotturn_for(&cpu);
        if (kernel && lb_level_available(cpu.level)) check_kernel(kernel);
    }
    return check_report("dotturn");
}
