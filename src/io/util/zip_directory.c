/* zip_directory.c - finds and checks the members of a ZIP archive. */
#include <string.h>

#include "core/core.h"
#include "io/containers/container.h"
#include "io/util/zip.h"

enum {
    LOCAL = 30,       /* bytes of a local header, without name and fields */
    ENTRY = 46,       /* of an entry of the directory, likewise */
    END = 22,         /* of the end record, without the comment */
    LOCATOR = 20,     /* of the record that says where ZIP64's end record is */
    END64 = 56,       /* of that one */
    MOST16 = 0xffff,  /* in a 16-bit or 32-bit field: see the ZIP64 field */
    COMMENT = MOST16, /* longest comment */
    DEFERRED = 8,     /* flag: sizes and checksum follow the data */
    UTF8 = 0x800      /* flag: of the name; else code page 437 */
};
static const uint32_t ones = 0xffffffff;

/* The upper half of code page 437. */
static const uint16_t cp437[128] = {
    0x00c7, 0x00fc, 0x00e9, 0x00e2, 0x00e4, 0x00e0, 0x00e5, 0x00e7, 0x00ea,
    0x00eb, 0x00e8, 0x00ef, 0x00ee, 0x00ec, 0x00c4, 0x00c5, 0x00c9, 0x00e6,
    0x00c6, 0x00f4, 0x00f6, 0x00f2, 0x00fb, 0x00f9, 0x00ff, 0x00d6, 0x00dc,
    0x00a2, 0x00a3, 0x00a5, 0x20a7, 0x0192, 0x00e1, 0x00ed, 0x00f3, 0x00fa,
    0x00f1, 0x00d1, 0x00aa, 0x00ba, 0x00bf, 0x2310, 0x00ac, 0x00bd, 0x00bc,
    0x00a1, 0x00ab, 0x00bb, 0x2591, 0x2592, 0x2593, 0x2502, 0x2524, 0x2561,
    0x2562, 0x2556, 0x2555, 0x2563, 0x2551, 0x2557, 0x255d, 0x255c, 0x255b,
    0x2510, 0x2514, 0x2534, 0x252c, 0x251c, 0x2500, 0x253c, 0x255e, 0x255f,
    0x255a, 0x2554, 0x2569, 0x2566, 0x2560, 0x2550, 0x256c, 0x2567, 0x2568,
    0x2564, 0x2565, 0x2559, 0x2558, 0x2552, 0x2553, 0x256b, 0x256a, 0x2518,
    0x250c, 0x2588, 0x2584, 0x258c, 0x2590, 0x2580, 0x03b1, 0x00df, 0x0393,
    0x03c0, 0x03a3, 0x03c3, 0x00b5, 0x03c4, 0x03a6, 0x0398, 0x03a9, 0x03b4,
    0x221e, 0x03c6, 0x03b5, 0x2229, 0x2261, 0x00b1, 0x2265, 0x2264, 0x2320,
    0x2321, 0x00f7, 0x2248, 0x00b0, 0x2219, 0x00b7, 0x221a, 0x207f, 0x00b2,
    0x25a0, 0x00a0,
};

typedef struct zip_directory {
    uint64_t begin, size, n;
} zip_directory;

/* A local header or an entry of the directory. */
typedef struct zip_header {
    lb_zip_member m;
    uint64_t name_at, fields_at, end; /* offsets in the file */
    uint64_t local;                   /* offset of the local header */
    uint32_t name_len, disk;
} zip_header;

static bool has(const uint8_t *p, const char *signature)
{
    return memcmp(p, signature, 4) == 0;
}

/* ---- end records --------------------------------------------------------- */

/* The last end record whose comment ends where the file ends. */
static bool find_end(lb_ctx *cx, lb_infile *f, uint8_t *end, uint64_t *at)
{
    uint8_t w[4096 + END];
    const uint64_t most = END + COMMENT;
    const uint64_t low = f->size > most ? f->size - most : 0;
    uint64_t hi = f->size < END ? 0 : f->size - END + 1;
    while (hi > low) {
        const uint64_t lo = hi - low > 4096 ? hi - 4096 : low;
        if (!lb_infile_read(cx, f, lo, (size_t)(hi - lo) + END - 1, w))
            return false;
        for (uint64_t k = hi; k-- > lo;) {
            const uint8_t *p = w + (k - lo);
            if (!has(p, "PK\x05\x06") ||
                lb_get_u16(p + 20) != f->size - k - END)
                continue;
            memcpy(end, p, END);
            *at = k;
            return true;
        }
        hi = lo;
    }
    return lb_refuse(cx, f, "archive: no end record");
}

