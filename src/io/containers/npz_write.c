/* npz_write.c - writes npz files, byte for byte like numpy.savez.
 *
 * Members are stored, dated 1980-01-01, and have 64-bit sizes, like those of
 * Python's zipfile since 3.11.4:
 *
 *     each array: local header, name, sizes | npy header | numbers
 *     directory:  an entry for each | its position, with 64 bits if needed
 *
 * A member's checksum precedes it: it is filled in afterwards.
 */
#include "io/containers/npz_write.h"

#include <string.h>
#include <zlib.h>

#include "io/containers/meta_texts.h"
#include "io/containers/npy_header.h"

enum {
    LOCAL = 30,      /* bytes of a local header, without name and sizes */
    SIZES = 20,      /* of the 64-bit sizes after the name */
    ENTRY = 46,      /* of an entry of the central directory */
    END = 22,        /* of the end record */
    END64 = 56 + 20, /* of the ZIP64 end records, if needed */
    CRC_AT = 14,     /* offset of the checksum in a local header */
    VERSION = 45,    /* ZIP versions, the first one with 64 bits */
    UNIX = 3,        /* system that wrote it (Unix) */
    UTF8 = 0x800,    /* flag for non-ASCII names */
    DAY = 0x21,      /* 1980-01-01 */
    MOST16 = 0xffff
};
/* Python uses 64-bit fields from here on. */
static const uint64_t most32 = 0x7fffffff;
static const uint32_t ones = 0xffffffff;

/* One member. */
typedef struct npz_out_member {
    uint64_t begin; /* offset of its local header */
    uint64_t size;  /* bytes of its npy file */
    uint32_t crc;
    uint16_t flags;
    uint16_t name_len; /* with .npy */
} npz_out_member;

/* 64-bit fields of a directory entry, after the name. */
static size_t entry_extra(const npz_out_member *m)
{
    const size_t n =
        (m->size > most32 ? 16u : 0u) + (m->begin > most32 ? 8u : 0u);
    return n ? n + 4 : 0;
}

static bool is_large(uint64_t n, uint64_t at, uint64_t size)
{
    return n > MOST16 || at > most32 || size > most32;
}

