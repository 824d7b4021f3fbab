/* array.c - stores and views: creation, reference counts, access.
 *
 * A dense store, its first view and its elements are one block, so a result
 * costs one allocation. The block is freed with the store: later views may
 * outlive the first one.
 */
#include <math.h>
#include <string.h>

#include "core/core.h"

/* The only format that the core knows: the leaf. */
extern const lb_format lb_format_dense;

/* An allocated view with its reference count. */
typedef struct {
    int refs; /* atomic */
    lb_heap *heap;
    size_t got;        /* 0: in the block of its store */
    lb_origin *origin; /* NULL without lb_options.debug */
    lb_array a;
} counted;

/* A dense store. Its elements follow, aligned to 64. */
typedef struct {
    lb_store store;
    counted first; /* unused with lb_options.debug */
} dense_block;
static const size_t header = (sizeof(dense_block) + 63) / 64 * 64;

static counted *counted_of(lb_array *a)
{
    return (counted *)(void *)((char *)a - offsetof(counted, a));
}

static void store_unref(lb_store *s)
{
    if (__atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL)) return;
    for (int p = 0; p < LB_MAX_PARTS; p++)
        lb_unref(s->part[p].a);
    if (s->done) s->done(s->user);
    lb_heap_free(s->heap, s, s->heap_size);
}

lb_array *lb_ref(lb_array *a)
{
    if (a) __atomic_add_fetch(&counted_of(a)->refs, 1, __ATOMIC_RELAXED);
    return a;
}

void lb_unref(lb_array *a)
{
    if (!a) return;
    counted *c = counted_of(a);
    if (__atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL)) return;
    lb_store *s = a->store;
    if (!c->got) {
        store_unref(s);
        return;
    }
    const bool stays = c->origin && lb_origin_end(c->origin);
    if (s && s != (stays ? a->store : NULL)) store_unref(s);
    if (!stays) lb_heap_free(c->heap, c, c->got);
}

/* A view without a store, not yet owned by any scope. */
static lb_array *blank(lb_ctx *cx)
{
    size_t got;
    counted *c = lb_heap_alloc(cx->heap, sizeof *c, &got);
    if (!c) {
        lb_fail(cx, LB_E_NOMEM, "out of memory");
        return NULL;
    }
    *c = (counted){.refs = 1, .heap = cx->heap, .got = got};
    if (!cx->debug || (c->origin = lb_origin_new(cx, &c->a, c, got)))
        return &c->a;
    lb_heap_free(cx->heap, c, got);
    return NULL;
}

lb_array *lb_view(lb_ctx *cx, const lb_array *of)
{
    lb_array *a = blank(cx);
    if (!a) return NULL;
    *a = *of;
    __atomic_add_fetch(&a->store->refs, 1, __ATOMIC_RELAXED);
    return lb_own(cx, a);
}

lb_array *lb_view_store(lb_ctx *cx, lb_store *store, lb_dtype dtype)
{
    lb_array *a = blank(cx);
    if (!a) {
        store_unref(store);
        return NULL;
    }
    a->store = store;
    a->dtype = dtype;
    a->shape = store->shape;
    lb_row_major(&a->shape, a->stride);
    return lb_own(cx, a);
}

/* The plain view of a new dense store; room: bytes to allocate for elements. */
static lb_array *leaf(lb_ctx *cx, lb_dtype dtype, const lb_shape *shape,
                      size_t room)
{
    size_t size, got;
    dense_block *b = lb_add_size(header, room, &size)
                         ? lb_heap_alloc(cx->heap, size, &got)
                         : NULL;
    if (!b) {
        lb_fail(cx, LB_E_NOMEM, "out of memory (%zu bytes for %s%s)", room,
                lb_dtype_name(dtype), LB_SHOW(shape));
        return NULL;
    }
    lb_array *a = &b->first.a;
    if (cx->debug && !(a = blank(cx))) { /* it may outlive the block */
        lb_heap_free(cx->heap, b, got);
        return NULL;
    }
    if (!cx->debug) b->first = (counted){.refs = 1, .heap = cx->heap};
    lb_store *s = &b->store;
    *s = (lb_store){
        .refs = 1,
        .heap = cx->heap,
        .heap_size = got,
        .fmt = &lb_format_dense,
        .shape = *shape,
        .ctype = lb_ctype_of(dtype),
        .elem = dtype,
        .data = (char *)b + header,
        .data_size = (size_t)lb_shape_size(shape) * lb_dtype_size(dtype),
    };
    a->store = s;
    a->dtype = dtype;
    a->shape = *shape;
    lb_row_major(shape, a->stride);
    return lb_own(cx, a);
}

