/* reader.c - opens files of any container, and reads tensors. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "core/core.h"
#include "io/containers/container.h"

/* ---- opening ------------------------------------------------------------- */

/* A pickle of protocol 2 to 5, as torch.save wrote them before version 1.6. */
static bool is_pickle(const uint8_t *head, size_t n)
{
    return n > 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
}

static const lb_container *kind_of(lb_ctx *cx, lb_infile *f)
{
    uint8_t head[LB_PROBE] = {0};
    const size_t n = f->size < LB_PROBE ? (size_t)f->size : LB_PROBE;
    if (!lb_infile_read(cx, f, 0, n, head)) return NULL;
    for (int i = 0; lb_containers[i]; i++)
        if (lb_containers[i]->probe(head, n)) return lb_containers[i];
    if (n == 0) {
        lb_refuse(cx, f, "the file is empty");
        return NULL;
    }
    if (is_pickle(head, n)) {
        lb_refuse_pickle(cx, f);
        return NULL;
    }
    lb_fail(cx, LB_E_CONTENT,
            "%s: unknown file format: starts with %02x %02x %02x %02x (%llu "
            "bytes); supported are safetensors, GGUF, npy and npz",
            LB_PATH(f->path), head[0], head[1], head[2], head[3],
            (unsigned long long)f->size);
    return NULL;
}

lb_reader *lb_reader_open_file(lb_ctx *cx, lb_infile *file,
                               const lb_read_options *options)
{
    if (!file) return NULL;
    const lb_container *kind = kind_of(cx, file);
    lb_arena arena = {.heap = cx->heap};
    lb_reader *r = NULL;
    if (kind) r = lb_arena_alloc(cx, &arena, 1, sizeof *r);
    if (r) r->file = lb_arena_alloc(cx, &arena, 1, sizeof *r->file);
    if (!r || !r->file) {
        lb_arena_free(&arena);
        lb_infile_unref(file);
        return NULL;
    }
    r->kind = kind;
    r->arena = arena;
    r->file[r->n_files++] = file;
    if (options) r->options = *options;
    if (!r->options.max_header) r->options.max_header = LB_HEADER_MOST;
    if (kind->open(cx, r) && lb_reader_index(cx, r)) return r;
    lb_reader_close(r);
    return NULL;
}

/* Files of PyTorch pickles in a directory; name: the first one in alphabetical
 * order. */
static bool has_pickles(const char *dir, char *name, size_t size)
{
    static const char *const end[] = {".bin", ".bin.index.json", ".pt", ".pth",
                                      ".ckpt"};
    DIR *d = opendir(dir);
    *name = 0;
    if (!d) return false;
    for (const struct dirent *e; (e = readdir(d));) {
        const size_t n = strlen(e->d_name);
        for (size_t i = 0; i < sizeof end / sizeof *end; i++) {
            const size_t k = strlen(end[i]);
            if (n > k && n < size && strcmp(e->d_name + n - k, end[i]) == 0 &&
                (!*name || strcmp(e->d_name, name) < 0))
                memcpy(name, e->d_name, n + 1);
        }
    }
    closedir(d);
    return *name != 0;
}

static void refuse_directory(lb_ctx *cx, const char *dir,
                             const char *const name[2])
{
    char pickle[256];
    if (has_pickles(dir, pickle, sizeof pickle))
        lb_fail(cx, LB_E_UNSUPPORTED,
                "%s: has PyTorch pickles (%s) and no %s; pickles are not "
                "supported, convert them to safetensors first",
                LB_PATH(dir), LB_NAME(pickle), name[1]);
    else
        lb_fail(cx, LB_E_CONTENT, "%s: a directory without %s or %s",
                LB_PATH(dir), name[0], name[1]);
}

/* A model directory, as written by Hugging Face tools. */
static lb_infile *open_in(lb_ctx *cx, const char *dir,
                          const lb_read_options *options)
{
    static const char *const name[] = {"model.safetensors.index.json",
                                       "model.safetensors"};
    lb_bytes path = {.heap = cx->heap};
    lb_infile *f = NULL;
    bool found = false;
    for (int i = 0; i < 2 && !found && !path.failed; i++) {
        struct stat st;
        path.n = 0;
        lb_bytes_put(&path, dir, strlen(dir));
        lb_bytes_put(&path, "/", 1);
        lb_bytes_put(&path, name[i], strlen(name[i]) + 1);
        found = !path.failed && stat((const char *)path.at, &st) == 0;
    }
    if (found)
        f = lb_infile_open(cx, (const char *)path.at,
                           options && options->no_map);
    else if (path.failed)
        lb_fail(cx, LB_E_NOMEM, "out of memory");
    else
        refuse_directory(cx, dir, name);
    lb_bytes_free(&path);
    return f;
}

