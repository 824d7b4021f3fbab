/* gemvq_ref.c - the kernels of gemvq.h in portable C.
 *
 * Groups of 32 bytes, slots as codes stand in their bytes. One product after
 * the other within a unit of scales, then the unit's sum times its scale.
 */
#include <string.h>

#include "kernels/gemvq.h"
#include "kernels/gemvq_sets.h"

enum { BYTES = 32 };

static int code_at(const uint8_t *codes, int bits, int64_t i)
{
    const int per = 8 / bits;
    return codes[i / per] >> (int)(i % per) * bits & ((1 << bits) - 1);
}

/* Of 8 bits the level is the code. */
static float level_at(const lb_gemvq_table *t, const uint8_t *codes, int bits,
                      int64_t i)
{
    return bits == 8 ? (float)(int8_t)codes[i]
                     : t->level[code_at(codes, bits, i)];
}

static int half_at(const lb_gemvq_table *t, const uint8_t *codes, int64_t i)
{
    const int c = code_at(codes, 4, i);
    return (int16_t)(t->half[0][c] | t->half[1][c] << 8);
}

/* ---- rows --------------------------------------------------------------- */

static void rows_f32(const lb_gemvq_rows *r, float *y, int bits, int unit)
{
    const int64_t n = r->groups * (BYTES * 8 / bits);
    const int64_t run = unit ? unit : BYTES * 8 / bits;
    const float *x = r->x;
    for (int j = 0; j < LB_GEMVQ_ROWS; j++) {
        y[j] = 0;
        for (int64_t at = 0; at < n; at += run) {
            float sum = 0;
            for (int64_t i = at; i < at + run; i++)
                sum += x[i] * level_at(r->table, r->codes[j], bits, i);
            y[j] += unit ? sum * r->scale[j][at / run] : sum;
        }
    }
}

static void rows_i16(const lb_gemvq_rows *r, float *y)
{
    enum { UNIT = 16 };
    const int16_t *x = r->x;
    for (int j = 0; j < LB_GEMVQ_ROWS; j++) {
        y[j] = 0;
        for (int64_t at = 0; at < r->groups * BYTES * 2; at += UNIT) {
            int64_t sum = 0;
            for (int64_t i = at; i < at + UNIT; i++)
                sum += x[i] * half_at(r->table, r->codes[j], i);
            y[j] +=
                (float)sum * r->table->half_unit *
                (r->scale[j][at / UNIT] * r->x_scale[at / LB_GEMVQ_I16_PANEL]);
        }
    }
}

/* Whole numbers of a panel: at most 512 * 128 * 32767 < 2^31. */
static void rows8_i16(const lb_gemvq_rows *r, float *y)
{
    const int16_t *x = r->x;
    const int64_t n = r->groups * BYTES;
    for (int j = 0; j < LB_GEMVQ_ROWS; j++) {
        y[j] = 0;
        for (int64_t at = 0; at < n; at += LB_GEMVQ_I16_PANEL) {
            int32_t sum = 0;
            for (int64_t i = at; i < n && i < at + LB_GEMVQ_I16_PANEL; i++)
                sum += x[i] * (int8_t)r->codes[j][i];
            y[j] += (float)sum * r->x_scale[at / LB_GEMVQ_I16_PANEL];
        }
    }
}

static int whole_x(const int8_t *x, bool two, int64_t i)
{
    return two ? 256 * x[i / BYTES * 2 * BYTES + i % BYTES] +
                     x[(i / BYTES * 2 + 1) * BYTES + i % BYTES]
               : x[i];
}

