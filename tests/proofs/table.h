/* SPDX-License-Identifier: 0BSD */
/* A table of any configuration that its memory is enough for. */
static idem_config config;
static idem_table table;

static void configure(const idem_storage *storage)
{
    ANY(config);
    config.capacity = CAPACITY;
    config.key_max = KEY_MAX;
    config.response_max = RESPONSE_MAX;
    config.state_max = STATE_MAX;
    config.senders = 0;
    config.lock = NULL;
    config.unlock = NULL;
    config.storage = storage;
}
