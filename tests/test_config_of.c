/* test_config_of.c - lb_config_of. The law: quantizing an array's values with
 * its configuration gives the same layout and, if the format's codes are
 * stable, the same bytes. For every format and many configurations, and for
 * views. Then lb_quant_config.reference, which arrays remember. */
#include "lowbit_ext.h"
#include "refused.h"

static bool same_values(lb_ctx *cx, lb_array *x, lb_array *y)
{
    if (!x || !y || x->dtype != y->dtype ||
        !lb_shape_equal(&x->shape, &y->shape))
        return false;
    return !lb_size(x) ||
           lb_item_int(cx, lb_reduce_and(cx, lb_eq(cx, x, y), NULL)) == 1;
}

static bool is_stable(const lb_format *f, const lb_quant_config *c)
{
    return !f->searches && c->compat == LB_COMPAT_NATIVE && !c->double_quant &&
           !c->center && c->scale != LB_SCALE_NONE;
}

/* The law for one array. Codes -1, 0 and 1 depend on the spread of values, so
 * that ternary arrays only keep their layout; so do slices of groups. */
static void check_law(lb_ctx *cx, lb_array *q, bool codes, const char *what)
{
    const lb_format *f = q->store->fmt;
    lb_quant_config c, d;
    lb_enter(cx);
    const bool found = lb_config_of(cx, q, &c);
    if (check_fails(found)) fprintf(stderr, "%s: %s\n", what, lb_error(cx));
    lb_clear(cx);
    if (!found) {
        lb_leave(cx);
        return;
    }
    lb_array *x = lb_materialize(cx, q);
    if (x->dtype == LB_I8) x = lb_convert(cx, x, LB_F32);
    lb_array *again = lb_quantize(cx, x, &c);
    const bool made = again && again->store->fmt == f &&
                      again->dtype == q->dtype &&
                      again->store->meaning == q->store->meaning;
    if (check_fails(made)) fprintf(stderr, "%s: %s\n", what, lb_error(cx));
    lb_clear(cx);
    for (int p = 0; made && p < LB_MAX_PARTS && f->part[p].name; p++) {
        lb_array *old = lb_component(cx, q, f->part[p].name);
        lb_array *now = lb_component(cx, again, f->part[p].name);
        CHECK(!old == !now);
        if (!old || !now) continue;
        CHECK(old->dtype == now->dtype && old->store->fmt == now->store->fmt);
        CHECK_EQ_I(lb_size(old), lb_size(now));
        if (!codes || !is_stable(f, &c) || strcmp(f->name, "ternary") == 0)
            continue;
        if (!f->codes.bits) { /* blocks of bytes */
            CHECK(same_values(cx, old, now));
            continue;
        }
        if (check_fails(same_values(cx, lb_codes(cx, q), lb_codes(cx, again))))
            fprintf(stderr, "%s: other codes\n", what);
    }
    if (made) {
        CHECK(lb_config_of(cx, again, &d));
        CHECK(c.format == d.format && c.block_size == d.block_size &&
              c.axes.n == d.axes.n && c.dtype == d.dtype &&
              c.compat == d.compat && c.decode == d.decode &&
              c.scale == d.scale && c.meaning == d.meaning &&
              c.threshold == d.threshold && c.blocks == d.blocks &&
              c.double_quant == d.double_quant && c.center == d.center &&
              c.reference == d.reference && c.clip_gradient == d.clip_gradient);
    }
    CHECK_EQ_S(lb_error(cx), "");
    lb_clear(cx);
    lb_leave(cx);
}

/* Views of a whole array that keep its blocks along the last axis. */
static void check_views(lb_ctx *cx, lb_array *q, const char *what)
{
    check_law(cx, q, true, what);
    lb_quant_config c;
    if (q->shape.rank != 2 || q->shape.dim[0] != 12) return;
    const int64_t lo[] = {4, 0}, hi[] = {8, q->shape.dim[1]};
    lb_enter(cx);
    lb_array *rows = lb_slice(cx, q, lo, hi, NULL);
    if (!lb_config_of(cx, rows, &c))
        lb_clear(cx);
    else
        check_law(cx, rows, false, what);
    lb_leave(cx);
}

/* ---- every format and configuration -------------------------------------- */

