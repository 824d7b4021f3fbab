/* gguf_decode_avx2.c - gguf_decode.h compiled for AVX2. */
#include "kernels/gguf_decode.h"

#if defined(__x86_64__)
#include "kernels/x86/gguf_decode_x86.h"

#define LOOP_FN      LB_TARGET("avx2,f16c") static inline
#define LOOP_TABLE   lb_gguf_decoders_avx2
#define LOOP_READERS lb_gguf_readers_avx2
#include "kernels/gguf_loops.h"
#endif
