/* fuzz_journal.c - any bytes in a partial file that is resumed.
 *
 * A small file is quantized once, and a copy of the complete partial file is
 * kept. Each run overwrites part of it (the first two bytes determine the
 * offset and whether the file ends there) and resumes. The result must exist
 * with the right size, and the partial file must not. If only the journal was
 * modified, the bytes must be right as well, because all arrays were complete.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz_container.h"
#include "lowbit_io.h"
#include "scratch.h"

enum { ROOM = 1 << 14, ARRAYS = 3 };

static char dir[SCRATCH_MAX];
static char source[SCRATCH_MAX + 32], result[SCRATCH_MAX + 32];
static char partial[SCRATCH_MAX + 32];
static uint8_t kept[ROOM], right[ROOM], got[ROOM];
static size_t n_kept, n_right;
static double sum; /* keeps reads from being optimized away */

static void broken(const char *law, const lb_ctx *cx)
{
    fprintf(stderr, "fuzz: %s: %s\n", law, lb_error(cx));
    abort();
}

static size_t read_all(const char *path, uint8_t *to)
{
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(to, 1, ROOM, f) : 0;
    if (f) fclose(f);
    return n;
}

static void note(void *user, const lb_written *w)
{
    if (user) n_kept = read_all(partial, kept);
    sum += w->error.max + (double)w->error.apart + (double)w->error.n;
    sum += lb_difference_nrmse(&w->error) + lb_difference_cosine(&w->error);
}

static bool quantize(lb_ctx *cx, bool first)
{
    const lb_quantize_options o = {.struct_size = sizeof o,
                                   .config = {.format = "nf4"},
                                   .done = note,
                                   .done_user = first ? &sum : NULL,
                                   .measure = true,
                                   .no_sync = true,
                                   .resume = !first};
    return lb_quantize_file(cx, source, result, &o);
}

static void clean(void)
{
    unlink(source);
    unlink(result);
    unlink(partial);
    rmdir(dir);
}

static bool begin(lb_ctx *cx)
{
    static const char *const name[ARRAYS] = {"a", "b.norm", "c"};
    lb_planned list[ARRAYS] = {0};
    if (n_right) return true;
    if (!scratch_dir(dir)) return false;
    atexit(clean);
    snprintf(source, sizeof source, "%s/source.safetensors", dir);
    snprintf(result, sizeof result, "%s/result.safetensors", dir);
    snprintf(partial, sizeof partial, "%s/result.safetensors.partial", dir);
    lb_enter(cx);
    for (int i = 0; i < ARRAYS; i++) {
        list[i].name = name[i];
        list[i].array = lb_random_normal(cx, (lb_key){9, (uint64_t)i}, LB_F32,
                                         LB_SHAPE(16, 64 + i));
    }
    const bool ok =
        lb_save(cx, source, list, ARRAYS, NULL) && quantize(cx, true);
    lb_leave(cx);
    n_right = read_all(result, right);
    if (!ok || n_kept <= n_right || memcmp(kept, right, n_right) != 0)
        broken("a first run", cx);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    lb_ctx *cx = fuzz_context();
    if (!cx || n < 2 || !begin(cx)) return 0;
    const size_t at = (size_t)(bytes[0] | (bytes[1] & 0x7f) << 8) % n_kept;
    const size_t more = n - 2 < n_kept - at ? n - 2 : n_kept - at;
    const bool cut = bytes[1] & 0x80;
    FILE *f = fopen(partial, "wb");
    if (!f) return 0;
    fwrite(kept, 1, at, f);
    fwrite(bytes + 2, 1, more, f);
    if (!cut) fwrite(kept + at + more, 1, n_kept - at - more, f);
    fclose(f);
    unlink(result);
    const size_t before = lb_bytes_in_use(cx);
    if (!quantize(cx, false)) broken("cannot be resumed", cx);
    const size_t size = read_all(result, got);
    if (size != n_right || access(partial, F_OK) == 0)
        broken("what is there is not a result", cx);
    if (at >= n_right && memcmp(got, right, size) != 0)
        broken("a journal has changed the result", cx);
    if (lb_bytes_in_use(cx) != before) broken("memory is left", cx);
    return 0;
}
