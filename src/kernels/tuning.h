/* tuning.h - the numbers that depend on which CPU it is: one row for each
 * family that was measured, and a generic row for each level.
 *
 * They say in which order memory is walked and how far ahead it is asked for,
 * never in which order a sum is formed: results have the same bits with every
 * row.
 */
#ifndef LB_TUNING_H
#define LB_TUNING_H

#include <stddef.h>

#include "lowbit_ext.h"

struct lb_tuning {
    const char *family; /* "zen3", "generic-avx2", ... */
    /* A matrix that is read once, from memory: in how many places at a time,
     * and how many bytes those are apart. One place: from front to back. */
    int streams;
    size_t stream_gap;
    /* How many bytes ahead of a load its line is asked for, one prefetcht0 for
     * each line, evenly; 0: never, the hardware does it better. */
    size_t prefetch;
    /* Results of so many bytes and more are written past the caches. */
    size_t bypass;
    /* Bytes of x that stay in L2 while weights pass by: of gemm's rows, and of
     * numbers for products with codes. */
    size_t l2_gemm, l2_x;
};

/* The row to use; never NULL. A lb_cpu that names none has its level's. */
const lb_tuning *lb_tuning_for(const lb_cpu *cpu);
/* The row of a CPU, by what CPUID says of it ("AuthenticAMD", 0x19, 0x01); the
 * generic row of the level if it has none of its own. */
const lb_tuning *lb_tuning_find(lb_level level, const char *vendor, int family,
                                int model);
/* The k-th row, those of families first; NULL at the end. */
const lb_tuning *lb_tuning_at(int k);

#endif
