/* gguf_recode.h - codes and parameters of the GGUF block types (lb_recode). */
#ifndef LB_GGUF_RECODE_H
#define LB_GGUF_RECODE_H

#include "lowbit_ext.h"

typedef struct lb_gguf_recoder {
    lb_levels_kind levels;
    int least, most, zero;
    bool bias;
    int group; /* elements that share parameters; 0: the type has no scheme */
    /* Of the group of element i of a block. */
    lb_qparam (*param)(const uint8_t *block, int i);
    /* Optional: a whole block, which is one group. */
    void (*put)(uint8_t *block, const int16_t *code, const lb_qparam *p);
} lb_gguf_recoder;

extern const lb_recode lb_gguf_recode;

/* Stores an f16, and 32 codes of 4 bits in 16 bytes, the low halves first. */
void lb_gguf_put_d(uint8_t *to, float d);
void lb_gguf_put_halves(uint8_t *to, const int16_t *code);

/* Of types that are only read; those without a scheme have one of zeros. */
#define LB_DECLARE_RECODER(NAME, LEN, SIZE)                                    \
    extern const lb_gguf_recoder lb_recode_##NAME;

#endif