static void check_configs(lb_ctx *cx, const lb_format *f, lb_dtype from,
                          lb_shape shape)
{
    static const int64_t blocks[] = {0, 16, 32, 64, 128};
    lb_array *x = lb_random_normal(cx, (lb_key){7, 3}, from, shape);
    char what[400];
    int n = 0;
    for (int which = 0; which < 4 * 5 * 5 * 3 * 2 * 2 * 2 * 4 * 2; which++) {
        int k = which;
        lb_quant_config c = {.format = f->name};
        c.compat = (lb_compat)(k % 4);
        c.scale = (lb_scale)((k /= 4) % 5);
        c.block_size = blocks[(k /= 5) % 5];
        c.meaning = (lb_meaning)((k /= 5) % 3);
        c.blocks = (k /= 3) % 2 ? LB_BLOCKS_FLAT : LB_BLOCKS_DEFAULT;
        c.decode = (lb_decode)((k /= 2) % 2);
        c.double_quant = (k /= 2) % 2;
        const int axes = (k /= 2) % 4;
        if (axes && shape.rank == 2)
            c.axes = axes == 1   ? *LB_AXES(0)
                     : axes == 2 ? *LB_AXES(1)
                                 : *LB_AXES(0, 1);
        c.center = (k /= 4) % 2;
        lb_enter(cx);
        lb_array *q = lb_quantize(cx, x, &c);
        lb_clear(cx);
        snprintf(what, sizeof what,
                 "%s %s %s, block %d, compat %d, scale %d, meaning %d, blocks "
                 "%d, decode %d, double %d, axes %d, center %d",
                 f->name, lb_dtype_name(from), LB_SHOW(&shape),
                 (int)c.block_size, c.compat, c.scale, c.meaning, c.blocks,
                 c.decode, c.double_quant, axes, c.center);
        if (q && !check_thins()) check_views(cx, q, what);
        n += q != NULL;
        lb_leave(cx);
    }
    CHECK(n > 0);
}

/* ---- results ------------------------------------------------------------- */

static void check_fields(lb_ctx *cx)
{
    lb_quant_config c;
    lb_array *x =
        lb_random_normal(cx, (lb_key){1, 1}, LB_F32, LB_SHAPE(8, 256));
    const lb_quant_config given = {.format = "int8", .axes = {1, {0}}};
    lb_array *q = lb_quantize(cx, x, &given);
    CHECK(lb_config_of(cx, q, &c));
    CHECK_EQ_S(c.format, "int8");
    CHECK(c.axes.n == 1 && c.axes.axis[0] == 0 && c.dtype == LB_F32);
    CHECK(c.struct_size == sizeof c);
    CHECK(lb_config_of(cx, lb_transpose(cx, q, NULL), &c));
    CHECK(c.axes.n == 1 && c.axes.axis[0] == 1);
    check_law(cx, lb_transpose(cx, q, NULL), true, "a transposed int8 array");
    q = lb_quantize(cx, x,
                    &(lb_quant_config){.format = "nf4", .block_size = 32});
    CHECK(lb_config_of(cx, q, &c));
    CHECK_EQ_I(c.block_size, 32);
    CHECK(lb_config_of(cx, lb_reshape(cx, q, LB_SHAPE(4, 8, 64)), &c));
    CHECK_EQ_I(c.block_size, 32);
    check_law(cx, lb_reshape(cx, q, LB_SHAPE(4, 8, 64)), true,
              "a reshaped array");
    const int64_t lo[] = {2, 32}, hi[] = {5, 128}, odd[] = {5, 100};
    check_law(cx, lb_slice(cx, q, lo, hi, NULL), true, "a sliced array");
    REFUSED(lb_config_of(cx, lb_slice(cx, q, lo, odd, NULL), &c),
            LB_E_UNSUPPORTED, "cuts through blocks");
    REFUSED(lb_config_of(cx, lb_transpose(cx, q, NULL), &c), LB_E_UNSUPPORTED,
            "one f32 entry per (32,1) elements");
    REFUSED(lb_config_of(cx, lb_reverse(cx, q, LB_AXES(0)), &c),
            LB_E_UNSUPPORTED, "reverses");
    REFUSED(lb_config_of(cx, x, &c), LB_E_ARG, "has not been quantized");
    REFUSED(lb_config_of(cx, NULL, &c), LB_E_NULL, "the array is NULL");
    REFUSED(lb_config_of(cx, q, NULL), LB_E_NULL, "config is NULL");
    const lb_quant_config all = {.format = "ternary",
                                 .scale = LB_SCALE_ROW,
                                 .threshold = LB_THRESHOLD_ABSMEAN,
                                 .meaning = LB_MEANS_INVERSE,
                                 .dtype = LB_BF16,
                                 .clip_gradient = true,
                                 .reference = true};
    CHECK(lb_config_of(cx, lb_quantize(cx, x, &all), &c));
    CHECK(c.scale == all.scale && c.threshold == all.threshold &&
          c.meaning == all.meaning && c.dtype == all.dtype && c.clip_gradient &&
          c.reference);
}

/* No configuration yields an array with its own levels. */
static void check_tables(lb_ctx *cx)
{
    lb_quant_config c;
    lb_array *x = lb_random_normal(cx, (lb_key){1, 1}, LB_F32, LB_SHAPE(2, 64));
    lb_array *q = lb_quantize(
        cx, x, &(lb_quant_config){.format = "nf4", .decode = LB_DECODE_POLY});
    CHECK(lb_config_of(cx, q, &c) && c.decode == LB_DECODE_POLY);
    lb_part table[LB_MAX_PARTS];
    memcpy(table, q->store->part, sizeof table);
    table[2].a = lb_iota(cx, LB_F32, LB_SHAPE(1, 1, 16), 2);
    lb_array *own =
        lb_make(cx, q->store->fmt, LB_F32, 0, &q->store->shape, table);
    REFUSED(lb_config_of(cx, own, &c), LB_E_UNSUPPORTED, "table of its own");
}

/* ---- reference ----------------------------------------------------------- */

