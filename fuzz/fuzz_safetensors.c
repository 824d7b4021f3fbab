/* fuzz_safetensors.c - any bytes as a safetensors file. */
#include "fuzz_container.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    return fuzz_container("safetensors", "fuzz.safetensors", bytes, n);
}
