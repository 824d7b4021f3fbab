/* error_rows.c - see error_rows.h. Operands are zeros of any size: constants
 * use no memory, so shapes may be absurd. BIG elements can be counted but not
 * allocated; HUGE elements cannot be counted. */
#include "error_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_IN = 4 };
#define BIG  ((int64_t)1 << 50)
#define HUGE ((int64_t)1 << 59)

typedef struct rows {
    error_row *row;
    int n;
    const char *prim;
} rows;

static sample_params *refuse(rows *r, lb_status status, const char *say)
{
    if (r->n == ERROR_ROWS) abort();
    error_row *e = &r->row[r->n++];
    memset(e, 0, sizeof *e);
    e->call.prim = r->prim;
    e->status = status;
    e->say = say;
    return &e->call.params;
}

/* An operand of the last row begun. */
static void with(rows *r, lb_dtype dtype, lb_shape shape)
{
    sample_in(&r->row[r->n - 1].call, dtype, shape, VALUES_ANY);
}

static sample_params *refuse1(rows *r, lb_status status, const char *say,
                              lb_shape shape)
{
    sample_params *p = refuse(r, status, say);
    with(r, LB_F32, shape);
    return p;
}

static sample_params *refuse2(rows *r, lb_status status, const char *say,
                              lb_shape x, lb_shape y)
{
    sample_params *p = refuse1(r, status, say, x);
    with(r, LB_F32, y);
    return p;
}

static const lb_shape scalar;

/* ---- one operand -------------------------------------------------------- */

static void convert(rows *r)
{
    refuse1(r, LB_E_DTYPE, "0 is not", LB_SHAPE(2))->convert.dtype = 0;
    refuse1(r, LB_E_DTYPE, "99", LB_SHAPE(2))->convert.dtype = (lb_dtype)99;
    refuse1(r, LB_E_DTYPE, "-1", LB_SHAPE(2))->convert.dtype = (lb_dtype)-1;
    refuse1(r, LB_E_NOMEM, "out of memory|1125899906842624", LB_SHAPE(BIG))
        ->convert.dtype = LB_I8;
}

static void bitcast(rows *r)
{
    refuse1(r, LB_E_DTYPE, "0 is not", LB_SHAPE(2))->convert.dtype = 0;
    refuse1(r, LB_E_DTYPE, "99", LB_SHAPE(2))->convert.dtype = (lb_dtype)99;
    refuse1(r, LB_E_DTYPE, "f32(2)|bool", LB_SHAPE(2))->convert.dtype = LB_BOOL;
    refuse(r, LB_E_DTYPE, "bool(2)|u8")->convert.dtype = LB_U8;
    with(r, LB_BOOL, LB_SHAPE(2));
    refuse1(r, LB_E_SHAPE, "f32(4,3)|f64|last axis of size 2", LB_SHAPE(4, 3))
        ->convert.dtype = LB_F64;
    refuse1(r, LB_E_SHAPE, "f32()|i64|last axis of size 2", scalar)
        ->convert.dtype = LB_I64;
    refuse(r, LB_E_SHAPE, "i8(2,4)|u64|last axis of size 8")->convert.dtype =
        LB_U64;
    with(r, LB_I8, LB_SHAPE(2, 4));
    refuse1(r, LB_E_SHAPE, "rank 9", LB_SHAPE(1, 1, 1, 1, 1, 1, 1, 1))
        ->convert.dtype = LB_F16;
    refuse1(r, LB_E_NOMEM, "out of memory|1125899906842624", LB_SHAPE(BIG))
        ->convert.dtype = LB_I32;
}

static void copy(rows *r)
{
    refuse1(r, LB_E_NOMEM, "out of memory|4503599627370496|(1125899906842624)",
            LB_SHAPE(BIG));
}

static void ste(rows *r)
{
    refuse2(r, LB_E_SHAPE, "ste: |(2,3)|(3,2)", LB_SHAPE(2, 3), LB_SHAPE(3, 2));
    refuse(r, LB_E_DTYPE, "ste: |i8|f32");
    with(r, LB_F32, LB_SHAPE(2));
    with(r, LB_I8, LB_SHAPE(2));
    refuse(r, LB_E_DTYPE, "ste: |f64|bool");
    with(r, LB_BOOL, LB_SHAPE(2));
    with(r, LB_F64, LB_SHAPE(2));
}

static void transpose(rows *r)
{
    static const struct {
        int perm[3];
        const char *say;
    } c[] = {
        {{0, 0, 1}, "axis 0 is repeated"},
        {{0, 1, 3}, "axis 3|rank is 3"},
        {{-1, 0, 1}, "axis -1|rank is 3"},
    };
    for (int i = 0; i < 3; i++)
        memcpy(
            refuse1(r, LB_E_AXIS, c[i].say, LB_SHAPE(2, 3, 4))->transpose.perm,
            c[i].perm, sizeof c[i].perm);
}

