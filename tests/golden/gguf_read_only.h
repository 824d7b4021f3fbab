/* gguf_read_only.h - made by tools/gen_gguf_decode_golden.py from ggml
 * (xllamacpp 2026.10.11549) and gguf-py 0.19.0. */
#include <stdint.h>

/* clang-format off */
static const struct {
    const char *name;
    int len, size;
    uint64_t values; /* of GOLDEN_BLOCKS blocks */
} golden[] = {
    {"q4_1", 32, 20, 0x3380204209cb4576},
    {"q5_0", 32, 22, 0x6e6b343f101c54eb},
    {"q5_1", 32, 24, 0x4309c8e1983297ea},
    {"q2_k", 256, 84, 0x976ed35c920067be},
    {"q3_k", 256, 110, 0x9a0954868b7f822f},
    {"q4_k", 256, 144, 0xe4f0a691fcfd46df},
    {"q5_k", 256, 176, 0x47dbcb923dacba21},
    {"q6_k", 256, 210, 0x679bac543b1cc7f2},
    {"iq4_xs", 256, 136, 0x061a698c5cc8099b},
    {"iq3_s", 256, 110, 0xb0ce1c924d6a0236},
    {"iq3_xxs", 256, 98, 0xa5a0e5fbeb60c6d9},
    {"iq2_s", 256, 82, 0x230e6af43c9749ed},
    {"iq2_xs", 256, 74, 0x5fc9f803c0ea6b44},
    {"iq2_xxs", 256, 66, 0x4c6501c82c04abb5},
    {"iq1_m", 256, 56, 0xa0bf6d5f976c38dd},
    {"iq1_s", 256, 50, 0xce0b093dd8eb4ac9},
    {"gguf_mxfp4", 32, 17, 0x422d70c4b881f87d},
    {"gguf_nvfp4", 64, 36, 0x17d7b2603da93268},
    {"q2_0", 64, 18, 0xba8dcb48f502da3c},
    {"q1_0", 128, 18, 0x41a3f2ddcea8f4a5},
};
/* clang-format on */

enum { GOLDEN_BLOCKS = 300 };
