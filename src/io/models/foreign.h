/* foreign.h - checkpoints that other programs have quantized: which method. */
#ifndef LB_FOREIGN_H
#define LB_FOREIGN_H

#include "io/layouts/entries.h"

/* Whether files of quant_method `method` are decoded here, by that layout
 * (lb_file_layout.name). */
bool lb_method_has_layout(const char *method, const char *layout);

/* Recognizes a method by the tensors that no layout has claimed. Returns its
 * name, and in *found a tensor that shows it; NULL: no quantized tensors. */
const char *lb_foreign_tensors(const lb_file *f, const lb_tensor **found);

#endif
