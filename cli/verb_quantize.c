/* verb_quantize.c - `lowbit quantize`: quantizes a checkpoint. */
#include <string.h>

#include "interrupt.h"
#include "job_talk.h"
#include "launch.h"
#include "places.h"

/* ---- the command line ---------------------------------------------------- */

enum { N_LAYOUTS = 9 };
static const char *const layouts[N_LAYOUTS + 1] = {
    "native", "bnb",  "bitnet", "eformer",
    "mlx",    "gptq", "awq",    "compressed-tensors",
    "fp8",    NULL};

/* Layout bnb is read by bitsandbytes: its arithmetic is the default there. */
static lb_compat layout_compat(const char *layout)
{
    return strcmp(layout, "bnb") == 0 ? LB_COMPAT_BNB_CPU : LB_COMPAT_NATIVE;
}

static bool read_config(const arguments *a, int layout, lb_quant_config *c)
{
    static const char *const compat[] = {"native", "eformer", "bnb-cuda",
                                         "bnb-cpu", NULL};
    static const char *const scale[] = {"",    "none",  "tensor",
                                        "row", "block", NULL};
    static const char *const threshold[] = {"std", "absmean", NULL};
    static const char *const class[] = {"autobitlinear", "bitlinear", NULL};
    int how = (int)layout_compat(layouts[layout]), of = LB_SCALE_DEFAULT,
        where = LB_THRESHOLD_STD;
    int divides = 0;
    if (!argument_word(a, OPTION_COMPAT, compat, &how) ||
        !argument_word(a, OPTION_SCALE, scale, &of) ||
        !argument_word(a, OPTION_THRESHOLD, threshold, &where) ||
        !argument_word(a, OPTION_LINEAR_CLASS, class, &divides) ||
        !argument_number(a, OPTION_BLOCK_SIZE, 1, INT32_MAX, &c->block_size))
        return false;
    int64_t axis = 0;
    if (!argument_number(a, OPTION_AXIS, -LB_MAX_RANK, LB_MAX_RANK - 1, &axis))
        return false;
    if (a->count[OPTION_AXIS]) c->axes = (lb_axes){1, {(int)axis}};
    c->format = a->value[OPTION_TYPE];
    c->compat = (lb_compat)how;
    c->scale = (lb_scale)of;
    c->threshold = (lb_threshold)where;
    if (divides) c->meaning = LB_MEANS_INVERSE;
    c->double_quant = a->count[OPTION_DOUBLE_QUANT] != 0;
    return true;
}

static bool check_places(const arguments *a)
{
    const bool aims =
        a->count[OPTION_TARGET_BPW] + a->count[OPTION_TARGET_SIZE];
    if (!place_is_free(a, "quantize")) return false;
    if (!a->value[OPTION_TYPE] && !aims) {
        complain(USAGE, "quantize needs --type, --target-bpw or --target-size; "
                        "see lowbit quantize --help");
        return false;
    }
    return true;
}

/* ---- selection and types ------------------------------------------------- */

static bool select_arrays(const arguments *a, lb_ctx *cx, lb_selection *s)
{
    bool ok = s != NULL;
    for (int i = 0; ok && i < a->n_given; i++) {
        const char *text = a->given[i].value;
        switch (a->given[i].id) {
        case OPTION_INCLUDE:
            ok = lb_selection_include(cx, s, text);
            break;
        case OPTION_EXCLUDE:
            ok = lb_selection_exclude(cx, s, text);
            break;
        case OPTION_OVERRIDE:
            ok = lb_selection_override(cx, s, text);
            break;
        case OPTION_RECIPE:
            ok = lb_selection_recipe(cx, s, text);
            break;
        default:
            break;
        }
    }
    return ok;
}

/* In GGUF files, other types for arrays whose rows are not a multiple of the
 * type's block size. */
enum { OTHERS = 3 };

static const char *target_option(const arguments *a)
{
    return a->count[OPTION_TARGET_BPW]    ? "--target-bpw"
           : a->count[OPTION_TARGET_SIZE] ? "--target-size"
                                          : NULL;
}

/* With a target size, types and their settings are chosen: an option for one
 * type would have no effect. */
static bool type_is_chosen(const arguments *a)
{
    static const struct {
        option_id id;
        const char *name;
    } of_type[] = {
        {OPTION_TYPE, "type"},
        {OPTION_BLOCK_SIZE, "block-size"},
        {OPTION_DOUBLE_QUANT, "double-quant"},
        {OPTION_SCALE, "scale"},
        {OPTION_THRESHOLD, "threshold"},
        {OPTION_AXIS, "axis"},
        {OPTION_LINEAR_CLASS, "linear-class"},
    };
    for (size_t i = 0; i < sizeof of_type / sizeof *of_type; i++) {
        if (!a->count[of_type[i].id]) continue;
        complain(USAGE,
                 "%s chooses types and their settings; it cannot be combined "
                 "with --%s (use --override for single arrays)",
                 target_option(a), of_type[i].name);
        return false;
    }
    return true;
}

