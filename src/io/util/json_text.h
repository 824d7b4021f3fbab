/* json_text.h - incremental JSON reader and writer.
 *
 * A header may have 100 MB and a million entries. A tree-building library
 * (jansson was tried) needs ten times that in memory, not from the context's
 * heap, and reports running out of memory as a syntax error. So no tree is
 * built: the caller asks for what it expects and skips the rest.
 *
 *     lb_json_enter(j, '{');
 *     while (lb_json_more(j, '}')) {
 *         const char *key = lb_json_key(j, arena);
 *         ..               one value: a string, a number, or lb_json_skip
 *     }
 *     if (j->failed) ..    an error stays, and all steps after it do nothing
 */
#ifndef LB_JSON_TEXT_H
#define LB_JSON_TEXT_H

#include "io/containers/container.h"

typedef struct lb_json {
    lb_ctx *cx;
    lb_infile *f;
    const char *what; /* in messages: "the header" */
    uint8_t *text; /* a copy: values are counted, then read, and must not change
                    * in between (a map may) */
    size_t got;
    const uint8_t *at, *end;
    int depth;
    bool first; /* after an opening bracket */
    bool failed;
    bool python; /* accept NaN and Infinity where a value is skipped */
} lb_json;

/* Starts reading n bytes of a file, which must be UTF-8; false and an error.
 * Always call lb_json_end, which frees the reader and, unless it failed,
 * requires that nothing follows the value. */
bool lb_json_begin(lb_ctx *cx, lb_json *j, lb_infile *f, uint64_t offset,
                   uint64_t n, const char *what);
bool lb_json_end(lb_json *j);

/* The kind of the next value: { [ " t f n, 0 for a number, -1 for anything
 * else. */
int lb_json_peek(lb_json *j);
/* Consumes an opening bracket. */
bool lb_json_enter(lb_json *j, char open);
/* Whether there is another entry; if not, consumes the closing bracket. */
bool lb_json_more(lb_json *j, char close);
/* The key of an entry (without zero bytes), and its colon; "" on failure. */
const char *lb_json_key(lb_json *j, lb_arena *arena);
/* A string, terminated by a 0; "" on failure. */
const char *lb_json_string(lb_json *j, lb_arena *arena, size_t *n);
/* The same for short, known words: "" if it has size or more bytes, contains a
 * 0, or on failure. size may be 0. */
void lb_json_word(lb_json *j, char *to, size_t size);
void lb_json_key_word(lb_json *j, char *to, size_t size);
/* A non-negative integer; 0 on failure. */
int64_t lb_json_count_of(lb_json *j);
/* Any finite number, correctly rounded; 0 on failure. */
double lb_json_number_of(lb_json *j);
/* Skips any value. */
void lb_json_skip(lb_json *j);
/* Counts the entries of the next object or array without consuming it. */
uint64_t lb_json_entries(lb_json *j);
/* LB_E_CONTENT: "PATH: the header has WHAT at byte N". False. */
bool lb_json_wrong(lb_json *j, const char *what);

/* Writes a number like Python: the shortest digits that identify it; null if it
 * is not finite. */
void lb_json_put_number(lb_bytes *b, double v);
/* Writes a quoted string of valid UTF-8. ascii: escapes non-ASCII characters,
 * like Python's json.dumps; otherwise keeps them, like Rust's serde_json. */
void lb_json_put(lb_bytes *b, const char *text, size_t n, bool ascii);

#endif
