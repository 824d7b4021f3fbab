/* test_golden.c - every codec against the results of other programs: codes,
 * scales and decoded values, bit for bit, in every compat mode
 * (golden/codec_*.txt).
 *
 * The results are also read back: arrays made from the recorded codes and
 * parts, in native and in other layouts, must decode to the recorded values.
 */
/* ctest: simde skip-tsan */
#include "check.h"
#include "golden.h"

enum { MAX_PARTS = 8 };

/* A part in the file: its name may have dots, such as absmax.codes. */
typedef struct given_part {
    char name[GOLDEN_NAME], layout[GOLDEN_NAME]; /* "": native layout */
    golden_array a;
} given_part;

typedef struct golden_case {
    const char *file;
    char name[GOLDEN_NAME];
    lb_array *input; /* NULL: it is only read */
    lb_shape shape;
    lb_quant_config config;
    char format[GOLDEN_NAME];
    golden_array codes, values, convert[4];
    int n_convert;
    given_part part[MAX_PARTS];
    int n_part;
} golden_case;

static void check(const golden_case *c, bool ok, const char *what,
                  const char *why)
{
    if (check_fails(ok))
        fprintf(stderr, "%s: %s: %s: %s\n", c->file, c->name, what, why);
}

static void check_same(lb_ctx *cx, const golden_case *c, lb_array *a,
                       const golden_array *want, const char *what)
{
    lb_text why = {""};
    check(c, golden_same(cx, a, want, &why), what, why.s);
    lb_clear(cx);
}

/* ---- reading a case ------------------------------------------------------ */

static bool begin_case(golden_file *f, const golden_names *inputs,
                       golden_case *c)
{
    *c = (golden_case){.file = f->path};
    if (f->n < 3 || !golden_config(f, 3, &c->config) || !c->config.format)
        return false;
    snprintf(c->name, sizeof c->name, "%.63s", f->word[1]);
    snprintf(c->format, sizeof c->format, "%.63s", c->config.format);
    c->config.format = c->format;
    c->input = golden_find(inputs, f->word[2]);
    return c->input || !strcmp(f->word[2], "-");
}

static bool read_part(golden_file *f, golden_case *c)
{
    const bool foreign = !strcmp(f->word[0], "export");
    if (c->n_part == MAX_PARTS || f->n < 5) return false;
    given_part *p = &c->part[c->n_part++];
    if (foreign) snprintf(p->layout, sizeof p->layout, "%.63s", f->word[1]);
    snprintf(p->name, sizeof p->name, "%.63s", f->word[1 + foreign]);
    return golden_read(f, 2 + foreign, &p->a);
}

static bool read_case(golden_file *f, const golden_names *inputs,
                      golden_case *c)
{
    bool ok = begin_case(f, inputs, c);
    while (ok && golden_next(f)) {
        const char *w = f->word[0];
        if (!strcmp(w, "end")) break;
        if (!strcmp(w, "part") || !strcmp(w, "export"))
            ok = read_part(f, c);
        else if (!strcmp(w, "codes"))
            ok = golden_read(f, 1, &c->codes);
        else if (!strcmp(w, "values"))
            ok = golden_read(f, 1, &c->values);
        else if (!strcmp(w, "convert") && c->n_convert < 4)
            ok = golden_read(f, 1, &c->convert[c->n_convert++]);
        else
            ok = false;
    }
    c->shape = c->values.shape;
    return ok && c->values.dtype && c->codes.dtype;
}

static void free_case(golden_case *c)
{
    golden_free(&c->codes);
    golden_free(&c->values);
    while (c->n_convert)
        golden_free(&c->convert[--c->n_convert]);
    while (c->n_part)
        golden_free(&c->part[--c->n_part].a);
}

static const given_part *part_named(const golden_case *c, const char *layout,
                                    const char *name)
{
    for (int i = 0; i < c->n_part; i++)
        if (!strcmp(c->part[i].name, name) &&
            !strcmp(c->part[i].layout, layout))
            return &c->part[i];
    return NULL;
}

/* ---- computed values ----------------------------------------------------- */

