/* test_gemvq.c - a vector times rows of codes, for every kernel of every level.
 *
 * Against double precision on the decoded values: each element is within the
 * error of rounding x and the codebook stated in the header. Sums of I8 and
 * I8X2 have the same bits as the reference. Guard pages surround codes, scales,
 * x and results.
 */
/* ctest: simde bochs=avx512 skip-tsan skip-ref */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cpu.h"
#include "check.h"
#include "kernels/gemvq.h"

/* ---- memory ------------------------------------------------------------- */

typedef struct {
    char *map;
    size_t size;
    void *at;
} fenced;

/* Bytes between two guard pages, next to the second one or, if `front`, to the
 * first. */
static fenced fence(size_t bytes, bool front)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    fenced f = {.size = (bytes / page + 3) * page};
    f.map = mmap(NULL, f.size, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (f.map == MAP_FAILED || mprotect(f.map, page, PROT_NONE) != 0 ||
        mprotect(f.map + f.size - page, page, PROT_NONE) != 0) {
        perror("mmap");
        exit(1);
    }
    f.at = front ? f.map + page : f.map + f.size - page - bytes;
    return f;
}

static void unfence(fenced *f)
{
    munmap(f->map, f->size);
}

static uint64_t state = 1;

static uint32_t draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

/* About normally distributed. */
static float rough(void)
{
    float s = 0;
    for (int i = 0; i < 6; i++)
        s += (float)draw() * 0x1p-31f - 0.5f;
    return s * 1.41f;
}

/* ---- one case ----------------------------------------------------------- */

typedef enum {
    NORMAL,
    OUTLIERS,
    SUBNORMAL,
    HUGE_X,
    ZEROS,
    LARGEST, /* all of one magnitude, for the largest integers */
    X_KINDS
} x_kind;

/* Bytes of codes: random, or all equal, for the largest sums. */
static const int fills[] = {-1, 0x80, -1, 0x7f, -1, 0xff, -1, 0x00};
enum { FILLS = (int)(sizeof fills / sizeof *fills) };

typedef struct {
    const lb_gemvq_kernel *q;
    int64_t k, n, g; /* K, results, elements that share a scale */
    x_kind x;
    int fill;
    bool high_first, front;
    int64_t gap;     /* bytes between rows */
    int64_t apart;   /* rows */
    int64_t opposed; /* cols: see oppose */
} sample;

typedef struct {
    fenced codes, scale, x, y;
    int64_t length, lines, step, blocks;
    float *number; /* x, as given */
    float level[16];
    lb_gemvq_table table;
} made;

static void make_x(const sample *s, float *x)
{
    for (int64_t i = 0; i < s->k; i++) {
        x[i] = s->x == ZEROS ? 0 : rough();
        if (s->x == OUTLIERS && draw() % 50 == 0) x[i] *= 100;
        if (s->x == SUBNORMAL) x[i] *= 0x1p-138f;
        if (s->x == HUGE_X) x[i] *= 0x1p120f;
        if (s->x == LARGEST) x[i] = -3;
    }
    if (s->k > 3 && s->x == NORMAL) x[s->k / 2] = -0.0f;
}

static void make_levels(const lb_gemvq_kernel *q, float *level)
{
    const bool few_bits = draw() % 4 == 0;
    for (int i = 0; i < 16; i++)
        level[i] = rough();
    if (q->bits == 4) level[7] = 0;
    /* Kernels may rely on levels having few bits. */
    for (int i = 0; i < 16 && q->kind == LB_GEMVQ_F32 && few_bits; i++)
        level[i] = rintf(level[i] * 64);
    if (q->kind == LB_GEMVQ_F32 || q->bits > 2) return;
    const float first = (float)(draw() % 3) - 2, by = (float)(draw() % 2 + 1);
    for (int i = 0; i < 1 << q->bits; i++)
        level[i] = first + by * (float)i;
}

/* x of one magnitude and either sign in `opposed` rows, a 127th of it in
 * others; half the codes of a row are 0, the other half (of 4 bits or fewer)
 * the largest, and the reverse where x is negative: sums as far from each other
 * as possible. */