/* ZIP64's end record, if its locator precedes the end record. *at: the offset
 * of the first of these records. */
static bool read_end64(lb_ctx *cx, lb_infile *f, uint8_t *end64, uint64_t *at,
                       bool *found)
{
    uint8_t p[LOCATOR];
    *found = false;
    if (*at < LOCATOR) return true;
    if (!lb_infile_read(cx, f, *at - LOCATOR, LOCATOR, p)) return false;
    if (!has(p, "PK\x06\x07")) return true;
    const uint64_t here = *at - LOCATOR, there = lb_get_u64(p + 8);
    if (lb_get_u32(p + 4) || there > here || here - there < END64)
        return lb_refuse(cx, f, "archive: invalid ZIP64 end locator");
    if (!lb_infile_read(cx, f, there, END64, end64)) return false;
    if (!has(end64, "PK\x06\x06") || lb_get_u64(end64 + 4) != here - there - 12)
        return lb_refuse(cx, f, "archive: invalid ZIP64 end record");
    *at = there;
    *found = true;
    return true;
}

/* A field of the end record, or of ZIP64's. */
static uint64_t wide(uint64_t narrow, uint64_t most, bool found, uint64_t wider,
                     bool *agree)
{
    if (!found) return narrow;
    *agree = *agree && (narrow == most || narrow == wider);
    return wider;
}

static bool read_end(lb_ctx *cx, lb_infile *f, zip_directory *d)
{
    uint8_t end[END], end64[END64] = {0};
    uint64_t at;
    bool found, agree = true;
    if (!find_end(cx, f, end, &at) || !read_end64(cx, f, end64, &at, &found))
        return false;
    d->n = wide(lb_get_u16(end + 10), MOST16, found, lb_get_u64(end64 + 32),
                &agree);
    d->size =
        wide(lb_get_u32(end + 12), ones, found, lb_get_u64(end64 + 40), &agree);
    d->begin =
        wide(lb_get_u32(end + 16), ones, found, lb_get_u64(end64 + 48), &agree);
    const bool one_disk = !lb_get_u32(end64 + 16) && !lb_get_u32(end64 + 20) &&
                          lb_get_u64(end64 + 24) == lb_get_u64(end64 + 32) &&
                          (found || !lb_get_u32(end + 4)) &&
                          lb_get_u16(end + 8) == lb_get_u16(end + 10);
    if (!one_disk || !agree)
        return lb_refuse(cx, f,
                         "archive: its end records contradict each "
                         "other, or it has several disks");
    if (d->begin > at || d->size != at - d->begin || d->n > d->size / ENTRY)
        return lb_refuse(cx, f,
                         "archive: a directory of %llu bytes at offset %llu "
                         "with %llu members, but %llu bytes precede its end "
                         "record",
                         (unsigned long long)d->size,
                         (unsigned long long)d->begin, (unsigned long long)d->n,
                         (unsigned long long)at);
    return true;
}

/* ---- headers ------------------------------------------------------------- */

/* The fields of 64 bits that replace those with all bits set. */
static bool read_wide(lb_ctx *cx, lb_infile *f, zip_header *h, uint64_t at,
                      uint32_t n)
{
    uint64_t *const field[] = {&h->m.size, &h->m.packed, &h->local};
    uint8_t p[8];
    for (int k = 0; k < 3; k++) {
        if (*field[k] != ones) continue;
        if (n < 8)
            return lb_refuse(cx, f, "archive: a ZIP64 field is too short");
        if (!lb_infile_read(cx, f, at, 8, p)) return false;
        *field[k] = lb_get_u64(p);
        at += 8;
        n -= 8;
    }
    if (h->disk != MOST16) return true;
    if (n < 4 || !lb_infile_read(cx, f, at, 4, p))
        return n >= 4 ||
               lb_refuse(cx, f, "archive: a ZIP64 field is too short");
    h->disk = lb_get_u32(p);
    return true;
}

