/* even_samples.c - see even_samples.h. */
#include "even_samples.h"

#include <string.h>

static void elementwise(sample_list *list, const char *prim, int kinds)
{
    static const lb_dtype dtype[] = {LB_F32, LB_BF16, LB_I32, LB_BOOL, LB_U8};
    const bool three = !strcmp(prim, "select") || !strcmp(prim, "clamp");
    for (int i = 0; i < 5; i++) {
        if (!(kinds & sample_kind_of(dtype[i]))) continue;
        sample_list like = samples_of(prim, SAMPLES_SMALL);
        int n = like.n ? like.item[0].n_in : 0;
        sample *s = sample_add(list, prim);
        if (like.n) s->params = like.item[0].params;
        for (int k = 0; k < n; k++) {
            const bool pred = !strcmp(prim, "select") && k == 0;
            sample_in(s, pred ? LB_BOOL : dtype[i], LB_SHAPE(8, 16),
                      VALUES_ANY);
        }
        if (three) { /* the first, or both bounds, may be scalars */
            sample *t = sample_add(list, prim);
            *t = list->item[list->n - 2];
            t->in[0].shape = (lb_shape){0};
            if (!strcmp(prim, "clamp")) t->in[2].shape = (lb_shape){0};
        }
        samples_free(&like);
    }
}

static void views(sample_list *list, const char *prim)
{
    const lb_shape a = LB_SHAPE(8, 4, 16);
    sample *s;
    if (!strcmp(prim, "transpose")) {
        sample_in(s = sample_add(list, prim), LB_F32, a, VALUES_BITS);
        memcpy(s->params.transpose.perm, (int[]){2, 0, 1}, 3 * sizeof(int));
    } else if (!strcmp(prim, "broadcast_in_dim")) {
        sample_in(s = sample_add(list, prim), LB_F32, LB_SHAPE(8, 1, 16),
                  VALUES_BITS);
        s->params.broadcast =
            (lb_broadcast_params){LB_SHAPE(4, 16, 8, 8), {3, 2, 1}};
    } else if (!strcmp(prim, "slice")) {
        sample_in(s = sample_add(list, prim), LB_F32, a, VALUES_BITS);
        s->params.slice = (lb_slice_params){{0, 1, 0}, {8, 3, 16}, {1, 1, 1}};
        sample_in(s = sample_add(list, prim), LB_F32, a, VALUES_BITS);
        s->params.slice = (lb_slice_params){{0, 0, 2}, {8, 4, 16}, {2, 1, 3}};
    } else if (!strcmp(prim, "reverse")) {
        sample_in(s = sample_add(list, prim), LB_F32, a, VALUES_BITS);
        s->params.reverse.axes = (lb_axes){1, {1}};
    } else if (!strcmp(prim, "bitcast_convert")) {
        static const lb_dtype to[] = {LB_I32, LB_U8, LB_F64};
        for (int i = 0; i < 3; i++) {
            const lb_shape pairs = LB_SHAPE(8, 16, 2);
            s = sample_add(list, prim);
            sample_in(s, LB_F32, i == 2 ? pairs : a, VALUES_BITS);
            s->params.convert.dtype = to[i];
        }
    } else if (!strcmp(prim, "pad")) {
        sample_in(s = sample_add(list, prim), LB_F32, a, VALUES_BITS);
        sample_in(s, LB_F32, (lb_shape){0}, VALUES_BITS);
        s->params.pad = (lb_pad_params){{0, 1, 0}, {0, 2, 0}, {0, 1, 0}};
    } else if (!strcmp(prim, "concatenate")) {
        sample_in(s = sample_add(list, prim), LB_F32, a, VALUES_BITS);
        sample_in(s, LB_F32, LB_SHAPE(8, 8, 16), VALUES_BITS);
        s->params.concatenate.axis = 1;
    } else if (!strcmp(prim, "dynamic_slice")) {
        sample_in(s = sample_add(list, prim), LB_F32, a, VALUES_BITS);
        for (int k = 0; k < 3; k++)
            *sample_in(s, LB_I32, (lb_shape){0}, VALUES_INDEX) =
                (sample_operand){LB_I32, {0}, VALUES_INDEX, 0, 3, false};
        memcpy(s->params.dynamic_slice.sizes, (int64_t[]){8, 2, 16},
               3 * sizeof(int64_t));
    } else if (!strcmp(prim, "dynamic_update_slice")) {
        sample_in(s = sample_add(list, prim), LB_F32, a, VALUES_BITS);
        sample_in(s, LB_F32, LB_SHAPE(8, 2, 16), VALUES_BITS);
        for (int k = 0; k < 3; k++)
            *sample_in(s, LB_I32, (lb_shape){0}, VALUES_INDEX) =
                (sample_operand){LB_I32, {0}, VALUES_INDEX, 0, 3, false};
    } else if (!strcmp(prim, "attention")) {
        for (int i = 0; i < 2; i++) {
            s = sample_add(list, prim);
            for (int k = 0; k < 3; k++)
                sample_in(s, LB_F32,
                          k ? LB_SHAPE(8, 4, 6, 5) : LB_SHAPE(8, 4, 3, 5),
                          VALUES_TAME);
            *sample_in(s, LB_I32, (lb_shape){0}, VALUES_INDEX) =
                (sample_operand){
                    LB_I32, i ? LB_SHAPE(8) : (lb_shape){0}, VALUES_INDEX, 1, 7,
                    false};
            s->params.attention =
                (lb_attention_params){.scale = 0.5, .causal = i};
        }
    } else if (!strcmp(prim, "rope")) {
        for (int i = 0; i < 2; i++) {
            sample_in(s = sample_add(list, prim), LB_F32, a, VALUES_TAME);
            *sample_in(s, LB_I32, i ? (lb_shape){0} : LB_SHAPE(4),
                       VALUES_INDEX) = (sample_operand){
                LB_I32, i ? (lb_shape){0} : LB_SHAPE(4), VALUES_INDEX, 0, 99,
                false};
            s->params.rope = (lb_rope_params){
                .base = 1e4, .magnitude = 1, .dims = 16, .axis = 1};
        }
    } else {
        static const char *const plain[] = {"copy", "stop_gradient",
                                            "convert_element_type", "ste"};
        for (int i = 0; i < 4; i++) {
            if (strcmp(prim, plain[i]) != 0) continue;
            sample_in(s = sample_add(list, prim), LB_F32, a, VALUES_TAME);
            if (i == 2) s->params.convert.dtype = LB_BF16;
            if (i == 3) sample_in(s, LB_F32, a, VALUES_TAME);
        }
    }
}

