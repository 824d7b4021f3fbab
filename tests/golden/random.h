/* random.h - what src/prims/random.c must give; written by
 * tools/gen_random_golden.py, not by hand. */
/* clang-format off */
static const uint32_t KNOWN_PHILOX[] = {
    0x00000000u, 0x00000000u, 0x00000000u, 0x00000000u, 0x00000000u,
    0x00000000u, 0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u,
    0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu,
    0xffffffffu, 0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu,
    0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u, 0xa4093822u,
    0x299f31d0u, 0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u,
};
#define GOLDEN_KEY \
    (lb_key) { UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210) }
static const int64_t GOLDEN_INDEX[] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2045, 2046, 2047, 2048, 2049, 2050, 65535,
    65536, 1000002,
};
static const uint32_t GOLDEN_U32[] = {
    0xaef2adf7u, 0xf69b5950u, 0x3ceb44f4u, 0x89b6573au, 0xec2ab39fu,
    0x4671fd85u, 0x74decae0u, 0x4b77ec76u, 0xd7bb4a2fu, 0xb8f76c27u,
    0x3bc85360u, 0xa9018273u, 0x13aff12fu, 0x28f8186du, 0xe03609ecu,
    0x40137e1fu, 0xa541acceu, 0xdab3470eu, 0xadce549bu,
};
static const uint64_t GOLDEN_U64[] = {
    UINT64_C(0xf69b5950aef2adf7), UINT64_C(0x89b6573a3ceb44f4),
    UINT64_C(0x4671fd85ec2ab39f), UINT64_C(0x4b77ec7674decae0),
    UINT64_C(0xb8f76c27d7bb4a2f), UINT64_C(0x48cc01cd51cdda28),
    UINT64_C(0xe57c34a293f3ffb3), UINT64_C(0x288d28b31b39e857),
    UINT64_C(0xdfbb0d4de419b5e3), UINT64_C(0x49254372bcaa4d1b),
    UINT64_C(0x8e69885d9315a8c0), UINT64_C(0x7b80002d4f715730),
    UINT64_C(0x13b58d8d3db92d28), UINT64_C(0xce48e60d8b611acd),
    UINT64_C(0x77a87f6b3589017c), UINT64_C(0xeafa41e13909ef7f),
    UINT64_C(0xecf6a576260e6341), UINT64_C(0xc7d2b7105ae4ab05),
    UINT64_C(0x954460257daf9e34),
};
static const uint64_t GOLDEN_FOLD_N[] = {
    UINT64_C(0x0000000000000000), UINT64_C(0x0000000000000001),
    UINT64_C(0x0000000000000002), UINT64_C(0x0000010000000000),
    UINT64_C(0xffffffffffffffff),
};
static const uint64_t GOLDEN_FOLD[] = {
    UINT64_C(0x139e33031716523f), UINT64_C(0xaa5899fb00143666),
    UINT64_C(0x9dfa88e748dff98e), UINT64_C(0x193c4c4a913f3d74),
    UINT64_C(0xe0085647c4e4ce70), UINT64_C(0x592355125924de59),
    UINT64_C(0x0f4459ad76564739), UINT64_C(0x38d6101c044325ef),
    UINT64_C(0xe2d2ad0c9e9ceb43), UINT64_C(0xeaebf0a269e9bdfc),
};
static const uint32_t GOLDEN_UNIFORM_F32[] = {
    0x3f2ef2adu, 0x3f769b59u, 0x3e73ad10u, 0x3f09b657u, 0x3f6c2ab3u,
    0x3e8ce3fau, 0x3ee9bd94u, 0x3e96efd8u, 0x3f57bb4au, 0x3f38f76cu,
    0x3e6f214cu, 0x3f290182u, 0x3d9d7f88u, 0x3e23e060u, 0x3f603609u,
    0x3e8026fcu, 0x3f2541acu, 0x3f5ab347u, 0x3f2dce54u,
};
static const uint32_t GOLDEN_UNIFORM_F32_WIDE[] = {
    0x4081f003u, 0x40d7ed9eu, 0xbe5cb5cdu, 0x402a826au, 0x40cb6670u,
    0x3e111926u, 0x3ff0fa30u, 0x3ea8fe80u, 0x40b2e0bfu, 0x408df5b5u,
    0xbe842cfau, 0x40759d38u, 0xbfe18048u, 0xbf76b24du, 0x40bd0da4u,
    0xbdc6f3cdu, 0x406c9d9du, 0x40b670bcu, 0x40809132u,
};
static const uint16_t GOLDEN_UNIFORM_F16[] = {
    0x3977, 0x3bb4, 0x339c, 0x384d, 0x3b61, 0x3466, 0x374c, 0x34b6, 0x3abd,
    0x39c7, 0x3378, 0x3948, 0x2ce8, 0x311c, 0x3b01, 0x3400, 0x392a, 0x3ad5,
    0x396e,
};
static const uint16_t GOLDEN_UNIFORM_BF16[] = {
    0x3f2e, 0x3f76, 0x3e70, 0x3f09, 0x3f6c, 0x3e8c, 0x3ee8, 0x3e96, 0x3f57,
    0x3f38, 0x3e6c, 0x3f29, 0x3d98, 0x3e20, 0x3f60, 0x3e80, 0x3f25, 0x3f5a,
    0x3f2d,
};
static const uint16_t GOLDEN_TIES_F16[] = {
    0x3d78, 0x3fb5, 0x379e, 0x3c4e, 0x3f62, 0x3867, 0x3b4d, 0x38b7, 0x3ebe,
    0x3dc8, 0x377a, 0x3d49, 0x30ec, 0x351e, 0x3f02, 0x3801, 0x3d2b, 0x3ed6,
    0x3d6f,
};
static const uint16_t GOLDEN_TIES_BF16[] = {
    0x3faf, 0x3ff7, 0x3ef2, 0x3f8a, 0x3fed, 0x3f0d, 0x3f69, 0x3f17, 0x3fd8,
    0x3fb9, 0x3eee, 0x3faa, 0x3e1c, 0x3ea2, 0x3fe1, 0x3f01, 0x3fa6, 0x3fdb,
    0x3fae,
};
static const uint64_t GOLDEN_UNIFORM_F64[] = {
    UINT64_C(0x3feed36b2a15de55), UINT64_C(0x3fe136cae7479d68),
    UINT64_C(0x3fd19c7f617b0aac), UINT64_C(0x3fd2ddfb1d9d37b2),
    UINT64_C(0x3fe71eed84faf769), UINT64_C(0x3fd2330073547376),
    UINT64_C(0x3fecaf8694527e7f), UINT64_C(0x3fc44694598d9cf4),
    UINT64_C(0x3febf761a9bc8336), UINT64_C(0x3fd24950dcaf2a92),
    UINT64_C(0x3fe1cd310bb262b5), UINT64_C(0x3fdee0000b53dc54),
    UINT64_C(0x3fb3b58d8d3db928), UINT64_C(0x3fe9c91cc1b16c23),
    UINT64_C(0x3fddea1fdacd6240), UINT64_C(0x3fed5f483c27213d),
    UINT64_C(0x3fed9ed4aec4c1cc), UINT64_C(0x3fe8fa56e20b5c95),
    UINT64_C(0x3fe2a88c04afb5f3),
};
static const double GOLDEN_NORMAL_32[] = {
    0.4772009880250523, 1.7904342507579085, -0.7128641080127764,
    0.0952416324749669, 1.4222735681893364, -0.5972301856355211,
    -0.10919340994110929, -0.5394197152510285, 1.0056231796100623,
    0.590360084191492, -0.7272857022937803, 0.4129524780500011,
    -1.4262131404702822, -0.9943114328204847, 1.154364244372706,
    -0.6735540591072118, 0.3732891413852871, 1.0550468838285914,
    0.4647077007640402,
};
static const double GOLDEN_NORMAL_64[] = {
    1.790434251289535, 0.09524163232134296, -0.5972301853407824,
    -0.5394197152803749, 0.5903600844295743, -0.5699290795595993,
    1.2614492164834437, -1.0010392557092056, 1.1452535851337644,
    -0.5659177556132349, 0.14158932643619268, -0.0440760656305164,
    -1.4256200140880888, 0.8625220402732976, -0.08176996235656205,
    1.390959355952378, 1.4440569682960411, 0.7740825336364402,
    0.20976531786933172,
};
static const int64_t GOLDEN_PERMUTATION_10[] = {
    3, 1, 9, 6, 8, 5, 2, 4, 0, 7,
};
static const int64_t GOLDEN_PERMUTATION_33[] = {
    32, 31, 1, 25, 24, 30, 14, 12, 4, 21, 10, 17, 18, 6, 28, 9, 29, 11, 23, 3,
    27, 2, 19, 13, 8, 7, 15, 22, 0, 5, 26, 20, 16,
};
/* clang-format on */
