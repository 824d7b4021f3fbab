/* text_directory.c - see text_directory.h. */
#include "text_directory.h"

#include <stdlib.h>
#include <string.h>

/* What is not read yet. */
typedef struct {
    const char *at, *end;
} rest;

static bool take(rest *r, const char *text)
{
    const size_t n = strlen(text);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, text, n) != 0)
        return false;
    r->at += n;
    return true;
}

/* Characters before a line of two dashes, which is skipped, or all. */
static size_t take_part(rest *r)
{
    const char *begin = r->at;
    for (; r->at < r->end; r->at++)
        if ((r->at == begin || r->at[-1] == '\n') && take(r, "--\n"))
            return (size_t)(r->at - begin) - 3;
    return (size_t)(r->at - begin);
}

static size_t bits_of(const char *type)
{
    static const struct {
        const char *name;
        size_t bits;
    } types[] = {{"F64", 64}, {"I64", 64},    {"U64", 64},    {"F32", 32},
                 {"I32", 32}, {"U32", 32},    {"F16", 16},    {"BF16", 16},
                 {"I16", 16}, {"U16", 16},    {"BOOL", 8},    {"U8", 8},
                 {"I8", 8},   {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8},
                 {"F4", 4}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, type) == 0) return types[i].bits;
    return 0;
}

/* Whether JSON strings contain a character as it is. */
static bool is_plain(char c)
{
    return c > ' ' && c < 0x7f && c != '"' && c != '\\';
}

static bool take_word(rest *r, char *word, size_t most)
{
    size_t n = 0;
    for (; r->at < r->end && is_plain(*r->at); r->at++) {
        if (n + 1 == most) return false;
        word[n++] = *r->at;
    }
    word[n] = 0;
    return n && (take(r, " ") || r->at == r->end || *r->at == '\n');
}

static bool take_number(rest *r, uint64_t *v)
{
    const char *begin = r->at;
    const bool minus = take(r, "-");
    const char *digits = r->at;
    for (*v = 0; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        *v = *v * 10 + (uint64_t)(*r->at - '0');
    if (r->at == digits) {
        r->at = begin;
        return false;
    }
    if (minus) *v = 0 - *v;
    take(r, " ");
    return true;
}

/* Dimensions to the header; *size: bytes of the tensor. */
static bool take_shape(rest *r, size_t bits, lb_bytes *header, size_t *size)
{
    uint64_t d, n = bits;
    bool zero = false, huge = false;
    for (int k = 0; take_number(r, &d); k++) {
        if (d > INT64_MAX) return false;
        lb_bytes_text(header, "%s%llu", k ? "," : "", (unsigned long long)d);
        zero = zero || !d;
        if (d && __builtin_mul_overflow(n, d, &n)) huge = true;
    }
    *size = zero ? 0 : (size_t)(n / 8);
    return zero || (!huge && n % 8 == 0 && n / 8 <= TEXT_DATA_MOST);
}

/* size bytes of values, or zeros, which are to be filled; false: no values. */
static bool take_values(rest *r, size_t bits, size_t size, lb_bytes *data)
{
    enum { MOST = 512 };
    const size_t each = bits < 8 ? 1 : bits / 8, at = data->n;
    uint64_t v[MOST];
    size_t n = 0;
    lb_bytes_fill(data, 0, size);
    if (!take(r, "=")) return false;
    take(r, " ");
    while (n < MOST && take_number(r, &v[n]))
        n++;
    for (size_t i = 0; n && !data->failed && i < size; i++)
        data->at[at + i] = (uint8_t)(v[i / each % n] >> i % each * 8);
    return true;
}

enum { TENSORS_MOST = 64 };

typedef struct {
    size_t at, size;
} data_hole;

static bool take_tensors(rest r, lb_bytes *header, lb_bytes *data,
                         data_hole *todo, int *n_todo)
{
    char name[128], type[16];
    for (int i = 0; r.at < r.end; i++) {
        const size_t begin = data->n;
        size_t size;
        if (i == TENSORS_MOST || !take_word(&r, name, sizeof name) ||
            !take_word(&r, type, sizeof type) || !bits_of(type))
            return false;
        lb_bytes_text(header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[",
                      i ? "," : "", name, type);
        if (!take_shape(&r, bits_of(type), header, &size) ||
            begin + size > TEXT_DATA_MOST)
            return false;
        if (!take_values(&r, bits_of(type), size, data))
            todo[(*n_todo)++] = (data_hole){begin, size};
        lb_bytes_text(header, "],\"data_offsets\":[%zu,%zu]}", begin, data->n);
        if (!take(&r, "\n")) return r.at == r.end;
    }
    return true;
}

bool text_directory_of(lb_heap *heap, const uint8_t *text, size_t n,
                       text_directory *to)
{
    static const char *const name[] = {
        "quantize_config.json", "quant_config.json", "hf_quant_config.json"};
    rest r = {(const char *)text, (const char *)text + n};
    lb_bytes data = {.heap = heap};
    data_hole todo[TENSORS_MOST];
    int n_todo = 0;
    *to = (text_directory){.config_name = "config.json", .weights = data};
    for (int i = 0; i < 3; i++)
        if (take(&r, name[i]) && take(&r, "\n")) to->config_name = name[i];
    to->config = (const uint8_t *)r.at;
    to->n_config = take_part(&r);
    rest tensors = {r.at, r.at};
    tensors.end += take_part(&r);
    lb_bytes *w = &to->weights;
    lb_bytes_u64(w, 0);
    lb_bytes_text(w, "{");
    bool ok = take_tensors(tensors, w, &data, todo, &n_todo);
    lb_bytes_text(w, "}");
    /* Tensors of some files are aligned, of others not. */
    if (to->n_config % 2 == 0) lb_bytes_fill(w, ' ', 7 - (w->n + 7) % 8);
    ok = ok && !w->failed && !data.failed;
    const size_t fill = (size_t)(r.end - r.at), header = w->n - 8;
    size_t next = 0;
    for (int i = 0; ok && fill && i < n_todo; i++)
        for (size_t k = 0; k < todo[i].size; k++)
            data.at[todo[i].at + k] = (uint8_t)r.at[next++ % fill];
    for (int i = 0; ok && i < 8; i++)
        w->at[i] = (uint8_t)((uint64_t)header >> 8 * i);
    if (ok) lb_bytes_put(w, data.at, data.n);
    lb_bytes_free(&data);
    return ok && !w->failed;
}
