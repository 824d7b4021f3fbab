/* tiles.c - any box of any view to a tile of a compute type, and back.
 *
 * The only caller of decode. A box is first merged: neighbouring axes that lie
 * end to end become one, axes of size 1 vanish. Then runs go along the last
 * axis if its stride is 0 or 1, else along the axis of the smallest stride,
 * wherever a transposition put it, and are spread over the tile.
 */
#include <string.h>

#include "core/core.h"
#include "kernels/convert.h"
#include "kernels/stream.h"
#include "kernels/tuning.h"
#include "kernels/turn.h"

enum { STREAM_RUN = 1024 }; /* elements in a row that are worth a stream */

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

/* ---- runs --------------------------------------------------------------- */

/* Elements that are decoded beside the tile, on the stack: parts of parts are
 * read from within decoders, so there may be several of these. */
enum { ASIDE = 256 };

/* n <= LB_RUN consecutive elements, split where stored rows end. */
static void decode_rows(const lb_cpu *cpu, const lb_store *s, int64_t first,
                        int64_t n, char *out)
{
    const int rank = s->shape.rank;
    const int64_t row = rank ? s->shape.dim[rank - 1] : 1;
    const size_t size = lb_ctype_size(s->ctype);
    for (int64_t m; n > 0; first += m, n -= m, out += (size_t)m * size) {
        m = lb_min_i64(n, row - first % row);
        s->fmt->decode(cpu, s, first, m, out);
    }
}

/* Elements first, first + step, ..: at most LB_RUN, in the store's ctype. */
static void decode_run(const lb_cpu *cpu, const lb_store *s, int64_t first,
                       int64_t step, int64_t n, char *out)
{
    if (s->fmt->decode_strided) {
        s->fmt->decode_strided(cpu, s, first, step, n, out);
        return;
    }
    if (step == 1) {
        decode_rows(cpu, s, first, n, out);
        return;
    }
    /* Decode the span in between and pick from it. */
    const size_t size = lb_ctype_size(s->ctype);
    const int64_t gap = step < 0 ? -step : step;
    const int64_t most = gap < ASIDE ? (ASIDE - 1) / lb_max_i64(gap, 1) + 1 : 1;
    _Alignas(64) char span[ASIDE * 8];
    for (int64_t i = 0, m; i < n; i += m) {
        m = gap ? lb_min_i64(n - i, most) : n;
        const int64_t width = gap ? (m - 1) * gap + 1 : 1;
        const int64_t e = first + (step < 0 ? i + m - 1 : i) * step;
        decode_rows(cpu, s, e, width, span);
        for (int64_t k = 0; k < m; k++) {
            const int64_t at = step < 0 ? (m - 1 - k) * gap : k * gap;
            memcpy(out + (size_t)(i + k) * size, span + (size_t)at * size,
                   size);
        }
    }
}

static void spread(const char *from, int64_t n, size_t size, char *to,
                   int64_t step)
{
    switch (size) {
    case 1:
        for (int64_t i = 0; i < n; i++)
            to[i * step] = from[i];
        return;
    case 4:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * step * 4, from + i * 4, 4);
        return;
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * step * 8, from + i * 8, 8);
    }
}

/* What is decoded is what the tile is made of, but for rounding. */
static void read_there(const lb_cpu *cpu, const lb_array *a, int64_t first,
                       int64_t stride, int64_t n, char *tile)
{
    const lb_store *s = a->store;
    const lb_convert_kernel *to = lb_convert_kernel_for(cpu);
    const size_t size = lb_ctype_size(s->ctype);
    for (int64_t i = 0, m; i < n; i += m, tile += (size_t)m * size) {
        m = lb_min_i64(n - i, LB_RUN);
        decode_run(cpu, s, first + i * stride, stride, m, tile);
        if (!s->data) to->round(a->dtype, m, tile);
    }
}

