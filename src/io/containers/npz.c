/* npz.c - numpy's file of several arrays: a ZIP archive of npy files.
 *
 * Read with libzip through callbacks, so that libzip uses only the opened file.
 * Members that are neither named .npy nor start like an npy file are not
 * listed. Decompressed sizes are bounded: a member cannot be larger than its
 * compression method allows, and all members together cannot exceed the file
 * in compressed size.
 *
 * npz_write.c writes them.
 */
#include <stdio.h>
#include <string.h>
#include <zip.h>

#include "core/core.h"
#include "io/containers/meta_texts.h"
#include "io/containers/npy_header.h"
#include "io/containers/npz_write.h"

/* Compression methods that numpy and Python's zipfile write. times: the maximum
 * ratio of uncompressed to compressed size. deflate: 258 bytes in two bits.
 * bzip2: a block of 900,000 bytes, each 5 of which are runs of 255, in 32.
 * LZMA: 273 bytes in 14 binary decisions of 0.022 bits. zstd: a block of 128
 * KiB, all bytes equal, in 4. */
static const struct {
    const char *name;
    int method;
    uint64_t times;
} methods[] = {
    {"stored", ZIP_CM_STORE, 1},
    {"deflate", ZIP_CM_DEFLATE, 1032},
    {"bzip2", ZIP_CM_BZIP2, 1500000},
    {"LZMA", ZIP_CM_LZMA, 8000},
    {"XZ", 95, 8000},
    {"zstd", 93, 32768},
    {"Deflate64", ZIP_CM_DEFLATE64, 0},
    {"PPMd", ZIP_CM_PPMD, 0},
};
enum { N_METHODS = sizeof methods / sizeof *methods };

/* The source that libzip reads from. */
typedef struct source {
    lb_infile *f;
    uint64_t at;
    zip_error_t error;
} source;

typedef struct npz_member {
    uint64_t size; /* uncompressed */
    uint64_t data; /* offset of its elements */
    bool stored;   /* supports random access */
} npz_member;

typedef struct archive {
    source from;
    zip_t *zip;
    zip_file_t *open;   /* the open member, or NULL */
    int64_t id;         /* its index */
    uint64_t at;        /* position in it */
    bool jumped;        /* bytes were skipped: the checksum is unknown */
    npz_member *member; /* for each array */
} archive;

/* ---- the file, as libzip sees it ----------------------------------------- */

static zip_int64_t source_read(source *s, void *to, zip_uint64_t n)
{
    const uint64_t left = s->f->size - s->at;
    if (n > left) n = left;
    if (n > SIZE_MAX / 2) n = SIZE_MAX / 2;
    const int error = lb_infile_pread(s->f, s->at, (size_t)n, to);
    if (error) {
        zip_error_set(&s->error, ZIP_ER_READ, error);
        return -1;
    }
    s->at += n;
    return (zip_int64_t)n;
}

static zip_int64_t source_stat(const source *s, void *to, zip_uint64_t n)
{
    zip_stat_t *st = to;
    if (n < sizeof *st) return -1;
    zip_stat_init(st);
    st->size = s->f->size;
    st->valid = ZIP_STAT_SIZE;
    return sizeof *st;
}

