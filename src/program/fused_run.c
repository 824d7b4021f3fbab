/* fused_run.c - runs fused nodes tile by tile, see fused.c.
 */
#include "program/fused.h"

#include <string.h>

#include "kernels/convert.h"

enum {
    UNIT = 16,       /* tiles: less work is not worth another thread */
    ROW_TILE = 4096, /* elements of a tile of several short rows: 1024 and
                      * 2048 make softmax and norms of rows of 1024 slower */
    BY_ROW = 64      /* elements of a row: lanes run row by row, instead of
                      * repeating one element per row */
};

/* One run: views of operands and results with merged axes; axes from `lead` on
 * are reduced. */
typedef struct job {
    const prog_fused *f;
    const lb_cpu *cpu;
    lb_array in[FUSED_MOST_IN], out[FUSED_MOST_OUT];
    bool still[FUSED_MOST_IN]; /* every tile has the same elements */
    const char
        *direct[FUSED_MOST_IN]; /* elements of a row-major leaf, or NULL */
    lb_shape shape;
    int lead; /* merged axes before the reduced ones; -1: no reduction */
    int64_t cols;
    lb_tiling tiling;
    bool by_row;  /* rows are long enough to run lanes row by row */
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
    const lb_array *view[FUSED_MOST_IN + 1];
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
    j->by_row = j->cols >= BY_ROW;
    j->unit = lb_max_i64(UNIT / lb_max_i64(j->tiling.size, 1), 1);
    j->slot_bytes = ((size_t)j->tiling.size * f->wide + 63) / 64 * 64;
    j->row_bytes = ((size_t)rows * f->wide + 63) / 64 * 64;
}

/* Each of n words m times. What is written past the end of a row is the next
 * one's, which comes later. */
static void fill_words(const char *from, int64_t n, int64_t m, char *to)
{
    typedef uint32_t four __attribute__((vector_size(16)));
    const char *end = to + n * m * 4;
    for (int64_t r = 0; r < n; r++, from += 4, to += m * 4) {
        uint32_t x;
        memcpy(&x, from, 4);
        const four all = x - (four){0};
        int64_t i = 0;
        for (; i < m && to + (i + 4) * 4 <= end; i += 4)
            memcpy(to + i * 4, &all, sizeof all);
        for (; i < m; i++)
            memcpy(to + i * 4, &x, 4);
    }
}

/* Rows of one element each. */
static void fill(size_t size, const char *from, int64_t rows, int64_t cols,
                 char *to)
{
    if (size == 4) {
        fill_words(from, rows, cols, to);
        return;
    }
    for (int64_t r = 0; r < rows;
         r++, from += size, to += (size_t)cols * size) {
        if (size == 1) {
            memset(to, *from, (size_t)cols);
            continue;
        }
        uint64_t x, *p = (uint64_t *)(void *)to;
        memcpy(&x, from, 8);
        for (int64_t i = 0; i < cols; i++)
            p[i] = x;
    }
}

