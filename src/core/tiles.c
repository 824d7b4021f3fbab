/* tiles.c - reads any box of any view into a tile of a compute type, and writes
 * it back.
 *
 * First the box is simplified: adjacent contiguous axes are merged, axes of
 * size 1 removed. Then runs go along the last axis if its stride is 1, else
 * along the axis of the smallest stride, and the plane of these two axes is
 * transposed. Repeated elements (stride 0) are read once.
 */
#include <string.h>

#include "core/runs.h"
#include "kernels/convert.h"
#include "kernels/stream.h"
#include "kernels/tuning.h"
#include "kernels/turn.h"

/* Bytes; for shorter runs non-temporal stores do not pay off. */
enum { STREAM_RUN = 256 };

typedef struct {
    int rank;
    int64_t n[LB_MAX_RANK];
    int64_t stride[LB_MAX_RANK]; /* in the store */
    int64_t step[LB_MAX_RANK];   /* in the tile, row-major */
    int64_t first;               /* element of the store */
    int64_t size;                /* elements */
} box;

/* Entries beyond the rank are not set: clearing them takes longer than
 * merging. */
static void merge(const lb_array *a, const int64_t *lo, const int64_t *n,
                  box *b)
{
    int rank = 0;
    b->first = a->offset;
    b->size = 1;
    for (int k = 0; k < a->shape.rank; k++) {
        b->first += lo[k] * a->stride[k];
        b->size *= n[k];
        if (n[k] == 1) continue;
        const int last = rank - 1;
        if (last >= 0 && b->stride[last] == n[k] * a->stride[k]) {
            b->n[last] *= n[k];
            b->stride[last] = a->stride[k];
            continue;
        }
        b->n[rank] = n[k];
        b->stride[rank++] = a->stride[k];
    }
    b->rank = rank;
    int64_t step = 1;
    for (int k = rank - 1; k >= 0; k--) {
        b->step[k] = step;
        step *= b->n[k];
    }
}

/* Whether the stored elements have the representation of tile elements. */
static bool as_is(const lb_array *a, lb_ctype c)
{
    const lb_store *s = a->store;
    return s->data && s->elem == a->dtype && s->ctype == c &&
           lb_dtype_size(s->elem) == lb_ctype_size(c);
}

/* ---- reading ------------------------------------------------------------ */

/* The axis along which the store is read: the last if its elements are
 * adjacent, else the one whose elements are closest together. */
static int run_axis(const box *b)
{
    int best = b->rank - 1;
    for (int k = best - 1; k >= 0; k--) {
        const int64_t s = b->stride[best], t = b->stride[k];
        const int64_t was = s < 0 ? -s : s, is = t < 0 ? -t : t;
        if (was > 1 && is && is < was) best = k;
    }
    return best;
}

/* A plane of a box: the run's axis r, which is not the last, and the last. */
typedef struct {
    int64_t rows, row_step; /* along the last axis: size, stride in the store */
    int64_t cols, col_step; /* along r */
    int64_t pitch;          /* stride of r in the tile */
} plane;

/* Prefetch distance in rows: rows of a plane are far apart, which hardware
 * prefetchers of consecutive lines do not recognize. */
enum { ROWS = 8, AHEAD = 16 };

static void prefetch(const char *from, const char *end)
{
    enum { LINE = 64 };
    for (; from < end; from += LINE)
        __builtin_prefetch(from);
}

/* From a leaf whose elements have the tile's representation. */
static void transpose_leaf(const plane *p, const char *src, size_t size,
                           char *dst)
{
    const int64_t es = (int64_t)size, step = p->row_step * es;
    for (int64_t y = 0; y < p->rows; y += ROWS) {
        const int64_t ahead = lb_min_i64(y + AHEAD + ROWS, p->rows);
        for (int64_t k = y + AHEAD; k < ahead; k++)
            prefetch(src + k * step, src + k * step + p->cols * es);
        lb_turn(size, src + y * step, step, dst + y * es, p->pitch * es,
                lb_min_i64(p->rows - y, ROWS), p->cols);
    }
}

