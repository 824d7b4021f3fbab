/* lowbit_mesh.h - arrays sharded over a mesh of processes or threads.
 *
 * Programs are SPMD: every rank runs the same program with its own context. A
 * sharded array has its global shape on every rank; each rank holds a slice of
 * it. The operations of lowbit.h accept such arrays, and every rank must call
 * them in the same order. An array that is not sharded must be the same on all
 * ranks.
 *
 *     int main_of_rank(lb_comm *comm, void *user)
 *     {
 *         lb_ctx *cx = lb_open(NULL);
 *         lb_mesh *mesh = lb_mesh_open(cx, comm, "dp=2,tp=4", NULL);
 *         lb_array *w = lb_shard(cx, mesh, all_of_w, "P(None, tp)");
 *         ...
 *         lb_mesh_close(mesh);
 *         lb_close(cx);
 *         return 0;
 *     }
 *     lb_mesh_run(8, main_of_rank, NULL);
 *
 * An error on one rank becomes an error on all: before ranks exchange data they
 * check that none of them has failed. If one has, all get its status and its
 * message, "rank 3 of 8: ...". So every rank runs to the end of its program, as
 * after any error, and closes its mesh.
 */
#ifndef LOWBIT_MESH_H
#define LOWBIT_MESH_H

#include "lowbit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- communicators ------------------------------------------------------- */

/* The transport of a mesh: a group of ranks and their collective operations.
 * Provided by lb_mesh_run (threads), by liblowbit-mpi, or by the user: a struct
 * that begins with this one, with all members set.
 *
 * All ranks of a communicator call its functions in the same order with equal
 * sizes, from one thread at a time. Counts and sizes may exceed 2^31; engines
 * with smaller limits must split them. False means that the communicator cannot
 * be used any more; why then holds a message. Arguments are checked by the
 * caller, not by the engine. */
typedef enum lb_comm_op {
    LB_COMM_SUM = 0,
    LB_COMM_MAX = 1,
    LB_COMM_MIN = 2
} lb_comm_op;

enum { LB_COMM_WHY = 256 };

typedef struct lb_comm lb_comm;
struct lb_comm {
    size_t struct_size; /* sizeof(lb_comm) */
    const char *engine; /* "threads", "mpi" */
    int rank, size;
    /* Replaces data (count elements) by the reduction op over all ranks, with
     * the same bits on all of them. dtype: f32, f64 (without NaN for MAX and
     * MIN) or any integer except bool; integers wrap. */
    bool (*all_reduce)(lb_comm *, lb_comm_op op, lb_dtype dtype, int64_t count,
                       void *data);
    /* all receives `bytes` bytes from each rank, in rank order, including this
     * one. */
    bool (*all_gather)(lb_comm *, size_t bytes, const void *mine, void *all);
    /* A communicator of the ranks that pass the same color (>= 0), in the order
     * of their ranks here. NULL and a message in why on failure. Called by all
     * ranks. */
    lb_comm *(*split)(lb_comm *, int color);
    /* Closes a communicator created by split; its ranks need not do so at the
     * same time. Not for one passed by lb_mesh_run. */
    void (*close)(lb_comm *);
    char why[LB_COMM_WHY];
};

/* ---- meshes -------------------------------------------------------------- */

enum { LB_MAX_MESH_AXES = 8, LB_AXIS_NAME = 32 };

/* The axes of a mesh. Ranks are numbered row-major, the last axis fastest. */
typedef struct lb_grid {
    int n;
    struct {
        char name[LB_AXIS_NAME];
        int size;
    } axis[LB_MAX_MESH_AXES];
} lb_grid;

/* Parses "dp=2,tp=4". */
LB_API bool lb_grid_parse(lb_ctx *cx, const char *text, lb_grid *grid);
LB_API int lb_grid_size(const lb_grid *grid); /* number of ranks */

typedef struct lb_mesh lb_mesh;

typedef struct lb_mesh_options {
    size_t struct_size;
    bool deterministic; /* sum floats over ranks in rank order, for every
                         * engine; sends more data */
} lb_mesh_options;

/* A mesh of all ranks of comm; their number must be the product of the axis
 * sizes. comm is borrowed. From now on cx accepts sharded arrays. options NULL:
 * all defaults. Called by all ranks. */
LB_API lb_mesh *lb_mesh_open(lb_ctx *cx, lb_comm *comm, const char *axes,
                             const lb_mesh_options *options);
/* Called by all ranks, before the context is closed, even after an error: it is
 * the last point at which ranks learn about each other's errors. False if any
 * rank has one. NULL is allowed if lb_mesh_open failed because of an error in
 * cx. */
LB_API bool lb_mesh_close(lb_mesh *mesh);
LB_API const lb_grid *lb_mesh_grid(const lb_mesh *mesh);
LB_API int lb_mesh_rank(const lb_mesh *mesh);
LB_API int lb_mesh_size(const lb_mesh *mesh);
/* Whether no rank has an error. If one has, every rank gets the error of the
 * first such rank. Called by all ranks. */
LB_API bool lb_mesh_agree(lb_mesh *mesh);

