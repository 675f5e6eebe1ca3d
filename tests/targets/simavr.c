/* SPDX-License-Identifier: 0BSD
   Runs an AVR program, whose EEPROM is a file and whose power goes at a cycle.

       simavr ELF MCU EEPROM CUT [NUMBER [NUMBER]]

   CUT 0 is never; if it is odd, the power goes in one of the next writes to the
   EEPROM after it, which is left torn.  (A real one takes 3.4 ms for a byte, so
   most cuts are there, in any byte of a record; the emulator takes no time, so
   the next one would mostly be the first of a record.)

   The program's output goes to standard output.  If it was not cut, the number
   of cycles follows.  Exits with its status, or 3 if it was cut, 4 if it crashed
   or its stack ran into its data. */
#include <simavr/avr_eeprom.h>
#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EEPROM_MAX = 4096 };
enum { RECORD = 61 };                   // bytes, about
enum { CUT = 3, CRASHED = 4, UNUSABLE = 5 };

// Registers, where they are in the data space.
enum { GPIOR0 = 0x3E, GPIOR1 = 0x4A, GPIOR2 = 0x4B };
enum { EEARL = 0x41, EEARH = 0x42 };

static uint8_t eeprom[EEPROM_MAX];      // as it was before the last step
static uint8_t *now;                    // as the emulator has it
static unsigned data_end;               // where the stack must not go

static void on_sent(struct avr_irq_t *irq, uint32_t byte, void *user)
{
    (void)irq, (void)user;
    putchar((int)byte);
}

static void on_log(avr_t *avr, const int level, const char *format,
                   va_list args)
{
    (void)avr, (void)level, (void)format, (void)args;
}

/* The program waits in busy loops only; the host does not. */
static void on_sleep(avr_t *avr, avr_cycle_count_t cycles)
{
    (void)avr, (void)cycles;
}

static avr_t *load(const char *elf, const char *mcu)
{
    elf_firmware_t firmware;
    avr_t *avr;

    avr_global_logger_set(on_log);
    memset(&firmware, 0, sizeof firmware);
    if (elf_read_firmware(elf, &firmware))
        return NULL;
    snprintf(firmware.mmcu, sizeof firmware.mmcu, "%s", mcu);
    firmware.frequency = 16000000;
    avr = avr_make_mcu_by_name(firmware.mmcu);
    if (!avr || avr->e2end + 1u > EEPROM_MAX)
        return NULL;
    avr_init(avr);
    avr_load_firmware(avr, &firmware);
    data_end = avr->ioend + 1u + firmware.datasize + firmware.bsssize;
    avr->sleep = on_sleep;
    return avr;
}

static void connect(avr_t *avr)
{
    uint32_t flags = 0;

    avr_ioctl(avr, AVR_IOCTL_UART_GET_FLAGS('0'), &flags);
    flags &= ~(uint32_t)(AVR_UART_FLAG_STDIO | AVR_UART_FLAG_POLL_SLEEP);
    avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
    avr_irq_register_notify(
        avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUTPUT),
        on_sent, NULL);
}

/* A file that is not there is a new EEPROM. */
static void read_eeprom(avr_t *avr, const char *path)
{
    avr_eeprom_desc_t all = { .ee = NULL, .size = avr->e2end + 1u };
    FILE *file = fopen(path, "rb");

    avr_ioctl(avr, AVR_IOCTL_EEPROM_GET, &all);
    now = all.ee;
    memset(now, 0xFF, all.size);
    if (file) {
        if (fread(now, 1, all.size, file) != all.size)
            fprintf(stderr, "%s: too short\n", path);
        fclose(file);
    }
    memcpy(eeprom, now, all.size);
}

static int write_eeprom(const avr_t *avr, const char *path)
{
    FILE *file = fopen(path, "wb");
    size_t written;

    if (!file)
        return -1;
    written = fwrite(now, 1, avr->e2end + 1u, file);
    return fclose(file) == 0 && written == avr->e2end + 1u ? 0 : -1;
}

// The byte that was written last.
static struct {
    unsigned at;
    uint8_t before;
} written;

/* Sees by the address register whether something was written just now. */
static int writes(const avr_t *avr)
{
    unsigned at = avr->data[EEARL] | (unsigned)avr->data[EEARH] << 8;

    at &= avr->e2end;
    if (eeprom[at] == now[at])
        return 0;
    written.at = at;
    written.before = eeprom[at];
    eeprom[at] = now[at];
    return 1;
}

/* A byte is erased first, then programmed: bits read as they did, as 1, or as
   they shall. */
static void tear(const avr_t *avr)
{
    uint8_t *byte = &now[written.at];
    uint8_t chance = (uint8_t)(avr->cycle * 0x9E3779B1u >> 16);

    if (chance & 1)
        *byte |= chance;
    else
        *byte = (uint8_t)(written.before | chance);
    printf("torn %u\n", written.at);
}

/* The stack pointer, as it was when both its bytes were last in agreement:
   between the writes to them, the upper one first, it may be far too low. */
static unsigned stack_pointer(const avr_t *avr)
{
    static unsigned last;
    unsigned sp = avr->data[R_SPL] | (unsigned)avr->data[R_SPH] << 8;

    if ((sp & 0xFF) != (last & 0xFF))
        last = sp;
    return last;
}

/* Runs it to its end, or to the cut; returns what to exit with. */
static int run(avr_t *avr, avr_cycle_count_t cut)
{
    int state = cpu_Running;
    unsigned more = cut % 2 ? (unsigned)(cut / 2 % RECORD) : 0;

    while (state != cpu_Done && state != cpu_Crashed) {
        unsigned sp = stack_pointer(avr);
        int wrote = writes(avr), due = cut && avr->cycle >= cut;
        if (due && cut % 2 == 0)
            return CUT;
        if (due && wrote && more-- == 0) {
            tear(avr);
            return CUT;
        }
        state = avr_run(avr);
        if (sp > avr->ioend && sp + 1 < data_end) {
            printf("\nwrong stack: in the data .\n");
            return CRASHED;
        }
    }
    printf("cycles %llu\n", (unsigned long long)avr->cycle);
    return state == cpu_Crashed ? CRASHED : avr->data[GPIOR2];
}

int main(int argc, char **argv)
{
    avr_t *avr = argc > 4 ? load(argv[1], argv[2]) : NULL;
    int status;

    if (!avr) {
        fprintf(stderr, "simavr ELF MCU EEPROM CUT [NUMBER [NUMBER]]\n");
        return UNUSABLE;
    }
    connect(avr);
    read_eeprom(avr, argv[3]);
    avr->data[GPIOR0] = argc > 5 ? (uint8_t)atoi(argv[5]) : 0;
    avr->data[GPIOR1] = argc > 6 ? (uint8_t)atoi(argv[6]) : 0;
    status = run(avr, strtoull(argv[4], NULL, 0));
    if (write_eeprom(avr, argv[3])) {
        perror(argv[3]);
        return UNUSABLE;
    }
    return status;
}
