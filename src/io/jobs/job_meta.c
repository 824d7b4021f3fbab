/* job_meta.c - metadata of a job's output: that of the input in the form of the
 * output's container, and GGUF's file type.
 */
#include <string.h>
#include <strings.h>

#include "core/core.h"
#include "io/containers/gguf_text.h"
#include "io/jobs/job.h"
#include "io/models/model_dir.h"

static const char *output_kind(const lb_job *j)
{
    return j->o->kind ? j->o->kind : "safetensors";
}

/* ---- from the input ------------------------------------------------------ */

/* Copies everything except descriptors of the input's own layout, and its
 * configuration. */
static bool copy_meta(lb_job *j)
{
    const lb_reader *r = j->f->r;
    const bool described = strcmp(r->kind->name, "gguf") != 0;
    j->meta =
        lb_arena_alloc(j->cx, &j->arena, (uint64_t)r->n_meta, sizeof *j->meta);
    for (int64_t i = 0; j->meta && i < r->n_meta; i++)
        if (!described ||
            (strncmp(r->meta[i].key, LB_DESCRIPTION, strlen(LB_DESCRIPTION)) &&
             strcmp(r->meta[i].key, LB_CONFIG_KEY) != 0))
            j->meta[j->n_meta++] = r->meta[i];
    return j->meta != NULL;
}

/* Moves the groups of tensors into the order of the GGUF file that they once
 * came from; others follow in the order of the input. */
static bool sort_groups(lb_job *j, const lb_gguf_meta *m)
{
    lb_group **group =
        lb_arena_alloc(j->cx, &j->arena, (uint64_t)j->f->n, sizeof(lb_group *));
    const lb_group **listed = lb_arena_alloc(
        j->cx, &j->arena, (uint64_t)m->n_tensors, sizeof(lb_group *));
    int64_t n = 0;
    if (!group || !listed) return false;
    for (int64_t i = 0; i < j->f->n; i++) {
        const int64_t at =
            lb_listed_at(m->tensor, m->n_tensors, j->f->group[i]->entry.name);
        if (at < m->n_tensors) listed[at] = j->f->group[i];
    }
    for (int64_t i = 0; i < m->n_tensors; i++)
        if (listed[i]) group[n++] = (lb_group *)(uintptr_t)listed[i];
    for (int64_t i = 0; i < j->f->n; i++) {
        const int64_t at =
            lb_listed_at(m->tensor, m->n_tensors, j->f->group[i]->entry.name);
        if (at >= m->n_tensors) group[n++] = j->f->group[i];
    }
    j->group = group;
    return true;
}

bool lb_job_take_meta(lb_job *j)
{
    const lb_reader *r = j->f->r;
    const bool from_gguf = strcmp(r->kind->name, "gguf") == 0;
    const bool to_gguf = strcmp(output_kind(j), "gguf") == 0;
    j->group = j->f->group;
    if (strcmp(output_kind(j), "npy") == 0) return true; /* no metadata */
    if (from_gguf && !to_gguf)
        return lb_gguf_to_texts(j->cx, &j->arena, r, &j->meta, &j->n_meta);
    if (from_gguf == to_gguf) return copy_meta(j);
    lb_gguf_meta m;
    if (!lb_gguf_from_texts(j->cx, &j->arena, r, &m)) return false;
    j->meta = m.meta;
    j->n_meta = m.n;
    return !m.tensor || sort_groups(j, &m);
}

/* Bits and versions of other programs' layouts are in config.json, which a file
 * without a directory does not have. */
bool lb_job_put_config(lb_job *j)
{
    lb_bytes text = {.heap = j->cx->heap};
    if (j->o->directory || strcmp(output_kind(j), "safetensors") != 0 ||
        !lb_job_writes_moved(j))
        return true;
    lb_bytes_text(&text, "{\"quantization_config\": ");
    const size_t before = text.n;
    bool ok = lb_job_configure(j, &text);
    const bool some = text.n > before;
    lb_bytes_text(&text, "}");
    lb_meta *meta =
        lb_arena_alloc(j->cx, &j->arena, (uint64_t)j->n_meta + 1, sizeof *meta);
    const char *copy =
        text.failed ? NULL
                    : lb_arena_text(j->cx, &j->arena, (char *)text.at, text.n);
    ok = ok && meta && copy;
    if (ok && some) {
        if (j->n_meta) memcpy(meta, j->meta, (size_t)j->n_meta * sizeof *meta);
        meta[j->n_meta++] = (lb_meta){.key = LB_CONFIG_KEY,
                                      .type = LB_META_STRING,
                                      .n = 1,
                                      .bytes = (const uint8_t *)copy,
                                      .size = text.n};
        j->meta = meta;
    }
    lb_bytes_free(&text);
    if (!ok && !lb_error_status(j->cx))
        lb_fail(j->cx, LB_E_NOMEM, "out of memory");
    return ok;
}

/* ---- file type ----------------------------------------------------------- */

/* enum llama_ftype of llama.h for the type of most weights. Mixtures such as
 * Q4_K_M are named after their main type. */
