/* verb_cpu.c - `lowbit cpu`: what the library makes of this machine. */
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
    if (!cx) return FAILED;
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
    .summary = "Says what CPU this is and which code will run on it",
    .help = "level: the instruction set in use, which LOWBIT_ISA=ref, avx2, .. "
            "can hold back; best:\nthe strongest that the CPU and its system "
            "allow; tuning: the family whose numbers\nare used; formats: those "
            "with code of their own for the level.",
    .examples = "LOWBIT_ISA=avx2 lowbit cpu",
    .options = options_taken,
    .run = run,
};
