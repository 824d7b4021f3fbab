/* tree_selection.c - quantizes a tree by the rules that lb_quantize_file uses:
 * the arrays are presented to them as entries of a file.
 */
#include <string.h>

#include "core/core.h"
#include "io/jobs/selection.h"

static const char *choose(lb_tree *t, int i, lb_selection *s,
                          lb_quant_config *config)
{
    lb_array *a = lb_tree_at(t, i);
    const lb_shape shape = lb_shape_of(a);
    const lb_entry e = {
        .name = lb_tree_name(t, i),
        .type = lb_dtype_name(lb_dtype_of(a)),
        .format = lb_format_of(a),
        .dtype = lb_dtype_of(a),
        .rank = shape.rank,
        .dim = shape.dim,
        .n_tensors = 1,
        .nbytes = lb_nbytes(a),
    };
    return s ? lb_selection_choose(s, &e, config)
             : lb_choose_weights(NULL, &e, config);
}

/* A pattern that matches no name is an error, before anything changes. */
static bool check_patterns(lb_ctx *cx, lb_tree *t, lb_selection *s)
{
    const int n = lb_tree_count(t);
    for (int i = 0; i < n; i++)
        choose(t, i, s, &(lb_quant_config){0});
    return lb_selection_check(cx, &(lb_quantize_options){.selection = s}, n,
                              n ? lb_tree_name(t, 0) : "");
}

bool lb_tree_quantize_selected(lb_tree *t, const lb_quant_config *config,
                               lb_selection *s, lb_tree_change *report)
{
    lb_ctx *cx = lb_tree_context(t);
    lb_quant_config defaults = {0};
    if (!cx || (s && !check_patterns(cx, t, s))) return false;
    if (config) { /* of this version of the library, or an earlier one */
        const size_t size = config->struct_size;
        memcpy(&defaults, config,
               size && size < sizeof defaults ? size : sizeof defaults);
    }
    for (int i = 0; i < lb_tree_count(t); i++) {
        lb_quant_config c = defaults;
        lb_tree_change *to = report ? report + i : NULL;
        const char *kept = choose(t, i, s, &c);
        if (!kept) {
            if (!lb_tree_quantize_at(t, i, &c, to)) return false;
        } else if (to) {
            const lb_array *a = lb_tree_at(t, i);
            *to = (lb_tree_change){
                .name = lb_tree_name(t, i),
                .before = lb_format_of(a),
                .after = lb_format_of(a),
                .bytes_before = lb_nbytes(a),
                .bytes_after = lb_nbytes(a),
                .kept = kept,
            };
        }
    }
    return true;
}
