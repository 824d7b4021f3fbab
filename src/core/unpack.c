/* unpack.c - decodes a run of a packed store to memory, as elements of a float
 * dtype.
 *
 * Like lb_tile_read and lb_tile_write for boxes, for the case that source and
 * destination are in the same order. Formats that can decode directly to the
 * destination do so; otherwise elements are decoded, and converted or copied,
 * in pieces. Non-temporal stores write whole lines: if the destination is not
 * aligned, the rest of a line is buffered until the next piece.
 */
#include <string.h>

#include "core/core.h"
#include "kernels/convert.h"
#include "kernels/stream.h"

enum { LINE = 64, PIECE = 512, FAR = 16 * LB_RUN, ROWS = 256 };

typedef struct {
    const lb_cpu *cpu;
    const lb_store *store;
    lb_dtype dtype;
    bool past;
    char *to;
    size_t left; /* bytes buffered in line */
    char line[LINE];
} unpack_job;

static void decode(const unpack_job *j, int64_t first, int64_t n, void *out)
{
    j->store->fmt->decode(j->cpu, j->store, first, n, out);
}

/* Writes converted bytes; all: including an incomplete line. */
static void stream(unpack_job *j, const char *from, size_t bytes, bool all)
{
    lb_stream_fn *copy = lb_stream_for(j->cpu);
    if (j->left) { /* complete the buffered line */
        const size_t room = LINE - ((uintptr_t)j->to + j->left) % LINE;
        const size_t n = bytes < room ? bytes : room;
        memcpy(j->line + j->left, from, n);
        j->left += n;
        from += n;
        bytes -= n;
        if (n < room && !all) return;
        copy(j->to, j->line, j->left);
        j->to += j->left;
        j->left = 0;
    }
    const size_t over = ((uintptr_t)j->to + bytes) % LINE;
    const size_t wait = all ? 0 : over < bytes ? over : bytes;
    if (bytes > wait) copy(j->to, from, bytes - wait);
    if (wait) memcpy(j->line, from + bytes - wait, wait);
    j->to += bytes - wait;
    j->left = wait;
}

/* n <= LB_RUN elements of a stored row. */
static void put_run(unpack_job *j, int64_t first, int64_t n)
{
    const size_t size = lb_dtype_size(j->dtype);
    const lb_sink sink = {j->dtype, j->past, j->to};
    const lb_format *fmt = j->store->fmt;
    if (!j->left && fmt->unpack &&
        fmt->unpack(j->cpu, j->store, first, n, sink)) {
        j->to += (size_t)n * size;
        return;
    }
    if (!j->past && j->dtype == LB_F32) {
        decode(j, first, n, j->to);
        j->to += (size_t)n * size;
        return;
    }
    _Alignas(64) float run[LB_RUN];
    _Alignas(64) char piece[PIECE * 8];
    decode(j, first, n, run);
    if (j->dtype == LB_F32) {
        stream(j, (const char *)run, (size_t)n * size, false);
        return;
    }
    for (int64_t i = 0, m; i < n; i += m) {
        m = lb_min_i64(n - i, PIECE);
        lb_convert_kernel_for(j->cpu)->store(LB_C_F32, run + i, j->dtype, m,
                                             j->past ? piece : j->to);
        if (j->past)
            stream(j, piece, (size_t)m * size, false);
        else
            j->to += (size_t)m * size;
    }
}

/* Decodes many runs in one call, so that unpack has fewer boundaries, at which
 * non-temporal stores stall and lines shared by two runs are written in two
 * parts. Returns the number of elements; 0: none. */
static int64_t put_far(unpack_job *j, int64_t first, int64_t n)
{
    const lb_sink sink = {j->dtype, j->past, j->to};
    const int64_t m = lb_min_i64(n, FAR) / ROWS * ROWS;
    if (j->left || m <= LB_RUN ||
        !j->store->fmt->unpack(j->cpu, j->store, first, m, sink))
        return 0;
    j->to += (size_t)m * lb_dtype_size(j->dtype);
    return m;
}

void lb_unpack(const lb_cpu *cpu, const lb_store *s, int64_t first, int64_t n,
               lb_sink to)
{
    if (n <= 0) return;
    const int last = s->shape.rank - 1;
    const int64_t row = last < 0 ? 1 : s->shape.dim[last];
    int64_t at = first % row; /* position in its row */
    unpack_job j = {.cpu = cpu,
                    .store = s,
                    .dtype = to.dtype,
                    .past = to.past,
                    .to = to.out};
    bool far = s->fmt->unpack && row % ROWS == 0;
    for (int64_t m; n > 0; first += m, n -= m, at = (at + m) % row) {
        m = far ? put_far(&j, first, n) : 0;
        if (m) continue;
        far = false;
        m = lb_min_i64(n, lb_min_i64(row - at, LB_RUN));
        put_run(&j, first, m);
    }
    if (j.left) stream(&j, j.line, 0, true);
    if (to.past) lb_stream_end();
}
