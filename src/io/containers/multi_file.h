/* multi_file.h - a model in several safetensors files, as Hugging Face splits
 * it.
 *
 * Each shard is an ordinary file, written by a lb_writer of its own; the index,
 * written last, says which tensor is where:
 *
 *     lb_shards_plan(cx, tensor, size, n, limit, shard, &shards);
 *     for each k < shards: write those with shard[i] == k to lb_shard_name
 *     lb_shards_write_index(cx, "DIR/model.safetensors.index.json", ..);
 */
#ifndef LB_MULTI_FILE_H
#define LB_MULTI_FILE_H

#include "io/containers/container.h"

/* Shard of each tensor, in the order given: greedy, never more than limit bytes
 * in one, but for a tensor that is larger by itself. Returns how many. */
int64_t lb_shards_plan(const uint64_t *size, int64_t n, uint64_t limit,
                       int64_t *shard);
/* "model-00001-of-00003.safetensors" for shard 0 of 3. */
typedef struct lb_shard_text {
    char s[64];
} lb_shard_text;
lb_shard_text lb_shard_name(int64_t shard, int64_t shards);
/* total: bytes of all tensors. */
bool lb_shards_write_index(lb_ctx *cx, const char *path,
                           const lb_tensor *tensor, const int64_t *shard,
                           int64_t n, int64_t shards, uint64_t total,
                           const lb_write_options *options);

#endif
