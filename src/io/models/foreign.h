/* foreign.h - which program has quantized a checkpoint, and how. */
#ifndef LB_FOREIGN_H
#define LB_FOREIGN_H

#include "io/layouts/entries.h"

/* Whether layout, as lb_file_layout.name, stores what quant_method method is
 * the name of: its files are decoded here. */
bool lb_method_has_layout(const char *method, const char *layout);

/* By the tensors that no layout has claimed: the method's name, and *found, a
 * tensor that shows it; NULL: they are ordinary ones. */
const char *lb_foreign_tensors(const lb_file *f, const lb_tensor **found);

#endif
