/* npz.c - numpy's file of several arrays: a ZIP archive of npy files.
 *
 * Members that are neither named .npy nor start like an npy file are not
 * listed. io/util/zip.h reads the archive, npz_write.c writes it.
 */
#include <string.h>

#include "core/core.h"
#include "io/containers/meta_texts.h"
#include "io/containers/npy_header.h"
#include "io/containers/npz_write.h"
#include "io/util/zip.h"

typedef struct archive {
    lb_zip zip;
    uint64_t *data; /* for each array: offset of its elements in its member */
} archive;

/* ---- opening ------------------------------------------------------------- */

/* A local file header, or the end of an empty archive. */
static bool npz_probe(const uint8_t *head, size_t n)
{
    return n >= 4 && (memcmp(head, "PK\x03\x04", 4) == 0 ||
                      memcmp(head, "PK\x05\x06", 4) == 0);
}

static bool read_header(lb_ctx *cx, lb_reader *r, archive *a,
                        const lb_zip_member *m, lb_tensor *t)
{
    uint8_t head[LB_NPY_PREFIX], literal[LB_NPY_LITERAL_BYTES];
    const size_t n = m->size < sizeof head ? (size_t)m->size : sizeof head;
    size_t begin = 0, length = 0;
    int major = 0;
    lb_infile *f = r->file[0];
    const lb_quoted who = lb_quote(t->name, strlen(t->name), false);
    if (!lb_zip_begin(cx, &a->zip, m, t->name) ||
        !lb_zip_read(cx, &a->zip, head, n) ||
        !lb_npy_prefix(cx, f, who.s, head, n, &begin, &length, &major))
        return false;
    /* the prefix read may be longer than a short header */
    const size_t have = n - begin < length ? n - begin : length;
    memcpy(literal, head + begin, have);
    if (!lb_zip_read(cx, &a->zip, literal + have, length - have) ||
        !lb_npy_parse(cx, f, who.s, &r->arena, literal, length, major, t))
        return false;
    const uint64_t data = begin + length;
    if (data > m->size || t->size > m->size - data)
        return lb_refuse(cx, f,
                         "'%s' is truncated: its array needs %llu bytes from "
                         "byte %llu on, but it has only %llu",
                         who.s, (unsigned long long)t->size,
                         (unsigned long long)data, (unsigned long long)m->size);
    t->packed = true;
    t->id = m - a->zip.member;
    a->data[t->id] = data;
    return true;
}

/* *len: length of its name without ".npy". numpy looks at the content of a
 * member, not at its name. One that is named .npy but is none is damaged, which
 * is found when its header is parsed. */
static bool is_array(lb_ctx *cx, archive *a, const lb_zip_member *m,
                     size_t *len, bool *yes)
{
    uint8_t head[LB_NPY_PREFIX];
    *len = strlen(m->name);
    *yes = *len >= 4 && strcmp(m->name + *len - 4, ".npy") == 0;
    if (*yes) *len -= 4;
    if (*yes || m->size < sizeof head) return true;
    if (!lb_zip_begin(cx, &a->zip, m, m->name) ||
        !lb_zip_read(cx, &a->zip, head, sizeof head))
        return false;
    *yes = lb_npy_probe(head, sizeof head);
    return true;
}

/* PyTorch's archives, saved by torch.save or torch.jit.save, are ZIP files with
 * a pickle called ARCHIVE/data.pkl. */
static bool is_pickle(const char *name)
{
    static const char pickle[] = "data.pkl";
    const char *slash = strrchr(name, '/');
    return strcmp(slash ? slash + 1 : name, pickle) == 0;
}

