/* test_encode.c - law 4 for encoders: every level gives the same bits as the
 * portable reference.
 *
 * Inputs of every kind (codec_inputs.h) and values next to the boundaries
 * between codes, at all lengths and alignments, with guard pages around inputs
 * and outputs.
 */
/* ctest: simde skip-tsan skip-ref */
#include <float.h>

#include "base/cpu.h"
#include "check.h"
#include "codec_inputs.h"
#include "fenced.h"
#include "kernels/dynamic8_ref.h"
#include "kernels/encode.h"
#include "kernels/gguf_ref.h"
#include "kernels/nf4_ref.h"
#include "numbers.h"

/* SIMDe builds have all levels of x86, which this machine may be unable to run.
 */
static bool runs_here(lb_level level)
{
#if defined(LB_SIMDE)
    return level != LB_LEVEL_NEON;
#else
    return lb_level_available(level);
#endif
}

enum { MOST = 4200 }; /* numbers */

/* A case: values, their memory, and the encoder. */
typedef struct {
    const lb_cpu *cpu;
    const float *x; /* fenced */
    int64_t n;
    bool end;     /* at the second guard page, else at the first */
    size_t align; /* size of the output, in bytes */
} trial;

static const lb_cpu reference = {.level = LB_LEVEL_REF};
static fenced source, result;
static char want[8 * MOST];

static void *place(const trial *t, size_t bytes)
{
    return t->end ? fenced_end(&result, bytes)
                  : fenced_begin(&result, (size_t)(t->n % 5) * t->align, bytes);
}

static void same(const trial *t, const char *what, int64_t detail,
                 const void *got, size_t bytes)
{
    const bool ok =
        memcmp(got, want, bytes) == 0 && fenced_kept(&result, got, bytes);
    if (check_fails(ok))
        fprintf(stderr, "%s: %s, %lld values, %lld: different bytes\n",
                lb_level_name(t->cpu->level), what, (long long)t->n,
                (long long)detail);
}

/* Compares the output of a call, which may use cpu, k and to. */
#define SAME(what, detail, bytes, call)                                        \
    do {                                                                       \
        const lb_cpu *cpu = &reference;                                        \
        const lb_encode_kernel *k = &lb_encode_ref;                            \
        void *to = want;                                                       \
        call;                                                                  \
        cpu = t->cpu;                                                          \
        k = lb_encode_kernel_for(cpu);                                         \
        to = place(t, bytes);                                                  \
        call;                                                                  \
        (void)cpu;                                                             \
        (void)k;                                                               \
        same(t, what, detail, to, bytes);                                      \
    } while (0)

static float largest_of(const float *x, int64_t n)
{
    float most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    return most;
}

/* ---- statistics of values ------------------------------------------------ */

static void try_peak(const trial *t)
{
    CHECK_EQ_I(lb_encode_kernel_for(t->cpu)->peak_bits(t->x, t->n),
               lb_encode_ref.peak_bits(t->x, t->n));
}

static void try_statistics(const trial *t)
{
    static const int64_t block[] = {1, 7, 8, 33, 64, MOST};
    for (size_t b = 0; b < sizeof block / sizeof *block; b++) {
        const int64_t blocks = t->n / block[b] + (t->n % block[b] != 0);
        SAME("largest", block[b], (size_t)blocks * sizeof(float),
             k->largest(t->x, t->n, block[b], to));
    }
    const int64_t chunks = t->n / LB_CHUNK + (t->n % LB_CHUNK != 0);
    SAME("moments", 0, (size_t)chunks * sizeof(lb_moments),
         k->moments(t->x, t->n, to));
    const float least[] = {-1, 0, t->n ? fabsf(t->x[t->n / 2]) : 1, INFINITY};
    for (int i = 0; i < 4; i++)
        SAME("totals", i, (size_t)chunks * sizeof(lb_total),
             k->totals(t->x, t->n, least[i], to));
    float start[MOST];
    for (int64_t i = 0; i < t->n; i++)
        start[i] = fabsf(t->x[t->n - 1 - i]);
    SAME("raise", 0, (size_t)t->n * sizeof(float),
         (memcpy(to, start, (size_t)t->n * sizeof(float)),
          k->raise(t->x, t->n, to)));
}

