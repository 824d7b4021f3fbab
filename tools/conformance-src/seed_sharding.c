/* seed_sharding.c - group 7 of the kind `seed`: sharding.json.
 *
 *   maps        the slice of an array on each device: by lb_spec_slice, and by
 *               sharding an array over a mesh of as many threads
 *   refused     specs that JAX refuses because of their names or the shape
 *   components  where the package places the parts of int8 and nf4 arrays. It
 *               silently drops entries that do not fit. Relaxed parsing gives
 *               the same placements and reports the dropped entries
 *   with_mesh_and_axis  the forms of an axis
 *
 * Bugs of the package (quirks.json) are not expected here: P() replicates, a
 * spec without a mesh is refused, transposing permutes the spec, and blocks are
 * never split.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lowbit_mesh.h"
#include "seed_cases.h"

/* ---- specs in json ------------------------------------------------------- */

/* [null, "tp", ["dp", "tp"]] as P(None, tp, (dp,tp)). head: "P", or empty
 * for with_mesh_and_axis. */
static bool spec_text(const json_t *spec, const char *head, char *to,
                      size_t room, note *n)
{
    size_t at = (size_t)snprintf(to, room, "%s(", head);
    if (!json_is_array(spec)) return note_fail(n, "a spec that is no list");
    for (size_t i = 0; i < json_array_size(spec) && at < room; i++) {
        const json_t *const e = json_array_get(spec, i);
        const char *const one = json_string_value(e);
        at += (size_t)snprintf(to + at, room - at, "%s", i ? ", " : "");
        if (at < room && !json_is_array(e)) {
            at +=
                (size_t)snprintf(to + at, room - at, "%s", one ? one : "None");
            continue;
        }
        for (size_t k = 0; k < json_array_size(e) && at < room; k++) {
            const char *const name = json_string_value(json_array_get(e, k));
            at += (size_t)snprintf(to + at, room - at, "%s%s", k ? "," : "(",
                                   name ? name : "None");
        }
        if (at < room)
            at += (size_t)snprintf(to + at, room - at,
                                   json_array_size(e) ? ")" : "()");
    }
    if (at < room)
        at += (size_t)snprintf(to + at, room - at,
                               json_array_size(spec) ? ",)" : ")");
    return at < room || note_fail(n, "a spec that is too long");
}

static bool read_grid(lb_ctx *cx, const json_t *it, char *words, size_t room,
                      lb_grid *grid, note *n)
{
    const json_t *const sizes = json_object_get(it, "mesh");
    const json_t *const names = json_object_get(it, "names");
    size_t at = 0;
    for (size_t k = 0; k < json_array_size(sizes) && at < room; k++) {
        const char *const name = json_string_value(json_array_get(names, k));
        at += (size_t)snprintf(
            words + at, room - at, "%s%s=%d", k ? "," : "", name ? name : "",
            (int)json_integer_value(json_array_get(sizes, k)));
    }
    return lb_grid_parse(cx, words, grid) ||
           library_failed(cx, n, "reading the mesh");
}

/* ---- maps --------------------------------------------------------------- */

/* A check that every rank of a mesh runs; the first failure is kept. */
typedef struct {
    const json_t *it;
    char mesh[128], spec[256];
    lb_shape shape;
    note note[64]; /* of each rank */
    bool (*run)(lb_ctx *cx, lb_mesh *mesh, void *job, note *n);
    void *user;
} mesh_job;

static int run_rank(lb_comm *comm, void *user)
{
    mesh_job *const j = user;
    note *const n = &j->note[comm->rank];
    lb_ctx *const cx = lb_open(&(lb_options){.threads = 1});
    lb_mesh *const mesh = lb_mesh_open(cx, comm, j->mesh, NULL);
    if (!mesh) {
        library_failed(cx, n, "opening the mesh");
    } else {
        j->run(cx, mesh, j, n);
        lb_mesh_close(mesh);
    }
    lb_close(cx);
    return 0;
}

