/* lowbit_inspect.h - looking at arrays: as text, as numbers of a chosen type,
 * and how they are quantized.
 *
 * Part of lowbit.h, which includes it.
 */
#ifndef LOWBIT_INSPECT_H
#define LOWBIT_INSPECT_H

#include "lowbit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- text --------------------------------------------------------------- */

/* How elements are printed; zero means numpy's default. */
typedef struct lb_print_options {
    size_t struct_size;
    int precision;     /* most digits after the point; 0: 8, -1: none */
    int64_t threshold; /* arrays of more elements are summarized; 0: 1000,
                        * -1: none are */
    int edge;          /* elements shown at each end of an axis of a summarized
                        * array; 0: 3 */
    int line_width;    /* lines are broken before this column; 0: 75 */
    bool suppress;     /* no exponents because of small numbers */
    bool no_header;    /* elements only */
} lb_print_options;

/* Writes format, dtype, shape and bytes of storage, and mesh and spec if a is
 * sharded, as one line without a newline: "nf4 f32(4096,4096), 9437184 bytes".
 * Like snprintf, writes at most size bytes including the final 0, and returns
 * the length of the whole text; buf may be NULL if size is 0. */
LB_API int64_t lb_describe(const lb_array *a, char *buf, size_t size);
/* Writes that line and, below it, the elements as numpy's array2string does
 * (16-bit floats with as many digits as identify them in their dtype). Returns
 * the length as lb_describe does, or -1 on error. Of a summarized array only
 * the elements shown are decoded. All ranks of a sharded array must call it. An
 * array of a function that is being compiled has no elements yet: only the
 * first line is written. */
LB_API int64_t lb_to_string(lb_ctx *cx, lb_array *a, char *buf, size_t size);
LB_API int64_t lb_to_string_with(lb_ctx *cx, lb_array *a,
                                 const lb_print_options *options, char *buf,
                                 size_t size);

/* ---- elements ----------------------------------------------------------- */

/* Copies all elements, row-major, converted as lb_convert does, to dst; n must
 * be the number of elements. A packed array is decoded to dst, without a dense
 * copy. On failure dst may be partly written. */
LB_API bool lb_read_f32(lb_ctx *cx, lb_array *a, float *dst, int64_t n);
LB_API bool lb_read_f64(lb_ctx *cx, lb_array *a, double *dst, int64_t n);
LB_API bool lb_read_i64(lb_ctx *cx, lb_array *a, int64_t *dst, int64_t n);

/* ---- configuration ------------------------------------------------------ */

/* Writes to config how lb_quantize has to be called on a's values to obtain an
 * array with a's layout: format, dtype, axes, block size, scale, its meaning
 * and so on. Where the layout does not show which of several settings was used
 * (compat, threshold, reference, clip_gradient), it is the one that a was made
 * with; for arrays from files, the default. a may be a view, sliced, transposed
 * or reshaped. If no configuration yields its layout (blocks along another axis
 * than the last, a view of parts of blocks, decoding tables of its own ...), or
 * a is dense, returns false with the reason. For a sharded array the
 * configuration is that of this rank's slice. config->format is valid as long
 * as the format. */
LB_API bool lb_config_of(lb_ctx *cx, lb_array *a, lb_quant_config *config);

#ifdef __cplusplus
}
#endif
#endif
