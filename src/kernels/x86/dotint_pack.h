/* dotint_pack.h - how panels of dotint.h are made with AVX2.
 *
 * Each number of lanes has its own: those of 16, and those of 32 (_32), where
 * both vectors of a step are one. The order is the same.
 */
#ifndef LB_DOTINT_PACK_H
#define LB_DOTINT_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/dotint.h"
#include "kernels/x86/intrin.h"

/* From the first vector of a step to the second, and to the next step. */
typedef struct {
    int64_t second, next;
} lb_gaps;

LB_INLINE lb_gaps lb_gaps_16(int64_t apart)
{
    return (lb_gaps){apart, 2 * apart};
}

/* Both vectors of a step are one. */
LB_INLINE lb_gaps lb_gaps_32(int64_t apart)
{
    return (lb_gaps){16, apart};
}

/* The largest of eight, as numbers whose bits order as they do. */
LB_TARGET("avx2")
LB_INLINE __m128i lb_largest_of_4(__m128i m)
{
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    return _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
}

LB_TARGET("avx2")
LB_INLINE float lb_largest_of_8(__m256i m)
{
    return _mm_cvtss_f32(_mm_castsi128_ps(lb_largest_of_4(_mm_max_epi32(
        _mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1)))));
}

LB_TARGET("avx2")
LB_INLINE void lb_put_16(int16_t *to, __m256i v)
{
    _mm256_store_si256((__m256i *)(void *)to, v);
}

float lb_largest_avx2(int64_t n, const float *x, float *lane);
void lb_unpack_avx2(int bits, bool high_first, const int8_t *number, int64_t n,
                    const uint8_t *codes, int8_t *to);
void lb_turn_lines_avx2(const int8_t *const *line, int64_t n, int8_t *to,
                        int64_t ld);
void lb_ratios_avx2(int64_t rows, int64_t n, const float *scale, int64_t step,
                    float top, int16_t *ratio, int64_t apart, float *most);

int32_t lb_round_row_avx2(int64_t n, const float *x, float factor, int16_t *to,
                          int64_t apart);
int32_t lb_round_row_avx2_32(int64_t n, const float *x, float factor,
                             int16_t *to, int64_t apart);
void lb_pack_avx2(const lb_dotint_codes *w, int64_t j, int16_t *to,
                  int64_t apart);
void lb_pack_avx2_32(const lb_dotint_codes *w, int64_t j, int16_t *to,
                     int64_t apart);

#endif
