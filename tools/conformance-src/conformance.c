/* conformance.c - tools/conformance KIND DIR: runs a directory of cases.
 *
 * Prints every case that fails or is skipped, with the reason; the last line
 * is `N passed, N failed, N skipped`. Exits 0 if at least one passed and none
 * failed, 2 if the command line, DIR or the context is invalid, otherwise 1.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"

static const kind *const kinds[] = {
    &kind_stablehlo, &kind_seed,    &kind_bitsandbytes,
    &kind_gguf,      &kind_parsers, &kind_transformers,
    &kind_fp8,       &kind_mxfp4,   &kind_nvfp4,
    &kind_gptq,      &kind_awq,     &kind_compressed_tensors,
    &kind_mlx};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Memory limit of the context: cases are untrusted, and one that needs more
 * gets an error instead of exhausting the machine. */
static const size_t memory_limit = (size_t)2 << 30;

/* ---- notes and counts --------------------------------------------------- */

static void note_set(note *n, verdict v, const char *fmt, va_list args)
{
    if (n->verdict != PASSED) return;
    n->verdict = v;
    vsnprintf(n->why, sizeof(n->why), fmt, args);
}

bool note_fail(note *n, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    note_set(n, FAILED, fmt, args);
    va_end(args);
    return false;
}

bool note_skip(note *n, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    note_set(n, SKIPPED, fmt, args);
    va_end(args);
    return false;
}

bool library_failed(lb_ctx *cx, note *n, const char *doing)
{
    const char *const why = lb_error(cx);
    /* Most messages of the library already begin with the primitive's name. */
    const bool named = !strncmp(why, doing, strlen(doing));
    return note_fail(n, "%s%s%s", named ? "" : doing, named ? "" : ": ",
                     *why ? why : "no result and no error");
}

void case_open(runner *r, note *n)
{
    *n = (note){.verdict = PASSED};
    lb_clear(r->cx);
    lb_enter(r->cx);
}

/* Escapes text from cases, which must not be able to forge report lines. */
static void print_plain(const char *s)
{
    for (; *s; s++) {
        putchar((unsigned char)*s < ' ' || *s == 127 ? '?' : *s);
    }
}

void case_close(runner *r, const note *n, const char *name, uint64_t digest)
{
    lb_leave(r->cx);
    r->count[n->verdict]++;
    if (n->verdict == PASSED) {
        if (!r->verbose) return;
        fputs("PASS ", stdout);
        print_plain(name);
        printf(" %016" PRIx64 "\n", digest);
        return;
    }
    fputs(n->verdict == FAILED ? "FAIL " : "SKIP ", stdout);
    print_plain(name);
    fputs(": ", stdout);
    print_plain(n->why);
    putchar('\n');
}

void cases_skip(runner *r, const char *name, int64_t count, const char *why)
{
    if (count <= 0) return;
    r->count[SKIPPED] += count;
    printf("SKIP %s: %" PRId64 " cases: %s\n", name, count, why);
}

/* ---- memory ------------------------------------------------------------- */

static void *limited_alloc(void *user, size_t size, size_t align)
{
    size_t *const left = user;
    if (size > *left) return NULL;
    void *p = NULL;
    const size_t least = align < sizeof(void *) ? sizeof(void *) : align;
    if (posix_memalign(&p, least, size ? size : 1)) return NULL;
    *left -= size;
    return p;
}

static void limited_free(void *user, void *ptr, size_t size)
{
    size_t *const left = user;
    if (!ptr) return;
    free(ptr);
    *left += size;
}

/* ---- the command -------------------------------------------------------- */