static void broadcast(rows *r)
{
    const lb_shape s = LB_SHAPE(3, 2);
#define REFUSE(STATUS, SAY, ...)                                               \
    refuse1(r, STATUS, SAY, s)->broadcast = (lb_broadcast_params)__VA_ARGS__
    REFUSE(LB_E_SHAPE, "axis 0|(3,2)|3|(4,2)|4",
           {LB_SHAPE(4, 2), .dims = {0, 1}});
    REFUSE(LB_E_SHAPE, "axis 1|2|(3,1)|1", {LB_SHAPE(3, 1), .dims = {0, 1}});
    REFUSE(LB_E_AXIS, "axis 1 is repeated", {LB_SHAPE(3, 3), .dims = {1, 1}});
    REFUSE(LB_E_AXIS, "axis 2|rank is 2", {LB_SHAPE(3, 2), .dims = {0, 2}});
    REFUSE(LB_E_AXIS, "axis -1|rank is 2", {LB_SHAPE(3, 2), .dims = {0, -1}});
    REFUSE(LB_E_SHAPE, "rank 9|8", {{.rank = 9}, .dims = {0, 1}});
    REFUSE(LB_E_SHAPE, "rank -1", {{.rank = -1}, .dims = {0, 1}});
    REFUSE(LB_E_SHAPE, "-4|axis 2", {LB_SHAPE(3, 2, -4), .dims = {0, 1}});
    REFUSE(LB_E_SIZE, "(3,2,576460752303423488)",
           {LB_SHAPE(3, 2, HUGE), .dims = {0, 1}});
    REFUSE(LB_E_SIZE, "9223372036854775807",
           {LB_SHAPE(3, 2, INT64_MAX, INT64_MAX), .dims = {0, 1}});
    REFUSE(LB_E_SIZE, "(3,2,0,9223372036854775807)",
           {LB_SHAPE(3, 2, 0, INT64_MAX), .dims = {0, 1}});
#undef REFUSE
}

static void slice(rows *r)
{
    const lb_shape s = LB_SHAPE(5, 4);
#define REFUSE(SAY, ...)                                                       \
    refuse1(r, LB_E_ARG, SAY, s)->slice = (lb_slice_params)__VA_ARGS__
    REFUSE("-1:5:1|axis 0|(5,4)", {{-1, 0}, {5, 4}, {1, 1}});
    REFUSE("0:5:1|axis 1|(5,4)", {{0, 0}, {5, 5}, {1, 1}});
    REFUSE("3:2:1|axis 0", {{3, 0}, {2, 4}, {1, 1}});
    REFUSE("0:4:0|axis 1", {{0, 0}, {5, 4}, {1, 0}});
    REFUSE("0:4:-1|axis 1", {{0, 0}, {5, 4}, {1, -1}});
    REFUSE("-9223372036854775808", {{INT64_MIN, 0}, {5, 4}, {1, 1}});
#undef REFUSE
}

static void reverse(rows *r)
{
    const lb_shape s = LB_SHAPE(5, 4);
    refuse1(r, LB_E_AXIS, "axis 2|rank is 2", s)->reverse.axes = *LB_AXES(2);
    refuse1(r, LB_E_AXIS, "axis -1|rank is 2", s)->reverse.axes = *LB_AXES(-1);
    refuse1(r, LB_E_AXIS, "axis 1 is repeated", s)->reverse.axes =
        *LB_AXES(1, 1);
    refuse1(r, LB_E_AXIS, "9 axes|rank 2", s)->reverse.axes = (lb_axes){.n = 9};
    refuse1(r, LB_E_AXIS, "-1 axes", s)->reverse.axes = (lb_axes){.n = -1};
}

static void reshape(rows *r)
{
    const lb_shape s = LB_SHAPE(3, 4);
#define REFUSE(STATUS, SAY, ...)                                               \
    refuse1(r, STATUS, SAY, s)->reshape = (lb_reshape_params)__VA_ARGS__
    REFUSE(LB_E_SHAPE, "(3,4)|12|(5,2)|10", {.shape = LB_SHAPE(5, 2)});
    REFUSE(LB_E_SHAPE, "-1|axis 1", {.shape = LB_SHAPE(12, -1)});
    REFUSE(LB_E_SHAPE, "rank 9", {.shape = {.rank = 9}});
    REFUSE(LB_E_SIZE, "(4294967296,4294967296)",
           {.shape = LB_SHAPE((int64_t)1 << 32, (int64_t)1 << 32)});
    REFUSE(LB_E_AXIS, "axis 1 is repeated",
           {.shape = LB_SHAPE(12), .permute = true, .perm = {1, 1}});
    REFUSE(LB_E_AXIS, "axis 2|rank is 2",
           {.shape = LB_SHAPE(12), .permute = true, .perm = {0, 2}});
#undef REFUSE
}

/* ---- several operands --------------------------------------------------- */

static void concatenate(rows *r)
{
    const lb_shape s = LB_SHAPE(2, 3);
    refuse2(r, LB_E_AXIS, "axis -1|(2,3)", s, s)->concatenate.axis = -1;
    refuse2(r, LB_E_AXIS, "axis 2|(2,3)", s, s)->concatenate.axis = 2;
    refuse1(r, LB_E_AXIS, "axis 0|()", scalar);
    refuse2(r, LB_E_SHAPE, "operand 1|(2,4)|(2,3)|axis 0", s, LB_SHAPE(2, 4));
    refuse2(r, LB_E_SHAPE, "operand 1|(3)|(2,3)", s, LB_SHAPE(3));
    refuse1(r, LB_E_DTYPE, "operand 1|i32|f32", s);
    with(r, LB_I32, s);
    refuse2(r, LB_E_SIZE, "(576460752303423488)", LB_SHAPE(HUGE / 2),
            LB_SHAPE(HUGE / 2));
    refuse2(r, LB_E_NOMEM, "out of memory|(2251799813685248)", LB_SHAPE(BIG),
            LB_SHAPE(BIG));
}

