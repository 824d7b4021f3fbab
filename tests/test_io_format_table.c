/* test_io_format_table.c - the table of formats and layouts in docs/formats.md:
 * which can be quantized to, which kernels they have, which layouts they are
 * read from and written in, and which moves are exact.
 *
 * Nothing is listed here. Formats, layouts and container types are those of the
 * registry; a layout reads what the golden files of other programs have in it,
 * writes what its plan accepts, and a move is exact if it was. The test fails
 * if the document differs; --write updates it.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cpu.h"
#include "check.h"
#include "core/move.h"
#include "io/arrays/saver.h"
#include "io/layouts/entries.h"
#include "lowbit_io.h"
#include "random_blocks.h"

#define DOCUMENT "docs/formats.md"
#define BEGIN                                                                  \
    "<!-- The tables until the next such line are written by "                 \
    "test_io_format_table "                                                    \
    "--write. -->\n"
#define END "<!-- End of the tables. -->\n"

enum { ROWS = 256, COLUMNS = 1024 };
enum { MOST = 64, LAYOUTS = 16, SAMPLES = 24, ROOM = 1 << 16 };

static lb_ctx *cx;

/* ---- what there is ------------------------------------------------------- */

typedef struct row {
    const char *name;
    const lb_format *format;
    bool read[LAYOUTS], written[LAYOUTS];
    lb_array *sample[SAMPLES]; /* with several kinds of scales */
    int n;
    lb_array *source; /* to be moved: with scales of 16 bits, if it can be */
} row;

static row rows[MOST];
static int n_rows;
static const char *layouts[LAYOUTS];
static int n_layouts;

static row *row_of(const char *name)
{
    for (int i = 0; i < n_rows; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

/* Layouts of files of other programs, and gguf, which comes last. */
static int layout_index(const char *name)
{
    for (int i = 0; i < n_layouts; i++)
        if (strcmp(layouts[i], name) == 0) return i;
    if (check_fails(n_layouts < LAYOUTS)) abort();
    layouts[n_layouts] = name;
    return n_layouts++;
}

static void list_all(void)
{
    const char *name;
    for (int k = 0; (name = lb_format_name(cx, k)); k++)
        if (strcmp(name, "dense") != 0 && n_rows < MOST)
            rows[n_rows++] =
                (row){.name = name, .format = lb_find_format(cx, name)};
    for (int k = 0; lb_file_layouts[k]; k++) {
        const char *l = lb_file_layouts[k]->name;
        if (strcmp(l, "ggml") != 0 && strncmp(l, "gguf", 4) != 0 &&
            strcmp(l, "i2_s") != 0)
            layout_index(l);
    }
    layout_index("gguf");
}

/* ---- arrays -------------------------------------------------------------- */

static void add_sample(row *r, lb_array *a)
{
    if (a && r->n < SAMPLES) r->sample[r->n++] = a;
    lb_clear(cx);
}

/* Planned arrays of a format with every kind of scales that it may have: no
 * values are needed to know where they can be stored. */
static void add_planned(row *r)
{
    static const lb_quant_config configs[] = {{.block_size = 0},
                                              {.block_size = 64},
                                              {.block_size = 16},
                                              {.scale = LB_SCALE_ROW},
                                              {.scale = LB_SCALE_TENSOR},
                                              {.scale = LB_SCALE_NONE},
                                              {.meaning = LB_MEANS_ABSMAX},
                                              {.compat = LB_COMPAT_BNB_CPU},
                                              {.compat = LB_COMPAT_EFORMER}};
    const lb_array like = {.dtype = LB_F32, .shape = LB_SHAPE(ROWS, COLUMNS)};
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        lb_move_target t = {.config = configs[i]};
        t.config.format = r->name;
        add_sample(r, lb_move_alloc(cx, &like, &t));
        if (i > 1) continue; /* 16-bit scales, biases and zero points */
        for (int p = 1; p < LB_MAX_PARTS && r->format->part[p].name; p++) {
            const bool integers = r->format->part[p].integers;
            if (strcmp(r->format->part[p].name, "table") == 0) continue;
            t.elem[p] = integers ? LB_U8 : LB_F16;
            if (p > 1 || !integers) add_sample(r, lb_move_alloc(cx, &like, &t));
            if (p > 1) t.elem[p] = LB_NO_DTYPE;
        }
    }
}

/* Which arrays the files of other programs have. */
static void add_file(const char *path)
{
    lb_file *f = lb_file_open(cx, path, NULL);
    for (int64_t i = 0; f && i < lb_file_count(f); i++) {
        const lb_entry *e = lb_file_entry(f, i);
        row *r = e->format ? row_of(e->format) : NULL;
        if (!r) continue;
        const bool gguf = !e->layout || strncmp(e->layout, "gguf", 4) == 0 ||
                          strcmp(e->layout, "i2_s") == 0 ||
                          strcmp(e->layout, "ggml") == 0;
        r->read[layout_index(gguf ? "gguf" : e->layout)] |=
            e->layout || strstr(path, ".gguf");
        add_sample(r, lb_keep(cx, lb_file_load(cx, f, e->name)));
    }
    lb_file_close(f);
    lb_clear(cx);
}

static void add_files(const char *dir)
{
    char path[512];
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s/config.json", dir, e->d_name);
        struct stat st;
        const bool model = stat(path, &st) == 0;
        const char *end = strrchr(e->d_name, '.');
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (model ||
            (end && (!strcmp(end, ".safetensors") || !strcmp(end, ".gguf"))))
            add_file(path);
    }
    if (d) closedir(d);
}

