/* npy_header.c - parses and composes headers of npy files. */
#include "io/containers/npy_header.h"

#include <string.h>

#include "core/core.h"
#include "io/containers/npy_dtype.h"

const lb_coding lb_npy_types[] = {
    {"|b1", LB_BOOL, 1, 1, 0},     {"|i1", LB_I8, 1, 1, 0},
    {"<i2", LB_I16, 1, 2, 0},      {"<i4", LB_I32, 1, 4, 0},
    {"<i8", LB_I64, 1, 8, 0},      {"|u1", LB_U8, 1, 1, 0},
    {"<u2", LB_U16, 1, 2, 0},      {"<u4", LB_U32, 1, 4, 0},
    {"<u8", LB_U64, 1, 8, 0},      {"<f2", LB_F16, 1, 2, 0},
    {"<f4", LB_F32, 1, 4, 0},      {"<f8", LB_F64, 1, 8, 0},
    {"|V2", LB_NO_DTYPE, 1, 2, 0}, {NULL, LB_NO_DTYPE, 0, 0, 0},
};

static const char magic[] = "\x93NUMPY";
enum { MAGIC = sizeof magic - 1 };

bool lb_npy_probe(const uint8_t *head, size_t n)
{
    return n >= MAGIC && memcmp(head, magic, MAGIC) == 0;
}

bool lb_npy_prefix(lb_ctx *cx, const lb_infile *f, const char *who,
                   const uint8_t *head, size_t n, size_t *begin, size_t *length,
                   int *major)
{
    if (n < MAGIC + 2 || !lb_npy_probe(head, n))
        return lb_refuse(cx, f, "%s: not an npy file", who);
    const int version = head[MAGIC], minor = head[MAGIC + 1];
    if (version < 1 || version > 3 || minor)
        return lb_refuse(
            cx, f,
            "%s: unsupported npy version %d.%d (supported: 1.0, 2.0 and 3.0)",
            who, version, minor);
    *begin = MAGIC + 2 + (version == 1 ? 2 : 4);
    if (n < *begin)
        return lb_refuse(cx, f,
                         "%s: truncated: %zu bytes do not contain its header",
                         who, n);
    const uint8_t *at = head + MAGIC + 2;
    *length = version == 1 ? lb_get_u16(at) : lb_get_u32(at);
    *major = version;
    const size_t most =
        version == 3 ? LB_NPY_LITERAL_BYTES : (size_t)LB_NPY_LITERAL;
    if (*length > most)
        return lb_refuse(cx, f, "%s: a header of %zu bytes; the maximum is %zu",
                         who, *length, most);
    return true;
}

/* ---- parsing ------------------------------------------------------------- */

/* The literal as Python would see it: as UTF-8 (versions 1 and 2 are Latin-1),
 * with newlines normalized to one character. */
static char *source_of(const lb_npy_task *k, const uint8_t *from, size_t n,
                       int major, size_t *size)
{
    char *text = lb_arena_alloc(k->cx, k->arena, 2 * (uint64_t)n + 1, 1);
    char *to = text;
    for (size_t i = 0; text && i < n; i++) {
        const uint8_t c = from[i];
        if (c == '\r') {
            *to++ = '\n';
            if (i + 1 < n && from[i + 1] == '\n') i++;
        } else if (c < 0x80 || major == 3) {
            *to++ = (char)c;
        } else {
            *to++ = (char)(0xc0 | c >> 6);
            *to++ = (char)(0x80 | (c & 0x3f));
        }
    }
    *size = (size_t)(to - text);
    return text;
}

/* numpy counts characters. */
static bool is_long(const uint8_t *literal, size_t n, int major)
{
    size_t count = n;
    for (size_t i = 0; major == 3 && i < n; i++)
        count -= (literal[i] & 0xc0) == 0x80;
    return count > LB_NPY_LITERAL;
}

/* Finds the values of the three keys, in any order. Python accepts duplicate
 * keys; here they are rejected, because they are ambiguous. */
enum { DESCR, FORTRAN, SHAPE, N_KEYS };

