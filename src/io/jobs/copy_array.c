/* copy_array.c - copies one array from a file to another, in pieces that fit in
 * memory.
 *
 * How an array can be split depends on the layout that its format produces:
 *
 *     blocks that end with rows, or continue across rows
 *                            between any two blocks, as one long row
 *     a scale per row, or blocks that do not divide the row
 *                            between rows, merging all leading axes
 *     anything else: one scale per tensor, double quantization
 *                            not at all: as a whole if it fits, else read from
 *                            the file on access (lazy_tensor.h)
 *
 * All threads read, quantize and measure a piece together. Its size does not
 * depend on the number of threads, so sums do not either.
 */
#include "io/jobs/copy_array.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "core/core.h"
#include "io/arrays/lazy_tensor.h"

enum { PIECE = 8 << 20 }; /* source bytes, approximately */

/* An array as n rows of `row` elements, `each` rows per piece. */
typedef struct cut {
    int64_t n, row, each;
    bool line; /* rows are single elements: pieces are vectors */
    lb_quant_config config;
} cut;

/* ---- possible splits ----------------------------------------------------- */

/* Whether every part follows each axis but the last, and, if `scale`, some part
 * with scales does. */
static bool follows_rows(const lb_format *fmt, const lb_layout *l, bool scale)
{
    bool found = !scale;
    for (int p = 0; p < LB_MAX_PARTS && fmt->part[p].name; p++) {
        if (!l->elem[p]) continue;
        for (int k = 0; k < l->stored.rank - 1; k++)
            if (l->part[p].g[k] != 1) return false;
        found |= fmt->part[p].scale;
    }
    return found;
}

/* Splits between rows or inside them; false: neither is possible. */
static bool cut_quantized(lb_ctx *cx, const lb_transfer *t,
                          const lb_shape *shape, cut *c)
{
    lb_quant q;
    lb_layout l;
    const int last = shape->rank - 1;
    const lb_dtype from = t->group->entry.dtype;
    if (!lb_quant_to(cx, LB_NAME(t->group->entry.name), t->config, shape->rank,
                     &q) ||
        !lb_layout_of(cx, &q, from, shape, &l))
        return false;
    c->config = *t->config;
    if (c->config.double_quant || !lb_shape_size(shape)) return false;
    const int64_t size = lb_shape_size(shape);
    const int64_t row = l.stored.dim[l.stored.rank - 1];
    if (q.format->encode_run && follows_rows(q.format, &l, false) &&
        (l.stored.rank == 1 || row % (8 * l.run) == 0)) {
        *c = (cut){.n = size, .row = 1, .line = true, .config = c->config};
        c->each = 8 * l.run; /* whole bytes for any code size */
        return true;
    }
    if (last < 1 || !lb_shape_equal(&l.stored, shape) ||
        !follows_rows(q.format, &l, !q.format->encode_run))
        return false;
    if (c->config.axes.n) c->config.axes = (lb_axes){.n = 1, .axis = {-1}};
    c->row = shape->dim[last];
    c->n = size / c->row;
    c->each = 1;
    return true;
}

/* On entry, c->each is the minimum size of a piece. False: even that exceeds
 * the limit. */
static bool size_pieces(const lb_transfer *t, cut *c)
{
    const uint64_t most =
        t->max_memory / 8 < PIECE ? t->max_memory / 8 : (uint64_t)PIECE;
    const uint64_t one = (uint64_t)c->each * (uint64_t)c->row *
                         lb_dtype_size(t->group->entry.dtype);
    const uint64_t times = one && most / one ? most / one : 1;
    c->each =
        times > (uint64_t)(c->n / c->each) ? c->n : c->each * (int64_t)times;
    if (!c->each) c->each = 1;
    return one <= t->max_memory / 4;
}

