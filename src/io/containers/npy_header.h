/* npy_header.h - what stands before the numbers of an npy file.
 *
 *     "\x93NUMPY" | u8 major | u8 minor | u16 length (1.0) or u32 (2.0, 3.0) |
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n
 *
 * A literal of Python (python_literal.h), in Latin-1, or in UTF-8 since 3.0;
 * descr is what npy_dtype.h reads.
 *
 * numpy has no bf16: what ml_dtypes saves is '<V2', two bytes without meaning,
 * and is listed as '|V2'. Whoever knows better may say so.
 */
#ifndef LB_NPY_HEADER_H
#define LB_NPY_HEADER_H

#include "io/containers/container.h"

enum {
    LB_NPY_PREFIX = 12,     /* the longest before the literal */
    LB_NPY_LITERAL = 10000, /* numpy's own limit for one, in characters */
    LB_NPY_LITERAL_BYTES = 4 * LB_NPY_LITERAL /* in UTF-8 */
};
extern const lb_coding lb_npy_types[]; /* that are written */

bool lb_npy_probe(const uint8_t *head, size_t n);
/* From the first n <= LB_NPY_PREFIX bytes: where the literal begins and its
 * length, and whether it is UTF-8. f: for sentences, with who. */
bool lb_npy_prefix(lb_ctx *cx, const lb_infile *f, const char *who,
                   const uint8_t *head, size_t n, size_t *begin, size_t *length,
                   int *major);
/* Fills type, dtype, swap, fortran, rank, dim and size. */
bool lb_npy_parse(lb_ctx *cx, const lb_infile *f, const char *who,
                  lb_arena *arena, const uint8_t *literal, size_t n, int major,
                  lb_tensor *t);
/* Whether numpy could have it, or an error; the whole header, as it writes it.
 */
bool lb_npy_suits(lb_ctx *cx, const lb_tensor *t);
void lb_npy_compose(lb_bytes *b, const lb_tensor *t);

#endif
