/* other_files.h - the files of a model directory besides its weights.
 *
 * A job writes new weights and copies everything else: tokenizer, configuration
 * and subdirectories with all they contain (1_Pooling/, 2_Dense/, onnx/).
 * Symbolic links to files are copied as files; links to directories, sockets
 * and the like are not copied. Skipped everywhere: .git, .cache (download
 * records of huggingface_hub), the job's own note and *.partial. Skipped at the
 * top only: files of weights, in any form (lb_is_weights).
 */
#ifndef LB_OTHER_FILES_H
#define LB_OTHER_FILES_H

#include "io/util/arena.h"
#include "io/util/outfile.h"

#define LB_JOB_NOTE ".lowbit-job"

typedef struct lb_other_files {
    lb_ctx *cx;
    lb_arena *arena;  /* for paths */
    const char *from; /* the model directory that is read; NULL: none */
    const char *skip; /* a directory that is not copied if it is inside from:
                       * the output; or NULL */
    bool no_sync;
    /* Writes config.json of the top directory in place of a copy; NULL: it is
     * copied. */
    bool (*config)(void *user, lb_infile *f);
    void *user;
} lb_other_files;

/* Whether a file of that name holds weights: safetensors, GGUF, pickles ... */
bool lb_is_weights(const char *name);
/* Copies the other files of o->from to a directory that exists; to NULL: only
 * checks that they can be read, and calls o->config. */
bool lb_other_files_copy(const lb_other_files *o, const char *to);
/* Their bytes. */
bool lb_other_files_size(const lb_other_files *o, uint64_t *bytes);
/* Whether a directory holds nothing but weights and files that o->from has as
 * well: only then may it be replaced. False and an error. */
bool lb_other_files_only(const lb_other_files *o, const char *dir);
/* Removes everything in a directory, without following links. */
bool lb_other_files_remove(const lb_other_files *o, const char *dir);
/* DIR/NAME from the arena; NULL and an error. */
char *lb_path_in(lb_ctx *cx, lb_arena *arena, const char *dir,
                 const char *name);

#endif
