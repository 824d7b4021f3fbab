/* meta_texts.h - text metadata as a JSON object.
 *
 *     {"format":"pt","general.name":"TinyLlama"}
 *
 * safetensors stores it in its header, as "__metadata__"; npz files written by
 * lowbit in a member, LB_NPZ_METADATA.
 */
#ifndef LB_META_TEXTS_H
#define LB_META_TEXTS_H

#include "io/util/json_text.h"

/* Reads an object of strings, in memory of the arena. */
bool lb_meta_texts_read(lb_json *j, lb_arena *arena, lb_meta **meta,
                        int64_t *n);
/* Writes one, sorted by key. Fails if a value is not UTF-8 text; kind: name of
 * the container, for that message. */
bool lb_meta_texts_put(lb_ctx *cx, lb_arena *arena, lb_bytes *b,
                       const lb_meta *meta, int64_t n, const char *kind);

#endif
