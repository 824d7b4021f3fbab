/* interrupt.c - signals that end the program. */
#include "interrupt.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "places.h"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_SIGNALS = sizeof signals / sizeof *signals };

/* Only async-signal-safe calls are allowed in the handler, so that everything
 * it prints is prepared. */
static struct {
    volatile sig_atomic_t signal; /* received; 0: none */
    volatile sig_atomic_t deferred;
    volatile sig_atomic_t failed; /* a message is or will be printed */
    char json[N_SIGNALS][256];
    char line[64];
} state;

static void put(int fd, const char *text)
{
    size_t n = strlen(text);
    while (n) {
        const ssize_t done = write(fd, text, n);
        if (done <= 0) return;
        text += done;
        n -= (size_t)done;
    }
}

static void on_signal(int number)
{
    const bool first = !state.signal;
    state.signal = number;
    if (state.deferred && first) return;
    if (!state.failed) put(STDERR_FILENO, state.line);
    for (int i = 0; i < N_SIGNALS; i++)
        if (signals[i] == number) put(STDOUT_FILENO, state.json[i]);
    _exit(128 + number);
}

static void prepare_json(const char *verb_name)
{
    for (int i = 0; i < N_SIGNALS; i++) {
        FILE *f = fmemopen(state.json[i], sizeof state.json[i], "w");
        if (!f) continue;
        json_failure(f, verb_name, 128 + signals[i], "interrupted",
                     "interrupted");
        fclose(f);
    }
}

void interrupt_begin(const char *verb_name, bool as_json)
{
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction old;
    snprintf(state.line, sizeof state.line, "%slowbit: interrupted\n",
             isatty(STDERR_FILENO) ? "\r\033[K" : "");
    if (as_json) prepare_json(verb_name);
    for (int i = 0; i < N_SIGNALS; i++) /* no handler interrupts another */
        sigaddset(&act.sa_mask, signals[i]);
    for (int i = 0; i < N_SIGNALS; i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            (void)sigaction(signals[i], &act, NULL);
}

void interrupt_defer(bool on)
{
    state.deferred = on;
}

bool interrupted(void *user)
{
    (void)user;
    return state.signal != 0;
}

verdict interrupt_verdict(const lb_ctx *cx, const char *to)
{
    char path[PATH_MAX];
    uint64_t nbytes;
    /* An error is not an interruption, even if mpirun, having seen another rank
     * fail, signals this one while it prints the message: still deferred. */
    state.failed = true;
    if (lb_error_status(cx) != LB_E_CANCELLED) return complain_of(cx);
    interrupt_defer(false);
    if (!to) return complain(INTERRUPTED, "interrupted");
    if (place_partial(to, path, &nbytes))
        return complain(INTERRUPTED,
                        "interrupted; kept %s (%s), continue with --resume",
                        path, show_bytes(nbytes).s);
    return complain(INTERRUPTED, "interrupted; %s was not written", to);
}

int interrupt_exit(void)
{
    return 128 + (state.signal ? state.signal : SIGINT);
}
