/* fused.c - several nodes as one loop over tiles.
 *
 * A tile of each value stays in the L1 or L2 cache between the nodes:
 *
 *     for each tile   load   tiles of the operands, decoded if packed
 *                     run    the nodes in order; each result is rounded to its
 *                            dtype, as if it had been stored
 *                     store  the values that leave the group
 *
 * With a reduction, a tile consists of whole rows. The reduction yields one
 * element per row; REPEAT broadcasts such values to rows again. No value
 * depends on how the elements are divided into tiles, so results do not either.
 */
#include "program/fused.h"

#include <string.h>

/* ---- building ------------------------------------------------------------ */

typedef struct builder {
    lb_program *p;
    prog_group *g;
    prog_fused *f;
    int room; /* capacity of code and locals */
} builder;

static int new_local(builder *b, lb_dtype dtype, bool row)
{
    prog_fused *f = b->f;
    const lb_ctype c = lb_ctype_of(dtype);
    const size_t size = lb_ctype_size(c);
    if (size > f->wide) f->wide = size;
    f->locals[f->n_locals] = (fused_local){.dtype = dtype,
                                           .ctype = c,
                                           .size = (int64_t)size,
                                           .row = row,
                                           .slot = -1,
                                           .out = -1,
                                           .alias = -1,
                                           .view = -1};
    return f->n_locals++;
}

static fused_instr *emit(builder *b, fused_op op, int out)
{
    fused_instr *i = &b->f->code[b->f->n_code++];
    const lb_dtype d = b->f->locals[out].dtype;
    *i = (fused_instr){.op = op,
                       .in = {-1, -1, -1},
                       .out = out,
                       .round =
                           lb_dtype_size(d) < lb_ctype_size(lb_ctype_of(d))};
    return i;
}

/* The local of an operand from outside of the group; -1: too many. */
static int load(builder *b, prog_value *v, lb_dtype label, bool row,
                const int *axis)
{
    prog_fused *f = b->f;
    int k = 0;
    for (; k < f->n_in; k++)
        if (f->in[k].v == v && f->in[k].label == label && f->in[k].row == row &&
            f->in[k].axis == axis)
            break;
    if (k == f->n_in) {
        if (f->n_in == FUSED_MOST_IN) return -1;
        f->in[f->n_in++] = (fused_operand){v, label, row, axis, false};
        const size_t size = lb_ctype_size(lb_ctype_of(v->dtype));
        if (size > f->wide)
            f->wide = size; /* it is read in its own dtype first */
    } else {                /* loaded already */
        for (int i = 0; i < f->n_code; i++)
            if (f->code[i].op == FUSED_LOAD && f->code[i].in[0] == k)
                return f->code[i].out;
    }
    fused_instr *i = emit(b, FUSED_LOAD, new_local(b, label, row));
    i->in[0] = k;
    f->locals[i->out].view = k;
    return i->out;
}

static int repeated(builder *b, int from)
{
    const int to = new_local(b, b->f->locals[from].dtype, false);
    emit(b, FUSED_REPEAT, to)->in[0] = from;
    return to;
}

static bool is_inside(const builder *b, const prog_value *v)
{
    return v->by && v->by->group == b->g;
}

/* The local of a node's operand, seen as elements of the node's result. */
static int operand_of(builder *b, const prog_node *node, int k, bool row)
{
    prog_value *v = node->in[k];
    if (!is_inside(b, v)) return load(b, v, v->dtype, row, NULL);
    return b->f->locals[v->local].row && !row ? repeated(b, v->local)
                                              : v->local;
}

/* A broadcast operand from outside of the group: one element per row, or any
 * axes. */
static int load_repeated(builder *b, const prog_node *node)
{
    prog_value *v = node->in[0];
    const int *axis = node->fusion.axis;
    bool of_rows = b->g->lead > 0;
    for (int k = 0; k < v->shape.rank; k++)
        of_rows = of_rows && (axis[k] < b->g->lead || v->shape.dim[k] == 1);
    const int l = load(b, v, node->out->dtype, of_rows, axis);
    return of_rows && l >= 0 ? repeated(b, l) : l;
}

