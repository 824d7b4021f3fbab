/* checksums.c - compares the file with what was written.
 *
 * The checksum of an array combines those of its tensors. It is computed while
 * they are written, and again from the complete file: a misdirected write may
 * have overwritten earlier data.
 */
#include "io/jobs/checksums.h"

#include "core/core.h"

void lb_readback_begin(lb_readback *r)
{
    for (int k = 0; k < LB_GROUP_MOST; k++)
        XXH64_reset(&r->tensor[k], 0);
}

void lb_readback_add(lb_readback *r, int k, const void *bytes, size_t n)
{
    XXH64_update(&r->tensor[k], bytes, n);
}

uint64_t lb_readback_sum(const lb_readback *r, int n)
{
    uint64_t sum[LB_GROUP_MOST];
    for (int k = 0; k < n; k++)
        sum[k] = XXH64_digest(&r->tensor[k]);
    return XXH64(sum, (size_t)n * sizeof *sum, 0);
}

enum { MUCH = 1 << 16 }; /* bytes read at a time */

static bool add_tensor(lb_ctx *cx, lb_outfile *o, const lb_tensor *t,
                       lb_readback *r, int k)
{
    uint8_t some[MUCH];
    for (uint64_t at = 0; at < t->size; at += MUCH) {
        const size_t n = t->size - at < MUCH ? (size_t)(t->size - at) : MUCH;
        if (!lb_outfile_read(cx, o, t->begin + at, some, n)) return false;
        lb_readback_add(r, k, some, n);
    }
    return true;
}

bool lb_readback_same(lb_ctx *cx, lb_outfile *o, const char *array,
                      const lb_tensor *tensor, int n, uint64_t sum)
{
    lb_readback r;
    uint64_t size = 0;
    lb_readback_begin(&r);
    for (int k = 0; k < n; k++) {
        if (!add_tensor(cx, o, &tensor[k], &r, k)) return false;
        size += tensor[k].size;
    }
    if (lb_readback_sum(&r, n) == sum) return true;
    return lb_fail(
        cx, LB_E_FILE,
        "%s: verification failed: array '%s' was not read back as written "
        "(%llu bytes, checksum %016llx instead of %016llx)",
        LB_PATH(o->partial), LB_NAME(array), (unsigned long long)size,
        (unsigned long long)lb_readback_sum(&r, n), (unsigned long long)sum);
}

/* Headers are hashed in one piece when they are written, so here as well. */
bool lb_readback_header(lb_ctx *cx, const lb_writer *w)
{
    lb_bytes b = {.heap = cx->heap};
    uint8_t some[MUCH];
    bool ok = true;
    for (uint64_t at = 0; ok && at < w->header_size; at += MUCH) {
        const uint64_t left = w->header_size - at;
        const size_t n = left < MUCH ? (size_t)left : MUCH;
        ok = lb_outfile_read(cx, w->out, at, some, n);
        if (ok) lb_bytes_put(&b, some, n);
    }
    if (ok && b.failed) ok = lb_fail(cx, LB_E_NOMEM, "out of memory");
    if (ok && XXH3_64bits(b.at, b.n) != w->header_sum)
        ok = lb_fail(cx, LB_E_FILE,
                     "%s: verification failed: the header (%llu bytes) was not "
                     "read back as written",
                     LB_PATH(w->out->partial),
                     (unsigned long long)w->header_size);
    lb_bytes_free(&b);
    return ok;
}