/* Looks for the ZIP64 field among the extra fields. */
static bool read_fields(lb_ctx *cx, lb_infile *f, zip_header *h)
{
    uint8_t p[4];
    uint64_t at = h->fields_at;
    while (h->end - at >= 4) {
        if (!lb_infile_read(cx, f, at, 4, p)) return false;
        const uint32_t n = lb_get_u16(p + 2);
        at += 4;
        if (n > h->end - at)
            return lb_refuse(cx, f,
                             "archive: an extra field of %u bytes, but "
                             "%llu remain",
                             n, (unsigned long long)(h->end - at));
        if (lb_get_u16(p) == 1) return read_wide(cx, f, h, at, n);
        at += n;
    }
    return true;
}

/* flags: where the fields begin that both kinds of headers have. */
static bool parse_header(lb_ctx *cx, lb_infile *f, const uint8_t *flags,
                         uint64_t name_at, uint64_t end, zip_header *h)
{
    h->m.flags = (uint16_t)lb_get_u16(flags);
    h->m.method = (uint16_t)lb_get_u16(flags + 2);
    h->m.crc = lb_get_u32(flags + 8);
    h->m.packed = lb_get_u32(flags + 12);
    h->m.size = lb_get_u32(flags + 16);
    h->name_len = lb_get_u16(flags + 20);
    h->name_at = name_at;
    h->fields_at = name_at + h->name_len;
    h->end = h->fields_at + lb_get_u16(flags + 22);
    if (h->end > end)
        return lb_refuse(cx, f,
                         "archive: the header at offset %llu exceeds "
                         "the %llu bytes before the next part",
                         (unsigned long long)name_at, (unsigned long long)end);
    return read_fields(cx, f, h);
}

/* Advances *at to the next entry. */
static bool read_entry(lb_ctx *cx, lb_infile *f, uint64_t *at, uint64_t end,
                       zip_header *h)
{
    uint8_t p[ENTRY];
    if (end - *at < ENTRY)
        return lb_refuse(cx, f, "archive: its directory is truncated");
    if (!lb_infile_read(cx, f, *at, ENTRY, p)) return false;
    if (!has(p, "PK\x01\x02"))
        return lb_refuse(cx, f, "archive: no directory entry at offset %llu",
                         (unsigned long long)*at);
    h->disk = lb_get_u16(p + 34);
    h->local = lb_get_u32(p + 42);
    if (!parse_header(cx, f, p + 8, *at + ENTRY, end, h)) return false;
    const uint32_t comment = lb_get_u16(p + 32);
    if (h->disk || comment > end - h->end)
        return lb_refuse(cx, f,
                         "archive: invalid directory entry at offset "
                         "%llu",
                         (unsigned long long)*at);
    *at = h->end + comment;
    return true;
}

/* Whether the local header agrees with the entry. `end`: of the members. */
static bool check_local(lb_ctx *cx, lb_infile *f, zip_header *h, uint64_t end)
{
    uint8_t p[LOCAL], a[256], b[256];
    zip_header l = {.local = 0};
    const char *name = h->m.name;
    if (h->local > end || end - h->local < LOCAL)
        return lb_refuse(cx, f,
                         "'%s': its local header at offset %llu is "
                         "outside the %llu bytes of members",
                         LB_NAME(name), (unsigned long long)h->local,
                         (unsigned long long)end);
    if (!lb_infile_read(cx, f, h->local, LOCAL, p)) return false;
    if (!has(p, "PK\x03\x04"))
        return lb_refuse(cx, f, "'%s': no local header at offset %llu",
                         LB_NAME(name), (unsigned long long)h->local);
    if (!parse_header(cx, f, p + 6, h->local + LOCAL, end, &l)) return false;
    const bool later = l.m.flags & DEFERRED;
    bool same = !((l.m.flags ^ h->m.flags) & LB_ZIP_UNREADABLE) &&
                l.m.method == h->m.method && l.name_len == h->name_len &&
                (l.m.crc == h->m.crc || (later && !l.m.crc)) &&
                (l.m.size == h->m.size || (later && !l.m.size)) &&
                (l.m.packed == h->m.packed || (later && !l.m.packed));
    for (uint32_t i = 0; same && i < l.name_len; i += sizeof a) {
        const size_t n = l.name_len - i < sizeof a ? l.name_len - i : sizeof a;
        if (!lb_infile_read(cx, f, l.name_at + i, n, a) ||
            !lb_infile_read(cx, f, h->name_at + i, n, b))
            return false;
        same = memcmp(a, b, n) == 0;
    }
    if (!same)
        return lb_refuse(cx, f,
                         "'%s': its local header and the directory "
                         "contradict each other",
                         LB_NAME(name));
    h->m.begin = l.end;
    if (h->m.packed <= end - l.end) return true;
    return lb_refuse(cx, f, "'%s' needs %llu bytes, but only %llu are left",
                     LB_NAME(name), (unsigned long long)h->m.packed,
                     (unsigned long long)(end - l.end));
}

