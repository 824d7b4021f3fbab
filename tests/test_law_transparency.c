/* test_law_transparency.c - law 3: a primitive's result does not depend on how
 * its operands are stored. For every primitive, sample, operand position, view
 * and format, the result on the view has the same bits as the result on a plain
 * array of the same elements, and no operand is decoded whole. The same for
 * operands in two different formats. */
/* ctest: simde long=--all skip-tsan skip-arm64 */
#include "laws.h"

/* The views that pairs use in turn. */
static const sample_view *next_view(void)
{
    static int turn;
    int n = 0;
    while (sample_views[n].name)
        n++;
    return &sample_views[turn++ % n];
}

/* All ordered pairs of formats. Larger samples use every twentieth pair. */
static void law_pairs(lb_ctx *cx, const lb_prim *prim, const sample *s,
                      void *user)
{
    enum { SMALL = 300, EVERY = 20 };
    static int turn;
    const sample_format_list *list = user;
    int64_t size = 0;
    if (s->n_in < 2) return;
    for (int i = 0; i < s->n_in; i++)
        if (lb_shape_size(&s->in[i].shape) > size)
            size = lb_shape_size(&s->in[i].shape);
    for (int i = 0; i < list->n; i++)
        for (int j = 0; j < list->n; j++) {
            const sample_format *f[] = {&list->item[i], &list->item[j]};
            law_dress dress[SAMPLE_MAX_IN] = {{NULL, NULL}};
            int dressed = 0;
            if (f[0]->fmt == f[1]->fmt || !f[0]->fmt || !f[1]->fmt) continue;
            if (!law_run.all && (f[0]->variant || f[1]->variant)) continue;
            if (!law_run.all && size > SMALL && turn++ % EVERY) continue;
            for (int k = 0; k < s->n_in; k++)
                if (sample_takes(f[dressed % 2], &s->in[k]))
                    dress[k] = (law_dress){f[dressed++ % 2], next_view()};
            const long before = law_run.combinations;
            if (dressed > 1) law_transparent(cx, prim, s, dress);
            law_run.of_pairs += law_run.combinations - before;
        }
}

int main(int argc, char **argv)
{
    law_args(argc, argv);
    lb_ctx *cx = lb_open(&(lb_options){
        .threads = 1, .dense = LB_DENSE_LOG, .log = log_no_copies});
    CHECK(cx != NULL);
    if (!cx) return check_report("law 3, transparency");
    CHECK(sample_add_outside(cx));
    sample_format_list list = law_formats(cx);
    for (int i = 0; i < list.n; i++) {
        sample_remember(true);
        law_each(cx, SAMPLES_SMALL, law_transparency, &list.item[i]);
    }
    law_each(cx, SAMPLES_SMALL, law_pairs, &list);
    int shallow = 0;
    for (int i = 0; i < list.n; i++)
        shallow += list.item[i].max_rank < LB_MAX_RANK;
    printf("%d formats and variants (%d of them up to rank %d): %ld "
           "combinations, %ld of two formats, %ld by a rule within its bound\n",
           list.n, shallow, LB_MAX_RANK - 1, law_run.combinations,
           law_run.of_pairs, law_run.by_rule);
    sample_remember(false);
    sample_formats_free(&list);
    lb_close(cx);
    return check_report("law 3, transparency");
}
