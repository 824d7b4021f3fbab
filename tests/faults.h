/* faults.h - a failing file system: tests are linked with these wrappers of C
 * library calls (--wrap), one of which fails. */
#ifndef LB_FAULTS_H
#define LB_FAULTS_H

#include <sys/types.h>

typedef enum fault_how {
    FAULT_FAILS,  /* -1 and errno */
    FAULT_SHORT,  /* half of the requested bytes */
    FAULT_FLIP,   /* one bit flipped silently */
    FAULT_SIGNAL, /* `error` is a signal, raised before the call */
    FAULT_KILLS   /* kill `process` before the call, or halfway */
} fault_how;

enum { FAULT_ALWAYS = -1 };

typedef struct fault_plan {
    const char *call; /* "pwrite", ...; NULL: any call */
    long at;          /* index of the call, from 1; 0: none; FAULT_ALWAYS */
    fault_how how;
    int error;
    pid_t process;
    long calls; /* calls so far; starts at 0 */
    long done;  /* failed calls among them */
    /* Called for each file, in any plan: before it is renamed, and after it is
     * opened. NULL: not called. */
    void (*renames)(const char *from);
    void (*opened)(const char *path);
} fault_plan;

/* The environment sets it, too: LOWBIT_FAULT="CALL AT HOW", HOW being a number
 * for errno, short, flip, or minus the number of a signal. */
extern fault_plan fault;

#endif
