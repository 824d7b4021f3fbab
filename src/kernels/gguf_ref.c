/* gguf_ref.c - see gguf_ref.h. Bytes are those of ggml's reference quantizers
 * as they run on x86-64: f32, nothing contracted. */
#include "kernels/gguf_ref.h"

#include <math.h>

#include "kernels/convert.h"

/* d is rounded to f16 after codes were found with it. Bytes are
 * little-endian. */
static void put_d(uint8_t *to, float d)
{
    const uint16_t h = lb_f16_from_f32(d);
    to[0] = (uint8_t)(h & 0xff);
    to[1] = (uint8_t)(h >> 8);
}

static inline float absmax(const float *x, int n)
{
    float most = 0;
    for (int i = 0; i < n; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    return most;
}

/* The first of the numbers with the largest |x|, with its sign; 0, never -0, if
 * all are 0. */
static inline float signed_peak(const float *x, int n)
{
    const float most = absmax(x, n);
    float peak = 0;
    for (int i = n - 1; i >= 0 && most > 0; i--)
        peak = fabsf(x[i]) == most ? x[i] : peak;
    return peak;
}

/* 1/d, and 0 where that is not finite: codes are those of a block of zeros.
 * For d below 2^-128 ggml converts infinities to integers, and what it stores
 * depends on its compiler. */
static inline float inverse(float d)
{
    const float id = 1 / d;
    return isfinite(id) ? id : 0;
}

/* Half away from zero, as roundf and lroundf do; |v| < 2^23. The remainder is
 * exact, and there is no call in the way of the vectorizer. */
static inline int round_away(float v)
{
    const int t = (int)v;
    const float rest = v - (float)t;
    return t + (rest >= 0.5f) - (rest <= -0.5f);
}

/* ---- Q8_0, Q4_0 --------------------------------------------------------- */

void lb_q8_0_encode_ref(const float *x, int64_t blocks, uint8_t *to)
{
    for (; blocks > 0; blocks--, x += 32, to += 34) {
        const float d = absmax(x, 32) / 127;
        const float id = inverse(d);
        put_d(to, d);
        for (int i = 0; i < 32; i++)
            to[2 + i] = (uint8_t)round_away(x[i] * id);
    }
}

static uint8_t q4_0_code(float x, float id)
{
    const int code = (int)(x * id + 8.5f);
    return (uint8_t)(code < 15 ? code : 15);
}

void lb_q4_0_encode_ref(const float *x, int64_t blocks, uint8_t *to)
{
    for (; blocks > 0; blocks--, x += 32, to += 18) {
        const float d = signed_peak(x, 32) / -8;
        const float id = inverse(d);
        put_d(to, d);
        for (int j = 0; j < 16; j++)
            to[2 + j] =
                (uint8_t)(q4_0_code(x[j], id) | q4_0_code(x[j + 16], id) << 4);
    }
}

/* ---- IQ4_NL ------------------------------------------------------------- */

enum { TRIES = LB_IQ4_NL_TRIES };

const int lb_iq4_nl_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};

/* Halfway between the k-th level and the next: a tie is the upper's. */
static inline float middle(int k)
{
    return 0.5f * (float)(lb_iq4_nl_levels[k] + lb_iq4_nl_levels[k + 1]);
}

/* 15 minus the number of middles above it, and 15 for NaN, as ggml's search
 * has it. */
static int iq4_nl_code(float v)
{
    int code = 15;
    for (int k = 0; k < 15; k++)
        code -= v < middle(k);
    return code;
}

/* The level of that code, by masks: both compilers make vectors of them. */
static inline float iq4_nl_level(float v)
{
    int level = lb_iq4_nl_levels[15];
    for (int k = 0; k < 15; k++)
        level -=
            -(v < middle(k)) & (lb_iq4_nl_levels[k + 1] - lb_iq4_nl_levels[k]);
    return (float)level;
}

/* For each inverse scale id[t] the sums x^2 w x and x^2 w w of its levels w, in
 * the order of the elements: t runs inside, so that lanes can be tries. */
static void try_all(const float *x, const float *id, float *sum_wx,
                    float *sum_ww)
{
    for (int t = 0; t < TRIES; t++)
        sum_wx[t] = sum_ww[t] = 0;
    for (int i = 0; i < 32; i++) {
        const float weight = x[i] * x[i];
        for (int t = 0; t < TRIES; t++) {
            const float w = iq4_nl_level(id[t] * x[i]);
            sum_wx[t] += weight * w * x[i];
            sum_ww[t] += weight * w * w;
        }
    }
}

void lb_iq4_nl_tries(float m, float *id)
{
    id[0] = 1 / (m / 127);
    for (int t = 1; t < TRIES; t++)
        id[t] = (float)(t - 8 - 127) / m;
}

