/* method.c - how a checkpoint was quantized, from its tensors and from the
 * configuration in its directory.
 *
 * If both name a method, the configuration wins (several programs write the
 * same tensors), unless its method is decoded here and these tensors were not.
 * A configuration applies to the model it belongs to: to model.safetensors and
 * to an index. It applies to other files in the same directory, such as one
 * shard or an adapter, only if they contain more than floats and decoded
 * arrays.
 */
#include <string.h>

#include "core/core.h"
#include "io/models/foreign.h"

/* Methods that are decoded here, with their layouts. */
static const struct {
    const char *method, *layout;
} decoders[] = {
    {"bitsandbytes", "bnb"},
    {"bitnet", "bitnet"},
    {"eformer", "eformer"},
    {"lowbit", "native"},
    {"lowbit", "eformer"},
    {"fp8", "fp8"},
    {"mxfp4", "mxfp4"},
    {"modelopt", "modelopt"},
    {"compressed-tensors", "compressed-tensors"},
    {"mlx", "mlx"},
    /* programs that store fp8 alike */
    {"modelopt", "fp8"},
    {"compressed-tensors", "fp8"},
    {"fbgemm_fp8", "fp8"},
    {"mxfp8", "fp8"},
    {"gptq", "gptq"},
    {"awq", "awq"},
    {"gemma", "gemma"},
    {"metal", "mlx"},
    {"auto-round", "gptq"},
    {"auto-round", "awq"},
    {"auto-round", "compressed-tensors"},
};
enum { N_DECODERS = sizeof decoders / sizeof *decoders };

bool lb_method_has_layout(const char *method, const char *layout)
{
    for (int i = 0; i < N_DECODERS; i++)
        if (strcmp(decoders[i].method, method) == 0 &&
            strcmp(decoders[i].layout, layout) == 0)
            return true;
    return false;
}

/* Raw tensors are not grouped: then it is enough that a layout exists. */
static bool is_decoded(const lb_file *f, const char *method)
{
    for (int k = 0; f->options.raw && k < N_DECODERS; k++)
        if (strcmp(decoders[k].method, method) == 0) return true;
    for (int64_t i = 0; i < f->n; i++)
        if (f->group[i]->layout &&
            lb_method_has_layout(method, f->group[i]->layout->name))
            return true;
    return false;
}

/* From the layout of its arrays, if no configuration names it. */
static const char *layout_method(const lb_file *f)
{
    for (int64_t i = 0; i < f->n; i++)
        for (int k = 0; f->group[i]->layout && k < N_DECODERS; k++)
            if (strcmp(f->group[i]->layout->name, decoders[k].layout) == 0)
                return decoders[k].method;
    return NULL;
}

/* ---- configurations ------------------------------------------------------ */

static bool is_float(lb_dtype d)
{
    return d == LB_F32 || d == LB_F16 || d == LB_BF16 || d == LB_F64;
}

static bool config_counts(const lb_file *f)
{
    const char *kind = f->r->kind->name, *path = f->r->file[0]->path;
    const char *slash = strrchr(path, '/');
    if (strcmp(kind, "safetensors_index") == 0) return true;
    if (strcmp(kind, "safetensors") != 0) return false;
    if (strcmp(slash ? slash + 1 : path, "model.safetensors") == 0) return true;
    for (int64_t i = 0; i < f->n; i++)
        if (!f->group[i]->layout && !is_float(f->group[i]->tensor[0]->dtype))
            return true;
    return false;
}

bool lb_file_method(lb_ctx *cx, lb_file *f, lb_quant_method *m)
{
    const lb_tensor *found = NULL;
    const lb_model_config *c = NULL;
    *m = (lb_quant_method){0};
    if (!cx || !f) return false;
    if (strcmp(f->r->kind->name, "gguf") == 0) return true;
    const char *shown = lb_foreign_tensors(f, &found);
    if (config_counts(f)) {
        c = lb_quant_config_of(cx, f);
        if (!c) return false;
    }
    if (c && c->quant_method[0]) {
        m->name = c->quant_method;
        m->source = c->quant_file;
        m->decoded = is_decoded(f, m->name);
    }
    if (shown) {
        if (!m->name || m->decoded) m->source = NULL;
        m->name = m->source ? m->name : shown;
        m->tensor = found->name;
        m->decoded = false;
    }
    if (m->name) return true;
    m->name = layout_method(f);
    m->decoded = m->name != NULL;
    return true;
}
