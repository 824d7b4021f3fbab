/* selection.h - which arrays are quantized, and how, by their names. */
#ifndef LB_SELECTION_H
#define LB_SELECTION_H

#include "io/util/infile.h"
#include "lowbit_io.h"

/* A recipe's text; see lb_selection_recipe. */
bool lb_selection_read(lb_ctx *cx, lb_selection *s, lb_infile *f);
/* An error if a match was aborted. For each pattern that matched no array, a
 * warning of the job; an error if the job has no warn callback or is strict.
 * arrays, first: the number of arrays and the name of one, for the message. */
bool lb_selection_check(lb_ctx *cx, const lb_quantize_options *o,
                        int64_t arrays, const char *first);
/* Whether an inclusion or an override matches a name. */
bool lb_selection_asks(lb_selection *s, const char *name);

/* type_text.c: parses "type[:key=value,...]", n characters, as changes to a
 * config. False: invalid, and *why is the reason if it looks like a type,
 * otherwise empty. */
typedef struct lb_rule_text {
    const lb_format *format; /* NULL: the array is kept */
    lb_quant_config config;  /* values given in the text */
    unsigned said;           /* bit k: the k-th key was given */
} lb_rule_text;
typedef struct lb_rule_error {
    char s[256];
} lb_rule_error;
bool lb_rule_parse(const lb_ctx *cx, const char *text, size_t n,
                   lb_rule_text *rule, lb_rule_error *why);
/* The common config with these changes applied. */
void lb_rule_apply(const lb_rule_text *rule, lb_quant_config *config);

#endif
