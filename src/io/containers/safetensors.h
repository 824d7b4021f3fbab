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

/* The same for a header of n bytes at offset of f, of a file with size bytes of
 * data; tensors begin where they do in the data. */
bool lb_safetensors_parse(lb_ctx *cx, lb_reader *r, lb_infile *f,
                          uint64_t offset, uint64_t n, uint64_t size,
                          lb_safetensors_list *list);
/* Metadata of several files: all of them; where a key is in several, the first
 * file's. */
bool lb_safetensors_join_meta(lb_ctx *cx, lb_arena *arena,
                              const lb_safetensors_list *list, uint64_t n_files,
                              lb_meta **meta, int64_t *n);

#endif
