/* places.c - where a job's result goes. */
#include "places.h"

#include <dirent.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

const char *place_kind(const char *path)
{
    static const char *const kinds[] = {"safetensors", "gguf", "npy", "npz"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof kinds / sizeof *kinds; i++)
        if (strcasecmp(dot + 1, kinds[i]) == 0) return kinds[i];
    return NULL;
}

bool place_is_directory(const arguments *a)
{
    struct stat st;
    const char *to = a->value[OPTION_OUTPUT];
    if (stat(to, &st) == 0) return S_ISDIR(st.st_mode);
    if (*to && to[strlen(to) - 1] == '/') return true;
    return !place_kind(to) && !a->count[OPTION_TO] &&
           stat(a->operand[0], &st) == 0 && S_ISDIR(st.st_mode);
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
    struct stat st;
    const char *to = a->value[OPTION_OUTPUT];
    if (!to) {
        complain(USAGE, "%s needs --output; see lowbit %s --help", what, what);
        return false;
    }
    if (!*to) {
        complain(USAGE, "--output is empty");
        return false;
    }
    if (lstat(to, &st) == 0 && !a->count[OPTION_FORCE] &&
        !is_empty_directory(to)) {
        complain(USAGE, "%s: is there already; --force replaces it", to);
        return false;
    }
    return true;
}
