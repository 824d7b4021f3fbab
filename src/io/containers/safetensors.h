/* safetensors.h - one safetensors file, for those that come in several. */
#ifndef LB_SAFETENSORS_H
#define LB_SAFETENSORS_H

#include "io/containers/container.h"

/* What one file's header says. */
typedef struct lb_safetensors_list {
    lb_tensor *tensor; /* in the order of their bytes */
    int64_t n_tensors;
    lb_meta *meta;
    int64_t n_meta;
} lb_safetensors_list;

/* Checks the header of r->file[file] and lists it, in r's arena. */
bool lb_safetensors_read(lb_ctx *cx, lb_reader *r, int file,
                         lb_safetensors_list *list);

#endif