/* The values of normal weights, with scales of 16 bits if the format has them;
 * or random blocks. */
static lb_array *source_of(const row *r)
{
    static uint32_t state = 1;
    lb_scheme s;
    lb_move m;
    lb_array *to = NULL;
    lb_array *a = random_blocks(cx, r->name, ROWS, COLUMNS, &state);
    if (a) return a;
    const lb_quant_config c = {.format = r->name};
    if (!lb_can_quantize(cx, r->name)) return NULL;
    a = lb_quantize(cx,
                    lb_random_normal(cx, (lb_key){.seed = 9}, LB_F32,
                                     LB_SHAPE(ROWS, COLUMNS)),
                    &c);
    lb_move_target t = {.config = c, .elem = {[1] = LB_F16}};
    if (a && lb_scheme_of(a, &s) && s.stores && s.levels == LB_LEVELS_INT &&
        a->store->part[1].a)
        (void)lb_move_array(cx, a, &t, &to, &m);
    lb_clear(cx);
    return to ? to : a;
}

/* ---- facts --------------------------------------------------------------- */

static bool can_store(const lb_array *a, const char *layout)
{
    const bool gguf = strcmp(layout, "gguf") == 0;
    const lb_planned p = {.name = "w.weight",
                          .array = (lb_array *)(uintptr_t)a};
    const bool ok = lb_saver_suits(cx, &p, gguf ? "gguf" : NULL,
                                   gguf ? NULL : layout) == LB_DONE;
    lb_clear(cx);
    return ok;
}

/* 2: the move is exact, 1: parameters are rounded, 0: neither. */
static int move_to(lb_array *a, const char *format, const lb_scheme *s)
{
    enum { SCALE = 1, ZERO = 2, BIAS = 3 };
    int best = 0;
    const int64_t g = s->g[1];
    for (int i = 0; i < 12 && best < 2; i++) {
        lb_move m;
        lb_array *to = NULL;
        lb_move_target t = {.config = {.format = format}};
        const bool affine =
            lb_find_format(cx, format)->part[BIAS].name &&
            !strcmp(lb_find_format(cx, format)->part[BIAS].name, "bias");
        if (!affine && i) break;
        if (affine) {
            t.config.block_size = g && g % 8 == 0 ? g : 0;
            t.config.scale = g ? LB_SCALE_DEFAULT : LB_SCALE_ROW;
            t.elem[SCALE] = i % 2 ? LB_F32 : LB_F16;
            if (i / 2 % 3 == 1) t.elem[ZERO] = LB_U8;
            if (i / 2 % 3 == 2) t.elem[BIAS] = t.elem[SCALE];
        }
        lb_enter(cx);
        const lb_verdict v = lb_move_array(cx, a, &t, &to, &m);
        if (v == LB_DONE) best = m.exact ? 2 : best ? best : 1;
        lb_leave(cx);
        lb_clear(cx);
    }
    return best;
}

/* ---- text ---------------------------------------------------------------- */

typedef struct text {
    char *at;
    size_t n;
} text;

static void put(text *t, const char *words)
{
    const size_t n = strlen(words);
    if (check_fails(t->n + n < ROOM)) abort();
    memcpy(t->at + t->n, words, n + 1);
    t->n += n;
}

/* Begins an item of a list that began at `from`. */
static void put_item(text *t, size_t from, const char *words)
{
    if (t->n > from) put(t, ", ");
    put(t, words);
}

static void put_layouts(text *t, const bool *which)
{
    const size_t from = t->n;
    for (int i = 0; i < n_layouts; i++)
        if (which[i]) put_item(t, from, layouts[i]);
}

static void put_kernels(text *t, const lb_format *f)
{
    const size_t from = t->n;
    for (int l = LB_LEVEL_NEON; l <= LB_LEVEL_AVX512VNNI; l++)
        if (f->kernels >> l & 1) put_item(t, from, lb_level_name((lb_level)l));
    if (t->n == from) put(t, "portable");
}

