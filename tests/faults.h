/* faults.h - a failing file system: tests are linked with these wrappers of C
 * library calls (--wrap), one of which fails. */
#ifndef LB_FAULTS_H
#define LB_FAULTS_H

typedef enum fault_how {
    FAULT_FAILS,  /* -1 and errno */
    FAULT_SHORT,  /* of the bytes to be read or written, half */
    FAULT_FLIP,   /* one bit of them is another; nobody is told */
    FAULT_SIGNAL, /* `error` is a signal, raised before the call */
    FAULT_KILLS   /* the process, before the call, or half-way through bytes */
} fault_how;

enum { FAULT_ALWAYS = -1 };

typedef struct fault_plan {
    const char *call; /* "pwrite", ..; NULL: any of them */
    long at;          /* the at-th such call, from 1; 0: none; FAULT_ALWAYS */
    fault_how how;
    int error;
    long calls; /* so far: begins as 0 */
    long done;  /* of them, how many went wrong */
    /* Told of each file, whatever is planned: before it is renamed, and after
     * it is opened. NULL: nobody is. */
    void (*renames)(const char *from);
    void (*opened)(const char *path);
} fault_plan;

/* The environment sets it, too: LOWBIT_FAULT="CALL AT HOW", HOW being a number
 * for errno, short, flip, or minus the number of a signal. */
extern fault_plan fault;

#endif
