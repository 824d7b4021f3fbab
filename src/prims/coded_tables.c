/* coded_tables.c - see coded_tables.h. */
#include "prims/coded_tables.h"

#include "prims/coded_turn.h"

enum {
    LEAST = 64,       /* rows of w, and depth, that are worth tables */
    MOST_X = 1 << 20, /* numbers of x, whose tables take eight times as much */
    F = sizeof(float)
};

bool lb_tables_fit(const lb_product *p, const lb_weights *w, const lb_cpu *cpu)
{
    lb_int_panels q;
    return p->precision >= LB_PRECISION_FAST && lb_dottab_for(cpu) &&
           w->coded.bits == 1 && w->m <= LB_DOTTAB_MR && w->n >= LEAST &&
           p->k >= LEAST && p->k <= MOST_X / (w->m * p->batch) &&
           lb_int_panels_of(cpu, &w->coded, w->m, &q) && q.line && !q.fine &&
           !q.scales.in_w;
}

bool lb_tables_of(const lb_product *p, const lb_weights *w, const lb_cpu *cpu,
                  int64_t depth, lb_tables *t)
{
    lb_scales s;
    *t = (lb_tables){.k = p->k, .depth = depth, .rows = w->m};
    if (!lb_int_panels_of(cpu, &w->coded, w->m, &t->p)) return false;
    t->panels = lb_ceil_div(p->k, depth);
    t->panel = (size_t)(t->rows * depth / 4 * LB_DOTTAB_TABLE);
    size_t used = 0;
    lb_carve(NULL, &used, t->panels * (int64_t)t->panel);
    t->heads_at = used;
    lb_carve(NULL, &used, t->panels * (int64_t)sizeof(lb_dottab_head));
    t->all = used;
    used = 0;
    lb_carve(NULL, &used, (t->rows + 2) * depth * F);
    t->slab_at = used;
    lb_carve(NULL, &used, lb_row_slab_floats(w->x, depth) * F);
    t->scales_at = used;
    t->room = used + lb_scales_room(cpu, &w->coded, depth, 0, p->k, &s, NULL);
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
    float *const rows = (float *)(void *)room;
    lb_row_slab x =
        lb_row_slab_of(w->x, cpu, batch, t->rows, room + t->slab_at);
    lb_scales s;
    lb_scales_room(cpu, &c, t->depth, 0, t->k, &s, room + t->scales_at);
    lb_scales_rows(&s, 0, 0, t->k);
    for (int64_t at = first; at < end; at++) {
        const int64_t k = at * t->depth, n = lb_tables_depth(t, at);
        const lb_block from =
            lb_row_slab_get(&x, 0, t->rows, k, n, rows + 2 * t->depth);
        const float *const factor = lb_scales_factor(&s, k, n);
        lb_dottab_head *const head = lb_tables_head(t, to, at);
        for (int64_t r = 0; r < t->rows; r++)
            make_row(t, c.along && c.high_first, n,
                     (const float *)from.p + r * from.rs, from.ks, factor,
                     lb_tables_at(t, to, at) + r * LB_DOTTAB_TABLE,
                     &head->scale[r], &head->base[r], rows);
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