/* Vectors of BYTES numbers: slot s*BYTES + b is code s of byte b. */
static void rows_i8(const lb_gemvq_rows *r, float *y, int bits, bool two)
{
    const int group = BYTES * 8 / bits, panel = LB_GEMVQ_I8_PANEL / group;
    for (int j = 0; j < LB_GEMVQ_ROWS; j++) {
        y[j] = 0;
        int32_t sum = 0;
        for (int64_t g = 0; g < r->groups; g++) {
            const uint8_t *codes = r->codes[j] + g * BYTES;
            int32_t dot = 0;
            for (int s = 0; s < group; s++)
                dot +=
                    (codes[s % BYTES] >> s / BYTES * bits & ((1 << bits) - 1)) *
                    whole_x(r->x, two, g * group + s);
            sum += r->table->step * dot;
            if ((g + 1) % panel && g + 1 < r->groups) continue;
            sum += r->table->least * r->x_sum[g / panel];
            y[j] += (float)sum * r->x_scale[g / panel];
            sum = 0;
        }
    }
}

static void rows8(const lb_gemvq_rows *r, float *y)
{
    rows_f32(r, y, 8, 0);
}
static void rows4(const lb_gemvq_rows *r, float *y)
{
    rows_f32(r, y, 4, 16);
}
static void rows2(const lb_gemvq_rows *r, float *y)
{
    rows_f32(r, y, 2, 0);
}
static void rows2_scaled(const lb_gemvq_rows *r, float *y)
{
    rows_f32(r, y, 2, 16);
}
static void rows1(const lb_gemvq_rows *r, float *y)
{
    rows_f32(r, y, 1, 0);
}
static void rows1_scaled(const lb_gemvq_rows *r, float *y)
{
    rows_f32(r, y, 1, 32);
}
static void rows2_i8x2(const lb_gemvq_rows *r, float *y)
{
    rows_i8(r, y, 2, true);
}
static void rows1_i8x2(const lb_gemvq_rows *r, float *y)
{
    rows_i8(r, y, 1, true);
}
static void rows2_i8(const lb_gemvq_rows *r, float *y)
{
    rows_i8(r, y, 2, false);
}
static void rows1_i8(const lb_gemvq_rows *r, float *y)
{
    rows_i8(r, y, 1, false);
}

const lb_gemvq_kernel lb_gemvq_rows_ref[] = {
    {"gemv q8 f32 ref", 8, LB_GEMVQ_F32, 32, 0, 1, {{32}, {1}}, .rows = rows8},
    {"gemv q4 f32 ref", 4, LB_GEMVQ_F32, 64, 16, 1, {{64}, {1}}, .rows = rows4},
    {"gemv q2 f32 ref",
     2,
     LB_GEMVQ_F32,
     128,
     0,
     1,
     {{128}, {1}},
     .rows = rows2},
    {"gemv q2 f32 ref",
     2,
     LB_GEMVQ_F32,
     128,
     16,
     1,
     {{128}, {1}},
     .rows = rows2_scaled},
    {"gemv q1 f32 ref",
     1,
     LB_GEMVQ_F32,
     256,
     0,
     1,
     {{256}, {1}},
     .rows = rows1},
    {"gemv q1 f32 ref",
     1,
     LB_GEMVQ_F32,
     256,
     32,
     1,
     {{256}, {1}},
     .rows = rows1_scaled},
    {"gemv q8 i16 ref",
     8,
     LB_GEMVQ_I16,
     32,
     0,
     1,
     {{32}, {1}},
     .rows = rows8_i16},
    {"gemv q4 i16 ref",
     4,
     LB_GEMVQ_I16,
     64,
     16,
     1,
     {{64}, {1}},
     .rows = rows_i16},
    {"gemv q2 i8x2 ref",
     2,
     LB_GEMVQ_I8X2,
     128,
     0,
     1,
     {{32, 4}, {4, 1}},
     .rows = rows2_i8x2},
    {"gemv q1 i8x2 ref",
     1,
     LB_GEMVQ_I8X2,
     256,
     0,
     1,
     {{32, 8}, {8, 1}},
     .rows = rows1_i8x2},
    {"gemv q2 i8 ref",
     2,
     LB_GEMVQ_I8,
     128,
     0,
     1,
     {{32, 4}, {4, 1}},
     .rows = rows2_i8},
    {"gemv q1 i8 ref",
     1,
     LB_GEMVQ_I8,
     256,
     0,
     1,
     {{32, 8}, {8, 1}},
     .rows = rows1_i8},
    {0},
};

