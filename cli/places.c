/* places.c - output paths of jobs. */
#include "places.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static const char *kind_named(const char *name)
{
    static const char *const kinds[] = {"safetensors", "gguf", "npy", "npz"};
    for (size_t i = 0; name && i < sizeof kinds / sizeof *kinds; i++)
        if (strcasecmp(name, kinds[i]) == 0) return kinds[i];
    return NULL;
}

const char *place_kind(const char *path)
{
    const char *dot = strrchr(path, '.');
    return kind_named(dot ? dot + 1 : NULL);
}

bool place_is_directory(const arguments *a)
{
    struct stat st;
    const char *to = a->value[OPTION_OUTPUT];
    if (to && stat(to, &st) == 0) return S_ISDIR(st.st_mode);
    if (to && *to && to[strlen(to) - 1] == '/') return true;
    return !(to && place_kind(to)) && !kind_named(a->value[OPTION_TO]) &&
           stat(a->operand[0], &st) == 0 && S_ISDIR(st.st_mode);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

static bool is_empty_directory(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;
    if (!d) return false;
    while (n < 3 && readdir(d))
        n++;
    closedir(d);
    return n < 3; /* . and .. */
}

bool place_is_free(const arguments *a, const char *what)
{
    struct stat st, source;
    const char *to = a->value[OPTION_OUTPUT];
    if (!to && a->count[OPTION_DRY_RUN]) return true;
    if (!to) {
        complain(USAGE, "%s needs an output path (-o); see lowbit %s --help",
                 what, what);
        return false;
    }
    if (!*to) {
        complain(USAGE, "the output path is empty");
        return false;
    }
    if (lstat(to, &st) == 0 && !a->count[OPTION_FORCE] &&
        !is_empty_directory(to)) {
        if (a->n_operands && stat(to, &st) == 0 &&
            stat(a->operand[0], &source) == 0 && same_file(&st, &source))
            complain(USAGE, "output %s is also the input", to);
        else
            complain(USAGE, "%s already exists (use --force to overwrite)", to);
        return false;
    }
    return true;
}

/* ---- partial output ------------------------------------------------------ */

static uint64_t stored_bytes(const char *path, int depth)
{
    enum { DEEPEST = 8 };
    struct stat st;
    uint64_t sum = 0;
    char inner[PATH_MAX];
    if (lstat(path, &st)) return 0;
    if (S_ISREG(st.st_mode)) {
        const uint64_t size = (uint64_t)st.st_size;
        const uint64_t blocks = (uint64_t)st.st_blocks * 512;
        return blocks < size ? blocks : size;
    }
    DIR *d = S_ISDIR(st.st_mode) && depth < DEEPEST ? opendir(path) : NULL;
    for (const struct dirent *e; d && (e = readdir(d));) {
        const int n = snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            n < (int)sizeof inner)
            sum += stored_bytes(inner, depth + 1);
    }
    if (d) closedir(d);
    return sum;
}

uint64_t place_stored(const char *path)
{
    return stored_bytes(path, 0);
}

bool place_partial(const char *to, char path[PATH_MAX], uint64_t *nbytes)
{
    struct stat st;
    char real[PATH_MAX];
    if (lstat(to, &st) == 0 && S_ISLNK(st.st_mode) && realpath(to, real))
        to = real;
    size_t n = strlen(to);
    while (n > 1 && to[n - 1] == '/')
        n--;
    const int k = snprintf(path, PATH_MAX, "%.*s.partial", (int)n, to);
    if (k >= PATH_MAX || lstat(path, &st)) return false;
    *nbytes = place_stored(path);
    return true;
}

/* ---- reports ------------------------------------------------------------- */

/* The directory of a path; *name: the last component. */
static bool look_around(const char *path, struct stat *dir, const char **name)
{
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    char *beside =
        slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    const bool ok = beside && stat(beside, dir) == 0;
    free(beside);
    return ok;
}

/* Whether a report would replace the file at place, or a file in the directory
 * at place: an existing one, or any if the directory is written. */
static bool is_of(const char *report, const char *place, bool written)
{
    struct stat r, p, around, beside;
    const char *name, *its;
    const bool there = stat(report, &r) == 0, known = stat(place, &p) == 0;
    if (!look_around(report, &around, &name)) return false;
    if (known && there && same_file(&r, &p)) return true;
    if (known) return (there || written) && same_file(&around, &p);
    return look_around(place, &beside, &its) && same_file(&around, &beside) &&
           strcmp(name, its) == 0;
}

/* A dangling symbolic link: its target cannot be compared with other paths. */
static bool leads_nowhere(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && stat(path, &st);
}

static bool is_free_of(const arguments *a, int at)
{
    const char *report = a->given[at].value;
    const char *place = a->value[OPTION_OUTPUT];
    if (leads_nowhere(report)) {
        complain(USAGE, "--report %s is a dangling symbolic link", report);
        return false;
    }
    bool of = place && is_of(report, place, true);
    for (int i = 0; !of && i < a->n_operands; i++) {
        place = a->operand[i];
        of = is_of(report, place, false);
    }
    for (int i = 0; !of && i < a->n_given; i++) {
        const bool recipe = a->given[i].id == OPTION_RECIPE;
        if (!recipe && (a->given[i].id != OPTION_REPORT || i >= at)) continue;
        place = a->given[i].value;
        of = is_of(report, place, false);
    }
    if (of) complain(USAGE, "--report %s would overwrite %s", report, place);
    return !of;
}

bool place_of_reports(const arguments *a)
{
    for (int i = 0; i < a->n_given; i++)
        if (a->given[i].id == OPTION_REPORT && !is_free_of(a, i)) return false;
    return true;
}
