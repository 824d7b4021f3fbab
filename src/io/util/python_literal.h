/* python_literal.h - a literal of Python, as its ast.literal_eval sees one:
 * what the header of an npy file is.
 *
 * Strings (with prefixes, escapes, three quotes, one after another), numbers,
 * True, False, None and ..., tuples, lists, sets and dicts; parentheses,
 * comments and lines that go on. Nothing is computed but a sign. Refused, as
 * Python does, is all else: names, calls, operators. \N{..} needs a table of
 * all names of characters, and is refused, too.
 */
#ifndef LB_PYTHON_LITERAL_H
#define LB_PYTHON_LITERAL_H

#include "io/util/arena.h"

typedef enum lb_py_kind {
    LB_PY_NONE, /* ..., too */
    LB_PY_BOOL,
    LB_PY_INT,
    LB_PY_NUMBER, /* another one; its value is not kept */
    LB_PY_STRING,
    LB_PY_BYTES,
    LB_PY_TUPLE,
    LB_PY_LIST,
    LB_PY_SET,
    LB_PY_DICT, /* its items: key, value, key, .. */
} lb_py_kind;

typedef struct lb_py {
    lb_py_kind kind;
    bool wide;               /* an int that int64_t does not hold */
    bool computed;           /* a sign was */
    int64_t number;          /* of a bool or an int */
    const char *text;        /* of a string, in UTF-8, with a 0 behind it */
    size_t n;                /* its bytes, or how many items there are */
    struct lb_py *item;      /* the first */
    struct lb_py *next;      /* behind it, among items */
    const char *begin, *end; /* where it stands in the text */
} lb_py;

/* The only value of n bytes of UTF-8 without 0 in it; all memory from arena.
 * long_ints: an L after a number is passed over, as Python 2 wrote it. NULL: it
 * is none, and *why, which begins as NULL, says why and *at where; or memory is
 * short, and *why stays. */
const lb_py *lb_py_parse(lb_ctx *cx, lb_arena *arena, const char *text,
                         size_t n, bool long_ints, const char **why,
                         size_t *at);
bool lb_py_is(const lb_py *v, const char *string);

#endif
