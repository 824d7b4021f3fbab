/* rank_files.h - a checkpoint as one file per rank of a mesh, and back.
 *
 * DIR/rank-00003-of-00008.safetensors holds the slices of rank 3 in their
 * original layouts, so that it can be loaded by itself. Its metadata describe
 * the split; those of the first rank also restore everything else:
 *
 *     lowbit_shard.mesh          dp=2,tp=4
 *     lowbit_shard.rank          3
 *     lowbit_shard.spec.NAME     P(None, tp), of each array that is split
 *     lowbit_shard.files         number of files of the checkpoint
 *     lowbit_shard.name.0        name of a file, if there is an index
 *     lowbit_shard.size.0        its size in bytes
 *     lowbit_shard.header.0      its header, unchanged
 *     lowbit_shard.index         the text of the index, if there is one
 *     lowbit_shard.tensor.NAME   in hex: a tensor that contains a shape
 */
#ifndef LB_RANK_FILES_H
#define LB_RANK_FILES_H

#include "io/arrays/mesh_arrays.h"

#define LB_SHARD_KEY "lowbit_shard."

/* Limits of a mesh and a checkpoint, for both directions. The values above must
 * also fit into the header of the first rank's file (LB_HEADER_MOST). */
enum { LB_SHARD_RANKS = 4096, LB_SHARD_FILES = 100000 };

bool lb_shard_ranks_fit(lb_ctx *cx, const lb_grid *grid);
/* Whether name is a safe file name for a checkpoint's directory: names are
 * untrusted. Hidden files belong to jobs. */
bool lb_shard_may_name(const char *name);

/* "rank-00003-of-00008.safetensors" */
typedef struct lb_rank_text {
    char s[64];
} lb_rank_text;
lb_rank_text lb_rank_name(int rank, int ranks);

/* The box of an array in its k-th tensor; whole: all of the tensor. False: it
 * shares bytes with other boxes. */
bool lb_group_place(const lb_group *g, int k, const lb_cut *box, lb_cut *to);

#endif
