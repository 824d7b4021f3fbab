/* ctx.c - contexts: options, the first error, scopes.
 *
 * owned lists the arrays of all open scopes, outermost first; scope[i] is where
 * the i-th begins. Keeping an array swaps it to the front of the innermost
 * scope and moves the beginning of that scope past it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "core/core.h"
#include "kernels/tuning.h"

static const size_t default_keep = (size_t)512 << 20;

/* ---- errors ------------------------------------------------------------- */

bool lb_fail(lb_ctx *cx, lb_status status, const char *fmt, ...)
{
    if (!cx || cx->status) return false;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(cx->error, sizeof cx->error, fmt, ap);
    va_end(ap);
    cx->status = status;
    cx->errors++;
    return false;
}

lb_status lb_error_status(const lb_ctx *cx)
{
    return cx ? cx->status : LB_E_NULL;
}

const char *lb_error(const lb_ctx *cx)
{
    return cx ? cx->error
              : "no context: lb_open failed (lb_open_why returns the reason)";
}

void lb_clear(lb_ctx *cx)
{
    if (!cx) return;
    cx->status = LB_OK;
    cx->error[0] = 0;
}

const char *lb_status_name(lb_status status)
{
    static const char *const name[] = {
        "ok",   "out of memory", "null", "shape",  "dtype",
        "axis", "argument",      "size", "denied", "unsupported",
        "file", "content",       "mesh",
    };
    const size_t n = sizeof name / sizeof *name;
    return (size_t)status < n ? name[status] : "unknown status";
}

const char *lb_version(void)
{
    return LB_VERSION_STRING;
}

/* ---- lists -------------------------------------------------------------- */

/* Grows a block of *room items of size bytes, so that one more fits. */
static void *grown(lb_ctx *cx, void *old, int64_t n, int64_t *room, size_t size,
                   size_t *got)
{
    if (n < *room) return old;
    const int64_t more = *room ? *room * 2 : 32;
    size_t bytes, new_got;
    void *new = NULL;
    if (lb_mul_size((size_t)more, size, &bytes))
        new = lb_heap_alloc(cx->heap, bytes, &new_got);
    if (!new) {
        lb_fail(cx, LB_E_NOMEM, "out of memory");
        return NULL;
    }
    if (old) {
        memcpy(new, old, (size_t)n * size);
        lb_heap_free(cx->heap, old, *got);
    }
    *room = more;
    *got = new_got;
    return new;
}

bool lb_list_push(lb_ctx *cx, lb_list *list, void *item)
{
    void **to = grown(cx, list->item, list->n, &list->room, sizeof *list->item,
                      &list->got);
    if (!to) return false;
    list->item = to;
    list->item[list->n++] = item;
    return true;
}

void lb_list_free(lb_heap *heap, lb_list *list)
{
    if (list->item) lb_heap_free(heap, list->item, list->got);
    *list = (lb_list){0};
}

/* ---- open and close ----------------------------------------------------- */

typedef struct {
    lb_options o;
    lb_cpu_info machine;
    lb_level level;
    lb_dense_policy dense;
    lb_precision precision;
    bool debug, shares_all;
    char why[256];
} settings;

static bool refuse(settings *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static bool refuse(settings *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->why, sizeof s->why, fmt, ap);
    va_end(ap);
    return false;
}

static bool settle_level(settings *s)
{
    const char *name = s->o.isa ? s->o.isa : getenv("LOWBIT_ISA");
    const char *from = s->o.isa ? "options.isa" : "LOWBIT_ISA";
    s->machine = lb_cpu_detect();
    switch (lb_level_choose(name, s->machine.best, &s->level)) {
    case LB_CHOICE_UNKNOWN:
        return refuse(s,
                      "%s is \"%s\": not one of ref, avx2, avx512, "
                      "avx512vnni, amx, neon",
                      from, name);
    case LB_CHOICE_UNAVAILABLE:
        return refuse(s,
                      "%s is \"%s\", but the highest level of this CPU is %s",
                      from, name, lb_level_name(s->machine.best));
    default:
        return true;
    }
}

