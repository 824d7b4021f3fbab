/* verb_info.c - `lowbit info`: the arrays and metadata of a file, from its
 * header alone. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "context.h"
#include "input.h"
#include "places.h"

/* ---- totals ------------------------------------------------------------- */

typedef struct totals {
    double elements; /* unknown if foreign: codes are packed into words */
    uint64_t bytes;
    bool foreign; /* quantized by another program, and not decoded */
} totals;

static totals total(const lb_file *f, const lb_quant_method *q)
{
    totals t = {.foreign = q->name && !q->decoded};
    for (int64_t i = 0; i < lb_file_count(f); i++) {
        const lb_entry *e = lb_file_entry(f, i);
        t.elements += entry_elements(e);
        t.bytes += e->nbytes;
    }
    return t;
}

static double bits_each(totals t)
{
    return t.elements > 0 ? (double)t.bytes * 8 / t.elements : 0;
}

/* ---- metadata values ----------------------------------------------------- */

static uint64_t bits_of(const uint8_t *p, uint64_t n)
{
    uint64_t v = 0;
    for (uint64_t i = 0; i < n && i < 8; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

static double float_of(const lb_meta *m)
{
    const uint64_t bits = bits_of(m->bytes, m->size);
    const uint32_t half = (uint32_t)bits;
    float f;
    double d;
    memcpy(&f, &half, sizeof f);
    memcpy(&d, &bits, sizeof d);
    return m->type == LB_META_F32 ? (double)f : d;
}

static bool is_signed(lb_meta_type t)
{
    return t == LB_META_I8 || t == LB_META_I16 || t == LB_META_I32 ||
           t == LB_META_I64;
}

static int64_t int_of(const lb_meta *m)
{
    const int unused = 64 - 8 * (int)m->size;
    const uint64_t top = bits_of(m->bytes, m->size) << unused;
    int64_t v;
    memcpy(&v, &top, sizeof v);
    return v >> unused; /* arithmetic shift on all supported compilers */
}

/* A list only by its length: those in files are long. */
static void json_value(json *j, const lb_meta *m)
{
    switch (m->type) {
    case LB_META_STRING:
        json_text(j, (const char *)m->bytes, (size_t)m->size);
        break;
    case LB_META_ARRAY:
        json_open(j, '{');
        json_uint(json_key(j, "array"), m->n);
        json_close(j, '}');
        break;
    case LB_META_BOOL:
        json_bool(j, m->bytes[0] != 0);
        break;
    case LB_META_F32:
    case LB_META_F64:
        json_double(j, float_of(m));
        break;
    default:
        if (is_signed(m->type))
            json_int(j, int_of(m));
        else
            json_uint(j, bits_of(m->bytes, m->size));
    }
}

/* ---- partial files ------------------------------------------------------ */

static bool is_partial(const char *path)
{
    static const char end[] = ".partial";
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return n > sizeof end - 1 &&
           memcmp(path + n - (sizeof end - 1), end, sizeof end - 1) == 0;
}

#define INCOMPLETE                                                             \
    "the incomplete output of an interrupted run; repeat the command with "    \
    "--resume to continue it"

/* A partial file has a journal, and is not a valid file yet; in a partial
 * directory some files may be complete. */
static verdict open_failed(const lb_ctx *cx, const char *path)
{
    if (is_partial(path) && access(path, F_OK) == 0)
        return complain(BAD_INPUT, "%s (%s) is " INCOMPLETE, path,
                        show_bytes(place_stored(path)).s);
    return complain_of(cx);
}

/* Notes that the file is a partial output, or that one exists beside it. */
static void note_partial(const char *path, bool found)
{
    char beside[PATH_MAX];
    uint64_t nbytes;
    if (found && is_partial(path))
        caution("%s (%s) is " INCOMPLETE, path,
                show_bytes(place_stored(path)).s);
    else if (!found && place_partial(path, beside, &nbytes))
        caution("%s (%s) exists: " INCOMPLETE, beside, show_bytes(nbytes).s);
}

/* ---- as JSON ------------------------------------------------------------- */

static void json_entry(json *j, const lb_entry *e)
{
    json_open(j, '{');
    json_array_head(j, e);
    json_string(json_key(j, "layout"), e->layout);
    json_int(json_key(j, "tensors"), e->n_tensors);
    json_close(j, '}');
}

static void json_method(json *j, const lb_quant_method *q)
{
    if (!q->name) {
        json_string(j, NULL);
        return;
    }
    json_open(j, '{');
    json_string(json_key(j, "method"), q->name);
    json_bool(json_key(j, "decoded"), q->decoded);
    json_string(json_key(j, "source"), q->source);
    json_string(json_key(j, "tensor"), q->tensor);
    json_close(j, '}');
}

static void print_json(const char *path, const lb_file *f,
                       const lb_quant_method *q, const context_options *o)
{
    const double unknown = (double)NAN;
    const totals t = total(f, q);
    const lb_meta *m;
    json *j = json_begin("info");
    json_string(json_key(j, "path"), path);
    json_string(json_key(j, "kind"), lb_file_kind(f));
    json_double(json_key(j, "parameters"), t.foreign ? unknown : t.elements);
    json_uint(json_key(j, "bytes"), t.bytes);
    json_bool(json_key(j, "partial"), is_partial(path));
    json_method(json_key(j, "quantization"), q);
    context_json(json_key(j, "context"), f, o);
    json_open(json_key(j, "metadata"), '{');
    for (int64_t i = 0; (m = lb_file_meta(f, i)); i++) {
        json_key(j, m->key);
        json_value(j, m);
    }
    json_close(j, '}');
    json_open(json_key(j, "arrays"), '[');
    for (int64_t i = 0; i < lb_file_count(f); i++) {
        json_next(j);
        json_entry(j, lb_file_entry(f, i));
    }
    json_close(j, ']');
    json_end(j);
}

/* ---- as a table ---------------------------------------------------------- */

typedef struct info_widths {
    int name, kind, shape;
} info_widths;

static void shape_text(const lb_entry *e, char *to, size_t size)
{
    FILE *f = fmemopen(to, size, "w");
    *to = 0;
    if (!f) return;
    put_shape(f, e->dim, e->rank);
    fclose(f);
}

static void print_entry(const lb_entry *e, const info_widths *w)
{
    char shape[256];
    shape_text(e, shape, sizeof shape);
    put_column(stdout, e->name, w->name);
    put_kind(stdout, e, w->kind);
    put_column(stdout, shape, w->shape);
    printf("%8s", show_bytes(e->nbytes).s);
    if (e->layout) printf("  %s", e->layout);
    if (e->n_tensors > 1) printf(", %d tensors", e->n_tensors);
    fputc('\n', stdout);
}

/* The fewest digits that identify it; also NaN and infinities. */
static void print_real(const lb_meta *m)
{
    const double v = float_of(m);
    const bool narrow = m->type == LB_META_F32;
    char text[40];
    for (int digits = narrow ? 6 : 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if ((narrow ? (double)strtof(text, NULL) : strtod(text, NULL)) == v)
            break;
    }
    fputs(text, stdout);
}

static void print_meta(const lb_meta *m)
{
    json j = {.to = stdout};
    put_text(stdout, m->key, strlen(m->key));
    fputs(" = ", stdout);
    if (m->type == LB_META_ARRAY)
        printf("[%" PRIu64 " value%s]", m->n, m->n == 1 ? "" : "s");
    else if (m->type == LB_META_F32 || m->type == LB_META_F64)
        print_real(m);
    else
        json_value(&j, m);
    fputc('\n', stdout);
}

static void print_rows(const lb_entry **entry, int64_t n)
{
    info_widths w = {4, 4, 5};
    for (int64_t i = 0; i < n; i++) {
        char shape[256];
        shape_text(entry[i], shape, sizeof shape);
        w.name = wider(w.name, name_width(entry[i]->name));
        w.kind = wider(w.kind, kind_width(entry[i]));
        w.shape = wider(w.shape, name_width(shape));
    }
    put_column(stdout, "name", w.name);
    put_column(stdout, "type", w.kind);
    put_column(stdout, "shape", w.shape);
    printf("%8s\n", "size");
    for (int64_t i = 0; i < n; i++)
        print_entry(entry[i], &w);
}

/* The layout column names the methods that are decoded. */
static void print_method(const lb_quant_method *q, bool raw)
{
    const char *by = q->source ? q->source : q->tensor;
    if (!q->name || q->decoded) return;
    fputs("quantized with ", stdout);
    put_text(stdout, q->name, strlen(q->name));
    printf(" (%s ", q->source ? "according to" : "recognized by tensor");
    put_text(stdout, by, strlen(by));
    printf(")%s: the tensors are listed as stored\n",
           raw ? "" : ", which cannot be decoded");
}

static void print_total(int64_t n, totals t)
{
    const char *s = n == 1 ? "" : "s";
    if (t.foreign) {
        printf("total: %" PRId64 " tensor%s, %s\n", n, s,
               show_bytes(t.bytes).s);
        return;
    }
    printf("total: %" PRId64 " array%s, %s parameter%s, %s", n, s,
           show_count(t.elements).s, t.elements == 1 ? "" : "s",
           show_bytes(t.bytes).s);
    if (t.elements > 0) printf(", %.3g bits per weight", bits_each(t));
    putchar('\n');
}

static bool print_table(const char *path, const lb_file *f,
                        const lb_quant_method *q, bool values, bool raw)
{
    const totals t = total(f, q);
    const int64_t n = lb_file_count(f);
    const lb_meta *m;
    const lb_entry **entry = entries_by_name(f);
    if (!entry) return false;
    put_text(stdout, path, strlen(path));
    printf(": %s\n", lb_file_kind(f));
    print_method(q, raw);
    for (int64_t i = 0; values && (m = lb_file_meta(f, i)); i++)
        print_meta(m);
    if (n) print_rows(entry, n);
    print_total(n, t);
    free(entry);
    return true;
}

/* ---- the verb ------------------------------------------------------------ */

static verdict run(const arguments *a)
{
    const lb_file_options options = {.struct_size = sizeof options,
                                     .raw = a->count[OPTION_RAW] != 0};
    const char *input = input_path(a->operand[0]);
    context_options o;
    if (!context_read(a, &o)) return USAGE;
    lb_ctx *cx = input ? context_open(1) : NULL;
    if (!cx) return complaint_verdict();
    lb_file *f = lb_file_open(cx, input, &options);
    lb_quant_method q;
    verdict v = DONE;
    if (!f || !lb_file_method(cx, f, &q))
        v = open_failed(cx, a->operand[0]);
    else if (a->count[OPTION_JSON])
        print_json(a->operand[0], f, &q, &o);
    else if (!print_table(a->operand[0], f, &q, a->count[OPTION_METADATA] != 0,
                          options.raw))
        v = complain(FAILED, "out of memory");
    else
        context_print(f, &o);
    note_partial(a->operand[0], f != NULL);
    lb_file_close(f);
    lb_close(cx);
    return v;
}

static const option_id options_taken[] = {
    OPTION_BANDWIDTH, OPTION_CONTEXT, OPTION_JSON, OPTION_MEMORY,
    OPTION_METADATA,  OPTION_RAW,     N_OPTIONS};

const verb verb_info = {
    .name = "info",
    .operands = "FILE",
    .summary = "List the arrays of a file: type, shape, size",
    .help = "FILE is a safetensors, GGUF, npy or npz file, a safetensors index "
            "or a model directory; - is standard input. Only the header is "
            "read.\n\n"
            "A quantized array is shown with its format and, in parentheses, "
            "the dtype that it decodes to: nf4 (bf16). Sizes are in decimal "
            "units (1 MB is 1000000 bytes) and include the scales.\n\n"
            "--context estimates what a decoder-only model needs, from names "
            "and shapes: the cache of keys and values in f16 for a context of "
            "N tokens, whether it fits into memory together with the weights, "
            "and a bound on tokens per second, since each token reads all "
            "weights and the cache once. Sliding windows are not considered.",
    .examples = "lowbit info model.safetensors\n"
                "lowbit info --metadata model.gguf\n"
                "lowbit info --context 8192 model.gguf\n"
                "lowbit info --json model/",
    .n_operands = 1,
    .options = options_taken,
    .run = run,
    .streams = true,
};
