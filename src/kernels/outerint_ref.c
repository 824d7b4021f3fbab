/* outerint_ref.c - outerint.h in portable C, and which level has a kernel. */
#include "kernels/outerint.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { TILE = LB_OUTERINT_TILE };

static int32_t round_row(int64_t n, const float *x, float factor, int16_t *to)
{
    int32_t sum = 0;
    for (int64_t k = 0; k < n; k++) {
        to[k] = (int16_t)lrintf(x[k] * factor);
        sum += to[k];
    }
    if (n % 2) to[n] = 0;
    return sum;
}

static int number(const lb_outerint_lines *w, int64_t k, int position)
{
    if (k >= w->n) return 0;
    const int bits = w->bits, mask = (1 << bits) - 1;
    const int byte = w->codes[k * w->step + lb_outerint_byte(bits, position)];
    const int shift = bits * lb_outerint_field(bits, position);
    if (!w->fine) return bits == 8 ? (int8_t)byte : byte & mask << shift;
    const int level =
        bits == 8 ? (int8_t)byte * 64 : w->level[byte >> shift & mask];
    return (level * w->ratio[k] + (1 << 14)) >> 15;
}

static void pack(const lb_outerint_lines *w, int16_t *to)
{
    for (int t = 0; t < LB_OUTERINT_TILES; t++)
        for (int64_t k = 0; k < w->n; k += 2)
            for (int p = 0; p < TILE; p++, to += 2) {
                to[0] = (int16_t)number(w, k, t * TILE + p);
                to[1] = (int16_t)number(w, k + 1, t * TILE + p);
            }
}

static void tile(int rows, int64_t pairs, const int16_t *x, const int16_t *w,
                 const lb_outerint_head *head, const float *part,
                 const float *ws, bool first, float *c, int64_t ldc)
{
    for (int i = 0; i < rows; i++, x += LB_OUTERINT_KC, c += ldc)
        for (int p = 0; p < TILE; p++) {
            int32_t sum = 0;
            for (int64_t k = 0; k < 2 * pairs; k++)
                sum += x[k] * w[(k / 2 * TILE + p) * 2 + k % 2];
            const float all =
                fmaf((float)sum, part[p / LB_OUTERINT_VECTOR], head->base[i]);
            c[p] = fmaf(all * ws[p], head->scale[i], first ? 0 : c[p]);
        }
}

/* Two lines of a tile are TILE / 2 times two bytes of each. */
static void feed_twos(lb_outerint_feed *f)
{
    for (; f->n > 0;
         f->n -= 2, f->codes += 2 * f->step, f->to += LB_OUTERINT_PAIR)
        for (int p = 0; p < LB_OUTERINT_COLUMNS; p++) {
            const int column = lb_outerint_twos_column(p), lane = p % 8;
            uint8_t *const to = f->to + p / TILE * f->apart + lane * 4;
            const int odd = column % 2, raise = odd ? 0 : 128;
            to[odd] = (uint8_t)(f->codes[column] ^ raise);
            to[2 + odd] =
                (uint8_t)((f->n > 1 ? f->codes[f->step + column] : 0) ^ raise);
        }
    f->n = 0;
}

static int32_t sum_of_twos(int64_t pairs, const int16_t *x, const uint8_t *w,
                           int p)
{
    const int odd = p / LB_OUTERINT_VECTOR, lane = p % LB_OUTERINT_VECTOR;
    int32_t sum = 0;
    for (int64_t k = 0; k < 2 * pairs; k++) {
        const uint8_t *at = w + k / 2 * LB_OUTERINT_PAIR + lane * 4;
        sum += x[k] * (int8_t)(at[k % 2 * 2 + odd] ^ (odd ? 0 : 128));
    }
    return sum;
}

static void panel_twos(int rows, int64_t pairs, const int16_t *x,
                       const uint8_t *w, const lb_outerint_head *head,
                       const float *ws, bool first, float *c, int64_t ldc,
                       lb_outerint_feed *next)
{
    (void)next;
    for (int i = 0; i < rows; i++, x += LB_OUTERINT_KC, c += ldc)
        for (int p = 0; p < LB_OUTERINT_COLUMNS; p++) {
            const uint8_t *of_tile = w + p / TILE * pairs * LB_OUTERINT_PAIR;
            const int32_t sum = sum_of_twos(pairs, x, of_tile, p % TILE);
            c[p] = fmaf((float)sum * ws[p], head->scale[i], first ? 0 : c[p]);
        }
}

static void feed_fine(lb_outerint_feed *f)
{
    const lb_outerint_lines w = {.bits = 4,
                                 .fine = true,
                                 .level = f->level,
                                 .ratio = f->ratio,
                                 .codes = f->codes,
                                 .step = f->step,
                                 .n = f->n};
    for (int64_t k = 0; k < w.n; k += 2)
        for (int p = 0; p < LB_OUTERINT_COLUMNS; p++) {
            const int16_t two[2] = {(int16_t)number(&w, k, p),
                                    (int16_t)number(&w, k + 1, p)};
            memcpy(f->to + p / TILE * f->apart + (k / 2 * TILE + p % TILE) * 4,
                   two, sizeof two);
        }
    f->n = 0;
}

static void panel_fine(int rows, int64_t pairs, const int16_t *x,
                       const int16_t *w, const lb_outerint_head *head,
                       const float *ws, bool first, float *c, int64_t ldc,
                       lb_outerint_feed *next)
{
    static const float part[] = {1, 1};
    (void)next;
    for (int p = 0; p < LB_OUTERINT_COLUMNS; p += TILE)
        tile(rows, pairs, x, w + p * pairs * 2, head, part, ws + p, first,
             c + p, ldc);
}

const lb_outerint lb_outerint_ref = {
    .name = "dot i16 outer ref",
    .round = round_row,
    .pack = pack,
    .tile = tile,
    .feed_twos = feed_twos,
    .panel_twos = panel_twos,
    .feed_fine = feed_fine,
    .panel_fine = panel_fine,
};

const lb_outerint *lb_outerint_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level == LB_LEVEL_AVX2) return &lb_outerint_avx2;
#endif
    (void)cpu;
    return NULL;
}
