/* dotint_pack.h - how panels of dotint.h are made with AVX2.
 *
 * Each number of lanes has its own: those of 16, and those of 32 (_32), where
 * both vectors of a step are one. The order is the same.
 */
#ifndef LB_DOTINT_PACK_H
#define LB_DOTINT_PACK_H

#include <stdbool.h>
#include <stdint.h>

float lb_largest_avx2(int64_t n, const float *x, float *lane);
void lb_unpack_avx2(int bits, bool high_first, const int8_t *number, int64_t n,
                    const uint8_t *codes, int8_t *to);
void lb_turn_lines_avx2(const int8_t *const *line, int64_t n, int8_t *to,
                        int64_t ld);
float lb_ratios_avx2(int64_t n, const float *scale, float top, int16_t *ratio);

void lb_round_row_avx2(int64_t n, const float *x, float factor, int16_t *to,
                       int64_t apart);
void lb_widen_avx2(int64_t n, const int8_t *from, const int8_t *number,
                   int field, int mask, int16_t *to, int64_t apart);
void lb_scale_avx2(int64_t n, const int8_t *from, const int16_t *level,
                   int field, int mask, const int16_t *ratio, int64_t g,
                   int16_t *to, int64_t apart);
void lb_widen_fields_avx2(int bits, bool high_first, const int8_t *number,
                          int64_t n, const uint8_t *codes, int16_t *to,
                          int64_t apart);
void lb_scale_fields_avx2(bool high_first, const int16_t *level,
                          const int16_t *ratio, int64_t g, int64_t n,
                          const uint8_t *codes, int16_t *to, int64_t apart);

void lb_round_row_avx2_32(int64_t n, const float *x, float factor, int16_t *to,
                          int64_t apart);
void lb_widen_avx2_32(int64_t n, const int8_t *from, const int8_t *number,
                      int field, int mask, int16_t *to, int64_t apart);
void lb_scale_avx2_32(int64_t n, const int8_t *from, const int16_t *level,
                      int field, int mask, const int16_t *ratio, int64_t g,
                      int16_t *to, int64_t apart);
void lb_widen_fields_avx2_32(int bits, bool high_first, const int8_t *number,
                             int64_t n, const uint8_t *codes, int16_t *to,
                             int64_t apart);
void lb_scale_fields_avx2_32(bool high_first, const int16_t *level,
                             const int16_t *ratio, int64_t g, int64_t n,
                             const uint8_t *codes, int16_t *to, int64_t apart);

#endif
