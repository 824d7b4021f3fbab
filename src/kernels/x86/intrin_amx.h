/* intrin_amx.h - the intrinsics of AMX tiles, or a model of them.
 *
 * With LB_SIMDE or LB_AMX_MODEL defined, tiles are arrays of each thread, so
 * that tests reach the level amx on every machine. The model does what Intel's
 * manual says for palette 1, and traps where the hardware faults: tiles that
 * are not configured, or whose shapes do not fit together.
 */
#ifndef LB_INTRIN_AMX_H
#define LB_INTRIN_AMX_H

#include "kernels/x86/intrin.h"

enum { LB_TILES = 8, LB_TILE_ROWS = 16, LB_TILE_BYTES = 64 };

/* The operand of ldtilecfg. */
typedef struct {
    uint8_t palette, start_row, zero[14];
    uint16_t bytes[16]; /* of a row of each tile */
    uint8_t rows[16];
} lb_tile_config;

/* gcc 12 takes _tile_loadconfig to read 8 bytes, and _tile_loadd no memory at
 * all: stores before either must not sink past it. */
#define LB_TILE_BARRIER() __asm__ volatile("" : : : "memory")

#if defined(LB_SIMDE) || defined(LB_AMX_MODEL)
#include <string.h>

static _Thread_local struct {
    lb_tile_config is; /* all 0: no tiles can be used */
    uint8_t row[LB_TILES][LB_TILE_ROWS][LB_TILE_BYTES];
} lb_tile_model;

LB_INLINE void lb_model_check(bool fine)
{
    if (!fine) __builtin_trap();
}

LB_INLINE void lb_model_loadconfig(const void *from)
{
    memset(&lb_tile_model, 0, sizeof lb_tile_model);
    lb_tile_config *const c = &lb_tile_model.is;
    memcpy(c, from, sizeof *c);
    lb_model_check(c->palette == 1 && c->start_row == 0);
    for (int t = 0; t < LB_TILES; t++)
        lb_model_check(c->rows[t] <= LB_TILE_ROWS &&
                       c->bytes[t] <= LB_TILE_BYTES && c->bytes[t] % 4 == 0);
}

LB_INLINE void lb_model_release(void)
{
    memset(&lb_tile_model, 0, sizeof lb_tile_model);
}

LB_INLINE void lb_model_zero(int t)
{
    lb_model_check(lb_tile_model.is.palette == 1 && lb_tile_model.is.rows[t]);
    memset(lb_tile_model.row[t], 0, sizeof lb_tile_model.row[t]);
}

LB_INLINE void lb_model_loadd(int t, const void *from, int64_t step)
{
    lb_model_zero(t);
    for (int r = 0; r < lb_tile_model.is.rows[t]; r++)
        memcpy(lb_tile_model.row[t][r], (const char *)from + r * step,
               lb_tile_model.is.bytes[t]);
}

LB_INLINE void lb_model_stored(int t, void *to, int64_t step)
{
    lb_model_check(lb_tile_model.is.palette == 1 && lb_tile_model.is.rows[t]);
    for (int r = 0; r < lb_tile_model.is.rows[t]; r++)
        memcpy((char *)to + r * step, lb_tile_model.row[t][r],
               lb_tile_model.is.bytes[t]);
}

LB_INLINE int lb_signed_byte(uint8_t byte)
{
    return byte < 128 ? byte : byte - 256;
}

/* to += a b, bytes of a with signs, those of b as said; sums modulo 2^32. */
LB_INLINE void lb_model_dp(int to, int a, int b, bool with_sign)
{
    const lb_tile_config *const is = &lb_tile_model.is;
    lb_model_check(is->palette == 1 && is->rows[a] == is->rows[to] &&
                   is->bytes[b] == is->bytes[to] &&
                   is->rows[b] == is->bytes[a] / 4 && is->rows[to]);
    for (int m = 0; m < is->rows[to]; m++)
        for (int n = 0; n < is->bytes[to] / 4; n++) {
            uint32_t sum;
            memcpy(&sum, lb_tile_model.row[to][m] + n * 4, sizeof sum);
            for (int k = 0; k < is->bytes[a]; k++) {
                const uint8_t x = lb_tile_model.row[a][m][k];
                const uint8_t y = lb_tile_model.row[b][k / 4][n * 4 + k % 4];
                sum += (uint32_t)(lb_signed_byte(x) *
                                  (with_sign ? lb_signed_byte(y) : y));
            }
            memcpy(lb_tile_model.row[to][m] + n * 4, &sum, sizeof sum);
        }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbssd
#undef _tile_dpbsud
#define _tile_loadconfig(p)      lb_model_loadconfig(p)
#define _tile_release()          lb_model_release()
#define _tile_zero(t)            lb_model_zero(t)
#define _tile_loadd(t, p, step)  lb_model_loadd(t, p, step)
#define _tile_stored(t, p, step) lb_model_stored(t, p, step)
#define _tile_dpbssd(to, a, b)   lb_model_dp(to, a, b, true)
#define _tile_dpbsud(to, a, b)   lb_model_dp(to, a, b, false)
#endif
#endif
