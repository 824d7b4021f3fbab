/* lowbit.c - the command: `lowbit VERB ...` */
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "interrupt.h"
#include "launch.h"
#include "start/command.h"

const verb *const verbs[] = {
    &verb_info,  &verb_quantize, &verb_dequantize, &verb_convert, &verb_shard,
    &verb_merge, &verb_check,    &verb_diff,       &verb_stats,   &verb_formats,
    &verb_cpu,   &verb_bench,    &verb_completion, NULL,
};

static void usage(FILE *to)
{
    fputs("usage: lowbit VERB [ARGUMENT]... [OPTION]...\n\n"
          "Quantize, inspect and convert files of neural network weights.\n\n",
          to);
    for (int i = 0; verbs[i]; i++)
        fprintf(to, "  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    fputs(
        "\nRun `lowbit VERB --help` for details, `lowbit --version` for the "
        "version.\nExit codes: 0 success, 1 failure, 2 usage error, 3 invalid "
        "file,\n4 --strict violation or refused conversion, 130 interrupted.\n",
        to);
}

static const verb *find_verb(const char *name)
{
    for (int i = 0; verbs[i]; i++)
        if (strcmp(verbs[i]->name, name) == 0) return verbs[i];
    return NULL;
}

static verdict no_verb(const char *name)
{
    enum { N_VERBS = sizeof verbs / sizeof *verbs - 1 };
    const char *names[N_VERBS];
    for (int i = 0; i < N_VERBS; i++)
        names[i] = verbs[i]->name;
    static const char *const options[] = {"--help", "--version"};
    const bool option = *name == '-';
    const char *meant =
        option ? nearest(name, options, 2) : nearest(name, names, N_VERBS);
    if (meant)
        return complain(USAGE, "unknown %s '%.64s'; did you mean %s?",
                        option ? "option" : "verb", name, meant);
    return complain(USAGE, "unknown %s '%.64s' (see lowbit --help)",
                    option ? "option" : "verb", name);
}

/* Under mpirun, lowbit becomes lowbit-mpi if the ranks share the work or one of
 * them writes. If MPI sees fewer processes than mpirun started, each would
 * write the same file: an error. */
static verdict run_among(const verb *v, arguments *a, lb_comm *comm)
{
    const int n = launch_size();
    const bool writes =
        a->value[OPTION_OUTPUT] != NULL || a->value[OPTION_REPORT] != NULL;
    if ((v->shares || writes) && !comm && n > 1) return launch_ranks(a->argv);
    if (comm && comm->size == 1 && n > 1)
        return complain(FAILED,
                        "started as one of %d processes, but MPI sees only 1: "
                        "lowbit-mpi was built with another MPI",
                        n);
    if (comm && comm->size > 1) {
        a->comm = comm;
        if (!v->shares && comm->rank > 0) return DONE;
    }
    return v->run(a);
}

/* The frame of one call: which verb, and whether its result is JSON. */
typedef struct call {
    const verb *v; /* NULL: none was found */
    bool json;
} call;

/* The program's file name, without directory. */
static bool is_called(char **argv, const char *name)
{
    const char *slash = argv[0] ? strrchr(argv[0], '/') : NULL;
    return argv[0] && strcmp(slash ? slash + 1 : argv[0], name) == 0;
}

bool is_bench_alias(const arguments *a)
{
    return is_called(a->argv, "lowbit-bench");
}

static verdict run_verb(call *c, int argc, char **argv, lb_comm *comm)
{
    arguments a;
    if (!arguments_read(c->v, argc, argv, &a)) return USAGE;
    c->json = a.count[OPTION_JSON] != 0 && !is_bench_alias(&a);
    if (a.count[OPTION_HELP]) {
        c->json = false;
        verb_help(stdout, c->v);
        return DONE;
    }
    talk_begin(a.count[OPTION_QUIET] != 0);
    interrupt_begin(c->v->name, c->json && !(comm && comm->rank > 0));
    /* A job continues if its output pipe is closed. */
    if (verb_takes(c->v, OPTION_OUTPUT)) signal(SIGPIPE, SIG_IGN);
    return run_among(c->v, &a, comm);
}

static verdict run(call *c, int argc, char **argv, lb_comm *comm)
{
    if (argc < 2) {
        usage(stderr);
        return USAGE;
    }
    const bool help = strcmp(argv[1], "help") == 0;
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        (help && argc == 2)) {
        usage(stdout);
        return DONE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("lowbit %s\n", lb_version());
        return DONE;
    }
    const bool manual = argc == 3 && strcmp(argv[1], "--manual") == 0;
    const char *name = argv[manual || help ? 2 : 1];
    /* A usage error is JSON as well, so that callers parse one thing only. */
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        c->json |= strcmp(argv[i], "--json") == 0;
    c->v = find_verb(name);
    if (!c->v) return no_verb(name);
    if (!manual && !help) return run_verb(c, argc, argv, comm);
    c->json = false;
    if (manual)
        verb_manual(c->v);
    else
        verb_help(stdout, c->v);
    return DONE;
}

/* The files of all ranks and shards are open at the same time, possibly more
 * than the usual limit of 1024. */
static void allow_files(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur >= r.rlim_max) return;
    r.rlim_cur = r.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &r);
}

/* If stdout or stderr is closed, the next open file would take its place, and
 * messages would be written into it. Occupy them with a read-only file, so that
 * lost output is still an error. */
static void hold_streams(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) close(fd);
}

/* `lowbit-bench ...` is `lowbit bench ...`. */
static verdict run_bench(call *c, int argc, char **argv)
{
    char **list = calloc((size_t)argc + 2, sizeof *list);
    if (!list) return complain(FAILED, "out of memory");
    list[0] = argv[0];
    list[1] = (char[]){"bench"};
    memcpy(list + 2, argv + 1, (size_t)(argc - 1) * sizeof *list);
    c->v = &verb_bench;
    const verdict v = run_verb(c, argc + 1, list, NULL);
    free(list);
    return v;
}

int lowbit_command(int argc, char **argv, lb_comm *comm)
{
    call c = {0};
    hold_streams();
    setlocale(LC_CTYPE, ""); /* whether the terminal displays Unicode */
    allow_files();
    const bool version = argc == 2 && strcmp(argv[1], "--version") == 0;
    const verdict v = argc && !version && is_called(argv, "lowbit-bench")
                          ? run_bench(&c, argc, argv)
                          : run(&c, argc, argv, comm);
    if (c.json && !(comm && comm->rank > 0))
        json_finish(c.v ? c.v->name : NULL, v);
    /* Incomplete output is not success. */
    if (fflush(stdout) || ferror(stdout))
        return (int)complain(FAILED, "cannot write to stdout");
    return verdict_exit(v);
}
