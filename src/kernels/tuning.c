/* tuning.c - the rows of tuning.h, and which CPUs they are for.
 *
 * Measured:
 * - zen3: four to eight streams 16 KiB apart reach 25 GB/s per thread, one
 *   stream 18 to 21, rows 1 KiB apart less. Kernels lose time where streams
 *   restart: gaps of 64 to 512 KiB gain 3 to 11 % on two threads, larger ones
 *   nothing more. Prefetching gains 5 % with 8-bit weights, nothing where more
 *   is computed per byte. 288 KiB for gemm's rows doubles K of a block with 128
 *   rows: 6 % faster.
 * - icelake, sapphirerapids: 15 GB/s in any order, but kernels that compute
 *   much between loads are twice as fast with a prefetch distance of 4 KiB or
 *   more.
 * - all three: non-temporal stores are three times as fast as ordinary ones
 *   once a result exceeds L3; half of L2 (512 KiB or more) is used for x.
 *
 * Not measured: the generic rows of AVX2 and AVX-512 repeat zen3 and icelake;
 * ref and neon do not prefetch. emeraldrapids has the cores of sapphirerapids
 * and repeats its values. All other families repeat the generic row of the
 * level that they usually run at: their name says which CPU it is, not that
 * it was tuned.
 */
#include "kernels/tuning.h"

#include <string.h>

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

#define ONE_STREAM   .streams = 1
#define FOUR_STREAMS .streams = 4, .stream_gap = KIB(512), .prefetch = 512
#define MOST_CACHES  .bypass = MIB(16), .l2_gemm = KIB(192), .l2_x = KIB(256)

#define LIKE_REF    ONE_STREAM, MOST_CACHES
#define LIKE_NEON   ONE_STREAM, MOST_CACHES
#define LIKE_AVX2   FOUR_STREAMS, MOST_CACHES
#define LIKE_AVX512 ONE_STREAM, .prefetch = KIB(4), MOST_CACHES

enum {
    ZEN2,
    ZEN3,
    ZEN4,
    ZEN5,
    SKYLAKEX,
    ICELAKE,
    SAPPHIRE,
    EMERALD,
    GRANITE,
    ALDERLAKE,
    RAPTORLAKE,
    ARROWLAKE,
    NEOVERSE_N1,
    NEOVERSE_V1,
    NEOVERSE_V2,
    APPLE,
    AMPERE,
    N_FAMILIES,
    GENERIC_REF = N_FAMILIES,
    GENERIC_NEON,
    GENERIC_AVX2,
    GENERIC_AVX512,
    N_ROWS
};

static const lb_tuning rows[N_ROWS] = {
    [ZEN2] = {"zen2", LIKE_AVX2},
    [ZEN3] = {"zen3", FOUR_STREAMS, .bypass = MIB(16), .l2_gemm = KIB(288),
              .l2_x = KIB(256)},
    [ZEN4] = {"zen4", LIKE_AVX512},
    [ZEN5] = {"zen5", LIKE_AVX512},
    [SKYLAKEX] = {"skylakex", LIKE_AVX512},
    [ICELAKE] = {"icelake", ONE_STREAM, .prefetch = KIB(4), MOST_CACHES},
    [SAPPHIRE] = {"sapphirerapids", ONE_STREAM, .prefetch = KIB(4),
                  MOST_CACHES},
    [EMERALD] = {"emeraldrapids", ONE_STREAM, .prefetch = KIB(4), MOST_CACHES},
    [GRANITE] = {"graniterapids", LIKE_AVX512},
    [ALDERLAKE] = {"alderlake", LIKE_AVX2},
    [RAPTORLAKE] = {"raptorlake", LIKE_AVX2},
    [ARROWLAKE] = {"arrowlake", LIKE_AVX2},
    [NEOVERSE_N1] = {"neoverse-n1", LIKE_NEON},
    [NEOVERSE_V1] = {"neoverse-v1", LIKE_NEON},
    [NEOVERSE_V2] = {"neoverse-v2", LIKE_NEON},
    [APPLE] = {"apple", LIKE_NEON},
    [AMPERE] = {"ampereone", LIKE_NEON},
    [GENERIC_REF] = {"generic-ref", LIKE_REF},
    [GENERIC_NEON] = {"generic-neon", LIKE_NEON},
    [GENERIC_AVX2] = {"generic-avx2", LIKE_AVX2},
    [GENERIC_AVX512] = {"generic-avx512", LIKE_AVX512},
};

/* The generic row that a family repeats; 0: it has values of its own. */
static const int like[N_FAMILIES] = {
    [ZEN2] = GENERIC_AVX2,        [ZEN4] = GENERIC_AVX512,
    [ZEN5] = GENERIC_AVX512,      [SKYLAKEX] = GENERIC_AVX512,
    [GRANITE] = GENERIC_AVX512,   [ALDERLAKE] = GENERIC_AVX2,
    [RAPTORLAKE] = GENERIC_AVX2,  [ARROWLAKE] = GENERIC_AVX2,
    [NEOVERSE_N1] = GENERIC_NEON, [NEOVERSE_V1] = GENERIC_NEON,
    [NEOVERSE_V2] = GENERIC_NEON, [APPLE] = GENERIC_NEON,
    [AMPERE] = GENERIC_NEON,
};

