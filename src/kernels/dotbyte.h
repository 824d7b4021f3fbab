/* dotbyte.h - products of matrices of bytes, or of words, in panels.
 *
 *   c[i][j] += xs[i] * ws[j] * sum over kk of x[i][kk] * (w[j][kk] - offset)
 *
 * Numbers of x (m,k) are rounded to whole ones of one byte, or of two: 256 *
 * high + low, planes that are multiplied one after the other. Those of w (n,k)
 * are made from codes: bytes from 0 on, so that one operand has no sign, as
 * most instructions want it. What the offset adds is put right by the sum of x,
 * so products are exact. Rows lie side by side, four bytes of each in turn:
 *
 *   x: up to mr rows, [quad][row][4]      w: nr rows, [quad][row][4]
 *
 * The sums of a tile stand in lanes, a row of w to each: nothing is folded.
 *
 * Lines: codes of 8 bits whose depth runs along memory, for a few rows of x.
 * They are multiplied as they lie, and x lies the same way, in longer pieces.
 *
 * The order of the depth. Where it runs along memory, four bytes of codes of
 * fewer than 8 bits become a quad for each field of them, in turn. Where rows
 * run along memory, the depth is as it is, and rows of w are in another order:
 * of sixteen bytes first those of all first fields, then those of all second
 * ones, and so on: slots.
 *
 * Words: numbers of 16 bits, with signs and no offset, for levels that a byte
 * cannot hold, and CPUs without products of bytes. A quad is a pair of them,
 * four bytes as well; fields are those of two bytes of codes, so that 8 bits
 * have two.
 *
 * Words of x may meet bytes of w, made as above: each quad of these is two
 * pairs, its first and third byte, then its second and fourth. Raw pointers
 * only.
 */
#ifndef LB_DOTBYTE_H
#define LB_DOTBYTE_H

#include <stdint.h>

#include "lowbit_ext.h"

enum {
    LB_DOTBYTE_STEP = 32,  /* depths are filled up to a multiple of this */
    LB_DOTBYTE_LINES = 16, /* that along takes at once */
    LB_DOTBYTE_BYTES = 64, /* of a line, that across takes at once */
    LB_DOTBYTE_MAX_MR = 32,
    LB_DOTBYTE_MAX_NR = 32,
    LB_DOTBYTE_KC = 512, /* depth of a panel: 128 * 32639 * 512 < 2^31 */
    LB_DOTBYTE_MOST_X = 127,
    LB_DOTBYTE_MOST_X2 = 32639, /* 256 * 127 + 127 */
    /* The same of one plane: 255 * 127 * 1024 < 2^31. */
    LB_DOTBYTE_DEEP = 1024,
    LB_DOTBYTE_TOGETHER = 4, /* lines that dots take at once, at most */
    /* Words: the largest of w, and the most that magnitudes of x which share a
     * scale may then add up to, for sums below 2^31. 544 leave room for the
     * roundings of 512 of them, and of the sum. */
    LB_DOTWORD_MOST_W = 1 << 13,
    LB_DOTWORD_SPARE = 544,
    LB_DOTWORD_SUM = (1 << (31 - 13)) - LB_DOTWORD_SPARE,
    /* Levels and ratios whose product times 2^-15 is MOST_W; the latter where
     * levels are 64 times a byte. */
    LB_DOTWORD_LEVEL = 1 << 14,
    LB_DOTWORD_RATIO = 1 << 14,
    LB_DOTWORD_RATIO_8 = 32767
};

/* What codes stand for: number[code], offset included; those of 8 bits the
 * number that they are, and 128. */
typedef struct lb_dotbyte_codes {
    int bits; /* 8, 4, 2 or 1 */
    bool high_first;
    uint8_t number[16];
    /* Words: level[code], of 8 bits the number that they are. Across, if there
     * are ratios, (level * ratio + 2^14) >> 15, where level is of 8 bits 64
     * times the number, and line k has ratio[k] for the first `share` codes (a
     * multiple of 32) of those that are taken at once, ratio[apart + k] for
     * those after them, and so on. Up to a whole pair there are any. */
    int16_t level[16];
    const int16_t *ratio;
    int64_t share, apart;
} lb_dotbyte_codes;

/* Rows of x as they meet a panel of w: block by block of the depth. */
typedef struct lb_dotbyte_x {
    int rows, planes;
    const int8_t *bytes;  /* the first plane; they are `plane` bytes apart */
    int64_t plane, row;   /* row: from one to the next, if they are by_row */
    const int32_t *start; /* of each row: (bias - offset) * its sum */
    const float *scale;
    int64_t share; /* depth of a block, the last of which may be less deep, */
    int64_t apart; /* and how far starts and scales are from those of the next
                    * one */
} lb_dotbyte_x;

