/* int_dot_avx512.c - int_dot.h with vpmaddubsw of 64 bytes; see int_dot_avx2.c.
 */
#include "kernels/int_dot.h"

#if defined(__x86_64__)
#define DOT_FN LB_TARGET("avx512f,avx512bw,avx512vl,avx512dq") LB_INLINE
#include "kernels/x86/int_dot_avx512.h"

typedef struct {
    __m512i size;
    __mmask64 negative;
} dot_codes;

DOT_FN dot_codes dot_take(const int8_t *code)
{
    const __m512i w = _mm512_loadu_si512(code);
    return (dot_codes){_mm512_abs_epi8(w), _mm512_movepi8_mask(w)};
}

DOT_FN dot_ints dot_products(dot_codes w, const lb_int_digit *x, int c)
{
    const __m512i v = _mm512_loadu_si512(x->code + c * LB_INT_CHUNK);
    const __m512i with_sign =
        _mm512_mask_sub_epi8(v, w.negative, _mm512_setzero_si512(), v);
    return _mm512_madd_epi16(_mm512_maddubs_epi16(w.size, with_sign),
                             _mm512_set1_epi16(1));
}

#define DOT_ROWS  4
#define DOT_TABLE lb_int_dot_avx512
#define DOT_NAME  "dot of integers avx512"
#include "kernels/int_dot_loops.h"
#endif
