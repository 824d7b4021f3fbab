/* dotint_codes_avx2.h - 32 codes of a row as two vectors of 16 bits.
 *
 * Bytes unpack within halves of a register, so the first vector has numbers 0
 * to 7 and 16 to 23 of a step, the second the others; panels of x are made in
 * that order. Which form codes have is a constant wherever these are inlined.
 */
#ifndef LB_DOTINT_CODES_AVX2_H
#define LB_DOTINT_CODES_AVX2_H

#include <string.h>

#include "kernels/dotint.h"
#include "kernels/x86/intrin.h"

typedef enum {
    FORM_BYTES,
    FORM_FIELD,
    FORM_FIELDS_4,
    FORM_FIELDS_2,
    FORM_BITS,
    FORM_WORDS,
    FORM_FINE_BYTES,
    FORM_FINE_FIELD,
    FORM_FINE_FIELDS,
    FORM_FINE_WORDS
} form;

typedef struct {
    __m256i a, b;
} pair;

/* What stays the same for all rows. */
typedef struct {
    __m256i numbers;       /* FIELD: a table of bytes, .. */
    __m256i lower, higher; /* .. or, fine, of both bytes of levels */
    __m256i mask;          /* of a field */
    __m128i shift;         /* FIELD: to it */
    __m256i bit;           /* BITS: the one that is looked at, */
    __m256i even, odd;     /* and which bytes go where */
} tables;

LB_INLINE bool is_fine(form f)
{
    return f >= FORM_FINE_BYTES;
}

LB_INLINE bool is_words(form f)
{
    return f == FORM_WORDS || f == FORM_FINE_WORDS;
}

LB_INLINE form form_of(const lb_dotint_codes *w)
{
    switch (w->kind) {
    case LB_DOTINT_BYTES:
        return w->fine ? FORM_FINE_BYTES : FORM_BYTES;
    case LB_DOTINT_FIELD:
        return w->fine ? FORM_FINE_FIELD : FORM_FIELD;
    case LB_DOTINT_FIELDS:
        if (w->fine) return FORM_FINE_FIELDS;
        return w->bits == 4 ? FORM_FIELDS_4 : FORM_FIELDS_2;
    case LB_DOTINT_WORDS:
        return w->fine ? FORM_FINE_WORDS : FORM_WORDS;
    default:
        return FORM_BITS;
    }
}

LB_INLINE int fields_of(form f)
{
    if (f == FORM_FIELDS_2) return 4;
    return f == FORM_FIELDS_4 || f == FORM_FINE_FIELDS ? 2 : 1;
}

/* ---- tables -------------------------------------------------------------- */

LB_TARGET("avx2")
LB_INLINE __m256i both_halves(const void *sixteen)
{
    return _mm256_broadcastsi128_si256(
        _mm_loadu_si128((const __m128i *)sixteen));
}

LB_TARGET("avx2")
LB_INLINE void place_levels(const int16_t *level, tables *t)
{
    const __m128i *at = (const __m128i *)(const void *)level;
    const __m128i a = _mm_loadu_si128(at), b = _mm_loadu_si128(at + 1);
    const __m128i byte = _mm_set1_epi16(255);
    t->lower = _mm256_broadcastsi128_si256(
        _mm_packus_epi16(_mm_and_si128(a, byte), _mm_and_si128(b, byte)));
    t->higher = _mm256_broadcastsi128_si256(
        _mm_packs_epi16(_mm_srai_epi16(a, 8), _mm_srai_epi16(b, 8)));
}

/* Four bytes come as one over each number of 16 bits: 0 and 2, or 1 and 3. */
LB_TARGET("avx2")
LB_INLINE void place_bits(bool high_first, tables *t)
{
    const __m128i up = _mm_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128);
    const __m128i down = _mm_setr_epi16(128, 64, 32, 16, 8, 4, 2, 1);
    t->bit = _mm256_broadcastsi128_si256(high_first ? down : up);
    t->even = _mm256_set_m128i(_mm_set1_epi8(2), _mm_setzero_si128());
    t->odd = _mm256_set_m128i(_mm_set1_epi8(3), _mm_set1_epi8(1));
}

