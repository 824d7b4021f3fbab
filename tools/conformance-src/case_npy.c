/* case_npy.c - reads an untrusted .npy file.
 *
 *     \x93NUMPY, major, minor, header length (2 bytes, from version 2 on 4),
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } \n, data
 *
 * The shape is checked against the file's size before anything is allocated for
 * it. numpy has no bf16: such arrays are stored as u2 or V2.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"

static const size_t npy_limit = (size_t)1 << 30;

/* The rest of the header, a Python dict display. */
typedef struct npy_cursor {
    const char *p, *end;
} npy_cursor;

typedef struct header {
    bool has_descr, has_order, has_shape;
    char order; /* < > = | */
    char kind;
    size_t item_size;
    bool fortran;
    lb_shape shape;
} header;

static void skip_space(npy_cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n')) {
        c->p++;
    }
}

static bool take(npy_cursor *c, char want)
{
    skip_space(c);
    if (c->p >= c->end || *c->p != want) return false;
    c->p++;
    return true;
}

static bool take_word(npy_cursor *c, const char *word)
{
    skip_space(c);
    const size_t len = strlen(word);
    if ((size_t)(c->end - c->p) < len || memcmp(c->p, word, len)) return false;
    c->p += len;
    return true;
}

/* A quoted string without escapes. */
static bool take_string(npy_cursor *c, char *out, size_t size)
{
    skip_space(c);
    if (c->p >= c->end || (*c->p != '\'' && *c->p != '"')) return false;
    const char quote = *c->p++;
    size_t len = 0;
    while (c->p < c->end && *c->p != quote) {
        if (len + 1 >= size || *c->p == '\\') return false;
        out[len++] = *c->p++;
    }
    out[len] = 0;
    return take(c, quote);
}

static bool take_size(npy_cursor *c, int64_t *out)
{
    skip_space(c);
    int64_t v = 0;
    const char *const begin = c->p;
    while (c->p < c->end && isdigit((unsigned char)*c->p)) {
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, *c->p - '0', &v)) {
            return false;
        }
        c->p++;
    }
    *out = v;
    return c->p > begin;
}

static bool take_shape(npy_cursor *c, lb_shape *out, note *n)
{
    *out = (lb_shape){0};
    if (!take(c, '(')) return note_fail(n, "shape is not a tuple");
    while (!take(c, ')')) {
        if (out->rank == LB_MAX_RANK) {
            return note_fail(n, "the rank is above %d", LB_MAX_RANK);
        }
        if (!take_size(c, &out->dim[out->rank++])) {
            return note_fail(n, "shape has an entry that is not a size");
        }
        const bool comma = take(c, ',');
        skip_space(c);
        const bool last = c->p < c->end && *c->p == ')';
        if (!comma && (!last || out->rank == 1)) {
            return note_fail(n, "shape is not a tuple of sizes");
        }
    }
    return true;
}

static bool take_descr(npy_cursor *c, header *h, note *n)
{
    char s[16] = "";
    if (!take_string(c, s, sizeof(s))) {
        return note_fail(n, "descr is not a plain type string");
    }
    static const char *const known[] = {"b1", "i1", "i2", "i4", "i8",
                                        "u1", "u2", "u4", "u8", "f2",
                                        "f4", "f8", "V2"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (!s[0] || !strchr("<>=|", s[0]) || strcmp(s + 1, known[i])) continue;
        h->order = s[0];
        h->kind = s[1];
        h->item_size = (size_t)(s[2] - '0');
        return h->order != '|' || h->item_size == 1 || h->kind == 'V' ||
               note_fail(n, "descr '%s' has no byte order", s);
    }
    return note_fail(n, "descr '%s' is not a type known here", s);
}

static bool parse_header(npy_cursor c, header *h, note *n)
{
    if (!take(&c, '{')) return note_fail(n, "the header is not a dict");
    while (!take(&c, '}')) {
        char key[16];
        if (!take_string(&c, key, sizeof(key)) || !take(&c, ':')) {
            return note_fail(n, "the header is not a dict");
        }
        bool *seen = NULL;
        bool ok = true;
        if (!strcmp(key, "descr")) {
            seen = &h->has_descr;
            ok = take_descr(&c, h, n);
        } else if (!strcmp(key, "fortran_order")) {
            seen = &h->has_order;
            h->fortran = take_word(&c, "True");
            ok = h->fortran || take_word(&c, "False") ||
                 note_fail(n, "fortran_order is not True or False");
        } else if (!strcmp(key, "shape")) {
            seen = &h->has_shape;
            ok = take_shape(&c, &h->shape, n);
        }
        if (!ok) return false;
        if (!seen || *seen) {
            return note_fail(n, "the header has %s '%s'",
                             seen ? "twice" : "an unknown key", key);
        }
        *seen = true;
        if (!take(&c, ',')) {
            if (take(&c, '}')) break;
            return note_fail(n, "the header is not a dict");
        }
    }
    skip_space(&c);
    if (c.p != c.end) return note_fail(n, "text after the header's dict");
    return (h->has_descr && h->has_order && h->has_shape) ||
           note_fail(n, "the header lacks %s",
                     !h->has_descr   ? "descr"
                     : !h->has_order ? "fortran_order"
                                     : "shape");
}

