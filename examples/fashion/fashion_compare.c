/* fashion_compare.c - what each quantized file of a network costs and gains:
 * size, accuracy on the test images, error of the weights, speed of a product.
 *
 * The network runs unchanged on the weights of every file, in the format that
 * they are stored in.
 */
#include <lowbit_io.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fashion.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The parameters of a file in the order of the net; *bytes is their size. */
static bool load_params(lb_ctx *cx, const net *n, const char *path,
                        lb_array **params, uint64_t *bytes)
{
    char name[64];
    bool ok = true;
    *bytes = 0;
    lb_file *f = lb_file_open(cx, path, NULL);
    for (int i = 0; i < n->n_params && f && ok; i++) {
        net_param_name(n, i, name, sizeof name);
        const lb_entry *e = lb_file_find(f, name);
        params[i] = lb_file_load(cx, f, name);
        ok = e && params[i];
        if (ok) *bytes += e->nbytes;
    }
    lb_file_close(f);
    return f && ok;
}

/* ||w - exact|| / ||exact|| over all parameters, in percent. */
static double error_of(lb_ctx *cx, int n, lb_array *const *w,
                       lb_array *const *exact)
{
    double sum = 0, all = 0;
    for (int i = 0; i < n; i++) {
        lb_array *d = lb_sub(cx, w[i], exact[i]);
        sum += lb_item(cx, lb_reduce_sum(cx, lb_mul(cx, d, d), NULL));
        all += lb_item(cx,
                       lb_reduce_sum(cx, lb_mul(cx, exact[i], exact[i]), NULL));
    }
    return 100 * sqrt(sum / all);
}

/* Seconds of one row of x times w (4096, 4096) in that format: the
 * fastest call, since other programs may use the CPU. */
static double product_seconds(lb_ctx *cx, const lb_array *weight)
{
    enum { SIZE = 4096, CALLS = 60 };
    double best = HUGE_VAL;
    const lb_key one = {1, 0}, two = {2, 0};
    lb_enter(cx);
    lb_array *x = lb_random_normal(cx, one, LB_F32, LB_SHAPE(1, SIZE));
    lb_array *w = lb_random_normal(cx, two, LB_F32, LB_SHAPE(SIZE, SIZE));
    if (strcmp(lb_format_of(weight), "dense") != 0)
        w = lb_quantize(cx, w,
                        &(lb_quant_config){.format = lb_format_of(weight)});
    w = lb_transpose(cx, w, NULL);
    for (int i = 0; i < CALLS; i++) {
        const double begun = now();
        lb_enter(cx);
        lb_matmul(cx, x, w);
        lb_leave(cx);
        best = fmin(best, now() - begun);
    }
    lb_leave(cx);
    return best;
}

/* The file's name without directory and suffix: the type, in the demo. */
static void label_of(const char *path, char *to, size_t size)
{
    const char *slash = strrchr(path, '/');
    snprintf(to, size, "%s", slash ? slash + 1 : path);
    to[strcspn(to, ".")] = 0;
}

bool compare(lb_ctx *cx, const net *n, const dataset *test, char *const *paths,
             int n_paths)
{
    lb_array *exact[MAX_PARAMS] = {0}, *w[MAX_PARAMS] = {0};
    uint64_t before = 0, bytes;
    double seconds = 0;
    char label[64];
    printf("%-12s %9s %9s %10s %9s %13s\n", "type", "size", "smaller",
           "accuracy", "error", "product");
    for (int i = 0; i < n_paths; i++) {
        lb_array **to = i ? w : exact;
        if (!load_params(cx, n, paths[i], to, &bytes)) return false;
        const double each = product_seconds(cx, to[0]);
        if (!i) before = bytes, seconds = each;
        label_of(paths[i], label, sizeof label);
        printf("%-12s %6.0f kB %8.1fx %8.2f %% ", label, (double)bytes / 1e3,
               (double)before / (double)bytes, accuracy_of(cx, n, to, test));
        if (strstr(label, "-qat")) /* not a copy of the first file */
            printf("%7s  ", "-");
        else
            printf("%7.2f %%", error_of(cx, n->n_params, to, exact));
        printf(" %12.1fx\n", seconds / each);
        fflush(stdout);
        if (lb_error_status(cx)) return false;
    }
    return true;
}
