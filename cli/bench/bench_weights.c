/* bench_weights.c - see bench_weights.h. */
#include "bench_weights.h"

#include <stdio.h>
#include <string.h>

#include "bench_rows.h"
#include "lowbit_ext.h"
#include "verb.h"

/* ---- formats ------------------------------------------------------------ */

lb_dtype weights_dense(const char *format)
{
    static const lb_dtype dense[] = {LB_F32, LB_BF16, LB_F16};
    for (size_t i = 0; i < sizeof dense / sizeof *dense; i++)
        if (!strcmp(format, lb_dtype_name(dense[i]))) return dense[i];
    return LB_NO_DTYPE;
}

static bool known(lb_ctx *cx, const char *name, bool read_only)
{
    if (weights_dense(name)) return true;
    const lb_format *const f = lb_find_format(cx, name);
    if (f && (lb_is_encodable(f) || (read_only && f->layout))) return true;
    if (f) return bench_misused("cannot quantize to type %s", name);
    return format_named(cx, name) != NULL;
}

static void append(name_list *list, const char *name)
{
    for (int i = 0; i < list->n; i++)
        if (!strcmp(list->at[i], name)) return;
    if (list->n == LIST_MAX || strlen(name) >= NAME_SIZE) return;
    memcpy(list->at[list->n++], name, strlen(name) + 1);
}

bool weights_check(lb_ctx *cx, name_list *formats, bool read_only)
{
    const name_list asked = *formats;
    formats->n = 0;
    for (int i = 0; i < asked.n; i++) {
        if (strcmp(asked.at[i], "all") != 0) {
            if (!known(cx, asked.at[i], read_only)) return false;
            append(formats, asked.at[i]);
            continue;
        }
        append(formats, "f32");
        for (int k = 0; lb_format_at(cx, k); k++)
            if (lb_is_encodable(lb_format_at(cx, k)))
                append(formats, lb_format_at(cx, k)->name);
    }
    return true;
}

lb_quant_config weights_config(const char *format, bench_orient orient)
{
    lb_quant_config config = {.format = format, .dtype = LB_F32};
    if (!strcmp(format, "ternary") || !strcmp(format, "binary"))
        config.scale = LB_SCALE_ROW;
    if (!strcmp(format, "int8"))
        config.axes = (lb_axes){1, {orient == ORIENT_WT ? 1 : 0}};
    return config;
}

/* ---- arrays ------------------------------------------------------------- */

lb_array *weights_make(lb_ctx *cx, const char *format, bench_orient orient,
                       int64_t n, int64_t k, lb_key key)
{
    const lb_shape shape =
        orient == ORIENT_WT ? LB_SHAPE(n, k) : LB_SHAPE(k, n);
    const lb_dtype dense = weights_dense(format);
    if (dense) return lb_random_normal(cx, key, dense, shape);
    const lb_quant_config config = weights_config(format, orient);
    lb_enter(cx);
    lb_array *const w =
        lb_quantize(cx, lb_random_normal(cx, key, LB_F32, shape), &config);
    lb_keep(cx, w);
    lb_leave(cx);
    return w;
}

static lb_array *copy_dense(lb_ctx *cx, lb_array *a)
{
    lb_array *const d = lb_materialize(cx, a);
    return d ? lb_from(cx, lb_dtype_of(d), lb_shape_of(d), lb_data(d)) : NULL;
}

lb_array *weights_copy(lb_ctx *cx, lb_array *w, const char *format,
                       bench_orient orient)
{
    if (weights_dense(format)) return copy_dense(cx, w);
    const lb_format *const f = lb_find_format(cx, format);
    const lb_quant_config config = weights_config(format, orient);
    const char *name[LB_MAX_PARTS];
    lb_array *part[LB_MAX_PARTS];
    int n = 0;
    lb_enter(cx);
    for (int p = 0; p < LB_MAX_PARTS && f->part[p].name; p++) {
        lb_array *const a = lb_component(cx, w, f->part[p].name);
        if (!a) continue; /* missing, or an error, which is kept */
        name[n] = f->part[p].name;
        part[n++] = copy_dense(cx, a);
    }
    lb_array *const copy = lb_keep(
        cx, lb_from_parts(cx, &config, lb_shape_of(w), NULL, name, part, n));
    lb_leave(cx);
    return copy;
}

static lb_dot_dims dims_of(bench_orient orient, lb_precision precision)
{
    return (lb_dot_dims){
        .lhs_contract = {1, {1}},
        .rhs_contract = {1, {orient == ORIENT_WT ? 1 : 0}},
        .precision = precision,
    };
}

lb_array *weights_product(lb_ctx *cx, lb_array *x, lb_array *w,
                          bench_orient orient, lb_precision precision)
{
    const lb_dot_dims dims = dims_of(orient, precision);
    return lb_dot_general(cx, x, w, &dims);
}

bool weights_explain(lb_ctx *cx, lb_array *x, lb_array *w, bench_orient orient,
                     lb_precision precision, char *to, size_t size)
{
    const lb_dot_dims dims = dims_of(orient, precision);
    lb_array *const in[] = {x, w};
    const char *text = lb_explain(cx, "dot_general", in, 2, &dims);
    const char *kernel = text ? strstr(text, "tiles, ") : NULL;
    if (kernel) kernel += strlen("tiles, ");
    snprintf(to, size, "%.*s", kernel ? (int)strcspn(kernel, ",") : 0,
             kernel ? kernel : "");
    return text != NULL;
}
