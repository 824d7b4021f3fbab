/* coded_tables.h - a row or two of x as the tables of kernels/dottab.h, which
 * packed bits look up: those of all panels of a depth, made once and shared.
 */
#ifndef LB_CODED_TABLES_H
#define LB_CODED_TABLES_H

#include "kernels/dottab.h"
#include "prims/int_panels.h"
#include "prims/weights.h"

typedef struct lb_tables {
    lb_int_panels p;
    int64_t k, depth;     /* of a matrix, and of a panel; */
    int64_t panels, rows; /* how many of these, and rows of x */
    /* Bytes of a panel's tables, those of rows side by side; of all that a
     * matrix has, heads at the end; and of room to make a panel. */
    size_t panel, heads_at, all, room, slab_at, scales_at;
} lb_tables;

/* Whether these are bits that can be looked up, and so many that tables are
 * worth their making. */
bool lb_tables_fit(const lb_product *p, const lb_weights *w, const lb_cpu *cpu);

/* For panels of a depth that is at most LB_DOTTAB_KC. False: it does not fit.
 */
bool lb_tables_of(const lb_product *p, const lb_weights *w, const lb_cpu *cpu,
                  int64_t depth, lb_tables *t);

/* Panels [first, end), of all that begin at `to`. */
void lb_tables_make(const lb_tables *t, const lb_weights *w, int64_t batch,
                    int64_t first, int64_t end, char *to, char *room);

static inline int64_t lb_tables_depth(const lb_tables *t, int64_t panel)
{
    return lb_min_i64(t->depth, t->k - panel * t->depth);
}

static inline uint8_t *lb_tables_at(const lb_tables *t, char *all,
                                    int64_t panel)
{
    return (uint8_t *)all + (size_t)panel * t->panel;
}

static inline lb_dottab_head *lb_tables_head(const lb_tables *t, char *all,
                                             int64_t panel)
{
    return (lb_dottab_head *)(void *)(all + t->heads_at) + panel;
}

/* What results with rows [j, j + n) of w are multiplied with, in the order of
 * strips (coded_turn.h): `wide` numbers, zeros for rows that are not. */
size_t lb_tables_scales_room(const lb_tables *t, const lb_coded *c, int64_t n);
void lb_tables_scales(const lb_tables *t, const lb_coded *c, int64_t j,
                      int64_t n, int64_t wide, float *to, char *room);

#endif
