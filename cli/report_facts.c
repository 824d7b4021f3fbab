/* report_facts.c - what a report records besides errors: layouts, block sizes,
 * hashes of the source.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "report.h"

/* ---- layouts and blocks -------------------------------------------------- */

/* GGUF types store codes and scales together, in blocks of fixed size. */
static int64_t block_of_type(const char *format)
{
    if (strncmp(format, "tq", 2) == 0) return 256;
    return *format == 'q' || strncmp(format, "iq", 2) == 0 ? 32 : 0;
}

/* Elements per scale, of all elements or of each row. The last block may be
 * shorter, so round up to a power of two, as all defaults are. */
static int64_t block_from(int64_t n, int64_t row, int64_t scales)
{
    const int64_t rows = row > 0 ? n / row : 1;
    const bool by_row = rows > 0 && scales % rows == 0;
    const int64_t of = by_row ? row : n,
                  parts = by_row ? scales / rows : scales;
    int64_t block = 1;
    if (parts < 2) return of;
    while (block < of && block * parts < of)
        block *= 2;
    return block;
}

/* 0 if there is no scale. */
static int64_t block_of(lb_ctx *cx, lb_array *a)
{
    const int64_t fixed = block_of_type(lb_format_of(a)), n = lb_size(a);
    if (fixed) return fixed;
    lb_array *absmax = lb_component(cx, a, "absmax"); /* always in blocks */
    lb_clear(cx);
    const int rank = lb_rank(a);
    if (absmax && lb_size(absmax) > 0)
        return block_from(n, rank ? lb_dim(a, rank - 1) : 1, lb_size(absmax));
    lb_array *scale = lb_component(cx, a, "scale"); /* a row, tensor or block */
    lb_clear(cx);
    return scale && lb_size(scale) > 0 ? n / lb_size(scale) : 0;
}

bool report_stored(report *r, lb_ctx *cx, const lb_entry *e, lb_array *a)
{
    if (!a) return false;
    for (int64_t i = 0; i < r->n; i++) {
        report_row *row = &r->row[(r->last + i) % r->n];
        if (strcmp(row->name, e->name) != 0) continue;
        r->last = (r->last + i) % r->n;
        lb_enter(cx);
        if (!row->block) row->block = block_of(cx, a);
        row->layout = NULL;
        static const char *const known[] = {
            "native", "bnb",  "bitnet", "eformer",
            "mlx",    "gptq", "awq",    "compressed-tensors",
            "fp8"};
        for (int k = 0; e->layout && k < 9; k++)
            if (strcmp(e->layout, known[k]) == 0) row->layout = known[k];
        lb_leave(cx);
        return true;
    }
    return true;
}

static void add_text(char *to, size_t size, const char *text)
{
    if (strstr(to, text)) return;
    const size_t used = strlen(to);
    snprintf(to + used, size - used, "%s%s", used ? ", " : "", text);
}

void report_layouts(const report *r, char *to, size_t size)
{
    *to = 0;
    for (int64_t i = 0; i < r->n; i++)
        if (r->row[i].layout) add_text(to, size, r->row[i].layout);
}

void report_blocks(const report *r, char *to, size_t size)
{
    char text[96];
    *to = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const report_row *row = &r->row[i];
        if (!row->block) continue;
        char *end = strchr(row->to, ' ');
        snprintf(text, sizeof text, "%.*s: %lld elements",
                 end ? (int)(end - row->to) : 32, row->to,
                 (long long)row->block);
        add_text(to, size, text);
    }
}

/* ---- hashes -------------------------------------------------------------- */

static bool hash_file(const char *path, XXH128_hash_t *hash)
{
    enum { CHUNK = 4 << 20 };
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *bytes = malloc(CHUNK);
    XXH3_state_t *state = XXH3_createState();
    ssize_t n = -1;
    if (fd >= 0 && bytes && state && fstat(fd, &st) == 0 &&
        S_ISREG(st.st_mode) && XXH3_128bits_reset(state) == XXH_OK)
        while ((n = read(fd, bytes, CHUNK)) > 0 || (n < 0 && errno == EINTR))
            if (n > 0) XXH3_128bits_update(state, bytes, (size_t)n);
    if (n == 0) *hash = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    free(bytes);
    if (fd >= 0) close(fd);
    return n == 0;
}

static void put_hash(FILE *to, const char *path, const char *name)
{
    XXH128_hash_t hash;
    if (!hash_file(path, &hash)) return;
    fprintf(to, "%016llx%016llx  ", (unsigned long long)hash.high64,
            (unsigned long long)hash.low64);
    put_text(to, name, strlen(name));
    fputc('\n', to);
}

static int is_weights(const struct dirent *d)
{
    const char *dot = strrchr(d->d_name, '.');
    return dot && strcmp(dot, ".safetensors") == 0;
}

void report_identify(report *r)
{
    struct dirent **list = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&r->hash, &size);
    if (!to) return;
    const int n = scandir(r->source, &list, is_weights, alphasort);
    if (n < 0) {
        const char *slash = strrchr(r->source, '/');
        put_hash(to, r->source, slash ? slash + 1 : r->source);
    }
    for (int i = 0; i < n; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/%s", r->source, list[i]->d_name) >= 0)
            put_hash(to, path, list[i]->d_name);
        free(path);
        free(list[i]);
    }
    free(list);
    fclose(to);
}
