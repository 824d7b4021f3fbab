/* refused.h - checks that a call fails with a status and a message that
 * contains some words, and clears the error. */
#ifndef LB_REFUSED_H
#define LB_REFUSED_H

#include "check.h"
#include "lowbit.h"

static inline void check_refused(lb_ctx *cx, bool ok, lb_status status,
                                 const char *say, const char *file, int line)
{
    const bool right =
        !ok && lb_error_status(cx) == status && strstr(lb_error(cx), say);
    if (check_fails(right))
        fprintf(stderr, "%s:%d: want \"%s\", got %s \"%s\"\n", file, line, say,
                ok ? "no error" : lb_status_name(lb_error_status(cx)),
                lb_error(cx));
    lb_clear(cx);
}
/* ok: the result of the call, possibly a pointer. The context is cx. */
#define REFUSED(ok, status, say)                                               \
    check_refused(cx, (ok) ? true : false, status, say, __FILE__, __LINE__)

#endif
