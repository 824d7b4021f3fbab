/* test_pack_f32.c - the kernels of pack_f32.h, on every level, against their
 * definition computed element by element, with guard pages around all memory.
 */
/* ctest: simde bochs a53 skip-tsan skip-ref */
#include "base/cpu.h"
#include "check.h"
#include "draws.h"
#include "fenced.h"
#include "kernels/pack_f32.h"

enum { ROWS = LB_PACK_ROWS, MOST = 300, ROOM = 1 << 17 };

static const struct {
    const char *name;
    const lb_pack_f32 *pack;
    lb_level level;
} subjects[] = {
    {"ref", &lb_pack_f32_ref, LB_LEVEL_REF},
#if defined(__x86_64__)
    {"avx2", &lb_pack_f32_avx2, LB_LEVEL_AVX2},
    {"avx512", &lb_pack_f32_avx512, LB_LEVEL_AVX512},
#endif
};

static fenced in, out, scales;

/* At the end of its memory. */
static void *place(const fenced *f, size_t bytes)
{
    return f->map + f->page + ROOM - bytes;
}

/* Rows of ordinary numbers, some huge, tiny, zero or not finite. */
static float number(int row, int64_t k, int kind)
{
    const float x = random_float();
    switch ((row + kind) % 8) {
    case 1:
        return x * 1e38f;
    case 2:
        return x * 1e-38f;
    case 3:
        return k % 2 ? -0.0f : 0.0f;
    case 4:
        return k == 0 && kind % 3 == 1 ? (float)INFINITY : x;
    case 5:
        return k == 0 && kind % 3 == 2 ? (float)NAN : x;
    case 6:
        return x * 0x1p-149f * 100;
    default:
        return x;
    }
}

/* What x becomes, next to others of a row. */
static int whole(float x, float largest, int top)
{
    const float lift = largest < 0x1p-100f ? 0x1p100f : 1;
    if (!(largest > 0) || !isfinite(largest)) return 0;
    return (int)lrintf(x * lift * ((float)top / (largest * lift)));
}

static float largest_of(const float *x, int64_t step, int64_t n)
{
    float most = 0;
    for (int64_t k = 0; k < n; k++) {
        const float size = fabsf(x[k * step]);
        if (!isfinite(size)) return (float)NAN;
        most = fmaxf(most, size);
    }
    return most;
}

static int held(const uint8_t *to, int size, int offset)
{
    int16_t word;
    if (size == 1) return offset ? *to - 128 : (int8_t)*to;
    memcpy(&word, to, sizeof word);
    return word;
}

static void check_pack(int s, int size, int64_t n, int64_t gap, int offset,
                       int kind)
{
    const int top = size == 1 ? LB_PACK_MOST_BYTE : LB_PACK_MOST_WORD;
    const int64_t step = ROWS + gap, quad = 4 / size;
    const int64_t quads = (n + quad - 1) / quad, apart = (ROWS + gap) * 4;
    const size_t x_bytes = (size_t)((n - 1) * step + ROWS) * sizeof(float);
    const size_t to_bytes = (size_t)((quads - 1) * apart + 4 * ROWS);
    float *x = place(&in, x_bytes);
    uint8_t *to = place(&out, to_bytes);
    float *scale = place(&scales, ROWS * sizeof *scale);
    for (int64_t k = 0; k < n; k++)
        for (int r = 0; r < ROWS; r++)
            x[k * step + r] = number(r, k, kind);
    memset(to, 0x55, to_bytes);
    if (size == 1)
        subjects[s].pack->bytes(x, step, n, offset, to, apart, scale);
    else
        subjects[s].pack->words(x, step, n, to, apart, scale);
    bool ok = true;
    for (int r = 0; r < ROWS; r++) {
        const float most = largest_of(x + r, step, n);
        ok = ok &&
             (isfinite(most) ? scale[r] == most / (float)top : isnan(scale[r]));
        for (int64_t k = 0; k < quads * quad; k++) {
            const int want = k < n ? whole(x[k * step + r], most, top) : 0;
            const uint8_t *at = to + k / quad * apart + 4 * r + k % quad * size;
            ok = ok && held(at, size, offset) == want;
        }
    }
    for (int64_t q = 0; q + 1 < quads; q++) /* between rows */
        for (int64_t b = (int64_t)ROWS * 4; b < apart; b++)
            ok = ok && to[q * apart + b] == 0x55;
    if (check_fails(ok))
        fprintf(stderr, "%s: %d bytes, n = %d, kind %d\n", subjects[s].name,
                size, (int)n, kind);
}

int main(void)
{
    in = fenced_open(ROOM - 1);
    out = fenced_open(ROOM - 1);
    scales = fenced_open(ROOM - 1);
    for (int s = 0; s < (int)(sizeof subjects / sizeof *subjects); s++) {
        if (!lb_level_available(subjects[s].level)) continue;
        for (int64_t n = 1; n <= MOST; n += n < 70 ? 1 : 23)
            for (int kind = 0; kind < 8; kind++) {
                const int64_t gap = kind % 3 * 5;
                check_pack(s, 1, n, gap, kind % 2 * 128, kind);
                check_pack(s, 2, n, gap, 0, kind);
            }
    }
    return check_report("pack_f32");
}