/* Unlike isa this may name levels that the CPU lacks, so that a program can
 * disable AVX-512 without checking for it first. */
static bool settle_off(settings *s)
{
    const uint64_t levels = ((uint64_t)2 << LB_LEVEL_AMX) - 1;
    const uint64_t none = (uint64_t)1 << LB_LEVEL_REF | ~levels;
    if (s->o.cpu_off & none)
        return refuse(
            s,
            "options.cpu_off is 0x%llx, but only the levels in 0x%llx "
            "can be switched off",
            (unsigned long long)s->o.cpu_off, (unsigned long long)~none);
    s->level = lb_level_permitted(lb_level_without(s->level, s->o.cpu_off));
    return true;
}

/* The option if it is given, else the value of the environment variable, else
 * 1. word lists the names of the enum values 1 to n. */
static bool settle_word(settings *s, const char *option, unsigned given,
                        const char *variable, const char *const *word, int n,
                        int *out)
{
    if (given > (unsigned)n)
        return refuse(s, "options.%s is %u, which is not a valid value", option,
                      given);
    const char *env = getenv(variable);
    *out = given ? (int)given : 1;
    if (given || !env || !*env) return true;
    for (int i = 1; i <= n; i++) {
        if (strcmp(env, word[i - 1]) != 0) continue;
        *out = i;
        return true;
    }
    return refuse(s, "%s is \"%s\": not %s, %s or %s", variable, env, word[0],
                  word[1], word[2]);
}

static bool settle_dense(settings *s)
{
    static const char *const word[] = {"allow", "log", "deny"};
    int i = 1;
    if (!settle_word(s, "dense", (unsigned)s->o.dense, "LOWBIT_DENSE", word,
                     LB_DENSE_DENY, &i))
        return false;
    s->dense = (lb_dense_policy)i;
    return true;
}

static bool settle_precision(settings *s)
{
    static const char *const word[] = {"highest", "fast", "fastest"};
    int i = 1;
    if (!settle_word(s, "precision", (unsigned)s->o.precision,
                     "LOWBIT_PRECISION", word, LB_PRECISION_FASTEST, &i))
        return false;
    s->precision = (lb_precision)i;
    return true;
}

static bool settle_debug(settings *s)
{
    const char *env = getenv("LOWBIT_DEBUG");
    const bool on = env && strcmp(env, "1") == 0;
    s->debug = s->o.debug || on;
    if (on || s->o.debug || !env || !*env || strcmp(env, "0") == 0) return true;
    return refuse(s, "LOWBIT_DEBUG is \"%s\": not 0 or 1", env);
}

/* For tests of threads, which mostly run small calls. */
static bool settle_pool(settings *s)
{
    const char *env = getenv("LOWBIT_POOL");
    s->shares_all = env && strcmp(env, "always") == 0;
    if (s->shares_all || !env || !*env || strcmp(env, "auto") == 0) return true;
    return refuse(s, "LOWBIT_POOL is \"%s\": not auto or always", env);
}

/* struct_size makes structs of older and newer callers compatible: read the
 * part known to both sides. */
static bool settle(const lb_options *options, settings *s)
{
    *s = (settings){0};
    if (options) {
        const size_t size =
            options->struct_size ? options->struct_size : sizeof s->o;
        if (size < offsetof(lb_options, allocator))
            return refuse(s, "options.struct_size is %zu, too small", size);
        memcpy(&s->o, options, size < sizeof s->o ? size : sizeof s->o);
    }
    const lb_allocator *al = s->o.allocator;
    if (al && (!al->alloc || !al->free))
        return refuse(s, "options.allocator lacks alloc or free");
    if (s->o.team && !s->o.team->run)
        return refuse(s, "options.team lacks run");
    if (s->o.threads < 0 || s->o.threads > LB_POOL_MAX)
        return refuse(s, "options.threads is %d, not in 0..%d", s->o.threads,
                      LB_POOL_MAX);
    if (s->o.keep_bytes < -1)
        return refuse(s, "options.keep_bytes is %lld, less than -1",
                      (long long)s->o.keep_bytes);
    return settle_level(s) && settle_off(s) && settle_dense(s) &&
           settle_precision(s) && settle_debug(s) && settle_pool(s);
}

