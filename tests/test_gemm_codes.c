/* test_gemm_codes.c - the kernels of gemm_codes.h, bit for bit against values
 * computed one by one, for every code width, K and number of rows, with guard
 * pages around all memory. */
/* ctest: simde skip-tsan skip-ref */
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "check.h"
#include "draws.h"
#include "fenced.h"
#include "kernels/gemm_codes.h"

enum { ROOM = 1 << 17 };

static fenced from_room, scale_room, to_room;

static float any_float(void) /* of any size, 0, infinite or NaN */
{
    static const float odd[] = {0,        -0.0f,    0x1p-149f, -0x1.8p-130f,
                                0x1p127f, INFINITY, NAN};
    const uint32_t u = random_bits();
    if (u % 16 < sizeof odd / sizeof *odd) return odd[u % 16];
    return ldexpf((float)((int32_t)random_bits() >> 8),
                  (int)(random_bits() % 60) - 50);
}

static float tame_float(void) /* neither tiny nor huge */
{
    return ldexpf((float)(random_bits() % 4096) - 2047.5f,
                  (int)(random_bits() % 60) - 50);
}

/* The same bits, or two NaNs. */
static bool same(float a, float b)
{
    return !memcmp(&a, &b, sizeof a) || (isnan(a) && isnan(b));
}

static lb_gemm_rows make(int bits, bool high_first, const float *level,
                         int64_t g, int64_t n, int64_t depth, int64_t gap)
{
    const int64_t bytes = (depth * bits + 7) / 8, step = bytes + gap;
    const int64_t scales = g ? (depth + g - 1) / g : 1;
    const size_t size = (size_t)((n - 1) * step + bytes);
    uint8_t *codes = gap % 2 ? fenced_begin(&from_room, 0, size)
                             : fenced_end(&from_room, size);
    float *scale =
        fenced_end(&scale_room, (size_t)(n * scales) * sizeof *scale);
    for (size_t i = 0; i < size; i++)
        codes[i] = (uint8_t)random_bits();
    const bool tame = random_bits() % 2;
    for (int64_t i = 0; i < n * scales; i++)
        scale[i] = tame ? tame_float() : any_float();
    return (lb_gemm_rows){
        .bits = bits,
        .high_first = high_first,
        .level = level,
        .codes = codes,
        .step = step,
        .scale = scale,
        .scale_step = scales,
        .g = g,
        .n = n,
        .depth = depth,
        .ahead = high_first ? 4096 : 0,
    };
}

static float product(const lb_gemm_rows *w, int64_t j, int64_t k)
{
    const uint8_t *codes = w->codes + j * w->step;
    const float scale = w->scale[j * w->scale_step + (w->g ? k / w->g : 0)];
    if (w->bits == 8) return (float)(int8_t)codes[k] * scale;
    const int fields = 8 / w->bits, at = (int)(k % fields);
    const int field = w->high_first ? fields - 1 - at : at;
    const int code = codes[k / fields] >> (field * w->bits);
    return w->level[code & ((1 << w->bits) - 1)] * scale;
}

static void check_decode(const lb_gemm_codes *kernel, const lb_gemm_rows *w)
{
    const size_t size = (size_t)(w->depth * kernel->nr) * sizeof(float);
    float *to =
        w->n % 2 ? fenced_begin(&to_room, 0, size) : fenced_end(&to_room, size);
    kernel->decode(w, to);
    bool ok = fenced_kept(&to_room, to, size);
    for (int64_t k = 0; k < w->depth; k++)
        for (int64_t j = 0; j < w->n; j++)
            ok = ok && same(to[k * kernel->nr + j], product(w, j, k));
    if (check_fails(ok))
        fprintf(stderr, "%s: %d bits, scales of %lld, %lld rows of %lld\n",
                kernel->name, w->bits, (long long)w->g, (long long)w->n,
                (long long)w->depth);
}

