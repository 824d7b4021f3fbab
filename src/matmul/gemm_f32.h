/* gemm_f32.h - the parts of the f32 gemm: its loops (gemm_f32.c), and w as
 * tiles want it (pack_w_f32.c).
 */
#ifndef LB_GEMM_F32_H
#define LB_GEMM_F32_H

#include "kernels/gemm.h"
#include "kernels/gemm_codes.h"
#include "matmul/weights.h"

/* How a product is divided. */
typedef struct {
    lb_weights w; /* its codes, if it is known where they are (bits > 0) */
    const lb_gemm_kernel *kernel;
    bool across; /* w runs across the depth, .. */
    bool read;   /* .. and lines of it are read to rows that tiles take */
    const lb_gemm_codes *panel; /* makes panels of codes, either way; or NULL */
    bool whole;                 /* x is packed in phase 0, */
    int64_t matrices;           /* so many of them */
    int64_t mb, nb;             /* sizes of a unit */
    int64_t bm, bn;             /* units along each axis */
    int64_t widest;             /* columns of a block: of some units in a row */
    int64_t piece;              /* rows of x .. */
    int64_t deep;               /* .. and depth that go together: panels */
    int64_t strip;              /* columns of w that are read together */
    bool kept;                  /* panels of all strips of w are, not of one */
    int64_t step;               /* floats of w from column to column */
    int64_t codes_at;           /* floats of scales before lines of codes */
    int64_t b_at, c_at, put_at, tmp_at, n; /* scratch, in floats; x, if it is
                                            * not whole, is at 0 */
} lb_f32_grid;

/* Codes become panels, and run across the depth. */
static inline bool lb_f32_lines(const lb_f32_grid *g)
{
    return g->panel && !g->w.coded.along;
}

/* A block of the result: some rows of x by some of w. */
typedef struct {
    const lb_product *p;
    const lb_f32_grid *g;
    const lb_cpu *cpu;
    int64_t batch, i, m, j, n; /* rows of x and of w */
    lb_coded codes;            /* of this batch, if bits > 0 */
    float *a, *b, *tmp;
    float *c;
    int64_t ldc;
} lb_f32_block;

/* Bytes of lines of codes that are copied together. */
enum { LB_F32_LINE = 64 };

/* Columns [j, j + n) of the block, where w runs along the depth: numbers, or
 * codes. */
typedef struct {
    int64_t j, n, k;
    bool made; /* its panel was made with an earlier piece */
    lb_block w;
    lb_gemm_rows codes;
} lb_f32_strip;

/* Lines of w that are no codes, depth [k, k + kc), to where tiles read them. */
void lb_f32_read_lines(const lb_f32_block *u, int64_t k, int64_t kc);
/* Columns [j, j + n) of the block, depth [k, k + depth): to be packed. */
lb_f32_strip lb_f32_strip_read(const lb_f32_block *u, int64_t j, int64_t n,
                               int64_t k, int64_t depth);
/* What is packed together of it, of depth [kk, kk + kc). */
void lb_f32_strip_pack(const lb_f32_block *u, const lb_f32_strip *s, int64_t kk,
                       int64_t kc, float *to);
/* What will be needed next. */
lb_gemm_soon lb_f32_strip_soon(const lb_f32_block *u, const lb_f32_strip *s,
                               int64_t kk, int64_t kc);

#endif
