/* test_law_transparency.c - law 3: a primitive does not see how its operands
 * are stored. For every primitive, sample, operand position, view and format
 * the result on the view has the bits of the result on a plain array of the
 * same elements; and nothing is decoded whole. */
#include "laws.h"

int main(void)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1, .dense = LB_DENSE_DENY});
    CHECK(cx != NULL);
    if (!cx) return check_report("law 3, transparency");
    const lb_format *fmt;
    for (int k = 0; (fmt = lb_format_at(cx, k)); k++) {
        const sample_format *f = sample_format_named(fmt->name);
        if (check_fails(f != NULL))
            fprintf(stderr, "%s has no samples\n", fmt->name);
        sample_format copy = *(f ? f : sample_formats);
        if (f) law_each(cx, SAMPLES_SMALL, law_transparency, &copy);
    }
    lb_close(cx);
    return check_report("law 3, transparency");
}
