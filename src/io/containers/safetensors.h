/* safetensors.h - single safetensors files, for models of several. */
#ifndef LB_SAFETENSORS_H
#define LB_SAFETENSORS_H

#include "io/containers/container.h"

/* Content of one file's header. */
typedef struct lb_safetensors_list {
    lb_tensor *tensor; /* in file order */
    int64_t n_tensors;
    lb_meta *meta;
    int64_t n_meta;
} lb_safetensors_list;

/* Checks the header of r->file[file] and lists it, in r's arena. */
bool lb_safetensors_read(lb_ctx *cx, lb_reader *r, int file,
                         lb_safetensors_list *list);

/* The same for a header of n bytes at an offset of f, of a file with size bytes
 * of data; tensors begin at their offset in the data. */
bool lb_safetensors_parse(lb_ctx *cx, lb_reader *r, lb_infile *f,
                          uint64_t offset, uint64_t n, uint64_t size,
                          lb_safetensors_list *list);
/* Merges the metadata of several files; of duplicate keys, the first file's
 * value is used. */
bool lb_safetensors_join_meta(lb_ctx *cx, lb_arena *arena,
                              const lb_safetensors_list *list, uint64_t n_files,
                              lb_meta **meta, int64_t *n);

#endif