static void usage(FILE *to)
{
    fprintf(to, "usage: conformance [-v] [--threads N] [--isa NAME] KIND DIR\n"
                "  -v           also print cases that pass, with a digest of "
                "their results\n"
                "  --threads N  threads of the context (0: all cores)\n"
                "  --isa NAME   strongest instruction-set level to use\n"
                "known kinds:\n");
    for (int i = 0; i < N_KINDS; i++) {
        fprintf(to, "  %-18s %s\n", kinds[i]->name, kinds[i]->help);
    }
    fprintf(
        to,
        "DIR has a directory for each case, or is one.\n"
        "gguf: raw_u8.npy (the blocks), meta.json (ggml_type, n), "
        "expected_f32.npy\n"
        "and expected_bf16_bits.npy (optional).\n"
        "Model directories (fp8 to mlx): the files of the program that wrote "
        "it, which\nare config.json and model.safetensors or shards with an "
        "index; and one of\n"
        "  expected_f32.npy    the values of a quantized weight of that "
        "shape, in f32;\n"
        "                      expected_bf16_bits.npy (optional): rounded "
        "to bf16\n"
        "  values.safetensors  arrays of the same names, in any dtype\n"
        "  nothing             every quantized array must be read, whole "
        "and by rows\n");
}

static const kind *find_kind(const char *name)
{
    for (int i = 0; i < N_KINDS; i++) {
        if (!strcmp(kinds[i]->name, name)) return kinds[i];
    }
    return NULL;
}

static bool parse_threads(const char *s, int *out)
{
    char *end = NULL;
    errno = 0;
    const long v = strtol(s, &end, 10);
    if (errno || end == s || *end || v < 0 || v > 1024) return false;
    *out = (int)v;
    return true;
}

/* With LB_DENSE_LOG: results may be dense if their format cannot express them,
 * but no packed operand may be decoded as a whole. */
static void count_copies(void *user, const char *sentence)
{
    int64_t *copies = user;
    if (strstr(sentence, "has a dense result")) return;
    fprintf(stderr, "conformance: %s\n", sentence);
    ++*copies;
}

static int run(const kind *k, const char *dir, const lb_options *options,
               bool verbose)
{
    int64_t copies = 0;
    lb_options with_log = *options;
    with_log.log = count_copies;
    with_log.log_user = &copies;
    runner r = {.cx = lb_open(&with_log), .verbose = verbose};
    if (!r.cx) {
        char why[512];
        fprintf(stderr, "conformance: %s\n",
                lb_open_why(options, why, sizeof(why)));
        return 2;
    }
    note n = {.verdict = PASSED};
    const bool ran = k->run(&r, dir, &n);
    lb_close(r.cx);
    if (!ran) {
        fprintf(stderr, "conformance: %s\n", n.why);
        return 2;
    }
    printf("%" PRId64 " passed, %" PRId64 " failed, %" PRId64 " skipped\n",
           r.count[PASSED], r.count[FAILED], r.count[SKIPPED]);
    /* An incomplete report is not a success. */
    if (fflush(stdout) || ferror(stdout)) return 2;
    return r.count[FAILED] == 0 && r.count[PASSED] > 0 && !copies ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"threads", required_argument, NULL, 't'},
        {"isa", required_argument, NULL, 'i'},
        {"verbose", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    size_t left = memory_limit;
    const lb_allocator allocator = {limited_alloc, limited_free, &left};
    lb_options options = {.struct_size = sizeof(options),
                          .allocator = &allocator};
    bool verbose = false;
    for (int c; (c = getopt_long(argc, argv, "vh", longs, NULL)) != -1;) {
        if (c == 'v') {
            verbose = true;
        } else if (c == 'i') {
            options.isa = optarg;
        } else if (c == 't' && parse_threads(optarg, &options.threads)) {
            continue;
        } else {
            if (c == 't') {
                fprintf(stderr,
                        "conformance: --threads takes 0 to 1024, not '%s'\n",
                        optarg);
            }
            usage(c == 'h' ? stdout : stderr);
            return c == 'h' ? 0 : 2;
        }
    }
    if (argc - optind != 2) {
        usage(stderr);
        return 2;
    }
    const kind *const k = find_kind(argv[optind]);
    if (!k) {
        fprintf(stderr, "conformance: unknown kind '%s'\n", argv[optind]);
        usage(stderr);
        return 2;
    }
    options.dense = k->dense;
    return run(k, argv[optind + 1], &options, verbose);
}
