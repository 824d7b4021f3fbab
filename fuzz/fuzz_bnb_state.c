/* fuzz_bnb_state.c - any bytes as the quant_state of a bitsandbytes weight. The
 * file has the other tensors for 99 or 100 codes of 4 bits. */
#include <stdio.h>
#include <string.h>

#include "fuzz_container.h"

enum { DATA = 50 + 8 + 64 + 4 + 1024, STATE_MOST = 6000 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static uint8_t file[8 + 1024 + DATA + STATE_MOST];
    char *head = (char *)file + 8;
    if (n > STATE_MOST) return 0;
    /* If it begins with a space, the scales are nested. */
    const int nested = n && bytes[0] == ' ';
    const int len = snprintf(
        head, 1024,
        "{\"w.nested_quant_map\":{\"dtype\":\"F32\",\"shape\":[256],"
        "\"data_offsets\":[0,1024]},\"w.nested_absmax\":{\"dtype\":\"F32\","
        "\"shape\":[1],\"data_offsets\":[1024,1028]},\"w.quant_map\":{"
        "\"dtype\":\"F32\",\"shape\":[16],\"data_offsets\":[1028,1092]},"
        "\"w.absmax\":{\"dtype\":\"%s\",\"shape\":[%d],\"data_offsets\":[1092,"
        "1100]},\"w\":{\"dtype\":\"U8\",\"shape\":[50,1],\"data_offsets\":["
        "1100,1150]},\"w.quant_state.bitsandbytes__nf4\":{\"dtype\":\"U8\","
        "\"shape\":[%zu],\"data_offsets\":[1150,%zu]}}",
        nested ? "U8" : "F32", nested ? 8 : 2, n, 1150 + n);
    for (int i = 0; i < 8; i++)
        file[i] = (uint8_t)((uint64_t)len >> 8 * i);
    memset(head + len, 0x3c, DATA);
    if (n) memcpy(head + len + DATA, bytes, n);
    return fuzz_container("safetensors", "fuzz.safetensors", file,
                          8 + (size_t)len + DATA + n);
}
