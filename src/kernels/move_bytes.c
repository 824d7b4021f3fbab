/* move_bytes.c - see move_bytes.h.
 *
 * A box is brought to its simplest form (no axes of size 1, axes that lie end
 * to end on both sides are one), then one of five loops moves it. The one that
 * needs care is the transposition: a block is WIDTH bytes of the source along
 * its own rows by RUN elements of the result along its, collected in the
 * caches, its rows a line apart from a power of two. So lines are read whole
 * and written whole in long runs, whatever the strides: powers of two would
 * otherwise throw lines out of the cache before they are used up.
 */
#include "kernels/move_bytes.h"

#include <string.h>

#include "kernels/stream.h"
#include "kernels/turn.h"

enum {
    LINE = 64,             /* bytes of a cache line */
    WIDTH = 256,           /* bytes of a source row that are turned together */
    RUN = 128,             /* rows that are: a block fits the first caches */
    PLANE = 32,            /* a plane's blocks are PLANE x PLANE */
    UNIT_LEAST = 32 << 10, /* bytes: some microseconds */
    UNIT_MOST = 1 << 20,   /* bytes */
    UNITS_WANTED = 64,     /* enough for many threads to end together */
    STREAM_TOTAL = 16 << 20, /* bytes: larger than what caches would keep */
    STREAM_RUN = 256,        /* bytes: shorter ones are not worth it */
    FILL_LEAST = 64          /* bytes of a row */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t magnitude(int64_t a)
{
    return a < 0 ? -a : a;
}

/* ---- planning ----------------------------------------------------------- */

static void simplify(lb_move *m, int rank, const int64_t *n, const int64_t *src,
                     const int64_t *dst)
{
    const int64_t size = (int64_t)m->size;
    for (int k = 0; k < rank; k++) {
        if (n[k] == 1) continue;
        const int last = m->rank - 1;
        const int64_t s = src[k] * size, d = dst[k] * size;
        if (last >= 0 && m->src[last] == n[k] * s && m->dst[last] == n[k] * d) {
            m->n[last] *= n[k];
            m->src[last] = s;
            m->dst[last] = d;
            continue;
        }
        m->n[m->rank] = n[k];
        m->src[m->rank] = s;
        m->dst[m->rank++] = d;
    }
    /* Backward is forward from the other end. Not along the last axis, where
     * it would make the result's runs go backward instead. */
    for (int k = 0; k + 1 < m->rank; k++) {
        if (m->src[k] >= 0) continue;
        m->src_at += (m->n[k] - 1) * m->src[k];
        m->dst_at += (m->n[k] - 1) * m->dst[k];
        m->src[k] = -m->src[k];
        m->dst[k] = -m->dst[k];
    }
}

static void swap_i64(int64_t *a, int64_t *b)
{
    const int64_t t = *a;
    *a = *b;
    *b = t;
}

/* If the source's steps are shorter along another axis than along the last,
 * that axis goes next to it and the two are moved in blocks. */
static void choose(lb_move *m)
{
    const int last = m->rank - 1;
    const int64_t size = (int64_t)m->size;
    m->kind = LB_MOVE_STRIDED;
    if (last < 0) return;
    const bool dense = m->dst[last] == size;
    if (dense && m->src[last] == size) m->kind = LB_MOVE_ROWS;
    if (dense && m->src[last] == 0 && m->n[last] * size >= FILL_LEAST)
        m->kind = LB_MOVE_FILL;
    if (m->kind != LB_MOVE_STRIDED) return;
    int turn = -1;
    for (int k = 0; k < last; k++) {
        const int64_t now = m->src[turn < 0 ? last : turn];
        if (m->src[k] && magnitude(m->src[k]) < magnitude(now)) turn = k;
    }
    if (turn < 0) return;
    for (int k = turn; k + 1 < last; k++) {
        swap_i64(&m->n[k], &m->n[k + 1]);
        swap_i64(&m->src[k], &m->src[k + 1]);
        swap_i64(&m->dst[k], &m->dst[k + 1]);
    }
    m->kind = dense && m->src[last - 1] == size ? LB_MOVE_TURN : LB_MOVE_PLANE;
}

static void cut(lb_move *m)
{
    int64_t bytes = (int64_t)m->size;
    for (int k = 0; k < m->rank; k++)
        bytes *= m->n[k];
    const int64_t unit =
        least(most(bytes / UNITS_WANTED, UNIT_LEAST), UNIT_MOST);
    int64_t room = unit / (int64_t)m->size;
    int k = m->rank - 1;
    for (int j = 0; j < m->rank; j++)
        m->step[j] = 1;
    if (m->kind == LB_MOVE_TURN || m->kind == LB_MOVE_PLANE) {
        /* Long along the source's axis, at least one run along the result's. */
        m->step[k] = least(m->n[k], RUN);
        m->step[k - 1] = least(m->n[k - 1], most(room / m->step[k], 1));
        m->step[k] = least(m->n[k], most(room / m->step[k - 1] / RUN, 1) * RUN);
        room /= m->step[k] * m->step[k - 1];
        k = m->step[k] < m->n[k] || m->step[k - 1] < m->n[k - 1] ? -1 : k - 2;
    }
    for (; k >= 0 && room > 0; k--) {
        m->step[k] = least(m->n[k], room);
        room /= m->step[k];
        if (m->step[k] < m->n[k]) break;
    }
    for (int j = 0; j < m->rank; j++) {
        m->count[j] = (m->n[j] + m->step[j] - 1) / m->step[j];
        m->units *= m->count[j];
    }
}

lb_move lb_move_plan(size_t size, int rank, const int64_t *n,
                     const int64_t *src_stride, const int64_t *dst_stride,
                     size_t total)
{
    lb_move m = {.size = size, .units = 1, .stream = total >= STREAM_TOTAL};
    for (int k = 0; k < rank; k++)
        if (n[k] == 0) m.units = 0;
    if (!m.units) return m;
    simplify(&m, rank, n, src_stride, dst_stride);
    choose(&m);
    cut(&m);
    return m;
}

const char *lb_move_name(const lb_move *m)
{
    static const char *const name[] = {"copy rows", "fill", "transpose",
                                       "copy planes", "copy strided"};
    return name[m->kind];
}

/* ---- runs --------------------------------------------------------------- */

static void copy_run(const lb_move *m, char *d, const char *s, size_t bytes)
{
    if (m->stream && bytes >= STREAM_RUN)
        lb_stream_copy(d, s, bytes);
    else
        memcpy(d, s, bytes);
}

static void fill_run(const lb_move *m, char *d, const char *s, size_t bytes)
{
    enum { PATTERN = 1024 };
    char pattern[PATTERN];
    size_t have = m->size;
    const size_t want = bytes < PATTERN ? bytes : PATTERN;
    memcpy(pattern, s, have);
    while (have < want) {
        const size_t more = want - have < have ? want - have : have;
        memcpy(pattern + have, pattern, more);
        have += more;
    }
    for (; bytes > want; bytes -= want, d += want)
        copy_run(m, d, pattern, want);
    copy_run(m, d, pattern, bytes);
}

/* n elements, strides in bytes. */
static void copy_strided(size_t size, char *d, int64_t dst, const char *s,
                         int64_t src, int64_t n)
{
    switch (size) {
    case 1:
        for (int64_t i = 0; i < n; i++)
            d[i * dst] = s[i * src];
        return;
    case 2:
        for (int64_t i = 0; i < n; i++)
            memcpy(d + i * dst, s + i * src, 2);
        return;
    case 4:
        for (int64_t i = 0; i < n; i++)
            memcpy(d + i * dst, s + i * src, 4);
        return;
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(d + i * dst, s + i * src, 8);
    }
}

/* ---- boxes -------------------------------------------------------------- */

/* Rows of the result, columns of the source: (ni, nj) from (nj, ni). What is
 * to be read after AHEAD rows is asked for now, as far as there are more: a
 * prefetcher that knows only lines one after the other does not see it. */
static void turn_block(const lb_move *m, char *d, int64_t dst, const char *s,
                       int64_t src, int64_t ni, int64_t nj, int64_t more)
{
    enum { AHEAD = 16, ROWS = 8 };
    const int64_t size = (int64_t)m->size, pitch = RUN * size + LINE;
    _Alignas(LINE) char block[WIDTH * (RUN + LINE)];
    for (int64_t r = 0; r < nj; r += ROWS) {
        for (int64_t k = r + AHEAD; k < least(r + AHEAD + ROWS, more); k++)
            for (int64_t x = 0; x < ni * size; x += LINE)
                __builtin_prefetch(s + k * src + x);
        lb_turn(m->size, s + r * src, src, block + r * size, pitch,
                least(nj - r, ROWS), ni);
    }
    for (int64_t i = 0; i < ni; i++)
        copy_run(m, d + i * dst, block + i * pitch, (size_t)(nj * size));
}

static void turn_plane(const lb_move *m, const int64_t *n, char *d,
                       const char *s)
{
    const int j = m->rank - 1, i = j - 1;
    const int64_t size = (int64_t)m->size, width = WIDTH / size;
    for (int64_t x = 0; x < n[i]; x += width)
        for (int64_t y = 0; y < n[j]; y += RUN)
            turn_block(m, d + x * m->dst[i] + y * size, m->dst[i],
                       s + x * size + y * m->src[j], m->src[j],
                       least(n[i] - x, width), least(n[j] - y, RUN), n[j] - y);
}

static void copy_plane(const lb_move *m, const int64_t *n, char *d,
                       const char *s)
{
    const int j = m->rank - 1, i = j - 1;
    for (int64_t y = 0; y < n[j]; y += PLANE)
        for (int64_t x0 = 0; x0 < n[i]; x0 += PLANE)
            for (int64_t x = x0; x < least(x0 + PLANE, n[i]); x++)
                copy_strided(m->size, d + x * m->dst[i] + y * m->dst[j],
                             m->dst[j], s + x * m->src[i] + y * m->src[j],
                             m->src[j], least(n[j] - y, PLANE));
}

/* What a kind moves at a time: the last axis, or the last two. */
static void move_inner(const lb_move *m, const int64_t *n, char *d,
                       const char *s)
{
    const int last = m->rank - 1;
    if (last < 0) {
        memcpy(d, s, m->size);
        return;
    }
    switch (m->kind) {
    case LB_MOVE_ROWS:
        copy_run(m, d, s, (size_t)n[last] * m->size);
        return;
    case LB_MOVE_FILL:
        fill_run(m, d, s, (size_t)n[last] * m->size);
        return;
    case LB_MOVE_TURN:
        turn_plane(m, n, d, s);
        return;
    case LB_MOVE_PLANE:
        copy_plane(m, n, d, s);
        return;
    case LB_MOVE_STRIDED:
        copy_strided(m->size, d, m->dst[last], s, m->src[last], n[last]);
        return;
    }
}

static void move_box(const lb_move *m, const int64_t *n, char *d, const char *s)
{
    const bool plane = m->kind == LB_MOVE_TURN || m->kind == LB_MOVE_PLANE;
    int64_t i[LB_MAX_RANK] = {0};
    for (;;) {
        move_inner(m, n, d, s);
        int k = m->rank - (plane ? 3 : 2);
        for (; k >= 0; k--) {
            d += m->dst[k];
            s += m->src[k];
            if (++i[k] < n[k]) break;
            d -= n[k] * m->dst[k];
            s -= n[k] * m->src[k];
            i[k] = 0;
        }
        if (k < 0) return;
    }
}

void lb_move_run(const lb_move *m, const void *src, void *dst, int64_t lo,
                 int64_t hi)
{
    for (int64_t u = lo; u < hi; u++) {
        int64_t n[LB_MAX_RANK], rest = u;
        const char *s = (const char *)src + m->src_at;
        char *d = (char *)dst + m->dst_at;
        for (int k = m->rank - 1; k >= 0; k--) {
            const int64_t at = rest % m->count[k] * m->step[k];
            rest /= m->count[k];
            n[k] = least(m->step[k], m->n[k] - at);
            s += at * m->src[k];
            d += at * m->dst[k];
        }
        move_box(m, n, d, s);
    }
}
