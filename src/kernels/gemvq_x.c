/* gemvq_x.c - the vector, rounded and in the order in which codes come out. */
#define X_TARGET
#define X_TABLE lb_gemvq_loops_ref
#include "kernels/gemvq_x_loops.h"

enum { LINE = 64 };

static size_t lines_of(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

static int64_t groups_of(const lb_gemvq_kernel *q, int64_t k)
{
    return (k + q->group - 1) / q->group;
}

/* The next part of a block of memory; none yet, when only its size is asked. */
static void *take(char *memory, size_t *size, size_t bytes)
{
    char *at = memory ? memory + *size : NULL;
    *size += lines_of(bytes);
    return at;
}

static size_t place(const lb_gemvq_kernel *q, int64_t k, char *memory,
                    lb_gemvq_x *x)
{
    const int64_t groups = groups_of(q, k), n = groups * q->group;
    size_t size = 0;
    *x = (lb_gemvq_x){.k = k, .groups = groups, .unit = 1};
    x->number = take(memory, &size, (size_t)n * sizeof(float));
    if (!q->rows) return size;
    x->slots = take(memory, &size, (size_t)n * slot_size(q->kind));
    if (q->kind == LB_GEMVQ_F32) return size;
    const size_t panels = (size_t)(n / panel_of(q->kind) + 1);
    x->x_scale = take(memory, &size, panels * sizeof(float));
    x->x_sum = take(memory, &size, panels * sizeof(int32_t));
    return size;
}

void lb_gemvq_x_place(const lb_gemvq_kernel *q, int64_t k, void *memory,
                      lb_gemvq_x *x)
{
    place(q, k, memory, x);
}

size_t lb_gemvq_x_size(const lb_gemvq_kernel *q, int64_t k)
{
    lb_gemvq_x x;
    return place(q, k, NULL, &x);
}

/* ---- slots -------------------------------------------------------------- */

void lb_gemvq_places(const lb_gemvq_kernel *q, bool high_first, uint16_t *to)
{
    int n = 1;
    to[0] = 0;
    for (int i = 0; i < 5 && q->order.n[i]; i++) {
        uint16_t *next = to + n;
        for (int d = 1; d < q->order.n[i]; d++)
            for (int s = 0; s < n; s++)
                *next++ = (uint16_t)(to[s] + d * q->order.stride[i]);
        n *= q->order.n[i];
    }
    /* The other end of the byte: places within it are counted from there. */
    for (int s = 0; s < n && high_first; s++)
        to[s] = (uint16_t)(to[s] ^ (8 / q->bits - 1));
}

/* ---- loops -------------------------------------------------------------- */

const lb_gemvq_loops *lb_gemvq_loops_for(const lb_cpu *cpu)
{
#if defined(__x86_64__)
    if (cpu->level >= LB_LEVEL_AVX2) return &lb_gemvq_loops_avx2;
#else
    (void)cpu;
#endif
    return &lb_gemvq_loops_ref;
}

void lb_gemvq_x_range(const lb_cpu *cpu, lb_gemvq_x *x)
{
    lb_gemvq_loops_for(cpu)->range(x);
}

void lb_gemvq_x_order(const lb_cpu *cpu, const lb_gemvq_kernel *q,
                      bool high_first, lb_gemvq_x *x)
{
    lb_gemvq_loops_for(cpu)->order(q, high_first, x);
}

float lb_gemvq_round(const float *x, int64_t n, float most, int32_t *to)
{
    return lb_gemvq_loops_ref.round(x, n, most, to);
}
