/* lazy_tensor.c - a tensor as an array whose data stays in the file: a format
 * whose only part holds the position in the file, and whose decoder reads from
 * there. */
#include "io/arrays/lazy_tensor.h"

#include <errno.h>
#include <string.h>

#include "core/core.h"

struct lb_paged {
    lb_infile *file;
    uint64_t begin;
    lb_dtype dtype;
    lb_store leaf; /* of a run: data is set when it is read */
    _Atomic int error;
};

/* The part's bytes are the address of the lb_paged. */
static lb_paged *paged_of(const lb_store *s)
{
    lb_paged *p;
    memcpy(&p, lb_part_bytes(s, 0), sizeof p);
    return p;
}

static void decode(const lb_cpu *cpu, const lb_store *s, int64_t first,
                   int64_t n, void *out)
{
    double run[LB_RUN]; /* of the widest type */
    lb_paged *p = paged_of(s);
    const size_t size = lb_dtype_size(p->dtype);
    const int error = lb_infile_pread(
        p->file, p->begin + (uint64_t)first * size, (size_t)n * size, run);
    if (error) {
        p->error = error;
        memset(run, 0, (size_t)n * size);
    }
    lb_store leaf = p->leaf;
    leaf.data = run;
    const lb_array view = {.dtype = p->dtype,
                           .store = &leaf,
                           .shape = lb_shape_make(1, &n),
                           .stride = {1}};
    lb_tile_read_flat(cpu, &view, 0, n, LB_C_F32, out);
}

static const lb_format format = {
    .struct_size = sizeof(lb_format),
    .name = "paged",
    .part = {{.name = "place", .raw = true}},
    .decode = decode,
};

static bool is_float(lb_dtype d)
{
    return d && (lb_ctype_of(d) == LB_C_F32 || lb_ctype_of(d) == LB_C_F64);
}

lb_array *lb_paged_open(lb_ctx *cx, lb_file *f, const lb_tensor *t,
                        lb_paged **paged)
{
    lb_shape shape = {0};
    if (!lb_tensor_shape(cx, f, t, &shape)) return NULL;
    if (!is_float(t->dtype) || t->packed || t->swap || t->fortran) {
        lb_fail(cx, LB_E_UNSUPPORTED,
                "'%s' is compressed, big-endian or in Fortran order, and too "
                "large to be read as a whole",
                LB_NAME(t->name));
        return NULL;
    }
    const int64_t n = lb_shape_size(&shape), run = LB_RUN;
    const lb_shape stored = lb_shape_make(1, &n), sample = LB_SHAPE(run);
    const lb_array *leaf = lb_dense(cx, t->dtype, &sample);
    lb_paged *p = lb_arena_alloc(cx, &f->arena, 1, sizeof *p);
    if (!leaf || !p) return NULL;
    p->file = f->r->file[t->file];
    p->begin = t->begin;
    p->dtype = t->dtype;
    p->leaf = *leaf->store;
    lb_part part[LB_MAX_PARTS] = {{.own = sizeof p}};
    part[0].a = lb_from(cx, LB_U8, LB_SHAPE(1, (int64_t)sizeof p), &p);
    if (!part[0].a) return NULL;
    *paged = p;
    return lb_reshape(cx, lb_make(cx, &format, t->dtype, 0, &stored, part),
                      shape);
}

bool lb_paged_check(lb_ctx *cx, const lb_paged *paged)
{
    if (!paged || !paged->error) return true;
    return lb_fail(cx, paged->error == ENODATA ? LB_E_CONTENT : LB_E_FILE,
                   "%s: cannot read: %s", LB_PATH(paged->file->path),
                   strerror(paged->error));
}
