/* rewrite.c - plans from entries alone, then loads, changes and writes arrays
 * one after the other. Quantized arrays that stay quantized are described by
 * what they are made of, so those are loaded first: into the file's map, where
 * their bytes lie as they are wanted. */
#include "rewrite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct item {
    bool quantized;  /* in the source */
    lb_dtype dtype;  /* in the result */
    uint64_t nbytes; /* there */
} item;

typedef struct job {
    const rewrite *how;
    lb_ctx *cx;
    lb_file *f;
    job_talk *talk;
    item *item;
    lb_planned *list;
    lb_meta *meta;
    int64_t n, n_meta;
    uint64_t done, total; /* bytes of the source */
} job;

/* ---- the command line ---------------------------------------------------- */

static const char *const kinds[] = {"safetensors", "gguf", "npy", "npz", NULL};

/* By --to, or by how the name ends. */
static bool read_kind(const arguments *a, const char **kind)
{
    const char *dot = strrchr(a->value[OPTION_OUTPUT], '.');
    int k = 0;
    for (int i = 0; dot && kinds[i]; i++)
        if (strcmp(dot + 1, kinds[i]) == 0) k = i;
    if (!argument_word(a, OPTION_TO, kinds, &k)) return false;
    *kind = kinds[k];
    return true;
}

bool rewrite_dtype(const arguments *a, lb_dtype *out)
{
    static const char *const word[] = {"", "f32", "f16", "bf16", "f64", NULL};
    static const lb_dtype dtype[] = {LB_NO_DTYPE, LB_F32, LB_F16, LB_BF16,
                                     LB_F64};
    int k = 0;
    if (!argument_word(a, OPTION_DTYPE, word + 1, &k)) return false;
    *out = dtype[a->count[OPTION_DTYPE] ? k + 1 : 0];
    return true;
}

static bool check_places(const arguments *a, const char *what)
{
    struct stat st;
    const char *to = a->value[OPTION_OUTPUT];
    const size_t n = to ? strlen(to) : 0;
    if (!n) {
        complain(USAGE, "%s needs --output; see lowbit %s --help", what, what);
        return false;
    }
    const bool there = stat(to, &st) == 0;
    if ((there && S_ISDIR(st.st_mode)) || to[n - 1] == '/') {
        complain(USAGE, "%s: a file is written, and no directory", to);
        return false;
    }
    if (there && !a->count[OPTION_FORCE]) {
        complain(USAGE, "%s: is there already; --force replaces it", to);
        return false;
    }
    return true;
}

/* ---- planning ------------------------------------------------------------ */

static bool is_float(lb_dtype d)
{
    return d == LB_F32 || d == LB_F16 || d == LB_BF16 || d == LB_F64;
}

static bool plan_item(const job *j, const lb_entry *e, item *it, lb_planned *p)
{
    if (!e->format || e->rank > LB_MAX_RANK) {
        complain(FAILED,
                 "'%.200s' is of type %.64s and rank %d, which cannot "
                 "be loaded here",
                 e->name, e->type, e->rank);
        return false;
    }
    it->quantized = strcmp(e->format, "dense") != 0;
    it->dtype = e->dtype;
    if (j->how->dtype && is_float(e->dtype) &&
        (j->how->decode || !it->quantized))
        it->dtype = j->how->dtype;
    p->name = e->name;
    if (it->quantized && !j->how->decode) {
        p->array = lb_file_load(j->cx, j->f, e->name);
        it->nbytes = p->array ? lb_nbytes(p->array) : 0;
        if (!p->array) complain_of(j->cx);
        return p->array != NULL;
    }
    p->dtype = it->dtype;
    p->shape = lb_shape_make(e->rank, e->dim);
    it->nbytes =
        (uint64_t)(entry_elements(e) * (double)lb_dtype_size(it->dtype));
    return true;
}

/* What describes the layout of the source is of no use in the result;
 * safetensors has texts only, and files of numpy's have no values. */
static void take_meta(job *j, const char *kind)
{
    static const char own[] = "lowbit.";
    const bool texts = strcmp(kind, "safetensors") == 0;
    const lb_meta *m;
    if (!texts && strcmp(kind, "gguf") != 0) return;
    for (int64_t i = 0; (m = lb_file_meta(j->f, i)); i++)
        if (strncmp(m->key, own, strlen(own)) != 0 &&
            (!texts || m->type == LB_META_STRING))
            j->meta[j->n_meta++] = *m;
}

