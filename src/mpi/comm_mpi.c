/* comm_mpi.c - ranks as processes of an MPI program.
 *
 * MPI counts are int, so long messages are sent in pieces. MPI allocates its
 * own memory.
 *
 * MPI waits by spinning: if there are more ranks than cores, waiting ranks take
 * time from those they wait for. Before each long exchange ranks make a short
 * one to check for errors, so the short ones are where ranks wait. They are
 * started as nonblocking operations and polled with sleeps in between. For long
 * ones all ranks are then ready, and MPI's blocking calls are faster.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lowbit_mpi.h"

#ifndef LB_MPI_PIECE
#define LB_MPI_PIECE (1 << 30) /* maximum bytes per call */
#endif

enum { SHORT = 1 << 16 }; /* maximum bytes sent by a rank in a short exchange */

typedef struct mpi_comm {
    lb_comm comm; /* first member, to be cast back */
    MPI_Comm mpi;
} mpi_comm;

static MPI_Comm mpi_of(lb_comm *c)
{
    return ((mpi_comm *)(void *)c)->mpi;
}

/* Whether an MPI call succeeded; if not, stores MPI's message. */
static bool well(lb_comm *c, int code)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS) return true;
    MPI_Error_string(code, words, &length);
    snprintf(c->why, sizeof c->why, "MPI: %.200s", words);
    return false;
}

/* ---- waiting ------------------------------------------------------------- */

static void nap(int us)
{
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000L}, NULL);
}

/* Polls for a while, because completion may be imminent, then sleeps for
 * growing intervals. On a busy machine sleeping is better than sched_yield: a
 * sleeping thread runs as soon as it wakes, a yielding one after all others. */
static int wait_for(MPI_Request *request)
{
    enum { ASKS = 200, LEAST_US = 10, MOST_US = 500 };
    int done = 0, us = LEAST_US;
    for (int i = 0;; i++) {
        const int code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done || code != MPI_SUCCESS) return code;
        if (i < ASKS) continue;
        nap(us);
        us = us * 5 / 4 + 1 < MOST_US ? us * 5 / 4 + 1 : MOST_US;
    }
}

/* ---- collective operations ----------------------------------------------- */

static MPI_Datatype type_of(lb_dtype dtype)
{
    switch (dtype) {
    case LB_F32:
        return MPI_FLOAT;
    case LB_F64:
        return MPI_DOUBLE;
    case LB_I8:
        return MPI_INT8_T;
    case LB_I16:
        return MPI_INT16_T;
    case LB_I32:
        return MPI_INT32_T;
    case LB_I64:
        return MPI_INT64_T;
    case LB_U8:
        return MPI_UINT8_T;
    case LB_U16:
        return MPI_UINT16_T;
    case LB_U32:
        return MPI_UINT32_T;
    case LB_U64:
        return MPI_UINT64_T;
    default: /* never used */
        return MPI_DATATYPE_NULL;
    }
}

/* Wrapping sums for either sign: with AVX some sums of Open MPI 4.1
 * saturate. */
#define WRAPPING(NAME, TYPE)                                                   \
    static void NAME(void *from, void *to, int *n, MPI_Datatype *type)         \
    {                                                                          \
        const TYPE *a = from;                                                  \
        TYPE *b = to;                                                          \
        (void)type;                                                            \
        for (int i = 0; i < *n; i++)                                           \
            b[i] = (TYPE)(a[i] + b[i]);                                        \
    }
/* The parameter types are required by MPI_User_function. */
/* NOLINTBEGIN(readability-non-const-parameter) */
WRAPPING(sum_8, uint8_t)
WRAPPING(sum_16, uint16_t)
/* NOLINTEND(readability-non-const-parameter) */

/* The analyzer does not see that wait_for completes the request. */
/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */
static int reduce_piece(MPI_Comm mpi, MPI_Op how, lb_dtype dtype, int n,
                        void *at)
{
    MPI_Request met;
    MPI_Datatype type = type_of(dtype);
    if ((size_t)n * lb_dtype_size(dtype) > SHORT)
        return MPI_Allreduce(MPI_IN_PLACE, at, n, type, how, mpi);
    const int code = MPI_Iallreduce(MPI_IN_PLACE, at, n, type, how, mpi, &met);
    return code == MPI_SUCCESS ? wait_for(&met) : code;
}

static int gather_once(MPI_Comm mpi, int bytes, const void *mine, void *all)
{
    MPI_Request met;
    if (bytes > SHORT)
        return MPI_Allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, mpi);
    const int code =
        MPI_Iallgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, mpi, &met);
    return code == MPI_SUCCESS ? wait_for(&met) : code;
}

static int send_piece(MPI_Comm mpi, int from, int bytes, void *at)
{
    MPI_Request met;
    if (bytes > SHORT) return MPI_Bcast(at, bytes, MPI_BYTE, from, mpi);
    const int code = MPI_Ibcast(at, bytes, MPI_BYTE, from, mpi, &met);
    return code == MPI_SUCCESS ? wait_for(&met) : code;
}
/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

static bool reduce_pieces(lb_comm *c, MPI_Op how, lb_dtype dtype, int64_t count,
                          char *at)
{
    const int64_t size = (int64_t)lb_dtype_size(dtype);
    const int64_t most = LB_MPI_PIECE / size;
    for (; count > 0; count -= most, at += most * size) {
        const int n = (int)(count < most ? count : most);
        if (!well(c, reduce_piece(mpi_of(c), how, dtype, n, at))) return false;
    }
    return true;
}

