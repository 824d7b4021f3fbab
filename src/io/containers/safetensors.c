/* safetensors.c - safetensors, compatible with the reference implementation in
 * Rust:
 *
 *     u64 N, little-endian | N bytes of JSON | data, to the end of the file
 *     {"__metadata__":{key:text},name:{"dtype":"F16","shape":[2,3],
 *      "data_offsets":[begin,end]}}
 *
 * Tensors are little-endian and row-major, and their bytes cover the data
 * without gaps, overlaps or a rest. They are written sorted by dtype, widest
 * first, then by name, with compact JSON padded by spaces to a multiple of 8.
 * Tensors may not be aligned further.
 */
#include "io/containers/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "io/containers/meta_texts.h"

/* In the order of writing. */
static const lb_coding types[] = {
    {"U64", LB_U64, 1, 8, 0},
    {"I64", LB_I64, 1, 8, 1},
    {"F64", LB_F64, 1, 8, 2},
    {"C64", LB_NO_DTYPE, 1, 8, 3},
    {"F32", LB_F32, 1, 4, 4},
    {"U32", LB_U32, 1, 4, 5},
    {"I32", LB_I32, 1, 4, 6},
    {"BF16", LB_BF16, 1, 2, 7},
    {"F16", LB_F16, 1, 2, 8},
    {"U16", LB_U16, 1, 2, 9},
    {"I16", LB_I16, 1, 2, 10},
    {"F8_E5M2FNUZ", LB_NO_DTYPE, 1, 1, 11},
    {"F8_E4M3FNUZ", LB_NO_DTYPE, 1, 1, 12},
    {"F8_E8M0", LB_NO_DTYPE, 1, 1, 13},
    {"F8_E4M3", LB_NO_DTYPE, 1, 1, 14},
    {"F8_E5M2", LB_NO_DTYPE, 1, 1, 15},
    {"I8", LB_I8, 1, 1, 16},
    {"U8", LB_U8, 1, 1, 17},
    {"F6_E3M2", LB_NO_DTYPE, 4, 3, 18},
    {"F6_E2M3", LB_NO_DTYPE, 4, 3, 19},
    {"F4", LB_NO_DTYPE, 2, 1, 20},
    {"BOOL", LB_BOOL, 1, 1, 21},
    {NULL, LB_NO_DTYPE, 0, 0, 0},
};

static const char metadata_key[] = "__metadata__";

/* ---- reading ------------------------------------------------------------- */

/* Source of a header and destination of its content. */
typedef struct safetensors_task {
    lb_ctx *cx;
    lb_reader *r;
    lb_infile *f;
    uint64_t size; /* bytes of data */
    lb_safetensors_list *list;
    bool seen; /* bytes of metadata */
    lb_json j;
} safetensors_task;

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* A weak test, tried last: the file starts with an object at once, or with a
 * plausible length, below 2^40. */
static bool safetensors_probe(const uint8_t *head, size_t n)
{
    if (n < 8) return false;
    if (n > 8 && head[8] == '{') return true;
    return !head[5] && !head[6] && !head[7] && (n == 8 || is_space(head[8]));
}

/* "F32", or {"F32":null}, which the reference accepts as well. */
static void read_dtype(lb_json *j, char *dtype, size_t size)
{
    if (lb_json_peek(j) != '{') {
        lb_json_word(j, dtype, size);
        return;
    }
    *dtype = 0;
    lb_json_enter(j, '{');
    if (lb_json_more(j, '}')) lb_json_key_word(j, dtype, size);
    if (lb_json_peek(j) != 'n') lb_json_wrong(j, "no null");
    lb_json_skip(j);
    if (lb_json_more(j, '}')) lb_json_wrong(j, "two dtypes");
}

static bool read_type(safetensors_task *k, lb_tensor *t,
                      const lb_coding **coding)
{
    char dtype[64];
    read_dtype(&k->j, dtype, sizeof dtype);
    if (k->j.failed) return false;
    *coding = lb_coding_find(types, dtype);
    if (!*coding)
        return lb_refuse(
            k->cx, k->f,
            "tensor '%s' has dtype '%s', which safetensors does not have",
            LB_NAME(t->name), LB_NAME(dtype));
    t->type = (*coding)->name;
    t->dtype = (*coding)->dtype;
    t->id = (*coding)->code;
    return true;
}

