/* sha256.c - SHA-256 (FIPS 180-4) of a buffer. */
#include <stdio.h>
#include <string.h>

#include "conformance.h"

/* The first 32 bits of the fractional parts of the cube roots of the first 64
 * primes. */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotated(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void block(uint32_t h[8], const uint8_t *p)
{
    uint32_t w[64];
    uint32_t v[8];
    for (int i = 0; i < 16; i++) {
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    }
    for (int i = 16; i < 64; i++) {
        const uint32_t a = w[i - 15];
        const uint32_t b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] +
               (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) +
               (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
    }
    memcpy(v, h, sizeof(v));
    for (int i = 0; i < 64; i++) {
        const uint32_t s1 =
            rotated(v[4], 6) ^ rotated(v[4], 11) ^ rotated(v[4], 25);
        const uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        const uint32_t t1 = v[7] + s1 + choice + K[i] + w[i];
        const uint32_t s0 =
            rotated(v[0], 2) ^ rotated(v[0], 13) ^ rotated(v[0], 22);
        const uint32_t most = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, 7 * sizeof(*v));
        v[4] += t1;
        v[0] = t1 + s0 + most;
    }
    for (int i = 0; i < 8; i++) {
        h[i] += v[i];
    }
}

text sha256_text(const void *data, size_t size)
{
    uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint8_t last[128] = {0};
    const uint8_t *p = data;
    size_t n = size;
    for (; n >= 64; n -= 64, p += 64) {
        block(h, p);
    }
    if (n) memcpy(last, p, n);
    last[n] = 0x80;
    const size_t end = n < 56 ? 64 : 128;
    for (size_t i = 0; i < 8; i++) {
        last[end - 1 - i] = (uint8_t)((uint64_t)size * 8 >> 8 * i);
    }
    block(h, last);
    if (end == 128) block(h, last + 64);
    text t = {""};
    for (int i = 0; i < 8; i++) {
        snprintf(t.s + 8 * i, sizeof(t.s) - 8 * (size_t)i, "%08x", h[i]);
    }
    return t;
}
