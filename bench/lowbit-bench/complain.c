/* complain.c - see complain.h. */
#include "complain.h"

#include <stdarg.h>
#include <stdio.h>

bool complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("lowbit-bench: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return false;
}