static bool find_entries(const lb_npy_task *k, const lb_py *dict,
                         const lb_py *entry[N_KEYS])
{
    static const char *const name[] = {"descr", "fortran_order", "shape"};
    if (dict->kind != LB_PY_DICT) {
        lb_refuse(k->cx, k->f, "%s: its header is not a dict", k->who);
        return false;
    }
    for (const lb_py *key = dict->item; key; key = key->next->next) {
        int i = 0;
        while (i < N_KEYS && !lb_py_is(key, name[i]))
            i++;
        if (i == N_KEYS || entry[i]) {
            lb_refuse(
                k->cx, k->f,
                "%s: its header has an unknown or duplicate key: %s", k->who,
                lb_quote(key->begin, (size_t)(key->end - key->begin), false).s);
            return false;
        }
        entry[i] = key->next;
    }
    for (int i = 0; i < N_KEYS; i++) {
        if (entry[i]) continue;
        lb_refuse(k->cx, k->f, "%s: its header has no key %s", k->who, name[i]);
        return false;
    }
    return true;
}

static bool read_shape(const lb_npy_task *k, const lb_py *v, lb_arena *arena,
                       lb_tensor *t)
{
    if (v->kind != LB_PY_TUPLE)
        return lb_refuse(k->cx, k->f, "%s: its shape is not a tuple", k->who);
    if (v->n > LB_NPY_RANK)
        return lb_refuse(k->cx, k->f,
                         "%s: a shape with %zu axes; the maximum is %d", k->who,
                         v->n, LB_NPY_RANK);
    int64_t *dim = lb_arena_alloc(k->cx, arena, v->n, sizeof *dim);
    if (!dim) return false;
    t->dim = dim;
    for (const lb_py *size = v->item; size; size = size->next) {
        if (size->kind != LB_PY_INT || size->wide || size->number < 0)
            return lb_refuse(
                k->cx, k->f,
                "%s: axis %d of its shape is not an integer from 0 to "
                "%lld",
                k->who, t->rank, (long long)INT64_MAX);
        dim[t->rank++] = size->number;
    }
    return true;
}

/* t->type is numpy's spelling, or the literal if the type has fields. */
static bool read_type(const lb_npy_task *k, const lb_py *descr,
                      const lb_npy_dtype *d, lb_arena *arena, lb_tensor *t)
{
    if (d->name[0])
        t->type = lb_arena_text(k->cx, arena, d->name, strlen(d->name));
    else
        t->type = lb_arena_text(k->cx, arena, descr->begin,
                                (size_t)(descr->end - descr->begin));
    t->dtype = d->dtype;
    t->swap = d->swap;
    return t->type != NULL;
}

/* Sizes of the other axes are checked for empty arrays as well. */
static bool is_counted(const lb_tensor *t, int64_t size)
{
    int64_t n = size ? size : 1;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] && !lb_mul_i64(n, t->dim[i], &n)) return false;
    return true;
}

static bool read_entries(const lb_npy_task *k, const lb_py *dict,
                         lb_arena *arena, lb_tensor *t)
{
    const lb_py *entry[N_KEYS] = {0};
    lb_npy_dtype d = {.items = 1};
    if (!find_entries(k, dict, entry)) return false;
    if (entry[FORTRAN]->kind != LB_PY_BOOL)
        return lb_refuse(k->cx, k->f, "%s: its fortran_order is not a bool",
                         k->who);
    t->fortran = entry[FORTRAN]->number != 0;
    if (!read_shape(k, entry[SHAPE], arena, t) ||
        !lb_npy_dtype_of(k, entry[DESCR], &d) ||
        !read_type(k, entry[DESCR], &d, arena, t))
        return false;
    const lb_coding c = {t->type, t->dtype, 1, (int)d.size, 0};
    if (!lb_coding_size(&c, t->dim, t->rank, &t->size) ||
        !is_counted(t, d.size))
        return lb_refuse(k->cx, k->f, "%s: its size in bytes overflows",
                         k->who);
    /* numpy counts the elements of sub-arrays in the shape */
    bool none = false;
    for (int i = 0; i < t->rank; i++)
        none = none || t->dim[i] == 0;
    if (d.array && d.items != 1 && !none)
        return lb_refuse(k->cx, k->f,
                         "%s: its elements are arrays of %lld items, which its "
                         "shape does not include",
                         k->who, (long long)d.items);
    return true;
}