/* ---- codes -------------------------------------------------------------- */

static void try_int8(const trial *t)
{
    const float most = largest_of(t->x, t->n);
    const float by[] = {most / 127 > 0 ? most / 127 : INFINITY, most / 100 + 1,
                        0x1.4p-3f + most / 127};
    float each[MOST];
    for (int64_t i = 0; i < t->n; i++)
        each[i] = by[i % 3];
    for (int i = 0; i < 3; i++)
        for (lb_quotient how = LB_QUOTIENT; how <= LB_QUOTIENT_BF16; how++) {
            const float f = how == LB_PRODUCT && most > 0x1p-100f
                                ? 127.0f / (most * (float)(i + 1) / 3)
                                : by[i];
            if (how == LB_PRODUCT && isinf(f)) continue;
            SAME("int8", how, (size_t)t->n, k->whole(how, t->x, t->n, f, to));
            if (how == LB_PRODUCT) continue;
            SAME("int8 each", how, (size_t)t->n,
                 k->whole_each(how, t->x, t->n, each, to));
        }
    for (int64_t i = 0; i < t->n; i++)
        each[i] = most > 0x1p-100f ? 127.0f / most : 0;
    SAME("int8 each", LB_PRODUCT, (size_t)t->n,
         k->whole_each(LB_PRODUCT, t->x, t->n, each, to));
}

static void try_whole(const trial *t, float by)
{
    SAME("int8", LB_QUOTIENT, (size_t)t->n,
         k->whole(LB_QUOTIENT, t->x, t->n, by, to));
}

static void try_nf4(const trial *t, int64_t block)
{
    static const lb_dtype from[] = {LB_F32, LB_F16, LB_BF16};
    const int64_t blocks = t->n / block + (t->n % block != 0);
    float most[MOST], by[MOST];
    for (int compat = 0; compat <= LB_COMPAT_BNB_CPU; compat++)
        for (int d = 0; d < 3; d++)
            for (int whole = 0; whole < 2; whole++) {
                if (d && compat != LB_COMPAT_EFORMER) continue;
                lb_encode_ref.largest(t->x, t->n, block, most);
                const lb_quotient how = lb_nf4_norms((lb_compat)compat, from[d],
                                                     whole, blocks, most, by);
                SAME("nf4", compat, (size_t)(t->n + 1) / 2,
                     lb_nf4_encoder_for(cpu)(lb_nf4_edges((lb_compat)compat),
                                             how, t->x, t->n, block, by, to));
            }
}

static void try_signs(const trial *t)
{
    const float cut[] = {0, t->n ? fabsf(t->x[t->n / 3]) : 1, INFINITY};
    for (int i = 0; i < 3; i++)
        SAME("ternary", i, (size_t)(t->n + 3) / 4,
             k->ternary(t->x, t->n, cut[i], to));
    SAME("binary", 0, (size_t)(t->n + 7) / 8, k->binary(t->x, t->n, to));
}

static void try_dynamic8(const trial *t)
{
    const float most = largest_of(t->x, t->n);
    for (int compat = 0; compat <= LB_COMPAT_BNB_CPU; compat++)
        SAME("dynamic8", compat, (size_t)t->n,
             lb_dynamic8_encoder_for(cpu)((lb_compat)compat, most, t->x, t->n,
                                          to));
}

