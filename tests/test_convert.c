/* test_convert.c - every dtype to every other, against two references that
 * share nothing with the library: a table made with exact fractions
 * (tools/gen_convert_golden.py), and rounding from long double in this file,
 * for all 16-bit patterns, all midpoints of 16-bit floats, and random values.
 * Then every level against the portable reference. */
/* ctest: simde skip-tsan skip-ref */
#include <stdlib.h>

#include "base/cpu.h"
#include "check.h"
#include "golden/conversions.h"
#include "kernels/convert.h"
#include "lowbit_ext.h"
#include "numbers.h"

enum { N_DTYPES = LB_N_DTYPES - 1 };
typedef long double ld;

/* ---- the rules ---------------------------------------------------------- */

static ld to_even(ld x) /* the nearest integer; exact below 2^63 */
{
    const ld down = floorl(x), rest = x - down;
    if (rest < 0.5L) return down;
    if (rest > 0.5L) return down + 1;
    return fmodl(down, 2) == 0 ? down : down + 1;
}

static uint64_t round_to(lb_dtype d, ld v)
{
    const number_layout l = number_layout_of(d);
    const uint64_t one = (uint64_t)1 << (l.digits - 1);
    const uint64_t sign = (uint64_t)(signbit(v) != 0) << (l.bits - 1);
    const uint64_t inf = ((uint64_t)1 << (l.bits - 1)) - one;
    const ld x = fabsl(v);
    if (isinf(x)) return sign | inf;
    int e = l.min_exp;
    if (x >= ldexpl(1, l.min_exp)) {
        frexpl(x, &e);
        e--;
    }
    const ld n = to_even(ldexpl(x, l.digits - 1 - e));
    const uint64_t raw = e > l.min_exp
                             ? (uint64_t)(e - l.min_exp) * one + (uint64_t)n
                             : (uint64_t)n;
    return sign | (e >= l.max_exp || raw > inf ? inf : raw);
}

/* The result for an element. All NaNs are equal: see same(). */
static uint64_t reference(lb_dtype from, uint64_t raw, lb_dtype to)
{
    const ld v = number_at(from, &raw);
    const int bits = number_bits(to);
    const uint64_t mask = UINT64_MAX >> (64 - bits);
    if (from == to) return raw;
    if (to == LB_BOOL) return v != 0;
    if (number_is_float(to)) {
        const number_layout l = number_layout_of(to);
        const uint64_t one = (uint64_t)1 << (l.digits - 1);
        if (isnan(v)) return ((uint64_t)1 << (l.bits - 1)) - one + one / 2;
        return round_to(to, v);
    }
    if (!number_is_float(from)) {
        const uint64_t top = (uint64_t)1 << (number_bits(from) - 1);
        const uint64_t wide = number_is_signed(from) ? (raw ^ top) - top : raw;
        return wide & mask;
    }
    if (isnan(v)) return 0;
    const ld most =
        number_is_signed(to) ? ldexpl(1, bits - 1) - 1 : ldexpl(1, bits) - 1;
    const ld least = number_is_signed(to) ? -ldexpl(1, bits - 1) : 0;
    const ld n = truncl(v) > most    ? most
                 : truncl(v) < least ? least
                                     : truncl(v);
    return (n < 0 ? 0 - (uint64_t)-n : (uint64_t)n) & mask;
}

static bool same(lb_dtype d, uint64_t a, uint64_t b)
{
    if (a == b) return true;
    return number_is_float(d) && isnan(number_from_float(d, a)) &&
           isnan(number_from_float(d, b));
}

/* ---- lists of values ---------------------------------------------------- */

typedef struct list {
    lb_dtype dtype;
    char *bytes;
    int64_t n, room;
} list;

static void push(list *l, uint64_t raw)
{
    const size_t size = lb_dtype_size(l->dtype);
    if (l->n == l->room) {
        l->room = l->room * 2 + 1024;
        l->bytes = realloc(l->bytes, (size_t)l->room * size);
        if (!l->bytes) abort();
    }
    memcpy(l->bytes + (size_t)l->n++ * size, &raw, size);
}

/* A value of the dtype. */
static void push_number(list *l, ld v)
{
    if (number_is_float(l->dtype)) {
        push(l, round_to(l->dtype, v));
        return;
    }
    const bool fits = fabsl(v) < ldexpl(1, number_bits(l->dtype) - 1) &&
                      (v >= 0 || number_is_signed(l->dtype));
    if (fits) push(l, v < 0 ? 0 - (uint64_t)-v : (uint64_t)v);
}

