/* fuzz_npy.c - any bytes as a npy file. */
#include "fuzz_container.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    return fuzz_container("npy", "fuzz.npy", bytes, n);
}