static void try_gguf(const trial *t)
{
    const size_t few = (size_t)t->n / 32, many = (size_t)t->n / 256;
    const float most = largest_of(t->x, t->n);
    if (most > 65504) return;
    const struct {
        const char *name;
        const lb_gguf_encoders *of;
        size_t blocks, size;
    } type[] = {
        {"q8_0", &lb_q8_0_encoders, few, 34},
        {"q4_0", &lb_q4_0_encoders, few, 18},
        {"iq4_nl", &lb_iq4_nl_encoders, few, 18},
        {"tq1_0", &lb_tq1_0_encoders, many, 54},
        {"tq2_0", &lb_tq2_0_encoders, many, 66},
    };
    for (int i = 0; i < 5; i++)
        SAME(type[i].name, 0, type[i].blocks * type[i].size,
             lb_gguf_encoder_for(cpu, type[i].of)(t->x, (int64_t)type[i].blocks,
                                                  to));
}

/* ---- numbers ------------------------------------------------------------ */

static const float *lay(const trial *t, const float *x)
{
    const size_t bytes = (size_t)t->n * sizeof *x;
    float *at =
        t->end ? fenced_end(&source, bytes)
               : fenced_begin(&source, sizeof *x * (size_t)(t->n % 9), bytes);
    memcpy(at, x, bytes);
    return at;
}

static void try_all(const lb_cpu *cpu, const float *x, int64_t n)
{
    static const int64_t blocks[] = {2, 32, 64, 66, MOST};
    for (int end = 0; end < 2; end++) {
        if (check_thins()) continue;
        trial t = {cpu, NULL, n, end, 1};
        t.x = lay(&t, x);
        try_peak(&t);
        t.align = sizeof(double);
        try_statistics(&t);
        t.align = 1;
        try_int8(&t);
        for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
            try_nf4(&t, blocks[b]);
        try_signs(&t);
        try_dynamic8(&t);
        try_gguf(&t);
    }
}

static void every_kind(const lb_cpu *cpu)
{
    static const codec_levels levels = {
        .n = 7, .level = {-1, -0.5f, -0.25f, 0, 0.25f, 0.5f, 1}};
    static float x[MOST];
    for (int kind = 0; kind < CODEC_KINDS; kind++)
        for (int64_t n = 0; n <= 4097; n += n < 300 ? 1 : 949) {
            if (n > 40 && n < 300 && (n + kind) % CODEC_KINDS) continue;
            codec_fill((codec_kind)kind, &levels, LB_F32, (uint64_t)n + 1, n,
                       x);
            try_all(cpu, x, n);
        }
}

/* Values that are not finite, for functions that search for them. */
static void not_numbers(const lb_cpu *cpu)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN, -NAN, FLT_MAX};
    for (int64_t n = 1; n < 100; n++)
        for (int i = 0; i < 5; i++)
            for (int64_t at = 0; at < n; at++) {
                float x[100] = {0};
                trial t = {cpu, NULL, n, true, 1};
                x[at] = odd[i];
                t.x = lay(&t, x);
                try_peak(&t);
            }
}

static float next(float x, int steps)
{
    for (; steps > 0; steps--)
        x = nextafterf(x, INFINITY);
    for (; steps < 0; steps++)
        x = nextafterf(x, -INFINITY);
    return x;
}

/* Quotients at the boundaries of nf4, and next to them, for several divisors.
 */
static void nf4_edges(const lb_cpu *cpu)
{
    static const float by[] = {1,      0.7f,   3.14159f, 0x1.fffffep3f,
                               1e-20f, 1e-38f, 3e38f,    65504};
    enum { BESIDE = 9, N = 15 * BESIDE + 1 };
    for (int compat = 0; compat <= LB_COMPAT_BNB_CPU; compat++)
        for (size_t b = 0; b < sizeof by / sizeof *by; b++) {
            const float *edge = lb_nf4_edges((lb_compat)compat);
            float x[N];
            for (int i = 0; i < N - 1; i++)
                x[i] = next(edge[i / BESIDE] * by[b], i % BESIDE - BESIDE / 2);
            x[N - 1] = by[b]; /* so that this is the divisor */
            trial t = {cpu, NULL, N, true, 1};
            t.x = lay(&t, x);
            try_nf4(&t, MOST);
        }
}