/* Prefetches the codes of n elements of a store from e on, if they are raw. */
static void prefetch_codes(const lb_store *s, int64_t e, int64_t n)
{
    if (s->data || !s->fmt->part[0].raw) return;
    const int64_t size = (int64_t)lb_dtype_size(s->part[0].a->dtype);
    const int64_t own = lb_max_i64(s->part[0].own, 1);
    const char *codes = lb_part_bytes(s, 0);
    prefetch(codes + lb_part_entry(s, 0, e) * size,
             codes + (lb_part_entry(s, 0, e + n - 1) + own) * size);
}

/* From any other store, starting at element e: rows are read into a block on
 * the stack, in runs that are as long as possible, and transposed from there.
 * Rows that are close together are read as one run, including the gaps. */
static void transpose_decoded(const lb_cpu *cpu, const lb_array *a,
                              const plane *p, int64_t e, lb_ctype c, char *tile)
{
    enum { BLOCK = 8192, COLS = 256, GAP = 64 };
    _Alignas(64) char block[BLOCK];
    const size_t size = lb_ctype_size(c);
    const int64_t es = (int64_t)size, room = BLOCK / es;
    const bool close = p->col_step == 1 && p->row_step >= p->cols &&
                       p->row_step <= lb_min_i64(p->cols + GAP, room);
    const int64_t cols = close ? p->cols : lb_min_i64(p->cols, COLS);
    const int64_t pitch = close ? p->row_step : cols, most = room / pitch;
    for (int64_t x = 0; x < p->cols; x += cols)
        for (int64_t y = 0; y < p->rows; y += most) {
            const int64_t rows = lb_min_i64(p->rows - y, most);
            const int64_t n = lb_min_i64(p->cols - x, cols);
            const int64_t at = e + y * p->row_step + x * p->col_step;
            if (close)
                lb_run_read(cpu, a, at, 1, (rows - 1) * pitch + n, c, block);
            for (int64_t r = 0; r < rows && !close; r++) {
                if (p->col_step == 1 && y + r + AHEAD < p->rows)
                    prefetch_codes(a->store, at + (r + AHEAD) * p->row_step, n);
                lb_run_read(cpu, a, at + r * p->row_step, p->col_step, n, c,
                            block + r * pitch * es);
            }
            lb_turn(size, block, pitch * es, tile + (x * p->pitch + y) * es,
                    p->pitch * es, rows, n);
        }
}

static void read_box(const lb_cpu *cpu, const lb_array *a, const box *b,
                     lb_ctype c, char *tile)
{
    if (!b->rank) {
        lb_run_read(cpu, a, b->first, 1, 1, c, tile);
        return;
    }
    const int r = run_axis(b), last = b->rank - 1;
    const size_t size = lb_ctype_size(c);
    const plane p = {b->n[last], b->stride[last], b->n[r], b->stride[r],
                     b->step[r]};
    const bool there = p.col_step == 1 && as_is(a, c);
    int64_t i[LB_MAX_RANK] = {0}, e = b->first, at = 0;
    for (;;) {
        char *to = tile + (size_t)at * size;
        if (r == last)
            lb_run_read(cpu, a, e, b->stride[r], b->n[r], c, to);
        else if (there)
            transpose_leaf(&p, (const char *)a->store->data + (size_t)e * size,
                           size, to);
        else
            transpose_decoded(cpu, a, &p, e, c, to);
        int k = last; /* an odometer over the other axes */
        for (; k >= 0; k--) {
            if (k == r || k == last) continue;
            e += b->stride[k];
            at += b->step[k];
            if (++i[k] < b->n[k]) break;
            e -= b->n[k] * b->stride[k];
            at -= b->n[k] * b->step[k];
            i[k] = 0;
        }
        if (k < 0) return;
    }
}

/* Copies n blocks of elements at from, each `times` times. from may overlap the
 * end of the output, because writing never overtakes reading. */