/* ---- names --------------------------------------------------------------- */

static void put_cp437(lb_bytes *b, uint8_t c)
{
    const uint32_t u = c < 128 ? c : cp437[c - 128];
    uint8_t p[3] = {(uint8_t)u};
    size_t n = 1;
    if (u >= 0x800) {
        p[n++] = (uint8_t)(0x80 | (u >> 6 & 63));
        p[0] = (uint8_t)(0xe0 | u >> 12);
    } else if (u >= 0x80) {
        p[0] = (uint8_t)(0xc0 | u >> 6);
    }
    if (u >= 0x80) p[n++] = (uint8_t)(0x80 | (u & 63));
    lb_bytes_put(b, p, n);
}

static bool read_name(lb_ctx *cx, lb_arena *arena, lb_infile *f, zip_header *h)
{
    char *raw = lb_arena_alloc(cx, arena, h->name_len + 1, 1);
    if (!raw || !lb_infile_read(cx, f, h->name_at, h->name_len, raw))
        return false;
    const bool utf8 = h->m.flags & UTF8;
    if (!h->name_len || memchr(raw, 0, h->name_len) ||
        (utf8 && !lb_utf8_valid(raw, h->name_len)))
        return lb_refuse(cx, f, "archive: invalid member name '%s'",
                         lb_quote(raw, h->name_len, false).s);
    bool ascii = true;
    for (uint32_t i = 0; i < h->name_len; i++)
        ascii = ascii && !(raw[i] & 0x80);
    h->m.name = raw;
    if (utf8 || ascii) return true;
    lb_bytes b = {.heap = arena->heap};
    for (uint32_t i = 0; i < h->name_len; i++)
        put_cp437(&b, (uint8_t)raw[i]);
    if (b.failed)
        lb_fail(cx, LB_E_NOMEM, "out of memory");
    else
        h->m.name = lb_arena_text(cx, arena, b.at, b.n);
    const bool ok = !b.failed && h->m.name;
    lb_bytes_free(&b);
    return ok;
}

/* ---- the archive --------------------------------------------------------- */

bool lb_zip_open(lb_ctx *cx, lb_arena *arena, lb_infile *f, lb_zip *z)
{
    zip_directory d;
    uint64_t packed = 0;
    z->f = f;
    z->heap = arena->heap;
    if (!read_end(cx, f, &d)) return false;
    z->member = lb_arena_alloc(cx, arena, d.n, sizeof *z->member);
    if (!z->member) return false;
    uint64_t at = d.begin;
    const uint64_t end = d.begin + d.size;
    for (; (uint64_t)z->n < d.n; z->n++) {
        zip_header h = {.local = 0};
        if (!read_entry(cx, f, &at, end, &h) || !read_name(cx, arena, f, &h) ||
            !check_local(cx, f, &h, d.begin))
            return false;
        /* members that overlap */
        if (h.m.packed > f->size - packed)
            return lb_refuse(cx, f,
                             "'%s' takes %llu bytes: with the members before "
                             "it more than the file, which has %llu",
                             LB_NAME(h.m.name), (unsigned long long)h.m.packed,
                             (unsigned long long)f->size);
        packed += h.m.packed;
        z->member[z->n] = h.m;
    }
    if (at == end) return true;
    return lb_refuse(cx, f,
                     "archive: %llu bytes after the last entry of its "
                     "directory",
                     (unsigned long long)(end - at));
}