bool lb_npy_parse(lb_ctx *cx, const lb_infile *f, const char *who,
                  lb_arena *arena, const uint8_t *literal, size_t n, int major,
                  lb_tensor *t)
{
    if (major == 3 && !lb_utf8_valid((const char *)literal, n))
        return lb_refuse(cx, f, "%s: its header is not UTF-8", who);
    if (memchr(literal, 0, n))
        return lb_refuse(cx, f, "%s: its header contains a 0", who);
    if (is_long(literal, n, major))
        return lb_refuse(cx, f, "%s: a header of %zu bytes; the maximum is %d",
                         who, n, LB_NPY_LITERAL);
    lb_arena meanwhile = {.heap = cx->heap};
    const lb_npy_task k = {cx, f, who, &meanwhile};
    const char *why = NULL;
    size_t size = 0, at = 0;
    const char *text = source_of(&k, literal, n, major, &size);
    const lb_py *dict = NULL;
    if (text)
        dict = lb_py_parse(cx, &meanwhile, text, size, major < 3, &why, &at);
    bool ok = dict && read_entries(&k, dict, arena, t);
    if (why)
        ok =
            lb_refuse(cx, f, "%s: its header has %s at byte %zu", who, why, at);
    lb_arena_free(&meanwhile);
    return ok;
}

/* ---- composing ----------------------------------------------------------- */

static void put_shape(lb_bytes *b, const lb_tensor *t)
{
    lb_bytes_put(b, "(", 1);
    for (int i = 0; i < t->rank; i++)
        lb_bytes_text(b, "%s%lld", i ? ", " : "", (long long)t->dim[i]);
    lb_bytes_text(b, "%s)", t->rank == 1 ? "," : "");
}

bool lb_npy_suits(lb_ctx *cx, const lb_tensor *t)
{
    if (t->rank <= LB_NPY_RANK) return true;
    return lb_fail(cx, LB_E_UNSUPPORTED,
                   "tensor '%s' has rank %d; the maximum of numpy is %d",
                   LB_NAME(t->name), t->rank, LB_NPY_RANK);
}

/* Like numpy: leaves room for the slowest axis to grow to 21 digits, and pads
 * with 1 to 64 spaces so that data starts at a multiple of 64. */
void lb_npy_compose(lb_bytes *b, const lb_tensor *t)
{
    enum { DIGITS = 21, ALIGN = 64 };
    const size_t begin = b->n, prefix = MAGIC + 2 + 2;
    lb_bytes_put(b, magic, MAGIC);
    lb_bytes_put(b, "\x01\x00", 2);
    lb_bytes_u16(b, 0);
    lb_bytes_text(b, "{'descr': '%s', 'fortran_order': %s, 'shape': ", t->type,
                  t->fortran ? "True" : "False");
    put_shape(b, t);
    lb_bytes_text(b, ", }");
    if (t->rank) {
        const size_t before = b->n;
        lb_bytes_text(b, "%lld",
                      (long long)t->dim[t->fortran ? t->rank - 1 : 0]);
        const size_t wide = b->n - before;
        if (!b->failed) b->n = before;
        lb_bytes_fill(b, ' ', wide < DIGITS ? DIGITS - wide : 0);
    }
    const size_t n = b->n - begin + 1;
    lb_bytes_fill(b, ' ', ALIGN - n % ALIGN);
    lb_bytes_put(b, "\n", 1);
    if (b->failed) return;
    const size_t length = b->n - begin - prefix;
    b->at[begin + MAGIC + 2] = (uint8_t)length;
    b->at[begin + MAGIC + 3] = (uint8_t)(length >> 8);
}
