/* zip.h - reads ZIP archives: members that are stored or deflated.
 *
 *     each member: local header, name, extra fields | data
 *     directory:   an entry for each | end record, before it ZIP64's if needed
 *
 * The directory is believed only where the local headers agree with it, and no
 * size beyond what the file has, or what deflate can make of it. So archives
 * that two programs could read differently are refused: also bytes after the
 * end record, and names with a zero byte.
 */
#ifndef LB_ZIP_H
#define LB_ZIP_H

#include <zlib.h>

#include "io/util/arena.h"
#include "io/util/infile.h"

/* Flags: encryption, a patch, strong encryption, hidden local headers. */
enum { LB_ZIP_UNREADABLE = 1 | 1 << 5 | 1 << 6 | 1 << 13 };

typedef struct lb_zip_member {
    const char *name; /* UTF-8; not empty */
    uint64_t size;    /* of its content */
    uint64_t packed;  /* of its data in the file */
    uint64_t begin;   /* offset of its data */
    uint32_t crc;
    uint16_t method, flags;
} lb_zip_member;

/* Members are in the directory's order. One of them can be read at a time, from
 * its beginning. */
typedef struct lb_zip {
    lb_infile *f;
    lb_heap *heap;
    lb_zip_member *member;
    int64_t n;

    const lb_zip_member *open; /* the member being read, or NULL */
    const char *who;           /* its name in messages */
    uint64_t at;               /* position in its content */
    uint64_t in;               /* and in its data */
    uint32_t crc;              /* of the content before `at` */
    bool jumped;               /* without the bytes that were jumped over */
    bool inflates;             /* z is in use */
    z_stream z;
    uint8_t window[16384];
} lb_zip;

/* z is zero; members live in the arena. False and LB_E_CONTENT: invalid. Close
 * it in any case. */
bool lb_zip_open(lb_ctx *cx, lb_arena *arena, lb_infile *f, lb_zip *z);
void lb_zip_close(lb_zip *z);

/* Whether a member can be read; else an error that names the compression. */
bool lb_zip_check(lb_ctx *cx, const lb_zip *z, const lb_zip_member *m);
/* Begins to read a member that was checked; who is used in messages, until
 * another one begins. */
bool lb_zip_begin(lb_ctx *cx, lb_zip *z, const lb_zip_member *m,
                  const char *who);
/* Reads the next n bytes. Reading the last one compares length and checksum. An
 * error ends the member. */
bool lb_zip_read(lb_ctx *cx, lb_zip *z, void *to, size_t n);
/* Goes forward to position `to`. jump: without reading what is between, if
 * possible and far enough; the checksum is not compared then. */
bool lb_zip_skip(lb_ctx *cx, lb_zip *z, uint64_t to, bool jump);

#endif