/* Runs it on a mesh of threads; n gets the note of the first rank that fails.
 */
static bool run_mesh(mesh_job *j, int ranks, note *n)
{
    if (ranks < 1 || ranks > 64) return note_skip(n, "a mesh of %d", ranks);
    if (lb_mesh_run(ranks, run_rank, j))
        return note_fail(n, "the mesh could not be run");
    for (int r = 0; r < ranks; r++) {
        if (j->note[r].verdict == PASSED) continue;
        *n = j->note[r];
        return false;
    }
    return true;
}

/* The slice of one device, from the list. */
static bool expected_slice(const json_t *it, int rank, int axes, int64_t *lo,
                           int64_t *hi, note *n)
{
    const json_t *const all = json_object_get(it, "shards");
    const json_t *const one = json_array_get(all, (size_t)rank);
    if (json_array_size(one) != (size_t)axes)
        return note_fail(n, "no slice of device %d", rank);
    for (int k = 0; k < axes; k++) {
        const json_t *const pair = json_array_get(one, (size_t)k);
        lo[k] = json_integer_value(json_array_get(pair, 0));
        hi[k] = json_integer_value(json_array_get(pair, 1));
    }
    return true;
}

/* The value of each element is its index in the whole array. */
static bool check_slice(lb_ctx *cx, lb_mesh *mesh, void *job, note *n)
{
    const mesh_job *const j = job;
    int64_t lo[LB_MAX_RANK], hi[LB_MAX_RANK], at[LB_MAX_RANK] = {0};
    const int rank = j->shape.rank;
    const int64_t size = shape_size(j->shape);
    if (!expected_slice(j->it, lb_mesh_rank(mesh), rank, lo, hi, n))
        return false;
    lb_array *a = lb_iota(cx, LB_I32, (lb_shape){1, {size}}, 0);
    a = lb_shard(cx, mesh, lb_reshape(cx, a, j->shape), j->spec);
    lb_array *own = lb_materialize(cx, lb_local(cx, a));
    if (!own) return library_failed(cx, n, "sharding");
    const int32_t *const got = lb_data(own);
    for (int k = 0; k < rank; k++)
        if (lb_dim(own, k) != hi[k] - lo[k])
            return note_fail(n, "rank %d has %lld of axis %d, not %lld",
                             lb_mesh_rank(mesh), (long long)lb_dim(own, k), k,
                             (long long)(hi[k] - lo[k]));
    for (int64_t i = 0; i < lb_size(own); i++) {
        int64_t want = 0;
        for (int k = 0; k < rank; k++)
            want = want * j->shape.dim[k] + lo[k] + at[k];
        if (got[i] != want)
            return note_fail(n, "rank %d holds element %d, not %lld",
                             lb_mesh_rank(mesh), got[i], (long long)want);
        for (int k = rank - 1; k >= 0 && ++at[k] == hi[k] - lo[k]; k--)
            at[k] = 0;
    }
    return true;
}