const char *lb_open_why(const lb_options *options, char *buf, size_t size)
{
    settings s;
    const bool fine = settle(options, &s);
    snprintf(buf, size, "%s", fine ? "out of memory" : s.why);
    return buf;
}

lb_ctx *lb_open(const lb_options *options)
{
    settings s;
    if (!settle(options, &s)) return NULL;
    const int64_t keep = s.o.keep_bytes;
    const lb_cpu_id *id = &s.machine.id;
    lb_heap *heap = lb_heap_open(s.o.allocator, keep < 0    ? 0
                                                : keep == 0 ? default_keep
                                                            : (size_t)keep);
    if (!heap) return NULL;
    size_t got;
    lb_ctx *cx = lb_heap_alloc(heap, sizeof *cx, &got);
    if (!cx) {
        lb_heap_close(heap);
        return NULL;
    }
    *cx = (lb_ctx){
        .heap = heap,
        .got = got,
        .pool = lb_pool_open(heap, s.o.threads),
        .cpu = {s.level,
                lb_tuning_find(s.level, id->vendor, id->family, id->model),
                s.level >= LB_LEVEL_AVX512VNNI && s.machine.vbmi,
                s.level == LB_LEVEL_NEON && s.machine.dotprod},
        .dense = s.dense,
        .precision = s.precision,
        .shares_all = s.shares_all,
        .check_indices = s.o.check_indices,
        .log = s.o.log,
        .log_user = s.o.log_user,
    };
    if (cx->pool) lb_pool_use(cx->pool, s.o.team);
    memcpy(cx->cpu_name, id->name, sizeof cx->cpu_name);
    if (s.debug) cx->debug = lb_debug_open(heap);
    lb_enter(cx);
    if (!cx->pool || cx->status || (s.debug && !cx->debug)) {
        lb_close(cx);
        return NULL;
    }
    return cx;
}

static void end_scope(lb_ctx *cx);

void lb_close(lb_ctx *cx)
{
    if (!cx) return;
    while (cx->n_scopes)
        end_scope(cx);
    lb_pool_close(cx->pool);
    lb_heap *heap = cx->heap;
    lb_list_free(heap, &cx->owned);
    lb_list_free(heap, &cx->prims);
    lb_list_free(heap, &cx->formats);
    lb_list_free(heap, &cx->dense_formats);
    lb_list_free(heap, &cx->dense_policies);
    for (int64_t i = 0; i < cx->rules.n; i++) {
        lb_added_rule *r = cx->rules.item[i];
        lb_heap_free(heap, r, r->got);
    }
    lb_list_free(heap, &cx->rules);
    if (cx->debug) lb_debug_close(cx->debug);
    if (cx->scope) lb_heap_free(heap, cx->scope, cx->scope_got);
    lb_heap_free(heap, cx, cx->got);
    lb_heap_close(heap);
}

int lb_threads(const lb_ctx *cx)
{
    return cx ? lb_pool_threads(cx->pool) : 0;
}

const char *lb_isa(const lb_ctx *cx)
{
    return cx ? lb_level_name(cx->cpu.level) : "";
}

const char *lb_isa_best(void)
{
    return lb_level_name(lb_cpu_best());
}

const char *lb_cpu_name(const lb_ctx *cx)
{
    return cx ? cx->cpu_name : "";
}

const char *lb_cpu_family(const lb_ctx *cx)
{
    return cx ? lb_tuning_for(&cx->cpu)->family : "";
}

size_t lb_trim(lb_ctx *cx)
{
    return cx ? lb_heap_trim(cx->heap) : 0;
}

size_t lb_bytes_in_use(const lb_ctx *cx)
{
    return cx ? lb_heap_in_use(cx->heap) : 0;
}

