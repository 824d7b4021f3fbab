/* tuning.c - the table of tuning.h, and which CPUs a row is for.
 *
 * zen3: reading four to eight places 16 KiB apart reached 25 GB/s a thread,
 * one place 18 to 21, rows 1 KiB apart less. Kernels lose time where those
 * begin anew: from 64 to 512 KiB they gain 3 to 11 % on two threads, and no
 * more beyond. Asking ahead gains 5 % with 8 bits and nothing where there is
 * more to compute for each byte. With 288 KiB for gemm's rows those of a
 * product of 128 go twice as deep, which is 6 % faster.
 *
 * icelake, sapphire rapids: 15 GB/s in any order, but kernels that compute much
 * between loads were twice as fast with each line asked for ahead, once it is
 * 4 KiB or more.
 *
 * Both: stores past the caches are three times as fast as plain ones once a
 * result does not fit in L3; of L2's 512 KiB and more, half is for x. The
 * generic rows of AVX2 and AVX-512 repeat these two; those of ref and neon ask
 * for nothing, for nothing was measured.
 */
#include "kernels/tuning.h"

#include <string.h>

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

enum {
    ZEN3,
    ICELAKE,
    SAPPHIRE,
    GENERIC_REF,
    GENERIC_NEON,
    GENERIC_AVX2,
    GENERIC_AVX512,
    N_ROWS
};

#define IN_ONE_PLACE   .streams = 1
#define IN_FOUR_PLACES .streams = 4, .stream_gap = KIB(512), .prefetch = 512
#define MOST_CACHES    .bypass = MIB(16), .l2_gemm = KIB(192), .l2_x = KIB(256)

static const lb_tuning rows[N_ROWS] = {
    [ZEN3] = {"zen3", IN_FOUR_PLACES, .bypass = MIB(16), .l2_gemm = KIB(288),
              .l2_x = KIB(256)},
    [ICELAKE] = {"icelake", IN_ONE_PLACE, .prefetch = KIB(4), MOST_CACHES},
    [SAPPHIRE] = {"sapphirerapids", IN_ONE_PLACE, .prefetch = KIB(4),
                  MOST_CACHES},
    [GENERIC_REF] = {"generic-ref", IN_ONE_PLACE, MOST_CACHES},
    [GENERIC_NEON] = {"generic-neon", IN_ONE_PLACE, MOST_CACHES},
    [GENERIC_AVX2] = {"generic-avx2", IN_FOUR_PLACES, MOST_CACHES},
    [GENERIC_AVX512] = {"generic-avx512", IN_ONE_PLACE, .prefetch = KIB(4),
                        MOST_CACHES},
};

/* Families as CPUID counts them, the extended part added. */
static const struct {
    const char *vendor;
    int family, first_model, last_model;
    int row;
} cpus[] = {
    {"AuthenticAMD", 0x19, 0x00, 0x0f, ZEN3}, /* EPYC 7003, Threadripper 5000 */
    {"AuthenticAMD", 0x19, 0x20, 0x5f, ZEN3}, /* Ryzen 5000, 6000 */
    {"GenuineIntel", 0x06, 0x6a, 0x6a, ICELAKE},  /* Xeon, third generation */
    {"GenuineIntel", 0x06, 0x6c, 0x6c, ICELAKE},  /* Xeon D-1700, D-2700 */
    {"GenuineIntel", 0x06, 0x8f, 0x8f, SAPPHIRE}, /* Xeon, fourth generation */
    {"GenuineIntel", 0x06, 0xcf, 0xcf, SAPPHIRE}, /* and fifth */
};
enum { N_CPUS = (int)(sizeof cpus / sizeof *cpus) };

static const lb_tuning *generic(lb_level level)
{
    switch (level) {
    case LB_LEVEL_REF:
        return &rows[GENERIC_REF];
    case LB_LEVEL_NEON:
        return &rows[GENERIC_NEON];
    case LB_LEVEL_AVX2:
        return &rows[GENERIC_AVX2];
    default:
        return &rows[GENERIC_AVX512];
    }
}

const lb_tuning *lb_tuning_for(const lb_cpu *cpu)
{
    return cpu->tuning ? cpu->tuning : generic(cpu->level);
}

const lb_tuning *lb_tuning_find(lb_level level, const char *vendor, int family,
                                int model)
{
    for (int i = 0; i < N_CPUS; i++)
        if (!strcmp(vendor, cpus[i].vendor) && family == cpus[i].family &&
            model >= cpus[i].first_model && model <= cpus[i].last_model)
            return &rows[cpus[i].row];
    return generic(level);
}

const lb_tuning *lb_tuning_at(int k)
{
    return k >= 0 && k < N_ROWS ? &rows[k] : NULL;
}
