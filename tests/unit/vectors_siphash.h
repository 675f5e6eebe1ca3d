/* SPDX-License-Identifier: 0BSD */
/*
 * Test vectors for SipHash and HalfSipHash.
 *
 * Each array holds 17 hash values: to two blocks, with every rest of one. Entry
 * i is the hash of the i bytes
 * 00 01 02 ... under the key 00 01 ... 0f (SipHash) or 00 01 ... 07
 * (HalfSipHash). A value is the output bytes of the reference implementation
 * read as one little-endian integer.
 *
 * The names carry the number of compression rounds, the number of finalization
 * rounds and the width of the hash in bits.
 *
 * The values come from the authors' reference implementation,
 * https://github.com/veorq/SipHash (CC0, MIT or Apache 2.0 with the LLVM
 * exceptions), at commit f26d35e964c6290ffe23d9043475ad3129f409e0.
 * Those of the 2-4 variants are its own vectors.h. It publishes none for the
 * 1-3 variants: those are the output of the same code built with cROUNDS=1 and
 * dROUNDS=3.
 */
#ifndef VECTORS_SIPHASH_H
#define VECTORS_SIPHASH_H

#include <stdint.h>

static const uint64_t siphash_2_4_64[17] = {
    UINT64_C(0x726fdb47dd0e0e31), UINT64_C(0x74f839c593dc67fd),
    UINT64_C(0x0d6c8009d9a94f5a), UINT64_C(0x85676696d7fb7e2d),
    UINT64_C(0xcf2794e0277187b7), UINT64_C(0x18765564cd99a68d),
    UINT64_C(0xcbc9466e58fee3ce), UINT64_C(0xab0200f58b01d137),
    UINT64_C(0x93f5f5799a932462), UINT64_C(0x9e0082df0ba9e4b0),
    UINT64_C(0x7a5dbbc594ddb9f3), UINT64_C(0xf4b32f46226bada7),
    UINT64_C(0x751e8fbc860ee5fb), UINT64_C(0x14ea5627c0843d90),
    UINT64_C(0xf723ca908e7af2ee), UINT64_C(0xa129ca6149be45e5),
    UINT64_C(0x3f2acc7f57c29bdb),
};

static const uint64_t halfsiphash_2_4_64[17] = {
    UINT64_C(0xc83cb8b9591f8d21), UINT64_C(0x157338f8122455be),
    UINT64_C(0x57eb507cef394f06), UINT64_C(0x790606f7451a0fce),
    UINT64_C(0xa12ee55b178ae7d5), UINT64_C(0x80b53d2f3f7c9dcb),
    UINT64_C(0x25bca28a35913ece), UINT64_C(0x84c67bb0282720ff),
    UINT64_C(0x8c85e4bc20e8feed), UINT64_C(0x07838813cccc515b),
    UINT64_C(0xeef2a6069f46b095), UINT64_C(0x48cddd94393326ae),
    UINT64_C(0x99c7f5ae9f1fc77b), UINT64_C(0x44370c5ad752235a),
    UINT64_C(0x58e6e8ea70a8b13b), UINT64_C(0x02c9814ecb0b7d21),
    UINT64_C(0xb5f37b5fd2aa3673),
};

static const uint64_t siphash_1_3_64[17] = {
    UINT64_C(0xabac0158050fc4dc), UINT64_C(0xc9f49bf37d57ca93),
    UINT64_C(0x82cb9b024dc7d44d), UINT64_C(0x8bf80ab8e7ddf7fb),
    UINT64_C(0xcf75576088d38328), UINT64_C(0xdef9d52f49533b67),
    UINT64_C(0xc50d2b50c59f22a7), UINT64_C(0xd3927d989bb11140),
    UINT64_C(0x369095118d299a8e), UINT64_C(0x25a48eb36c063de4),
    UINT64_C(0x79de85ee92ff097f), UINT64_C(0x70c118c1f94dc352),
    UINT64_C(0x78a384b157b4d9a2), UINT64_C(0x306f760c1229ffa7),
    UINT64_C(0x605aa111c0f95d34), UINT64_C(0xd320d86d2a519956),
    UINT64_C(0xcc4fdd1a7d908b66),
};

static const uint32_t halfsiphash_1_3_32[17] = {
    UINT32_C(0x5814c896), UINT32_C(0xe7e864ca), UINT32_C(0xbc4b0e30),
    UINT32_C(0x01539939), UINT32_C(0x7e059ea6), UINT32_C(0x88e3d89b),
    UINT32_C(0xa0080b65), UINT32_C(0x9d38d9d6), UINT32_C(0x577999b1),
    UINT32_C(0xc839caed), UINT32_C(0xe4fa32cf), UINT32_C(0x959246ee),
    UINT32_C(0x6b28096c), UINT32_C(0x66dd9cd6), UINT32_C(0x16658a7c),
    UINT32_C(0xd0257b04), UINT32_C(0x8b31d501),
};

#endif
