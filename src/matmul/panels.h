/* panels.h - a product with packed weights as panels of bytes or words.
 *
 * What is multiplied are the panels of kernels/dotbyte.h. Scales of weights go
 * to the row of the result, or to x before it is rounded (coded_scales.h).
 * Where they depend on both, the depth comes in blocks that share one, each of
 * them with scales of its own for x, and is summed block by block. Levels that
 * are not whole are rounded: that is for one plane only.
 *
 * What bytes cannot hold, or the level has no product of bytes for, become
 * words: levels that are not whole in 13 bits. Scales that depend on both,
 * where rows run along memory, go into these as ratios to the largest of the
 * row's panel, and that one to the result.
 *
 * Weights for which neither works are decoded, and rounded anew.
 *
 * Codes of 8 bits along the depth are numbers already: where x has few rows,
 * and scales are not those of short blocks, they are multiplied as stored, if
 * the level has dots.
 */
#ifndef LB_PANELS_H
#define LB_PANELS_H

#include "core/core.h"
#include "kernels/dotbyte.h"
#include "matmul/coded_scales.h"
#include "matmul/product.h"
#include "matmul/row_slab.h"

typedef struct lb_panels {
    const lb_dotbyte *kernel;
    const lb_cpu *cpu;
    lb_scales_way scales;
    lb_dotbyte_codes codes;
    int planes;  /* of x */
    int mr;      /* rows of x that meet a panel of w together */
    int fields;  /* of a byte of codes */
    int in_turn; /* the depth comes in the order of so many; 1: as it is */
    int offset;  /* of bytes of w, as the kernel has them */
    float unit;  /* what 1 in w stands for, without scales */
    float sum;   /* words: what magnitudes of x that share a scale may add up
                  * to; 0: anything */
    int apart;   /* rows from slot to slot of 16 */
    /* Scales of x are multiplied with this power of 2, those of w divided by
     * it, so that both and the product with a sum are normal numbers as long
     * as x is. */
    float up;
    int64_t kc;    /* depth of a panel, */
    int64_t share; /* and of what shares scales in it */
    int64_t strip; /* rows of w that become panels together; if they run along
                    * memory in slots, see dotbyte.h */
    bool each;     /* what shares scales in a panel has those of w as well */
    bool ratios;   /* those of w are in words */
    bool staged;   /* a strip becomes quads, and these one panel at a time */
    bool decoded;  /* w is decoded and rounded, block by block of a row, */
    bool integers; /* or read as integers (lb_format), which gives the same */
} lb_panels;

enum {
    LB_PANELS_BYTES = 16 << 10, /* of a strip: in L1, beside rows of x */
    /* K that shares a scale where w is decoded: an error of 8e-3 on normal
     * data with bytes, 1.5e-4 with words. */
    LB_PANELS_SHARE_BYTES = 64,
    LB_PANELS_SHARE_WORDS = 128
};

/* For m rows of x and n of w. False: numbers of 16 bits are better, or needed.
 */
bool lb_panels_of(const lb_cpu *cpu, const lb_coded *c, int64_t m, int64_t n,
                  lb_precision precision, lb_panels *p);

/* For weights of any format, which are decoded. */
bool lb_panels_decoded(const lb_cpu *cpu, bool along, lb_precision precision,
                       lb_panels *p);

/* The first of the two that is possible. */
struct lb_weights;
bool lb_panels_for(const lb_product *p, const struct lb_weights *w,
                   const lb_cpu *cpu, lb_panels *to);

/* How many of a depth share scales, in a panel. */
static inline int64_t lb_panel_blocks(const lb_panels *p, int64_t depth)
{
    return lb_ceil_div(depth, p->share);
}

/* A depth as it is filled up. */
static inline int64_t lb_panel_steps(const lb_panels *p, int64_t depth)
{
    const int64_t piece = p->kernel->piece / p->kernel->x_size;
    const int64_t step = lb_max_i64(piece, LB_DOTBYTE_STEP);
    return lb_ceil_div(depth, step) * step;
}

/* Bytes from a panel of w of so much of the depth to the next. Powers of 2
 * would fall together in the cache. */
