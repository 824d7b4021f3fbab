/* test_io_bad_rank.c - one rank reads a bad file: every rank fails with the
 * same message, which names that rank, for every kind of file and operation. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "lowbit_io.h"
#include "ranks.h"
#include "scratch.h"

static pthread_mutex_t checking = PTHREAD_MUTEX_INITIALIZER;

static void say(bool ok, const char *what, const char *why)
{
    pthread_mutex_lock(&checking);
    if (check_fails(ok)) fprintf(stderr, "%s: %s\n", what, why);
    pthread_mutex_unlock(&checking);
}

/* The defect of the last rank's file. */
typedef enum { SHORTENED, NO_HEADER, EMPTY, MISSING, FAULTS } fault;
static const char *const fault_name[FAULTS] = {"shortened", "no header",
                                               "empty", "missing"};

static bool spoil(const char *path, fault how)
{
    FILE *f = how == NO_HEADER ? fopen(path, "r+b") : NULL;
    switch (how) {
    case SHORTENED:
        return !truncate(path, 500);
    case NO_HEADER:
        return f && fwrite("\xff\xff\xff\xff\xff\xff\xff\x7f", 8, 1, f) == 1 &&
               !fclose(f);
    case EMPTY:
        return !truncate(path, 0);
    default:
        return !unlink(path);
    }
}

/* Each rank has its own file; the last one is bad. */
static bool write_own(lb_ctx *cx, const char *path)
{
    lb_array *w =
        lb_random_normal(cx, (lb_key){1, 2}, LB_F32, LB_SHAPE(16, 64));
    const lb_planned one = {.name = "w", .array = w};
    return lb_save(cx, path, &one, 1, &(lb_save_options){.no_sync = true});
}

static void all_say_the_same(lb_comm *c, const lb_ctx *cx, fault how)
{
    enum { LINE = 512 };
    char mine[LINE] = "", named[64];
    char *all = malloc((size_t)c->size * LINE);
    snprintf(mine, sizeof mine, "%s", lb_error(cx));
    snprintf(named, sizeof named, "rank %d of %d: ", c->size - 1, c->size);
    bool same = all && c->all_gather(c, LINE, mine, all);
    for (int r = 0; r < c->size && same; r++)
        same = !strcmp(all + (size_t)r * LINE, mine);
    say(same && lb_error_status(cx) != LB_OK, fault_name[how], mine);
    say(c->size == 1 || strstr(mine, named), fault_name[how], mine);
    free(all);
}

static int ranks(lb_comm *c, void *user)
{
    const fault how = *(const fault *)user;
    const bool odd = c->rank == c->size - 1;
    char path[SCRATCH_MAX], axes[32];
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    snprintf(axes, sizeof axes, "x=%d", c->size);
    lb_mesh *mesh = lb_mesh_open(cx, c, axes, NULL);
    say(scratch_file(path) && write_own(cx, path) && (!odd || spoil(path, how)),
        "files", lb_error(cx));
    /* Continues like a program that checks for errors at the end only. */
    lb_array *w = lb_load(cx, path, "w");
    lb_array *slice = w ? lb_shard(cx, mesh, w, "P(x)") : NULL;
    lb_array *sum = slice ? lb_reduce_sum(cx, slice, NULL) : NULL;
    say(!odd || !sum, fault_name[how], "the bad file was read");
    say(!lb_mesh_close(mesh), fault_name[how], "the mesh closed well");
    all_say_the_same(c, cx, how);
    lb_close(cx);
    unlink(path);
    return 0;
}

static int tests(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (fault how = 0; how < FAULTS; how++)
        for (int n = 1; n <= 8; n *= 2)
            if (ranks_are(n)) CHECK_EQ_I(ranks_on(n, ranks, &how), 0);
    return check_report("a bad file on one rank");
}

int main(int argc, char **argv)
{
    return ranks_main(argc, argv, tests);
}
