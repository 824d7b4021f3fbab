/* test_law_gradients.c - law 6: every vjp agrees with central differences in
 * double precision, for every primitive, operand, dtype and view; and through
 * quantize the gradient is that at the quantized point, unchanged.
 *
 * The differentiated scalar is the sum of the result times random weights.
 * Single elements are perturbed, and all elements of an operand together along
 * a random direction, so that none is missed. Points where one-sided
 * differences disagree are not differentiable and are skipped.
 */
/* ctest: skip-tsan */
#include "laws.h"

enum { MAX_ELEMENTS = 4096, SINGLE = 12 };
#define STEP 0x1p-20

typedef struct tally {
    long calls, elements, corners, packed;
} tally;

/* ---- values -------------------------------------------------------------- */

/* Derivatives that are defined by convention. */
typedef enum given { MEASURED, IDENTITY, NOTHING } given;

static given given_of(const lb_prim *prim, int operand)
{
    if (prim->flow == LB_FLOW_NONE) return NOTHING;
    if (strcmp(prim->name, "ste") == 0) return operand ? NOTHING : IDENTITY;
    return strncmp(prim->name, "quantize", 8) == 0 ? IDENTITY : MEASURED;
}

static bool wants_plus(const char *prim)
{
    static const char *const list[] = {"log", "log1p", "sqrt", "rsqrt", "pow"};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (strcmp(prim, list[i]) == 0) return true;
    return false;
}

/* The sample with values where functions are smooth; samples with arbitrary
 * bits alternate between f32 and bf16. */
static sample smooth(const sample *s)
{
    static int turn;
    sample r = *s;
    const lb_dtype d = turn++ % 2 ? LB_BF16 : LB_F32;
    /* A shape that fits one width does not fit another. */
    const bool any = s->in[0].kind == VALUES_BITS &&
                     sample_kind_of(s->in[0].dtype) != KIND_F &&
                     strcmp(s->prim, "bitcast_convert") != 0;
    for (int i = 0; i < r.n_in; i++) {
        sample_operand *o = &r.in[i];
        if (any && o->kind == VALUES_BITS) o->dtype = d;
        if (sample_kind_of(o->dtype) == KIND_F)
            o->kind = wants_plus(s->prim) ? VALUES_PLUS : VALUES_SMOOTH;
    }
    return r;
}

/* Params for operands that are all f64. */
static sample_params doubled(const sample *s)
{
    sample_params p = s->params;
    if (strcmp(s->prim, "convert_element_type") == 0) p.convert.dtype = LB_F64;
    if (strcmp(s->prim, "dot_general") == 0) p.dot.preferred = LB_F64;
    if (strcmp(s->prim, "conv_general_dilated") == 0) p.conv.preferred = LB_F64;
    return p;
}

/* ---- in double precision ------------------------------------------------- */

typedef struct point {
    lb_ctx *cx;
    const lb_prim *prim;
    const sample *s;
    sample_params params;
    lb_array *in[SAMPLE_MAX_IN]; /* floats as f64 */
    double *weight;              /* of the result's elements */
    int64_t n_out;
    double size; /* of the terms of the scalar, added up */
} point;

static double *as_doubles(lb_ctx *cx, lb_array *a)
{
    double *x = malloc(((size_t)lb_size(a) + 1) * sizeof *x);
    lb_enter(cx);
    lb_array *plain = sample_plain(cx, a);
    lb_array *wide = lb_convert(cx, plain, LB_F64);
    if (!x || !lb_read(cx, wide, x, (size_t)lb_size(a) * sizeof *x)) abort();
    lb_leave(cx);
    return x;
}

/* The scalar with operand i at x. */
static double scalar_at(const point *p, int i, const double *x)
{
    lb_array *in[SAMPLE_MAX_IN];
    double sum = 0;
    lb_enter(p->cx);
    memcpy(in, p->in, sizeof in);
    in[i] = lb_from(p->cx, LB_F64, p->s->in[i].shape, x);
    lb_array *y = lb_bind(p->cx, p->prim, p->s->n_in, in,
                          p->prim->params_size ? &p->params : NULL);
    double *v = y ? as_doubles(p->cx, y) : NULL;
    for (int64_t k = 0; k < p->n_out && v; k++)
        sum += p->weight[k] * v[k];
    free(v);
    lb_leave(p->cx);
    return y ? sum : NAN;
}

