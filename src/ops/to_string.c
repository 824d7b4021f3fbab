/* to_string.c - arrays as text, in the manner of numpy's array2string.
 *
 * Elements that will be shown are read first, because all of them determine the
 * width of the columns and whether there are exponents:
 *
 *     [[1.   2.25 3.  ]        pad_left   digits before the point, and signs
 *      [4.   5.   6.5 ]]       pad_right  digits after it
 *
 * Digits are the fewest that identify a value in its dtype, at most `precision`
 * after the point. number_text.c has the text of a single number.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "ops/number_text.h"

/* As snprintf: counts what does not fit. */
typedef struct {
    char *buf;
    size_t size;
    int64_t length;
} text_sink;

static void put(text_sink *t, const char *s, size_t n)
{
    const size_t at = (size_t)t->length;
    if (at + 1 < t->size) {
        const size_t room = t->size - 1 - at, m = n < room ? n : room;
        memcpy(t->buf + at, s, m);
        t->buf[at + m] = 0;
    }
    t->length += (int64_t)n;
}

static void put_text(text_sink *t, const char *s)
{
    put(t, s, strlen(s));
}

static void put_times(text_sink *t, char c, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        put(t, &c, 1);
}

static text_sink sink_of(char *buf, size_t size)
{
    if (buf && size) buf[0] = 0;
    return (text_sink){buf, buf ? size : 0, 0};
}

/* ---- the first line ------------------------------------------------------ */

static void put_header(text_sink *t, const lb_array *a)
{
    char s[640], spec[512];
    const lb_store *st = a->store;
    const char *view = lb_shape_size(&st->shape) > lb_shape_size(&a->shape)
                           ? "a view of "
                           : "";
    if (st->traced)
        snprintf(s, sizeof s, "%s%s, not computed yet", lb_dtype_name(a->dtype),
                 LB_SHOW(&a->shape));
    else if (st->sharding)
        snprintf(s, sizeof s, "%s %s%s, %zu bytes on this rank, sharded %s",
                 lb_format_of(a), lb_dtype_name(a->dtype), LB_SHOW(&a->shape),
                 lb_nbytes(a), st->sharding->describe(a, spec, sizeof spec));
    else
        snprintf(s, sizeof s, "%s %s%s, %s%zu bytes", lb_format_of(a),
                 lb_dtype_name(a->dtype), LB_SHOW(&a->shape), view,
                 lb_nbytes(a));
    put_text(t, s);
}

int64_t lb_describe(const lb_array *a, char *buf, size_t size)
{
    text_sink t = sink_of(buf, size);
    if (a)
        put_header(&t, a);
    else
        put_text(&t, "NULL");
    return t.length;
}

/* ---- elements that are shown --------------------------------------------- */

enum { MOST_DIGITS = 64 }; /* after the point */

typedef union {
    double f;
    int64_t i;
    uint64_t u;
} text_value;

typedef struct {
    lb_ctx *cx;
    lb_array *a;
    lb_print_options o;
    bool cut;       /* summarized */
    lb_shape shown; /* of the elements that are shown */
    text_value *value;
    size_t got;
    text_sink *to;
    /* the columns */
    bool exponents;
    int precision, exp_size;
    int64_t pad_left, pad_right;
    /* the current line: its length, and blanks that end it if it goes on */
    int64_t column, blanks;
} text_job;

static bool read_options(lb_ctx *cx, const lb_print_options *options,
                         lb_print_options *o)
{
    *o = (lb_print_options){0};
    const size_t size = !options               ? sizeof *o
                        : options->struct_size ? options->struct_size
                                               : sizeof *o;
    if (size < offsetof(lb_print_options, threshold))
        return lb_fail(cx, LB_E_ARG,
                       "to_string: options.struct_size is %zu, not the sizeof "
                       "or 0",
                       size);
    if (options) memcpy(o, options, size < sizeof *o ? size : sizeof *o);
    if (o->precision < -1 || o->precision > MOST_DIGITS || o->threshold < -1 ||
        o->edge < 0 || o->line_width < 0)
        return lb_fail(cx, LB_E_ARG,
                       "to_string: options are precision %d (-1..%d), "
                       "threshold %lld (-1 or more), edge %d and line_width %d "
                       "(0 or more)",
                       o->precision, MOST_DIGITS, (long long)o->threshold,
                       o->edge, o->line_width);
    o->precision = !o->precision ? 8 : o->precision < 0 ? 0 : o->precision;
    if (!o->threshold) o->threshold = 1000;
    if (!o->edge) o->edge = 3;
    if (!o->line_width) o->line_width = 75;
    return true;
}

