/* foreign_tensors.c - quantized checkpoints of other programs, recognized by
 * the names, types and shapes of their tensors.
 *
 * A rule names a tensor P + suffix and other tensors that must exist with the
 * same P. Names alone prove nothing: an ordinary model may have a module called
 * "scales" or an attention matrix called "W_q". So a rule requires integers
 * or 8-bit floats as codes, and their scales. The first rule that
 * any tensor meets names the checkpoint; several methods share names, so the
 * order matters.
 *
 * Tensors that a layout has claimed are decoded here and are not looked at.
 */
#include <string.h>

#include "core/core.h"
#include "io/models/foreign.h"

enum {
    U8 = 1 << 0,
    I8 = 1 << 1,
    I16 = 1 << 2,
    I32 = 1 << 3,
    U32 = 1 << 4,
    I64 = 1 << 5,
    FLOAT = 1 << 6, /* F16, BF16, F32, F64 */
    F8 = 1 << 7,    /* E4M3, E5M2 and their variants */
    E8M0 = 1 << 8,  /* powers of two */
    OTHER = 1 << 9,
    INT = U8 | I8 | I16 | I32 | U32 | I64,
    SCALE = FLOAT | U8 | E8M0,
    ANY = 0x3ff
};

typedef struct clue {
    const char *suffix;
    unsigned types;
    int rank; /* 0: any */
} clue;

typedef bool fits(const lb_tensor *key, const lb_tensor *beside);

typedef struct foreign_rule {
    const char *method;
    clue key, beside[2]; /* suffix NULL: no condition */
    fits *fits;          /* ranks of the key and of its first companion; NULL:
                          * any */
} foreign_rule;

/* ---- shapes -------------------------------------------------------------- */

static bool both_matrices(const lb_tensor *a, const lb_tensor *b)
{
    return a->rank == 2 && b->rank == 2 && a->dim[1] > 0 && b->dim[1] > 0;
}

/* qweight (K*bits/32, N), scales (groups, N) */
static bool fits_gptq(const lb_tensor *q, const lb_tensor *scales)
{
    return both_matrices(q, scales) && q->dim[1] == scales->dim[1];
}

/* qweight (K, N/8), scales (groups, N) */
static bool fits_awq_gemm(const lb_tensor *q, const lb_tensor *scales)
{
    return both_matrices(q, scales) && scales->dim[1] / 8 == q->dim[1] &&
           scales->dim[1] % 8 == 0;
}

/* qweight (N, K/8), scales (N, groups and padding) */
static bool fits_awq_gemv(const lb_tensor *q, const lb_tensor *scales)
{
    return both_matrices(q, scales) && q->dim[0] == scales->dim[0];
}

/* weight (.., N, K*bits/32), scales (.., N, K/group) */
static bool fits_mlx(const lb_tensor *w, const lb_tensor *scales)
{
    if (w->rank < 2 || w->rank != scales->rank) return false;
    for (int k = 0; k < w->rank - 1; k++)
        if (w->dim[k] != scales->dim[k]) return false;
    return true;
}

/* weight (N, packed K), weight_scale (N, 1) */
static bool fits_rows(const lb_tensor *scale, const lb_tensor *w)
{
    return scale->rank == 2 && w->rank == 2 && scale->dim[1] == 1 &&
           scale->dim[0] == w->dim[0];
}

/* ---- rules --------------------------------------------------------------- */