static bool check_map(checker *c, const json_t *it)
{
    mesh_job j = {.it = it, .run = check_slice};
    lb_grid grid;
    lb_spec spec;
    const lb_spec none = {0};
    note *const n = c->note;
    if (!read_grid(c->cx, it, j.mesh, sizeof j.mesh, &grid, n) ||
        !json_shape(json_object_get(it, "shape"), "shape", &j.shape, n) ||
        !spec_text(json_object_get(it, "spec"), "P", j.spec, sizeof j.spec, n))
        return false;
    if (!lb_spec_parse(c->cx, &grid, j.shape, j.spec, NULL, &spec))
        return library_failed(c->cx, n, "reading the spec");
    for (int r = 0; r < lb_grid_size(&grid); r++) {
        int64_t lo[LB_MAX_RANK], hi[LB_MAX_RANK];
        int64_t start[LB_MAX_RANK], count[LB_MAX_RANK];
        if (!expected_slice(it, r, j.shape.rank, lo, hi, n)) return false;
        lb_spec_slice(&grid, &spec, &j.shape, r, start, count);
        for (int k = 0; k < j.shape.rank; k++)
            if (start[k] != lo[k] || start[k] + count[k] != hi[k])
                return note_fail(n, "device %d, axis %d: %lld + %lld", r, k,
                                 (long long)start[k], (long long)count[k]);
        const json_t *const ids = json_object_get(it, "replica_id");
        const int64_t id = json_integer_value(json_array_get(ids, (size_t)r));
        if (lb_spec_replica(&grid, &spec, &j.shape, r) != id)
            return note_fail(n, "device %d is replica %d, not %lld", r,
                             lb_spec_replica(&grid, &spec, &j.shape, r),
                             (long long)id);
    }
    const bool whole = lb_spec_equal(&grid, &spec, &none);
    if (whole != json_is_true(json_object_get(it, "fully_replicated")))
        return note_fail(n, "it is %sreplicated", whole ? "" : "not ");
    return run_mesh(&j, lb_grid_size(&grid), n);
}

/* ---- refused ------------------------------------------------------------ */

static bool check_refusal(checker *c, const json_t *it)
{
    char mesh[128], words[256];
    lb_grid grid;
    lb_shape shape;
    lb_spec spec;
    note *const n = c->note;
    const json_t *const named = json_object_get(it, "named_sharding");
    const json_t *const put = json_object_get(it, "device_put");
    const bool by_name = json_object_get(named, "exception") != NULL;
    if (!read_grid(c->cx, it, mesh, sizeof mesh, &grid, n) ||
        !json_shape(json_object_get(it, "shape"), "shape", &shape, n) ||
        !spec_text(json_object_get(it, "spec"), "P", words, sizeof words, n))
        return false;
    const bool taken = lb_spec_parse(c->cx, &grid, shape, words, NULL, &spec);
    /* Some entries are accepted: an axis of the grid may have size 1. */
    if (json_is_true(json_object_get(put, "accepted")))
        return taken || library_failed(c->cx, n, "reading the spec");
    if (taken)
        return note_fail(n, "%s of %s is taken", words, shape_text(shape).s);
    const lb_status want = by_name ? LB_E_AXIS : LB_E_SHAPE;
    const bool ok = lb_error_status(c->cx) == want;
    if (!ok) note_fail(n, "refused for another reason: %s", lb_error(c->cx));
    lb_clear(c->cx);
    return ok;
}

/* ---- components
 * -------------------------------------------------------------- */

/* "int8 axis -1", "int8 axis (0,1)", "nf4 block 16". */
static bool read_format(const char *words, lb_quant_config *q, note *n)
{
    int a, b;
    char end;
    *q = (lb_quant_config){.compat = LB_COMPAT_EFORMER};
    if (sscanf(words, "int8 axis (%d,%d%c", &a, &b, &end) == 3 && end == ')') {
        q->format = "int8";
        q->axes = (lb_axes){2, {a, b}};
    } else if (sscanf(words, "int8 axis %d%c", &a, &end) == 1) {
        q->format = "int8";
        q->axes = (lb_axes){1, {a}};
    } else if (sscanf(words, "nf4 block %d%c", &a, &end) == 1) {
        q->format = "nf4";
        q->block_size = a;
    } else {
        return note_skip(n, "the format '%.64s' is not known here", words);
    }
    return true;
}

/* Whether a is split along its axes as listed. Further entries of the list are
 * for axes inside of blocks; with no_inside they must be empty. */