lb_array *lb_dense(lb_ctx *cx, lb_dtype dtype, const lb_shape *shape)
{
    lb_room *room = &cx->room;
    if (room->shape && room->dtype == dtype &&
        lb_shape_equal(room->shape, shape)) {
        lb_array *a = leaf(cx, dtype, shape, 0);
        if (!a) return NULL;
        a->store->data = room->data;
        a->store->done = room->done;
        a->store->user = room->user;
        room->shape = NULL;
        return a;
    }
    return leaf(cx, dtype, shape,
                (size_t)lb_shape_size(shape) * lb_dtype_size(dtype));
}

static bool check_new(lb_ctx *cx, const char *who, lb_dtype dtype,
                      const lb_shape *shape)
{
    if (!lb_dtype_size(dtype))
        return lb_fail(cx, LB_E_DTYPE, "%s: %d is not a dtype", who,
                       (int)dtype);
    return lb_shape_check(cx, who, shape);
}

/* Names the function for lb_options.debug, unless an operation calls it. */
static lb_array *made_by(lb_ctx *cx, const char *who, lb_dtype dtype,
                         const lb_shape *shape, size_t room)
{
    const char *was = cx->making;
    if (!was) cx->making = who;
    lb_array *a = leaf(cx, dtype, shape, room);
    cx->making = was;
    return a;
}

lb_array *lb_from(lb_ctx *cx, lb_dtype dtype, lb_shape shape, const void *data)
{
    if (!cx || !check_new(cx, "from", dtype, &shape)) return NULL;
    if (!data && lb_shape_size(&shape)) {
        lb_fail(cx, LB_E_NULL, "from: data is NULL for shape %s",
                LB_SHOW(&shape));
        return NULL;
    }
    lb_array *a = made_by(cx, "from", dtype, &shape,
                          (size_t)lb_shape_size(&shape) * lb_dtype_size(dtype));
    if (!a || !a->store->data_size) return a;
    memcpy(a->store->data, data, a->store->data_size);
    if (dtype == LB_BOOL) { /* normalize: any byte except 0 is true */
        uint8_t *b = a->store->data;
        for (size_t i = 0; i < a->store->data_size; i++)
            b[i] = b[i] != 0;
    }
    return a;
}

/* Index of the first byte that is neither 0 nor 1; -1 if there is none. */
static int64_t not_bool(const void *data, const lb_shape *shape)
{
    const uint8_t *b = data;
    const int64_t n = lb_shape_size(shape);
    for (int64_t i = 0; i < n; i++)
        if (b[i] > 1) return i;
    return -1;
}

lb_array *lb_wrap(lb_ctx *cx, lb_dtype dtype, lb_shape shape, const void *data,
                  void (*done)(void *user), void *user)
{
    if (!cx || !check_new(cx, "wrap", dtype, &shape)) return NULL;
    if (!data || (uintptr_t)data % lb_dtype_size(dtype)) {
        lb_fail(cx, data ? LB_E_ARG : LB_E_NULL,
                "wrap: data is %s for %zu-byte elements",
                data ? "not aligned" : "NULL", lb_dtype_size(dtype));
        return NULL;
    }
    const int64_t bad = dtype == LB_BOOL ? not_bool(data, &shape) : -1;
    if (bad >= 0) {
        lb_fail(cx, LB_E_ARG, "wrap: byte %lld of bool%s is %d, not 0 or 1",
                (long long)bad, LB_SHOW(&shape), ((const uint8_t *)data)[bad]);
        return NULL;
    }
    lb_array *a = made_by(cx, "wrap", dtype, &shape, 0);
    if (!a) return NULL;
    memcpy(&a->store->data, &data, sizeof data); /* cast away const; never
                                                  * written */
    a->store->done = done;
    a->store->user = user;
    return a;
}

static lb_array *weak(lb_array *a)
{
    if (a) a->weak = true;
    return a;
}

lb_array *lb_scalar(lb_ctx *cx, double value)
{
    return weak(lb_from(cx, LB_F64, (lb_shape){0}, &value));
}

lb_array *lb_scalar_int(lb_ctx *cx, int64_t value)
{
    const int32_t i = (int32_t)value;
    const bool fits = i == value;
    return weak(lb_from(cx, fits ? LB_I32 : LB_I64, (lb_shape){0},
                        fits ? (const void *)&i : (const void *)&value));
}

/* ---- overwriting --------------------------------------------------------- */

