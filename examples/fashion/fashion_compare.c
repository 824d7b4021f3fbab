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

/* ||w - exact|| / ||exact|| over all parameters, in percent. */
static double error_of(lb_ctx *cx, lb_tree *w, const lb_tree *exact)
{
    lb_difference all = {0};
    for (int i = 0; i < lb_tree_count(exact); i++)
        lb_compare(cx, lb_tree_at(exact, i),
                   lb_tree_get(w, lb_tree_name(exact, i)), &all);
    return 100 * lb_difference_nrmse(&all);
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
    lb_tree *exact = NULL;
    double seconds = 0;
    char label[64], first[64];
    bool ok = true;
    snprintf(first, sizeof first, "%s.0.weight", n->name);
    printf("%-12s %9s %9s %10s %9s %13s\n", "type", "size", "smaller",
           "accuracy", "error", "product");
    for (int i = 0; i < n_paths && ok; i++) {
        lb_tree *w = lb_tree_load(cx, paths[i]);
        lb_array *weight = lb_tree_get(w, first);
        ok = weight != NULL;
        if (ok && !i) exact = lb_tree_copy(w);
        if (ok) {
            const double each = product_seconds(cx, weight);
            const double bytes = (double)lb_tree_nbytes(w);
            if (!i) seconds = each;
            label_of(paths[i], label, sizeof label);
            printf("%-12s %6.0f kB %8.1fx %8.2f %% ", label, bytes / 1e3,
                   (double)lb_tree_nbytes(exact) / bytes,
                   accuracy_of(cx, n, w, test));
            if (strstr(label, "-qat")) /* not a copy of the first file */
                printf("%7s  ", "-");
            else
                printf("%7.2f %%", error_of(cx, w, exact));
            printf(" %12.1fx\n", seconds / each);
            fflush(stdout);
            ok = !lb_error_status(cx);
        }
        lb_tree_close(w);
    }
    lb_tree_close(exact);
    return ok;
}
