/* fuzz_safetensors_index.c - any bytes as an index, in a directory that has
 * two shards. To be run in the project's root. */
#include "fuzz_container.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    return fuzz_container("safetensors_index",
                          "tests/golden/io/sharded/fuzz.json", bytes, n);
}