float lb_iq4_nl_best(const float *sum_wx, const float *sum_ww)
{
    float d = sum_ww[0] > 0 ? sum_wx[0] / sum_ww[0] : 0;
    float best = d * sum_wx[0];
    for (int t = 1; t < TRIES; t++)
        if (sum_ww[t] > 0 && sum_wx[t] * sum_wx[t] > best * sum_ww[t]) {
            d = sum_wx[t] / sum_ww[t];
            best = d * sum_wx[t];
        }
    return d;
}

static float best_scale(const float *x, float m)
{
    float id[TRIES], sum_wx[TRIES], sum_ww[TRIES];
    lb_iq4_nl_tries(m, id);
    try_all(x, id, sum_wx, sum_ww);
    return lb_iq4_nl_best(sum_wx, sum_ww);
}

void lb_iq4_nl_encode_ref(const float *x, int64_t blocks, uint8_t *to)
{
    for (; blocks > 0; blocks--, x += 32, to += 18) {
        const float m = signed_peak(x, 32);
        const float d = fabsf(m) < 1e-15f ? 0 : best_scale(x, m);
        const float id = d != 0 ? 1 / d : 0;
        put_d(to, d);
        for (int j = 0; j < 16; j++)
            to[2 + j] = (uint8_t)(iq4_nl_code(id * x[j]) |
                                  iq4_nl_code(id * x[j + 16]) << 4);
    }
}

/* ---- TQ1_0, TQ2_0 ------------------------------------------------------- */

/* Bytes of a kind lie together: `bytes` of them from byte `at` on hold `codes`
 * each, numbers `first` + bytes * k + m. */
static const struct {
    int first, at, bytes, codes;
} kind[] = {{0, 0, 32, 5}, {160, 32, 16, 5}, {240, 48, 4, 4}, {256, 0, 0, 0}};

static void tq1_0_block(const float *x, uint8_t *to)
{
    const float d = absmax(x, 256);
    const float id = inverse(d);
    for (int c = 0; kind[c].bytes; c++)
        for (int m = 0; m < kind[c].bytes; m++) {
            int t = 0;
            for (int k = 0; k < 5; k++) {
                const int i = kind[c].first + kind[c].bytes * k + m;
                t *= 3;
                if (k < kind[c].codes) t += round_away(x[i] * id) + 1;
            }
            to[kind[c].at + m] = (uint8_t)((t * 256 + 242) / 243);
        }
    put_d(to + 52, d);
}

void lb_tq1_0_encode_ref(const float *x, int64_t blocks, uint8_t *to)
{
    for (; blocks > 0; blocks--, x += 256, to += 54)
        tq1_0_block(x, to);
}

static void tq2_0_block(const float *x, uint8_t *to)
{
    const float d = absmax(x, 256);
    const float id = inverse(d);
    for (int g = 0; g < 2; g++, x += 128, to += 32)
        for (int m = 0; m < 32; m++) {
            int byte = 0;
            for (int k = 0; k < 4; k++)
                byte |= (round_away(x[32 * k + m] * id) + 1) << 2 * k;
            to[m] = (uint8_t)byte;
        }
    put_d(to, d);
}

void lb_tq2_0_encode_ref(const float *x, int64_t blocks, uint8_t *to)
{
    for (; blocks > 0; blocks--, x += 256, to += 66)
        tq2_0_block(x, to);
}

/* ---- the choice of a level ---------------------------------------------- */

#if defined(__x86_64__)
#define VECTOR(avx2, neon) avx2
#elif defined(__aarch64__)
#define VECTOR(avx2, neon) neon
#else
#define VECTOR(avx2, neon) NULL
#endif

const lb_gguf_encoders lb_q8_0_encoders = {
    lb_q8_0_encode_ref, VECTOR(lb_q8_0_encode_avx2, lb_q8_0_encode_neon)};
const lb_gguf_encoders lb_q4_0_encoders = {
    lb_q4_0_encode_ref, VECTOR(lb_q4_0_encode_avx2, lb_q4_0_encode_neon)};
const lb_gguf_encoders lb_iq4_nl_encoders = {
    lb_iq4_nl_encode_ref, VECTOR(lb_iq4_nl_encode_avx2, NULL)};
const lb_gguf_encoders lb_tq1_0_encoders = {
    lb_tq1_0_encode_ref, VECTOR(lb_tq1_0_encode_avx2, lb_tq1_0_encode_neon)};
const lb_gguf_encoders lb_tq2_0_encoders = {
    lb_tq2_0_encode_ref, VECTOR(lb_tq2_0_encode_avx2, lb_tq2_0_encode_neon)};

lb_gguf_encoder *lb_gguf_encoder_for(const lb_cpu *cpu,
                                     const lb_gguf_encoders *of)
{
    return cpu->level != LB_LEVEL_REF && of->vector ? of->vector : of->ref;
}
