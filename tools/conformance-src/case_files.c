/* case_files.c - finding and reading the files of cases.
 *
 * Names come from case files, so they must not lead out of the case's
 * directory. Sizes come from the file system: a wrong one allocates nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "conformance.h"

static const size_t json_limit = (size_t)64 << 20;

static char *joined(const char *dir, const char *name, note *n)
{
    const size_t size = strlen(dir) + strlen(name) + 2;
    char *const path = malloc(size);
    if (!path) {
        note_fail(n, "out of memory");
        return NULL;
    }
    snprintf(path, size, "%s/%s", dir, name);
    return path;
}

char *path_in(const char *dir, const char *name, note *n)
{
    if (!*name || strchr(name, '/') || strspn(name, ".") == strlen(name)) {
        note_fail(n, "'%.64s' is not a plain file name", name);
        return NULL;
    }
    return joined(dir, name, n);
}

char *path_below(const char *dir, const char *name, note *n)
{
    for (const char *p = name;;) {
        const size_t len = strcspn(p, "/");
        if (len == strspn(p, ".") || len == 0) {
            note_fail(n, "'%.64s' is not a plain path", name);
            return NULL;
        }
        if (!p[len]) return joined(dir, name, n);
        p += len + 1;
    }
}

const char *base_name(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void *file_read(const char *path, size_t limit, size_t *size, note *n)
{
    const char *const base = base_name(path);
    struct stat st;
    /* stat before fopen: opening a FIFO would block forever. */
    if (stat(path, &st)) {
        note_fail(n, "%s: %s", base, strerror(errno));
        return NULL;
    }
    if (!S_ISREG(st.st_mode)) {
        note_fail(n, "%s is not a regular file", base);
        return NULL;
    }
    if (st.st_size < 0 || (uintmax_t)st.st_size > limit) {
        note_fail(n, "%s has %jd bytes, the limit is %zu", base,
                  (intmax_t)st.st_size, limit);
        return NULL;
    }
    const size_t want = (size_t)st.st_size;
    FILE *const f = fopen(path, "rb");
    char *const data = malloc(want ? want : 1);
    if (!f || !data || fread(data, 1, want, f) != want) {
        note_fail(n, "%s: %s", base,
                  f && data ? "short read"
                  : f       ? "out of memory"
                            : strerror(errno));
        if (f) fclose(f);
        free(data);
        return NULL;
    }
    fclose(f);
    *size = want;
    return data;
}

bool json_read(const char *path, json_t **out, note *n)
{
    size_t size = 0;
    char *const data = file_read(path, json_limit, &size, n);
    if (!data) return false;
    json_error_t e;
    *out = json_loadb(data, size, JSON_REJECT_DUPLICATES, &e);
    free(data);
    if (*out) return true;
    return note_fail(n, "%s is not JSON: line %d: %s", base_name(path), e.line,
                     e.text);
}

/* ---- the cases of a directory ------------------------------------------- */

void name_list_free(name_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->name[i]);
    }
    free(l->name);
    *l = (name_list){0};
}

static bool name_list_add(name_list *l, const char *name, note *n)
{
    /* The capacity doubles at each power of two. */
    if ((l->n & (l->n + 1)) == 0) {
        char **const more = realloc(l->name, (2 * l->n + 2) * sizeof(*l->name));
        if (!more) return note_fail(n, "out of memory");
        l->name = more;
    }
    l->name[l->n] = strdup(name);
    if (!l->name[l->n]) return note_fail(n, "out of memory");
    l->n++;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool file_exists(const char *dir, const char *name, const char *file)
{
    const size_t size = strlen(dir) + strlen(name) + strlen(file) + 3;
    char *const path = malloc(size);
    if (!path) return false;
    snprintf(path, size, "%s/%s/%s", dir, name, file);
    struct stat st;
    const bool yes = !stat(path, &st);
    free(path);
    return yes;
}

static bool add_indexed(const char *dir, name_list *l, note *n)
{
    char *const path = path_in(dir, "index.json", n);
    json_t *index = NULL;
    const bool read = path && json_read(path, &index, n);
    free(path);
    if (!read) return false;
    bool ok = json_is_array(index) ||
              note_fail(n, "index.json is not a list of cases");
    for (size_t i = 0; ok && i < json_array_size(index); i++) {
        const char *const name =
            json_string_value(json_object_get(json_array_get(index, i), "dir"));
        ok = name ? name_list_add(l, name, n)
                  : note_fail(n, "index.json: entry %zu names no dir", i);
    }
    json_decref(index);
    return ok;
}

bool cases_in(const char *dir, const char *file, name_list *out, note *n)
{
    *out = (name_list){0};
    DIR *const d = opendir(dir);
    if (!d) return note_fail(n, "%.256s: %s", dir, strerror(errno));
    bool ok = true;
    for (struct dirent *e; ok && (e = readdir(d));) {
        if (e->d_name[0] == '.' || !file_exists(dir, e->d_name, file)) {
            continue;
        }
        ok = name_list_add(out, e->d_name, n);
    }
    closedir(d);
    if (ok && file_exists(dir, ".", "index.json"))
        ok = add_indexed(dir, out, n);
    if (!ok) {
        name_list_free(out);
        return false;
    }
    if (out->n == 0) return true;
    qsort(out->name, out->n, sizeof(*out->name), by_name);
    size_t kept = 1;
    for (size_t i = 1; i < out->n; i++) {
        if (!strcmp(out->name[i], out->name[kept - 1])) {
            free(out->name[i]);
        } else {
            out->name[kept++] = out->name[i];
        }
    }
    out->n = kept;
    return true;
}

bool cases_run(runner *r, const char *dir, const char *file,
               void (*run)(runner *r, const char *dir, const char *name),
               note *n)
{
    name_list cases;
    if (!cases_in(dir, file, &cases, n)) return false;
    /* To run a single case, DIR may be its directory. */
    if (cases.n == 0 && file_exists(dir, ".", file)) run(r, dir, dir);
    for (size_t i = 0; i < cases.n; i++) {
        note bad;
        char *const path = path_in(dir, cases.name[i], n);
        if (!path) {
            case_open(r, &bad);
            note_fail(&bad, "index.json: %s", n->why);
            case_close(r, &bad, "index.json", 0);
            *n = (note){.verdict = PASSED};
            continue;
        }
        run(r, path, cases.name[i]);
        free(path);
    }
    name_list_free(&cases);
    return true;
}