const char *lb_shared_why(const lb_array *a, int refs)
{
    const counted *c = (const void *)((const char *)a - offsetof(counted, a));
    const lb_store *s = a->store;
    if (__atomic_load_n(&c->refs, __ATOMIC_ACQUIRE) > refs)
        return "it has another holder";
    if (__atomic_load_n(&s->refs, __ATOMIC_ACQUIRE) > 1)
        return "a view of it exists";
    if (s->data && s->data != (const char *)s + header)
        return "its memory was not allocated by the context";
    const char *why =
        s->done && !s->sharding ? "its memory is managed by others" : NULL;
    for (int p = 0; p < LB_MAX_PARTS && !why; p++)
        if (s->part[p].a) why = lb_shared_why(s->part[p].a, 1);
    return why;
}

/* ---- access -------------------------------------------------------------- */

int lb_rank(const lb_array *a)
{
    return a ? a->shape.rank : -1;
}

int64_t lb_dim(const lb_array *a, int axis)
{
    if (!a || axis < -a->shape.rank || axis >= a->shape.rank) return -1;
    return a->shape.dim[axis < 0 ? axis + a->shape.rank : axis];
}

lb_shape lb_shape_of(const lb_array *a)
{
    return a ? a->shape : (lb_shape){.rank = -1};
}

int64_t lb_size(const lb_array *a)
{
    return a ? lb_shape_size(&a->shape) : -1;
}

lb_dtype lb_dtype_of(const lb_array *a)
{
    return a ? a->dtype : LB_NO_DTYPE;
}

/* If a is sharded: the format of its slice. */
const char *lb_format_of(const lb_array *a)
{
    if (a && a->store->sharding) a = a->store->part[0].a;
    return a ? a->store->fmt->name : "";
}

bool lb_is_alive(lb_ctx *cx, const char *who, const lb_array *a)
{
    if (!a->store->traced || !a->store->traced->dead) return true;
    const counted *c = (const void *)((const char *)a - offsetof(counted, a));
    const char *by = lb_origin_name(c->origin);
    return lb_fail(cx, LB_E_ARG,
                   "%s: %s%s%s%s is used after its scope was closed, or after "
                   "lb_drop (call lb_keep before lb_leave, or hold a reference "
                   "with lb_ref)",
                   who, lb_dtype_name(a->dtype), LB_SHOW(&a->shape),
                   by ? " made by " : "", by ? by : "");
}

bool lb_has_elements(lb_ctx *cx, const char *who, const lb_array *a)
{
    const lb_traced *t = a->store->traced;
    if (!t) return true;
    if (!lb_is_alive(cx, who, a)) return false;
    return lb_fail(cx, LB_E_UNSUPPORTED,
                   "%s: the elements of %s%s (%s%s) are not known while the "
                   "function is compiled; return the array and read it after "
                   "lb_run",
                   who, lb_dtype_name(a->dtype), LB_SHOW(&a->shape),
                   t->made_by ? "result of " : "an argument",
                   t->made_by ? t->made_by : "");
}

lb_array *lb_here(lb_ctx *cx, lb_array *a)
{
    if (a && !lb_has_elements(cx, "read", a)) return NULL;
    const struct lb_sharding *s = a ? a->store->sharding : NULL;
    return s ? s->gather(cx, a) : a;
}

lb_array *lb_cut_like(lb_ctx *cx, lb_array *a, const lb_array *like, bool cheap)
{
    if (!a) return NULL;
    const lb_traced *t =
        a->store->traced ? a->store->traced : like->store->traced;
    if (t) return t->like(cx, a, like, cheap);
    const struct lb_sharding *s =
        like->store->sharding ? like->store->sharding : a->store->sharding;
    return s ? s->like(cx, a, like, cheap) : a;
}

size_t lb_nbytes(const lb_array *a)
{
    if (!a) return 0;
    size_t n = a->store->data_size;
    for (int p = 0; p < LB_MAX_PARTS; p++)
        n += lb_nbytes(a->store->part[p].a);
    return n;
}

const void *lb_data(const lb_array *a)
{
    if (!a || !a->store->data || a->dtype != a->store->elem ||
        !lb_is_row_major(a))
        return NULL;
    return (const char *)a->store->data +
           (size_t)a->offset * lb_dtype_size(a->dtype);
}

/* Computes directly into the caller's memory, if it is aligned. */
static lb_verdict read_into(lb_ctx *cx, lb_array *a, void *dst, size_t size)
{
    const lb_prim *copy = lb_find_primitive(cx, "copy");
    if (!copy || (uintptr_t)dst % lb_dtype_size(a->dtype)) return LB_DECLINED;
    lb_enter(cx);
    lb_array *out = leaf(cx, a->dtype, &a->shape, 0);
    lb_verdict v = LB_FAILED;
    if (out) {
        out->store->data = dst;
        out->store->data_size = size;
        v = lb_bind_into(cx, copy, 1, &a, NULL, out);
    }
    lb_leave(cx);
    return v;
}

