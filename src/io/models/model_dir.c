/* model_dir.c - writes a job's result as a model directory.
 *
 * It is written as DIR.partial, weights first; each file in it gets its final
 * name when it is complete. At the end the directory is renamed to DIR. An
 * existing DIR is replaced in the same step; it must be empty or contain only a
 * model. A note in DIR.partial identifies the job, so that it can be resumed. A
 * DIR.partial without the note is replaced only if it, too, contains only a
 * model.
 */
#include "io/models/model_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/core.h"
#include "io/containers/multi_file.h"
#include "io/models/other_files.h"

static const char index_name[] = "model.safetensors.index.json";

typedef struct model_place {
    lb_job *j;
    const char *source; /* the source, a file or a directory; or NULL */
    const char *from;   /* directory whose other files are copied; NULL */
    const char *to;
    char *partial;
    bool stays;      /* files of the complete directory */
    uint64_t blocks; /* counted so far, of 512 bytes */
    uint64_t stored; /* bytes counted by add_stored */
} model_place;

static bool cannot(const model_place *p, const char *what, const char *path)
{
    return lb_fail(p->j->cx, LB_E_FILE, "%s: cannot %s: %s", LB_PATH(path),
                   what, strerror(errno));
}

/* The directory whose other files are copied; NULL: not a directory. */
static const char *directory(const char *from)
{
    struct stat st;
    return from && stat(from, &st) == 0 && S_ISDIR(st.st_mode) ? from : NULL;
}

/* DIR/NAME, in the job's arena; NULL and an error. */
static char *path_in(const model_place *p, const char *dir, const char *name)
{
    return lb_path_in(p->j->cx, &p->j->arena, dir, name);
}

/* ---- existing files ------------------------------------------------------ */

typedef bool visit(model_place *p, const char *dir, const char *name);

