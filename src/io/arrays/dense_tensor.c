/* dense_tensor.c - loads a tensor as a dense array.
 *
 * Zero-copy if the bytes are mapped, aligned and of the right byte order: then
 * the array holds a reference to the file, whose map stays as long as the array
 * does.
 */
#include <string.h>

#include "core/core.h"
#include "io/arrays/slices.h"

/* Files are little-endian. */
static bool is_little_endian(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 1;
}

bool lb_tensor_shape(lb_ctx *cx, const lb_file *f, const lb_tensor *t,
                     lb_shape *shape)
{
    if (t->rank > LB_MAX_RANK)
        return lb_fail(cx, LB_E_UNSUPPORTED,
                       "%s: '%s' has rank %d; the maximum is %d",
                       LB_PATH(f->r->file[t->file]->path), LB_NAME(t->name),
                       t->rank, LB_MAX_RANK);
    *shape = lb_shape_make(t->rank, t->dim);
    return lb_shape_check(cx, LB_NAME(t->name), shape);
}

/* ---- bytes --------------------------------------------------------------- */

static bool check_bools(lb_ctx *cx, const lb_file *f, const lb_tensor *t,
                        const uint8_t *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (at[i] > 1)
            return lb_refuse(
                cx, f->r->file[t->file],
                "tensor '%s' has type bool, but its byte %zu is %d",
                LB_NAME(t->name), i, at[i]);
    return true;
}

static void release(void *file)
{
    lb_infile_unref(file);
}

/* The mapped bytes, if the array can use them in place. Bools are copied: a map
 * might change after it was checked. */
static const void *place_of(const lb_file *f, const lb_tensor *t,
                            uint64_t first, size_t n, lb_dtype dtype)
{
    lb_infile *file = f->r->file[t->file];
    if (t->packed || t->swap || !is_little_endian() || dtype == LB_BOOL)
        return NULL;
    if (!file->map ||
        (uintptr_t)(file->map + t->begin + first) % lb_dtype_size(dtype))
        return NULL;
    return lb_infile_at(file, t->begin + first, n);
}

static lb_array *in_place(lb_ctx *cx, lb_infile *file, lb_dtype dtype,
                          const lb_shape *shape, const void *at)
{
    lb_array *a = lb_wrap(cx, dtype, *shape, at, release, lb_infile_ref(file));
    if (!a) lb_infile_unref(file);
    return a;
}

lb_array *lb_tensor_part(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                         uint64_t first, lb_dtype dtype, const lb_shape *shape)
{
    if (!lb_shape_check(cx, LB_NAME(t->name), shape)) return NULL;
    const size_t n = (size_t)lb_shape_size(shape) * lb_dtype_size(dtype);
    if (first > t->size || n > t->size - first) {
        lb_refuse(cx, f->r->file[t->file],
                  "tensor '%s' has %llu bytes: cannot read %zu at offset %llu",
                  LB_NAME(t->name), (unsigned long long)t->size, n,
                  (unsigned long long)first);
        return NULL;
    }
    const void *at = n ? place_of(f, t, first, n, dtype) : NULL;
    if (at) return in_place(cx, f->r->file[t->file], dtype, shape, at);
    lb_array *a = lb_dense(cx, dtype, shape);
    if (!a || !lb_reader_read(cx, f->r, t, first, n, a->store->data))
        return NULL;
    if (dtype == LB_BOOL && !check_bools(cx, f, t, a->store->data, n))
        return NULL;
    return a;
}

/* ---- boxes --------------------------------------------------------------- */

typedef struct reading {
    lb_ctx *cx;
    lb_file *f;
    const lb_tensor *t;
    size_t size; /* size of an element */
    uint8_t *to;
} reading;

static bool read_run(void *user, int64_t first, int64_t at, int64_t n)
{
    const reading *r = user;
    return lb_reader_read(r->cx, r->f->r, r->t, (uint64_t)first * r->size,
                          (size_t)n * r->size, r->to + (size_t)at * r->size);
}

static bool note_run(void *user, int64_t first, int64_t at, int64_t n)
{
    int64_t *run = user;
    if (at) return false; /* a second run */
    run[0] = first;
    run[1] = n;
    return true;
}

lb_array *lb_array_cut(lb_ctx *cx, lb_array *a, const lb_cut *box)
{
    lb_array *out = NULL;
    int64_t hi[LB_MAX_RANK];
    if (!a || lb_cut_is_all(box)) return a;
    for (int k = 0; k < box->of.rank; k++)
        hi[k] = box->start[k] + box->count[k];
    lb_array *view = lb_slice(cx, a, box->start, hi, NULL);
    if (!view) return NULL;
    switch (lb_pack(cx, view, &out)) {
    case LB_DONE:
        return out;
    case LB_FAILED:
        return NULL;
    case LB_DECLINED:
        break;
    }
    return lb_bind(cx, lb_find_primitive(cx, "copy"), 1, &view, NULL);
}