/* Communication of this rank since the mesh was opened, without error checks.
 * Bytes count payload: data reduced, and data received from other ranks. */
typedef struct lb_traffic {
    int64_t reduces, reduce_bytes;
    int64_t gathers, gather_bytes;
} lb_traffic;
LB_API lb_traffic lb_mesh_traffic(const lb_mesh *mesh);

/* Runs fn on n threads, each a rank, and returns when all have returned: 0, or
 * the first nonzero result in rank order, or -1 if the threads could not be
 * started. If a rank returns while others wait for it, they get an error. Under
 * MPI, main() takes the place of fn. */
LB_API int lb_mesh_run(int n, int (*fn)(lb_comm *comm, void *user), void *user);

/* ---- specs --------------------------------------------------------------- */

/* How mesh axes partition the axes of an array: JAX's PartitionSpec. As text:
 *
 *     P(tp, None)        axis 0 is cut into as many pieces as tp has ranks
 *     P((dp, tp), None)  ... as dp times tp has, dp being the major one
 *     P()                not cut: replicated on all ranks
 *
 * Axes without an entry are not cut. A mesh axis must exist and may appear
 * once, and the product of an entry must divide the axis. Names may be quoted.
 * Also accepted, as by with_mesh_and_axis: "None" for P(), "tp" for P(tp), and
 * (dp, None) or [dp, None] for P(dp, None). */
typedef struct lb_spec {
    int n; /* entries */
    struct {
        int n; /* number of names in the entry; 0: None */
        int axis[LB_MAX_MESH_AXES];
    } entry[LB_MAX_RANK];
} lb_spec;

/* A change made by relaxed parsing: an entry of a spec that became None. */
typedef struct lb_spec_change {
    int entry;
    char why[160];
} lb_spec_change;
enum { LB_MAX_CHANGES = 16 };
typedef struct lb_spec_report {
    bool strict_names; /* input: unknown axes are an error even when relaxed, as
                        * in a NamedSharding */
    int n;             /* at most LB_MAX_CHANGES are listed */
    lb_spec_change change[LB_MAX_CHANGES];
} lb_spec_report;

/* Parses a spec for an array of that shape on that grid; on error the message
 * contains the values involved. With a report it is parsed as eformer does:
 * entries that name an unknown axis or do not divide become None, entries
 * beyond the rank are dropped, and each change is reported. */
LB_API bool lb_spec_parse(lb_ctx *cx, const lb_grid *grid, lb_shape shape,
                          const char *text, lb_spec_report *report,
                          lb_spec *spec);
/* Formats a spec as P(...) into buf (size bytes); returns buf. */
LB_API const char *lb_spec_text(const lb_grid *grid, const lb_spec *spec,
                                char *buf, size_t size);
/* The slice held by a rank: start and count along each axis. */
LB_API void lb_spec_slice(const lb_grid *grid, const lb_spec *spec,
                          const lb_shape *shape, int rank, int64_t *start,
                          int64_t *count);
/* The replica index of a rank among the ranks that hold the same slice. Replica
 * 0 writes the slice to files. */
LB_API int lb_spec_replica(const lb_grid *grid, const lb_spec *spec,
                           const lb_shape *shape, int rank);
/* Whether the same slices are on the same ranks. */
LB_API bool lb_spec_equal(const lb_grid *grid, const lb_spec *a,
                          const lb_spec *b);

/* ---- sharded arrays ------------------------------------------------------ */

/* Shards a as specified; each slice is compact. Every rank must pass all of a.
 * A packed array stays packed: its codes and scales are cut together, never
 * inside a block, and parts shared along a cut axis are replicated. If a is
 * already sharded, this is lb_reshard. */
LB_API lb_array *lb_shard(lb_ctx *cx, lb_mesh *mesh, lb_array *a,
                          const char *spec);
/* The same with the spec parsed as lb_spec_parse does with a report; entries
 * that would cut inside a block also become None. */
LB_API lb_array *lb_shard_relaxed(lb_ctx *cx, lb_mesh *mesh, lb_array *a,
                                  const char *spec, lb_spec_report *report);
/* A sharded array from this rank's slice of it, without communication. */
LB_API lb_array *lb_from_slice(lb_ctx *cx, lb_mesh *mesh, lb_shape shape,
                               const char *spec, lb_array *slice);
/* A sharded array with another sharding on the same mesh. */
LB_API lb_array *lb_reshard(lb_ctx *cx, lb_array *a, const char *spec);
/* Gathers a on every rank as an array that is not sharded, in its format if the
 * slices can be joined. Returns a itself if it is not sharded. */
LB_API lb_array *lb_unshard(lb_ctx *cx, lb_array *a);
/* This rank's slice, as an array that is not sharded; a itself if a is not
 * sharded. */
LB_API lb_array *lb_local(lb_ctx *cx, lb_array *a);
LB_API bool lb_is_sharded(const lb_array *a);
/* The mesh of a sharded array; otherwise NULL. */
LB_API lb_mesh *lb_mesh_of(const lb_array *a);
/* The spec of a sharded array; otherwise P(). */
LB_API lb_spec lb_sharding_of(const lb_array *a);

#ifdef __cplusplus
}
#endif
#endif
