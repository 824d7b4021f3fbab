/* outfile.h - atomic file output.
 *
 * Bytes are written to PATH.partial, which is renamed to PATH once it is
 * complete and synced. Until then, and after any error, PATH is unchanged. If
 * PATH is a symbolic link, the link is kept and its target is replaced; a
 * dangling link is replaced itself.
 *
 * A file that cannot be resumed has no name until it is complete, if the file
 * system supports that: a killed process leaves nothing (see name_file.h).
 */
#ifndef LB_OUTFILE_H
#define LB_OUTFILE_H

#include <sys/stat.h>

#include "io/util/infile.h"

enum { LB_RECORD = 80 };

/* Journal at the end of a partial file, so that an interrupted run can be
 * resumed: the job that wrote it, and one record per item of work. The first
 * byte of a record is nonzero once the bytes of its item are in the file. The
 * journal is truncated before the file is renamed. */
typedef struct lb_journal {
    bool resume;     /* continue an existing partial file of the same job */
    uint64_t job;    /* hash of everything that determines the bytes, except
                      * the header */
    int64_t n;       /* number of records */
    uint8_t *record; /* n * LB_RECORD bytes: zeros, or what was read back */
    bool same;       /* set on opening: the partial file is of the same job */
    uint64_t discarded; /* ... and its bytes on the disk if it is not continued;
                         * 0: there was none */
} lb_journal;

typedef struct lb_outfile {
    lb_heap *heap;
    size_t got;  /* allocated size of this block */
    uint64_t at; /* bytes written so far */
    int fd;
    lb_journal *journal; /* owned by the caller; NULL: none */
    uint64_t total;      /* size of the file without the journal; 0: unknown */
    uint64_t loose;      /* bytes patched since the last sync */
    int64_t lo, hi;      /* range of records that are not in the file yet */
    bool failed;         /* a write failed: it cannot be committed */
    bool unnamed;        /* it has no name yet */
    bool shared;         /* several ranks write it */
    bool joined;      /* opened by lb_outfile_join: another rank renames it */
    const char *path; /* stored behind this struct, like partial */
    char *partial;
} lb_outfile;

/* The target of a symbolic link, in real, which has PATH_MAX bytes; or path, if
 * it is not a link or the link is dangling. */
const char *lb_outfile_place(const char *path, char *real);
/* Whether path can be written: the directory exists and is writable, neither
 * path nor its partial file is one of n inputs or something other than a
 * regular file, and no other process is writing it. False and an error. */
bool lb_outfile_check(lb_ctx *cx, const char *path, lb_infile *const *input,
                      int n);
/* Whether the parent directory of path is writable. False and an error. */
bool lb_outfile_check_parent(lb_ctx *cx, const char *path);
/* Whether size bytes fit on the file system of path, counting as free those
 * that its partial file already has, and so many other blocks of 512 bytes.
 * False and an error. */
bool lb_outfile_check_room(lb_ctx *cx, const char *path, uint64_t size,
                           uint64_t blocks);
/* Bytes of a journal with n records, which a partial file has in addition. */
uint64_t lb_outfile_journal_size(int64_t n);
/* Bytes of a file that are on the disk: a partial file has its final size from
 * the start, but is sparse. */
uint64_t lb_outfile_stored(const struct stat *st);
/* Opens PATH.partial for sequential output, truncating an existing one. Refuses
 * a path that is one of n inputs, under any name. size: expected size, which
 * must be free on the file system; 0: unknown. NULL and an error. */
lb_outfile *lb_outfile_open(lb_ctx *cx, const char *path,
                            lb_infile *const *input, int n, uint64_t size);
/* The same for a file of known size, written in any order by lb_outfile_patch:
 * the partial file has that size from the start. journal may be NULL, and must
 * otherwise outlive the file; job identifies the job together with
 * journal->job. It is an error if another process is writing the same file. */
lb_outfile *lb_outfile_open_sized(lb_ctx *cx, const char *path,
                                  lb_infile *const *input, int n, uint64_t size,
                                  lb_journal *journal, uint64_t job);
/* The same as lb_outfile_open, or if sized as lb_outfile_open_sized without a
 * journal, for a file without a name. Of several processes that write the same
 * file, the last one replaces it. */
lb_outfile *lb_outfile_open_unnamed(lb_ctx *cx, const char *path,
                                    lb_infile *const *input, int n,
                                    uint64_t size, bool sized);
/* Joins a file that another rank has opened so, to write part of its bytes. The
 * rank that opened it commits it, after all others have closed it. */
lb_outfile *lb_outfile_join(lb_ctx *cx, const char *path, uint64_t size,
                            lb_journal *journal, uint64_t job);
/* Sets record i, of LB_RECORD bytes: its bytes are in the file. With sync they
 * are on the disk before the record is. */
bool lb_outfile_note(lb_ctx *cx, lb_outfile *o, int64_t i, const void *record,
                     bool sync);
/* Appends n bytes. */
bool lb_outfile_write(lb_ctx *cx, lb_outfile *o, const void *from, size_t n);
/* Overwrites n bytes at offset. */
bool lb_outfile_patch(lb_ctx *cx, lb_outfile *o, uint64_t offset,
                      const void *from, size_t n);
/* Renames it now, and keeps writing under the final name: for files of a
 * directory that is itself renamed later, which have a name. */
bool lb_outfile_publish(lb_ctx *cx, lb_outfile *o);
/* Reads back what was written. Call settle first: it drops the page cache, so
 * that bytes come from the disk where the system allows it; sync waits for the
 * disk before that. */
bool lb_outfile_settle(lb_ctx *cx, lb_outfile *o, bool sync);
bool lb_outfile_read(lb_ctx *cx, lb_outfile *o, uint64_t offset, void *to,
                     size_t n);
/* Closes it. commit renames it, after a sync if sync is set. Otherwise, or
 * after an error, the partial file is removed; but it is kept if the job was
 * cancelled (LB_E_CANCELLED) and its journal has a complete item. True if there
 * is a new file at its path. NULL is fine. */
bool lb_outfile_close(lb_ctx *cx, lb_outfile *o, bool commit, bool sync);

#endif
