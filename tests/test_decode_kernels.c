/* test_decode_kernels.c - decoders and conversions, level by level.
 *
 * Law 4: every level gives the bits of the portable reference, for all lengths,
 * starts, alignments and spans, with guard pages around all memory. The
 * reference itself is compared with double precision in the tests of formats.
 */
/* ctest: simde skip-tsan skip-ref */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cpu.h"
#include "check.h"
#include "kernels/convert.h"
#include "kernels/decode.h"
#include "kernels/dynamic8_ref.h"
#include "kernels/nf4_ref.h"
#include "kernels/stream.h"

/* ---- memory ------------------------------------------------------------- */

enum { ROOM = 8192 }; /* bytes, between two guard pages */

typedef struct {
    char *map;
    size_t page;
} fenced;

static fenced fence(void)
{
    fenced f = {.page = (size_t)sysconf(_SC_PAGESIZE)};
    const size_t size = ROOM + 2 * f.page;
    f.map = mmap(NULL, size, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (f.map == MAP_FAILED || mprotect(f.map, f.page, PROT_NONE) != 0 ||
        mprotect(f.map + f.page + ROOM, f.page, PROT_NONE) != 0) {
        perror("mmap");
        exit(1);
    }
    return f;
}

/* Memory that begins just after the first guard page, or ends just before the
 * last. */
static void *at_edge(const fenced *f, size_t bytes, bool low)
{
    return f->map + f->page + (low ? 0 : ROOM - bytes);
}

static uint32_t seed = 1;
static uint32_t rough(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

/* Scales of all kinds: ordinary ones, and the limits of f32. */
static float scale_of(int i)
{
    static const float some[] = {
        1.0f,       0.01f,          -0.3f,    0.0f,        -0.0f,
        0x1p-149f,  0x1p-126f,      0x1p127f, -0x1.8p120f, 3e38f,
        0x1.3p123f, 0x1.fffffep-1f, INFINITY, -INFINITY,   NAN,
        0x1p100f,   0x1.5p-101f,    7e-39f};
    const int n = (int)(sizeof some / sizeof *some);
    return i % 3 ? some[(i + (int)(rough() % 3)) % n]
                 : (float)(rough() % 1000 + 1) * 0.001f;
}

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static bool same(const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (bits_of(a[i]) != bits_of(b[i])) {
            fprintf(stderr, "element %lld of %lld: %a, not %a\n", (long long)i,
                    (long long)n, (double)a[i], (double)b[i]);
            return false;
        }
    return true;
}

/* ---- decoding ----------------------------------------------------------- */

typedef struct {
    const lb_decode_kernel *kernel;
    const lb_convert_kernel *convert;
    lb_stream_fn *stream;
    lb_level level;
} subject;

/* A call: codes, scales, and destination. */
typedef struct {
    fenced codes, scales, out;
    const subject *s;
} bench;

static bool runs_here(lb_level level)
{
#if defined(LB_SIMDE)
    (void)level;
    return true;
#else
    return lb_level_available(level);
#endif
}

static uint8_t *some_codes(bench *b, size_t bytes, bool low)
{
    uint8_t *code = at_edge(&b->codes, bytes, low);
    for (size_t i = 0; i < bytes; i++)
        code[i] = (uint8_t)rough();
    return code;
}

static lb_spans some_spans(bench *b, int64_t n, int64_t head, int64_t each,
                           bool low)
{
    const int64_t values = n <= head ? 1 : 1 + (n - head + each - 1) / each;
    float *v = at_edge(&b->scales, (size_t)values * sizeof *v, low);
    for (int64_t i = 0; i < values; i++)
        v[i] = scale_of((int)rough());
    return (lb_spans){v, head, each};
}

typedef enum { SCALE, ABSMAX, INVERSE, HALVES, ONES, TWOS, LEVELS, KINDS } kind;

static int64_t bytes_for(kind k, int64_t start, int64_t n)
{
    const int64_t per = k == HALVES ? 2 : k == ONES ? 8 : k == TWOS ? 4 : 1;
    return (start % per + n + per - 1) / per;
}

static void run(const lb_decode_kernel *kernel, kind k, const uint8_t *code,
                int64_t start, int64_t n, lb_spans s, float *out)
{
    const lb_fields ones = {1, -1, 2, n % 2}, twos = {2, -1, 1, n % 2};
    switch (k) {
    case HALVES:
        kernel->halves(lb_nf4_levels, code, start % 2, n, s, out);
        return;
    case ONES:
        kernel->fields(ones, code, start % 8, n, s, out);
        return;
    case TWOS:
        kernel->fields(twos, code, start % 4, n, s, out);
        return;
    case LEVELS:
        kernel->levels(lb_dynamic8_map, code, n, s, out);
        return;
    default:
        kernel->bytes(k == SCALE    ? LB_MEANS_SCALE
                      : k == ABSMAX ? LB_MEANS_ABSMAX
                                    : LB_MEANS_INVERSE,
                      (const int8_t *)code, n, s, out);
    }
}

static void check_run(bench *b, kind k, int64_t start, int64_t n, int64_t head,
                      int64_t each)
{
    if (check_thins_short()) return;
    static float want[ROOM / 4];
    const bool low = rough() % 2, bare = (k == ONES || k == TWOS) && n % 5 == 0;
    const uint8_t *code = some_codes(b, (size_t)bytes_for(k, start, n), low);
    lb_spans s = some_spans(b, n, head, each, low);
    if (bare) s.value = NULL;
    float *out = at_edge(&b->out, (size_t)n * sizeof *out, low);
    run(&lb_decode_ref, k, code, start, n, s, want);
    run(b->s->kernel, k, code, start, n, s, out);
    const bool ok = same(out, want, n);
    CHECK(ok);
    if (!ok)
        fprintf(stderr,
                "%s: kind %d, start %lld, n %lld, head %lld, each "
                "%lld\n",
                b->s->kernel->name, (int)k, (long long)start, (long long)n,
                (long long)head, (long long)each);
    /* in place, where each element has its own */
    if (head != 1 || each != 1 || bare) return;
    memcpy(out, s.value, (size_t)n * sizeof *out);
    run(b->s->kernel, k, code, start, n, (lb_spans){out, 1, 1}, out);
    CHECK(same(out, want, n));
}

static void check_kind(bench *b, kind k)
{
    static const int64_t groups[] = {1, 8, 10, 16, 30, 32, 33, 64, 96, 2048};
    for (int64_t n = 0; n <= 300; n++)
        for (int64_t start = 0; start < 8; start++) {
            const int64_t g = groups[rough() % 10];
            check_run(b, k, start, n, 1 + (int64_t)rough() % g, g);
            check_run(b, k, start, n, n + 1, n + 1);
        }
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        for (int64_t n = 1900; n < 1900 + 40; n++)
            check_run(b, k, n, n, groups[i], groups[i]);
}

/* Quotients are computed without dividing: all odd codes and all mantissas
 * cover all quotients, up to powers of two. */
static void check_quotients(const subject *s, uint32_t step)
{
    enum { CODES = 64 };
    int8_t code[CODES];
    float want[CODES], got[CODES];
    for (int i = 0; i < CODES; i++)
        code[i] = (int8_t)(i % 2 ? -(2 * i + 1) : 2 * i + 1);
    bool ok = true;
    for (uint32_t m = rough() % step; m < 1u << 23 && ok; m += step) {
        const uint32_t u = 0x3f800000u | m;
        float v;
        memcpy(&v, &u, sizeof v);
        s->kernel->bytes(LB_MEANS_INVERSE, code, CODES,
                         (lb_spans){&v, CODES, CODES}, got);
        for (int i = 0; i < CODES; i++)
            want[i] = (float)code[i] / v;
        ok = same(got, want, CODES);
    }
    CHECK(ok);
}

/* ---- blocks ------------------------------------------------------------- */

/* Scale d in f16 and the layouts in decode.h, value by value. */
static const int levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                               1,    13,   25,  38,  53,  69,  89,  113};

static float block_number(int which, const uint8_t *from, int i)
{
    static const int d_at[] = {0, 0, 64, 52};
    static const int power[] = {1, 3, 9, 27, 81};
    const uint8_t *d = from + d_at[which & 3];
    const float scale = lb_f32_from_f16((uint16_t)(d[0] | d[1] << 8));
    int code, at, k;
    switch (which) {
    case 0:
        code = (from[2 + i] ^ 128) - 128;
        break;
    case 1:
        code = levels[i < 16 ? from[2 + i] & 15 : from[2 + i - 16] >> 4];
        break;
    case 2:
        code = (from[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3) - 1;
        break;
    default:
        at = i < 160 ? i % 32 : i < 240 ? 32 + (i - 160) % 16 : 48 + i % 4;
        k = i < 160 ? i / 32 : i < 240 ? (i - 160) / 16 : (i - 240) / 4;
        code = ((from[at] * power[k] & 255) * 3 >> 8) - 1;
    }
    return (float)code * scale;
}

static void check_blocks(bench *b)
{
    static const int size[] = {34, 18, 66, 54}, len[] = {32, 32, 256, 256};
    const lb_decode_kernel *k = b->s->kernel;
    int8_t sixteen[16];
    if (!k->bytes32) return;
    for (int i = 0; i < 16; i++)
        sixteen[i] = (int8_t)levels[i];
    for (int which = 0; which < 4; which++)
        for (int round = 0; round < 3000; round++) {
            const int64_t n = round % 6;
            const bool low = round % 2;
            const uint8_t *from = some_codes(b, (size_t)(n * size[which]), low);
            float *out =
                at_edge(&b->out, (size_t)(n * len[which]) * sizeof *out, low);
            if (which == 0) k->bytes32(from, n, out);
            if (which == 1) k->halves32(sixteen, from, n, out);
            if (which == 2) k->pairs256(from, n, out);
            if (which == 3) k->trits256(from, n, out);
            bool ok = true;
            for (int64_t i = 0; i < n * len[which] && ok; i++) {
                const float want =
                    block_number(which, from + i / len[which] * size[which],
                                 (int)(i % len[which]));
                ok = same(out + i, &want, 1);
            }
            CHECK(ok);
        }
}

/* ---- conversions -------------------------------------------------------- */

/* All bit patterns, including NaNs and their payloads. */
static void some_floats(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t u = rough() << 16 ^ rough();
        if (rough() % 64 == 0) u |= 0x7f800000u;
        if (rough() % 4 == 0) u = (u & 0x87ffffffu) | 0x38000000u;
        memcpy(x + i, &u, sizeof u);
    }
}

static void check_conversions(bench *b)
{
    static const lb_dtype to[] = {LB_F16, LB_BF16, LB_F64, LB_F32, LB_I8};
    static char want[ROOM];
    const lb_convert_kernel *k = b->s->convert;
    for (int64_t n = 0; n <= 300; n++)
        for (int d = 0; d < 5; d++) {
            const bool low = n % 2;
            float *x = at_edge(&b->codes, (size_t)n * sizeof *x, low);
            some_floats(x, n);
            const size_t bytes = (size_t)n * lb_dtype_size(to[d]);
            void *out = at_edge(&b->out, bytes, low);
            k->store(LB_C_F32, x, to[d], n, out);
            lb_store_run(LB_C_F32, x, to[d], n, want);
            CHECK(memcmp(out, want, bytes) == 0);
            if (to[d] == LB_F64) {
                float *back = at_edge(&b->scales, (size_t)n * 4, low);
                k->store(LB_C_F64, out, LB_F32, n, back);
                lb_store_run(LB_C_F64, out, LB_F32, n, want);
                CHECK(memcmp(back, want, (size_t)n * 4) == 0);
            }
            if (to[d] > LB_F64) continue;
            memcpy(want, x, (size_t)n * 4);
            if (to[d] != LB_F64) {
                k->round(to[d], n, x);
                lb_round_run(to[d], n, want);
                CHECK(memcmp(x, want, (size_t)n * 4) == 0);
            }
        }
}

/* Every f16, in runs of any length. */
static void check_halves(bench *b)
{
    static const lb_dtype from[] = {LB_F16, LB_BF16};
    static float want[ROOM / 4];
    for (int d = 0; d < 2; d++)
        for (uint32_t first = 0, n; first < 65536; first += n) {
            n = 1 + rough() % 300;
            n = n < 65536 - first ? n : 65536 - first;
            uint16_t *h = at_edge(&b->codes, n * sizeof *h, n % 2);
            float *out = at_edge(&b->out, n * sizeof *out, n % 2);
            for (uint32_t i = 0; i < n; i++)
                h[i] = (uint16_t)(first + i);
            b->s->convert->load(from[d], h, 1, n, out);
            lb_load_run(from[d], h, 1, n, want);
            CHECK(same(out, want, n));
            const int64_t some = (n + 2) / 3;
            b->s->convert->load(from[d], h, 3, some, out);
            lb_load_run(from[d], h, 3, some, want);
            CHECK(same(out, want, some));
        }
}

static void check_stream(bench *b)
{
    for (size_t n = 0; n < 600; n++)
        for (size_t at = 0; at < 64; at += 1 + n % 7) {
            uint8_t *src = at_edge(&b->codes, n, n % 2);
            uint8_t *dst = at_edge(&b->out, n + at, n % 2);
            for (size_t i = 0; i < n; i++)
                src[i] = (uint8_t)rough();
            memset(dst, 0x5a, n + at);
            b->s->stream(dst, src, n);
            lb_stream_end();
            bool ok = memcmp(dst, src, n) == 0;
            for (size_t i = n; i < n + at; i++)
                ok = ok && dst[i] == 0x5a;
            CHECK(ok);
        }
}

int main(int argc, char **argv)
{
    static const subject subjects[] = {
        {&lb_decode_ref, &lb_convert_ref, lb_stream_copy, LB_LEVEL_REF},
#if defined(__x86_64__)
        {&lb_decode_avx2, &lb_convert_avx2, lb_stream_avx2, LB_LEVEL_AVX2},
        {&lb_decode_avx512, &lb_convert_avx2, lb_stream_avx512,
         LB_LEVEL_AVX512},
#elif defined(__aarch64__)
        {&lb_decode_neon, &lb_convert_ref, lb_stream_copy, LB_LEVEL_NEON},
#endif
    };
    const bool all = argc > 1 && strcmp(argv[1], "--all") == 0;
    bench b = {fence(), fence(), fence(), NULL};
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        if (!runs_here(subjects[i].level)) continue;
        b.s = &subjects[i];
        for (int k = 0; k < KINDS; k++)
            check_kind(&b, (kind)k);
        check_quotients(b.s, all ? 1 : 1021);
        check_blocks(&b);
        check_conversions(&b);
        check_halves(&b);
        check_stream(&b);
    }
    return check_report("decode kernels");
}
