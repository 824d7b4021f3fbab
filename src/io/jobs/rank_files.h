/* rank_files.h - a checkpoint as a file for each rank of a mesh, and back.
 *
 * DIR/rank-00003-of-00008.safetensors holds the slices of rank 3, in the
 * layouts that they came in, so that it can be loaded by itself. Its values say
 * how it was cut, and those of the first one all else that the checkpoint was:
 *
 *     lowbit_shard.mesh          dp=2,tp=4
 *     lowbit_shard.rank          3
 *     lowbit_shard.spec.NAME     P(None, tp), of each array that is cut
 *     lowbit_shard.files         of the checkpoint, how many; of each
 *     lowbit_shard.name.0        its name, if there is an index
 *     lowbit_shard.size.0        its bytes ..
 *     lowbit_shard.header.0      and its header, as it was
 *     lowbit_shard.index         the text of its index, if it has one
 *     lowbit_shard.tensor.NAME   in hex: one that says the shape of its array
 */
#ifndef LB_RANK_FILES_H
#define LB_RANK_FILES_H

#include "io/arrays/mesh_arrays.h"

#define LB_SHARD_KEY "lowbit_shard."

/* Of a mesh and of a checkpoint: what both ways hold to. The values above must
 * fit into the header of the first rank's file, too (LB_HEADER_MOST). */
enum { LB_SHARD_RANKS = 4096, LB_SHARD_FILES = 100000 };

bool lb_shard_ranks_fit(lb_ctx *cx, const lb_grid *grid);
/* Whether a file of a checkpoint may have that name in its directory, beside
 * the index: names are data. Hidden ones are those of jobs. */
bool lb_shard_may_name(const char *name);

/* "rank-00003-of-00008.safetensors" */
typedef struct lb_rank_text {
    char s[64];
} lb_rank_text;
lb_rank_text lb_rank_name(int rank, int ranks);

/* Where the box of an array is in its k-th tensor; whole: all of it. False:
 * in no bytes of its own. */
bool lb_group_place(const lb_group *g, int k, const lb_cut *box, lb_cut *to);

#endif
