/* coded_tables.c - see coded_tables.h. */
#include "matmul/coded_tables.h"

#include "matmul/coded_turn.h"

enum {
    LEAST = 64,        /* rows of w, and depth, that are worth tables */
    MOST = 64 << 20,   /* bytes that are shared */
    KC = LB_DOTTAB_KC, /* depth of a panel, */
    EACH = 8,          /* which is filled up to a multiple of this */
    F = sizeof(float)
};

bool lb_tables_few(const lb_product *p, size_t bytes)
{
    return bytes <= (size_t)MOST / (size_t)p->batch;
}

bool lb_tables_of(const lb_product *p, const lb_weights *w, const lb_cpu *cpu,
                  lb_tables *t)
{
    const lb_coded *const c = &w->coded;
    if (p->precision < LB_PRECISION_FAST || !lb_dottab_for(cpu) ||
        c->bits != 1 || w->m > LB_DOTTAB_MR || w->n < LEAST || p->k < LEAST)
        return false;
    *t = (lb_tables){.k = p->k, .rows = w->m};
    if (!lb_int_panels_of(cpu, c, w->m, &t->p)) return false;
    if (!t->p.line || t->p.fine || t->p.scales.in_w) return false;
    t->depth = lb_min_i64(KC, lb_round_up(p->k, EACH));
    t->panels = lb_ceil_div(p->k, t->depth);
    t->panel = (size_t)(t->rows * t->depth / 4 * LB_DOTTAB_TABLE);
    size_t used = (size_t)t->panels * t->panel;
    t->heads_at = used;
    lb_carve(NULL, &used, t->panels * (int64_t)sizeof(lb_dottab_head));
    t->all = used;
    used = 0;
    lb_carve(NULL, &used, (t->rows + 2) * t->depth * F);
    t->slab_at = used;
    lb_carve(NULL, &used, lb_row_slab_floats(w->x, t->depth) * F);
    t->scales_at = used;
    lb_scales s;
    t->room = used + lb_scales_room(cpu, c, t->depth, 0, p->k, &s, NULL);
    return true;
}

/* Those of a row: n numbers from `numbers` on, each times its factor. */
static void make_row(const lb_tables *t, bool high_first, int64_t n,
                     const float *numbers, int64_t step, const float *factor,
                     uint8_t *to, float *scale, float *base, float *room)
{
    const lb_int_panels *const p = &t->p;
    const float *x = lb_line_up(numbers, step, n, factor, room + t->depth);
    const lb_int_row whole = lb_int_row_of(
        p->kernel->largest, (lb_int_bound){LB_DOTTAB_MOST_X, 0}, n, x, room);
    int32_t sum, low;
    lb_dottab_for(p->cpu)->tables(n, whole.x, whole.factor, high_first, to,
                                  t->rows * LB_DOTTAB_TABLE, &sum, &low);
    *scale = whole.scale;
    *base = (float)(p->least * (int64_t)sum + p->slope * (int64_t)low);
}

void lb_tables_make(const lb_tables *t, const lb_weights *w, int64_t batch,
                    int64_t first, int64_t end, char *to, char *room)
{
    const lb_cpu *const cpu = t->p.cpu;
    const lb_coded c = lb_coded_at(&w->coded, w->w, batch);
    float *const tmp = (float *)(void *)room;
    lb_row_slab x =
        lb_row_slab_of(w->x, cpu, batch, t->rows, room + t->slab_at);
    lb_scales s;
    lb_scales_room(cpu, &c, t->depth, 0, t->k, &s, room + t->scales_at);
    lb_scales_rows(&s, 0, 0, t->k); /* for those of the depth alone */
    /* Across, lines come from the lowest bit on however codes lie in a byte,
     * which strips take care of. */
    const bool high_first = c.along && c.high_first;
    for (int64_t at = first; at < end; at++) {
        const int64_t k = at * t->depth, n = lb_tables_depth(t, at);
        const lb_block from =
            lb_row_slab_get(&x, 0, t->rows, k, n, tmp + 2 * t->depth);
        const float *const factor = lb_scales_factor(&s, k, n);
        lb_dottab_head *const head = lb_tables_head(t, to, at);
        for (int64_t r = 0; r < t->rows; r++)
            make_row(t, high_first, n, (const float *)from.p + r * from.rs,
                     from.ks, factor,
                     lb_tables_at(t, to, at) + r * LB_DOTTAB_TABLE,
                     &head->scale[r], &head->base[r], tmp);
    }
}

size_t lb_tables_scales_room(const lb_tables *t, const lb_coded *c, int64_t n)
{
    lb_scales s;
    return lb_scales_room(t->p.cpu, c, t->depth, n, t->k, &s, NULL);
}

void lb_tables_scales(const lb_tables *t, const lb_coded *c, int64_t j,
                      int64_t n, int64_t wide, float *to, char *room)
{
    lb_scales s;
    lb_scales_room(t->p.cpu, c, t->depth, n, t->k, &s, room);
    lb_scales_rows(&s, j, n, t->k);
    for (int64_t i = 0; i < n; i++)
        s.row[i] = s.row[i] * t->p.unit * LB_INT_DOWN;
    lb_turn_strips(c, n, s.row, wide, to);
}