/* The product's bits are those of a context that has no kernels. */
static void same_as_ref(lb_ctx *cx, lb_ctx *ref, lb_array *x, lb_array *q)
{
    static float a[1 << 12], b[1 << 12];
    lb_array *y = lb_matmul(cx, x, q), *z = lb_matmul(ref, x, q);
    CHECK(y && z && lb_size(y) == lb_size(z) && lb_size(y) <= 1 << 12);
    if (!y || !z) return;
    CHECK(lb_read_f32(cx, y, a, lb_size(y)));
    CHECK(lb_read_f32(ref, z, b, lb_size(z)));
    CHECK(memcmp(a, b, (size_t)lb_size(y) * sizeof *a) == 0);
}

static lb_array *product(lb_ctx *cx, lb_array *const *in, int n, void *user)
{
    (void)n;
    (void)user;
    return lb_exp(cx, lb_matmul(cx, in[0], in[1]));
}

/* The same kernels as without SIMD, and the same in a compiled function. */
static void check_kernels(lb_ctx *cx, lb_ctx *ref, lb_array *x, lb_array *q)
{
    lb_array *in[] = {x, q};
    const lb_dot_dims d = {.lhs_contract = {1, {1}}, .rhs_contract = {1, {0}}};
    CHECK_EQ_S(lb_explain(cx, "dot_general", in, 2, &d),
               lb_explain(ref, "dot_general", in, 2, &d));
    lb_compiled *f = lb_compile(cx, product, NULL, NULL);
    CHECK(same_values(cx, lb_run(f, in, 2), product(cx, in, 2, NULL)));
    lb_compiled_close(f);
}

static void check_reference(lb_ctx *cx)
{
    const lb_format *f;
    lb_ctx *ref = lb_open(&(lb_options){.isa = "ref"});
    lb_array *w =
        lb_random_normal(cx, (lb_key){4, 1}, LB_F32, LB_SHAPE(128, 64));
    lb_array *x =
        lb_random_normal(cx, (lb_key){4, 2}, LB_F32, LB_SHAPE(9, 128));
    lb_array *x64 =
        lb_random_normal(cx, (lb_key){4, 3}, LB_F32, LB_SHAPE(9, 64));
    lb_array *index = lb_iota(cx, LB_I32, LB_SHAPE(128), 0);
    for (int k = 0; (f = lb_format_at(cx, k)); k++) {
        if (!lb_is_encodable(f)) continue;
        lb_quant_config c = {.format = f->name};
        lb_array *fast = lb_quantize(cx, w, &c);
        c.reference = true;
        lb_array *q = lb_quantize(cx, w, &c);
        CHECK(same_values(cx, q, fast));
        CHECK(q->store->made.reference && !fast->store->made.reference);
        const int64_t lo[] = {0, 0}, hi[] = {64, 64};
        lb_array *half = lb_slice(cx, q, lo, hi, NULL);
        lb_array *both[] = {fast, q}, *two[] = {half, half};
        lb_array *rows = lb_take(cx, q, index, 0);
        lb_array *joined = lb_concatenate(cx, two, 2, 0);
        check_kernels(cx, ref, x, q);
        same_as_ref(cx, ref, x, q);
        same_as_ref(cx, ref, x64, lb_transpose(cx, q, NULL));
        same_as_ref(cx, ref, x, rows);
        same_as_ref(cx, ref, x, joined);
        lb_array *long_one = lb_concatenate(cx, both, 2, 0);
        if (!rows->store->data) CHECK(rows->store->made.reference);
        if (!joined->store->data) CHECK(joined->store->made.reference);
        if (!long_one->store->data) CHECK(long_one->store->made.reference);
    }
    lb_array *codes = lb_full(cx, LB_I8, LB_SHAPE(4, 64), 1);
    lb_array *made = lb_from_codes(cx,
                                   &(lb_quant_config){.format = "ternary",
                                                      .scale = LB_SCALE_NONE,
                                                      .reference = true},
                                   codes, NULL);
    CHECK(made && made->store->made.reference);
    CHECK_EQ_S(lb_error(ref), "");
    lb_close(ref);
}

int main(void)
{
    static const lb_dtype from[] = {LB_F32, LB_BF16, LB_F64};
    lb_ctx *cx = lb_open(NULL);
    const lb_shape shape[] = {LB_SHAPE(12, 128),
                              LB_SHAPE(12, 96),
                              LB_SHAPE(70),
                              LB_SHAPE(12, 1),
                              LB_SHAPE(2, 3, 2, 1, 1, 1, 2, 32),
                              LB_SHAPE(0, 64),
                              lb_shape_make(0, NULL)};
    const lb_format *f;
    for (int k = 0; (f = lb_format_at(cx, k)); k++)
        for (size_t s = 0;
             s < sizeof shape / sizeof *shape && lb_is_encodable(f); s++)
            check_configs(cx, f, from[(s + (size_t)k) % 3], shape[s]);
    check_fields(cx);
    check_tables(cx);
    check_reference(cx);
    CHECK_EQ_S(lb_error(cx), "");
    lb_close(cx);
    return check_report("config_of");
}