static bool place_member(lb_ctx *cx, lb_writer *w, int64_t i, npz_out_member *m)
{
    lb_tensor *t = &w->tensor[i];
    const size_t n = strlen(t->name);
    if (n > MOST16 - 4 || !lb_utf8_valid(t->name, n))
        return lb_fail(cx, LB_E_UNSUPPORTED,
                       "tensor '%s': an npz name must be valid UTF-8, but this "
                       "one of %zu bytes is not, or exceeds %d",
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
        return lb_fail(cx, LB_E_SIZE, "the file would exceed %lld bytes",
                       (long long)INT64_MAX);
    return true;
}

/* Fields shared by a local header and a directory entry. */
static void put_common(lb_bytes *b, const npz_out_member *m, uint32_t packed,
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

/* What precedes the bytes of a member, except its name. */
static void put_local(lb_bytes *b, const npz_out_member *m, const char *name,
                      const char *suffix)
{
    lb_bytes_put(b, "PK\x03\x04", 4);
    put_common(b, m, ones, ones);
    lb_bytes_u16(b, SIZES);
    lb_bytes_put(b, name, strlen(name));
    lb_bytes_put(b, suffix, strlen(suffix));
    lb_bytes_u16(b, 1); /* 64-bit sizes */
    lb_bytes_u16(b, SIZES - 4);
    lb_bytes_u64(b, m->size);
    lb_bytes_u64(b, m->size);
}

/* Metadata, if any, are the first member. */
static bool place_metadata(lb_ctx *cx, lb_writer *w, lb_bytes *text,
                           npz_out_member *m)
{
    if (!w->n_meta) return true;
    if (!lb_meta_texts_put(cx, &w->arena, text, w->meta, w->n_meta, "npz"))
        return false;
    if (text->failed) return lb_fail(cx, LB_E_NOMEM, "out of memory");
    if (text->n > LB_HEADER_MOST)
        return lb_fail(cx, LB_E_UNSUPPORTED,
                       "metadata of %zu bytes; the maximum is %d", text->n,
                       (int)LB_HEADER_MOST);
    m->name_len = sizeof LB_NPZ_METADATA - 1;
    m->size = text->n;
    m->crc = (uint32_t)crc32_z(0, text->at, text->n);
    w->total = m->size + LOCAL + m->name_len + SIZES;
    return true;
}

static void put_metadata(lb_writer *w, const lb_bytes *text,
                         const npz_out_member *m)
{
    put_local(&w->header, m, LB_NPZ_METADATA, "");
    lb_bytes_put(&w->header, text->at, text->n);
}

bool lb_npz_compose(lb_ctx *cx, lb_writer *w)
{
    const uint64_t n = (uint64_t)w->n_tensors + (w->n_meta > 0);
    lb_bytes text = {.heap = w->arena.heap};
    npz_out_member *m = lb_arena_alloc(cx, &w->arena, n, sizeof *m);
    w->own = m;
    bool ok = m && place_metadata(cx, w, &text, m + w->n_tensors);
    for (int64_t i = 0; ok && i < w->n_tensors; i++)
        ok = place_member(cx, w, i, &m[i]);
    w->header.n = 0;
    if (ok && w->n_meta) put_metadata(w, &text, m + w->n_tensors);
    lb_bytes_free(&text);
    if (!ok) return false;
    const uint64_t at = w->total;
    for (uint64_t i = 0; i < n; i++)
        w->total += ENTRY + m[i].name_len + entry_extra(&m[i]);
    if (is_large(n, at, w->total - at)) w->total += END64;
    w->total += END;
    return true;
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
    npz_out_member *m = (npz_out_member *)w->own + i;
    lb_bytes b = {.heap = w->arena.heap};
    put_local(&b, m, w->tensor[i].name, ".npy");
    const size_t head = b.n;
    lb_npy_compose(&b, &w->tensor[i]);
    if (!b.failed) m->crc = (uint32_t)crc32_z(0, b.at + head, b.n - head);
    return flush(cx, w, &b);
}

void lb_npz_put(lb_writer *w, const void *bytes, size_t n)
{
    npz_out_member *m = (npz_out_member *)w->own + w->order[w->at];
    m->crc = (uint32_t)crc32_z(m->crc, bytes, n);
}

bool lb_npz_after(lb_ctx *cx, lb_writer *w, int64_t i)
{
    const npz_out_member *m = (const npz_out_member *)w->own + i;
    uint8_t crc[4];
    for (int k = 0; k < 4; k++)
        crc[k] = (uint8_t)(m->crc >> 8 * k);
    return lb_outfile_patch(cx, w->out, m->begin + CRC_AT, crc, sizeof crc);
}

static void put_entry(lb_bytes *b, const npz_out_member *m, const char *name,
                      const char *suffix)
{
    const size_t extra = entry_extra(m);
    const bool big = m->size > most32, far = m->begin > most32;
    const uint32_t size = big ? ones : (uint32_t)m->size;
    lb_bytes_put(b, "PK\x01\x02", 4);
    lb_bytes_put(b, (const uint8_t[]){VERSION, UNIX}, 2);
    put_common(b, m, size, size);
    lb_bytes_u16(b, (uint16_t)extra);
    lb_bytes_fill(b, 0, 2 + 2 + 2); /* comment length, disk, attributes */
    lb_bytes_u32(b, 0600u << 16);   /* rw------- */
    lb_bytes_u32(b, far ? ones : (uint32_t)m->begin);
    lb_bytes_put(b, name, strlen(name));
    lb_bytes_put(b, suffix, strlen(suffix));
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
    lb_bytes_u64(b, at + size); /* offset of this record */
    lb_bytes_u32(b, 1);
}

bool lb_npz_finish(lb_ctx *cx, lb_writer *w)
{
    const npz_out_member *m = w->own;
    const bool meta = w->header_size > 0;
    const uint64_t at = w->out->at, n = (uint64_t)w->n_tensors + meta;
    lb_bytes b = {.heap = w->arena.heap};
    if (meta) put_entry(&b, &m[w->n_tensors], LB_NPZ_METADATA, "");
    for (int64_t i = 0; i < w->n_tensors; i++)
        put_entry(&b, &m[i], w->tensor[i].name, ".npy");
    const uint64_t size = b.n;
    if (is_large(n, at, size)) put_end64(&b, n, at, size);
    const uint16_t few = (uint16_t)(n < MOST16 ? n : MOST16);
    lb_bytes_put(&b, "PK\x05\x06", 4);
    lb_bytes_u32(&b, 0); /* disks */
    lb_bytes_u16(&b, few);
    lb_bytes_u16(&b, few);
    lb_bytes_u32(&b, size < ones ? (uint32_t)size : ones);
    lb_bytes_u32(&b, at < ones ? (uint32_t)at : ones);
    lb_bytes_u16(&b, 0); /* comment length */
    return flush(cx, w, &b);
}
