/* descriptor_json.c - reads and writes JSON descriptors. */
#include "io/layouts/descriptor.h"

#include <string.h>

#include "core/core.h"
#include "io/util/json_text.h"

/* ---- reading ------------------------------------------------------------- */

/* Non-negative integers, at most LB_MAX_RANK of them. */
static bool read_counts(lb_json *j, int64_t *at, int *n)
{
    *n = 0;
    lb_json_enter(j, '[');
    while (lb_json_more(j, ']')) {
        if (*n == LB_MAX_RANK) return lb_json_wrong(j, "too many dimensions");
        at[(*n)++] = lb_json_count_of(j);
    }
    return !j->failed;
}

static bool read_dtype(lb_json *j, lb_dtype *dtype)
{
    char word[16];
    lb_json_word(j, word, sizeof word);
    for (int d = 1; d < LB_N_DTYPES; d++)
        if (strcmp(lb_dtype_name((lb_dtype)d), word) == 0) {
            *dtype = (lb_dtype)d;
            return true;
        }
    return lb_json_wrong(j, "an unknown dtype");
}

static bool read_int(lb_json *j, int *v)
{
    const int64_t n = lb_json_count_of(j);
    *v = (int)n;
    return n <= INT32_MAX || lb_json_wrong(j, "a number that is too large");
}

static bool read_array(lb_json *j, lb_arena *arena, int depth, lb_described *d);

static bool read_part(lb_json *j, lb_arena *arena, int depth,
                      lb_described_part *p)
{
    char key[16];
    bool ok = true;
    lb_json_enter(j, '{');
    while (ok && lb_json_more(j, '}')) {
        lb_json_key_word(j, key, sizeof key);
        if (strcmp(key, "groups") == 0)
            ok = read_counts(j, p->table.g, &p->n_groups);
        else if (strcmp(key, "own") == 0)
            p->table.own = lb_json_count_of(j);
        else if (strcmp(key, "array") == 0) {
            p->array = lb_arena_alloc(j->cx, arena, 1, sizeof *p->array);
            ok = p->array && read_array(j, arena, depth + 1, p->array);
        } else
            lb_json_skip(j);
    }
    return ok && !j->failed;
}

static bool read_parts(lb_json *j, lb_arena *arena, int depth, lb_described *d)
{
    lb_json_enter(j, '{');
    while (lb_json_more(j, '}')) {
        if (d->n_parts == LB_MAX_PARTS)
            return lb_json_wrong(j, "too many parts");
        lb_described_part *p = &d->part[d->n_parts++];
        *p = (lb_described_part){0};
        lb_json_key_word(j, p->name, sizeof p->name);
        if (!read_part(j, arena, depth, p)) return false;
        if (!p->name[0]) return lb_json_wrong(j, "a part without a name");
        for (int i = 0; i + 1 < d->n_parts; i++)
            if (strcmp(d->part[i].name, p->name) == 0)
                return lb_json_wrong(j, "a duplicate part");
    }
    return !j->failed;
}

/* Whether the fields are consistent; the rules of the format are checked later.
 */
static bool check_array(lb_json *j, const lb_described *d)
{
    int64_t n, stored;
    if (!d->format[0] || !d->dtype)
        return lb_json_wrong(j, "no format or no dtype");
    if (!lb_shape_count(&d->shape, &n) ||
        !lb_shape_count(&d->stored, &stored) || n != stored)
        return lb_json_wrong(j, "invalid shapes");
    for (int p = 0; p < d->n_parts; p++) {
        const lb_part *t = &d->part[p].table;
        if (d->part[p].n_groups != d->stored.rank || t->own > INT32_MAX ||
            (t->own && d->stored.rank == LB_MAX_RANK))
            return lb_json_wrong(j, "groups that do not match the shape");
        const lb_shape s = lb_part_shape(&d->stored, t);
        if (!lb_shape_count(&s, &n))
            return lb_json_wrong(j, "groups that overflow");
    }
    return true;
}