static void oppose(const sample *s, made *m)
{
    const int64_t bytes = (m->length * s->q->bits + 7) / 8;
    for (int64_t k = 0; k < s->k; k++) {
        const bool minus = draw() % 3 == 0;
        const float size = k < s->opposed ? 3 : 3.0f / 127;
        m->number[k] = minus ? -size : size;
        memset((char *)m->codes.at + k * m->step, minus ? 0xf0 : 0x0f,
               (size_t)bytes);
    }
}

static made make(const sample *s)
{
    const lb_gemvq_kernel *q = s->q;
    const bool along = q->rows != NULL;
    made m = {.length = along ? s->k : s->n, .lines = along ? s->n : s->k};
    const int64_t bytes = (m.length * q->bits + 7) / 8;
    m.step = bytes + s->gap;
    const int64_t size = (m.lines - 1) * m.step + bytes;
    m.codes = fence((size_t)size, s->front);
    for (int64_t i = 0; i < size; i++)
        ((uint8_t *)m.codes.at)[i] =
            (uint8_t)(s->fill < 0 ? draw() >> 5 : (uint32_t)s->fill);
    m.blocks = s->g ? (m.length + s->g - 1) / s->g : 0;
    m.scale = fence((size_t)(m.blocks * m.lines) * sizeof(float), s->front);
    for (int64_t i = 0; i < m.blocks * m.lines; i++)
        ((float *)m.scale.at)[i] = rough();
    const size_t x_size = lb_gemvq_x_size(q, s->k);
    m.x = fence(x_size, s->front);
    m.y = fence((size_t)s->n * sizeof(float), s->front);
    m.number = malloc((size_t)s->k * sizeof(float));
    if (!m.number) exit(1);
    make_x(s, m.number);
    if (s->opposed) oppose(s, &m);
    make_levels(q, m.level);
    lb_gemvq_table_init(&m.table, m.level, q->bits);
    return m;
}

static void unmake(made *m)
{
    unfence(&m->codes);
    unfence(&m->scale);
    unfence(&m->x);
    unfence(&m->y);
    free(m->number);
}

/* x in the kernel's layout, before a guard page. */
static fenced prepare(const sample *s, const made *m, const lb_gemvq_kernel *q,
                      lb_level level, lb_gemvq_x *x)
{
    const lb_cpu cpu = {.level = level};
    fenced memory = fence(lb_gemvq_x_size(q, s->k), s->front);
    lb_gemvq_x_place(q, s->k, memory.at, x);
    memcpy(x->number, m->number, (size_t)s->k * sizeof(float));
    lb_gemvq_x_range(&cpu, x);
    if (q->rows) lb_gemvq_x_order(&cpu, q, s->high_first, x);
    return memory;
}

/* The reference packs x to the same bytes. */
static void check_x(const sample *s, const made *m, const lb_gemvq_kernel *q,
                    const lb_gemvq_x *x)
{
    lb_gemvq_x other;
    fenced memory = prepare(s, m, q, LB_LEVEL_REF, &other);
    const size_t size = q->kind == LB_GEMVQ_F32  ? 4
                        : q->kind == LB_GEMVQ_I8 ? 1
                                                 : 2;
    CHECK(x->unit == other.unit || (isnan(x->unit) && isnan(other.unit)));
    CHECK(!memcmp(x->number, other.number, (size_t)s->k * sizeof(float)));
    CHECK(!q->rows || !memcmp(x->slots, other.slots,
                              (size_t)(x->groups * q->group) * size));
    unfence(&memory);
}

/* Several rows at once, each twice the previous one, and so are their results.
 * y becomes the results of the first row. */
static void run_few(const sample *s, const lb_gemvq_kernel *q,
                    const lb_gemvq_lines *w, const float *x, int rows,
                    void *scratch, float *y)
{
    const int64_t slots = (s->n + q->group - 1) / q->group * q->group;
    const size_t size = (size_t)s->k * sizeof(float);
    fenced sums = fence((size_t)(rows * slots) * sizeof(float), s->front);
    fenced all = fence((size_t)rows * size, s->front);
    float *const many = all.at, *const sum = sums.at;
    for (int r = 0; r < rows; r++)
        for (int64_t k = 0; k < s->k; k++)
            many[r * s->k + k] = x[k] * (float)(1 << r);
    lb_gemvq_run_cols(q, w, rows, many, s->k, s->k, sum, slots, scratch);
    bool ok = true;
    for (int64_t i = 0; i < rows * slots; i++) {
        const float one = sum[i % slots], more = sum[i];
        const float want = one * (float)(1 << i / slots);
        ok = ok && (more == want || (isnan(more) && isnan(want)));
    }
    CHECK(ok);
    lb_gemvq_cols_order(q, s->high_first, sum, s->n, y);
    unfence(&all);
    unfence(&sums);
}

