/* container.c - functions shared by all containers. */
#include "io/containers/container.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

/* ---- help for kinds ------------------------------------------------------ */

bool lb_refuse(lb_ctx *cx, const lb_infile *f, const char *fmt, ...)
{
    char why[LB_ERROR_SIZE];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return lb_fail(cx, LB_E_CONTENT, "%s: %s", LB_PATH(f->path), why);
}

bool lb_refuse_pickle(lb_ctx *cx, const lb_infile *f)
{
    return lb_fail(cx, LB_E_UNSUPPORTED,
                   "%s: a PyTorch pickle, which is not supported; convert it "
                   "to safetensors first",
                   LB_PATH(f->path));
}

bool lb_refuse_truncated(lb_ctx *cx, const lb_infile *f, const lb_tensor *t,
                         uint64_t end, uint64_t have)
{
    return lb_refuse(cx, f,
                     "file is truncated: tensor '%s' ends at byte %llu, but "
                     "there are only %llu bytes of data",
                     LB_NAME(t->name), (unsigned long long)end,
                     (unsigned long long)have);
}

const lb_container *lb_container_named(const char *name)
{
    for (int i = 0; lb_containers[i]; i++)
        if (strcmp(lb_containers[i]->name, name) == 0) return lb_containers[i];
    return NULL;
}

const lb_coding *lb_coding_find(const lb_coding *list, const char *name)
{
    for (; list->name; list++)
        if (strcmp(list->name, name) == 0) return list;
    return NULL;
}

bool lb_coding_size(const lb_coding *c, const int64_t *dim, int rank,
                    uint64_t *size)
{
    int64_t n = 1, bytes;
    for (int i = 0; i < rank; i++)
        if (dim[i] < 0 || !lb_mul_i64(n, dim[i], &n)) return false;
    if (c->len <= 0 || n % c->len) return false;
    if (!lb_mul_i64(n / c->len, c->size, &bytes)) return false;
    *size = (uint64_t)bytes;
    return true;
}

/* Unicode table 3-7: shortest form, no surrogates, up to U+10FFFF. */
bool lb_utf8_valid(const char *text, size_t n)
{
    const uint8_t *p = (const uint8_t *)text, *end = p + n;
    while (p < end) {
        const uint8_t c = *p++;
        if (c < 0x80) continue;
        if (c < 0xc2 || c > 0xf4) return false;
        const ptrdiff_t more = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
        if (end - p < more) return false;
        const uint8_t lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
        const uint8_t hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
        if (*p < lo || *p > hi) return false;
        for (ptrdiff_t i = 1; i < more; i++)
            if (p[i] < 0x80 || p[i] > 0xbf) return false;
        p += more;
    }
    return true;
}

bool lb_meta_next(const lb_meta *m, uint64_t *at, const char **text,
                  uint64_t *n)
{
    if (m->type != LB_META_ARRAY || m->item != LB_META_STRING) return false;
    if (*at > m->size || m->size - *at < 8) return false;
    *n = lb_get_u64(m->bytes + *at);
    if (*n > m->size - *at - 8) return false;
    *text = (const char *)m->bytes + *at + 8;
    *at += 8 + *n;
    return true;
}

/* ---- names --------------------------------------------------------------- */

/* Makes equal names adjacent. Ties are broken by address, so that the order
 * does not depend on qsort. */
static int tensor_order(const void *a, const void *b)
{
    const lb_tensor *x = *(lb_tensor *const *)a, *y = *(lb_tensor *const *)b;
    const int c = strcmp(x->name, y->name);
    return c ? c : (x > y) - (x < y);
}

static int meta_order(const void *a, const void *b)
{
    const lb_meta *x = *(lb_meta *const *)a, *y = *(lb_meta *const *)b;
    const int c = strcmp(x->key, y->key);
    return c ? c : (x > y) - (x < y);
}

lb_tensor **lb_sort_tensors(lb_ctx *cx, lb_arena *arena, lb_tensor *t,
                            int64_t n)
{
    lb_tensor **by = lb_arena_alloc(cx, arena, (uint64_t)n, sizeof *by);
    if (!by) return NULL;
    for (int64_t i = 0; i < n; i++)
        by[i] = &t[i];
    if (n > 1) qsort(by, (size_t)n, sizeof *by, tensor_order);
    return by;
}

const lb_tensor *lb_tensor_twin(lb_tensor *const *by_name, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (strcmp(by_name[i - 1]->name, by_name[i]->name) == 0)
            return by_name[i];
    return NULL;
}

lb_meta **lb_sort_meta(lb_ctx *cx, lb_arena *arena, const lb_meta *m, int64_t n)
{
    lb_meta **by = lb_arena_alloc(cx, arena, (uint64_t)n, sizeof *by);
    if (!by) return NULL;
    for (int64_t i = 0; i < n; i++)
        by[i] = (lb_meta *)(uintptr_t)&m[i]; /* only pointed at */
    if (n > 1) qsort(by, (size_t)n, sizeof *by, meta_order);
    return by;
}

const lb_meta *lb_meta_twin(lb_meta *const *by_key, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (strcmp(by_key[i - 1]->key, by_key[i]->key) == 0) return by_key[i];
    return NULL;
}
