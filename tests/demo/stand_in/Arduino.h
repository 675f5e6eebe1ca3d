/* SPDX-License-Identifier: 0BSD
   As much of Arduino's core as the sketches name: a serial port, fed with
   line_in, and the pin of the LED. */
#ifndef STAND_IN_ARDUINO_H
#define STAND_IN_ARDUINO_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

enum { LED_BUILTIN, OUTPUT, LOW = 0, HIGH = 1 };
#define F(text) text

static std::string line_in, printed;
static size_t taken;
static int led = LOW;
static unsigned changes;                // of it

static struct {
    void begin(long) {}
    int read()
    {
        return taken < line_in.size() ? (unsigned char)line_in[taken++] : -1;
    }
    void print(const char *text) { printed += text; }
    void println(const char *text) { printed += std::string(text) + ";"; }
    void println(int number) { printed += std::to_string(number) + ";"; }
} Serial;

static void pinMode(int, int) {}
static uint32_t millis() { return 1; }

static void digitalWrite(int, int level)
{
    changes += level != led;
    led = level;
}

#endif
