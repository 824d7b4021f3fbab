/* mesh_arrays.h - sharding specs for arrays of files. */
#ifndef LB_MESH_ARRAYS_H
#define LB_MESH_ARRAYS_H

#include "io/arrays/slices.h"
#include "lowbit_mesh.h"

/* Parses a spec for an array of a file: like lb_spec_parse, but no slice may
 * begin or end inside a block. */
bool lb_group_spec(lb_ctx *cx, const lb_grid *grid, lb_file *f, lb_group *g,
                   const char *text, lb_spec_report *report, lb_spec *spec);

/* Rules from a text file; returns false if file is NULL. */
bool lb_rules_take(lb_ctx *cx, lb_rules *r, lb_infile *f);

#endif
