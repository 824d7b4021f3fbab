/* test_outerf32.c - the kernels of outerf32.h: packed panels, bit by bit,
 * against values decoded one by one, and products against sums in double
 * precision, with guard pages around all memory. */
/* ctest: simde skip-tsan skip-ref */
#include "base/cpu.h"
#include "check.h"
#include "draws.h"
#include "fenced.h"
#include "kernels/outerf32.h"
#include "label_model.h"

enum {
    MR = LB_OUTERF32_MAX_MR,
    NR = LB_OUTERF32_MAX_NR,
    DEEP = 256,
    ROOM = 1 << 16,
    STEP = 37 /* bytes from row to row */
};

static fenced codes_room, scale_room, x_room, c_room, keep_room;

typedef struct {
    int nr;
    lb_outerf32_table table;
    lb_outerf32_lines w;
    int rows, n;
    bool first;
    int64_t ldc;
    float *x;
} subject;

static float *random_floats(const fenced *room, int64_t n)
{
    float *const v = fenced_end(room, (size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = random_float();
    return v;
}

/* Levels and scales: any finite values. */
static void make_table(subject *s, int bits, bool high_first)
{
    static const float odd[] = {0, -0.0f, 0x1p-140f, -0x1p-126f, 0x1p100f};
    float level[16];
    for (int i = 0; i < 16; i++)
        level[i] = random_bits() % 4 ? random_float() : odd[random_bits() % 5];
    lb_outerf32_table_of(&s->table, bits, high_first, level);
    CHECK(bits == 8 || s->table.level[0] == level[0]);
}

static const lb_dtype labels[] = {LB_F32, LB_BF16, LB_F16};

static void make_lines(subject *s, int mr, int64_t k, int64_t scale_step,
                       bool each)
{
    /* The last row has no more bytes than are read. */
    const int64_t bytes = s->table.bits == 1 ? 4 : s->nr * s->table.bits / 8;
    const int64_t size = (k - 1) * STEP + bytes;
    uint8_t *const codes = fenced_end(&codes_room, (size_t)size);
    for (int64_t i = 0; i < size; i++)
        codes[i] = (uint8_t)random_bits();
    s->w = (lb_outerf32_lines){
        .table = &s->table,
        .codes = codes,
        .step = STEP,
        .scale =
            random_floats(&scale_room, each ? s->nr : (k - 1) * scale_step + 1),
        .scale_step = each ? 0 : scale_step,
        .each = each,
        .rounds = labels[random_bits() % 3],
        .k = k,
        .ask = random_bits(), /* anywhere */
        .ask_step = (int64_t)(random_bits() % 10000) - 5000,
        .ask_shift = (int)(random_bits() % 5),
    };
    s->rows = 1 + (int)(random_bits() % (uint32_t)mr);
    s->n =
        random_bits() % 2 ? s->nr : 1 + (int)(random_bits() % (uint32_t)s->nr);
    s->first = random_bits() % 2;
    s->ldc = NR + 3;
    s->x = random_floats(&x_room, k * s->rows);
}

static float product(const subject *s, int64_t k, int64_t j)
{
    const lb_outerf32_table *t = &s->table;
    const uint8_t *codes = s->w.codes + k * STEP;
    const float scale = s->w.scale[s->w.each ? j : k * s->w.scale_step];
    if (t->bits == 8) return (float)(int8_t)codes[j] * scale;
    const int fields = 8 / t->bits, at = (int)(j % fields);
    const int field = t->high_first ? fields - 1 - at : at;
    const int code = codes[j / fields] >> (field * t->bits);
    return t->level[code & ((1 << t->bits) - 1)] * scale;
}

static float number(const subject *s, int64_t k, int64_t j)
{
    return (float)label_rounded(s->w.rounds, (double)product(s, k, j));
}

static bool kept_well(const subject *s, const float *keep)
{
    for (int64_t k = 0; k < s->w.k; k++)
        for (int64_t j = 0; j < s->nr; j++) {
            const float want = number(s, k, j);
            if (memcmp(keep + k * s->nr + j, &want, sizeof want) != 0)
                return false;
        }
    return true;
}

/* Element (i, j), which was `old`; elements past n are unchanged. */
static bool summed_well(const subject *s, int64_t i, int64_t j, float old,
                        float got)
{
    if (j >= s->n) return memcmp(&old, &got, sizeof got) == 0;
    double sum = s->first ? 0 : (double)old, most = fabs(sum);
    for (int64_t k = 0; k < s->w.k; k++) {
        const double term =
            (double)s->x[k * s->rows + i] * (double)number(s, k, j);
        sum += term;
        most += fabs(term);
    }
    if (!isfinite(sum)) return !isfinite(got); /* too large for f16 */
    return fabs((double)got - sum) <= (double)(s->w.k + 2) * 0x1p-24 * most +
                                          (double)(s->w.k + 2) * 0x1p-149;
}

static void check_tile(const lb_outerf32 *kernel, const subject *s)
{
    const int64_t size = (s->rows - 1) * s->ldc + s->n;
    float *const c = random_floats(&c_room, size);
    const size_t keep_size = (size_t)(s->w.k * s->nr) * sizeof(float);
    float *const keep = fenced_end(&keep_room, keep_size);
    float old[MR * (NR + 3)];
    memcpy(old, c, (size_t)size * sizeof *c);
    kernel->tile(&s->w, s->rows, s->x, s->first, s->n, c, s->ldc, keep);
    bool ok = kept_well(s, keep) && fenced_kept(&keep_room, keep, keep_size) &&
              fenced_kept(&c_room, c, (size_t)size * sizeof *c);
    for (int64_t e = 0; e < size; e++)
        ok = ok && summed_well(s, e / s->ldc, e % s->ldc, old[e], c[e]);
    if (check_fails(ok))
        fprintf(
            stderr,
            "%s: %d bits %s, %lld lines, %d rows, %d columns, scales %d %lld\n",
            kernel->name, s->table.bits, lb_dtype_name(s->w.rounds),
            (long long)s->w.k, s->rows, s->n, s->w.each,
            (long long)s->w.scale_step);
}

static void check_kernel(const lb_outerf32 *kernel)
{
    for (int bits = 1; bits <= 8; bits *= 2)
        for (int64_t k = 1; k <= DEEP; k += k < 70 ? 1 : 31)
            for (int i = 0; i < 24; i++) {
                if (check_thins_short()) continue;
                subject s = {.nr = kernel->nr};
                make_table(&s, bits, i % 2);
                make_lines(&s, kernel->mr, k, i % 3, bits == 8 && i % 4 == 3);
                check_tile(kernel, &s);
            }
}

int main(void)
{
    codes_room = fenced_open(ROOM);
    scale_room = fenced_open(ROOM);
    x_room = fenced_open(ROOM);
    c_room = fenced_open(ROOM);
    keep_room = fenced_open(ROOM);
    check_kernel(&lb_outerf32_ref);
    for (int level = 0; level <= LB_LEVEL_AMX; level++) {
        const lb_cpu cpu = {.level = (lb_level)level};
        const lb_outerf32 *kernel = lb_outerf32_for(&cpu);
        if (kernel && lb_level_available(cpu.level)) check_kernel(kernel);
    }
    fenced_close(&codes_room);
    fenced_close(&scale_room);
    fenced_close(&x_room);
    fenced_close(&c_room);
    fenced_close(&keep_room);
    return check_report("outerf32");
}
