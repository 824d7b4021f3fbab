/* gguf_from_text.c - converts metadata of other containers to GGUF metadata. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "io/containers/gguf_text.h"
#include "io/util/json_text.h"

enum { PREFIX = sizeof LB_GGUF_PREFIX - 1 };

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* ---- values ---------------------------------------------------------- */

typedef struct gguf_parse {
    lb_json j;
    lb_arena scratch; /* for strings */
    lb_bytes to;      /* the value's bytes */
} gguf_parse;

static lb_meta_type read_type(lb_json *j)
{
    char name[8];
    lb_json_word(j, name, sizeof name);
    for (int t = 0; !j->failed && t < LB_N_META; t++)
        if (strcmp(lb_gguf_types[t].name, name) == 0) return (lb_meta_type)t;
    lb_json_wrong(j, "an unknown type");
    return LB_META_U8;
}

/* The next entry of an object, which must have the given name. */
static bool read_key(lb_json *j, const char *name)
{
    char key[8];
    if (!lb_json_more(j, '}')) return lb_json_wrong(j, "a missing entry");
    lb_json_key_word(j, key, sizeof key);
    return !j->failed &&
           (strcmp(key, name) == 0 || lb_json_wrong(j, "an unexpected entry"));
}

static bool end_object(lb_json *j)
{
    if (lb_json_more(j, '}')) return lb_json_wrong(j, "an unexpected entry");
    return !j->failed;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* {"bytes":"HEX"}, of size bytes; 0: of a string, after its length. */
static void read_hex(gguf_parse *p, size_t size)
{
    lb_json *j = &p->j;
    size_t n = 0;
    lb_json_enter(j, '{');
    if (!read_key(j, "bytes")) return;
    const char *hex = lb_json_string(j, &p->scratch, &n);
    if (!end_object(j)) return;
    if (n % 2 || (size && n / 2 != size)) {
        lb_json_wrong(j, "bytes of the wrong length");
        return;
    }
    if (!size) lb_bytes_u64(&p->to, n / 2);
    for (size_t i = 0; i < n; i += 2) {
        const int hi = hex_digit(hex[i]), lo = hex_digit(hex[i + 1]);
        const uint8_t byte = (uint8_t)(hi << 4 | lo);
        if (hi < 0 || lo < 0) {
            lb_json_wrong(j, "bytes that are not hexadecimal");
            return;
        }
        lb_bytes_put(&p->to, &byte, 1);
    }
}

/* A little-endian integer of `size` bytes. */
static void read_integer(gguf_parse *p, unsigned size, bool may_be_negative)
{
    lb_json *j = &p->j;
    const bool number = lb_json_peek(j) == 0;
    const char *at = (const char *)j->at;
    uint64_t v = 0;
    lb_json_skip(j);
    if (j->failed) return;
    const bool negative = number && *at == '-';
    bool ok = number && (!negative || may_be_negative);
    for (at += negative; ok && at < (const char *)j->at; at++)
        ok = *at >= '0' && *at <= '9' && !__builtin_mul_overflow(v, 10, &v) &&
             !__builtin_add_overflow(v, (uint64_t)(*at - '0'), &v);
    const uint64_t all = UINT64_MAX >> (64 - 8 * size);
    const uint64_t most = may_be_negative ? (all >> 1) + negative : all;
    if (!ok || v > most) {
        lb_json_wrong(j, "a number out of range for its type");
        return;
    }
    if (negative) v = 0 - v;
    for (unsigned i = 0; i < size; i++)
        lb_bytes_put(&p->to, &(uint8_t){(uint8_t)(v >> 8 * i)}, 1);
}

static void read_float(gguf_parse *p, bool wide)
{
    const double v = lb_json_number_of(&p->j);
    const float f = (float)v;
    if (!wide && !isfinite(f))
        lb_json_wrong(&p->j, "a number out of range for its type");
    lb_bytes_put(&p->to, wide ? (const void *)&v : (const void *)&f,
                 wide ? sizeof v : sizeof f);
}

static void read_bool(gguf_parse *p)
{
    const int next = lb_json_peek(&p->j);
    if (next != 't' && next != 'f') lb_json_wrong(&p->j, "no bool");
    lb_json_skip(&p->j);
    lb_bytes_put(&p->to, &(uint8_t){next == 't'}, 1);
}

static uint64_t read_items(gguf_parse *p, lb_meta_type of, int depth);

/* {"of":TYPE,"value":[...]} */
static void read_array(gguf_parse *p, int depth)
{
    lb_json *j = &p->j;
    if (depth >= LB_GGUF_NESTING) {
        lb_json_wrong(j, "arrays nested too deeply");
        return;
    }
    lb_json_enter(j, '{');
    if (!read_key(j, "of")) return;
    const lb_meta_type of = read_type(j);
    if (!read_key(j, "value")) return;
    lb_bytes_u32(&p->to, of);
    lb_bytes_u64(&p->to, lb_json_entries(j));
    read_items(p, of, depth + 1);
    end_object(j);
}

/* One value in the encoding of array items (strings with their length). depth:
 * nesting of the surrounding array; 0: none. */
static void read_value(gguf_parse *p, lb_meta_type type, int depth)
{
    const unsigned size = lb_gguf_types[type].size;
    if (type == LB_META_ARRAY) {
        read_array(p, depth);
    } else if (lb_json_peek(&p->j) == '{') {
        read_hex(p, size);
    } else if (type == LB_META_STRING) {
        size_t n = 0;
        const char *text = lb_json_string(&p->j, &p->scratch, &n);
        lb_bytes_u64(&p->to, n);
        lb_bytes_put(&p->to, text, n);
    } else if (type == LB_META_BOOL) {
        read_bool(p);
    } else if (type == LB_META_F32 || type == LB_META_F64) {
        read_float(p, type == LB_META_F64);
    } else {
        read_integer(p, size, lb_gguf_types[type].is_signed);
    }
}

static uint64_t read_items(gguf_parse *p, lb_meta_type of, int depth)
{
    uint64_t n = 0;
    lb_json_enter(&p->j, '[');
    for (; lb_json_more(&p->j, ']'); n++)
        read_value(p, of, depth);
    return n;
}

static void read_typed(gguf_parse *p, lb_meta *m)
{
    lb_json *j = &p->j;
    lb_json_enter(j, '{');
    if (!read_key(j, "type")) return;
    m->type = read_type(j);
    m->n = 1;
    if (m->type == LB_META_ARRAY) {
        if (!read_key(j, "of")) return;
        m->item = read_type(j);
    }
    if (!read_key(j, "value")) return;
    if (m->type == LB_META_ARRAY)
        m->n = read_items(p, m->item, 1);
    else
        read_value(p, m->type, 0);
    end_object(j);
}

typedef bool gguf_reads(lb_ctx *cx, lb_arena *arena, gguf_parse *p, void *to);

/* Parses the JSON of a text. */
static bool parse_text(lb_ctx *cx, lb_arena *arena, const lb_reader *r,
                       const lb_meta *text, gguf_reads *reads, void *to)
{
    char what[128];
    gguf_parse p = {.scratch = {.heap = cx->heap}, .to = {.heap = cx->heap}};
    snprintf(what, sizeof what, "metadata '%s'", LB_NAME(text->key));
    lb_infile *f =
        lb_infile_wrap(cx, r->file[0]->path, text->bytes, (size_t)text->size);
    if (!f) return false;
    bool ok = lb_json_begin(cx, &p.j, f, 0, text->size, what);
    ok = ok && reads(cx, arena, &p, to);
    if (!ok) p.j.failed = true;
    ok = lb_json_end(&p.j) && ok;
    lb_infile_unref(f);
    lb_arena_free(&p.scratch);
    lb_bytes_free(&p.to);
    return ok;
}

/* See gguf_reads: parses one value. to: its lb_meta, with the key set. */
static bool parse_value(lb_ctx *cx, lb_arena *arena, gguf_parse *p, void *to)
{
    lb_meta *m = to;
    read_typed(p, m);
    if (p->j.failed) return false;
    const size_t skip = m->type == LB_META_STRING ? 8 : 0; /* the length */
    const char *copy = NULL;
    if (!p->to.failed)
        copy = lb_arena_text(cx, arena, p->to.at + skip, p->to.n - skip);
    if (!copy) return lb_fail(cx, LB_E_NOMEM, "out of memory");
    m->bytes = (const uint8_t *)copy;
    m->size = p->to.n - skip;
    return true;
}

/* ---- order --------------------------------------------------------------- */

static int name_order(const void *a, const void *b)
{
    const lb_listed_name *x = a, *y = b;
    const int c = strcmp(x->name, y->name);
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

int64_t lb_listed_at(const lb_listed_name *list, int64_t n, const char *name)
{
    int64_t lo = 0, hi = n;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (strcmp(list[mid].name, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && strcmp(list[lo].name, name) == 0 ? list[lo].at : INT64_MAX;
}

static bool read_names(lb_ctx *cx, lb_arena *arena, lb_json *j,
                       lb_listed_name **list, int64_t *n)
{
    const uint64_t room = lb_json_peek(j) == '[' ? lb_json_entries(j) : 0;
    *n = 0;
    *list = lb_arena_alloc(cx, arena, room, sizeof **list);
    if (!*list) return false;
    lb_json_enter(j, '[');
    while (lb_json_more(j, ']')) {
        size_t size;
        (*list)[*n] = (lb_listed_name){lb_json_string(j, arena, &size), *n};
        ++*n;
    }
    if (!j->failed && *n > 1)
        qsort(*list, (size_t)*n, sizeof **list, name_order);
    return !j->failed;
}

typedef struct gguf_order {
    lb_listed_name *key, *tensor;
    int64_t n_keys, n_tensors;
} gguf_order;

/* See gguf_reads. */
static bool parse_order(lb_ctx *cx, lb_arena *arena, gguf_parse *p, void *to)
{
    gguf_order *o = to;
    lb_json *j = &p->j;
    lb_json_enter(j, '{');
    if (!read_key(j, "version")) return false;
    if (lb_json_count_of(j) != 1)
        return lb_json_wrong(j, "a version other than 1");
    char key[8];
    while (lb_json_more(j, '}')) {
        bool ok = true;
        lb_json_key_word(j, key, sizeof key);
        if (strcmp(key, "keys") == 0)
            ok = read_names(cx, arena, j, &o->key, &o->n_keys);
        else if (strcmp(key, "tensors") == 0)
            ok = read_names(cx, arena, j, &o->tensor, &o->n_tensors);
        else
            lb_json_skip(j);
        if (!ok) return false;
    }
    return !j->failed;
}

/* ---- all of it ----------------------------------------------------------- */

typedef struct placed_meta {
    lb_meta m;
    int64_t at, i; /* position in the list; position found */
} placed_meta;

static int place_order(const void *a, const void *b)
{
    const placed_meta *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

bool lb_gguf_from_texts(lb_ctx *cx, lb_arena *arena, const lb_reader *r,
                        lb_gguf_meta *to)
{
    const uint64_t most = (uint64_t)r->n_meta;
    const lb_meta *order = lb_reader_meta(r, LB_GGUF_ORDER);
    gguf_order o = {0};
    placed_meta *p = lb_arena_alloc(cx, arena, most, sizeof *p);
    *to = (lb_gguf_meta){0};
    to->meta = lb_arena_alloc(cx, arena, most, sizeof *to->meta);
    if (!p || !to->meta) return false;
    if (order && !parse_text(cx, arena, r, order, parse_order, &o))
        return false;
    for (int64_t i = 0; i < r->n_meta; i++) {
        const lb_meta *m = &r->meta[i];
        if (m == order || starts(m->key, "lowbit.")) continue;
        placed_meta *it = &p[to->n];
        *it = (placed_meta){.m = *m, .i = to->n};
        if (order && starts(m->key, LB_GGUF_PREFIX)) {
            it->m = (lb_meta){.key = m->key + PREFIX};
            if (!parse_text(cx, arena, r, m, parse_value, &it->m)) return false;
        }
        it->at = lb_listed_at(o.key, o.n_keys, it->m.key);
        to->n++;
    }
    if (to->n > 1) qsort(p, (size_t)to->n, sizeof *p, place_order);
    for (int64_t i = 0; i < to->n; i++)
        to->meta[i] = p[i].m;
    to->tensor = o.tensor;
    to->n_tensors = o.n_tensors;
    return true;
}