/* It is converted on the way, or spread. */
static void read_aside(const lb_cpu *cpu, const lb_array *a, int64_t first,
                       int64_t stride, int64_t n, lb_ctype c, char *tile,
                       int64_t step)
{
    const lb_store *s = a->store;
    const lb_convert_kernel *to = lb_convert_kernel_for(cpu);
    const lb_ctype label = lb_ctype_of(a->dtype);
    const size_t size = lb_ctype_size(c);
    _Alignas(64) char buf[2][ASIDE * 8];
    for (int64_t i = 0, m; i < n; i += m) {
        m = lb_min_i64(n - i, ASIDE);
        char *at = tile + (size_t)(i * step) * size, *run = buf[0];
        decode_run(cpu, s, first + i * stride, stride, m, run);
        if (s->ctype != label) {
            to->store(s->ctype, run, lb_widest_of(label), m, buf[1]);
            run = buf[1];
        }
        if (!s->data) to->round(a->dtype, m, run);
        if (label != c) {
            char *other = run == buf[0] ? buf[1] : buf[0];
            to->store(label, run, lb_widest_of(c), m, other);
            run = other;
        }
        if (step == 1)
            memcpy(at, run, (size_t)m * size);
        else
            spread(run, m, size, at, step);
    }
}

/* n elements first, first + stride, .. to tile[i * step] of ctype c. */
static void read_run(const lb_cpu *cpu, const lb_array *a, int64_t first,
                     int64_t stride, int64_t n, lb_ctype c, char *tile,
                     int64_t step)
{
    const lb_store *s = a->store;
    const bool same = s->ctype == c && step == 1;
    if (same && s->data && s->fmt->decode_strided)
        s->fmt->decode_strided(cpu, s, first, stride, n, tile);
    else if (same && lb_ctype_of(a->dtype) == c)
        read_there(cpu, a, first, stride, n, tile);
    else
        read_aside(cpu, a, first, stride, n, c, tile, step);
}

/* ---- boxes -------------------------------------------------------------- */

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

/* A leaf whose elements are the tile's, with the run's axis not the last: its
 * planes are transposed block by block. Blocks of 32x32 keep both sides of
 * the transposition in the first cache, whatever the strides. */
static void read_transposed(const lb_array *a, const box *b, int r,
                            const int64_t *i, lb_ctype c, char *tile)
{
    enum { BLOCK = 32 };
    const size_t size = lb_ctype_size(c);
    const int last = b->rank - 1;
    const int64_t es = (int64_t)size, to_y = b->stride[last];
    int64_t e = b->first, at = 0;
    for (int k = 0; k < b->rank; k++) {
        e += i[k] * b->stride[k];
        at += i[k] * b->step[k];
    }
    const char *src = (const char *)a->store->data + (size_t)e * size;
    char *dst = tile + (size_t)at * size;
    for (int64_t y = 0; y < b->n[last]; y += BLOCK)
        for (int64_t x = 0; x < b->n[r]; x += BLOCK)
            lb_turn(size, src + (y * to_y + x) * es, to_y * es,
                    dst + (x * b->step[r] + y) * es, b->step[r] * es,
                    lb_min_i64(b->n[last] - y, BLOCK),
                    lb_min_i64(b->n[r] - x, BLOCK));
}

