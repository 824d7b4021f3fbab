/* fashion.c - quantized networks on Fashion-MNIST: f32, quantized after
 * training (PTQ) and trained with quantized weights (QAT).
 *
 *     fashion                    the MLP, three seeds, ten epochs
 *     fashion --net cnn          the convolutional net, one seed, five epochs
 *     fashion --short            200 steps, to try it out
 *     fashion --validate 5000    choose settings: test on the last 5000
 *                                training images
 *     fashion --compare FILE...  compare files of --save and lowbit quantize
 *
 * The same seed gives the same bits on any number of threads.
 */
#include <errno.h>
#include <lowbit_io.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fashion.h"

/* ---- the rows of the table ----------------------------------------------- */

static const lb_quant_config int8 = {.format = "int8"};
static const lb_quant_config nf4 = {.format = "nf4"};
static const lb_quant_config ternary = {.format = "ternary",
                                        .scale = LB_SCALE_ROW};
static const lb_quant_config binary = {.format = "binary",
                                       .scale = LB_SCALE_ROW};

static const struct row {
    const char *name;
    const lb_quant_config *config;
    bool qat; /* false: PTQ of the f32 weights */
} rows[] = {
    {"float", NULL, true},          {"int8 PTQ", &int8, false},
    {"nf4 PTQ", &nf4, false},       {"ternary PTQ", &ternary, false},
    {"binary PTQ", &binary, false}, {"int8 QAT", &int8, true},
    {"nf4 QAT", &nf4, true},        {"ternary QAT", &ternary, true},
    {"binary QAT", &binary, true},
};
enum { ROWS = sizeof rows / sizeof *rows, MAX_SEEDS = 16 };

typedef struct settings {
    const char *data, *chart, *save, *save_all, *only, *checkpoint;
    const net *net;
    int epochs, seeds, first, threads; /* seeds first, first + 1, ... */
    int batch, validate;               /* 0: the net's default; test images */
    double rate;                       /* 0: the net's default */
    bool brief;
    char **compare; /* files, up to a NULL; NULL: train */
} settings;

typedef struct result {
    double accuracy[MAX_SEEDS];
    double curve[MAX_EPOCHS], ms; /* means over seeds */
    size_t bytes;
} result;

/* ---- running ------------------------------------------------------------- */

typedef struct bench {
    lb_ctx *cx;
    const settings *s;
    dataset train, test;
    outcome base; /* the f32 training of this seed */
} bench;

/* Length of the next name of "one, two"; 0 at the end. */
static size_t next_name(const char **list)
{
    *list += strspn(*list, ", ");
    size_t n = strcspn(*list, ",");
    while (n && (*list)[n - 1] == ' ')
        n--;
    return n;
}

static bool is_named(const char *text, size_t n, const char *name)
{
    return strlen(name) == n && !memcmp(text, name, n);
}

static bool wanted(const settings *s, int row)
{
    if (!row || !s->only) return true;
    const char *at = s->only;
    for (size_t n; (n = next_name(&at)); at += n)
        if (is_named(at, n, rows[row].name)) return true;
    return false;
}

/* True if every name is a row's, or "none". */
static bool check_only(const char *only)
{
    for (size_t n; (n = next_name(&only)); only += n) {
        bool known = is_named(only, n, "none");
        for (int k = 0; k < ROWS && !known; k++)
            known = is_named(only, n, rows[k].name);
        if (known) continue;
        fprintf(stderr, "fashion: unknown row '%.*s'; choose from", (int)n,
                only);
        for (int k = 0; k < ROWS; k++)
            fprintf(stderr, "%s %s", k ? "," : "", rows[k].name);
        fprintf(stderr, "\n");
        return false;
    }
    return true;
}

/* DIR/mlp-1-nf4-QAT.safetensors */
static const char *file_of(const settings *s, const char *dir, int row,
                           int seed, char *path, size_t size)
{
    if (!dir) return NULL;
    const size_t n = strlen(dir);
    snprintf(path, size, "%s/%s-%d-%s.safetensors", dir, s->net->name,
             s->first + seed, rows[row].name);
    for (char *p = path + (n < size ? n : 0); *p; p++)
        if (*p == ' ') *p = '-';
    return path;
}

