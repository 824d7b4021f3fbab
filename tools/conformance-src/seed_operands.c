/* seed_operands.c - the quantized operands of group 5.
 *
 * The library makes each from its x. The parts and values must be those in the
 * manifest's table `operands`.
 */
#include <stdlib.h>
#include <string.h>

#include "seed_cases.h"

/* Tolerance of the package's polynomial, which depends on fused multiply-add,
 * with respect to its 16 values: that of group 2. */
static double poly_tolerance(lb_dtype dtype)
{
    return dtype == LB_F16 ? 1e-3 : dtype == LB_BF16 ? 8e-3 : 2e-6;
}

static bool check_operand(checker *c, lb_decode decode, seed_quantized *q)
{
    const bool poly = decode == LB_DECODE_POLY;
    const json_t *const ref =
        json_object_get(q->entry, poly ? "values_poly" : "values");
    given want = {0};
    /* Only nf4 has a polynomial. */
    if (poly && !ref) return true;
    if (!seed_array(c, ref, &want)) return false;
    if (poly) {
        const double most = largest_finite(want.dtype, want.raw.data,
                                           shape_size(want.raw.shape));
        want.tol = (tolerance){.absolute = poly_tolerance(want.dtype) * most,
                               .ulps = -1};
    }
    const bool ok = check_array(c, "operand", q->a, &want);
    given_free(&want);
    return ok;
}

/* Codes of -128 in the manifest are -127 here: `unclamped` is set, and the rest
 * must be equal. */
static bool check_clamped(checker *c, seed_quantized *q)
{
    given codes = {0};
    given values = {0};
    given got = {0};
    int8_t *code = NULL;
    bool ok = seed_array(c, json_object_get(q->entry, "codes"), &codes) &&
              seed_array(c, json_object_get(q->entry, "values"), &values) &&
              seed_expect(c, "operand", q->a, &got);
    if (ok && (codes.dtype != LB_I8 || values.dtype != got.dtype ||
               !shape_equal(codes.raw.shape, got.raw.shape) ||
               !shape_equal(values.raw.shape, got.raw.shape))) {
        ok = note_fail(c->note, "codes and values do not fit together");
    }
    if (ok) {
        q->unclamped = values.a;
        code = codes.raw.data;
    }
    const size_t w = lb_dtype_size(values.dtype);
    for (int64_t i = 0; ok && i < shape_size(codes.raw.shape); i++) {
        if (code[i] >= -127) continue;
        code[i] = -127;
        memcpy((char *)values.raw.data + (size_t)i * w,
               (const char *)got.raw.data + (size_t)i * w, w);
    }
    ok = ok && check_array(c, "codes", lb_codes(c->cx, q->a), &codes) &&
         check_array(c, "operand", q->a, &values);
    given_free(&codes);
    given_free(&values);
    given_free(&got);
    return ok;
}

static bool has_code_128(checker *c, const json_t *operand, bool *out)
{
    const json_t *const ref = json_object_get(operand, "codes");
    given codes = {0};
    *out = false;
    if (!ref) return true;
    if (!seed_array(c, ref, &codes)) return false;
    for (size_t i = 0; codes.dtype == LB_I8 && i < codes.raw.nbytes; i++) {
        *out = *out || ((const int8_t *)codes.raw.data)[i] == -128;
    }
    given_free(&codes);
    return true;
}

