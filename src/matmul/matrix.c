/* matrix.c - blocks of matrices out of any view of any format.
 *
 * A leaf in the very type is used where it lies. Everything else is read in
 * boxes: one, where rows and depth are single axes, which is the rule, else
 * one for each piece of the inner axis.
 */
#include "matmul/matrix.h"

#include "core/core.h"
#include "kernels/convert.h"

/* The bits of integers are multiplied as u64, whatever they are. */
static bool same_bits(lb_ctype natural, lb_ctype type)
{
    return natural == type || (natural == LB_C_I64 && type == LB_C_U64);
}

static bool is_float(lb_ctype c)
{
    return c == LB_C_F32 || c == LB_C_F64;
}

/* Decoded as stored: the dtype of a packed array rounds reads, not products. */
static bool is_packed(const lb_array *a)
{
    return !a->store->data && a->store->ctype == LB_C_F32 &&
           (a->dtype == LB_BF16 || a->dtype == LB_F16);
}

/* A plane whose rows are runs of stored ones, in f32: what products read most,
 * and in small pieces. */
static bool is_runs(const lb_array *v, lb_ctype type)
{
    const lb_store *s = v->store;
    if (type != LB_C_F32 || lb_ctype_of(v->dtype) != type || s->data ||
        s->ctype != type || s->shape.rank == 0 || v->shape.rank != 2 ||
        v->stride[1] != 1 || v->shape.dim[1] > LB_RUN)
        return false;
    const int64_t length = s->shape.dim[s->shape.rank - 1];
    return v->offset % length + v->shape.dim[1] <= length &&
           (v->shape.dim[0] == 1 || v->stride[0] % length == 0);
}

static void read_runs(const lb_cpu *cpu, const lb_array *v, float *to)
{
    const int64_t rows = v->shape.dim[0], n = v->shape.dim[1];
    for (int64_t r = 0; r < rows; r++)
        v->store->fmt->decode(cpu, v->store, v->offset + r * v->stride[0], n,
                              to + r * n);
}

/* All of a view, in the type. */
static void read_view(const lb_cpu *cpu, const lb_array *v, lb_ctype type,
                      char *to)
{
    const int64_t zero[LB_MAX_RANK] = {0};
    const lb_ctype natural = lb_ctype_of(v->dtype);
    if (is_runs(v, type)) {
        read_runs(cpu, v, (float *)(void *)to);
        return;
    }
    if (same_bits(natural, type) || (is_float(natural) && type == LB_C_F64)) {
        lb_tile_read(cpu, v, zero, v->shape.dim,
                     is_float(natural) ? type : natural, to);
        return;
    }
    uint64_t run[LB_RUN];
    const int64_t size = lb_shape_size(&v->shape);
    for (int64_t i = 0, n; i < size; i += n) {
        n = lb_min_i64(LB_RUN, size - i);
        lb_tile_read_flat(cpu, v, i, n, natural, run);
        lb_convert_run(natural, run, type, n, to);
        to += (size_t)n * lb_ctype_size(type);
    }
}

void lb_line_read(const lb_cpu *cpu, const lb_array *a, int64_t at,
                  int64_t stride, int64_t n, lb_ctype type, void *to)
{
    lb_array v = lb_plane(a, at, 1, 0, n, stride);
    if (is_packed(a)) v.dtype = LB_F32;
    read_view(cpu, &v, type, to);
}

/* x-range by y-range, y inside, to a tile. */
static void read_block(const lb_cpu *cpu, const lb_matrix *m, int64_t first,
                       const lb_dims *x, int64_t x0, int64_t xn,
                       const lb_dims *y, int64_t y0, int64_t yn, char *to)
{
    const lb_ctype type = m->source.type;
    const int xl = x->n - 1, yl = y->n - 1;
    for (int64_t i = 0, xm; i < xn; i += xm) {
        xm = y->n > 1 ? 1
                      : lb_min_i64(xn - i, x->dim[xl] - (x0 + i) % x->dim[xl]);
        const int64_t at = first + lb_dims_offset(x, x0 + i);
        for (int64_t j = 0, ym; j < yn; j += ym) {
            ym = lb_min_i64(yn - j, y->dim[yl] - (y0 + j) % y->dim[yl]);
            lb_array v = lb_plane(m->a, at + lb_dims_offset(y, y0 + j), xm,
                                  x->stride[xl], ym, y->stride[yl]);
            if (is_packed(m->a)) v.dtype = LB_F32;
            read_view(cpu, &v, type,
                      to + (size_t)(i * yn + j) * lb_ctype_size(type));
        }
    }
}

static lb_block get(const lb_source *s, const lb_cpu *cpu, int64_t batch,
                    int64_t r, int64_t m, int64_t k, int64_t kc, void *tmp)
{
    const lb_matrix *x = (const lb_matrix *)(const void *)s;
    const int64_t at = lb_dims_offset(&x->batch, batch);
    if (s->in_place) {
        const int64_t e = at + r * s->rs + k * s->ks;
        return (lb_block){(const char *)lb_elements(x->a) +
                              e * (int64_t)lb_ctype_size(s->type),
                          s->rs, s->ks};
    }
    if (s->across) {
        read_block(cpu, x, at, &x->depth, k, kc, &x->row, r, m, tmp);
        return (lb_block){tmp, 1, m};
    }
    read_block(cpu, x, at, &x->row, r, m, &x->depth, k, kc, tmp);
    return (lb_block){tmp, kc, 1};
}

void lb_matrix_end(lb_matrix *m)
{
    const lb_dtype dtype = m->a->dtype;
    const lb_ctype type = m->source.type;
    const int64_t rs = m->row.stride[m->row.n - 1];
    const int64_t ks = m->depth.stride[m->depth.n - 1];
    m->source.get = get;
    m->source.matrix = m;
    m->source.in_place = lb_elements(m->a) &&
                         same_bits(lb_ctype_of(dtype), type) &&
                         lb_dtype_size(dtype) == lb_ctype_size(type) &&
                         m->row.n == 1 && m->depth.n == 1;
    m->source.rs = rs;
    m->source.ks = ks;
    m->source.across = lb_distance(rs) < lb_distance(ks);
}