static inline int64_t lb_panel_apart(const lb_panels *p, int64_t depth)
{
    return p->kernel->nr * lb_panel_steps(p, depth) * p->kernel->size + 64;
}

/* ---- x: pack_x.c ------------------------------------------------------ */

/* Rows of a panel: for each block scales and starts (lb_dotbyte_x), then the
 * bytes of all. Bytes of memory, for so many of the depth. */
int64_t lb_pack_x_bytes(const lb_panels *p, int64_t rows, int64_t depth);
/* Floats of tmp, below. */
int64_t lb_pack_x_room(const lb_panels *p);
/* Rows [i, i + rows) of x, rows <= mr, from k on n <= kc of the depth, each
 * times its factor, if there are any. A row that is not finite has the scale
 * NaN. */
void lb_pack_x(const lb_panels *p, lb_row_slab *x, int64_t i, int rows,
               int64_t k, int64_t n, const float *factor, char *to, float *tmp);
/* All blocks of them. */
lb_dotbyte_x lb_pack_x_at(const lb_panels *p, char *at, int rows, int64_t n);

/* ---- w: pack_w.c --------------------------------------------------- */

typedef struct lb_pack_w {
    const lb_panels *p;
    lb_scales s;
    uint8_t *panel; /* a strip: panels of nr rows, or one of them, */
    float *ws;      /* and scales of its slots, for each block */
    int64_t scaled; /* the row that they begin with; -1: none, or they are not
                     * those of rows */
    uint8_t *quads; /* staged: a strip, */
    int64_t apart;  /* and bytes from 16 bytes of its lines to the next */
    uint8_t *lines; /* copied, where there are fewer than kernels take */
    float *read;
    /* Ratios: scales of all rows in a panel, block by block of them, as parts
     * of the largest of each. */
    float *scales, *largest;
    int16_t *ratio;
    int64_t ratio_k;    /* which panel; -1: none yet */
    int64_t ahead;      /* bytes, to codes that come next, */
    lb_dotbyte_ask ask; /* and their lines */
    /* Decoded: matrix number `batch` of a source, K along memory or not, and
     * room. */
    const lb_source *from;
    int64_t batch;
    bool along;
    float *tile, *turned;
    int8_t *code;  /* integers: of a row, */
    int8_t *digit; /* and bytes of LB_PACK_ROWS rows */
} lb_pack_w;

/* Places what `most` rows of a depth need at room, if that is given; returns
 * the bytes. */
size_t lb_pack_w_room(const lb_panels *p, const lb_coded *c, int64_t most,
                      int64_t depth, lb_pack_w *w, char *room);
/* pack_decoded.c: the parts of the above and below for weights that are
 * decoded. */
void lb_pack_decoded_room(lb_pack_w *w, char *room, size_t *used);
void lb_pack_decoded(lb_pack_w *w, int64_t j, int64_t rows, int64_t slots,
                     int64_t k, int64_t n);
/* Rows [j, j + n), of all of the depth, are what follows is about. */
void lb_pack_w_rows(lb_pack_w *w, int64_t j, int64_t n, int64_t depth);
/* Which row of a strip a slot is, the first of 16; the others are `apart` rows
 * from each other. */
static inline int64_t lb_panel_slot_row(const lb_panels *p, int64_t slot)
{
    const int64_t vector = slot / 16;
    return vector / p->apart * p->apart * 16 + vector % p->apart;
}

/* Slots of the strip that begins with row j, from k on n of the depth. Returns
 * how many there are: with some that are no rows, whose scales are 0, a
 * multiple of nr. */
int64_t lb_pack_w_strip(lb_pack_w *w, int64_t j, int64_t k, int64_t n);
/* The panel of nr of them, of which s is the first; until the next is asked
 * for. */
const uint8_t *lb_pack_w_panel(lb_pack_w *w, int64_t s, int64_t n);
/* The same strip as it lies, if kernels take it so. */
lb_dotbyte_lines lb_pack_w_lines(lb_pack_w *w, int64_t j, int64_t k, int64_t n);
/* Which strip comes after that of row j and depth k: its codes are asked for,
 * while so many groups of rows of x meet this one. */
void lb_pack_w_next(lb_pack_w *w, int64_t j, int64_t k, int64_t next_j,
                    int64_t next_k, int64_t groups);

#endif