/* Whether the middle of an axis is left out. */
static bool is_cut(const text_job *j, int axis)
{
    return j->cut && j->a->shape.dim[axis] > 2 * (int64_t)j->o.edge;
}

/* Reads n elements in order, from a box that is long only along the last axis,
 * as 8-byte values. */
static void read_run(const text_job *j, int64_t *lo, int64_t n, text_value *to)
{
    enum { RUN = 512 };
    const lb_array *a = j->a;
    const int last = a->shape.rank - 1;
    const lb_cpu *cpu = lb_cpu_for(j->cx, &j->a, 1);
    const bool floats = lb_dtype_is_float(a->dtype);
    const lb_ctype c = floats ? LB_C_F64 : lb_ctype_of(a->dtype);
    int64_t count[LB_MAX_RANK];
    for (int k = 0; k < last; k++)
        count[k] = 1;
    for (int64_t m; n > 0; n -= m, to += m) {
        uint64_t tile[RUN];
        m = last < 0 ? 1 : lb_min_i64(n, RUN);
        if (last < 0) {
            lb_tile_read_flat(cpu, a, 0, 1, c, tile);
        } else {
            count[last] = m;
            lb_tile_read(cpu, a, lo, count, c, tile);
            lo[last] += m;
        }
        for (int64_t i = 0; i < m && c == LB_C_BOOL; i++)
            to[i].i = ((const uint8_t *)tile)[i];
        if (c != LB_C_BOOL) memcpy(to, tile, (size_t)m * sizeof *to);
    }
}

/* The index in the array of entry i of those shown. */
static int64_t index_of(const text_job *j, int axis, int64_t i)
{
    const int64_t hidden = j->a->shape.dim[axis] - j->shown.dim[axis];
    return i < j->o.edge ? i : i + hidden;
}

static bool read_shown(text_job *j)
{
    const int last = j->a->shape.rank - 1;
    size_t size;
    j->shown = j->a->shape;
    for (int k = 0; k <= last; k++)
        if (is_cut(j, k)) j->shown.dim[k] = 2 * (int64_t)j->o.edge;
    const int64_t n = lb_shape_size(&j->shown);
    if (!n) return true;
    if (!lb_mul_size((size_t)n, sizeof *j->value, &size) ||
        !(j->value = lb_heap_alloc(j->cx->heap, size, &j->got)))
        return lb_fail(j->cx, LB_E_NOMEM,
                       "out of memory (to print %lld elements)", (long long)n);
    const int64_t row = last < 0 ? 1 : j->shown.dim[last];
    for (int64_t e = 0; e < n; e += row) {
        int64_t lo[LB_MAX_RANK] = {0}, rest = e / row;
        for (int k = last - 1; k >= 0; rest /= j->shown.dim[k], k--)
            lo[k] = index_of(j, k, rest % j->shown.dim[k]);
        const int64_t head = last >= 0 && is_cut(j, last) ? j->o.edge : row;
        read_run(j, lo, head, j->value + e);
        if (head == row) continue;
        lo[last] = index_of(j, last, head);
        read_run(j, lo, row - head, j->value + e + head);
    }
    return true;
}

/* ---- columns ------------------------------------------------------------- */

/* numpy's rule: exponents if numbers are large, small or of very different
 * size, computed in their dtype. */
