/* descriptor.h - the JSON descriptor of an array in `native` and `eformer`
 * files, stored as metadata value "lowbit.NAME" (docs/formats.md, "Files").
 *
 *     {"layout": "native", "format": "..", "dtype": "bf16", "shape": [4, 100],
 *      "stored": [4, 100], "meaning": 0,
 *      "parts": {"codes": {"groups": [1, 2]}, "absmax": {"groups": [1, 64]}}}
 *
 * A part is the tensor NAME.PART or, with "array", an array whose tensors are
 * NAME.PART.PART. Descriptors are untrusted: they are checked against the
 * tensors and against the layouts that the format can produce.
 */
#ifndef LB_DESCRIPTOR_H
#define LB_DESCRIPTOR_H

#include "io/layouts/entries.h"

typedef struct lb_described_part {
    char name[24];
    lb_part table;           /* g and own are used, a is not */
    int n_groups;            /* number of table.g */
    lb_described *array;     /* NULL: a tensor */
    const lb_tensor *tensor; /* set by the layout that reads it */
    lb_dtype elem;           /* type of the tensor, for writing */
} lb_described_part;

struct lb_described {
    char layout[16], format[32];
    lb_dtype dtype;
    int meaning;
    lb_shape shape, stored;
    int n_parts;
    lb_described_part part[LB_MAX_PARTS];
};

/* Prefix of the metadata key. */
#define LB_DESCRIPTION "lowbit."

/* Parses a descriptor, in memory of f's arena; NULL and an error. Checks
 * counts, ranks, and that stored has as many elements as shape. */
lb_described *lb_description_read(lb_ctx *cx, lb_file *f, const lb_meta *m);
/* The same for text in memory, whose descriptor is in memory of the arena. path
 * and name are for messages. */
lb_described *lb_description_parse(lb_ctx *cx, lb_arena *arena,
                                   const char *path, const char *name,
                                   const void *text, size_t size);
/* As deterministic text. */
void lb_description_put(lb_bytes *b, const lb_described *d);

/* The config with which lb_quantize, with format fmt, would produce the layout
 * that d describes; false if there is none. */
bool lb_description_config(const lb_format *fmt, const lb_described *d,
                           lb_quant_config *config);

#endif
