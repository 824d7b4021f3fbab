/* nearest.c - the formats nearest to an unknown name, for error messages: those
 * of as many bits, if the name contains a number, else the one spelled most
 * like it. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/core.h"

/* Appends to a list of names, unless there is no room left. */
static void list_name(lb_text *t, const char *name)
{
    const size_t at = strlen(t->s), room = sizeof t->s - at;
    const int n = snprintf(t->s + at, room, "%s%s", at ? ", " : "", name);
    if (n < 0 || (size_t)n >= room) t->s[at] = 0;
}

lb_text lb_formats_known(const lb_ctx *cx)
{
    lb_text t = {""};
    const lb_format *f;
    for (int k = 0; (f = lb_format_at(cx, k)); k++)
        if (lb_is_encodable(f)) list_name(&t, f->name);
    return t;
}

/* Bits of an element's code, without scales that are stored apart, rounded
 * down; 0 if unknown. */
static int bits_of(const lb_format *f)
{
    const lb_quant q = {.format = f};
    const lb_shape shape = lb_shape_make(1, (const int64_t[]){256});
    lb_layout l;
    if (f->codes.bits) return f->codes.bits;
    if (!lb_layout_of(NULL, &q, LB_F32, &shape, &l)) return 0;
    const lb_shape part = lb_part_shape(&l.stored, &l.part[0]);
    const int64_t bytes =
        lb_shape_size(&part) * (int64_t)lb_dtype_size(l.elem[0]);
    return (int)(bytes * 8 / shape.dim[0]);
}

static int number_in(const char *name)
{
    int n = 0;
    while (*name && !isdigit((unsigned char)*name))
        name++;
    for (; isdigit((unsigned char)*name) && n < 1000; name++)
        n = 10 * n + (*name - '0');
    return n;
}

/* Appends ": 4-bit formats are ..."; false if there is none. */
static bool list_bits(const lb_ctx *cx, int bits, lb_text *to)
{
    lb_text names = {""};
    const lb_format *f;
    for (int k = 0; (f = lb_format_at(cx, k)); k++)
        if (lb_is_encodable(f) && bits_of(f) == bits)
            list_name(&names, f->name);
    const size_t at = strlen(to->s);
    if (names.s[0])
        snprintf(to->s + at, sizeof to->s - at, "%s%d-bit formats are %.72s",
                 at ? "; " : ": ", bits, names.s);
    return names.s[0] != 0;
}

/* Edit distance, ignoring case; names are short. */
static int spelled_apart(const char *a, const char *b)
{
    enum { LONG = 32 };
    int row[LONG + 1];
    const size_t m = strlen(a), n = strlen(b);
    if (m > LONG || n > LONG) return LONG;
    for (size_t j = 0; j <= n; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= m; i++) {
        int corner = row[0]++;
        for (size_t j = 1; j <= n; j++) {
            const bool same = tolower((unsigned char)a[i - 1]) ==
                              tolower((unsigned char)b[j - 1]);
            const int change = corner + !same;
            const int skip = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            corner = row[j];
            row[j] = change < skip ? change : skip;
        }
    }
    return row[n];
}

/* The format spelled most like name, if most of the letters agree. */
static const lb_format *spelled_like(const lb_ctx *cx, const char *name)
{
    const lb_format *best = NULL, *f;
    int least = (int)strlen(name) / 2 + 1;
    for (int k = 0; (f = lb_format_at(cx, k)); k++) {
        const int d = lb_is_encodable(f) ? spelled_apart(name, f->name) : least;
        if (d >= least) continue;
        best = f;
        least = d;
    }
    return best;
}

lb_text lb_formats_near(const lb_ctx *cx, const char *name)
{
    lb_text t = {""};
    const int bits = number_in(name);
    const lb_format *like = spelled_like(cx, name);
    if (bits > 0 && list_bits(cx, bits, &t)) return t;
    for (int by = 1; bits > 0 && by < bits + 64; by++) {
        const bool below = bits > by && list_bits(cx, bits - by, &t);
        const bool above = list_bits(cx, bits + by, &t);
        if (below || above) return t;
    }
    if (like)
        snprintf(t.s, sizeof t.s, ": did you mean %.32s (%d bits)?", like->name,
                 bits_of(like));
    return t;
}
