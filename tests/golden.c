/* golden.c - see golden.h. */
#include "golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

static char error_text[256];

const char *golden_error(void)
{
    return error_text;
}

static bool wrong(const golden_file *f, const char *why)
{
    snprintf(error_text, sizeof error_text, "%s:%d: %s", f->path, f->line, why);
    return false;
}

/* ---- lines --------------------------------------------------------------- */

static char *read_all(FILE *f)
{
    size_t n = 0, room = 1 << 16;
    char *text = malloc(room);
    while (text) {
        n += fread(text + n, 1, room - 1 - n, f);
        if (n < room - 1) {
            text[n] = 0;
            return text;
        }
        char *more = realloc(text, room *= 2);
        if (!more) free(text);
        text = more;
    }
    return NULL;
}

bool golden_open(golden_file *f, const char *path)
{
    *f = (golden_file){.path = path};
    FILE *file = fopen(path, "rb");
    f->text = f->at = file ? read_all(file) : NULL;
    if (file) fclose(file);
    return f->text || wrong(f, "cannot be read (run tests from the root)");
}

void golden_close(golden_file *f)
{
    free(f->text);
    *f = (golden_file){0};
}

/* Counts; true for the last line, which states the expected number. */
static bool is_total(golden_file *f)
{
    const char *w = f->word[0];
    f->records +=
        !strcmp(w, "input") || !strcmp(w, "case") || !strcmp(w, "call");
    if (strcmp(w, "total")) return false;
    f->whole = f->n == 2 && atoi(f->word[1]) == f->records;
    return true;
}

bool golden_next(golden_file *f)
{
    while (f->at && *f->at) {
        char *line = f->at, *end = strchr(line, '\n');
        f->at = end ? end + 1 : NULL;
        if (end) *end = 0;
        f->line++;
        f->n = 0;
        if (*line == '#') continue;
        char *rest = NULL;
        for (char *w = strtok_r(line, " ", &rest); w && f->n < GOLDEN_WORDS;
             w = strtok_r(NULL, " ", &rest))
            f->word[f->n++] = w;
        if (f->n && !is_total(f)) return true;
    }
    return false;
}

/* ---- arrays -------------------------------------------------------------- */

