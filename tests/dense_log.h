/* dense_log.h - a log for contexts with LB_DENSE_LOG: a result may be dense
 * because its layout cannot be expressed in the format, but no packed operand
 * may be copied whole. */
#ifndef LB_DENSE_LOG_H
#define LB_DENSE_LOG_H

#include <string.h>

#include "check.h"

static inline void log_no_copies(void *user, const char *sentence)
{
    (void)user;
    if (check_fails(strstr(sentence, "has a dense result") ||
                    strstr(sentence, "update_in_place copies")))
        fprintf(stderr, "%s\n", sentence);
}

#endif
