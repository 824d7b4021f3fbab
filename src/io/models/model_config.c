/* model_config.c - config.json, which transformers keeps beside the weights:
 * of it only how they are quantized,
 * and of what kind the model is. */
#include <string.h>
#include <sys/stat.h>

#include "core/core.h"
#include "io/layouts/entries.h"
#include "io/util/json_text.h"

/* The directory of the file, with its slash, and config.json. */
static bool put_path(const lb_file *f, lb_bytes *path)
{
    static const char name[] = "config.json";
    const char *file = f->r->file[0]->path, *slash = strrchr(file, '/');
    if (slash) lb_bytes_put(path, file, (size_t)(slash - file) + 1);
    lb_bytes_put(path, name, sizeof name);
    return !path->failed;
}

static void read_quantization(lb_json *j, lb_model_config *c)
{
    char key[24];
    lb_json_enter(j, '{');
    while (lb_json_more(j, '}')) {
        lb_json_key_word(j, key, sizeof key);
        if (strcmp(key, "quant_method") == 0)
            lb_json_word(j, c->quant_method, sizeof c->quant_method);
        else if (strcmp(key, "linear_class") == 0)
            lb_json_word(j, c->linear_class, sizeof c->linear_class);
        else
            lb_json_skip(j);
    }
}

static bool read_type(lb_json *j, lb_model_config *c)
{
    if (c->n_types == LB_MODEL_TYPES || lb_json_peek(j) != '"') return false;
    char *to = c->type[c->n_types++];
    lb_json_word(j, to, sizeof *c->type);
    return true;
}

/* text_config, vision_config, ..: of a model inside, what kind it is. */
static void read_inner(lb_json *j, lb_model_config *c)
{
    char key[24];
    lb_json_enter(j, '{');
    while (lb_json_more(j, '}')) {
        lb_json_key_word(j, key, sizeof key);
        if (strcmp(key, "model_type") != 0 || !read_type(j, c)) lb_json_skip(j);
    }
}

static bool read_root(lb_json *j, lb_model_config *c)
{
    char key[24];
    size_t n;
    lb_json_enter(j, '{');
    while (lb_json_more(j, '}')) {
        lb_json_key_word(j, key, sizeof key);
        const bool dtype =
            strcmp(key, "dtype") == 0 || strcmp(key, "torch_dtype") == 0;
        const int next = lb_json_peek(j);
        if (dtype && next == '"')
            lb_json_word(j, c->dtype, sizeof c->dtype);
        else if (strcmp(key, "quantization_config") == 0 && next == '{')
            read_quantization(j, c);
        else if (next == '{' && lb_name_ends(key, "_config", &n))
            read_inner(j, c);
        else if (strcmp(key, "model_type") != 0 || !read_type(j, c))
            lb_json_skip(j);
    }
    return !j->failed;
}

bool lb_model_config_read(lb_ctx *cx, lb_infile *file, lb_model_config *c)
{
    enum { MOST = 1 << 24 };
    lb_json j;
    if (!file) return false;
    if (file->size > MOST)
        return lb_refuse(cx, file, "has %llu bytes, more than %d",
                         (unsigned long long)file->size, MOST);
    bool ok = lb_json_begin(cx, &j, file, 0, file->size, "it");
    j.python = true;
    ok = ok && read_root(&j, c);
    if (!ok) j.failed = true;
    return lb_json_end(&j);
}

const lb_model_config *lb_model_config_of(lb_ctx *cx, lb_file *f)
{
    struct stat st;
    lb_bytes path = {.heap = cx->heap};
    if (f->config) return f->config;
    lb_model_config *c = lb_arena_alloc(cx, &f->arena, 1, sizeof *c);
    bool ok = c != NULL;
    if (ok && !put_path(f, &path))
        ok = lb_fail(cx, LB_E_NOMEM, "out of memory");
    const char *at = (const char *)path.at;
    c = ok ? c : NULL;
    if (c && stat(at, &st) == 0) {
        lb_infile *file = lb_infile_open(cx, at, true);
        c->there = true;
        ok = lb_model_config_read(cx, file, c);
        lb_infile_unref(file);
    }
    lb_bytes_free(&path);
    if (ok) f->config = c;
    return f->config;
}