/* clang-format off */
static const foreign_rule rules[] = {
    /* nvfp4, packed integers, mxfp4 */
    {"compressed-tensors", {".weight_packed", U8, 0},
     {{".weight_global_scale", FLOAT, 0}}, NULL},
    {"compressed-tensors", {".weight_packed", INT, 0},
     {{".weight_shape", INT, 1}}, NULL},
    {"compressed-tensors", {".weight_packed", INT, 0},
     {{".weight_scale", SCALE | F8, 0}}, NULL},
    /* gpt-oss */
    {"mxfp4", {"_blocks", U8, 4}, {{"_scales", U8, 3}}, NULL},
    /* DeepSeek V3 and V4 (its experts are pairs of codes), Mistral, ComfyUI */
    {"fp8", {"_scale_inv", SCALE, 0}, {{"", F8, 0}}, NULL},
    {"fp8", {".scale", SCALE, 0}, {{".weight", F8, 0}}, NULL},
    {"fp8", {".scale", E8M0, 0}, {{".weight", I8, 2}}, NULL},
    {"fp8", {".qscale_weight", SCALE, 0}, {{".weight", F8, 0}}, NULL},
    {"fp8", {".scale_weight", SCALE, 0}, {{".weight", F8, 0}}, NULL},
    /* ModelOpt's nvfp4; mxfp8; fp8 of compressed-tensors, ModelOpt, FBGEMM */
    {"modelopt", {".weight_scale_2", FLOAT, 0},
     {{".weight", U8, 0}, {".weight_scale", F8, 0}}, NULL},
    {"mxfp8", {".weight_scale", U8 | E8M0, 0}, {{".weight", F8, 0}}, NULL},
    {"fp8", {".weight_scale", FLOAT, 0}, {{".weight", F8, 0}}, NULL},
    {"exl3", {".trellis", I16, 3}, {{".suh", FLOAT, 1}}, NULL},
    {"exl3", {".trellis", I16, 3}, {{".su", I16, 1}}, NULL},
    {"exl2", {".q_groups", I16, 0}, {{".q_weight", I32, 0}}, NULL},
    {"higgs", {".tables2", FLOAT, 0}, {{".qweight", INT, 0}}, NULL},
    {"gptq", {".qweight", I32, 2}, {{".scales", FLOAT, 0}, {".g_idx", I32, 1}},
     NULL},
    {"gptq", {".qweight", I32, 2}, {{".scales", FLOAT, 0}}, fits_gptq},
    {"awq", {".qweight", I32, 2}, {{".scales", FLOAT, 0}}, fits_awq_gemm},
    {"awq", {".qweight", I32, 2}, {{".scales", FLOAT, 0}}, fits_awq_gemv},
    {"awq", {".qweight", I16, 2},
     {{".scales", FLOAT, 0}, {".qzeros", FLOAT, 0}}, NULL},
    {"gptq", {".qweight", INT, 0}, {{".scales", FLOAT, 0}, {".qzeros", INT, 0}},
     NULL},
    {"gptq", {".B", I32, 2}, {{".s", FLOAT, 2}}, NULL}, /* for Marlin */
    {"metal", {".weight", U32, 0},
     {{".scales", SCALE, 0}, {".qbiases", FLOAT, 0}}, fits_mlx},
    {"mlx", {".weight", U32, 0}, {{".scales", SCALE, 0}}, fits_mlx},
    {"hqq", {".W_q", ANY, 0}, {{".scale", FLOAT, 0}, {".zero", FLOAT, 0}},
     NULL},
    {"aqlm", {".codes", INT, 3}, {{".codebooks", FLOAT, 4}}, NULL},
    {"vptq", {".indices", INT, 0}, {{".centroids.weight", FLOAT, 0}}, NULL},
    {"quip#", {".Qidxs", INT, 0}, {{".SU", ANY, 0}}, NULL},
    {"torchao", {"._weight_qdata", ANY, 0}, {{"._weight_scale", ANY, 0}}, NULL},
    {"quanto", {".weight._data", INT | F8, 0}, {{".weight._scale", FLOAT, 0}},
     NULL},
    {"eetq", {".weight_scales", FLOAT, 0}, {{".weight", I8, 2}}, NULL},
    {"eetq", {".weight_scales", FLOAT, 0}, {{".qweight", I8, 2}}, NULL},
    {"compressed-tensors", {".weight_scale", FLOAT, 0}, {{".weight", I8, 0}},
     NULL},
    {"gemma", {".weight_scale", FLOAT, 2}, {{".weight", U8, 2}}, fits_rows},
};
/* clang-format on */

enum { N = sizeof rules / sizeof *rules };

static unsigned type_of(const lb_tensor *t)
{
    if (strcmp(t->type, "F8_E8M0") == 0) return E8M0;
    if (strncmp(t->type, "F8_", 3) == 0) return F8;
    switch (t->dtype) {
    case LB_U8:
        return U8;
    case LB_I8:
        return I8;
    case LB_I16:
        return I16;
    case LB_I32:
        return I32;
    case LB_U32:
        return U32;
    case LB_I64:
        return I64;
    case LB_F16:
    case LB_BF16:
    case LB_F32:
    case LB_F64:
        return FLOAT;
    default:
        return OTHER;
    }
}

static bool is_so(const clue *c, const lb_tensor *t)
{
    return (type_of(t) & c->types) && (!c->rank || c->rank == t->rank);
}

static bool meets(const foreign_rule *r, const lb_file *f, const lb_tensor *t)
{
    size_t n;
    const lb_tensor *beside[2] = {NULL, NULL};
    if (!lb_name_ends(t->name, r->key.suffix, &n) || !is_so(&r->key, t))
        return false;
    for (int i = 0; i < 2 && r->beside[i].suffix; i++) {
        beside[i] = lb_reader_find_in(f->r, t->name, n, r->beside[i].suffix);
        if (!beside[i] || !is_so(&r->beside[i], beside[i])) return false;
    }
    return !r->fits || r->fits(t, beside[0]);
}

const char *lb_foreign_tensors(const lb_file *f, const lb_tensor **found)
{
    int best = N;
    *found = NULL;
    for (int64_t i = 0; i < f->n; i++) {
        const lb_group *g = f->group[i];
        if (g->layout) continue;
        for (int k = 0; k < best; k++)
            if (meets(&rules[k], f, g->tensor[0])) {
                best = k;
                *found = g->tensor[0];
            }
    }
    return best < N ? rules[best].method : NULL;
}