static bool cut_up(lb_ctx *cx, const lb_transfer *t, const lb_shape *shape,
                   cut *c)
{
    const lb_tensor *from = t->group->tensor[0];
    *c = (cut){0};
    if (t->group->layout || from->fortran) return false;
    if (!t->config) {
        const int64_t size = lb_shape_size(shape);
        *c = (cut){.n = size, .row = 1, .line = true, .each = 4096};
        if (!size) c->each = 1;
    } else if (!cut_quantized(cx, t, shape, c))
        return false;
    return size_pieces(t, c);
}

/* ---- reading ------------------------------------------------------------- */

typedef struct fetch {
    lb_infile *file;
    uint64_t begin;
    size_t n;
    uint8_t *to;
    _Atomic int error;
} fetch;

enum { PAGE = 256 << 10 }; /* bytes that a thread reads at a time */

static void fetch_pages(void *arg, int64_t lo, int64_t hi, int thread)
{
    fetch *f = arg;
    (void)thread;
    for (int64_t u = lo; u < hi; u++) {
        const size_t at = (size_t)u * PAGE;
        const size_t n = f->n - at < PAGE ? f->n - at : PAGE;
        const int error =
            lb_infile_pread(f->file, f->begin + at, n, f->to + at);
        if (error) f->error = error;
    }
}

/* Elements [first, first + size) of a dense tensor. */
static lb_array *read_piece(lb_ctx *cx, const lb_transfer *t, int64_t first,
                            const lb_shape *shape)
{
    const lb_tensor *from = t->group->tensor[0];
    const size_t size = lb_dtype_size(from->dtype);
    lb_infile *file = t->f->r->file[from->file];
    if (from->packed || from->swap || from->dtype == LB_BOOL)
        return lb_tensor_part(cx, t->f, from, (uint64_t)first * size,
                              from->dtype, shape);
    lb_array *a = lb_dense(cx, from->dtype, shape);
    if (!a) return NULL;
    fetch f = {.file = file,
               .begin = from->begin + (uint64_t)first * size,
               .n = (size_t)lb_shape_size(shape) * size,
               .to = a->store->data};
    lb_pool_run(cx->pool, (int64_t)(f.n / PAGE + (f.n % PAGE != 0)),
                fetch_pages, &f);
    if (!f.error) return a;
    lb_fail(
        cx, f.error == ENODATA ? LB_E_CONTENT : LB_E_FILE,
        "%s: cannot read '%s': %s", LB_PATH(file->path), LB_NAME(from->name),
        f.error == ENODATA ? "the file has become shorter" : strerror(f.error));
    return NULL;
}

/* Starts readahead of the next piece. */
static void announce(const lb_transfer *t, uint64_t begin, uint64_t n)
{
    const lb_tensor *from = t->group->tensor[0];
    const lb_infile *file = t->f->r->file[from->file];
    if (file->fd >= 0 && !from->packed)
        (void)posix_fadvise(file->fd, (off_t)(from->begin + begin), (off_t)n,
                            POSIX_FADV_WILLNEED);
}

/* ---- pieces -------------------------------------------------------------- */

static lb_shape piece_shape(const cut *c, int64_t n)
{
    return c->line ? LB_SHAPE(n) : LB_SHAPE(n, c->row);
}

static bool examine_pieces(lb_ctx *cx, const lb_transfer *t, const cut *c,
                           lb_findings *found)
{
    bool ok = true;
    for (int64_t lo = 0; ok && lo < c->n; lo += c->each) {
        const lb_shape shape = piece_shape(c, lb_min_i64(c->each, c->n - lo));
        lb_enter(cx);
        ok = lb_examine(cx, read_piece(cx, t, lo * c->row, &shape), found);
        lb_leave(cx);
    }
    return ok;
}

/* NaN and infinities are the file's fault, not the config's: counts them all.
 * False: the error has another cause. */
