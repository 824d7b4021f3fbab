/* magnitude.c - see magnitude.h. Loops that compilers vectorize. */
#include "matmul/magnitude.h"

#include <math.h>
#include <string.h>

enum { PARTS = 8 };

/* Magnitudes of n <= PARTS numbers, which compare as their bits do. */
static inline void take_sizes(int64_t n, const float *x, int32_t *most,
                              float *part)
{
    for (int64_t i = 0; i < n; i++) {
        const float size = fabsf(x[i]);
        int32_t bits;
        memcpy(&bits, &size, sizeof bits);
        most[i] = bits > most[i] ? bits : most[i];
        part[i] += size;
    }
}

float lb_largest_and_sum(int64_t n, const float *x, float *sum)
{
    int32_t most[PARTS] = {0};
    float part[PARTS] = {0}, largest;
    int64_t k = 0;
    for (; k + PARTS <= n; k += PARTS)
        take_sizes(PARTS, x + k, most, part);
    take_sizes(n - k, x + k, most, part);
    *sum = 0;
    for (int i = 0; i < PARTS; i++) {
        most[0] = most[i] > most[0] ? most[i] : most[0];
        *sum += part[i];
    }
    memcpy(&largest, most, sizeof largest);
    return largest;
}
