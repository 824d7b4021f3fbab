/* test_pack_integers.c - the kernels of pack_integers.h, on every level: the
 * bytes and scales that pack_f32.h makes of the numbers, for every length, with
 * guard pages around all memory.
 */
/* ctest: simde skip-tsan skip-ref */
#include <math.h>

#include "base/cpu.h"
#include "check.h"
#include "draws.h"
#include "fenced.h"
#include "kernels/pack_f32.h"
#include "kernels/pack_integers.h"

enum { MOST = 600, BLOCK = LB_PACK_BLOCK, LEAST_RUN = 16, ROOM = 1 << 13 };

static fenced codes, scales, biases, out;

/* At the end of its memory. */
static void *place(const fenced *f, size_t bytes)
{
    return f->map + f->page + f->size - bytes;
}

static float draw_scale(void)
{
    const float x = random_float();
    switch (random_bits() % 24) {
    case 0:
        return 0;
    case 1:
        return x * 0x1p-120f;
    case 2:
        return x * 0x1p-140f;
    case 3:
        return x * 0x1p120f;
    case 4:
        return (float)INFINITY;
    case 5:
        return (float)NAN;
    default:
        return x;
    }
}

/* Block by block, as pack_f32.h has them: row 0 of its rows. */
static void model(const int8_t *code, const float *scale, const float *bias,
                  int run, int64_t n, int8_t *to, float *block_scale)
{
    for (int64_t k = 0; k < n; k += BLOCK) {
        float x[BLOCK][LB_PACK_ROWS] = {{0}};
        float all[LB_PACK_ROWS];
        uint8_t bytes[BLOCK / 4][4 * LB_PACK_ROWS];
        const int64_t some = n - k < BLOCK ? n - k : BLOCK;
        for (int64_t i = 0; i < some; i++) {
            const float product = scale[(k + i) / run] * (float)code[k + i];
            x[i][0] = bias ? product + bias[(k + i) / run] : product;
        }
        lb_pack_f32_ref.bytes(x[0], LB_PACK_ROWS, some, 0, bytes[0],
                              sizeof bytes[0], all);
        for (int64_t i = 0; i < some; i++)
            to[k + i] = (int8_t)bytes[i / 4][i % 4];
        *block_scale++ = all[0];
    }
}

static void check(lb_pack_integers_fn *pack, int run, bool with_bias, int64_t n)
{
    const int64_t whole = up(n, BLOCK), runs = (n + run - 1) / run;
    int8_t want[MOST + BLOCK] = {0};
    float ws[MOST / BLOCK + 1], gs[MOST / BLOCK + 1];
    int8_t *code = place(&codes, (size_t)whole);
    int8_t *to = place(&out, (size_t)whole);
    float *scale = place(&scales, (size_t)runs * sizeof *scale);
    float *bias = place(&biases, (size_t)runs * sizeof *bias);
    for (int64_t i = 0; i < whole; i++)
        code[i] = (int8_t)random_bits();
    for (int64_t r = 0; r < runs; r++) {
        scale[r] = draw_scale();
        bias[r] = random_bits() % 4 ? random_float() : draw_scale();
    }
    model(code, scale, with_bias ? bias : NULL, run, n, want, ws);
    pack(code, scale, with_bias ? bias : NULL, run, n, to, gs);
    bool ok = true;
    for (int64_t i = 0; i < n; i++)
        ok = ok && want[i] == to[i];
    for (int64_t b = 0; b < whole / BLOCK; b++)
        ok = ok && (memcmp(ws + b, gs + b, sizeof *ws) == 0 ||
                    (isnan(ws[b]) && isnan(gs[b])));
    if (check_fails(ok))
        fprintf(stderr, "runs of %d, n = %d%s\n", run, (int)n,
                with_bias ? ", bias" : "");
}

int main(void)
{
    codes = fenced_open(ROOM);
    scales = fenced_open(ROOM);
    biases = fenced_open(ROOM);
    out = fenced_open(ROOM);
    int n_levels = 0;
    for (lb_level l = LB_LEVEL_REF; l <= LB_LEVEL_AMX; l++) {
        lb_pack_integers_fn *pack = lb_pack_integers_for(&(lb_cpu){.level = l});
        if (!pack || !lb_level_available(l)) continue;
        n_levels++;
        for (int64_t n = 1; n <= MOST; n += n < 200 ? 1 : 13)
            for (int run = LEAST_RUN; run <= 256; run *= 2)
                for (int b = 0; b < 2; b++)
                    check(pack, run, b, n);
    }
    CHECK(n_levels > 0);
    return check_report("pack_integers");
}
