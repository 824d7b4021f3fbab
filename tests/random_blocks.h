/* random_blocks.h - arrays of GGUF types with random codes and small scales,
 * whose f16 are finite. Any bytes are valid, but scales of 16 bits would
 * otherwise be infinite or of very different magnitudes. */
#ifndef LB_RANDOM_BLOCKS_H
#define LB_RANDOM_BLOCKS_H

#include <stdlib.h>
#include <string.h>

#include "lowbit_ext.h"

/* d, m: bytes of the f16 in a block; -1: none. */
static const struct {
    const char *format;
    int len, size, d, m;
} random_blocks_types[] = {
    {"q4_0", 32, 18, 0, -1},     {"q4_1", 32, 20, 0, 2},
    {"q5_0", 32, 22, 0, -1},     {"q5_1", 32, 24, 0, 2},
    {"q8_0", 32, 34, 0, -1},     {"q2_0", 64, 18, 0, -1},
    {"q1_0", 128, 18, 0, -1},    {"tq1_0", 256, 54, 52, -1},
    {"tq2_0", 256, 66, 64, -1},  {"q2_k", 256, 84, 80, 82},
    {"q3_k", 256, 110, 108, -1}, {"q4_k", 256, 144, 0, 2},
    {"q5_k", 256, 176, 0, 2},    {"q6_k", 256, 210, 208, -1},
    {"iq4_nl", 32, 18, 0, -1},   {"iq4_xs", 256, 136, 0, -1},
    {"iq2_s", 256, 82, 0, -1},   {"gguf_mxfp4", 32, 17, -1, -1},
};

static inline uint32_t random_blocks_draw(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* An array (rows, columns) of that format; NULL without an error: not listed.
 * Of tq1_0 and tq2_0 all codes are valid: -1, 0 and 1. */
static inline lb_array *random_blocks(lb_ctx *cx, const char *format,
                                      int64_t rows, int64_t columns,
                                      uint32_t *state)
{
    enum { TYPES = sizeof random_blocks_types / sizeof *random_blocks_types };
    static const char *const name = "blocks";
    int t = 0;
    while (t < TYPES && strcmp(random_blocks_types[t].format, format) != 0)
        t++;
    if (t == TYPES) return NULL;
    const int d = random_blocks_types[t].d, m = random_blocks_types[t].m;
    const int64_t len = random_blocks_types[t].len;
    const int64_t size = random_blocks_types[t].size, n = rows * columns / len;
    const bool ternary = strncmp(format, "tq", 2) == 0;
    uint8_t *raw = malloc((size_t)(n * size));
    if (!raw) return NULL;
    for (int64_t i = 0; i < n * size; i++) {
        const uint32_t x = random_blocks_draw(state);
        /* Codes 0 to 2 of two bits; the byte of five trits. */
        const uint32_t high = x >> 8 & 0x55, low = x & 0x55 & ~high;
        raw[i] = (uint8_t)(!ternary           ? x & 0xff
                           : format[2] == '2' ? high << 1 | low
                                              : (x % 243 * 256 + 242) / 243);
    }
    for (int64_t b = 0; b < n; b++) {
        const int at[] = {d, m};
        for (int k = 0; k < 2; k++) { /* 2^-8 to 2^-4 */
            const uint16_t h =
                (uint16_t)((7 + random_blocks_draw(state) % 4) << 10 |
                           random_blocks_draw(state) % 1024);
            if (at[k] >= 0) memcpy(raw + b * size + at[k], &h, sizeof h);
        }
        if (d < 0) /* a power of two */
            raw[b * size] = (uint8_t)(100 + random_blocks_draw(state) % 50);
    }
    lb_array *part =
        lb_from(cx, LB_U8, LB_SHAPE(rows, columns / len, size), raw);
    free(raw);
    const lb_quant_config c = {.format = format, .dtype = LB_F32};
    return lb_from_parts(cx, &c, LB_SHAPE(rows, columns), NULL, &name, &part,
                         1);
}

#endif