static bool all_reduce(lb_comm *c, lb_comm_op op, lb_dtype dtype, int64_t count,
                       void *data)
{
    const size_t size = lb_dtype_size(dtype);
    MPI_Op own;
    if (op != LB_COMM_SUM)
        return reduce_pieces(c, op == LB_COMM_MAX ? MPI_MAX : MPI_MIN, dtype,
                             count, data);
    if (size > 2) return reduce_pieces(c, MPI_SUM, dtype, count, data);
    if (!well(c, MPI_Op_create(size == 1 ? sum_8 : sum_16, 1, &own)))
        return false;
    const bool ok = reduce_pieces(c, own, dtype, count, data);
    MPI_Op_free(&own);
    return ok;
}

/* Messages longer than a piece are broadcast by each rank in turn. A single
 * call would need a datatype of more than 2^31 bytes, with which MPICH 4.0.2
 * loses data. */
static bool all_gather(lb_comm *c, size_t bytes, const void *mine, void *all)
{
    if (bytes <= LB_MPI_PIECE)
        return well(c, gather_once(mpi_of(c), (int)bytes, mine, all));
    memcpy((char *)all + (size_t)c->rank * bytes, mine, bytes);
    for (int r = 0; r < c->size; r++)
        for (size_t at = 0; at < bytes; at += LB_MPI_PIECE) {
            const size_t n =
                bytes - at < LB_MPI_PIECE ? bytes - at : (size_t)LB_MPI_PIECE;
            char *to = (char *)all + (size_t)r * bytes + at;
            if (!well(c, send_piece(mpi_of(c), r, (int)n, to))) return false;
        }
    return true;
}

/* ---- groups -------------------------------------------------------------- */

static lb_comm *split(lb_comm *c, int color);

static void close_comm(lb_comm *c)
{
    if (!c) return;
    MPI_Comm_free(&((mpi_comm *)(void *)c)->mpi);
    MPI_Free_mem(c);
}

/* Takes ownership of mpi. If out of memory returns NULL and frees mpi. */
static lb_comm *comm_open(MPI_Comm mpi)
{
    mpi_comm *m;
    MPI_Comm_set_errhandler(mpi, MPI_ERRORS_RETURN);
    if (MPI_Alloc_mem(sizeof *m, MPI_INFO_NULL, &m) != MPI_SUCCESS) {
        MPI_Comm_free(&mpi);
        return NULL;
    }
    *m = (mpi_comm){
        .comm = {.struct_size = sizeof(lb_comm),
                 .engine = "mpi",
                 .all_reduce = all_reduce,
                 .all_gather = all_gather,
                 .split = split,
                 .close = close_comm},
        .mpi = mpi,
    };
    MPI_Comm_rank(mpi, &m->comm.rank);
    MPI_Comm_size(mpi, &m->comm.size);
    return &m->comm;
}

static lb_comm *split(lb_comm *c, int color)
{
    MPI_Comm part;
    if (!well(c, MPI_Comm_split(mpi_of(c), color, c->rank, &part))) return NULL;
    lb_comm *sub = comm_open(part);
    int32_t have = sub != NULL;
    if (all_reduce(c, LB_COMM_MIN, LB_I32, 1, &have) && have) return sub;
    if (!c->why[0]) snprintf(c->why, sizeof c->why, "out of memory");
    close_comm(sub);
    return NULL;
}

lb_comm *lb_mpi_comm(MPI_Comm comm)
{
    MPI_Comm own;
    if (MPI_Comm_dup(comm, &own) != MPI_SUCCESS) return NULL;
    return comm_open(own);
}

/* ---- running ------------------------------------------------------------- */

enum { PATIENCE_MS = 5000, NAP_MS = 10 };

/* Prints the rank, because MPI's own message is sometimes lost (Open MPI 4.1
 * fails to unpack it) or missing. */
static void end_all(MPI_Comm comm, int result)
{
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    fprintf(stderr, "lowbit: rank %d of %d aborts all ranks with status %d\n",
            rank, ranks, result);
    MPI_Abort(comm, result);
}

/* A final barrier without other traffic: on the main communicator it could
 * match an operation that others still wait for. A failed rank does not wait
 * forever, because others may be waiting for it elsewhere. */
static void end_together(MPI_Comm end, int result)
{
    MPI_Request met;
    int done = 0;
    if (MPI_Ibarrier(end, &met) != MPI_SUCCESS) return;
    for (int ms = 0; result && !done && ms < PATIENCE_MS; ms += NAP_MS) {
        MPI_Test(&met, &done, MPI_STATUS_IGNORE);
        if (!done) nap(NAP_MS * 1000);
    }
    if (result && !done) end_all(end, result);
    if (!done) wait_for(&met);
}

int lb_mpi_run(int *argc, char ***argv, int (*fn)(lb_comm *comm, void *user),
               void *user)
{
    int started = 0, level, result = -1;
    MPI_Initialized(&started);
    if (!started &&
        MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return -1;
    MPI_Comm end = MPI_COMM_NULL;
    lb_comm *c = lb_mpi_comm(MPI_COMM_WORLD);
    /* Others may have one, and would wait for this rank. */
    if (!c || MPI_Comm_dup(MPI_COMM_WORLD, &end) != MPI_SUCCESS)
        end_all(MPI_COMM_WORLD, 1);
    result = fn(c, user);
    end_together(end, result);
    MPI_Comm_free(&end);
    close_comm(c);
    if (!started) MPI_Finalize();
    return result;
}