static void repeat(size_t bytes, const char *from, int64_t n, int64_t times,
                   char *to)
{
    for (int64_t r = 0; r < n; r++, from += bytes) {
        uint32_t x4;
        if (bytes == 1) {
            memset(to, *from, (size_t)times);
            to += times;
        } else if (bytes == 4) {
            memcpy(&x4, from, 4);
            for (int64_t i = 0; i < times; i++, to += 4)
                memcpy(to, &x4, 4);
        } else {
            for (int64_t i = 0; i < times; i++, to += bytes)
                memmove(to, from, bytes);
        }
    }
}

/* Removes the last axis with stride 0. Returns its size, and in *inner the
 * number of elements after it; 0 if there is none. */
static int64_t take_repeated(box *b, int64_t *inner)
{
    int k = b->rank - 1;
    while (k >= 0 && b->stride[k])
        k--;
    if (k < 0) return 0;
    const int64_t times = b->n[k];
    *inner = b->step[k];
    b->size /= times;
    for (int i = 0; i < k; i++)
        b->step[i] /= times;
    for (b->rank--; k < b->rank; k++) {
        b->n[k] = b->n[k + 1];
        b->stride[k] = b->stride[k + 1];
        b->step[k] = b->step[k + 1];
    }
    return times;
}

static void read_any(const lb_cpu *cpu, const lb_array *a, box *b, lb_ctype c,
                     char *tile)
{
    int64_t inner;
    const int64_t times = take_repeated(b, &inner);
    if (!times) {
        read_box(cpu, a, b, c, tile);
        return;
    }
    const size_t size = lb_ctype_size(c), bytes = (size_t)inner * size;
    const int64_t n = b->size / inner;
    char *end = tile + (size_t)(b->size * (times - 1)) * size;
    read_any(cpu, a, b, c, end);
    repeat(bytes, end, n, times, tile);
}

void lb_tile_read(const lb_cpu *cpu, const lb_array *a, const int64_t *lo,
                  const int64_t *n, lb_ctype c, void *tile)
{
    box b;
    merge(a, lo, n, &b);
    if (b.size) read_any(cpu, a, &b, c, tile);
}

const void *lb_tile_peek(const lb_cpu *cpu, const lb_array *a,
                         const int64_t *lo, const int64_t *n, lb_ctype c,
                         void *tile)
{
    if (as_is(a, c)) {
        box b;
        merge(a, lo, n, &b);
        if (!b.rank || (b.rank == 1 && b.stride[0] == 1))
            return (const char *)a->store->data +
                   (size_t)b.first * lb_ctype_size(c);
    }
    lb_tile_read(cpu, a, lo, n, c, tile);
    return tile;
}

/* A box that starts at a flat index and runs along the last axis. */
void lb_tile_read_flat(const lb_cpu *cpu, const lb_array *a, int64_t first,
                       int64_t n, lb_ctype c, void *out)
{
    if (lb_is_row_major(a)) {
        lb_run_read(cpu, a, a->offset + first, 1, n, c, out);
        return;
    }
    const int last = a->shape.rank - 1; /* not a scalar: scalars are row-
                                         * major */
    const size_t size = lb_ctype_size(c);
    char *to = out;
    for (int64_t i = 0, m; i < n; i += m, to += (size_t)m * size) {
        int64_t e = first + i, at = a->offset;
        m = lb_min_i64(n - i, a->shape.dim[last] - e % a->shape.dim[last]);
        for (int k = last; k >= 0; e /= a->shape.dim[k], k--)
            at += e % a->shape.dim[k] * a->stride[k];
        lb_run_read(cpu, a, at, a->stride[last], m, c, to);
    }
}

/* ---- writing ------------------------------------------------------------ */

/* Non-temporal stores; conversion happens in pieces that stay in L1. */
static void stream_run(const lb_cpu *cpu, lb_ctype c, const char *tile,
                       lb_dtype dtype, int64_t n, char *dst)
{
    enum { PIECE = 512 };
    const lb_convert_kernel *to = lb_convert_kernel_for(cpu);
    lb_stream_fn *stream = lb_stream_for(cpu);
    _Alignas(64) char piece[PIECE * 8];
    const size_t size = lb_dtype_size(dtype), from = lb_ctype_size(c);
    for (int64_t i = 0, m; i < n; i += m, tile += (size_t)m * from) {
        m = lb_min_i64(n - i, PIECE);
        to->store(c, tile, dtype, m, piece);
        stream(dst + (size_t)i * size, piece, (size_t)m * size);
    }
}

