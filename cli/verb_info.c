/* verb_info.c - `lowbit info`: what a file holds, from its header alone. */
#include <inttypes.h>
#include <string.h>

#include "input.h"

/* ---- what is counted ----------------------------------------------------- */

typedef struct totals {
    double elements;
    uint64_t bytes;
} totals;

static totals total(const lb_file *f)
{
    totals t = {0};
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

/* ---- numbers of values --------------------------------------------------- */

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
    return v >> unused; /* of the compilers here: with the sign */
}

/* Of an array only what it is. */
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

/* ---- as JSON ------------------------------------------------------------- */

static void json_entry(json *j, const lb_entry *e)
{
    json_open(j, '{');
    json_array_head(j, e);
    json_string(json_key(j, "layout"), e->layout);
    json_int(json_key(j, "tensors"), e->n_tensors);
    json_close(j, '}');
}

static void print_json(const char *path, const lb_file *f)
{
    const totals t = total(f);
    const lb_meta *m;
    json *j = json_begin("info");
    json_string(json_key(j, "path"), path);
    json_string(json_key(j, "kind"), lb_file_kind(f));
    json_double(json_key(j, "parameters"), t.elements);
    json_uint(json_key(j, "bytes"), t.bytes);
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

static void print_entry(const lb_entry *e, int name, int kind)
{
    put_column(stdout, e->name, name);
    put_kind(stdout, e, kind);
    printf("%12" PRIu64 "  ", e->nbytes);
    put_shape(stdout, e->dim, e->rank);
    if (e->layout) printf("  %s", e->layout);
    if (e->n_tensors > 1) printf(", %d tensors", e->n_tensors);
    fputc('\n', stdout);
}

static void print_meta(const lb_meta *m)
{
    json j = {.to = stdout};
    put_text(stdout, m->key, strlen(m->key));
    fputs(" = ", stdout);
    json_value(&j, m);
    fputc('\n', stdout);
}

static void print_table(const char *path, const lb_file *f, bool values)
{
    const totals t = total(f);
    const lb_meta *m;
    put_text(stdout, path, strlen(path));
    printf(": %s, %" PRId64 " array%s, %.0f element%s, %s, %.3g bits each\n",
           lb_file_kind(f), lb_file_count(f), lb_file_count(f) == 1 ? "" : "s",
           t.elements, t.elements == 1 ? "" : "s", show_bytes(t.bytes).s,
           bits_each(t));
    for (int64_t i = 0; values && (m = lb_file_meta(f, i)); i++)
        print_meta(m);
    int name = 4, kind = 12;
    for (int64_t i = 0; i < lb_file_count(f); i++) {
        name = wider(name, name_width(lb_file_entry(f, i)->name));
        kind = wider(kind, kind_width(lb_file_entry(f, i)));
    }
    for (int64_t i = 0; i < lb_file_count(f); i++)
        print_entry(lb_file_entry(f, i), name, kind);
}

/* ---- the verb ------------------------------------------------------------ */

static verdict run(const arguments *a)
{
    const lb_file_options options = {.struct_size = sizeof options,
                                     .raw = a->count[OPTION_RAW] != 0};
    const char *input = input_path(a->operand[0]);
    lb_ctx *cx = input ? context_open(1) : NULL;
    if (!cx) return FAILED;
    lb_file *f = lb_file_open(cx, input, &options);
    verdict v = DONE;
    if (!f)
        v = complain_of(cx);
    else if (a->count[OPTION_JSON])
        print_json(a->operand[0], f);
    else
        print_table(a->operand[0], f, a->count[OPTION_METADATA] != 0);
    lb_file_close(f);
    lb_close(cx);
    return v;
}

static const option_id options_taken[] = {OPTION_JSON, OPTION_METADATA,
                                          OPTION_RAW, N_OPTIONS};

const verb verb_info = {
    .name = "info",
    .operands = "FILE",
    .summary =
        "Lists the arrays of a file: name, dtype or format, bytes, shape",
    .help = "FILE is a safetensors file, its index or the directory of a model,"
            " or a GGUF,\nnpy or npz file. Only its header is read. A type in "
            "parentheses is one that\nthis program cannot load.",
    .examples = "lowbit info model.safetensors\n"
                "lowbit info --metadata model.gguf\n"
                "lowbit info --json model-directory",
    .n_operands = 1,
    .options = options_taken,
    .run = run,
};
