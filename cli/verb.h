/* verb.h - declarations shared by the verbs of the command `lowbit`.
 *
 * A verb is one file that ends in one struct, and one line in lowbit.c. Results
 * go to stdout, diagnostics to stderr. Only the public headers lowbit.h,
 * lowbit_io.h and lowbit_mesh.h may be included: whatever the command does, any
 * program can do.
 */
#ifndef VERB_H
#define VERB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lowbit.h"
#include "lowbit_io.h"

/* Exit codes, the same for all verbs (see docs/json.md). The exit code is the
 * low byte: DIFFERS exits with 1. */
typedef enum verdict {
    DONE = 0,
    FAILED = 1,        /* failure of the system or of the library */
    USAGE = 2,         /* usage error */
    BAD_INPUT = 3,     /* invalid or unsupported input */
    STRICT = 4,        /* --strict violation */
    INTERRUPTED = 130, /* by a signal: exits with 128 + its number */
    DIFFERS = 0x101    /* diff: a difference above the tolerance */
} verdict;

/* ---- the command line ---------------------------------------------------- */

/* All options are in one table (option_table.c): the same name means the same
 * thing in every verb. A verb lists the options that it takes. */
typedef enum option_id {
    OPTION_ACT,
    OPTION_ALLOW,
    OPTION_AXIS,
    OPTION_BANDWIDTH,
    OPTION_BINS,
    OPTION_BLOCK_SIZE,
    OPTION_CALLS,
    OPTION_CODEC,
    OPTION_COMPAT,
    OPTION_CONTAINER_ONLY,
    OPTION_CONTEXT,
    OPTION_DOUBLE_QUANT,
    OPTION_DRY_RUN,
    OPTION_DTYPE,
    OPTION_ERROR,
    OPTION_EXCLUDE,
    OPTION_FORCE,
    OPTION_HEADER,
    OPTION_HELP,
    OPTION_INCLUDE,
    OPTION_ISA,
    OPTION_JOBS,
    OPTION_JSON,
    OPTION_K,
    OPTION_LAYOUT,
    OPTION_LIMITS,
    OPTION_LINEAR_CLASS,
    OPTION_M,
    OPTION_MAX_MEMORY,
    OPTION_MEMORY,
    OPTION_MESH,
    OPTION_METADATA,
    OPTION_NO_SYNC,
    OPTION_OPENBLAS,
    OPTION_OPS,
    OPTION_ORIENT,
    OPTION_OUTPUT,
    OPTION_OVERRIDE,
    OPTION_PRECISIONS,
    OPTION_PRODUCTS,
    OPTION_QUICK,
    OPTION_QUIET,
    OPTION_RAW,
    OPTION_RECIPE,
    OPTION_RELAXED,
    OPTION_REPORT,
    OPTION_RESUME,
    OPTION_RULES,
    OPTION_SCALE,
    OPTION_SECONDS,
    OPTION_SHAPE,
    OPTION_SHAPE_FALLBACK,
    OPTION_SIZE,
    OPTION_SPEC,
    OPTION_STRICT,
    OPTION_SVG,
    OPTION_TARGET_BPW,
    OPTION_TARGET_SIZE,
    OPTION_THRESHOLD,
    OPTION_TO,
    OPTION_TOLERANCE,
    OPTION_TOP,
    OPTION_TYPE,
    OPTION_VERBOSE,
    OPTION_VERIFY,
    OPTION_WEIGHTS,
    N_OPTIONS
} option_id;

typedef struct option_row {
    const char *name;
    char letter;         /* 0: none */
    const char *operand; /* NULL: takes no value */
    const char *help;    /* noun phrase, with the default in parentheses */
    const char *alias;   /* another long name, not shown; NULL: none */
} option_row;
extern const option_row option_rows[N_OPTIONS];

/* The order and the headings of --help and of the manual pages. */
typedef struct option_group {
    const char *title;
    option_id id[16]; /* ends with N_OPTIONS */
} option_group;
extern const option_group option_groups[]; /* ends with title NULL */

enum { OPERANDS_MOST = 2, GIVEN_MOST = 256 };

