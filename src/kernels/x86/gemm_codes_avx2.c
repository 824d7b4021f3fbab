/* gemm_codes_avx2.c - panels of 16 columns out of codes, with AVX2.
 *
 * 16 bytes of each of 16 rows are turned by three rounds of unpacking. Rows
 * are loaded in such places that the halves of registers, which unpacking does
 * not leave, come out right in the end:
 *
 *   half 0   byte 2 i of rows 0..3, 8..11, then byte 2 i + 1 of them
 *   half 1   the same of rows 4..7, 12..15
 *
 * so quarter q of both halves is eight columns of one byte. These become
 * dwords and floats, or are looked up in the bytes of sixteen levels, which
 * then unpack in the same way.
 */
#include "kernels/gemm_codes.h"

#if defined(__x86_64__)
#include <string.h>

#include "kernels/x86/label_avx2.h"

#define AVX2 LB_TARGET("avx2,fma,f16c")

enum {
    NR = 16,
    LINE = 64,  /* bytes of a row that are read at a time .. */
    BYTES = 16, /* .. and that are turned */
    PAIRS = BYTES / 2,
    MOST = BYTES * 8
};

/* It may lie anywhere, so this is never a pointer that C looks at. */
LB_INLINE void fetch(uintptr_t at)
{
    __builtin_prefetch((const void *)at, 0, 2);
}

/* ---- bytes --------------------------------------------------------------- */

AVX2 LB_INLINE __m256i two_rows(const uint8_t *a, const uint8_t *b)
{
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)a)),
        _mm_loadu_si128((const __m128i *)b), 1);
}

/* Bytes of a and b in turn: of the first half of each, and of the second. */
AVX2 LB_INLINE void zip(__m256i a, __m256i b, __m256i *to)
{
    to[0] = _mm256_unpacklo_epi8(a, b);
    to[1] = _mm256_unpackhi_epi8(a, b);
}

/* t[i]: bytes 2 i and 2 i + 1, as above. */
AVX2 LB_INLINE void turn_bytes(const uint8_t (*row)[LINE], int at, __m256i *t)
{
    __m256i r[8], a[8], b[8];
    LB_UNROLL
    for (int i = 0; i < 4; i++) {
        r[i] = two_rows(row[i] + at, row[i + 4] + at);
        r[i + 4] = two_rows(row[i + 8] + at, row[i + 12] + at);
    }
    LB_UNROLL
    for (int i = 0; i < 4; i++)
        zip(r[i], r[i + 4], a + 2 * i);
    LB_UNROLL
    for (int i = 0; i < 2; i++) { /* rows 0 2 4 6 to b[0..3], others to 4..7 */
        zip(a[2 * i], a[2 * i + 4], b + 4 * i);
        zip(a[2 * i + 1], a[2 * i + 5], b + 4 * i + 2);
    }
    LB_UNROLL
    for (int i = 0; i < 4; i++)
        zip(b[i], b[i + 4], t + 2 * i);
}

/* ---- numbers ------------------------------------------------------------- */

/* What codes stand for; bits is a constant wherever this is inlined. */
typedef struct {
    __m256i plane[4]; /* 4 bits: the bytes of levels, from the lowest */
    __m256 level;     /* 2 and 1 bits: four, in both halves */
} tables;

AVX2 LB_INLINE tables tables_of(const int bits, const float *level)
{
    const __m256i none = _mm256_setzero_si256();
    tables t = {{none, none, none, none}, _mm256_setzero_ps()};
    if (bits == 4) {
        uint8_t plane[4][16];
        for (int i = 0; i < 16; i++) {
            uint32_t u;
            memcpy(&u, level + i, sizeof u);
            for (int b = 0; b < 4; b++)
                plane[b][i] = (uint8_t)(u >> 8 * b);
        }
        for (int b = 0; b < 4; b++)
            t.plane[b] = _mm256_broadcastsi128_si256(
                _mm_loadu_si128((const __m128i *)(const void *)plane[b]));
    } else if (bits == 2) {
        t.level = _mm256_broadcast_ps((const __m128 *)(const void *)level);
    } else if (bits == 1) {
        const float twice[4] = {level[0], level[1], level[0], level[1]};
        t.level = _mm256_broadcast_ps((const __m128 *)(const void *)twice);
    }
    return t;
}

/* Quarter q of both halves, a byte to a dword: on top of it, or lowest. */
AVX2 LB_INLINE __m256i on_top(__m256i v, int q)
{
    const int zeros = 0xffffff, first = q << 26, next = 1 << 24;
    const __m128i place =
        _mm_setr_epi32(first | zeros, (first + next) | zeros,
                       (first + 2 * next) | zeros, (first + 3 * next) | zeros);
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(place));
}

AVX2 LB_INLINE __m256i lowest(__m256i v, int q)
{
    const int zeros = ~0xff, first = 4 * q;
    const __m128i place =
        _mm_setr_epi32(first | zeros, (first + 1) | zeros, (first + 2) | zeros,
                       (first + 3) | zeros);
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(place));
}

