/* pack_decoded.c - weights of any format as panels: they are decoded to f32 and
 * rounded, with a scale for each row and block of K; see panels.h.
 */
#include <string.h>

#include "kernels/pack_f32.h"
#include "kernels/pack_integers.h"
#include "kernels/turn.h"
#include "matmul/panels.h"

_Static_assert((int)LB_PANELS_SHARE_BYTES == (int)LB_PACK_BLOCK,
               "blocks of integers share a scale, and one of x");

enum {
    MOST_BLOCK = 256,    /* integers: values that are read together, */
    LEAST_RUN = 16,      /* and that share a scale */
    ROWS = LB_PACK_ROWS, /* that are packed together, and decoded together if K
                          * runs along memory; else */
    COLUMNS = 256,       /* that many are: runs that are worth decoding */
    F = sizeof(float)
};

bool lb_panels_decoded(const lb_cpu *cpu, bool along, lb_precision precision,
                       lb_panels *p)
{
    *p = (lb_panels){
        .cpu = cpu,
        .fields = 1,
        .in_turn = 1,
        .apart = 1,
        .planes = 1,
        .unit = 1,
        .kc = LB_DOTBYTE_KC,
        .each = true,
        .decoded = true,
    };
    const lb_dotbyte_need need = {.most_w = 255, .bits = 8, .along = true};
    p->kernel =
        precision == LB_PRECISION_FASTEST ? lb_dotbyte_for(cpu, &need) : NULL;
    if (p->kernel) {
        p->offset = 128 - p->kernel->bias;
        p->share = LB_PANELS_SHARE_BYTES;
        p->up = 0x1p6f;
    } else {
        p->kernel = lb_dotword_for(cpu);
        p->share = LB_PANELS_SHARE_WORDS;
        p->up = 0x1p14f;
        p->sum = (float)LB_DOTWORD_SUM;
    }
    p->strip = along ? lb_max_i64(LB_PANELS_BYTES / p->kc / p->kernel->size,
                                  p->kernel->nr)
                     : COLUMNS;
    return true;
}

/* Rows and depth that are decoded together. */
static int64_t rows_of(const lb_pack_w *w)
{
    return w->along ? ROWS : w->p->strip;
}
static int64_t depth_of(const lb_pack_w *w)
{
    return w->along ? w->p->kc : w->p->share;
}

void lb_pack_decoded_room(lb_pack_w *w, char *room, size_t *used)
{
    /* The last rows may be fewer than ROWS, but as many are read. */
    w->tile = lb_carve(room, used, (rows_of(w) * depth_of(w) + ROWS) * F);
    w->turned = lb_carve(room, used, w->along ? ROWS * w->p->share * F : 0);
    w->code = lb_carve(room, used, w->p->integers ? w->p->kc + MOST_BLOCK : 0);
    w->digit = lb_carve(room, used, w->p->integers ? ROWS * w->p->kc : 0);
}

/* ROWS rows from `row` of the strip on, side by side in x, as a block at `at`
 * of a panel that is n deep. */
static void pack_block(const lb_pack_w *w, const float *x, int64_t step,
                       int64_t row, int64_t slots, int64_t at, int64_t deep,
                       int64_t n)
{
    const lb_panels *p = w->p;
    const lb_pack_f32 *pack = lb_pack_f32_for(p->cpu);
    const int64_t nr = p->kernel->nr;
    uint8_t *const to = w->panel + row / nr * lb_panel_apart(p, n) +
                        row % nr * 4 + at * nr * p->kernel->size;
    float *const scale = w->ws + at / p->share * slots + row;
    if (p->kernel->size == 1)
        pack->bytes(x, step, deep, p->offset, to, nr * 4, scale);
    else
        pack->words(x, step, deep, to, nr * 4, scale);
}

/* Up to ROWS rows that are `step` floats apart. */
static void pack_rows_along(const lb_pack_w *w, const float *x, int64_t step,
                            int64_t rows, int64_t row, int64_t slots, int64_t n)
{
    const int64_t share = w->p->share;
    for (int64_t at = 0; at < n; at += share) {
        const int64_t deep = lb_min_i64(share, n - at);
        lb_turn(F, (const char *)(x + at), step * F, (char *)w->turned,
                ROWS * F, rows, deep);
        pack_block(w, w->turned, ROWS, row, slots, at, deep, n);
    }
}

/* Up to ROWS rows from j on, which are those from `row` on of the strip. */
static void pack_integers(const lb_pack_w *w, int64_t j, int64_t rows,
                          int64_t row, int64_t slots, int64_t k, int64_t n)
{
    static const lb_dotbyte_codes codes = {.bits = 8};
    enum { SCALES = (LB_DOTBYTE_KC + MOST_BLOCK) / LEAST_RUN };
    const lb_panels *p = w->p;
    const lb_matrix *m = w->from->matrix;
    const lb_store *s = m->a->store;
    const lb_integers *of = s->fmt->integers;
    const int64_t nr = p->kernel->nr, kc = lb_round_up(p->kc, LB_PACK_BLOCK);
    const int64_t first =
        m->a->offset + lb_dims_offset(&m->batch, w->batch) + k;
    for (int64_t r = 0; r < rows; r++) {
        float scale[SCALES], bias[SCALES];
        float block[LB_DOTBYTE_KC / LB_PACK_BLOCK];
        of->read(p->cpu, s, first + (j + r) * m->row.stride[0], n, w->code,
                 scale, of->bias ? bias : NULL);
        lb_pack_integers_for(p->cpu)(w->code, scale, of->bias ? bias : NULL,
                                     of->run, n, w->digit + r * kc, block);
        for (int64_t b = 0; b * LB_PACK_BLOCK < n; b++)
            w->ws[b * slots + row + r] = block[b];
    }
    p->kernel->along(&codes, (const uint8_t *)w->digit, kc, n, 0,
                     w->panel + row / nr * lb_panel_apart(p, n) + row % nr * 4);
}

/* Scales as tiles want them; 0 for slots that are no rows. */
static void finish_scales(const lb_pack_w *w, int64_t rows, int64_t slots,
                          int64_t n)
{
    for (int64_t b = 0; b < lb_panel_blocks(w->p, n); b++)
        for (int64_t s = 0; s < slots; s++)
            w->ws[b * slots + s] =
                s < rows ? w->ws[b * slots + s] / w->p->up : 0;
}

void lb_pack_decoded(lb_pack_w *w, int64_t j, int64_t rows, int64_t slots,
                     int64_t k, int64_t n)
{
    const lb_cpu *cpu = w->p->cpu;
    const int64_t step = depth_of(w);
    if (w->p->integers) {
        for (int64_t r = 0; r < rows; r += ROWS)
            pack_integers(w, j + r, lb_min_i64(ROWS, rows - r), r, slots, k, n);
        finish_scales(w, rows, slots, n);
        return;
    }
    for (int64_t at = 0; at < n; at += step) {
        const int64_t deep = lb_min_i64(step, n - at);
        for (int64_t r = 0; r < rows; r += rows_of(w)) {
            const int64_t some = lb_min_i64(rows_of(w), rows - r);
            const lb_block b = w->from->get(w->from, cpu, w->batch, j + r, some,
                                            k + at, deep, w->tile);
            const float *x = b.p;
            memset(w->tile + some * deep, 0, ROWS * F);
            if (w->along) {
                pack_rows_along(w, x, b.rs, some, r, slots, n);
                continue;
            }
            for (int64_t i = 0; i < some; i += ROWS)
                pack_block(w, x + i, b.ks, i, slots, at, deep, n);
        }
    }
    finish_scales(w, rows, slots, n);
}