static bool has_exponents(const text_job *j, int64_t n)
{
    const lb_dtype d = j->a->dtype;
    const double limit = d == LB_F64   ? 1e8
                         : d == LB_F32 ? 1e6
                         : d == LB_F16 ? 1e3
                                       : 1e2;
    double most = 0, least = INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const double x = fabs(j->value[i].f);
        if (!isfinite(x) || x == 0) continue;
        most = fmax(most, x);
        least = fmin(least, x);
    }
    return most > 0 &&
           (most >= limit ||
            (!j->o.suppress && (least < lb_number_round(d, 1e-4) ||
                                lb_number_round(d, most / least) > 1000)));
}

static void fit_floats(text_job *j, int64_t n)
{
    lb_number t;
    int64_t finite = 0, before = 0, after = 0, longest = 0;
    j->exponents = has_exponents(j, n);
    j->precision = j->o.precision;
    for (int64_t i = 0; i < n; i++) {
        const double x = j->value[i].f;
        if (!isfinite(x)) {
            longest = lb_max_i64(longest, isnan(x) || x > 0 ? 3 : 4);
            continue;
        }
        finite++;
        lb_number_of(&t, j->a->dtype, x, 0, j->precision, j->exponents);
        before = lb_max_i64(before, (int64_t)strlen(t.before));
        after = lb_max_i64(after, (int64_t)strlen(t.after));
        j->exp_size = (int)lb_max_i64(j->exp_size, t.exp_size);
    }
    j->pad_left = before;
    j->pad_right = after;
    if (j->exponents && finite) {
        j->precision = (int)after;
        j->pad_right = j->exp_size + 2 + after;
    }
    if (longest)
        j->pad_left = lb_max_i64(j->pad_left, longest - j->pad_right - 1);
}

/* Integers and bools are right-justified. */
static void integer_text(const text_job *j, text_value v, char *to, size_t room)
{
    if (j->a->dtype == LB_BOOL)
        snprintf(to, room, "%s", v.i ? "True" : "False");
    else if (lb_dtype_is_unsigned(j->a->dtype))
        snprintf(to, room, "%llu", (unsigned long long)v.u);
    else
        snprintf(to, room, "%lld", (long long)v.i);
}

