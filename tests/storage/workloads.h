/* SPDX-License-Identifier: 0BSD */
/*
 * What the power-cut explorer (crash.c) runs, and on which media.  A workload
 * is a line of calls with modes before them (tests/model/call.h); what is
 * before a bar is not cut.
 */
#ifndef WORKLOADS_H
#define WORKLOADS_H

/* -------------------------------------------- >>geometries  where it is run */

typedef struct geometry {
    medium   m;
    uint32_t sector_count;          // or as many as it takes
    uint8_t  spare;                 // bytes of memory more than needed
} geometry;

enum {
    STATELESS = 64,                 // there is no application state
    LATE = 128,                     // the headers are written before any cut
    TWICE = 256,                    // after each cut two sectors in a row fail
    NAMED = 512                     // it is run only if it is named: it is slow
};

static const geometry geometries[] = {
    { { "nor1",   FLASH_NOR,     0,              1,   512,  0xFF }, 4, 0 },
    { { "nor8",   FLASH_NOR,     0,              8,   512,  0xFF }, 8, 0 },
    { { "nor16",  FLASH_NOR,     0,              16,  512,  0xFF }, 4, 64 },
    { { "nor256", FLASH_NOR,     0,              256, 2560, 0xFF }, 4, 0 },
    { { "nor0",   FLASH_NOR,     0,              4,   384,  0x00 }, 4, 0 },
    { { "tiny",   FLASH_NOR,     STATELESS,      1,   312,  0xFF }, 4, 0 },
    { { "large",  FLASH_NOR,     0,              1,   4096, 0xFF }, 4, 255 },
    { { "split",  FLASH_NOR,     SPLIT | VERIFY, 2,   448,  0xFF }, 4, 0 },
    { { "ecc8",   FLASH_ECC,     0,              8,   512,  0xFF }, 4, 0 },
    { { "ecc16",  FLASH_ECC,     NOISE | VERIFY, 16,  1024, 0xFF }, 5, 0 },
    { { "noise",  FLASH_ECC,     ALL_NOISE | LATE, 16, 1024, 0xFF }, 5, 0 },
    { { "ecc-odd", FLASH_ECC,    0,              16,  640,  0xFF }, 5, 4 },
    { { "eeprom", FLASH_INPLACE, 0,              1,   336,  0xFF }, 4, 0 },
    { { "fram",   FLASH_INPLACE, VERIFY,         4,   512,  0x00 }, 5, 0 },
    { { "file",   FLASH_INPLACE, CACHE,          1,   512,  0x00 }, 4, 64 },
    { { "vast",   FLASH_NOR,     NAMED,          1,   65536, 0xFF }, 4, 0 },
    { { "failing", FLASH_NOR,    NAMED | TWICE,  8,   512,  0xFF }, 4, 0 },
};

/* -------------------------------------------------------- >>workloads  what */

typedef struct workload {
    const char *name;
    const char *line;
} workload;

