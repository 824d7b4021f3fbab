/* select.c - the selection table; see select.h.
 *
 * Bounds on M were measured on Zen 3 (AVX2), Ice Lake and Zen 4 (AVX-512 VNNI).
 * They go by level and not by CPU, because an algorithm fixes the order of a
 * sum.
 */
#include "matmul/select.h"

#include "matmul/operand.h"

enum { MANY = 1 << 30 };

/* Widths of codes, orientations and precisions are sets. */
enum { BITS_1 = 1, BITS_2 = 2, BITS_4 = 4, BITS_8 = 8, BITS_ANY = 15 };
enum { DECODED = 16, ALL = 31 }; /* DECODED: in place of a width, no codes */
enum {
    KN = 1, /* x @ W, W (in, out): rows of W run along memory */
    NK = 2, /* x @ W^T, W (out, in): K does */
    BOTH = 3
};
enum { HIGHEST = 1, FAST = 2, FASTEST = 4, FASTER = 6, PRECISION_ANY = 7 };

typedef struct {
    lb_level from, to;
    int bits, sides, precisions;
    int64_t m_least, m_most; /* rows of x */
    int64_t n_least, k_least;
    int64_t x_most; /* numbers of x, in all batches */
    lb_need need;
    lb_choice choice;
} row;

#define AT(l)     LB_LEVEL_##l, LB_LEVEL_##l
#define AVX2_UP   LB_LEVEL_AVX2, LB_LEVEL_AMX
#define AVX512_UP LB_LEVEL_AVX512, LB_LEVEL_AMX
#define VNNI_UP   LB_LEVEL_AVX512VNNI, LB_LEVEL_AMX
#define LEVEL_ANY LB_LEVEL_REF, LB_LEVEL_AMX

enum { PACKED = 1 << 22 }; /* x that may be packed as a whole */

/* clang-format off */
static const row codes[] = {
    /* gemv: how many rows, says the table below. */
    {LEVEL_ANY, BITS_4 | BITS_8, BOTH, FASTER, 1, MANY, 0, 0, 0,
     LB_NEED_GEMV, {LB_T_I16, 2, &lb_coded_thin}},
    {LEVEL_ANY, BITS_1 | BITS_2, BOTH, FAST, 1, MANY, 0, 0, 0,
     LB_NEED_GEMV, {LB_T_I8, 2, &lb_coded_thin}},
    {LEVEL_ANY, BITS_1 | BITS_2, BOTH, FASTEST, 1, MANY, 0, 0, 0,
     LB_NEED_GEMV, {LB_T_I8, 1, &lb_coded_thin}},
    {LEVEL_ANY, BITS_ANY, BOTH, HIGHEST, 1, MANY, 0, 0, 0,
     LB_NEED_GEMV, {LB_T_F32, 0, &lb_coded_thin}},
    {LEVEL_ANY, BITS_ANY, BOTH, FASTER, 1, MANY, 0, 0, 0,
     LB_NEED_GEMV_F32, {LB_T_F32, 0, &lb_coded_thin}},
    /* Integers. */
    {LEVEL_ANY, BITS_ANY, BOTH, FASTEST, 2, MANY, 0, 0, 0,
     LB_NEED_DIGITS, {LB_T_I8, 1, &lb_gemm}},
    {LEVEL_ANY, BITS_ANY, BOTH, FASTER, 2, MANY, 0, 0, 0,
     LB_NEED_DIGITS, {LB_T_I8, 2, &lb_gemm}},
    {LEVEL_ANY, BITS_ANY, BOTH, FASTER, 2, MANY, 0, 0, 0,
     LB_NEED_DIGITS, {LB_T_I16, 2, &lb_gemm}},
    /* Integers with scales, as long as tiles of rounded values are slower
     * (Zen 5). */
    {LB_LEVEL_REF, LB_LEVEL_AVX2, DECODED, NK, FASTEST, 1, 8, 0, 0, 0,
     LB_NEED_INTEGERS, {LB_T_I8, 1, &lb_integer_rows}},
    {LB_LEVEL_REF, LB_LEVEL_AVX2, DECODED, NK, FAST, 1, 3, 0, 0, 0,
     LB_NEED_INTEGERS, {LB_T_I8, 2, &lb_integer_rows}},
    {AVX512_UP, DECODED, NK, FASTEST, 1, 31, 0, 0, 0,
     LB_NEED_INTEGERS, {LB_T_I8, 1, &lb_integer_rows}},
    {AVX512_UP, DECODED, NK, FAST, 1, 8, 0, 0, 0,
     LB_NEED_INTEGERS, {LB_T_I8, 2, &lb_integer_rows}},
    /* Decoded weights: rounding them is worth it from so many rows on, and not
     * with AVX-512 alone, where 16 bits are no faster than f32. */
    {AT(REF), ALL, BOTH, FASTEST, 32, MANY, 16, 32, 0,
     LB_NEED_DECODED, {LB_T_I8, 1, &lb_gemm}},
    {AT(REF), ALL, BOTH, FASTER, 32, MANY, 16, 32, 0,
     LB_NEED_DECODED, {LB_T_I16, 2, &lb_gemm}},
    {AT(NEON), ALL, BOTH, FASTEST, 32, MANY, 16, 32, 0,
     LB_NEED_DECODED, {LB_T_I8, 1, &lb_gemm}},
    {AT(AVX2), ALL, BOTH, FASTER, 32, MANY, 16, 32, 0,
     LB_NEED_DECODED, {LB_T_I16, 2, &lb_gemm}},
    {VNNI_UP, ALL, BOTH, FASTEST, 32, MANY, 16, 32, 0,
     LB_NEED_DECODED, {LB_T_I8, 1, &lb_gemm}},
    {VNNI_UP, ALL, BOTH, FAST, 32, MANY, 16, 32, 0,
     LB_NEED_DECODED, {LB_T_I16, 2, &lb_gemm}},
    /* f32. */
    {AT(AVX2), BITS_ANY, NK, PRECISION_ANY, 2, 8, 0, 0, PACKED,
     LB_NEED_F32_K, {LB_T_F32, 0, &lb_coded_exact}},
    {AVX512_UP, BITS_ANY, NK, PRECISION_ANY, 2, 12, 0, 0, PACKED,
     LB_NEED_F32_K, {LB_T_F32, 0, &lb_coded_exact}},
    {LEVEL_ANY, BITS_ANY, BOTH, PRECISION_ANY, 2, LB_FEW, 0, 0, 0,
     LB_NEED_F32_PANEL, {LB_T_F32, 0, &lb_gemm_f32}},
};

