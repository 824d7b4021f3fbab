/* codec_speed.h - how fast arrays are quantized and read back. */
#ifndef LB_BENCH_CODEC_SPEED_H
#define LB_BENCH_CODEC_SPEED_H

#include "bench_options.h"

/* False if something could not be measured, after saying what. */
bool codec_speed_run(const bench_options *o);

#endif
