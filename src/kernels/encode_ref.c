/* encode_ref.c - the encoders in portable C, and the choice of a level. This is
 * the specification: what other levels do is compared with it bit for bit. */
#include "kernels/encode_ref.h"

#include <math.h>
#include <string.h>

#include "kernels/bits.h"
#include "kernels/convert.h"

enum { PIECE = 256 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- what is said of numbers -------------------------------------------- */

static uint32_t peak_bits_ref(const float *x, int64_t n)
{
    uint32_t bits = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &x[i], sizeof u);
        u &= 0x7fffffff;
        bits = u > bits ? u : bits;
    }
    return bits;
}

static void largest_ref(const float *x, int64_t n, int64_t block, float *most)
{
    for (int64_t i = 0; i < n; i += block)
        *most++ = lb_largest_abs(x + i, least(block, n - i));
}

static void raise_ref(const float *x, int64_t n, float *most)
{
    for (int64_t i = 0; i < n; i++)
        most[i] = fabsf(x[i]) > most[i] ? fabsf(x[i]) : most[i];
}

static void totals_ref(const float *x, int64_t n, float above, lb_total *each)
{
    for (int64_t i = 0; i < n; i += LB_CHUNK)
        *each++ = lb_total_above(x + i, least(LB_CHUNK, n - i), above);
}

static void moments_ref(const float *x, int64_t n, lb_moments *each)
{
    for (int64_t i = 0; i < n; i += LB_CHUNK)
        *each++ = lb_moments_of(x + i, least(LB_CHUNK, n - i));
}

/* ---- codes -------------------------------------------------------------- */

static void round_quotients(lb_quotient how, int64_t n, float *v)
{
    if (how == LB_QUOTIENT_F16) lb_round_run(LB_F16, n, v);
    if (how == LB_QUOTIENT_BF16) lb_round_run(LB_BF16, n, v);
}

void lb_quotients_ref(lb_quotient how, const float *x, int64_t n, float by,
                      float *v)
{
    if (how == LB_PRODUCT)
        for (int64_t i = 0; i < n; i++)
            v[i] = x[i] * by;
    else
        for (int64_t i = 0; i < n; i++)
            v[i] = x[i] / by;
    round_quotients(how, n, v);
}

static void quotients_each(lb_quotient how, const float *x, int64_t n,
                           const float *by, float *v)
{
    if (how == LB_PRODUCT)
        for (int64_t i = 0; i < n; i++)
            v[i] = x[i] * by[i];
    else
        for (int64_t i = 0; i < n; i++)
            v[i] = x[i] / by[i];
    round_quotients(how, n, v);
}

static void whole_codes(const float *v, int64_t n, int8_t *code)
{
    /* Adding 1.5 * 2^23 leaves no place for fractions: half to even. */
    const float most = 127, whole = 12582912.0f;
    for (int64_t i = 0; i < n; i++) {
        const float w = v[i] > most ? most : v[i] < -most ? -most : v[i];
        code[i] = (int8_t)(int)((w + whole) - whole);
    }
}

static void whole_ref(lb_quotient how, const float *x, int64_t n, float by,
                      int8_t *code)
{
    float v[PIECE];
    for (int64_t i = 0; i < n; i += PIECE) {
        const int64_t k = least(PIECE, n - i);
        lb_quotients_ref(how, x + i, k, by, v);
        whole_codes(v, k, code + i);
    }
}

static void whole_each_ref(lb_quotient how, const float *x, int64_t n,
                           const float *by, int8_t *code)
{
    float v[PIECE];
    for (int64_t i = 0; i < n; i += PIECE) {
        const int64_t k = least(PIECE, n - i);
        quotients_each(how, x + i, k, by + i, v);
        whole_codes(v, k, code + i);
    }
}

static void ternary_ref(const float *x, int64_t n, float cut, uint8_t *byte)
{
    uint8_t bits[PIECE];
    for (int64_t i = 0; i < n; i += PIECE) {
        const int64_t k = least(PIECE, n - i);
        for (int64_t j = 0; j < k; j++)
            bits[j] = (uint8_t)(1 + (x[i + j] > cut) - (x[i + j] < -cut));
        lb_bits_put(2, 1, bits, k, byte, i);
    }
}

static void binary_ref(const float *x, int64_t n, uint8_t *byte)
{
    uint8_t bits[PIECE];
    for (int64_t i = 0; i < n; i += PIECE) {
        const int64_t k = least(PIECE, n - i);
        for (int64_t j = 0; j < k; j++)
            bits[j] = x[i + j] >= 0;
        lb_bits_put(1, 0, bits, k, byte, i);
    }
}

/* ---- the table ---------------------------------------------------------- */

const lb_encode_kernel lb_encode_ref = {
    .name = "encode ref",
    .peak_bits = peak_bits_ref,
    .largest = largest_ref,
    .raise = raise_ref,
    .totals = totals_ref,
    .moments = moments_ref,
    .whole = whole_ref,
    .whole_each = whole_each_ref,
    .ternary = ternary_ref,
    .binary = binary_ref,
};

const lb_encode_kernel *lb_encode_kernel_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return &lb_encode_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_encode_avx2;
#elif defined(__aarch64__)
    if (cpu->level == LB_LEVEL_NEON) return &lb_encode_neon;
#endif
    (void)cpu;
    return &lb_encode_ref;
}
