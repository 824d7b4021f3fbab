/* fuzz_gguf.c - any bytes as a gguf file. */
#include "fuzz_container.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    return fuzz_container("gguf", "fuzz.gguf", bytes, n);
}
