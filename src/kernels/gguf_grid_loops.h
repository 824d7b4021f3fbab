/* gguf_grid_loops.h - the part of gguf_loops.h for IQ1, IQ2 and IQ3: a code
 * selects a point of a grid, 4 or 8 magnitudes at once, and signs come apart.
 * All are blocks of 256.
 */

/* Eight values: coordinates of 2 or 3 bits, magnitudes that follow from them,
 * and signs. The magnitudes of ggml's grids are almost on a line:
 *
 *   IQ2      8 25 43
 *   IQ3_XXS  4 12 20 28 36 44 52 62
 *   IQ3_S    1 3 5 7 9 11 13 15
 */
LOOP_FN void loop_point(uint32_t point, int bits, int least, int step, int last,
                        int more, uint32_t signs, float d, float *out)
{
    const loop_i8 at = {0, 1, 2, 3, 4, 5, 6, 7};
    const int mask = (1 << bits) - 1;
    const loop_i8 c = ((loop_i8){0} + (int)point) >> at * bits & mask;
    const loop_i8 magnitude = least + step * c - (c == last) * more;
    const loop_i8 sign = 1 - 2 * (((loop_i8){0} + (int)signs) >> at & 1);
    const loop_f8 w = d * __builtin_convertvector(magnitude, loop_f8) *
                      __builtin_convertvector(sign, loop_f8);
    memcpy(out, &w, sizeof w);
}

LOOP_FN void loop_point2(uint32_t point, uint32_t signs, float d, float *out)
{
    loop_point(point, 2, 8, 17, 2, 1, signs, d, out);
}

/* 7 bits of signs; the eighth makes their number even. */
LOOP_FN uint32_t loop_signs(uint32_t bits)
{
    return (bits & 127) | (uint32_t)__builtin_parity(bits & 127) << 7;
}

/* h d; for 32 values 4 bytes of points, and 4 times 7 signs and 4 bits of a
 * scale. */
LOOP_FN void loop_iq2_xxs(const uint8_t *restrict from, float *restrict out)
{
    const float d = loop_half(from);
    for (int s = 0; s < 8; s++) {
        const uint8_t *at = from + 2 + 8 * s;
        const uint32_t more = loop_u32(at + 4);
        const float e = d * (0.5f + (float)(more >> 28)) * 0.25f;
        for (int l = 0; l < 4; l++)
            loop_point2(lb_gguf_iq2_xxs[at[l]], loop_signs(more >> 7 * l), e,
                        out + 32 * s + 8 * l);
    }
}

/* h d, 32 times 9 bits of a point and 7 signs, 16 scales of 4 bits. */
LOOP_FN void loop_iq2_xs(const uint8_t *restrict from, float *restrict out)
{
    const float d = loop_half(from);
    for (int l = 0; l < 32; l++) {
        const uint32_t q = loop_u16(from + 2 + 2 * l);
        const int scale = from[66 + l / 4] >> l / 2 % 2 * 4 & 15;
        loop_point2(lb_gguf_iq2_xs[q & 511], loop_signs(q >> 9),
                    d * (0.5f + (float)scale) * 0.25f, out + 8 * l);
    }
}

/* h d, 32 points, 32 bytes of signs, 8 bytes of 2 more bits of points, 16
 * scales of 4 bits. */
LOOP_FN void loop_iq2_s(const uint8_t *restrict from, float *restrict out)
{
    const float d = loop_half(from);
    for (int l = 0; l < 32; l++) {
        const uint32_t high = from[66 + l / 4] >> l % 4 * 2 & 3;
        const int scale = from[74 + l / 4] >> l / 2 % 2 * 4 & 15;
        loop_point2(lb_gguf_iq2_s[from[2 + l] | high << 8], from[34 + l],
                    d * (0.5f + (float)scale) * 0.25f, out + 8 * l);
    }
}

