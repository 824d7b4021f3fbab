/* io_golden.c - see io_golden.h. */
#include "io_golden.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char listing[] = IO_GOLDEN "listing.txt";
enum { LINE = 4096 };

uint8_t *io_slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    uint8_t *to = NULL;
    if (!f) return NULL;
    if (fseek(f, 0, SEEK_END) == 0) {
        *n = (size_t)ftell(f);
        rewind(f);
        to = malloc(*n + 1);
        if (to && fread(to, 1, *n, f) != *n) {
            free(to);
            to = NULL;
        }
    }
    fclose(f);
    return to;
}

bool io_same_bytes(const char *a, const char *b)
{
    size_t n = 0, k = 0;
    uint8_t *x = io_slurp(a, &n), *y = io_slurp(b, &k);
    const bool same = x && y && n == k && memcmp(x, y, n) == 0;
    free(x);
    free(y);
    return same;
}

/* ---- listing.txt --------------------------------------------------------- */

bool io_file_at(int k, io_file *g)
{
    FILE *f = fopen(listing, "r");
    char line[LINE], path[100], twin[100];
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        if (sscanf(line, "file %99s %31s %99s", path, g->kind, twin) != 3)
            continue;
        found = k-- == 0;
        g->first = ftell(f);
        snprintf(g->path, sizeof g->path, "%s%s", IO_GOLDEN, path);
        snprintf(g->twin, sizeof g->twin, "%s%s", IO_GOLDEN, twin);
        if (strcmp(twin, "-") == 0) g->twin[0] = 0;
    }
    if (f) fclose(f);
    return found;
}

bool io_line(const char *word, int k, char *line, size_t size)
{
    FILE *f = fopen(listing, "r");
    bool found = false;
    const size_t n = strlen(word);
    while (f && !found && fgets(line, (int)size, f))
        found = strncmp(line, word, n) == 0 && line[n] == ' ' && k-- == 0;
    if (f) fclose(f);
    if (found) memmove(line, line + n + 1, strlen(line + n));
    return found;
}

/* ---- comparing ----------------------------------------------------------- */

static uint64_t fnv(const uint8_t *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

/* Escapes as in the listing. */
static void escape(const char *s, char *to, size_t size)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        "._-/()[]',<>|";
    size_t n = 0;
    if (!*s) n += (size_t)snprintf(to, size, "%%");
    for (; *s && n + 4 < size; s++)
        n += (size_t)snprintf(to + n, size - n,
                              strchr(plain, *s) ? "%c" : "%%%02X",
                              strchr(plain, *s) ? *s : (unsigned char)*s);
}