LB_TARGET("avx2")
LB_INLINE void place_fields(form f, const lb_dotint_codes *w, tables *t)
{
    const int n = fields_of(f);
    t->mask = _mm256_set1_epi8((char)(n > 1 ? (1 << 8 / n) - 1 : w->mask));
    t->shift = _mm_cvtsi32_si128(w->field);
}

LB_TARGET("avx2")
LB_INLINE tables tables_of(form f, const lb_dotint_codes *w)
{
    tables t;
    memset(&t, 0, sizeof t);
    if (f == FORM_BYTES || f == FORM_FINE_BYTES || is_words(f)) return t;
    if (f == FORM_BITS) {
        place_bits(w->high_first, &t);
        return t;
    }
    place_fields(f, w, &t);
    if (is_fine(f))
        place_levels(w->level, &t);
    else if (f == FORM_FIELD)
        t.numbers = both_halves(w->number);
    return t;
}

/* ---- codes --------------------------------------------------------------- */

LB_INLINE int64_t group_codes(form f)
{
    return (int64_t)LB_DOTINT_STEP * fields_of(f);
}

LB_INLINE int64_t group_bytes(form f)
{
    return f == FORM_BITS ? LB_DOTINT_STEP / 8 : LB_DOTINT_STEP;
}

LB_TARGET("avx2")
LB_INLINE __m256i load_group(form f, const uint8_t *codes)
{
    if (f != FORM_BITS)
        return _mm256_loadu_si256((const __m256i *)(const void *)codes);
    int32_t bits;
    memcpy(&bits, codes, sizeof bits);
    return _mm256_set1_epi32(bits);
}

/* Of the last group only what there is; x is zero past that. */
LB_TARGET("avx2")
LB_INLINE __m256i load_rest(form f, const uint8_t *codes, int64_t n)
{
    uint8_t some[LB_DOTINT_STEP] = {0};
    const int64_t per_byte = f == FORM_BITS ? 8 : fields_of(f);
    memcpy(some, codes, (size_t)((n + per_byte - 1) / per_byte));
    return load_group(f, some);
}

LB_TARGET("avx2")
LB_INLINE pair widen(__m256i v)
{
    const __m256i sign = _mm256_cmpgt_epi8(_mm256_setzero_si256(), v);
    return (pair){_mm256_unpacklo_epi8(v, sign), _mm256_unpackhi_epi8(v, sign)};
}

/* -1 where the bit is set. */
LB_TARGET("avx2")
LB_INLINE __m256i set_bits(__m256i v, const tables *t)
{
    return _mm256_cmpeq_epi16(_mm256_and_si256(v, t->bit), t->bit);
}

LB_TARGET("avx2")
LB_INLINE pair scale(__m256i lower, __m256i higher, int down, pair ratio)
{
    __m256i a = _mm256_unpacklo_epi8(lower, higher);
    __m256i b = _mm256_unpackhi_epi8(lower, higher);
    if (down) {
        a = _mm256_srai_epi16(a, down);
        b = _mm256_srai_epi16(b, down);
    }
    return (pair){_mm256_mulhrs_epi16(a, ratio.a),
                  _mm256_mulhrs_epi16(b, ratio.b)};
}

/* The field of a group that is lowest; *v is shifted to the next one. */
LB_TARGET("avx2")
LB_INLINE __m256i take_code(form f, const tables *t, __m256i *v)
{
    if (fields_of(f) == 1)
        return _mm256_and_si256(_mm256_srl_epi16(*v, t->shift), t->mask);
    const __m256i code = _mm256_and_si256(*v, t->mask);
    *v = _mm256_srli_epi16(*v, fields_of(f) == 2 ? 4 : 2);
    return code;
}

