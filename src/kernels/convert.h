/* convert.h - runs of elements between memory and compute types.
 *
 * Every rounding in the library happens here. Raw pointers only.
 *   float to float      nearest even, once, also from f64 and from integers
 *   float to integer    toward zero, saturating, NaN to 0
 *   integer to integer  wraps
 *   to bool             != 0
 */
#ifndef LB_CONVERT_H
#define LB_CONVERT_H

#include "lowbit_ext.h"

/* n elements of dtype at src, src + step, ... (step in elements) to a tile of
 * lb_ctype_of(dtype); exact. */
void lb_load_run(lb_dtype dtype, const void *src, int64_t step, int64_t n,
                 void *dst);
/* n elements of a tile to consecutive elements of dtype. */
void lb_store_run(lb_ctype ctype, const void *tile, lb_dtype dtype, int64_t n,
                  void *dst);
/* A tile of one compute type to another. */
void lb_convert_run(lb_ctype from, const void *tile, lb_ctype to, int64_t n,
                    void *out);
/* Rounds a tile of dtype's ctype to dtype's values, in place: what remains
 * after storing and loading it. */
void lb_round_run(lb_dtype dtype, int64_t n, void *dst);

/* The same bits for those who know what they run on: load, store, round. */
typedef struct lb_convert_kernel {
    const char *name; /* "convert avx2" */
    void (*load)(lb_dtype dtype, const void *src, int64_t step, int64_t n,
                 void *dst);
    void (*store)(lb_ctype ctype, const void *tile, lb_dtype dtype, int64_t n,
                  void *dst);
    void (*round)(lb_dtype dtype, int64_t n, void *dst);
} lb_convert_kernel;

/* The strongest kernel of a level. */
const lb_convert_kernel *lb_convert_kernel_for(const lb_cpu *cpu);

extern const lb_convert_kernel lb_convert_ref;
#if defined(__x86_64__)
extern const lb_convert_kernel lb_convert_avx2, lb_convert_avx512;
#elif defined(__aarch64__)
extern const lb_convert_kernel lb_convert_neon;
#endif

/* The dtype whose elements are those of a tile. */
lb_dtype lb_widest_of(lb_ctype ctype);

uint16_t lb_f16_from_f32(float f);
float lb_f32_from_f16(uint16_t h);
uint16_t lb_bf16_from_f32(float f);
float lb_f32_from_bf16(uint16_t b);

#endif
