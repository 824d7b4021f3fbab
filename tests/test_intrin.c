/* test_intrin.c - intrinsics of AVX-512, VNNI and VBMI, one by one, against the
 * per-lane definitions in Intel's manual.
 *
 * In builds with SIMDe this checks the emulation that the tests of kernels rely
 * on; on a machine that has the instructions it checks the definitions in this
 * file. Elsewhere they are only compiled, which shows that the compiler
 * supports them. Operands are random bits mixed with special values.
 */
/* ctest: simde bochs */
#include "base/cpu.h"
#include "check.h"
#include "numbers.h"

#if defined(__x86_64__)
#include "kernels/x86/intrin.h"

#define LEVEL    LB_TARGET("avx512f,avx512bw,avx512vl,avx512dq,fma,f16c")
#define FOR_VNNI LB_TARGET("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")
#define FOR_VBMI LB_TARGET("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi")

typedef union lanes {
    int8_t i8[64];
    uint8_t u8[64];
    int16_t i16[32];
    uint16_t u16[32];
    int32_t i32[16];
    uint32_t u32[16];
    int64_t i64[8];
    uint64_t u64[8];
    float f32[16];
    double f64[8];
} lanes;

/* a, b and c are operands, m a mask, p memory, r the result. */
typedef struct operands {
    lanes a, b, c, p;
    uint64_t m;
} operands;

/* ---- scalar helpers ------------------------------------------------------ */

static int32_t sat(int64_t x, int64_t lo, int64_t hi)
{
    return (int32_t)(x < lo ? lo : x > hi ? hi : x);
}

static uint32_t wrap(int64_t x)
{
    return (uint32_t)(uint64_t)x;
}

/* vminps and vmaxps: the second unless the first is less (greater). */
static float min2(float x, float y)
{
    return x < y ? x : y;
}

static float max2(float x, float y)
{
    return x > y ? x : y;
}

/* vcvtps2dq: to nearest even, out of range is INT_MIN. */
static int32_t to_int(float x)
{
    return x >= -0x1p31F && x < 0x1p31F ? (int32_t)rintf(x) : INT32_MIN;
}

static int32_t to_int_cut(float x)
{
    return x >= -0x1p31F && x < 0x1p31F ? (int32_t)x : INT32_MIN;
}

static float from_f16(uint16_t x)
{
    return (float)number_from_float(LB_F16, x);
}

/* NaNs are compared as one. */
static void one_nan(lanes *v, bool wide)
{
    for (int i = 0; i < (wide ? 8 : 16); i++) {
        if (wide && isnan(v->f64[i])) v->f64[i] = (double)NAN;
        if (!wide && isnan(v->f32[i])) v->f32[i] = NAN;
    }
}

/* ---- the table ---------------------------------------------------------- */

#define V(x)   _mm512_loadu_si512((const void *)(x).i8)
#define F(x)   _mm512_loadu_ps((x).f32)
#define D(x)   _mm512_loadu_pd((x).f64)
#define H(x)   _mm256_loadu_si256((const __m256i *)(const void *)(x).i8)
#define HF(x)  _mm256_loadu_ps((x).f32)
#define Q(x)   _mm_loadu_si128((const __m128i *)(const void *)(x).i8)
#define PI(v)  _mm512_storeu_si512((void *)r->i8, v)
#define PF(v)  _mm512_storeu_ps(r->f32, v)
#define PD(v)  _mm512_storeu_pd(r->f64, v)
#define PH(v)  _mm256_storeu_si256((__m256i *)(void *)r->i8, v)
#define PHF(v) _mm256_storeu_ps(r->f32, v)
#define PQ(v)  _mm_storeu_si128((__m128i *)(void *)r->i8, v)
#define PM(v)  r->u64[0] = (v)
#define M8     ((__mmask8)o->m)
#define M16    ((__mmask16)o->m)
#define M32    ((__mmask32)o->m)
#define M64    ((__mmask64)o->m)
#define ON     (o->m >> i & 1)
#define BIT(x) r->u64[0] |= (uint64_t)((x) ? 1 : 0) << i

#define VECTOR(TARGET, NAME, STATEMENT)                                        \
    TARGET static void v_##NAME(const operands *o, lanes *r)                   \
    {                                                                          \
        STATEMENT;                                                             \
        (void)o;                                                               \
    }
