/* pack_w_f32.c - w as panels of f32: from numbers, or straight from codes; see
 * gemm_f32.c.
 */
#include <string.h>

#include "matmul/gemm_f32.h"

enum {
    PART = 8, /* depth that is read together, of lines */
    LINE = LB_F32_LINE
};

/* Lines of w, depth [k, k + kc), to where tiles read them, side by side; codes
 * that come next are asked for, part by part. */
void lb_f32_read_lines(const lb_f32_block *u, int64_t k, int64_t kc)
{
    const lb_source *s = u->g->w.w;
    for (int64_t kk = 0; kk < kc; kk += PART) {
        const int64_t some = lb_min_i64(PART, kc - kk);
        const int64_t after = lb_min_i64(PART, u->p->k - k - kk - some);
        if (u->codes.bits)
            lb_coded_fetch(&u->codes, k + kk + some, after, u->j, u->n);
        s->get(s, u->cpu, u->batch, u->j, u->n, k + kk, some, u->b + kk * u->n);
    }
}

/* The scales of a strip of rows, from depth k on. */
static void aim_scales(const lb_f32_block *u, int64_t k, int64_t depth,
                       lb_f32_strip *s)
{
    const lb_coded *c = &u->codes;
    const int64_t g = c->lines.g, first = g ? k / g : 0;
    const int64_t blocks = g ? (k + depth - 1) / g - first + 1 : 1;
    s->codes.g = g;
    s->codes.scale_step = c->scale_step;
    if (c->scale) {
        s->codes.scale =
            lb_coded_scales(c, u->cpu, u->j + s->j, first, blocks, NULL);
        return;
    }
    s->codes.scale = u->tmp;
    s->codes.scale_step = blocks;
    for (int64_t r = 0; r < s->n; r++)
        lb_coded_scales(c, u->cpu, u->j + s->j + r, first, blocks,
                        u->tmp + r * blocks);
}

/* The same of lines. Those that must be read are read with the block's first
 * strip, for all of them. */
static void aim_scales_of_lines(const lb_f32_block *u, int64_t k, int64_t depth,
                                lb_f32_strip *s)
{
    const lb_coded *c = &u->codes;
    const int64_t g = c->lines.g, first = g ? u->j / g : 0;
    const int64_t n = g ? (u->j + u->n - 1) / g - first + 1 : 1;
    const int64_t here = g ? (u->j + s->j) / g - first : 0;
    const int64_t lines = c->scale_step ? depth : 1;
    s->codes.each = g == 1;
    s->codes.scale_step = c->scale_step;
    if (c->scale) {
        s->codes.scale =
            lb_coded_scales(c, u->cpu, k, first + here, n - here, NULL);
        return;
    }
    s->codes.scale_step = c->scale_step ? n : 0;
    s->codes.scale = u->tmp + here;
    for (int64_t i = 0; s->j == 0 && i < lines; i++) {
        float *const to = u->tmp + i * n;
        const float *at = lb_coded_scales(c, u->cpu, k + i, first, n, to);
        if (at != to) memcpy(to, at, (size_t)n * sizeof *to);
    }
}

/* Lines lie at distances that are bad for caches: LINE bytes of each are copied
 * together, for all strips that share them. */
static void copy_lines(const lb_f32_block *u, int64_t k, int64_t depth,
                       lb_f32_strip *s)
{
    const lb_coded *c = &u->codes;
    const int64_t wide = LINE * 8 / c->bits, j = s->j / wide * wide;
    const int64_t bytes = lb_min_i64(LINE, lb_coded_line_bytes(c, u->n - j));
    uint8_t *const room = (uint8_t *)(void *)(u->tmp + u->g->codes_at);
    const uint8_t *from = lb_coded_codes(c, k, u->j + j);
    if (s->j == j && bytes == LINE)
        for (int64_t i = 0; i < depth; i++)
            memcpy(room + i * LINE, from + i * c->byte_step, LINE);
    else if (s->j == j)
        for (int64_t i = 0; i < depth; i++)
            memcpy(room + i * LINE, from + i * c->byte_step, (size_t)bytes);
    s->codes.codes = room + (s->j - j) * c->bits / 8;
    s->codes.step = LINE;
}

/* While lines of codes are decoded, LINE bytes of each of which some strips
 * share, those of the next ones are asked for: each strip asks for some, of the
 * same panel, or of the block's first columns in the next one. */