static bool same_placement(const lb_array *a, const json_t *want,
                           bool no_inside, const char *what, note *n)
{
    char got[256], list[256] = "P()";
    const lb_spec spec = lb_sharding_of(a);
    const lb_grid *const grid = lb_mesh_grid(lb_mesh_of(a));
    lb_spec other = {0};
    lb_spec_text(grid, &spec, got, sizeof got);
    if (json_is_array(want)) { /* else it stayed on one device: replicated */
        if (!spec_text(want, "P", list, sizeof list, n)) return false;
        const int rank = lb_rank(a);
        lb_shape any = {LB_MAX_RANK, {0}}; /* 0 can be split in any way */
        if (!lb_spec_parse(NULL, grid, any, list, NULL, &other))
            return note_fail(n, "%s: %s is no spec", what, list);
        for (int k = rank; k < other.n && no_inside; k++)
            if (other.entry[k].n)
                return note_fail(n, "%s: %s cuts blocks", what, list);
        if (other.n > rank) other.n = rank;
    }
    return lb_spec_equal(grid, &spec, &other) ||
           note_fail(n, "%s is placed %s, not %s", what, got, list);
}

static bool same_component(lb_ctx *cx, lb_array *a, const json_t *parts,
                           const char *theirs, const char *ours, note *n)
{
    const json_t *const one = json_object_get(parts, theirs);
    if (!one) return true;
    lb_array *const part = lb_component(cx, a, ours);
    if (!part) return library_failed(cx, n, theirs);
    return same_placement(part, json_object_get(one, "spec"), false, theirs, n);
}

static bool same_components(lb_ctx *cx, lb_array *a, const json_t *parts,
                            note *n)
{
    return same_component(cx, a, parts, "weight", "codes", n) &&
           same_component(cx, a, parts, "scale", "scale", n) &&
           same_component(cx, a, parts, "packed", "codes", n) &&
           same_component(cx, a, parts, "absmax", "absmax", n);
}

/* Whether the package splits a part along an axis that the array lacks, that
 * is, inside of blocks: its result is not checked then. */
static bool cuts_inside(const lb_array *a, const json_t *parts)
{
    const char *name;
    json_t *one;
    json_object_foreach((json_t *)(uintptr_t)parts, name, one)
    {
        const json_t *const spec = json_object_get(one, "spec");
        for (size_t k = (size_t)lb_rank(a); k < json_array_size(spec); k++)
            if (!json_is_null(json_array_get(spec, k))) return true;
    }
    return false;
}

/* Entries of the spec that a lacks must be those in the report. */
static bool reported(const lb_array *a, const json_t *spec,
                     const lb_spec_report *r, note *n)
{
    const lb_spec is = lb_sharding_of(a);
    for (size_t k = 0; k < json_array_size(spec); k++) {
        const json_t *const e = json_array_get(spec, k);
        bool said = false;
        for (int i = 0; i < r->n && i < LB_MAX_CHANGES; i++)
            said =
                said || (r->change[i].entry == (int)k && r->change[i].why[0]);
        const bool asked = !json_is_null(e);
        const bool has = (int)k < is.n && is.entry[k].n;
        const bool past = (int)k >= lb_rank(a);
        if (said != ((asked && !has) || past))
            return note_fail(n, "entry %zu was %sreported", k,
                             said ? "" : "not ");
    }
    return true;
}

/* The package keeps the spec when it transposes. Its placements are correct
 * only for int8, which is not requantized. */
static bool check_transposed(lb_ctx *cx, lb_array *a, const json_t *result,
                             note *n)
{
    lb_array *const t = lb_transpose(cx, a, NULL);
    if (!t) return library_failed(cx, n, "transposing");
    const lb_spec was = lb_sharding_of(a), is = lb_sharding_of(t);
    lb_spec turned = {.n = lb_rank(a)};
    for (int k = 0; k < was.n; k++)
        turned.entry[lb_rank(a) - 1 - k] = was.entry[k];
    if (!lb_spec_equal(lb_mesh_grid(lb_mesh_of(a)), &is, &turned))
        return note_fail(n, "transposing did not permute the spec");
    const json_t *const parts =
        json_object_get(json_object_get(result, "transposed"), "components");
    return strcmp(lb_format_of(a), "int8") != 0 ||
           same_components(cx, t, parts, n);
}

