/* outfile.h - a file to be written, whole or not at all.
 *
 * Bytes go to PATH.partial, which takes PATH's name when all are there and on
 * the disk. Until then, and whatever goes wrong, what stood at PATH stays. If
 * PATH is a link, it stays one, and all this holds for what it leads to; one
 * that leads nowhere is replaced itself.
 */
#ifndef LB_OUTFILE_H
#define LB_OUTFILE_H

#include "io/util/infile.h"

enum { LB_RECORD = 80 };

/* What a partial file says about itself, behind its bytes, so that a run that
 * was killed can be taken up: which job it is of, and a record for each piece
 * of work, whose first byte is not 0 once its bytes are in the file. It is cut
 * off when the file gets its name. */
typedef struct lb_journal {
    bool resume;     /* take up what is there, if it is of the same job */
    uint64_t job;    /* all that the bytes depend on, but for the header */
    int64_t n;       /* records */
    uint8_t *record; /* n * LB_RECORD bytes; zeros, and then what is there */
} lb_journal;

typedef struct lb_outfile {
    lb_heap *heap;
    size_t got;  /* of this block */
    uint64_t at; /* bytes written so far */
    int fd;
    lb_journal *journal; /* the caller's; NULL: none */
    uint64_t total;      /* bytes of the file, without the journal; 0: not
                          * known */
    uint64_t loose;      /* bytes patched since it was last synced */
    int64_t lo, hi;      /* records that are not in the file yet */
    bool failed;         /* a write went wrong: it cannot be committed */
    bool shared;         /* others write to it, too */
    bool joined;         /* .. and one of them gives it its name */
    const char *path;    /* behind this struct, as is the next */
    char *partial;
} lb_outfile;

/* What a link leads to, in real, which has PATH_MAX bytes; or path, if it is
 * none or leads nowhere. */
const char *lb_outfile_place(const char *path, char *real);
/* Whether something may be made at path, or there is a sentence why not: for
 * who thinks for long before it does. */
bool lb_outfile_may_make(lb_ctx *cx, const char *path);
/* Refuses a path that is one of n inputs, by whatever name: they are read
 * while it is written. An old PATH.partial is overwritten. size: bytes to
 * come, if known, which must be free on the disk; else 0. NULL and an error. */
lb_outfile *lb_outfile_open(lb_ctx *cx, const char *path,
                            lb_infile *const *input, int n, uint64_t size);
/* The same for a file of known size, whose bytes come in any order by
 * lb_outfile_patch: it has that size at once. journal may be NULL, and else
 * must stay; job tells its jobs apart, besides journal->job. Another process
 * that is writing the same file is an error. */
lb_outfile *lb_outfile_open_sized(lb_ctx *cx, const char *path,
                                  lb_infile *const *input, int n, uint64_t size,
                                  lb_journal *journal, uint64_t job);
/* One that another rank has opened so, to write some of its bytes; that is the
 * one to close it with commit, after all others have. */
lb_outfile *lb_outfile_join(lb_ctx *cx, const char *path, uint64_t size,
                            lb_journal *journal, uint64_t job);
/* Record i, of LB_RECORD bytes: what it stands for is in the file, and, if
 * sync, will be on the disk before it is. */
bool lb_outfile_note(lb_ctx *cx, lb_outfile *o, int64_t i, const void *record,
                     bool sync);
/* n bytes at the end. */
bool lb_outfile_write(lb_ctx *cx, lb_outfile *o, const void *from, size_t n);
/* n bytes over others at offset, which were written before. */
bool lb_outfile_patch(lb_ctx *cx, lb_outfile *o, uint64_t offset,
                      const void *from, size_t n);
/* Gives it its name at once, to be written to under that: for files of a
 * directory that has not got its own yet. */
bool lb_outfile_publish(lb_ctx *cx, lb_outfile *o);
/* What was written, again: settle first, which has it come from the disk, as
 * far as the system can be told; after waiting for that, if sync. */
bool lb_outfile_settle(lb_ctx *cx, lb_outfile *o, bool sync);
bool lb_outfile_read(lb_ctx *cx, lb_outfile *o, uint64_t offset, void *to,
                     size_t n);
/* Ends it: commit gives it its name, after it is on the disk if sync; else, or
 * if something went wrong before, the partial file is removed. True if there
 * now is a new file at its path, as was asked. NULL is fine. */
bool lb_outfile_close(lb_ctx *cx, lb_outfile *o, bool commit, bool sync);

#endif
