/* meta_texts.c - text metadata as a JSON object. */
#include "io/containers/meta_texts.h"

#include <string.h>

bool lb_meta_texts_read(lb_json *j, lb_arena *arena, lb_meta **meta, int64_t *n)
{
    const uint64_t room = lb_json_entries(j);
    *n = 0;
    *meta =
        j->failed ? NULL : lb_arena_alloc(j->cx, arena, room, sizeof **meta);
    if (!*meta) return false;
    lb_json_enter(j, '{');
    while (lb_json_more(j, '}')) {
        size_t size;
        lb_meta *m = &(*meta)[(*n)++];
        *m = (lb_meta){.type = LB_META_STRING, .n = 1};
        m->key = lb_json_key(j, arena);
        m->bytes = (const uint8_t *)lb_json_string(j, arena, &size);
        m->size = size;
    }
    return !j->failed;
}

bool lb_meta_texts_put(lb_ctx *cx, lb_arena *arena, lb_bytes *b,
                       const lb_meta *meta, int64_t n, const char *kind)
{
    lb_meta **by = lb_sort_meta(cx, arena, meta, n);
    if (!by) return false;
    lb_bytes_put(b, "{", 1);
    for (int64_t i = 0; i < n; i++) {
        const lb_meta *m = by[i];
        const char *text = (const char *)m->bytes;
        if (m->type != LB_META_STRING || m->size > SIZE_MAX ||
            !lb_utf8_valid(text, (size_t)m->size) ||
            !lb_utf8_valid(m->key, strlen(m->key)))
            return lb_fail(cx, LB_E_UNSUPPORTED,
                           "key '%s': metadata of %s must be UTF-8 text",
                           LB_NAME(m->key), kind);
        if (i) lb_bytes_put(b, ",", 1);
        lb_json_put(b, m->key, strlen(m->key), false);
        lb_bytes_put(b, ":", 1);
        lb_json_put(b, text, (size_t)m->size, false);
    }
    lb_bytes_put(b, "}", 1);
    return true;
}
