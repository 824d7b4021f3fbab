/* read.c - reading arrays as elements of a given dtype.
 *
 * Rows of the first axes are converted and copied a few megabytes at a time, so
 * that there is never a second copy of the whole array.
 */
#include "core/core.h"

enum { PIECE = 1 << 20 }; /* elements, approximately */

/* Converts a view of rows [lo, lo + n) of the first axis to dst. */
static bool read_rows(lb_ctx *cx, const lb_array *a, int64_t lo, int64_t n,
                      lb_dtype dtype, void *dst)
{
    lb_enter(cx);
    lb_array *rows = lb_view(cx, a);
    if (rows && a->shape.rank) {
        rows->shape.dim[0] = n;
        rows->offset += lo * rows->stride[0];
    }
    const size_t size = rows ? (size_t)lb_size(rows) * lb_dtype_size(dtype) : 0;
    rows = rows ? lb_as(cx, rows, dtype) : NULL;
    const bool ok = rows && lb_read(cx, rows, dst, size);
    lb_leave(cx);
    return ok;
}

/* Leading axes of size 1 have only one row. */
static lb_array without_ones(const lb_array *a)
{
    lb_array b = *a;
    while (b.shape.rank > 1 && b.shape.dim[0] == 1) {
        b.shape.rank--;
        for (int k = 0; k < b.shape.rank; k++) {
            b.shape.dim[k] = b.shape.dim[k + 1];
            b.stride[k] = b.stride[k + 1];
        }
    }
    return b;
}

static bool read_as(lb_ctx *cx, const char *who, lb_array *a, lb_dtype dtype,
                    void *dst, int64_t n)
{
    if (!cx || !a) return lb_fail(cx, LB_E_NULL, "%s: the array is NULL", who);
    if (n != lb_size(a))
        return lb_fail(cx, LB_E_SIZE, "%s: %s%s has %lld elements, not %lld",
                       who, lb_dtype_name(a->dtype), LB_SHOW(&a->shape),
                       (long long)lb_size(a), (long long)n);
    if (!n) return true;
    if (!dst) return lb_fail(cx, LB_E_NULL, "%s: dst is NULL", who);
    lb_enter(cx);
    bool ok = (a = lb_here(cx, a)) != NULL;
    if (ok) {
        const lb_array b = without_ones(a);
        const int64_t rows = b.shape.rank ? b.shape.dim[0] : 1, row = n / rows;
        const int64_t step = row < PIECE ? PIECE / row : 1;
        char *to = dst;
        for (int64_t i = 0; i < rows && ok; i += step) {
            const int64_t m = lb_min_i64(step, rows - i);
            ok = read_rows(cx, &b, i, m, dtype, to);
            to += (size_t)(m * row) * lb_dtype_size(dtype);
        }
    }
    lb_leave(cx);
    return ok;
}

bool lb_read_f32(lb_ctx *cx, lb_array *a, float *dst, int64_t n)
{
    return read_as(cx, "read_f32", a, LB_F32, dst, n);
}

bool lb_read_f64(lb_ctx *cx, lb_array *a, double *dst, int64_t n)
{
    return read_as(cx, "read_f64", a, LB_F64, dst, n);
}

bool lb_read_i64(lb_ctx *cx, lb_array *a, int64_t *dst, int64_t n)
{
    return read_as(cx, "read_i64", a, LB_I64, dst, n);
}
