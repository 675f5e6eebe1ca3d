/* SPDX-License-Identifier: 0BSD */
/*
 * Random lives of a device whose configuration, one of five (-DKIND=0..4), is
 * known when compiling (-DCONFIGURED), or not.  check.sh compares what both
 * print with TRACE=1: all calls, their answers, and the bytes of the medium.
 *
 *     configured FIRST COUNT       that many
 */
#define IDEM_STATIC
#include "idem.h"

static int constant_read(void *, uint32_t, void *, uint32_t);
static int constant_prog(void *, uint32_t, const void *, uint32_t);
static inline int constant_erase(void *, uint32_t);
static inline int constant_erasing(void *);
static inline int constant_sync(void *);

#define CALLBACKS .read = constant_read, .prog = constant_prog

#if KIND == 0
/* Random keys, as small as it gets */
static const char modes[] = "keys=6 polls=1";
#define MEDIUM { "", FLASH_NOR, 0, 1, 384, 0xFF }
static const idem_storage ring = {
    CALLBACKS, .erase = constant_erase, .sector_size = 384, .sector_count = 9,
    .prog_size = 1, .erased = 0xFF,
};
static const idem_config the_one = {
    .secret = "sixteen secrets.", .storage = &ring, .capacity = 3, .key_max = 4,
    .response_max = 12, .lease_ms = 1000,
};
#elif KIND == 1
/* Everything */
static const char modes[] = "scopes=3 keys=9 most=4 polls=1";
#define MEDIUM { "", FLASH_NOR, SPLIT | VERIFY, 4, 512, 0x00 }
static const idem_storage ring = {
    CALLBACKS, .erase = constant_erase, .erasing = constant_erasing,
    .sector_size = 512, .sector_count = 14, .prog_size = 4, .verify = 1,
};
static const idem_config the_one = {
    .secret = "sixteen secrets.", .storage = &ring, .capacity = 6,
    .key_max = 10, .response_max = 12, .state_max = 4, .senders = 3, .quota = 2,
    .full = IDEM_EVICT_OLDEST, .lease_ms = 1000,
};
#elif KIND == 2
/* Batches with application state, and eviction */
static const char modes[] = "keys=6 polls=1";
#define MEDIUM { "", FLASH_INPLACE, CACHE, 1, 384, 0xFF }
static const idem_storage ring = {
    CALLBACKS, .sync = constant_sync, .sector_size = 384,
    .sector_count = 9, .prog_size = 1, .erased = 0xFF,
};
static const idem_config the_one = {
    .secret = "sixteen secrets.", .storage = &ring, .capacity = 3, .key_max = 4,
    .response_max = 12, .state_max = 4, .full = IDEM_EVICT_OLDEST,
    .durability = IDEM_BATCH, .retention_ms = 5000, .lease_ms = 1000,
};
#elif KIND == 3
/* Senders */
static const char modes[] = "scopes=2 keys=8 most=3 polls=1";
#define MEDIUM { "", FLASH_ECC, 0, 8, 512, 0xFF }
static const idem_storage ring = {
    CALLBACKS, .erase = constant_erase, .sector_size = 512, .sector_count = 12,
    .prog_size = 8, .erased = 0xFF,
};
static const idem_config the_one = {
    .secret = "sixteen secrets.", .storage = &ring, .capacity = 5, .key_max = 9,
    .response_max = 12, .senders = 2, .lease_ms = 1000,
};
#else
/* In RAM alone */
static const char modes[] = "scopes=3 keys=9 most=4 ram";
#define MEDIUM { "", 0, 0, 0, 0, 0 }
static const idem_config the_one = {
    .secret = "sixteen secrets.", .capacity = 6, .key_max = 10,
    .response_max = 12, .senders = 3, .quota = 3, .full = IDEM_EVICT_OLDEST,
    .lease_ms = 1000,
};
#endif

#ifdef CONFIGURED
#define IDEM_CONFIG the_one
#endif
#include "../model/small.h"

static const medium on = MEDIUM;

/* The callbacks of a constant have no ctx of their own. */
static int constant_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx;
    return device_read(&the, at, dst, len);
}

static int constant_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    (void)ctx;
    return device_prog(&the, at, src, len);
}

static inline int constant_erase(void *ctx, uint32_t sector)
{
    (void)ctx;
    return device_erase(&the, sector);
}

static inline int constant_erasing(void *ctx)
{
    (void)ctx;
    return device_erase_polled(&the);
}

static inline int constant_sync(void *ctx)
{
    (void)ctx;
    return device_sync_called(&the);
}

/* The bytes of the medium, as a number */
static uint32_t medium_sum(void)
{
    uint32_t sum = 2166136261u, i;

    for (i = 0; i < the.medium.size; i++)
        sum = (sum ^ the.medium.bytes[i]) * 16777619u;
    return sum;
}

static void live(void)
{
    chance_start(life);
    choose_modes(modes);
    the.config = the_one;
    if (the.config.storage) {
        the.storage = *the.config.storage;
        device_plug(&the, &on);
    }
    the.now = chance_word();
    play.tight = play.cuts = play.fails = 1;
    play.strange = 100;
    the.medium.draws = 2;
    device_make(&the, keys, KEYS_MAX);
    print_more = print_device;
    device_open(&the);
    play_calls(300);
    printf("token %llu, medium %08x\n", (unsigned long long)the.table->token,
           the.in_ram ? 0 : (unsigned)medium_sum());
    device_end(&the);
}

int main(int argc, char **argv)
{
    uint32_t end;

    if (argc != 3) {
        fprintf(stderr, "use: configured FIRST COUNT\n");
        return 2;
    }
    life = (uint32_t)strtoul(argv[1], NULL, 10);
    for (end = life + (uint32_t)strtoul(argv[2], NULL, 10); life != end; life++)
        live();
    return 0;
}