/* One row for one seed: trained (QAT), or quantized after training (PTQ). */
static bool run_row(bench *b, int row, int seed, result *r)
{
    const settings *s = b->s;
    char path[4096], weights[4096];
    const plan p = {
        .net = s->net,
        .qat = rows[row].config,
        .rate = s->rate > 0 ? s->rate : s->net->rate,
        .epochs = s->epochs,
        .batch = s->batch ? s->batch : s->net->batch,
        .limit = s->brief ? 25600 : 0,
        .seed = (uint64_t)(s->first + seed),
        .label = rows[row].name,
        .checkpoint = file_of(s, s->checkpoint, row, seed, path, sizeof path)};
    outcome own = {.params = NULL};
    outcome *of = row ? &own : &b->base;
    bool ok = true;
    if (rows[row].qat) {
        ok = train(b->cx, &p, &b->train, &b->test, of);
        for (int i = 0; i < s->epochs; i++)
            r->curve[i] += of->accuracy[i] / s->seeds;
        r->ms += of->ms / s->seeds;
        if (ok && file_of(s, s->save_all, row, seed, weights, sizeof weights))
            ok = lb_tree_save(of->params, weights, NULL);
    }
    lb_tree *w = lb_tree_copy(rows[row].qat ? of->params : b->base.params);
    ok = ok && net_quantize(w, rows[row].config);
    if (ok) {
        r->accuracy[seed] = accuracy_of(b->cx, s->net, w, &b->test);
        r->bytes = lb_tree_nbytes(w);
    }
    lb_tree_close(w);
    if (row) outcome_free(&own);
    if (ok)
        fprintf(stderr, "seed %d  %-12s %6.2f %%\n", s->first + seed,
                rows[row].name, r->accuracy[seed]);
    return ok && !lb_error_status(b->cx);
}

static double mean(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i];
    return sum / n;
}

static void print_table(const settings *s, const result *r)
{
    printf(
        "\n%s, %d epoch%s, %d seed%s; every weight quantized, biases f32\n\n",
        s->net->name, s->epochs, s->epochs > 1 ? "s" : "", s->seeds,
        s->seeds > 1 ? "s" : "");
    printf("| weights | %s accuracy | from float | bytes | ms a step |\n",
           s->validate ? "validation" : "test");
    printf("|---|---|---|---|---|\n");
    for (int k = 0; k < ROWS; k++) {
        if (!wanted(s, k)) continue;
        const double a = mean(r[k].accuracy, s->seeds);
        printf("| %s | %.2f %% | %+.2f | %zu |", rows[k].name, a,
               a - mean(r[0].accuracy, s->seeds), r[k].bytes);
        if (rows[k].qat && r[k].ms > 0)
            printf(" %.1f |\n", r[k].ms);
        else
            printf(" |\n");
    }
}

static bool draw(const settings *s, const result *r)
{
    curve c[ROWS];
    int n = 0;
    char title[128];
    for (int k = 0; k < ROWS; k++)
        if (rows[k].qat && wanted(s, k))
            c[n++] = (curve){rows[k].name, r[k].curve, s->epochs};
    snprintf(title, sizeof title, "Fashion-MNIST, %s: %s accuracy, percent",
             s->net->name, s->validate ? "validation" : "test");
    if (chart_write(s->chart, title, c, n)) return true;
    fprintf(stderr, "fashion: cannot write %s: %s\n", s->chart,
            strerror(errno));
    return false;
}

static bool run(bench *b)
{
    static result r[ROWS];
    const settings *s = b->s;
    if (!dataset_read(b->cx, s->data, "train", &b->train) ||
        !(s->validate
              ? dataset_hold_out(b->cx, &b->train, s->validate, &b->test)
              : dataset_read(b->cx, s->data, "t10k", &b->test)))
        return false;
    for (int seed = 0; seed < s->seeds; seed++) {
        bool ok = true;
        for (int k = 0; k < ROWS && ok; k++)
            if (wanted(s, k)) ok = run_row(b, k, seed, &r[k]);
        if (ok && s->save && !seed)
            ok = lb_tree_save(b->base.params, s->save, NULL);
        outcome_free(&b->base);
        if (!ok) return false;
    }
    print_table(s, r);
    return !s->chart || draw(s, r);
}

static bool run_compare(bench *b)
{
    int n = 0;
    while (b->s->compare[n])
        n++;
    return dataset_read(b->cx, b->s->data, "t10k", &b->test) &&
           compare(b->cx, b->s->net, &b->test, b->s->compare, n);
}

/* ---- the command --------------------------------------------------------- */