typedef struct arguments arguments;
struct arguments {
    const char *operand[OPERANDS_MOST];
    int n_operands;
    int count[N_OPTIONS];         /* times given: -vv is 2 */
    const char *value[N_OPTIONS]; /* the last one */
    struct {
        option_id id;
        const char *value;
    } given[GIVEN_MOST]; /* options with values, in order */
    int n_given;
    char type[64]; /* value of --type, as the library spells it */
    int argc;      /* the whole command line */
    char **argv;
    lb_comm *comm; /* ranks that share the work; NULL: this process alone */
};

typedef struct verb verb;
struct verb {
    const char *name;
    const char *operands;     /* "FILE", for the usage line; "": none */
    const char *summary;      /* imperative, half a line, no period */
    const char *help;         /* more text, or NULL */
    const char *examples;     /* commands, one per line, or NULL */
    int n_operands;           /* required operands */
    int n_optional;           /* optional ones after them */
    const option_id *options; /* ends with N_OPTIONS; --help is implied */
    verdict (*run)(const arguments *a);
    bool shares;  /* MPI ranks share its work; otherwise rank 0 does it alone */
    bool streams; /* operand "-" is standard input, see input.h */
};

/* The value of an option: an integer or a real number between lo and hi; one of
 * some words, as its index (the list ends with NULL; any case; "seed" is
 * accepted for "eformer"). An option that is not given leaves *out unchanged.
 * False after a message. */
bool argument_number(const arguments *a, option_id id, int64_t lo, int64_t hi,
                     int64_t *out);
bool argument_real(const arguments *a, option_id id, double lo, double hi,
                   double *out);
/* Bytes, e.g. 4.2G, 500MB, 3Gi; at least `least`. */
bool argument_bytes(const arguments *a, option_id id, uint64_t least,
                    uint64_t *out);
enum { MEMORY_LEAST = 1000000 }; /* of --max-memory */
bool argument_word(const arguments *a, option_id id, const char *const *word,
                   int *out);
/* The library's name of a format, in any case; NULL after a message that
 * suggests another one. */
const char *format_named(const lb_ctx *cx, const char *name);

/* Whether the command was started as lowbit-bench: `lowbit bench --products`
 * with one JSON object per line. */
bool is_bench_alias(const arguments *a);
/* argv of main: the command, the verb, ... False after a message. */
bool arguments_read(const verb *v, int argc, char **argv, arguments *a);
void verb_help(FILE *to, const verb *v);
void verb_manual(const verb *v); /* scdoc source, to stdout */
bool verb_takes(const verb *v, option_id id);
extern const verb *const verbs[]; /* ends with NULL */

/* ---- messages ------------------------------------------------------------ */

/* Print "lowbit: ..." to stderr, one line, escaped as by put_text. Returns
 * what, for `return complain(...)`. The first message becomes the "message" of
 * the error object under --json. */