static bool read_array(lb_json *j, lb_arena *arena, int depth, lb_described *d)
{
    char key[16];
    bool ok = true, stored = false;
    if (depth == LB_MAX_NESTING) return lb_json_wrong(j, "too deep nesting");
    lb_json_enter(j, '{');
    while (ok && lb_json_more(j, '}')) {
        lb_json_key_word(j, key, sizeof key);
        if (strcmp(key, "layout") == 0)
            lb_json_word(j, d->layout, sizeof d->layout);
        else if (strcmp(key, "format") == 0)
            lb_json_word(j, d->format, sizeof d->format);
        else if (strcmp(key, "dtype") == 0)
            ok = read_dtype(j, &d->dtype);
        else if (strcmp(key, "shape") == 0)
            ok = read_counts(j, d->shape.dim, &d->shape.rank);
        else if (strcmp(key, "stored") == 0)
            stored = ok = read_counts(j, d->stored.dim, &d->stored.rank);
        else if (strcmp(key, "meaning") == 0)
            ok = read_int(j, &d->meaning);
        else if (strcmp(key, "parts") == 0)
            ok = read_parts(j, arena, depth, d);
        else
            lb_json_skip(j);
    }
    if (!stored) d->stored = d->shape;
    return ok && !j->failed && check_array(j, d);
}

lb_described *lb_description_parse(lb_ctx *cx, lb_arena *arena,
                                   const char *path, const char *name,
                                   const void *text, size_t size)
{
    lb_described *d = lb_arena_alloc(cx, arena, 1, sizeof *d);
    lb_infile *file = d ? lb_infile_wrap(cx, path, text, size) : NULL;
    if (!file) return NULL;
    lb_json j;
    const bool ok = lb_json_begin(cx, &j, file, 0, size, name) &&
                    read_array(&j, arena, 0, d);
    if (!ok) j.failed = true;
    const bool ended = lb_json_end(&j);
    lb_infile_unref(file);
    return ended ? d : NULL;
}

lb_described *lb_description_read(lb_ctx *cx, lb_file *f, const lb_meta *m)
{
    const lb_quoted name = lb_quote_name(m->key);
    if (m->type == LB_META_STRING && m->size <= SIZE_MAX)
        return lb_description_parse(cx, &f->arena, f->r->file[0]->path, name.s,
                                    m->bytes, (size_t)m->size);
    lb_refuse(cx, f->r->file[0], "'%s' is not text", name.s);
    return NULL;
}

/* ---- writing ------------------------------------------------------------- */

static void put_counts(lb_bytes *b, const char *key, const int64_t *at, int n)
{
    lb_bytes_text(b, "\"%s\": [", key);
    for (int i = 0; i < n; i++)
        lb_bytes_text(b, "%s%lld", i ? ", " : "", (long long)at[i]);
    lb_bytes_put(b, "]", 1);
}

static void put_array(lb_bytes *b, const lb_described *d);

static void put_part(lb_bytes *b, const lb_described_part *p, int rank)
{
    lb_bytes_text(b, "\"%s\": {", p->name);
    put_counts(b, "groups", p->table.g, rank);
    if (p->table.own)
        lb_bytes_text(b, ", \"own\": %lld", (long long)p->table.own);
    if (p->array) {
        lb_bytes_text(b, ", \"array\": ");
        put_array(b, p->array);
    }
    lb_bytes_put(b, "}", 1);
}

static void put_array(lb_bytes *b, const lb_described *d)
{
    lb_bytes_put(b, "{", 1);
    if (d->layout[0]) lb_bytes_text(b, "\"layout\": \"%s\", ", d->layout);
    lb_bytes_text(b, "\"format\": \"%s\", \"dtype\": \"%s\", ", d->format,
                  lb_dtype_name(d->dtype));
    put_counts(b, "shape", d->shape.dim, d->shape.rank);
    if (d->n_parts) {
        lb_bytes_put(b, ", ", 2);
        put_counts(b, "stored", d->stored.dim, d->stored.rank);
        lb_bytes_text(b, ", \"meaning\": %d, \"parts\": {", d->meaning);
        for (int p = 0; p < d->n_parts; p++) {
            if (p) lb_bytes_put(b, ", ", 2);
            put_part(b, &d->part[p], d->stored.rank);
        }
        lb_bytes_put(b, "}", 1);
    }
    lb_bytes_put(b, "}", 1);
}

void lb_description_put(lb_bytes *b, const lb_described *d)
{
    put_array(b, d);
}
