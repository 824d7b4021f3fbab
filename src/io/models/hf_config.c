/* hf_config.c - the "quantization_config" that a loader needs in config.json:
 * how weights are packed, and which layers are not. */
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "io/models/model_dir.h"

/* The module of a weight: its name without ".weight". */
static size_t module_length(const char *name)
{
    size_t n;
    return lb_name_ends(name, ".weight", &n) ? n : 0;
}

static bool is_float(lb_dtype d)
{
    return d == LB_F32 || d == LB_F16 || d == LB_BF16 || d == LB_F64;
}

static bool stays_float(const lb_job_item *it)
{
    const lb_entry *e = &it->group->entry;
    const char *role = lb_name_role(e->name);
    return (it->kept || it->decoded) && is_float(e->dtype) && e->rank == 2 &&
           module_length(e->name) && !(role && strcmp(role, "norm") == 0);
}

static bool is_head(const lb_job_item *it)
{
    return stays_float(it) &&
           lb_role_is_head(lb_name_role(it->group->entry.name));
}

/* Float weights that transformers would treat as packed linear layers unless it
 * finds them in the list of skipped modules. Embeddings are included, because
 * some are projections. Experts have one common pattern; experts stored in one
 * tensor need none. */
static bool is_left(const lb_job_item *it)
{
    size_t n;
    const char *name = it->group->entry.name;
    return stays_float(it) && !lb_role_is_head(lb_name_role(name)) &&
           !lb_name_is_expert(name) &&
           !lb_name_ends(name, "embed_tokens.weight", &n);
}

/* Whether the name of a packed layer begins or ends with these n bytes, which
 * is how transformers matches the list. */
static bool matches_packed(const lb_job *j, const char *name, size_t n)
{
    for (int64_t i = 0; i < j->n; i++) {
        const char *packed = j->item[i].group->entry.name;
        const size_t k = module_length(packed);
        if (!j->item[i].kept && !j->item[i].decoded &&
            (strncmp(packed, name, n) == 0 ||
             (k >= n && strncmp(packed + k - n, name, n) == 0)))
            return true;
    }
    return false;
}

/* ---- the list ------------------------------------------------------------ */

typedef struct list {
    lb_job *j;
    const char **text;
    int64_t n;
} list;

static bool add_modules(list *l, bool (*wanted)(const lb_job_item *))
{
    const lb_job *j = l->j;
    for (int64_t i = 0; i < j->n; i++) {
        const char *name = j->item[i].group->entry.name;
        const size_t k = module_length(name);
        if (!wanted(&j->item[i])) continue;
        char *text = lb_arena_alloc(j->cx, &l->j->arena, k + 2, 1);
        if (!text) return false;
        memcpy(text, name, k);
        if (matches_packed(j, name, k)) text[k] = '$';
        l->text[l->n++] = text;
    }
    return true;
}

/* Output heads that may exist in the model but not in the file: tied to
 * embeddings, or under another name. */
static void add_unseen_heads(list *l)
{
    static const char *const usual[] = {"lm_head", "predictions.decoder",
                                        "proj_out", "output_projection"};
    for (int64_t i = 0; i < l->n; i++)
        if (strcmp(l->text[i], usual[0]) == 0) return;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (!matches_packed(l->j, usual[i], strlen(usual[i])))
            l->text[l->n++] = usual[i];
}

static void add_experts(list *l)
{
    for (int64_t i = 0; i < l->j->n; i++)
        if (stays_float(&l->j->item[i]) &&
            lb_name_is_expert(l->j->item[i].group->entry.name)) {
            l->text[l->n++] = "(.*\\.)?experts\\.\\d+\\..*";
            return;
        }
}

/* plain: only the output head is in the list, and the file has it. */
static bool list_floats(lb_job *j, lb_loading *how)
{
    enum { MORE = 5 };
    list l = {.j = j};
    l.text =
        lb_arena_alloc(j->cx, &j->arena, (uint64_t)j->n + MORE, sizeof *l.text);
    if (!l.text || !add_modules(&l, is_left)) return false;
    add_experts(&l);
    const int64_t others = l.n;
    if (!add_modules(&l, is_head)) return false;
    const int64_t seen = l.n;
    add_unseen_heads(&l);
    how->plain = others == 0 && l.n == seen;
    how->skip = l.text;
    how->n_skip = l.n;
    return true;
}

