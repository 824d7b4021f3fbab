/* npz_write.c - npz files, byte for byte as numpy.savez writes them.
 *
 * libzip fetches what it writes, when the archive is closed; here bytes come
 * when they come. So the ZIP is written by hand, stored, of 1980-01-01, each
 * member with 64-bit sizes, as Python's zipfile does since 3.11.4:
 *
 *     each array: local header, name, sizes | npy header | numbers
 *     directory:  an entry for each | where it lies, with 64 bits if need be
 *
 * A member's checksum stands before it: it is filled in afterwards.
 */
#include "io/containers/npz_write.h"

#include <string.h>
#include <zlib.h>

#include "io/containers/npy_header.h"

enum {
    LOCAL = 30,      /* bytes of a local header, without name and sizes */
    SIZES = 20,      /* of the 64-bit sizes after the name */
    ENTRY = 46,      /* of an entry of the directory */
    END = 22,        /* of the end */
    END64 = 56 + 20, /* of what comes before it, if something is large */
    CRC_AT = 14,     /* in a local header */
    VERSION = 45,    /* of ZIP, the first with 64 bits */
    UNIX = 3,        /* who wrote it */
    UTF8 = 0x800,    /* the flag for a name that is not ASCII */
    DAY = 0x21,      /* 1980-01-01 */
    MOST16 = 0xffff
};
/* From here on Python uses 64 bits. */
static const uint64_t most32 = 0x7fffffff;
static const uint32_t ones = 0xffffffff;

/* Of one array. */
typedef struct member {
    uint64_t begin; /* of its local header */
    uint64_t size;  /* of its npy file */
    uint32_t crc;
    uint16_t flags;
    uint16_t name_len; /* with .npy */
} member;

/* Of an entry, behind its name, what does not fit into 32 bits. */
static size_t entry_extra(const member *m)
{
    const size_t n =
        (m->size > most32 ? 16u : 0u) + (m->begin > most32 ? 8u : 0u);
    return n ? n + 4 : 0;
}

static bool is_large(uint64_t n, uint64_t at, uint64_t size)
{
    return n > MOST16 || at > most32 || size > most32;
}

static bool place_member(lb_ctx *cx, lb_writer *w, int64_t i, member *m)
{
    lb_tensor *t = &w->tensor[i];
    const size_t n = strlen(t->name);
    if (n > MOST16 - 4 || !lb_utf8_valid(t->name, n))
        return lb_fail(
            cx, LB_E_UNSUPPORTED,
            "tensor '%s': a name of %zu bytes, where npz wants UTF-8 "
            "of at most %d",
            LB_NAME(t->name), n, MOST16 - 4);
    if (!lb_npy_suits(cx, t)) return false;
    for (size_t k = 0; k < n; k++)
        if (t->name[k] & 0x80) m->flags = UTF8;
    w->header.n = 0;
    lb_npy_compose(&w->header, t);
    m->name_len = (uint16_t)(n + 4);
    m->begin = w->total;
    m->size = w->header.n + t->size;
    t->begin = m->begin + LOCAL + m->name_len + SIZES + w->header.n;
    w->total = t->begin + t->size;
    if (w->total > INT64_MAX)
        return lb_fail(cx, LB_E_SIZE, "more than %lld bytes for one file",
                       (long long)INT64_MAX);
    return true;
}

bool lb_npz_compose(lb_ctx *cx, lb_writer *w)
{
    if (w->n_meta)
        return lb_fail(cx, LB_E_UNSUPPORTED,
                       "%lld values: an npz file has arrays only",
                       (long long)w->n_meta);
    member *m =
        lb_arena_alloc(cx, &w->arena, (uint64_t)w->n_tensors, sizeof *m);
    w->own = m;
    if (!m) return false;
    for (int64_t i = 0; i < w->n_tensors; i++)
        if (!place_member(cx, w, i, &m[i])) return false;
    w->header.n = 0;
    const uint64_t at = w->total;
    for (int64_t i = 0; i < w->n_tensors; i++)
        w->total += ENTRY + m[i].name_len + entry_extra(&m[i]);
    if (is_large((uint64_t)w->n_tensors, at, w->total - at)) w->total += END64;
    w->total += END;
    return true;
}

/* What a local header and an entry of the directory have in common. */
static void put_common(lb_bytes *b, const member *m, uint32_t packed,
                       uint32_t size)
{
    lb_bytes_u16(b, VERSION);
    lb_bytes_u16(b, m->flags);
    lb_bytes_u16(b, 0); /* stored */
    lb_bytes_u16(b, 0); /* midnight */
    lb_bytes_u16(b, DAY);
    lb_bytes_u32(b, m->crc);
    lb_bytes_u32(b, packed);
    lb_bytes_u32(b, size);
    lb_bytes_u16(b, m->name_len);
}