static void pad(rows *r)
{
    const lb_shape s = LB_SHAPE(5);
#define REFUSE(STATUS, SAY, ...)                                               \
    refuse2(r, STATUS, SAY, s, scalar)->pad = (lb_pad_params)__VA_ARGS__
    REFUSE(LB_E_ARG, "-1|axis 0", {.interior = {-1}});
    REFUSE(LB_E_SHAPE, "axis 0|(5)|-3|-4|-2", {.lo = {-3}, .hi = {-4}});
    REFUSE(LB_E_SIZE, "axis 0|9223372036854775807", {.lo = {INT64_MAX}});
    REFUSE(LB_E_SIZE, "axis 0|9223372036854775807", {.interior = {INT64_MAX}});
    REFUSE(LB_E_SIZE, "(576460752303423493)", {.hi = {HUGE}});
    REFUSE(LB_E_NOMEM, "out of memory|1125899906842629", {.hi = {BIG}});
#undef REFUSE
    refuse2(r, LB_E_SHAPE, "value|(1)", s, LB_SHAPE(1));
    refuse1(r, LB_E_DTYPE, "i32|f32", s);
    with(r, LB_I32, scalar);
}

static void starts(rows *r, int n, lb_dtype dtype)
{
    for (int i = 0; i < n; i++)
        with(r, dtype, scalar);
}

static void dynamic_slice(rows *r)
{
    const lb_shape s = LB_SHAPE(5, 4);
    refuse1(r, LB_E_ARG, "1 starts|rank 2", s);
    starts(r, 1, LB_I32);
    refuse1(r, LB_E_ARG, "3 starts|rank 2", s);
    starts(r, 3, LB_I32);
    refuse1(r, LB_E_DTYPE, "start 0|f32", s);
    starts(r, 2, LB_F32);
    refuse1(r, LB_E_DTYPE, "start 0|bool", s);
    starts(r, 2, LB_BOOL);
    refuse1(r, LB_E_SHAPE, "start 1|(1)", s);
    starts(r, 1, LB_I32);
    with(r, LB_I32, LB_SHAPE(1));
    refuse1(r, LB_E_SHAPE, "6|axis 0|(5,4)", s)->dynamic_slice.sizes[0] = 6;
    starts(r, 2, LB_I32);
    refuse1(r, LB_E_SHAPE, "-1|axis 1|(5,4)", s)->dynamic_slice.sizes[1] = -1;
    starts(r, 2, LB_I32);
}

static void dynamic_update_slice(rows *r)
{
    const lb_shape s = LB_SHAPE(5, 4);
    refuse1(r, LB_E_ARG, "1 operands|2", s);
    refuse2(r, LB_E_ARG, "1 starts|rank 2", s, LB_SHAPE(1, 1));
    starts(r, 1, LB_I32);
    refuse2(r, LB_E_SHAPE, "(6,1)|(5,4)", s, LB_SHAPE(6, 1));
    starts(r, 2, LB_I32);
    refuse2(r, LB_E_SHAPE, "(2)|(5,4)", s, LB_SHAPE(2));
    starts(r, 2, LB_I32);
    refuse2(r, LB_E_DTYPE, "start 0|f64", s, LB_SHAPE(1, 1));
    starts(r, 2, LB_F64);
    refuse2(r, LB_E_SHAPE, "start 0|(1)", s, LB_SHAPE(1, 1));
    with(r, LB_I32, LB_SHAPE(1));
    starts(r, 1, LB_I32);
    refuse1(r, LB_E_DTYPE, "i8|f32", s);
    with(r, LB_I8, LB_SHAPE(1, 1));
    starts(r, 2, LB_I32);
    refuse2(r, LB_E_NOMEM, "out of memory|(1125899906842624)", LB_SHAPE(BIG),
            LB_SHAPE(1));
    starts(r, 1, LB_I32);
}

/* ---- gather and scatter_add --------------------------------------------- */

static const lb_gather_dims take_rows = {.offset_dims = {1, {1}},
                                         .collapsed_slice_dims = {1, {0}},
                                         .start_index_map = {1, {0}},
                                         .index_vector_dim = 1,
                                         .slice_sizes = {1, 4}};

/* Rows of (6,4) gathered by starts of (5,1), with an error. */
static lb_gather_dims *refuse_rows(rows *r, lb_status status, const char *say)
{
    sample_params *p = refuse1(r, status, say, LB_SHAPE(6, 4));
    p->gather = take_rows;
    with(r, LB_I32, LB_SHAPE(5, 1));
    if (strcmp(r->prim, "scatter_add") == 0) with(r, LB_F32, LB_SHAPE(5, 4));
    return &p->gather;
}

static void gather(rows *r)
{
    lb_gather_dims *d;
    refuse_rows(r, LB_E_ARG, "bounds|7")->bounds = (lb_bounds)7;
    refuse_rows(r, LB_E_AXIS, "index_vector_dim 3|rank 2")->index_vector_dim =
        3;
    refuse_rows(r, LB_E_AXIS, "index_vector_dim -1")->index_vector_dim = -1;
    refuse_rows(r, LB_E_SHAPE, "5|(5,1)|index_vector_dim 0|1")
        ->index_vector_dim = 0;
    refuse_rows(r, LB_E_SHAPE, "5|axis 1|(6,4)")->slice_sizes[1] = 5;
    refuse_rows(r, LB_E_SHAPE, "-1|axis 1|(6,4)")->slice_sizes[1] = -1;
    refuse_rows(r, LB_E_SHAPE, "axis 0|(6,4)|2")->slice_sizes[0] = 2;
    refuse_rows(r, LB_E_AXIS, "axis 2|collapsed_slice_dims|2")
        ->collapsed_slice_dims.axis[0] = 2;
    refuse_rows(r, LB_E_AXIS, "axis 2|start_index_map|2")
        ->start_index_map.axis[0] = 2;
    refuse_rows(r, LB_E_AXIS, "9 start_index_map")->start_index_map.n = 9;
    refuse_rows(r, LB_E_AXIS, "0 offset_dims|1 of 2")->offset_dims.n = 0;
    refuse_rows(r, LB_E_AXIS, "axis 2|offset_dims|2")->offset_dims.axis[0] = 2;
    d = refuse_rows(r, LB_E_AXIS, "1 operand_batching_dims|0 start_indices");
    d->operand_batching_dims = *LB_AXES(1);
    d = refuse_rows(r, LB_E_AXIS, "axis 0|collapsed|batching");
    d->operand_batching_dims = d->start_indices_batching_dims = *LB_AXES(0);
    d = refuse_rows(r, LB_E_SHAPE, "axis 1|(6,4)|4|axis 0|(5,1)|5");
    d->operand_batching_dims = *LB_AXES(1);
    d->start_indices_batching_dims = *LB_AXES(0);
    d->slice_sizes[1] = 1;
    refuse1(r, LB_E_DTYPE, "f32|integers", LB_SHAPE(6, 4))->gather = take_rows;
    with(r, LB_F32, LB_SHAPE(5, 1));
    if (strcmp(r->prim, "scatter_add") == 0) with(r, LB_F32, LB_SHAPE(5, 4));
}