static bool is_int(const char *name)
{
    return strncmp(name, "int", 3) == 0 && name[3] && !name[4] &&
           name[3] != '8';
}

/* All wider integers can be targets as well. */
static void put_targets(text *t, const int *how, int want)
{
    const size_t from = t->n;
    bool wider = false;
    for (int i = 0; i < n_rows; i++) {
        const char *name = rows[i].name;
        const bool affine = is_int(name) || strcmp(name, "uint8") == 0;
        if (how[i] != want || (affine && wider)) continue;
        put_item(t, from, name);
        if (is_int(name)) put(t, " to uint8");
        wider |= affine;
    }
}

static void put_row(text *t, row *r)
{
    int how[MOST] = {0};
    lb_scheme s;
    if (r->source && lb_scheme_of(r->source, &s))
        for (int i = 0; i < n_rows; i++)
            if (&rows[i] != r) how[i] = move_to(r->source, rows[i].name, &s);
    put(t, "| `");
    put(t, r->name);
    put(t, lb_can_quantize(cx, r->name) ? "` | yes | " : "` | no | ");
    put_kernels(t, r->format);
    put(t, " | ");
    put_layouts(t, r->read);
    put(t, " | ");
    put_layouts(t, r->written);
    put(t, " | ");
    put_targets(t, how, 2);
    put(t, " | ");
    put_targets(t, how, 1);
    put(t, " |\n");
}

static void put_formats(text *t, int l, bool written)
{
    const size_t from = t->n;
    int n = 0;
    for (int i = 0; i < n_rows; i++)
        n += written ? rows[i].written[l] : rows[i].read[l];
    for (int i = 0; i < n_rows && n < n_rows; i++)
        if (written ? rows[i].written[l] : rows[i].read[l])
            put_item(t, from, rows[i].name);
    if (n == n_rows) put(t, "all formats");
}

static void put_all(text *t)
{
    put(t,
        "\n| format | quantize to | kernels | read from | written to | exact "
        "moves to | moves that round a scale, to |\n"
        "|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < n_rows; i++)
        put_row(t, &rows[i]);
    put(t, "\n| layout | reads | writes |\n|---|---|---|\n");
    for (int l = 0; l < n_layouts; l++) {
        put(t, "| `");
        put(t, layouts[l]);
        put(t, "` | ");
        put_formats(t, l, false);
        put(t, " | ");
        put_formats(t, l, true);
        put(t, " |\n");
    }
    put(t, "\n");
}

/* ---- the document -------------------------------------------------------- */

static char *read_all(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *all = calloc(1, 4 * ROOM);
    if (!f || !all || fread(all, 1, 4 * ROOM - 1, f) == 0 || !feof(f)) abort();
    fclose(f);
    return all;
}

static void check_document(const text *t, bool write)
{
    char *all = read_all(DOCUMENT);
    char *from = strstr(all, BEGIN), *to = from ? strstr(from, END) : NULL;
    if (check_fails(from && to)) {
        free(all);
        return;
    }
    from += strlen(BEGIN);
    const bool same =
        (size_t)(to - from) == t->n && memcmp(from, t->at, t->n) == 0;
    if (write && !same) {
        FILE *f = fopen(DOCUMENT, "wb");
        CHECK(f && fwrite(all, 1, (size_t)(from - all), f) &&
              fwrite(t->at, 1, t->n, f) && fputs(to, f) >= 0 && !fclose(f));
    } else if (check_fails(same))
        fprintf(stderr,
                "%s: the tables differ; run test_io_format_table "
                "--write\n%s",
                DOCUMENT, t->at);
    free(all);
}

int main(int argc, char **argv)
{
    text t = {.at = calloc(1, ROOM)};
    if (!t.at) abort();
    cx = lb_open(&(lb_options){.threads = 1});
    list_all();
    add_files("tests/golden/affine");
    add_files("tests/golden/floats/fp8");
    add_files("tests/golden/floats/mxfp4");
    add_files("tests/golden/floats/nvfp4");
    add_files("tests/golden/floats/gguf");
    add_files("tests/golden/layouts");
    for (int i = 0; i < n_rows; i++) {
        row *r = &rows[i];
        add_planned(r);
        r->source = source_of(r);
        lb_clear(cx);
        for (int l = 0; l < n_layouts; l++)
            for (int k = 0; k < r->n && !r->written[l]; k++)
                r->written[l] = can_store(r->sample[k], layouts[l]);
        /* Own files, and types of GGUF, are read as they are written. */
        const int own = layout_index("native"), gguf = layout_index("gguf");
        r->read[own] |= r->written[own];
        r->read[gguf] |= r->written[gguf];
    }
    put_all(&t);
    check_document(&t, argc > 1 && strcmp(argv[1], "--write") == 0);
    free(t.at);
    lb_close(cx);
    return check_report("table of formats");
}