static bool build_node(builder *b, const prog_node *node)
{
    const lb_fusion *how = &node->fusion;
    const bool full = lb_shape_equal(&node->out->shape, &b->g->shape);
    const bool row = !full;
    const int last = node->n_in - 1;
    int in[3] = {-1, -1, -1};
    switch (how->kind) {
    case LB_FUSE_LANES:
        for (int k = 0; k < node->n_in; k++)
            if ((in[k] = operand_of(b, node, k, row)) < 0) return false;
        break;
    case LB_FUSE_CONVERT: /* an operand from outside is read as that dtype */
        in[0] = is_inside(b, node->in[0])
                    ? operand_of(b, node, 0, row)
                    : load(b, node->in[0], node->out->dtype, row, NULL);
        break;
    case LB_FUSE_SAME:
        in[0] = operand_of(b, node, last, row);
        break;
    case LB_FUSE_REPEAT:
        if (!is_inside(b, node->in[0])) {
            in[0] = load_repeated(b, node);
            break;
        }
        in[0] = node->in[0]->local;
        break;
    default:
        in[0] = operand_of(b, node, 0, false);
    }
    if (in[0] < 0) return false;
    static const fused_op op[] = {
        [LB_FUSE_LANES] = FUSED_LANES, [LB_FUSE_CONVERT] = FUSED_CONVERT,
        [LB_FUSE_SAME] = FUSED_SAME,   [LB_FUSE_REPEAT] = FUSED_REPEAT,
        [LB_FUSE_ROWS] = FUSED_ROWS,
    };
    const bool is_loaded =
        how->kind == LB_FUSE_REPEAT && !is_inside(b, node->in[0]);
    fused_instr *i = emit(b, is_loaded ? FUSED_SAME : op[how->kind],
                          new_local(b, node->out->dtype, row));
    memcpy(i->in, in, sizeof in);
    i->fusion = how;
    node->out->local = i->out;
    prog_fused *f = b->f;
    const bool views = how->kind == LB_FUSE_CONVERT ||
                       (how->kind == LB_FUSE_SAME && node->prim->move);
    const int view = views ? f->locals[in[0]].view : -1;
    f->locals[i->out].view = view;
    if (view >= 0 && (node->out->leaves || (how->kind == LB_FUSE_CONVERT &&
                                            is_inside(b, node->in[0]))))
        f->in[view].stays_packed = true;
    if (!node->out->leaves) return true;
    if (f->n_out == FUSED_MOST_OUT) return false;
    f->locals[i->out].out = f->n_out;
    f->out_local[f->n_out] = i->out;
    f->out[f->n_out++] = node->out;
    return true;
}

static int root(const prog_fused *f, int l)
{
    while (f->locals[l].alias >= 0)
        l = f->locals[l].alias;
    return l;
}

static bool is_loaded(const prog_fused *f, int l)
{
    for (int k = 0; k < f->n_code; k++)
        if (f->code[k].out == l) return f->code[k].op == FUSED_LOAD;
    return false;
}

/* Values whose elements are those of another one. */
static void find_aliases(prog_fused *f)
{
    for (int k = 0; k < f->n_code; k++) {
        const fused_instr *i = &f->code[k];
        fused_local *out = &f->locals[i->out];
        const bool alias =
            (i->op == FUSED_SAME ||
             (i->op == FUSED_CONVERT &&
              lb_keeps_tile(f->locals[i->in[0]].dtype, out->dtype))) &&
            out->out < 0;
        if (alias) out->alias = i->in[0];
        f->work += i->op != FUSED_LOAD && !alias;
    }
}

/* ---- single elements ----------------------------------------------------- */

/* An operand of which every element is the same one. */
static bool is_single(const fused_operand *x)
{
    const lb_array *a = x->v->constant;
    if (lb_shape_size(&x->v->shape) == 1) return true;
    for (int k = 0; a && k < a->shape.rank; k++)
        if (a->shape.dim[k] != 1 && a->stride[k]) return false;
    return a && lb_size(a) > 0;
}

/* Lanes take single elements where their primitive allows it, as long as one
 * operand is a whole tile. */