static void gather_only(rows *r)
{
    gather(r);
    refuse1(r, LB_E_SIZE, "(288230376151711744,4)", LB_SHAPE(6, 4))->gather =
        take_rows;
    with(r, LB_I32, LB_SHAPE(HUGE / 2, 1));
    refuse1(r, LB_E_SHAPE, "rank 9|8", LB_SHAPE(6, 4))->gather = take_rows;
    r->row[r->n - 1].call.params.gather.index_vector_dim = 8;
    with(r, LB_I32, LB_SHAPE(1, 1, 1, 1, 1, 1, 1, 1));
}

static void scatter_add(rows *r)
{
    gather(r);
    refuse1(r, LB_E_SHAPE, "(5,3)|(5,4)", LB_SHAPE(6, 4))->gather = take_rows;
    with(r, LB_I32, LB_SHAPE(5, 1));
    with(r, LB_F32, LB_SHAPE(5, 3));
    refuse1(r, LB_E_DTYPE, "f16|f32", LB_SHAPE(6, 4))->gather = take_rows;
    with(r, LB_I32, LB_SHAPE(5, 1));
    with(r, LB_F16, LB_SHAPE(5, 4));
}

/* ---- reductions --------------------------------------------------------- */

static void reduce(rows *r)
{
    const lb_shape s = LB_SHAPE(5, 4);
    const bool bits = strstr(r->prim, "_and") || strstr(r->prim, "_or");
    const bool adds = strstr(r->prim, "_sum");
    refuse1(r, LB_E_AXIS, "axis 2|rank is 2", s)->reduce.axes = *LB_AXES(2);
    refuse1(r, LB_E_AXIS, "axis -1|rank is 2", s)->reduce.axes = *LB_AXES(-1);
    refuse1(r, LB_E_AXIS, "axis 1 is repeated", s)->reduce.axes =
        *LB_AXES(1, 1);
    refuse1(r, LB_E_AXIS, "9 axes|rank 2", s)->reduce.axes = (lb_axes){.n = 9};
    if (bits) refuse1(r, LB_E_DTYPE, "f32", s);
    if (adds) {
        refuse(r, LB_E_DTYPE, "bool");
        with(r, LB_BOOL, s);
    }
    if (!bits)
        refuse1(r, LB_E_NOMEM, "out of memory|(1125899906842624)",
                LB_SHAPE(BIG, 0))
            ->reduce.axes = *LB_AXES(1);
}

static void arg(rows *r)
{
    const lb_shape s = LB_SHAPE(5, 300);
#define REFUSE(STATUS, SAY, SHAPE, ...)                                        \
    refuse1(r, STATUS, SAY, SHAPE)->arg = (lb_argminmax_params)__VA_ARGS__
    REFUSE(LB_E_AXIS, "axis 2|rank is 2", s, {2, LB_I32});
    REFUSE(LB_E_AXIS, "axis -1|rank is 2", s, {-1, LB_I32});
    REFUSE(LB_E_AXIS, "axis 0|rank is 0", scalar, {0, LB_I32});
    REFUSE(LB_E_DTYPE, "f32", s, {0, LB_F32});
    REFUSE(LB_E_DTYPE, "bool", s, {0, LB_BOOL});
    REFUSE(LB_E_DTYPE, "none", s, {0, LB_NO_DTYPE});
    REFUSE(LB_E_DTYPE, "300|axis 1|(5,300)|i8", s, {1, LB_I8});
    REFUSE(LB_E_SHAPE, "axis 1|(3,0)|empty", LB_SHAPE(3, 0), {1, LB_I32});
    REFUSE(LB_E_NOMEM, "out of memory|(1125899906842624)", LB_SHAPE(BIG, 2),
           {1, LB_U8});
#undef REFUSE
}

/* ---- products ----------------------------------------------------------- */

