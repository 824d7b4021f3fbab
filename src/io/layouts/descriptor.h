/* descriptor.h - what `native` and `eformer` files say about an array: the
 * value "lowbit.NAME" of the file, JSON (docs/formats.md, "Files").
 *
 *     {"layout": "native", "format": "..", "dtype": "bf16", "shape": [4, 100],
 *      "stored": [4, 100], "meaning": 0,
 *      "parts": {"codes": {"groups": [1, 2]}, "absmax": {"groups": [1, 64]}}}
 *
 * A part is the tensor NAME.PART, or, with "array", an array by itself whose
 * tensors are NAME.PART.PART. Nothing in it is believed before it is held
 * against the tensors and against what the format could have made.
 */
#ifndef LB_DESCRIPTOR_H
#define LB_DESCRIPTOR_H

#include "io/layouts/entries.h"

typedef struct lb_described_part {
    char name[24];
    lb_part table;           /* g and own; a is not used */
    int n_groups;            /* of table.g */
    lb_described *array;     /* NULL: a tensor */
    const lb_tensor *tensor; /* found by the layout */
    lb_dtype elem;           /* for writing: of a tensor */
} lb_described_part;

struct lb_described {
    char layout[16], format[32];
    lb_dtype dtype;
    int meaning;
    lb_shape shape, stored;
    int n_parts;
    lb_described_part part[LB_MAX_PARTS];
};

/* The prefix of its key. */
#define LB_DESCRIPTION "lowbit."

/* Memory from f's arena; NULL and an error. Counts and ranks are checked, and
 * that stored has as many elements as shape. */
lb_described *lb_description_read(lb_ctx *cx, lb_file *f, const lb_meta *m);
/* As text, the same every time. */
void lb_description_put(lb_bytes *b, const lb_described *d);

/* The config with which lb_quantize would lay out d's parts as d has them, its
 * format being fmt; false if there is none. */
bool lb_description_config(const lb_format *fmt, const lb_described *d,
                           lb_quant_config *config);

#endif