/* Midpoints of int8's, q8_0's and q4_0's steps, and of iq4_nl's levels. */
static void ties(const lb_cpu *cpu)
{
    enum { N = 512 };
    static const float unit[] = {1, 0.1f, 0x1p-10f, 37.7f, 1e-3f};
    for (size_t u = 0; u < sizeof unit / sizeof *unit; u++)
        for (int beside = -2; beside <= 2; beside++)
            for (int shift = 0; shift < 7; shift++) {
                float x[N];
                for (int i = 0; i < N; i++)
                    x[i] = next(((float)(i / 2 % 32 + 32 * (i / 64) - 127) -
                                 0.5f * (float)(i % 2)) *
                                    unit[u],
                                beside);
                /* the largest of a block, so that others are such midpoints */
                for (int i = shift; i < N; i += 32)
                    x[i] = (shift % 2 ? -127.0f : 127.0f) * unit[u];
                trial t = {cpu, NULL, N, true, 1};
                t.x = lay(&t, x);
                try_int8(&t);
                try_gguf(&t);
            }
}

/* Quotients by divisors in the range where encoders multiply by a reciprocal,
 * and just outside of it, as close as possible to the boundaries of codes. */
static void divisors(const lb_cpu *cpu)
{
    enum { N = 192, ROUNDS = 4000 };
    uint64_t seed = 11;
    for (int r = 0; r < ROUNDS; r++) {
        const float by =
            ldexpf(1 + (float)(number_draw(&seed) >> 41) * 0x1p-23f,
                   (int)(number_draw(&seed) % 124) - 62);
        const float *edge = lb_nf4_edges((lb_compat)(r % 3));
        float halves[N], edges[N];
        for (int i = 0; i < N; i++) {
            const int beside = (int)(number_draw(&seed) % 5) - 2;
            halves[i] = next(((float)(i % 127) + 0.5f) * by, beside);
            edges[i] = next(edge[i % 15] * by, beside);
        }
        edges[r % N] = by; /* so that this is the divisor */
        trial t = {cpu, NULL, N, true, 1};
        t.x = lay(&t, halves);
        try_whole(&t, by);
        t.x = lay(&t, edges);
        try_nf4(&t, MOST);
    }
}

/* Both signs have the largest magnitude of a block: the first one counts. */
static void peaks(const lb_cpu *cpu)
{
    for (int a = 0; a < 32; a++)
        for (int b = 0; b < 32; b++) {
            float x[32];
            for (int i = 0; i < 32; i++)
                x[i] = (float)(i - 16) / 16.5f;
            x[a] = 1.5f;
            x[b] = -1.5f;
            trial t = {cpu, NULL, 32, true, 1};
            t.x = lay(&t, x);
            try_gguf(&t);
        }
}

/* Every entry of bitsandbytes' table of dynamic8, and its neighbours. */
static void places(const lb_cpu *cpu)
{
    enum { N = 4096 };
    static float x[N];
    for (int beside = -1; beside <= 1; beside++)
        for (int p = 0; p <= 65535; p += N - 1) {
            for (int i = 0; i < N - 1; i++) {
                const int at = p + i < 65535 ? p + i : 65535;
                x[i] = next((float)(-1 + 2.0 * at / 65535), beside);
            }
            x[N - 1] = 1;
            trial t = {cpu, NULL, N, true, 1};
            t.x = lay(&t, x);
            try_dynamic8(&t);
        }
}

int main(void)
{
    source = fenced_open(MOST * sizeof(float) + 64);
    result = fenced_open(8 * MOST + 64);
    for (lb_level l = LB_LEVEL_REF; l <= LB_LEVEL_AMX; l++) {
        const lb_cpu cpu = {.level = l};
        if (!runs_here(l)) continue;
        every_kind(&cpu);
        not_numbers(&cpu);
        nf4_edges(&cpu);
        ties(&cpu);
        divisors(&cpu);
        peaks(&cpu);
        places(&cpu);
    }
    fenced_close(&source);
    fenced_close(&result);
    return check_report("encode");
}