static void lanes_need(prog_fused *f, const fused_instr *i)
{
    int whole = 0, n = 0;
    for (; n < 3 && i->in[n] >= 0; n++)
        whole += f->locals[root(f, i->in[n])].extent == FUSED_WHOLE;
    for (int k = 0; k < n; k++) {
        fused_local *in = &f->locals[root(f, i->in[k])];
        if (in->extent == FUSED_WHOLE) continue;
        if (whole && i->fusion->ones >> k & 1) continue;
        in->extent = FUSED_WHOLE;
        whole++;
    }
}

/* First all candidates are single elements; then those with another use become
 * whole, which never invalidates an earlier instruction. */
static void find_extents(prog_fused *f)
{
    for (int k = 0; k < f->n_code; k++) {
        const fused_instr *i = &f->code[k];
        fused_local *out = &f->locals[i->out];
        if (i->op == FUSED_LOAD && is_single(&f->in[i->in[0]]))
            out->extent = FUSED_ONE;
        else if (i->op == FUSED_REPEAT && out->out < 0)
            out->extent = FUSED_ONE_PER_ROW;
    }
    for (int k = 0; k < f->n_code; k++) {
        const fused_instr *i = &f->code[k];
        if (i->op == FUSED_LANES)
            lanes_need(f, i);
        else if (i->op != FUSED_LOAD && f->locals[i->out].alias < 0)
            f->locals[root(f, i->in[0])].extent = FUSED_WHOLE;
    }
}

/* ---- slots --------------------------------------------------------------- */

/* Slots of operands are theirs alone, since a tile may serve the next one as
 * well; those of other values are used again after their last use. */
static void assign_slots(prog_fused *f)
{
    int free_slot[2][64], n_free[2] = {0, 0},
                          *count[2] = {&f->slots, &f->row_slots};
    for (int k = 0; k < f->n_code; k++) {
        fused_instr *i = &f->code[k];
        if (i->op == FUSED_LOAD) continue;
        for (int j = 0; j < 3; j++)
            if (i->in[j] >= 0) f->locals[root(f, i->in[j])].uses++;
        if (f->locals[i->out].alias >= 0) f->locals[root(f, i->out)].uses++;
    }
    for (int k = 0; k < f->n_code; k++) {
        const fused_instr *i = &f->code[k];
        fused_local *out = &f->locals[i->out];
        const int kind = lb_in_rows(out);
        if (out->alias < 0)
            out->slot = i->op != FUSED_LOAD && n_free[kind]
                            ? free_slot[kind][--n_free[kind]]
                            : (*count[kind])++;
        for (int j = 0; j < 3 && i->op != FUSED_LOAD; j++) {
            if (i->in[j] < 0) continue;
            const int from = root(f, i->in[j]);
            fused_local *in = &f->locals[from];
            const int of = lb_in_rows(in);
            if (out->extent == FUSED_ONE_PER_ROW) continue; /* out is in */
            if (--in->uses || from == root(f, i->out)) continue;
            if (!is_loaded(f, from) && n_free[of] < 64)
                free_slot[of][n_free[of]++] = in->slot;
        }
        if (out->alias >= 0)
            f->locals[root(f, i->out)].uses--;
        else if (i->op != FUSED_LOAD && !out->uses && n_free[kind] < 64)
            free_slot[kind][n_free[kind]++] = out->slot; /* only stored */
    }
}

prog_fused *lb_fuse_group(lb_program *p, prog_group *g, bool *failed)
{
    prog_memory *m = &p->memory;
    const size_t n = (size_t)g->n;
    builder b = {.p = p, .g = g, .room = (int)(7 * n)};
    *failed = true;
    b.f = lb_prog_alloc(m, sizeof *b.f);
    if (!b.f) return NULL;
    b.f->g = g;
    b.f->code = lb_prog_alloc(m, (size_t)b.room * sizeof *b.f->code);
    b.f->locals = lb_prog_alloc(m, (size_t)b.room * sizeof *b.f->locals);
    if (!b.f->code || !b.f->locals) return NULL;
    *failed = false;
    for (const prog_node *node = g->first; node; node = node->next)
        if (!build_node(&b, node)) return NULL;
    find_aliases(b.f);
    find_extents(b.f);
    assign_slots(b.f);
    return b.f;
}
