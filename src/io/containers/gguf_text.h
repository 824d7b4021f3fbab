/* gguf_text.h - GGUF metadata in containers that store text metadata only.
 *
 * safetensors and npz store texts by name. A string of a GGUF file becomes a
 * text with the same name; a value of any other type becomes JSON in
 * "gguf.KEY". The text "gguf" records the order of keys and tensors, which
 * other containers do not keep:
 *
 *     general.name              TinyLlama
 *     gguf.llama.block_count    {"type":"u32","value":22}
 *     gguf.tokenizer.ggml.scores
 *                               {"type":"array","of":"f32","value":[0,-1.5]}
 *     gguf                      {"version":1,"keys":["general.name",...],
 *                                "tensors":["output.weight",...]}
 *
 * Types are u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool string array. A nested
 * array is {"of":...,"value":[...]}. What JSON cannot express is stored as
 * {"bytes":"HEX"}, the value's bytes in the file: strings that are not UTF-8,
 * floats that are not finite, bools other than 0 and 1. Strings whose key would
 * be ambiguous ("gguf", "gguf.*", "lowbit*") are JSON as well.
 *
 * Converting back restores every value bit for bit, and both orders. Keys that
 * were added in between follow as strings.
 */
#ifndef LB_GGUF_TEXT_H
#define LB_GGUF_TEXT_H

#include "io/containers/container.h"

/* Maximum nesting of arrays. ggml rejects any nesting. */
enum { LB_GGUF_NESTING = 8 };

#define LB_GGUF_ORDER  "gguf"
#define LB_GGUF_PREFIX "gguf."

/* Names of types in JSON, and sizes; 0: a string or an array. */
typedef struct lb_gguf_type {
    const char *name;
    uint8_t size;
    bool is_signed;
} lb_gguf_type;
extern const lb_gguf_type lb_gguf_types[LB_N_META];

/* A name and its position in a list, sorted by name. */
typedef struct lb_listed_name {
    const char *name;
    int64_t at;
} lb_listed_name;

typedef struct lb_gguf_meta {
    lb_meta *meta; /* in the order of the GGUF file */
    int64_t n;
    lb_listed_name *tensor; /* of that file; NULL: not from a GGUF file */
    int64_t n_tensors;
} lb_gguf_meta;

/* Converts values of a GGUF file to texts. False and an error. */
bool lb_gguf_to_texts(lb_ctx *cx, lb_arena *arena, const lb_reader *gguf,
                      lb_meta **texts, int64_t *n);
/* Converts texts of another container to values for a GGUF file. Leaves out
 * descriptors of the native layout. */
bool lb_gguf_from_texts(lb_ctx *cx, lb_arena *arena, const lb_reader *r,
                        lb_gguf_meta *to);
/* The position of a name in a list; INT64_MAX: not listed. */
int64_t lb_listed_at(const lb_listed_name *list, int64_t n, const char *name);

#endif
