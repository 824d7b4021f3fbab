/* gemvq_rows_neon.c - a vector times lines of codes: f32, NEON.
 *
 *   8 bits       a lookup leaves one byte of each lane, at its top, zeros
 *                below: 2^24 times the code
 *   4 or 2 bits  lookups of the bytes of 16 levels, zipped to f32; of two
 *                bytes, if all levels fit in 16 bits, else of four
 *   1 bit        a test of one bit of each lane chooses between two levels
 *
 * A line at a time, for a few groups: lookups take most of the time, and x
 * comes from L1.
 */
#include "kernels/gemvq.h"

#if defined(__aarch64__)
#include "kernels/arm/codes_neon.h"
#include "kernels/arm/gemvq_neon.h"

enum { R = LB_GEMVQ_ROWS, BYTES = 32 };

/* The products of groups [g, end) of line i. */
typedef float32x4_t part_fn(const lb_gemvq_rows *r, int i, int64_t g,
                            int64_t end);

/* Lines take turns every few groups, so that x stays near and no lane adds up
 * too many products. */
static void walk(const lb_gemvq_rows *r, part_fn *part, float *y)
{
    enum { PER = 8 };
    float32x4_t a[R];
    for (int i = 0; i < R; i++)
        a[i] = vdupq_n_f32(0);
    for (int64_t g = 0; g < r->groups; g += PER) {
        const int64_t end = r->groups - g < PER ? r->groups : g + PER;
        for (int i = 0; i < R; i++)
            a[i] = vaddq_f32(a[i], part(r, i, g, end));
    }
    for (int i = 0; i < R; i++)
        y[i] = vaddvq_f32(a[i]);
}

LB_INLINE float32x4_t sum4(const float32x4_t *t)
{
    return vaddq_f32(vaddq_f32(t[0], t[1]), vaddq_f32(t[2], t[3]));
}

/* ---- 8 bits ------------------------------------------------------------- */

/* Where byte b of each lane is taken from; what is past the table is 0. */
LB_INLINE uint8x16_t top_byte(int b)
{
    return vreinterpretq_u8_u32(
        vaddq_u32(vdupq_n_u32(0xffffff | (uint32_t)b << 24),
                  (uint32x4_t){0, 4u << 24, 8u << 24, 12u << 24}));
}

static float32x4_t part8(const lb_gemvq_rows *r, int i, int64_t g, int64_t end)
{
    const uint8_t *codes = r->codes[i] + BYTES * g;
    const float *x = (const float *)r->x + BYTES * g;
    uint8x16_t from[4];
    float32x4_t t[4];
    LB_UNROLL
    for (int b = 0; b < 4; b++) {
        from[b] = top_byte(b);
        t[b] = vdupq_n_f32(0);
    }
    for (int64_t n = (end - g) * 2; n > 0; n--, codes += 16, x += 16) {
        const uint8x16_t v = vld1q_u8(codes);
        LB_UNROLL
        for (int b = 0; b < 4; b++) {
            const int32x4_t w = vreinterpretq_s32_u8(vqtbl1q_u8(v, from[b]));
            t[b] = vfmaq_f32(t[b], vcvtq_f32_s32(w), vld1q_f32(x + 4 * b));
        }
    }
    return sum4(t);
}

/* ---- 4 or 2 bits -------------------------------------------------------- */

/* The products of the codes of 16 bytes; vector v is that of bytes 4*v. */
LB_INLINE void codes16(const lb_planes *l, uint8x16_t v, int bits,
                       bool is_short, const float *x, float32x4_t *t)
{
    LB_UNROLL
    for (int f = 0; f < 8 / bits; f++) {
        float32x4_t w[4];
        uint8x16_t index = f ? vshlq_u8(v, vdupq_n_s8((int8_t)(-bits * f))) : v;
        /* Levels repeat, so two bits of a neighbour do no harm. */
        if (bits * f < 4) index = vandq_u8(index, vdupq_n_u8(15));
        lb_look_up(l, index, is_short, w);
        LB_UNROLL
        for (int q = 0; q < 4; q++) {
            const float32x4_t xq = vld1q_f32(x + 16 * f + 4 * q);
            t[q] = f ? vfmaq_f32(t[q], w[q], xq) : vmulq_f32(w[q], xq);
        }
    }
}

