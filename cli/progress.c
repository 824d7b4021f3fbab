/* progress.c - the progress bar. */
#include "progress.h"

#include <stdlib.h>
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
    *p = (progress){.bar = isatty(STDERR_FILENO) && !quiet && !verbose,
                    .lines = !quiet && verbose,
                    .began = now()};
}

static int columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 1)
        return 80;
    return size.ws_col;
}

/* The end of a name, which is more specific than its beginning. */
static int put_tail(FILE *to, const char *name, int room)
{
    const size_t n = strlen(name);
    size_t skip = 0;
    while (skip < n && put_text(NULL, name + skip, n - skip) > room)
        skip++;
    return put_text(to, name + skip, n - skip);
}

/* "1:05", "2:03:09" */
typedef struct clock_text {
    char s[32];
} clock_text;

static clock_text show_clock(double seconds)
{
    clock_text t;
    const long n = seconds > 0 && seconds < 1e8 ? (long)(seconds + 0.5) : 0;
    if (n >= 3600)
        snprintf(t.s, sizeof t.s, "%ld:%02ld:%02ld", n / 3600, n / 60 % 60,
                 n % 60);
    else
        snprintf(t.s, sizeof t.s, "%ld:%02ld", n / 60, n % 60);
    return t;
}

/* Texts beside the bar, by priority: on a narrow terminal, the last ones are
 * dropped first. */
enum { PERCENT, LEFT, COUNT, BYTES, RATE, ELAPSED, TEXTS };

static void write_texts(char text[TEXTS][80], const progress_step *s,
                        double part, double elapsed)
{
    enum { SIZE = 80 };
    const double left = part > 0 ? elapsed / part - elapsed : 0;
    snprintf(text[PERCENT], SIZE, " %3.0f %%", 100 * part);
    snprintf(text[LEFT], SIZE, "  %s left", show_clock(left).s);
    text[COUNT][0] = 0;
    if (s->n)
        snprintf(text[COUNT], SIZE, "  %lld/%lld", (long long)s->i,
                 (long long)s->n);
    snprintf(text[BYTES], SIZE, "  %s of %s", show_bytes(s->done).s,
             show_bytes(s->total).s);
    snprintf(text[RATE], SIZE, "  %s", show_rate(s->done, elapsed).s);
    snprintf(text[ELAPSED], SIZE, "  %s elapsed", show_clock(elapsed).s);
}

void progress_line(FILE *to, const progress_step *s, double elapsed, int width)
{
    enum { BAR = 24, BAR_LEAST = 8, NAME_LEAST = 12 };
    static const int order[] = {PERCENT, COUNT, BYTES, RATE, ELAPSED, LEFT};
    char text[TEXTS][80];
    const double part = s->total ? (double)s->done / (double)s->total
                        : s->n   ? 0
                                 : 1;
    int used = 0, n = 0;
    write_texts(text, s, part > 1 ? 1 : part, elapsed);
    while (n < TEXTS &&
           used + (int)strlen(text[n]) + (n ? BAR_LEAST : 0) <= width)
        used += (int)strlen(text[n++]);
    const int room = width - used;
    const int bar = room < BAR ? room : BAR;
    const int drawn = put_bar(to, part, 1, bar);
    fprintf(to, "%*s", bar - drawn, "");
    for (int i = 0; i < TEXTS; i++)
        if (order[i] < n) fputs(text[order[i]], to);
    if (s->name && room - bar - 2 >= NAME_LEAST) {
        fputs("  ", to);
        put_tail(to, s->name, room - bar - 2);
    }
}

/* One write per frame, and the rest of the line is erased after the text:
 * nothing flickers. The last column stays empty, or the line would wrap. */
void progress_at(progress *p, const progress_step *s)
{
    char *line = NULL;
    size_t size = 0;
    const double at = now(), elapsed = at - p->began;
    if (!p->bar || (p->drawn && at - p->last < 0.1)) return;
    FILE *to = open_memstream(&line, &size);
    if (!to) return;
    fputc('\r', to);
    progress_line(to, s, elapsed, columns() - 1);
    fputs("\033[K", to);
    if (fclose(to) == 0) fwrite(line, 1, size, stderr);
    free(line);
    p->last = at;
    p->drawn = true;
}

void progress_clear(progress *p)
{
    if (p->drawn) fputs("\r\033[K", stderr);
    p->drawn = false;
}