/* "absmax.codes": the codes of the absmax of a. */
static lb_array *component(lb_ctx *cx, lb_array *a, const char *path)
{
    char name[GOLDEN_NAME];
    const char *dot;
    while ((dot = strchr(path, '.'))) {
        snprintf(name, sizeof name, "%.*s", (int)(dot - path), path);
        a = lb_component(cx, a, name);
        path = dot + 1;
    }
    return lb_component(cx, a, path);
}

static void check_array(lb_ctx *cx, const golden_case *c, lb_array *q,
                        const char *how)
{
    char what[GOLDEN_NAME + 80];
    check(c, q != NULL, how, lb_error(cx));
    lb_clear(cx);
    if (!q) return;
    snprintf(what, sizeof what, "%s: codes", how);
    check_same(cx, c, lb_codes(cx, q), &c->codes, what);
    snprintf(what, sizeof what, "%s: values", how);
    check_same(cx, c, lb_materialize(cx, q), &c->values, what);
    for (int i = 0; i < c->n_convert; i++) {
        snprintf(what, sizeof what, "%s: values as %s", how,
                 lb_dtype_name(c->convert[i].dtype));
        lb_array *d = lb_convert(cx, q, c->convert[i].dtype);
        check_same(cx, c, lb_materialize(cx, d), &c->convert[i], what);
    }
}

static void check_quantize(lb_ctx *cx, const golden_case *c, lb_array *q)
{
    check_array(cx, c, q, "quantize");
    for (int i = 0; q && i < c->n_part; i++) {
        const given_part *p = &c->part[i];
        lb_array *got = *p->layout ? lb_export(cx, q, p->layout, p->name)
                                   : component(cx, q, p->name);
        check_same(cx, c, got, &p->a, p->name);
    }
    lb_quant_config simulated = c->config;
    simulated.simulate = true;
    lb_array *s = lb_quantize(cx, c->input, &simulated);
    check_same(cx, c, s, &c->values, "simulate");
    if (s) check(c, !strcmp(lb_format_of(s), "dense"), "simulate", "not dense");
}

/* ---- reading back -------------------------------------------------------- */

/* The quantized array, and its expected values. */
static lb_quant_config reading(const golden_case *c)
{
    lb_quant_config config = c->config;
    config.dtype = c->values.dtype;
    config.double_quant = false;
    return config;
}

/* A number is stored as one, or as a row of one if there are blocks. */
static lb_array *scale_of(lb_ctx *cx, const golden_case *c)
{
    const given_part *scale = part_named(c, "", "scale");
    const given_part *p = scale ? scale : part_named(c, "", "absmax");
    lb_array *a = p ? golden_dense(cx, &p->a) : NULL;
    return a && scale && !c->shape.rank
               ? lb_reshape(cx, a, lb_shape_make(0, NULL))
               : a;
}

/* Codes alone contain no offset and no quantized scales. */
static void check_from_codes(lb_ctx *cx, const golden_case *c)
{
    const lb_quant_config config = reading(c);
    lb_array *codes = golden_dense(cx, &c->codes), *scale = scale_of(cx, c);
    if (!codes || c->config.center || c->config.double_quant) return;
    if (!c->values.size && !scale) return; /* a part is not in the file */
    check_array(cx, c, lb_from_codes(cx, &config, codes, scale), "from_codes");
}

/* The scales of a double-quantized array, which are quantized themselves. */
static lb_array *nested(lb_ctx *cx, const golden_case *c, lb_array *table)
{
    static const char *const name[] = {"codes", "absmax", "offset", "table"};
    lb_array *part[4] = {NULL, NULL, NULL, table};
    for (int i = 0; i < 3; i++) {
        char path[GOLDEN_NAME];
        snprintf(path, sizeof path, "absmax.%s", name[i]);
        const given_part *p = part_named(c, "", path);
        part[i] = p ? golden_dense(cx, &p->a) : NULL;
    }
    if (!part[0]) return NULL;
    const lb_quant_config config = {.format = "dynamic8",
                                    .dtype = LB_F32,
                                    .blocks = LB_BLOCKS_FLAT,
                                    .center = true};
    return lb_from_parts(cx, &config, lb_shape_of(part[0]), NULL, name, part,
                         table ? 4 : 3);
}

