/* zip_read.c - reads the content of a ZIP member: a copy, or zlib's inflate. */
#include <limits.h>
#include <string.h>

#include "core/core.h"
#include "io/containers/container.h"
#include "io/util/zip.h"

enum { STORED = 0, DEFLATE = 8 };
/* 258 bytes in two bits */
enum { MOST_TIMES = 1032 };

/* Compression methods that zipfile and others write. */
static const struct {
    const char *name;
    int method;
} methods[] = {
    {"Deflate64", 9}, {"bzip2", 12}, {"LZMA", 14},
    {"zstd", 93},     {"XZ", 95},    {"PPMd", 98},
};

static bool refuse_method(lb_ctx *cx, const lb_zip *z, const lb_zip_member *m)
{
    const char *name = "an unknown method";
    for (size_t k = 0; k < sizeof methods / sizeof *methods; k++)
        if (methods[k].method == m->method) name = methods[k].name;
    return lb_refuse(cx, z->f,
                     "'%s' is compressed with %s (method %d), which lowbit "
                     "does not support; save it again with numpy.savez or "
                     "numpy.savez_compressed",
                     LB_NAME(m->name), name, m->method);
}

bool lb_zip_check(lb_ctx *cx, const lb_zip *z, const lb_zip_member *m)
{
    if (m->flags & LB_ZIP_UNREADABLE)
        return lb_refuse(cx, z->f, "'%s' is encrypted or a patch (flags %04x)",
                         LB_NAME(m->name), m->flags);
    if (m->method != STORED && m->method != DEFLATE)
        return refuse_method(cx, z, m);
    if (m->method == STORED ? m->size != m->packed
                            : m->size / MOST_TIMES > m->packed)
        return lb_refuse(cx, z->f, "'%s' cannot have %llu bytes when %s %llu",
                         LB_NAME(m->name), (unsigned long long)m->size,
                         m->method == STORED ? "stored in" : "compressed to",
                         (unsigned long long)m->packed);
    return true;
}

/* ---- inflate ------------------------------------------------------------- */

/* Blocks of zlib, with their allocated size in front. */
enum { FRONT = 16 };

static void *take(void *heap, uInt items, uInt size)
{
    size_t n, got;
    uint8_t *p;
    if (__builtin_mul_overflow(items, size, &n) || n > SIZE_MAX - FRONT ||
        !(p = lb_heap_alloc(heap, n + FRONT, &got)))
        return NULL;
    memcpy(p, &got, sizeof got);
    return p + FRONT;
}

static void give(void *heap, void *block)
{
    uint8_t *p = (uint8_t *)block - FRONT;
    size_t got;
    memcpy(&got, p, sizeof got);
    lb_heap_free(heap, p, got);
}

static bool begin_inflate(lb_ctx *cx, lb_zip *z)
{
    z->z.next_in = z->window;
    z->z.avail_in = 0;
    if (z->inflates) return inflateReset(&z->z) == Z_OK;
    z->z.zalloc = take;
    z->z.zfree = give;
    z->z.opaque = z->heap;
    /* negative: without zlib's own header */
    z->inflates = inflateInit2(&z->z, -MAX_WBITS) == Z_OK;
    return z->inflates || lb_fail(cx, LB_E_NOMEM, "out of memory");
}

void lb_zip_close(lb_zip *z)
{
    if (z->inflates) inflateEnd(&z->z);
    z->inflates = false;
    z->open = NULL;
}

static bool fill(lb_ctx *cx, lb_zip *z)
{
    const uint64_t left = z->open->packed - z->in;
    const size_t n = left < sizeof z->window ? (size_t)left : sizeof z->window;
    if (z->z.avail_in || !n) return true;
    if (!lb_infile_read(cx, z->f, z->open->begin + z->in, n, z->window))
        return false;
    z->in += n;
    z->z.next_in = z->window;
    z->z.avail_in = (uInt)n;
    return true;
}

/* Up to n bytes; *got < n only at the end of the compressed data. */
static bool inflate_some(lb_ctx *cx, lb_zip *z, void *to, uInt n, uInt *got)
{
    int e = Z_OK;
    z->z.next_out = to;
    z->z.avail_out = n;
    while (z->z.avail_out && e == Z_OK) {
        if (!fill(cx, z)) return false;
        e = inflate(&z->z, Z_NO_FLUSH);
    }
    *got = n - z->z.avail_out;
    if (e == Z_OK || e == Z_STREAM_END || e == Z_BUF_ERROR) return true;
    if (e == Z_MEM_ERROR) return lb_fail(cx, LB_E_NOMEM, "out of memory");
    return lb_refuse(cx, z->f, "'%s': invalid compressed data: %s",
                     LB_NAME(z->who), z->z.msg ? z->z.msg : zError(e));
}

/* ---- reading ------------------------------------------------------------- */

bool lb_zip_begin(lb_ctx *cx, lb_zip *z, const lb_zip_member *m,
                  const char *who)
{
    z->open = NULL;
    if (m->method == DEFLATE && !begin_inflate(cx, z)) return false;
    z->open = m;
    z->who = who;
    z->at = 0;
    z->in = 0;
    z->crc = 0;
    z->jumped = false;
    return true;
}

/* No further byte, and the checksum. */
static bool check_end(lb_ctx *cx, lb_zip *z)
{
    const lb_zip_member *m = z->open;
    uint8_t more;
    uInt got = 0;
    if (m->method == DEFLATE && !inflate_some(cx, z, &more, 1, &got))
        return false;
    if (got)
        return lb_refuse(cx, z->f, "'%s' has more than its stated %llu bytes",
                         LB_NAME(z->who), (unsigned long long)m->size);
    if (z->jumped || z->crc == m->crc) return true;
    return lb_refuse(cx, z->f, "'%s': CRC error (%08x instead of %08x)",
                     LB_NAME(z->who), z->crc, m->crc);
}

static bool read_part(lb_ctx *cx, lb_zip *z, uint8_t *to, uInt n)
{
    const lb_zip_member *m = z->open;
    const uint64_t left = m->size - z->at;
    uInt got = n <= left ? n : 0;
    if (got && m->method == STORED) {
        if (!lb_infile_read(cx, z->f, m->begin + z->at, n, to)) return false;
    } else if (got && !inflate_some(cx, z, to, n, &got)) {
        return false;
    }
    if (got < n)
        return lb_refuse(
            cx, z->f, "'%s' is truncated after %llu bytes", LB_NAME(z->who),
            (unsigned long long)(n > left ? m->size : z->at + got));
    z->at += n;
    z->crc = (uint32_t)crc32_z(z->crc, to, n);
    return z->at < m->size || check_end(cx, z);
}

bool lb_zip_read(lb_ctx *cx, lb_zip *z, void *to, size_t n)
{
    uint8_t *p = to;
    while (n > 0) {
        const uInt part = n < INT_MAX ? (uInt)n : (uInt)INT_MAX;
        if (!read_part(cx, z, p, part)) {
            z->open = NULL;
            return false;
        }
        p += part;
        n -= part;
    }
    return true;
}

bool lb_zip_skip(lb_ctx *cx, lb_zip *z, uint64_t to, bool jump)
{
    uint8_t nowhere[16384];
    if (jump && z->open->method == STORED && to <= z->open->size &&
        to - z->at > sizeof nowhere) {
        z->at = to;
        z->jumped = true;
    }
    while (z->at < to) {
        const uint64_t left = to - z->at;
        const size_t n = left < sizeof nowhere ? (size_t)left : sizeof nowhere;
        if (!lb_zip_read(cx, z, nowhere, n)) return false;
    }
    return true;
}
