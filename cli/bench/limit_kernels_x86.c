/* limit_kernels_x86.c - kernels for AVX2, AVX-512 and VNNI.
 *
 * There are as many accumulators as latency times throughput requires. KEEP
 * makes a value opaque to the compiler without an instruction, so that products
 * of equal operands are not computed only once. ADD avoids a register copy
 * where compilers would copy an accumulator before adding to it.
 */
#include "limit_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#define TARGET(isa) __attribute__((target(isa)))
#define KEEP(v)     __asm__ volatile("" : "+x"(v))
#define KEEP_512(v) __asm__ volatile("" : "+v"(v))
#define ADD(how, sum, v)                                                       \
    __asm__ volatile(how " %1, %0, %0" : "+x"(sum) : "x"(v))

/* Loops over accumulators must be unrolled, or these do not stay in registers.
 */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

enum { SUMS_FMA = 12, SUMS_DOT = 6, SUMS_512 = 16 };

/* ---- AVX2 --------------------------------------------------------------- */

TARGET("avx2,fma") static void fma_avx2(int64_t rounds)
{
    const __m256 x = _mm256_set1_ps(0.999F), y = _mm256_set1_ps(1e-4F);
    __m256 c[SUMS_FMA];
    UNROLL for (int i = 0; i < SUMS_FMA; i++) c[i] = y;
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL for (int i = 0; i < SUMS_FMA; i++)
        {
            c[i] = _mm256_fmadd_ps(x, y, c[i]);
            KEEP(c[i]);
        }
    }
}

TARGET("avx2") static void dot16_avx2(int64_t rounds)
{
    __m256i x = _mm256_set1_epi16(3), y = _mm256_set1_epi16(5), c[SUMS_DOT];
    UNROLL for (int i = 0; i < SUMS_DOT; i++) c[i] = x;
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL for (int i = 0; i < SUMS_DOT; i++)
        {
            KEEP(x);
            const __m256i products = _mm256_madd_epi16(x, y);
            ADD("vpaddd", c[i], products);
        }
    }
}

TARGET("avx2") static void dot8_avx2(int64_t rounds)
{
    __m256i x = _mm256_set1_epi8(3), y = _mm256_set1_epi8(5), c[SUMS_DOT];
    UNROLL for (int i = 0; i < SUMS_DOT; i++) c[i] = x;
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL for (int i = 0; i < SUMS_DOT; i++)
        {
            KEEP(x);
            const __m256i products = _mm256_maddubs_epi16(x, y);
            ADD("vpaddw", c[i], products);
        }
    }
}

TARGET("avx2") static void lookup_avx2(int64_t rounds)
{
    __m256i table = _mm256_set1_epi8(3), index = _mm256_set1_epi8(5);
    const __m256i sign = _mm256_set1_epi8(1);
    __m256i c[SUMS_DOT];
    UNROLL for (int i = 0; i < SUMS_DOT; i++) c[i] = table;
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL for (int i = 0; i < SUMS_DOT; i++)
        {
            KEEP(index);
            const __m256i found = _mm256_shuffle_epi8(table, index);
            const __m256i signed_ones = _mm256_maddubs_epi16(found, sign);
            ADD("vpaddw", c[i], signed_ones);
        }
    }
}

/* `streams` is a constant after inlining. */
TARGET("avx2")
static inline __attribute__((always_inline)) void
walk_avx2(const char *p, size_t bytes, const int streams, size_t apart)
{
    const size_t step = (size_t)streams * apart;
    __m256i seen[8];
    UNROLL for (int s = 0; s < streams; s++) seen[s] = _mm256_setzero_si256();
    for (const char *const end = p + bytes; p < end; p += step) {
        for (size_t at = 0; at < apart; at += 64) {
            UNROLL for (int s = 0; s < streams; s++)
            {
                const __m256i *v = (const void *)(p + (size_t)s * apart + at);
                const __m256i both = _mm256_or_si256(_mm256_load_si256(v),
                                                     _mm256_load_si256(v + 1));
                seen[s] = _mm256_or_si256(seen[s], both);
            }
        }
    }
    UNROLL for (int s = 0; s < streams; s++) KEEP(seen[s]);
}

TARGET("avx2")
static void read_avx2(const void *from, size_t bytes, limit_walk walk)
{
    if (walk.streams == 8)
        walk_avx2(from, bytes, 8, walk.apart);
    else if (walk.streams == 4)
        walk_avx2(from, bytes, 4, walk.apart);
    else
        walk_avx2(from, bytes, 1, bytes);
}

/* ---- AVX-512 ------------------------------------------------------------ */

