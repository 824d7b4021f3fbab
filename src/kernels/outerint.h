/* outerint.h - products of whole numbers of 16 bits with codes whose depth runs
 * from line to line.
 *
 *   c[i][p] += xs[i] * ws[p] * (base[i] + part[p] * sum of x[i][k] * w[k][p])
 *
 * w is a panel of COLUMNS columns, made from some lines of codes. Two lines
 * after the other are a pair, whose numbers of a column lie together, and so do
 * those of a row of x:
 *
 *   x       rows KC apart
 *   panel   [tile][pair][TILE positions][2], TILES tiles
 *
 * Nothing is turned or folded for that: a vector is multiplied with two numbers
 * of x and added to sums of its columns. Which column a position is for
 * (lb_outerint_column) follows from how codes unpack.
 *
 * Bytes that are numbers may stay bytes, two and two, in panels of half the
 * size:
 *
 *   twos   [tile][pair][TILE / 2][2 lines][2 columns], those that stand at even
 *          places 128 more than they are
 *
 * A number of 16 bits is then 256 * odd + even, of which a shift leaves odd.
 * What a tile adds up modulo 2^32 are x * (256 * odd + even) and x * odd, and
 * the sum of x * even is the first without 256 times the second.
 */
#ifndef LB_OUTERINT_H
#define LB_OUTERINT_H

#include <stdbool.h>
#include <stdint.h>

#include "lowbit_ext.h"

enum {
    LB_OUTERINT_MR = 6,       /* the most rows of x at once */
    LB_OUTERINT_COLUMNS = 64, /* of a panel, */
    LB_OUTERINT_TILE = 16,    /* of a tile, */
    LB_OUTERINT_TILES = LB_OUTERINT_COLUMNS / LB_OUTERINT_TILE,
    LB_OUTERINT_VECTOR = 8, /* and those that share a part */
    /* The most of a depth: panels are 20 KiB, of twos 10, and what begins and
     * ends a tile is little next to it. With fewer lines what is 4 KiB apart
     * would find room in L2, and with more a panel none in L1: both are slower,
     * as measured. Sums of numbers of at most 240 stay
     * in 32 bits: 240 * 32639 * 160 < 2^31, and so do those of twos, whose even
     * bytes are at most 255. */
    LB_OUTERINT_KC = 160,
    LB_OUTERINT_PAIR = 32, /* bytes of two lines in a tile of twos */
    LB_OUTERINT_ASK = 128  /* bytes of two lines of a cache */
};

/* Some lines, 8 * bits bytes of each. */
typedef struct lb_outerint_lines {
    int bits; /* of a code: 8 or 4 */
    /* Not fine: numbers are bytes, or codes where they are in their bytes, not
     * shifted down. Fine: (level * ratio + 2^14) >> 15, where level is of 8
     * bits the byte times 2^6, else level[code], and each line has a ratio. */
    bool fine;
    const int16_t *level, *ratio; /* ratios are there up to a whole pair */
    const uint8_t *codes;
    int64_t step; /* bytes from line to line */
    int64_t n;
} lb_outerint_lines;

/* What rows of x bring. */
typedef struct lb_outerint_head {
    float scale[LB_OUTERINT_MR], base[LB_OUTERINT_MR];
    int32_t raised[LB_OUTERINT_MR]; /* what sums of twos begin with: -128 times
                                     * the sum of a row's numbers */
} lb_outerint_head;

/* Lines that become a panel while tiles of another one run, and what is asked
 * for meanwhile. Lines lie so far apart that each is waited for, which costs
 * little if there is something else to do. */
typedef struct lb_outerint_feed {
    const uint8_t *codes;
    const int16_t *level, *ratio; /* fine: see lb_outerint_lines */
    int64_t step, n; /* bytes from line to line, and lines that are left */
    uint8_t *to;     /* where the next two go, aligned to 32 bytes; */
    int64_t apart;   /* tiles are so many bytes apart */
    uintptr_t ask;   /* an address, no pointer to C: */
    int64_t asks, ask_step;   /* so many lines, so far apart, are to be asked
                               * for, */
    int64_t asked, ask_bytes; /* of the first of which these were already, of
                               * so many; multiples of LB_OUTERINT_ASK */
} lb_outerint_feed;

typedef struct lb_outerint {
    const char *name; /* "dot i16 outer avx2" */
    /* n numbers times factor, rounded to nearest even, and a zero after an odd
     * number of them. Returns their sum. */
    int32_t (*round)(int64_t n, const float *x, float factor, int16_t *to);
    /* A panel of lines; after an odd number of them zeros. It is aligned to 32
     * bytes. */
    void (*pack)(const lb_outerint_lines *w, int16_t *to);
    /* One tile of a panel, and rows <= MR of x: c[i*ldc + p] =
     * fma(fma(sum, part[p / VECTOR], base[i]) * ws[p], scale[i], c or, if
     * first, 0), sum as f32. */
    void (*tile)(int rows, int64_t pairs, const int16_t *x, const int16_t *w,
                 const lb_outerint_head *head, const float *part,
                 const float *ws, bool first, float *c, int64_t ldc);
    /* Twos: all lines that are left; of an odd number the last meets zeros. */
    void (*feed_twos)(lb_outerint_feed *f);
    /* The same as tile with all of a panel of twos, part 1 and base 0; some
     * lines of `next` may go where they belong meanwhile. */
    void (*panel_twos)(int rows, int64_t pairs, const int16_t *x,
                       const uint8_t *w, const lb_outerint_head *head,
                       const float *ws, bool first, float *c, int64_t ldc,
                       lb_outerint_feed *next);
    /* Fine numbers of 4 bits: the same two, of panels as pack makes them. */
    void (*feed_fine)(lb_outerint_feed *f);
    void (*panel_fine)(int rows, int64_t pairs, const int16_t *x,
                       const int16_t *w, const lb_outerint_head *head,
                       const float *ws, bool first, float *c, int64_t ldc,
                       lb_outerint_feed *next);
} lb_outerint;

/* Where the code of a position is: which byte of a line, and which field of it,
 * from the lowest. Vectors have the same field of 4 bytes from each half of 32
 * bytes; those with the same bytes come one after the other. */
static inline int lb_outerint_field(int bits, int position)
{
    return position / LB_OUTERINT_VECTOR % (8 / bits);
}

static inline int lb_outerint_byte(int bits, int position)
{
    const int first = position / LB_OUTERINT_VECTOR / (8 / bits) * 4;
    return first / 16 * 32 + first % 16 + position % 4 +
           position % LB_OUTERINT_VECTOR / 4 * 16;
}

static inline int lb_outerint_column(int bits, bool high_first, int position)
{
    const int fields = 8 / bits, field = lb_outerint_field(bits, position);
    return lb_outerint_byte(bits, position) * fields +
           (high_first ? fields - 1 - field : field);
}

/* The column of a position in a panel of twos. */
static inline int lb_outerint_twos_column(int position)
{
    const int tile = position / LB_OUTERINT_TILE;
    const int odd = position / LB_OUTERINT_VECTOR % 2;
    const int lane = position % LB_OUTERINT_VECTOR;
    return tile / 2 * 32 + lane / 4 * 16 + tile % 2 * 8 + lane % 4 * 2 + odd;
}

/* What a level has, or NULL. */
const lb_outerint *lb_outerint_for(const lb_cpu *cpu);

extern const lb_outerint lb_outerint_ref;
#if defined(__x86_64__)
extern const lb_outerint lb_outerint_avx2;
#endif

#endif
