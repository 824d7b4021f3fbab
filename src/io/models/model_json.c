/* model_json.c - replaces quantization_config in the text of config.json,
 * removes what else says how the weights were quantized (compression_config,
 * MLX's quantization, and all of these in text_config and the like), and leaves
 * the rest unchanged. */
#include <string.h>

#include "core/core.h"
#include "io/models/model_dir.h"
#include "io/util/json_text.h"

/* Byte positions in the text. */
typedef struct spots {
    size_t before;     /* end of what precedes the entry */
    size_t begin, end; /* of its value */
    size_t after;      /* start of the next entry; 0: it is the last */
    size_t last;       /* end of the last entry, or of the opening bracket */
    bool found, first;
    int64_t n;
} spots;

static size_t place(const lb_json *j)
{
    return (size_t)(j->at - j->text);
}

static bool find_spots(lb_json *j, spots *s)
{
    char key[24];
    lb_json_enter(j, '{');
    s->last = place(j);
    for (; lb_json_more(j, '}'); s->n++) {
        if (s->found && !s->after) s->after = place(j);
        lb_json_key_word(j, key, sizeof key);
        const bool wanted = strcmp(key, "quantization_config") == 0;
        if (wanted && s->found) return lb_json_wrong(j, "a key twice");
        (void)lb_json_peek(j);
        if (wanted) {
            s->found = true;
            s->first = s->n == 0;
            s->before = s->last;
            s->begin = place(j);
        }
        lb_json_skip(j);
        s->last = place(j);
        if (wanted) s->end = s->last;
    }
    return !j->failed;
}

/* {"group_size": 64, "bits": 4, ..} */
static bool is_mlx(lb_json *j)
{
    char key[24];
    bool yes = false;
    lb_json_enter(j, '{');
    while (lb_json_more(j, '}')) {
        lb_json_key_word(j, key, sizeof key);
        yes |= strcmp(key, "group_size") == 0;
        lb_json_skip(j);
    }
    return yes;
}

/* The first entry besides quantization_config that is to be removed. */
static bool find_outdated(lb_json *j, bool inner, spots *s)
{
    char key[24];
    lb_json_enter(j, '{');
    s->last = place(j);
    for (; lb_json_more(j, '}'); s->n++) {
        if (s->found && !s->after) s->after = place(j);
        lb_json_key_word(j, key, sizeof key);
        const bool object = lb_json_peek(j) == '{' && !s->found;
        const bool own = strcmp(key, "quantization_config") == 0;
        const size_t begin = place(j), n = strlen(key);
        bool wanted = (own && inner) || strcmp(key, "compression_config") == 0;
        spots below = {0};
        if (object && strcmp(key, "quantization") == 0)
            wanted = is_mlx(j);
        else if (object && !own && !wanted && !inner && n > 7 &&
                 strcmp(key + n - 7, "_config") == 0)
            find_outdated(j, true, &below);
        else
            lb_json_skip(j);
        if (below.found) {
            *s = below;
            while (lb_json_more(j, '}')) { /* to the end of the text */
                lb_json_key_word(j, key, sizeof key);
                lb_json_skip(j);
            }
            return !j->failed;
        }
        if (object && wanted) {
            s->found = true;
            s->first = s->n == 0;
            s->before = s->last;
            s->begin = begin;
        }
        const bool here = object && wanted;
        s->last = place(j);
        if (here) s->end = s->last;
    }
    return !j->failed;
}

static void splice(const lb_json *j, const spots *s, const lb_bytes *value,
                   lb_bytes *out)
{
    const size_t size = (size_t)(j->end - j->text);
    if (value && s->found) {
        lb_bytes_put(out, j->text, s->begin);
        lb_bytes_put(out, value->at, value->n);
        lb_bytes_put(out, j->text + s->end, size - s->end);
    } else if (value) {
        lb_bytes_put(out, j->text, s->last);
        lb_bytes_text(out, "%s\n  \"quantization_config\": ", s->n ? "," : "");
        lb_bytes_put(out, value->at, value->n);
        if (s->last < size && j->text[s->last] != '\n')
            lb_bytes_text(out, "\n");
        lb_bytes_put(out, j->text + s->last, size - s->last);
    } else if (s->found) {
        const size_t from = s->first && s->after ? s->after : s->end;
        lb_bytes_put(out, j->text, s->before);
        lb_bytes_put(out, j->text + from, size - from);
    } else
        lb_bytes_put(out, j->text, size);
}

/* Replaces the entry, or, outdated, removes one; *found: there was one. */
static bool edit(lb_ctx *cx, lb_infile *f, const lb_bytes *value, bool outdated,
                 lb_bytes *out, bool *found)
{
    spots s = {0};
    lb_json j;
    bool ok = lb_json_begin(cx, &j, f, 0, f->size, "it");
    j.python = true;
    ok = ok && (outdated ? find_outdated(&j, false, &s) : find_spots(&j, &s));
    if (ok) splice(&j, &s, value, out);
    if (!ok) j.failed = true;
    *found = s.found;
    return lb_json_end(&j) &&
           (!out->failed || lb_fail(cx, LB_E_NOMEM, "out of memory"));
}

bool lb_model_json(lb_ctx *cx, lb_infile *f, const lb_bytes *value,
                   lb_bytes *out)
{
    enum { MOST = 1 << 24, REMOVED_MOST = 64 };
    bool found = false;
    int removed = 0;
    if (f->size > MOST)
        return lb_refuse(cx, f, "has %llu bytes; the maximum is %d",
                         (unsigned long long)f->size, MOST);
    bool ok = edit(cx, f, NULL, true, out, &found);
    /* Then the new value, which may have a second entry of its own. */
    for (bool last = !found; ok; last = !found) {
        /* Each removal reads the text again. */
        if (!last && removed++ == REMOVED_MOST)
            return lb_refuse(cx, f, "has more than %d quantization settings",
                             REMOVED_MOST);
        lb_bytes next = {.heap = cx->heap};
        lb_infile *text = lb_infile_wrap(cx, f->path, out->at, out->n);
        ok = text && edit(cx, text, last ? value : NULL, !last, &next, &found);
        lb_infile_unref(text);
        lb_bytes_free(out);
        *out = next;
        if (last) break;
    }
    return ok;
}