verdict complain(verdict what, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Print "lowbit: warning: ..." to stderr, unless --quiet is given. Under --json
 * it is also listed in "warnings". */
void caution(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The message of the first complaint; NULL if there was none. */
const char *complaint(void);
/* Its verdict. */
verdict complaint_verdict(void);
/* quiet: caution prints nothing. */
void talk_begin(bool quiet);
/* Whether output to this stream may be coloured: it is a terminal, and neither
 * NO_COLOR nor TERM=dumb forbids it. */
bool may_colour(FILE *to);
/* Begins and ends a failure within results on stdout: red, if coloured. */
void failure_begin(void);
void failure_end(void);
/* Print the library's error; returns the exit code for it. */
verdict complain_of(const lb_ctx *cx);
/* "--" if the library's message begins with a pattern that an option has given
 * ("exclude 'x' ..."; one from a recipe begins with the recipe's path),
 * otherwise "". */
const char *option_dashes(const char *message);
/* Whether the library's error only says that an array cannot be loaded by this
 * program: too many axes or elements. */
bool is_beyond(const lb_ctx *cx);
/* The word of the list that is most similar, in any case; NULL: none is. */
const char *nearest(const char *word, const char *const *list, int n);
/* A context with this number of threads (0: all cores); NULL after a message,
 * see complaint_verdict. */
lb_ctx *context_open(int threads);
/* Print text from a file: control characters, also those that change the
 * direction of text, and invalid UTF-8 as \xNN. Returns the number of columns.
 * to NULL: prints nothing. */
int put_text(FILE *to, const char *text, size_t n);
/* "1.5 kB": decimal units, one digit after the point. */
typedef struct size_text {
    char s[32];
} size_text;
size_text show_bytes(uint64_t n);
size_text show_count(double n); /* "1.1 B": thousand, million, billion */
size_text show_rate(uint64_t bytes, double seconds); /* "1.5 kB/s" */
size_text show_seconds(double seconds); /* "12 ms", "3.4 s", "2 min 05 s" */
/* The first 200 bytes of a name from a file, as printed by put_text. */
typedef struct name_text {
    char s[804];
} name_text;
name_text show_name(const char *name);
/* "(2,3)" */
void put_shape(FILE *to, const int64_t *dim, int rank);
/* Length in bytes of the UTF-8 character at p; 0 if it is invalid. */
size_t utf8_length(const unsigned char *p, size_t n);
bool is_control(const unsigned char *p, size_t length);
/* Tables. The width of a name or of an entry's type in columns, 0 if it is too
 * long to align the other rows with; the larger of two widths; text padded to a
 * width, with two spaces after it. */
int name_width(const char *name);
int kind_width(const lb_entry *e);
int wider(int a, int b);
void put_column(FILE *to, const char *text, int width);
void put_kind(FILE *to, const lb_entry *e, int width);
/* "nf4 (bf16)": the format, and the dtype it decodes to; "bf16" if dense;
 * "Q4_K (not supported)": the file's own type. */
void entry_kind(const lb_entry *e, char *to, size_t size);
/* The arrays of a file, sorted by name with numbers by value: layers.2 before
 * layers.10. lb_file_count of them; NULL if out of memory. Free it. */
const lb_entry **entries_by_name(const lb_file *f);
/* As a double, which cannot overflow. */
double entry_elements(const lb_entry *e);

/* ---- JSON ---------------------------------------------------------------- */

/* Written sequentially: the caller opens and closes, commas are automatic. The
 * schema is documented in docs/json.md. */
typedef struct json {
    FILE *to;
    bool more; /* something precedes on this level */
} json;
enum { JSON_SCHEMA = 1 };
/* The result object of a verb on stdout: `{`, "lowbit", "schema" and "verb".
 * The verb adds its members and calls json_end. The command prints it at the
 * very end, after adding "warnings" and, if it failed, "error"; without
 * json_end the members are dropped and only the error is printed. */
json *json_begin(const char *name);
void json_end(json *j);
/* For lowbit.c: prints the result, or the error; name may be NULL. */
void json_finish(const char *name, verdict v);
/* The exit code of a verdict. */
int verdict_exit(verdict v);
/* A result object that only has an error. */
void json_failure(FILE *to, const char *name, int exit_code, const char *kind,
                  const char *message);
/* The same first members, for a JSON file of its own; closed by json_close. */
void json_head(json *j, const char *name);
/* "name", "type", "format", "dtype", "shape" and "bytes" of an array, into an
 * object that is open. */
void json_array_head(json *j, const lb_entry *e);
/* A list of integers. */
void json_shape(json *j, const int64_t *dim, int rank);
/* One more of "warnings"; called by caution. */
void json_warning(const char *text);
/* The next element of a list, on a line of its own. */
void json_next(json *j);
void json_open(json *j, char bracket);
void json_close(json *j, char bracket);
/* The key of a member; returns j, for json_int(json_key(j, "n"), 1). */
json *json_key(json *j, const char *key);
/* Invalid UTF-8 becomes U+FFFD; NULL becomes null. */
void json_string(json *j, const char *text);
void json_text(json *j, const char *text, size_t n);
void json_int(json *j, int64_t v);
void json_uint(json *j, uint64_t v);
void json_double(json *j, double v); /* null unless finite */
void json_bool(json *j, bool v);
void json_null(json *j);

extern const verb verb_bench;
extern const verb verb_check;
extern const verb verb_completion;
extern const verb verb_convert;
extern const verb verb_cpu;
extern const verb verb_dequantize;
extern const verb verb_diff;
extern const verb verb_formats;
extern const verb verb_info;
extern const verb verb_merge;
extern const verb verb_quantize;
extern const verb verb_shard;
extern const verb verb_stats;

#endif
