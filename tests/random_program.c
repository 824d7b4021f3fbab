/* random_program.c - see random_program.h. */
#include "random_program.h"

#include <stdio.h>
#include <string.h>

typedef struct draw {
    uint64_t state;
} draw;

static uint32_t next(draw *d, uint32_t n)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((d->state >> 33) % n);
}

static int new_value(random_program *p, lb_dtype dtype, lb_shape shape)
{
    p->value[p->n_values] = (program_value){dtype, shape, -1, {0}};
    return p->n_values++;
}

static int new_arg(random_program *p, const sample_operand *o)
{
    const int v = new_value(p, o->dtype, o->shape);
    p->value[v].arg = p->n_args++;
    p->value[v].operand = *o;
    return v;
}

/* A value of that shape and dtype, preferably a late one; else an argument. */
static int some_value(random_program *p, draw *d, const sample_operand *o)
{
    const bool anything = o->kind != VALUES_INDEX && !o->scaled;
    for (int v = p->n_values - 1; v >= 0 && anything; v--)
        if (p->value[v].dtype == o->dtype &&
            lb_shape_equal(&p->value[v].shape, &o->shape) && next(d, 4))
            return v;
    return p->n_values < PROGRAM_VALUES ? new_arg(p, o) : -1;
}

/* Adds a call, and its result as a value, if the primitive accepts it. */
static bool add_call(lb_ctx *cx, random_program *p, const lb_prim *prim,
                     const int *in, int n_in, const sample_params *params)
{
    lb_array *operand[SAMPLE_MAX_IN];
    program_call *c = &p->call[p->n_calls];
    if (p->n_calls == PROGRAM_CALLS || p->n_values >= PROGRAM_VALUES - 12)
        return false;
    *c = (program_call){.prim = prim, .n_in = n_in, .taken = true};
    c->params = *params;
    lb_enter(cx);
    bool ok = true;
    for (int i = 0; i < n_in && ok; i++) {
        c->in[i] = in[i];
        const program_value *v = &p->value[in[i]];
        ok = (operand[i] = lb_zeros(cx, v->dtype, v->shape)) != NULL;
    }
    const lb_cpu cpu = {0};
    lb_call call = {.prim = prim,
                    .cpu = &cpu,
                    .threads = 1,
                    .n_in = n_in,
                    .in = operand,
                    .params = &c->params};
    ok = ok && prim->infer(cx, &call);
    lb_clear(cx);
    lb_leave(cx);
    if (!ok || lb_shape_size(&call.shape) > 1 << 18) return false;
    c->out = new_value(p, call.dtype, call.shape);
    p->n_calls++;
    return true;
}

/* A call of a sample of some primitive. */
static void from_sample(lb_ctx *cx, random_program *p, draw *d)
{
    int n = 0;
    while (lb_primitive_at(cx, n))
        n++;
    const lb_prim *prim = lb_primitive_at(cx, (int)next(d, (uint32_t)n));
    sample_list list = samples_of(prim->name, SAMPLES_SMALL);
    if (list.n) {
        const sample *s = &list.item[next(d, (uint32_t)list.n)];
        int in[SAMPLE_MAX_IN];
        bool ok = p->n_values + s->n_in < PROGRAM_VALUES - 12;
        for (int i = 0; i < s->n_in && ok; i++)
            ok = (in[i] = some_value(p, d, &s->in[i])) >= 0;
        if (ok) add_call(cx, p, prim, in, s->n_in, &s->params);
    }
    samples_free(&list);
}

static const lb_prim *prim_named(lb_ctx *cx, const char *name)
{
    return lb_find_primitive(cx, name);
}

/* The latest result, or any other value. */
static int latest(const random_program *p, draw *d)
{
    for (int v = p->n_values - 1; v >= 0; v--)
        if (p->value[v].arg < 0 && next(d, 3)) return v;
    return (int)next(d, (uint32_t)p->n_values);
}

