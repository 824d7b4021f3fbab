/* fuzz_description.c - any bytes as the JSON descriptor of an array in layout
 * native or eformer, in a file with tensors that may be its parts.
 */
#include "core/core.h"
#include "fuzz_container.h"
#include "io/util/json_text.h"

static const char tensors[] =
    "\"w.scale\":{\"dtype\":\"F32\",\"shape\":[4,1],\"data_offsets\":[0,16]},"
    "\"w.absmax\":{\"dtype\":\"F32\",\"shape\":[4,2],\"data_offsets\":[16,48]},"
    "\"w.absmax.absmax\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[48,"
    "52]},\"w.absmax.codes\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":["
    "52,60]},\"w.codes\":{\"dtype\":\"U8\",\"shape\":[4,64],\"data_offsets\":["
    "60,316]},\"w.packed\":{\"dtype\":\"U8\",\"shape\":[1,4],\"data_offsets\":["
    "316,320]},\"w.blocks\":{\"dtype\":\"U8\",\"shape\":[4,2,34],"
    "\"data_offsets\":[320,592]},\"v.weight\":{\"dtype\":\"I8\",\"shape\":[4,9"
    "],\"data_offsets\":[592,628]}}";
enum { DATA = 628 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    lb_ctx *cx = fuzz_context();
    if (!cx || !lb_utf8_valid((const char *)bytes, n)) return 0;
    lb_bytes b = {.heap = cx->heap};
    lb_bytes_u64(&b, 0);
    lb_bytes_text(&b, "{\"__metadata__\":{\"lowbit.w\":");
    lb_json_put(&b, (const char *)bytes, n, false);
    lb_bytes_text(&b, "},");
    lb_bytes_put(&b, tensors, sizeof tensors - 1);
    for (int i = 0; i < 8 && !b.failed; i++)
        b.at[i] = (uint8_t)((uint64_t)(b.n - 8) >> 8 * i);
    lb_bytes_fill(&b, 0x11, DATA);
    if (!b.failed) fuzz_container("safetensors", "fuzz.safetensors", b.at, b.n);
    lb_bytes_free(&b);
    return 0;
}
