/* places.h - output paths of jobs, from the command line. */
#ifndef PLACES_H
#define PLACES_H

#include <limits.h>

#include "verb.h"

/* The kind of file that a name's extension stands for; NULL: none. */
const char *place_kind(const char *path);
/* Whether --output is a directory: it exists as one, ends in a slash, or SRC is
 * a directory and --output has no extension of a file. Without --output (in a
 * dry run), whether SRC is a directory. */
bool place_is_directory(const arguments *a);
/* Whether --output is given (a dry run may lack it) and does not exist or may
 * be replaced. what: the verb. Prints an error otherwise. */
bool place_is_free(const arguments *a, const char *what);
/* The partial output of an interrupted job that writes to `to`, and its bytes
 * on the disk. False: there is none. */
bool place_partial(const char *to, char path[PATH_MAX], uint64_t *nbytes);
/* Bytes on the disk of a file or directory. A partial file has its final size
 * from the start, but is sparse. */
uint64_t place_stored(const char *path);
/* Whether the files of --report are neither read nor written by the job: none
 * is an operand, a recipe, the output, a file in one of these directories,
 * another --report, or a dangling link. Prints an error otherwise. */
bool place_of_reports(const arguments *a);

/* container_only.c: whether the operand, written as a file of that kind, can be
 * loaded by other programs, or --container-only is given. False after a
 * message. */
bool place_is_model(const arguments *a, lb_ctx *cx, const char *kind);

#endif