static void dot(rows *r)
{
    const lb_shape x = LB_SHAPE(5, 7), y = LB_SHAPE(7, 3);
#define REFUSE(STATUS, SAY, ...)                                               \
    refuse2(r, STATUS, SAY, x, y)->dot = (lb_dot_dims)__VA_ARGS__
    REFUSE(LB_E_SHAPE, "axis 0|(5,7)|5|(7,3)|7",
           {.lhs_contract = {1, {0}}, .rhs_contract = {1, {0}}});
    REFUSE(LB_E_SHAPE, "axis 1|7|3",
           {.lhs_batch = {1, {1}}, .rhs_batch = {1, {1}}});
    REFUSE(LB_E_AXIS, "1 contracted|0", {.lhs_contract = {1, {1}}});
    REFUSE(LB_E_AXIS, "0 batch|1", {.rhs_batch = {1, {1}}});
    REFUSE(LB_E_AXIS, "axis 2|rank is 2",
           {.lhs_contract = {1, {2}}, .rhs_contract = {1, {0}}});
    REFUSE(LB_E_AXIS, "axis -1|rank is 2",
           {.lhs_contract = {1, {1}}, .rhs_contract = {1, {-1}}});
    REFUSE(LB_E_AXIS, "axis 1|batched and contracted",
           {.lhs_contract = {1, {1}},
            .rhs_contract = {1, {0}},
            .lhs_batch = {1, {1}},
            .rhs_batch = {1, {0}}});
    REFUSE(LB_E_AXIS, "axis 1 is repeated",
           {.lhs_contract = {2, {1, 1}}, .rhs_contract = {2, {0, 1}}});
    REFUSE(LB_E_DTYPE, "99",
           {.lhs_contract = {1, {1}},
            .rhs_contract = {1, {0}},
            .preferred = (lb_dtype)99});
    REFUSE(LB_E_DTYPE, "f32|i32",
           {.lhs_contract = {1, {1}},
            .rhs_contract = {1, {0}},
            .preferred = LB_I32});
    REFUSE(LB_E_ARG, "precision is 9",
           {.lhs_contract = {1, {1}},
            .rhs_contract = {1, {0}},
            .precision = (lb_precision)9});
#undef REFUSE
    const lb_dot_dims d = {.lhs_contract = {1, {1}}, .rhs_contract = {1, {0}}};
    refuse1(r, LB_E_DTYPE, "f32|i32", x)->dot = d;
    with(r, LB_I32, y);
    refuse(r, LB_E_DTYPE, "i8|u8")->dot = d;
    with(r, LB_I8, x);
    with(r, LB_U8, y);
    refuse2(r, LB_E_SIZE, "(1073741824,1073741824)",
            LB_SHAPE((int64_t)1 << 30, 1), LB_SHAPE(1, (int64_t)1 << 30))
        ->dot = d;
    refuse2(r, LB_E_NOMEM, "out of memory|(1048576,1048576)",
            LB_SHAPE((int64_t)1 << 20, 1), LB_SHAPE(1, (int64_t)1 << 20))
        ->dot = d;
    refuse2(r, LB_E_SHAPE, "rank 10|8", LB_SHAPE(1, 1, 1, 1, 1),
            LB_SHAPE(1, 1, 1, 1, 1));
}

static void conv(rows *r)
{
    const lb_shape x = LB_SHAPE(4, 6, 9, 9), k = LB_SHAPE(8, 6, 3, 3);
#define REFUSE(STATUS, SAY, ...)                                               \
    refuse2(r, STATUS, SAY, x, k)->conv = (lb_conv_dims)__VA_ARGS__
    REFUSE(LB_E_ARG, "bf00|rank 4", {.lhs = "bf00"});
    REFUSE(LB_E_ARG, "io|rank 4", {.rhs = "io"});
    REFUSE(LB_E_ARG, "bf012|rank 4", {.out = "bf012"});
    REFUSE(LB_E_ARG, "bf02", {.lhs = "bf02"});
    REFUSE(LB_E_ARG, "oi01", {.lhs = "oi01"});
    REFUSE(LB_E_ARG, "-2", {.stride = {1, -2}});
    REFUSE(LB_E_ARG, "-3|axis 0", {.lhs_dilation = {-3}});
    REFUSE(LB_E_ARG, "-4|axis 1", {.rhs_dilation = {1, -4}});
    REFUSE(LB_E_SIZE, "9223372036854775807", {.pad_lo = {INT64_MAX}});
    REFUSE(LB_E_SIZE, "axis 0|9", {.lhs_dilation = {INT64_MAX}});
    REFUSE(LB_E_SIZE, "axis 1|9", {.rhs_dilation = {1, INT64_MAX}});
    REFUSE(LB_E_SIZE, "too many elements", {.pad_hi = {HUGE}});
    REFUSE(LB_E_NOMEM, "out of memory", {.pad_hi = {BIG}});
    REFUSE(LB_E_SHAPE, "6|4", {.feature_groups = 4});
    REFUSE(LB_E_SHAPE, "4|3", {.batch_groups = 3});
    REFUSE(LB_E_SHAPE, "(8,6,3,3)|6|(4,6,9,9)|3", {.feature_groups = 2});
    REFUSE(LB_E_ARG, "2|2", {.feature_groups = 2, .batch_groups = 2});
    REFUSE(LB_E_ARG, "-1", {.feature_groups = -1});
    REFUSE(LB_E_DTYPE, "99", {.preferred = (lb_dtype)99});
    REFUSE(LB_E_ARG, "precision is 9", {.precision = (lb_precision)9});
#undef REFUSE
    refuse2(r, LB_E_SHAPE, "(4,6,9,9)|(8,6,3)", x, LB_SHAPE(8, 6, 3));
    refuse2(r, LB_E_SHAPE, "(3)", LB_SHAPE(3), LB_SHAPE(3));
    refuse2(r, LB_E_SHAPE, "(1,1,1,1,1,1)|5", LB_SHAPE(1, 1, 1, 1, 1, 1),
            LB_SHAPE(1, 1, 1, 1, 1, 1));
    refuse2(r, LB_E_SHAPE, "(8,5,3,3)|5|6", x, LB_SHAPE(8, 5, 3, 3));
    refuse1(r, LB_E_DTYPE, "f32|i32", x);
    with(r, LB_I32, k);
}

/* ---- from nothing ------------------------------------------------------- */