static void reshapes(sample_list *list, const char *prim)
{
    const lb_shape from[] = {LB_SHAPE(8, 4, 16), LB_SHAPE(512), LB_SHAPE(8, 64),
                             LB_SHAPE(4, 1, 8, 16), LB_SHAPE(8, 4, 16)};
    const lb_shape to[] = {LB_SHAPE(32, 16), LB_SHAPE(8, 4, 16),
                           LB_SHAPE(8, 8, 8), LB_SHAPE(4, 128),
                           LB_SHAPE(64, 8)};
    if (strcmp(prim, "reshape") != 0) return;
    for (int i = 0; i < 5; i++) {
        sample *s = sample_add(list, prim);
        sample_in(s, LB_F32, from[i], VALUES_BITS);
        s->params.reshape = (lb_reshape_params){.shape = to[i]};
        if (i != 4) continue;
        s->params.reshape.permute = true;
        memcpy(s->params.reshape.perm, (int[]){1, 2, 0}, 3 * sizeof(int));
    }
}

static void reduces(sample_list *list, const char *prim)
{
    static const lb_dtype dtype[] = {LB_F32, LB_BF16, LB_I32,
                                     LB_U8,  LB_F64,  LB_BOOL};
    const lb_axes axes[] = {{1, {0}}, {1, {1}}, {2, {0, 2}}, {3, {0, 1, 2}}};
    const bool arg = !strncmp(prim, "arg", 3);
    if (strncmp(prim, "reduce_", 7) != 0 && !arg) return;
    const bool bits = !strcmp(prim, "reduce_and") || !strcmp(prim, "reduce_or");
    const bool sum = !strcmp(prim, "reduce_sum");
    const bool tame = sum || !strcmp(prim, "reduce_prod");
    for (int d = 0; d < 6; d++)
        for (int i = 0; i < (arg ? 2 : 4); i++) {
            const int kind = sample_kind_of(dtype[d]);
            if ((bits && kind == KIND_F) || (tame && kind == KIND_B)) continue;
            sample *s = sample_add(list, prim);
            sample_in(s, dtype[d], LB_SHAPE(8, 16, 4),
                      tame ? VALUES_TAME : VALUES_ANY);
            if (arg)
                s->params.arg = (lb_argminmax_params){i, LB_I32};
            else
                s->params.reduce.axes = axes[i];
        }
}