static bool read_shape(safetensors_task *k, lb_tensor *t)
{
    lb_json *j = &k->j;
    const uint64_t rank = lb_json_entries(j);
    if (j->failed) return false;
    if (rank > INT32_MAX)
        return lb_refuse(k->cx, k->f, "tensor '%s' has rank %llu",
                         LB_NAME(t->name), (unsigned long long)rank);
    int64_t *dim = lb_arena_alloc(k->cx, &k->r->arena, rank, sizeof *dim);
    if (!dim) return false;
    t->rank = (int)rank;
    t->dim = dim;
    lb_json_enter(j, '[');
    while (lb_json_more(j, ']'))
        *dim++ = lb_json_count_of(j);
    return !j->failed;
}

static bool read_range(safetensors_task *k, lb_tensor *t)
{
    lb_json *j = &k->j;
    int64_t at[2] = {0, -1};
    uint64_t n = 0;
    lb_json_enter(j, '[');
    for (; lb_json_more(j, ']'); n++) {
        const int64_t v = lb_json_count_of(j);
        if (n < 2) at[n] = v;
    }
    if (j->failed) return false;
    if (n != 2 || at[1] < at[0])
        return lb_refuse(k->cx, k->f,
                         "tensor '%s' has data_offsets that are not [begin, "
                         "end]: got %lld and %lld",
                         LB_NAME(t->name), (long long)at[0], (long long)at[1]);
    t->begin = (uint64_t)at[0];
    t->size = (uint64_t)(at[1] - at[0]);
    return true;
}

enum { DTYPE, SHAPE, RANGE, N_FIELDS };

static bool read_field(safetensors_task *k, lb_tensor *t, unsigned which,
                       const lb_coding **coding)
{
    switch (which) {
    case DTYPE:
        return read_type(k, t, coding);
    case SHAPE:
        return read_shape(k, t);
    case RANGE:
        return read_range(k, t);
    default: /* skipped, as the reference does */
        lb_json_skip(&k->j);
        return true;
    }
}

/* An object, or an array of the three fields, which the reference accepts as
 * well. */
static bool read_fields(safetensors_task *k, lb_tensor *t,
                        const lb_coding **coding)
{
    static const char *const name[] = {"dtype", "shape", "data_offsets"};
    lb_json *j = &k->j;
    const bool named = lb_json_peek(j) != '[';
    const char close = named ? '}' : ']';
    unsigned seen = 0;
    lb_json_enter(j, named ? '{' : '[');
    for (unsigned next = 0; lb_json_more(j, close); next++) {
        char key[16];
        unsigned i = named ? 0 : next;
        if (named) lb_json_key_word(j, key, sizeof key);
        while (named && i < N_FIELDS && strcmp(key, name[i]) != 0)
            i++;
        if (!named && i >= N_FIELDS) return lb_json_wrong(j, "a fourth field");
        if (i < N_FIELDS && seen & 1u << i)
            return lb_refuse(k->cx, k->f, "tensor '%s' has a duplicate %s",
                             LB_NAME(t->name), name[i]);
        if (i < N_FIELDS) seen |= 1u << i;
        if (!read_field(k, t, i, coding)) return false;
    }
    if (j->failed) return false;
    for (unsigned i = 0; i < N_FIELDS; i++)
        if (!(seen & 1u << i))
            return lb_refuse(k->cx, k->f, "tensor '%s' has no %s",
                             LB_NAME(t->name), name[i]);
    return true;
}

static bool read_tensor(safetensors_task *k, lb_tensor *t)
{
    const lb_coding *coding = NULL;
    uint64_t size = 0;
    if (!read_fields(k, t, &coding)) return false;
    if (!lb_coding_size(coding, t->dim, t->rank, &size))
        return lb_refuse(k->cx, k->f,
                         "tensor '%s': the size of its shape with dtype %s "
                         "overflows or is not whole bytes",
                         LB_NAME(t->name), t->type);
    if (size != t->size)
        return lb_refuse(k->cx, k->f,
                         "tensor '%s' has %llu bytes of data, but its shape "
                         "and dtype %s need %llu",
                         LB_NAME(t->name), (unsigned long long)t->size, t->type,
                         (unsigned long long)size);
    return true;
}