static void iota(rows *r)
{
#define REFUSE(STATUS, SAY, ...)                                               \
    refuse(r, STATUS, SAY)->iota = (lb_iota_params)__VA_ARGS__
    REFUSE(LB_E_DTYPE, "bool", {LB_SHAPE(3), LB_BOOL, 0});
    REFUSE(LB_E_DTYPE, "99", {LB_SHAPE(3), (lb_dtype)99, 0});
    REFUSE(LB_E_AXIS, "axis 1|(3)", {LB_SHAPE(3), LB_F32, 1});
    REFUSE(LB_E_AXIS, "axis -1|(3)", {LB_SHAPE(3), LB_F32, -1});
    REFUSE(LB_E_AXIS, "axis 0|()", {{0}, LB_F32, 0});
    REFUSE(LB_E_SHAPE, "rank 9", {{.rank = 9}, LB_F32, 0});
    REFUSE(LB_E_SHAPE, "-3|axis 0", {LB_SHAPE(-3), LB_F32, 0});
    REFUSE(LB_E_SIZE, "(576460752303423488)", {LB_SHAPE(HUGE), LB_F32, 0});
    REFUSE(LB_E_NOMEM, "out of memory|(1125899906842624)",
           {LB_SHAPE(BIG), LB_F32, 0});
#undef REFUSE
}

static void random_of(rows *r)
{
    const bool bits = strcmp(r->prim, "random_bits") == 0;
    const lb_dtype good = bits ? LB_I32 : LB_F32;
    const lb_dtype bad = bits ? LB_F32 : LB_I32;
#define REFUSE(STATUS, SAY, DTYPE, SHAPE)                                      \
    refuse(r, STATUS, SAY)->uniform =                                          \
        (lb_random_uniform_params){{{1, 2}, DTYPE, SHAPE}, 0, 1}
    REFUSE(LB_E_DTYPE, bits ? "f32" : "i32", bad, LB_SHAPE(3));
    REFUSE(LB_E_DTYPE, "bool", LB_BOOL, LB_SHAPE(3));
    REFUSE(LB_E_DTYPE, "99", (lb_dtype)99, LB_SHAPE(3));
    REFUSE(LB_E_SHAPE, "rank 9", good, (lb_shape){.rank = 9});
    REFUSE(LB_E_SHAPE, "-3|axis 0", good, LB_SHAPE(-3));
    REFUSE(LB_E_SIZE, "(576460752303423488)", good, LB_SHAPE(HUGE));
    REFUSE(LB_E_NOMEM, "out of memory|(1125899906842624)", good, LB_SHAPE(BIG));
#undef REFUSE
}

static void random_uniform(rows *r)
{
    random_of(r);
#define REFUSE(SAY, DTYPE, LO, HI)                                             \
    refuse(r, LB_E_ARG, SAY)->uniform =                                        \
        (lb_random_uniform_params){{{1, 2}, DTYPE, LB_SHAPE(3)}, LO, HI}
    REFUSE("2|1", LB_F32, 2, 1);
    REFUSE("1|1", LB_F32, 1, 1);
    REFUSE("100000|f16|65504", LB_F16, 0, 100000);
    REFUSE("nan", LB_F32, __builtin_nan(""), 1);
    REFUSE("inf", LB_F32, 0, __builtin_inf());
#undef REFUSE
}

static void random_permutation(rows *r)
{
    refuse(r, LB_E_ARG, "-1")->permutation.n = -1;
    refuse(r, LB_E_SIZE, "(576460752303423488)")->permutation.n = HUGE;
    refuse(r, LB_E_NOMEM, "out of memory|(1125899906842624)")->permutation.n =
        BIG;
}

/* ---- elementwise: special cases ----------------------------------------- */

static void integer_pow(rows *r)
{
    refuse(r, LB_E_ARG, "-2|i32")->integer_pow.exponent = -2;
    with(r, LB_I32, LB_SHAPE(3));
}

static void select_rows(rows *r)
{
    refuse(r, LB_E_DTYPE, "operand 0|i32|bool");
    with(r, LB_I32, LB_SHAPE(3));
    with(r, LB_F32, LB_SHAPE(3));
    with(r, LB_F32, LB_SHAPE(3));
    refuse(r, LB_E_SHAPE, "operand 0|(2)|(3)");
    with(r, LB_BOOL, LB_SHAPE(2));
    with(r, LB_F32, LB_SHAPE(3));
    with(r, LB_F32, LB_SHAPE(3));
}

/* ---- quantizing --------------------------------------------------------- */

/* Quantizing (2,3) to a format, with an error. */
static lb_quant *refuse_to(rows *r, lb_status status, const char *say,
                           const char *format)
{
    lb_quant *q = &refuse1(r, status, say, LB_SHAPE(2, 3))->quant;
    q->format = lb_find_format(NULL, format);
    return q;
}

