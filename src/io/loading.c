/* loading.c - what a program must be told, in config.json, to load what a job
 * writes: how weights are packed, and which are not. */
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "io/model_dir.h"

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

/* A linear layer that the program would pack, but for its name in a list. */
static bool is_left(const lb_job_item *it)
{
    const lb_entry *e = &it->group->entry;
    return (it->kept || it->decoded) && is_float(e->dtype) && e->rank == 2 &&
           module_length(e->name) && !lb_linear_only(e) &&
           !(lb_name_role(e->name) &&
             strcmp(lb_name_role(e->name), "a norm") == 0);
}

static bool is_head(const lb_job_item *it)
{
    const lb_entry *e = &it->group->entry;
    return (it->kept || it->decoded) && e->rank == 2 &&
           module_length(e->name) && lb_role_is_head(lb_name_role(e->name));
}

/* Whether a packed layer's name goes on where this one ends: names in the list
 * are matched from their begin on. */
static bool is_prefix(const lb_job *j, const char *name, size_t n)
{
    for (int64_t i = 0; i < j->n; i++)
        if (!j->item[i].kept && !j->item[i].decoded &&
            strncmp(j->item[i].group->entry.name, name, n) == 0)
            return true;
    return false;
}

static bool list_modules(lb_job *j, bool (*wanted)(const lb_job_item *),
                         const char **list, int64_t *n)
{
    for (int64_t i = 0; i < j->n; i++) {
        const char *name = j->item[i].group->entry.name;
        const size_t k = module_length(name);
        if (!wanted(&j->item[i])) continue;
        char *text = lb_arena_alloc(j->cx, &j->arena, k + 2, 1);
        if (!text) return false;
        memcpy(text, name, k);
        if (is_prefix(j, name, k)) text[k] = '$';
        list[(*n)++] = text;
    }
    return true;
}

/* One kind of packed weights: a program has one setting for all of them. */
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
                "'%s' is %s%s, '%s' %s%s: what loads the layout %s takes one "
                "type for all",
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

bool lb_job_configure(lb_job *j, lb_bytes *to)
{
    const lb_file_layout *layout = NULL;
    const lb_job_item *first = NULL;
    bool loaded = false;
    for (int k = 0; j->o->layout && lb_file_layouts[k]; k++)
        loaded |= strcmp(lb_file_layouts[k]->name, j->o->layout) == 0 &&
                  lb_file_layouts[k]->configure;
    if (!loaded) return true;
    if (!find_layout(j, &layout, &first)) return false;
    if (!first) return true; /* all floats, as it was */
    const char **left = lb_arena_alloc(j->cx, &j->arena, 2 * (uint64_t)j->n,
                                       sizeof(const char *));
    const char **heads =
        lb_arena_alloc(j->cx, &j->arena, (uint64_t)j->n, sizeof(const char *));
    if (!left || !heads || !lb_model_config_of(j->cx, j->f)) return false;
    lb_loading how = {.dtype = dtype_of(j, first),
                      .linear_class = first->config.meaning == LB_MEANS_INVERSE
                                          ? "bitlinear"
                                          : "autobitlinear",
                      .double_quant = first->config.double_quant,
                      .heads = heads};
    if (!list_modules(j, is_head, heads, &how.n_heads) ||
        !list_modules(j, is_left, left, &how.n_skip))
        return false;
    /* A list of one's own replaces the program's, which has the heads. */
    if (how.n_skip) {
        how.skip = left;
        memcpy(left + how.n_skip, heads, (size_t)how.n_heads * sizeof *heads);
        how.n_skip += how.n_heads;
    }
    layout->configure(to, &how);
    return !to->failed || lb_fail(j->cx, LB_E_NOMEM, "out of memory");
}
