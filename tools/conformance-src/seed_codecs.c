/* seed_codecs.c - groups 1, 2, 3 and 9: codes, scales and values of a codec.
 *
 * An array is made in several ways: quantized, converted afterwards, from the
 * expected bytes in layout eformer, and from its own codes and scales. All must
 * have the expected values, and the first one the expected bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "seed_cases.h"

typedef struct codec {
    const char *op;
    const char *format;
    const char *scale; /* name of the part in lb_component */
    bool codes;        /* x holds codes */
} codec;

static const codec codecs[] = {
    {"int8_quantize", "int8", "scale", false},
    {"nf4_quantize", "nf4", "absmax", false},
    {"ternary_quantize", "ternary", "scale", false},
    {"binary_quantize", "binary", "scale", false},
    {"pack2", "ternary", "scale", true},
};

/* Names of a part in the manifest and in layout eformer. */
static const struct {
    const char *output, *part;
} parts[] = {
    {"codes", "weight"},
    {"scale", "scale"},
    {"packed", "packed"},
    {"absmax", "absmax"},
};
enum { N_PARTS = sizeof(parts) / sizeof(parts[0]) };

static const codec *codec_of(const char *op)
{
    for (size_t i = 0; op && i < sizeof(codecs) / sizeof(codecs[0]); i++) {
        if (!strcmp(codecs[i].op, op)) return &codecs[i];
    }
    return NULL;
}

lb_array *seed_make(lb_ctx *cx, const lb_quant_config *config, lb_array *x)
{
    if (dtype_is_float(lb_dtype_of(x))) return lb_quantize(cx, x, config);
    lb_quant_config given_codes = *config;
    given_codes.scale = LB_SCALE_NONE;
    return lb_from_codes(cx, &given_codes, x, NULL);
}

bool seed_check_parts(checker *c, const json_t *refs, lb_array *a,
                      const char *except)
{
    bool ok = true;
    for (int i = 0; ok && i < N_PARTS; i++) {
        const json_t *const ref = json_object_get(refs, parts[i].output);
        given want = {0};
        if (!ref || !strcmp(parts[i].output, except)) continue;
        ok = seed_array(c, ref, &want) &&
             check_array(c, parts[i].output,
                         lb_export(c->cx, a, "eformer", parts[i].part), &want);
        if (ok && !strcmp(parts[i].output, "codes")) {
            ok = check_array(c, "lb_codes", lb_codes(c->cx, a), &want);
        }
        given_free(&want);
    }
    return ok;
}

/* An array of that shape from the parts of `refs`. */
static lb_array *from_parts(checker *c, const json_t *refs, lb_shape shape,
                            const lb_quant_config *config)
{
    given g[N_PARTS] = {0};
    const char *name[N_PARTS];
    lb_array *part[N_PARTS];
    int n = 0;
    bool ok = true;
    for (int i = 0; ok && i < N_PARTS; i++) {
        const json_t *const ref = json_object_get(refs, parts[i].output);
        if (!ref) continue;
        ok = seed_array(c, ref, &g[n]);
        name[n] = parts[i].part;
        part[n] = g[n].a;
        n++;
    }
    lb_array *const a =
        ok ? lb_from_parts(c->cx, config, shape, "eformer", name, part, n)
           : NULL;
    for (int i = 0; i < n; i++) {
        given_free(&g[i]);
    }
    return a;
}

/* ---- values -------------------------------------------------------------- */

bool seed_table(seed_case *s, const char *name, float *table)
{
    const json_t *const bits = json_object_get(s->manifest, name);
    for (size_t i = 0; i < 16; i++) {
        const char *const hex = json_string_value(json_array_get(bits, i));
        const uint32_t v = (uint32_t)strtoul(hex ? hex : "", NULL, 16);
        if (!hex || json_array_size(bits) != 16) {
            return note_fail(s->check.note, "%s has no 16 entries", name);
        }
        memcpy(&table[i], &v, sizeof(v));
    }
    return true;
}

/* The array's table must have the polynomial's values from the manifest. */
static bool check_table(seed_case *s, lb_array *a)
{
    static const char name[] = "nf4_poly_bits_fma";
    float table[16];
    if (!json_object_get(s->manifest, name)) return true;
    if (!seed_table(s, name, table)) return false;
    const given want = {.dtype = LB_F32,
                        .tol = tolerance_bits(),
                        .raw = {.shape = LB_SHAPE(16), .data = table}};
    return check_bytes(&s->check, "table of decode=poly",
                       lb_component(s->check.cx, a, "table"), &want);
}

