/* model_config.c - reads the JSON files next to the weights: how the model is
 * quantized, and its type.
 *
 *     config.json              quantization_config (compression_config in old
 *                              files), at the top or in text_config; and
 *                              MLX's quantization
 *     quantize_config.json     GPTQ
 *     quant_config.json        AWQ
 *     hf_quant_config.json     ModelOpt
 */
#include <string.h>
#include <sys/stat.h>

#include "core/core.h"
#include "io/layouts/entries.h"
#include "io/util/json_text.h"

static const char main_file[] = "config.json";

/* A file in the same directory. */
static bool put_path(const lb_file *f, const char *name, lb_bytes *path)
{
    const char *file = f->r->file[0]->path, *slash = strrchr(file, '/');
    path->n = 0;
    if (slash) lb_bytes_put(path, file, (size_t)(slash - file) + 1);
    lb_bytes_put(path, name, strlen(name) + 1);
    return !path->failed;
}

/* ---- how it is quantized ------------------------------------------------- */

static void set_method(lb_model_config *c, const char *method)
{
    const size_t n = strlen(method);
    memcpy(c->quant_method, method, n + 1);
    c->quant_file = main_file;
}

/* Keys that identify the method of an object without quant_method. */
static const struct {
    const char *key, *method;
} known_keys[] = {
    {"lowbit", "lowbit"},
    {"load_in_4bit", "bitsandbytes"},
    {"load_in_8bit", "bitsandbytes"},
    {"quant_algo", "modelopt"},
    {"w_bit", "awq"},
    {"desc_act", "gptq"},
    {"group_size", "mlx"},
};
enum { N_KEYS = sizeof known_keys / sizeof *known_keys };

/* [128, 128] */
static void read_block(lb_json *j, int64_t block[2])
{
    int n = 0;
    block[0] = block[1] = 0;
    lb_json_enter(j, '[');
    for (; lb_json_more(j, ']'); n++)
        if (n < 2 && lb_json_peek(j) == 0)
            block[n] = lb_json_count_of(j);
        else
            lb_json_skip(j);
    if (n != 2) block[0] = block[1] = 0;
}

/* compressed-tensors' config_groups:
 *
 *     {"group_0": {"weights": {"block_structure": [128, 128]}}}
 *
 * block is -1 if groups have different sizes. */
static void read_groups(lb_json *j, int depth, int64_t block[2])
{
    static const char *const path[] = {NULL, "weights", "block_structure"};
    char key[24];
    lb_json_enter(j, '{');
    while (lb_json_more(j, '}')) {
        int64_t b[2];
        lb_json_key_word(j, key, sizeof key);
        const bool on = !path[depth] || strcmp(key, path[depth]) == 0;
        const int next = lb_json_peek(j);
        if (on && depth < 2 && next == '{')
            read_groups(j, depth + 1, block);
        else if (on && depth == 2 && next == '[') {
            read_block(j, b);
            if (block[0] && (block[0] != b[0] || block[1] != b[1]))
                b[0] = b[1] = -1;
            memcpy(block, b, sizeof b);
        } else
            lb_json_skip(j);
    }
}

/* An object that may describe a quantization; sure: it does, whatever its keys.
 */
static void read_quantization(lb_json *j, lb_model_config *c, bool sure)
{
    char key[24], method[sizeof c->quant_method] = "";
    int found = N_KEYS;
    int64_t n = 0, group[2] = {0};
    lb_json_enter(j, '{');
    for (; lb_json_more(j, '}'); n++) {
        lb_json_key_word(j, key, sizeof key);
        for (int k = 0; k < found; k++)
            if (strcmp(key, known_keys[k].key) == 0 && lb_json_peek(j) != 'n')
                found = k;
        if (strcmp(key, "quant_method") == 0 && lb_json_peek(j) == '"') {
            lb_json_word(j, method, sizeof method);
            if (!method[0]) memcpy(method, "unknown", sizeof "unknown");
        } else if (strcmp(key, "linear_class") == 0 && lb_json_peek(j) == '"')
            lb_json_word(j, c->linear_class, sizeof c->linear_class);
        else if (strcmp(key, "weight_block_size") == 0 &&
                 lb_json_peek(j) == '[')
            read_block(j, c->block);
        else if (strcmp(key, "config_groups") == 0 && lb_json_peek(j) == '{')
            read_groups(j, 0, group);
        else
            lb_json_skip(j);
    }
    if (group[0] > 0) memcpy(c->block, group, sizeof group);
    if (method[0])
        set_method(c, method);
    else if (found < N_KEYS && !c->quant_method[0])
        set_method(c, known_keys[found].method);
    else if (sure && n && !c->quant_method[0])
        set_method(c, "unknown");
}

/* ---- config.json --------------------------------------------------------- */

static bool is_quantization(const char *key)
{
    return strcmp(key, "quantization_config") == 0 ||
           strcmp(key, "compression_config") == 0;
}

static bool read_type(lb_json *j, lb_model_config *c)
{
    if (c->n_types == LB_MODEL_TYPES || lb_json_peek(j) != '"') return false;
    char *to = c->type[c->n_types++];
    lb_json_word(j, to, sizeof *c->type);
    return true;
}