static void test_decode(const lb_gemm_codes *kernel)
{
    static const int64_t depths[] = {1,   2,   3,   7,   15,  16,  17,  31,
                                     32,  33,  63,  64,  65,  96,  127, 128,
                                     129, 160, 192, 224, 255, 256, 257, 300};
    static const int64_t groups[] = {0, 16, 32, 48, 64, 256};
    float level[16];
    for (int i = 0; i < 16; i++)
        level[i] = any_float();
    for (int bits = 1; bits <= 8; bits *= 2)
        for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
            for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
                for (int64_t n = 1; n <= kernel->nr; n += n < 3 ? 1 : 4) {
                    const lb_gemm_rows w = make(bits, n % 2, level, groups[g],
                                                n, depths[d], n % 3 * 5);
                    check_decode(kernel, &w);
                }
}

/* ---- lines --------------------------------------------------------------- */

/* scales: 0 of all, 1 of each line, 2 of each column, 3 of both. */
static lb_gemm_rows make_lines(int bits, bool high_first, const float *level,
                               int scales, int64_t n, int64_t depth,
                               int64_t gap)
{
    const int64_t bytes = (n * bits + 7) / 8, step = bytes + gap;
    const int64_t each = scales / 2 ? n : 1, lines = scales % 2 ? depth : 1;
    const size_t size = (size_t)((depth - 1) * step + bytes);
    uint8_t *codes = gap % 2 ? fenced_begin(&from_room, 0, size)
                             : fenced_end(&from_room, size);
    float *scale =
        fenced_end(&scale_room, (size_t)(each * lines) * sizeof *scale);
    for (size_t i = 0; i < size; i++)
        codes[i] = (uint8_t)random_bits();
    for (int64_t i = 0; i < each * lines; i++)
        scale[i] = any_float();
    return (lb_gemm_rows){
        .bits = bits,
        .high_first = high_first,
        .level = level,
        .codes = codes,
        .step = step,
        .scale = scale,
        .scale_step = scales % 2 ? each : 0,
        .each = scales / 2,
        .n = n,
        .depth = depth,
        .asks = depth / 2,
        .ahead = 64, /* which nobody may read */
        .ask_step = 4096,
    };
}

static float of_line(const lb_gemm_rows *w, int64_t j, int64_t k)
{
    const float scale = w->scale[k * w->scale_step + (w->each ? j : 0)];
    lb_gemm_rows row = *w;
    row.codes += k * w->step;
    row.scale = &scale;
    row.g = 0;
    return product(&row, 0, j);
}

static void check_lines(const lb_gemm_codes *kernel, const lb_gemm_rows *w)
{
    const size_t size = (size_t)(w->depth * kernel->nr) * sizeof(float);
    float *to =
        w->n % 2 ? fenced_begin(&to_room, 0, size) : fenced_end(&to_room, size);
    kernel->lines(w, to);
    bool ok = fenced_kept(&to_room, to, size);
    for (int64_t k = 0; k < w->depth; k++)
        for (int64_t j = 0; j < w->n; j++)
            ok = ok && same(to[k * kernel->nr + j], of_line(w, j, k));
    if (check_fails(ok))
        fprintf(stderr, "%s: %d bits, %lld columns of %lld lines\n",
                kernel->name, w->bits, (long long)w->n, (long long)w->depth);
}

static void test_lines(const lb_gemm_codes *kernel)
{
    static const int64_t depths[] = {1, 2, 3, 17, 64, 100};
    float level[16];
    for (int i = 0; i < 16; i++)
        level[i] = any_float();
    for (int bits = 1; bits <= 8; bits *= 2)
        for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
            for (int scales = 0; scales < 4; scales++)
                for (int64_t n = 1; n <= kernel->nr; n++) {
                    const lb_gemm_rows w =
                        make_lines(bits, n % 3 == 0, level, scales, n,
                                   depths[d], n % 4 * 5);
                    check_lines(kernel, &w);
                }
}

int main(void)
{
    from_room = fenced_open(ROOM);
    scale_room = fenced_open(ROOM);
    to_room = fenced_open(ROOM);
    for (int level = 0; level <= LB_LEVEL_AMX; level++) {
        const lb_cpu cpu = {.level = (lb_level)level};
        const lb_gemm_codes *kernel = lb_gemm_codes_for(&cpu);
        if (!kernel || !lb_level_available(cpu.level)) continue;
        test_decode(kernel);
        test_lines(kernel);
    }
    fenced_close(&from_room);
    fenced_close(&scale_room);
    fenced_close(&to_room);
    return check_report("gemm codes");
}
