/* report.h - what was done to a file, and what it cost.
 *
 * A model that verbs fill, array by array, and that is then rendered: as text
 * at the end, or as a file, whose name says how: .html, .md or .json.
 */
#ifndef REPORT_H
#define REPORT_H

#include "histogram.h"

typedef struct report_row {
    char *name;
    char *shape;        /* "(2,3)" */
    char *from, *to;    /* "bf16", "nf4 (bf16)" */
    char *format;       /* it is quantized to; NULL: it is not */
    char *kept;         /* why it stays as it was; NULL: it does not */
    const char *layout; /* as stored; NULL: not read back, or one tensor */
    int64_t block;      /* elements per scale; 0: unknown or none */
    lb_entry entry;     /* of the source; its texts belong to this row */
    lb_dtype dtype;     /* in the result; none: its own type, not supported */
    double elements;
    uint64_t before, after; /* bytes */
    lb_difference error;    /* n is 0: it was not measured */
} report_row;

/* Codes of all arrays in one format, and of normal numbers. */
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
    char *command;    /* the same again */
    double seconds;
    char date[32]; /* of the end, UTC */
    char *hash;    /* of the source, a line per file; NULL: not computed */
    int64_t last;  /* row that report_stored has found last */
    uint64_t peak; /* bytes of memory; 0: not known */
    report_row *row;
    int64_t n, room;
    report_codes codes[REPORT_CODES];
    int n_codes;
    bool lacks_memory; /* something is missing because there was none */
} report;

/* ---- filling ------------------------------------------------------------- */

/* A report of what this process was called for. */
void report_begin(report *r, const char *what, int argc, char **argv);
void report_free(report *r);
/* One more array: kind of it in the source and in the result (entry_kind),
 * format and kept as in report_row. Texts are copied. */
void report_add(report *r, const lb_entry *from, const char *to,
                const char *format, lb_dtype dtype, const char *kept,
                uint64_t after, const lb_difference *error);
/* Adds the codes of an array to those of its format; false and an error. */
bool report_count(report *r, lb_ctx *cx, lb_array *a);
/* report_facts.c: how the array of this entry is stored in the result. */
bool report_stored(report *r, lb_ctx *cx, const lb_entry *e, lb_array *a);
/* Hashes the files of the source; without effect if they cannot be read. */
void report_identify(report *r);
/* "nf4: 64, int8: a row": elements per scale of each format; empty if unknown.
 * The layouts in use; empty if unknown. */
void report_blocks(const report *r, char *to, size_t size);
void report_layouts(const report *r, char *to, size_t size);
/* Time and memory: the end. */
void report_end(report *r);
/* What the report is about: the result, or the source if there is none. */
const char *report_title(const report *r);

/* ---- warnings ------------------------------------------------------------ */

/* Whether arrays were quantized so coarsely that the model will not work:
 * cosine similarity below 0.9. Then `to` is a sentence that names them. */
enum { REPORT_WARNING = 4096 };
bool report_warning(const report *r, char *to, size_t size);

/* ---- figures ------------------------------------------------------------- */

/* Arrays that have something in common. */
typedef struct report_group {
    const char *key;
    int64_t count;
    const char *layout; /* as stored; NULL: not read back, or one tensor */
    int64_t block;      /* elements per scale; 0: unknown or none */
    double elements;
    uint64_t before, after;
    lb_difference error;
    double worst; /* nrmse of an array */
} report_group;

/* What is added up; NULL: not this row. */
typedef const char *report_key(const report_row *row);
const char *report_by_type(const report_row *row); /* of the result */
const char *report_by_reason(const report_row *row);
const char *report_by_source(const report_row *row); /* type of the source */
const char *report_all(const report_row *row);
/* Returns how many; the order is that of the file. */
int report_groups(const report *r, report_key *key, report_group *to);

/* Of all arrays that are not what they were. */
lb_difference report_error(const report *r);
/* The largest errors, by index, the worst first; returns how many there are, at
 * most n. */
int report_worst(const report *r, int64_t *to, int n);
void difference_add(lb_difference *all, const lb_difference *d);
double bits_per_weight(uint64_t bytes, double elements);

/* Errors by layer and module. Names as model.layers.3.mlp.up.weight: the first
 * number is the layer, what stands around it the module. */
typedef struct report_cell {
    lb_difference error; /* n is 0: there is none */
} report_cell;
enum { GRID_MODULES = 40, GRID_LAYERS = 512 };
typedef struct report_grid {
    char module[GRID_MODULES][64];
    int modules, layers;
    report_cell *cell; /* modules by GRID_LAYERS */
} report_grid;
/* False: nothing to draw, or out of memory. Free cell. */
bool report_grid_of(const report *r, report_grid *g);

/* ---- rendering ----------------------------------------------------------- */

/* Three lines: what was written, sizes, error; and how to quantize embeddings
 * and the output head if they were left out. note: the layout, or empty. */
void report_summary(const report *r, const char *note, FILE *to);
/* Everything else, for -vv. */
void report_text(const report *r, FILE *to);
void report_markdown(const report *r, FILE *to);
/* The members of a result object (docs/json.md). */
void report_json(const report *r, json *j);
void report_json_file(const report *r, FILE *to);
void report_html(const report *r, FILE *to);
/* Plots: an <svg> each, or nothing where there is nothing to draw. */
void plot_sizes(const report *r, FILE *to);
void plot_layers(const report *r, FILE *to);
void plot_codes(const report_codes *c, FILE *to);
void plot_worst(const report *r, FILE *to);
/* report_page.c: for <style> and <script>. */
extern const char report_style[], report_table_style[], report_script[];
/* "1,234,567" */
size_text show_thousands(double n);
/* Text in HTML. */
void put_html(FILE *to, const char *text);
/* The same for the name of an array, which may break after dots. */
void put_html_name(FILE *to, const char *name);

/* Before the job: whether every --report can be written, and none of them
 * overwrites a file of the job. Otherwise prints an error. */
verdict reports_check(const arguments *a);
/* Writes the file of every --report. Atomic: each is renamed when complete. */
verdict reports_save(const report *r, const arguments *a);

#endif