/* Visits each entry except . and ..; stops at the first that fails. */
static bool each_entry(model_place *p, const char *path, visit *what)
{
    bool ok = true;
    DIR *d = opendir(path);
    if (!d) return cannot(p, "open", path);
    for (const struct dirent *e; ok && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            ok = what(p, path, e->d_name);
    closedir(d);
    return ok;
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_ino == y.st_ino &&
           x.st_dev == y.st_dev;
}

static bool is_read(const model_place *p, const char *path)
{
    return lb_fail(p->j->cx, LB_E_ARG, "output %s is also the input",
                   LB_PATH(path));
}

static bool is_not_source(model_place *p, const char *dir, const char *name)
{
    const char *path = path_in(p, dir, name);
    if (!path) return false;
    return !same_file(path, p->source) || is_read(p, path);
}

/* Fails if the source is inside the directory that is replaced: shards are next
 * to their index. */
static bool is_free(model_place *p, const char *dir)
{
    struct stat st;
    if (!p->source || stat(dir, &st) || !S_ISDIR(st.st_mode)) return true;
    const char *slash = strrchr(p->source, '/');
    const char *beside = slash
                             ? lb_arena_text(p->j->cx, &p->j->arena, p->source,
                                             (size_t)(slash - p->source) + 1)
                             : ".";
    if (!beside) return false;
    const bool file = stat(p->source, &st) == 0 && !S_ISDIR(st.st_mode);
    if (same_file(dir, file ? beside : p->source)) return is_read(p, dir);
    return !file || each_entry(p, dir, is_not_source);
}

static lb_other_files others(const model_place *p)
{
    return (lb_other_files){.cx = p->j->cx,
                            .arena = &p->j->arena,
                            .from = p->from,
                            .skip = p->to,
                            .no_sync = p->j->o->no_sync};
}

/* Whether a directory contains only parts of a model. */
static bool may_go(const model_place *p, const char *dir)
{
    const lb_other_files o = others(p);
    return lb_other_files_only(&o, dir);
}

static bool remove_all(const model_place *p, const char *dir)
{
    const lb_other_files o = others(p);
    return lb_other_files_remove(&o, dir);
}

static bool check_target(model_place *p)
{
    struct stat to;
    if (stat(p->to, &to)) return true;
    if (!S_ISDIR(to.st_mode))
        return lb_fail(p->j->cx, LB_E_FILE, "%s is a file, not a directory",
                       LB_PATH(p->to));
    return is_free(p, p->to) && may_go(p, p->to);
}

/* ---- the partial directory ----------------------------------------------- */

/* Whether it was left by an earlier run; *same: of the same job. */
static bool is_ours(const model_place *p, const char *note, bool *same)
{
    uint64_t number = 0;
    const int fd = open(note, O_RDONLY | O_CLOEXEC);
    *same = false;
    if (fd < 0) return false;
    const ssize_t n = read(fd, &number, sizeof number);
    close(fd);
    *same = n == (ssize_t)sizeof number && number == p->j->number;
    return true;
}

static bool write_bytes(model_place *p, const char *name, const lb_bytes *b)
{
    const char *path = path_in(p, p->partial, name);
    if (!path) return false;
    lb_outfile *o = lb_outfile_open(p->j->cx, path, NULL, 0, b->n);
    const bool ok = o && lb_outfile_write(p->j->cx, o, b->at, b->n);
    return lb_outfile_close(p->j->cx, o, ok, !p->j->o->no_sync);
}

static bool write_note(model_place *p)
{
    lb_bytes b = {.heap = p->j->cx->heap};
    lb_bytes_put(&b, &p->j->number, sizeof p->j->number);
    const bool ok = b.failed ? lb_fail(p->j->cx, LB_E_NOMEM, "out of memory")
                             : write_bytes(p, LB_JOB_NOTE, &b);
    lb_bytes_free(&b);
    return ok;
}

/* ---- one writer ---------------------------------------------------------- */

/* Creates the directory, or opens an existing one, and locks it until the
 * descriptor is closed; -1 and an error. Its writer may have renamed it in
 * between. */
static int lock(model_place *p, const char *path)
{
    struct stat named, opened;
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        cannot(p, "open", path);
        return -1;
    }
    const bool taken = flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    if (!taken && fstat(fd, &opened) == 0 && lstat(path, &named) == 0 &&
        opened.st_ino == named.st_ino && opened.st_dev == named.st_dev)
        return fd;
    close(fd);
    lb_fail(p->j->cx, LB_E_FILE, "%s: another process is writing it",
            LB_PATH(path));
    return -1;
}

static void unlock(model_place *p)
{
    if (p->j->lock) close(p->j->lock - 1);
    p->j->lock = 0;
}

/* Creates or reuses p->partial; the job holds its lock. */
static bool make_partial(model_place *p)
{
    const bool made = mkdir(p->partial, 0777) == 0;
    if (!made && errno != EEXIST) return cannot(p, "make", p->partial);
    const int fd = lock(p, p->partial);
    p->j->lock = fd + 1;
    if (fd < 0 && made) (void)rmdir(p->partial);
    return fd >= 0;
}

static bool add_stored(model_place *p, const char *dir, const char *name)
{
    struct stat st;
    const char *path = path_in(p, dir, name);
    if (!path) return false;
    if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
        strcmp(name, LB_JOB_NOTE) != 0)
        p->stored += lb_outfile_stored(&st);
    return true;
}

static bool begin(model_place *p)
{
    const char *note = path_in(p, p->partial, LB_JOB_NOTE);
    bool same;
    if (!note || !is_free(p, p->partial)) return false;
    if (!make_partial(p)) return false;
    const bool ours = is_ours(p, note, &same);
    if (p->j->o->resume && same) return true;
    p->stored = 0;
    if (ours && each_entry(p, p->partial, add_stored))
        lb_job_note_discarded(p->j, p->partial, p->stored, same);
    /* The note is removed before the directory is renamed. */
    return (ours || may_go(p, p->partial)) && remove_all(p, p->partial) &&
           write_note(p);
}