/* Eight columns of a scale each. */
typedef struct {
    __m256 low, high;
    bool small; /* of bytes: they are 2^-24 of the scales, which is exact */
} factors;

/* Codes on top of dwords are 2^24 of themselves. */
AVX2 LB_INLINE void put_bytes(const lb_dtype to, const bool small, __m256i v,
                              factors s, float *dst)
{
    LB_UNROLL
    for (int q = 0; q < 4; q++) {
        const __m256i top = on_top(v, q);
        const __m256 w =
            _mm256_cvtepi32_ps(small ? top : _mm256_srai_epi32(top, 24));
        _mm256_storeu_ps(dst + 8 * q, lb_number(to, w, q % 2 ? s.high : s.low));
    }
}

/* 32 codes in bytes of their own; those of the second byte go `apart` further
 * on. */
AVX2 LB_INLINE void put_nibbles(const lb_dtype to, const tables *t,
                                __m256i code, factors s, float *dst, int apart)
{
    const __m256i a = _mm256_shuffle_epi8(t->plane[0], code);
    const __m256i b = _mm256_shuffle_epi8(t->plane[1], code);
    const __m256i c = _mm256_shuffle_epi8(t->plane[2], code);
    const __m256i d = _mm256_shuffle_epi8(t->plane[3], code);
    __m256i low[2], high[2];
    zip(a, b, low);
    zip(c, d, high);
    LB_UNROLL
    for (int i = 0; i < 2; i++) {
        const __m256 u =
            _mm256_castsi256_ps(_mm256_unpacklo_epi16(low[i], high[i]));
        const __m256 v =
            _mm256_castsi256_ps(_mm256_unpackhi_epi16(low[i], high[i]));
        _mm256_storeu_ps(dst + i * apart, lb_number(to, u, s.low));
        _mm256_storeu_ps(dst + i * apart + 8, lb_number(to, v, s.high));
    }
}

AVX2 LB_INLINE void put_fields(const int bits, const lb_dtype to,
                               bool high_first, __m256 level, __m256i v,
                               factors s, float *dst)
{
    const int fields = 8 / bits;
    LB_UNROLL
    for (int q = 0; q < 4; q++) {
        __m256i code = lowest(v, q);
        LB_UNROLL
        for (int f = 0; f < fields; f++) {
            const int kk = q / 2 * fields + (high_first ? fields - 1 - f : f);
            _mm256_storeu_ps(dst + kk * NR + q % 2 * 8,
                             lb_number(to, _mm256_permutevar_ps(level, code),
                                       q % 2 ? s.high : s.low));
            code = _mm256_srli_epi32(code, bits);
        }
    }
}

AVX2 LB_INLINE void put_pair(const int bits, const lb_dtype to, bool high_first,
                             const tables *t, __m256i v, factors s, float *dst)
{
    if (bits == 8) {
        if (s.small)
            put_bytes(to, true, v, s, dst);
        else
            put_bytes(to, false, v, s, dst);
    } else if (bits == 4) {
        const __m256i mask = _mm256_set1_epi8(15);
        const __m256i low = _mm256_and_si256(v, mask);
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(v, 4), mask);
        put_nibbles(to, t, high_first ? high : low, s, dst, 2 * NR);
        put_nibbles(to, t, high_first ? low : high, s, dst + NR, 2 * NR);
    } else {
        put_fields(bits, to, high_first, t->level, v, s, dst);
    }
}

/* ---- panels -------------------------------------------------------------- */

typedef struct {
    const lb_gemm_rows *w;
    const uint8_t *row[NR];
    const float *scale[NR];
} places;

/* Rows past the end are the last one. */
LB_INLINE void find_places(const lb_gemm_rows *w, places *p)
{
    p->w = w;
    for (int64_t j = 0; j < NR; j++) {
        const int64_t i = j < w->n ? j : w->n - 1;
        p->row[j] = w->codes + i * w->step;
        p->scale[j] = w->scale + i * w->scale_step;
    }
}

AVX2 LB_INLINE factors factors_at(const int bits, const lb_dtype to,
                                  const places *p, int64_t block)
{
    float s[NR];
    for (int j = 0; j < NR; j++)
        s[j] = lb_label_scale(to, p->scale[j][block]);
    factors f = {_mm256_loadu_ps(s), _mm256_loadu_ps(s + 8), false};
    if (bits < 8) return f;
    const __m256 down = _mm256_set1_ps(0x1p-24f), up = _mm256_set1_ps(0x1p24f);
    const __m256 low = _mm256_mul_ps(f.low, down);
    const __m256 high = _mm256_mul_ps(f.high, down);
    const __m256 exact = _mm256_and_ps(
        _mm256_cmp_ps(_mm256_mul_ps(low, up), f.low, _CMP_EQ_OQ),
        _mm256_cmp_ps(_mm256_mul_ps(high, up), f.high, _CMP_EQ_OQ));
    if (_mm256_movemask_ps(exact) == 0xff) f = (factors){low, high, true};
    return f;
}

