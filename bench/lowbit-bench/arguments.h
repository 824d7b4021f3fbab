/* arguments.h - what the user asked for. */
#ifndef LB_BENCH_ARGUMENTS_H
#define LB_BENCH_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "lowbit.h"

enum { LIST_MAX = 32, NAME_SIZE = 24 };

typedef enum bench_mode {
    MODE_SWEEP = 0,
    MODE_OPENBLAS,
    MODE_CODEC,
    MODE_ERROR,
    MODE_LIMITS,
    MODE_CALLS,
    MODE_OPS,
    MODE_HELP,
    MODE_VERSION
} bench_mode;

typedef enum bench_orient {
    ORIENT_WT, /* x @ W^T, W (out, in) */
    ORIENT_W   /* x @ W, W (in, out) */
} bench_orient;

typedef enum bench_place {
    PLACE_WARM, /* one weight array, again and again */
    PLACE_DRAM /* so many of them that none is in a cache when its turn comes */
} bench_place;

typedef struct number_list {
    int n;
    int64_t at[LIST_MAX];
} number_list;

typedef struct name_list {
    int n;
    char at[LIST_MAX][NAME_SIZE];
} name_list;

typedef struct shape_list {
    int n;
    struct {
        int64_t n, k; /* outputs, inputs */
    } at[LIST_MAX];
} shape_list;

/* Lists of enum values are lists of numbers. All are filled when
 * arguments_parse has returned; formats are as the user said them, and
 * weights_check has still to look at them. */
typedef struct bench_options {
    bench_mode mode;
    name_list formats;
    number_list precisions; /* lb_precision */
    number_list m, threads;
    number_list orients; /* bench_orient */
    number_list acts;    /* lb_dtype of x; of the codec's dense side */
    number_list places;  /* bench_place */
    number_list depths;  /* K, of the error table */
    shape_list shapes;
    int64_t mib;     /* of f32, for the codec */
    double seconds;  /* most to spend on sampling one figure */
    const char *isa; /* NULL: the best there is */
    const char *svg; /* NULL: no plot */
    bool json;
} bench_options;

/* False after saying what is wrong. */
bool arguments_parse(int argc, char **argv, bench_options *options);
void arguments_help(void);

const char *precision_name(lb_precision precision);
const char *orient_name(bench_orient orient);
const char *place_name(bench_place place);

#endif
