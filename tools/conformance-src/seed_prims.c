/* seed_prims.c - group 5: every primitive on quantized operands.
 *
 * `out` is the result with decoded operands, `out_poly` the result if they are
 * decoded with the polynomial.
 */
#include <string.h>

#include "seed_cases.h"

enum { MAX_OPERANDS = 16 };

typedef struct operands {
    seed_quantized of[MAX_OPERANDS]; /* entry NULL: a dense array */
    lb_array *a[MAX_OPERANDS];
    int n;
    bool clamped; /* at least one operand is */
} operands;

static bool read_operands(seed_case *s, lb_decode decode, operands *o)
{
    const json_t *const list = json_object_get(s->it, "operands");
    const json_t *const table = json_object_get(s->manifest, "operands");
    note *const n = s->check.note;
    if (!json_is_array(list) || json_array_size(list) > MAX_OPERANDS) {
        return note_fail(n, "operands is not a list of at most %d",
                         MAX_OPERANDS);
    }
    *o = (operands){.n = (int)json_array_size(list)};
    for (int i = 0; i < o->n; i++) {
        const json_t *const e = json_array_get(list, (size_t)i);
        const char *const name =
            json_string_value(json_object_get(e, "operand"));
        if (name) {
            const json_t *const entry = json_object_get(table, name);
            if (!entry) {
                return note_fail(n, "there is no operand '%.64s'", name);
            }
            if (!seed_operand(s, entry, decode, &o->of[i])) return false;
            o->a[i] = o->of[i].a;
            o->clamped = o->clamped || o->of[i].unclamped;
        } else {
            given x = {0};
            if (seed_array(&s->check, json_object_get(e, "array"), &x)) {
                o->a[i] = x.a;
            }
            given_free(&x);
        }
        if (!o->a[i]) return false;
    }
    return true;
}

/* Converting a quantized array only changes the dtype that decoded values are
 * rounded to: an nf4 array of a 16-bit dtype becomes f32 without being rounded
 * to 16 bits. `out` was rounded. So the expected values are decoded here, and
 * rounding them must give `out`. */
static bool is_lazy_convert(const seed_case *s, const operands *o)
{
    const char *const op = json_string_value(json_object_get(s->it, "op"));
    const json_t *const a = o->n == 1 ? o->of[0].entry : NULL;
    const char *const format = json_string_value(json_object_get(a, "format"));
    return !strcmp(op, "convert_element_type") && format &&
           !strcmp(format, "nf4") && lb_dtype_of(o->a[0]) != LB_F32;
}

static bool check_lazy_convert(seed_case *s, const operands *o, lb_array *got,
                               const given *want)
{
    checker *const c = &s->check;
    given w = {0};
    given once = {0};
    const bool ok =
        seed_decoded(s, o->of[0].entry, &w) &&
        seed_expect(c, "decoded", lb_convert(c->cx, w.a, want->dtype), &once) &&
        check_array(c, "rounded once", got, &once) &&
        check_array(c, "rounded to the operand's dtype first",
                    lb_convert(c->cx,
                               lb_convert(c->cx, w.a, lb_dtype_of(o->a[0])),
                               want->dtype),
                    want);
    given_free(&w);
    given_free(&once);
    return ok;
}

/* An operand has codes that the manifest does not clamp. Two checks: the
 * manifest's values, as dense operands, give `out`; the operand gives the same
 * as its own values do. */
static bool check_unclamped(seed_case *s, op_call call, const operands *o,
                            lb_array *got, const given *want)
{
    checker *const c = &s->check;
    const json_t *const params = json_object_get(s->it, "params");
    lb_array *values[MAX_OPERANDS];
    lb_array *own[MAX_OPERANDS];
    given same = {0};
    for (int i = 0; i < o->n; i++) {
        const seed_quantized *const q = &o->of[i];
        values[i] = q->unclamped ? q->unclamped : o->a[i];
        own[i] = q->unclamped ? lb_materialize(c->cx, q->a) : o->a[i];
    }
    call.in = own;
    bool ok = seed_expect(c, call.name, seed_run_op(call, params), &same);
    same.tol = want->tol;
    ok = ok && check_array(c, "of a clamped operand", got, &same);
    call.in = values;
    ok = ok && check_array(c, "out", seed_run_op(call, params), want);
    given_free(&same);
    return ok;
}

static bool check_result(seed_case *s, op_call call, const operands *o,
                         const given *want)
{
    lb_array *const got = seed_run_op(call, json_object_get(s->it, "params"));
    if (!got) return false;
    if (o->clamped) return check_unclamped(s, call, o, got, want);
    if (dtype_is_float(want->dtype) && is_lazy_convert(s, o)) {
        return check_lazy_convert(s, o, got, want);
    }
    return check_array(&s->check, "result", got, want);
}

static bool check_output(seed_case *s, const char *op, const char *output,
                         lb_decode decode)
{
    checker *const c = &s->check;
    const json_t *const ref =
        json_object_get(json_object_get(s->it, "outputs"), output);
    if (!ref) {
        return decode == LB_DECODE_POLY ||
               note_fail(c->note, "no output '%s' is expected", output);
    }
    operands o = {0};
    given want = {0};
    if (!read_operands(s, decode, &o) || !seed_array(c, ref, &want)) {
        return false;
    }
    const tensor_type type = {want.dtype, want.raw.shape};
    const op_call call = {.cx = c->cx,
                          .name = op,
                          .n_in = o.n,
                          .in = o.a,
                          .n_out = 1,
                          .type = &type,
                          .note = c->note};
    const bool ok = check_result(s, call, &o, &want);
    given_free(&want);
    return ok;
}

bool seed_primitive(seed_case *s)
{
    const char *const op = json_string_value(json_object_get(s->it, "op"));
    if (!op) return note_fail(s->check.note, "the case names no op");
    return check_output(s, op, "out", LB_DECODE_TABLE) &&
           check_output(s, op, "out_poly", LB_DECODE_POLY);
}
