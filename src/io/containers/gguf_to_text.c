/* gguf_to_text.c - converts GGUF metadata to texts for other containers. */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "io/containers/gguf_text.h"
#include "io/util/json_text.h"

enum { PREFIX = sizeof LB_GGUF_PREFIX - 1 };

const lb_gguf_type lb_gguf_types[LB_N_META] = {
    [LB_META_U8] = {"u8", 1, false},
    [LB_META_I8] = {"i8", 1, true},
    [LB_META_U16] = {"u16", 2, false},
    [LB_META_I16] = {"i16", 2, true},
    [LB_META_U32] = {"u32", 4, false},
    [LB_META_I32] = {"i32", 4, true},
    [LB_META_F32] = {"f32", 4, true},
    [LB_META_BOOL] = {"bool", 1, false},
    [LB_META_STRING] = {"string", 0, false},
    [LB_META_ARRAY] = {"array", 0, false},
    [LB_META_U64] = {"u64", 8, false},
    [LB_META_I64] = {"i64", 8, true},
    [LB_META_F64] = {"f64", 8, true},
};

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Keys that have another meaning in text metadata. */
static bool is_reserved(const char *key)
{
    return strcmp(key, LB_GGUF_ORDER) == 0 || starts(key, LB_GGUF_PREFIX) ||
           starts(key, "lowbit.") || starts(key, "lowbit_shard.");
}

/* ---- to texts ------------------------------------------------------------ */

/* The remaining bytes of a value. They may be in a map that another process
 * modifies, so every length is checked again. */
typedef struct gguf_span {
    const uint8_t *at, *end;
} gguf_span;

static void put_hex(lb_bytes *b, const uint8_t *bytes, size_t n)
{
    static const char digit[] = "0123456789abcdef";
    lb_bytes_text(b, "{\"bytes\":\"");
    for (size_t i = 0; i < n; i++) {
        const char two[2] = {digit[bytes[i] >> 4], digit[bytes[i] & 15]};
        lb_bytes_put(b, two, sizeof two);
    }
    lb_bytes_text(b, "\"}");
}

static void put_string(lb_bytes *b, const uint8_t *bytes, size_t n)
{
    const char *text = (const char *)bytes;
    if (lb_utf8_valid(text, n))
        lb_json_put(b, text, n, false);
    else
        put_hex(b, bytes, n);
}

/* The shortest of 6 to 17 digits that read back as the same bits. */
static void put_float(lb_bytes *b, const uint8_t *bytes, bool wide)
{
    float f = 0;
    double v = 0;
    char text[40];
    memcpy(wide ? (void *)&v : (void *)&f, bytes, wide ? sizeof v : sizeof f);
    if (!wide) v = (double)f;
    if (!isfinite(v)) {
        put_hex(b, bytes, wide ? sizeof v : sizeof f);
        return;
    }
    for (int digits = wide ? 15 : 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        const double back = strtod(text, NULL);
        if (wide ? back == v : (float)back == f) break;
    }
    lb_bytes_text(b, "%s", text);
}

static void put_scalar(lb_bytes *b, lb_meta_type type, const uint8_t *p)
{
    const unsigned size = lb_gguf_types[type].size;
    uint64_t v = 0;
    for (unsigned i = 0; i < size; i++)
        v |= (uint64_t)p[i] << 8 * i;
    if (type == LB_META_F32 || type == LB_META_F64)
        put_float(b, p, type == LB_META_F64);
    else if (type == LB_META_BOOL && v > 1)
        put_hex(b, p, 1);
    else if (type == LB_META_BOOL)
        lb_bytes_text(b, v ? "true" : "false");
    else if (lb_gguf_types[type].is_signed) /* its sign to the top, and back */
        lb_bytes_text(
            b, "%lld",
            (long long)((int64_t)(v << (64 - 8 * size)) >> (64 - 8 * size)));
    else
        lb_bytes_text(b, "%llu", (unsigned long long)v);
}

static bool put_items(lb_bytes *b, gguf_span *s, lb_meta_type of, uint64_t n,
                      int depth);

/* The header of a value: length of a string, or type and length of an array. */
static bool put_long(lb_bytes *b, gguf_span *s, lb_meta_type type, int depth)
{
    const size_t head = type == LB_META_STRING ? 8 : 12;
    if ((size_t)(s->end - s->at) < head) return false;
    const uint8_t *p = s->at;
    s->at += head;
    if (type == LB_META_STRING) {
        const uint64_t n = lb_get_u64(p);
        if (n > (uint64_t)(s->end - s->at)) return false;
        put_string(b, s->at, (size_t)n);
        s->at += n;
        return true;
    }
    const uint32_t of = lb_get_u32(p);
    if (of >= LB_N_META || depth >= LB_GGUF_NESTING) return false;
    lb_bytes_text(b, "{\"of\":\"%s\",\"value\":", lb_gguf_types[of].name);
    const bool ok =
        put_items(b, s, (lb_meta_type)of, lb_get_u64(p + 4), depth + 1);
    lb_bytes_put(b, "}", 1);
    return ok;
}

