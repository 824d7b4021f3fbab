/* other_files.c - the files of a model directory besides its weights. */
#include "io/models/other_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/core.h"

char *lb_path_in(lb_ctx *cx, lb_arena *arena, const char *dir, const char *name)
{
    const size_t n = strlen(dir), k = strlen(name);
    char *path = lb_arena_alloc(cx, arena, n + k + 2, 1);
    if (path) snprintf(path, n + k + 2, "%s/%s", dir, name);
    return path;
}

static bool cannot(const lb_other_files *o, const char *what, const char *path)
{
    return lb_fail(o->cx, LB_E_FILE, "%s: cannot %s: %s", LB_PATH(path), what,
                   strerror(errno));
}

/* ---- names --------------------------------------------------------------- */

static bool ends(const char *name, const char *with)
{
    const size_t n = strlen(name), k = strlen(with);
    return n >= k && strcmp(name + n - k, with) == 0;
}

bool lb_is_weights(const char *name)
{
    static const char *const end[] = {".safetensors",
                                      ".safetensors.index.json",
                                      ".bin.index.json",
                                      ".gguf",
                                      ".pth",
                                      ".pt",
                                      ".h5",
                                      ".msgpack",
                                      ".partial"};
    for (size_t i = 0; i < sizeof end / sizeof *end; i++)
        if (ends(name, end[i])) return true;
    return strncmp(name, "pytorch_model", 13) == 0 && ends(name, ".bin");
}

static bool is_skipped(const char *name, bool top)
{
    static const char *const never[] = {".git", ".cache", LB_JOB_NOTE};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (strcmp(name, never[i]) == 0) return true;
    return ends(name, ".partial") || (top && lb_is_weights(name));
}

/* How another program quantized the model (lb_quant_config_of): wrong if
 * config.json is written anew. */
static bool is_outdated(const char *name)
{
    static const char *const about[] = {
        "quantize_config.json", "quant_config.json", "hf_quant_config.json"};
    for (size_t i = 0; i < sizeof about / sizeof *about; i++)
        if (strcmp(name, about[i]) == 0) return true;
    return false;
}

/* ---- walking ------------------------------------------------------------- */

/* One directory of a walk. */
typedef struct file_walk {
    const lb_other_files *o;
    const char *dir;   /* whose entries are visited */
    const char *other; /* the directory at the same place in the other tree: the
                        * copy, or the model that has the files; or NULL */
    bool top;
    uint64_t bytes; /* counted so far */
} file_walk;

typedef bool file_visit(file_walk *w, const char *name);