/* Rows of w: a panel, aligned to 64 bytes. */
typedef struct lb_dotbyte_w {
    const uint8_t *bytes;
    const float *scale; /* those of the next block of x are `apart` after */
    int64_t apart;
} lb_dotbyte_w;

/* What will be wanted next: lines of a cache, anywhere, of which one is asked
 * for with each quad of a tile. Bursts would hold up what tiles read. */
typedef struct lb_dotbyte_ask {
    uintptr_t at;
    int64_t step, column; /* bytes to the next, `rows` times, then to the next
                           * column of as many */
    int64_t rows, left;   /* left: of this column */
    int64_t columns;      /* that are left, this one included; 0: none */
} lb_dotbyte_ask;

/* Codes of 8 bits as they lie, the depth along memory. */
typedef struct lb_dotbyte_lines {
    const uint8_t *codes;
    int64_t step, n, depth; /* bytes from line to line; how many; of each */
    const float *ws;        /* up to a whole LB_DOTBYTE_TOGETHER */
    uintptr_t next;         /* the lines that come after these, and are asked
                             * for; anywhere, 0: none are */
} lb_dotbyte_lines;

typedef struct lb_dotbyte {
    const char *name, *name_two; /* "dot i8 ref", with two planes */
    int size, x_size;            /* bytes of a number of w, and of x */
    int piece; /* bytes of a row of x side by side: a quad, but for dots */
    /* x lies row by row, a row of the depth to the next, and then the next
     * plane: quads are side by side. Memory is read, though not used, as if
     * there were mr rows of as many planes. */
    bool by_row;
    bool asks;   /* tiles do, for what comes next */
    int mr, nr;  /* by_row: mr rows of one plane, half as many of two */
    int most_w;  /* the largest byte of w; below 255: not of 8 bits */
    int widths;  /* all bits of codes that can be packed, added; 0: any */
    int bias;    /* what bytes of panels of w are less: 128 gives them signs */
    bool planes; /* two of them are not slower than numbers of 16 bits */
    /* Around all calls of tile of a unit of work, on its thread, which does
     * nothing else meanwhile that could wait; NULL: nothing is needed. share:
     * that of x, the same in all of them. */
    void (*begin)(int64_t share);
    void (*end)(void);
    /* One row of a panel of x: each number times factor, rounded to nearest
     * even; returns their sum. fields: of codes whose depth runs along memory,
     * else 1. Pieces are `apart` bytes apart. Zeros up to a whole step, or
     * piece, if that is more. */
    int32_t (*round)(int64_t n, const float *x, float factor, int planes,
                     int fields, int8_t *to, int64_t apart, int64_t plane);
    /* n codes of LB_DOTBYTE_LINES lines, `step` bytes apart, as rows of a panel
     * of w. Past n, up to a whole step, come bytes of no meaning. What lies
     * `ahead` bytes from codes will be wanted next, and may lie anywhere: it is
     * asked for; if tiles ask as well, the second half of each line, and
     * nothing if ahead is 0. The same below. */
    void (*along)(const lb_dotbyte_codes *c, const uint8_t *from, int64_t step,
                  int64_t n, int64_t ahead, uint8_t *to);
    /* n lines, which are the depth, of `bytes` <= LB_DOTBYTE_BYTES, as panels
     * that are `panel` bytes apart, of LB_DOTBYTE_BYTES * fields slots; slots
     * without codes have no meaning. NULL: there is none. */
    void (*across)(const lb_dotbyte_codes *c, const uint8_t *from, int64_t step,
                   int64_t n, int64_t bytes, int64_t ahead, uint8_t *to,
                   int64_t panel);
    /* The same in two steps, for codes of fewer than 8 bits, whose panels are
     * more than L1 holds; NULL: there are none. First the quads of bytes, 16
     * of them to 64 bytes of `to`: [byte / 16][quad], the first `apart` bytes
     * apart. Then from those of 16 bytes nr slots, those of two fields. */
    void (*quads)(const uint8_t *from, int64_t step, int64_t n, int64_t bytes,
                  uint8_t *to, int64_t apart);
    void (*panel)(const lb_dotbyte_codes *c, const uint8_t *quads, int64_t n,
                  int field, uint8_t *to);
    /* Words: a panel of along, across or pack_f32.h becomes what tile takes, n
     * deep, whole steps; NULL: that is the same. */
    void (*split)(uint8_t *panel, int64_t n);
    /* Of each block in turn: c[i*nr + j] = fma(sum * w->scale[j], x->scale[i],
     * c[i*nr + j], or 0 if it is the first), sum as f32. k and share are
     * multiples of 4. */
    void (*tile)(const lb_dotbyte_x *x, int64_t k, const lb_dotbyte_w *w,
                 bool first, float *c, lb_dotbyte_ask *ask);
    /* In place of along, across and tile, where there is one; nr is 1.
     * c[j * lb_dotbyte_apart(rows) + i] as above, with j up to a whole
     * LB_DOTBYTE_TOGETHER and i up to a whole `apart`, where there is anything
     * for those that are not. So are scales and starts of rows. */
    void (*dots)(const lb_dotbyte_x *x, const lb_dotbyte_lines *w, bool first,
                 float *c);
} lb_dotbyte;

