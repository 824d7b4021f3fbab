/* attention_f64.c - attention in double precision, a query at a time, in
 * portable C. The scores of one query fit into scratch.
 */
#include <math.h>

#include "prims/attention.h"

void lb_attend_plan_f64(const lb_call *c, lb_plan *plan)
{
    const lb_attend a = lb_attend_of(c);
    plan->per_thread =
        (size_t)(a.keys + a.d + 2 * a.dv + lb_max_i64(a.d, a.dv)) *
        sizeof(double);
    plan->phases = 1;
    plan->units[0] = a.dv ? a.batch * a.heads * a.queries : 0;
    plan->kernel = "attend f64";
}

static const double *row_of(const lb_work *w, const lb_attend *a, int operand,
                            int64_t batch, int64_t head, int64_t t,
                            double *room)
{
    const bool kv = operand > 0;
    int64_t lo[LB_MAX_RANK], n[LB_MAX_RANK];
    lb_attend_box(a, kv, batch, kv ? head / a->group : head, t, 1,
                  operand == 2 ? a->dv : a->d, lo, n);
    return lb_tile_peek(w->call->cpu, w->call->in[operand], lo, n, LB_C_F64,
                        room);
}

/* Scores of the keys that are seen, and their maximum. */
static double score(const lb_work *w, const lb_attend *a, int64_t batch,
                    int64_t head, const double *q, int64_t lo, int64_t hi,
                    double *s, double *room)
{
    double most = -INFINITY;
    for (int64_t j = lo; j < hi; j++) {
        const double *k = row_of(w, a, 1, batch, head, j, room);
        double sum = 0;
        for (int64_t i = 0; i < a->d; i++)
            sum += q[i] * k[i];
        sum *= a->params->scale;
        if (a->params->soft_cap > 0)
            sum = a->params->soft_cap * tanh(sum / a->params->soft_cap);
        s[j] = sum;
        most = sum > most ? sum : most;
    }
    return most;
}

static void one_query(const lb_work *w, const lb_attend *a, int64_t batch,
                      int64_t head, int64_t t)
{
    double *s = w->scratch, *q = s + a->keys, *acc = q + a->d;
    double *out = acc + a->dv, *room = out + a->dv, sum = 0;
    int64_t lo, hi, at[LB_MAX_RANK], n[LB_MAX_RANK];
    lb_attend_seen(a, lb_attend_valid(w->call, a, batch), t, &lo, &hi);
    const double *x = row_of(w, a, 0, batch, head, t, q);
    const double most = score(w, a, batch, head, x, lo, hi, s, room);
    for (int64_t i = 0; i < a->dv; i++)
        acc[i] = 0;
    for (int64_t j = lo; j < hi; j++) {
        const double *v = row_of(w, a, 2, batch, head, j, room);
        const double p = exp(s[j] - most);
        sum += p;
        for (int64_t i = 0; i < a->dv; i++)
            acc[i] += p * v[i];
    }
    for (int64_t i = 0; i < a->dv; i++)
        out[i] = hi > lo ? acc[i] / sum : 0;
    lb_attend_box(a, false, batch, head, t, 1, a->dv, at, n);
    lb_tile_write(w->call->cpu, w->out, at, n, LB_C_F64, out);
}

void lb_attend_eval_f64(const lb_work *w)
{
    const lb_attend a = lb_attend_of(w->call);
    for (int64_t u = w->lo; u < w->hi; u++)
        one_query(w, &a, u / (a.heads * a.queries), u / a.queries % a.heads,
                  u % a.queries);
}
