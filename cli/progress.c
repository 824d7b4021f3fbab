/* progress.c - the bar. */
#include "progress.h"

#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "histogram.h"

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

void progress_begin(progress *p, const arguments *a)
{
    const bool quiet = a->count[OPTION_QUIET] != 0;
    const bool verbose = a->count[OPTION_VERBOSE] != 0;
    const bool terminal = isatty(STDERR_FILENO);
    *p = (progress){.bar = terminal && !quiet && !verbose,
                    .lines = !quiet && (verbose || !terminal),
                    .began = now()};
}

static int columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 1)
        return 80;
    return size.ws_col;
}

/* The end of a name says more than its beginning. */
static void put_tail(const char *name, int room)
{
    const size_t n = strlen(name);
    size_t skip = 0;
    while (skip < n && put_text(NULL, name + skip, n - skip) > room)
        skip++;
    put_text(stderr, name + skip, n - skip);
}

void progress_at(progress *p, const char *name, uint64_t done, uint64_t total)
{
    enum { BAR = 24, NAME = 8 };
    const double at = now(), took = at - p->began;
    char figures[96];
    if (!p->bar || (p->drawn && at - p->last < 0.1)) return;
    const double part = total ? (double)done / (double)total : 1;
    const double left = part > 0 ? took / part - took : 0;
    p->last = at;
    p->drawn = true;
    const int n = snprintf(
        figures, sizeof figures, " %3.0f %%  %9s  %d:%02d left", 100 * part,
        show_rate(done, took).s, (int)left / 60, (int)left % 60);
    /* A line that is full would go on in the next, and stay there. */
    const int room = columns() - 1 - n;
    const int bar = room < BAR ? room : BAR;
    fputs("\r\033[K", stderr);
    if (bar > 0) {
        const int drawn = put_bar(stderr, part, 1, bar);
        fprintf(stderr, "%*s", bar - drawn, "");
    }
    fprintf(stderr, "%.*s", room < 0 ? n + room : n, figures);
    if (room - BAR - 2 > NAME) {
        fputs("  ", stderr);
        put_tail(name, room - BAR - 2);
    }
    fflush(stderr);
}

void progress_clear(progress *p)
{
    if (p->drawn) fputs("\r\033[K", stderr);
    p->drawn = false;
}
