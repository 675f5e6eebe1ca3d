// SPDX-License-Identifier: 0BSD
// The sketch Hello.ino, fed with what comes over a serial port: how often the
// LED changed, and what was answered.
#include "Arduino.h"
#define ESP32                               // a chip with a random generator

static uint8_t next_random = 7;
static unsigned inputs;

// Without radio the generator has noise only while this is enabled.
static bool noise;
void bootloader_random_enable() { noise = true; }
void bootloader_random_disable() { noise = false; }

void esp_fill_random(void *dst, size_t size)
{
    memset(dst, noise ? next_random++ : 0, size);
}

#include "examples/port/arduino/examples/Hello/Hello.ino"

// What the sketch does with that line_in
static void gives(const std::string &text, unsigned led_changes,
                  const char *answered)
{
    line_in = text;
    taken = changes = 0;
    printed.clear();
    while (taken < line_in.size())
        loop();
    if (changes != led_changes || printed != answered) {
        fprintf(stderr, "sketch: \"%s\": %u changes, not %u; \"%s\", not "
                "\"%s\"\n", text.c_str(), changes, led_changes, printed.c_str(),
                answered);
        exit(1);
    }
    inputs++;
}

int main()
{
    uint8_t secret[sizeof config.secret];
    const std::string longer(40, '7');

    setup();
    gives("", 0, "");
    gives("2 on\n", 0, "");            // what it heard of "12 on\n"
    gives("1 on\n1 on\n", 1, "done;done before;");
    gives("2 on\r\n2 on\r\n", 1, "done;done before;");
    gives("3 on\r3 on\n", 1, "done;done before;");
    gives("\n\r\n", 0, "");
    gives("4 " + longer + " 5 on\n", 0, "result -2;");
    gives("5 " + std::string(37, 'x') + "\n", 1, "done;");      // all that fits
    gives("6 " + std::string(38, 'x') + "\n6 on\n", 1, "result -2;done;");
    gives(std::string("7 o\0n\n", 6), 0, "result -2;");
    gives("123456789 on\n on\n", 0, "result -2;result -1;");
    memcpy(secret, config.secret, sizeof secret);
    setup();
    if (memcmp(secret, config.secret, sizeof secret) == 0) {
        fputs("sketch: two starts have one secret\n", stderr);
        return 1;
    }
    printf("sketch: %u inputs, each line once, or refused whole\n", inputs);
    return 0;
}