/* h d, 64 points of 4 values, 8 times 4 times 7 signs and 4 bits of a scale. */
LOOP_FN void loop_iq3_xxs(const uint8_t *restrict from, float *restrict out)
{
    const float d = loop_half(from);
    for (int s = 0; s < 8; s++) {
        const uint8_t *at = from + 2 + 8 * s;
        const uint32_t more = loop_u32(from + 66 + 4 * s);
        const float e = d * (0.5f + (float)(more >> 28)) * 0.5f;
        for (int l = 0; l < 4; l++) {
            const uint32_t low = lb_gguf_iq3_xxs[at[2 * l]];
            const uint32_t high = lb_gguf_iq3_xxs[at[2 * l + 1]];
            loop_point(low | high << 12, 3, 4, 8, 7, 2,
                       loop_signs(more >> 7 * l), e, out + 32 * s + 8 * l);
        }
    }
}

/* h d, 64 points, 8 bytes of their ninth bits, 32 bytes of signs, 8 scales of 4
 * bits. */
LOOP_FN void loop_iq3_s(const uint8_t *restrict from, float *restrict out)
{
    const float d = loop_half(from);
    for (int l = 0; l < 32; l++) {
        const uint32_t ninth = (uint32_t)from[66 + l / 4] >> l % 4 * 2;
        const int scale = from[106 + l / 8] >> l / 4 % 2 * 4 & 15;
        const uint32_t low = lb_gguf_iq3_s[from[2 + 2 * l] | (ninth & 1) << 8];
        const uint32_t high =
            lb_gguf_iq3_s[from[3 + 2 * l] | (ninth >> 1 & 1) << 8];
        loop_point(low | high << 12, 3, 1, 2, 0, 0, from[74 + l],
                   d * (float)(1 + 2 * scale), out + 8 * l);
    }
}

/* Eight values -1, 0, 1, all moved by an eighth up or down. */
LOOP_FN void loop_trits8(uint32_t point, bool down, float d, float *out)
{
    const loop_i8 at = {0, 1, 2, 3, 4, 5, 6, 7};
    const loop_i8 trit = (((loop_i8){0} + (int)point) >> 2 * at & 3) - 1;
    const loop_f8 w = d * (__builtin_convertvector(trit, loop_f8) +
                           (down ? -0.125f : 0.125f));
    memcpy(out, &w, sizeof w);
}

/* h d, 32 points; for 32 values 4 times 3 more bits, a scale of 3 bits, and the
 * direction. */
LOOP_FN void loop_iq1_s(const uint8_t *restrict from, float *restrict out)
{
    const float d = loop_half(from);
    for (int l = 0; l < 32; l++) {
        const uint32_t more = loop_u16(from + 34 + l / 4 * 2);
        const uint32_t high = more >> l % 4 * 3 & 7;
        loop_trits8(lb_gguf_iq1[from[2 + l] | high << 8], more >> 15,
                    d * (float)(2 * (more >> 12 & 7) + 1), out + 8 * l);
    }
}

/* 32 points, 32 times 3 more bits and a direction, 16 scales of 3 bits in 4
 * times 16 bits, whose high 4 bits together are h d. */
LOOP_FN void loop_iq1_m(const uint8_t *restrict from, float *restrict out)
{
    const uint8_t *scale = from + 48;
    const uint8_t h[2] = {(uint8_t)(scale[1] >> 4 | (scale[3] & 0xf0)),
                          (uint8_t)(scale[5] >> 4 | (scale[7] & 0xf0))};
    const float d = loop_half(h);
    for (int l = 0; l < 32; l++) {
        const uint32_t more = from[32 + l / 2] >> l % 2 * 4;
        const uint32_t s = loop_u16(scale + l / 8 * 2) >> l / 2 % 4 * 3 & 7;
        loop_trits8(lb_gguf_iq1[from[l] | (more & 7) << 8], more >> 3 & 1,
                    d * (float)(2 * s + 1), out + 8 * l);
    }
}
