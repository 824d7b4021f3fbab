/* choose.c - which arrays of a model are worth quantizing, by what is known
 * without reading them. */
#include <string.h>

#include "lowbit_io.h"

/* Parts of names that mark what should keep its precision: small, and much is
 * lost with it. */
static const struct {
    const char *word, *why;
} kept[] = {
    {"norm", "a norm"},
    {"embed", "an embedding"},
    {"wte.", "an embedding"},
    {"wpe.", "an embedding"},
    {"lm_head", "the output head"},
    {"output.weight", "the output head"},
};

static bool is_float(lb_dtype d)
{
    return d == LB_F32 || d == LB_F16 || d == LB_BF16 || d == LB_F64;
}

const char *lb_choose_weights(void *user, const lb_entry *e,
                              lb_quant_config *config)
{
    enum { TINY = 1024 };
    double n = 1; /* no shape overflows it */
    (void)user;
    (void)config;
    if (!e->format) return "of a type that is not known here";
    if (strcmp(e->format, "dense") != 0) return "quantized already";
    if (!is_float(e->dtype)) return "not floats";
    if (e->rank < 2) return "a vector";
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strstr(e->name, kept[i].word)) return kept[i].why;
    for (int k = 0; k < e->rank; k++)
        n *= (double)e->dim[k];
    return n < TINY ? "tiny" : NULL;
}
