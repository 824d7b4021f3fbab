/* host_level.c - prints the best level of the machine that configures the
 * build, for builds that depend on it. Built with src/base/cpu.c. */
#include <stdio.h>

#include "base/cpu.h"

int main(void)
{
    puts(lb_level_name(lb_cpu_best()));
    return 0;
}