static const struct {
    const char *type;
    uint32_t number;
} file_types[] = {
    {"F32", 0},      {"F16", 1},     {"Q4_0", 2},     {"Q4_1", 3},
    {"Q8_0", 7},     {"Q5_0", 8},    {"Q5_1", 9},     {"Q2_K", 10},
    {"Q3_K", 12},    {"Q4_K", 15},   {"Q5_K", 17},    {"Q6_K", 18},
    {"IQ2_XXS", 19}, {"IQ2_XS", 20}, {"IQ3_XXS", 23}, {"IQ1_S", 24},
    {"IQ4_NL", 25},  {"IQ3_S", 26},  {"IQ2_S", 28},   {"IQ4_XS", 30},
    {"IQ1_M", 31},   {"BF16", 32},   {"TQ1_0", 36},   {"TQ2_0", 37},
    {"MXFP4", 38},   {"NVFP4", 39},  {"Q1_0", 40},    {"Q2_0", 41},
};
enum { N_FILE_TYPES = sizeof file_types / sizeof *file_types };
static const uint32_t quantization_version = 2; /* GGML_QNT_VERSION */
static const char file_type_key[] = "general.file_type";

/* The row of file_types that most elements of the output have, counting only
 * quantized arrays if there are any; -1: none. */
static int main_type(const lb_job *j)
{
    uint64_t count[2][N_FILE_TYPES] = {0};
    int most[2] = {-1, -1};
    for (int64_t i = 0; i < j->n; i++) {
        const lb_job_item *it = &j->item[i];
        const lb_tensor *t = &j->plan->tensor[j->plan->item[i].first];
        const lb_shape shape =
            lb_shape_make(it->group->entry.rank, it->group->entry.dim);
        const bool quantized = lb_job_quantizes(it) || it->stored;
        for (int k = 0; k < N_FILE_TYPES; k++)
            if (strcmp(file_types[k].type, t->type) == 0)
                count[quantized][k] += (uint64_t)lb_shape_size(&shape);
    }
    for (int q = 0; q < 2; q++)
        for (int k = 0; k < N_FILE_TYPES; k++)
            if (count[q][k] && (most[q] < 0 || count[q][k] > count[q][most[q]]))
                most[q] = k;
    return most[1] >= 0 ? most[1] : most[0];
}

/* Like ggml: removes an old value and appends the new one. */
static bool set_u32(lb_job *j, const char *key, uint32_t v)
{
    lb_meta *list =
        lb_arena_alloc(j->cx, &j->arena, (uint64_t)j->n_meta + 1, sizeof *list);
    uint8_t *bytes = lb_arena_alloc(j->cx, &j->arena, 4, 1);
    int64_t n = 0;
    if (!list || !bytes) return false;
    for (int64_t i = 0; i < j->n_meta; i++)
        if (strcmp(j->meta[i].key, key) != 0) list[n++] = j->meta[i];
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(v >> 8 * i);
    list[n] = (lb_meta){
        .key = key, .type = LB_META_U32, .n = 1, .bytes = bytes, .size = 4};
    j->meta = list;
    j->n_meta = n + 1;
    return true;
}

/* The file type for the type that the user requested, as llama-quantize writes
 * it; -1: types are chosen per array, or nothing is quantized. */
static int asked_type(const lb_job *j)
{
    const lb_quantize_options *o = j->o;
    const char *format = o->config.format;
    if (j->convert || !format || o->target_bits > 0 || o->target_bytes)
        return -1;
    for (int k = 0; k < N_FILE_TYPES; k++)
        if (strcasecmp(file_types[k].type, format) == 0) return k;
    return -1;
}

static const lb_meta *find_meta(const lb_job *j, const char *key)
{
    for (int64_t i = 0; i < j->n_meta; i++)
        if (strcmp(j->meta[i].key, key) == 0) return &j->meta[i];
    return NULL;
}

/* Whether a model's metadata must be updated: its arrays were quantized, or
 * come from another container. */
static bool is_outdated(const lb_job *j, uint32_t number)
{
    const lb_meta *m = find_meta(j, file_type_key);
    bool stored = false;
    if (strcmp(j->f->r->kind->name, "gguf") == 0) return false;
    for (int64_t i = 0; i < j->n; i++)
        stored = stored || j->item[i].stored;
    return stored && m && m->type == LB_META_U32 && m->size == 4 &&
           lb_get_u32(m->bytes) != number;
}

bool lb_job_set_file_type(lb_job *j)
{
    bool quantized = false, decoded = false;
    if (strcmp(output_kind(j), "gguf") != 0) return true;
    for (int64_t i = 0; i < j->n; i++) {
        quantized = quantized || lb_job_quantizes(&j->item[i]);
        decoded = decoded || j->item[i].decoded;
    }
    const int asked = quantized ? asked_type(j) : -1;
    const int type = asked >= 0 ? asked : main_type(j);
    if (type < 0) return true;
    const bool model =
        find_meta(j, file_type_key) || find_meta(j, "general.architecture");
    if (!(model && (quantized || decoded)) &&
        !is_outdated(j, file_types[type].number))
        return true;
    return set_u32(j, "general.quantization_version", quantization_version) &&
           set_u32(j, file_type_key, file_types[type].number);
}
