/* report.h - reports: what a job did, and the errors.
 *
 * Verbs add arrays one by one. The report is then rendered as text, or to a
 * file whose extension selects the format: .html, .md or .json.
 */
#ifndef REPORT_H
#define REPORT_H

#include "histogram.h"

typedef struct report_row {
    char *name;
    char *shape;        /* "(2,3)" */
    char *from, *to;    /* "bf16", "nf4 (bf16)" */
    char *format;       /* if quantized, else NULL */
    char *kept;         /* why it was not quantized; NULL: it was */
    bool unfit;         /* kept although selected: its shape, or the layout */
    const char *layout; /* as stored; NULL: not read back, or one tensor */
    int64_t block;      /* elements per scale; 0: unknown or none */
    lb_entry entry;     /* of the source; its texts belong to this row */
    lb_dtype dtype;     /* in the result; none: its own type, not supported */
    double elements;    /* NaN: unknown, of tensors that are copied verbatim */
    uint64_t before, after; /* bytes */
    lb_difference error;    /* n is 0: not measured */
    lb_moved moved;         /* to another layout or type */
    char *refused;          /* why not; NULL: it was, or was not to be */
} report_row;

/* Codes of all arrays of a format, and of Gaussian values. */
typedef struct report_codes {
    char format[32];
    code_counts seen, ideal;
} report_codes;

enum { REPORT_CODES = 8, REPORT_GROUPS = 32 };

typedef struct report {
    const char *verb, *source;
    const char *result; /* NULL: of a dry run without --output */
    const char *output; /* NULL: nothing is written */
    bool dry_run;
    int64_t resumed;  /* arrays that an earlier run had written */
    const char *kept; /* what rows with a reason have in common */
    /* The option that sets a target size, such as "--target-bpw". NULL: none */
    const char *target;
    /* The layout given by --layout, if its loader expects floats in embeddings
     * and the output head. NULL: none, or another one */
    const char *loader_layout;
    char *command; /* the command line */
    double seconds;
    char date[32]; /* of the end, UTC */
    char *hash;    /* of the source, a line per file; NULL: not computed */
    int64_t last;  /* row found last by report_stored */
    uint64_t peak; /* peak memory in bytes; 0: unknown */
    report_row *row;
    int64_t n, room;
    report_codes codes[REPORT_CODES];
    int n_codes;
    bool lacks_memory; /* out of memory: the report is incomplete */
} report;

/* ---- filling ------------------------------------------------------------- */

/* Starts a report of this process's command line. */
void report_begin(report *r, const char *what, int argc, char **argv);
void report_free(report *r);
/* Adds an array: its entry in the source, its type in the output (entry_kind),
 * format and kept as in report_row. Texts are copied. */
void report_add(report *r, const lb_entry *from, const char *to,
                const char *format, lb_dtype dtype, const char *kept,
                uint64_t after, const lb_difference *error);
/* Adds the codes of an array to those of its format; false and an error. */
bool report_count(report *r, lb_ctx *cx, lb_array *a);
/* report_facts.c: records how an array is stored in the output. */
bool report_stored(report *r, lb_ctx *cx, const lb_entry *e, lb_array *a);
/* Hashes the files of the source; does nothing if they cannot be read. */
void report_identify(report *r);
/* "nf4: 64, int8: a row": elements per scale of each format; empty if unknown.
 * The layouts in use; empty if unknown. */
void report_blocks(const report *r, char *to, size_t size);
void report_layouts(const report *r, char *to, size_t size);
/* Records time and memory. */
void report_end(report *r);
/* report_moves.c: what became of quantized arrays that were moved. The word for
 * it; NULL: not such an array. Whether there are any. A line with counts. */
const char *report_moved(const report_row *row);
bool report_has_moves(const report *r);
void report_moves(const report *r, FILE *to);
/* What the report is about: the result, or the source if there is none. */
const char *report_title(const report *r);

/* ---- warnings ------------------------------------------------------------ */

