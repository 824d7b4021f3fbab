/* test_lanes_f32.c - every function of lanes_f32.def on every level.
 *
 * The reference against plain C, and the other levels against the reference,
 * bit for bit: lengths 0 to 300 at all alignments, with guard pages around
 * operands and results, and unary functions at 2^20 patterns spread over all
 * 2^32 (with --all at every one, which takes some minutes). The accuracy of the
 * reference is tested by test_mathf and test_elementwise.
 */
/* ctest: simde long=--all skip-tsan skip-ref */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cpu.h"
#include "check.h"
#include "kernels/lanes_f32.h"
#include "kernels/mathf.h"

/* ---- expected values ---------------------------------------------------- */

static float sign(float x)
{
    return x > 0 ? 1.0f : x < 0 ? -1.0f : x;
}

static float neg(float x)
{
    return -x;
}

static float rsqrt(float x)
{
    return (float)(1.0 / sqrt((double)x));
}

static float max(float x, float y)
{
    return x > y || x != x || (x == y && !signbit(x)) ? x : y;
}

static float min(float x, float y)
{
    return x < y || x != x || (x == y && signbit(x)) ? x : y;
}

static float power(float x, int e)
{
    float r = 1, b = x;
    for (unsigned k = (unsigned)abs(e); k; k >>= 1, b *= b)
        if (k & 1) r *= b;
    return e < 0 ? 1 / r : r;
}

typedef struct lane_row {
    const char *name;
    lb_lane lane;
    int n_in;
    bool bools, pred; /* the result, the first operand */
    bool any_nan;     /* the kind of NaN depends on the machine */
    float (*f)(float);
} lane_row;

#define ROW_1(NAME, F)                                                         \
    {                                                                          \
        .name = #NAME, .lane = LB_LANE_##NAME, .n_in = 1, .f = (F)             \
    }
#define ROW_N(NAME, N, ...)                                                    \
    {                                                                          \
        .name = #NAME, .lane = LB_LANE_##NAME, .n_in = (N), __VA_ARGS__        \
    }
static const lane_row rows[] = {
    ROW_1(neg, neg),
    ROW_1(abs, fabsf),
    ROW_1(sign, sign),
    ROW_1(exp, lb_expf),
    ROW_1(log, lb_logf),
    ROW_1(sqrt, sqrtf),
    ROW_1(rsqrt, rsqrt),
    ROW_1(tanh, lb_tanhf),
    ROW_1(logistic, lb_logisticf),
    ROW_1(erf, lb_erff),
    ROW_1(floor, floorf),
    ROW_1(ceil, ceilf),
    ROW_1(round, rintf),
    ROW_1(round_away, roundf),
    ROW_N(add, 2, .any_nan = true),
    ROW_N(sub, 2, .any_nan = true),
    ROW_N(mul, 2, .any_nan = true),
    ROW_N(div, 2, .any_nan = true),
    ROW_N(swiglu, 2, .any_nan = true),
    ROW_N(max, 2, .any_nan = false),
    ROW_N(min, 2, .any_nan = false),
    ROW_N(is_finite, 1, .bools = true),
    ROW_N(eq, 2, .bools = true),
    ROW_N(ne, 2, .bools = true),
    ROW_N(lt, 2, .bools = true),
    ROW_N(le, 2, .bools = true),
    ROW_N(gt, 2, .bools = true),
    ROW_N(ge, 2, .bools = true),
    ROW_N(integer_pow, 1, .any_nan = false),
    ROW_N(select, 3, .pred = true),
    ROW_N(clamp, 3, .any_nan = false),
};
enum { N_ROWS = (int)(sizeof rows / sizeof *rows), EXPONENT = -5 };
_Static_assert(N_ROWS == LB_LANE_END - 1, "a row for every function");

static float value(const lane_row *r, const float *x)
{
    switch (r->lane) {
    case LB_LANE_add:
        return x[0] + x[1];
    case LB_LANE_sub:
        return x[0] - x[1];
    case LB_LANE_mul:
        return x[0] * x[1];
    case LB_LANE_div:
        return x[0] / x[1];
    case LB_LANE_swiglu:
        return x[0] * lb_logisticf(x[0]) * x[1];
    case LB_LANE_max:
        return max(x[0], x[1]);
    case LB_LANE_min:
        return min(x[0], x[1]);
    case LB_LANE_clamp:
        return min(max(x[1], x[0]), x[2]);
    case LB_LANE_integer_pow:
        return power(x[0], EXPONENT);
    default:
        return r->f(x[0]);
    }
}

static bool truth(const lane_row *r, const float *x)
{
    switch (r->lane) {
    case LB_LANE_eq:
        return x[0] == x[1];
    case LB_LANE_ne:
        return x[0] != x[1];
    case LB_LANE_lt:
        return x[0] < x[1];
    case LB_LANE_le:
        return x[0] <= x[1];
    case LB_LANE_gt:
        return x[0] > x[1];
    case LB_LANE_ge:
        return x[0] >= x[1];
    default:
        return isfinite(x[0]) != 0;
    }
}