static bool read_target(const arguments *a, lb_quantize_options *o,
                        lb_quant_config other[OTHERS])
{
    static const lb_quant_config blocks[OTHERS] = {
        {.format = "iq4_nl"}, {.format = "q8_0"}, {.format = "tq2_0"}};
    static const char *const how[] = {"keep", "error", "adjust", NULL};
    const bool gguf = o->kind && strcmp(o->kind, "gguf") == 0;
    int fallback = 0;
    if (!argument_real(a, OPTION_TARGET_BPW, 0.1, 64, &o->target_bits) ||
        !argument_bytes(a, OPTION_TARGET_SIZE, 1, &o->target_bytes) ||
        !argument_word(a, OPTION_SHAPE_FALLBACK, how, &fallback))
        return false;
    if (a->count[OPTION_TARGET_BPW] && a->count[OPTION_TARGET_SIZE]) {
        complain(USAGE, "use either --target-bpw or --target-size, not both");
        return false;
    }
    const bool aims = o->target_bits > 0 || o->target_bytes;
    if (aims && !type_is_chosen(a)) return false;
    if (aims && o->layout && strcmp(o->layout, "native") != 0) {
        complain(USAGE, "--target-bpw and --target-size mix types, which "
                        "requires --layout native or GGUF");
        return false;
    }
    o->fallback = (lb_shape_fallback)fallback;
    /* Types of other layouts have no restrictions on shapes; and with a target
     * size all types are candidates anyway. */
    o->n_other = gguf && !aims ? OTHERS : 0;
    for (int i = 0; i < o->n_other; i++)
        other[i] = blocks[i];
    o->other = other;
    if (aims) o->config.format = gguf ? "q4_0" : "nf4";
    return true;
}

/* transformers and bitsandbytes load these layouts. NULL: another one. */
static const char *loader_layout(const char *layout)
{
    const bool has =
        layout && (strcmp(layout, "bnb") == 0 || strcmp(layout, "bitnet") == 0);
    return has ? layout : NULL;
}

/* A typical weight quantized with this config: a matrix, or of higher rank if
 * --axis requires it. */
static lb_planned plain_weight(const lb_quant_config *c)
{
    const int axis = c->axes.n ? c->axes.axis[0] : 0;
    const int rank = axis < 0 ? -axis : axis + 1;
    lb_shape shape = {.rank = rank < 2 ? 2 : rank};
    for (int k = 0; k < shape.rank; k++)
        shape.dim[k] = k < shape.rank - 2 ? 1 : 256;
    return (lb_planned){
        .name = "--type", .dtype = LB_F32, .shape = shape, .config = c};
}

static bool can_be(lb_ctx *cx, const lb_quant_config *c)
{
    const lb_planned p = plain_weight(c);
    const bool ok = lb_can_save(cx, &p, NULL, NULL);
    lb_clear(cx);
    return ok;
}

/* With a type that has a scale per tensor or per block, --block-size implies
 * blocks. */
static void imply_blocks(lb_ctx *cx, lb_quant_config *c)
{
    if (!c->block_size || c->scale || can_be(cx, c)) return;
    c->scale = LB_SCALE_BLOCK;
    if (!can_be(cx, c)) c->scale = LB_SCALE_DEFAULT;
}

/* The library would not mention --linear-class in its message. */
static bool class_is_wrong(lb_ctx *cx, const lb_quant_config *c)
{
    lb_quant_config other = *c;
    other.meaning = LB_MEANS_SCALE;
    if (c->meaning != LB_MEANS_INVERSE || can_be(cx, c) || !can_be(cx, &other))
        return false;
    complain(USAGE, "--linear-class bitlinear does not apply to %s", c->format);
    return true;
}

/* The library would find this when it quantizes the first array. */
static bool double_quant_is_wrong(lb_ctx *cx, const lb_quant_config *c)
{
    lb_quant_config other = *c;
    other.double_quant = false;
    if (!c->double_quant || !can_be(cx, &other)) return false;
    lb_enter(cx);
    lb_array *x = lb_zeros(cx, LB_F32, plain_weight(c).shape);
    const bool wrong = lb_quantize(cx, x, &other) && !lb_quantize(cx, x, c);
    lb_leave(cx);
    lb_clear(cx);
    if (wrong)
        complain(USAGE,
                 "--double-quant does not apply to %s, which has no "
                 "separate scales",
                 c->format);
    return wrong;
}