/* Finds the dict and the data in the file's bytes. */
static bool split_file(const unsigned char *data, size_t size, npy_cursor *dict,
                       size_t *data_at, note *n)
{
    if (size < 10 || memcmp(data, "\x93NUMPY", 6)) {
        return note_fail(n, "no such file begins with these bytes");
    }
    const unsigned major = data[6];
    if (major < 1 || major > 3 || data[7] != 0) {
        return note_fail(n, "version %u.%u is not 1.0, 2.0 or 3.0", major,
                         data[7]);
    }
    const size_t at = major == 1 ? 10 : 12;
    if (size < at) return note_fail(n, "the file ends in its header");
    size_t len = (size_t)data[8] | (size_t)data[9] << 8;
    if (major > 1) len |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    if (len > size - at) {
        return note_fail(n, "header of %zu bytes in a file of %zu", len, size);
    }
    dict->p = (const char *)data + at;
    dict->end = dict->p + len;
    *data_at = at + len;
    return true;
}

/* Element i in row-major order is element `from` of the file. */
static size_t file_index(const header *h, size_t i)
{
    if (!h->fortran) return i;
    size_t from = 0;
    size_t rest = i;
    int64_t index[LB_MAX_RANK] = {0};
    for (int k = h->shape.rank - 1; k >= 0; k--) {
        index[k] = (int64_t)(rest % (size_t)h->shape.dim[k]);
        rest /= (size_t)h->shape.dim[k];
    }
    for (int k = h->shape.rank - 1; k >= 0; k--) {
        from = from * (size_t)h->shape.dim[k] + (size_t)index[k];
    }
    return from;
}

static bool host_is_little(void)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 1;
}

static void unpack(const header *h, const unsigned char *src, size_t count,
                   unsigned char *dst)
{
    const size_t w = h->item_size;
    const bool swap = h->order == (host_is_little() ? '>' : '<');
    for (size_t i = 0; i < count; i++) {
        const unsigned char *const s = src + file_index(h, i) * w;
        for (size_t b = 0; b < w; b++) {
            dst[i * w + b] = s[swap ? w - 1 - b : b];
        }
    }
}

static bool parse(const unsigned char *data, size_t size, npy *out, note *n)
{
    npy_cursor dict = {0};
    size_t at = 0;
    header h = {0};
    if (!split_file(data, size, &dict, &at, n) || !parse_header(dict, &h, n)) {
        return false;
    }
    const int64_t count = shape_size(h.shape);
    size_t nbytes = 0;
    if (count < 0 ||
        __builtin_mul_overflow((size_t)count, h.item_size, &nbytes) ||
        nbytes != size - at) {
        return note_fail(n, "shape %s in %zu bytes does not fit %zu bytes",
                         shape_text(h.shape).s, h.item_size, size - at);
    }
    for (size_t i = 0; h.kind == 'b' && i < nbytes; i++) {
        if (data[at + i] > 1) {
            return note_fail(n, "element %zu is a bool of value %u", i,
                             data[at + i]);
        }
    }
    unsigned char *const copy = malloc(nbytes ? nbytes : 1);
    if (!copy) return note_fail(n, "out of memory");
    unpack(&h, data + at, (size_t)count, copy);
    *out = (npy){h.kind, h.item_size, h.shape, nbytes, copy};
    return true;
}

bool npy_read(const char *path, npy *out, note *n)
{
    size_t size = 0;
    unsigned char *const data = file_read(path, npy_limit, &size, n);
    note why = {.verdict = PASSED};
    const bool ok = data && parse(data, size, out, &why);
    free(data);
    if (data && !ok) note_fail(n, "%s: %s", base_name(path), why.why);
    return ok;
}

void npy_free(npy *a)
{
    free(a->data);
    *a = (npy){0};
}

bool npy_is(const npy *a, lb_dtype dtype)
{
    if (a->item_size != lb_dtype_size(dtype)) return false;
    if (dtype == LB_BOOL) return a->kind == 'b';
    if (dtype == LB_BF16) return a->kind == 'u' || a->kind == 'V';
    if (dtype_is_float(dtype)) return a->kind == 'f';
    return a->kind == (dtype >= LB_U8 ? 'u' : 'i');
}