static void products(sample_list *list, const char *prim)
{
    static const lb_dtype dtype[] = {LB_F32, LB_BF16, LB_I32};
    if (!strcmp(prim, "conv_general_dilated"))
        for (int i = 0; i < 3; i++) {
            sample *s = sample_add(list, prim);
            sample_in(s, dtype[i], LB_SHAPE(8, 16, 5, 6), VALUES_TAME);
            sample_in(s, dtype[i], LB_SHAPE(8, i ? 16 : 4, 2, 3), VALUES_TAME);
            s->params.conv =
                (lb_conv_dims){.pad_lo = {1, 0}, .feature_groups = i ? 1 : 4};
        }
    for (int i = 0; i < 9 && !strcmp(prim, "dot_general"); i++) {
        sample *s = sample_add(list, prim);
        const lb_dtype d = dtype[i % 3];
        if (i < 3) {
            sample_in(s, d, LB_SHAPE(8, 64), VALUES_TAME);
            sample_in(s, d, LB_SHAPE(64, 128), VALUES_TAME);
            s->params.dot = (lb_dot_dims){.lhs_contract = {1, {1}},
                                          .rhs_contract = {1, {0}}};
        } else if (i < 6) {
            sample_in(s, d, LB_SHAPE(8, 256), VALUES_TAME);
            sample_in(s, d, LB_SHAPE(64, 256), VALUES_TAME);
            s->params.dot = (lb_dot_dims){.lhs_contract = {1, {1}},
                                          .rhs_contract = {1, {1}}};
        } else {
            sample_in(s, d, LB_SHAPE(4, 8, 16), VALUES_TAME);
            sample_in(s, d, LB_SHAPE(16, 8, 4), VALUES_TAME);
            s->params.dot = (lb_dot_dims){.lhs_contract = {1, {2}},
                                          .rhs_contract = {1, {0}},
                                          .lhs_batch = {1, {1}},
                                          .rhs_batch = {1, {1}}};
        }
    }
}

/* Rows of a table, with indices inside and outside of it; and windows. */
static void windows(sample_list *list, const char *prim)
{
    const bool add = !strcmp(prim, "scatter_add");
    if (strcmp(prim, "gather") != 0 && !add) return;
    for (int i = 0; i < 4; i++) {
        const bool rows = i < 2;
        sample *s = sample_add(list, prim);
        sample_in(s, LB_F32, LB_SHAPE(16, 64), add ? VALUES_TAME : VALUES_BITS);
        *sample_in(s, LB_I32, LB_SHAPE(8, 2), VALUES_INDEX) = (sample_operand){
            LB_I32,       rows ? LB_SHAPE(8, 4) : LB_SHAPE(8, 1),
            VALUES_INDEX, -3,
            20,           false};
        lb_gather_dims *d = &s->params.gather;
        *d = (lb_gather_dims){
            .offset_dims = {1, {2}},
            .collapsed_slice_dims = {1, {0}},
            .start_index_map = {1, {0}},
            .index_vector_dim = 2,
            .slice_sizes = {1, 64},
            .bounds = i % 2 ? LB_BOUNDS_FILL : LB_BOUNDS_CLAMP,
        };
        if (!rows) {
            d->offset_dims = (lb_axes){2, {1, 2}};
            d->collapsed_slice_dims = (lb_axes){0};
            d->index_vector_dim = 1;
            d->slice_sizes[0] = 4;
        }
        if (add) sample_in(s, LB_F32, LB_SHAPE(8, 4, 64), VALUES_TAME);
    }
}

static void scales(sample_list *list, const char *prim)
{
    if (strcmp(prim, "quantize_scales") != 0) return;
    for (int i = 0; i < 2; i++)
        sample_in(sample_add(list, prim), i ? LB_BF16 : LB_F32,
                  LB_SHAPE(16, 2048), VALUES_FINITE)
            ->scaled = true;
}

sample_list even_samples_of(const char *prim)
{
    sample_list list = {0};
    const int kinds = sample_kinds(prim);
    if (kinds) elementwise(&list, prim, kinds);
    views(&list, prim);
    reshapes(&list, prim);
    reduces(&list, prim);
    products(&list, prim);
    windows(&list, prim);
    scales(&list, prim);
    return list;
}
