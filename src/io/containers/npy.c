/* npy.c - numpy's file of one array: the header (npy_header.h), then the
 * elements. Trailing bytes are ignored, as in numpy. */
#include <string.h>

#include "io/containers/npy_header.h"

/* The array is named after the file, without directory and ".npy". */
static char *name_of(lb_ctx *cx, lb_reader *r)
{
    const char *path = r->file[0]->path, *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t n = strlen(name);
    if (n > 4 && strcmp(name + n - 4, ".npy") == 0) n -= 4;
    return lb_arena_text(cx, &r->arena, name, n);
}

static bool npy_open(lb_ctx *cx, lb_reader *r)
{
    lb_infile *f = r->file[0];
    uint8_t head[LB_NPY_PREFIX], literal[LB_NPY_LITERAL_BYTES];
    const size_t n = f->size < sizeof head ? (size_t)f->size : sizeof head;
    size_t begin = 0, length = 0;
    int major = 0;
    if (!lb_infile_read(cx, f, 0, n, head) ||
        !lb_npy_prefix(cx, f, "array", head, n, &begin, &length, &major) ||
        !lb_infile_read(cx, f, begin, length, literal))
        return false;
    lb_tensor *t = lb_arena_alloc(cx, &r->arena, 1, sizeof *t);
    if (!t) return false;
    t->name = name_of(cx, r);
    if (!t->name ||
        !lb_npy_parse(cx, f, "array", &r->arena, literal, length, major, t))
        return false;
    t->begin = begin + length;
    if (!lb_infile_has(f, t->begin, t->size))
        return lb_refuse(
            cx, f,
            "an array of %llu bytes at offset %llu in a file of %llu bytes",
            (unsigned long long)t->size, (unsigned long long)t->begin,
            (unsigned long long)f->size);
    r->tensor = t;
    r->n_tensors = 1;
    return true;
}

static bool npy_compose(lb_ctx *cx, lb_writer *w)
{
    if (w->n_tensors != 1)
        return lb_fail(cx, LB_E_UNSUPPORTED,
                       "cannot write %lld arrays to an npy file (one array "
                       "only); use npz",
                       (long long)w->n_tensors);
    if (w->n_meta)
        return lb_fail(cx, LB_E_UNSUPPORTED,
                       "cannot write %lld metadata value%s to an npy file; use "
                       "npz",
                       (long long)w->n_meta, w->n_meta == 1 ? "" : "s");
    if (!lb_npy_suits(cx, &w->tensor[0])) return false;
    lb_npy_compose(&w->header, &w->tensor[0]);
    w->tensor[0].begin = w->header.n;
    w->total = w->tensor[0].size + w->header.n;
    if (w->total > INT64_MAX)
        return lb_fail(cx, LB_E_SIZE, "the file would exceed %lld bytes",
                       (long long)INT64_MAX);
    return true;
}

const lb_container lb_container_npy = {
    .name = "npy",
    .coding = lb_npy_types,
    .fortran = true,
    .probe = lb_npy_probe,
    .open = npy_open,
    .compose = npy_compose,
};
