/* test_law_blocks.c - structural operations on quantized arrays, for every
 * format and variant, never encode again.
 *
 * - The values are exactly those of the dense operation on the materialized
 *   array.
 * - Views keep the format. Gathered rows and joined arrays keep it where the
 *   parts table allows it, and only there; that rule is repeated in this file.
 * - join(split(q)) == q, and cut(quantize(w)) == quantize(cut(w)), in bytes.
 * - Rebuilding an array from its components or codes gives the same array.
 */
/* ctest: skip-tsan skip-ref */
#include "core/core.h"
#include "laws.h"

/* Formats whose codes depend on values of the whole array, which the table does
 * not show: a cut has other statistics. */
static const char *const whole[] = {"ternary, no scale", "ternary, i8",
                                    "ternary, eformer", "dynamic8, centered"};

static long same, kept, kept_joins, joins, cuts;

typedef struct subject {
    lb_ctx *cx;
    const sample_format *f;
    sample_operand o;
    lb_array *q, *dense;
} subject;

static void say(bool ok, const subject *s, const char *what, int axis,
                int64_t at, const char *why)
{
    if (check_fails(ok))
        fprintf(stderr, "%s %s%s: %s, axis %d, at %lld: %s%s\n", s->f->name,
                lb_dtype_name(s->o.dtype), LB_SHOW(&s->o.shape), what, axis,
                (long long)at, why, lb_error(s->cx));
    lb_clear(s->cx);
}

static bool has_format(const lb_array *a, const lb_format *fmt)
{
    return a && strcmp(lb_format_of(a), fmt->name) == 0;
}

/* ---- conditions of the table --------------------------------------------- */

static bool is_plain(const lb_array *a)
{
    return lb_is_row_major(a) && a->offset == 0 &&
           lb_shape_equal(&a->shape, &a->store->shape);
}

/* Whether [0, at) and [at, n) along an axis are whole entries of each part,
 * recursively for packed parts that may not become dense. */
static bool may_split(const lb_array *a, int axis, int64_t at)
{
    const lb_store *s = a->store;
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        const lb_array *part = s->part[p].a;
        const int64_t g = s->part[p].g[axis];
        if (!part || !g) continue;
        if (at % g) return false;
        if (s->fmt->part[p].firm && !part->store->data &&
            !may_split(part, axis, at / g))
            return false;
    }
    return true;
}

/* Single rows can be gathered if no entry belongs to two of them. */
static bool may_pick(const lb_array *a, int axis)
{
    const lb_store *s = a->store;
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        const lb_array *part = s->part[p].a;
        if (!part || !s->part[p].g[axis]) continue;
        if (s->part[p].g[axis] > 1) return false;
        if (s->fmt->part[p].firm && !part->store->data && !may_pick(part, axis))
            return false;
    }
    return true;
}

/* Whether the array is as it was quantized, not cut or reshaped. */
static bool is_asked(const subject *s)
{
    return is_plain(s->q);
}

/* ---- values and formats -------------------------------------------------- */

static void like_dense(const subject *s, const char *what, lb_array *a,
                       lb_array *want, bool keeps)
{
    lb_text why = {""};
    const bool ok = a && want && sample_same(a, want, &why);
    say(ok, s, what, 0, 0, why.s);
    same++;
    if (!keeps) return;
    say(has_format(a, s->q->store->fmt), s, what, 0, 0, "the format is lost");
    kept++;
}