static void fit_columns(text_job *j)
{
    const int64_t n = lb_shape_size(&j->shown);
    char s[32];
    if (lb_dtype_is_float(j->a->dtype)) {
        fit_floats(j, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        integer_text(j, j->value[i], s, sizeof s);
        j->pad_left = lb_max_i64(j->pad_left, (int64_t)strlen(s));
    }
    /* numpy pads True as if there were a False. */
    if (j->a->dtype == LB_BOOL && j->a->shape.rank) j->pad_left = 5;
}

/* ---- lines --------------------------------------------------------------- */

/* An element: what is before the padding of its column, then blanks. */
typedef struct {
    int64_t left;
    char s[2 * sizeof(lb_number)];
    int64_t right;
} text_word;

static text_word word_of(const text_job *j, text_value v)
{
    text_word w = {.left = 0};
    lb_number t;
    if (!lb_dtype_is_float(j->a->dtype)) {
        integer_text(j, v, w.s, sizeof w.s);
        w.left = j->pad_left - (int64_t)strlen(w.s);
    } else if (!isfinite(v.f)) {
        snprintf(w.s, sizeof w.s, "%s",
                 isnan(v.f) ? "nan"
                 : v.f < 0  ? "-inf"
                            : "inf");
        w.left = j->pad_left + j->pad_right + 1 - (int64_t)strlen(w.s);
    } else {
        lb_number_of(&t, j->a->dtype, v.f, j->exponents ? j->precision : 0,
                     j->precision, j->exponents);
        w.left = j->pad_left - (int64_t)strlen(t.before);
        if (j->exponents) {
            snprintf(w.s, sizeof w.s, "%s.%se%c%0*d", t.before, t.after,
                     t.exponent < 0 ? '-' : '+', j->exp_size,
                     t.exponent < 0 ? -t.exponent : t.exponent);
        } else {
            snprintf(w.s, sizeof w.s, "%s.%s", t.before, t.after);
            w.right = j->pad_right - (int64_t)strlen(t.after);
        }
    }
    return w;
}

/* Adds a word to the line, or begins another one. Blanks are dropped at the end
 * of a line, as numpy does. */
static void put_word(text_job *j, const text_word *w, int64_t hang,
                     int64_t width)
{
    const int64_t n = w->left + (int64_t)strlen(w->s) + w->right;
    if (j->column + j->blanks + n > width && j->column + j->blanks > hang) {
        put_times(j->to, '\n', 1);
        put_times(j->to, ' ', hang);
        j->column = hang;
    } else {
        put_times(j->to, ' ', j->blanks);
        j->column += j->blanks;
    }
    put_times(j->to, ' ', w->left);
    put_text(j->to, w->s);
    j->column += w->left + (int64_t)strlen(w->s);
    j->blanks = w->right;
}

static void put_row(text_job *j, const text_value *v)
{
    const int last = j->shown.rank - 1;
    const int64_t hang = last + 1, width = j->o.line_width - last - 1;
    const text_word dots = {.s = "..."};
    const int64_t n = j->shown.dim[last];
    j->column = hang;
    j->blanks = 0;
    for (int64_t i = 0; i < n; i++) {
        const text_word w = word_of(j, v[i]);
        put_word(j, &w, hang, width);
        if (i + 1 == n) break;
        j->blanks++;
        if (i + 1 != j->o.edge || !is_cut(j, last)) continue;
        put_word(j, &dots, hang, width);
        j->blanks++;
    }
    put_times(j->to, ' ', j->blanks);
}

static void put_array(text_job *j, int axis, const text_value *v)
{
    const int rank = j->shown.rank;
    int64_t each = 1;
    for (int k = axis + 1; k < rank; k++)
        each *= j->shown.dim[k];
    put_text(j->to, "[");
    if (axis == rank - 1) put_row(j, v);
    for (int64_t i = 0; axis < rank - 1 && i < j->shown.dim[axis]; i++) {
        if (i) put_times(j->to, '\n', rank - 1 - axis);
        if (i) put_times(j->to, ' ', axis + 1);
        if (i == j->o.edge && is_cut(j, axis)) {
            put_text(j->to, "...");
            put_times(j->to, '\n', rank - 1 - axis);
            put_times(j->to, ' ', axis + 1);
        }
        put_array(j, axis + 1, v + i * each);
    }
    put_text(j->to, "]");
}

static bool put_elements(text_job *j)
{
    if (!lb_shape_size(&j->a->shape)) {
        put_text(j->to, "[]");
        return true;
    }
    if (!read_shown(j)) return false;
    fit_columns(j);
    if (j->shown.rank) {
        put_array(j, 0, j->value);
    } else {
        const text_word w = word_of(j, j->value[0]);
        put_times(j->to, ' ', w.left);
        put_text(j->to, w.s);
        put_times(j->to, ' ', w.right);
    }
    lb_heap_free(j->cx->heap, j->value, j->got);
    return true;
}

int64_t lb_to_string_with(lb_ctx *cx, lb_array *a,
                          const lb_print_options *options, char *buf,
                          size_t size)
{
    text_sink t = sink_of(buf, size);
    text_job j = {.cx = cx, .to = &t};
    if (!cx) return -1;
    if (!a) {
        lb_fail(cx, LB_E_NULL, "to_string: the array is NULL");
        return -1;
    }
    if (!read_options(cx, options, &j.o)) return -1;
    if (!j.o.no_header) put_header(&t, a);
    if (a->store->traced) return t.length;
    if (!j.o.no_header) put_text(&t, "\n");
    lb_enter(cx);
    j.a = lb_here(cx, a);
    j.cut = j.o.threshold >= 0 && lb_size(j.a) > j.o.threshold;
    const bool ok = j.a && put_elements(&j);
    lb_leave(cx);
    return ok ? t.length : -1;
}

int64_t lb_to_string(lb_ctx *cx, lb_array *a, char *buf, size_t size)
{
    return lb_to_string_with(cx, a, NULL, buf, size);
}