#define AVX512(NAME, STATEMENT, ...) VECTOR(LEVEL, NAME, STATEMENT)
#define VNNI(NAME, STATEMENT, ...)   VECTOR(FOR_VNNI, NAME, STATEMENT)
#define VBMI(NAME, STATEMENT, ...)   VECTOR(FOR_VBMI, NAME, STATEMENT)
#include "intrin.def"
#undef AVX512
#undef VNNI
#undef VBMI

#define AVX512(NAME, STATEMENT, N, ...)                                        \
    static void s_##NAME(const operands *o, lanes *r)                          \
    {                                                                          \
        for (int i = 0; i < (N); i++) {                                        \
            __VA_ARGS__;                                                       \
        }                                                                      \
        (void)o;                                                               \
    }
#define VNNI(...) AVX512(__VA_ARGS__)
#define VBMI(...) AVX512(__VA_ARGS__)
#include "intrin.def"
#undef AVX512
#undef VNNI
#undef VBMI

typedef struct row {
    const char *name;
    void (*vector)(const operands *, lanes *);
    void (*scalar)(const operands *, lanes *);
} row;

enum { WITH_AVX512, WITH_VNNI, WITH_VBMI, N_SETS };
static const struct {
    int set;
    row row;
} rows[] = {
#define AVX512(NAME, ...) {WITH_AVX512, {#NAME, v_##NAME, s_##NAME}},
#define VNNI(NAME, ...)   {WITH_VNNI, {#NAME, v_##NAME, s_##NAME}},
#define VBMI(NAME, ...)   {WITH_VBMI, {#NAME, v_##NAME, s_##NAME}},
#include "intrin.def"
};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* ---- running it --------------------------------------------------------- */

/* Bits in a and b, floats in c and often in b; p is a with some lanes changed,
 * so that some are equal. */
static void draw(uint64_t *state, operands *o)
{
    static const float special[] = {
        0,         -0.0F,    1,         -1.5F,  2.5F, 0x1p31F,      -0x1p31F,
        0x1p-149F, INFINITY, -INFINITY, 127.5F, NAN,  2147483520.0F};
    enum { N_SPECIAL = sizeof special / sizeof *special };
    for (int i = 0; i < 8; i++) {
        o->a.u64[i] = number_draw(state);
        o->b.u64[i] = number_draw(state);
    }
    const bool floats = number_draw(state) % 2;
    for (int i = 0; i < 16; i++) {
        o->c.f32[i] = (float)(int32_t)number_draw(state) * 0x1p-16F;
        if (number_draw(state) % 4 == 0)
            o->c.f32[i] = special[number_draw(state) % N_SPECIAL];
        if (floats && number_draw(state) % 2)
            o->b.f32[i] = special[number_draw(state) % N_SPECIAL];
        if (number_draw(state) % 4 == 0) o->b.u32[i] %= 40; /* as a shift */
    }
    o->p = o->a;
    for (int i = 0; i < 64; i++)
        if (number_draw(state) % 3 == 0) o->p.u8[i] ^= 1;
    o->m = number_draw(state);
}

static void try_row(const char *set, const row *w, uint64_t *state)
{
    for (int round = 0; round < 200; round++) {
        operands o;
        _Alignas(64) lanes got = {.i64 = {0}}, want = got;
        draw(state, &o);
        w->vector(&o, &got);
        w->scalar(&o, &want);
        bool same = memcmp(&got, &want, sizeof got) == 0;
        if (!same) { /* NaNs, moved or computed */
            one_nan(&got, false);
            one_nan(&want, false);
            same = memcmp(&got, &want, sizeof got) == 0;
        }
        if (check_fails(same))
            fprintf(stderr, "%s: %s, round %d\n", set, w->name, round);
        if (!same) break;
    }
}

int main(void)
{
    static const char *const name[N_SETS] = {"avx512", "vnni", "vbmi"};
    const bool here[N_SETS] = {lb_level_available(LB_LEVEL_AVX512),
                               lb_level_available(LB_LEVEL_AVX512VNNI),
                               lb_cpu_has_vbmi()};
    uint64_t state = 20;
    int tried[N_SETS] = {0};
    for (int i = 0; i < N_ROWS; i++) {
        if (!here[rows[i].set]) continue;
        try_row(name[rows[i].set], &rows[i].row, &state);
        tried[rows[i].set]++;
    }
    for (int i = 0; i < N_SETS; i++)
        printf("%s: %d intrinsics\n", name[i], tried[i]);
    CHECK(sizeof(lanes) == 64);
    return check_report("intrin");
}
#else
int main(void)
{
    CHECK(lb_level_available(LB_LEVEL_REF)); /* there are none to check */
    return check_report("intrin");
}
#endif