/* Whether a file had nothing to dequantize. */
bool report_is_dense(const report *r);
/* Whether arrays were quantized so coarsely that the model will not work:
 * cosine similarity below 0.9. If so, writes a message that names them. */
enum { REPORT_WARNING = 4096 };
bool report_warning(const report *r, char *to, size_t size);

/* ---- figures ------------------------------------------------------------- */

/* Arrays with the same key. */
typedef struct report_group {
    const char *key;
    int64_t count;
    const char *layout; /* as stored; NULL: not read back, or one tensor */
    int64_t block;      /* elements per scale; 0: unknown or none */
    double elements;
    uint64_t before, after;
    lb_difference error;
    double worst; /* largest nrmse of an array */
} report_group;

/* The key of a row; NULL: in no group. */
typedef const char *report_key(const report_row *row);
const char *report_by_type(const report_row *row); /* type in the output */
const char *report_by_reason(const report_row *row);
const char *report_by_source(const report_row *row); /* type in the source */
const char *report_all(const report_row *row);
/* Groups rows by key, in the order of the file. Returns the number of groups.
 */
int report_groups(const report *r, report_key *key, report_group *to);

/* The error of all arrays that were quantized or converted. */
lb_difference report_error(const report *r);
/* Indices of the arrays with the largest errors, largest first. Returns the
 * number, at most n. */
int report_worst(const report *r, int64_t *to, int n);
void difference_add(lb_difference *all, const lb_difference *d);
/* NaN if the number of elements is unknown. */
double bits_per_weight(uint64_t bytes, double elements);
/* The same with three digits after the point, or "". */
size_text show_bits(uint64_t bytes, double elements);
/* Whether this is a copy of a checkpoint that another program has quantized:
 * its tensors are not weights, and the number of weights is unknown. */
bool report_is_verbatim(const report *r);

/* Errors by layer and module. In model.layers.3.mlp.up.weight, the first number
 * is the layer and the names around it the module. */
typedef struct report_cell {
    lb_difference error; /* n is 0: no such array */
} report_cell;
enum { GRID_MODULES = 40, GRID_LAYERS = 512 };
typedef struct report_grid {
    char module[GRID_MODULES][64];
    int modules, layers;
    report_cell *cell; /* [module][layer], rows of GRID_LAYERS */
} report_grid;
/* False if there is nothing to draw, or out of memory. Free cell afterwards. */
bool report_grid_of(const report *r, report_grid *g);

/* ---- rendering ----------------------------------------------------------- */

/* Three lines: what was written, sizes, error; why selected arrays were not
 * quantized; and how to quantize embeddings and the output head if they were
 * left out. note: the layout, or empty. */
void report_summary(const report *r, const char *note, FILE *to);
/* Everything else, for -vv. */
void report_text(const report *r, FILE *to);
void report_markdown(const report *r, FILE *to);
/* The members of a result object (docs/json.md). */
void report_json(const report *r, json *j);
void report_json_file(const report *r, FILE *to);
void report_html(const report *r, FILE *to);
/* Plots: one <svg> each, or nothing if there is no data. */
void plot_sizes(const report *r, FILE *to);
void plot_layers(const report *r, FILE *to);
void plot_codes(const report_codes *c, FILE *to);
void plot_worst(const report *r, FILE *to);
/* report_page.c: for <style> and <script>. */
extern const char report_style[], report_table_style[], report_script[];
/* "1,234,567", or "" for NaN */
size_text show_thousands(double n);
/* Escapes text for HTML. */
void put_html(FILE *to, const char *text);
/* The same for the name of an array, which may break after dots. */
void put_html_name(FILE *to, const char *name);

/* Before the job: whether every --report can be written, and none of them
 * overwrites a file of the job. Otherwise prints an error. */
verdict reports_check(const arguments *a);
/* Writes the file of every --report. Atomic: each is renamed when complete. */
verdict reports_save(const report *r, const arguments *a);

#endif
