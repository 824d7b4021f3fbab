/* test_affine_decode.c - law 4: streams of codes of 1 to 8 bits at every level,
 * from every position, in guarded memory, against a model that reads bit by
 * bit; and packing as the inverse. */
/* ctest: simde */
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "check.h"
#include "core/core.h"
#include "fenced.h"
#include "kernels/affine_decode.h"

enum { MOST = 200, BYTES = MOST * 8 / 8 + 8 };

static uint32_t state = 1;
static uint8_t next_byte(void)
{
    state = state * 1664525 + 1013904223;
    return (uint8_t)(state >> 24);
}

static int model(int bits, const uint8_t *row, int64_t i)
{
    int v = 0;
    for (int b = 0; b < bits; b++) {
        const int64_t at = i * bits + b;
        v |= (row[at / 8] >> at % 8 & 1) << b;
    }
    return v;
}

/* The row ends where the guard page begins. */
static void codes(const lb_affine_kernel *k, int bits, int64_t at, int64_t n)
{
    const size_t size = (size_t)((at + n) * bits + 7) / 8;
    fenced in = fenced_open(size), out = fenced_open((size_t)n);
    uint8_t *row = fenced_end(&in, size), *to = fenced_end(&out, (size_t)n);
    for (size_t i = 0; i < size; i++)
        row[i] = next_byte();
    k->codes(bits, row, at, n, to);
    bool same = true;
    for (int64_t i = 0; i < n; i++)
        same = same && to[i] == model(bits, row, at + i);
    if (check_fails(same))
        fprintf(stderr, "%s: %d bits, %lld from %lld\n", k->name, bits,
                (long long)n, (long long)at);
    fenced_close(&in);
    fenced_close(&out);
}

static void values(const lb_affine_kernel *k, int64_t n, int64_t head,
                   int64_t each)
{
    uint8_t code[MOST];
    float s[MOST + 1], zero[MOST + 1], bias[MOST + 1];
    fenced mem = fenced_open((size_t)n * sizeof(float));
    float *out = fenced_end(&mem, (size_t)n * sizeof(float));
    for (int i = 0; i <= MOST; i++) {
        s[i] = (float)(next_byte() - 128) / 7;
        zero[i] = (float)next_byte();
        bias[i] = (float)next_byte() / 3;
    }
    for (int64_t i = 0; i < n; i++)
        code[i] = next_byte();
    const lb_spans by = {s, head, each}, add = {bias, head, each};
    for (int some = 0; some < 2; some++) {
        k->scale(code, n, by, some ? zero : NULL, 8, out);
        if (some) k->add(n, add, out);
        bool same = true;
        for (int64_t i = 0; i < n; i++) {
            const int64_t g = i < head ? 0 : 1 + (i - head) / each;
            float w = s[g] * ((float)code[i] - (some ? zero[g] : 8));
            if (some) w += bias[g];
            same = same && memcmp(&w, &out[i], sizeof w) == 0;
        }
        CHECK(same);
    }
    fenced_close(&mem);
}

static void every_length(const lb_affine_kernel *k)
{
    for (int bits = 1; bits <= 8; bits++)
        for (int64_t at = 0; at < 17; at++)
            for (int64_t n = 0; n < MOST; n += n < 40 ? 1 : 13)
                codes(k, bits, at, n);
    for (int64_t n = 1; n < MOST; n += 7)
        for (int64_t each = 1; each < 70; each += 11)
            values(k, n, 1 + each / 2, each);
}

static void packing(void)
{
    uint8_t code[MOST], bytes[BYTES];
    for (int bits = 1; bits <= 8; bits++)
        for (int64_t n = 1; n < MOST; n++) {
            for (int64_t i = 0; i < n; i++)
                code[i] = (uint8_t)(next_byte() & ((1 << bits) - 1));
            const int64_t size = (n * bits + 7) / 8;
            memset(bytes, 0x5a, sizeof bytes);
            lb_affine_pack(bits, code, n, bytes);
            bool same = bytes[size] == 0x5a;
            for (int64_t i = 0; i < n; i++)
                same = same && model(bits, bytes, i) == code[i];
            for (int64_t b = n * bits; b < 8 * size; b++)
                same = same && !(bytes[b / 8] >> b % 8 & 1);
            CHECK(same);
        }
}

int main(void)
{
    for (int level = LB_LEVEL_REF; level <= LB_LEVEL_AMX; level++) {
        if (!lb_level_available((lb_level)level)) continue;
        const lb_cpu cpu = {.level = (lb_level)level};
        every_length(lb_affine_kernel_for(&cpu));
    }
    packing();
    return check_report("affine decode");
}
