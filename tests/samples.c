/* samples.c - lists of samples, and the samples of elementwise primitives.
 *
 * The dtypes that each primitive accepts are repeated here on purpose:
 * otherwise the laws would trust the primitive's own declaration.
 */
#include "samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists -------------------------------------------------------------- */

sample *sample_add(sample_list *list, const char *prim)
{
    if (list->n == list->room) {
        list->room = list->room ? list->room * 2 : 64;
        list->item =
            realloc(list->item, (size_t)list->room * sizeof *list->item);
        if (!list->item) abort();
    }
    sample *s = &list->item[list->n++];
    memset(s, 0, sizeof *s);
    s->prim = prim;
    return s;
}

sample_operand *sample_in(sample *s, lb_dtype dtype, lb_shape shape,
                          sample_kind kind)
{
    if (s->n_in == SAMPLE_MAX_IN) abort();
    sample_operand *o = &s->in[s->n_in++];
    *o = (sample_operand){.dtype = dtype, .shape = shape, .kind = kind};
    return o;
}

void samples_free(sample_list *list)
{
    free(list->item);
    *list = (sample_list){0};
}

lb_text sample_text(const sample *s)
{
    lb_text t;
    size_t at = (size_t)snprintf(t.s, sizeof t.s, "%s", s->prim);
    for (int i = 0; i < s->n_in && at < sizeof t.s; i++)
        at += (size_t)snprintf(t.s + at, sizeof t.s - at, " %s%s",
                               lb_dtype_name(s->in[i].dtype),
                               LB_SHOW(&s->in[i].shape));
    const lb_format *to = s->params.quant.format;
    if (strcmp(s->prim, "quantize") == 0 && to && at < sizeof t.s)
        snprintf(t.s + at, sizeof t.s - at, " to %s", to->name);
    return t;
}

int sample_kind_of(lb_dtype dtype)
{
    switch (lb_ctype_of(dtype)) {
    case LB_C_F32:
    case LB_C_F64:
        return KIND_F;
    case LB_C_I64:
        return KIND_I;
    case LB_C_U64:
        return KIND_U;
    default:
        return KIND_B;
    }
}

/* ---- elementwise -------------------------------------------------------- */

enum { FIU = KIND_F | KIND_I | KIND_U, IU = KIND_I | KIND_U };

/* clang-format off */
static const struct {
    const char *name;
    int n_in, kinds;
} rows[] = {
    {"neg", 1, FIU},    {"abs", 1, FIU},    {"sign", 1, FIU},
    {"exp", 1, KIND_F},      {"log", 1, KIND_F},    {"expm1", 1, KIND_F},
    {"log1p", 1, KIND_F},    {"sqrt", 1, KIND_F},   {"rsqrt", 1, KIND_F},
    {"cbrt", 1, KIND_F},     {"tanh", 1, KIND_F},   {"logistic", 1, KIND_F},
    {"sin", 1, KIND_F},      {"cos", 1, KIND_F},    {"tan", 1, KIND_F},
    {"erf", 1, KIND_F},      {"floor", 1, KIND_F},  {"ceil", 1, KIND_F},
    {"round", 1, KIND_F},    {"round_away", 1, KIND_F},
    {"is_finite", 1, KIND_F},
    {"not", 1, IU | KIND_B}, {"popcnt", 1, IU},     {"integer_pow", 1, FIU},
    {"add", 2, KIND_ALL},    {"sub", 2, FIU},       {"mul", 2, KIND_ALL},
    {"div", 2, FIU},         {"rem", 2, FIU},       {"max", 2, KIND_ALL},
    {"min", 2, KIND_ALL},    {"pow", 2, FIU},       {"atan2", 2, KIND_F},
    {"swiglu", 2, KIND_F},
    {"and", 2, IU | KIND_B}, {"or", 2, IU | KIND_B}, {"xor", 2, IU | KIND_B},
    {"shift_left", 2, IU},   {"shift_right_logical", 2, IU},
    {"shift_right_arithmetic", 2, IU},
    {"eq", 2, KIND_ALL}, {"ne", 2, KIND_ALL}, {"lt", 2, KIND_ALL},
    {"le", 2, KIND_ALL}, {"gt", 2, KIND_ALL}, {"ge", 2, KIND_ALL},
    {"select", 3, KIND_ALL}, {"clamp", 3, KIND_ALL},
};
/* clang-format on */
enum { N_ROWS = sizeof rows / sizeof *rows };