static void quantize(rows *r)
{
    refuse_to(r, LB_E_NULL, "the format is NULL", "no_such");
    refuse_to(r, LB_E_UNSUPPORTED, "dense|no layout", "dense");
    refuse_to(r, LB_E_AXIS, "axis 5|rank", "int8")->axes = *LB_AXES(5);
    refuse_to(r, LB_E_AXIS, "axis -1|rank", "int8")->axes = *LB_AXES(-1);
    refuse_to(r, LB_E_AXIS, "axis 1|repeated", "int8")->axes = *LB_AXES(1, 1);
    refuse_to(r, LB_E_AXIS, "9 axes|rank", "int8")->axes = (lb_axes){.n = 9};
    refuse_to(r, LB_E_AXIS, "-1 axes|rank", "int8")->axes = (lb_axes){.n = -1};
    refuse_to(r, LB_E_DTYPE, "77", "int8")->dtype = (lb_dtype)77;
    refuse_to(r, LB_E_DTYPE, "int8|i8", "int8")->dtype = LB_I8;
    refuse_to(r, LB_E_ARG, "-3", "int8")->block_size = -3;
    refuse_to(r, LB_E_ARG, "compat|9", "int8")->compat = (lb_compat)9;
    refuse_to(r, LB_E_ARG, "decode|9", "int8")->decode = (lb_decode)9;
    refuse_to(r, LB_E_ARG, "scale|9", "int8")->scale = (lb_scale)9;
    refuse_to(r, LB_E_ARG, "meaning|9", "int8")->meaning = (lb_meaning)9;
    refuse_to(r, LB_E_ARG, "threshold|9", "int8")->threshold = (lb_threshold)9;
    refuse_to(r, LB_E_ARG, "blocks|9", "int8")->blocks = (lb_blocks)9;
    refuse_to(r, LB_E_ARG, "on_nonfinite|9", "int8")->on_nonfinite =
        (lb_nonfinite)9;
    refuse_to(r, LB_E_ARG, "nf4|7|even", "nf4")->block_size = 7;
    static const lb_dtype not_floats[] = {LB_I8, LB_I64, LB_U16, LB_BOOL};
    static const char *const say[] = {"i8(4)", "i64(4)", "u16(4)", "bool(4)"};
    for (int i = 0; i < 4; i++) {
        refuse(r, LB_E_DTYPE, say[i])->quant.format =
            lb_find_format(NULL, "nf4");
        with(r, not_floats[i], LB_SHAPE(4));
    }
    refuse1(r, LB_E_NOMEM, "out of memory|562949953421312", LB_SHAPE(BIG))
        ->quant.format = lb_find_format(NULL, "nf4");
    refuse1(r, LB_E_NOMEM, "out of memory|1125899906842624", LB_SHAPE(BIG))
        ->quant.format = lb_find_format(NULL, "int8");
}

static void softmax(rows *r)
{
    refuse1(r, LB_E_AXIS, "axis 2|rank 2", LB_SHAPE(2, 3))->softmax.axis = 2;
    refuse1(r, LB_E_AXIS, "axis -1|rank 2", LB_SHAPE(2, 3))->softmax.axis = -1;
    refuse1(r, LB_E_AXIS, "axis 0|rank 0", scalar);
    refuse(r, LB_E_DTYPE, "operand 0 is i32, not a float");
    with(r, LB_I32, LB_SHAPE(4));
}

static void norm(rows *r)
{
    refuse1(r, LB_E_SHAPE, "a scalar has no last axis", scalar);
    refuse2(r, LB_E_ARG, "2 operands, not 1", LB_SHAPE(2, 3), LB_SHAPE(3));
    refuse1(r, LB_E_ARG, "1 operands, not 2", LB_SHAPE(2, 3))->norm.weight =
        true;
    refuse2(r, LB_E_SHAPE, "weight has shape (2), not (3)", LB_SHAPE(2, 3),
            LB_SHAPE(2))
        ->norm.weight = true;
    refuse2(r, LB_E_SHAPE, "weight has shape (1,3), not (3)", LB_SHAPE(2, 3),
            LB_SHAPE(1, 3))
        ->norm.weight = true;
    refuse(r, LB_E_DTYPE, "operand 1 is i8, not a float")->norm.weight = true;
    with(r, LB_F32, LB_SHAPE(2, 3));
    with(r, LB_I8, LB_SHAPE(3));
    refuse(r, LB_E_DTYPE, "operand 0 is u8, not a float");
    with(r, LB_U8, LB_SHAPE(2, 3));
}

static void rms_norm(rows *r)
{
    norm(r);
    refuse2(r, LB_E_ARG, "it has no bias", LB_SHAPE(2, 3), LB_SHAPE(3))
        ->norm.bias = true;
}

static void layer_norm(rows *r)
{
    norm(r);
    refuse2(r, LB_E_SHAPE, "bias has shape (4), not (3)", LB_SHAPE(2, 3),
            LB_SHAPE(4))
        ->norm.bias = true;
}

static void quantize_scales(rows *r)
{
    refuse1(r, LB_E_ARG, "dense(2,3)|no separate scales", LB_SHAPE(2, 3));
    refuse(r, LB_E_ARG, "dense(4)|no separate scales");
    with(r, LB_I32, LB_SHAPE(4));
}

static lb_rope_params *refuse_rope(rows *r, lb_status status, const char *say,
                                   lb_shape x, lb_shape at)
{
    lb_rope_params *p = &refuse1(r, status, say, x)->rope;
    with(r, LB_I32, at);
    *p = (lb_rope_params){.base = 1e4, .magnitude = 1, .dims = 2};
    return p;
}

static void rope(rows *r)
{
    const lb_shape x = LB_SHAPE(5, 4);
    refuse_rope(r, LB_E_SHAPE, "(4)|positions", LB_SHAPE(4), scalar);
    refuse_rope(r, LB_E_SHAPE, "(3)|(5)", x, LB_SHAPE(3));
    refuse_rope(r, LB_E_SHAPE, "(5,1)|(5)", x, LB_SHAPE(5, 1));
    refuse2(r, LB_E_DTYPE, "f32|integers", x, scalar);
    refuse(r, LB_E_DTYPE, "i32|float");
    with(r, LB_I32, x);
    with(r, LB_I32, scalar);
    refuse_rope(r, LB_E_AXIS, "axis 1|(5,4)", x, scalar)->axis = 1;
    refuse_rope(r, LB_E_AXIS, "axis -1|(5,4)", x, scalar)->axis = -1;
    refuse_rope(r, LB_E_SHAPE, "3 of|(5,4)", x, scalar)->dims = 3;
    refuse_rope(r, LB_E_SHAPE, "6 of|(5,4)|4", x, scalar)->dims = 6;
    refuse_rope(r, LB_E_SHAPE, "-2 of", x, scalar)->dims = -2;
    refuse_rope(r, LB_E_ARG, "base -1", x, scalar)->base = -1;
    refuse_rope(r, LB_E_ARG, "magnitude inf", x, scalar)->magnitude = INFINITY;
    refuse_rope(r, LB_E_ARG, "scaling 7", x, scalar)->scaling =
        (lb_rope_scaling)7;
    refuse_rope(r, LB_E_ARG, "factor 0", x, scalar)->scaling = LB_ROPE_LINEAR;
    lb_rope_params *p = refuse_rope(r, LB_E_ARG, "low 2|high 1", x, scalar);
    p->scaling = LB_ROPE_LLAMA3;
    p->factor = p->high = 1;
    p->low = 2;
    p = refuse_rope(r, LB_E_ARG, "base|0.5", x, scalar);
    p->scaling = LB_ROPE_YARN;
    p->factor = p->original = p->low = 1;
    p->high = 2;
    p->base = 0.5;
    refuse_rope(r, LB_E_NOMEM, "out of memory", LB_SHAPE(5, BIG), scalar);
}

