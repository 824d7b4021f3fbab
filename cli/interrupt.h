/* interrupt.h - what Ctrl-C (SIGINT), SIGTERM and SIGHUP do.
 *
 * By default they end the program at once, after removing the progress bar and
 * printing "interrupted" (with --json an error object). A job that can stop by
 * itself defers the first signal and asks interrupted() from time to time; the
 * second one ends the program in any case.
 */
#ifndef INTERRUPT_H
#define INTERRUPT_H

#include "verb.h"

/* Called once, when the verb is known. Signals that the program was started to
 * ignore (nohup) stay ignored. */
void interrupt_begin(const char *verb_name, bool as_json);
/* From now on the first signal only makes interrupted() true; or, with false,
 * ends the program again. */
void interrupt_defer(bool on);
/* For lb_quantize_options.cancel; user is ignored. */
bool interrupted(void *user);
/* A job that writes to `to` has failed. Ends the deferral, and prints the error
 * or, if the job was interrupted, what was kept. `to` NULL: nothing is written.
 */
verdict interrupt_verdict(const lb_ctx *cx, const char *to);
/* The exit code: 128 and the number of the signal; 130 for SIGINT. */
int interrupt_exit(void);

#endif