/* Strings by name; null counts as empty. */
static bool read_metadata(safetensors_task *k)
{
    lb_json *j = &k->j;
    lb_safetensors_list *l = k->list;
    if (k->seen)
        return lb_refuse(k->cx, k->f, "has a duplicate %s", metadata_key);
    k->seen = true;
    if (lb_json_peek(j) == 'n') {
        lb_json_skip(j);
        return !j->failed;
    }
    return lb_meta_texts_read(j, &k->r->arena, &l->meta, &l->n_meta);
}

static int range_order(const void *a, const void *b)
{
    const lb_tensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->size != y->size) return x->size < y->size ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Each tensor begins where the previous one ends, and the last one ends with
 * the file. */
static bool check_tiling(safetensors_task *k)
{
    lb_safetensors_list *l = k->list;
    uint64_t at = 0;
    if (l->n_tensors > 1)
        qsort(l->tensor, (size_t)l->n_tensors, sizeof *l->tensor, range_order);
    for (int64_t i = 0; i < l->n_tensors; i++) {
        const lb_tensor *t = &l->tensor[i];
        if (t->begin != at)
            return lb_refuse(k->cx, k->f,
                             "tensor '%s' begins at byte %llu of the data, but "
                             "the tensors before it end at %llu",
                             LB_NAME(t->name), (unsigned long long)t->begin,
                             (unsigned long long)at);
        if (t->size > k->size - at)
            return lb_refuse_truncated(k->cx, k->f, t, at + t->size, k->size);
        at += t->size;
    }
    if (at == k->size) return true;
    return lb_refuse(
        k->cx, k->f,
        "the tensors end at byte %llu of the data, which has %llu bytes",
        (unsigned long long)at, (unsigned long long)k->size);
}

static bool read_header(safetensors_task *k)
{
    lb_json *j = &k->j;
    lb_safetensors_list *l = k->list;
    if (lb_json_peek(j) != '{') return lb_json_wrong(j, "no object");
    const uint64_t n = lb_json_entries(j);
    if (!j->failed)
        l->tensor = lb_arena_alloc(k->cx, &k->r->arena, n, sizeof *l->tensor);
    if (!l->tensor) return false;
    lb_json_enter(j, '{');
    while (lb_json_more(j, '}')) {
        lb_tensor *t = &l->tensor[l->n_tensors];
        t->name = lb_json_key(j, &k->r->arena);
        const bool meta = strcmp(t->name, metadata_key) == 0;
        if (!(meta ? read_metadata(k) : read_tensor(k, t))) return false;
        l->n_tensors += !meta;
    }
    return !j->failed;
}

bool lb_safetensors_parse(lb_ctx *cx, lb_reader *r, lb_infile *f,
                          uint64_t offset, uint64_t n, uint64_t size,
                          lb_safetensors_list *list)
{
    safetensors_task k = {.cx = cx, .r = r, .f = f, .list = list, .size = size};
    *list = (lb_safetensors_list){0};
    const bool ok =
        lb_json_begin(cx, &k.j, f, offset, n, "the header") && read_header(&k);
    if (!ok) k.j.failed = true;
    return lb_json_end(&k.j) && check_tiling(&k);
}

bool lb_safetensors_read(lb_ctx *cx, lb_reader *r, int file,
                         lb_safetensors_list *list)
{
    lb_infile *f = r->file[file];
    uint8_t head[8];
    if (!lb_infile_has(f, 0, sizeof head))
        return lb_refuse(cx, f,
                         "has %llu bytes, fewer than the 8 of a header length",
                         (unsigned long long)f->size);
    if (!lb_infile_read(cx, f, 0, sizeof head, head)) return false;
    const uint64_t n = lb_get_u64(head);
    if (n > r->options.max_header)
        return lb_refuse(cx, f, "a header of %llu bytes; the maximum is %llu",
                         (unsigned long long)n,
                         (unsigned long long)r->options.max_header);
    if (!lb_infile_has(f, sizeof head, n))
        return lb_refuse(cx, f, "a header of %llu bytes in a file of %llu",
                         (unsigned long long)n, (unsigned long long)f->size);
    const uint64_t data = sizeof head + n;
    if (!lb_safetensors_parse(cx, r, f, sizeof head, n, f->size - data, list))
        return false;
    for (int64_t i = 0; i < list->n_tensors; i++) {
        list->tensor[i].file = file;
        list->tensor[i].begin += data;
    }
    return true;
}

