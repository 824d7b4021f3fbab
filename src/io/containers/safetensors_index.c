/* safetensors_index.c - model.safetensors.index.json and its shards.
 *
 *     {"metadata":{"total_size":8}, "weight_map":{"a":"model-00001-of-..",..}}
 *
 * File names are untrusted: they must be in the directory of the index. The
 * tensors of all shards are listed; every entry of the map must match, and no
 * tensor may be in two shards. Metadata of all shards are merged; where they
 * differ the first shard's value is used.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "io/containers/multi_file.h"
#include "io/containers/safetensors.h"
#include "io/util/json_text.h"

/* ---- reading ------------------------------------------------------------- */

typedef struct index_entry {
    const char *tensor, *file;
    int index; /* index in r->file */
} index_entry;

typedef struct index_task {
    lb_ctx *cx;
    lb_reader *r;
    index_entry *entry;
    int64_t n;
    lb_json j;
} index_task;

/* A JSON object, not the length field of a safetensors file that looks like
 * one. */
static bool index_probe(const uint8_t *head, size_t n)
{
    size_t i = 0;
    while (i < n && strchr(" \t\r\n", head[i]) && head[i])
        i++;
    if (i + 1 >= n || head[i] != '{') return false;
    return head[i + 1] && strchr(" \t\r\n\"}", head[i + 1]);
}

