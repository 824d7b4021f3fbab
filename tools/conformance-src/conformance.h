/* conformance.h - shared by the files of the conformance runner.
 *
 * A kind of case is one file that ends in one `const kind`, listed in
 * conformance.c. It walks a directory, opens each case with case_open and
 * closes it with case_close, which prints and counts. Everything read from a
 * case is untrusted; an error in it becomes the message of a note.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lowbit.h"

/* ---- verdicts ----------------------------------------------------------- */

typedef enum verdict { PASSED, FAILED, SKIPPED } verdict;

/* The verdict of a case, and its reason; the first message is kept. */
typedef struct note {
    verdict verdict;
    char why[1024];
} note;

/* Both return false, so that a check is `return note_fail(...)`. */
bool note_fail(note *n, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
bool note_skip(note *n, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Notes the library's error, unless a note exists. Returns false. */
bool library_failed(lb_ctx *cx, note *n, const char *doing);

typedef struct runner {
    lb_ctx *cx;
    bool verbose;
    int64_t count[SKIPPED + 1]; /* by verdict */
} runner;

/* Opens a scope in the context, clears errors, sets the note to PASSED. */
void case_open(runner *r, note *n);
/* Ends the scope, counts the case, and prints it unless it passed without a
 * message. digest: of the results, equal in all runs with the same bits. */
void case_close(runner *r, const note *n, const char *name, uint64_t digest);
/* Counts several cases that are skipped, and prints one line for them. */
void cases_skip(runner *r, const char *name, int64_t count, const char *why);

typedef struct kind {
    const char *name;
    const char *help;      /* one line */
    lb_dense_policy dense; /* of the context */
    /* Runs every case under dir. False and a note if dir itself is invalid. */
    bool (*run)(runner *r, const char *dir, note *n);
} kind;

extern const kind kind_stablehlo;
extern const kind kind_seed;
extern const kind kind_bitsandbytes;
extern const kind kind_gguf;
extern const kind kind_parsers;
extern const kind kind_transformers;
extern const kind kind_fp8;
extern const kind kind_gptq;
extern const kind kind_awq;
extern const kind kind_compressed_tensors;
extern const kind kind_mlx;
extern const kind kind_mxfp4;
extern const kind kind_nvfp4;

/* ---- files -------------------------------------------------------------- */

/* dir/name in a new string. NULL and a note if name is not a plain file name
 * (empty, with a slash, or only dots), or if out of memory. */
char *path_in(const char *dir, const char *name, note *n);
/* The same for a path of such names. */
char *path_below(const char *dir, const char *name, note *n);
const char *base_name(const char *path);
bool file_exists(const char *dir, const char *name, const char *file);
/* A regular file's bytes, at most limit; free them. */
void *file_read(const char *path, size_t limit, size_t *size, note *n);
bool json_read(const char *path, json_t **out, note *n);

typedef struct name_list {
    char **name;
    size_t n;
} name_list;
/* Names of the subdirectories of dir that contain such a file, and of those
 * listed in dir/index.json if it exists; sorted, without duplicates. */
bool cases_in(const char *dir, const char *file, name_list *out, note *n);
void name_list_free(name_list *l);
/* Calls run for each of them, or, if there are none, for dir itself if it
 * contains the file. run opens and closes the case. */
bool cases_run(runner *r, const char *dir, const char *file,
               void (*run)(runner *r, const char *dir, const char *name),
               note *n);

/* An array from a .npy file: row-major, in this machine's byte order. */
typedef struct npy {
    char kind; /* as in numpy: b i u f, and V for two raw bytes */
    size_t item_size;
    lb_shape shape;
    size_t nbytes;
    void *data; /* free with npy_free */
} npy;
bool npy_read(const char *path, npy *out, note *n);
/* Whether the file's type can represent the dtype; bf16 is stored as u2 or V2.
 */
bool npy_is(const npy *a, lb_dtype dtype);
void npy_free(npy *a);

/* ---- json --------------------------------------------------------------- */

/* Each checks type and range; what: names the value in messages. */
bool json_list_of_ints(const json_t *v, const char *what, int64_t lo,
                       int64_t hi, int64_t *out, int max, int *count, note *n);
/* object[key], which must exist. */
bool json_int(const json_t *object, const char *key, int64_t lo, int64_t hi,
              int64_t *out, note *n);
/* Axes from 0. */
bool json_axes(const json_t *v, const char *what, lb_axes *out, note *n);
bool json_shape(const json_t *v, const char *what, lb_shape *out, note *n);

/* ---- values ------------------------------------------------------------- */

typedef struct text {
    char s[256];
} text;
text shape_text(lb_shape shape);
bool shape_equal(lb_shape a, lb_shape b);
/* Number of elements; -1 if it exceeds an int64. */
int64_t shape_size(lb_shape shape);
bool dtype_is_float(lb_dtype dtype);
bool dtype_is_integer(lb_dtype dtype); /* without bool */
/* By lb_dtype_name; LB_NO_DTYPE if the name is unknown. */
lb_dtype dtype_named(const char *name);

/* The tolerance of a float:
 *     |got - want| <= absolute + relative * |want|, and at_zero where want is 0
 * or, if ulps >= 0, a distance of at most ulps representable values. Infinities
 * and NaN must be equal, where NaN equals NaN and 0 equals -0. All 0 and ulps
 * -1 is exact; with bits, 0 differs from -0 as well. */
typedef struct tolerance {
    double absolute, relative, at_zero;
    int64_t ulps;
    bool bits;
} tolerance;

/* The tolerances in the README of the cases: 1e-4, f16 2e-3, bf16 2e-2. */
tolerance tolerance_default(lb_dtype dtype);
tolerance tolerance_bits(void);
/* The largest |x| of the finite floats; 0 if none is finite. */
double largest_finite(lb_dtype dtype, const void *data, int64_t count);
/* A note with the first wrong element, its index, and the number of wrong ones.
 */
bool compare(lb_dtype dtype, lb_shape shape, const void *got, const void *want,
             tolerance tol, note *n);
/* FNV-1a; seed: 0, or an earlier digest to continue. */
uint64_t digest_of(uint64_t seed, const void *data, size_t size);

/* In hexadecimal. */
text sha256_text(const void *data, size_t size);

/* ---- the command --------------------------------------------------------- */

typedef struct command_result {
    int code;
    char *text; /* of stdout, 0-terminated; NULL if empty; free it */
    size_t size;
} command_result;
/* Runs `lowbit`; argv[0] is its name, the last is NULL. A note if it cannot be
 * run or is killed by a signal. */
bool command_run(const char *const *argv, command_result *out, note *n);

/* ---- checking arrays ---------------------------------------------------- */

/* The case that is running. */
typedef struct checker {
    lb_ctx *cx;
    const char *dir; /* of its files */
    note *note;
    uint64_t digest;
} checker;

/* An array from a case's files: an input, or an expected result. */
typedef struct given {
    lb_dtype dtype;
    tolerance tol;
    npy raw;     /* without data: not read */
    lb_array *a; /* the same as an array, in the case's scope */
} given;

/* Reads dir/file, which must have the dtype; compared bit by bit. */
bool given_read(checker *c, const char *file, lb_dtype dtype, given *out);
void given_free(given *g);
/* Whether a has the dtype, shape and elements of want. what: begins the message
 * if not. a NULL: the library's error is noted. */
bool check_array(checker *c, const char *what, lb_array *a, const given *want);
/* The same for the bytes only, for any shapes. */
bool check_bytes(checker *c, const char *what, lb_array *a, const given *want);
/* Whether a, made from a case's files, decodes to expected_f32.npy and, rounded
 * once, to expected_bf16_bits.npy. */
bool check_decoded(checker *c, lb_array *a, const given *f32);
/* Opens, checks and closes a case that is a directory with a meta.json. */
void meta_case(runner *r, const char *dir, const char *name,
               bool (*check)(checker *c, const json_t *meta));

#endif