#define AVX512 "avx512f,avx512bw,avx512vl,avx512dq"

TARGET(AVX512) static void fma_avx512(int64_t rounds)
{
    const __m512 x = _mm512_set1_ps(0.999F), y = _mm512_set1_ps(1e-4F);
    __m512 c[SUMS_512];
    UNROLL for (int i = 0; i < SUMS_512; i++) c[i] = y;
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL for (int i = 0; i < SUMS_512; i++)
        {
            c[i] = _mm512_fmadd_ps(x, y, c[i]);
            KEEP_512(c[i]);
        }
    }
}

TARGET(AVX512) static void dot16_avx512(int64_t rounds)
{
    __m512i x = _mm512_set1_epi16(3), y = _mm512_set1_epi16(5), c[SUMS_DOT];
    UNROLL for (int i = 0; i < SUMS_DOT; i++) c[i] = x;
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL for (int i = 0; i < SUMS_DOT; i++)
        {
            KEEP_512(x);
            c[i] = _mm512_add_epi32(c[i], _mm512_madd_epi16(x, y));
            KEEP_512(c[i]);
        }
    }
}

TARGET(AVX512) static void dot8_avx512(int64_t rounds)
{
    __m512i x = _mm512_set1_epi8(3), y = _mm512_set1_epi8(5), c[SUMS_DOT];
    UNROLL for (int i = 0; i < SUMS_DOT; i++) c[i] = x;
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL for (int i = 0; i < SUMS_DOT; i++)
        {
            KEEP_512(x);
            c[i] = _mm512_add_epi16(c[i], _mm512_maddubs_epi16(x, y));
            KEEP_512(c[i]);
        }
    }
}

TARGET(AVX512 ",avx512vnni") static void dot16_vnni(int64_t rounds)
{
    const __m512i x = _mm512_set1_epi16(3), y = _mm512_set1_epi16(5);
    __m512i c[SUMS_512];
    UNROLL for (int i = 0; i < SUMS_512; i++) c[i] = x;
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL for (int i = 0; i < SUMS_512; i++)
        {
            c[i] = _mm512_dpwssd_epi32(c[i], x, y);
            KEEP_512(c[i]);
        }
    }
}

TARGET(AVX512 ",avx512vnni") static void dot8_vnni(int64_t rounds)
{
    const __m512i x = _mm512_set1_epi8(3), y = _mm512_set1_epi8(5);
    __m512i c[SUMS_512];
    UNROLL for (int i = 0; i < SUMS_512; i++) c[i] = x;
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL for (int i = 0; i < SUMS_512; i++)
        {
            c[i] = _mm512_dpbusd_epi32(c[i], x, y);
            KEEP_512(c[i]);
        }
    }
}

/* ---- every x86-64 ------------------------------------------------------- */

/* Not zeros: some memory writes them twice as fast. */
static void fill_past_caches(void *to, size_t bytes)
{
    const __m128i numbers = _mm_castps_si128(_mm_setr_ps(0.1f, -0.7f, 3, -5));
    __m128i *const p = to;
    for (size_t i = 0; i < bytes / sizeof *p; i++)
        _mm_stream_si128(p + i, numbers);
    _mm_sfence();
}

void limit_kernels_x86(const char *isa, limit_kernels *k)
{
    const bool vnni = !strcmp(isa, "avx512vnni") || !strcmp(isa, "amx");
    const bool avx512 = vnni || !strcmp(isa, "avx512");
    const bool avx2 = avx512 || !strcmp(isa, "avx2");
    k->fill = fill_past_caches;
    if (avx2) {
        k->fma = (limit_loop){fma_avx2, SUMS_FMA * 8 * 2.0};
        k->dot16 = (limit_loop){dot16_avx2, SUMS_DOT * 16 * 2.0};
        k->dot8 = (limit_loop){dot8_avx2, SUMS_DOT * 32 * 2.0};
        k->lookup = (limit_loop){lookup_avx2, SUMS_DOT * 32.0};
        k->read = read_avx2;
    }
    if (avx512) {
        k->fma = (limit_loop){fma_avx512, SUMS_512 * 16 * 2.0};
        k->dot16 = (limit_loop){dot16_avx512, SUMS_DOT * 32 * 2.0};
        k->dot8 = (limit_loop){dot8_avx512, SUMS_DOT * 64 * 2.0};
    }
    if (vnni) {
        k->dot16 = (limit_loop){dot16_vnni, SUMS_512 * 32 * 2.0};
        k->dot8 = (limit_loop){dot8_vnni, SUMS_512 * 64 * 2.0};
    }
}

#endif