/* Rows of x that are faster one by one than in any other way, of weights of 1,
 * 2, 4 and 8 bits. Kernels that take some at once: see operand.c. */
static const struct {
    lb_level level;
    int sides, precisions;
    signed char most[4];
} gemv[] = {
    {LB_LEVEL_AVX2, NK, HIGHEST, {1, 1, 1, 1}},
    {LB_LEVEL_AVX2, NK, FAST, {1, 2, 2, 2}},
    {LB_LEVEL_AVX2, NK, FASTEST, {1, 3, 2, 2}},
    {LB_LEVEL_AVX2, KN, HIGHEST, {3, 2, 2, 3}},
    {LB_LEVEL_AVX2, KN, FAST, {1, 3, 2, 3}},
    {LB_LEVEL_AVX2, KN, FASTEST, {2, 2, 2, 3}},
    {LB_LEVEL_AVX512VNNI, NK, HIGHEST, {1, 1, 1, 1}},
    {LB_LEVEL_AVX512VNNI, NK, FAST, {3, 3, 2, 1}},
    {LB_LEVEL_AVX512VNNI, NK, FASTEST, {3, 3, 1, 1}},
    {LB_LEVEL_AVX512VNNI, KN, HIGHEST, {1, 1, 2, 3}},
    {LB_LEVEL_AVX512VNNI, KN, FAST, {4, 3, 3, 2}},
    {LB_LEVEL_AVX512VNNI, KN, FASTEST, {4, 4, 3, 2}},
};
/* clang-format on */
enum { ROWS = sizeof codes / sizeof *codes, GEMV = sizeof gemv / sizeof *gemv };

/* Of operands that are decoded, by the rows of the smaller one. */
static const struct {
    int64_t m_most;
    lb_choice choice;
} decoded[] = {
    {LB_THIN, {LB_T_F32, 0, &lb_thin}},
    {LB_FEW, {LB_T_F32, 0, &lb_few}},
    {INT64_MAX, {LB_T_F32, 0, &lb_gemm_f32}},
};

static int bits_set(int bits)
{
    return bits ? bits : DECODED;
}

static int precision_set(lb_precision precision)
{
    return precision == LB_PRECISION_FASTEST ? FASTEST
           : precision == LB_PRECISION_FAST  ? FAST
                                             : HIGHEST;
}

int64_t lb_gemv_rows(lb_level level, bool along, lb_precision precision,
                     int bits)
{
    const int size = bits == 8 ? 3 : bits == 4 ? 2 : bits == 2 ? 1 : 0;
    if (level == LB_LEVEL_AMX)
        level = LB_LEVEL_AVX512VNNI; /* no gemv of its own */
    for (int i = 0; i < GEMV; i++)
        if (gemv[i].level == level && gemv[i].sides & (along ? NK : KN) &&
            gemv[i].precisions & precision_set(precision))
            return gemv[i].most[size];
    return 1;
}

static bool matches(const row *r, const lb_product *p, const lb_weights *w,
                    const lb_cpu *cpu)
{
    return cpu->level >= r->from && cpu->level <= r->to &&
           r->bits & bits_set(w->coded.bits) &&
           r->sides & (w->coded.along ? NK : KN) &&
           r->precisions & precision_set(p->precision) && w->m >= r->m_least &&
           w->m <= r->m_most && w->n >= r->n_least && p->k >= r->k_least &&
           (!r->x_most || p->k <= r->x_most / (w->m * p->batch)) &&
           lb_operand_can(r->need, r->choice, p, w, cpu);
}

lb_choice lb_algorithm_for(const lb_product *p, const lb_cpu *cpu,
                           lb_weights *w)
{
    if (p->a->type == LB_C_F64) return (lb_choice){LB_T_F64, 0, &lb_plain};
    if (p->a->type != LB_C_F32) return (lb_choice){LB_T_U64, 0, &lb_plain};
    if (p->k > 0 && lb_weights_of(p, cpu, w))
        for (int i = 0; i < ROWS; i++)
            if (matches(&codes[i], p, w, cpu)) return codes[i].choice;
    int i = 0;
    while (lb_min_i64(p->m, p->n) > decoded[i].m_most)
        i++;
    return decoded[i].choice;
}
