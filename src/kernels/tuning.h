/* tuning.h - parameters that depend on the CPU: one row for each CPU family,
 * and a generic row for each level.
 *
 * They control the order of memory accesses and prefetching, never the order
 * of a summation: results are bit-identical with every row.
 */
#ifndef LB_TUNING_H
#define LB_TUNING_H

#include <stddef.h>

#include "lowbit_ext.h"

struct lb_tuning {
    const char *family; /* "zen3", "generic-avx2", ... */
    /* A matrix that is read once from memory is read as this many concurrent
     * streams, which start stream_gap bytes apart. 1: front to back. */
    int streams;
    size_t stream_gap;
    /* Software prefetch distance in bytes: one prefetcht0 per cache line. 0:
     * none, the hardware prefetcher does better. */
    size_t prefetch;
    /* Results of at least this many bytes use non-temporal stores. */
    size_t bypass;
    /* Bytes of x kept in L2 while weights stream through: packed rows of gemm,
     * and elements for products with codes. */
    size_t l2_gemm, l2_x;
};

/* The row to use, never NULL: cpu->tuning, or the generic row of its level. */
const lb_tuning *lb_tuning_for(const lb_cpu *cpu);
/* The row of a CPU by its CPUID ("AuthenticAMD", 0x19, 0x01) or MIDR ("arm",
 * implementer, part). Unknown CPUs get the generic row of the level; so do
 * families that were not measured when they run at another level than usual. */
const lb_tuning *lb_tuning_find(lb_level level, const char *vendor, int family,
                                int model);
/* The k-th row, families first, then generic rows; NULL at the end. */
const lb_tuning *lb_tuning_at(int k);

#endif