static void check_from_parts(lb_ctx *cx, const golden_case *c,
                             const char *layout, lb_array *table)
{
    const char *name[MAX_PARTS];
    lb_array *part[MAX_PARTS];
    int n = 0;
    bool has_codes = *layout != 0;
    for (int i = 0; i < c->n_part; i++) {
        const given_part *p = &c->part[i];
        if (strcmp(p->layout, layout) || strchr(p->name, '.')) continue;
        has_codes |= !strcmp(p->name, "codes");
        if (!p->a.data) return; /* too long: there is only a hash */
        name[n] = p->name;
        part[n++] = c->config.double_quant && !strcmp(p->name, "absmax")
                        ? nested(cx, c, table)
                        : golden_dense(cx, &p->a);
    }
    if (!n || !has_codes) return;
    const lb_quant_config config = reading(c);
    /* The levels of a polynomial are a part that is not in the file. */
    if (config.decode && !*layout) return;
    check_array(cx, c,
                lb_from_parts(cx, &config, c->shape, *layout ? layout : NULL,
                              name, part, n),
                *layout ? layout : "from_parts");
}

/* eformer's int8 has the same parts as ours. */
static void check_eformer_int8(lb_ctx *cx, const golden_case *c, lb_array *q)
{
    static const char *const name[] = {"weight", "scale"};
    const given_part *scale = part_named(c, "", "scale");
    lb_array *part[] = {golden_dense(cx, &c->codes),
                        scale ? golden_dense(cx, &scale->a) : NULL};
    if (strcmp(c->format, "int8") || c->config.compat != LB_COMPAT_EFORMER ||
        !c->shape.rank || !part[0] || !part[1] || !q)
        return;
    const lb_quant_config config = reading(c);
    check_same(cx, c, lb_export(cx, q, "eformer", name[0]), &c->codes,
               "weight");
    check_same(cx, c, lb_export(cx, q, "eformer", name[1]), &scale->a, "scale");
    check_array(cx, c,
                lb_from_parts(cx, &config, c->shape, "eformer", name, part, 2),
                "eformer");
}

/* ---- all files ----------------------------------------------------------- */

static void check_case(lb_ctx *cx, const golden_case *c, lb_array *map)
{
    lb_enter(cx);
    lb_array *q = c->input ? lb_quantize(cx, c->input, &c->config) : NULL;
    if (c->input) check_quantize(cx, c, q);
    check_from_codes(cx, c);
    check_from_parts(cx, c, "", NULL);
    check_from_parts(cx, c, "eformer", NULL);
    check_eformer_int8(cx, c, q);
    if (c->config.double_quant)
        check_from_parts(cx, c, "",
                         lb_reshape(cx, map, LB_SHAPE(1, lb_size(map))));
    lb_leave(cx);
    lb_clear(cx);
}

static void check_file(lb_ctx *cx, const char *path, golden_names *inputs)
{
    golden_file f;
    golden_case c;
    int cases = 0;
    const long before = check_count, failed = check_failed;
    bool ok = golden_open(&f, path);
    while (ok && golden_next(&f)) {
        c = (golden_case){0};
        if (!strcmp(f.word[0], "input")) {
            ok = golden_input(cx, &f, inputs);
            continue;
        }
        ok = !strcmp(f.word[0], "case") && read_case(&f, inputs, &c);
        if (ok) check_case(cx, &c, golden_find(inputs, "dynamic_map"));
        free_case(&c);
        cases++;
    }
    CHECK(ok && f.whole);
    if (!ok)
        fprintf(stderr, "%s (line %d of %s)\n", golden_error(), f.line, path);
    if (cases)
        printf("%s: %d cases, %ld checks, %ld failed\n", path, cases,
               check_count - before, check_failed - failed);
    golden_close(&f);
}

int main(void)
{
    static golden_names inputs;
    static const char *const path[] = {
        "tests/golden/golden_inputs.txt", "tests/golden/codec_native.txt",
        "tests/golden/codec_eformer.txt", "tests/golden/codec_bnb_cpu.txt",
        "tests/golden/codec_bnb_cuda.txt"};
    lb_ctx *cx = lb_open(NULL);
    for (size_t i = 0; i < sizeof path / sizeof *path; i++)
        check_file(cx, path[i], &inputs);
    golden_forget(&inputs);
    lb_close(cx);
    return check_report("test_golden");
}