/* The scalar at x + h d; d NULL: only element e is perturbed. */
static double moved_by(const point *p, int i, const double *x, const double *d,
                       int64_t e, double h)
{
    const int64_t n = lb_shape_size(&p->s->in[i].shape);
    double *to = malloc(((size_t)n + 1) * sizeof *to);
    if (!to) abort();
    for (int64_t j = 0; j < n; j++)
        to[j] = x[j] + (d ? h * d[j] : j == e ? h : 0);
    const double y = scalar_at(p, i, to);
    free(to);
    return y;
}

/* NaN at a corner or a jump, where one-sided differences, or differences with
 * another step, disagree. */
static double difference(const point *p, int i, const double *x,
                         const double *d, int64_t e)
{
    const double h = STEP, far = 16 * h, at = scalar_at(p, i, x);
    const double left = (at - moved_by(p, i, x, d, e, -h)) / h;
    const double right = (moved_by(p, i, x, d, e, h) - at) / h;
    const double wide =
        (moved_by(p, i, x, d, e, far) - moved_by(p, i, x, d, e, -far)) /
        (2 * far);
    const double want = (left + right) / 2, near = 1e-3 * (1 + fabs(want));
    const bool is_smooth =
        fabs(left - right) <= near && fabs(wide - want) <= near;
    /* Both differ from the derivative by c step^2: that is taken off. */
    return is_smooth ? want - (wide - want) / (16 * 16 - 1) : (double)NAN;
}

/* ---- comparing ----------------------------------------------------------- */

static double unit_of(lb_dtype d)
{
    return d == LB_BF16  ? 0x1p-8 * 4
           : d == LB_F16 ? 0x1p-11 * 4
           : d == LB_F32 ? 0x1p-24 * 64
                         : 1e-7;
}

/* Attention in f32 adds products of weights and values that may be larger than
 * the gradient: 1e-5, as docs/inference.md says. */
static double bound_of(const lb_prim *prim, lb_dtype d)
{
    const bool is_attention = strcmp(prim->name, "attention") == 0;
    return is_attention && d == LB_F32 ? 1e-5 : unit_of(d);
}

typedef struct verdict {
    bool ok;
    lb_text why;
} verdict;

static void refuse(verdict *v, int i, int64_t e, double got, double want)
{
    if (!v->ok) return;
    v->ok = false;
    snprintf(v->why.s, sizeof v->why.s,
             "operand %d, %s %lld: %.9g, but differences say %.9g", i,
             e < 0 ? "direction" : "element", (long long)e, got, want);
}

/* off: the error allowed for one element, for gradients of size 1. */
static void measured(const point *p, int i, const double *x, const double *g,
                     double off, tally *t, verdict *v)
{
    const int64_t n = lb_shape_size(&p->s->in[i].shape);
    uint32_t state = 7;
    double largest = 1, got = 0, *d = malloc(((size_t)n + 1) * sizeof *d);
    if (!d) abort();
    for (int64_t e = 0; e < n; e++) {
        largest = fmax(largest, fabs(g[e]));
        state = state * 1664525u + 1013904223u;
        d[e] = state >> 31 ? 1 : -1;
        got += d[e] * g[e];
    }
    const double noise = 0x1p-50 * p->size / STEP;
    const int64_t count = n < SINGLE ? n : SINGLE;
    for (int64_t k = 0; k < count; k++) {
        state = state * 1664525u + 1013904223u;
        const int64_t e = n <= SINGLE ? k : (int64_t)(state >> 8) % n;
        const double want = difference(p, i, x, NULL, e);
        t->elements++;
        if (isnan(want) || !isfinite(g[e]))
            t->corners++;
        else if (fabs(g[e] - want) > off * largest + noise)
            refuse(v, i, e, g[e], want);
    }
    const double all = n ? difference(p, i, x, d, -1) : 0;
    if (!isnan(all) && isfinite(got) &&
        fabs(got - all) > off * largest * (4 + sqrt((double)n) * 4) + noise)
        refuse(v, i, -1, got, all);
    free(d);
}

/* The weights themselves, or zeros. */
static void defined(given how, const point *p, lb_dtype d, const double *g,
                    int i, verdict *v)
{
    const int64_t n = lb_shape_size(&p->s->in[i].shape);
    for (int64_t e = 0; e < n; e++) {
        const double want = how == IDENTITY ? p->weight[e] : 0;
        if (fabs(g[e] - want) > (d == LB_F64 ? 0 : unit_of(d)) * fabs(want))
            refuse(v, i, e, g[e], want);
    }
}