/* Compares the size given by a descriptor with the tensor's. */
static bool check_size(lb_ctx *cx, const lb_file *f, const lb_tensor *t,
                       size_t size, const lb_shape *of)
{
    if (!lb_shape_check(cx, LB_NAME(t->name), of)) return false;
    const uint64_t want = (uint64_t)lb_shape_size(of) * size;
    return want == t->size ||
           lb_refuse(cx, f->r->file[t->file],
                     "tensor '%s' has %llu bytes, but shape %s needs %llu",
                     LB_NAME(t->name), (unsigned long long)t->size, LB_SHOW(of),
                     (unsigned long long)want);
}

lb_array *lb_tensor_cut(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                        lb_dtype dtype, const lb_cut *c)
{
    const lb_shape shape = lb_cut_shape(c);
    const size_t size = lb_dtype_size(dtype);
    int64_t run[2] = {0, 0};
    if (!check_size(cx, f, t, size, &c->of)) return NULL;
    if (t->packed)
        return lb_array_cut(cx, lb_tensor_part(cx, f, t, 0, dtype, &c->of), c);
    if (lb_cut_runs(c, note_run, run)) /* at most one run */
        return lb_tensor_part(cx, f, t, (uint64_t)run[0] * size, dtype, &shape);
    lb_array *a = lb_dense(cx, dtype, &shape);
    if (!a) return NULL;
    reading r = {cx, f, t, size, a->store->data};
    if (!lb_cut_runs(c, read_run, &r)) return NULL;
    if (dtype == LB_BOOL &&
        !check_bools(cx, f, t, a->store->data, (size_t)lb_size(a)))
        return NULL;
    return a;
}

/* ---- tensors ------------------------------------------------------------- */

lb_array *lb_rows_of(lb_ctx *cx, lb_array *a, lb_rows rows)
{
    if (!a || rows.hi < 0 || (rows.lo == 0 && rows.hi == lb_dim(a, 0)))
        return a;
    int64_t lo[LB_MAX_RANK] = {rows.lo}, hi[LB_MAX_RANK];
    for (int k = 0; k < lb_rank(a); k++)
        hi[k] = k ? lb_dim(a, k) : rows.hi;
    return lb_slice(cx, a, lo, hi, NULL);
}

/* The first axis varies fastest (Fortran order): the stored array is the
 * transpose. */
static lb_array *load_turned(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                             const lb_shape *shape, lb_rows rows)
{
    lb_shape stored = *shape;
    for (int k = 0; k < shape->rank; k++)
        stored.dim[k] = shape->dim[shape->rank - 1 - k];
    lb_array *a = lb_tensor_part(cx, f, t, 0, t->dtype, &stored);
    return lb_rows_of(cx, lb_transpose(cx, a, NULL), rows);
}

lb_array *lb_tensor_load(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                         lb_rows rows)
{
    lb_shape shape = {0};
    if (!lb_tensor_shape(cx, f, t, &shape)) return NULL;
    if (!t->dtype) {
        lb_fail(cx, LB_E_UNSUPPORTED, "%s: '%s' has unsupported type %s",
                LB_PATH(f->r->file[t->file]->path), LB_NAME(t->name),
                LB_NAME(t->type));
        return NULL;
    }
    if (t->fortran) return load_turned(cx, f, t, &shape, rows);
    uint64_t first = 0;
    if (rows.hi >= 0) {
        if (shape.dim[0])
            first = t->size / (uint64_t)shape.dim[0] * (uint64_t)rows.lo;
        shape.dim[0] = rows.hi - rows.lo;
    }
    return lb_tensor_part(cx, f, t, first, t->dtype, &shape);
}

/* ---- groups -------------------------------------------------------------- */

bool lb_name_ends(const char *name, const char *suffix, size_t *n)
{
    const size_t all = strlen(name), end = strlen(suffix);
    if (all <= end || strcmp(name + all - end, suffix) != 0) return false;
    *n = all - end;
    return true;
}

bool lb_shape_count(const lb_shape *shape, int64_t *n)
{
    if (!lb_shape_check(NULL, "", shape)) return false;
    *n = lb_shape_size(shape);
    return true;
}

lb_dtype lb_dtype_of_torch(const char *name)
{
    static const struct {
        const char *name;
        lb_dtype dtype;
    } known[] = {{"float32", LB_F32},
                 {"float16", LB_F16},
                 {"bfloat16", LB_BF16},
                 {"float64", LB_F64}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) return known[i].dtype;
    return LB_NO_DTYPE;
}

bool lb_tensor_want(lb_ctx *cx, const lb_file *f, const char *array,
                    const char *what, const lb_tensor *t, lb_dtype dtype,
                    const lb_shape *shape)
{
    if (!t)
        return lb_refuse(cx, f->r->file[0], "'%s' has no tensor %s",
                         LB_NAME(array), what);
    const lb_shape got = lb_shape_make(t->rank, t->dim);
    if ((!dtype || t->dtype == dtype) && !t->fortran &&
        t->rank <= LB_MAX_RANK && lb_shape_equal(&got, shape))
        return true;
    return lb_refuse(cx, f->r->file[t->file],
                     "'%s' needs %s with type %s and shape %s, but it is %s %s",
                     LB_NAME(array), what, dtype ? lb_dtype_name(dtype) : "any",
                     LB_SHOW(shape), LB_NAME(t->type),
                     t->rank <= LB_MAX_RANK ? LB_SHOW(&got)
                                            : "of too high rank");
}