/* The text metadata in LB_NPZ_METADATA. */
static bool read_metadata(lb_ctx *cx, lb_reader *r, archive *a,
                          const lb_zip_member *m)
{
    lb_infile *f = r->file[0];
    if (m->size > r->options.max_header)
        return lb_refuse(cx, f, "'%s' has %llu bytes; the maximum is %llu",
                         LB_NAME(m->name), (unsigned long long)m->size,
                         (unsigned long long)r->options.max_header);
    const size_t n = (size_t)m->size;
    lb_arena copy = {.heap = cx->heap};
    char *text = lb_arena_alloc(cx, &copy, n, 1);
    lb_infile *wrapped = NULL;
    if (text && lb_zip_begin(cx, &a->zip, m, m->name) &&
        lb_zip_read(cx, &a->zip, text, n))
        wrapped = lb_infile_wrap(cx, f->path, text, n);
    lb_json j = {.failed = true, .cx = cx};
    bool ok = wrapped && lb_json_begin(cx, &j, wrapped, 0, n, LB_NPZ_METADATA);
    if (ok && !lb_meta_texts_read(&j, &r->arena, &r->meta, &r->n_meta))
        j.failed = true;
    ok = wrapped && lb_json_end(&j);
    lb_infile_unref(wrapped);
    lb_arena_free(&copy);
    return ok;
}

static bool list_members(lb_ctx *cx, lb_reader *r, archive *a)
{
    const int64_t n = a->zip.n;
    bool has_metadata = false;
    r->tensor = lb_arena_alloc(cx, &r->arena, (uint64_t)n, sizeof *r->tensor);
    a->data = lb_arena_alloc(cx, &r->arena, (uint64_t)n, sizeof *a->data);
    if (!r->tensor || !a->data) return false;
    for (const lb_zip_member *m = a->zip.member; m < a->zip.member + n; m++) {
        lb_tensor *t = &r->tensor[r->n_tensors];
        size_t len = 0;
        bool yes = false;
        if (is_pickle(m->name)) return lb_refuse_pickle(cx, r->file[0]);
        if (!lb_zip_check(cx, &a->zip, m)) return false;
        if (strcmp(m->name, LB_NPZ_METADATA) == 0) {
            if (has_metadata)
                return lb_refuse(cx, r->file[0], "duplicate member '%s'",
                                 m->name);
            if (!read_metadata(cx, r, a, m)) return false;
            has_metadata = true;
            continue;
        }
        if (!is_array(cx, a, m, &len, &yes)) return false;
        if (!yes) continue;
        t->name = lb_arena_text(cx, &r->arena, m->name, len);
        if (!t->name || !read_header(cx, r, a, m, t)) return false;
        r->n_tensors++;
    }
    if (n > 0 && !r->n_tensors)
        return lb_refuse(cx, r->file[0],
                         "a ZIP archive of %lld file%s without a single npy "
                         "array, not an npz file",
                         (long long)n, n == 1 ? "" : "s");
    return true;
}

static bool npz_open(lb_ctx *cx, lb_reader *r)
{
    archive *a = lb_arena_alloc(cx, &r->arena, 1, sizeof *a);
    r->own = a;
    return a && lb_zip_open(cx, &r->arena, r->file[0], &a->zip) &&
           list_members(cx, r, a);
}

static void npz_close(lb_reader *r)
{
    archive *a = r->own;
    if (a) lb_zip_close(&a->zip);
}

/* ---- reading ------------------------------------------------------------- */

/* After the array's last byte, what follows it in the member is read, so that
 * the checksum is compared, unless it is unknown already. */
static bool npz_unpack(lb_ctx *cx, lb_reader *r, const lb_tensor *t,
                       uint64_t first, size_t n, void *dst)
{
    archive *a = r->own;
    lb_zip *z = &a->zip;
    const lb_zip_member *m = &z->member[t->id];
    const uint64_t at = a->data[t->id] + first;
    const bool goes_on = z->open == m && z->at <= at;
    if (!goes_on && !lb_zip_begin(cx, z, m, t->name)) return false;
    return lb_zip_skip(cx, z, at, true) && lb_zip_read(cx, z, dst, n) &&
           (z->at != a->data[t->id] + t->size ||
            lb_zip_skip(cx, z, m->size, z->jumped));
}

const lb_container lb_container_npz = {
    .name = "npz",
    .coding = lb_npy_types,
    .fortran = true,
    .probe = npz_probe,
    .open = npz_open,
    .close = npz_close,
    .unpack = npz_unpack,
    .compose = lb_npz_compose,
    .before = lb_npz_before,
    .put = lb_npz_put,
    .after = lb_npz_after,
    .finish = lb_npz_finish,
};