static bool put_items(lb_bytes *b, gguf_span *s, lb_meta_type of, uint64_t n,
                      int depth)
{
    lb_bytes_put(b, "[", 1);
    for (uint64_t i = 0; i < n; i++) {
        const size_t size = lb_gguf_types[of].size;
        if (i) lb_bytes_put(b, ",", 1);
        if (!size) {
            if (!put_long(b, s, of, depth)) return false;
            continue;
        }
        if ((size_t)(s->end - s->at) < size) return false;
        put_scalar(b, of, s->at);
        s->at += size;
    }
    lb_bytes_put(b, "]", 1);
    return true;
}

static bool put_value(lb_bytes *b, const lb_meta *m)
{
    gguf_span s = {m->bytes, m->bytes + m->size};
    bool ok = true;
    lb_bytes_text(b, "{\"type\":\"%s\",", lb_gguf_types[m->type].name);
    if (m->type == LB_META_ARRAY)
        lb_bytes_text(b, "\"of\":\"%s\",", lb_gguf_types[m->item].name);
    lb_bytes_text(b, "\"value\":");
    if (m->type == LB_META_ARRAY)
        ok = put_items(b, &s, m->item, m->n, 1);
    else if (m->type == LB_META_STRING)
        put_string(b, m->bytes, (size_t)m->size);
    else
        put_scalar(b, m->type, m->bytes);
    lb_bytes_put(b, "}", 1);
    return ok;
}

/* Copies a composed text to the arena. */
static bool take_text(lb_ctx *cx, lb_arena *arena, lb_bytes *b, lb_meta *to)
{
    const char *text = NULL;
    if (!b->failed) text = lb_arena_text(cx, arena, b->at, b->n);
    *to = (lb_meta){.key = to->key,
                    .type = LB_META_STRING,
                    .n = 1,
                    .bytes = (const uint8_t *)text,
                    .size = b->n};
    b->n = 0;
    return text || lb_fail(cx, LB_E_NOMEM, "out of memory");
}

static bool to_text(lb_ctx *cx, lb_arena *arena, const lb_infile *f,
                    const lb_meta *m, lb_bytes *b, lb_meta *to)
{
    const size_t n = strlen(m->key);
    if (!lb_utf8_valid(m->key, n))
        return lb_fail(
            cx, LB_E_UNSUPPORTED,
            "%s: the key '%s' is not UTF-8; only a GGUF file can store it",
            LB_PATH(f->path), LB_NAME(m->key));
    if (m->type == LB_META_STRING && !is_reserved(m->key) &&
        lb_utf8_valid((const char *)m->bytes, (size_t)m->size)) {
        *to = *m;
        return true;
    }
    char *key = lb_arena_alloc(cx, arena, PREFIX + n + 1, 1);
    if (!key) return false;
    memcpy(key, LB_GGUF_PREFIX, PREFIX);
    memcpy(key + PREFIX, m->key, n + 1);
    to->key = key;
    if (put_value(b, m)) return take_text(cx, arena, b, to);
    return lb_fail(cx, LB_E_CONTENT, "%s: the value of key '%s' has changed",
                   LB_PATH(f->path), LB_NAME(m->key));
}

/* The order of keys and tensors. */
static void put_order(lb_bytes *b, const lb_reader *r)
{
    lb_bytes_text(b, "{\"version\":1,\"keys\":[");
    for (int64_t i = 0; i < r->n_meta; i++) {
        if (i) lb_bytes_put(b, ",", 1);
        lb_json_put(b, r->meta[i].key, strlen(r->meta[i].key), false);
    }
    lb_bytes_text(b, "],\"tensors\":[");
    for (int64_t i = 0, n = 0; i < r->n_tensors; i++) {
        const char *name = r->tensor[i].name;
        if (!lb_utf8_valid(name, strlen(name))) continue; /* rejected later */
        if (n++) lb_bytes_put(b, ",", 1);
        lb_json_put(b, name, strlen(name), false);
    }
    lb_bytes_text(b, "]}");
}

/* The decimal point does not depend on the locale. */
static locale_t use_c_locale(locale_t *c)
{
    *c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return uselocale(*c);
}

static void leave_c_locale(locale_t c, locale_t before)
{
    uselocale(before);
    if (c) freelocale(c);
}

bool lb_gguf_to_texts(lb_ctx *cx, lb_arena *arena, const lb_reader *gguf,
                      lb_meta **texts, int64_t *n)
{
    lb_bytes b = {.heap = cx->heap};
    const uint64_t most = (uint64_t)gguf->n_meta + 1;
    locale_t c;
    const locale_t before = use_c_locale(&c);
    lb_meta *list = lb_arena_alloc(cx, arena, most, sizeof *list);
    bool ok = list != NULL;
    *n = 0;
    for (int64_t i = 0; ok && i < gguf->n_meta; i++)
        ok = to_text(cx, arena, gguf->file[0], &gguf->meta[i], &b,
                     &list[(*n)++]);
    if (ok) {
        list[*n].key = LB_GGUF_ORDER;
        put_order(&b, gguf);
        ok = take_text(cx, arena, &b, &list[(*n)++]);
    }
    leave_c_locale(c, before);
    lb_bytes_free(&b);
    *texts = list;
    return ok;
}
