/* test_dotlines.c - the kernels of dotbyte.h that read rows of codes as stored,
 * on every level, against their definition computed element by element, with
 * guard pages around all memory. */
/* ctest: simde bochs skip-ref */
#include <stdlib.h>

#include "base/cpu.h"
#include "check.h"
#include "draws.h"
#include "fenced.h"
#include "kernels/dotbyte.h"

static const struct subject {
    const lb_dotbyte *kernel;
    lb_level level;
    int most_x, deep; /* largest magnitude, largest panel */
} subjects[] = {
#if defined(__x86_64__)
    {&lb_dotlines_vnni, LB_LEVEL_AVX512VNNI, LB_DOTBYTE_MOST_X,
     LB_DOTBYTE_DEEP},
#endif
    {NULL, LB_LEVEL_REF, 0, 0}};

static bool runs_here(const struct subject *s)
{
#if defined(LB_SIMDE)
    (void)s;
    return true;
#else
    return lb_level_available(s->level);
#endif
}

enum {
    STEP = LB_DOTBYTE_STEP,
    TOGETHER = LB_DOTBYTE_TOGETHER,
    MR = 8,
    MOST_LINES = 9,
    ROOM = 1 << 18
};

static fenced in, more, out;

/* At the end of memory, or at its beginning. */
static void *place(const fenced *f, size_t bytes, bool end)
{
    char *const room = f->map + f->page;
    return end ? room + ROOM - bytes : room;
}

static void whose(const lb_dotbyte *k, const char *what, int rows, int64_t n)
{
    fprintf(stderr, "%s: %s, %d rows, K = %lld\n", k->name, what, rows,
            (long long)n);
}

/* Values per piece, and the padded K. */
static int64_t piece_of(const lb_dotbyte *k)
{
    return k->piece / k->size;
}
static int64_t whole_of(const lb_dotbyte *k, int64_t n)
{
    return up(n, piece_of(k) > STEP ? piece_of(k) : STEP);
}

/* Element i of a row in a panel of x, with pieces `apart` bytes apart. */
static int8_t *number_at(const lb_dotbyte *k, int8_t *x, int64_t i,
                         int64_t apart)
{
    return x + i / piece_of(k) * apart + i % piece_of(k) * k->size;
}
static int number_of(const lb_dotbyte *k, const void *p)
{
    int16_t word;
    if (k->size == 1) return *(const int8_t *)p;
    memcpy(&word, p, sizeof word);
    return word;
}

/* ---- x ------------------------------------------------------------------- */

static void check_round(const struct subject *s, int64_t n, int rows, bool end)
{
    const lb_dotbyte *k = s->kernel;
    const int64_t apart = (int64_t)rows * k->piece, whole = whole_of(k, n);
    const int64_t pieces = whole / piece_of(k);
    const size_t size = pieces ? (size_t)((pieces - 1) * apart + k->piece) : 0;
    float *x = place(&in, (size_t)n * sizeof *x, end);
    int8_t *to = place(&out, size, end);
    for (int64_t i = 0; i < n; i++) /* ties, zeros, the largest */
        x[i] = i % 5 == 1   ? (float)(int)(i % 9 - 4) * 0.5f
               : i % 5 == 2 ? -0.0f
               : i % 7 == 3 ? (float)(i % 2 ? s->most_x : -s->most_x)
                            : random_float() * (float)s->most_x;
    memset(to, 0x55, size);
    const int32_t sum = k->round(n, x, 1, 1, 1, to, apart, 0);
    int64_t want = 0;
    bool ok = true;
    for (int64_t i = 0; i < whole; i++) {
        const long v = i < n ? lrint((double)x[i]) : 0;
        ok = ok && v == number_of(k, number_at(k, to, i, apart));
        want += v;
    }
    for (int64_t p = 0; p + 1 < pieces; p++) /* other rows are unchanged */
        for (int64_t b = k->piece; b < apart; b++)
            ok = ok && to[p * apart + b] == 0x55;
    if (check_fails(ok && sum == want)) whose(k, "round", rows, n);
}

/* ---- dots ---------------------------------------------------------------- */

typedef enum { ANY, LOWEST, HIGHEST, OPPOSITE } extreme;

/* The operands. */
typedef struct {
    int x[MR][LB_DOTBYTE_DEEP];
    int8_t *w;
    int64_t step, lines, depth;
    int32_t start[LB_DOTBYTE_MAX_MR];
    float xs[LB_DOTBYTE_MAX_MR], ws[MOST_LINES + TOGETHER];
} numbers;