/* Converts n elements of a tile to another dtype; temp has room for n. */
static void convert(const lb_cpu *cpu, lb_dtype from, const void *tile,
                    lb_dtype dtype, int64_t n, void *temp, void *out)
{
    const lb_convert_kernel *kernel = lb_convert_kernel_for(cpu);
    const lb_ctype c = lb_ctype_of(from), to = lb_ctype_of(dtype);
    if (lb_keeps_tile(from, dtype)) {
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
    bool first;          /* the first tile of this thread's part */
    bool same;           /* as large as the one before */
    int n_ahead;         /* operands of the next tile that are prefetched */
    const char *ahead[FUSED_MOST_IN];
    int64_t ahead_bytes[FUSED_MOST_IN];
} cursor;

static char *slot_of(const cursor *c, const fused_local *l)
{
    return lb_in_rows(l) ? c->rows_scratch + (size_t)l->slot * c->j->row_bytes
                         : c->scratch + (size_t)l->slot * c->j->slot_bytes;
}

/* Where an instruction writes its tile: directly into the result if possible.
 */
static void *place_of(const cursor *c, const fused_instr *i, bool *placed)
{
    const prog_fused *f = c->j->f;
    const fused_local *l = &f->locals[i->out];
    *placed = false;
    if (l->out >= 0) {
        lb_array out = c->j->out[l->out];
        void *to = lb_tile_place(c->j->cpu, &out, c->lo, c->n, l->ctype);
        *placed = to != NULL;
        if (to) return to;
    }
    return slot_of(c, l);
}

static void run_load(cursor *c, const fused_instr *i)
{
    static const int64_t single[LB_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    _Static_assert(LB_MAX_RANK == 8, "as many sizes");
    const job *j = c->j;
    const fused_local *l = &j->f->locals[i->out];
    const int k = i->in[0];
    const bool one = l->extent == FUSED_ONE;
    if (!c->first && j->still[k] && (c->same || one)) return;
    const int64_t n = one ? 1 : l->row ? c->rows : c->count;
    void *slot = slot_of(c, l);
    const lb_dtype d = j->in[k].dtype;
    const void *tile =
        lb_tile_peek(j->cpu, &j->in[k], c->lo, one ? single : c->n,
                     lb_ctype_of(d), d == l->dtype ? slot : c->temp);
    if (d != l->dtype) {
        convert(j->cpu, d, tile, l->dtype, n, c->temp + j->slot_bytes, slot);
        tile = slot;
    }
    c->at[i->out] = tile;
}

static const fused_local *root_of(const prog_fused *f, int l)
{
    while (f->locals[l].alias >= 0)
        l = f->locals[l].alias;
    return &f->locals[l];
}

/* Row by row if an operand has one element per row. */
static void run_lanes(const cursor *c, const fused_instr *i, int64_t n,
                      void *to)
{
    const job *j = c->j;
    lb_lanes lanes = i->fusion->lanes;
    int64_t step[3] = {0}, runs = 1;
    lanes.n = n;
    lanes.out = to;
    for (int k = 0; k < 3 && i->in[k] >= 0; k++) {
        const fused_local *in = root_of(j->f, i->in[k]);
        lanes.in[k] = c->at[i->in[k]];
        step[k] = in->extent == FUSED_WHOLE ? j->cols * in->size : 0;
        if (in->extent == FUSED_ONE) lanes.ones |= 1u << k;
        if (in->extent != FUSED_ONE_PER_ROW || !j->by_row) continue;
        lanes.ones |= 1u << k;
        lanes.n = j->cols;
        runs = c->rows;
        step[k] = in->size;
    }
    const int64_t row = j->cols * j->f->locals[i->out].size;
    for (; runs > 1; runs--) {
        i->fusion->run(&lanes);
        for (int k = 0; k < 3 && i->in[k] >= 0; k++)
            lanes.in[k] = (const char *)lanes.in[k] + step[k];
        lanes.out = (char *)lanes.out + row;
    }
    i->fusion->run(&lanes);
}

static void run_instr(cursor *c, const fused_instr *i)
{
    const job *j = c->j;
    const prog_fused *f = j->f;
    const fused_local *l = &f->locals[i->out];
    const int64_t n = l->row ? c->rows : c->count;
    const void *in = c->at[i->in[0]];
    bool placed;
    if (l->alias >= 0 || (l->extent == FUSED_ONE_PER_ROW && j->by_row)) {
        c->at[i->out] = in;
        return;
    }
    void *to = place_of(c, i, &placed);
    switch (i->op) {
    case FUSED_LANES:
        run_lanes(c, i, n, to);
        break;
    case FUSED_REPEAT:
        fill((size_t)l->size, in, c->rows, j->cols, to);
        break;
    case FUSED_ROWS:
        i->fusion->reduce(i->fusion, in, c->rows, j->cols, to);
        break;
    default:
        convert(j->cpu, f->locals[i->in[0]].dtype, in, l->dtype, n, c->temp,
                to);
    }
    if (i->round && (i->op == FUSED_LANES || i->op == FUSED_ROWS))
        lb_convert_kernel_for(j->cpu)->round(l->dtype, n, to);
    c->at[i->out] = to;
    if (l->out < 0 || placed) return;
    lb_array out = j->out[l->out];
    lb_tile_write(j->cpu, &out, c->lo, c->n, l->ctype, to);
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

/* Runs of a tile are too short for the hardware prefetcher: the next tile of
 * each operand that is read in place is prefetched. */
static void look_ahead(cursor *c, int64_t tile)
{
    const job *j = c->j;
    int64_t lo[LB_MAX_RANK], n[LB_MAX_RANK];
    const int64_t count = lb_tiling_box(&j->tiling, tile, lo, n);
    for (int i = 0; i < j->f->n_in; i++) {
        const lb_array *a = &j->in[i];
        if (!j->direct[i] || j->still[i] || a->shape.rank != j->shape.rank)
            continue;
        const int64_t size = (int64_t)lb_dtype_size(a->dtype);
        int64_t e = a->offset;
        for (int k = 0; k < a->shape.rank; k++)
            e += lo[k] * a->stride[k];
        c->ahead[c->n_ahead] = j->direct[i] + e * size;
        c->ahead_bytes[c->n_ahead++] = count * size;
    }
}

/* Prefetches a share of the next tile before each instruction: a core can have
 * only a few dozen misses in flight. */
static void prefetch(const cursor *c, int part)
{
    enum { LINE = 64 };
    const int64_t parts = c->j->f->work;
    for (int i = 0; i < c->n_ahead; i++) {
        const int64_t lines = lb_ceil_div(c->ahead_bytes[i], LINE);
        const char *from = c->ahead[i] + lines * part / parts * LINE;
        const char *end = c->ahead[i] + lines * (part + 1) / parts * LINE;
        for (; from < end; from += LINE)
            __builtin_prefetch(from, 0, 2);
    }
}

static void run_tile(cursor *c)
{
    const prog_fused *f = c->j->f;
    int part = 0;
    for (int k = 0; k < f->n_code; k++) {
        const fused_instr *i = &f->code[k];
        if (i->op == FUSED_LOAD) {
            run_load(c, i);
            continue;
        }
        if (c->n_ahead && f->locals[i->out].alias < 0) prefetch(c, part++);
        run_instr(c, i);
    }
}

static void eval(const lb_work *w)
{
    const job *j = w->call->params;
    const prog_fused *f = j->f;
    cursor c = {.j = j, .scratch = w->scratch, .first = true};
    c.temp = c.scratch + (size_t)f->slots * j->slot_bytes;
    c.rows_scratch = c.temp + 2 * j->slot_bytes;
    c.at = (const void **)(void *)(c.rows_scratch +
                                   (size_t)f->row_slots * j->row_bytes);
    const int64_t end = lb_min_i64(w->hi * j->unit, j->tiling.tiles);
    int64_t was[LB_MAX_RANK] = {0};
    for (int64_t t = w->lo * j->unit; t < end; t++) {
        c.count = lb_tiling_box(&j->tiling, t, c.lo, c.n);
        c.rows = j->lead > 0 ? c.n[j->lead - 1] : 1;
        c.same = !c.first && equal_box(j->shape.rank, c.n, was);
        memcpy(was, c.n, sizeof was);
        c.n_ahead = 0;
        if (t + 1 < end) look_ahead(&c, t + 1);
        run_tile(&c);
        c.first = false;
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

static bool set_results(lb_program *p, job *j, prog_arena *arena,
                        lb_array **made)
{
    const prog_fused *f = j->f;
    for (int i = 0; i < f->n_out; i++) {
        const prog_value *v = f->out[i];
        lb_arena_offer(p, arena, v);
        made[i] = lb_dense(p->cx, v->dtype, &v->shape);
        lb_arena_end_offer(p);
        if (!made[i]) return false;
        j->out[i] = *made[i];
        j->out[i].shape = j->shape;
        if (f->locals[f->out_local[i]].row) j->out[i].shape.rank = j->lead;
        lb_row_major(&j->out[i].shape, j->out[i].stride);
    }
    return true;
}

/* Every instruction makes a tile from others in L1: 64 bytes a ns. */
static double cost_ns(const job *j)
{
    return (double)j->tiling.tiles * (double)j->tiling.size * j->f->n_code / 16;
}

lb_verdict lb_fused_run(lb_program *p, const prog_fused *f, prog_arena *arena,
                        lb_array **val)
{
    lb_ctx *cx = p->cx;
    const lb_array *in[FUSED_MOST_IN];
    lb_array *made[FUSED_MOST_OUT];
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
    bool ok = set_results(p, &j, arena, made);
    if (ok) {
        const lb_call c = {.prim = &prim_fused,
                           .cpu = j.cpu,
                           .threads = lb_threads_for(cx, cost_ns(&j)),
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