static void elementwise(lb_ctx *cx, random_program *p, draw *d, int v)
{
    static const char *const name[] = {
        "add", "mul",  "sub", "div", "max", "min",      "neg",   "exp",
        "abs", "tanh", "lt",  "ge",  "and", "logistic", "rsqrt", "select",
    };
    const lb_prim *prim =
        prim_named(cx, name[next(d, sizeof name / sizeof *name)]);
    const program_value of = p->value[v];
    sample_operand o = {.dtype = of.dtype, .shape = of.shape};
    int in[3] = {v, v, v};
    if (prim->n_in == 3) {
        sample_operand pred = o;
        pred.dtype = LB_BOOL;
        if (next(d, 3) == 0) pred.shape = (lb_shape){0};
        in[0] = some_value(p, d, &pred);
    }
    if (prim->n_in >= 2 && next(d, 5))
        in[prim->n_in - 1] = some_value(p, d, &o);
    if (in[0] >= 0 && in[prim->n_in - 1] >= 0)
        add_call(cx, p, prim, in, prim->n_in, &(sample_params){0});
}

static void convert(lb_ctx *cx, random_program *p, draw *d, int v)
{
    sample_params s = {.convert = {(lb_dtype)(1 + next(d, LB_N_DTYPES - 1))}};
    add_call(cx, p, prim_named(cx, "convert_element_type"), &v, 1, &s);
}

/* A call that requires a dense operand, if the context has such a primitive. */
static void raw(lb_ctx *cx, random_program *p, int v)
{
    const lb_prim *prim = prim_named(cx, "raw");
    if (prim) add_call(cx, p, prim, &v, 1, &(sample_params){0});
}

/* Reduces trailing axes, and in some cases broadcasts the result back. */
static void reduce(lb_ctx *cx, random_program *p, draw *d, int v)
{
    static const char *const name[] = {"reduce_sum", "reduce_max", "reduce_min",
                                       "reduce_prod"};
    const lb_shape shape = p->value[v].shape;
    if (!shape.rank) return;
    const int n = 1 + (int)next(d, (uint32_t)shape.rank);
    sample_params s = {.reduce = {{.n = n}}};
    for (int i = 0; i < n; i++)
        s.reduce.axes.axis[i] = shape.rank - n + i;
    if (!add_call(cx, p, prim_named(cx, name[next(d, 4)]), &v, 1, &s)) return;
    int r = p->n_values - 1;
    if (next(d, 2)) elementwise(cx, p, d, r);
    if (next(d, 3) == 0) return;
    r = p->n_values - 1;
    sample_params keep = {.reshape = {.shape = shape}};
    for (int k = shape.rank - n; k < shape.rank; k++)
        keep.reshape.shape.dim[k] = 1;
    if (!add_call(cx, p, prim_named(cx, "reshape"), &r, 1, &keep)) return;
    r = p->n_values - 1;
    sample_params back = {.broadcast = {.shape = shape}};
    for (int k = 0; k < shape.rank; k++)
        back.broadcast.dims[k] = k;
    add_call(cx, p, prim_named(cx, "broadcast_in_dim"), &r, 1, &back);
    const int in[2] = {v, p->n_values - 1};
    if (p->value[v].dtype == p->value[in[1]].dtype)
        add_call(cx, p, prim_named(cx, next(d, 2) ? "sub" : "mul"), in, 2,
                 &(sample_params){0});
}

/* The shape of an argument: small, odd, empty, or rows longer than a chunk. */
static lb_shape some_shape(draw *d)
{
    static const int64_t dim[] = {0, 1, 2, 3, 4, 5, 7, 8, 16, 33, 64, 130};
    lb_shape s = {.rank = (int)next(d, 4)};
    for (int k = 0; k < s.rank; k++)
        s.dim[k] = dim[1 + next(d, k ? 8 : 11)];
    if (s.rank && next(d, 40) == 0) s.dim[next(d, (uint32_t)s.rank)] = 0;
    if (s.rank && next(d, 12) == 0) s.dim[s.rank - 1] = 1000 + next(d, 1500);
    return s;
}

