// SPDX-License-Identifier: 0BSD
// For an Arduino Mega 2560, whose EEPROM has 4 KB: each line that comes over
// the serial port is a command; its first word is the key, the rest what to do.
// The LED changes once for each key, even if the power goes in between: key,
// answer and the LED's state are one record in the EEPROM.  Set the brown-out
// fuse.  Begin with an empty line: until the first line has ended nothing is
// executed, for it may be the rest of one.  Wait for the answer before you send
// the next line: while the EEPROM is written, for seconds, no more than 63
// characters are kept, and what is lost from a line makes another command of
// it.  So does noise: serial/protocol.h has a check.
//
// The last 16 bytes of the EEPROM are the secret, random and this device's own:
// write them with your programmer, once, when the device is made.
#include <idem.h>
#include <port/avr_eeprom.h>

enum { KEYS = 8, KEY_MAX = 8, STATE = 1, SECTOR = 500 };
enum { SECTORS = IDEM_SECTORS(KEYS, KEY_MAX, 0, STATE, SECTOR, 1) };
enum { FIRST = 1, SECRET = E2END + 1 - 16 };
static_assert(SECTORS > 0 && FIRST + SECTORS * SECTOR <= SECRET,
              "the journal and the secret fit into the EEPROM");

// All but the secret is known when compiling: what it does not need is left
// out.  C++11 has no names for fields: in their order.
static const idem_storage journal = {
    (void *)FIRST, avr_eeprom_read, avr_eeprom_prog,
    nullptr, nullptr, nullptr, nullptr, // no erase, no sync
    SECTOR, SECTORS, 1, 0xFF,
    1                                   // verify: nothing reports a worn cell
};
static const idem_config fixed = {
    KEYS, 0, KEY_MAX, 0, STATE,         // no senders, responses
    0, &journal, 0,                     // default attempts, lease
    60000,                              // a sender may repeat for a minute
    nullptr, nullptr, nullptr,          // no lock
    0, IDEM_REJECT, IDEM_EACH, 0, {}
};
#define IDEM_CONFIG fixed
#define IDEM_IMPLEMENTATION
#include <idem.h>

static idem_config config;              // with the secret
static idem_table table;
static uint32_t
    memory[IDEM_JOURNAL_MEMORY_SIZE(KEYS, KEY_MAX, 0, STATE, 1) / 4];
static char line[40];
static uint8_t len;
static bool too_long;           // more came than fits into `line`
static bool opened;
static bool whole;              // the line was read from its start on

// Results are numbers of idem.h, whose words would take 700 bytes of RAM:
// idem_retry decides for the sender whether to ask again.
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

// The state that was stored last; off if there is none.
static uint8_t stored_led()
{
    uint8_t led = LOW;
    size_t size = sizeof led;

    if (idem_state(&table, &led, &size) != IDEM_OK || size != sizeof led)
        led = LOW;
    return led;
}

static bool has_secret()
{
    eeprom_read_block(config.secret, (const void *)SECRET, 16);
    for (uint8_t i = 1; i < 16; i++)
        if (config.secret[i] != config.secret[0])
            return true;
    return false;
}

void setup()
{
    Serial.begin(9600);
    pinMode(LED_BUILTIN, OUTPUT);
    config = fixed;
    if (!has_secret()) {
        Serial.println(F("no secret in the EEPROM"));
        return;
    }
    int result = idem_open(&table, &config, memory, sizeof memory, millis());
    opened = result == IDEM_OK;
    if (opened)
        digitalWrite(LED_BUILTIN, stored_led());
    else
        answer(result);
}

// The effect is the stored state: on IDEM_RECOVER it has not happened.  On
// IDEM_UNCERTAIN nobody knows: it is completed as failed, and not made.
static void command()
{
    size_t key_len = strcspn(line, " ");
    idem_request request = idem_request();
    idem_reply reply = idem_reply();
    idem_outcome outcome = idem_outcome();
    idem_claim claim;
    uint8_t led = !stored_led();

    request.key = line;
    request.key_len = key_len;
    request.payload = line + key_len;
    request.payload_len = len - key_len;
    int result = idem_begin(&table, &claim, &reply, &request, millis());
    if (result == IDEM_EXECUTE || result == IDEM_RECOVER) {
        outcome.state = &led;
        outcome.state_len = sizeof led;
        result = idem_complete(&table, &claim, &outcome, millis());
        if (result == IDEM_OK)
            digitalWrite(LED_BUILTIN, led);
    } else if (result == IDEM_UNCERTAIN) {
        outcome.failed = 1;
        int stored = idem_complete(&table, &claim, &outcome, millis());
        result = stored == IDEM_OK ? IDEM_UNCERTAIN : stored;
    }
    if (result == IDEM_REPLAY && reply.status == IDEM_FAILED)
        result = IDEM_UNCERTAIN;
    answer(result);
}

// A line ends with \r, \n or both; one that is too long is refused whole.
void loop()
{
    int c = Serial.read();

    if (!opened)
        return;
    if (c < 0) {
        (void)idem_maintain(&table, millis());
    } else if (c == '\n' || c == '\r') {
        if (whole && too_long)
            answer(IDEM_E_TOO_LARGE);
        else if (whole && len > 0)
            command();
        whole = true;
        len = 0;
        line[0] = 0;
        too_long = false;
    } else if (c == 0 || len == sizeof line - 1) {
        too_long = true;
    } else {
        line[len++] = c;
        line[len] = 0;
    }
}
