/* pack_f32.h - numbers as panels of integers (dotbyte.h), rows side by side.
 *
 *   number = whole * scale, scale = largest magnitude / top
 *
 * For LB_PACK_ROWS rows at once, each of which has a scale of its own; x[k*step
 * + r] is number k of row r. Wholes are x * (top / largest) rounded to nearest
 * even. A row with infinities or NaNs has wholes 0 and the scale NaN, a row of
 * zeros the scale 0. Raw pointers only.
 */
#ifndef LB_PACK_F32_H
#define LB_PACK_F32_H

#include "lowbit_ext.h"

enum {
    LB_PACK_ROWS = 16,
    LB_PACK_MOST_BYTE = 127,
    LB_PACK_MOST_WORD = 1 << 13
};

typedef struct lb_pack_f32 {
    /* n numbers as whole quads of bytes, each plus `offset` (0 or 128), row r
     * of quad q at to + q*apart + 4*r. */
    void (*bytes)(const float *x, int64_t step, int64_t n, int offset,
                  uint8_t *to, int64_t apart, float *scale);
    /* The same as pairs of words. */
    void (*words)(const float *x, int64_t step, int64_t n, uint8_t *to,
                  int64_t apart, float *scale);
} lb_pack_f32;

const lb_pack_f32 *lb_pack_f32_for(const lb_cpu *cpu);

extern const lb_pack_f32 lb_pack_f32_ref;
#if defined(__x86_64__)
extern const lb_pack_f32 lb_pack_f32_avx2, lb_pack_f32_avx512;
#endif

#endif