/* text_config, vision_config, ...: a model inside the model. */
static void read_inner(lb_json *j, lb_model_config *c)
{
    char key[24];
    lb_json_enter(j, '{');
    while (lb_json_more(j, '}')) {
        lb_json_key_word(j, key, sizeof key);
        if (is_quantization(key) && lb_json_peek(j) == '{')
            read_quantization(j, c, true);
        else if (strcmp(key, "model_type") != 0 || !read_type(j, c))
            lb_json_skip(j);
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
        else if (is_quantization(key) && next == '{')
            read_quantization(j, c, true);
        else if (strcmp(key, "quantization") == 0 && next == '{')
            read_quantization(j, c, false);
        else if (next == '{' && lb_name_ends(key, "_config", &n))
            read_inner(j, c);
        else if (strcmp(key, "model_type") != 0 || !read_type(j, c))
            lb_json_skip(j);
    }
    return !j->failed;
}

typedef bool read_object(lb_json *j, lb_model_config *c);

static bool read_file(lb_ctx *cx, lb_infile *file, read_object *read,
                      lb_model_config *c)
{
    enum { MOST = 1 << 24 };
    lb_json j;
    if (!file) return false;
    if (file->size > MOST)
        return lb_refuse(cx, file, "has %llu bytes; the maximum is %d",
                         (unsigned long long)file->size, MOST);
    bool ok = lb_json_begin(cx, &j, file, 0, file->size, "it");
    j.python = true;
    ok = ok && read(&j, c);
    if (!ok) j.failed = true;
    return lb_json_end(&j);
}

bool lb_model_config_read(lb_ctx *cx, lb_infile *file, lb_model_config *c)
{
    return read_file(cx, file, read_root, c);
}

/* A file in the directory of f, if it exists; false and an error. */
static bool read_beside(lb_ctx *cx, const lb_file *f, const char *name,
                        read_object *read, lb_model_config *c, bool *there)
{
    struct stat st;
    lb_bytes path = {.heap = cx->heap};
    bool ok = put_path(f, name, &path);
    const char *at = (const char *)path.at;
    if (!ok) lb_fail(cx, LB_E_NOMEM, "out of memory");
    *there = ok && stat(at, &st) == 0;
    if (*there) {
        lb_infile *file = lb_infile_open(cx, at, true);
        ok = read_file(cx, file, read, c);
        lb_infile_unref(file);
    }
    lb_bytes_free(&path);
    return ok;
}

bool lb_config_inside(lb_ctx *cx, const lb_file *f, lb_infile **file)
{
    const lb_meta *m = lb_reader_meta(f->r, LB_CONFIG_KEY);
    const bool safe = strcmp(f->r->kind->name, "safetensors") == 0;
    *file = NULL;
    if (!safe || !m || m->type != LB_META_STRING || m->size > SIZE_MAX)
        return true;
    *file = lb_infile_wrap(cx, f->r->file[0]->path, m->bytes, (size_t)m->size);
    return *file != NULL;
}

const lb_model_config *lb_model_config_of(lb_ctx *cx, lb_file *f)
{
    lb_infile *inside;
    if (f->config) return f->config;
    lb_model_config *c = lb_arena_alloc(cx, &f->arena, 1, sizeof *c);
    if (!c || !lb_config_inside(cx, f, &inside)) return NULL;
    const bool ok =
        inside ? read_file(cx, inside, read_root, c)
               : read_beside(cx, f, main_file, read_root, c, &c->there);
    lb_infile_unref(inside);
    if (ok) f->config = c;
    return f->config;
}

/* ---- other files --------------------------------------------------------- */

static bool read_plain(lb_json *j, lb_model_config *c)
{
    read_quantization(j, c, false);
    return !j->failed;
}

/* {"producer": {..}, "quantization": {"quant_algo": "FP8", ..}} */
static bool read_modelopt(lb_json *j, lb_model_config *c)
{
    char key[24];
    lb_json_enter(j, '{');
    while (lb_json_more(j, '}')) {
        lb_json_key_word(j, key, sizeof key);
        if (strcmp(key, "quantization") == 0 && lb_json_peek(j) == '{')
            read_quantization(j, c, false);
        else
            lb_json_skip(j);
    }
    return !j->failed;
}

const lb_model_config *lb_quant_config_of(lb_ctx *cx, lb_file *f)
{
    static const struct {
        const char *name;
        read_object *read;
        const char *method; /* a "quantization" object without quant_method;
                             * NULL: identified by its keys */
    } other[] = {
        {"quantize_config.json", read_plain, "gptq"},
        {"quant_config.json", read_plain, "awq"},
        {"hf_quant_config.json", read_modelopt, NULL},
    };
    bool there = false;
    if (!lb_model_config_of(cx, f)) return NULL;
    lb_model_config *c = f->config;
    for (int i = 0; !c->quant_read && !c->quant_method[0] && i < 3; i++) {
        if (!read_beside(cx, f, other[i].name, other[i].read, c, &there))
            return NULL;
        if (!c->quant_method[0]) continue;
        if (other[i].method && strcmp(c->quant_method, "mlx") == 0)
            set_method(c, other[i].method); /* only group_size is known */
        c->quant_file = other[i].name;
    }
    c->quant_read = true;
    return c;
}