/* Runs a kernel, possibly another level's; returns the factor of the results.
 */
static double run(const sample *s, const made *m, const lb_gemvq_kernel *q,
                  float *y)
{
    lb_gemvq_lines w = {
        .codes = m->codes.at,
        .step = m->step,
        .scale = m->scale.at,
        .scale_step = m->blocks,
        .g = s->g,
        .n = m->length,
        .high_first = s->high_first,
        .table = &m->table,
    };
    lb_gemvq_x x;
    fenced memory = prepare(s, m, q, lb_cpu_best(), &x);
    check_x(s, m, q, &x);
    if (q->rows) {
        lb_gemvq_run_rows(q, &w, &x, s->n, s->apart, y);
    } else {
        const size_t size = lb_gemvq_cols_size(q, s->n, s->g);
        fenced scratch = fence(size, s->front);
        memset(scratch.at, 0xff, size); /* of which nothing may be read */
        w.cpu = &(lb_cpu){.level = lb_cpu_best()};
        const int64_t slots = (s->n + q->group - 1) / q->group * q->group;
        fenced sums = fence((size_t)slots * sizeof(float), s->front);
        lb_gemvq_run_cols(q, &w, 1, x.number, 0, s->k, sums.at, 0, scratch.at);
        lb_gemvq_cols_order(q, s->high_first, sums.at, s->n, y);
        for (int rows = 2; rows <= lb_gemvq_cols_rows(q); rows++)
            run_few(s, q, &w, x.number, rows, scratch.at, y);
        unfence(&sums);
        unfence(&scratch);
    }
    const double unit = x.unit * (double)q->factor;
    unfence(&memory);
    return unit;
}

/* ---- expected values ---------------------------------------------------- */

static double level_of(const made *m, int bits, bool high_first,
                       const uint8_t *line, int64_t i)
{
    const int per = 8 / bits, f = (int)(i % per);
    if (bits == 8) return (double)(int8_t)line[i];
    const int at = high_first ? per - 1 - f : f;
    return (double)m->level[line[i / per] >> at * bits & ((1 << bits) - 1)];
}

static int64_t panel_of(const lb_gemvq_kernel *q)
{
    if (!q->rows && q->kind != LB_GEMVQ_I16) return LB_GEMVQ_MOST_LINES;
    if (!q->rows) return q->lines ? q->lines : LB_GEMVQ_LINES;
    return q->kind == LB_GEMVQ_I16 ? LB_GEMVQ_I16_PANEL : LB_GEMVQ_I8_PANEL;
}

/* The largest |x| of those rounded together with x[first], times the scale of
 * theirs for result j. */
static double top_of(const sample *s, const made *m, int64_t first, int64_t j)
{
    double top = 0;
    for (int64_t i = first; i < first + panel_of(s->q) && i < s->k; i++) {
        double x = fabs((double)m->number[i]);
        if (!s->q->rows && s->g)
            x *= fabs((double)((float *)m->scale.at)[i * m->blocks + j / s->g]);
        if (x > top) top = x;
    }
    return top;
}

static double scale_of(const sample *s, const made *m, int64_t k, int64_t j)
{
    if (!s->g) return 1;
    const int64_t at = s->q->rows ? k : j;
    const int64_t line = s->q->rows ? j : k;
    return (double)((float *)m->scale.at)[line * m->blocks + at / s->g];
}

