// SPDX-License-Identifier: 0BSD
// Each line that comes over the serial port is a command: its first word is the
// key, the rest what to do.  Send one twice: the LED changes once.  Begin with
// an empty line: until the first line has ended nothing is executed, for it may
// be the rest of one.
// Without a journal: what was executed is forgotten with the power, and so is
// the secret, which is made anew at each start.
#include <idem.h>

enum { KEYS = 8, KEY_MAX = 8 };

// All but the secret is known when compiling: what it does not need is left
// out.  C++11 has no names for fields: in their order.
static const idem_config fixed = {
    KEYS, 0, KEY_MAX, 0, 0,             // no senders, responses, state
    0, nullptr, 0,                      // default attempts, no journal, lease
    60000,                              // a sender may repeat for a minute
    nullptr, nullptr, nullptr,          // no lock
    0, IDEM_REJECT, IDEM_EACH, 0, {}
};
#define IDEM_CONFIG fixed
#define IDEM_IMPLEMENTATION
#include <idem.h>

static idem_config config;              // with the secret
static idem_table table;
static uint32_t memory[IDEM_MEMORY_SIZE(KEYS, KEY_MAX, 0, 0) / 4];
static char line[40];
static uint8_t len;
static bool too_long;           // more came than fits into `line`
static bool whole;              // the line was read from its start on

// Words of its own, in flash: those of idem_text take 700 bytes of RAM here.
// Other results are numbers of idem.h's >>types: idem_retry decides for the
// sender whether to ask again.
static void answer(int result)
{
    if (result == IDEM_OK) {
        Serial.println(F("done"));
    } else if (result == IDEM_REPLAY) {
        Serial.println(F("done before"));
    } else {
        Serial.print(F("result "));
        Serial.println(result);
    }
}

// Random bytes for the secret.  The watchdog has an oscillator of its own: how
// often the processor can count until it ticks is never the same.  Where the
// chip has a random generator, use that.
#ifdef __AVR__
#include <avr/interrupt.h>
#include <avr/wdt.h>
static volatile bool ticked;
ISR(WDT_vect)
{
    ticked = true;
}

static uint8_t random_byte()
{
    uint8_t byte = 0, counted;

    for (uint8_t bit = 0; bit < 8; bit++) {
        ticked = false;
        for (counted = 0; !ticked; counted++)
            ;
        byte = (byte << 1 | byte >> 7) ^ counted;
    }
    return byte;
}

static void make_secret(uint8_t *secret, uint8_t size)
{
    cli();
    wdt_reset();
    MCUSR &= ~_BV(WDRF);                    // set, it keeps WDE set: a reset
    WDTCSR = _BV(WDCE) | _BV(WDE);          // allows the next line
    WDTCSR = _BV(WDIE);                     // an interrupt every 16 ms
    sei();
    while (size > 0)
        secret[--size] = random_byte();
    wdt_disable();
}
#elif defined(ESP32)
#include <bootloader_random.h>
#include <esp_random.h>

// Before radio and ADC are started, its generator has noise in between alone.
static void make_secret(uint8_t *secret, uint8_t size)
{
    bootloader_random_enable();
    esp_fill_random(secret, size);
    bootloader_random_disable();
}
#else
#error "make_secret: fill it from this chip's random generator"
#endif

void setup()
{
    Serial.begin(9600);
    pinMode(LED_BUILTIN, OUTPUT);
    config = fixed;
    make_secret(config.secret, sizeof config.secret);
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

// A line ends with \r, \n or both; an empty one is no command.  One that is too
// long is refused whole: its rest would be another command.
static void end_line()
{
    if (whole && too_long)
        answer(IDEM_E_TOO_LARGE);
    else if (whole && len > 0)
        command();
    whole = true;
    len = 0;
    line[0] = 0;
    too_long = false;
}

void loop()
{
    int c = Serial.read();

    if (c < 0) {
        (void)idem_maintain(&table, millis());
    } else if (c == '\n' || c == '\r') {
        end_line();
    } else if (c == 0 || len == sizeof line - 1) {
        too_long = true;
    } else {
        line[len++] = c;
        line[len] = 0;
    }
}
