/* pack_f32_loops.h - the loops of pack_f32.h, in vectors of LANES rows. Each
 * level includes it with
 *
 *   PACK_FN     how its functions are declared
 *   PACK_TABLE  the lb_pack_f32 to define
 *
 * Every level does the same operations, so all have the same bits.
 */
#include <math.h>
#include <string.h>

#include "kernels/pack_f32.h"

enum { LANES = 8 };

/* Vectors are only local variables: whether registers are as wide is up to the
 * level. */
typedef float pack_f __attribute__((vector_size(4 * LANES)));
typedef int32_t pack_i __attribute__((vector_size(4 * LANES)));

/* What numbers of each row are multiplied by: `lift`, which is 1 unless they
 * are tiny, then `factor`. Wholes are masked by `keep`. */
typedef struct {
    float lift[LANES], factor[LANES];
    int32_t keep[LANES];
} pack_rows;

/* Added to a number below 2^22, rounds it to an integer, whose low bits are
 * then those of the sum. */
#define PACK_MAGIC 0x1.8p23f

#define PACK_MAX(most, bits)                                                   \
    do {                                                                       \
        const pack_i more = (bits) > (most);                                   \
        (most) = ((bits)&more) | ((most) & ~more);                             \
    } while (0)
/* Magnitudes are ordered as their bits are. */
#define PACK_LARGER(most, k)                                                   \
    do {                                                                       \
        pack_i bits;                                                           \
        memcpy(&bits, x + (k)*step, sizeof bits);                              \
        bits &= 0x7fffffff;                                                    \
        PACK_MAX(most, bits);                                                  \
    } while (0)

PACK_FN void pack_begin(const float *x, int64_t step, int64_t n, float top,
                        pack_rows *to, float *scale)
{
    pack_i a = {0}, b = {0}, c = {0}, d = {0}; /* four: compares take time */
    int32_t all[LANES];
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        PACK_LARGER(a, k);
        PACK_LARGER(b, k + 1);
        PACK_LARGER(c, k + 2);
        PACK_LARGER(d, k + 3);
    }
    for (; k < n; k++)
        PACK_LARGER(a, k);
    PACK_MAX(a, b);
    PACK_MAX(c, d);
    PACK_MAX(a, c);
    memcpy(all, &a, sizeof all);
    for (int r = 0; r < LANES; r++) {
        float largest;
        memcpy(&largest, &all[r], sizeof largest);
        const bool finite = all[r] < 0x7f800000;
        to->lift[r] = largest < 0x1p-100f ? 0x1p100f : 1;
        to->factor[r] =
            largest > 0 && finite ? top / (largest * to->lift[r]) : 0;
        to->keep[r] = finite ? -1 : 0;
        scale[r] = finite ? largest / top : (float)NAN;
    }
}

/* Number k of all rows, whose low bits are the whole. */
#define PACK_WHOLE(whole, k)                                                   \
    do {                                                                       \
        pack_f it;                                                             \
        memcpy(&it, x + (k)*step, sizeof it);                                  \
        it = it * lift * factor + PACK_MAGIC;                                  \
        memcpy(&(whole), &it, sizeof it);                                      \
        (whole) &= keep;                                                       \
    } while (0)
#define PACK_LOAD(p)                                                           \
    pack_f lift, factor;                                                       \
    pack_i keep;                                                               \
    memcpy(&lift, (p)->lift, sizeof lift);                                     \
    memcpy(&factor, (p)->factor, sizeof factor);                               \
    memcpy(&keep, (p)->keep, sizeof keep)

PACK_FN void pack_quads(const pack_rows *p, const float *x, int64_t step,
                        int64_t n, int offset, uint8_t *to, int64_t apart)
{
    const int32_t flip = offset ? (int32_t)0x80808080 : 0;
    PACK_LOAD(p);
    int64_t k = 0;
    for (; k + 4 <= n; k += 4, to += apart) {
        pack_i a, b, c, d;
        PACK_WHOLE(a, k);
        PACK_WHOLE(b, k + 1);
        PACK_WHOLE(c, k + 2);
        PACK_WHOLE(d, k + 3);
        const pack_i quad =
            ((a & 0xff) | (b & 0xff) << 8 | (c & 0xff) << 16 | d << 24) ^ flip;
        memcpy(to, &quad, sizeof quad);
    }
    if (k == n) return;
    pack_i quad = {0};
    for (int i = 0; k + i < n; i++) {
        pack_i v;
        PACK_WHOLE(v, k + i);
        quad |= (v & 0xff) << 8 * i;
    }
    quad ^= flip;
    memcpy(to, &quad, sizeof quad);
}

PACK_FN void pack_pairs(const pack_rows *p, const float *x, int64_t step,
                        int64_t n, uint8_t *to, int64_t apart)
{
    PACK_LOAD(p);
    int64_t k = 0;
    for (; k + 2 <= n; k += 2, to += apart) {
        pack_i a, b;
        PACK_WHOLE(a, k);
        PACK_WHOLE(b, k + 1);
        const pack_i pair = (a & 0xffff) | b << 16;
        memcpy(to, &pair, sizeof pair);
    }
    if (k == n) return;
    pack_i last;
    PACK_WHOLE(last, k);
    last &= 0xffff;
    memcpy(to, &last, sizeof last);
}

PACK_FN void pack_bytes(const float *x, int64_t step, int64_t n, int offset,
                        uint8_t *to, int64_t apart, float *scale)
{
    for (int r = 0; r < LB_PACK_ROWS; r += LANES) {
        pack_rows p;
        pack_begin(x + r, step, n, LB_PACK_MOST_BYTE, &p, scale + r);
        pack_quads(&p, x + r, step, n, offset, to + 4 * r, apart);
    }
}

PACK_FN void pack_words(const float *x, int64_t step, int64_t n, uint8_t *to,
                        int64_t apart, float *scale)
{
    for (int r = 0; r < LB_PACK_ROWS; r += LANES) {
        pack_rows p;
        pack_begin(x + r, step, n, LB_PACK_MOST_WORD, &p, scale + r);
        pack_pairs(&p, x + r, step, n, to + 4 * r, apart);
    }
}

const lb_pack_f32 PACK_TABLE = {pack_bytes, pack_words};