/* Two halves of a group, each of 32 codes: a unit of 16 is in two vectors. */
LB_INLINE float32x4_t part4(const lb_gemvq_rows *r, int i, int64_t g,
                            int64_t end, int unit, bool is_short)
{
    const lb_planes l = lb_planes_of(r->table->level);
    const float *scale = r->scale[i];
    float32x4_t sum = vdupq_n_f32(0);
    for (; g < end; g++) {
        const uint8_t *codes = r->codes[i] + BYTES * g;
        const float *x = (const float *)r->x + 2 * BYTES * g;
        float32x4_t t[2][4];
        codes16(&l, vld1q_u8(codes), 4, is_short, x, t[0]);
        codes16(&l, vld1q_u8(codes + 16), 4, is_short, x + 32, t[1]);
        if (unit == 64) {
            const float32x4_t all = vaddq_f32(sum4(t[0]), sum4(t[1]));
            sum = vfmaq_n_f32(sum, all, scale[g >> r->shift]);
        } else if (unit == 32) {
            sum = vfmaq_n_f32(sum, sum4(t[0]), scale[2 * g]);
            sum = vfmaq_n_f32(sum, sum4(t[1]), scale[2 * g + 1]);
        } else {
            const float *s = scale + 4 * g;
            LB_UNROLL
            for (int u = 0; u < 4; u++) {
                const float32x4_t *q = t[u / 2] + u % 2 * 2;
                sum = vfmaq_n_f32(sum, vaddq_f32(q[0], q[1]), s[u]);
            }
        }
    }
    return sum;
}

/* A unit of 16 codes is a vector. */
LB_INLINE float32x4_t part2(const lb_gemvq_rows *r, int i, int64_t g,
                            int64_t end, bool scaled, bool is_short)
{
    const lb_planes l = lb_planes_of(r->table->level);
    const uint8_t *codes = r->codes[i] + BYTES * g;
    const float *x = (const float *)r->x + 4 * BYTES * g;
    const float *scale = scaled ? r->scale[i] + 8 * g : NULL;
    float32x4_t sum = vdupq_n_f32(0);
    for (int64_t n = (end - g) * 2; n > 0; n--, codes += 16, x += 64) {
        float32x4_t t[4];
        codes16(&l, vld1q_u8(codes), 2, is_short, x, t);
        if (!scaled) {
            sum = vaddq_f32(sum, sum4(t));
            continue;
        }
        const float32x4_t s = vld1q_f32(scale);
        scale += 4;
        sum = vfmaq_laneq_f32(sum, t[0], s, 0);
        sum = vfmaq_laneq_f32(sum, t[1], s, 1);
        sum = vfmaq_laneq_f32(sum, t[2], s, 2);
        sum = vfmaq_laneq_f32(sum, t[3], s, 3);
    }
    return sum;
}

/* ---- 1 bit -------------------------------------------------------------- */

/* Field f of lane d is slot 4*f + d; a unit of 32 codes is a lane. */
LB_INLINE float32x4_t part1(const lb_gemvq_rows *r, int i, int64_t g,
                            int64_t end, bool scaled)
{
    const float32x4_t zero = vdupq_n_f32(r->table->level[0]);
    const float32x4_t one = vdupq_n_f32(r->table->level[1]);
    const uint8_t *codes = r->codes[i] + BYTES * g;
    const float *x = (const float *)r->x + 8 * BYTES * g;
    const float *scale = scaled ? r->scale[i] + 8 * g : NULL;
    float32x4_t sum = vdupq_n_f32(0);
    for (int64_t n = (end - g) * 2; n > 0; n--, codes += 16) {
        uint32x4_t v = vreinterpretq_u32_u8(vld1q_u8(codes));
        float32x4_t t[4] = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0),
                            vdupq_n_f32(0)};
        for (int quarter = 0; quarter < 4; quarter++, x += 32) {
            LB_UNROLL
            for (int f = 0; f < 8; f++) {
                const uint32x4_t set = vtstq_u32(v, vdupq_n_u32(1u << f));
                t[f % 4] = vfmaq_f32(t[f % 4], vbslq_f32(set, one, zero),
                                     vld1q_f32(x + 4 * f));
            }
            v = vshrq_n_u32(v, 8);
        }
        if (scaled) {
            sum = vfmaq_f32(sum, sum4(t), vld1q_f32(scale));
            scale += 4;
        } else {
            sum = vaddq_f32(sum, sum4(t));
        }
    }
    return sum;
}