/* All packed weights must be of one kind: the loader has one setting for all.
 */
static bool find_layout(lb_job *j, const lb_file_layout **layout,
                        const lb_job_item **first)
{
    *layout = NULL;
    for (int64_t i = 0; i < j->n; i++) {
        const lb_job_item *it = &j->item[i];
        if (it->kept || it->decoded) continue;
        if (!*first) {
            *first = it;
            *layout = it->layout;
        }
        if (it->layout != *layout ||
            it->config.double_quant != (*first)->config.double_quant)
            return lb_fail(
                j->cx, LB_E_ARG,
                "'%s' is %s%s, but '%s' is %s%s: loaders of layout %s support "
                "a single type",
                LB_NAME((*first)->group->entry.name), (*first)->config.format,
                (*first)->config.double_quant ? " with double_quant" : "",
                LB_NAME(it->group->entry.name), it->config.format,
                it->config.double_quant ? " with double_quant" : "",
                j->o->layout);
    }
    return true;
}

static const char *dtype_of(const lb_job *j, const lb_job_item *first)
{
    switch (first->group->entry.dtype) {
    case LB_BF16:
        return "bfloat16";
    case LB_F16:
        return "float16";
    default:
        return j->f->config && j->f->config->dtype[0] ? j->f->config->dtype
                                                      : "float32";
    }
}

/* For layouts that transformers does not load. Without quant_method it raises
 * an error; with an unknown one it only warns, ignores all packed arrays and
 * fills the model with random weights. */
static void put_own(const lb_job *j, lb_bytes *to)
{
    int64_t packed = 0;
    for (int64_t i = 0; i < j->n; i++)
        packed += !j->item[i].kept && !j->item[i].decoded;
    if (!packed) return;
    lb_bytes_text(to,
                  "{\n    \"lowbit\": {\n      \"layout\": \"%s\",\n"
                  "      \"version\": \"%s\"\n    }\n  }",
                  j->o->layout ? j->o->layout : "native", LB_VERSION_STRING);
}

bool lb_job_keeps_config(const lb_job *j)
{
    bool any = false;
    if (j->verbatim) return true;
    for (int64_t i = 0; j->convert && i < j->n; i++) {
        const lb_job_item *it = &j->item[i];
        const lb_file_layout *l = it->group->layout;
        if (!l) continue;
        if (!it->stored || it->layout != l || !l->configure) return false;
        any = true;
    }
    return any;
}

static bool list_packed(lb_job *j, lb_loading *how)
{
    lb_saved *packed =
        lb_arena_alloc(j->cx, &j->arena, (uint64_t)j->n, sizeof *packed);
    for (int64_t i = 0; packed && i < j->n; i++)
        if (!j->item[i].kept && !j->item[i].decoded)
            packed[how->n_packed++] = j->plan->item[i];
    how->packed = packed;
    return packed != NULL;
}

bool lb_job_configure(lb_job *j, lb_bytes *to)
{
    const lb_file_layout *layout = NULL;
    const lb_job_item *first = NULL;
    bool loaded = false;
    for (int k = 0; j->o->layout && lb_file_layouts[k]; k++)
        loaded |= strcmp(lb_file_layouts[k]->name, j->o->layout) == 0 &&
                  lb_file_layouts[k]->configure;
    if (!loaded) {
        put_own(j, to);
        return !to->failed || lb_fail(j->cx, LB_E_NOMEM, "out of memory");
    }
    if (!find_layout(j, &layout, &first)) return false;
    if (!first) return true; /* no packed arrays: unchanged */
    if (!lb_model_config_of(j->cx, j->f)) return false;
    lb_loading how = {.dtype = dtype_of(j, first),
                      .linear_class = first->config.meaning == LB_MEANS_INVERSE
                                          ? "bitlinear"
                                          : "autobitlinear",
                      .double_quant = first->config.double_quant};
    if (!list_floats(j, &how) || !list_packed(j, &how)) return false;
    layout->configure(to, &how);
    return !to->failed || lb_fail(j->cx, LB_E_NOMEM, "out of memory");
}