static lb_attention_params *refuse_attention(rows *r, lb_status status,
                                             const char *say, lb_shape q,
                                             lb_shape k, lb_shape v)
{
    lb_attention_params *p = &refuse2(r, status, say, q, k)->attention;
    with(r, LB_F32, v);
    with(r, LB_I32, scalar);
    *p = (lb_attention_params){.scale = 1, .causal = true};
    return p;
}

static void attention(rows *r)
{
    const lb_shape q = LB_SHAPE(4, 3, 5), k = LB_SHAPE(2, 7, 5);
    refuse_attention(r, LB_E_ARG, "window is -1", q, k, k)->window = -1;
    lb_attention_params *p =
        refuse_attention(r, LB_E_ARG, "window is 2|causal", q, k, k);
    p->window = 2;
    p->causal = false;
    refuse_attention(r, LB_E_ARG, "scale is inf", q, k, k)->scale = INFINITY;
    refuse_attention(r, LB_E_ARG, "cap is -1", q, k, k)->soft_cap = -1;
    refuse_attention(r, LB_E_SHAPE, "(3,5)|3 axes", LB_SHAPE(3, 5), k, k);
    refuse_attention(r, LB_E_SHAPE, "(4,3,5)|(1,2,7,5)", q,
                     LB_SHAPE(1, 2, 7, 5), k);
    refuse_attention(r, LB_E_SHAPE, "(2,7,5)|(2,6,5)", q, k, LB_SHAPE(2, 6, 5));
    refuse_attention(r, LB_E_SHAPE, "(2,7,4)", q, LB_SHAPE(2, 7, 4), k);
    refuse_attention(r, LB_E_SHAPE, "4 heads|3", q, LB_SHAPE(3, 7, 5),
                     LB_SHAPE(3, 7, 5));
    refuse_attention(r, LB_E_SHAPE, "4 heads|0", q, LB_SHAPE(0, 7, 5),
                     LB_SHAPE(0, 7, 5));
    static const char *const say[] = {"q is i32", "k is i32", "v is i32"};
    for (int i = 0; i < 3; i++) {
        refuse(r, LB_E_DTYPE, say[i])->attention =
            (lb_attention_params){.scale = 1};
        for (int j = 0; j < 3; j++)
            with(r, i == j ? LB_I32 : LB_F32, j ? k : q);
        with(r, LB_I32, scalar);
    }
    refuse2(r, LB_E_DTYPE, "valid|f32", q, k)->attention.scale = 1;
    with(r, LB_F32, k);
    with(r, LB_F32, scalar);
    refuse2(r, LB_E_SHAPE, "(1)|(4,3,5)", q, k)->attention.scale = 1;
    with(r, LB_F32, k);
    with(r, LB_I32, LB_SHAPE(1));
    refuse_attention(r, LB_E_NOMEM, "out of memory", LB_SHAPE(2, BIG, 1),
                     LB_SHAPE(2, 1, 1), LB_SHAPE(2, 1, 1));
}

/* clang-format off */
static const struct {
    const char *prim;
    void (*make)(rows *);
} makers[] = {
    {"convert_element_type", convert}, {"copy", copy},
    {"ste", ste},                 {"bitcast_convert", bitcast},
    {"transpose", transpose},     {"broadcast_in_dim", broadcast},
    {"slice", slice},             {"reverse", reverse},
    {"reshape", reshape},         {"concatenate", concatenate},
    {"pad", pad},                 {"dynamic_slice", dynamic_slice},
    {"dynamic_update_slice", dynamic_update_slice},
    {"gather", gather_only},      {"scatter_add", scatter_add},
    {"reduce_sum", reduce},       {"reduce_prod", reduce},
    {"reduce_max", reduce},       {"reduce_min", reduce},
    {"reduce_and", reduce},       {"reduce_or", reduce},
    {"argmax", arg},              {"argmin", arg},
    {"dot_general", dot},         {"conv_general_dilated", conv},
    {"iota", iota},               {"random_bits", random_of},
    {"random_normal", random_of}, {"random_uniform", random_uniform},
    {"random_permutation", random_permutation},
    {"integer_pow", integer_pow}, {"select", select_rows},
    {"rope", rope},               {"attention", attention},
    {"quantize", quantize},       {"quantize_scales", quantize_scales},
    {"softmax", softmax},         {"log_softmax", softmax},
    {"rms_norm", rms_norm},       {"layer_norm", layer_norm},
};
/* clang-format on */

int error_rows_of(const char *prim, error_row row[ERROR_ROWS])
{
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        if (strcmp(makers[i].prim, prim) != 0) continue;
        rows r = {.row = row, .prim = makers[i].prim};
        makers[i].make(&r);
        return r.n;
    }
    return 0;
}