void lb_tile_read(const lb_cpu *cpu, const lb_array *a, const int64_t *lo,
                  const int64_t *n, lb_ctype c, void *tile)
{
    box b;
    merge(a, lo, n, &b);
    if (!b.size) return;
    if (!b.rank) {
        read_run(cpu, a, b.first, 1, 1, c, tile, 1);
        return;
    }
    const int r = run_axis(&b), last = b.rank - 1;
    const bool plane = r != last && b.stride[r] == 1 && as_is(a, c);
    const size_t size = lb_ctype_size(c);
    int64_t i[LB_MAX_RANK] = {0}, e = b.first, at = 0;
    for (;;) {
        if (plane)
            read_transposed(a, &b, r, i, c, tile);
        else
            read_run(cpu, a, e, b.stride[r], b.n[r], c,
                     (char *)tile + (size_t)at * size, b.step[r]);
        int k = last; /* an odometer over the other axes */
        for (; k >= 0; k--) {
            if (k == r || (plane && k == last)) continue;
            e += b.stride[k];
            at += b.step[k];
            if (++i[k] < b.n[k]) break;
            e -= b.n[k] * b.stride[k];
            at -= b.n[k] * b.step[k];
            i[k] = 0;
        }
        if (k < 0) return;
    }
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
        read_run(cpu, a, a->offset + first, 1, n, c, out, 1);
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
        read_run(cpu, a, at, a->stride[last], m, c, to, 1);
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
    if (n < STREAM_RUN || !bypasses(cpu, out))
        lb_convert_kernel_for(cpu)->store(c, tile, s->elem, n, dst);
    else if (as_is(out, c))
        lb_stream_for(cpu)(dst, tile, (size_t)n * size);
    else
        stream_run(cpu, c, tile, s->elem, n, dst);
}

void lb_tile_write(const lb_cpu *cpu, lb_array *out, const int64_t *lo,
                   const int64_t *n, lb_ctype c, const void *tile)
{
    box b;
    merge(out, lo, n, &b);
    if (!b.size) return;
    /* A box may be a column: then no axis of it is consecutive. */
    const bool rows = b.rank && b.stride[b.rank - 1] == 1;
    const int outer = rows ? b.rank - 2 : b.rank - 1;
    const int64_t run = rows ? b.n[b.rank - 1] : 1;
    const char *from = tile;
    int64_t i[LB_MAX_RANK] = {0}, e = b.first;
    for (;;) {
        write_run(cpu, out, e, run, c, from);
        from += (size_t)run * lb_ctype_size(c);
        int k = outer;
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

/* ---- tilings ------------------------------------------------------------ */

/* The axis along which some operand is consecutive though the last is not. */
static int other_axis(const lb_shape *shape, const lb_array *const *in, int n)
{
    const int last = shape->rank - 1;
    for (int i = 0; i < n; i++) {
        if (shape->dim[last] == 1 || in[i]->stride[last] == 1 ||
            in[i]->stride[last] == 0)
            continue;
        for (int k = 0; k < last; k++)
            if (in[i]->stride[k] == 1 && shape->dim[k] > 1) return k;
    }
    return -1;
}

lb_tiling lb_tiling_for(const lb_shape *shape, const lb_array *const *in, int n)
{
    enum { ROW = 64 };
    lb_tiling t = {.shape = *shape, .tiles = 1};
    const int last = shape->rank - 1;
    int64_t room = LB_TILE;
    const int other = last > 0 ? other_axis(shape, in, n) : -1;
    for (int k = 0; k <= last; k++)
        t.n[k] = 1;
    if (other >= 0) {
        t.n[last] = lb_min_i64(shape->dim[last], ROW);
        t.n[other] = lb_min_i64(shape->dim[other], ROW / 2);
        room /= lb_max_i64(t.n[last] * t.n[other], 1);
    }
    for (int k = last; k >= 0 && room > 1; k--) {
        if (k == other || (other >= 0 && k == last)) continue;
        t.n[k] = lb_max_i64(lb_min_i64(shape->dim[k], room), 1);
        room /= t.n[k];
        if (t.n[k] < shape->dim[k]) break;
    }
    for (int k = 0; k <= last; k++) {
        t.n[k] = lb_max_i64(t.n[k], 1);
        t.count[k] = lb_ceil_div(shape->dim[k], t.n[k]);
        t.tiles *= t.count[k];
    }
    return t;
}

int64_t lb_tiling_box(const lb_tiling *t, int64_t tile, int64_t *lo, int64_t *n)
{
    int64_t size = 1;
    for (int k = t->shape.rank - 1; k >= 0; k--) {
        lo[k] = tile % t->count[k] * t->n[k];
        tile /= t->count[k];
        n[k] = lb_min_i64(t->n[k], t->shape.dim[k] - lo[k]);
        size *= n[k];
    }
    return size;
}
