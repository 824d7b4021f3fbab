/* mesh_arrays.h - specs for arrays of files. */
#ifndef LB_MESH_ARRAYS_H
#define LB_MESH_ARRAYS_H

#include "io/arrays/slices.h"
#include "lowbit_mesh.h"

/* The spec of that text for an array of a file: as lb_spec_parse, and no slice
 * may begin or end inside a block. */
bool lb_group_spec(lb_ctx *cx, const lb_grid *grid, lb_file *f, lb_group *g,
                   const char *text, lb_spec_report *report, lb_spec *spec);

/* The rules of a file of text; NULL is false. */
bool lb_rules_take(lb_ctx *cx, lb_rules *r, lb_infile *f);

#endif