/* From a block to the next: x->share numbers, nr rows of w. */
static inline void lb_dotbyte_next(lb_dotbyte_x *x, lb_dotbyte_w *w, int x_size,
                                   int size, int nr)
{
    x->bytes += x->share * x->rows * x_size;
    x->start += x->apart;
    x->scale += x->apart;
    w->bytes += x->share * nr * size;
    w->scale += w->apart;
}

static inline int lb_dotbyte_apart(int rows)
{
    return rows > 4 ? 8 : 4;
}

typedef struct lb_dotbyte_need {
    int most_w; /* the largest byte of w */
    int bits;   /* of codes */
    bool along; /* K along memory */
    bool words; /* x may be words */
    bool signs; /* 1 bit, 0 or 2, and panels are one block: dotlut.h */
} lb_dotbyte_need;

/* The strongest kernel of a CPU for bytes of w; NULL: there is none, and w must
 * be words. */
const lb_dotbyte *lb_dotbyte_for(const lb_cpu *cpu, const lb_dotbyte_need *n);
/* The same for words. */
const lb_dotbyte *lb_dotword_for(const lb_cpu *cpu);
/* That for codes of 8 bits as they lie, and x in bytes; NULL: there is none. */
const lb_dotbyte *lb_dotlines_for(const lb_cpu *cpu);

extern const lb_dotbyte lb_dotbyte_ref, lb_dotword_ref;
#if defined(__aarch64__)
extern const lb_dotbyte lb_dotbyte_dotprod, lb_dotword_neon;
#endif

/* Panels of words, 16 rows to each, in portable C. */
int32_t lb_dotword_round_ref(int64_t n, const float *x, float factor,
                             int planes, int fields, int8_t *to, int64_t apart,
                             int64_t plane);
void lb_dotword_along_ref(const lb_dotbyte_codes *c, const uint8_t *from,
                          int64_t step, int64_t n, int64_t ahead, uint8_t *to);
void lb_dotword_across_ref(const lb_dotbyte_codes *c, const uint8_t *from,
                           int64_t step, int64_t n, int64_t bytes,
                           int64_t ahead, uint8_t *to, int64_t panel);
#if defined(__x86_64__)
extern const lb_dotbyte lb_dotbyte_avx2, lb_dotbyte_vnni, lb_dotword_vnni;
extern const lb_dotbyte lb_dotword_avx2, lb_dotwide_avx2;
extern const lb_dotbyte lb_dotlines_vnni;
extern const lb_dotbyte lb_dotbyte_amx, lb_dotword_amx;

void lb_dotword_along_avx2(const lb_dotbyte_codes *c, const uint8_t *from,
                           int64_t step, int64_t n, int64_t ahead, uint8_t *to);
void lb_dotword_across_avx2(const lb_dotbyte_codes *c, const uint8_t *from,
                            int64_t step, int64_t n, int64_t bytes,
                            int64_t ahead, uint8_t *to, int64_t panel);
void lb_dotbyte_along_avx2(const lb_dotbyte_codes *c, const uint8_t *from,
                           int64_t step, int64_t n, int64_t ahead, uint8_t *to);
void lb_dotbyte_across_avx2(const lb_dotbyte_codes *c, const uint8_t *from,
                            int64_t step, int64_t n, int64_t bytes,
                            int64_t ahead, uint8_t *to, int64_t panel);
void lb_dotbyte_along_avx512(const lb_dotbyte_codes *c, const uint8_t *from,
                             int64_t step, int64_t n, int64_t ahead,
                             uint8_t *to);
void lb_dotbyte_across_avx512(const lb_dotbyte_codes *c, const uint8_t *from,
                              int64_t step, int64_t n, int64_t bytes,
                              int64_t ahead, uint8_t *to, int64_t panel);
void lb_dotbyte_quads_avx512(const uint8_t *from, int64_t step, int64_t n,
                             int64_t bytes, uint8_t *to, int64_t apart);
void lb_dotbyte_panel_avx512(const lb_dotbyte_codes *c, const uint8_t *quads,
                             int64_t n, int field, uint8_t *to);
void lb_dotword_along_avx512(const lb_dotbyte_codes *c, const uint8_t *from,
                             int64_t step, int64_t n, int64_t ahead,
                             uint8_t *to);
void lb_dotword_across_avx512(const lb_dotbyte_codes *c, const uint8_t *from,
                              int64_t step, int64_t n, int64_t bytes,
                              int64_t ahead, uint8_t *to, int64_t panel);
#endif

#endif
