/* cpu.h - which instruction-set level this machine and its system allow. */
#ifndef LB_CPU_H
#define LB_CPU_H

#include <stdbool.h>

#include "lowbit_ext.h"

/* The strongest level the CPU has and the OS saves registers for. */
lb_level lb_cpu_best(void);
/* "ref", "neon", "avx2", "avx512", "avx512vnni"; static. */
const char *lb_level_name(lb_level level);
/* False if the name is not one of them. */
bool lb_level_parse(const char *name, lb_level *out);
/* True if level can run here (a level of another architecture cannot). */
bool lb_level_available(lb_level level);

#endif
