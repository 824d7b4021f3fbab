/* gguf_text.h - GGUF metadata in containers whose metadata are texts.
 *
 * safetensors and npz store texts by name. A string of a GGUF file becomes the
 * text of the same name; a value of any other type becomes JSON under
 * "gguf.KEY"; and "gguf" keeps the order of keys and tensors, which the other
 * containers change:
 *
 *     general.name              TinyLlama
 *     gguf.llama.block_count    {"type":"u32","value":22}
 *     gguf.tokenizer.ggml.scores
 *                               {"type":"array","of":"f32","value":[0,-1.5]}
 *     gguf                      {"version":1,"keys":["general.name",...],
 *                                "tensors":["output.weight",...]}
 *
 * Types are u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool string array. An array
 * inside an array is {"of":...,"value":[...]}. What JSON cannot express is
 * {"bytes":"HEX"}, the value's bytes in the file: strings that are not UTF-8,
 * floats that are not finite, bools other than 0 and 1. Strings whose key would
 * be misread ("gguf", "gguf.*", "lowbit*") are JSON, too.
 *
 * The way back restores every value bit for bit and both orders. Keys that were
 * added meanwhile follow as strings.
 */
#ifndef LB_GGUF_TEXT_H
#define LB_GGUF_TEXT_H

#include "io/containers/container.h"

/* Nesting of arrays that is read and written. ggml rejects any. */
enum { LB_GGUF_NESTING = 8 };

#define LB_GGUF_ORDER  "gguf"
#define LB_GGUF_PREFIX "gguf."

/* Names of types in JSON, and bytes of a value; 0: a string or an array. */
typedef struct lb_gguf_type {
    const char *name;
    uint8_t size;
    bool is_signed;
} lb_gguf_type;
extern const lb_gguf_type lb_gguf_types[LB_N_META];

/* A name and its place in a list, sorted by name. */
typedef struct lb_listed_name {
    const char *name;
    int64_t at;
} lb_listed_name;

typedef struct lb_gguf_meta {
    lb_meta *meta; /* in the order of the GGUF file */
    int64_t n;
    lb_listed_name *tensor; /* of that file; NULL: the source was none */
    int64_t n_tensors;
} lb_gguf_meta;

/* Values of a GGUF file as texts. False and an error. */
bool lb_gguf_to_texts(lb_ctx *cx, lb_arena *arena, const lb_reader *gguf,
                      lb_meta **texts, int64_t *n);
/* Texts of another container as values for a GGUF file. Descriptors of the
 * native layout are left out. */
bool lb_gguf_from_texts(lb_ctx *cx, lb_arena *arena, const lb_reader *r,
                        lb_gguf_meta *to);
/* The place of a name in a list; INT64_MAX: it is not listed. */
int64_t lb_listed_at(const lb_listed_name *list, int64_t n, const char *name);

#endif
