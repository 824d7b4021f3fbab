/* natural_order.c - the arrays of a file in the order of tables: by name, with
 * numbers by value. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "verb.h"

/* Digits compare as numbers: layers.2 comes before layers.10. */
static int natural(const char *a, const char *b)
{
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            a += strspn(a, "0");
            b += strspn(b, "0");
            const size_t n = strspn(a, "0123456789"),
                         m = strspn(b, "0123456789");
            const int c = n != m ? (n < m ? -1 : 1) : memcmp(a, b, n);
            if (c) return c;
            a += n;
            b += n;
        } else if (*a != *b)
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        else
            a++, b++;
    }
    return (*a != 0) - (*b != 0);
}

static int by_name(const void *a, const void *b)
{
    const lb_entry *const *p = a, *const *q = b;
    const int c = natural((*p)->name, (*q)->name);
    return c ? c : strcmp((*p)->name, (*q)->name);
}

const lb_entry **entries_by_name(const lb_file *f)
{
    const int64_t n = lb_file_count(f);
    const lb_entry **entry = calloc((size_t)n + 1, sizeof *entry);
    if (!entry) return NULL;
    for (int64_t i = 0; i < n; i++)
        entry[i] = lb_file_entry(f, i);
    qsort(entry, (size_t)n, sizeof *entry, by_name);
    return entry;
}
