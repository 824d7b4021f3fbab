/* npy_header.h - headers of npy files.
 *
 *     "\x93NUMPY" | u8 major | u8 minor | u16 length (1.0) or u32 (2.0, 3.0) |
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n
 *
 * The header is a Python literal (python_literal.h), in Latin-1, or in UTF-8
 * since 3.0; descr is parsed by npy_dtype.h.
 *
 * numpy has no bf16: ml_dtypes saves it as '<V2', two opaque bytes, which is
 * listed as '|V2'. Callers may interpret them.
 */
#ifndef LB_NPY_HEADER_H
#define LB_NPY_HEADER_H

#include "io/containers/container.h"

enum {
    LB_NPY_PREFIX = 12,     /* maximum length before the literal */
    LB_NPY_LITERAL = 10000, /* the limit of numpy, in characters */
    LB_NPY_LITERAL_BYTES = 4 * LB_NPY_LITERAL /* in UTF-8 */
};
extern const lb_coding lb_npy_types[]; /* for writing */

bool lb_npy_probe(const uint8_t *head, size_t n);
/* From the first n <= LB_NPY_PREFIX bytes: position and length of the literal,
 * and whether it is UTF-8. f and who are used in messages. */
bool lb_npy_prefix(lb_ctx *cx, const lb_infile *f, const char *who,
                   const uint8_t *head, size_t n, size_t *begin, size_t *length,
                   int *major);
/* Sets type, dtype, swap, fortran, rank, dim and size. */
bool lb_npy_parse(lb_ctx *cx, const lb_infile *f, const char *who,
                  lb_arena *arena, const uint8_t *literal, size_t n, int major,
                  lb_tensor *t);
/* lb_npy_check: whether numpy supports the tensor, or an error. lb_npy_compose:
 * the whole header, as numpy writes it.
 */
bool lb_npy_suits(lb_ctx *cx, const lb_tensor *t);
void lb_npy_compose(lb_bytes *b, const lb_tensor *t);

#endif
