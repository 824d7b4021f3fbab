/* int_dot_avx512vnni.c - int_dot.h with vpdpbusd: code + 128 is unsigned, and
 * sums begin with what that adds. */
#include "kernels/int_dot.h"

#if defined(__x86_64__)
#define DOT_FN                                                                 \
    LB_TARGET("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni") LB_INLINE
#include "kernels/x86/int_dot_avx512.h"

typedef __m512i dot_codes;

DOT_FN dot_codes dot_take(const int8_t *code)
{
    return _mm512_xor_si512(_mm512_loadu_si512(code), _mm512_set1_epi8(-128));
}

DOT_FN dot_ints dot_products(dot_codes w, const lb_int_digit *x, int c)
{
    return _mm512_dpbusd_epi32(_mm512_loadu_si512(x->start + c * LB_INT_LANES),
                               w,
                               _mm512_loadu_si512(x->code + c * LB_INT_CHUNK));
}

#define DOT_ROWS  4
#define DOT_TABLE lb_int_dot_vnni
#define DOT_NAME  "dot of integers avx512vnni"
#include "kernels/int_dot_loops.h"
#endif