static bool name_is_safe(const char *name)
{
    return name[0] && !strchr(name, '/') && !strchr(name, '\\') &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static bool read_map(index_task *k)
{
    lb_json *j = &k->j;
    if (lb_json_peek(j) != '{') return lb_json_wrong(j, "no object");
    const uint64_t n = lb_json_entries(j);
    if (!j->failed)
        k->entry = lb_arena_alloc(k->cx, &k->r->arena, n, sizeof *k->entry);
    if (!k->entry) return false;
    lb_json_enter(j, '{');
    while (lb_json_more(j, '}')) {
        size_t len;
        index_entry *e = &k->entry[k->n++];
        e->tensor = lb_json_key(j, &k->r->arena);
        e->file = lb_json_string(j, &k->r->arena, &len);
        if (j->failed) return false;
        if (!name_is_safe(e->file) || strlen(e->file) != len)
            return lb_refuse(k->cx, k->r->file[0],
                             "tensor '%s' is in '%s', which is not a file name "
                             "in the directory of the index",
                             LB_NAME(e->tensor), LB_NAME(e->file));
    }
    return !j->failed;
}

static bool read_root(index_task *k)
{
    lb_json *j = &k->j;
    lb_infile *f = k->r->file[0];
    lb_json_enter(j, '{');
    while (lb_json_more(j, '}')) {
        char key[16];
        lb_json_key_word(j, key, sizeof key);
        if (strcmp(key, "weight_map") != 0) {
            lb_json_skip(j);
            continue;
        }
        if (k->entry) return lb_refuse(k->cx, f, "has a duplicate weight_map");
        if (!read_map(k)) return false;
    }
    if (!j->failed && !k->entry)
        return lb_refuse(k->cx, f,
                         "is not a safetensors index (no \"weight_map\")");
    return !j->failed;
}

static int file_order(const void *a, const void *b)
{
    const index_entry *x = a, *y = b;
    const int c = strcmp(x->file, y->file);
    return c ? c : strcmp(x->tensor, y->tensor);
}

/* The path of a file in the directory of the index. */
static lb_infile *open_shard(index_task *k, const char *name)
{
    const char *index = k->r->file[0]->path, *slash = strrchr(index, '/');
    lb_bytes path = {.heap = k->cx->heap};
    lb_infile *f = NULL;
    if (slash) lb_bytes_put(&path, index, (size_t)(slash - index) + 1);
    lb_bytes_put(&path, name, strlen(name) + 1);
    if (path.failed)
        lb_fail(k->cx, LB_E_NOMEM, "out of memory");
    else
        f = lb_infile_open(k->cx, (const char *)path.at, k->r->options.no_map);
    lb_bytes_free(&path);
    return f;
}

/* file[0] remains the index. */
static bool open_shards(index_task *k)
{
    lb_reader *r = k->r;
    int64_t shards = 0;
    if (k->n > 1) qsort(k->entry, (size_t)k->n, sizeof *k->entry, file_order);
    for (int64_t i = 0; i < k->n; i++)
        shards += !i || strcmp(k->entry[i].file, k->entry[i - 1].file) != 0;
    if (shards > INT32_MAX - 1)
        return lb_refuse(k->cx, r->file[0], "lists %lld files",
                         (long long)shards);
    lb_infile **file = lb_arena_alloc(k->cx, &r->arena, (uint64_t)shards + 1,
                                      sizeof(lb_infile *));
    if (!file) return false;
    file[0] = r->file[0];
    r->file = file;
    for (int64_t i = 0; i < k->n; i++) {
        if (!i || strcmp(k->entry[i].file, k->entry[i - 1].file) != 0) {
            file[r->n_files] = open_shard(k, k->entry[i].file);
            if (!file[r->n_files]) return false;
            r->n_files++;
        }
        k->entry[i].index = r->n_files - 1;
    }
    return true;
}

bool lb_safetensors_join_meta(lb_ctx *cx, lb_arena *arena,
                              const lb_safetensors_list *list, uint64_t n_files,
                              lb_meta **meta, int64_t *n)
{
    uint64_t most = 0, got = 0;
    for (uint64_t s = 0; s < n_files; s++)
        most += (uint64_t)list[s].n_meta;
    lb_meta *all = lb_arena_alloc(cx, arena, most, sizeof *all);
    bool *again = lb_arena_alloc(cx, arena, most, sizeof *again);
    if (!all || !again) return false;
    for (uint64_t s = 0; s < n_files; s++) {
        const uint64_t its = (uint64_t)list[s].n_meta;
        if (its) memcpy(all + got, list[s].meta, (size_t)its * sizeof *all);
        got += its;
    }
    lb_meta **by = lb_sort_meta(cx, arena, all, (int64_t)most);
    if (!by) return false;
    for (uint64_t i = 1; i < most; i++)
        again[by[i] - all] = strcmp(by[i - 1]->key, by[i]->key) == 0;
    *meta = all;
    *n = 0;
    for (uint64_t i = 0; i < most; i++)
        if (!again[i]) all[(*n)++] = all[i];
    return true;
}

static bool list_shards(index_task *k)
{
    lb_reader *r = k->r;
    const uint64_t shards = (uint64_t)r->n_files - 1;
    lb_safetensors_list *l =
        lb_arena_alloc(k->cx, &r->arena, shards, sizeof *l);
    if (!l) return false;
    uint64_t n = 0;
    for (uint64_t s = 0; s < shards; s++) {
        if (!lb_safetensors_read(k->cx, r, (int)s + 1, &l[s])) return false;
        n += (uint64_t)l[s].n_tensors;
    }
    r->tensor = lb_arena_alloc(k->cx, &r->arena, n, sizeof *r->tensor);
    if (!r->tensor) return false;
    for (uint64_t s = 0; s < shards; s++) {
        if (l[s].n_tensors)
            memcpy(r->tensor + r->n_tensors, l[s].tensor,
                   (size_t)l[s].n_tensors * sizeof *r->tensor);
        r->n_tensors += l[s].n_tensors;
    }
    return lb_safetensors_join_meta(k->cx, &r->arena, l, shards, &r->meta,
                                    &r->n_meta);
}

static bool check_map(index_task *k)
{
    const lb_reader *r = k->r;
    for (int64_t i = 0; i < k->n; i++) {
        const index_entry *e = &k->entry[i];
        const lb_tensor *t = lb_reader_find(r, e->tensor);
        if (!t || t->file != e->index)
            return lb_refuse(
                k->cx, r->file[0],
                "tensor '%s' is listed in '%s', which does not contain it",
                LB_NAME(e->tensor), LB_NAME(e->file));
    }
    return true;
}

static bool index_open(lb_ctx *cx, lb_reader *r)
{
    lb_infile *f = r->file[0];
    if (f->size > r->options.max_header)
        return lb_refuse(cx, f, "an index of %llu bytes; the maximum is %llu",
                         (unsigned long long)f->size,
                         (unsigned long long)r->options.max_header);
    index_task k = {.cx = cx, .r = r};
    const bool ok =
        lb_json_begin(cx, &k.j, f, 0, f->size, "the index") && read_root(&k);
    if (!ok) k.j.failed = true;
    return lb_json_end(&k.j) && open_shards(&k) && list_shards(&k) &&
           lb_reader_index(cx, r) && check_map(&k);
}

/* ---- writing ------------------------------------------------------------- */

/* Like huggingface_hub: a tensor that exceeds the limit becomes a shard at
 * once, numbered before the one that is being filled. */
int64_t lb_shards_plan(const uint64_t *size, int64_t n, uint64_t limit,
                       int64_t *shard)
{
    int64_t shards = 0, open = 0; /* of the shard being filled: -1 for now */
    uint64_t bytes = 0;
    for (int64_t i = 0; i < n; i++) {
        if (size[i] > limit) {
            shard[i] = shards++;
            continue;
        }
        if (size[i] > limit - bytes) {
            for (; open < i; open++)
                if (shard[open] < 0) shard[open] = shards;
            shards++;
            bytes = 0;
        }
        shard[i] = -1;
        bytes += size[i];
    }
    bool any = false;
    for (; open < n; open++)
        if (shard[open] < 0) {
            shard[open] = shards;
            any = true;
        }
    return shards + any;
}

lb_shard_text lb_shard_name(int64_t shard, int64_t shards)
{
    lb_shard_text t;
    snprintf(t.s, sizeof t.s, "model-%05lld-of-%05lld.safetensors",
             (long long)shard + 1, (long long)shards);
    return t;
}

/* Formats like json.dumps(..., indent=2, sort_keys=True) and a newline. */
static void put_index(lb_bytes *b, lb_tensor *const *by, int64_t n,
                      const lb_tensor *first, const int64_t *shard,
                      int64_t shards, uint64_t total)
{
    lb_bytes_text(b, "{\n  \"metadata\": {\n    \"total_size\": %llu\n  },\n",
                  (unsigned long long)total);
    lb_bytes_text(b, "  \"weight_map\": {%s", n ? "\n" : "");
    for (int64_t i = 0; i < n; i++) {
        lb_bytes_text(b, "    ");
        lb_json_put(b, by[i]->name, strlen(by[i]->name), true);
        lb_bytes_text(b, ": \"%s\"%s\n",
                      lb_shard_name(shard[by[i] - first], shards).s,
                      i + 1 < n ? "," : "");
    }
    lb_bytes_text(b, "%s}\n}\n", n ? "  " : "");
}

bool lb_shards_write_index(lb_ctx *cx, const char *path,
                           const lb_tensor *tensor, const int64_t *shard,
                           int64_t n, int64_t shards, uint64_t total,
                           const lb_write_options *options)
{
    lb_arena arena = {.heap = cx->heap};
    lb_bytes b = {.heap = cx->heap};
    lb_outfile *out = NULL;
    const lb_write_options o = options ? *options : (lb_write_options){0};
    lb_tensor *first = (lb_tensor *)(uintptr_t)tensor; /* only pointed at */
    lb_tensor **by = lb_sort_tensors(cx, &arena, first, n);
    if (by) put_index(&b, by, n, first, shard, shards, total);
    if (b.failed) lb_fail(cx, LB_E_NOMEM, "out of memory");
    if (by && !b.failed)
        out = lb_outfile_open(cx, path, o.input, o.n_inputs, b.n);
    bool ok = out && lb_outfile_write(cx, out, b.at, b.n);
    ok = lb_outfile_close(cx, out, ok, !o.no_sync);
    lb_bytes_free(&b);
    lb_arena_free(&arena);
    return ok;
}

static const lb_coding no_types[] = {{NULL, LB_NO_DTYPE, 0, 0, 0}};

const lb_container lb_container_safetensors_index = {
    .name = "safetensors_index",
    .coding = no_types,
    .probe = index_probe,
    .open = index_open,
};
