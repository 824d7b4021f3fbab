/* fuzz_npz.c - any bytes as a npz file. */
#include "fuzz_container.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    return fuzz_container("npz", "fuzz.npz", bytes, n);
}
