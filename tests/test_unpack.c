/* test_unpack.c - codes to elements of a float dtype, written to their final
 * place.
 *
 * Law 4: every level gives the bits of the portable decoder followed by the
 * portable conversion, or declines and writes nothing, with guard pages around
 * all memory. Then whole runs of arrays, to memory of every alignment, compared
 * with their tiles.
 */
/* ctest: simde skip-tsan skip-ref */
#include <math.h>

#include "base/cpu.h"
#include "check.h"
#include "core/core.h"
#include "fenced.h"
#include "kernels/convert.h"
#include "kernels/dynamic8_ref.h"
#include "kernels/nf4_ref.h"
#include "kernels/unpack.h"

enum { MOST = 2048 };

static uint32_t seed = 1;
static uint32_t rough(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

static const lb_dtype dtypes[] = {LB_F32, LB_BF16, LB_F16, LB_F64};
enum { DTYPES = 4 };

/* ---- kernels ------------------------------------------------------------ */

typedef enum {
    SCALE,
    ABSMAX,
    INVERSE,
    HALVES,
    ONES,
    TWOS,
    LEVELS,
    BYTES32,
    HALVES32,
    PAIRS256,
    TRITS256,
    KINDS
} kind;

typedef struct {
    kind k;
    const uint8_t *code;
    int64_t n;
    lb_spans s;
} source;

static const int8_t level32[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};

/* A scale that is occasionally any bit pattern. */
static float some_scale(void)
{
    static const float odd[] = {0,         -0.0f,    0x1p-149f, 0x1p-126f,
                                0x1p127f,  3e38f,    INFINITY,  -INFINITY,
                                0x1p-110f, 0x1p121f, 7e-39f,    65520,
                                0x1p-14f,  0x1p-24f, 0x1p100f,  -3};
    if (rough() % 8 == 0) return odd[rough() % 16];
    return rough() % 64 == 0 ? NAN : (float)(rough() % 1000 + 1) * 0.0013f;
}

static int64_t bytes_of(kind k, int64_t n)
{
    switch (k) {
    case HALVES:
        return (n + 1) / 2;
    case ONES:
        return (n + 7) / 8;
    case TWOS:
        return (n + 3) / 4;
    case BYTES32:
        return n / 32 * 34;
    case HALVES32:
        return n / 32 * 18;
    case PAIRS256:
        return n / 256 * 66;
    case TRITS256:
        return n / 256 * 54;
    default:
        return n;
    }
}

static int64_t block_of(kind k)
{
    return k < BYTES32 ? 1 : k < PAIRS256 ? 32 : 256;
}

static lb_meaning meaning_of(kind k)
{
    return k == ABSMAX    ? LB_MEANS_ABSMAX
           : k == INVERSE ? LB_MEANS_INVERSE
                          : LB_MEANS_SCALE;
}

static lb_fields fields_of(const source *from)
{
    const bool divides = from->n % 3 == 0;
    return from->k == ONES ? (lb_fields){1, -1, 2, divides}
                           : (lb_fields){2, -1, 1, divides};
}

static bool unpack(const lb_unpack_kernel *u, const source *from, lb_sink to)
{
    const uint8_t *code = from->code;
    const int64_t n = from->n;
    switch (from->k) {
    case HALVES:
        return u->halves(lb_nf4_levels, code, n, &from->s, to);
    case ONES:
    case TWOS:
        return u->fields(fields_of(from), code, n, &from->s, to);
    case LEVELS:
        return u->levels(lb_dynamic8_map, code, n, &from->s, to);
    case BYTES32:
        return u->bytes32(code, n / 32, to);
    case HALVES32:
        return u->halves32(level32, code, n / 32, to);
    case PAIRS256:
        return u->pairs256(code, n / 256, to);
    case TRITS256:
        return u->trits256(code, n / 256, to);
    default:
        return u->bytes(meaning_of(from->k), (const int8_t *)code, n, &from->s,
                        to);
    }
}

/* One block, in ggml's layouts. */
static void block_ref(kind k, const uint8_t *b, float *out)
{
    static const int power[] = {1, 3, 9, 27, 81};
    const int at = k == PAIRS256 ? 64 : k == TRITS256 ? 52 : 0;
    const float d = lb_f32_from_f16((uint16_t)(b[at] | b[at + 1] << 8));
    for (int i = 0; i < block_of(k); i++) {
        int code;
        if (k == BYTES32) {
            code = b[2 + i] - (b[2 + i] & 128) * 2;
        } else if (k == HALVES32) {
            const int c = i < 16 ? b[2 + i] & 15 : b[2 + i - 16] >> 4;
            code = 0 + level32[c];
        } else if (k == PAIRS256) {
            code = (b[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3) - 1;
        } else {
            const int byte = i < 160   ? i % 32
                             : i < 240 ? 32 + (i - 160) % 16
                                       : 48 + (i - 240) % 4;
            const int digit = i < 160   ? i / 32
                              : i < 240 ? (i - 160) / 16
                                        : (i - 240) / 4;
            code = ((b[byte] * power[digit] & 255) * 3 >> 8) - 1;
        }
        out[i] = (float)code * d;
    }
}

static void decode_ref(const source *from, float *out)
{
    const uint8_t *code = from->code;
    const int64_t n = from->n, len = block_of(from->k);
    switch (from->k) {
    case HALVES:
        lb_decode_ref.halves(lb_nf4_levels, code, 0, n, from->s, out);
        return;
    case ONES:
    case TWOS:
        lb_decode_ref.fields(fields_of(from), code, 0, n, from->s, out);
        return;
    case LEVELS:
        lb_decode_ref.levels(lb_dynamic8_map, code, n, from->s, out);
        return;
    case SCALE:
    case ABSMAX:
    case INVERSE:
        lb_decode_ref.bytes(meaning_of(from->k), (const int8_t *)code, n,
                            from->s, out);
        return;
    default:
        for (int64_t i = 0; i < n / len; i++)
            block_ref(from->k, code + bytes_of(from->k, i * len),
                      out + i * len);
    }
}

typedef struct {
    fenced codes, scales, out;
    lb_cpu cpu;
    int done; /* not declined */
} bench;

static void fill(bench *b, source *from, int64_t head, int64_t each)
{
    const size_t bytes = (size_t)bytes_of(from->k, from->n);
    uint8_t *code = fenced_end(&b->codes, bytes);
    for (size_t i = 0; i < bytes; i++)
        code[i] = (uint8_t)rough();
    from->code = code;
    const int64_t n = from->n;
    const int64_t values = n <= head ? 1 : 1 + (n - head + each - 1) / each;
    float *v = fenced_end(&b->scales, (size_t)values * sizeof *v);
    for (int64_t i = 0; i < values; i++)
        v[i] = some_scale();
    from->s = (lb_spans){v, head, each};
    if ((from->k == ONES || from->k == TWOS) && rough() % 8 == 0)
        from->s.value = NULL;
}

/* The elements end where the page does, or begin `at` bytes into one. */
static void check(bench *b, kind k, int64_t n, int64_t head, int64_t each)
{
    static float numbers[MOST];
    static char want[MOST * 8];
    source from = {.k = k, .n = n / block_of(k) * block_of(k)};
    fill(b, &from, head, each);
    decode_ref(&from, numbers);
    for (int i = 0; i < DTYPES * 2; i++) {
        const lb_dtype d = dtypes[i / 2];
        const size_t bytes = (size_t)from.n * lb_dtype_size(d);
        char *out = fenced_end(&b->out, bytes);
        const lb_sink to = {d, i % 2, out};
        lb_store_run(LB_C_F32, numbers, d, from.n, want);
        if (!unpack(lb_unpack_kernel_for(&b->cpu), &from, to)) {
            CHECK(fenced_kept(&b->out, out, 0));
            continue;
        }
        b->done++;
        CHECK(fenced_kept(&b->out, out, bytes));
        const bool same = memcmp(out, want, bytes) == 0;
        CHECK(same);
        if (!same)
            fprintf(stderr, "%s: kind %d, n %lld, head %lld, each %lld, %s\n",
                    lb_unpack_kernel_for(&b->cpu)->name, (int)k, (long long)n,
                    (long long)head, (long long)each, lb_dtype_name(d));
    }
}

static void check_kernels(const lb_cpu *cpu)
{
    static const int64_t groups[] = {1, 8, 16, 24, 32, 48, 64, 256, MOST};
    bench b = {fenced_open(MOST + 256), fenced_open(MOST * 4),
               fenced_open(MOST * 8), *cpu, 0};
    for (kind k = 0; k < KINDS; k++) {
        b.done = 0;
        for (int64_t n = 0; n <= 320; n++) {
            const int64_t g = groups[rough() % 9];
            check(&b, k, n, g, g);
            check(&b, k, n, n + 1, n + 1);
        }
        for (int i = 0; i < 60; i++) {
            const int64_t g = groups[i % 9];
            const int64_t head = i % 2 ? g : 1 + (int64_t)rough() % g;
            check(&b, k, MOST - 16 * (i % 4), head, g);
        }
        const bool fast = cpu->level == LB_LEVEL_AVX2 ||
                          cpu->level == LB_LEVEL_AVX512 ||
                          cpu->level == LB_LEVEL_AVX512VNNI;
        CHECK(fast == (b.done > 50));
    }
    fenced_close(&b.codes);
    fenced_close(&b.scales);
    fenced_close(&b.out);
}

/* ---- arrays ------------------------------------------------------------- */

static const lb_quant_config configs[] = {
    {.format = "int8"},
    {.format = "int8", .axes = {1, {0}}},
    {.format = "int8", .axes = {2, {0, 1}}, .meaning = LB_MEANS_ABSMAX},
    {.format = "int8", .block_size = 24, .meaning = LB_MEANS_INVERSE},
    {.format = "int8", .block_size = 64, .double_quant = true},
    {.format = "int8", .compat = LB_COMPAT_EFORMER, .dtype = LB_BF16},
    {.format = "nf4"},
    {.format = "nf4", .block_size = 34},
    {.format = "nf4", .double_quant = true},
    {.format = "nf4", .decode = LB_DECODE_POLY},
    {.format = "ternary"},
    {.format = "ternary", .scale = LB_SCALE_ROW},
    {.format = "binary", .scale = LB_SCALE_BLOCK},
    {.format = "binary", .scale = LB_SCALE_NONE},
    {.format = "dynamic8"},
    {.format = "dynamic8", .center = true},
    {.format = "q8_0"},
    {.format = "q4_0"},
    {.format = "iq4_nl"},
    {.format = "tq1_0"},
    {.format = "tq2_0"},
};

/* n elements from first on, `gap` elements after a page's beginning. */
static void check_run(const lb_cpu *cpu, const lb_array *q, fenced *room,
                      int64_t first, int64_t n, size_t gap)
{
    if (check_thins_short()) return;
    static const lb_cpu ref = {.level = LB_LEVEL_REF};
    static float numbers[1 << 16];
    static char want[8 << 16];
    lb_array plain = *q;
    plain.dtype = LB_F32;
    lb_tile_read_flat(&ref, &plain, first, n, LB_C_F32, numbers);
    for (int i = 0; i < DTYPES * 2; i++) {
        const lb_dtype d = dtypes[i / 2];
        const size_t size = lb_dtype_size(d), bytes = (size_t)n * size;
        char *out = fenced_begin(room, gap * size, bytes);
        lb_store_run(LB_C_F32, numbers, d, n, want);
        lb_unpack(cpu, q->store, first, n, (lb_sink){d, i % 2, out});
        CHECK(fenced_kept(room, out, bytes));
        const bool same = memcmp(out, want, bytes) == 0;
        CHECK(same);
        if (!same)
            fprintf(stderr, "%s: first %lld, n %lld, gap %zu, %s\n",
                    q->store->fmt->name, (long long)first, (long long)n, gap,
                    lb_dtype_name(d));
    }
}

static void check_arrays(lb_ctx *cx, const lb_cpu *cpu, lb_shape shape)
{
    const int64_t size = lb_shape_size(&shape);
    fenced room = fenced_open((size_t)size * 8 + 8192);
    lb_enter(cx);
    lb_array *x = lb_random_normal(cx, (lb_key){7, 0}, LB_F32, shape);
    for (size_t c = 0; c < sizeof configs / sizeof *configs; c++) {
        lb_array *from =
            lb_convert(cx, x, configs[c].dtype ? configs[c].dtype : LB_F32);
        lb_array *q = lb_quantize(cx, from, &configs[c]);
        CHECK(q != NULL);
        if (!q) {
            fprintf(stderr, "%s\n", lb_error(cx));
            lb_clear(cx);
            continue;
        }
        check_run(cpu, q, &room, 0, size, 0);
        check_run(cpu, q, &room, 0, size, 3);
        for (int i = 0; i < 20; i++) {
            const int64_t first = (int64_t)rough() % size;
            const int64_t n = (int64_t)rough() % (size - first + 1);
            check_run(cpu, q, &room, first, n, rough() % 40);
            check_run(cpu, q, &room, first, n < 20 ? n : 20, rough() % 40);
            /* from the beginning of a block, or a vector, on */
            const int64_t begin = first - first % (i % 2 ? 256 : 32);
            check_run(cpu, q, &room, begin, n, rough() % 40);
        }
    }
    lb_leave(cx);
    fenced_close(&room);
}

static void check_cpu(lb_ctx *cx, lb_cpu cpu)
{
    check_kernels(&cpu);
    check_arrays(cx, &cpu, LB_SHAPE(5, 2560));
    check_arrays(cx, &cpu, LB_SHAPE(3, 47, 256));
    check_arrays(cx, &cpu, LB_SHAPE(7, 331));
}

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    for (lb_level l = LB_LEVEL_REF; l <= LB_LEVEL_AMX; l++) {
#if !defined(LB_SIMDE)
        if (!lb_level_available(l)) continue;
#endif
        check_cpu(cx, (lb_cpu){.level = l});
    }
#if !defined(LB_SIMDE)
    if (lb_cpu_has_vbmi())
#endif
        check_cpu(cx, (lb_cpu){.level = LB_LEVEL_AVX512VNNI, .vbmi = true});
    lb_close(cx);
    return check_report("unpack");
}
