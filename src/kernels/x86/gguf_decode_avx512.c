/* gguf_decode_avx512.c - gguf_decode.h compiled for AVX-512. */
#include "kernels/gguf_decode.h"

#if defined(__x86_64__)
#include "kernels/x86/gguf_decode_x86.h"

#define LOOP_FN                                                                \
    LB_TARGET("avx512f,avx512bw,avx512vl,avx512dq,f16c") static inline
#define LOOP_TABLE   lb_gguf_decoders_avx512
#define LOOP_READERS lb_gguf_readers_avx512
#include "kernels/gguf_loops.h"
#endif
