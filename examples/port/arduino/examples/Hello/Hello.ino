// SPDX-License-Identifier: 0BSD
// Each line that comes over the serial port is a command: its first word is the
// key, the rest what to do.  Send one twice: the LED changes once.
// Without a journal: what was executed is forgotten with the power.
#define IDEM_NO_JOURNAL
#define IDEM_IMPLEMENTATION
#include <idem.h>

enum { KEYS = 8, KEY_MAX = 8 };

static idem_config config;
static idem_table table;
static uint32_t memory[IDEM_MEMORY_SIZE(KEYS, KEY_MAX, 0, 0) / 4];
static char line[40];
static uint8_t len;

// Words of its own, in flash: those of idem_text take 700 bytes of RAM here.
static void answer(int result)
{
    if (result == IDEM_OK) {
        Serial.println(F("done"));
    } else if (result == IDEM_REPLAY) {
        Serial.println(F("done before"));
    } else {
        Serial.print(F("refused: "));
        Serial.println(result);         // a number of idem.h's >>types
    }
}

void setup()
{
    Serial.begin(9600);
    pinMode(LED_BUILTIN, OUTPUT);
    config.capacity = KEYS;
    config.key_max = KEY_MAX;
    config.retention_ms = 60000;            // a sender may repeat for a minute
    for (uint8_t i = 0; i < sizeof config.secret; i++)
        config.secret[i] = i + 1;           // yours is random, of this device
    int result = idem_open(&table, &config, memory, sizeof memory, millis());
    if (result != IDEM_OK) {
        answer(result);
#ifndef __AVR__                             // there its words take 1,260 bytes
        const char *why = idem_explain(&config);
        Serial.println(why ? why : "");
#endif
    }
}

static void execute()
{
    static bool on;

    on = !on;
    digitalWrite(LED_BUILTIN, on ? HIGH : LOW);
}

static void command()
{
    size_t key_len = strcspn(line, " ");
    idem_request request = idem_request();
    idem_reply reply = idem_reply();
    idem_outcome outcome = idem_outcome();
    idem_claim claim;

    request.key = line;
    request.key_len = key_len;
    request.payload = line + key_len;
    request.payload_len = len - key_len;
    int result = idem_begin(&table, &claim, &reply, &request, millis());
    if (result == IDEM_EXECUTE) {
        execute();
        result = idem_complete(&table, &claim, &outcome, millis());
    }
    answer(result);
}

void loop()
{
    int c = Serial.read();

    if (c < 0) {
        idem_maintain(&table, millis());
    } else if (c != '\n' && len < sizeof line - 1) {
        line[len++] = c;
        line[len] = 0;
    } else {
        command();
        len = 0;
        line[0] = 0;
    }
}
