/* nf4_ref.c - see nf4_ref.h. */
#include "kernels/nf4_ref.h"

#include <float.h>

#include "kernels/convert.h"
#include "kernels/encode_ref.h"

enum { EDGES = 15 };

/* f32 neighbours of the levels that bitsandbytes publishes in decimal. */
/* clang-format off */
const float lb_nf4_levels[16] = {
    -1.0f,        -0.696192801f, -0.525073051f, -0.394917488f,
    -0.284441382f, -0.18477343f, -0.0910500363f, 0.0f,
     0.0795802996f, 0.160930201f, 0.246112302f,  0.337915242f,
     0.440709829f,  0.562617004f, 0.722956836f,  1.0f,
};

/* x (x (x (x (a x + b) + c) + d) + e) + f at x = 0 .. 15, each step one fused
 * multiply-add in f32, as compilers that may contract evaluate it;
 *   a 1.82943132356953e-5  b -0.00068587779130373  c  0.0100420261313669
 *   d -0.0722703570217226  e  0.346075459755188    f -0.994166218659335
 * Without fusing, seven of the sixteen would end in other bits. */
const float lb_nf4_poly[16] = {
    -0x1.fd035ap-1f, -0x1.6c0672p-1f, -0x1.0ad41p-1f,  -0x1.8b9f1p-2f,
    -0x1.1f148cp-2f, -0x1.7e903ep-3f, -0x1.8d5a3p-4f,  -0x1.fe954p-8f,
     0x1.4acf7p-4f,   0x1.56f904p-3f,  0x1.0249p-2f,    0x1.5a62b4p-2f,
     0x1.bcb30cp-2f,  0x1.1d0122p-1f,  0x1.769bbap-1f,  0x1.fecc4p-1f,
};

/* The largest f32 that |v - level|, computed in f32, does not bring closer to
 * the upper of two levels. */
static const float nearest[EDGES] = {
    -0x1.b239b2p-1f, -0x1.38a4e2p-1f, -0x1.d709p-2f,   -0x1.5bd4eep-2f,
    -0x1.e079dap-3f, -0x1.1a7178p-3f, -0x1.74f0e2p-5f,  0x1.45f5fep-5f,
     0x1.ec90c4p-4f,  0x1.a0cfcp-3f,   0x1.2b05a8p-2f,  0x1.8ea7f2p-2f,
     0x1.00da06p-1f,  0x1.491b5ep-1f,  0x1.b913b2p-1f,
};

/* (level[j] + level[j + 1]) / 2 in f32. */
static const float bucketize[EDGES] = {
    -0x1.b239bp-1f,  -0x1.38a4ep-1f,  -0x1.d709p-2f,   -0x1.5bd4ecp-2f,
    -0x1.e079d8p-3f, -0x1.1a7178p-3f, -0x1.74f0e2p-5f,  0x1.45f5fep-5f,
     0x1.ec90c4p-4f,  0x1.a0cfcp-3f,   0x1.2b05a8p-2f,  0x1.8ea7f2p-2f,
     0x1.00da08p-1f,  0x1.491b5ep-1f,  0x1.b913b4p-1f,
};

/* The numbers that the GPU's decision tree compares with, rounded to f32. */
static const float tree[EDGES] = {
    -0x1.b239b2p-1f, -0x1.38a4ep-1f,  -0x1.d709p-2f,   -0x1.5bd4ecp-2f,
    -0x1.e079d8p-3f, -0x1.1a7178p-3f, -0x1.74f0e2p-5f,  0x1.45f5fep-5f,
     0x1.ec90c6p-4f,  0x1.a0cfcp-3f,   0x1.2b05a8p-2f,  0x1.8ea7f2p-2f,
     0x1.00da06p-1f,  0x1.491b5ep-1f,  0x1.b913b2p-1f,
};
/* clang-format on */

const float *lb_nf4_edges(lb_compat compat)
{
    return compat == LB_COMPAT_BNB_CUDA  ? tree
           : compat == LB_COMPAT_BNB_CPU ? bucketize
                                         : nearest;
}

/* ---- encode -------------------------------------------------------------- */

/* The seed adds it, so that no block divides by zero. */
static float smallest_normal(lb_dtype d)
{
    return d == LB_F16 ? 0x1p-14f : FLT_MIN;
}

lb_quotient lb_nf4_norms(lb_compat compat, lb_dtype d, bool whole, int64_t n,
                         float *absmax, float *by)
{
    /* bitsandbytes' least divisor; subnormal, and 1 over it is finite. */
    const float least = 1e-38f, tiny = smallest_normal(d);
    switch (compat) {
    case LB_COMPAT_EFORMER:
        for (int64_t i = 0; i < n; i++)
            by[i] = absmax[i] + tiny;
        lb_round_run(d, n, by);
        return d == LB_F16    ? LB_QUOTIENT_F16
               : d == LB_BF16 ? LB_QUOTIENT_BF16
                              : LB_QUOTIENT;
    case LB_COMPAT_BNB_CUDA: /* 0 * (1/0) is NaN, which has code 0 */
        for (int64_t i = 0; i < n; i++)
            by[i] = 1.0f / absmax[i];
        return LB_PRODUCT;
    case LB_COMPAT_BNB_CPU: /* its clamp to -1 .. 1 would change no code */
        for (int64_t i = 0; i < n; i++) {
            by[i] = absmax[i] > least ? absmax[i] : least;
            if (!whole)
                absmax[i] = by[i];
            else
                by[i] = 1.0f / by[i];
        }
        return whole ? LB_PRODUCT : LB_QUOTIENT;
    case LB_COMPAT_NATIVE:
    default:
        for (int64_t i = 0; i < n; i++)
            by[i] = absmax[i] > 0 ? absmax[i] : 1.0f;
        return LB_QUOTIENT;
    }
}

/* n is even. Fifteen compares for each instead of a search: no branch depends
 * on data, and lanes are independent. */
static void pack(const float *edge, const float *v, int64_t n, uint8_t *byte)
{
    for (int64_t i = 0; i < n; i += 2) {
        int high = 0, low = 0;
        for (int j = 0; j < EDGES; j++) {
            high += v[i] > edge[j];
            low += v[i + 1] > edge[j];
        }
        byte[i / 2] = (uint8_t)(high << 4 | low);
    }
}

static void encode_block(const float *edge, lb_quotient how, const float *x,
                         int64_t n, float by, uint8_t *byte)
{
    enum { PIECE = 256 };
    float v[PIECE];
    const float zero = 0;
    for (int64_t i = 0; i < n; i += PIECE) {
        const int64_t k = n - i < PIECE ? n - i : PIECE;
        lb_quotients_ref(how, x + i, k, by, v);
        /* The odd place gets what a zero of this block would. */
        if (k % 2) lb_quotients_ref(how, &zero, 1, by, v + k);
        pack(edge, v, k + k % 2, byte + i / 2);
    }
}

void lb_nf4_encode_ref(const float *edge, lb_quotient how, const float *x,
                       int64_t n, int64_t block, const float *by, uint8_t *byte)
{
    for (int64_t i = 0; i < n; i += block)
        encode_block(edge, how, x + i, n - i < block ? n - i : block, *by++,
                     byte + i / 2);
}

lb_nf4_encoder *lb_nf4_encoder_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX512) return lb_nf4_encode_avx512;
    if (cpu->level >= LB_LEVEL_AVX2) return lb_nf4_encode_avx2;
#elif defined(__aarch64__)
    if (cpu->level == LB_LEVEL_NEON) return lb_nf4_encode_neon;
#endif
    (void)cpu;
    return lb_nf4_encode_ref;
}
