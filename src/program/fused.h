/* fused.h - the loop over tiles that a group of nodes becomes.
 *
 * Built by fused.c, run by fused_run.c.
 */
#ifndef LB_FUSED_H
#define LB_FUSED_H

#include "program/program.h"

enum {
    FUSED_MOST_IN = 24, /* loads: an operand may be loaded as two dtypes */
    FUSED_MOST_OUT = 16 /* results */
};

/* How much of a value is stored: a whole tile, a single element, or one element
 * per row. The last two only if all users accept it, see lb_lanes.ones. */
typedef enum fused_extent {
    FUSED_WHOLE,
    FUSED_ONE,
    FUSED_ONE_PER_ROW
} fused_extent;

/* A value that is computed or loaded in the loop. */
typedef struct fused_local {
    lb_dtype dtype;
    lb_ctype ctype; /* of dtype */
    int64_t size;   /* bytes of an element of ctype */
    bool row;       /* one element per row */
    int slot;       /* index of its scratch tile; those of rows and of single
                * elements are separate */
    int out;        /* index of the result, or -1 */
    int uses;       /* remaining ones, while slots are assigned */
    int alias;      /* the local whose slot it shares, or -1 */
    int view; /* the operand of which it is a view in eager calls; or -1 */
    fused_extent extent;
} fused_local;

typedef enum fused_op {
    FUSED_LOAD,
    FUSED_LANES,
    FUSED_CONVERT,
    FUSED_SAME,
    FUSED_REPEAT,
    FUSED_ROWS
} fused_op;

typedef struct fused_instr {
    fused_op op;
    int in[3], out; /* locals; FUSED_LOAD: in[0] is the operand */
    const lb_fusion *fusion;
    bool round; /* the dtype is narrower than the compute type */
} fused_instr;

/* An operand, and the dtype that its elements are rounded to when read. */
typedef struct fused_operand {
    prog_value *v;
    lb_dtype label;
    bool row;
    const int *axis;   /* not NULL: it is broadcast, see LB_FUSE_REPEAT */
    bool stays_packed; /* a view of it leaves the group or is converted: in an
                        * eager call it would stay packed */
} fused_operand;

struct prog_fused {
    prog_group *g;
    fused_operand in[FUSED_MOST_IN];
    prog_value *out[FUSED_MOST_OUT];
    int out_local[FUSED_MOST_OUT];
    fused_instr *code;
    fused_local *locals;
    int n_in, n_out, n_code, n_locals;
    int work; /* instructions that are neither loads nor aliases */
    int slots, row_slots;
    size_t wide; /* bytes of the widest compute type */
};

/* Whether a tile of one dtype can be used as the other without conversion: same
 * compute type, and no rounding. */
static inline bool lb_keeps_tile(lb_dtype from, lb_dtype to)
{
    return from == to || (lb_ctype_of(from) == lb_ctype_of(to) &&
                          lb_dtype_size(to) > lb_dtype_size(from));
}

/* Whether it uses a slot for rows. */
static inline bool lb_in_rows(const fused_local *l)
{
    return l->row || l->extent == FUSED_ONE;
}

#endif