size_t lb_bytes_peak(const lb_ctx *cx)
{
    return cx ? lb_heap_peak(cx->heap) : 0;
}

/* ---- scopes ------------------------------------------------------------- */

void lb_enter(lb_ctx *cx)
{
    if (!cx) return;
    if (cx->lost_scopes) {
        cx->lost_scopes++;
        return;
    }
    if (cx->n_scopes >= cx->scope_room) {
        void *to = grown(cx, cx->scope, cx->n_scopes, &cx->scope_room,
                         sizeof *cx->scope, &cx->scope_got);
        if (!to) { /* its arrays will go to the enclosing scope */
            cx->lost_scopes++;
            return;
        }
        cx->scope = to;
    }
    cx->scope[cx->n_scopes++] = cx->owned.n;
}

static void end_scope(lb_ctx *cx)
{
    const int64_t from = cx->scope[--cx->n_scopes];
    while (cx->owned.n > from)
        lb_unref(cx->owned.item[--cx->owned.n]);
}

void lb_leave(lb_ctx *cx)
{
    if (!cx) return;
    if (cx->lost_scopes)
        cx->lost_scopes--;
    else if (cx->n_scopes > 1) /* the outermost scope belongs to the context */
        end_scope(cx);
    else if (cx->debug)
        lb_fail(cx, LB_E_ARG,
                "leave: no scope is open (lb_leave was called more often than "
                "lb_enter)");
}

lb_array *lb_keep(lb_ctx *cx, lb_array *a)
{
    if (cx && a && cx->debug && !lb_is_alive(cx, "keep", a)) return NULL;
    /* Outside of the outermost scope arrays are only kept by lb_ref. */
    if (!cx || !a || cx->n_scopes < 2 || cx->lost_scopes) return a;
    int64_t *begin = &cx->scope[cx->n_scopes - 1];
    void **item = cx->owned.item;
    for (int64_t i = cx->owned.n - 1; i >= *begin; i--) {
        if (item[i] != a) continue;
        item[i] = item[*begin];
        item[(*begin)++] = a;
        break;
    }
    return a;
}

lb_array *lb_leave_with(lb_ctx *cx, lb_array *a)
{
    lb_keep(cx, a);
    lb_leave(cx);
    return a;
}

bool lb_in_scope(const lb_ctx *cx, int64_t scope, const lb_array *a)
{
    if (cx->lost_scopes || scope >= cx->n_scopes) return false;
    int64_t i = cx->owned.n;
    while (i > cx->scope[scope])
        if (cx->owned.item[--i] == a) return true;
    return false;
}

void lb_drop(lb_ctx *cx, lb_array *a)
{
    if (!cx || !a || (cx->debug && !lb_is_alive(cx, "drop", a))) return;
    void **item = cx->owned.item;
    int64_t scope = cx->n_scopes - 1;
    for (int64_t i = cx->owned.n - 1; i >= 0; i--) {
        while (scope >= 0 && cx->scope[scope] > i)
            scope--;
        if (item[i] != a) continue;
        /* Fill the hole with the last array of each scope, from the outermost
         * affected scope inward. */
        for (int64_t s = scope; s < cx->n_scopes; s++) {
            const int64_t end =
                s + 1 < cx->n_scopes ? cx->scope[s + 1] : cx->owned.n;
            item[i] = item[end - 1];
            i = end - 1;
            if (s > scope) cx->scope[s]--;
        }
        cx->owned.n--;
        lb_unref(a);
        return;
    }
}

void lb_replace(lb_ctx *cx, lb_array *from, lb_array *to)
{
    lb_ref(to);
    lb_drop(cx, to);
    void **item = cx->owned.item;
    int64_t i = cx->owned.n - 1;
    while (i >= 0 && item[i] != from)
        i--;
    if (i >= 0) item[i] = to;
    lb_unref(from);
}

lb_array *lb_own(lb_ctx *cx, lb_array *a)
{
    if (lb_list_push(cx, &cx->owned, a)) return a;
    lb_unref(a);
    return NULL;
}
