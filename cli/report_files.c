/* report_files.c - the files of --report, in the format that a name ends in. */
#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "places.h"
#include "report.h"

typedef void renderer(const report *r, FILE *to);

static renderer *renderer_of(const char *path)
{
    static const struct {
        const char *end;
        renderer *render;
    } table[] = {{".html", report_html},
                 {".md", report_markdown},
                 {".json", report_json_file}};
    const char *dot = strrchr(path, '.');
    for (int i = 0; dot && i < 3; i++)
        if (strcmp(dot, table[i].end) == 0) return table[i].render;
    return NULL;
}

static verdict cannot_write(const char *path)
{
    return complain(FAILED, "%s: cannot write: %s", path, strerror(errno));
}

static verdict check_path(const char *path)
{
    struct stat st;
    if (!renderer_of(path))
        return complain(
            USAGE,
            "--report needs a name that ends in .html, .md or .json, "
            "not '%.200s'",
            path);
    char *beside = strdup(path);
    if (!beside) return complain(FAILED, "out of memory");
    const bool ok = access(dirname(beside), W_OK) == 0;
    free(beside);
    if (!ok) return cannot_write(path);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return complain(FAILED, "%s: not a regular file", path);
    return DONE;
}

static verdict save(const report *r, const char *path)
{
    char *partial = NULL;
    char *real = realpath(path, NULL); /* keep symbolic links */
    const char *at = real ? real : path;
    if (r->lacks_memory || asprintf(&partial, "%s.partial", at) < 0) {
        free(real);
        return complain(FAILED, "%s: out of memory", path);
    }
    FILE *to = fopen(partial, "we");
    bool ok = to != NULL;
    if (ok) {
        renderer_of(path)(r, to);
        ok = !ferror(to);
        ok = fclose(to) == 0 && ok && rename(partial, at) == 0;
        const int why = errno;
        if (!ok) remove(partial);
        errno = why;
    }
    const verdict v = ok ? DONE : cannot_write(path);
    free(partial);
    free(real);
    return v;
}

verdict reports_check(const arguments *a)
{
    if (!place_of_reports(a)) return USAGE;
    for (int i = 0; i < a->n_given; i++) {
        if (a->given[i].id != OPTION_REPORT) continue;
        const verdict v = check_path(a->given[i].value);
        if (v != DONE) return v;
    }
    return DONE;
}

verdict reports_save(const report *r, const arguments *a)
{
    verdict v = DONE;
    for (int i = 0; v == DONE && i < a->n_given; i++)
        if (a->given[i].id == OPTION_REPORT) v = save(r, a->given[i].value);
    return v;
}