void random_program_make(lb_ctx *cx, uint64_t number, random_program *p)
{
    draw d = {number * 2654435761u + 12345};
    next(&d, 1);
    memset(p, 0, sizeof *p);
    const lb_dtype some[] = {LB_F32, LB_F32, LB_BF16, LB_F16, LB_F64,
                             LB_I32, LB_I8,  LB_U8,   LB_BOOL};
    const sample_operand first = {
        .dtype = some[next(&d, 9)],
        .shape = some_shape(&d),
        .kind = next(&d, 2) ? VALUES_ANY : VALUES_SMOOTH,
    };
    new_arg(p, &first);
    const int calls = 1 + (int)next(&d, PROGRAM_CALLS - 4);
    for (int tries = 0; p->n_calls < calls && tries < 4 * calls; tries++) {
        const int v = latest(p, &d);
        switch (next(&d, 17)) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4:
        case 5:
            from_sample(cx, p, &d);
            break;
        case 6:
        case 7:
            reduce(cx, p, &d, v);
            break;
        case 8:
        case 9:
            convert(cx, p, &d, v);
            break;
        case 10:
            raw(cx, p, v);
            break;
        default:
            elementwise(cx, p, &d, v);
        }
    }
    p->n_results = 1 + (int)next(&d, PROGRAM_RESULTS);
    p->result[0] = p->n_values - 1;
    for (int i = 1; i < p->n_results; i++)
        p->result[i] = (int)next(&d, (uint32_t)p->n_values);
    p->constants = next(&d, 3) == 0;
}

bool random_program_args(lb_ctx *cx, const random_program *p, uint64_t number,
                         const sample_format_list *formats, lb_array **args)
{
    draw d = {number + 77};
    int views = 0;
    while (sample_views[views].name)
        views++;
    for (int v = 0; v < p->n_values; v++) {
        const program_value *value = &p->value[v];
        if (value->arg < 0) continue;
        const sample_operand *o = &value->operand;
        const sample_format *f = &formats->item[next(&d, (uint32_t)formats->n)];
        const sample_view *view = &sample_views[next(&d, (uint32_t)views)];
        if (next(&d, 2) && !o->scaled) f = &sample_dense;
        if (next(&d, 2)) view = &sample_views[0];
        lb_array *a = NULL;
        if (sample_takes(f, o)) a = view->make(cx, f, o, (uint64_t)v + number);
        if (a && o->scaled && !sample_has_scales(a)) a = NULL;
        if (a &&
            (a->dtype != o->dtype || !lb_shape_equal(&a->shape, &o->shape)))
            a = NULL;
        if (!a && !lb_error_status(cx) && !o->scaled)
            a = sample_views[0].make(cx, &sample_dense, o, (uint64_t)v);
        if (!a) return false;
        args[value->arg] = a;
    }
    return true;
}

void random_program_last_float(random_program *p)
{
    int last = -1;
    for (int i = 0; i < p->n_results; i++)
        if (sample_kind_of(p->value[p->result[i]].dtype) == KIND_F) last = i;
    p->n_results = last >= 0;
    if (last >= 0) p->result[0] = p->result[last];
}

random_program random_program_needed(const random_program *p)
{
    random_program q = *p;
    bool needed[PROGRAM_VALUES] = {false};
    for (int i = 0; i < p->n_results; i++)
        needed[p->result[i]] = true;
    for (int k = p->n_calls - 1; k >= 0; k--) {
        program_call *c = &q.call[k];
        c->taken = c->taken && needed[c->out];
        for (int i = 0; i < c->n_in && c->taken; i++)
            needed[c->in[i]] = true;
    }
    return q;
}

