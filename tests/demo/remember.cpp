// SPDX-License-Identifier: 0BSD
// The sketch Remember.ino: power goes before each byte that a command writes to
// the EEPROM; repeated after the restart, it has changed the LED once.
#include "Arduino.h"

#include "examples/port/arduino/examples/Remember/Remember.ino"

// RAM and pins are as after a reset.
static void start(const std::string &lines)
{
    std::memset(static_cast<void *>(&table), 0, sizeof table);
    opened = too_long = whole = false;
    len = 0;
    line_in = lines;
    taken = 0;
    printed.clear();
    led = LOW;
    setup();
    for (size_t i = 0; i < line_in.size() + 5; i++)
        loop();
}

static int failed;

static void is(const char *lines, const char *expected, int lit)
{
    start(std::string("\n") + lines);
    if (printed == expected && led == lit)
        return;
    std::printf("FAILED: %s: %s led %d\n", lines, printed.c_str(), led);
    failed = 1;
}

int main()
{
    static uint8_t before[sizeof eeprom];
    bool cut = true;
    int cuts = 0;

    std::memset(eeprom, 0xFF, sizeof eeprom);
    is("a on\n", "no secret in the EEPROM;", LOW);
    for (int i = 0; i < 16; i++)
        eeprom[E2END + 1 - 16 + i] = (uint8_t)(7 * i + 1);
    is("a on\r\na on\r\nb on\nb off\n", "done;done before;done;result 6;",
       LOW);
    is("b on\nc on\n", "done before;done;", HIGH);
    start("c2 on\n");              // of "abc2 on": it did not run before
    if (printed != "")
        is("c2 on\n", "not executed", HIGH);
    std::memcpy(before, eeprom, sizeof eeprom);
    for (; cut; cuts++) {
        std::memcpy(eeprom, before, sizeof eeprom);
        bytes_left = cuts;
        cut = false;
        try {
            start("\nd off\n");
        } catch (const char *) {
            cut = true;
        }
        bytes_left = -1;
        start(" off\nd off\n");           // of a line that it heard the end of
        if (led != LOW || (printed != "done;" && printed != "done before;"))
            is("d off\n", "done before;", LOW);
        is("d off\n", "done before;", LOW);
    }
    std::printf("remember: %d power cuts, %s\n", cuts - 1,
                failed ? "FAILED" : "each command once");
    return failed || cuts < 100;
}
