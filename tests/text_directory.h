/* text_directory.h - a model directory written as text: a change of one
 * digit gives other shapes in an intact file.
 *
 *     quantize_config.json           optional; else the text is config.json
 *     {"bits": 4}
 *     --
 *     a.qweight I32 16 8             name, type, dimensions
 *     a.scales F16 1 8 = 15360       and values: integers, repeated
 *     --
 *     any bytes                      values of the other tensors, repeated
 */
#ifndef LB_TEXT_DIRECTORY_H
#define LB_TEXT_DIRECTORY_H

#include "io/util/arena.h"

enum { TEXT_DATA_MOST = 1 << 18 };

typedef struct text_directory {
    const char *config_name;
    const uint8_t *config;
    size_t n_config;
    lb_bytes weights; /* a safetensors file; to be freed */
} text_directory;

/* False if the text is not of that form, or has more than TEXT_DATA_MOST bytes
 * of tensors. */
bool text_directory_of(lb_heap *heap, const uint8_t *text, size_t n,
                       text_directory *to);

#endif
