/* test_io_shards.c - models in several files: an incorrect index, and files
 * that are missing, damaged or contain duplicate tensors.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "io_golden.h"
#include "refused.h"
#include "scratch.h"

static lb_ctx *cx;
static char dir[SCRATCH_MAX];

static const char *const shard[] = {"model-00001-of-00002.safetensors",
                                    "model-00002-of-00002.safetensors"};

static scratch_path in_dir(const char *name)
{
    return scratch_in(dir, name, "");
}

static void put(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(in_dir(name).s, "wb");
    CHECK(f && fwrite(bytes, 1, n, f) == n);
    fclose(f);
}

/* A copy of a golden shard. */
static void put_shard(const char *name, int k, size_t cut)
{
    char from[160];
    size_t n = 0;
    snprintf(from, sizeof from, "%ssharded/%s", IO_GOLDEN, shard[k]);
    uint8_t *bytes = io_slurp(from, &n);
    CHECK(bytes != NULL);
    put(name, bytes, n - cut);
    free(bytes);
}

/* A file with a one-byte tensor, and metadata. */
static void put_valued(const char *name, const char *tensor, const char *values)
{
    char text[256] = "";
    const int n = snprintf(text + 8, sizeof text - 8,
                           "{\"__metadata__\":{%s},\"%s\":{\"dtype\":\"U8\","
                           "\"shape\":[1],\"data_offsets\":[0,1]}}",
                           values, tensor);
    CHECK(n > 0 && n < 247);
    text[0] = (char)n;
    put(name, text, 8 + (size_t)n + 1);
}

static void put_index(const char *map)
{
    char text[1024];
    snprintf(text, sizeof text, "{\"weight_map\": {%s}}", map);
    put("model.safetensors.index.json", text, strlen(text));
}

static lb_reader *reopen(void)
{
    return lb_reader_open(cx, dir, NULL);
}

static void refused(lb_status status, const char *say)
{
    lb_reader *r = reopen();
    const bool right =
        !r && lb_error_status(cx) == status && strstr(lb_error(cx), say);
    if (check_fails(right))
        fprintf(stderr, "shards: want \"%s\", got \"%s\"\n", say, lb_error(cx));
    lb_clear(cx);
    lb_reader_close(r);
}

static void check_value(const lb_reader *r, const char *key, const char *want)
{
    const lb_meta *m = r ? lb_reader_meta(r, key) : NULL;
    CHECK(m && m->size == strlen(want) &&
          memcmp(m->bytes, want, (size_t)m->size) == 0);
}

/* Metadata of all shards, in order; the first of duplicate keys counts. */
static void test_values(void)
{
    put_valued("v1", "t1", "\"format\":\"pt\",\"z\":\"1\"");
    put_valued("v2", "t2", "\"a\":\"2\",\"format\":\"np\"");
    put_valued("v3", "t3", "");
    put_valued("v4", "t4", "\"z\":\"1\",\"b\":\"4\"");
    put_index("\"t1\":\"v1\",\"t2\":\"v2\",\"t3\":\"v3\",\"t4\":\"v4\"");
    lb_reader *r = reopen();
    CHECK(r && r->n_meta == 4);
    check_value(r, "format", "pt");
    check_value(r, "z", "1");
    check_value(r, "a", "2");
    check_value(r, "b", "4");
    static const char *const order[] = {"format", "z", "a", "b"};
    for (int i = 0; r && i < 4 && i < r->n_meta; i++)
        CHECK_EQ_S(r->meta[i].key, order[i]);
    lb_reader_close(r);
}

int main(void)
{
    CHECK(scratch_dir(dir));
    cx = lb_open(&(lb_options){.threads = 1});
    const size_t before = lb_bytes_in_use(cx);
    put_shard("a", 0, 0);
    put_shard("b", 1, 0);

    put_index("\"layer.0.b\":\"a\",\"layer.1.b\":\"b\"");
    lb_reader *r = reopen(); /* also unlisted tensors */
    CHECK(r && r->n_files == 3 && r->n_tensors == 4);
    const lb_tensor *t = r ? lb_reader_find(r, "layer.1.w\xc3\xa9") : NULL;
    CHECK(t && t->file == 2 && t->size == 12);
    lb_reader_close(r);

    put_index("\"layer.0.b\":\"a\"");
    r = reopen(); /* only the listed files are opened */
    CHECK(r && r->n_files == 2 && r->n_tensors == 2);
    lb_reader_close(r);

    put_index("\"layer.0.b\":\"none\"");
    refused(LB_E_FILE, "/none: cannot open: No such file");
    put_index("\"layer.0.b\":\"b\"");
    refused(LB_E_CONTENT,
            "tensor 'layer.0.b' is listed in 'b', which does not contain it");
    put_index("\"layer.0.b\":\"b\",\"layer.1.b\":\"a\"");
    refused(LB_E_CONTENT, "which does not contain it");
    put_index("\"layer.0.b\":\"a\",\"layer.0.b\":\"b\"");
    refused(LB_E_CONTENT, "'layer.0.b' is listed in 'b'");
    put_shard("copy", 0, 0);
    put_index("\"layer.0.b\":\"a\",\"layer.0.w\\u00e9\":\"copy\"");
    refused(LB_E_CONTENT, "copy: duplicate tensor 'layer.0.b'");
    put_shard("cut", 1, 1);
    put_index("\"layer.0.b\":\"a\",\"layer.1.b\":\"cut\"");
    refused(LB_E_CONTENT, "/cut: file is truncated: tensor "
                          "'layer.1.w\\xc3\\xa9' ends at byte 24, but there "
                          "are only 23 bytes of data");
    put_index("\"layer.0.b\":\"a\",\"x\":\"model.safetensors.index.json\"");
    refused(LB_E_CONTENT, "model.safetensors.index.json: a header of");
    put("short", "1234567", 7);
    put_index("\"layer.0.b\":\"a\",\"x\":\"short\"");
    refused(LB_E_CONTENT,
            "/short: has 7 bytes, fewer than the 8 of a header length");
    const lb_read_options little = {.max_header = 40};
    REFUSED(lb_reader_open(cx, dir, &little), LB_E_CONTENT,
            "index.json: an index of 45 bytes; the maximum is 40");
    CHECK_EQ_I(mkdir(in_dir("folder").s, 0700), 0);
    put_index("\"layer.0.b\":\"a\",\"x\":\"folder\"");
    refused(LB_E_FILE, "/folder: cannot read: Is a directory");

    test_values();

    CHECK_EQ_I(lb_bytes_in_use(cx), before);
    lb_close(cx);
    rmdir(in_dir("folder").s);
    scratch_remove(dir);
    CHECK(!scratch_exists(dir));
    return check_report("shards");
}
