/* fuzz_ranks.c - any bytes as the header of a rank's file. `merge` must produce
 * a complete checkpoint, which can be opened, or none.
 *
 * Both of two ranks get this header, except for the rank, and as many bytes of
 * data as its tensors require, up to a limit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz_container.h"
#include "lowbit_io.h"
#include "scratch.h"

enum { RANKS = 2, ROOM = SCRATCH_MAX + 64, DATA = 1 << 14 };

static char dir[SCRATCH_MAX], rank[RANKS][ROOM], result[ROOM], partial[ROOM];

static void broken(const lb_ctx *cx, const char *law)
{
    fprintf(stderr, "fuzz: %s: %s\n", law, lb_error(cx));
    abort();
}

static void clean(void)
{
    for (int r = 0; r < RANKS; r++)
        unlink(rank[r]);
    scratch_remove(result);
    scratch_remove(partial);
    rmdir(dir);
}

static bool begin(void)
{
    if (dir[0]) return true;
    if (!scratch_dir(dir)) return false;
    atexit(clean);
    for (int r = 0; r < RANKS; r++)
        snprintf(rank[r], ROOM, "%s/rank-%05d-of-%05d.safetensors", dir, r,
                 RANKS);
    return true;
}

/* End of the tensor data, if it is small. */
static size_t data_of(const char *text)
{
    static const char key[] = "\"data_offsets\":[";
    unsigned long long most = 0, first, last;
    for (const char *s = text; (s = strstr(s, key));) {
        s += sizeof key - 1;
        if (sscanf(s, "%8llu,%8llu", &first, &last) == 2 && last > most)
            most = last;
    }
    return most < DATA ? (size_t)most : DATA;
}

static bool write_rank(int r, char *text, size_t n)
{
    static const char key[] = "\"lowbit_shard.rank\":\"";
    uint8_t head[8] = {0};
    for (int i = 0; i < 8; i++)
        head[i] = (uint8_t)((uint64_t)n >> 8 * i);
    char *number = strstr(text, key);
    if (number && number[sizeof key - 1] == '0' + (r ? r - 1 : 0))
        number[sizeof key - 1] = (char)('0' + r);
    FILE *f = fopen(rank[r], "wb");
    if (!f) return false;
    fwrite(head, 1, sizeof head, f);
    fwrite(text, 1, n, f);
    for (size_t i = data_of(text); i; i--)
        fputc(0x11, f);
    return fclose(f) == 0;
}

static void check(lb_ctx *cx, bool merged)
{
    if (scratch_exists(partial)) broken(cx, "a partial file is left");
    if (!merged) {
        if (scratch_exists(result)) broken(cx, "refused, and there");
        if (strlen(lb_error(cx)) < 10) broken(cx, "no sentence");
        lb_clear(cx);
        return;
    }
    lb_file *f = lb_file_open(cx, result, NULL);
    if (!f && lb_error_status(cx) != LB_E_CONTENT) broken(cx, "not opened");
    lb_clear(cx); /* it may describe groups that do not exist */
    lb_file_close(f);
    scratch_remove(result);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static char text[(1 << 16) + 1];
    lb_ctx *cx = fuzz_context();
    if (!cx || n >= sizeof text || !begin()) return 0;
    if (n) memcpy(text, bytes, n);
    text[n] = 0;
    for (int r = 0; r < RANKS; r++)
        if (!write_rank(r, text, n)) return 0;
    const size_t before = lb_bytes_in_use(cx);
    const lb_merge_options o = {.no_sync = true};
    for (int file = 0; file < 2; file++) { /* the name decides */
        static const char *const name[] = {"result", "result.safetensors"};
        snprintf(result, ROOM, "%s/%s", dir, name[file]);
        snprintf(partial, ROOM, "%s/%s.partial", dir, name[file]);
        check(cx, lb_merge_file(cx, dir, result, &o));
        if (lb_bytes_in_use(cx) != before) broken(cx, "memory is left");
    }
    return 0;
}