static void check_result(const sample *s, const made *m, int64_t j, double got)
{
    const lb_gemvq_kernel *q = s->q;
    const bool along = q->rows != NULL;
    const double most = q->kind == LB_GEMVQ_I8X2 ? LB_GEMVQ_X8X2
                        : q->kind == LB_GEMVQ_I8 ? LB_GEMVQ_X8
                        : along                  ? LB_GEMVQ_X16
                                                 : LB_GEMVQ_X16_COLS;
    double sum = 0, size = 0, may = 0, unit = 0;
    for (int64_t k = 0; k < s->k; k++) {
        const uint8_t *line =
            (uint8_t *)m->codes.at + (along ? j : k) * m->step;
        const double level =
            level_of(m, q->bits, s->high_first, line, along ? k : j);
        const double x = (double)m->number[k], scale = scale_of(s, m, k, j);
        const double number = level * scale;
        sum += x * number;
        size += fabs(x * number);
        if (q->kind == LB_GEMVQ_F32) continue;
        if (k % panel_of(q) == 0) unit = top_of(s, m, k, j) / most / 2;
        const double half =
            q->kind == LB_GEMVQ_I16 ? (double)m->table.half_unit / 2 : 0;
        const double s1 = along ? fabs(scale) : 1; /* else in unit */
        may +=
            fabs(level) * unit * s1 + fabs(x * scale) * half + unit * s1 * half;
        size += (fabs((double)m->level[0]) + 3) * unit * s1;
    }
    /* Subnormal results have an absolute error. */
    may += 0x1p-24 * (double)(300 + s->k / 256) * size + 0x1p-140;
    if (!check_fails(fabs(got - sum) <= may * 1.0001)) return;
    fprintf(stderr,
            "%s unit %d: k %lld, n %lld, g %lld, x %d of %d, high_first %d, "
            "front %d: result %lld is %g, not %g +- %g\n",
            q->name, q->unit, (long long)s->k, (long long)s->n, (long long)s->g,
            s->x, s->fill, s->high_first, s->front, (long long)j, got, sum,
            may);
}

/* The reference's kernel for the same operands. */
static const lb_gemvq_kernel *reference_of(const lb_gemvq_kernel *q)
{
    const lb_gemvq_need need = {q->bits, q->rows != NULL, q->kind, q->unit};
    return lb_gemvq_kernel_for(&(lb_cpu){.level = LB_LEVEL_REF}, &need);
}

static void check_sample(const sample *s)
{
    if (check_thins()) return;
    made m = make(s);
    const double unit = run(s, &m, s->q, m.y.at);
    const float *y = m.y.at;
    for (int64_t j = 0; j < s->n; j++)
        check_result(s, &m, j, (double)y[j] * unit);
    const lb_gemvq_kernel *ref = reference_of(s->q);
    CHECK(ref != NULL);
    if (ref && (s->q->kind == LB_GEMVQ_I8 || s->q->kind == LB_GEMVQ_I8X2)) {
        float *same = malloc((size_t)s->n * sizeof *same);
        if (!same) exit(1);
        run(s, &m, ref, same);
        CHECK(memcmp(same, y, (size_t)s->n * sizeof *same) == 0);
        free(same);
    }
    unmake(&m);
}

/* A value that is not finite reaches all results. */
static void check_nonfinite(const lb_gemvq_kernel *q)
{
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    for (int i = 0; i < 3; i++)
        for (int64_t k = 1; k < 3000; k = k * 5 / 2 + 1) {
            sample s = {.q = q, .k = k, .n = 9, .g = q->unit, .apart = 1};
            s.fill = -1;
            made m = make(&s);
            m.number[draw() % (uint32_t)k] = bad[i];
            run(&s, &m, q, m.y.at);
            for (int64_t j = 0; j < s.n; j++)
                CHECK(!isfinite(((float *)m.y.at)[j]));
            unmake(&m);
        }
}

/* cols: enough rows that accumulators are full several times, sharing one scale
 * of x or more, with the extremes at either end. */
static void check_lines(const lb_gemvq_kernel *q)
{
    static const int64_t lines[] = {63,  64,  65,  127, 128, 129, 193,
                                    255, 256, 257, 321, 513, 1000};
    static const int64_t wide[] = {1, 5, 64, 130, 300, 515};
    int turn = 0;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (int x = 0; x < X_KINDS; x++, turn++) {
            sample s = {.q = q,
                        .g = q->unit,
                        .k = lines[i],
                        .n = wide[turn % 6],
                        .x = (x_kind)x,
                        .fill = fills[turn % FILLS],
                        .high_first = turn % 3 == 1,
                        .front = turn % 2,
                        .gap = turn % 4,
                        .apart = 1};
            if (x == LARGEST) s.fill = turn % 2 ? 0xff : 0x7f;
            check_sample(&s);
        }
}