static void put_name(lb_bytes *b, const lb_tensor *t)
{
    lb_bytes_put(b, t->name, strlen(t->name));
    lb_bytes_put(b, ".npy", 4);
}

static bool flush(lb_ctx *cx, lb_writer *w, lb_bytes *b)
{
    const bool ok = b->failed ? lb_fail(cx, LB_E_NOMEM, "out of memory")
                              : lb_outfile_write(cx, w->out, b->at, b->n);
    lb_bytes_free(b);
    return ok;
}

bool lb_npz_before(lb_ctx *cx, lb_writer *w, int64_t i)
{
    member *m = (member *)w->own + i;
    lb_bytes b = {.heap = w->arena.heap};
    lb_bytes_put(&b, "PK\x03\x04", 4);
    put_common(&b, m, ones, ones);
    lb_bytes_u16(&b, SIZES);
    put_name(&b, &w->tensor[i]);
    lb_bytes_u16(&b, 1); /* 64-bit sizes .. */
    lb_bytes_u16(&b, SIZES - 4);
    lb_bytes_u64(&b, m->size);
    lb_bytes_u64(&b, m->size);
    const size_t head = b.n;
    lb_npy_compose(&b, &w->tensor[i]);
    if (!b.failed) m->crc = (uint32_t)crc32_z(0, b.at + head, b.n - head);
    return flush(cx, w, &b);
}

void lb_npz_put(lb_writer *w, const void *bytes, size_t n)
{
    member *m = (member *)w->own + w->order[w->at];
    m->crc = (uint32_t)crc32_z(m->crc, bytes, n);
}

bool lb_npz_after(lb_ctx *cx, lb_writer *w, int64_t i)
{
    const member *m = (const member *)w->own + i;
    uint8_t crc[4];
    for (int k = 0; k < 4; k++)
        crc[k] = (uint8_t)(m->crc >> 8 * k);
    return lb_outfile_patch(cx, w->out, m->begin + CRC_AT, crc, sizeof crc);
}

static void put_entry(lb_bytes *b, const member *m, const lb_tensor *t)
{
    const size_t extra = entry_extra(m);
    const bool big = m->size > most32, far = m->begin > most32;
    const uint32_t size = big ? ones : (uint32_t)m->size;
    lb_bytes_put(b, "PK\x01\x02", 4);
    lb_bytes_put(b, (const uint8_t[]){VERSION, UNIX}, 2);
    put_common(b, m, size, size);
    lb_bytes_u16(b, (uint16_t)extra);
    lb_bytes_fill(b, 0, 2 + 2 + 2); /* comment, disk, kind */
    lb_bytes_u32(b, 0600u << 16);   /* rw------- */
    lb_bytes_u32(b, far ? ones : (uint32_t)m->begin);
    put_name(b, t);
    if (!extra) return;
    lb_bytes_u16(b, 1);
    lb_bytes_u16(b, (uint16_t)(extra - 4));
    if (big) lb_bytes_u64(b, m->size);
    if (big) lb_bytes_u64(b, m->size);
    if (far) lb_bytes_u64(b, m->begin);
}

static void put_end64(lb_bytes *b, uint64_t n, uint64_t at, uint64_t size)
{
    lb_bytes_put(b, "PK\x06\x06", 4);
    lb_bytes_u64(b, 44); /* bytes that follow */
    lb_bytes_u16(b, VERSION);
    lb_bytes_u16(b, VERSION);
    lb_bytes_u32(b, 0); /* disks */
    lb_bytes_u32(b, 0);
    lb_bytes_u64(b, n);
    lb_bytes_u64(b, n);
    lb_bytes_u64(b, size);
    lb_bytes_u64(b, at);
    lb_bytes_put(b, "PK\x06\x07", 4);
    lb_bytes_u32(b, 0);
    lb_bytes_u64(b, at + size); /* where this began */
    lb_bytes_u32(b, 1);
}

bool lb_npz_finish(lb_ctx *cx, lb_writer *w)
{
    const member *m = w->own;
    const uint64_t at = w->out->at, n = (uint64_t)w->n_tensors;
    lb_bytes b = {.heap = w->arena.heap};
    for (uint64_t i = 0; i < n; i++)
        put_entry(&b, &m[i], &w->tensor[i]);
    const uint64_t size = b.n;
    if (is_large(n, at, size)) put_end64(&b, n, at, size);
    const uint16_t few = (uint16_t)(n < MOST16 ? n : MOST16);
    lb_bytes_put(&b, "PK\x05\x06", 4);
    lb_bytes_u32(&b, 0); /* disks */
    lb_bytes_u16(&b, few);
    lb_bytes_u16(&b, few);
    lb_bytes_u32(&b, size < ones ? (uint32_t)size : ones);
    lb_bytes_u32(&b, at < ones ? (uint32_t)at : ones);
    lb_bytes_u16(&b, 0); /* comment */
    return flush(cx, w, &b);
}