/* Whether a layout, or a kind of file, can store a type with its default
 * settings. */
static bool can_store(lb_ctx *cx, const char *format, const char *kind,
                      int layout)
{
    const lb_quant_config c = {.format = format,
                               .compat = layout_compat(layouts[layout])};
    lb_planned p = plain_weight(&c);
    p.name = "w.weight";
    const bool ok = lb_can_save(cx, &p, kind, layouts[layout]);
    lb_clear(cx);
    return ok;
}

/* A type that the layout cannot store whatever the settings. The library would
 * name the compat that --layout implies. */
static bool layout_is_wrong(lb_ctx *cx, const lb_quantize_options *o)
{
    enum { NONE = N_LAYOUTS };
    char others[64] = "";
    int given = 0, n = 0, other[N_LAYOUTS];
    const char *const format = o->config.format;
    if (!o->layout || (o->kind && strcmp(o->kind, "safetensors") != 0))
        return false;
    while (given < N_LAYOUTS && strcmp(layouts[given], o->layout) != 0)
        given++;
    for (int k = 0; k < N_LAYOUTS; k++)
        if (can_store(cx, format, NULL, k))
            other[n++] = k;
        else if (k == given)
            given = NONE;
    if (given != NONE || !n) return false;
    for (int i = 0; i < n; i++) {
        const size_t used = strlen(others);
        snprintf(others + used, sizeof others - used, "%s%s",
                 !i          ? ""
                 : i < n - 1 ? ", "
                             : " or ",
                 layouts[other[i]]);
    }
    if (can_store(cx, format, "gguf", 0))
        complain(USAGE,
                 "%s is a GGUF type and cannot be stored in layout %s; use "
                 "--layout %s or write a .gguf file",
                 format, o->layout, others);
    else
        complain(USAGE, "layout %s cannot store %s; use --layout %s", o->layout,
                 format, others);
    return true;
}

/* Whether the type exists, and whether a typical weight can be stored in it:
 * otherwise the job would not quantize anything as requested. */
static bool has_place(lb_ctx *cx, const lb_quantize_options *o)
{
    lb_planned p = plain_weight(&o->config);
    if (class_is_wrong(cx, &o->config) ||
        double_quant_is_wrong(cx, &o->config) || layout_is_wrong(cx, o))
        return false;
    const bool there = lb_can_save(cx, &p, NULL, NULL);
    p.name = "w.weight";
    if (there && lb_can_save(cx, &p, o->kind, o->layout)) return true;
    if (lb_error_status(cx)) {
        complain_of(cx);
        return false;
    }
    const char *kind = o->kind ? o->kind : "safetensors";
    if (strncmp(kind, "np", 2) == 0)
        complain(USAGE,
                 "%s cannot store quantized arrays; write a .safetensors or "
                 ".gguf file",
                 kind);
    else if (strcmp(kind, "safetensors") == 0)
        complain(USAGE,
                 "layout %s cannot store %s with these settings (see lowbit "
                 "quantize --help)",
                 o->layout, o->config.format);
    else
        complain(USAGE, "GGUF cannot store %s (see `lowbit formats`)",
                 o->config.format);
    return false;
}

static void warn(void *user, const char *text)
{
    const arguments *a = user;
    if (!a->comm || a->comm->rank == 0)
        caution("%s%s", option_dashes(text), text);
}

/* Prints the layout that the job has chosen. */
static void note(void *user, const char *text)
{
    job_talk *t = user;
    snprintf(t->note, sizeof t->note, "%s", text);
}

