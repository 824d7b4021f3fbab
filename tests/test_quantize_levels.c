/* test_quantize_levels.c - laws 4 and 5 for whole arrays: lb_quantize stores
 * the same bytes on every level and with 1, 2 and 7 threads.
 *
 * Every format and variant, from every float dtype, of arrays that are split
 * into several units, of groups too long for a cache, and of sources that are
 * contiguous, have gaps between rows, or are transposed. Values that cannot be
 * quantized are refused with the same index, or clamped to the same codes.
 */
/* ctest: simde skip-tsan skip-ref skip-arm64 */
#include "base/cpu.h"
#include "codec_inputs.h"
#include "core/core.h"
#include "laws.h"

typedef enum lie { PLAIN, GAPS, ACROSS, LIES } lie;
static const char *const lie_name[LIES] = {"plain", "gaps", "across"};

typedef struct one {
    lb_ctx *cx;
    lb_text name;
} one;

enum { ALL = 16 };
static one all[ALL];
static int n_all;

static void open_all(void)
{
    static const int threads[] = {1, 2, 7};
    for (lb_level l = LB_LEVEL_REF; l <= LB_LEVEL_AMX; l++)
        for (int t = 0; t < 3; t++) {
            if (!lb_level_available(l) || n_all == ALL) continue;
            one *o = &all[n_all++];
            snprintf(o->name.s, sizeof o->name.s, "%s, %d threads",
                     lb_level_name(l), threads[t]);
            o->cx = lb_open(
                &(lb_options){.threads = threads[t], .isa = lb_level_name(l)});
            CHECK(o->cx && sample_add_outside(o->cx));
        }
}

/* Bytes of all parts, and their number. */
static bool same_bytes(const lb_store *a, const lb_store *b)
{
    if (a->data)
        return a->data_size == b->data_size &&
               memcmp(a->data, b->data, a->data_size) == 0;
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        const lb_array *x = a->part[p].a, *y = b->part[p].a;
        if (!x != !y || (x && !same_bytes(x->store, y->store))) return false;
    }
    return true;
}

/* A source of that shape with that memory layout. */
static lb_array *source(lb_ctx *cx, lb_dtype dtype, lb_shape shape, lie how,
                        const void *data)
{
    const int last = shape.rank - 1;
    int64_t start[LB_MAX_RANK] = {0};
    int axis[LB_MAX_RANK];
    lb_shape wide = shape, turned = shape;
    for (int k = 0; k <= last; k++) {
        axis[k] = last - k;
        turned.dim[k] = shape.dim[last - k];
    }
    if (how == PLAIN || last < 1) return lb_from(cx, dtype, shape, data);
    if (how == ACROSS)
        return lb_transpose(cx, lb_from(cx, dtype, turned, data), axis);
    wide.dim[last] += 3;
    start[last] = 2;
    int64_t limit[LB_MAX_RANK];
    for (int k = 0; k <= last; k++)
        limit[k] = start[k] + shape.dim[k];
    return lb_slice(cx, lb_from(cx, dtype, wide, data), start, limit, NULL);
}

static void compare(const sample_format *f, lb_dtype dtype, lb_shape shape,
                    lie how, lb_quant_config c, const void *data)
{
    lb_array *want = NULL;
    lb_text sentence = {""};
    if (check_thins()) return;
    for (int i = 0; i < n_all; i++) {
        lb_ctx *cx = all[i].cx;
        lb_enter(cx);
        lb_array *a = lb_quantize(cx, source(cx, dtype, shape, how, data), &c);
        const char *said = a ? "" : lb_error(cx);
        if (i == 0) {
            want = lb_ref(a);
            snprintf(sentence.s, sizeof sentence.s, "%s", said);
        }
        const bool ok =
            a && want ? same_bytes(a->store, want->store)
                      : !a == !want && strncmp(said, sentence.s,
                                               sizeof sentence.s - 1) == 0;
        if (check_fails(ok))
            fprintf(stderr, "%s from %s%s, %s, on %s: %s\n", f->name,
                    lb_dtype_name(dtype), LB_SHOW(&shape), lie_name[how],
                    all[i].name.s, said);
        lb_clear(cx);
        lb_leave(cx);
    }
    lb_unref(want);
}

/* Values of one kind, mixed with special ones that not all formats can
 * represent. */
static void each_source(const sample_format *f, lb_shape shape, int turn)
{
    static const lb_dtype dtypes[] = {LB_F32, LB_BF16, LB_F16, LB_F64};
    static const codec_levels levels = {.n = 5,
                                        .level = {-1, -0.5f, 0, 0.25f, 1}};
    static const float odd[] = {INFINITY, -INFINITY, NAN};
    const int64_t n = lb_shape_size(&shape) / 4 * 5 + 1000;
    char *data = malloc((size_t)n * 8);
    if (!data) exit(1);
    for (int how = 0; how < LIES; how++) {
        /* Where the memory layout does not matter, dtypes alternate. */
        const lb_dtype dtype = dtypes[how == turn % LIES ? turn % 4 : 0];
        const codec_kind kind =
            turn % 3 ? CODEC_NORMAL : (codec_kind)(turn / 3 % CODEC_KINDS);
        lb_quant_config c;
        sample_config(f, shape.rank, f->config.dtype, &c);
        codec_fill(kind, &levels, dtype, (uint64_t)turn + 1, n, data);
        compare(f, dtype, shape, (lie)how, c, data);
        if (dtype != LB_F32 || turn % 2) continue;
        for (int k = 0; k < 3; k++)
            memcpy(data + (size_t)(n * (k + 1) / 5) * 4, &odd[k], 4);
        compare(f, dtype, shape, (lie)how, c, data);
        c.on_nonfinite = LB_NONFINITE_CLAMP;
        compare(f, dtype, shape, (lie)how, c, data);
    }
    free(data);
}

int main(void)
{
    const lb_shape shapes[] = {
        LB_SHAPE(0, 3),    LB_SHAPE(1),          LB_SHAPE(3, 5),
        LB_SHAPE(37, 700), LB_SHAPE(9, 4100),    LB_SHAPE(5, 3, 130),
        LB_SHAPE(70001),   LB_SHAPE(2, 66000),   LB_SHAPE(200, 64),
        LB_SHAPE(1, 17),   LB_SHAPE(7, 40, 2, 9)};
    open_all();
    sample_format_list formats = law_formats(all[0].cx);
    int turn = 0, tried = 0;
    for (int i = 0; i < formats.n; i++) {
        const sample_format *f = &formats.item[i];
        if (!f->fmt || !lb_is_encodable(f->fmt)) continue;
        tried++;
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            if (shapes[s].rank <= f->max_rank)
                each_source(f, shapes[s], turn++);
    }
    printf("%d formats and variants, %d levels and threads\n", tried, n_all);
    sample_formats_free(&formats);
    for (int i = 0; i < n_all; i++)
        lb_close(all[i].cx);
    return check_report("quantize, levels");
}
