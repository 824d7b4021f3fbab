/* settings.h - how a checkpoint was quantized: the objects in config.json and
 * the like, flattened.
 *
 *     {"bits": 4, "meta": {"by": ["x"]}}   ->   bits = 4, meta|by|0 = "x"
 */
#ifndef LB_SETTINGS_H
#define LB_SETTINGS_H

#include "io/layouts/entries.h"

typedef struct lb_setting {
    const char *path; /* keys and indices, separated by | */
    const char *text; /* of a string; "true" or "false"; else "" */
    double number;    /* of a number; else 0 */
} lb_setting;

struct lb_settings {
    const lb_setting *item; /* in file order */
    int64_t n;
};

/* Those of the metadata of f, or of its directory, in its arena: of config.json
 * (quantization_config, compression_config or quantization, at the top or in a
 * model inside the model), else of quantize_config.json or quant_config.json.
 * NULL and an error; none: n is 0. */
const lb_settings *lb_settings_of(lb_ctx *cx, lb_file *f);

/* The first with that path; NULL if there is none. */
const lb_setting *lb_setting_named(const lb_settings *s, const char *path);
/* Its text, or "". */
const char *lb_setting_text(const lb_settings *s, const char *path);
/* Its number, if that is an integer from 1 to most; else 0. */
int64_t lb_setting_count(const lb_settings *s, const char *path, int64_t most);

#endif