static void views(const subject *s)
{
    lb_ctx *cx = s->cx;
    lb_array *q = s->q, *d = s->dense;
    const lb_shape shape = s->o.shape;
    const int64_t rows = shape.dim[0], n = lb_size(q) / (rows ? rows : 1);
    lb_shape split = shape, wide = shape;
    int64_t lo[LB_MAX_RANK] = {0}, hi[LB_MAX_RANK], step[LB_MAX_RANK];
#define LIKE(WHAT, CALL)                                                       \
    do {                                                                       \
        lb_array *a = q, *packed = CALL;                                       \
        a = d;                                                                 \
        like_dense(s, WHAT, packed, CALL, true);                               \
    } while (0)
    LIKE("transpose", lb_transpose(cx, a, NULL));
    LIKE("reshape to a row", lb_reshape(cx, a, LB_SHAPE(-1)));
    LIKE("reshape to rows", lb_reshape(cx, a, LB_SHAPE(rows, n)));
    LIKE("reverse", lb_reverse(cx, a, NULL));
    for (int k = shape.rank; k > 0; k--)
        split.dim[k] = shape.dim[k - 1];
    split.dim[0] = 1;
    split.rank++;
    LIKE("reshape to one more axis", lb_reshape(cx, a, split));
    wide.rank++;
    memmove(wide.dim + 1, shape.dim, sizeof shape.dim - sizeof *shape.dim);
    wide.dim[0] = 3;
    LIKE("broadcast", lb_broadcast_to(cx, a, wide));
    for (int k = 0; k < shape.rank; k++) {
        hi[k] = shape.dim[k];
        step[k] = 1;
    }
    lo[0] = rows / 3;
    LIKE("slice of rows", lb_slice(cx, a, lo, hi, NULL));
    hi[0] = rows - rows / 4;
    LIKE("slice of fewer rows", lb_slice(cx, a, lo, hi, NULL));
    step[shape.rank - 1] = 3;
    lo[shape.rank - 1] = hi[shape.rank - 1] > 1;
    LIKE("slice of columns", lb_slice(cx, a, lo, hi, step));
#undef LIKE
    /* Transposed and flattened it is not a view. */
    if (shape.rank > 1 && rows > 1 && n > 1)
        like_dense(s, "reshape of columns",
                   lb_reshape(cx, lb_transpose(cx, q, NULL), LB_SHAPE(-1)),
                   lb_reshape(cx, lb_transpose(cx, d, NULL), LB_SHAPE(-1)),
                   false);
}

static void picks(const subject *s)
{
    enum { PICKED = 5 };
    for (int axis = 0; axis < s->o.shape.rank; axis++) {
        int32_t at[PICKED];
        for (int i = 0; i < PICKED; i++)
            at[i] = (i * 7 + 3) % (int32_t)s->o.shape.dim[axis];
        lb_array *index = lb_from(s->cx, LB_I32, LB_SHAPE(PICKED), at);
        lb_array *a = lb_take(s->cx, s->q, index, axis);
        like_dense(s, "gather", a, lb_take(s->cx, s->dense, index, axis),
                   is_asked(s) && may_pick(s->q, axis));
        if (is_asked(s) && !may_pick(s->q, axis))
            say(!has_format(a, s->q->store->fmt), s, "gather", axis, 0,
                "entries were taken apart");
    }
}

/* ---- joining and cutting ------------------------------------------------- */

/* [lo, hi) along an axis. */
static lb_array *range(lb_ctx *cx, lb_array *a, int axis, int64_t lo,
                       int64_t hi)
{
    int64_t from[LB_MAX_RANK] = {0}, to[LB_MAX_RANK];
    memcpy(to, a->shape.dim, sizeof to);
    from[axis] = lo;
    to[axis] = hi;
    return lb_slice(cx, a, from, to, NULL);
}

/* Blocks that continue across rows may now be cut at their ends: the same bytes
 * in another shape. */
static bool same_bytes(const lb_array *x, const lb_array *y)
{
    size_t m, n;
    if (!x || !y) return x == y;
    void *a = sample_read(x, &m), *b = sample_read(y, &n);
    const bool ok = m == n && memcmp(a, b, n) == 0;
    free(a);
    free(b);
    return ok;
}

static void split_and_join(const subject *s, int axis, int64_t at)
{
    lb_ctx *cx = s->cx;
    lb_text why = {""};
    const int64_t n = s->o.shape.dim[axis];
    lb_enter(cx);
    lb_array *half[] = {range(cx, s->q, axis, 0, at),
                        range(cx, s->q, axis, at, n)};
    lb_array *all = lb_concatenate(cx, half, 2, axis);
    const bool packed = has_format(all, s->q->store->fmt);
    say(all && sample_same(all, s->dense, &why), s, "split and joined", axis,
        at, why.s);
    joins++;
    kept_joins += packed;
    if (is_asked(s) && at > 0 && at < n) /* an empty half may be dense */
        say(packed == may_split(s->q, axis, at), s, "split and joined", axis,
            at, packed ? "the format is kept" : "the format is lost");
    /* Compares bytes; a nested part may have become dense, and then has the
     * same values. */
    if (packed && is_plain(all))
        for (int p = 0; p < LB_MAX_PARTS; p++)
            say(same_bytes(s->q->store->part[p].a, all->store->part[p].a), s,
                "split and joined: bytes of part", p, at, "");
    lb_leave(cx);
}