static bool blame_numbers(lb_ctx *cx, const lb_transfer *t,
                          const lb_findings *f)
{
    const lb_entry *e = &t->group->entry;
    const bool nan_first =
        f->nan.n && (!f->inf.n || f->nan.first < f->inf.first);
    int64_t where = nan_first ? f->nan.first : f->inf.first;
    lb_shape at = {.rank = e->rank};
    if (!f->nan.n && !f->inf.n) return false;
    for (int k = e->rank - 1; k >= 0; k--) {
        at.dim[k] = where % e->dim[k];
        where /= e->dim[k];
    }
    lb_clear(cx);
    lb_fail(cx, LB_E_CONTENT,
            "%s: '%s' has %lld NaN and %lld infinite values, the first at %s, "
            "and %s cannot store them (exclude the array, or override it with "
            "nonfinite=clamp)",
            LB_PATH(t->f->r->file[t->group->tensor[0]->file]->path),
            LB_NAME(e->name), (long long)f->nan.n, (long long)f->inf.n,
            LB_SHOW(&at), t->config->format);
    return true;
}

/* Turns an error about a piece into one about the array. x: the whole array, or
 * NULL. */
static void blame(lb_ctx *cx, const lb_transfer *t, const cut *c, int64_t lo,
                  lb_array *x)
{
    char why[LB_ERROR_SIZE];
    lb_findings found = {0};
    const lb_status s = lb_error_status(cx);
    if (s != LB_E_ARG && s != LB_E_SHAPE) return;
    memcpy(why, lb_error(cx), strlen(lb_error(cx)) + 1);
    lb_clear(cx);
    if (s == LB_E_ARG && t->config &&
        t->config->on_nonfinite != LB_NONFINITE_CLAMP &&
        (c ? examine_pieces(cx, t, c, &found) : lb_examine(cx, x, &found)) &&
        blame_numbers(cx, t, &found))
        return;
    lb_clear(cx);
    if (c && lo)
        lb_fail(cx, s, "'%s', from %s %lld on: %s",
                LB_NAME(t->group->entry.name), c->line ? "element" : "row",
                (long long)lo, why);
    else
        lb_fail(cx, s, "'%s': %s", LB_NAME(t->group->entry.name), why);
}

/* x in the form to be written; x itself if that is the same. */
static lb_array *made_of(lb_ctx *cx, const lb_transfer *t,
                         const lb_quant_config *config, lb_array *x)
{
    if (!config) return t->dtype ? lb_convert(cx, x, t->dtype) : x;
    lb_array *y = lb_quantize(cx, x, config);
    return y && t->layout && t->layout->adapt ? t->layout->adapt(cx, y) : y;
}

bool lb_transfer_put(lb_ctx *cx, const lb_transfer *t, lb_saver *s, lb_array *x,
                     lb_array *y, lb_difference *m)
{
    if (t->measure && y != x && !lb_compare(cx, x, y, m)) return false;
    return !s || lb_saver_piece(cx, s, y);
}

static bool run_pieces(lb_ctx *cx, const lb_transfer *t, const cut *c,
                       lb_saver *s, lb_difference *m)
{
    const uint64_t size =
        (uint64_t)c->row * lb_dtype_size(t->group->entry.dtype);
    bool ok = true;
    for (int64_t lo = 0; ok && lo < c->n; lo += c->each) {
        const int64_t n = lb_min_i64(c->each, c->n - lo);
        const lb_shape shape = piece_shape(c, n);
        announce(t, (uint64_t)(lo + n) * size, (uint64_t)n * size);
        lb_enter(cx);
        lb_array *x = read_piece(cx, t, lo * c->row, &shape);
        lb_array *y = made_of(cx, t, t->config ? &c->config : NULL, x);
        ok = x && y && lb_transfer_put(cx, t, s, x, y, m);
        lb_leave(cx);
        if (!ok) blame(cx, t, c, lo, NULL);
        if (ok && t->progress) ok = t->progress(t->user, (uint64_t)n * size);
    }
    return ok;
}

/* ---- as a whole ---------------------------------------------------------- */

