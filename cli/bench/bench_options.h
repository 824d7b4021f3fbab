/* bench_options.h - the options of `lowbit bench`. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "lowbit.h"

enum { LIST_MAX = 32, NAME_SIZE = 24 };

typedef enum bench_mode {
    MODE_SUMMARY = 0,
    MODE_SWEEP,
    MODE_OPENBLAS,
    MODE_CODEC,
    MODE_ERROR,
    MODE_LIMITS,
    MODE_CALLS,
    MODE_OPS
} bench_mode;

typedef enum bench_orient {
    ORIENT_WT, /* x @ W^T, W (out, in) */
    ORIENT_W   /* x @ W, W (in, out) */
} bench_orient;

typedef enum bench_place {
    PLACE_WARM, /* one weight array, used repeatedly */
    PLACE_DRAM  /* several arrays in turn, too many for the caches */
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

/* Enum values are stored as integers. All lists are filled by
 * bench_options_read; formats are as given by the user until weights_check. */
typedef struct bench_options {
    bench_mode mode;
    name_list formats;
    number_list precisions; /* lb_precision */
    number_list m, threads;
    number_list orients; /* bench_orient */
    number_list acts;    /* lb_dtype of x; --codec: of the dense side */
    number_list places;  /* bench_place */
    number_list depths;  /* K of --error */
    shape_list shapes;
    int64_t mib;     /* MiB of f32, for --codec */
    double seconds;  /* time limit of one measurement */
    const char *isa; /* NULL: the best */
    const char *svg; /* NULL: no plot */
    bool json;
    bool lines; /* JSON: one object per line, as lowbit-bench */
} bench_options;

/* From the command line; alias: as lowbit-bench. False after a message. */
typedef struct arguments arguments;
bool bench_options_read(const arguments *a, bool alias, bench_options *o);

const char *precision_name(lb_precision precision);
const char *orient_name(bench_orient orient);
const char *place_name(bench_place place);

#endif
