/* python_literal.h - parser for Python literals as ast.literal_eval accepts
 * them: the header of an npy file is one.
 *
 * Supported: strings (prefixes, escapes, triple quotes, adjacent literals),
 * numbers, True, False, None, ..., tuples, lists, sets, dicts, parentheses,
 * comments and line continuations. Only signs are evaluated. Anything else is
 * rejected, as in Python: names, calls, operators. \N{...} would need the
 * Unicode name table and is rejected as well.
 */
#ifndef LB_PYTHON_LITERAL_H
#define LB_PYTHON_LITERAL_H

#include "io/util/arena.h"

typedef enum lb_py_kind {
    LB_PY_NONE, /* or Ellipsis */
    LB_PY_BOOL,
    LB_PY_INT,
    LB_PY_NUMBER, /* any other number; its value is not kept */
    LB_PY_STRING,
    LB_PY_BYTES,
    LB_PY_TUPLE,
    LB_PY_LIST,
    LB_PY_SET,
    LB_PY_DICT, /* items: key, value, key, ... */
} lb_py_kind;

typedef struct lb_py {
    lb_py_kind kind;
    bool wide;               /* an int that does not fit int64_t */
    bool computed;           /* has a sign */
    int64_t number;          /* of a bool or an int */
    const char *text;        /* of a string: UTF-8, terminated by a 0 */
    size_t n;                /* bytes of the string, or number of items */
    struct lb_py *item;      /* first item */
    struct lb_py *next;      /* next item of the parent */
    const char *begin, *end; /* position in the source text */
} lb_py;

/* Parses n bytes of UTF-8 without zeros as one value, in memory of the arena.
 * long_ints: skip an L after an integer (Python 2). NULL on failure: *why,
 * initially NULL, is the reason and *at the position; *why stays NULL if out of
 * memory. */
const lb_py *lb_py_parse(lb_ctx *cx, lb_arena *arena, const char *text,
                         size_t n, bool long_ints, const char **why,
                         size_t *at);
bool lb_py_is(const lb_py *v, const char *string);

#endif