static void sync_path(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

/* After the exchange the old directory has the name of the partial one. It is
 * removed, unless files were added to it in between; until then no other job
 * may start writing there.
 */
static bool exchange(model_place *p)
{
    const int fd = lock(p, p->to);
    bool ok = fd >= 0;
    if (ok && renameat2(AT_FDCWD, p->partial, AT_FDCWD, p->to, RENAME_EXCHANGE))
        ok = cannot(p, "exchange", p->to);
    p->stays = ok;
    ok = ok && may_go(p, p->partial) && remove_all(p, p->partial) &&
         (rmdir(p->partial) == 0 || cannot(p, "remove", p->partial));
    if (fd >= 0) close(fd);
    return ok;
}

/* Renames it. If something else has appeared at the path since the job began,
 * it must not be deleted: then the partial directory is kept, to be resumed. */
static bool publish(model_place *p)
{
    struct stat st;
    const char *note = path_in(p, p->partial, LB_JOB_NOTE);
    if (!note) return false;
    if (stat(p->to, &st) == 0 && S_ISDIR(st.st_mode) && !may_go(p, p->to)) {
        p->stays = lb_error_status(p->j->cx) == LB_E_ARG; /* not: no memory */
        return false;
    }
    if (unlink(note)) return cannot(p, "remove", note);
    if (!p->j->o->no_sync) sync_path(p->partial);
    if (rename(p->partial, p->to) == 0) return true;
    if (errno != EEXIST && errno != ENOTEMPTY)
        return cannot(p, "rename", p->partial);
    return exchange(p);
}

/* ---- files --------------------------------------------------------------- */

/* Composes config.json with the quantization_config; write: also writes it. */
static bool make_config(model_place *p, lb_infile *f, bool write)
{
    lb_bytes value = {.heap = p->j->cx->heap}, out = value;
    const bool ok = lb_job_configure(p->j, &value) &&
                    lb_model_json(p->j->cx, f, value.n ? &value : NULL, &out) &&
                    (!write || write_bytes(p, "config.json", &out));
    lb_bytes_free(&value);
    lb_bytes_free(&out);
    return ok;
}

static bool write_config(void *user, lb_infile *f)
{
    return make_config(user, f, true);
}

static bool check_config(void *user, lb_infile *f)
{
    return make_config(user, f, false);
}

static bool carry_over(model_place *p, bool configure)
{
    lb_other_files o = others(p);
    if (configure && !lb_job_keeps_config(p->j)) o.config = write_config;
    o.user = p;
    return lb_other_files_copy(&o, p->partial);
}

/* ---- weights ------------------------------------------------------------- */

static bool write_index(model_place *p)
{
    lb_job *j = p->j;
    const lb_saver *s = j->plan;
    const char *path = path_in(p, p->partial, index_name);
    const lb_write_options o = {.no_sync = j->o->no_sync};
    uint64_t total = 0;
    int64_t *shard =
        lb_arena_alloc(j->cx, &j->arena, (uint64_t)s->n_tensors, sizeof *shard);
    if (!path || !shard) return false;
    for (int64_t i = 0; i < j->n; i++) {
        total += lb_saver_size(s, i);
        for (int k = 0; k < s->item[i].n_tensors; k++)
            shard[s->item[i].first + k] = j->item[i].shard;
    }
    return lb_shards_write_index(j->cx, path, s->tensor, shard, s->n_tensors,
                                 j->shards, total, &o);
}

/* Whether the source has an index that is copied, with the names of its files:
 * writers use other names than lb_shard_name, and an index for one file. */
static bool keeps_index(const lb_job *j)
{
    return j->verbatim && j->f->r->n_files > 1;
}

static bool copy_index(model_place *p)
{
    lb_infile *f = p->j->f->r->file[0];
    lb_bytes b = {.heap = p->j->cx->heap};
    lb_bytes_fill(&b, 0, (size_t)f->size);
    bool ok = !b.failed || lb_fail(p->j->cx, LB_E_NOMEM, "out of memory");
    ok = ok && lb_infile_read(p->j->cx, f, 0, b.n, b.at) &&
         write_bytes(p, index_name, &b);
    lb_bytes_free(&b);
    return ok;
}

static char *shard_path(const model_place *p, int k)
{
    const lb_job *j = p->j;
    if (keeps_index(j)) {
        const char *from = j->f->r->file[lb_job_copied_file(j, k)]->path;
        const char *slash = strrchr(from, '/');
        return path_in(p, p->partial, slash ? slash + 1 : from);
    }
    return path_in(p, p->partial,
                   j->shards > 1 ? lb_shard_name(k, j->shards).s
                                 : "model.safetensors");
}

static bool write_weights(model_place *p)
{
    lb_job *j = p->j;
    bool ok = true;
    struct stat st;
    for (int k = 0; ok && k < j->shards; k++) {
        const char *path = shard_path(p, k);
        ok = lb_job_meet(j, path != NULL) && path;
        if (!ok) break;
        if (j->o->resume && lb_job_decides(j, stat(path, &st) == 0))
            ok = lb_job_skip(j, k);
        else
            ok = lb_job_write(j, path, j->shards > 1 ? k : -1);
    }
    return ok;
}

/* Work that is done once, by the first rank. */
static bool write_rest(model_place *p)
{
    if (!lb_job_leads(p->j)) return true;
    bool ok = true;
    if (keeps_index(p->j))
        ok = copy_index(p);
    else if (p->j->shards > 1)
        ok = write_index(p);
    return ok && carry_over(p, true) && publish(p);
}

/* The path without trailing slashes, or the target of a link; and the path of
 * the partial directory. */
static bool name_both(model_place *p, const char *to)
{
    static const char suffix[] = ".partial";
    char real[PATH_MAX];
    lb_job *j = p->j;
    size_t n = strlen(to);
    while (n > 1 && to[n - 1] == '/')
        n--;
    p->to = lb_arena_text(j->cx, &j->arena, to, n);
    if (!p->to) return false;
    const char *at = lb_outfile_place(p->to, real);
    if (at == real) p->to = lb_arena_text(j->cx, &j->arena, at, strlen(at));
    if (!p->to) return false;
    n = strlen(p->to) + sizeof suffix;
    p->partial = lb_arena_alloc(j->cx, &j->arena, n, 1);
    if (p->partial) snprintf(p->partial, n, "%s%s", p->to, suffix);
    return p->partial != NULL;
}

/* Whether an existing partial directory may be resumed or replaced. */
static bool check_partial(model_place *p)
{
    struct stat st;
    bool same;
    const char *note = path_in(p, p->partial, LB_JOB_NOTE);
    if (!note || !is_free(p, p->partial)) return false;
    if (lstat(p->partial, &st))
        return errno == ENOENT || cannot(p, "make", p->partial);
    const int fd = lock(p, p->partial);
    if (fd < 0) return false;
    close(fd);
    return is_ours(p, note, &same) || may_go(p, p->partial);
}

static bool is_safetensors(const model_place *p)
{
    const char *kind = p->j->o->kind;
    return !kind || strcmp(kind, "safetensors") == 0 ||
           lb_fail(p->j->cx, LB_E_ARG,
                   "%s is a directory, which can only hold safetensors files, "
                   "not %s",
                   LB_PATH(p->to), LB_NAME(kind));
}

bool lb_job_may_write(lb_job *j, const char *from, const char *to)
{
    model_place p = {.j = j, .source = from};
    if (!j->o->directory)
        return lb_outfile_check(j->cx, to, j->f->r->file, j->f->r->n_files);
    p.from = directory(from);
    return name_both(&p, to) && is_safetensors(&p) &&
           lb_outfile_check_parent(j->cx, p.to) && check_target(&p) &&
           check_partial(&p);
}

/* Blocks of a partial directory count as free: they are reused or removed. */
static bool count_blocks(model_place *p, const char *dir, const char *name)
{
    struct stat st;
    const char *path = path_in(p, dir, name);
    if (!path) return false;
    if (lstat(path, &st)) return true;
    p->blocks += (uint64_t)st.st_blocks;
    return !S_ISDIR(st.st_mode) || each_entry(p, path, count_blocks);
}

bool lb_job_check_directory(lb_job *j, const char *from, const char *to,
                            uint64_t weights, bool configure)
{
    struct stat st;
    uint64_t rest = 0;
    model_place p = {.j = j, .source = from, .from = directory(from)};
    if (!name_both(&p, to)) return false;
    lb_other_files o = others(&p);
    if (configure && !lb_job_keeps_config(j)) o.config = check_config;
    o.user = &p;
    if (!lb_other_files_copy(&o, NULL) || !lb_other_files_size(&o, &rest))
        return false;
    if (lstat(p.partial, &st) == 0 && S_ISDIR(st.st_mode) &&
        !each_entry(&p, p.partial, count_blocks))
        return false;
    return lb_outfile_check_room(j->cx, p.to, weights + rest, p.blocks);
}

/* Created by the first rank for all. */
static bool begin_all(model_place *p)
{
    lb_job *j = p->j;
    if (!lb_job_meet(j, !lb_job_leads(j) || check_target(p))) return false;
    const bool ok = !lb_job_leads(j) || begin(p);
    if (!ok && j->lock) (void)rmdir(p->partial); /* only if it is empty */
    const bool all = lb_job_meet(j, ok);
    if (!all) unlock(p);
    return all;
}

/* As with files, errors leave nothing behind, but a cancelled job keeps what is
 * complete. */
static bool end(model_place *p, bool ok)
{
    const bool kept = lb_error_status(p->j->cx) == LB_E_CANCELLED &&
                      (p->j->mesh || p->j->finished > 0);
    if (!ok && !p->stays && !kept && lb_job_leads(p->j) &&
        remove_all(p, p->partial))
        (void)rmdir(p->partial);
    unlock(p);
    return ok;
}

bool lb_job_begin_directory(lb_job *j, const char *from, const char *to,
                            char **partial)
{
    model_place p = {.j = j, .source = from, .from = directory(from)};
    const bool ok = name_both(&p, to);
    *partial = p.partial;
    return lb_job_meet(j, ok) && ok && begin_all(&p);
}

bool lb_job_end_directory(lb_job *j, const char *from, const char *to,
                          char *partial, bool ok)
{
    model_place p = {.j = j, .from = directory(from)};
    if (!name_both(&p, to)) ok = false;
    p.partial = partial;
    if (lb_job_leads(j)) ok = ok && carry_over(&p, false);
    ok = lb_job_meet(j, ok) && ok;
    if (ok) ok = lb_job_meet(j, !lb_job_leads(j) || publish(&p));
    return end(&p, ok);
}

char *lb_job_path(lb_job *j, const char *dir, const char *name)
{
    const model_place p = {.j = j};
    return path_in(&p, dir, name);
}

bool lb_job_write_directory(lb_job *j, const char *from, const char *to)
{
    model_place p = {.j = j, .source = from, .from = directory(from)};
    if (!j->shards) j->shards = 1; /* a model without arrays is possible */
    bool ok = name_both(&p, to);
    if (!lb_job_meet(j, ok) || !ok || !begin_all(&p)) return false;
    ok = write_weights(&p);
    ok = lb_job_meet(j, ok) && ok && lb_job_meet(j, write_rest(&p));
    return end(&p, ok);
}