int sample_kinds(const char *prim)
{
    for (int i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].name, prim) == 0) return rows[i].kinds;
    return 0;
}

static void add_row(sample_list *list, int row, lb_dtype dtype, lb_shape shape,
                    bool scalars, int exponent)
{
    const char *name = rows[row].name;
    const bool select = strcmp(name, "select") == 0;
    sample *s = sample_add(list, name);
    for (int i = 0; i < rows[row].n_in; i++) {
        const bool bound = rows[row].n_in == 3 && (i == 0 || (!select && i));
        sample_in(s, select && i == 0 ? LB_BOOL : dtype,
                  scalars && bound && i != 1 ? (lb_shape){0} : shape,
                  VALUES_ANY);
    }
    if (strcmp(name, "integer_pow") == 0)
        s->params.integer_pow.exponent = exponent;
}

static void elementwise(sample_list *list, int row, sample_size size)
{
    const lb_shape small[] = {
        {0},
        LB_SHAPE(7),
        LB_SHAPE(3, 5),
        LB_SHAPE(0),
        LB_SHAPE(4, 3, 5),
        LB_SHAPE(257),
        LB_SHAPE(33, 1),
        LB_SHAPE(2, 3, 4, 5),
        LB_SHAPE(2, 0, 3),
        LB_SHAPE(1, 1, 19),
        LB_SHAPE(40, 70), /* more than a tile */
        LB_SHAPE(2, 1, 2, 1, 3, 1, 2, 1),
    };
    enum { SHAPES = sizeof small / sizeof *small, EACH = 3 };
    static const int exponents[] = {2, 3, 0, -1, 1, 7, -3};
    const bool three = rows[row].n_in == 3;
    int next = row;
    for (int d = 1; d < LB_N_DTYPES; d++) {
        const lb_dtype dtype = (lb_dtype)d;
        if (!(rows[row].kinds & sample_kind_of(dtype))) continue;
        if (size == SAMPLES_LARGE) {
            if (d == LB_F32 || d == LB_I32 || d == LB_BOOL)
                add_row(list, row, dtype, LB_SHAPE(300, 257), false, 3);
            continue;
        }
        const int n = d == LB_F32 || d == LB_I32 ? SHAPES : EACH;
        for (int k = 0; k < n; k++, next++) {
            int e = exponents[next % 7];
            if (e < 0 && sample_kind_of(dtype) != KIND_F) e = -e;
            add_row(list, row, dtype, small[next % SHAPES], three && next % 2,
                    e);
        }
    }
}

/* ---- conversions -------------------------------------------------------- */

static void convert(sample_list *list, sample_size size)
{
    const lb_shape shape[] = {LB_SHAPE(67), LB_SHAPE(3, 0), LB_SHAPE(5, 7, 3)};
    for (int from = 1; from < LB_N_DTYPES; from++)
        for (int to = 1; to < LB_N_DTYPES; to++) {
            if (size == SAMPLES_LARGE && from != LB_F32) continue;
            sample *s = sample_add(list, "convert_element_type");
            s->params.convert.dtype = (lb_dtype)to;
            sample_in(s, (lb_dtype)from,
                      size == SAMPLES_LARGE ? LB_SHAPE(300, 257)
                                            : shape[(from * 5 + to) % 3],
                      from == to ? VALUES_BITS : VALUES_ANY);
        }
}

sample_list samples_of(const char *prim, sample_size size)
{
    sample_list list = {0};
    for (int i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].name, prim) == 0) elementwise(&list, i, size);
    if (strcmp(prim, "convert_element_type") == 0) convert(&list, size);
    if (!list.n && !samples_structure(prim, size, &list) &&
        !samples_products(prim, size, &list))
        samples_quantize(prim, size, &list);
    return list;
}