static verdict run(const arguments *a)
{
    lb_quantize_options o = {.struct_size = sizeof o,
                             .done = job_talk_done,
                             .progress = job_talk_progress};
    lb_quant_config other[OTHERS];
    job_talk t;
    int64_t jobs = 0;
    int layout = 0;
    const char *to = a->value[OPTION_OUTPUT];
    if (!check_places(a) ||
        !argument_word(a, OPTION_LAYOUT, layouts, &layout) ||
        !argument_number(a, OPTION_JOBS, 1, 256, &jobs) ||
        !argument_bytes(a, OPTION_MAX_MEMORY, MEMORY_LEAST, &o.max_memory) ||
        !read_config(a, layout, &o.config))
        return USAGE;
    o.directory = place_is_directory(a);
    /* Without --layout, that of a directory is left to the job. */
    const bool native =
        a->count[OPTION_COMPAT] && o.config.compat == LB_COMPAT_NATIVE;
    if (!o.directory || a->count[OPTION_LAYOUT] || native)
        o.layout = layouts[layout];
    o.kind = !to || o.directory ? NULL : place_kind(to);
    if (!read_target(a, &o, other)) return USAGE;
    verdict v = job_talk_begin(&t, a, "quantize", a->operand[0], to);
    if (v != DONE) return v;
    t.report.target = target_option(a);
    t.report.loader_layout = loader_layout(o.layout);
    o.done_user = o.progress_user = o.note_user = &t;
    o.note = note;
    o.discarded = job_talk_discarded;
    o.discarded_user = &t;
    o.cancel = interrupted;
    o.measure = t.measure;
    o.no_sync = a->count[OPTION_NO_SYNC] != 0;
    o.resume = a->count[OPTION_RESUME] != 0;
    o.verify = a->count[OPTION_VERIFY] != 0;
    o.strict = a->count[OPTION_STRICT] != 0;
    o.dry_run = a->count[OPTION_DRY_RUN] != 0;
    o.comm = a->comm;
    o.warn = warn;
    o.warn_user = (void *)(uintptr_t)a;
    if (a->comm && !jobs) jobs = launch_threads();
    lb_ctx *cx = context_open((int)jobs);
    if (!cx) v = complaint_verdict();
    o.selection = cx ? lb_selection_open(cx) : NULL;
    if (cx && !select_arrays(a, cx, o.selection)) {
        complain_of(cx);
        v = USAGE;
    }
    if (v == DONE) imply_blocks(cx, &o.config);
    if (v == DONE && !has_place(cx, &o)) v = USAGE;
    if (v == DONE && !place_is_model(a, cx, o.kind)) v = USAGE;
    if (v == DONE && !lb_quantize_file(cx, a->operand[0], to, &o))
        v = job_talk_failed(&t, cx);
    v = job_talk_end(&t, cx, v);
    lb_selection_close(o.selection);
    lb_close(cx);
    return v;
}

static const option_id options_taken[] = {OPTION_LINEAR_CLASS,
                                          OPTION_OUTPUT,
                                          OPTION_TYPE,
                                          OPTION_LAYOUT,
                                          OPTION_COMPAT,
                                          OPTION_BLOCK_SIZE,
                                          OPTION_SCALE,
                                          OPTION_THRESHOLD,
                                          OPTION_DOUBLE_QUANT,
                                          OPTION_JOBS,
                                          OPTION_JSON,
                                          OPTION_MAX_MEMORY,
                                          OPTION_NO_SYNC,
                                          OPTION_FORCE,
                                          OPTION_QUIET,
                                          OPTION_REPORT,
                                          OPTION_VERBOSE,
                                          OPTION_RESUME,
                                          OPTION_AXIS,
                                          OPTION_DRY_RUN,
                                          OPTION_INCLUDE,
                                          OPTION_EXCLUDE,
                                          OPTION_OVERRIDE,
                                          OPTION_RECIPE,
                                          OPTION_SHAPE_FALLBACK,
                                          OPTION_STRICT,
                                          OPTION_TARGET_BPW,
                                          OPTION_TARGET_SIZE,
                                          OPTION_VERIFY,
                                          OPTION_CONTAINER_ONLY,
                                          N_OPTIONS};

const verb verb_quantize = {
    .name = "quantize",
    .operands = "SRC",
    .summary = "Quantize a checkpoint",
    .help =
        "SRC is a safetensors, GGUF, npy or npz file, a safetensors index or a "
        "model directory. Norms, embeddings, routers, the output head, 1-D and "
        "tiny arrays are not quantized by default; neither are arrays whose "
        "shape the type or layout does not support, or that would not become "
        "smaller. -v lists each of them with the reason.\n\nA model directory "
        "produces a model directory (other files are copied), unless the "
        "output name ends in .gguf, .safetensors or .npz.\n\nPatterns (RE) are "
        "unanchored Perl-compatible regular expressions. A pattern that "
        "matches nothing is a warning (an error with --strict). Keys of "
        "--override are block_size, axis, double_quant (yes, no), scale, "
        "threshold, compat and nonfinite (error, clamp).\n\nNaN and infinities "
        "are an error, unless an --override sets nonfinite=clamp.\n\nOutput is "
        "atomic: it is written to OUTPUT.partial and renamed when complete; "
        "--resume reuses that file. Under mpirun the processes share the work "
        "and write the same file.",
    .examples =
        "lowbit quantize model.safetensors -o small.safetensors --type nf4\n"
        "lowbit quantize model/ -o small/ --type nf4\n"
        "lowbit quantize model.gguf -o small.gguf --target-size 4.2G\n"
        "lowbit quantize model/ -o small/ --type nf4 --override 'down=int8'\n"
        "mpirun -np 4 lowbit quantize model/ -o small/ --type nf4",
    .n_operands = 1,
    .options = options_taken,
    .run = run,
    .shares = true,
};