/* ---- operands ----------------------------------------------------------- */

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static uint32_t seed = 1;

/* Every fourth is a special value with either sign; others have random bits. */
static float number(void)
{
    static const uint32_t special[] = {
        0x00000000u, 0x00000001u, 0x007fffffu, 0x00800000u, 0x3effffffu,
        0x3f000000u, 0x3f000001u, 0x3f800000u, 0x3fc00000u, 0x40000000u,
        0x40200000u, 0x42b17218u, 0x42d00000u, 0x4affffffu, 0x4b000000u,
        0x4b000001u, 0x7f7fffffu, 0x7f800000u, 0x7f800001u, 0x7fc00000u};
    enum { N = sizeof special / sizeof *special };
    seed = seed * 1664525u + 1013904223u;
    const uint32_t u = seed ^ seed >> 15;
    return float_of(u % 4 ? u * 2654435761u
                          : special[u / 4 % N] ^ (u << 3 & 0x80000000u));
}

/* Bytes of a page between two guard pages. */
typedef struct {
    char *map, *page;
    size_t size;
} fenced;

static fenced fence(void)
{
    fenced f = {.size = (size_t)sysconf(_SC_PAGESIZE)};
    f.map = mmap(NULL, 3 * f.size, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (f.map == MAP_FAILED || mprotect(f.map, f.size, PROT_NONE) != 0 ||
        mprotect(f.map + 2 * f.size, f.size, PROT_NONE) != 0) {
        perror("mmap");
        exit(1);
    }
    f.page = f.map + f.size;
    return f;
}

/* ---- runs --------------------------------------------------------------- */

enum { MOST = 300, OPERANDS = 4 };

typedef struct {
    fenced at[OPERANDS]; /* three operands and the result */
    float x[3][MOST];
    uint8_t pred[MOST];
    float ref[MOST];
} rig;

static size_t size_of(const lane_row *r, int i)
{
    return (r->pred && i == 0) || (r->bools && i == 3) ? 1 : sizeof(float);
}

/* n elements `shift` elements from one end of the page. */
static char *place(const rig *b, const lane_row *r, int i, int64_t n, int shift,
                   bool at_end)
{
    const size_t size = size_of(r, i), skip = (size_t)shift * size;
    const fenced *f = &b->at[i];
    return at_end ? f->page + f->size - (size_t)n * size - skip
                  : f->page + skip;
}

/* ones: operands that are given as a single element. */
static void run(rig *b, const lb_lanes_f32 *kernel, const lane_row *r,
                int64_t n, int shift, bool at_end, unsigned ones)
{
    lb_lanes l = {.n = n, .bits = 32, .exponent = EXPONENT, .ones = ones};
    for (int i = 0; i < r->n_in; i++) {
        const int64_t m = ones >> i & 1 ? 1 : n;
        char *to = place(b, r, i, m, shift, at_end);
        const void *from =
            r->pred && i == 0 ? (const void *)b->pred : (const void *)b->x[i];
        memcpy(to, from, (size_t)m * size_of(r, i));
        l.in[i] = to;
    }
    memset(b->at[3].page, 0x5a, b->at[3].size);
    l.out = place(b, r, 3, n, shift, at_end);
    kernel->run[r->lane](&l);
}

static bool as_c_says(const rig *b, const lane_row *r, int64_t i)
{
    const float x[3] = {b->x[0][i], b->x[1][i], b->x[2][i]};
    const char *ref = (const char *)b->ref;
    if (r->bools) return ref[i] == truth(r, x);
    if (r->pred) return bits_of(b->ref[i]) == bits_of(x[b->pred[i] ? 1 : 2]);
    const float want = value(r, x), got = b->ref[i];
    return bits_of(want) == bits_of(got) || (isnan(want) && isnan(got));
}

/* The result, and that nothing next to it was written. */
static bool as_ref(const rig *b, const lane_row *r, int64_t n, const char *out)
{
    const char *page = b->at[3].page, *end = page + b->at[3].size;
    const size_t bytes = (size_t)n * size_of(r, 3);
    for (const char *p = page; p < end; p++)
        if ((p < out || p >= out + bytes) && *p != 0x5a) return false;
    if (!memcmp(out, b->ref, bytes)) return true;
    for (int64_t i = 0; i < n && r->any_nan; i++) {
        float y;
        memcpy(&y, out + (size_t)i * 4, 4);
        if (bits_of(y) != bits_of(b->ref[i]) && !(isnan(y) && isnan(b->ref[i])))
            return false;
    }
    return r->any_nan;
}

static void test_row(rig *b, const lane_row *r, const lb_lanes_f32 *kernel)
{
    for (int64_t n = 0; n <= MOST; n++) {
        for (int64_t i = 0; i < n; i++) {
            for (int k = 0; k < 3; k++)
                b->x[k][i] = number();
            b->pred[i] = seed >> 20 & 1;
        }
        const size_t bytes = (size_t)n * size_of(r, 3);
        if (check_fails(bytes <= sizeof b->ref)) return;
        run(b, &lb_lanes_f32_ref, r, n, 0, true, 0);
        memcpy(b->ref, place(b, r, 3, n, 0, true), bytes);
        int64_t wrong = 0;
        for (int64_t i = 0; i < n; i++)
            wrong += !as_c_says(b, r, i);
        if (check_fails(wrong == 0))
            fprintf(stderr, "%s, reference, n %d: %d wrong\n", r->name, (int)n,
                    (int)wrong);
        for (int shift = 0; shift < 16; shift += n % 16 ? 5 : 1)
            for (int end = 0; end < 2; end++) {
                run(b, kernel, r, n, shift, end, 0);
                if (check_fails(as_ref(b, r, n, place(b, r, 3, n, shift, end))))
                    fprintf(stderr, "%s, %s, n %d, shift %d\n", r->name,
                            kernel->name, (int)n, shift);
            }
    }
}

/* Single elements give the bits that as many copies of them give, also of NaNs.
 */
static void test_ones(rig *b, const lane_row *r, const lb_lanes_f32 *kernel)
{
    const unsigned most = r->lane == LB_LANE_select  ? 6
                          : r->lane == LB_LANE_clamp ? 5
                          : r->n_in == 2             ? 3
                                                     : 0;
    for (unsigned ones = 1; ones <= most; ones++) {
        if ((ones & most) != ones || (r->n_in == 2 && ones == 3)) continue;
        for (int64_t n = 1; n <= MOST; n += n < 70 ? 1 : 23) {
            for (int64_t i = 0; i < n; i++) {
                for (int k = 0; k < 3; k++)
                    b->x[k][i] = i && ones >> k & 1 ? b->x[k][0] : number();
                b->pred[i] = seed >> 20 & 1;
            }
            run(b, kernel, r, n, 0, true, 0);
            memcpy(b->ref, place(b, r, 3, n, 0, true),
                   (size_t)n * size_of(r, 3));
            run(b, kernel, r, n, 0, true, ones);
            if (check_fails(!memcmp(place(b, r, 3, n, 0, true), b->ref,
                                    (size_t)n * size_of(r, 3))))
                fprintf(stderr, "%s, %s, n %d, single operands %u\n", r->name,
                        kernel->name, (int)n, ones);
        }
    }
}

/* ---- many patterns ------------------------------------------------------ */

enum { AT_ONCE = 4096 };

static void check_patterns(const lane_row *r, const lb_lanes_f32 *kernel,
                           const float *x)
{
    static float ref[AT_ONCE], out[AT_ONCE];
    lb_lanes l = {.n = AT_ONCE, .in = {x}, .exponent = EXPONENT, .out = ref};
    lb_lanes_f32_ref.run[r->lane](&l);
    l.out = out;
    kernel->run[r->lane](&l);
    const size_t bytes = AT_ONCE * size_of(r, 3);
    if (check_fails(!memcmp(ref, out, bytes)))
        fprintf(stderr, "%s, %s, near %a\n", r->name, kernel->name,
                (double)x[0]);
    if (!r->f || kernel != &lb_lanes_f32_ref) return;
    int64_t wrong = 0;
    for (int i = 0; i < AT_ONCE; i++) {
        const float want = r->f(x[i]);
        wrong +=
            bits_of(want) != bits_of(ref[i]) && !(isnan(want) && isnan(ref[i]));
    }
    if (check_fails(wrong == 0))
        fprintf(stderr, "%s: %d wrong near %a\n", r->name, (int)wrong,
                (double)x[0]);
}

static void test_patterns(const lane_row *r, const lb_lanes_f32 *kernel,
                          bool all)
{
    static float x[AT_ONCE];
    const uint64_t count = all ? UINT64_C(1) << 32 : 1u << 20;
    for (uint64_t u = 0; u < count; u += AT_ONCE) {
        for (uint32_t i = 0; i < AT_ONCE; i++)
            x[i] = float_of(((uint32_t)u + i) * (all ? 1u : 2654435761u));
        check_patterns(r, kernel, x);
    }
}

int main(int argc, char **argv)
{
    const bool all = argc > 1 && !strcmp(argv[1], "--all");
    static rig b;
    for (int i = 0; i < OPERANDS; i++)
        b.at[i] = fence();
    const lb_lanes_f32 *last = NULL;
    for (int l = LB_LEVEL_REF; l <= LB_LEVEL_AMX; l++) {
        if (!lb_level_available((lb_level)l)) continue;
        const lb_cpu cpu = {.level = (lb_level)l};
        const lb_lanes_f32 *kernel = lb_lanes_f32_for(&cpu);
        if (kernel == last) continue;
        last = kernel;
        for (int k = 0; k < N_ROWS; k++) {
            test_row(&b, &rows[k], kernel);
            test_ones(&b, &rows[k], kernel);
            if (rows[k].n_in == 1) test_patterns(&rows[k], kernel, all);
        }
        printf("%s\n", kernel->name);
        fflush(stdout);
    }
    return check_report("test_lanes_f32");
}
