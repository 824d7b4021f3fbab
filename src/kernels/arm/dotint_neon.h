/* dotint_neon.h - what brings codes into panels for NEON. */
#ifndef LB_DOTINT_NEON_H
#define LB_DOTINT_NEON_H

#include "kernels/dotint.h"

/* Numbers to a vector, which panels have in the order of the depth. */
enum { LB_DOTINT_NEON_LANES = 8 };

/* See lb_dotint. */
void lb_dotint_unpack_neon(int bits, bool high_first, const int8_t *number,
                           int64_t n, const uint8_t *codes, int8_t *to);
void lb_dotint_turn_neon(const int8_t *const *line, int64_t n, int8_t *to,
                         int64_t ld);
void lb_dotint_pack_neon(const lb_dotint_codes *w, int64_t j, int16_t *to,
                         int64_t apart);

#endif