/* Rows lo <= i < hi of the first axis, as a view in the open scope. */
static lb_array *rows_of(lb_ctx *cx, const lb_array *a, int64_t lo, int64_t hi)
{
    lb_array *rows = lb_view(cx, a);
    if (!rows || !a->shape.rank) return rows;
    rows->shape.dim[0] = hi - lo;
    rows->offset += lo * rows->stride[0];
    return rows;
}

/* Reads in pieces, so that temporary results are small and stay in cache. */
static bool read_pieces(lb_ctx *cx, const lb_array *a, char *dst, size_t size)
{
    const size_t piece = (size_t)4 << 20;
    const int64_t rows = a->shape.rank ? a->shape.dim[0] : 1;
    const size_t row = size / (size_t)rows;
    const int64_t step = row < piece ? (int64_t)(piece / row) : 1;
    bool ok = true;
    for (int64_t i = 0; i < rows && ok; i += step) {
        const int64_t n = lb_min_i64(step, rows - i);
        lb_enter(cx);
        const void *data =
            lb_data(lb_materialize(cx, rows_of(cx, a, i, i + n)));
        ok = data != NULL;
        if (ok) memcpy(dst + (size_t)i * row, data, (size_t)n * row);
        lb_leave(cx);
    }
    return ok;
}

bool lb_read(lb_ctx *cx, lb_array *a, void *dst, size_t size)
{
    if (!a || !cx) return lb_fail(cx, LB_E_NULL, "read: the array is NULL");
    const size_t want = (size_t)lb_size(a) * lb_dtype_size(a->dtype);
    if (size != want)
        return lb_fail(cx, LB_E_SIZE,
                       "read: %s%s is %zu bytes, but dst has %zu",
                       lb_dtype_name(a->dtype), LB_SHOW(&a->shape), want, size);
    if (!want) return true;
    if (!dst) return lb_fail(cx, LB_E_NULL, "read: dst is NULL");
    if (!lb_has_elements(cx, "read", a)) return false;
    if (a->store->sharding) {
        lb_enter(cx);
        const bool ok = (a = lb_here(cx, a)) && lb_read(cx, a, dst, size);
        lb_leave(cx);
        return ok;
    }
    const void *data = lb_data(a);
    if (data) {
        memcpy(dst, data, want);
        return true;
    }
    const lb_verdict v = read_into(cx, a, dst, size);
    return v == LB_DECLINED ? read_pieces(cx, a, dst, size) : v == LB_DONE;
}

bool lb_read_rows(lb_ctx *cx, lb_array *a, int64_t lo, int64_t hi, void *dst,
                  size_t size)
{
    if (!a || !cx) return lb_fail(cx, LB_E_NULL, "read: the array is NULL");
    if (!a->shape.rank || lo < 0 || hi < lo || hi > a->shape.dim[0])
        return lb_fail(cx, LB_E_ARG,
                       "read: rows %lld to %lld are not in shape %s",
                       (long long)lo, (long long)hi, LB_SHOW(&a->shape));
    lb_enter(cx);
    a = lb_here(cx, a);
    lb_array *rows = a ? rows_of(cx, a, lo, hi) : NULL;
    const bool ok = rows && lb_read(cx, rows, dst, size);
    lb_leave(cx);
    return ok;
}

static bool one_element(lb_ctx *cx, const lb_array *a)
{
    if (!cx || !a) return lb_fail(cx, LB_E_NULL, "item: the array is NULL");
    if (lb_size(a) == 1) return lb_has_elements(cx, "item", a);
    return lb_fail(cx, LB_E_SHAPE, "item: shape %s has %lld elements, not 1",
                   LB_SHOW(&a->shape), (long long)lb_size(a));
}

double lb_item(lb_ctx *cx, lb_array *a)
{
    double d = NAN;
    if (!one_element(cx, a)) return d;
    lb_enter(cx);
    lb_array *f = (a = lb_here(cx, a)) ? lb_as(cx, a, LB_F64) : NULL;
    if (f) lb_tile_read_flat(&cx->cpu, f, 0, 1, LB_C_F64, &d);
    lb_leave(cx);
    return d;
}

int64_t lb_item_int(lb_ctx *cx, lb_array *a)
{
    int64_t i = 0;
    if (!one_element(cx, a)) return i;
    lb_enter(cx);
    lb_array *n = (a = lb_here(cx, a)) ? lb_as(cx, a, LB_I64) : NULL;
    if (n) lb_tile_read_flat(&cx->cpu, n, 0, 1, LB_C_I64, &i);
    lb_leave(cx);
    return i;
}

const void *lb_elements(const lb_array *a)
{
    const lb_store *s = a->store;
    if (!s->data || s->elem != a->dtype) return NULL;
    return (const char *)s->data + (size_t)a->offset * lb_dtype_size(s->elem);
}