lb_reader *lb_reader_open(lb_ctx *cx, const char *path,
                          const lb_read_options *options)
{
    struct stat st;
    lb_infile *f;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        f = open_in(cx, path, options);
    else
        f = lb_infile_open(cx, path, options && options->no_map);
    return lb_reader_open_file(cx, f, options);
}

void lb_reader_close(lb_reader *r)
{
    if (!r) return;
    if (r->kind->close) r->kind->close(r);
    for (int i = 0; i < r->n_files; i++)
        lb_infile_unref(r->file[i]);
    lb_arena arena = r->arena; /* r itself is in this arena */
    lb_arena_free(&arena);
}

/* ---- finding ------------------------------------------------------------- */

bool lb_reader_index(lb_ctx *cx, lb_reader *r)
{
    if (r->by_name) return true;
    lb_tensor **by = lb_sort_tensors(cx, &r->arena, r->tensor, r->n_tensors);
    r->by_key = lb_sort_meta(cx, &r->arena, r->meta, r->n_meta);
    if (!by || !r->by_key) return false;
    const lb_tensor *twin = lb_tensor_twin(by, r->n_tensors);
    if (twin)
        return lb_refuse(cx, r->file[twin->file], "duplicate tensor '%s'",
                         LB_NAME(twin->name));
    const lb_meta *same = lb_meta_twin(r->by_key, r->n_meta);
    if (same)
        return lb_refuse(cx, r->file[0], "duplicate metadata key '%s'",
                         LB_NAME(same->key));
    r->by_name = by;
    return true;
}

const lb_tensor *lb_reader_find_in(const lb_reader *r, const char *prefix,
                                   size_t n, const char *suffix)
{
    int64_t lo = 0, hi = r->n_tensors;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        const char *at = r->by_name[mid]->name;
        int c = strncmp(at, prefix, n);
        if (c == 0) c = strcmp(at + n, suffix);
        if (c == 0) return r->by_name[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

const lb_tensor *lb_reader_find(const lb_reader *r, const char *name)
{
    return lb_reader_find_in(r, name, strlen(name), "");
}

const lb_meta *lb_reader_meta_in(const lb_reader *r, const char *prefix,
                                 const char *rest, size_t n)
{
    const size_t before = strlen(prefix);
    int64_t lo = 0, hi = r->n_meta;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        const char *at = r->by_key[mid]->key;
        int c = strncmp(at, prefix, before);
        if (c == 0) c = strncmp(at + before, rest, n);
        if (c == 0 && !at[before + n]) return r->by_key[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

const lb_meta *lb_reader_meta(const lb_reader *r, const char *key)
{
    return lb_reader_meta_in(r, "", key, strlen(key));
}

/* ---- reading ------------------------------------------------------------- */

const void *lb_reader_at(const lb_reader *r, const lb_tensor *t)
{
    if (t->packed || t->swap) return NULL;
    return lb_infile_at(r->file[t->file], t->begin, t->size);
}

static void turn_around(uint8_t *p, size_t n, size_t unit)
{
    for (; n >= unit; n -= unit, p += unit)
        for (size_t i = 0, j = unit - 1; i < j; i++, j--) {
            const uint8_t c = p[i];
            p[i] = p[j];
            p[j] = c;
        }
}

bool lb_reader_read(lb_ctx *cx, lb_reader *r, const lb_tensor *t,
                    uint64_t first, size_t n, void *dst)
{
    if (first > t->size || n > t->size - first)
        return lb_fail(
            cx, LB_E_ARG,
            "tensor '%s' has %llu bytes: cannot read %zu at offset %llu",
            LB_NAME(t->name), (unsigned long long)t->size, n,
            (unsigned long long)first);
    const uint64_t unit = t->swap ? (uint64_t)t->swap : 1;
    if (first % unit || n % unit)
        return lb_fail(cx, LB_E_ARG,
                       "tensor '%s' is big-endian: bytes %llu to %llu are not "
                       "whole units of %d",
                       LB_NAME(t->name), (unsigned long long)first,
                       (unsigned long long)(first + n), t->swap);
    const bool ok = t->packed ? r->kind->unpack(cx, r, t, first, n, dst)
                              : lb_infile_read(cx, r->file[t->file],
                                               t->begin + first, n, dst);
    if (ok && t->swap) turn_around(dst, n, (size_t)t->swap);
    return ok;
}
