/* test_dotf32.c - the kernels of dotf32.h against sums in double precision, for
 * every code width, K and number of rows, with guard pages around codes, scales
 * and results. */
/* ctest: simde skip-tsan skip-ref */
#include "base/cpu.h"
#include "check.h"
#include "draws.h"
#include "fenced.h"
#include "kernels/dotf32.h"

enum { ROWS = 7, ROOM = 1 << 15, DEEP = 1024, MR = LB_DOTF32_MAX_MR };

static fenced codes_room, scale_room, c_room;

/* ---- the order ---------------------------------------------------------- */

static void check_order(int lanes, int bits)
{
    const int64_t n = lb_dotf32_group(bits);
    for (int high = 0; high < 2; high++) {
        uint8_t place[LB_DOTF32_MAX_GROUP];
        int met[LB_DOTF32_MAX_GROUP] = {0};
        lb_dotf32_order(lanes, bits, high, place);
        for (int64_t i = 0; i < n; i++)
            met[place[i]]++;
        for (int64_t i = 0; i < n; i++)
            CHECK_EQ_I(met[i], 1);
    }
}

/* ---- sums --------------------------------------------------------------- */

typedef struct {
    lb_dotf32_codes w;
    float level[16];
    bool high_first;
} subject;

static subject make(int bits, bool high_first, int64_t g, int64_t depth)
{
    subject s = {.high_first = high_first};
    const int64_t bytes = (depth * bits + 7) / 8;
    const int64_t scales = g ? (depth + g - 1) / g : 1;
    uint8_t *codes = fenced_end(&codes_room, (size_t)(ROWS * bytes));
    float *scale =
        fenced_end(&scale_room, (size_t)(ROWS * scales) * sizeof *scale);
    for (int64_t i = 0; i < ROWS * bytes; i++)
        codes[i] = (uint8_t)random_bits();
    for (int64_t i = 0; i < ROWS * scales; i++)
        scale[i] = random_float();
    for (int i = 0; i < 16; i++)
        s.level[i] = random_float();
    s.w = (lb_dotf32_codes){
        .bits = bits,
        .tame = random_bits() % 2,
        .codes = codes,
        .step = bytes,
        .scale = scale,
        .scale_step = scales,
        .g = g,
        .n = ROWS,
        .depth = depth,
        .ahead = high_first ? 4096 : 0,
    };
    return s;
}

static float product(const subject *s, int64_t j, int64_t k)
{
    const lb_dotf32_codes *w = &s->w;
    const uint8_t *codes = w->codes + j * w->step;
    const float scale = w->scale[j * w->scale_step + (w->g ? k / w->g : 0)];
    if (w->bits == 8) return (float)(int8_t)codes[k] * scale;
    const int fields = 8 / w->bits, at = (int)(k % fields);
    const int field = s->high_first ? fields - 1 - at : at;
    const int code = codes[k / fields] >> (field * w->bits);
    return s->level[code & ((1 << w->bits) - 1)] * scale;
}

static void pack(const lb_dotf32 *kernel, const subject *s, const float *x,
                 int rows, float *to)
{
    const int64_t group = lb_dotf32_group(s->w.bits), lanes = kernel->lanes;
    uint8_t place[LB_DOTF32_MAX_GROUP];
    lb_dotf32_order(kernel->lanes, s->w.bits, s->high_first, place);
    for (int r = 0; r < rows; r++)
        for (int64_t k = 0; k < s->w.depth; k += group)
            for (int64_t i = 0; i < group; i++) {
                const int64_t from = k + place[i];
                to[((k + i) / lanes * rows + r) * lanes + i % lanes] =
                    from < s->w.depth ? x[r * DEEP + from] : 0;
            }
}

static void check_dots(const lb_dotf32 *kernel, const subject *s, int rows,
                       bool first)
{
    static float x[MR * DEEP];
    static _Alignas(64) float packed[MR * (DEEP + LB_DOTF32_MAX_GROUP)];
    const int64_t ldc = random_bits() % 2 ? rows : rows + 2,
                  size = (ROWS - 1) * ldc + rows;
    float *c = fenced_end(&c_room, (size_t)size * sizeof *c);
    float old[ROWS * (MR + 2)];
    for (int i = 0; i < MR * DEEP; i++)
        x[i] = random_float();
    for (int64_t i = 0; i < size; i++)
        c[i] = old[i] = random_float();
    pack(kernel, s, x, rows, packed);
    kernel->dots(&s->w, rows, packed, first, c, ldc);
    bool ok = true;
    for (int64_t j = 0; j < ROWS; j++)
        for (int64_t r = 0; r < ldc && j * ldc + r < size; r++) {
            const int64_t e = j * ldc + r;
            if (r >= rows) {
                ok = ok && c[e] == old[e];
                continue;
            }
            double sum = first ? 0 : (double)old[e], most = fabs(sum);
            for (int64_t k = 0; k < s->w.depth; k++) {
                const double term =
                    (double)x[r * DEEP + k] * (double)product(s, j, k);
                sum += term;
                most += fabs(term);
            }
            const double terms = (double)s->w.depth / 8 + 8;
            ok = ok && fabs((double)c[e] - sum) <= terms * 0x1p-24 * most;
        }
    if (check_fails(ok))
        fprintf(stderr, "%s: %d bits, K = %lld, %d rows, a scale for %lld\n",
                kernel->name, s->w.bits, (long long)s->w.depth, rows,
                (long long)s->w.g);
}

static void check_kernel(const lb_dotf32 *kernel)
{
    for (int bits = 1; bits <= 8; bits *= 2) {
        const int64_t unit = lb_dotf32_unit(bits);
        check_order(kernel->lanes, bits);
        for (int64_t depth = 1; depth <= 600; depth += depth < 300 ? 1 : 37)
            for (int high = 0; high < 2; high++)
                for (int64_t g = 0; g <= 4 * unit; g = g ? 2 * g : unit) {
                    if (check_thins_short()) continue;
                    subject s = make(bits, high, g, depth);
                    s.w.level = s.level;
                    check_dots(kernel, &s,
                               1 + (int)(random_bits() % (uint32_t)kernel->mr),
                               depth & 1);
                    if (depth % 64 < 2)
                        check_dots(kernel, &s, kernel->mr, false);
                }
    }
}

int main(void)
{
    codes_room = fenced_open(ROOM);
    scale_room = fenced_open(ROOM);
    c_room = fenced_open(ROOM);
    for (int level = 0; level <= LB_LEVEL_AMX; level++) {
        const lb_cpu cpu = {.level = (lb_level)level};
        const lb_dotf32 *kernel = lb_dotf32_for(&cpu);
        if (kernel && lb_level_available(cpu.level)) check_kernel(kernel);
    }
    fenced_close(&codes_room);
    fenced_close(&scale_room);
    fenced_close(&c_room);
    return check_report("dotf32");
}