/* Visits each entry except . and ..; stops at the first that fails. */
static bool each_entry(file_walk *w, file_visit *what)
{
    bool ok = true;
    DIR *d = opendir(w->dir);
    if (!d) return cannot(w->o, "open", w->dir);
    for (const struct dirent *e; ok && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            ok = what(w, e->d_name);
    closedir(d);
    return ok;
}

static char *path_in(const file_walk *w, const char *dir, const char *name)
{
    return lb_path_in(w->o->cx, w->o->arena, dir, name);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

typedef enum entry_sort { NOT_COPIED, A_FILE, A_DIRECTORY } entry_sort;

/* What is done with an entry of the model. */
static entry_sort sort_of(const file_walk *w, const char *path,
                          const char *name)
{
    struct stat st, skip;
    if (is_skipped(name, w->top) || lstat(path, &st)) return NOT_COPIED;
    if (w->top && w->o->config && is_outdated(name)) return NOT_COPIED;
    if (S_ISDIR(st.st_mode)) {
        const char *out = w->o->skip;
        const bool output =
            out && stat(out, &skip) == 0 && same_file(&st, &skip);
        return output ? NOT_COPIED : A_DIRECTORY;
    }
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? A_FILE : NOT_COPIED;
}

/* ---- copying ------------------------------------------------------------- */

static bool copy_file(const lb_other_files *o, lb_infile *f, const char *path)
{
    enum { MUCH = 1 << 16 };
    uint8_t some[MUCH];
    lb_outfile *out = lb_outfile_open(o->cx, path, &f, 1, f->size);
    bool ok = out != NULL;
    for (uint64_t at = 0; ok && at < f->size; at += MUCH) {
        const size_t n = f->size - at < MUCH ? (size_t)(f->size - at) : MUCH;
        ok = lb_infile_read(o->cx, f, at, n, some) &&
             lb_outfile_write(o->cx, out, some, n);
    }
    return lb_outfile_close(o->cx, out, ok, !o->no_sync);
}

static bool copy_entry(file_walk *w, const char *name)
{
    const lb_other_files *o = w->o;
    const char *path = path_in(w, w->dir, name);
    const char *to = path && w->other ? path_in(w, w->other, name) : NULL;
    if (!path || (w->other && !to)) return false;
    const entry_sort s = sort_of(w, path, name);
    if (s == NOT_COPIED) return true;
    if (s == A_DIRECTORY) {
        file_walk inner = {.o = o, .dir = path, .other = to};
        if (to && mkdir(to, 0777) && errno != EEXIST)
            return cannot(o, "make", to);
        return each_entry(&inner, copy_entry);
    }
    lb_infile *f = lb_infile_open(o->cx, path, true);
    const bool config = w->top && o->config && strcmp(name, "config.json") == 0;
    const bool ok =
        f && (config ? o->config(o->user, f) : !to || copy_file(o, f, to));
    lb_infile_unref(f);
    return ok;
}

bool lb_other_files_copy(const lb_other_files *o, const char *to)
{
    file_walk w = {.o = o, .dir = o->from, .other = to, .top = true};
    return !o->from || each_entry(&w, copy_entry);
}

static bool count_entry(file_walk *w, const char *name)
{
    struct stat st;
    const char *path = path_in(w, w->dir, name);
    if (!path) return false;
    const entry_sort s = sort_of(w, path, name);
    if (s == A_FILE && stat(path, &st) == 0) w->bytes += (uint64_t)st.st_size;
    if (s != A_DIRECTORY) return true;
    file_walk inner = {.o = w->o, .dir = path};
    const bool ok = each_entry(&inner, count_entry);
    w->bytes += inner.bytes;
    return ok;
}

bool lb_other_files_size(const lb_other_files *o, uint64_t *bytes)
{
    file_walk w = {.o = o, .dir = o->from, .top = true};
    const bool ok = !o->from || each_entry(&w, count_entry);
    *bytes = w.bytes;
    return ok;
}

/* ---- replacing ----------------------------------------------------------- */

/* w->other: where the model has the same, or NULL. */
static bool may_go(file_walk *w, const char *name)
{
    struct stat st, its;
    const char *path = path_in(w, w->dir, name);
    const char *its_path = w->other ? path_in(w, w->other, name) : NULL;
    if (!path || (w->other && !its_path)) return false;
    const bool known = its_path && stat(its_path, &its) == 0;
    const bool there = lstat(path, &st) == 0;
    if (there && S_ISDIR(st.st_mode) && known && S_ISDIR(its.st_mode)) {
        file_walk inner = {.o = w->o, .dir = path, .other = its_path};
        return each_entry(&inner, may_go);
    }
    if (there && !S_ISDIR(st.st_mode) &&
        (known || (w->top && lb_is_weights(name))))
        return true;
    return lb_fail(w->o->cx, LB_E_ARG,
                   "%s holds '%s', which is not part of the model and would be "
                   "lost",
                   LB_PATH(w->dir), LB_NAME(name));
}

bool lb_other_files_only(const lb_other_files *o, const char *dir)
{
    file_walk w = {.o = o, .dir = dir, .other = o->from, .top = true};
    return each_entry(&w, may_go);
}

static bool remove_entry(file_walk *w, const char *name)
{
    struct stat st;
    const char *path = path_in(w, w->dir, name);
    if (!path) return false;
    if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        file_walk inner = {.o = w->o, .dir = path};
        return each_entry(&inner, remove_entry) &&
               (rmdir(path) == 0 || cannot(w->o, "remove", path));
    }
    return unlink(path) == 0 || cannot(w->o, "remove", path);
}

bool lb_other_files_remove(const lb_other_files *o, const char *dir)
{
    file_walk w = {.o = o, .dir = dir};
    return each_entry(&w, remove_entry);
}
