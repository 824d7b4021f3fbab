/* codec_speed.h - speed of quantizing and decoding. */
#ifndef LB_BENCH_CODEC_SPEED_H
#define LB_BENCH_CODEC_SPEED_H

#include "bench_options.h"

/* False after a message if something could not be measured. */
bool codec_speed_run(const bench_options *o);

#endif