/* x86: family and model of CPUID with their extended parts; aarch64:
 * implementer and part number of MIDR_EL1. */
static const struct {
    const char *vendor;
    int family, first_model, last_model;
    int row;
} cpus[] = {
    {"AuthenticAMD", 0x17, 0x30, 0x4f, ZEN2}, /* EPYC 7002, Threadripper 3000 */
    {"AuthenticAMD", 0x17, 0x60, 0x7f, ZEN2}, /* Ryzen 3000, 4000, 5000 U */
    {"AuthenticAMD", 0x17, 0x90, 0x91, ZEN2}, /* Van Gogh */
    {"AuthenticAMD", 0x17, 0xa0, 0xaf, ZEN2}, /* Mendocino */
    {"AuthenticAMD", 0x19, 0x00, 0x0f, ZEN3}, /* EPYC 7003, Threadripper 5000 */
    {"AuthenticAMD", 0x19, 0x20, 0x5f, ZEN3}, /* Ryzen 5000, 6000 */
    {"AuthenticAMD", 0x19, 0x10, 0x1f, ZEN4}, /* EPYC 9004, Threadripper 7000 */
    {"AuthenticAMD", 0x19, 0x60, 0xaf, ZEN4}, /* Ryzen 7000, 8000; Bergamo */
    {"AuthenticAMD", 0x1a, 0x00, 0x2f, ZEN5}, /* EPYC 9005, Ryzen AI 300 */
    {"AuthenticAMD", 0x1a, 0x40, 0x4f, ZEN5}, /* Ryzen 9000 */
    {"AuthenticAMD", 0x1a, 0x60, 0x7f, ZEN5}, /* Krackan, Strix Halo */

    {"GenuineIntel", 6, 0x55, 0x55, SKYLAKEX}, /* also Cascade, Cooper Lake */
    {"GenuineIntel", 6, 0x6a, 0x6a, ICELAKE},  /* Xeon, third generation */
    {"GenuineIntel", 6, 0x6c, 0x6c, ICELAKE},  /* Xeon D-1700, D-2700 */
    {"GenuineIntel", 6, 0x7d, 0x7e, ICELAKE},  /* Core, tenth generation */
    {"GenuineIntel", 6, 0x8f, 0x8f, SAPPHIRE}, /* Xeon, fourth generation */
    {"GenuineIntel", 6, 0xcf, 0xcf, EMERALD},  /* Xeon, fifth generation */
    {"GenuineIntel", 6, 0xad, 0xae, GRANITE},  /* Xeon 6, P-cores */
    {"GenuineIntel", 6, 0x97, 0x97, ALDERLAKE},
    {"GenuineIntel", 6, 0x9a, 0x9a, ALDERLAKE}, /* mobile */
    {"GenuineIntel", 6, 0xb7, 0xb7, RAPTORLAKE},
    {"GenuineIntel", 6, 0xba, 0xba, RAPTORLAKE}, /* mobile */
    {"GenuineIntel", 6, 0xbf, 0xbf, RAPTORLAKE},
    {"GenuineIntel", 6, 0xc5, 0xc6, ARROWLAKE}, /* H, S */
    {"GenuineIntel", 6, 0xb5, 0xb5, ARROWLAKE}, /* U */

    {"arm", 0x41, 0xd0c, 0xd0c, NEOVERSE_N1}, /* Graviton 2, Ampere Altra */
    {"arm", 0x41, 0xd40, 0xd40, NEOVERSE_V1}, /* Graviton 3 */
    {"arm", 0x41, 0xd4f, 0xd4f, NEOVERSE_V2}, /* Graviton 4, Grace */
    {"arm", 0x61, 0x000, 0xfff, APPLE},
    {"arm", 0xc0, 0xac3, 0xac5, AMPERE},
};
enum { N_CPUS = (int)(sizeof cpus / sizeof *cpus) };

static int generic(lb_level level)
{
    switch (level) {
    case LB_LEVEL_REF:
        return GENERIC_REF;
    case LB_LEVEL_NEON:
        return GENERIC_NEON;
    case LB_LEVEL_AVX2:
        return GENERIC_AVX2;
    default:
        return GENERIC_AVX512;
    }
}

const lb_tuning *lb_tuning_for(const lb_cpu *cpu)
{
    return cpu->tuning ? cpu->tuning : &rows[generic(cpu->level)];
}

const lb_tuning *lb_tuning_find(lb_level level, const char *vendor, int family,
                                int model)
{
    int row = generic(level);
    for (int i = 0; i < N_CPUS; i++) {
        if (strcmp(vendor, cpus[i].vendor) != 0 || family != cpus[i].family ||
            model < cpus[i].first_model || model > cpus[i].last_model)
            continue;
        const int repeats = like[cpus[i].row];
        if (!repeats || repeats == row) row = cpus[i].row;
        break;
    }
    return &rows[row];
}

const lb_tuning *lb_tuning_at(int k)
{
    return k >= 0 && k < N_ROWS ? &rows[k] : NULL;
}