static int usage(FILE *to)
{
    fprintf(
        to,
        "usage: fashion [OPTION VALUE]...\n"
        "       fashion --compare FILE...\n"
        "  --net mlp|cnn       784-512-256-10 or a convolutional net\n"
        "                      (default: mlp)\n"
        "  --epochs N          epochs (default: 10; cnn: 5)\n"
        "  --seeds N           number of seeds to average (default: 3; cnn: "
        "1)\n"
        "  --first-seed N      first seed (default: 1)\n"
        "  --short             one epoch of 25600 images, one seed\n"
        "  --only NAMES        rows besides float, e.g. 'nf4 PTQ, int8 QAT',\n"
        "                      or none (default: all)\n"
        "  --threads N         number of threads (default: all cores)\n"
        "  --rate X            Adam's learning rate (default: the net's)\n"
        "  --batch N           batch size (default: the net's)\n"
        "  --validate N        test on the last N training images\n"
        "  --data DIR          directory of Fashion-MNIST\n"
        "  --chart F.svg       write learning curves, averaged over seeds\n"
        "  --save F            write the first seed's f32 weights as\n"
        "                      safetensors\n"
        "  --save-all DIR      write the f32 weights of each training to\n"
        "                      DIR/NET-SEED-ROW.safetensors\n"
        "  --checkpoint DIR    save each training after each epoch; the same\n"
        "                      command continues from there\n"
        "  --compare FILE...   no training: size, accuracy, error and product\n"
        "                      speed of files, relative to the first\n");
    return to == stdout ? 0 : 2;
}

static bool number(const char *text, int most, int *out)
{
    char *end;
    const long v = strtol(text, &end, 10);
    *out = (int)v;
    return *text && !*end && v > 0 && v <= most;
}

static bool read_rate(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return *text && !*end && *out > 0 && *out < 1;
}

static bool read_net(const char *name, settings *s)
{
    if (!strcmp(name, "cnn")) {
        s->net = &net_cnn;
        s->epochs = 5, s->seeds = 1;
        return true;
    }
    s->net = &net_mlp;
    return !strcmp(name, "mlp");
}

static bool read_option(const char *name, const char *v, settings *s)
{
    const struct {
        const char *name;
        int most, *to;
    } numbers[] = {
        {"--epochs", MAX_EPOCHS, &s->epochs},
        {"--seeds", MAX_SEEDS, &s->seeds},
        {"--first-seed", 1000000, &s->first},
        {"--threads", 256, &s->threads},
        {"--batch", 10000, &s->batch},
        {"--validate", 1000000, &s->validate},
    };
    const struct {
        const char *name, **to;
    } words[] = {
        {"--only", &s->only},         {"--data", &s->data},
        {"--chart", &s->chart},       {"--save", &s->save},
        {"--save-all", &s->save_all}, {"--checkpoint", &s->checkpoint}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(name, numbers[i].name))
            return number(v, numbers[i].most, numbers[i].to);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(name, words[i].name)) return *(*words[i].to = v) != 0;
    if (!strcmp(name, "--rate")) return read_rate(v, &s->rate);
    return !strcmp(name, "--net") && read_net(v, s);
}

static bool read_args(int argc, char **argv, settings *s)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--short")) {
            s->brief = true;
            s->epochs = s->seeds = 1;
        } else if (!strcmp(argv[i], "--compare") && i + 1 < argc) {
            s->compare = argv + i + 1;
            return true;
        } else if (i + 1 == argc || !read_option(argv[i], argv[i + 1], s)) {
            return false;
        } else {
            i++;
        }
    }
    return true;
}

static bool make_directory(const char *path)
{
    if (!path || !mkdir(path, 0777) || errno == EEXIST) return true;
    fprintf(stderr, "fashion: cannot make %s: %s\n", path, strerror(errno));
    return false;
}

int main(int argc, char **argv)
{
    settings s = {.data = "/usr/share/datasets/fashion-mnist",
                  .net = &net_mlp,
                  .epochs = 10,
                  .seeds = 3,
                  .first = 1};
    if (argc == 2 && !strcmp(argv[1], "--help")) return usage(stdout);
    if (!read_args(argc, argv, &s)) return usage(stderr);
    if (s.only && !check_only(s.only)) return 2;
    if (!make_directory(s.checkpoint) || !make_directory(s.save_all)) return 1;
    lb_ctx *cx = lb_open(&(lb_options){.threads = s.threads});
    bench b = {.cx = cx, .s = &s};
    const bool ok = cx && (s.compare ? run_compare(&b) : run(&b));
    if (lb_error_status(cx)) fprintf(stderr, "fashion: %s\n", lb_error(cx));
    lb_close(cx);
    return !ok;
}
