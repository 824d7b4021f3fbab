/* fuzz_config.c - any bytes as a model's config.json: it is parsed, and its
 * quantization_config is replaced and removed. The new text must parse, contain
 * the new value, and not change when this is repeated.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "fuzz_container.h"
#include "io/layouts/entries.h"
#include "io/models/model_dir.h"

static void broken(const lb_ctx *cx, const char *law)
{
    fprintf(stderr, "fuzz: %s: %s\n", law, lb_error(cx));
    abort();
}

/* The text with that value, or without one; false if it was refused. */
static bool rewrite(lb_ctx *cx, const uint8_t *bytes, size_t n,
                    const lb_bytes *value, lb_bytes *out)
{
    lb_infile *f = lb_infile_wrap(cx, "config.json", bytes, n);
    const bool ok = f && lb_model_json(cx, f, value, out);
    lb_infile_unref(f);
    return ok;
}

static bool read_config(lb_ctx *cx, const uint8_t *bytes, size_t n,
                        lb_model_config *c)
{
    lb_infile *f = lb_infile_wrap(cx, "config.json", bytes, n);
    const bool ok = lb_model_config_read(cx, f, c);
    lb_infile_unref(f);
    return ok;
}

static void check_written(lb_ctx *cx, const lb_bytes *value,
                          const lb_bytes *out)
{
    lb_model_config c = {0};
    lb_bytes again = {.heap = cx->heap};
    if (!rewrite(cx, out->at, out->n, value, &again))
        broken(cx, "what is written is not read");
    if (again.n != out->n || (out->n && memcmp(again.at, out->at, out->n) != 0))
        broken(cx, "it changes again");
    lb_bytes_free(&again);
    /* The rest of the file may still be refused. */
    if (!read_config(cx, out->at, out->n, &c))
        lb_clear(cx);
    else if (strcmp(c.quant_method, value ? "bitnet" : "") != 0)
        broken(cx, "it says something else");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    lb_ctx *cx = fuzz_context();
    if (!cx) return 0;
    const size_t before = lb_bytes_in_use(cx);
    lb_model_config c = {0};
    (void)read_config(cx, bytes, n, &c);
    lb_clear(cx);
    for (int i = 0; i < 2; i++) {
        lb_bytes value = {.heap = cx->heap}, out = value;
        lb_bytes_text(&value, "{\"quant_method\": \"bitnet\"}");
        const lb_bytes *put = i ? &value : NULL;
        if (rewrite(cx, bytes, n, put, &out))
            check_written(cx, put, &out);
        else if (lb_error_status(cx) != LB_E_CONTENT ||
                 strlen(lb_error(cx)) < 10)
            broken(cx, "a status");
        lb_bytes_free(&value);
        lb_bytes_free(&out);
        lb_clear(cx);
    }
    if (lb_bytes_in_use(cx) != before) broken(cx, "memory is left");
    return 0;
}
