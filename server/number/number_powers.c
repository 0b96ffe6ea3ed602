/* number_powers: the tables of powers of ten, by number_tables.py;
 * tests/unit/test_number.c proves every entry of the first. */
#include "server/number/number_powers.h"

const uint64_t number_powers[NUMBER_POWER_MAX - NUMBER_POWER_MIN + 1] = {
    0x86ccbb52ea94baeb, 0xa87fea27a539e9a6, 0xd29fe4b18e88640f, 0x83a3eeeef9153e8a,
    0xa48ceaaab75a8e2c, 0xcdb02555653131b7, 0x808e17555f3ebf12, 0xa0b19d2ab70e6ed7,
    0xc8de047564d20a8c, 0xfb158592be068d2f, 0x9ced737bb6c4183e, 0xc428d05aa4751e4d,
    0xf53304714d9265e0, 0x993fe2c6d07b7fac, 0xbf8fdb78849a5f97, 0xef73d256a5c0f77d,
    0x95a8637627989aae, 0xbb127c53b17ec15a, 0xe9d71b689dde71b0, 0x9226712162ab070e,
    0xb6b00d69bb55c8d2, 0xe45c10c42a2b3b06, 0x8eb98a7a9a5b04e4, 0xb267ed1940f1c61d,
    0xdf01e85f912e37a4, 0x8b61313bbabce2c7, 0xae397d8aa96c1b78, 0xd9c7dced53c72256,
    0x881cea14545c7576, 0xaa242499697392d3, 0xd4ad2dbfc3d07788, 0x84ec3c97da624ab5,
    0xa6274bbdd0fadd62, 0xcfb11ead453994bb, 0x81ceb32c4b43fcf5, 0xa2425ff75e14fc32,
    0xcad2f7f5359a3b3f, 0xfd87b5f28300ca0e, 0x9e74d1b791e07e49, 0xc612062576589ddb,
    0xf79687aed3eec552, 0x9abe14cd44753b53, 0xc16d9a0095928a28, 0xf1c90080baf72cb2,
    0x971da05074da7bef, 0xbce5086492111aeb, 0xec1e4a7db69561a6, 0x9392ee8e921d5d08,
    0xb877aa3236a4b44a, 0xe69594bec44de15c, 0x901d7cf73ab0acda, 0xb424dc35095cd810,
    0xe12e13424bb40e14, 0x8cbccc096f5088cc, 0xafebff0bcb24aaff, 0xdbe6fecebdedd5bf,
    0x89705f4136b4a598, 0xabcc77118461cefd, 0xd6bf94d5e57a42bd, 0x8637bd05af6c69b6,
    0xa7c5ac471b478424, 0xd1b71758e219652c, 0x83126e978d4fdf3c, 0xa3d70a3d70a3d70b,
    0xcccccccccccccccd, 0x8000000000000000, 0xa000000000000000, 0xc800000000000000,
    0xfa00000000000000, 0x9c40000000000000, 0xc350000000000000, 0xf424000000000000,
    0x9896800000000000, 0xbebc200000000000, 0xee6b280000000000, 0x9502f90000000000,
    0xba43b74000000000, 0xe8d4a51000000000, 0x9184e72a00000000, 0xb5e620f480000000,
    0xe35fa931a0000000, 0x8e1bc9bf04000000, 0xb1a2bc2ec5000000, 0xde0b6b3a76400000,
    0x8ac7230489e80000, 0xad78ebc5ac620000, 0xd8d726b7177a8000, 0x878678326eac9000,
    0xa968163f0a57b400, 0xd3c21bcecceda100, 0x84595161401484a0, 0xa56fa5b99019a5c8,
    0xcecb8f27f4200f3a, 0x813f3978f8940985, 0xa18f07d736b90be6, 0xc9f2c9cd04674edf,
    0xfc6f7c4045812297, 0x9dc5ada82b70b59e, 0xc5371912364ce306, 0xf684df56c3e01bc7,
    0x9a130b963a6c115d, 0xc097ce7bc90715b4, 0xf0bdc21abb48db21, 0x96769950b50d88f5,
    0xbc143fa4e250eb32, 0xeb194f8e1ae525fe, 0x92efd1b8d0cf37bf, 0xb7abc627050305ae,
    0xe596b7b0c643c71a, 0x8f7e32ce7bea5c70, 0xb35dbf821ae4f38c,
};

#if defined(__x86_64__)
const double number_power_doubles[NUMBER_DOUBLE_MAX - NUMBER_DOUBLE_MIN + 1] = {
    1e-31, 1e-30, 1e-29, 1e-28, 1e-27, 1e-26, 1e-25, 1e-24, 1e-23, 1e-22, 1e-21, 1e-20, 1e-19,
    1e-18, 1e-17, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9,  1e-8,  1e-7,  1e-6,
    1e-5,  1e-4,  1e-3,  1e-2,  1e-1,  1e0,   1e1,   1e2,   1e3,   1e4,   1e5,   1e6,   1e7,
    1e8,   1e9,   1e10,  1e11,  1e12,  1e13,  1e14,  1e15,  1e16,  1e17,  1e18,  1e19,  1e20,
    1e21,  1e22,  1e23,  1e24,  1e25,  1e26,  1e27,  1e28,  1e29,  1e30,  1e31,  1e32,  1e33,
    1e34,  1e35,  1e36,  1e37,  1e38,  1e39,  1e40,  1e41,  1e42,  1e43,  1e44,  1e45,
};
#endif
