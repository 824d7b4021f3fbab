/* verb_cpu.c - `lowbit cpu`: the CPU, and the kernels selected for it. */
#include <string.h>

#include "verb.h"

static void line(json *j, const char *key, const char *text)
{
    if (j) {
        json_key(j, key);
        json_string(j, text);
    } else {
        printf("%-8s ", key);
        put_text(stdout, text, strlen(text));
        putchar('\n');
    }
}

static void list_formats(const lb_ctx *cx, json *j)
{
    const char *format;
    int n = 0;
    if (j) {
        json_open(json_key(j, "formats"), '[');
    } else
        printf("%-8s", "formats");
    for (int k = 0; (format = lb_format_name(cx, k)); k++) {
        if (!lb_kernel_available(cx, format)) continue;
        n++;
        if (j)
            json_string(j, format);
        else
            printf(" %s", format);
    }
    if (j)
        json_close(j, ']');
    else
        puts(n ? "" : " none");
}

static verdict run(const arguments *a)
{
    lb_ctx *cx = context_open(0);
    if (!cx) return complaint_verdict();
    json *j = a->count[OPTION_JSON] ? json_begin("cpu") : NULL;
    line(j, "cpu", lb_cpu_name(cx));
    line(j, "level", lb_isa(cx));
    line(j, "best", lb_isa_best());
    line(j, "tuning", lb_cpu_family(cx));
    if (j) {
        json_int(json_key(j, "threads"), lb_threads(cx));
    } else
        printf("%-8s %d\n", "threads", lb_threads(cx));
    list_formats(cx, j);
    if (j) json_end(j);
    lb_close(cx);
    return DONE;
}

static const option_id options_taken[] = {OPTION_JSON, N_OPTIONS};

const verb verb_cpu = {
    .name = "cpu",
    .operands = "",
    .summary = "Show the CPU and the kernels selected for it",
    .help = "level: instruction set in use; set LOWBIT_ISA=ref, avx2, ... to "
            "cap it. best: highest level that the CPU and the operating system "
            "support. tuning: CPU family whose tuning parameters are used. "
            "formats: types with kernels for the level.",
    .examples = "lowbit cpu\n"
                "LOWBIT_ISA=avx2 lowbit cpu",
    .options = options_taken,
    .run = run,
};