/* ---- one call ------------------------------------------------------------ */

/* All float operands watched, the call, and their gradients; y NULL: an error,
 * or nothing to check. */
static lb_array *gradients(point *p, lb_array *const *in, lb_array **grad,
                           bool *says)
{
    lb_ctx *cx = p->cx;
    const sample *s = p->s;
    lb_array *of[SAMPLE_MAX_IN], *got[SAMPLE_MAX_IN], *seen[SAMPLE_MAX_IN];
    int n = 0;
    *says = false;
    lb_tape *t = lb_tape_open(cx);
    for (int i = 0; i < s->n_in; i++) {
        seen[i] = in[i];
        grad[i] = NULL;
        if (sample_kind_of(in[i]->dtype) != KIND_F) continue;
        seen[i] = of[n++] = lb_view(cx, in[i]); /* one may be given twice */
        if (!lb_tape_watch(t, seen[i])) break;
    }
    lb_array *y = law_bind(cx, p->prim, s, seen);
    if (y && n && sample_kind_of(y->dtype) == KIND_F) {
        const sample_operand o = {y->dtype, y->shape, VALUES_SMOOTH, 0, 0, 0};
        lb_array *dy = sample_views[0].make(cx, &sample_dense, &o, 99);
        p->weight = as_doubles(cx, dy);
        p->n_out = lb_size(y);
        double *v = as_doubles(cx, y);
        for (int64_t k = 0; k < p->n_out; k++)
            p->size += fabs(p->weight[k] * v[k]);
        free(v);
        *says = lb_tape_grad(t, y, dy, of, n, got);
        n = 0;
        for (int i = 0; i < s->n_in && *says; i++)
            if (seen[i] != in[i]) grad[i] = got[n++];
    }
    lb_tape_close(t);
    return y;
}

static void compare(point *p, lb_array *const *in, lb_array *const *grad,
                    tally *t, verdict *v)
{
    lb_ctx *cx = p->cx;
    for (int i = 0; i < p->s->n_in; i++) {
        p->in[i] = in[i];
        if (!grad[i]) continue;
        double *x = as_doubles(cx, in[i]);
        p->in[i] = lb_from(cx, LB_F64, in[i]->shape, x);
        free(x);
    }
    for (int i = 0; i < p->s->n_in; i++) {
        if (!grad[i]) continue;
        const given how = given_of(p->prim, i);
        double *x = as_doubles(cx, in[i]), *g = as_doubles(cx, grad[i]);
        /* The formula may use the result, which has fewer bits. */
        double off = bound_of(p->prim, in[i]->dtype);
        for (int k = 0; k < p->s->n_in; k++)
            if (grad[k]) off = fmax(off, bound_of(p->prim, in[k]->dtype));
        if (!lb_data(grad[i]) ||
            !lb_shape_equal(&grad[i]->shape, &in[i]->shape) ||
            grad[i]->dtype != in[i]->dtype)
            refuse(v, i, -1, NAN, NAN);
        else if (how == MEASURED)
            measured(p, i, x, g, off, t, v);
        else
            defined(how, p, in[i]->dtype, g, i, v);
        free(x);
        free(g);
    }
}

/* Integers where gradients must be float. */
static bool must_fail(const point *p, lb_array *const *in)
{
    lb_array *y = law_bind(p->cx, p->prim, p->s, in);
    return p->prim->flow == LB_FLOW_ALWAYS && y &&
           sample_kind_of(y->dtype) != KIND_F;
}

