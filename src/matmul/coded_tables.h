/* coded_tables.h - a row or two of x as the tables of kernels/dottab.h, which
 * packed bits look up: those of all panels of a depth, made once and shared.
 */
#ifndef LB_CODED_TABLES_H
#define LB_CODED_TABLES_H

#include "kernels/dottab.h"
#include "matmul/int_panels.h"
#include "matmul/weights.h"

typedef struct lb_tables {
    lb_int_panels p;
    int64_t k, rows;       /* the depth, and rows of x */
    int64_t depth, panels; /* of a panel, and how many of these */
    /* Bytes of a panel's tables, those of rows side by side; of all that a
     * matrix has, heads at the end; */
    size_t panel, heads_at, all;
    /* and of room to make a panel: a few rows of it, what x is read to, and
     * scales. */
    size_t room, slab_at, scales_at;
} lb_tables;

/* Fills t, if these are bits that can be looked up, and so many that tables
 * are worth their making. */
bool lb_tables_of(const lb_product *p, const lb_weights *w, const lb_cpu *cpu,
                  lb_tables *t);
/* Whether so many bytes for each matrix are not too many to be shared. */
bool lb_tables_few(const lb_product *p, size_t bytes);
/* The bytes of each matrix where the depth runs across memory. */
size_t lb_tables_across_bytes(const lb_weights *w, const lb_tables *t);

/* Panels [first, end), of all that begin at `to`. room: t->room bytes, aligned
 * to 64. */
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
 * strips (coded_turn.h): `wide` numbers, zeros for rows that are not. And the
 * bytes of room for that. */
size_t lb_tables_scales_room(const lb_tables *t, const lb_coded *c, int64_t n);
void lb_tables_scales(const lb_tables *t, const lb_coded *c, int64_t j,
                      int64_t n, int64_t wide, float *to, char *room);

#endif
