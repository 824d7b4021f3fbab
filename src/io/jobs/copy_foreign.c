/* copy_foreign.c - checkpoints that another program has quantized, in a layout
 * that is not decoded here.
 *
 * Their codes and scales cannot be interpreted, and their configuration is
 * needed to read them. So they are not quantized or dequantized; convert copies
 * them to the same kind of file, byte by byte including headers and index, and
 * keeps the configuration. It does so as well with layouts that are decoded but
 * not written.
 */
#include <string.h>
#include <sys/stat.h>

#include "core/core.h"
#include "io/jobs/job.h"
#include "io/models/foreign.h"

/* advice: what can be done instead. */
static bool refuse(lb_job *j, const lb_quant_method *m, const char *todo)
{
    const char *by = m->source ? m->source : m->tensor;
    return lb_fail(j->cx, LB_E_UNSUPPORTED,
                   "%s: quantized with %s (%s %s), which cannot be decoded; %s",
                   LB_PATH(j->f->r->file[0]->path), LB_NAME(m->name),
                   m->source ? "according to" : "recognized by tensor",
                   LB_NAME(by), todo);
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Why it cannot be copied; NULL: it can. */
static const char *prevents_copy(const lb_job *j, const char *from,
                                 const lb_quant_method *m)
{
    const char *kind = j->f->r->kind->name;
    const char *to = j->o->kind ? j->o->kind : "safetensors";
    const bool same =
        strcmp(kind, to) == 0 || (strcmp(kind, "safetensors_index") == 0 &&
                                  strcmp(to, "safetensors") == 0);
    if (!same) return "convert can only copy it, to the same kind of file";
    if (j->convert->dtype)
        return "convert can only copy it, without another dtype";
    if (j->convert->target)
        return "convert can only copy it, not move its arrays";
    if (m->source && j->o->directory != is_directory(from))
        return "convert can only copy it, from directory to directory or "
               "from file to file";
    return NULL;
}

/* Reopens the file as plain tensors. */
static bool reopen_raw(lb_job *j, const char *from)
{
    lb_file_options o = j->f->options;
    o.raw = true;
    lb_file_close(j->f);
    j->f = lb_file_open(j->cx, from, &o);
    return j->f != NULL;
}

/* Whether some array is in a layout that is only read. */
static bool is_read_only(const lb_file *f)
{
    for (int64_t i = 0; i < f->n; i++)
        if (f->group[i]->layout && !f->group[i]->layout->plan) return true;
    return false;
}

bool lb_job_check_method(lb_job *j, const char *from)
{
    lb_quant_method m;
    if (!lb_file_method(j->cx, j->f, &m)) return false;
    if (!m.name || m.decoded) {
        if (m.name && j->convert && j->convert->keep && is_read_only(j->f) &&
            !j->o->layout && !prevents_copy(j, from, &m)) {
            j->verbatim = true;
            return reopen_raw(j, from);
        }
        lb_job_choose_layout(j);
        return true;
    }
    if (!j->convert) {
        lb_job_choose_layout(j);
        /* Weights whose layout supports packing are packed. */
        if (!m.tensor && j->o->layout &&
            lb_method_has_layout(m.name, j->o->layout))
            return true;
        return refuse(j, &m, "quantize the original weights");
    }
    if (!j->convert->keep) return refuse(j, &m, "only convert can copy it");
    const char *why = prevents_copy(j, from, &m);
    if (why) return refuse(j, &m, why);
    j->verbatim = true;
    return reopen_raw(j, from);
}

int lb_job_copied_file(const lb_job *j, int shard)
{
    const lb_reader *r = j->f->r;
    const bool index = strcmp(r->kind->name, "safetensors_index") == 0;
    if (!j->verbatim || (index && r->n_files < 2)) return -1;
    if (!index) return strcmp(r->kind->name, "safetensors") == 0 ? 0 : -1;
    if (shard < 0 && r->n_files > 2) return -1;
    return shard < 0 ? 1 : shard + 1; /* file 0 is the index */
}

bool lb_job_copy_raw(lb_job *j, const lb_job_item *it, lb_saver *s)
{
    enum { PIECE = 8 << 20 };
    const lb_tensor *t = it->group->tensor[0];
    bool ok = true;
    for (uint64_t at = 0; ok && s && at < t->size; at += PIECE) {
        const uint64_t n = t->size - at < PIECE ? t->size - at : PIECE;
        const lb_shape shape = LB_SHAPE((int64_t)n);
        lb_enter(j->cx);
        lb_array *a = lb_dense(j->cx, LB_U8, &shape);
        ok = a &&
             lb_reader_read(j->cx, j->f->r, t, at, (size_t)n, a->store->data) &&
             lb_saver_piece(j->cx, s, a);
        lb_leave(j->cx);
        ok = ok && lb_job_advance(j, n);
    }
    uint8_t record[LB_RECORD] = {1};
    return ok && (!s || lb_saver_end(j->cx, s, record));
}