typedef struct {
    const json_t *it, *spec, *result; /* result NULL: refused */
    const char *how;
    lb_quant_config config;
} component_job;

static lb_array *numbers(lb_ctx *cx, lb_shape shape)
{
    return lb_random_normal(cx, (lb_key){1, 2}, LB_F32, shape);
}

/* Shards with relaxed parsing, by the method named in `how`. */
static lb_array *place(lb_ctx *cx, lb_mesh *mesh, const mesh_job *j,
                       lb_spec_report *r)
{
    const component_job *const c = j->user;
    lb_array *q = lb_quantize(cx, numbers(cx, j->shape), &c->config);
    r->strict_names = !strstr(c->how, "PartitionSpec");
    if (!strncmp(c->how, "reshard", 7)) q = lb_shard(cx, mesh, q, "P()");
    return lb_shard_relaxed(cx, mesh, q, j->spec, r);
}

static bool check_placed(lb_ctx *cx, lb_mesh *mesh, const mesh_job *j, note *n)
{
    const component_job *const c = j->user;
    lb_spec_report r = {0};
    lb_array *const a = place(cx, mesh, j, &r);
    if (!c->result)
        return a ? note_fail(n, "it is taken") : (lb_clear(cx), true);
    if (!a) return library_failed(cx, n, "placing");
    if (!lb_is_sharded(a)) return note_fail(n, "it is not sharded");
    const json_t *const parts = json_object_get(c->result, "components");
    if (!same_components(cx, a, parts, n) || !reported(a, c->spec, &r, n) ||
        !check_transposed(cx, a, c->result, n))
        return false;
    if (cuts_inside(a, parts)) return true;
    /* A NamedSharding is applied again after materializing. */
    lb_array *m = lb_materialize(cx, a);
    if (r.strict_names) m = lb_shard_relaxed(cx, mesh, m, j->spec, &r);
    if (!m) return library_failed(cx, n, "materializing");
    return same_placement(m, json_object_get(c->result, "materialized"), false,
                          "the materialized array", n);
}

/* Quantizing keeps the sharding, or is refused if blocks would be split, even
 * where the package accepts it. */
static bool check_quantized(lb_ctx *cx, lb_mesh *mesh, const mesh_job *j,
                            note *n)
{
    const component_job *const c = j->user;
    lb_array *const a = lb_shard(cx, mesh, numbers(cx, j->shape), j->spec);
    if (!a || !c->result) {
        const bool ok = !a && !c->result;
        lb_clear(cx);
        return ok || note_fail(n, a ? "it is taken" : "it is refused");
    }
    lb_array *const q = lb_quantize(cx, a, &c->config);
    const lb_spec want = lb_sharding_of(a), got = lb_sharding_of(q);
    if (!q) { /* then sharding the quantized array must fail as well */
        const bool blocks = lb_error_status(cx) == LB_E_SHAPE &&
                            strstr(lb_error(cx), "inside blocks");
        lb_clear(cx);
        if (!blocks) return note_fail(n, "it is refused");
        lb_array *const w = lb_quantize(cx, numbers(cx, j->shape), &c->config);
        const bool taken = lb_shard(cx, mesh, w, j->spec) != NULL;
        lb_clear(cx);
        return !taken || note_fail(n, "it is refused, and sharding it is not");
    }
    if (!lb_spec_equal(lb_mesh_grid(mesh), &want, &got))
        return note_fail(n, "quantizing changed the spec");
    return same_components(cx, q, json_object_get(c->result, "components"),
                           n) &&
           check_transposed(cx, q, c->result, n);
}

