/* verb_formats.c - `lowbit formats`: the types to quantize to. All columns are
 * measured: a matrix of Gaussian values is quantized to each. */
#include <math.h>
#include <string.h>

#include "verb.h"

/* Layouts of safetensors, and kinds of files, that may store a type. */
static const struct {
    const char *name, *kind, *layout;
    lb_compat compat;
} place[] = {
    {"native", "safetensors", "native", LB_COMPAT_NATIVE},
    {"bnb", "safetensors", "bnb", LB_COMPAT_BNB_CPU},
    {"bitnet", "safetensors", "bitnet", LB_COMPAT_NATIVE},
    {"eformer", "safetensors", "eformer", LB_COMPAT_NATIVE},
    {"mlx", "safetensors", "mlx", LB_COMPAT_NATIVE},
    {"gptq", "safetensors", "gptq", LB_COMPAT_NATIVE},
    {"awq", "safetensors", "awq", LB_COMPAT_NATIVE},
    {"compressed-tensors", "safetensors", "compressed-tensors",
     LB_COMPAT_NATIVE},
    {"fp8", "safetensors", "fp8", LB_COMPAT_NATIVE},
    {"gguf", "gguf", NULL, LB_COMPAT_NATIVE},
};
enum { N_PLACES = sizeof place / sizeof *place };

typedef struct facts {
    const char *format;
    double bits, nrmse;
    bool kernel;
    bool fits[N_PLACES];
} facts;

/* False if nothing can be quantized to it. */
static bool look_at(lb_ctx *cx, lb_array *x, const char *format, facts *f)
{
    const lb_quant_config config = {.format = format};
    lb_difference d = {0};
    lb_array *q = lb_quantize(cx, x, &config);
    if (!q || !lb_compare(cx, x, q, &d)) {
        lb_clear(cx);
        return false;
    }
    f->format = format;
    f->bits = 8 * (double)lb_nbytes(q) / (double)lb_size(q);
    f->nrmse = lb_difference_nrmse(&d);
    f->kernel = lb_kernel_available(cx, format);
    for (int i = 0; i < N_PLACES; i++) {
        const lb_quant_config c = {.format = format, .compat = place[i].compat};
        const lb_planned p = {.name = "w.weight",
                              .dtype = LB_F32,
                              .shape = lb_shape_of(x),
                              .config = &c};
        f->fits[i] = lb_can_save(cx, &p, place[i].kind, place[i].layout);
        lb_clear(cx); /* a compat that the format lacks is not an error here */
    }
    return true;
}

static void print_row(const lb_ctx *cx, const facts *f)
{
    printf("%-10s %11.4g %9.4f  %-11s", f->format, f->bits, f->nrmse,
           f->kernel ? lb_isa(cx) : "portable");
    for (int i = 0; i < N_PLACES; i++)
        if (f->fits[i]) printf(" %s", place[i].name);
    putchar('\n');
}

static void json_row(const lb_ctx *cx, json *j, const facts *f)
{
    json_open(j, '{');
    json_string(json_key(j, "format"), f->format);
    json_double(json_key(j, "bits_per_weight"), f->bits);
    json_double(json_key(j, "nrmse"), f->nrmse);
    json_string(json_key(j, "kernels"), f->kernel ? lb_isa(cx) : "portable");
    json_open(json_key(j, "layouts"), '[');
    for (int i = 0; i < N_PLACES; i++)
        if (f->fits[i]) json_string(j, place[i].name);
    json_close(j, ']');
    json_close(j, '}');
}

/* Formats that can be loaded, but not quantized to. */
static void put_read_only(const lb_ctx *cx, json *j)
{
    const char *format;
    int column = 0;
    if (j)
        json_open(json_key(j, "read_only"), '[');
    else
        column = printf("\nread only:");
    for (int k = 1; (format = lb_format_name(cx, k)); k++) {
        if (lb_can_quantize(cx, format)) continue;
        if (j)
            json_string(j, format);
        else if (column + (int)strlen(format) > 78)
            column = printf("\n           %s", format);
        else
            column += printf(" %s", format);
    }
    if (j)
        json_close(j, ']');
    else
        putchar('\n');
}

static verdict run(const arguments *a)
{
    const bool as_json = a->count[OPTION_JSON] != 0;
    json *j = as_json ? json_begin("formats") : NULL;
    const char *format;
    lb_ctx *cx = context_open(0);
    if (!cx) return complaint_verdict();
    lb_array *x =
        lb_random_normal(cx, (lb_key){0}, LB_F32, LB_SHAPE(256, 1024));
    if (as_json)
        json_open(json_key(j, "formats"), '[');
    else
        printf("%-10s %11s %9s  %-11s %s\n", "type", "bits/weight", "nrmse",
               "kernels", "stored in");
    for (int k = 0; (format = lb_format_name(cx, k)); k++) {
        facts f;
        lb_enter(cx);
        if (!lb_can_quantize(cx, format) || !look_at(cx, x, format, &f)) {
            lb_leave(cx);
            continue;
        }
        if (as_json) {
            json_next(j);
            json_row(cx, j, &f);
        } else
            print_row(cx, &f);
        lb_leave(cx);
    }
    if (as_json) json_close(j, ']');
    put_read_only(cx, j);
    if (as_json) json_end(j);
    const verdict v = x ? DONE : complain_of(cx);
    lb_close(cx);
    return v;
}

static const option_id options_taken[] = {OPTION_JSON, N_OPTIONS};

const verb verb_formats = {
    .name = "formats",
    .operands = "",
    .summary = "List the types that arrays can be quantized to",
    .help = "bits/weight: storage per value, scales included, for a 256 x 1024 "
            "matrix and the type's defaults.\n\n"
            "nrmse: relative quantization error of Gaussian values (root mean "
            "square of the error over that of the values).\n\n"
            "kernels: instruction set of the encoder and decoder.\n\n"
            "stored in: layouts of safetensors files (native, bnb, bitnet, "
            "eformer, mlx, ...), or gguf.",
    .examples = "lowbit formats",
    .options = options_taken,
    .run = run,
};
