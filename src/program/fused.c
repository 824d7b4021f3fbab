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
#include <stdio.h>
#include <string.h>

#include "kernels/convert.h"
#include "program/program.h"

enum {
    MOST_IN = 24,   /* loads: an operand may be loaded as two dtypes */
    MOST_OUT = 16,  /* results */
    UNIT = 16,      /* tiles: less work is not worth another thread */
    ROW_TILE = 2048 /* elements of a tile of several short rows */
};

/* A value that is computed or loaded in the loop. */
typedef struct local {
    lb_dtype dtype;
    bool row;  /* one element per row */
    int slot;  /* index of its scratch tile; those of rows are separate */
    int out;   /* index of the result, or -1 */
    int uses;  /* remaining ones, while slots are assigned */
    int alias; /* the local whose slot it shares, or -1 */
    int view;  /* the operand of which it is a view in eager calls; or -1 */
} local;

typedef enum { LOAD, LANES, CONVERT, SAME, REPEAT, ROWS } fused_op;

typedef struct instr {
    fused_op op;
    int in[3], out; /* locals; LOAD: in[0] is the operand */
    const lb_fusion *fusion;
    bool round; /* the dtype is narrower than the compute type */
} instr;

/* An operand, and the dtype that its elements are rounded to when read. */
typedef struct operand {
    prog_value *v;
    lb_dtype label;
    bool row;
    const int *axis;   /* not NULL: it is broadcast, see LB_FUSE_REPEAT */
    bool stays_packed; /* a view of it leaves the group or is converted: in an
                        * eager call it would stay packed */
} operand;

struct prog_fused {
    prog_group *g;
    operand in[MOST_IN];
    prog_value *out[MOST_OUT];
    int out_local[MOST_OUT];
    instr *code;
    local *locals;
    int n_in, n_out, n_code, n_locals;
    int slots, row_slots;
    size_t wide; /* bytes of the widest compute type */
};

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
    const size_t size = lb_ctype_size(lb_ctype_of(dtype));
    if (size > f->wide) f->wide = size;
    f->locals[f->n_locals] = (local){.dtype = dtype,
                                     .row = row,
                                     .slot = -1,
                                     .out = -1,
                                     .alias = -1,
                                     .view = -1};
    return f->n_locals++;
}

static instr *emit(builder *b, fused_op op, int out)
{
    instr *i = &b->f->code[b->f->n_code++];
    const lb_dtype d = b->f->locals[out].dtype;
    *i = (instr){.op = op,
                 .in = {-1, -1, -1},
                 .out = out,
                 .round = lb_dtype_size(d) < lb_ctype_size(lb_ctype_of(d))};
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
        if (f->n_in == MOST_IN) return -1;
        f->in[f->n_in++] = (operand){v, label, row, axis, false};
        const size_t size = lb_ctype_size(lb_ctype_of(v->dtype));
        if (size > f->wide)
            f->wide = size; /* it is read in its own dtype first */
    } else {                /* loaded already */
        for (int i = 0; i < f->n_code; i++)
            if (f->code[i].op == LOAD && f->code[i].in[0] == k)
                return f->code[i].out;
    }
    instr *i = emit(b, LOAD, new_local(b, label, row));
    i->in[0] = k;
    f->locals[i->out].view = k;
    return i->out;
}

static int repeated(builder *b, int from)
{
    const int to = new_local(b, b->f->locals[from].dtype, false);
    emit(b, REPEAT, to)->in[0] = from;
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
            in[0] = load(b, node->in[0], node->out->dtype, false, how->axis);
            break;
        }
        in[0] = node->in[0]->local;
        break;
    default:
        in[0] = operand_of(b, node, 0, false);
    }
    if (in[0] < 0) return false;
    static const fused_op op[] = {
        [LB_FUSE_LANES] = LANES, [LB_FUSE_CONVERT] = CONVERT,
        [LB_FUSE_SAME] = SAME,   [LB_FUSE_REPEAT] = REPEAT,
        [LB_FUSE_ROWS] = ROWS,
    };
    const bool is_loaded =
        how->kind == LB_FUSE_REPEAT && !is_inside(b, node->in[0]);
    instr *i = emit(b, is_loaded ? SAME : op[how->kind],
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
    if (f->n_out == MOST_OUT) return false;
    f->locals[i->out].out = f->n_out;
    f->out_local[f->n_out] = i->out;
    f->out[f->n_out++] = node->out;
    return true;
}

