/* mpi_long.c - two ranks exchange more than 2^31 elements and bytes at once, in
 * chunks of the library's default size. Run by mpi.sh; needs 10 GB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lowbit_mpi.h"

/* A period that divides no chunk size, so that misplaced data is detected. */
enum { PAGE = 4096, PERIOD = 15671 * PAGE };
static const size_t LONG = (1ULL << 31) + 3 * PAGE;

static unsigned char number(int rank, size_t i)
{
    return (unsigned char)((i * 2654435761u >> 13) + (unsigned)rank * 37);
}

/* The first element that differs from want; n if none. */
static size_t first_wrong(const unsigned char *at, size_t n,
                          const unsigned char *want)
{
    for (size_t i = 0; i < n; i += PERIOD) {
        const size_t some = n - i < PERIOD ? n - i : PERIOD;
        if (!memcmp(at + i, want, some)) continue;
        while (at[i] == want[i % PERIOD])
            i++;
        return i;
    }
    return n;
}

static bool is_right(const char *what, const unsigned char *at,
                     const unsigned char *want)
{
    const size_t i = first_wrong(at, LONG, want);
    if (i == LONG) return true;
    fprintf(stderr, "%s: element %zu is %d, not %d\n", what, i, at[i],
            want[i % PERIOD]);
    return false;
}

/* Sums of bytes, and the maximum of the same data as 32-bit integers. */
static bool reduces(lb_comm *c, unsigned char *want)
{
    unsigned char *data = malloc(LONG);
    if (!data) return false;
    for (size_t i = 0; i < LONG; i++)
        data[i] = number(c->rank, i % PERIOD);
    for (size_t i = 0; i < PERIOD; i++)
        want[i] = (unsigned char)(number(0, i) + number(1, i));
    const bool ok =
        c->all_reduce(c, LB_COMM_SUM, LB_U8, (int64_t)LONG, data) &&
        is_right("sums", data, want) &&
        c->all_reduce(c, LB_COMM_MAX, LB_I32, (int64_t)(LONG / 4), data) &&
        is_right("the largest", data, want);
    free(data);
    return ok;
}

/* The sent data is one period, mapped repeatedly. */
static unsigned char *repeated(int rank)
{
    const int fd = memfd_create("period", 0);
    char *all = mmap(NULL, LONG + PERIOD, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fd < 0 || all == MAP_FAILED || ftruncate(fd, PERIOD)) return NULL;
    for (size_t i = 0; i < LONG; i += PERIOD)
        if (mmap(all + i, PERIOD, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
            return NULL;
    unsigned char *mine = (unsigned char *)all;
    for (size_t i = 0; i < PERIOD; i++)
        mine[i] = number(rank, i);
    return mine;
}

static bool gathers(lb_comm *c, unsigned char *want)
{
    unsigned char *mine = repeated(c->rank);
    unsigned char *all = mmap(NULL, 2 * LONG, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!mine || all == MAP_FAILED || !c->all_gather(c, LONG, mine, all))
        return false;
    bool ok = true;
    for (int r = 0; r < 2; r++) {
        for (size_t i = 0; i < PERIOD; i++)
            want[i] = number(r, i);
        ok = ok && is_right("gathered", all + (size_t)r * LONG, want);
    }
    return ok;
}

static int exchange(lb_comm *c, void *user)
{
    unsigned char *want = malloc(PERIOD);
    (void)user;
    if (!want || c->size != 2) return 2;
    const bool ok = reduces(c, want) && gathers(c, want);
    if (!ok) fprintf(stderr, "rank %d: failed %s\n", c->rank, c->why);
    if (ok && c->rank == 0)
        printf("mpi_long: %zu bytes added up, and gathered to %zu\n", LONG,
               2 * LONG);
    free(want);
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    return lb_mpi_run(&argc, &argv, exchange, NULL);
}
