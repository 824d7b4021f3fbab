/* fuzz_container.c - opening, reading and closing any bytes. */
#include "fuzz_container.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/layouts/entries.h"

static void broken(const lb_ctx *cx, const char *law)
{
    fprintf(stderr, "fuzz: %s: %s\n", law, lb_error(cx));
    abort();
}

/* In chunks of an odd length; at most 1 MiB of each. */
static void read_tensor(lb_ctx *cx, lb_reader *r, const lb_tensor *t)
{
    static uint8_t buffer[4096];
    const uint64_t unit = t->swap ? (uint64_t)t->swap : 1;
    const uint64_t piece = 4000 / unit * unit, most = 1 << 20;
    bool ok = true;
    if (!t->packed && !lb_infile_has(r->file[t->file], t->begin, t->size))
        broken(cx, "a tensor outside of its file");
    for (uint64_t at = 0; ok && at < t->size && at < most;) {
        const uint64_t left = t->size - at;
        const size_t n = (size_t)(left < piece ? left : piece);
        ok = lb_reader_read(cx, r, t, at, n, buffer);
        at += n;
    }
    if (lb_reader_find(r, t->name) != t) broken(cx, "a tensor is not found");
}

static void read_value(lb_ctx *cx, lb_reader *r, const lb_meta *m)
{
    static uint8_t sum;
    for (uint64_t i = 0; i < m->size; i++)
        sum = (uint8_t)(sum + m->bytes[i]);
    if (lb_reader_meta(r, m->key) != m) broken(cx, "a value is not found");
}

/* Arrays may be refused, with a message; arrays that load can be read. */
static void load_array(lb_ctx *cx, lb_file *f, const lb_entry *e)
{
    static uint8_t buffer[1 << 16];
    lb_enter(cx);
    if (e->nbytes <= sizeof buffer) {
        lb_array *a = lb_file_load(cx, f, e->name);
        const int64_t n = a ? lb_size(a) : 0;
        const size_t size = (size_t)n * lb_dtype_size(lb_dtype_of(a));
        if (a && n <= (int64_t)sizeof buffer && size <= sizeof buffer &&
            !lb_read(cx, a, buffer, size))
            broken(cx, "an array that loads is not read");
        if (!a && strlen(lb_error(cx)) < 10) broken(cx, "no sentence");
    }
    lb_leave(cx);
    lb_clear(cx);
}

static void use_arrays(lb_ctx *cx, lb_reader *r)
{
    const lb_file_options options = {0};
    lb_file *f = lb_file_of(cx, r, &options);
    if (!f && lb_error_status(cx) != LB_E_CONTENT)
        broken(cx, "a status of listing");
    lb_clear(cx);
    for (int64_t i = 0; i < lb_file_count(f); i++)
        load_array(cx, f, lb_file_entry(f, i));
    lb_file_close(f);
}

static void use(lb_ctx *cx, lb_reader *r)
{
    for (int64_t i = 0; i < r->n_tensors; i++)
        read_tensor(cx, r, &r->tensor[i]);
    for (int64_t i = 0; i < r->n_meta; i++)
        read_value(cx, r, &r->meta[i]);
    if (lb_error_status(cx) && lb_error_status(cx) != LB_E_CONTENT)
        broken(cx, "a status of reading");
}

/* One context for all runs: reusing it is part of the test. Its lists of arrays
 * and scopes reach their final size before memory is counted. */
static lb_ctx *shared;

static void close_shared(void)
{
    lb_close(shared);
}

lb_ctx *fuzz_context(void)
{
    if (shared) return shared;
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    for (int i = 0; i < 4; i++)
        lb_enter(cx);
    for (int i = 0; i < 64; i++)
        lb_zeros(cx, LB_U8, lb_shape_make(0, NULL));
    for (int i = 0; i < 4; i++)
        lb_leave(cx);
    if (cx) atexit(close_shared);
    return shared = cx;
}

int fuzz_container(const char *kind, const char *name, const uint8_t *bytes,
                   size_t n)
{
    lb_ctx *cx = fuzz_context();
    if (!cx) return 0;
    const lb_container *c = lb_container_named(kind);
    if (!c->probe(bytes, n < LB_PROBE ? n : LB_PROBE)) return 0;
    const size_t before = lb_bytes_in_use(cx);
    lb_reader *r =
        lb_reader_open_file(cx, lb_infile_wrap(cx, name, bytes, n), NULL);
    const lb_status status = lb_error_status(cx);
    if (r)
        use(cx, r);
    else if (status != LB_E_CONTENT && status != LB_E_FILE)
        broken(cx, "a status of opening");
    else if (strlen(lb_error(cx)) < 10)
        broken(cx, "an error without a sentence");
    lb_clear(cx);
    if (r) use_arrays(cx, r);
    lb_clear(cx);
    if (lb_bytes_in_use(cx) != before) broken(cx, "memory is left");
    return 0;
}
