/* golden.h - reads the files that tools/gen_golden.py wrote.
 *
 * Lines of words; an array is three of them: a dtype, a shape, its bits in hex
 * (tools/golden_text.py has the grammar). The functions return false for an
 * invalid line, and golden_error describes the error and its place.
 */
#ifndef LB_GOLDEN_H
#define LB_GOLDEN_H

#include "lowbit_ext.h"

enum { GOLDEN_WORDS = 32, GOLDEN_NAME = 64, GOLDEN_NAMES = 768 };

/* Arrays by name; holds references. */
typedef struct golden_names {
    struct {
        char name[GOLDEN_NAME];
        lb_array *a;
    } item[GOLDEN_NAMES];
    int n;
} golden_names;

typedef struct golden_file {
    const char *path;
    char *text, *at;
    int line;                 /* of the last line read */
    char *word[GOLDEN_WORDS]; /* its words, n of them */
    int n;
    int records; /* inputs, cases and calls so far */
    bool whole;  /* the last line was read, with the right number */
} golden_file;

/* An array in a file. Long ones have only a hash. */
typedef struct golden_array {
    lb_dtype dtype;
    lb_shape shape;
    bool flat; /* only the number of elements counts */
    int64_t size;
    void *data; /* malloc'ed; NULL if there is only a hash */
    uint64_t hash;
} golden_array;

bool golden_open(golden_file *f, const char *path);
void golden_close(golden_file *f);
/* The next line that is not empty, a comment or the last one. */
bool golden_next(golden_file *f);
/* "codec_native.txt:12: why", for the last false; static. */
const char *golden_error(void);

/* The array in words k, k + 1, k + 2 of the line. */
bool golden_read(golden_file *f, int k, golden_array *to);
void golden_free(golden_array *a);
/* NULL if there is only a hash, or no memory. */
lb_array *golden_dense(lb_ctx *cx, const golden_array *a);
/* True if a has that dtype, shape and bits (any NaN equals any other); else
 * false, with the difference in *why. */
bool golden_same(lb_ctx *cx, lb_array *a, const golden_array *want,
                 lb_text *why);
/* Element i as a double. */
double golden_value(lb_dtype dtype, const void *data, int64_t i);

bool golden_put(golden_names *to, const char *name, lb_array *a);
lb_array *golden_find(const golden_names *in, const char *name);
void golden_forget(golden_names *names);
/* "input NAME ARRAY" of the line, into names. */
bool golden_input(lb_ctx *cx, golden_file *f, golden_names *names);

/* The text after "KEY=" in words first .. n - 1, or NULL. */
const char *golden_key(const golden_file *f, int first, const char *key);
/* "0,-1" as integers; returns their count, at most LB_MAX_RANK. NULL: none. */
int golden_numbers(const char *s, int64_t *to);
lb_axes golden_axes(const char *s);
lb_dtype golden_dtype(const char *name);
/* Checks the keys from word first on; false if one is unknown. */
bool golden_config(const golden_file *f, int first, lb_quant_config *to);

#endif