static bool safetensors_open(lb_ctx *cx, lb_reader *r)
{
    lb_safetensors_list list;
    if (!lb_safetensors_read(cx, r, 0, &list)) return false;
    r->tensor = list.tensor;
    r->n_tensors = list.n_tensors;
    r->meta = list.meta;
    r->n_meta = list.n_meta;
    return true;
}

/* ---- writing ------------------------------------------------------------- */

static int write_order(const void *a, const void *b)
{
    const lb_tensor *x = *(lb_tensor *const *)a, *y = *(lb_tensor *const *)b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* By type, then by name. */
static bool choose_order(lb_ctx *cx, lb_writer *w)
{
    lb_tensor **by = lb_sort_tensors(cx, &w->arena, w->tensor, w->n_tensors);
    if (!by) return false;
    if (w->n_tensors > 1)
        qsort(by, (size_t)w->n_tensors, sizeof *by, write_order);
    for (int64_t i = 0; i < w->n_tensors; i++)
        w->order[i] = by[i] - w->tensor;
    return true;
}

static bool put_metadata(lb_ctx *cx, lb_writer *w)
{
    lb_bytes *b = &w->header;
    if (!w->n_meta) return true;
    lb_bytes_text(b, "\"%s\":", metadata_key);
    if (!lb_meta_texts_put(cx, &w->arena, b, w->meta, w->n_meta, "safetensors"))
        return false;
    if (w->n_tensors) lb_bytes_put(b, ",", 1);
    return true;
}

static bool put_tensor(lb_ctx *cx, lb_bytes *b, const lb_tensor *t)
{
    const size_t n = strlen(t->name);
    if (!lb_utf8_valid(t->name, n) || strcmp(t->name, metadata_key) == 0)
        return lb_fail(cx, LB_E_UNSUPPORTED,
                       "tensor '%s': invalid name for safetensors (it must be "
                       "UTF-8, and not %s)",
                       LB_NAME(t->name), metadata_key);
    lb_json_put(b, t->name, n, false);
    lb_bytes_text(b, ":{\"dtype\":\"%s\",\"shape\":[", t->type);
    for (int i = 0; i < t->rank; i++)
        lb_bytes_text(b, "%s%lld", i ? "," : "", (long long)t->dim[i]);
    lb_bytes_text(b, "],\"data_offsets\":[%llu,%llu]}",
                  (unsigned long long)t->begin,
                  (unsigned long long)(t->begin + t->size));
    return true;
}

static bool safetensors_compose(lb_ctx *cx, lb_writer *w)
{
    lb_bytes *b = &w->header;
    uint64_t at = 0;
    if (!choose_order(cx, w)) return false;
    lb_bytes_u64(b, 0);
    lb_bytes_put(b, "{", 1);
    if (!put_metadata(cx, w)) return false;
    for (int64_t i = 0; i < w->n_tensors; i++) {
        lb_tensor *t = &w->tensor[w->order[i]];
        t->begin = at;
        at += t->size;
        if (at > INT64_MAX)
            return lb_fail(cx, LB_E_SIZE, "the file would exceed %lld bytes",
                           (long long)INT64_MAX);
        if (i) lb_bytes_put(b, ",", 1);
        if (!put_tensor(cx, b, t)) return false;
    }
    lb_bytes_put(b, "}", 1);
    lb_bytes_fill(b, ' ', -b->n % 8);
    if (b->failed) return true; /* recorded in b */
    if (b->n - 8 > LB_HEADER_MOST)
        return lb_fail(
            cx, LB_E_UNSUPPORTED,
            "the safetensors header would have %zu bytes; the maximum is %d",
            b->n - 8, (int)LB_HEADER_MOST);
    for (int i = 0; i < 8; i++)
        b->at[i] = (uint8_t)((uint64_t)(b->n - 8) >> 8 * i);
    for (int64_t i = 0; i < w->n_tensors; i++)
        w->tensor[i].begin += b->n;
    w->total = b->n + at;
    return true;
}

const lb_container lb_container_safetensors = {
    .name = "safetensors",
    .coding = types,
    .groups = true,
    .probe = safetensors_probe,
    .open = safetensors_open,
    .compose = safetensors_compose,
};