static bool plan(job *j, const char *kind)
{
    int64_t metas = 0;
    while (lb_file_meta(j->f, metas))
        metas++;
    j->n = lb_file_count(j->f);
    j->item = calloc((size_t)j->n + 1, sizeof *j->item);
    j->list = calloc((size_t)j->n + 1, sizeof *j->list);
    j->meta = calloc((size_t)metas + 1, sizeof *j->meta);
    if (!j->item || !j->list || !j->meta) {
        complain(FAILED, "out of memory");
        return false;
    }
    take_meta(j, kind);
    for (int64_t i = 0; i < j->n; i++) {
        const lb_entry *e = lb_file_entry(j->f, i);
        j->total += e->nbytes;
        if (!plan_item(j, e, &j->item[i], &j->list[i])) return false;
    }
    return true;
}

/* ---- doing --------------------------------------------------------------- */

static void tell(const job *j, int64_t i)
{
    const lb_entry *e = lb_file_entry(j->f, i);
    const item *it = &j->item[i];
    const char *dtype = lb_dtype_name(it->dtype);
    const char *format = it->quantized && !j->how->decode ? e->format : NULL;
    const bool same = !it->quantized && it->dtype == e->dtype;
    char kind[64];
    snprintf(kind, sizeof kind, "%s%s%s", format ? format : "",
             format ? " " : "", dtype);
    job_talk_array(j->talk, &(job_array){.entry = e,
                                         .i = i,
                                         .n = j->n,
                                         .to = kind,
                                         .format = format,
                                         .kept = same ? "dense" : NULL,
                                         .nbytes = it->nbytes});
}

static bool write_item(job *j, lb_saver *s, int64_t i)
{
    const lb_entry *e = lb_file_entry(j->f, i);
    const item *it = &j->item[i];
    progress_at(&j->talk->progress, e->name, j->done, j->total);
    lb_enter(j->cx);
    lb_array *a = j->list[i].array;
    if (!a) a = lb_file_load(j->cx, j->f, e->name);
    if (!j->list[i].array && it->quantized)
        a = lb_materialize(j->cx, lb_convert(j->cx, a, it->dtype));
    else if (!j->list[i].array && it->dtype != e->dtype)
        a = lb_convert(j->cx, a, it->dtype);
    const bool ok = lb_saver_put(j->cx, s, a);
    lb_leave(j->cx);
    j->done += e->nbytes;
    if (ok) tell(j, i);
    return ok;
}

static bool write_all(job *j, const arguments *a, const char *kind)
{
    lb_file *const input = j->f;
    const lb_save_options o = {.struct_size = sizeof o,
                               .kind = kind,
                               .layout = j->how->layout,
                               .meta = j->meta,
                               .n_meta = j->n_meta,
                               .input = &input,
                               .n_inputs = 1,
                               .no_sync = a->count[OPTION_NO_SYNC] != 0};
    lb_saver *s =
        lb_saver_open(j->cx, a->value[OPTION_OUTPUT], j->list, j->n, &o);
    bool ok = s != NULL;
    for (int64_t i; ok && (i = lb_saver_next(s)) >= 0;)
        ok = write_item(j, s, i);
    return lb_saver_close(j->cx, s, ok) && ok;
}

static verdict work(job *j, const arguments *a, const char *kind)
{
    j->f = lb_file_open(j->cx, a->operand[0], NULL);
    if (!j->f) return complain_of(j->cx);
    if (!plan(j, kind))
        return lb_error_status(j->cx) == LB_E_CONTENT ? BAD_INPUT : FAILED;
    if (write_all(j, a, kind)) return DONE;
    progress_clear(&j->talk->progress);
    return complain_of(j->cx);
}

verdict rewrite_run(const rewrite *how, const arguments *a)
{
    const char *kind;
    job_talk talk;
    int64_t jobs = 0;
    if (!check_places(a, how->what) || !read_kind(a, &kind) ||
        !argument_number(a, OPTION_JOBS, 1, 256, &jobs) ||
        !job_talk_begin(&talk, a, how->what, a->operand[0],
                        a->value[OPTION_OUTPUT]))
        return USAGE;
    job j = {.how = how, .talk = &talk, .cx = context_open((int)jobs)};
    verdict v = j.cx ? work(&j, a, kind) : FAILED;
    v = job_talk_end(&talk, j.cx, v);
    lb_file_close(j.f);
    lb_close(j.cx);
    free(j.item);
    free(j.list);
    free(j.meta);
    return v;
}
