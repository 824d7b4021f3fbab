/* lowbit_mesh.h - arrays that are spread over a mesh of processes or threads.
 *
 * Programs are SPMD: every rank runs the same program on a context of its own.
 * A sharded array has its global shape everywhere; each rank holds a slice of
 * it. Operations of lowbit.h take such arrays as any others, and every rank
 * must call them in the same order. An array that is not sharded is taken to
 * be the same on all ranks.
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
 * An error on one rank becomes the error of all: before they exchange
 * anything, ranks agree on whether all of them are well. If one is not, each
 * has its status and its sentence, "rank 3 of 8: ...". So every rank goes on
 * to the end of its program, as after any error, and closes its mesh.
 */
#ifndef LOWBIT_MESH_H
#define LOWBIT_MESH_H

#include "lowbit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- communicators ------------------------------------------------------- */

/* The engine under a mesh: some ranks, and what they can do together. It comes
 * from lb_mesh_run (threads) or from a library of its own (liblowbit-mpi), and
 * may come from anybody: a struct that begins with this one, all of it filled.
 *
 * All ranks of a communicator call its functions in the same order with equal
 * sizes. One thread at a time. Counts and bytes may be beyond 2^31: engines
 * whose calls cannot take that cut them. False means that the communicator is
 * of no use any more, and a sentence in why. Nobody checks arguments here: that
 * is done above. */
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
    /* data, count elements, becomes what op makes of all ranks' data, with the
     * same bits on all of them. dtype: f32, f64 (which hold no NaN for MAX and
     * MIN) or any integer but bool, which wrap. */
    bool (*all_reduce)(lb_comm *, lb_comm_op op, lb_dtype dtype, int64_t count,
                       void *data);
    /* all: bytes of each rank, in the order of ranks, this one's included. */
    bool (*all_gather)(lb_comm *, size_t bytes, const void *mine, void *all);
    /* A communicator of those ranks that give the same color (>= 0), in the
     * order of their ranks here; NULL and a sentence in why if there is none
     * to be had. Called by all ranks. */
    lb_comm *(*split)(lb_comm *, int color);
    /* Ends one that split gave; its ranks need not do so at the same time. Not
     * to be called for one that lb_mesh_run gave. */
    void (*close)(lb_comm *);
    char why[LB_COMM_WHY];
};

/* ---- meshes -------------------------------------------------------------- */

enum { LB_MAX_MESH_AXES = 8, LB_AXIS_NAME = 32 };

/* The axes of a mesh: ranks are numbered row-major, the last axis fastest. */
typedef struct lb_grid {
    int n;
    struct {
        char name[LB_AXIS_NAME];
        int size;
    } axis[LB_MAX_MESH_AXES];
} lb_grid;

/* From "dp=2,tp=4". */
LB_API bool lb_grid_parse(lb_ctx *cx, const char *text, lb_grid *grid);
LB_API int lb_grid_size(const lb_grid *grid); /* ranks */

typedef struct lb_mesh lb_mesh;

typedef struct lb_mesh_options {
    size_t struct_size;
    bool deterministic; /* sums of floats over ranks are taken in the order of
                         * ranks, whatever the engine: more is sent */
} lb_mesh_options;

/* A mesh of all ranks of comm, whose number is the product of axes; comm is
 * used, not owned. From now on cx can take sharded arrays. options NULL: all
 * defaults. Called by all ranks. */
LB_API lb_mesh *lb_mesh_open(lb_ctx *cx, lb_comm *comm, const char *axes,
                             const lb_mesh_options *options);
/* Called by all ranks, and before the context is closed, also after an error:
 * it is the last place where ranks hear of one another's. False if one has
 * one. NULL is fine, if it is NULL because of an error in cx. */
LB_API bool lb_mesh_close(lb_mesh *mesh);
LB_API const lb_grid *lb_mesh_grid(const lb_mesh *mesh);
LB_API int lb_mesh_rank(const lb_mesh *mesh);
LB_API int lb_mesh_size(const lb_mesh *mesh);
/* Whether no rank has an error. Every rank has that of the first that has one,
 * if not. Called by all ranks. */
LB_API bool lb_mesh_agree(lb_mesh *mesh);

/* What this rank has taken part in since the mesh was opened; agreeing is not
 * counted. Bytes are those of the data: what is reduced, what comes in from
 * other ranks. */
typedef struct lb_traffic {
    int64_t reduces, reduce_bytes;
    int64_t gathers, gather_bytes;
} lb_traffic;
LB_API lb_traffic lb_mesh_traffic(const lb_mesh *mesh);

