/* outerint_avx2.h - what the files of kernels/outerint.h for AVX2 share. */
#ifndef LB_OUTERINT_AVX2_H
#define LB_OUTERINT_AVX2_H

#include <string.h>

#include "kernels/outerint.h"
#include "kernels/x86/intrin.h"

#define AVX2        LB_TARGET("avx2,fma")
#define AVX2_INLINE AVX2 LB_INLINE

/* Pairs for each that is fed. */
enum { LB_OUTERINT_PER = 4 };

/* outertwos_avx2.c */
void lb_outerint_feed_twos_avx2(lb_outerint_feed *f);
void lb_outerint_panel_twos_avx2(int rows, int64_t pairs, const int16_t *x,
                                 const uint8_t *w, const lb_outerint_head *head,
                                 const float *ws, bool first, float *c,
                                 int64_t ldc, lb_outerint_feed *next);

AVX2_INLINE __m256i load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* Two numbers in all lanes. */
AVX2_INLINE __m256i spread(const int16_t *x)
{
    int32_t two;
    memcpy(&two, x, sizeof two);
    return _mm256_set1_epi32(two);
}

AVX2_INLINE void add_products(__m256i *sum, __m256i x, __m256i w)
{
    const __m256i t = _mm256_madd_epi16(x, w);
    LB_ADD_32(*sum, t);
}

/* Asks for two lines of a cache. */
LB_INLINE void ask_two(lb_outerint_feed *f)
{
    if (f->asks <= 0) return;
    LB_FETCH_L2((const uint8_t *)f->ask, f->asked);
    LB_FETCH_L2((const uint8_t *)f->ask, f->asked + LB_OUTERINT_ASK / 2);
    f->asked += LB_OUTERINT_ASK;
    if (f->asked < f->ask_bytes) return;
    f->asked = 0;
    f->ask += (uintptr_t)f->ask_step;
    f->asks--;
}

#endif