/* Approximate bytes of the result. */
static uint64_t result_size(lb_ctx *cx, const lb_transfer *t,
                            const lb_shape *shape)
{
    lb_quant q;
    lb_layout l;
    uint64_t n = 0;
    if (!t->config)
        return (uint64_t)lb_shape_size(shape) *
               lb_dtype_size(t->dtype ? t->dtype : t->group->entry.dtype);
    if (!lb_quant_to(cx, "", t->config, shape->rank, &q) ||
        !lb_layout_of(cx, &q, t->group->entry.dtype, shape, &l))
        return 0;
    for (int p = 0; p < LB_MAX_PARTS && q.format->part[p].name; p++) {
        if (!l.elem[p]) continue;
        const lb_shape part = lb_part_shape(&l.stored, &l.part[p]);
        n += (uint64_t)lb_shape_size(&part) * lb_dtype_size(l.elem[p]);
    }
    return n;
}

/* The result is in memory twice when it is rearranged for the file. */
static lb_array *source(lb_ctx *cx, const lb_transfer *t, lb_paged **paged)
{
    const lb_group *g = t->group;
    lb_shape shape = lb_shape_make(g->entry.rank, g->entry.dim);
    if (!lb_shape_check(cx, LB_NAME(g->entry.name), &shape)) return NULL;
    const uint64_t out = 2 * result_size(cx, t, &shape);
    const uint64_t in = g->entry.nbytes;
    if (in <= t->max_memory && out <= t->max_memory - in)
        return lb_file_load(cx, t->f, g->entry.name);
    if (out <= t->max_memory && t->config && !g->layout)
        return lb_paged_open(cx, t->f, g->tensor[0], paged);
    lb_fail(cx, LB_E_SIZE,
            "'%s' must be quantized as a whole: %llu bytes of input and %llu "
            "of output exceed max_memory, %llu",
            LB_NAME(g->entry.name), (unsigned long long)in,
            (unsigned long long)out / 2, (unsigned long long)t->max_memory);
    return NULL;
}

lb_array *lb_transfer_whole(lb_ctx *cx, const lb_transfer *t)
{
    lb_paged *paged = NULL;
    lb_array *x = source(cx, t, &paged);
    lb_array *y = x ? made_of(cx, t, t->config, x) : NULL;
    if (!y) blame(cx, t, NULL, 0, x);
    return lb_paged_check(cx, paged) ? y : NULL;
}

static bool run_whole(lb_ctx *cx, const lb_transfer *t, lb_saver *s,
                      lb_difference *m)
{
    enum { MUCH = 64 << 20 }; /* bytes not needed for the next piece */
    lb_paged *paged = NULL;
    lb_enter(cx);
    lb_array *x = source(cx, t, &paged);
    lb_array *y = x ? made_of(cx, t, t->config, x) : NULL;
    bool ok = x && y && lb_paged_check(cx, paged) &&
              lb_transfer_put(cx, t, s, x, y, m) && lb_paged_check(cx, paged);
    if (!ok) blame(cx, t, NULL, 0, x);
    lb_leave(cx);
    if (t->group->entry.nbytes > MUCH) lb_trim(cx);
    if (ok && t->progress) ok = t->progress(t->user, t->group->entry.nbytes);
    return ok;
}

/* ---- all of it ----------------------------------------------------------- */

bool lb_transfer_run(lb_ctx *cx, const lb_transfer *t, lb_saver *s,
                     lb_difference *m)
{
    cut c;
    const lb_entry *e = &t->group->entry;
    lb_shape shape = lb_shape_make(e->rank, e->dim);
    *m = (lb_difference){0};
    if (!lb_shape_check(cx, LB_NAME(e->name), &shape)) return false;
    const bool clear = !lb_error_status(cx);
    const bool pieces = cut_up(cx, t, &shape, &c);
    if (clear && lb_error_status(cx)) return false;
    const bool decode = !t->config && t->group->layout;
    if (!(pieces   ? run_pieces(cx, t, &c, s, m)
          : decode ? lb_transfer_decoded(cx, t, s, m)
                   : run_whole(cx, t, s, m)))
        return false;
    uint8_t record[LB_RECORD] = {1};
    _Static_assert(sizeof *m <= LB_RECORD - 16, "the record is large enough");
    memcpy(record + 8, m, sizeof *m);
    return !s || lb_saver_end(cx, s, record);
}
