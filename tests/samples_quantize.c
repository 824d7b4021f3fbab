/* samples_quantize.c - samples of the primitives that quantize: to every
 * format of the registry that has an encoder, with default and with other
 * configurations. */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "samples.h"

static void add_quantize(sample_list *list, lb_ctx *cx, const sample_format *f,
                         lb_dtype from, lb_shape shape)
{
    lb_quant_config c;
    sample *s = sample_add(list, "quantize");
    sample_config(f, shape.rank, f->config.dtype ? f->config.dtype : from, &c);
    if (!lb_quant_of(cx, "sample", &c, shape.rank, &s->params.quant)) abort();
    sample_in(s, from, shape, VALUES_FINITE);
}

static void quantizes(sample_list *list, bool large)
{
    const lb_shape shape[] = {
        LB_SHAPE(3, 5),     {0},           LB_SHAPE(7),     LB_SHAPE(4, 3, 5),
        LB_SHAPE(0),        LB_SHAPE(130), LB_SHAPE(2, 70), LB_SHAPE(3, 0),
        LB_SHAPE(2, 3, 33), LB_SHAPE(9, 1)};
    enum { SHAPES = sizeof shape / sizeof *shape };
    static const lb_dtype from[] = {LB_F32, LB_BF16, LB_F16, LB_F64};
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    if (!cx) abort();
    sample_format_list formats = sample_formats_of(cx);
    int next = 0;
    for (int i = 0; i < formats.n; i++) {
        const sample_format *f = &formats.item[i];
        if (!f->fmt || !lb_is_encodable(f->fmt)) continue;
        if (large) {
            add_quantize(list, cx, f, LB_F32, LB_SHAPE(300, 257));
            add_quantize(list, cx, f, LB_BF16, LB_SHAPE(9, 40, 300));
            continue;
        }
        /* Variants have different shapes and dtypes; together they have all. */
        for (int k = 0; k < (f->variant ? 3 : 2 * SHAPES); k++, next++)
            add_quantize(list, cx, f, from[(next + next / SHAPES) % 4],
                         shape[next % SHAPES]);
    }
    sample_formats_free(&formats);
    lb_close(cx);
}

static void quantize_scales(sample_list *list, bool large)
{
    const lb_shape shape[] = {
        LB_SHAPE(3, 5), {0}, LB_SHAPE(7), LB_SHAPE(0), LB_SHAPE(2, 3, 130)};
    for (int i = 0; i < (large ? 1 : 5); i++) {
        sample *s = sample_add(list, "quantize_scales");
        sample_in(s, i % 2 ? LB_BF16 : LB_F32,
                  large ? LB_SHAPE(300, 1057) : shape[i], VALUES_FINITE)
            ->scaled = true;
    }
}

bool samples_quantize(const char *prim, sample_size size, sample_list *list)
{
    if (strcmp(prim, "quantize") == 0)
        quantizes(list, size == SAMPLES_LARGE);
    else if (strcmp(prim, "quantize_scales") == 0)
        quantize_scales(list, size == SAMPLES_LARGE);
    else
        return false;
    return true;
}