static void ask_for_lines(const lb_f32_block *u, const lb_f32_strip *s,
                          int64_t depth, lb_gemm_rows *codes)
{
    const lb_coded *c = &u->codes;
    const int64_t wide = LINE * 8 / c->bits, nr = u->g->kernel->nr;
    const int64_t next = s->j / wide * wide + wide;
    const int64_t strips = lb_min_i64(wide, u->n - (next - wide)) / nr;
    const int64_t share = lb_ceil_div(depth, lb_max_i64(strips, 1));
    const int64_t from = lb_min_i64(s->j % wide / nr * share, depth);
    const bool last = next >= u->n;
    const int64_t line = s->k + from + (last ? depth : 0);
    codes->asks = lb_min_i64(lb_min_i64(share, depth - from), u->p->k - line);
    if (codes->asks <= 0) return;
    codes->ahead = (uintptr_t)lb_coded_codes(c, line, u->j + (last ? 0 : next));
    codes->ask_step = c->byte_step;
}

lb_f32_strip lb_f32_strip_read(const lb_f32_block *u, int64_t j, int64_t n,
                               int64_t k, int64_t depth)
{
    const lb_coded *c = &u->codes;
    const lb_source *b = u->g->w.w;
    const int64_t line = u->j + j;
    lb_f32_strip s = {.j = j, .n = n, .k = k};
    const int64_t after = lb_min_i64(u->g->strip, u->n - j - n);
    if (!u->g->panel) {
        if (c->bits) lb_coded_fetch(c, line + n, after, k, depth);
        s.w = b->get(b, u->cpu, u->batch, line, n, k, depth, u->tmp);
        return s;
    }
    s.codes = (lb_gemm_rows){
        .bits = c->bits,
        .high_first = c->high_first,
        .level = c->numbers.level,
        .codes =
            c->along ? lb_coded_codes(c, line, k) : lb_coded_codes(c, k, line),
        .step = c->byte_step,
        .n = n,
        .ahead = after && c->along && u->g->panel->asks
                     ? (uintptr_t)(n * c->byte_step)
                     : 0,
    };
    (c->along ? aim_scales : aim_scales_of_lines)(u, k, depth, &s);
    if (c->along) return s;
    copy_lines(u, k, depth, &s);
    ask_for_lines(u, &s, depth, &s.codes);
    return s;
}

/* A panel of its codes, of depth [kk, kk + kc): blocks of scales may end where
 * panels do. */
static void decode_strip(const lb_f32_block *u, const lb_f32_strip *s,
                         int64_t kk, int64_t kc, float *to)
{
    lb_gemm_rows c = s->codes;
    c.depth = kc;
    if (!u->codes.along) {
        c.codes += kk * c.step;
        c.scale += kk * c.scale_step;
        u->g->panel->lines(&c, to);
        return;
    }
    c.codes += kk * c.bits / 8;
    c.scale += c.g ? (s->k + kk) / c.g - s->k / c.g : 0;
    if (c.g > kc) c.g = 0; /* all of it is in one block */
    u->g->panel->decode(&c, to);
}

/* What is packed together of it, of depth [kk, kk + kc). */
void lb_f32_strip_pack(const lb_f32_block *u, const lb_f32_strip *s, int64_t kk,
                       int64_t kc, float *to)
{
    const lb_gemm_kernel *const kernel = u->g->kernel;
    const float *w = s->w.p;
    if (u->g->panel) {
        decode_strip(u, s, kk, lb_min_i64(kc, LB_GEMM_KC), to);
        if (kc > LB_GEMM_KC)
            decode_strip(u, s, kk + LB_GEMM_KC, kc - LB_GEMM_KC,
                         to + LB_GEMM_KC * kernel->nr);
    } else if (kernel->pack && s->n == kernel->nr && s->w.ks == 1) {
        kernel->pack(w + kk, s->w.rs, kc, to);
    } else {
        lb_gemm_pack(w + kk * s->w.ks, s->w.rs, s->w.ks, s->n, kc, kernel->nr,
                     to, u->g->step);
    }
}

/* What the strip after this one will need of the same depth: its panel, where
 * that is kept, and the codes that become one. Decoding would wait for these,
 * and asking for them while it decodes holds up its own. */
lb_gemm_soon lb_f32_strip_soon(const lb_f32_block *u, const lb_f32_strip *s,
                               int64_t kk, int64_t kc)
{
    const lb_gemm_codes *const panel = u->g->panel;
    const int64_t f = sizeof(float), after = u->n - s->j - s->n;
    const bool dense = !panel && u->g->w.w->in_place && s->w.ks == 1;
    lb_gemm_soon soon = {.panel = u->g->kept};
    if (s->made || (panel ? panel->asks || !u->codes.along : !dense))
        return soon;
    const int64_t bits = dense ? 8 * f : u->codes.bits;
    soon.step = dense ? s->w.rs * f : u->codes.byte_step;
    soon.at = (dense ? (uintptr_t)s->w.p : (uintptr_t)s->codes.codes) +
              (uintptr_t)(kk * bits / 8) + (uintptr_t)(s->n * soon.step);
    soon.rows = lb_min_i64(u->g->strip, after);
    soon.lines = lb_ceil_div(kc * bits, 8 * LINE) + (soon.step % LINE > 0);
    return soon;
}