static const workload workloads[] = {
    { "claim",      "Ba" },
    { "complete",   "Ba Ca" },
    { "fail",       "Ba Fa Bb Zb" },
    { "release",    "Ba Ra Ba Ra" },
    { "two",        "Ba Bb Ca Cb" },
    { "takeover",   "Ba L Ba ca Ca" },
    { "renewed",    "Ba Na L Ba L Ba Ca" },
    { "forget",     "Ba Ca Xa Ba Ca" },
    { "forget-cut", "Ba L Xa Ba P Xa Ba" },
    { "delivery",   "Ba Oa Bb Ob Da Db" },
    { "delivered",  "Ba Qa Da Xa Bb Ob P Db" },
    { "state",      "Ba Sa Bb Sb Xa" },
    { "retention",  "Ba Ca Bb T Bc Cc Ba Ca" },
    { "slot-reuse", "Ba Ca Bb Cb Bc Cc T Bd Cd Bb" },
    { "full",       "Ba Bb Bc Bd Cc Bd Xc Bd Cd" },
    { "elapse",     "Ba E Ba Ca E T Ba" },
    { "exhausted",  "Ba P Ba P Ba P Ba P Bb Cb Xa Ba" },
    { "reboots",    "Ba Ca P P Bb P P P Ba Bb Cb P" },
    { "cut-over",   "Ba Bb Cb P Bc Cc T Bd Cd P" },
    { "duplicates", "Ba Ba Ca Ba Ba P Ba Ba" },
    { "mismatch",   "Ba Wa Ca Wa P Wa Ba" },
    { "idle",       "Ba M Ca M Bb Ob M P M Aa Db" },
    { "ring",       "K4 Ba Sa Bb K14 Ob Bc K6" },
    { "ring-idle",  "Ba Sa Bb Ob M K3 M K3 M K3 M Bc M K4" },
    { "ring-cut",   "Ba P Bb Ob P K5 P K5 P K5 P Bc Cc K4" },
    { "ring-boots", "Ba Sa Bb Ob J14" },
    { "ring-heads", "Ba Sa P Bb Qb J5 M J4 Xa J5" },
    { "evict",      "evict Ba Ca Bb Ob Bc Cc Bd Cd Ba P Ba" },
    { "evict-ring", "evict K2 Ba Ca Bb Cb Bc Sc Bd Cd Ba Ca K6 Ab Ac" },
    { "batch",      "batch Ba Bb Y Ca Ob Y Xa" },
    { "batch-long", "batch Ba Ca Xa Ba Sa Bb Y Sb Bc Rc" },
    { "batch-slot", "batch Ba Y Ra Bb Cb Y L Ba Y" },
    { "batch-take", "batch Ba Y L Ba Sa Bb Y Xa Bc Cc Y" },
    { "batch-ring", "batch Ba Sa Y K2 Bb Ob Y K3 Y K3 Y" },
    { "echo",       "response=20 Ba Bb Cb Bc Cc Ia" },
    { "numbers",    "numbers=4 Ba Ca Bb Cb T Ba Bc Cc Bb P Ba Ra" },
    { "number-ring", "numbers=4 Ba Bb Cb T Bc Bb K6 P Bb K6 Bb Bc" },
    { "number-relocated", "numbers=4 Ba Ca T Ba K4 P T Ba J9 Ba M K5 Ba" },
    { "number-evict", "numbers=4 evict Ba Ca Bb Cb Bc Cc Bd Cd Ba K9 P Bb" },
    { "number-batch", "numbers=4 batch Ba Y Ca Bb Y T Ba Y K5 Y Ba Y" },
    { "number-left", "beside=4 Ba Ca K2 Bc L T Bc Ba K6 P Ba Bc" },
    { "number-rotated", "beside=4 Ba Ca K8 Bc L T Bc Ba K12 P Ba" },
    { "number-away", "beside=4 Ba Ca K12 Bc L T Bc Ba K9 P Ba" },
    { "number-idle", "beside=4 Ba Ca K9 M Bc L T Bc Ba M K9 M P Ba" },
    { "number-lapse", "numbers=4 Bb L T M M M Ba Bd P Ba K3 P Ba" },
    { "number-both", "beside=1 Ba Ca K8 Bc Cc T Bc Ba K12 P Ba Bc" },
    { "number-gone", "beside=4 evict Ba Ca Bb Ob Bc Cc Bd Cd K9 P Ba Bc" },
    { "number-refused", "beside=4 evict Ba Oa Bc Cc K9 Bc K9 P Bc Ba" },
    { "number-stays",
      "beside=4 Ba L T Bc,retention=1000 Cc Ba P wait2000 M Bb P Ba K9 P Ba Bc" },
    { "number-slot",
      "capacity=1 beside=4 Bb L T Ba,retention=1000 P ? wait2000 M Ba P Bb" },
    { "epochs",     "numbers=2 Ba Bb Cb Bc Ca Cc Ba P Bb K5 Ba Rd" },
    { "epoch-ring", "numbers=2 Ba Ca Bc Rc K6 Ba P T Bb K6 Bc Cc" },
    { "silence",
      "capacity=4 retention=86400000 Ba,retention=2592000000 Oa K8 "
      "Bb,retention=2592000000,lease E,n=2142720000 Da E,n=1900800000 Bc P Bd "
      "Cd Bc P Bd Bb Cb K12 Bd P Bd P Bd" },
    { "ram",        "Ba Ca Bb Ob P Ba Db Xa" },
};

// Where the systematic sequences begin.
static const char *const contexts[] = {
    "|",
    "Ba Ca P |",
    "Ba Sa Bb |",
    "Ba Oa Bb P |",
    "Bb Ob Ba L K3 |",
    "Ba Sa P Bb Cb J7 |",
    "batch Ba Sa Y |",
    "evict Bc Cc Bd Cd Ba |",
    "numbers=4 Ba Ca T Ba Bb |",
    "beside=4 Ba Ca K9 Bc L T Bc Ba |",
};

// What is done after a recovery, by turns.
static const char *const epilogues[] = {
    "! Aa Ab Ac Ad ? P ? Aa Ab Ac",
    "P ? M Ad Ab Aa Ac ? P P ? Aa Ad Ab",
    "! Bb Ab L Bb Ab Aa Xa Aa ? P ? Aa Ab Ac",
    "Ba Ra Ba Ca Bb Rb Ac ? P ? Aa Ab Ac",
    "Xa Xb ? Aa Ab P ? Aa Ab Ac",
    "P P Da Db Ac Xc Bc Sc ? P ? Aa Ab Ac",
    "Wa Wb Wc ? P Wa Wb Wc Xa ? Aa Ab Ac",
    "Ba P Ba P Aa P ? K3 Ab P ? Ac Ab",
};

// The calls of a systematic sequence; in batch mode with a sync.
static const char *const alphabet[] = {
    "Ba", "Ca", "Sa", "Oa", "Ra", "Xa", "Da",
    "Bb", "Cb", "Sb", "Ob", "Rb", "Xb", "Db",
    "L", "M", "P", "Y",
};

#endif /* WORKLOADS_H */
