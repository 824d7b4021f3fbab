/* fashion_data.c - Fashion-MNIST as Debian has it: idx files under gzip.
 *
 * An idx file is big-endian: 0, 0, the type (8: bytes), the rank, then each
 * size in 4 bytes, then the elements.
 */
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "fashion.h"

static bool bad(const char *path, const char *what)
{
    fprintf(stderr, "fashion: %s: %s\n", path, what);
    return false;
}

static int64_t big_endian(const unsigned char *p)
{
    return (int64_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

static bool read_all(gzFile f, void *to, size_t size)
{
    return size < 1u << 30 && gzread(f, to, (unsigned)size) == (int)size;
}

/* The elements of a file of that rank (malloc), and its first dim in *n. */
static unsigned char *idx_read(const char *path, int rank, int64_t each,
                               int64_t *n)
{
    unsigned char head[4], size[4], *data = NULL;
    gzFile f = gzopen(path, "rb");
    if (!f) {
        bad(path, "cannot open it (tools/setup fashion installs the data)");
        return NULL;
    }
    int64_t rest = 1;
    bool ok = read_all(f, head, 4) && !head[0] && !head[1] && head[2] == 8 &&
              head[3] == rank;
    for (int k = 0; k < rank && ok; k++) {
        ok = read_all(f, size, 4);
        if (!k) *n = big_endian(size);
        if (k) rest *= big_endian(size);
    }
    ok = ok && rest == each && *n > 0 && *n <= 1000000;
    if (ok) data = malloc((size_t)(*n * each));
    if (data && !read_all(f, data, (size_t)(*n * each))) {
        free(data);
        data = NULL;
    }
    gzclose(f);
    if (!data) bad(path, "not a valid idx file of the expected shape");
    return data;
}

bool dataset_read(lb_ctx *cx, const char *dir, const char *which, dataset *out)
{
    char path[4096];
    int64_t n = 0;
    *out = (dataset){0};
    snprintf(path, sizeof path, "%s/%s-images-idx3-ubyte.gz", dir, which);
    unsigned char *images = idx_read(path, 3, PIXELS, &out->n);
    if (!images) return false;
    out->images = lb_from(cx, LB_U8, LB_SHAPE(out->n, PIXELS), images);
    free(images);
    snprintf(path, sizeof path, "%s/%s-labels-idx1-ubyte.gz", dir, which);
    unsigned char *labels = idx_read(path, 1, 1, &n);
    if (!labels) return false;
    if (n == out->n)
        out->labels =
            lb_convert(cx, lb_from(cx, LB_U8, LB_SHAPE(n), labels), LB_I32);
    free(labels);
    return out->labels ||
           bad(path, "the number of labels is not the number of images");
}

static void cut(lb_ctx *cx, const dataset *d, int64_t lo, int64_t hi,
                dataset *out)
{
    const int64_t from[] = {lo, 0}, to[] = {hi, PIXELS};
    *out = (dataset){.images = lb_slice(cx, d->images, from, to, NULL),
                     .labels = lb_slice(cx, d->labels, from, to, NULL),
                     .n = hi - lo};
}

bool dataset_hold_out(lb_ctx *cx, dataset *from, int64_t n, dataset *out)
{
    const dataset all = *from;
    if (n >= all.n) return bad("--validate", "leaves no images to train on");
    cut(cx, &all, all.n - n, all.n, out);
    cut(cx, &all, 0, all.n - n, from);
    return !lb_error_status(cx);
}

lb_array *dataset_images(lb_ctx *cx, const dataset *d, lb_array *rows)
{
    const double mean = 0.286, deviation = 0.353; /* of the training images */
    lb_array *x = lb_convert(cx, lb_take(cx, d->images, rows, 0), LB_F32);
    x = lb_sub(cx, x, lb_scalar(cx, 255 * mean));
    return lb_mul(cx, x, lb_scalar(cx, 1 / (255 * deviation)));
}