/* The first rows are of full size, 127; further ones have 1 instead. */
static void check_opposed(const lb_gemvq_kernel *q, int64_t full, int64_t more)
{
    sample s = {.q = q,
                .g = q->unit,
                .k = full + more,
                .n = 130,
                .high_first = full % 16 == 0,
                .apart = 1,
                .opposed = full};
    check_sample(&s);
}

/* Also around the limit of sums modulo 2^16: 172 * 127 is 21844, of which three
 * times is below 65534, and three times 21845 is not. */
static void check_all_opposed(const lb_gemvq_kernel *q)
{
    for (int64_t lines = 64; lines <= 320; lines += 8)
        check_opposed(q, lines, -(lines % 3)); /* not whole eights alone */
    for (int64_t more = 0; more <= 2; more++)
        check_opposed(q, 172, more);
}

static void check_kernel(const lb_gemvq_kernel *q)
{
    static const int64_t few[] = {1, 2, 3, 4, 5, 7, 9};
    static const int64_t more[] = {600, 1030, 2048, 2049, 4500};
    const int64_t gs[] = {q->unit, 2 * q->unit, 3 * q->unit, 0};
    int turn = 0;
    for (int64_t length = 1; length < 310; length++)
        for (int g = 0; g < 4; g++) {
            if (g && !q->unit) continue;
            if (!gs[g] && q->unit && q->bits < 4) continue;
            sample s = {.q = q,
                        .g = gs[g],
                        .x = (x_kind)(turn % X_KINDS),
                        .fill = fills[turn / X_KINDS % FILLS],
                        .high_first = turn % 3 == 1,
                        .front = turn % 2,
                        .gap = turn % 4,
                        .apart = 1 + turn % 3};
            const int64_t other = few[turn % 7] + (q->rows ? 0 : turn % 90);
            turn++;
            s.k = q->rows ? length : other;
            s.n = q->rows ? other : length;
            check_sample(&s);
        }
    for (int i = 0; i < 5; i++)
        for (int x = 0; x < X_KINDS; x++) {
            sample s = {.q = q, .g = gs[i % 3], .x = (x_kind)x, .apart = 2};
            s.fill = x == LARGEST ? fills[(2 * i + 1) % FILLS] : -1;
            s.k = q->rows ? more[i] : 64 + more[i] % 100;
            s.n = q->rows ? 6 : more[i];
            check_sample(&s);
        }
    if (!q->rows) check_lines(q);
    if (!q->rows) check_all_opposed(q);
    check_nonfinite(q);
}

static void check_table(void)
{
    lb_gemvq_table t;
    const float ternary[4] = {-1, 0, 1, 2}, odd[4] = {-1, 0, 2, 3};
    const float fine[4] = {-1, -0.5f, 0, 0.5f}, bad[2] = {0, INFINITY};
    lb_gemvq_table_init(&t, ternary, 2);
    CHECK(t.linear && t.finite && t.least == -1 && t.step == 1);
    lb_gemvq_table_init(&t, odd, 2);
    CHECK(!t.linear && t.finite);
    lb_gemvq_table_init(&t, fine, 2);
    CHECK(!t.linear);
    lb_gemvq_table_init(&t, bad, 1);
    CHECK(!t.finite && !t.linear);
}

/* gemvq [WORD]: only kernels with WORD in their names. */
int main(int argc, char **argv)
{
    const lb_gemvq_kernel *q;
    lb_level level;
    int ran = 0;
    check_table();
    for (int k = 0; (q = lb_gemvq_kernel_at(k, &level)); k++)
        if (lb_level_available(level) &&
            (argc < 2 || strstr(q->name, argv[1]))) {
            check_kernel(q);
            ran++;
        }
    CHECK(ran > 0);
    return check_report("gemvq");
}