/* Whether an argument is replaced by an array that the function captures. */
static bool is_constant(const random_program *p, int arg)
{
    return p->constants && p->args && arg % 3 == 1;
}

bool random_program_run(lb_ctx *cx, lb_array *const *args, int n,
                        lb_array **out, int n_out, void *user)
{
    const random_program *p = user;
    lb_array *v[PROGRAM_VALUES] = {NULL};
    (void)n;
    for (int i = 0; i < p->n_values; i++)
        if (p->value[i].arg >= 0)
            v[i] = is_constant(p, p->value[i].arg) ? p->args[p->value[i].arg]
                                                   : args[p->value[i].arg];
    for (int k = 0; k < p->n_calls; k++) {
        const program_call *c = &p->call[k];
        lb_array *in[SAMPLE_MAX_IN];
        bool ok = c->taken;
        for (int i = 0; i < c->n_in; i++)
            ok = (in[i] = v[c->in[i]]) != NULL && ok;
        if (!ok) continue;
        v[c->out] = lb_bind(cx, c->prim, c->n_in, in, &c->params);
        if (!v[c->out]) return false;
    }
    for (int i = 0; i < n_out; i++) {
        out[i] = v[p->result[i]];
        for (int k = p->n_values - 1; !out[i] && k >= 0; k--)
            out[i] = v[k]; /* removed while shrinking */
    }
    return true;
}

static lb_array *sum_of(lb_ctx *cx, lb_array *const *args, int n,
                        const random_program *p)
{
    lb_array *out[PROGRAM_RESULTS], *y = NULL;
    if (!random_program_run(cx, args, n, out, p->n_results, (void *)p))
        return NULL;
    for (int i = 0; i < p->n_results; i++)
        if (sample_kind_of(lb_dtype_of(out[i])) == KIND_F) y = out[i];
    return y ? lb_reduce_sum(cx, y, NULL) : lb_scalar(cx, 0);
}

bool random_program_gradients(lb_ctx *cx, lb_array *const *args, int n,
                              lb_array **out, int n_out, void *user)
{
    lb_array *of[PROGRAM_VALUES];
    int m = 0;
    lb_tape *t = lb_tape_open(cx);
    bool ok = t != NULL;
    for (int i = 0; i < n && m < n_out - 1 && ok; i++)
        if (sample_kind_of(lb_dtype_of(args[i])) == KIND_F &&
            !is_constant(user, i))
            ok = lb_tape_watch(t, of[m++] = args[i]);
    lb_array *y = ok ? sum_of(cx, args, n, user) : NULL;
    ok = y && (!m || lb_tape_grad(t, y, NULL, of, m, out));
    lb_tape_close(t);
    for (int i = m; i < n_out; i++)
        out[i] = y;
    return ok;
}

void random_program_print(const random_program *p, lb_array *const *args)
{
    for (int v = 0; v < p->n_values; v++) {
        const int arg = p->value[v].arg;
        if (arg >= 0)
            fprintf(stderr, "  v%d = argument %d: %s %s%s%s\n", v, arg,
                    lb_format_of(args[arg]), lb_dtype_name(p->value[v].dtype),
                    LB_SHOW(&p->value[v].shape),
                    is_constant(p, arg) ? " (constant)" : "");
    }
    for (int k = 0; k < p->n_calls; k++) {
        const program_call *c = &p->call[k];
        if (!c->taken) continue;
        fprintf(stderr, "  v%d = %s(", c->out, c->prim->name);
        for (int i = 0; i < c->n_in; i++)
            fprintf(stderr, "%sv%d", i ? ", " : "", c->in[i]);
        fprintf(stderr, ")  %s%s\n", lb_dtype_name(p->value[c->out].dtype),
                LB_SHOW(&p->value[c->out].shape));
    }
    for (int i = 0; i < p->n_results; i++)
        fprintf(stderr, "  result %d: v%d\n", i, p->result[i]);
}