/* Rows of two arrays: shared entries differ, unless both have the same. */
static void join_two(const subject *s)
{
    lb_ctx *cx = s->cx;
    sample_operand o = s->o;
    lb_array *other = sample_views[0].make(cx, s->f, &o, 99);
    lb_array *pair[] = {s->q, other};
    lb_array *want[] = {s->dense, sample_plain(cx, other)};
    bool keeps = is_asked(s) && other;
    lb_text why;
    for (int p = 0; p < LB_MAX_PARTS && keeps; p++) {
        const lb_part *x = &s->q->store->part[p], *y = &other->store->part[p];
        if (!x->a) continue;
        keeps = memcmp(x->g, y->g, sizeof x->g) == 0 &&
                (x->g[0] ? s->o.shape.dim[0] % x->g[0] == 0
                         : sample_same(x->a, y->a, &why));
    }
    like_dense(s, "concatenate", lb_concatenate(cx, pair, 2, 0),
               lb_concatenate(cx, want, 2, 0), keeps);
    pair[1] = s->q;
    want[1] = s->dense;
    like_dense(s, "concatenate with itself", lb_concatenate(cx, pair, 2, 0),
               lb_concatenate(cx, want, 2, 0),
               is_asked(s) && may_split(s->q, 0, s->o.shape.dim[0]));
}

static bool is_whole(const subject *s)
{
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (strcmp(whole[i], s->f->name) == 0) return true;
    return false;
}

/* Whether a scale is shared along the axis, or is quantized together with
 * others. */
static bool is_shared(const lb_store *s, int axis)
{
    for (int p = 0; p < LB_MAX_PARTS; p++) {
        const lb_part *part = &s->part[p];
        if (!part->a || !s->fmt->part[p].scale) continue;
        if (!part->g[axis] || !part->a->store->data) return true;
    }
    return false;
}

/* cut(quantize(w)) == quantize(cut(w)) */
static void cut(const subject *s, lb_array *w, int axis, int64_t lo, int64_t hi)
{
    lb_ctx *cx = s->cx;
    lb_array *own = NULL;
    lb_text why = {""};
    lb_quant_config c;
    sample_config(s->f, s->o.shape.rank, s->o.dtype, &c);
    lb_enter(cx);
    const lb_verdict v = lb_pack(cx, range(cx, s->q, axis, lo, hi), &own);
    say(v != LB_FAILED, s, "cut", axis, lo, "");
    if (v == LB_DONE) {
        lb_array *want = lb_quantize(cx, range(cx, w, axis, lo, hi), &c);
        say(want && sample_same(own, want, &why), s, "cut", axis, lo, why.s);
        cuts++;
    }
    lb_leave(cx);
}

/* The source of q; NULL if it was not quantized. */
static lb_array *source(const subject *s)
{
    if (!lb_is_encodable(s->f->fmt) || sample_kind_of(s->o.dtype) != KIND_F)
        return NULL;
    return sample_views[0].make(s->cx, &sample_dense, &s->o, 1);
}

static void cut_all(const subject *s, lb_array *w)
{
    if (!w || is_whole(s)) return;
    for (int axis = 0; axis < s->o.shape.rank; axis++) {
        const int64_t end = s->o.shape.dim[axis];
        const int64_t step = end > 20 ? 16 : 1;
        if (is_shared(s->q->store, axis)) continue;
        const long before = cuts;
        for (int64_t lo = 0; lo < end; lo += step)
            for (int64_t hi = lo + step; hi - step < end; hi += step)
                cut(s, w, axis, lo, hi < end ? hi : end);
        say(cuts > before, s, "cut", axis, 0, "never");
    }
}

/* ---- parts and codes ----------------------------------------------------- */

static void parts(const subject *s)
{
    lb_ctx *cx = s->cx;
    const lb_store *store = s->q->store;
    const char *name[LB_MAX_PARTS];
    lb_array *part[LB_MAX_PARTS];
    lb_text why = {""};
    lb_quant_config c;
    int n = 0, scale = 0;
    sample_config(s->f, s->o.shape.rank, s->o.dtype, &c);
    for (int p = 0; p < LB_MAX_PARTS && store->fmt->part[p].name; p++) {
        lb_array *a = lb_component(cx, s->q, store->fmt->part[p].name);
        say(!a == !store->part[p].a, s, "component", p, 0, "");
        if (!a) continue;
        if (store->fmt->part[p].scale) scale = n;
        name[n] = store->fmt->part[p].name;
        part[n++] = a;
    }
    lb_array *again = lb_from_parts(cx, &c, s->o.shape, NULL, name, part, n);
    say(again && sample_same(again, s->q, &why), s, "from parts", 0, 0, why.s);
    if (!store->fmt->codes.bits || n - 1 != (scale > 0)) return;
    lb_array *codes = lb_codes(cx, s->q);
    again = lb_from_codes(cx, &c, codes, scale ? part[scale] : NULL);
    say(again && sample_same(again, s->q, &why), s, "from codes", 0, 0, why.s);
}

