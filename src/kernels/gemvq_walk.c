/* gemvq_walk.c - lines of any length, in any number, as kernels want them. */
#include <math.h>
#include <string.h>

#include "kernels/gemvq.h"
#include "kernels/gemvq_sets.h"

enum {
    UNITS = LB_GEMVQ_PANEL / 16 + 1, /* most scales of a panel */
    LAST = LB_GEMVQ_I8_PANEL / 4,    /* most bytes that are filled up */
    APART = 16 /* sums of rows that would else fall together in a cache */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t bytes_of(const lb_gemvq_kernel *q, int64_t elements)
{
    return (elements * q->bits + 7) / 8;
}

/* Codes whose last group is not whole, filled up. */
static const uint8_t *whole_group(const lb_gemvq_kernel *q, const uint8_t *from,
                                  int64_t elements, uint8_t *to)
{
    const int64_t groups = (elements + q->group - 1) / q->group;
    memset(to, 0, (size_t)bytes_of(q, groups * q->group));
    memcpy(to, from, (size_t)bytes_of(q, elements));
    return to;
}

/* Scales of blocks of g elements to scales of units, n of them from the
 * element on that begins one; none: ones. */
static void spread(const float *scale, int64_t g, int64_t at, int64_t unit,
                   int64_t n, float *to)
{
    for (int64_t u = 0; u < n && !g; u++)
        to[u] = 1;
    if (!g) return;
    scale += at / g;
    for (int64_t u = 0, left = g - at % g; u < n; left = g, scale++)
        for (; u < n && left > 0; left -= unit)
            to[u++] = *scale;
}

/* g elements are 2^shift groups, and a scale may serve so many; else 0. */
static int shift_of(const lb_gemvq_kernel *q, int64_t g)
{
    int shift = 0;
    while (q->unit == q->group && (int64_t)q->group << shift < g)
        shift++;
    return (int64_t)q->group << shift == g ? shift : 0;
}

/* ---- rows --------------------------------------------------------------- */

typedef struct {
    const lb_gemvq_kernel *q;
    const lb_gemvq_lines *w;
    const lb_gemvq_x *x;
    int64_t full, panel; /* elements: in whole groups; for one call of these */
    int group_log;       /* elements of a group: 2^ */
    int shift;           /* see lb_gemvq_rows */
    int block_log;       /* scales are used where they lie, one for 2^; or -1 */
} rows_job;

static int log_of(int64_t n)
{
    int k = 0;
    while ((int64_t)1 << k < n)
        k++;
    return k;
}

static rows_job rows_of(const lb_gemvq_kernel *q, const lb_gemvq_lines *w,
                        const lb_gemvq_x *x)
{
    rows_job j = {.q = q, .w = w, .x = x, .block_log = -1};
    j.group_log = log_of(q->group);
    j.shift = shift_of(q, w->g);
    if (q->unit && w->g == (int64_t)q->unit << j.shift)
        j.block_log = log_of(w->g);
    j.full = w->n - w->n % q->group;
    j.panel = LB_GEMVQ_PANEL;
    if (q->kind == LB_GEMVQ_I8X2 || q->kind == LB_GEMVQ_I8) {
        /* The kernel folds panels of whole numbers, which must stay whole for
         * the same bits with groups of any size. */
        if (j.full < w->n) j.full = w->n - w->n % LB_GEMVQ_I8_PANEL;
        j.panel = j.full;
    }
    return j;
}

/* Where x of an element begins that begins a group. */
static void aim_x(const rows_job *j, int64_t at, lb_gemvq_rows *r)
{
    const lb_gemvq_x *x = j->x;
    switch (j->q->kind) {
    case LB_GEMVQ_F32:
        r->x = (const float *)x->slots + at;
        break;
    case LB_GEMVQ_I16:
        r->x = (const int16_t *)x->slots + at;
        r->x_scale = x->x_scale + at / LB_GEMVQ_I16_PANEL;
        break;
    case LB_GEMVQ_I8X2:
    case LB_GEMVQ_I8:
        r->x = (const int8_t *)x->slots +
               (j->q->kind == LB_GEMVQ_I8 ? at : 2 * at);
        r->x_scale = x->x_scale + at / LB_GEMVQ_I8_PANEL;
        r->x_sum = x->x_sum + at / LB_GEMVQ_I8_PANEL;
        break;
    }
}

/* Whole groups of four lines from an element on. */
static void run_whole(const rows_job *j, const int64_t *line, int64_t at,
                      int64_t n, lb_gemvq_rows *r, float *y)
{
    const lb_gemvq_lines *w = j->w;
    float scale[LB_GEMVQ_ROWS][UNITS];
    const int64_t byte = at * j->q->bits / 8;
    const bool direct = j->block_log >= 0;
    r->groups = n >> j->group_log;
    r->shift = j->shift;
    aim_x(j, at, r);
    for (int i = 0; i < LB_GEMVQ_ROWS; i++) {
        r->codes[i] = w->codes + line[i] * w->step + byte;
        if (!j->q->unit) continue;
        r->scale[i] = w->scale + line[i] * w->scale_step;
        if (direct) {
            r->scale[i] += at >> j->block_log;
            continue;
        }
        spread(r->scale[i], w->g, at, j->q->unit, n / j->q->unit, scale[i]);
        r->scale[i] = scale[i];
    }
    j->q->rows(r, y);
}

/* The rest of four lines, whose last group is not whole. */
static void run_rest(const rows_job *j, const int64_t *line, int64_t at,
                     int64_t n, lb_gemvq_rows *r, float *y)
{
    const lb_gemvq_kernel *q = j->q;
    const lb_gemvq_lines *w = j->w;
    uint8_t codes[LB_GEMVQ_ROWS][LAST];
    float scale[LB_GEMVQ_ROWS][UNITS] = {{0}};
    r->groups = (n + q->group - 1) / q->group;
    r->shift = 0;
    aim_x(j, at, r);
    for (int i = 0; i < LB_GEMVQ_ROWS; i++) {
        r->codes[i] = whole_group(
            q, w->codes + line[i] * w->step + at * q->bits / 8, n, codes[i]);
        r->scale[i] = scale[i];
        if (q->unit)
            spread(w->scale + line[i] * w->scale_step, w->g, at, q->unit,
                   (n + q->unit - 1) / q->unit, scale[i]);
    }
    q->rows(r, y);
}

static void add_part(const float *part, bool first, float *y)
{
    for (int i = 0; i < LB_GEMVQ_ROWS; i++)
        y[i] = first ? part[i] : y[i] + part[i];
}

static void run_four(const rows_job *j, const int64_t *line, lb_gemvq_rows *r,
                     float *y)
{
    float part[LB_GEMVQ_ROWS] = {0};
    for (int64_t at = 0; at < j->full; at += j->panel) {
        run_whole(j, line, at, least(j->panel, j->full - at), r, part);
        add_part(part, at == 0, y);
    }
    if (j->full == j->w->n) return;
    run_rest(j, line, j->full, j->w->n - j->full, r, part);
    add_part(part, j->full == 0, y);
}

/* Asks for the scales of a line, which may lie past the last. */
static void fetch_scales(const lb_gemvq_lines *w, int64_t line)
{
    enum { LINE = 64 };
    const uintptr_t from = (uintptr_t)w->scale +
                           (uintptr_t)(line * w->scale_step) * sizeof *w->scale;
    const uintptr_t bytes = (uintptr_t)(w->n / w->g) * sizeof *w->scale;
    for (uintptr_t b = 0; b < bytes; b += LINE)
        __builtin_prefetch((const void *)(from + b), 0, 3);
}

void lb_gemvq_run_rows(const lb_gemvq_kernel *q, const lb_gemvq_lines *w,
                       const lb_gemvq_x *x, int64_t n, int64_t apart, float *y)
{
    const rows_job j = rows_of(q, w, x);
    lb_gemvq_rows r = {.table = w->table, .ahead = w->ahead};
    float part[LB_GEMVQ_ROWS] = {0};
    for (int64_t at = 0; at < n;) {
        if (n - at < LB_GEMVQ_ROWS * apart)
            apart = n - at < LB_GEMVQ_ROWS ? 1 : (n - at) / LB_GEMVQ_ROWS;
        for (int64_t k = at; k < at + apart; k++) {
            int64_t line[LB_GEMVQ_ROWS];
            for (int i = 0; i < LB_GEMVQ_ROWS; i++) {
                line[i] = least(k + i * apart, n - 1);
                /* Lines apart are places of their own, whose scales come by
                 * themselves: to ask for those took 3 %. */
                if (w->ahead && w->g && apart == 1)
                    fetch_scales(w, line[i] + LB_GEMVQ_ROWS);
            }
            run_four(&j, line, &r, part);
            for (int i = 0; i < LB_GEMVQ_ROWS; i++)
                y[line[i]] = part[i];
        }
        at += LB_GEMVQ_ROWS * apart;
    }
}

/* ---- cols --------------------------------------------------------------- */

/* How scratch is divided. */
typedef struct {
    const lb_gemvq_kernel *q;
    const lb_gemvq_lines *w;
    int rows;                   /* of x, at once, */
    int64_t y_apart, sum_apart; /* and numbers from one's to the next's */
    int64_t groups, units;      /* numbers of x to a line, 0: one */
    int64_t unit;               /* elements that each serves */
    int64_t used;               /* units that are not past the last column */
    bool direct;                /* there is a scale for each */
    int shift;
    int64_t lines;  /* of a panel, */
    int64_t often;  /* and rounds of it that sums have room for */
    float *y;       /* in slots */
    char *sum;      /* whole numbers; F32: y */
    int32_t *whole; /* I8: of a panel, where sums have room for less */
    const lb_gemvq_loops *loops;
    float *xs;           /* units of x times scales, or of scales, of eight
                          * lines; I16, not direct: of scales, of all lines of
                          * a panel */
    int32_t *pairs;      /* I16: the same of eight lines, in whole numbers */
    float *x_scale, *by; /* I16: of each unit, what 1 of those is, and 1 over */
    size_t size;
} cols_job;

/* NULL, when only the size is asked. */
static void *take(cols_job *j, char *scratch, int64_t n, size_t each)
{
    char *at = scratch ? scratch + j->size : NULL;
    j->size += ((size_t)n * each + 63) / 64 * 64;
    return at;
}

/* Lines of a panel, which share a scale of x where this is rounded. */
static int64_t panel_lines(const lb_gemvq_kernel *q)
{
    if (q->kind != LB_GEMVQ_I16) return LB_GEMVQ_MOST_LINES;
    return q->lines ? q->lines : LB_GEMVQ_LINES;
}

/* Rounds until sums of I8 are full. */
static int64_t full_after(const lb_gemvq_kernel *q)
{
    return (q->lines ? q->lines : LB_GEMVQ_LINES) / LB_GEMVQ_COLS;
}

static cols_job divide(const lb_gemvq_kernel *q, const lb_gemvq_lines *w,
                       int64_t n, int64_t g, char *scratch)
{
    cols_job j = {.q = q, .w = w, .groups = (n + q->group - 1) / q->group};
    const bool is_f32 = q->kind == LB_GEMVQ_F32;
    const int64_t slots = j.groups * q->group;
    j.shift = shift_of(q, g);
    j.unit = (int64_t)q->unit << j.shift;
    const int64_t units = q->unit ? (slots + j.unit - 1) / j.unit : 0;
    j.units = units;
    j.used = q->unit ? (n + j.unit - 1) / j.unit : 0;
    j.direct = g == j.unit;
    const int most = lb_gemvq_cols_rows(q);
    j.sum_apart = slots + APART;
    j.sum = take(&j, scratch, is_f32 ? 0 : most * j.sum_apart, q->sum_size);
    j.lines = panel_lines(q);
    j.often = full_after(q);
    const bool in_parts =
        !is_f32 && q->kind != LB_GEMVQ_I16 && j.often * LB_GEMVQ_COLS < j.lines;
    j.whole = take(&j, scratch, in_parts ? slots : 0, sizeof(int32_t));
    const int64_t lines = is_f32     ? most * LB_GEMVQ_COLS
                          : j.direct ? 0
                                     : j.lines;
    j.xs = take(&j, scratch, lines * units, sizeof(float));
    const int64_t whole = q->kind == LB_GEMVQ_I16 ? most * units : 0;
    j.pairs = take(&j, scratch, LB_GEMVQ_COLS / 2 * whole, sizeof(int32_t));
    j.x_scale = take(&j, scratch, whole, sizeof(float));
    j.by = take(&j, scratch, whole, sizeof(float));
    return j;
}

int lb_gemvq_cols_rows(const lb_gemvq_kernel *q)
{
    return !q->few ? 1 : q->only_two ? 2 : LB_GEMVQ_FEW;
}

size_t lb_gemvq_cols_size(const lb_gemvq_kernel *q, int64_t n, int64_t g)
{
    return divide(q, NULL, n, g, NULL).size;
}

/* Lines of a panel in the order in which they are read: eight, then eight
 * more. They lie apart, and not quite evenly: where lines are 2 KiB long, all
 * eight would compete for the same few places in L1. Kernels that ask for lines
 * ahead want them one after the other. Lines past the last count as zeros. */
typedef struct {
    int64_t first, n, rounds;
    bool together;
    const float *x;  /* of the first, */
    int64_t x_apart; /* and from row to row */
} panel;

static void lines_of(const panel *p, int64_t round, int64_t *line)
{
    int64_t k = round, first = 0;
    for (int i = 0; i < LB_GEMVQ_COLS; i++, k++, first += p->rounds) {
        if (k >= p->rounds) k = 0;
        line[i] = p->together ? round * LB_GEMVQ_COLS + i : first + k;
        if (line[i] >= p->n) line[i] = -1;
    }
}

static void run_groups(const cols_job *j, const lb_gemvq_cols *c)
{
    if (j->rows > 1)
        j->q->few(c, j->rows);
    else
        j->q->cols(c);
}

/* Runs eight lines over all groups. */
static void run_eight(const cols_job *j, const panel *p, const int64_t *line,
                      lb_gemvq_cols *c, size_t x_step)
{
    uint8_t codes[LB_GEMVQ_COLS][LB_GEMVQ_BYTES];
    const lb_gemvq_kernel *q = j->q;
    const int64_t full = j->w->n / q->group, rest = j->w->n % q->group;
    c->shift = j->shift;
    c->table = j->w->table;
    c->ahead = j->w->ahead;
    for (int i = 0; i < LB_GEMVQ_COLS; i++) {
        const int64_t k = line[i] < 0 ? 0 : line[i];
        c->codes[i] = j->w->codes + (p->first + k) * j->w->step;
    }
    c->sum = j->sum;
    c->sum_apart = j->sum_apart;
    c->groups = full;
    if (full) run_groups(j, c);
    if (!rest) return;
    const int64_t at = full * q->group;
    c->groups = 1;
    c->sum = j->sum + (size_t)at * (q->kind == LB_GEMVQ_F32 ? sizeof(float)
                                                            : q->sum_size);
    for (int i = 0; i < LB_GEMVQ_COLS; i++) {
        c->codes[i] =
            whole_group(q, c->codes[i] + at * q->bits / 8, rest, codes[i]);
        if (j->units && c->x[i])
            c->x[i] = (const char *)c->x[i] + x_step * (size_t)(at / j->unit);
    }
    run_groups(j, c);
}

/* The scales of a line, for each unit that is used: fewer than there are where
 * the last group is not whole. */
static const float *scales_at(const cols_job *j, const panel *p, int64_t k,
                              float *tmp)
{
    const float *scale = j->w->scale + (p->first + k) * j->w->scale_step;
    if (j->direct) return scale;
    spread(scale, j->w->g, 0, j->unit, j->used, tmp);
    return tmp;
}

/* Zeros for units that are not used, of 4 bytes each. */
static void fill_up(const cols_job *j, void *row, int64_t used)
{
    if (used < j->units)
        memset((char *)row + 4 * used, 0, (size_t)(j->units - used) * 4);
}

/* x, of each row, times the scales of a line, for each unit; zeros if k < 0.
 */
static void scaled_line(const cols_job *j, const panel *p, int64_t k,
                        int64_t apart, float *to)
{
    const int64_t used = k < 0 ? 0 : j->used;
    /* Scales may lie where the first row's go, which so comes last. */
    const float *scale = k < 0 ? NULL : scales_at(j, p, k, to);
    for (int r = j->rows - 1; r >= 0; r--) {
        float *const row = to + r * apart;
        for (int64_t u = 0; u < used; u++)
            row[u] = p->x[r * p->x_apart + k] * scale[u];
        fill_up(j, row, used);
    }
}

static void panel_f32(const cols_job *j, const panel *p)
{
    const int64_t units = j->units;
    for (int64_t q = 0; q < p->rounds; q++) {
        float x[LB_GEMVQ_FEW][LB_GEMVQ_COLS];
        int64_t line[LB_GEMVQ_COLS];
        lb_gemvq_cols c = {.x_apart = LB_GEMVQ_COLS * (units ? units : 1)};
        lines_of(p, q, line);
        for (int i = 0; i < LB_GEMVQ_COLS; i++) {
            const int64_t k = line[i];
            float *to = j->xs + i * units;
            for (int r = 0; r < j->rows; r++)
                x[r][i] = k < 0 ? 0 : p->x[r * p->x_apart + k];
            c.x[i] = units ? to : &x[0][i];
            if (units) scaled_line(j, p, k, c.x_apart, to);
        }
        run_eight(j, p, line, &c, sizeof(float));
    }
}

/* The scales of line k of a panel, for each unit that is used. */
static const float *scales_of(const cols_job *j, const panel *p, int64_t k)
{
    return j->direct ? j->w->scale + (p->first + k) * j->w->scale_step
                     : j->xs + k * j->units;
}

/* What x times scales is rounded by, for each row and unit. */
static void find_units(const cols_job *j, const panel *p)
{
    int32_t *const top = j->pairs; /* which are made later */
    memset(top, 0, (size_t)(j->rows * j->units) * sizeof *top);
    for (int64_t k = 0; k < p->n && !j->direct; k++)
        scales_at(j, p, k, j->xs + k * j->units);
    for (int r = 0; r < j->rows; r++)
        j->loops->tops(p->x + r * p->x_apart, p->n, scales_of(j, p, 0),
                       j->direct ? j->w->scale_step : j->units, j->used,
                       top + r * j->units);
    j->loops->units(top, j->rows * j->units, LB_GEMVQ_X16_COLS,
                    j->w->table->half_unit, j->x_scale, j->by);
}

/* Two lines of eight, of a row; the second may not be there. */
static void make_pairs(const cols_job *j, const panel *p, int64_t a, int64_t b,
                       int r, int32_t *to)
{
    const int64_t used = a < 0 ? 0 : j->used;
    if (used) {
        const float *of = p->x + r * p->x_apart;
        const float x[] = {of[a], b < 0 ? 0 : of[b]};
        const float *const scale[] = {scales_of(j, p, a),
                                      scales_of(j, p, b < 0 ? a : b)};
        j->loops->pairs(x, scale, j->by + r * j->units, used, to);
    }
    fill_up(j, to, used);
}

static void panel_i16(const cols_job *j, const panel *p)
{
    enum {
        PAIRS = LB_GEMVQ_COLS / 2,
        FULL = LB_GEMVQ_X16_LINES / LB_GEMVQ_COLS
    };
    find_units(j, p);
    for (int64_t q = 0; q < p->rounds; q++) {
        lb_gemvq_cols c = {.first = q % FULL == 0, .x_apart = PAIRS * j->units};
        int64_t line[LB_GEMVQ_COLS];
        lines_of(p, q, line);
        for (int i = 0; i < PAIRS; i++) {
            int32_t *const to = j->pairs + i * j->units;
            c.x[i] = to;
            for (int r = 0; r < j->rows; r++)
                make_pairs(j, p, line[2 * i], line[2 * i + 1], r,
                           to + r * c.x_apart);
        }
        run_eight(j, p, line, &c, sizeof(int32_t));
        if ((q + 1) % FULL && q + 1 < p->rounds) continue;
        for (int r = 0; r < j->rows; r++)
            j->q->flush(&(lb_gemvq_flush){
                .groups = j->groups,
                .sum = j->sum + (size_t)(r * j->sum_apart) * j->q->sum_size,
                .x_scale = j->x_scale + r * j->units,
                .shift = j->shift,
                .table = j->w->table,
                .y = j->y + r * j->y_apart});
    }
}

/* A row of x of a panel. */
typedef struct {
    int32_t number[LB_GEMVQ_MOST_LINES + 1]; /* a zero behind them */
    int32_t sum;
    float scale;
} whole_row;

static void round_row(const cols_job *j, const panel *p, int r, float most,
                      whole_row *to)
{
    to->scale = j->loops->round(p->x + r * p->x_apart, p->n, most, to->number);
    to->sum = 0;
    for (int64_t k = 0; k < p->n; k++)
        to->sum += to->number[k];
    to->number[LB_GEMVQ_MOST_LINES] = 0;
}

static int32_t number_at(const whole_row *row, int64_t k)
{
    return row->number[k < 0 ? LB_GEMVQ_MOST_LINES : k];
}

static void flush_rows(const cols_job *j, const whole_row *row)
{
    for (int r = 0; r < j->rows; r++)
        j->q->flush(&(lb_gemvq_flush){
            .groups = j->groups,
            .sum = j->sum + (size_t)(r * j->sum_apart) * j->q->sum_size,
            .x_scale = &row[r].scale,
            .x_sum = row[r].sum,
            .table = j->w->table,
            .y = j->y + r * j->y_apart});
}

/* The same where codes have no scales. */
static void panel_i16_plain(const cols_job *j, const panel *p)
{
    enum { PAIRS = LB_GEMVQ_COLS / 2 };
    whole_row row[LB_GEMVQ_FEW];
    for (int r = 0; r < j->rows; r++)
        round_row(j, p, r, LB_GEMVQ_X16, &row[r]);
    for (int64_t q = 0; q < p->rounds; q++) {
        uint32_t pair[LB_GEMVQ_FEW][PAIRS];
        lb_gemvq_cols c = {.first = q == 0, .x_apart = PAIRS};
        int64_t line[LB_GEMVQ_COLS];
        lines_of(p, q, line);
        for (int i = 0; i < PAIRS; i++) {
            const int64_t *two = line + 2 * i;
            for (int r = 0; r < j->rows; r++)
                pair[r][i] = ((uint32_t)number_at(&row[r], two[0]) & 0xffff) |
                             (uint32_t)number_at(&row[r], two[1]) << 16;
            c.x[i] = &pair[0][i];
        }
        run_eight(j, p, line, &c, 0);
    }
    flush_rows(j, row);
}

/* A row of x of a panel in bytes, and a zero behind them. */
typedef struct {
    int8_t byte[2][LB_GEMVQ_MOST_LINES + 1]; /* high, low */
    /* No sum of products with codes is farther than 2^15 - 1 from these; else
     * zeros. */
    int32_t middle[2];
    bool near;
} bytes_row;

/* Sums lie between those of negative products and those of positive ones. */
static void find_middle(const int32_t *below, const int32_t *size, int bits,
                        bytes_row *to)
{
    const int32_t most_code = (1 << bits) - 1, most = 65534 / most_code;
    to->near = size[0] <= most && size[1] <= most;
    for (int b = 0; b < 2; b++)
        to->middle[b] =
            to->near ? below[b] * most_code + size[b] * most_code / 2 : 0;
}

static void split_row(const whole_row *row, int64_t n, bool two, int bits,
                      bytes_row *to)
{
    int32_t below[2] = {0}, size[2] = {0};
    for (int64_t k = 0; k < n; k++) {
        const int32_t x = row->number[k], high = two ? (x + 128) >> 8 : x;
        const int32_t low = two ? x - 256 * high : 0;
        to->byte[0][k] = (int8_t)high;
        to->byte[1][k] = (int8_t)low;
        below[0] += high < 0 ? high : 0;
        below[1] += low < 0 ? low : 0;
        size[0] += high < 0 ? -high : high;
        size[1] += low < 0 ? -low : low;
    }
    to->byte[0][LB_GEMVQ_MOST_LINES] = to->byte[1][LB_GEMVQ_MOST_LINES] = 0;
    find_middle(below, size, bits, to);
}

static uint16_t pair_i8(const int8_t *x, int64_t a, int64_t b)
{
    const int zero = LB_GEMVQ_MOST_LINES;
    return (uint16_t)((uint8_t)x[a < 0 ? zero : a] |
                      (uint8_t)x[b < 0 ? zero : b] << 8);
}

/* Sums are added up as whole numbers, so that bits do not depend on the order
 * of lines, nor on how many of them a kernel's sums have room for. */
static void flush_i8(const cols_job *j, const panel *p, int64_t q,
                     int64_t often, const whole_row *row, const bytes_row *x)
{
    if ((q + 1) % often && q + 1 < p->rounds) return;
    j->q->flush(&(lb_gemvq_flush){.groups = j->groups,
                                  .sum = j->sum,
                                  .x_scale = &row->scale,
                                  .x_sum = row->sum,
                                  .table = j->w->table,
                                  .middle = {x->middle[0], x->middle[1]},
                                  .whole = j->whole,
                                  .begins = q < often,
                                  .ends = q + 1 == p->rounds,
                                  .y = j->y});
}

static void panel_i8(const cols_job *j, const panel *p)
{
    enum { PAIRS = LB_GEMVQ_COLS / 2 };
    const bool two = j->q->kind == LB_GEMVQ_I8X2;
    whole_row row;
    bytes_row x;
    round_row(j, p, 0, two ? LB_GEMVQ_X8X2 : LB_GEMVQ_X8, &row);
    split_row(&row, p->n, two, j->q->bits, &x);
    const int64_t often = j->q->modulo && x.near ? p->rounds : j->often;
    uint16_t pair[2 * PAIRS];
    lb_gemvq_cols c = {.x = {0}};
    for (int i = 0; i < 2 * PAIRS; i++)
        c.x[i] = &pair[i];
    for (int64_t q = 0; q < p->rounds; q++) {
        int64_t line[LB_GEMVQ_COLS];
        lines_of(p, q, line);
        for (int i = 0; i < PAIRS; i++) {
            const int64_t a = line[2 * i], b = line[2 * i + 1];
            pair[i] = pair_i8(x.byte[0], a, b);
            pair[i + PAIRS] = pair_i8(x.byte[1], a, b);
        }
        c.first = q % often == 0;
        run_eight(j, p, line, &c, 0);
        flush_i8(j, p, q, often, &row, &x);
    }
}

void lb_gemvq_run_cols(const lb_gemvq_kernel *q, const lb_gemvq_lines *w,
                       int rows, const float *x, int64_t x_apart, int64_t lines,
                       float *slots, int64_t slots_apart, void *scratch)
{
    cols_job j = divide(q, w, w->n, w->g, scratch);
    j.loops = lb_gemvq_loops_for(w->cpu);
    j.y = slots;
    j.rows = rows;
    j.y_apart = slots_apart;
    if (q->kind == LB_GEMVQ_F32) {
        j.sum = (char *)slots;
        j.sum_apart = slots_apart;
    }
    for (int r = 0; r < rows; r++)
        memset(j.y + r * slots_apart, 0,
               (size_t)(j.groups * q->group) * sizeof *j.y);
    for (int64_t at = 0; at < lines; at += j.lines) {
        const int64_t n = least(j.lines, lines - at);
        const panel p = {.first = at,
                         .n = n,
                         .rounds = (n + LB_GEMVQ_COLS - 1) / LB_GEMVQ_COLS,
                         .together = q->together,
                         .x = x + at,
                         .x_apart = x_apart};
        if (q->kind == LB_GEMVQ_F32)
            panel_f32(&j, &p);
        else if (q->kind == LB_GEMVQ_I16 && q->unit)
            panel_i16(&j, &p);
        else if (q->kind == LB_GEMVQ_I16)
            panel_i16_plain(&j, &p);
        else
            panel_i8(&j, &p);
    }
}

void lb_gemvq_cols_order(const lb_gemvq_kernel *q, bool high_first,
                         const float *slots, int64_t n, float *y)
{
    uint16_t place[LB_GEMVQ_GROUP] = {0};
    lb_gemvq_places(q, high_first, place);
    for (int64_t g = 0; g < n; g += q->group)
        for (int s = 0; s < q->group; s++)
            if (g + place[s] < n) y[g + place[s]] = slots[g + s];
}