static void fill(const struct subject *s, numbers *v, int rows, extreme how,
                 int8_t *x)
{
    const lb_dotbyte *k = s->kernel;
    const int64_t apart = (int64_t)rows * k->piece;
    for (int i = 0; i < rows; i++) {
        int64_t sum = 0;
        for (int64_t e = 0; e < whole_of(k, v->depth); e++) {
            int8_t *const at =
                number_at(k, x + (ptrdiff_t)i * k->piece, e, apart);
            const int number = e >= v->depth    ? 0
                               : how == ANY     ? random_within(s->most_x)
                               : how == HIGHEST ? s->most_x
                                                : -s->most_x;
            const int16_t word = (int16_t)number;
            if (e < v->depth) sum += v->x[i][e] = number;
            if (k->size == 2)
                memcpy(at, &word, sizeof word);
            else
                *at = (int8_t)number;
        }
        v->start[i] = k->size == 2 ? 0 : (int32_t)(-128 * sum);
        v->xs[i] = random_float();
    }
    for (int64_t j = 0; j < v->lines; j++) {
        for (int64_t e = 0; e < v->depth; e++)
            v->w[j * v->step + e] = (int8_t)(how == ANY ? (int)random_bits()
                                             : how == LOWEST ? 127
                                                             : -128);
        v->ws[j] = random_float();
    }
}

/* step: bytes from the end of a row to the next; if below K, rows are in
 * descending order. */
static void check_dots(const struct subject *s, int rows, int64_t lines,
                       int64_t depth, int64_t gap, bool end, extreme how)
{
    static numbers v;
    const lb_dotbyte *k = s->kernel;
    const bool first = random_bits() & 1;
    const int apart = lb_dotbyte_apart(rows);
    const size_t wide = (size_t)(lines - 1) * (size_t)(depth + gap);
    const size_t xb = (size_t)(rows * whole_of(k, depth) * k->size);
    const size_t cn = (size_t)(up(lines, TOGETHER) * apart);
    int8_t *x = place(&more, xb, end);
    float *c = place(&out, cn * sizeof *c, end);
    float old[(MOST_LINES + TOGETHER) * MR];
    v = (numbers){.w = place(&in, wide + (size_t)depth, end),
                  .step = depth + gap,
                  .lines = lines,
                  .depth = depth};
    if (how == OPPOSITE) { /* the last one is stored first */
        v.w += wide;
        v.step = -v.step;
    }
    fill(s, &v, rows, how, x);
    for (size_t e = 0; e < cn; e++)
        c[e] = old[e] = random_float() * 1e6f;
    const lb_dotbyte_x rows_of = {
        .rows = rows, .planes = 1, .bytes = x, .start = v.start, .scale = v.xs};
    const lb_dotbyte_lines w = {.codes = (const uint8_t *)v.w,
                                .step = v.step,
                                .n = lines,
                                .depth = depth,
                                .ws = v.ws,
                                .next = how == ANY ? random_bits() : 0};
    k->dots(&rows_of, &w, first, c);
    bool ok = true;
    for (int64_t j = 0; j < lines; j++)
        for (int i = 0; i < rows; i++) {
            int64_t sum = 0;
            for (int64_t e = 0; e < depth; e++)
                sum += (int64_t)v.x[i][e] * v.w[j * v.step + e];
            const float t = (float)sum * v.ws[j];
            const int64_t at = j * apart + i;
            ok = ok && c[at] == fmaf(t, v.xs[i], first ? 0 : old[at]);
        }
    if (check_fails(ok)) whose(k, "dots", rows, depth);
}

static void check_subject(const struct subject *s)
{
    CHECK(s->kernel->mr == MR && s->kernel->nr == 1);
    for (int64_t n = 0; n <= 300; n++)
        for (int i = 0; i < 2; i++) {
            check_round(s, n, 1 + (int)(n % MR), i);
            check_round(s, n, 1, !i);
        }
    for (int rows = 1; rows <= MR; rows++) {
        for (int64_t depth = 1; depth <= 200; depth++)
            check_dots(s, rows, 1 + (depth + rows) % MOST_LINES, depth,
                       depth % 3 * 7, depth & 1, (extreme)(depth % 4));
        for (int64_t lines = 1; lines <= MOST_LINES; lines++)
            for (int how = 0; how < 4; how++)
                check_dots(s, rows, lines, s->deep, lines, how & 1,
                           (extreme)how);
    }
}

int main(void)
{
    in = fenced_open(ROOM - 1);
    more = fenced_open(ROOM - 1);
    out = fenced_open(ROOM - 1);
    for (const struct subject *s = subjects; s->kernel; s++)
        if (runs_here(s)) check_subject(s);
    if (!check_count) {
        printf("dotlines: no level of this machine has such kernels\n");
        return CHECK_SKIPPED;
    }
    return check_report("dotlines");
}
