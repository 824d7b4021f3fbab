/* unpack.h - codes to elements of a float dtype, where they are to be.
 *
 * What decode.h does, but each number is rounded to the dtype while it is in a
 * register, and written past the caches if that is wanted: decoding hides
 * behind the stores, which it cannot where tiles are decoded and copied in
 * turns. Only for runs of whole vectors, and where it is faster than that:
 * each function says whether it has done it; if not, nothing is written.
 *
 * Spans come by pointer: a struct that was written word by word and is copied
 * whole has to wait until it is in the cache, and before it in the queue are
 * all the stores past the caches that are under way.
 */
#ifndef LB_UNPACK_H
#define LB_UNPACK_H

#include "kernels/decode.h"

typedef struct lb_unpack_kernel {
    const char *name; /* "unpack avx2" */
    /* As in decode.h; codes begin with a byte. */
    bool (*bytes)(lb_meaning meaning, const int8_t *code, int64_t n,
                  const lb_spans *s, lb_sink to);
    bool (*halves)(const float *level, const uint8_t *byte, int64_t n,
                   const lb_spans *s, lb_sink to);
    bool (*fields)(lb_fields f, const uint8_t *byte, int64_t n,
                   const lb_spans *s, lb_sink to);
    bool (*levels)(const float *level, const uint8_t *code, int64_t n,
                   const lb_spans *s, lb_sink to);
    bool (*bytes32)(const uint8_t *from, int64_t n, lb_sink to);
    bool (*halves32)(const int8_t *level, const uint8_t *from, int64_t n,
                     lb_sink to);
    bool (*pairs256)(const uint8_t *from, int64_t n, lb_sink to);
    bool (*trits256)(const uint8_t *from, int64_t n, lb_sink to);
} lb_unpack_kernel;

/* Never NULL: where nothing is faster, all decline. */
const lb_unpack_kernel *lb_unpack_kernel_for(const lb_cpu *cpu);

#if defined(__x86_64__)
extern const lb_unpack_kernel lb_unpack_kernel_avx2, lb_unpack_kernel_avx512;
extern const lb_unpack_kernel lb_unpack_kernel_vbmi; /* of AVX-512, too */
#endif

#endif
