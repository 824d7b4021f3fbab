/* fuzz_recipe.c - any bytes as a recipe, whose patterns are matched with some
 * names. */
#include "core/core.h"
#include "fuzz_container.h"
#include "io/jobs/selection.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char *const name[] = {"model.layers.0.mlp.up.weight",
                                       "lm_head.weight", "a", ""};
    static const int64_t dim[] = {64, 64};
    enum { MOST = 4096 }; /* matching takes up to a million steps each */
    lb_ctx *cx = fuzz_context();
    if (!cx || n > MOST) return 0;
    lb_infile *f = lb_infile_wrap(cx, "fuzz.recipe", bytes, n);
    lb_selection *s = lb_selection_open(cx);
    if (f && s && lb_selection_read(cx, s, f))
        for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
            lb_quant_config config = {.format = "nf4"};
            const lb_entry e = {.name = name[i],
                                .format = "dense",
                                .dtype = LB_F32,
                                .rank = 2,
                                .dim = dim};
            (void)lb_selection_choose(s, &e, &config);
        }
    if (s)
        (void)lb_selection_check(cx, &(lb_quantize_options){.selection = s}, 4,
                                 "a");
    lb_clear(cx);
    lb_selection_close(s);
    lb_infile_unref(f);
    return 0;
}