/* ---- slots --------------------------------------------------------------- */

/* Whether a tile of one dtype can be used as the other without conversion: same
 * compute type, and no rounding. */
static bool keeps_tile(lb_dtype from, lb_dtype to)
{
    return from == to || (lb_ctype_of(from) == lb_ctype_of(to) &&
                          lb_dtype_size(to) > lb_dtype_size(from));
}

static int root(const prog_fused *f, int l)
{
    while (f->locals[l].alias >= 0)
        l = f->locals[l].alias;
    return l;
}

/* Slots of operands are not shared, because a loaded tile may serve the next
 * iteration too. Those of other values are reused after their last use. */
static void assign_slots(prog_fused *f)
{
    int free_slot[2][64], n_free[2] = {0, 0},
                          *count[2] = {&f->slots, &f->row_slots};
    for (int k = 0; k < f->n_code; k++) {
        instr *i = &f->code[k];
        local *out = &f->locals[i->out];
        const bool alias = i->op == SAME ||
                           (i->op == CONVERT &&
                            keeps_tile(f->locals[i->in[0]].dtype, out->dtype));
        if (alias && out->out < 0) out->alias = i->in[0];
        if (i->op == LOAD) continue;
        for (int j = 0; j < 3; j++)
            if (i->in[j] >= 0) f->locals[root(f, i->in[j])].uses++;
        if (out->alias >= 0) f->locals[root(f, i->out)].uses++;
    }
    for (int k = 0; k < f->n_code; k++) {
        const instr *i = &f->code[k];
        local *out = &f->locals[i->out];
        const int kind = out->row;
        if (out->alias < 0)
            out->slot = i->op != LOAD && n_free[kind]
                            ? free_slot[kind][--n_free[kind]]
                            : (*count[kind])++;
        for (int j = 0; j < 3 && i->op != LOAD; j++) {
            if (i->in[j] < 0) continue;
            local *in = &f->locals[root(f, i->in[j])];
            if (--in->uses || root(f, i->in[j]) == root(f, i->out)) continue;
            bool loaded = false;
            for (int m = 0; m < f->n_code && !loaded; m++)
                loaded = f->code[m].op == LOAD &&
                         f->code[m].out == root(f, i->in[j]);
            if (!loaded && n_free[in->row] < 64)
                free_slot[in->row][n_free[in->row]++] = in->slot;
        }
        if (out->alias >= 0)
            f->locals[root(f, i->out)].uses--;
        else if (i->op != LOAD && !out->uses && n_free[kind] < 64)
            free_slot[kind][n_free[kind]++] = out->slot; /* a result only */
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
    assign_slots(b.f);
    return b.f;
}

/* ---- running ------------------------------------------------------------- */

/* One run: views of operands and results with merged axes; axes from `lead` on
 * are reduced. */
typedef struct job {
    const prog_fused *f;
    const lb_cpu *cpu;
    lb_array in[MOST_IN], out[MOST_OUT];
    bool still[MOST_IN];         /* every tile has the same elements */
    const char *direct[MOST_IN]; /* elements of a row-major leaf, or NULL */
    lb_shape shape;
    int lead; /* merged axes before the reduced ones; -1: no reduction */
    int64_t cols;
    lb_tiling tiling;
    int64_t unit; /* consecutive tiles per unit of work */
    size_t slot_bytes, row_bytes;
} job;

static int64_t stride_of(const job *j, const lb_array *const *in, int i, int k)
{
    const lb_array *a = in[i];
    const int *axis = j->f->in[i].axis;
    for (int m = 0; axis && m < a->shape.rank; m++)
        if (axis[m] == k) return a->shape.dim[m] == 1 ? 0 : a->stride[m];
    if (axis) return 0;
    const bool scalar = !a->shape.rank;
    if (scalar || (j->f->in[i].row && k >= j->f->g->lead)) return 0;
    return a->stride[k];
}

/* Appends axis k, or merges it with the last axis if the strides of all
 * operands allow it. fresh: do not merge. */
static void push_axis(job *j, const lb_array *const *in, int k, bool fresh)
{
    const int64_t dim = j->f->g->shape.dim[k];
    const int last = j->shape.rank - 1;
    bool joins = last >= 0 && !fresh;
    for (int i = 0; i < j->f->n_in && joins; i++)
        joins = j->in[i].stride[last] == dim * stride_of(j, in, i, k);
    const int to = joins ? last : j->shape.rank++;
    j->shape.dim[to] = joins ? j->shape.dim[to] * dim : dim;
    for (int i = 0; i < j->f->n_in; i++)
        j->in[i].stride[to] = stride_of(j, in, i, k);
}

static void merge_axes(job *j, const lb_array *const *in)
{
    const prog_group *g = j->f->g;
    bool fresh = false;
    for (int k = 0; k < g->shape.rank; k++) {
        if (k == g->lead) {
            j->lead = j->shape.rank;
            fresh = true;
        }
        if (g->shape.dim[k] == 1) continue;
        push_axis(j, in, k, fresh);
        fresh = false;
    }
    if (g->lead == g->shape.rank) j->lead = j->shape.rank;
}

/* Tiles of whole rows, several of them if they are short. */
static void tile_rows(job *j)
{
    lb_tiling *t = &j->tiling;
    *t = (lb_tiling){.shape = j->shape, .tiles = 1, .size = 1};
    j->cols = 1;
    for (int k = j->lead; k < j->shape.rank; k++)
        j->cols *= j->shape.dim[k];
    for (int k = 0; k < j->shape.rank; k++) {
        const int64_t dim = j->shape.dim[k];
        t->n[k] = k >= j->lead ? dim : 1;
        if (k == j->lead - 1)
            t->n[k] = lb_max_i64(
                lb_min_i64(dim, ROW_TILE / lb_max_i64(j->cols, 1)), 1);
        t->count[k] = t->n[k] ? lb_ceil_div(dim, t->n[k]) : 0;
        t->tiles *= t->count[k];
        t->size *= t->n[k];
    }
}

/* A tiling with runs short enough that the tiles of all slots fit in L1. */
static lb_tiling fitting_tiling(const job *j, const lb_array *const *in)
{
    enum { L1 = 24 << 10, LEAST = 512 };
    const prog_fused *f = j->f;
    lb_tiling t = lb_tiling_for(&j->shape, in, f->n_in);
    const int last = j->shape.rank - 1;
    const size_t each = (size_t)f->slots * f->wide;
    while (last >= 0 && t.n[last] >= 2 * LEAST && (size_t)t.size * each > L1) {
        t.tiles /= lb_max_i64(t.count[last], 1);
        t.size /= t.n[last];
        t.n[last] /= 2;
        t.count[last] = lb_ceil_div(j->shape.dim[last], t.n[last]);
        t.tiles *= t.count[last];
        t.size *= t.n[last];
    }
    return t;
}

static void lay_out(job *j, const lb_array *const *in)
{
    const prog_fused *f = j->f;
    const lb_array *view[MOST_IN + 1];
    merge_axes(j, in);
    for (int i = 0; i < f->n_in; i++) {
        j->in[i].shape = j->shape;
        if (f->in[i].row) j->in[i].shape.rank = j->lead;
        view[i] = &j->in[i];
    }
    if (j->lead >= 0)
        tile_rows(j);
    else
        j->tiling = fitting_tiling(j, view);
    const int rank = j->shape.rank;
    for (int i = 0; i < f->n_in; i++) {
        j->still[i] = true;
        for (int k = 0; k < rank; k++)
            if (j->tiling.count[k] > 1 && j->in[i].stride[k])
                j->still[i] = false;
        const lb_store *store = j->in[i].store;
        j->direct[i] = lb_is_row_major(&j->in[i]) ? store->data : NULL;
    }
    const int64_t rows = j->lead > 0 ? j->tiling.n[j->lead - 1] : 1;
    j->unit = lb_max_i64(UNIT / lb_max_i64(j->tiling.size, 1), 1);
    j->slot_bytes = ((size_t)j->tiling.size * f->wide + 63) / 64 * 64;
    j->row_bytes = ((size_t)rows * f->wide + 63) / 64 * 64;
}

static void fill(size_t size, const char *from, int64_t rows, int64_t cols,
                 char *to)
{
    for (int64_t r = 0; r < rows; r++, from += size) {
        if (size == 1) {
            memset(to, *from, (size_t)cols);
        } else if (size == 4) {
            uint32_t x, *p = (uint32_t *)(void *)to;
            memcpy(&x, from, 4);
            for (int64_t i = 0; i < cols; i++)
                p[i] = x;
        } else {
            uint64_t x, *p = (uint64_t *)(void *)to;
            memcpy(&x, from, 8);
            for (int64_t i = 0; i < cols; i++)
                p[i] = x;
        }
        to += (size_t)cols * size;
    }
}

/* Converts n elements of a tile to another dtype; temp has room for n. */
static void convert(const lb_cpu *cpu, lb_dtype from, const void *tile,
                    lb_dtype dtype, int64_t n, void *temp, void *out)
{
    const lb_convert_kernel *kernel = lb_convert_kernel_for(cpu);
    const lb_ctype c = lb_ctype_of(from), to = lb_ctype_of(dtype);
    if (keeps_tile(from, dtype)) {
        memcpy(out, tile, (size_t)n * lb_ctype_size(c));
    } else if (lb_dtype_size(dtype) == lb_ctype_size(to)) {
        kernel->store(c, tile, dtype, n, out);
    } else {
        kernel->store(c, tile, dtype, n, temp);
        kernel->load(dtype, temp, 1, n, out);
    }
}

/* The state of one thread in the loop. */
typedef struct cursor {
    const job *j;
    char *scratch, *rows_scratch, *temp;
    const void **at; /* the current tile of each local */
    int64_t lo[LB_MAX_RANK], n[LB_MAX_RANK];
    int64_t count, rows; /* elements and rows of this tile */
} cursor;

/* Where an instruction writes its tile: directly into the result if possible.
 */
static void *place_of(const cursor *c, const instr *i, bool *placed)
{
    const prog_fused *f = c->j->f;
    const local *l = &f->locals[i->out];
    *placed = false;
    if (l->out >= 0) {
        lb_array out = c->j->out[l->out];
        void *to =
            lb_tile_place(c->j->cpu, &out, c->lo, c->n, lb_ctype_of(l->dtype));
        *placed = to != NULL;
        if (to) return to;
    }
    return l->row ? c->rows_scratch + (size_t)l->slot * c->j->row_bytes
                  : c->scratch + (size_t)l->slot * c->j->slot_bytes;
}

static void run_instr(cursor *c, const instr *i, bool same)
{
    const job *j = c->j;
    const prog_fused *f = j->f;
    const local *l = &f->locals[i->out];
    const int64_t n = l->row ? c->rows : c->count;
    if (i->op == LOAD) {
        const int k = i->in[0];
        if (j->still[k] && same) return;
        void *slot = l->row ? c->rows_scratch + (size_t)l->slot * j->row_bytes
                            : c->scratch + (size_t)l->slot * j->slot_bytes;
        const lb_dtype d = j->in[k].dtype;
        const void *tile =
            lb_tile_peek(j->cpu, &j->in[k], c->lo, c->n, lb_ctype_of(d),
                         d == l->dtype ? slot : c->temp);
        if (d != l->dtype) {
            convert(j->cpu, d, tile, l->dtype, n, c->temp + j->slot_bytes,
                    slot);
            tile = slot;
        }
        c->at[i->out] = tile;
        return;
    }
    const void *in = c->at[i->in[0]];
    if (l->alias >= 0) {
        c->at[i->out] = in;
        return;
    }
    bool placed;
    void *to = place_of(c, i, &placed);
    switch (i->op) {
    case LANES: {
        lb_lanes lanes = i->fusion->lanes;
        lanes.n = n;
        lanes.out = to;
        for (int k = 0; k < 3 && i->in[k] >= 0; k++)
            lanes.in[k] = c->at[i->in[k]];
        i->fusion->run(&lanes);
        break;
    }
    case SAME:
    case CONVERT:
        convert(j->cpu, f->locals[i->in[0]].dtype, in, l->dtype, n, c->temp,
                to);
        break;
    case REPEAT:
        fill(lb_ctype_size(lb_ctype_of(l->dtype)), in, c->rows, j->cols, to);
        break;
    default:
        i->fusion->reduce(i->fusion, in, c->rows, j->cols, to);
    }
    if (i->round && (i->op == LANES || i->op == ROWS))
        lb_convert_kernel_for(j->cpu)->round(l->dtype, n, to);
    c->at[i->out] = to;
    if (l->out < 0 || placed) return;
    lb_array out = j->out[l->out];
    lb_tile_write(j->cpu, &out, c->lo, c->n, lb_ctype_of(l->dtype), to);
}

static bool equal_box(int rank, const int64_t *n, const int64_t *m)
{
    for (int k = 0; k < rank; k++)
        if (n[k] != m[k]) return false;
    return true;
}

static size_t scratch_bytes(const job *j)
{
    const prog_fused *f = j->f;
    return (size_t)(f->slots + 2) * j->slot_bytes +
           (size_t)f->row_slots * j->row_bytes +
           ((size_t)f->n_locals * sizeof(void *) + 63) / 64 * 64;
}

/* Runs of a tile are too short for the hardware prefetcher: prefetches the next
 * tile of each operand that is read in place. */
static void prefetch(const job *j, int64_t tile)
{
    enum { LINE = 64 };
    int64_t lo[LB_MAX_RANK], n[LB_MAX_RANK];
    const int64_t count = lb_tiling_box(&j->tiling, tile, lo, n);
    for (int i = 0; i < j->f->n_in; i++) {
        const lb_array *a = &j->in[i];
        const char *from = j->direct[i];
        if (!from || j->still[i] || a->shape.rank != j->shape.rank) continue;
        const size_t size = lb_dtype_size(a->dtype);
        int64_t e = a->offset;
        for (int k = 0; k < a->shape.rank; k++)
            e += lo[k] * a->stride[k];
        from += e * (int64_t)size;
        const char *end = from + count * (int64_t)size;
        for (; from < end; from += LINE)
            __builtin_prefetch(from, 0, 2);
    }
}

static void eval(const lb_work *w)
{
    const job *j = w->call->params;
    const prog_fused *f = j->f;
    cursor c = {.j = j, .scratch = w->scratch};
    c.temp = c.scratch + (size_t)f->slots * j->slot_bytes;
    c.rows_scratch = c.temp + 2 * j->slot_bytes;
    c.at = (const void **)(void *)(c.rows_scratch +
                                   (size_t)f->row_slots * j->row_bytes);
    const int64_t end = lb_min_i64(w->hi * j->unit, j->tiling.tiles);
    int64_t was[LB_MAX_RANK] = {0};
    for (int64_t t = w->lo * j->unit; t < end; t++) {
        c.count = lb_tiling_box(&j->tiling, t, c.lo, c.n);
        c.rows = j->lead > 0 ? c.n[j->lead - 1] : 1;
        const bool same =
            t > w->lo * j->unit && equal_box(j->shape.rank, c.n, was);
        memcpy(was, c.n, sizeof was);
        if (t + 1 < end) prefetch(j, t + 1);
        for (int k = 0; k < f->n_code; k++)
            run_instr(&c, &f->code[k], same);
    }
}

static const lb_prim prim_fused = {
    .struct_size = sizeof(lb_prim),
    .name = "fused",
    .eval = eval,
};

/* Whether the nodes have to run one by one: for operands that are sharded or
 * whose format has rules, and to keep results packed that are packed eagerly.
 */
static bool must_run_apart(const lb_ctx *cx, const prog_fused *f,
                           lb_array *const *val)
{
    for (int i = 0; i < f->n_in; i++) {
        const lb_store *s = val[f->in[i].v->id]->store;
        const bool packed = !s->data;
        if (s->sharding || lb_has_rules(cx, s->fmt) ||
            (packed && f->in[i].stays_packed))
            return true;
    }
    return false;
}

static void set_operands(job *j, lb_array *const *val, const lb_array **in)
{
    const prog_fused *f = j->f;
    for (int i = 0; i < f->n_in; i++) {
        in[i] = val[f->in[i].v->id];
        lb_array *v = &j->in[i];
        *v = *in[i];
        if (v->dtype != f->in[i].label && v->store->fmt->relabel &&
            lb_dtype_is_float(f->in[i].label))
            v->dtype = f->in[i].label;
    }
}

static bool set_results(lb_program *p, job *j, lb_array **made)
{
    const prog_fused *f = j->f;
    for (int i = 0; i < f->n_out; i++) {
        const prog_value *v = f->out[i];
        made[i] = lb_dense(p->cx, v->dtype, &v->shape);
        if (!made[i]) return false;
        j->out[i] = *made[i];
        j->out[i].shape = j->shape;
        if (f->locals[f->out_local[i]].row) j->out[i].shape.rank = j->lead;
        lb_row_major(&j->out[i].shape, j->out[i].stride);
    }
    return true;
}

lb_verdict lb_fused_run(lb_program *p, const prog_fused *f, lb_array **val)
{
    lb_ctx *cx = p->cx;
    const lb_array *in[MOST_IN];
    lb_array *made[MOST_OUT];
    if (must_run_apart(cx, f, val)) return LB_DECLINED;
    job j; /* members are set one by one: zeroing all of it takes longer */
    j.f = f;
    j.cpu = &cx->cpu;
    j.lead = -1;
    j.cols = 1;
    j.shape.rank = 0;
    set_operands(&j, val, in);
    for (int i = 0; i < f->n_in; i++)
        if (in[i]->store->made.reference)
            j.cpu = lb_cpu_for(cx, &val[f->in[i].v->id], 1);
    lay_out(&j, in);
    lb_enter(cx);
    bool ok = set_results(p, &j, made);
    if (ok) {
        const lb_call c = {.prim = &prim_fused,
                           .cpu = j.cpu,
                           .threads = lb_pool_threads(cx->pool),
                           .params = &j};
        const lb_plan plan = {.per_thread = scratch_bytes(&j),
                              .phases = 1,
                              .units = {lb_ceil_div(j.tiling.tiles, j.unit)},
                              .kernel = "fused"};
        ok = lb_run_plan(cx, &c, &plan, NULL);
    }
    for (int i = 0; i < f->n_out && ok; i++)
        val[f->out[i]->id] = lb_ref(made[i]);
    lb_leave(cx);
    return ok ? LB_DONE : LB_FAILED;
}
