/* npz_write.h - writes npz files like numpy.savez: functions of lb_container.
 */
#ifndef LB_NPZ_WRITE_H
#define LB_NPZ_WRITE_H

#include "io/containers/container.h"

/* The member that holds metadata (meta_texts.h). numpy lists it as well, as an
 * array of bytes. */
#define LB_NPZ_METADATA "__metadata__.json"

bool lb_npz_compose(lb_ctx *cx, lb_writer *w);
bool lb_npz_before(lb_ctx *cx, lb_writer *w, int64_t i);
void lb_npz_put(lb_writer *w, const void *bytes, size_t n);
bool lb_npz_after(lb_ctx *cx, lb_writer *w, int64_t i);
bool lb_npz_finish(lb_ctx *cx, lb_writer *w);

#endif