static void put(char *to, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void put(char *to, size_t size, const char *fmt, ...)
{
    const size_t n = strlen(to);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(to + n, size - n, fmt, ap);
    va_end(ap);
}

static void meta_line(const lb_meta *m, char *line, size_t size)
{
    char key[256] = "";
    escape(m->key, key, sizeof key);
    line[0] = 0;
    put(line, size, "meta %s %d %d %llu ", key, (int)m->type, (int)m->item,
        (unsigned long long)m->n);
    for (uint64_t i = 0; i < m->size; i++)
        put(line, size, "%02x", m->bytes[i]);
    put(line, size, "%s\n", m->size ? "" : "-");
}

/* Reads the whole tensor, in thirds and, if possible, in place. */
static bool tensor_hash(lb_ctx *cx, lb_reader *r, const lb_tensor *t,
                        uint64_t *hash)
{
    const size_t n = (size_t)t->size, unit = t->swap ? (size_t)t->swap : 1;
    const size_t piece = (n / 3 / unit + 1) * unit;
    uint8_t *whole = malloc(n + 1), *parts = malloc(n + 1);
    bool ok = lb_reader_read(cx, r, t, 0, n, whole);
    for (size_t at = 0; ok && at < n; at += piece)
        ok = lb_reader_read(cx, r, t, at, n - at < piece ? n - at : piece,
                            parts + at);
    const uint8_t *place = lb_reader_at(r, t);
    ok = ok && memcmp(whole, parts, n) == 0;
    ok = ok && (!place || memcmp(whole, place, n) == 0);
    *hash = fnv(whole, n);
    free(whole);
    free(parts);
    return ok;
}

static bool tensor_line(lb_ctx *cx, lb_reader *r, const lb_tensor *t,
                        char *line, size_t size)
{
    char name[256] = "", type[256] = "";
    uint64_t hash = 0;
    escape(t->name, name, sizeof name);
    escape(t->type, type, sizeof type);
    const bool ok = tensor_hash(cx, r, t, &hash);
    line[0] = 0;
    put(line, size, "tensor %s %s %s ", name, type, lb_dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++)
        put(line, size, "%s%lld", i ? "x" : "", (long long)t->dim[i]);
    put(line, size, "%s %s %llu %016llx\n", t->rank ? "" : "-",
        t->fortran ? "F" : "C", (unsigned long long)t->size,
        (unsigned long long)hash);
    return ok && lb_reader_find(r, t->name) == t;
}

bool io_file_same(lb_ctx *cx, const io_file *g, lb_reader *r, char *where,
                  size_t size)
{
    static char want[LINE], line[LINE];
    FILE *f = fopen(listing, "r");
    bool ok = f && fseek(f, g->first, SEEK_SET) == 0;
    where[0] = 0;
    for (int64_t i = 0; ok && i < r->n_meta + r->n_tensors; i++) {
        const bool meta = i < r->n_meta;
        if (meta) {
            meta_line(&r->meta[i], line, sizeof line);
            ok = lb_reader_meta(r, r->meta[i].key) == &r->meta[i];
        } else
            ok = tensor_line(cx, r, &r->tensor[i - r->n_meta], line,
                             sizeof line);
        ok = ok && fgets(want, sizeof want, f) && strcmp(line, want) == 0;
        if (!ok) snprintf(where, size, "got %swant %s", line, want);
    }
    /* and no more */
    if (ok && fgets(want, sizeof want, f))
        ok = strncmp(want, "meta", 4) != 0 && strncmp(want, "tensor", 6) != 0;
    if (f) fclose(f);
    return ok;
}

/* ---- copying ------------------------------------------------------------- */

bool io_copy(lb_ctx *cx, lb_reader *r, const lb_container *kind,
             const char *path, size_t piece, const lb_write_options *options)
{
    lb_writer *w = lb_writer_open(cx, kind, path, r->tensor, r->n_tensors,
                                  r->meta, r->n_meta, options);
    bool ok = w != NULL;
    uint8_t *buffer = malloc(piece);
    for (int64_t i; ok && (i = lb_writer_next(w)) >= 0;) {
        const lb_tensor *t = &r->tensor[i];
        for (uint64_t at = 0; ok && at < t->size; at += piece) {
            const uint64_t left = t->size - at;
            const size_t n = left < piece ? (size_t)left : piece;
            ok = lb_reader_read(cx, r, t, at, n, buffer) &&
                 lb_writer_put(cx, w, buffer, n);
        }
    }
    free(buffer);
    return lb_writer_close(cx, w, ok);
}

bool io_same_bits(lb_ctx *cx, lb_array *a, lb_array *b)
{
    if (!a || !b || lb_dtype_of(a) != lb_dtype_of(b)) return false;
    const lb_shape s = lb_shape_of(a), t = lb_shape_of(b);
    const size_t n = (size_t)lb_size(a) * lb_dtype_size(lb_dtype_of(a));
    uint8_t *x = malloc(n + 1), *y = malloc(n + 1);
    const bool same = lb_shape_equal(&s, &t) && lb_read(cx, a, x, n) &&
                      lb_read(cx, b, y, n) && memcmp(x, y, n) == 0;
    free(x);
    free(y);
    return same;
}
