/* product_coded_block.c - whole numbers times packed weights. */
#include "prims/weights.h"

bool lb_coded_block_fits(const lb_product *p, const lb_weights *w,
                         const lb_cpu *cpu)
{
    (void)p, (void)w, (void)cpu;
    return false;
}

void lb_coded_block_plan(const lb_product *p, const lb_call *c, lb_plan *plan)
{
    (void)p, (void)c, (void)plan;
}

void lb_coded_block_run(const lb_product *p, const lb_work *w)
{
    (void)p, (void)w;
}