/* Large results are written with non-temporal stores: plain stores would evict
 * data that is needed, and read each line before writing it. */
static bool bypasses(const lb_cpu *cpu, const lb_array *out)
{
    return out->store->data_size >= lb_tuning_for(cpu)->bypass;
}

static void write_run(const lb_cpu *cpu, lb_array *out, int64_t e, int64_t n,
                      lb_ctype c, const void *tile)
{
    lb_store *s = out->store;
    const size_t size = lb_dtype_size(s->elem);
    char *dst = (char *)s->data + (size_t)e * size;
    if ((size_t)n * size < STREAM_RUN || !bypasses(cpu, out))
        lb_convert_kernel_for(cpu)->store(c, tile, s->elem, n, dst);
    else if (as_is(out, c))
        lb_stream_for(cpu)(dst, tile, (size_t)n * size);
    else
        stream_run(cpu, c, tile, s->elem, n, dst);
}

/* Writes n elements `step` bytes apart. */
static void spread(size_t size, const char *from, int64_t n, char *to,
                   int64_t step)
{
    switch (size) {
    case 1:
        for (int64_t i = 0; i < n; i++)
            to[i * step] = from[i];
        return;
    case 2:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * step, from + i * 2, 2);
        return;
    case 4:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * step, from + i * 4, 4);
        return;
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * step, from + i * 8, 8);
    }
}

/* To elements e, e + step, ... */
static void write_steps(const lb_cpu *cpu, lb_array *out, int64_t e,
                        int64_t step, int64_t n, lb_ctype c, const char *tile)
{
    enum { PIECE = 256 };
    _Alignas(64) char piece[PIECE * 8];
    const size_t size = lb_dtype_size(out->store->elem);
    const int64_t by = step * (int64_t)size;
    char *to = (char *)out->store->data + (size_t)e * size;
    for (int64_t i = 0, m; i < n;
         i += m, tile += (size_t)m * lb_ctype_size(c)) {
        m = lb_min_i64(n - i, PIECE);
        lb_convert_kernel_for(cpu)->store(c, tile, out->store->elem, m, piece);
        spread(size, piece, m, to + i * by, by);
    }
}

void lb_tile_write(const lb_cpu *cpu, lb_array *out, const int64_t *lo,
                   const int64_t *n, lb_ctype c, const void *tile)
{
    box b;
    merge(out, lo, n, &b);
    if (!b.size) return;
    const int last = b.rank - 1;
    const int64_t run = b.rank ? b.n[last] : 1;
    const int64_t step = b.rank ? b.stride[last] : 1;
    const char *from = tile;
    int64_t i[LB_MAX_RANK] = {0}, e = b.first;
    for (;;) {
        if (step == 1)
            write_run(cpu, out, e, run, c, from);
        else
            write_steps(cpu, out, e, step, run, c, from);
        from += (size_t)run * lb_ctype_size(c);
        int k = last - 1;
        for (; k >= 0; k--) {
            e += b.stride[k];
            if (++i[k] < b.n[k]) break;
            e -= b.n[k] * b.stride[k];
            i[k] = 0;
        }
        if (k < 0) return;
    }
}

void *lb_tile_place(const lb_cpu *cpu, lb_array *out, const int64_t *lo,
                    const int64_t *n, lb_ctype c)
{
    if (!as_is(out, c) || bypasses(cpu, out)) return NULL;
    box b;
    merge(out, lo, n, &b);
    if (b.rank > 1 || (b.rank == 1 && b.stride[0] != 1)) return NULL;
    return (char *)out->store->data + (size_t)b.first * lb_ctype_size(c);
}

void lb_tile_write_flat(const lb_cpu *cpu, lb_array *out, int64_t first,
                        int64_t n, lb_ctype c, const void *tile)
{
    if (n) write_run(cpu, out, out->offset + first, n, c, tile);
}