static zip_int64_t source_call(void *user, void *data, zip_uint64_t n,
                               zip_source_cmd_t what)
{
    source *s = user;
    zip_int64_t to;
    switch (what) {
    case ZIP_SOURCE_OPEN:
        s->at = 0;
        return 0;
    case ZIP_SOURCE_READ:
        return source_read(s, data, n);
    case ZIP_SOURCE_SEEK:
        to = zip_source_seek_compute_offset(s->at, s->f->size, data, n,
                                            &s->error);
        if (to < 0) return -1;
        s->at = (uint64_t)to;
        return 0;
    case ZIP_SOURCE_TELL:
        return (zip_int64_t)s->at;
    case ZIP_SOURCE_STAT:
        return source_stat(s, data, n);
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&s->error, data, n);
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
        return 0;
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(
            ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT,
            ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL,
            ZIP_SOURCE_SUPPORTS, -1);
    default:
        zip_error_set(&s->error, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
}

/* ---- opening ------------------------------------------------------------- */

/* A local file header, or the end of an empty archive. */
static bool npz_probe(const uint8_t *head, size_t n)
{
    return n >= 4 && (memcmp(head, "PK\x03\x04", 4) == 0 ||
                      memcmp(head, "PK\x05\x06", 4) == 0);
}

static bool refuse_zip(lb_ctx *cx, const lb_infile *f, const char *who,
                       zip_error_t *e)
{
    if (zip_error_code_zip(e) == ZIP_ER_MEMORY)
        return lb_fail(cx, LB_E_NOMEM, "out of memory");
    return lb_refuse(cx, f, "%s: %s", who, LB_NAME(zip_error_strerror(e)));
}

static bool open_archive(lb_ctx *cx, lb_reader *r, archive *a)
{
    zip_error_t e;
    zip_error_init(&e);
    zip_error_init(&a->from.error);
    a->from.f = r->file[0];
    zip_source_t *s = zip_source_function_create(source_call, &a->from, &e);
    if (s) a->zip = zip_open_from_source(s, ZIP_RDONLY | ZIP_CHECKCONS, &e);
    if (s && !a->zip) zip_source_free(s);
    const bool ok = a->zip || refuse_zip(cx, r->file[0], "archive", &e);
    zip_error_fini(&e);
    return ok;
}

static void close_member(archive *a)
{
    if (a->open) zip_fclose(a->open);
    a->open = NULL;
}

/* Reads the next n bytes of the open member. */
static bool read_member(lb_ctx *cx, lb_reader *r, archive *a, const char *name,
                        void *to, size_t n)
{
    const zip_int64_t got = zip_fread(a->open, to, n);
    if (got < 0)
        return refuse_zip(cx, r->file[0], LB_NAME(name),
                          zip_file_get_error(a->open));
    a->at += (uint64_t)got;
    if ((uint64_t)got == n) return true;
    return lb_refuse(cx, r->file[0], "'%s' is truncated after %llu bytes",
                     LB_NAME(name), (unsigned long long)a->at);
}

/* Whether the member, all of whose bytes were read, ends there. libzip compares
 * the checksum at the end, which takes one more read. */
static bool ends_here(lb_ctx *cx, lb_reader *r, archive *a, const char *name,
                      uint64_t size)
{
    uint8_t more;
    const zip_int64_t got = zip_fread(a->open, &more, 1);
    if (got == 0) return true;
    if (got > 0)
        return lb_refuse(cx, r->file[0],
                         "'%s' has more than its stated %llu bytes",
                         LB_NAME(name), (unsigned long long)size);
    return refuse_zip(cx, r->file[0], LB_NAME(name),
                      zip_file_get_error(a->open));
}

static bool open_member(lb_ctx *cx, lb_reader *r, archive *a, const char *name,
                        int64_t id)
{
    close_member(a);
    a->open = zip_fopen_index(a->zip, (zip_uint64_t)id, 0);
    a->id = id;
    a->at = 0;
    a->jumped = false;
    if (a->open) return true;
    return refuse_zip(cx, r->file[0], LB_NAME(name), zip_get_error(a->zip));
}

/* Whether the sizes of a member are possible; *packed accumulates compressed
 * sizes. libzip should have found the first two errors itself, but some
 * versions do not. */
static bool check_member(lb_ctx *cx, const lb_infile *f, const zip_stat_t *st,
                         uint64_t *packed)
{
    const zip_uint64_t need = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                              ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if ((st->valid & need) != need)
        return lb_refuse(cx, f, "'%s' has no size in its header",
                         LB_NAME(st->name));
    if (st->comp_size > f->size - *packed)
        return lb_refuse(cx, f,
                         "'%s' takes %llu bytes: with the members before it "
                         "more than the file, which has %llu",
                         LB_NAME(st->name), (unsigned long long)st->comp_size,
                         (unsigned long long)f->size);
    *packed += st->comp_size;
    if (st->encryption_method != ZIP_EM_NONE)
        return lb_refuse(cx, f, "'%s' is encrypted", LB_NAME(st->name));
    int k = 0;
    while (k < N_METHODS && methods[k].method != st->comp_method)
        k++;
    if (k == N_METHODS || !methods[k].times ||
        !zip_compression_method_supported(st->comp_method, 0))
        return lb_refuse(
            cx, f,
            "'%s' is compressed with %s (method %d), which %s does "
            "not support; save it again with numpy.savez or "
            "numpy.savez_compressed",
            LB_NAME(st->name),
            k < N_METHODS ? methods[k].name : "an unknown method",
            st->comp_method,
            k < N_METHODS && methods[k].times ? "this libzip" : "lowbit");
    if (st->size / methods[k].times > st->comp_size)
        return lb_refuse(cx, f,
                         "'%s' cannot have %llu bytes when compressed to %llu",
                         LB_NAME(st->name), (unsigned long long)st->size,
                         (unsigned long long)st->comp_size);
    return true;
}

static bool read_header(lb_ctx *cx, lb_reader *r, archive *a, int64_t id,
                        const zip_stat_t *st, lb_tensor *t)
{
    uint8_t head[LB_NPY_PREFIX], literal[LB_NPY_LITERAL_BYTES];
    const size_t n = st->size < sizeof head ? (size_t)st->size : sizeof head;
    size_t begin = 0, length = 0;
    int major = 0;
    lb_infile *f = r->file[0];
    const lb_quoted who = lb_quote(t->name, strlen(t->name), false);
    if (!open_member(cx, r, a, t->name, id) ||
        !read_member(cx, r, a, t->name, head, n) ||
        !lb_npy_prefix(cx, f, who.s, head, n, &begin, &length, &major))
        return false;
    /* the prefix read may be longer than a short header */
    const size_t have = n - begin < length ? n - begin : length;
    memcpy(literal, head + begin, have);
    if (!read_member(cx, r, a, t->name, literal + have, length - have) ||
        !lb_npy_parse(cx, f, who.s, &r->arena, literal, length, major, t))
        return false;
    const uint64_t data = begin + length;
    if (data > st->size || t->size > st->size - data)
        return lb_refuse(cx, f,
                         "'%s' is truncated: its array needs %llu bytes from "
                         "byte %llu on, but it has only %llu",
                         who.s, (unsigned long long)t->size,
                         (unsigned long long)data,
                         (unsigned long long)st->size);
    a->member[id] =
        (npz_member){st->size, data, st->comp_method == ZIP_CM_STORE};
    t->packed = true;
    t->id = id;
    return true;
}

/* *len: length of its name without ".npy". numpy looks at the content of a
 * member, not at its name. One that is named .npy but is none is damaged, which
 * is found when its header is parsed. */
static bool is_array(lb_ctx *cx, lb_reader *r, archive *a, int64_t id,
                     const zip_stat_t *st, size_t *len, bool *yes)
{
    uint8_t head[LB_NPY_PREFIX];
    *len = strlen(st->name);
    *yes = *len >= 4 && strcmp(st->name + *len - 4, ".npy") == 0;
    if (*yes) *len -= 4;
    if (*yes || st->size < sizeof head) return true;
    if (!open_member(cx, r, a, st->name, id)) return false;
    const zip_int64_t got = zip_fread(a->open, head, sizeof head);
    *yes = got > 0 && lb_npy_probe(head, (size_t)got);
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
static bool read_metadata(lb_ctx *cx, lb_reader *r, archive *a, int64_t id,
                          const zip_stat_t *st)
{
    lb_infile *f = r->file[0];
    if (st->size > r->options.max_header)
        return lb_refuse(cx, f, "'%s' has %llu bytes; the maximum is %llu",
                         LB_NAME(st->name), (unsigned long long)st->size,
                         (unsigned long long)r->options.max_header);
    const size_t n = (size_t)st->size;
    lb_arena copy = {.heap = cx->heap};
    char *text = lb_arena_alloc(cx, &copy, n, 1);
    lb_infile *wrapped = NULL;
    if (text && open_member(cx, r, a, st->name, id) &&
        read_member(cx, r, a, st->name, text, n) &&
        ends_here(cx, r, a, st->name, st->size))
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
    const zip_int64_t n = zip_get_num_entries(a->zip, ZIP_FL_UNCHANGED);
    uint64_t packed = 0;
    const uint64_t room = n < 0 ? 0 : (uint64_t)n;
    r->tensor = lb_arena_alloc(cx, &r->arena, room, sizeof *r->tensor);
    a->member = lb_arena_alloc(cx, &r->arena, room, sizeof *a->member);
    if (!r->tensor || !a->member) return false;
    for (int64_t i = 0; i < n; i++) {
        zip_stat_t st;
        lb_tensor *t = &r->tensor[r->n_tensors];
        if (zip_stat_index(a->zip, (zip_uint64_t)i, ZIP_FL_ENC_STRICT, &st))
            return refuse_zip(cx, r->file[0], "archive", zip_get_error(a->zip));
        if (is_pickle(st.name)) return lb_refuse_pickle(cx, r->file[0]);
        if (!check_member(cx, r->file[0], &st, &packed)) return false;
        size_t len = 0;
        bool yes = false;
        if (strcmp(st.name, LB_NPZ_METADATA) == 0 && !r->meta) {
            if (!read_metadata(cx, r, a, i, &st)) return false;
            continue;
        }
        if (!is_array(cx, r, a, i, &st, &len, &yes)) return false;
        if (!yes) continue;
        t->name = lb_arena_text(cx, &r->arena, st.name, len);
        if (!t->name || !read_header(cx, r, a, i, &st, t)) return false;
        r->n_tensors++;
    }
    close_member(a);
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
    return a && open_archive(cx, r, a) && list_members(cx, r, a);
}

static void npz_close(lb_reader *r)
{
    archive *a = r->own;
    if (!a) return;
    close_member(a);
    if (a->zip) zip_discard(a->zip);
    zip_error_fini(&a->from.error);
}

/* ---- reading ------------------------------------------------------------- */

/* Seeks forward in the open member. The checksum is known only if all bytes are
 * read: short distances, and compressed data, are read and discarded. */
static bool go_to(lb_ctx *cx, lb_reader *r, archive *a, const lb_tensor *t,
                  uint64_t at, bool may_jump)
{
    uint8_t nowhere[16384];
    if (may_jump && at - a->at > sizeof nowhere && a->member[t->id].stored &&
        at <= INT64_MAX && !zip_fseek(a->open, (zip_int64_t)at, SEEK_SET)) {
        a->at = at;
        a->jumped = true;
    }
    while (a->at < at) {
        const uint64_t left = at - a->at;
        const size_t n = left < sizeof nowhere ? (size_t)left : sizeof nowhere;
        if (!read_member(cx, r, a, t->name, nowhere, n)) return false;
    }
    return true;
}

/* Reads the rest of the member after the array, so that its checksum is
 * compared. */
static bool check_end(lb_ctx *cx, lb_reader *r, archive *a, const lb_tensor *t)
{
    const uint64_t size = a->member[t->id].size;
    if (a->at != a->member[t->id].data + t->size) return true;
    return go_to(cx, r, a, t, size, a->jumped) &&
           ends_here(cx, r, a, t->name, size);
}

static bool npz_unpack(lb_ctx *cx, lb_reader *r, const lb_tensor *t,
                       uint64_t first, size_t n, void *dst)
{
    archive *a = r->own;
    const uint64_t at = a->member[t->id].data + first;
    const bool goes_on = a->open && a->id == t->id && a->at <= at;
    if (!goes_on && !open_member(cx, r, a, t->name, t->id)) return false;
    const bool ok = go_to(cx, r, a, t, at, true) &&
                    read_member(cx, r, a, t->name, dst, n) &&
                    check_end(cx, r, a, t);
    if (!ok) close_member(a);
    return ok;
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