static void law_gradients(lb_ctx *cx, const lb_prim *prim, const sample *s,
                          const law_dress *dress, tally *t)
{
    lb_array *in[SAMPLE_MAX_IN], *grad[SAMPLE_MAX_IN];
    bool wanted = !dress->f, says = false;
    verdict v = {.ok = true};
    if (check_thins()) return;
    point p = {cx, prim, s, doubled(s), {NULL}, NULL, 0, 0};
    lb_enter(cx);
    bool ok = law_operands(cx, s, in);
    for (int i = 0; i < s->n_in && ok && dress->f; i++) {
        if (!sample_takes(dress->f, &s->in[i])) continue;
        lb_array *a = dress->v->make(cx, dress->f, &s->in[i], (uint64_t)i + 3);
        if (!a || !law_suits(s, i, a)) continue;
        in[i] = a;
        wanted = true;
    }
    ok = ok && !lb_error_status(cx);
    if (ok && wanted && must_fail(&p, in)) {
        ok = !gradients(&p, in, grad, &says) &&
             lb_error_status(cx) == LB_E_DTYPE;
        if (ok) lb_clear(cx);
    } else if (ok && wanted) {
        t->calls++;
        t->packed += dress->f && dress->f->fmt;
        ok = gradients(&p, in, grad, &says) && !lb_error_status(cx);
        if (ok && says) compare(&p, in, grad, t, &v);
    }
    const char *why = lb_error_status(cx) ? lb_error(cx) : v.why.s;
    law_check(ok && v.ok && !lb_error_status(cx), s, "gradients",
              dress->f ? law_text(s, (law_dress[SAMPLE_MAX_IN]){*dress}).s
                       : "plain",
              why);
    free(p.weight);
    lb_clear(cx);
    lb_leave(cx);
}

/* Dense as every view, packed as two in turn. */
typedef struct law {
    tally t;
    sample_format_list formats;
} law;

static bool too_large(const sample *s)
{
    for (int i = 0; i < s->n_in; i++)
        if (lb_shape_size(&s->in[i].shape) > MAX_ELEMENTS) return true;
    return false;
}

static void every_dress(lb_ctx *cx, const lb_prim *prim, const sample *listed,
                        void *user)
{
    enum { SMALL = 300, EVERY = 4 };
    static int turn;
    law *l = user;
    if (!listed->n_in || too_large(listed)) return;
    const sample s = smooth(listed);
    const bool scaled = s.in[0].scaled;
    const bool large = lb_shape_size(&s.in[0].shape) > SMALL;
    for (int k = 0; sample_views[k].name && !scaled; k++) {
        if (!law_run.all && large && turn++ % EVERY) continue;
        law_gradients(cx, prim, &s,
                      &(law_dress){&sample_dense, &sample_views[k]}, &l->t);
    }
    for (int i = 0; i < l->formats.n; i++) {
        const sample_format *f = &l->formats.item[i];
        if (!f->fmt || (f->variant && !law_run.all)) continue;
        if (!law_run.all && !scaled && turn++ % EVERY) continue;
        law_gradients(cx, prim, &s,
                      &(law_dress){f, &sample_views[scaled ? 0 : turn / 4 % 2]},
                      &l->t);
    }
}

/* Every primitive from floats to floats has a vjp. */
static void all_have_one(lb_ctx *cx)
{
    const lb_prim *prim;
    for (int k = 0; (prim = lb_primitive_at(cx, k)); k++) {
        bool floats = false;
        sample_list list = samples_of(prim->name, SAMPLES_SMALL);
        for (int i = 0; i < list.n && !floats; i++) {
            lb_array *in[SAMPLE_MAX_IN];
            const sample s = smooth(&list.item[i]);
            lb_enter(cx);
            lb_array *y = s.n_in && sample_kind_of(s.in[0].dtype) == KIND_F &&
                                  !too_large(&s) && law_operands(cx, &s, in)
                              ? law_bind(cx, prim, &s, in)
                              : NULL;
            floats = y && sample_kind_of(y->dtype) == KIND_F;
            lb_leave(cx);
            lb_clear(cx);
        }
        samples_free(&list);
        if (check_fails(!floats || prim->vjp || prim->compose ||
                        prim->flow == LB_FLOW_NONE))
            fprintf(stderr, "%s has no vjp\n", prim->name);
    }
}

int main(int argc, char **argv)
{
    law_args(argc, argv);
    lb_ctx *cx = lb_open(&(lb_options){
        .threads = 1, .dense = LB_DENSE_LOG, .log = log_no_copies});
    CHECK(cx != NULL);
    if (!cx) return check_report("law 6, gradients");
    CHECK(sample_add_outside(cx));
    law l = {{0}, law_formats(cx)};
    all_have_one(cx);
    sample_remember(true);
    law_each(cx, SAMPLES_SMALL, every_dress, &l);
    printf("%ld calls, %ld of packed operands; %ld elements moved, %ld of them "
           "at corners\n",
           l.t.calls, l.t.packed, l.t.elements, l.t.corners);
    CHECK(l.t.corners * 20 < l.t.elements);
    sample_remember(false);
    sample_formats_free(&l.formats);
    lb_close(cx);
    return check_report("law 6, gradients");
}
