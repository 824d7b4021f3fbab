/* module_match.h - bits and group size of one module, from the settings of a
 * checkpoint that may differ by module. */
#ifndef LB_MODULE_MATCH_H
#define LB_MODULE_MATCH_H

#include "io/models/settings.h"

typedef struct lb_module_settings {
    int64_t bits, group_size; /* 0: not configured */
} lb_module_settings;

/* The module is the first n characters of name:
 *     compressed-tensors  the config group whose targets match
 *     MLX                 an entry with the module's name, else the top
 *     Gemma               module_quant_configs, else num_bits
 * False and an error. */
bool lb_module_settings_of(lb_ctx *cx, lb_file *f, const char *name, size_t n,
                           lb_module_settings *to);

#endif
