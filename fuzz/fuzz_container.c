/* fuzz_container.c - opening, reading and closing any bytes. */
#include "fuzz_container.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/container.h"

static void broken(const lb_ctx *cx, const char *law)
{
    fprintf(stderr, "fuzz: %s: %s\n", law, lb_error(cx));
    abort();
}

/* In pieces of a length that does not fit; not more than a MiB of each. */
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

static void use(lb_ctx *cx, lb_reader *r)
{
    for (int64_t i = 0; i < r->n_tensors; i++)
        read_tensor(cx, r, &r->tensor[i]);
    for (int64_t i = 0; i < r->n_meta; i++)
        read_value(cx, r, &r->meta[i]);
    if (lb_error_status(cx) && lb_error_status(cx) != LB_E_CONTENT)
        broken(cx, "a status of reading");
}

int fuzz_container(const char *kind, const char *name, const uint8_t *bytes,
                   size_t n)
{
    static lb_ctx *cx; /* one for all: it is part of what is tested */
    if (!cx) cx = lb_open(&(lb_options){.threads = 1});
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
    lb_reader_close(r);
    lb_clear(cx);
    if (lb_bytes_in_use(cx) != before) broken(cx, "memory is left");
    return 0;
}