/* ---- cols --------------------------------------------------------------- */

static void cols_f32(const lb_gemvq_cols *c, int bits, int unit)
{
    float *y = c->sum;
    for (int64_t i = 0; i < c->groups * (BYTES * 8 / bits); i++) {
        float sum = 0;
        for (int l = 0; l < LB_GEMVQ_COLS; l++)
            sum += ((const float *)c->x[l])[unit ? i / unit : 0] *
                   level_at(c->table, c->codes[l], bits, i);
        y[i] += sum;
    }
}

/* Where x is not finite, whole numbers are anything: they may wrap. */
static void cols_i16(const lb_gemvq_cols *c)
{
    enum { UNIT = BYTES * 2 };
    uint32_t *to = c->sum;
    for (int64_t i = 0; i < c->groups * UNIT; i++) {
        uint32_t sum = c->first ? 0 : to[i];
        for (int l = 0; l < LB_GEMVQ_COLS; l++) {
            const int16_t *pair = c->x[l / 2];
            sum += (uint32_t)(pair[(i / UNIT >> c->shift) * 2 + l % 2] *
                              half_at(c->table, c->codes[l], i));
        }
        to[i] = sum;
    }
}

static void flush_i16(const lb_gemvq_flush *f)
{
    enum { UNIT = BYTES * 2 };
    for (int64_t i = 0; i < f->groups * UNIT; i++)
        f->y[i] += (float)((const int32_t *)f->sum)[i] *
                   f->x_scale[i / UNIT >> f->shift];
}

/* At most 256 * 128 * 32767 < 2^31. */
static void cols8_i16(const lb_gemvq_cols *c)
{
    int32_t *to = c->sum;
    for (int64_t i = 0; i < c->groups * BYTES; i++) {
        int32_t sum = c->first ? 0 : to[i];
        for (int l = 0; l < LB_GEMVQ_COLS; l++)
            sum +=
                ((const int16_t *)c->x[l / 2])[l % 2] * (int8_t)c->codes[l][i];
        to[i] = sum;
    }
}

static void flush8_i16(const lb_gemvq_flush *f)
{
    const int32_t *sum = f->sum;
    for (int64_t i = 0; i < f->groups * BYTES; i++)
        f->y[i] += (float)sum[i] * *f->x_scale;
}

static void cols_i8(const lb_gemvq_cols *c, int bits, bool two)
{
    int32_t *to = c->sum;
    for (int64_t i = 0; i < c->groups * (BYTES * 8 / bits); i++) {
        int32_t sum = c->first ? 0 : to[i];
        for (int l = 0; l < LB_GEMVQ_COLS; l++) {
            const int8_t *high = c->x[l / 2], *low = c->x[l / 2 + 4];
            const int x = two ? 256 * high[l % 2] + low[l % 2] : high[l % 2];
            sum += x * code_at(c->codes[l], bits, i);
        }
        to[i] = sum;
    }
}

static void flush_i8(const lb_gemvq_flush *f, int bits)
{
    const int32_t *sum = f->sum;
    for (int64_t i = 0; i < f->groups * (BYTES * 8 / bits); i++)
        f->y[i] +=
            (float)(f->table->step * sum[i] + f->table->least * f->x_sum) *
            *f->x_scale;
}

