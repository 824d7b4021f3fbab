/* multi_file.h - models split into several safetensors files, as on Hugging
 * Face.
 *
 * Each shard is an ordinary file with its own lb_writer. The index, written
 * last, maps tensors to files:
 *
 *     lb_shards_plan(cx, tensor, size, n, limit, shard, &shards);
 *     for each k < shards: write those with shard[i] == k to lb_shard_name
 *     lb_shards_write_index(cx, "DIR/model.safetensors.index.json", ..);
 */
#ifndef LB_MULTI_FILE_H
#define LB_MULTI_FILE_H

#include "io/containers/container.h"

/* Assigns tensors to shards in the given order: greedily, at most limit bytes
 * per shard, except for single tensors that are larger. Returns the number of
 * shards. */
int64_t lb_shards_plan(const uint64_t *size, int64_t n, uint64_t limit,
                       int64_t *shard);
/* "model-00001-of-00003.safetensors" for shard 0 of 3. */
typedef struct lb_shard_text {
    char s[64];
} lb_shard_text;
lb_shard_text lb_shard_name(int64_t shard, int64_t shards);
/* total: size of all tensors in bytes. */
bool lb_shards_write_index(lb_ctx *cx, const char *path,
                           const lb_tensor *tensor, const int64_t *shard,
                           int64_t n, int64_t shards, uint64_t total,
                           const lb_write_options *options);

#endif
