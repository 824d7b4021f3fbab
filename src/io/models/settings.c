/* settings.c - reads the settings of a quantized checkpoint. */
#include "io/models/settings.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/core.h"
#include "io/util/json_text.h"

enum {
    DEPTH = 12,
    PATH_MOST = 1024,
    FILE_MOST = 1 << 24,
    BYTES_MOST = 1 << 26 /* a long key is part of every path below it */
};

/* Two passes: the first counts. */
typedef struct {
    lb_json *j;
    lb_arena *arena;
    lb_setting *item; /* NULL: count only */
    int64_t n, most;
    uint64_t bytes; /* of all settings */
    char path[PATH_MOST];
    size_t length;
} flat;

static const char *keep(flat *to, const char *text)
{
    const size_t n = strlen(text) + 1;
    char *copy = lb_arena_alloc(to->j->cx, to->arena, n, 1);
    if (copy) memcpy(copy, text, n);
    if (!copy) to->j->failed = true;
    return copy ? copy : "";
}

static void add(flat *to, const char *text, double number)
{
    to->bytes += sizeof *to->item + to->length + 1;
    if (to->item && to->n < to->most)
        to->item[to->n] = (lb_setting){keep(to, to->path), text, number};
    to->n++;
}

static void flatten(flat *to, int depth);

/* A value below the path, under that key. Keys that are too long are
 * skipped. */
static void below(flat *to, const char *key, int depth)
{
    const size_t was = to->length;
    const int n = snprintf(to->path + was, sizeof to->path - was, "%s%s",
                           was ? "|" : "", key);
    if (n < 0 || (size_t)n >= sizeof to->path - was) {
        lb_json_skip(to->j);
    } else {
        to->length += (size_t)n;
        flatten(to, depth);
    }
    to->length = was;
    to->path[was] = 0;
}

static void flatten(flat *to, int depth)
{
    lb_json *j = to->j;
    const int next = lb_json_peek(j);
    char index[24];
    size_t size;
    if (depth == DEPTH) {
        lb_json_skip(j);
    } else if (next == '{') {
        lb_json_enter(j, '{');
        while (lb_json_more(j, '}'))
            below(to, lb_json_key(j, to->arena), depth + 1);
    } else if (next == '[') {
        lb_json_enter(j, '[');
        for (int64_t i = 0; lb_json_more(j, ']'); i++) {
            snprintf(index, sizeof index, "%lld", (long long)i);
            below(to, index, depth + 1);
        }
    } else if (next == '"') {
        add(to, lb_json_string(j, to->arena, &size), 0);
    } else if (next == 0) {
        add(to, "", lb_json_number_of(j));
    } else {
        if (next == 't' || next == 'f')
            add(to, next == 't' ? "true" : "false", 0);
        lb_json_skip(j);
    }
}

static bool is_settings(const char *key)
{
    return strcmp(key, "quantization_config") == 0 ||
           strcmp(key, "compression_config") == 0 ||
           strcmp(key, "quantization") == 0;
}

/* The first object with such a name, in config.json and in the models inside
 * it. */
static void find(flat *to, bool inner)
{
    lb_json *j = to->j;
    size_t n;
    lb_json_enter(j, '{');
    while (lb_json_more(j, '}')) {
        const char *key = lb_json_key(j, to->arena);
        const bool object = lb_json_peek(j) == '{';
        if (object && !to->n && is_settings(key))
            flatten(to, 0);
        else if (object && !inner && lb_name_ends(key, "_config", &n))
            find(to, true);
        else
            lb_json_skip(j);
    }
}

static bool read_once(lb_ctx *cx, lb_infile *file, lb_arena *arena, bool whole,
                      lb_settings *s, lb_setting *item)
{
    lb_json j;
    flat to = {.j = &j, .arena = arena, .item = item, .most = s->n};
    if (!lb_json_begin(cx, &j, file, 0, file->size, "it")) {
        lb_json_end(&j);
        return false;
    }
    j.python = true;
    if (whole)
        flatten(&to, 0);
    else
        find(&to, false);
    s->n = item ? lb_min_i64(to.n, to.most) : to.n;
    s->item = item;
    if (!lb_json_end(&j)) return false;
    return to.bytes <= BYTES_MOST ||
           lb_refuse(cx, file,
                     "its quantization settings take %llu bytes with their "
                     "paths; the maximum is %d",
                     (unsigned long long)to.bytes, BYTES_MOST);
}

static bool read_file(lb_ctx *cx, lb_infile *file, lb_arena *arena, bool whole,
                      lb_settings *s)
{
    if (!file) return false;
    if (file->size > FILE_MOST)
        return lb_refuse(cx, file, "has %llu bytes; the maximum is %d",
                         (unsigned long long)file->size, FILE_MOST);
    if (!read_once(cx, file, arena, whole, s, NULL)) return false;
    lb_setting *item =
        lb_arena_alloc(cx, arena, (uint64_t)s->n, sizeof *s->item);
    return item && read_once(cx, file, arena, whole, s, item);
}

static bool read_beside(lb_ctx *cx, lb_file *f, const char *name, bool whole,
                        lb_settings *s)
{
    struct stat st;
    const char *file = f->r->file[0]->path, *slash = strrchr(file, '/');
    const size_t n = slash ? (size_t)(slash - file) + 1 : 0;
    char *path = lb_arena_alloc(cx, &f->arena, n + strlen(name) + 1, 1);
    if (!path) return false;
    memcpy(path, file, n);
    memcpy(path + n, name, strlen(name) + 1);
    if (stat(path, &st)) return true;
    lb_infile *in = lb_infile_open(cx, path, true);
    const bool ok = read_file(cx, in, &f->arena, whole, s);
    lb_infile_unref(in);
    return ok;
}

const lb_settings *lb_settings_of(lb_ctx *cx, lb_file *f)
{
    static const char *const plain[] = {"quantize_config.json",
                                        "quant_config.json"};
    if (f->settings) return f->settings;
    lb_settings *s = lb_arena_alloc(cx, &f->arena, 1, sizeof *s);
    lb_infile *inside = NULL;
    bool ok = s && lb_config_inside(cx, f, &inside);
    if (ok)
        ok = inside ? read_file(cx, inside, &f->arena, false, s)
                    : read_beside(cx, f, "config.json", false, s);
    lb_infile_unref(inside);
    for (int i = 0; ok && !s->n && i < 2; i++)
        ok = read_beside(cx, f, plain[i], true, s);
    if (ok) f->settings = s;
    return f->settings;
}

const lb_setting *lb_setting_named(const lb_settings *s, const char *path)
{
    for (int64_t i = 0; i < s->n; i++)
        if (strcmp(s->item[i].path, path) == 0) return &s->item[i];
    return NULL;
}

const char *lb_setting_text(const lb_settings *s, const char *path)
{
    const lb_setting *found = lb_setting_named(s, path);
    return found ? found->text : "";
}

int64_t lb_setting_count(const lb_settings *s, const char *path, int64_t most)
{
    const lb_setting *found = lb_setting_named(s, path);
    if (!found || !(found->number >= 1 && found->number <= (double)most))
        return 0;
    const int64_t n = (int64_t)found->number;
    return (double)n == found->number ? n : 0;
}