static void cols8(const lb_gemvq_cols *c)
{
    cols_f32(c, 8, 0);
}
static void cols4(const lb_gemvq_cols *c)
{
    cols_f32(c, 4, 16);
}
static void cols2(const lb_gemvq_cols *c)
{
    cols_f32(c, 2, 0);
}
static void cols2_scaled(const lb_gemvq_cols *c)
{
    cols_f32(c, 2, 16);
}
static void cols1(const lb_gemvq_cols *c)
{
    cols_f32(c, 1, 0);
}
static void cols1_scaled(const lb_gemvq_cols *c)
{
    cols_f32(c, 1, 32);
}
static void cols2_i8x2(const lb_gemvq_cols *c)
{
    cols_i8(c, 2, true);
}
static void cols1_i8x2(const lb_gemvq_cols *c)
{
    cols_i8(c, 1, true);
}
static void cols2_i8(const lb_gemvq_cols *c)
{
    cols_i8(c, 2, false);
}
static void cols1_i8(const lb_gemvq_cols *c)
{
    cols_i8(c, 1, false);
}
static void flush2(const lb_gemvq_flush *f)
{
    flush_i8(f, 2);
}
static void flush1(const lb_gemvq_flush *f)
{
    flush_i8(f, 1);
}

const lb_gemvq_kernel lb_gemvq_cols_ref[] = {
    {"gemv q8 f32 ref cols",
     8,
     LB_GEMVQ_F32,
     32,
     0,
     1,
     {{32}, {1}},
     .cols = cols8},
    {"gemv q4 f32 ref cols",
     4,
     LB_GEMVQ_F32,
     64,
     16,
     1,
     {{64}, {1}},
     .cols = cols4},
    {"gemv q2 f32 ref cols",
     2,
     LB_GEMVQ_F32,
     128,
     0,
     1,
     {{128}, {1}},
     .cols = cols2},
    {"gemv q2 f32 ref cols",
     2,
     LB_GEMVQ_F32,
     128,
     16,
     1,
     {{128}, {1}},
     .cols = cols2_scaled},
    {"gemv q1 f32 ref cols",
     1,
     LB_GEMVQ_F32,
     256,
     0,
     1,
     {{256}, {1}},
     .cols = cols1},
    {"gemv q1 f32 ref cols",
     1,
     LB_GEMVQ_F32,
     256,
     32,
     1,
     {{256}, {1}},
     .cols = cols1_scaled},
    {"gemv q8 i16 ref cols",
     8,
     LB_GEMVQ_I16,
     32,
     0,
     1,
     {{32}, {1}},
     .cols = cols8_i16,
     .flush = flush8_i16,
     .sum_size = 4,
     .lines = LB_GEMVQ_MOST_LINES},
    {"gemv q4 i16 ref cols",
     4,
     LB_GEMVQ_I16,
     64,
     64,
     1,
     {{64}, {1}},
     .cols = cols_i16,
     .flush = flush_i16,
     .sum_size = 4},
    {"gemv q2 i8x2 ref cols",
     2,
     LB_GEMVQ_I8X2,
     128,
     0,
     1,
     {{128}, {1}},
     .cols = cols2_i8x2,
     .flush = flush2,
     .sum_size = 4,
     .lines = LB_GEMVQ_MOST_LINES},
    {"gemv q1 i8x2 ref cols",
     1,
     LB_GEMVQ_I8X2,
     256,
     0,
     1,
     {{256}, {1}},
     .cols = cols1_i8x2,
     .flush = flush1,
     .sum_size = 4,
     .lines = LB_GEMVQ_MOST_LINES},
    {"gemv q2 i8 ref cols",
     2,
     LB_GEMVQ_I8,
     128,
     0,
     1,
     {{128}, {1}},
     .cols = cols2_i8,
     .flush = flush2,
     .sum_size = 4,
     .lines = LB_GEMVQ_MOST_LINES},
    {"gemv q1 i8 ref cols",
     1,
     LB_GEMVQ_I8,
     256,
     0,
     1,
     {{256}, {1}},
     .cols = cols1_i8,
     .flush = flush1,
     .sum_size = 4,
     .lines = LB_GEMVQ_MOST_LINES},
    {0},
};
