/* tiles.c - any box of any view to a tile of a compute type, and back.
 *
 * A box is first merged: neighbouring axes that lie end to end become one,
 * axes of size 1 vanish. Then runs go along the last axis if its stride is 1,
 * else along the axis of the smallest stride, wherever a transposition put it,
 * and the plane of the two is turned. What is repeated is read once.
 */
#include <string.h>

#include "core/runs.h"
#include "kernels/convert.h"
#include "kernels/stream.h"
#include "kernels/tuning.h"
#include "kernels/turn.h"

enum { STREAM_RUN = 256 }; /* bytes in a row that are worth a stream */

typedef struct {
    int rank;
    int64_t n[LB_MAX_RANK];
    int64_t stride[LB_MAX_RANK]; /* in the store */
    int64_t step[LB_MAX_RANK];   /* in the tile, row-major */
    int64_t first;               /* element of the store */
    int64_t size;                /* elements */
} box;

/* Entries past the rank are not set: clearing all takes longer than merging. */
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

/* The elements of a store as they lie are those of a tile. */
static bool as_is(const lb_array *a, lb_ctype c)
{
    const lb_store *s = a->store;
    return s->data && s->elem == a->dtype && s->ctype == c &&
           lb_dtype_size(s->elem) == lb_ctype_size(c);
}

/* ---- reading ------------------------------------------------------------ */

/* The axis along which the store is read: the last if its elements are
 * neighbours, else the one whose are the nearest to each other. */
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
    int64_t rows, row_step; /* along the last: how many, how far in the store */
    int64_t cols, col_step; /* along r */
    int64_t pitch;          /* of the tile, along r */
} plane;

/* Rows of a plane lie far apart: what a prefetcher that knows only lines one
 * after the other does not see is asked for this many rows ahead. */
enum { ROWS = 8, AHEAD = 16 };

static void ask_for(const char *from, const char *end)
{
    enum { LINE = 64 };
    for (; from < end; from += LINE)
        __builtin_prefetch(from);
}

/* Of a leaf whose elements are the tile's. */
static void turn_there(const plane *p, const char *src, size_t size, char *dst)
{
    const int64_t es = (int64_t)size, step = p->row_step * es;
    for (int64_t y = 0; y < p->rows; y += ROWS) {
        const int64_t ahead = lb_min_i64(y + AHEAD + ROWS, p->rows);
        for (int64_t k = y + AHEAD; k < ahead; k++)
            ask_for(src + k * step, src + k * step + p->cols * es);
        lb_turn(size, src + y * step, step, dst + y * es, p->pitch * es,
                lb_min_i64(p->rows - y, ROWS), p->cols);
    }
}

/* The codes of n elements of a store from e on, if they are bytes. */
static void ask_for_codes(const lb_store *s, int64_t e, int64_t n)
{
    if (s->data || !s->fmt->part[0].raw) return;
    const int64_t size = (int64_t)lb_dtype_size(s->part[0].a->dtype);
    const int64_t own = lb_max_i64(s->part[0].own, 1);
    const char *codes = lb_part_bytes(s, 0);
    ask_for(codes + lb_part_entry(s, 0, e) * size,
            codes + (lb_part_entry(s, 0, e + n - 1) + own) * size);
}

/* Of any other store, from element e on: rows are read to a block on the
 * stack, in runs that are long if the box is, and turned there. Rows that lie
 * close to each other are read as one, with what is between them. */
static void turn_aside(const lb_cpu *cpu, const lb_array *a, const plane *p,
                       int64_t e, lb_ctype c, char *tile)
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
                    ask_for_codes(a->store, at + (r + AHEAD) * p->row_step, n);
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
            turn_there(&p, (const char *)a->store->data + (size_t)e * size,
                       size, to);
        else
            turn_aside(cpu, a, &p, e, c, to);
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

/* n blocks of elements at from, each `times` times. from may be the end of what
 * is written, which never reaches what is still to be read. */
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

/* Takes out the last axis whose elements are all one; returns how many they
 * are, and of what follows it, or 0. */
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

/* The box that begins at a flat index and runs along the last axis. */
void lb_tile_read_flat(const lb_cpu *cpu, const lb_array *a, int64_t first,
                       int64_t n, lb_ctype c, void *out)
{
    if (lb_is_row_major(a)) {
        lb_run_read(cpu, a, a->offset + first, 1, n, c, out);
        return;
    }
    const int last = a->shape.rank - 1; /* not a scalar: those are row-major */
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

/* Past the caches; what is to be converted is, in pieces that stay in one. */
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

/* Large results are written past the caches: they would only push out what is
 * needed, and a plain store first reads the line it replaces. */
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

/* n elements to places that are `step` bytes apart. */
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

/* To elements e, e + step, .. */
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