/* Runs fn on n threads, each a rank; returns when all have ended: 0, or the
 * first result, by rank, that is not 0; -1 if they could not be started. A
 * rank that ends while others wait for it is an error to them. Under MPI
 * main() is that function. */
LB_API int lb_mesh_run(int n, int (*fn)(lb_comm *comm, void *user), void *user);

/* ---- specs ----------------------------------------------------------------
 */

/* Which mesh axes cut which axis of an array: JAX's PartitionSpec. In text
 *
 *     P(tp, None)        axis 0 is cut in as many pieces as tp has ranks
 *     P((dp, tp), None)  .. as dp times tp has, dp being the major one
 *     P()                nothing is cut: all ranks have all of it
 *
 * Axes past the entries are not cut. A mesh axis may appear once, must exist,
 * and the product of an entry must divide the axis. Names may be quoted. Also
 * "None" is P(), "tp" is P(tp), and (dp, None) or [dp, None] is P(dp, None),
 * as with_mesh_and_axis takes them. */
typedef struct lb_spec {
    int n; /* entries */
    struct {
        int n; /* names of the entry; 0: None */
        int axis[LB_MAX_MESH_AXES];
    } entry[LB_MAX_RANK];
} lb_spec;

/* What a relaxed reading has changed: an entry of a spec that became None. */
typedef struct lb_spec_change {
    int entry;
    char why[160];
} lb_spec_change;
enum { LB_MAX_CHANGES = 16 };
typedef struct lb_spec_report {
    bool strict_names; /* set before: unknown axes are an error all the same,
                        * as in a NamedSharding */
    int n;             /* at most LB_MAX_CHANGES are listed */
    lb_spec_change change[LB_MAX_CHANGES];
} lb_spec_report;

/* The spec for an array of that shape on that grid, or an error with the
 * numbers. With a report it is read as eformer does: entries that name an
 * unknown axis or do not divide become None, those past the rank are left out,
 * and each is reported. */
LB_API bool lb_spec_parse(lb_ctx *cx, const lb_grid *grid, lb_shape shape,
                          const char *text, lb_spec_report *report,
                          lb_spec *spec);
/* As P(...), in buf (size bytes); returns buf. */
LB_API const char *lb_spec_text(const lb_grid *grid, const lb_spec *spec,
                                char *buf, size_t size);
/* The slice that a rank holds: start and count along each axis. */
LB_API void lb_spec_slice(const lb_grid *grid, const lb_spec *spec,
                          const lb_shape *shape, int rank, int64_t *start,
                          int64_t *count);
/* The how many-th a rank is of those that hold the same slice; 0 is the one to
 * write it, if one is to. */
LB_API int lb_spec_replica(const lb_grid *grid, const lb_spec *spec,
                           const lb_shape *shape, int rank);
/* The same slices on the same ranks. */
LB_API bool lb_spec_equal(const lb_grid *grid, const lb_spec *a,
                          const lb_spec *b);

/* ---- sharded arrays -------------------------------------------------------
 */

/* a, cut as spec says, each slice compact: every rank gives all of a, the same
 * on all. A packed array stays packed: its codes and scales are cut together,
 * never inside a block, and what a whole axis shares every rank has. If a is
 * sharded already, this is lb_reshard. */
LB_API lb_array *lb_shard(lb_ctx *cx, lb_mesh *mesh, lb_array *a,
                          const char *spec);
/* The same with the spec read as lb_spec_parse does with a report; entries that
 * would cut inside a block become None, too. */
LB_API lb_array *lb_shard_relaxed(lb_ctx *cx, lb_mesh *mesh, lb_array *a,
                                  const char *spec, lb_spec_report *report);
/* A sharded array from this rank's slice of it, nothing exchanged. */
LB_API lb_array *lb_from_slice(lb_ctx *cx, lb_mesh *mesh, lb_shape shape,
                               const char *spec, lb_array *slice);
/* A sharded array, cut otherwise, on the mesh it is on. */
LB_API lb_array *lb_reshard(lb_ctx *cx, lb_array *a, const char *spec);
/* All of a, on every rank, as an array that is not sharded; in its format,
 * where slices join to it. a itself if it is not sharded. */
LB_API lb_array *lb_unshard(lb_ctx *cx, lb_array *a);
/* This rank's slice of a, not sharded; a itself if it is not. */
LB_API lb_array *lb_local(lb_ctx *cx, lb_array *a);
LB_API bool lb_is_sharded(const lb_array *a);
/* Its mesh; NULL if it has none. */
LB_API lb_mesh *lb_mesh_of(const lb_array *a);
/* How it is cut; P() for what is not sharded. */
LB_API lb_spec lb_sharding_of(const lb_array *a);

#ifdef __cplusplus
}
#endif
#endif
