/* json_text.h - JSON in files, read step by step and written string by string.
 *
 * A header may have 100 MB and a million entries. A library that builds a tree
 * of it (jansson was tried) takes ten times that from an allocator that is
 * not the context's, and calls the file wrong where memory was short. So here
 * nothing is built: a reader asks for what it expects, and skips the rest.
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
    const char *what; /* for sentences: "the header" */
    uint8_t *text; /* a copy: things are counted, then read, and must not have
                    * changed in between, as a map of a file may */
    size_t got;
    const uint8_t *at, *end;
    int depth;
    bool first; /* after an opening bracket */
    bool failed;
    bool python; /* NaN and Infinity are values that can be skipped */
} lb_json;

/* n bytes of a file, which must be UTF-8; false and an error. To be ended in
 * any case, and by lb_json_end once all is read, which wants no more text. */
bool lb_json_begin(lb_ctx *cx, lb_json *j, lb_infile *f, uint64_t offset,
                   uint64_t n, const char *what);
bool lb_json_end(lb_json *j);

/* What comes next: { [ " t f n, 0 for a number, -1 for anything else. */
int lb_json_peek(lb_json *j);
/* Passes an opening bracket. */
bool lb_json_enter(lb_json *j, char open);
/* Whether there is another entry; else passes the closing bracket. */
bool lb_json_more(lb_json *j, char close);
/* The name of an entry, without zeros in it, and its colon; "" on failure. */
const char *lb_json_key(lb_json *j, lb_arena *arena);
/* A string, with a 0 behind it; "" on failure. */
const char *lb_json_string(lb_json *j, lb_arena *arena, size_t *n);
/* The same for words that are known: of size or more bytes, with a 0 in it, or
 * on failure, it is "". size may be 0. */
void lb_json_word(lb_json *j, char *to, size_t size);
void lb_json_key_word(lb_json *j, char *to, size_t size);
/* An integer from 0 on; 0 on failure. */
int64_t lb_json_count_of(lb_json *j);
/* Any finite number, rounded once; 0 on failure. */
double lb_json_number_of(lb_json *j);
/* Any value. */
void lb_json_skip(lb_json *j);
/* How many entries the object or array that comes next has; stays there. */
uint64_t lb_json_entries(lb_json *j);
/* LB_E_CONTENT: "PATH: the header has WHAT at byte N". False. */
bool lb_json_wrong(lb_json *j, const char *what);

/* A number as Python writes it: the fewest digits that say which; null, if it
 * is not finite. */
void lb_json_put_number(lb_bytes *b, double v);
/* A string in quotes. ascii: as Python's json.dumps, which escapes all else;
 * else as Rust's serde_json, which leaves UTF-8 as it is. It must be valid. */
void lb_json_put(lb_bytes *b, const char *text, size_t n, bool ascii);

#endif