/* Rows into the caller's memory, and the dense array of the same values. */
static void reads(const subject *s, lb_array *w)
{
    lb_ctx *cx = s->cx;
    const lb_shape shape = s->o.shape;
    const int64_t rows = shape.dim[0], lo = rows / 3, hi = rows - rows / 4;
    const size_t row =
        (size_t)(lb_size(s->q) / rows) * lb_dtype_size(s->o.dtype);
    const size_t size = (size_t)(hi - lo) * row;
    char *to = malloc(size + 1);
    if (!to) abort();
    to[size] = 0x55;
    const bool ok =
        lb_read_rows(cx, s->q, lo, hi, to, size) && to[size] == 0x55 &&
        memcmp(to, (const char *)lb_data(s->dense) + (size_t)lo * row, size) ==
            0;
    say(ok, s, "read rows", 0, lo, "");
    free(to);
    if (!w) return;
    lb_text why = {""};
    lb_quant_config c;
    sample_config(s->f, shape.rank, s->o.dtype, &c);
    c.simulate = true;
    lb_array *a = lb_quantize(cx, w, &c);
    say(a && lb_data(a) && sample_same(a, s->dense, &why), s, "simulated", 0, 0,
        why.s);
    c.simulate = false;
    if (sample_kind_of(s->o.dtype) != KIND_F) return;
    a = lb_straight_through(cx, w, &c);
    say(a && sample_same(a, s->q, &why), s, "straight through", 0, 0, why.s);
}

/* ---- everything ---------------------------------------------------------- */

static void every_law(lb_ctx *cx, const sample_format *f, lb_dtype dtype,
                      lb_shape shape)
{
    subject s = {.cx = cx, .f = f, .o = {dtype, shape, VALUES_TAME, 0, 0, 0}};
    if (!sample_takes(f, &s.o)) return;
    lb_enter(cx);
    s.q = sample_views[0].make(cx, f, &s.o, 1);
    s.dense = sample_plain(cx, s.q);
    say(s.q && s.dense && s.q->store->fmt != lb_format_at(NULL, 0), &s, "made",
        0, 0, "");
    if (s.q && s.dense) {
        lb_text why = {""};
        say(sample_same(lb_materialize(cx, s.q), s.dense, &why), &s,
            "materialized", 0, 0, why.s);
        views(&s);
        picks(&s);
        join_two(&s);
        for (int axis = 0; axis < shape.rank; axis++)
            for (int64_t at = 0; at <= shape.dim[axis];
                 at += shape.dim[axis] > 20 ? 4 : 1)
                if (!check_thins()) split_and_join(&s, axis, at);
        lb_array *w = source(&s);
        cut_all(&s, w);
        reads(&s, w);
        if (lb_is_encodable(f->fmt)) parts(&s);
    }
    lb_leave(cx);
}

int main(int argc, char **argv)
{
    law_args(argc, argv);
    const lb_shape shape[] = {LB_SHAPE(6, 160), LB_SHAPE(5, 512),
                              LB_SHAPE(2, 3, 128), LB_SHAPE(300),
                              LB_SHAPE(3, 37)};
    static const lb_dtype dtype[] = {LB_F32, LB_BF16, LB_I8};
    lb_ctx *cx = lb_open(&(lb_options){
        .threads = 1, .dense = LB_DENSE_LOG, .log = log_no_copies});
    CHECK(cx != NULL);
    if (!cx) return check_report("law of blocks");
    CHECK(sample_add_outside(cx));
    sample_format_list list = law_formats(cx);
    for (int i = 0; i < list.n; i++)
        for (int k = 0; list.item[i].fmt && k < 5; k++)
            for (int d = 0; d < 3; d++)
                every_law(cx, &list.item[i], dtype[d], shape[k]);
    printf("%d formats and variants: %ld results as the dense ones, %ld of "
           "them packed; %ld splits, %ld joined packed; %ld cuts\n",
           list.n, same, kept, joins, kept_joins, cuts);
    sample_formats_free(&list);
    lb_close(cx);
    return check_report("law of blocks");
}
