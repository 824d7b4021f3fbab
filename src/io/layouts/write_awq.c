/* write_awq.c - writes AWQ's layout, version gemm:
 *
 *     P.qweight  I32 (K, N / 8)
 *     P.qzeros   I32 (K / group, N / 8)
 *     P.scales   F16 (K / group, N)
 *
 * w = scale * (code - zero), 4 bits. Column 8 c + j is nibble {0, 4, 1, 5, 2,
 * 6, 3, 7}[j] of word c.
 */
#include <string.h>

#include "core/core.h"
#include "io/layouts/writers.h"

enum { QWEIGHT, QZEROS, SCALES };
enum { ZERO = 2 }; /* part */

lb_verdict lb_awq_plan(lb_ctx *cx, lb_saver *s, lb_saved *item)
{
    size_t n;
    lb_packed_facts f;
    const lb_described *d = item->described;
    if (!lb_packed_facts_of(d, &f) || d->shape.rank != 2 || f.bias ||
        f.listed || f.bits != 4 || f.scale != LB_F16 || f.row % 2 ||
        f.row % f.group || f.rows % 8 ||
        !lb_name_ends(item->name, ".weight", &n))
        return LB_DECLINED;
    const lb_shape qweight = LB_SHAPE(f.row, f.rows / 8);
    const lb_shape qzeros = LB_SHAPE(f.groups, f.rows / 8);
    const lb_shape scales = LB_SHAPE(f.groups, f.rows);
    const bool ok = lb_saver_tensor(cx, s, item, item->name, n, ".qweight",
                                    NULL, LB_I32, &qweight) &&
                    lb_saver_tensor(cx, s, item, item->name, n, ".qzeros", NULL,
                                    LB_I32, &qzeros) &&
                    lb_saver_tensor(cx, s, item, item->name, n, ".scales", NULL,
                                    LB_F16, &scales);
    return ok ? LB_DONE : LB_FAILED;
}

/* Nibbles of rows, packed across eight rows. */
typedef struct across {
    const uint8_t *from; /* (rows, cols): of a byte, or two in a byte */
    uint32_t *to;        /* (cols, rows / 8) */
    int64_t rows, cols;
    bool halves;
} across;

static uint32_t nibble(const across *p, int64_t row, int64_t col)
{
    if (!p->halves) return p->from[row * p->cols + col] & 15u;
    return p->from[(row * p->cols + col) / 2] >> col % 2 * 4 & 15u;
}

/* Units are 16 words, a line of the output. */
static void pack_across(void *arg, int64_t lo, int64_t hi, int thread)
{
    static const int place[] = {0, 4, 1, 5, 2, 6, 3, 7};
    enum { WORDS = 16 };
    const across *p = arg;
    const int64_t words = p->rows / 8;
    (void)thread;
    for (int64_t u = lo; u < hi; u++)
        for (int64_t k = 0; k < p->cols; k++)
            for (int64_t c = u * WORDS; c < words && c < (u + 1) * WORDS; c++) {
                uint32_t w = 0;
                for (int j = 0; j < 8; j++)
                    w |= nibble(p, 8 * c + j, k) << 4 * place[j];
                p->to[k * words + c] = w;
            }
}

static lb_array *packed(lb_ctx *cx, lb_array *from, int64_t rows, int64_t cols,
                        bool halves)
{
    const lb_shape shape = LB_SHAPE(cols, rows / 8);
    lb_array *bytes = lb_materialize(cx, from);
    lb_array *to = lb_dense(cx, LB_U32, &shape);
    if (!bytes || !to) return NULL;
    across p = {lb_data(bytes), to->store->data, rows, cols, halves};
    lb_pool_run(cx->pool, lb_ceil_div(rows / 8, 16), pack_across, &p);
    return to;
}

lb_array *lb_awq_part(lb_ctx *cx, const lb_saved *item, lb_array *a, int k)
{
    lb_packed_facts f;
    lb_packed_facts_of(item->described, &f);
    if (k == QWEIGHT)
        return packed(cx, lb_component(cx, a, "codes"), f.rows, f.row, true);
    if (k == QZEROS)
        return packed(cx, lb_packed_entries(cx, a, "zero", &f, LB_U8), f.rows,
                      f.groups, false);
    return lb_transpose(cx, lb_packed_entries(cx, a, "scale", &f, LB_F16),
                        NULL);
}

bool lb_awq_moves(lb_ctx *cx, const lb_moving *m, lb_move_plan *to)
{
    (void)cx;
    lb_packed_target(m, 4,
                     m->scheme || m->block_size ? lb_packed_group(m) : 128,
                     LB_F16, to);
    if (!lb_packed_symmetric(m, 4)) to->target.elem[ZERO] = LB_U8;
    to->target.zero_most = 15;
    return true;
}

void lb_awq_configure(lb_bytes *to, const lb_loading *how)
{
    lb_packed_facts f;
    lb_packed_facts_of(how->packed[0].described, &f);
    lb_bytes_text(to,
                  "{\n    \"quant_method\": \"awq\",\n    \"bits\": 4,\n"
                  "    \"group_size\": %lld,\n    \"zero_point\": true,\n"
                  "    \"version\": \"gemm\",\n"
                  "    \"modules_to_not_convert\": ",
                  (long long)(f.group == f.row ? -1 : f.group));
    lb_put_texts(to, how->plain ? NULL : how->skip, how->n_skip);
    lb_bytes_text(to, "\n  }");
}