static bool check_rank(lb_ctx *cx, lb_mesh *mesh, void *job, note *n)
{
    const mesh_job *const j = job;
    const component_job *const c = j->user;
    if (strstr(c->how, "without a mesh")) { /* must be refused */
        lb_array *const a = lb_shard(cx, NULL, numbers(cx, j->shape), j->spec);
        const bool ok = !a && lb_error_status(cx);
        lb_clear(cx);
        return ok || note_fail(n, "it is taken without a mesh");
    }
    return strncmp(c->how, "quantize", 8) ? check_placed(cx, mesh, j, n)
                                          : check_quantized(cx, mesh, j, n);
}

static bool check_component(checker *c, const json_t *it)
{
    static const char *const known[] = {
        "with_sharding(NamedSharding)",
        "with_mesh_and_axis",
        "reshard(NamedSharding)",
        "with_sharding(PartitionSpec) inside the mesh",
        "with_sharding(PartitionSpec) without a mesh",
        "quantize of an array placed so"};
    component_job own = {.it = it, .spec = json_object_get(it, "spec")};
    mesh_job j = {.it = it, .run = check_rank, .user = &own};
    lb_grid grid;
    note *const n = c->note;
    const char *const format = json_string_value(json_object_get(it, "format"));
    own.how = json_string_value(json_object_get(it, "how"));
    if (json_is_true(json_object_get(it, "accepted")))
        own.result = json_object_get(it, "result");
    if (!format || !own.how) return note_fail(n, "no format, or no way");
    bool is_known = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        is_known = is_known || !strcmp(own.how, known[i]);
    if (!is_known)
        return note_skip(n, "the way '%.64s' is not known here", own.how);
    const bool axis = !strcmp(own.how, "with_mesh_and_axis");
    if (!read_format(format, &own.config, n) ||
        !read_grid(c->cx, it, j.mesh, sizeof j.mesh, &grid, n) ||
        !json_shape(json_object_get(it, "array"), "array", &j.shape, n) ||
        !spec_text(own.spec, axis ? "" : "P", j.spec, sizeof j.spec, n))
        return false;
    return run_mesh(&j, lb_grid_size(&grid), n);
}

/* ---- axes
 * ---------------------------------------------------------------------- */

static bool check_axis(checker *c, const json_t *it)
{
    const lb_shape any = {LB_MAX_RANK, {0}};
    const char *const axis = json_string_value(json_object_get(it, "axis"));
    char words[256];
    lb_grid grid;
    lb_spec got, want;
    note *const n = c->note;
    if (!axis) return note_fail(n, "no axis");
    if (!lb_grid_parse(c->cx, "dp=2,tp=4", &grid) ||
        !spec_text(json_object_get(it, "spec"), "P", words, sizeof words, n))
        return false;
    if (!lb_spec_parse(c->cx, &grid, any, axis, NULL, &got) ||
        !lb_spec_parse(c->cx, &grid, any, words, NULL, &want))
        return library_failed(c->cx, n, "reading the axis");
    return (got.n == want.n && lb_spec_equal(&grid, &got, &want)) ||
           note_fail(n, "%s is not %s", axis, words);
}

/* ---- the file
 * -------------------------------------------------------------------- */

void seed_sharding(runner *r, const json_t *root)
{
    static const struct {
        const char *list;
        bool (*check)(checker *, const json_t *);
    } kinds[] = {{"maps", check_map},
                 {"refused", check_refusal},
                 {"components", check_component},
                 {"with_mesh_and_axis", check_axis}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const json_t *const list = json_object_get(root, kinds[k].list);
        for (size_t i = 0; i < json_array_size(list); i++) {
            char name[64];
            note n;
            case_open(r, &n);
            checker c = {.cx = r->cx, .note = &n};
            snprintf(name, sizeof name, "sharding.json %s %zu", kinds[k].list,
                     i);
            kinds[k].check(&c, json_array_get(list, i));
            case_close(r, &n, name, c.digest);
        }
    }
}