/* A line of each row. Rows often lie such that they fall on the same places of
 * L1, which has not room for 16: so each is read once. */
AVX2 LB_INLINE void read_lines(const places *p, int64_t at,
                               uint8_t (*line)[LINE])
{
    const uintptr_t ahead = p->w->ahead;
    LB_UNROLL
    for (int j = 0; j < NR; j++) {
        const __m256i *const from = (const __m256i *)(p->row[j] + at);
        __m256i *const to = (__m256i *)line[j];
        _mm256_storeu_si256(to, _mm256_loadu_si256(from));
        _mm256_storeu_si256(to + 1, _mm256_loadu_si256(from + 1));
        if (ahead) fetch((uintptr_t)from + ahead);
    }
}

/* The same, or what is left of each row, and zeros. */
AVX2 LB_INLINE void read_some(const places *p, int64_t at, int64_t left,
                              uint8_t (*line)[LINE])
{
    if (left >= LINE) {
        read_lines(p, at, line);
        return;
    }
    memset(line, 0, (size_t)NR * LINE);
    for (int j = 0; j < NR; j++)
        memcpy(line[j], p->row[j] + at, (size_t)left);
}

/* The scales from `at` on, where those change. */
AVX2 LB_INLINE void renew(const int bits, const lb_dtype to, const places *p,
                          int64_t at, factors *s, int64_t *until)
{
    if (at != *until) return;
    *s = factors_at(bits, to, p, at / p->w->g);
    *until += p->w->g;
}

/* Numbers [at, at + most) out of 16 bytes of each row. *s: the scales of what
 * comes next, up to *until. */
AVX2 LB_INLINE void decode_some(const int bits, const lb_dtype to,
                                const places *p, const tables *t,
                                const uint8_t (*line)[LINE], int byte,
                                int64_t at, int64_t most, factors *s,
                                int64_t *until, float *dst)
{
    const int each = 16 / bits;
    const bool high_first = p->w->high_first;
    __m256i v[PAIRS];
    turn_bytes(line, byte, v);
    for (int i = 0; i < PAIRS && i * each < most; i++) {
        renew(bits, to, p, at + i * each, s, until);
        put_pair(bits, to, high_first, t, v[i], *s, dst + i * each * NR);
    }
}

AVX2 LB_INLINE void decode_panel(const int bits, const lb_dtype to,
                                 const lb_gemm_rows *w, float *dst)
{
    const int64_t some = BYTES * 8 / bits, bytes = (w->depth * bits + 7) / 8;
    const tables t = tables_of(bits, w->level);
    places p;
    find_places(w, &p);
    factors s = factors_at(bits, to, &p, 0);
    int64_t until = w->g ? w->g : INT64_MAX;
    uint8_t room[NR][LINE];
    const uint8_t(*const line)[LINE] = (const uint8_t(*)[LINE])room;
    for (int64_t at = 0; at < w->depth; at += some) {
        const int64_t byte = at * bits / 8, left = w->depth - at;
        if (byte % LINE == 0) read_some(&p, byte, bytes - byte, room);
        if (left >= some) {
            decode_some(bits, to, &p, &t, line, (int)(byte % LINE), at, some,
                        &s, &until, dst + at * NR);
        } else {
            float last[MOST * NR];
            decode_some(bits, to, &p, &t, line, (int)(byte % LINE), at, left,
                        &s, &until, last);
            memcpy(dst + at * NR, last, (size_t)(left * NR) * sizeof *dst);
        }
    }
}

AVX2 LB_INLINE void decode_to(const lb_dtype to, const lb_gemm_rows *w,
                              float *dst)
{
    switch (w->bits) {
    case 8:
        decode_panel(8, to, w, dst);
        break;
    case 4:
        decode_panel(4, to, w, dst);
        break;
    case 2:
        decode_panel(2, to, w, dst);
        break;
    default:
        decode_panel(1, to, w, dst);
    }
}

AVX2 static void decode_f32(const lb_gemm_rows *w, float *dst)
{
    decode_to(LB_F32, w, dst);
}
AVX2 static void decode_bf16(const lb_gemm_rows *w, float *dst)
{
    decode_to(LB_BF16, w, dst);
}
AVX2 static void decode_f16(const lb_gemm_rows *w, float *dst)
{
    decode_to(LB_F16, w, dst);
}

static void decode(const lb_gemm_rows *w, float *dst)
{
    (w->rounds == LB_BF16  ? decode_bf16
     : w->rounds == LB_F16 ? decode_f16
                           : decode_f32)(w, dst);
}

const lb_gemm_codes lb_gemm_codes_avx2 = {.name = "dot f32 avx2 6x16",
                                          .nr = NR,
                                          .least_bytes = 25,
                                          .least = 17,
                                          .decode = decode};
#endif