bool seed_operand(seed_case *s, const json_t *operand, lb_decode decode,
                  seed_quantized *out)
{
    checker *const c = &s->check;
    const char *const format =
        json_string_value(json_object_get(operand, "format"));
    const char *const dtype =
        json_string_value(json_object_get(operand, "dtype"));
    lb_quant_config config = {.struct_size = sizeof(config),
                              .format = format,
                              .dtype = dtype ? dtype_named(dtype) : LB_NO_DTYPE,
                              .compat = LB_COMPAT_EFORMER};
    given x = {0};
    bool clamped = false;
    *out = (seed_quantized){.entry = operand};
    if (!format || !config.dtype) {
        return note_fail(c->note, "an operand without format or dtype");
    }
    if (json_object_get(operand, "values_poly")) config.decode = decode;
    if (!seed_params(json_object_get(operand, "params"), &config, c->note) ||
        !seed_array(c, json_object_get(operand, "x"), &x)) {
        return false;
    }
    out->a = seed_make(c->cx, &config, x.a);
    given_free(&x);
    if (!out->a) return library_failed(c->cx, c->note, format);
    if (!has_code_128(c, operand, &clamped)) return false;
    return clamped ? check_clamped(c, out) &&
                         seed_check_parts(c, operand, out->a, "codes")
                   : seed_check_parts(c, operand, out->a, "") &&
                         check_operand(c, decode, out);
}

/* Blocks of packed (.., blocks, block/2) and absmax (.., blocks) for rows of
 * that shape. */
static bool nf4_fits(lb_shape packed, lb_shape absmax, lb_shape shape)
{
    if (packed.rank < 2 || shape.rank < 1) return false;
    const int64_t blocks = packed.dim[packed.rank - 2];
    const int64_t half = packed.dim[packed.rank - 1];
    const int64_t row = shape.dim[shape.rank - 1];
    if (blocks < 1 || half < 1 || row < 1) return false;
    const int64_t rows = shape_size(packed) / half / blocks;
    return rows * blocks == shape_size(absmax) && row <= 2 * half * blocks &&
           rows == shape_size(shape) / row;
}

/* w = table[code] * absmax in f32; rows of blocks, high nibbles first. */
static void decode_nf4(const given *packed, const given *absmax_f32,
                       const float *table, given *out)
{
    const lb_shape p = packed->raw.shape;
    const int64_t row = out->raw.shape.dim[out->raw.shape.rank - 1];
    const int64_t block = 2 * p.dim[p.rank - 1];
    const int64_t padded = p.dim[p.rank - 2] * block;
    const int64_t size = shape_size(out->raw.shape);
    const uint8_t *const bytes = packed->raw.data;
    const float *const absmax = absmax_f32->raw.data;
    float *const to = out->raw.data;
    for (int64_t e = 0; e < size; e++) {
        const int64_t at = e / row * padded + e % row;
        const int code = bytes[at / 2] >> (at % 2 ? 0 : 4) & 15;
        to[e] = table[code] * absmax[at / block];
    }
}

static bool decode_operand(checker *c, const given *packed, const given *absmax,
                           const float *table, given *out)
{
    if (!nf4_fits(packed->raw.shape, absmax->raw.shape, out->raw.shape)) {
        return note_fail(c->note, "packed and absmax do not fit together");
    }
    out->raw.nbytes = (size_t)shape_size(out->raw.shape) * sizeof(float);
    out->raw.data = malloc(out->raw.nbytes);
    if (!out->raw.data) return note_fail(c->note, "out of memory");
    decode_nf4(packed, absmax, table, out);
    out->a = lb_from(c->cx, LB_F32, out->raw.shape, out->raw.data);
    return out->a || library_failed(c->cx, c->note, "lb_from");
}

bool seed_decoded(seed_case *s, const json_t *operand, given *out)
{
    checker *const c = &s->check;
    given packed = {0};
    given stored = {0};
    given absmax = {0};
    float table[16];
    *out = (given){.dtype = LB_F32, .tol = tolerance_bits()};
    const bool ok =
        seed_table(s, "nf4_table_bits", table) &&
        json_shape(json_object_get(operand, "shape"), "shape", &out->raw.shape,
                   c->note) &&
        seed_array(c, json_object_get(operand, "packed"), &packed) &&
        seed_array(c, json_object_get(operand, "absmax"), &stored) &&
        seed_expect(c, "absmax", lb_convert(c->cx, stored.a, LB_F32),
                    &absmax) &&
        decode_operand(c, &packed, &absmax, table, out);
    given_free(&packed);
    given_free(&stored);
    given_free(&absmax);
    return ok;
}