/* Converts the list and compares. */
static void check_list(lb_ctx *cx, const list *l, lb_dtype to)
{
    lb_enter(cx);
    lb_array *a = lb_from(cx, l->dtype, LB_SHAPE(l->n), l->bytes);
    const char *got = lb_data(lb_convert(cx, a, to));
    CHECK(got != NULL);
    const size_t size = lb_dtype_size(l->dtype);
    for (int64_t i = 0; got && i < l->n; i++, got += lb_dtype_size(to)) {
        const uint64_t raw = number_raw(l->dtype, l->bytes + (size_t)i * size);
        const uint64_t is = number_raw(to, got);
        const uint64_t want = reference(l->dtype, raw, to);
        if (check_fails(same(to, is, want)))
            fprintf(stderr, "%s %llx to %s: %llx, not %llx\n",
                    lb_dtype_name(l->dtype), (unsigned long long)raw,
                    lb_dtype_name(to), (unsigned long long)is,
                    (unsigned long long)want);
    }
    lb_leave(cx);
}

/* ---- the tests ---------------------------------------------------------- */

static void golden(lb_ctx *cx)
{
    const size_t rows = sizeof convert_golden / sizeof *convert_golden;
    const bool exact = number_is_exact();
    for (size_t i = 0; i < rows; i++)
        for (int d = 1; d <= N_DTYPES; d++) {
            const lb_dtype from = (lb_dtype)convert_golden[i].dtype;
            const lb_dtype to = (lb_dtype)d;
            const uint64_t raw = convert_golden[i].from;
            const uint64_t want = convert_golden[i].to[d - 1];
            if (!exact && to == LB_F32 && (from == LB_I64 || from == LB_U64))
                continue; /* rounded twice by the same emulators */
            lb_enter(cx);
            lb_array *a = lb_from(cx, from, LB_SHAPE(1), &raw);
            lb_array *b = lb_convert(cx, a, to);
            const uint64_t got = b ? number_raw(to, lb_data(b)) : ~want;
            if (check_fails(same(to, got, want)))
                fprintf(stderr, "table: %s %llx to %s: %llx, not %llx\n",
                        lb_dtype_name(from), (unsigned long long)raw,
                        lb_dtype_name(to), (unsigned long long)got,
                        (unsigned long long)want);
            CHECK(!exact || same(to, reference(from, raw, to), want));
            lb_leave(cx);
        }
}

static void all_patterns(lb_ctx *cx, lb_dtype d)
{
    list l = {.dtype = d};
    for (uint64_t i = 0; i < 65536; i++)
        push(&l, i);
    for (int to = 1; to <= N_DTYPES; to++)
        check_list(cx, &l, (lb_dtype)to);
    /* And back: to f32 is exact, so nothing changes; NaN stays NaN, with its
     * sign. */
    lb_array *a = lb_from(cx, d, LB_SHAPE(65536), l.bytes);
    for (lb_dtype wide = LB_F32; wide <= LB_F64; wide++) {
        if (lb_dtype_size(wide) == 2) continue;
        lb_array *back = lb_convert(cx, lb_convert(cx, a, wide), d);
        const uint16_t *got = lb_data(back);
        for (int i = 0; got && i < 65536; i++)
            CHECK(same(d, got[i], (uint64_t)i) && (got[i] ^ i) < 0x8000);
    }
    free(l.bytes);
}

/* Midpoints between neighbours of a 16-bit dtype, and the nearest f32, f64 or
 * 64-bit integers on either side. */
static void traps(lb_ctx *cx, lb_dtype narrow, lb_dtype from)
{
    list l = {.dtype = from};
    const uint64_t inf = narrow == LB_F16 ? 0x7c00 : 0x7f80;
    for (uint64_t i = 0; i < inf; i++) {
        const ld x = number_from_float(narrow, i);
        const ld y = i + 1 < inf ? number_from_float(narrow, i + 1)
                                 : ldexpl(1, number_layout_of(narrow).max_exp);
        const ld mid = (x + y) / 2;
        for (int side = -1; side <= 1; side++) {
            ld v = mid;
            if (from == LB_F64)
                v = side ? (ld)nextafter((double)mid, side * HUGE_VAL) : mid;
            else if (from == LB_F32)
                v = side ? (ld)nextafterf((float)mid, (float)side * HUGE_VALF)
                         : mid;
            else
                v = mid < 0x1p63L ? floorl(mid) + side : 0;
            push_number(&l, v);
            push_number(&l, -v);
        }
    }
    CHECK(l.n > 1000);
    check_list(cx, &l, narrow);
    free(l.bytes);
}