/* ---- kernels ------------------------------------------------------------ */

static void rows8(const lb_gemvq_rows *r, float *y)
{
    walk(r, part8, y);
}

/* Parts with their constants, and the one that a table allows. */
#define PARTS(name, part, constant)                                            \
    static float32x4_t name##_short(const lb_gemvq_rows *r, int i, int64_t g,  \
                                    int64_t end)                               \
    {                                                                          \
        return part(r, i, g, end, constant, true);                             \
    }                                                                          \
    static float32x4_t name##_any(const lb_gemvq_rows *r, int i, int64_t g,    \
                                  int64_t end)                                 \
    {                                                                          \
        return part(r, i, g, end, constant, false);                            \
    }                                                                          \
    static void name(const lb_gemvq_rows *r, float *y)                         \
    {                                                                          \
        const lb_planes l = lb_planes_of(r->table->level);                     \
        walk(r, lb_planes_are_short(&l) ? name##_short : name##_any, y);       \
    }

PARTS(rows4_64, part4, 64)
PARTS(rows4_32, part4, 32)
PARTS(rows4_16, part4, 16)
PARTS(rows2, part2, false)
PARTS(rows2_scaled, part2, true)

static float32x4_t part1_plain(const lb_gemvq_rows *r, int i, int64_t g,
                               int64_t end)
{
    return part1(r, i, g, end, false);
}
static float32x4_t part1_scaled(const lb_gemvq_rows *r, int i, int64_t g,
                                int64_t end)
{
    return part1(r, i, g, end, true);
}
static void rows1(const lb_gemvq_rows *r, float *y)
{
    walk(r, part1_plain, y);
}
static void rows1_scaled(const lb_gemvq_rows *r, float *y)
{
    walk(r, part1_scaled, y);
}

/* Of 16 bytes, then of the next. */
#define ORDER8                                                                 \
    {                                                                          \
        {4, 4, 2},                                                             \
        {                                                                      \
            4, 1, 16                                                           \
        }                                                                      \
    }
#define ORDER1                                                                 \
    {                                                                          \
        {4, 32, 2},                                                            \
        {                                                                      \
            32, 1, 128                                                         \
        }                                                                      \
    }

const lb_gemvq_kernel lb_gemvq_rows_neon[] = {
    {"gemv q8 f32 neon", 8, LB_GEMVQ_F32, 32, 0, 0x1p-24f, ORDER8,
     .rows = rows8},
    {"gemv q4 f32 neon", 4, LB_GEMVQ_F32, 64, 64, 1, LB_FIELDS_NEON(2),
     .rows = rows4_64},
    {"gemv q4 f32 neon", 4, LB_GEMVQ_F32, 64, 32, 1, LB_FIELDS_NEON(2),
     .rows = rows4_32},
    {"gemv q4 f32 neon", 4, LB_GEMVQ_F32, 64, 16, 1, LB_FIELDS_NEON(2),
     .rows = rows4_16},
    {"gemv q2 f32 neon", 2, LB_GEMVQ_F32, 128, 0, 1, LB_FIELDS_NEON(4),
     .rows = rows2},
    {"gemv q2 f32 neon", 2, LB_GEMVQ_F32, 128, 16, 1, LB_FIELDS_NEON(4),
     .rows = rows2_scaled},
    {"gemv q1 f32 neon", 1, LB_GEMVQ_F32, 256, 0, 1, ORDER1, .rows = rows1},
    {"gemv q1 f32 neon", 1, LB_GEMVQ_F32, 256, 32, 1, ORDER1,
     .rows = rows1_scaled},
    {0},
};
#endif
