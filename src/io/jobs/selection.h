/* selection.h - which arrays are quantized, and how, by their names. */
#ifndef LB_SELECTION_H
#define LB_SELECTION_H

#include "io/util/infile.h"
#include "lowbit_io.h"

/* A recipe's text, as lb_selection_recipe takes it from a file. */
bool lb_selection_read(lb_ctx *cx, lb_selection *s, lb_infile *f);
/* An error if a pattern could not be matched; a warning of the job if it
 * matched no array, or an error if the job has no warn or is strict. arrays,
 * first: their number and the name of one, for the message. */
bool lb_selection_check(lb_ctx *cx, const lb_quantize_options *o,
                        int64_t arrays, const char *first);
/* Whether an inclusion or an override matches a name. */
bool lb_selection_asks(lb_selection *s, const char *name);

/* type_text.c: "type[:key=value,..]" at text, n characters, as changes to a
 * config; false: it is none, and *why says what is wrong with it, if it looks
 * like one. */
typedef struct lb_rule_text {
    const lb_format *format; /* NULL: the array stays as it is */
    lb_quant_config config;  /* of what is said */
    unsigned said;           /* bit k: the k-th key was */
} lb_rule_text;
bool lb_rule_parse(const lb_ctx *cx, const char *text, size_t n,
                   lb_rule_text *rule, const char **why);
/* What it makes of the config that holds for all. */
void lb_rule_apply(const lb_rule_text *rule, lb_quant_config *config);

#endif
