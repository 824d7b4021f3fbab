/* intrin.h - the intrinsics of x86, or an emulation of them.
 *
 * Kernels are compiled for their level by LB_TARGET on each function, never by
 * flags for a file. With LB_SIMDE defined they are compiled against SIMDe
 * instead, so that a level runs, slowly, on a machine that lacks it: that is
 * how tests reach AVX-512 everywhere.
 */
#ifndef LB_INTRIN_H
#define LB_INTRIN_H

#include <stdint.h>

#define LB_INLINE static inline __attribute__((always_inline))

/* Asks for the line of p[n], which may lie past the end of the array: such an
 * address is never a pointer to C. */
#define LB_FETCH(p, n)                                                         \
    __builtin_prefetch(                                                        \
        (const void *)((uintptr_t)(p) + (uintptr_t)(n) * sizeof *(p)), 0, 3)

/* The same, to L2. */
#define LB_FETCH_L2(p, n)                                                      \
    __builtin_prefetch(                                                        \
        (const void *)((uintptr_t)(p) + (uintptr_t)(n) * sizeof *(p)), 0, 2)

/* Code for each number of rows takes minutes to compile with sanitizers or
 * emulated, and speed is nothing there: then the number is known when it runs,
 * which gives the same sums. */
#if defined(__has_feature)
#define LB_FEATURE(x) __has_feature(x)
#else
#define LB_FEATURE(x) 0
#endif
#if defined(LB_SIMDE) || defined(__SANITIZE_ADDRESS__) ||                      \
    defined(__SANITIZE_THREAD__) || LB_FEATURE(address_sanitizer) ||           \
    LB_FEATURE(thread_sanitizer)
#define LB_OF_EACH 0
#else
#define LB_OF_EACH 1
#endif

/* m(n, ...) for each number of rows n up to 4, 6, 8 or 12, which gives each a
 * function of its own, name_n: all of them in one take a compiler twice as
 * long. Or once, for `rows` as it comes. LB_TABLE of them has the one for so
 * many rows at LB_NTH. */
#if LB_OF_EACH
#define LB_UP_TO_4(m, ...)                                                     \
    m(1, __VA_ARGS__) m(2, __VA_ARGS__) m(3, __VA_ARGS__) m(4, __VA_ARGS__)
#define LB_UP_TO_6(m, ...)                                                     \
    LB_UP_TO_4(m, __VA_ARGS__) m(5, __VA_ARGS__) m(6, __VA_ARGS__)
#define LB_UP_TO_8(m, ...)                                                     \
    LB_UP_TO_6(m, __VA_ARGS__) m(7, __VA_ARGS__) m(8, __VA_ARGS__)
#define LB_UP_TO_12(m, ...)                                                    \
    LB_UP_TO_8(m, __VA_ARGS__)                                                 \
    m(9, __VA_ARGS__) m(10, __VA_ARGS__) m(11, __VA_ARGS__) m(12, __VA_ARGS__)
#define LB_NTH(rows) ((rows)-1)
#else
#define LB_UP_TO_4(m, ...)  m(rows, __VA_ARGS__)
#define LB_UP_TO_6(m, ...)  m(rows, __VA_ARGS__)
#define LB_UP_TO_8(m, ...)  m(rows, __VA_ARGS__)
#define LB_UP_TO_12(m, ...) m(rows, __VA_ARGS__)
#define LB_NTH(rows)        0
#endif
#define LB_ENTRY(n, name) name##_##n,
#define LB_TABLE(up_to, name)                                                  \
    {                                                                          \
        up_to(LB_ENTRY, name)                                                  \
    }

/* Loops over accumulators must vanish, or these do not stay in registers. */
#if !LB_OF_EACH
#define LB_UNROLL
#elif defined(__clang__)
#define LB_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LB_UNROLL _Pragma("GCC unroll 16")
#endif

/* An integer in a register whose bytes have names, its value unknown from here
 * on. */
#if defined(__x86_64__)
#define LB_IN_BYTES(x) __asm__("" : "+Q"(x))
#else
#define LB_IN_BYTES(x) (void)(x)
#endif

/* Fused operations round once, and NaNs of f32 keep in f16 what fits; SIMDe's
 * only where the compiler may use the instructions. */
#if defined(LB_SIMDE) && !(defined(__FMA__) && defined(__F16C__))
enum { LB_EXACT = 0 };
#else
enum { LB_EXACT = 1 };
#endif

#if !defined(LB_SIMDE)

#include <immintrin.h>
#define LB_TARGET(isa) __attribute__((target(isa)))
/* Nothing, but the value is in a register and was not loaded again. */
#define LB_KEEP(v)         __asm__("" : "+x"(v))
#define LB_KEEP_512(v)     __asm__("" : "+v"(v))
#define LB_KEEP_POINTER(p) __asm__("" : "+r"(p))
/* sum += t, of 16 or 32 bits, and sum += x * w, of f32: compilers copy the sum
 * before they add to it. */
#define LB_ADD_16(sum, t) __asm__("vpaddw %1, %0, %0" : "+x"(sum) : "x"(t))
#define LB_ADD_32(sum, t) __asm__("vpaddd %1, %0, %0" : "+x"(sum) : "x"(t))
#define LB_ADD_PRODUCT(sum, x, w)                                              \
    __asm__("vfmadd231ps %1, %2, %0" : "+x"(sum) : "x"(x), "x"(w))

#else

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>
#define LB_TARGET(isa)
#define LB_KEEP(v)                ((void)0)
#define LB_KEEP_512(v)            ((void)0)
#define LB_KEEP_POINTER(p)        ((void)0)
#define LB_ADD_16(sum, t)         ((sum) = _mm256_add_epi16(sum, t))
#define LB_ADD_32(sum, t)         ((sum) = _mm256_add_epi32(sum, t))
#define LB_ADD_PRODUCT(sum, x, w) ((sum) = _mm256_fmadd_ps(x, w, sum))

/* What SIMDe 0.7.4 lacks, or does by reading also what the mask leaves out. */
#define __mmask16                 simde__mmask16

LB_INLINE __m256 lb_maskload_ps(const float *p, __m256i mask)
{
    float x[8];
    int32_t on[8];
    simde_mm256_storeu_si256((simde__m256i *)(void *)on, mask);
    for (int i = 0; i < 8; i++)
        x[i] = on[i] < 0 ? p[i] : 0;
    return _mm256_loadu_ps(x);
}

LB_INLINE __m512 lb_maskz_loadu_ps(__mmask16 mask, const float *p)
{
    float x[16];
    for (int i = 0; i < 16; i++)
        x[i] = mask >> i & 1 ? p[i] : 0;
    return _mm512_loadu_ps(x);
}

LB_INLINE void lb_mask_storeu_ps(float *p, __mmask16 mask, __m512 v)
{
    float x[16];
    _mm512_storeu_ps(x, v);
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1) p[i] = x[i];
}

#undef _mm256_maskload_ps
#undef _mm512_maskz_loadu_ps
#undef _mm512_mask_storeu_ps
#define _mm256_maskload_ps    lb_maskload_ps
#define _mm512_maskz_loadu_ps lb_maskz_loadu_ps
#define _mm512_mask_storeu_ps lb_mask_storeu_ps

#include "kernels/x86/intrin_simde.h"

#endif
#endif