/* Integers halfway between floats with as many bits, of every length. */
static void integer_traps(lb_ctx *cx, lb_dtype from, lb_dtype to)
{
    list l = {.dtype = from};
    uint64_t state = 77;
    const int bits = number_bits(from), digits = number_layout_of(to).digits;
    for (int top = digits; top < bits; top++)
        for (int i = 0; i < 200; i++) {
            const uint64_t kept = (number_draw(&state) >> (64 - digits)) |
                                  (uint64_t)1 << (digits - 1);
            const int shift = top - digits + 1;
            const uint64_t tie = (kept << 1 | 1) << (shift - 1);
            push(&l, tie);
            push(&l, tie + 1);
            push(&l, tie - 1);
            push(&l, 0 - tie);
            push(&l, 0 - tie - 1);
        }
    if (l.n) check_list(cx, &l, to);
    free(l.bytes);
}

static void at_random(lb_ctx *cx, lb_dtype from)
{
    list l = {.dtype = from};
    uint64_t state = (uint64_t)from;
    for (int i = 0; i < 20000; i++) {
        const uint64_t r = number_draw(&state);
        if (from == LB_BOOL)
            push(&l, r & 1);
        else if (!number_is_float(from) || i % 2)
            push(&l, r & UINT64_MAX >> (64 - number_bits(from)));
        else /* around the limits of integers */
            push_number(&l, ldexpl((ld)(int64_t)r, -(int)(r % 64)));
    }
    for (int to = 1; to <= N_DTYPES; to++)
        check_list(cx, &l, (lb_dtype)to);
    free(l.bytes);
}

/* ---- levels ------------------------------------------------------------- */

/* Load, store and round of every level have the bits of the portable ones: for
 * f32 patterns with few different low halves, whose high halves include all of
 * f16 and bf16. */
static void same_bits(const lb_convert_kernel *k, lb_dtype d, int64_t n,
                      const float *x)
{
    uint16_t few[70], want_few[70];
    float many[70], want[70];
    k->store(LB_C_F32, x, d, n, few);
    lb_convert_ref.store(LB_C_F32, x, d, n, want_few);
    CHECK(!memcmp(few, want_few, (size_t)n * sizeof *few));
    for (int64_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &x[i], sizeof u);
        few[i] = (uint16_t)(i % 2 ? u >> 16 : u);
    }
    k->load(d, few, 1, n, many);
    lb_convert_ref.load(d, few, 1, n, want);
    CHECK(!memcmp(many, want, (size_t)n * sizeof *many));
    memcpy(many, x, (size_t)n * sizeof *many);
    memcpy(want, x, (size_t)n * sizeof *want);
    k->round(d, n, many);
    lb_convert_ref.round(d, n, want);
    CHECK(!memcmp(many, want, (size_t)n * sizeof *many));
}

static void levels(void)
{
    static const uint32_t low[] = {0,      1,      0x1000, 0x1001, 0x0fff,
                                   0x7fff, 0x8000, 0x8001, 0xffff};
    enum { LOW = sizeof low / sizeof *low };
    for (lb_level l = LB_LEVEL_REF; l <= LB_LEVEL_AMX; l++) {
        const lb_convert_kernel *k =
            lb_convert_kernel_for(&(lb_cpu){.level = l});
        if (!lb_level_available(l) || k == &lb_convert_ref) continue;
        for (uint32_t high = 0; high < 65536;) {
            const int64_t n = 1 + high % 67;
            float x[70];
            for (int64_t i = 0; i < n; i++) {
                const uint32_t u =
                    (high + (uint32_t)i) << 16 | low[(high + i) % LOW];
                memcpy(&x[i], &u, sizeof u);
            }
            same_bits(k, LB_F16, n, x);
            same_bits(k, LB_BF16, n, x);
            high += 1 + high % 3;
        }
    }
}

int main(void)
{
    static const lb_dtype wide[] = {LB_F32, LB_F64, LB_I64, LB_U64, LB_I32};
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    CHECK(cx != NULL);
    if (!cx) return check_report("convert");
    golden(cx);
    levels();
    if (!number_is_exact()) {
        puts("convert: long double is short here; the table only");
        lb_close(cx);
        return check_report("convert");
    }
    all_patterns(cx, LB_F16);
    all_patterns(cx, LB_BF16);
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        traps(cx, LB_F16, wide[i]);
        traps(cx, LB_BF16, wide[i]);
    }
    for (int from = LB_I8; from <= LB_U64; from++)
        for (int to = LB_F32; to <= LB_F64; to++)
            integer_traps(cx, (lb_dtype)from, (lb_dtype)to);
    for (int from = 1; from <= N_DTYPES; from++)
        at_random(cx, (lb_dtype)from);
    lb_close(cx);
    return check_report("convert");
}