typedef struct making {
    const codec *codec;
    const lb_quant_config *config; /* with the expected dtype and decode */
    lb_array *x;
} making;

static bool check_ways(seed_case *s, const making *m, const given *want)
{
    checker *const c = &s->check;
    lb_ctx *const cx = c->cx;
    const json_t *const refs = json_object_get(s->it, "outputs");
    const lb_shape shape = lb_shape_of(m->x);
    lb_array *const made = seed_make(cx, m->config, m->x);
    if (!check_array(c, "quantized", made, want)) return false;
    lb_quant_config plain = *m->config;
    /* Codes without a scale do not determine the materialized dtype. */
    if (!m->codec->codes) plain.dtype = LB_NO_DTYPE;
    lb_array *const other = seed_make(cx, &plain, m->x);
    if (!check_array(c, "quantized and converted",
                     lb_convert(cx, other, want->dtype), want) ||
        !check_array(c, "from eformer's parts",
                     from_parts(c, refs, shape, m->config), want)) {
        return false;
    }
    lb_array *const scale = lb_component(cx, made, m->codec->scale);
    lb_quant_config again = *m->config;
    if (!scale) again.scale = LB_SCALE_NONE;
    lb_array *const rebuilt =
        lb_from_codes(cx, &again, lb_codes(cx, made), scale);
    if (!check_array(c, "from codes and scale", rebuilt, want)) return false;
    return m->config->decode != LB_DECODE_POLY || check_table(s, made);
}

static bool check_values(seed_case *s, const codec *k, lb_array *x,
                         lb_quant_config config, const char *name,
                         const json_t *ref)
{
    given want = {0};
    if (!seed_array(&s->check, ref, &want)) return false;
    config.dtype = want.dtype;
    if (!strncmp(name, "values_poly", strlen("values_poly"))) {
        config.decode = LB_DECODE_POLY;
    }
    const making m = {k, &config, x};
    note why = {.verdict = PASSED};
    note *const outer = s->check.note;
    s->check.note = &why;
    const bool ok = check_ways(s, &m, &want);
    s->check.note = outer;
    if (why.verdict != PASSED) note_fail(outer, "%s, %s", name, why.why);
    given_free(&want);
    return ok;
}

bool seed_codec(seed_case *s)
{
    checker *const c = &s->check;
    const char *const op = json_string_value(json_object_get(s->it, "op"));
    const codec *const k = codec_of(op);
    if (!op) return note_fail(c->note, "the case names no op");
    if (!k) return note_skip(c->note, "op '%.64s' is not known here", op);
    const json_t *const outputs = json_object_get(s->it, "outputs");
    lb_quant_config config = {.struct_size = sizeof(config),
                              .format = k->format,
                              .compat = LB_COMPAT_EFORMER};
    given x = {0};
    if (json_object_size(outputs) == 0) {
        return note_fail(c->note, "nothing is expected");
    }
    if (!seed_params(json_object_get(s->it, "params"), &config, c->note) ||
        !seed_array(c, json_object_get(json_object_get(s->it, "inputs"), "x"),
                    &x)) {
        return false;
    }
    if (k->codes) config.dtype = x.dtype;
    lb_array *const a = seed_make(c->cx, &config, x.a);
    bool ok = (a || library_failed(c->cx, c->note, op)) &&
              seed_check_parts(c, outputs, a, "");
    const char *unknown = NULL;
    for (void *i = json_object_iter((json_t *)outputs); ok && i;
         i = json_object_iter_next((json_t *)outputs, i)) {
        const char *const name = json_object_iter_key(i);
        int p = 0;
        while (p < N_PARTS && strcmp(parts[p].output, name) != 0) {
            p++;
        }
        if (p < N_PARTS) continue;
        if (strncmp(name, "values", strlen("values")) != 0) {
            unknown = name;
            continue;
        }
        ok = check_values(s, k, x.a, config, name, json_object_iter_value(i));
    }
    given_free(&x);
    return ok && (!unknown ||
                  note_skip(c->note, "output '%.64s' is not known", unknown));
}