/* What is multiplied: the numbers, or of FIELDS the codes and of BITS minus
 * the codes. */
LB_TARGET("avx2")
LB_INLINE pair decode(form f, const tables *t, __m256i *v, pair ratio)
{
    const __m256i zero = _mm256_setzero_si256();
    if (f == FORM_BYTES) return widen(*v);
    if (f == FORM_BITS)
        return (pair){set_bits(_mm256_shuffle_epi8(*v, t->even), t),
                      set_bits(_mm256_shuffle_epi8(*v, t->odd), t)};
    /* A byte over a zero is the byte times 2^8. */
    if (f == FORM_FINE_BYTES)
        return scale(zero, *v, 8 - LB_DOTINT_NUMBER_BITS, ratio);
    const __m256i code = take_code(f, t, v);
    if (f == FORM_FIELD) return widen(_mm256_shuffle_epi8(t->numbers, code));
    if (!is_fine(f))
        return (pair){_mm256_unpacklo_epi8(code, zero),
                      _mm256_unpackhi_epi8(code, zero)};
    return scale(_mm256_shuffle_epi8(t->lower, code),
                 _mm256_shuffle_epi8(t->higher, code), 0, ratio);
}

/* Numbers are least + slope * code, and their sums a part with what was
 * multiplied and one with x alone. */
LB_INLINE bool is_line(form f)
{
    return f == FORM_FIELDS_4 || f == FORM_FIELDS_2 || f == FORM_BITS;
}

LB_INLINE int slope_of(form f, const lb_dotint_codes *w)
{
    return f == FORM_BITS ? -w->slope : w->slope;
}

/* ---- ratios -------------------------------------------------------------- */

/* One for a whole step, or one for each number in the order above. */
LB_TARGET("avx2")
LB_INLINE pair one_ratio(int16_t ratio)
{
    const __m256i r = _mm256_set1_epi16(ratio);
    return (pair){r, r};
}

LB_TARGET("avx2")
LB_INLINE pair ratio_each(const int16_t *ratio)
{
    const __m256i *at = (const __m256i *)(const void *)ratio;
    const __m256i a = _mm256_loadu_si256(at), b = _mm256_loadu_si256(at + 1);
    return (pair){_mm256_permute2x128_si256(a, b, 0x20),
                  _mm256_permute2x128_si256(a, b, 0x31)};
}

/* ---- a row --------------------------------------------------------------- */

/* Where it goes on. */
typedef struct {
    const uint8_t *codes;
    const int16_t *ratio;
    int64_t g, left; /* how many share a ratio, and are left of them */
    pair now;        /* that ratio */
} row;

LB_TARGET("avx2")
LB_INLINE row row_of(form f, const lb_dotint_codes *w, int64_t j)
{
    const int16_t *ratio = is_fine(f) ? w->ratio + j * w->ratio_step : NULL;
    return (row){.codes = w->codes + j * w->step,
                 .ratio = ratio,
                 .g = w->g,
                 .now = one_ratio(0)};
}

LB_TARGET("avx2")
LB_INLINE void next_ratio(row *w, int64_t codes)
{
    if (w->g == 1) {
        w->now = ratio_each(w->ratio);
        w->ratio += codes;
        return;
    }
    if (w->left == 0) {
        w->now = one_ratio(*w->ratio++);
        w->left = w->g;
    }
    w->left -= codes;
}

/* The next group, of which `depth` codes are there. */
LB_TARGET("avx2")
LB_INLINE __m256i next_group(form f, row *w, int64_t depth)
{
    const __m256i v = depth >= group_codes(f) ? load_group(f, w->codes)
                                              : load_rest(f, w->codes, depth);
    if (is_fine(f)) next_ratio(w, group_codes(f));
    w->codes += group_bytes(f);
    return v;
}

#endif