lb_dtype golden_dtype(const char *name)
{
    for (int d = LB_NO_DTYPE + 1; name && d < LB_N_DTYPES; d++)
        if (!strcmp(lb_dtype_name((lb_dtype)d), name)) return (lb_dtype)d;
    return LB_NO_DTYPE;
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* Elements in hex, most significant digit first, to little-endian bytes. */
static bool read_bits(const char *s, size_t width, int64_t size, uint8_t *to)
{
    for (int64_t i = 0; i < size; i++, s += 2 * width)
        for (size_t b = 0; b < width; b++) {
            const int high = hex(s[2 * b]),
                      low = high < 0 ? -1 : hex(s[2 * b + 1]);
            if (low < 0) return false;
            to[(size_t)i * width + width - 1 - b] = (uint8_t)(high << 4 | low);
        }
    return *s == 0;
}

bool golden_read(golden_file *f, int k, golden_array *to)
{
    *to = (golden_array){0};
    if (f->n < k + 3) return wrong(f, "no array where one should be");
    const char *s = f->word[k + 2];
    int64_t dim[LB_MAX_RANK];
    to->dtype = golden_dtype(f->word[k]);
    to->flat = *f->word[k + 1] == '[';
    to->shape = lb_shape_make(golden_numbers(f->word[k + 1] + 1, dim), dim);
    to->size = lb_shape_size(&to->shape);
    const size_t width = lb_dtype_size(to->dtype);
    if (!width) return wrong(f, "not a dtype");
    if (!strncmp(s, "fnv:", 4)) {
        to->hash = strtoull(s + 4, NULL, 16);
        return true;
    }
    to->data = calloc((size_t)to->size + 1, width);
    if (!to->data) return wrong(f, "out of memory");
    if (!strcmp(s, "-") ? to->size == 0
                        : read_bits(s, width, to->size, to->data))
        return true;
    golden_free(to);
    return wrong(f, "digits that are not hex, too few or too many");
}

void golden_free(golden_array *a)
{
    free(a->data);
    *a = (golden_array){0};
}

lb_array *golden_dense(lb_ctx *cx, const golden_array *a)
{
    return a->data ? lb_from(cx, a->dtype, a->shape, a->data) : NULL;
}

double golden_value(lb_dtype dtype, const void *data, int64_t i)
{
    const size_t width = lb_dtype_size(dtype);
    return (double)number_at(dtype, (const uint8_t *)data + (size_t)i * width);
}

static uint64_t fnv(const uint8_t *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3;
    return h;
}

static bool says(lb_text *why, const char *what, const char *got,
                 const char *want)
{
    snprintf(why->s, sizeof why->s, "%.40s is %.70s, not %.70s", what, got,
             want);
    return false;
}

static bool same_bits(const golden_array *want, const uint8_t *got,
                      lb_text *why)
{
    const size_t width = lb_dtype_size(want->dtype);
    const uint8_t *data = want->data;
    if (!data)
        return fnv(got, (size_t)want->size * width) == want->hash ||
               says(why, "the hash", "another", "the one written");
    for (int64_t i = 0; i < want->size; i++) {
        if (!memcmp(got + (size_t)i * width, data + (size_t)i * width, width))
            continue;
        const double a = golden_value(want->dtype, got, i);
        const double b = golden_value(want->dtype, data, i);
        if (isnan(a) && isnan(b)) continue;
        snprintf(why->s, sizeof why->s, "element %lld is %.9g, not %.9g",
                 (long long)i, a, b);
        return false;
    }
    return true;
}

bool golden_same(lb_ctx *cx, lb_array *a, const golden_array *want,
                 lb_text *why)
{
    if (!a) return says(why, "the array", "NULL", lb_error(cx));
    const lb_shape shape = lb_shape_of(a);
    if (lb_dtype_of(a) != want->dtype)
        return says(why, "the dtype", lb_dtype_name(lb_dtype_of(a)),
                    lb_dtype_name(want->dtype));
    if (want->flat ? lb_size(a) != want->size
                   : !lb_shape_equal(&shape, &want->shape))
        return says(why, "the shape", LB_SHOW(&shape), LB_SHOW(&want->shape));
    const size_t bytes = (size_t)want->size * lb_dtype_size(want->dtype);
    uint8_t *got = malloc(bytes + 1);
    const bool ok = got && lb_read(cx, a, got, bytes)
                        ? same_bits(want, got, why)
                        : says(why, "reading it", lb_error(cx), "possible");
    free(got);
    return ok;
}

/* ---- names --------------------------------------------------------------- */

bool golden_put(golden_names *to, const char *name, lb_array *a)
{
    if (!a || to->n == GOLDEN_NAMES || strlen(name) >= GOLDEN_NAME)
        return false;
    memcpy(to->item[to->n].name, name, strlen(name) + 1);
    to->item[to->n++].a = lb_ref(a);
    return true;
}

lb_array *golden_find(const golden_names *in, const char *name)
{
    for (int i = 0; i < in->n; i++)
        if (!strcmp(in->item[i].name, name)) return in->item[i].a;
    return NULL;
}

void golden_forget(golden_names *names)
{
    while (names->n)
        lb_unref(names->item[--names->n].a);
}

bool golden_input(lb_ctx *cx, golden_file *f, golden_names *names)
{
    golden_array a;
    if (!golden_read(f, 2, &a)) return false;
    lb_enter(cx);
    const bool ok = golden_put(names, f->word[1], golden_dense(cx, &a));
    lb_leave(cx);
    golden_free(&a);
    return ok || wrong(f, "no room for this input");
}

/* ---- keys ---------------------------------------------------------------- */

const char *golden_key(const golden_file *f, int first, const char *key)
{
    const size_t n = strlen(key);
    for (int i = first; i < f->n; i++)
        if (!strncmp(f->word[i], key, n) && f->word[i][n] == '=')
            return f->word[i] + n + 1;
    return NULL;
}

int golden_numbers(const char *s, int64_t *to)
{
    int n = 0;
    for (char *end; s && n < LB_MAX_RANK; s = end) {
        to[n] = strtoll(s, &end, 10);
        if (end == s) break;
        n++;
        if (*end++ != ',') break;
    }
    return n;
}

lb_axes golden_axes(const char *s)
{
    int64_t number[LB_MAX_RANK];
    lb_axes axes = {.n = golden_numbers(s, number)};
    for (int i = 0; i < axes.n; i++)
        axes.axis[i] = (int)number[i];
    return axes;
}

/* The index of s in a list that ends with NULL; -1 if it is missing. */
static int place(const char *s, const char *const *list)
{
    for (int i = 0; list[i]; i++)
        if (!strcmp(s, list[i])) return i;
    return -1;
}

static const struct {
    const char *key;
    const char *value[6];
} choices[] = {
    {"compat", {"native", "eformer", "bnb-cuda", "bnb-cpu"}},
    {"decode", {"table", "poly"}},
    {"scale", {"default", "none", "tensor", "row", "block"}},
    {"meaning", {"scale", "absmax", "inverse"}},
    {"threshold", {"std", "absmean"}},
    {"blocks", {"default", "rows", "flat"}},
    {"double", {"no", "yes"}},
    {"center", {"no", "yes"}},
    {"clip", {"no", "yes"}},
};
enum { N_CHOICES = sizeof choices / sizeof *choices };

bool golden_config(const golden_file *f, int first, lb_quant_config *to)
{
    int found[N_CHOICES] = {0};
    int known = 0;
    for (int i = 0; i < N_CHOICES; i++) {
        const char *v = golden_key(f, first, choices[i].key);
        known += v != NULL;
        found[i] = v ? place(v, choices[i].value) : 0;
        if (found[i] < 0) return wrong(f, v);
    }
    const char *format = golden_key(f, first, "format");
    const char *block = golden_key(f, first, "block");
    const char *axes = golden_key(f, first, "axes");
    const char *dtype = golden_key(f, first, "dtype");
    known +=
        (format != NULL) + (block != NULL) + (axes != NULL) + (dtype != NULL);
    *to = (lb_quant_config){
        .format = format,
        .block_size = block ? strtoll(block, NULL, 10) : 0,
        .axes = golden_axes(axes),
        .dtype = golden_dtype(dtype),
        .compat = (lb_compat)found[0],
        .decode = (lb_decode)found[1],
        .scale = (lb_scale)found[2],
        .meaning = (lb_meaning)found[3],
        .threshold = (lb_threshold)found[4],
        .blocks = (lb_blocks)found[5],
        .double_quant = found[6],
        .center = found[7],
        .clip_gradient = found[8],
    };
    return known == f->n - first || wrong(f, "a key that is not known");
}
