/* SPDX-License-Identifier: 0BSD
   A plugin for QEMU that counts the guest's instructions.  Its numbers are the
   same in every run.

     kill=N       QEMU is killed before the N-th: a power cut
     settle=MS    and before that has MS to finish writing files
     (always)     prints how many there were at the end

   It prints to standard output.  The prototypes are QEMU's, whose header is in
   no package of Debian 12. */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { QEMU_PLUGIN_CB_NO_REGS };

void qemu_plugin_register_vcpu_tb_trans_cb(
    qemu_plugin_id_t id, void (*cb)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_cb(
    struct qemu_plugin_insn *insn, void (*cb)(unsigned, void *), int flags,
    void *user);
void qemu_plugin_register_atexit_cb(
    qemu_plugin_id_t id, void (*cb)(qemu_plugin_id_t, void *), void *user);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(
    const struct qemu_plugin_tb *tb, size_t n);
int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                        char **argv);

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = 1;

static uint64_t count, kill_at, settle;

static void on_each(unsigned cpu, void *user)
{
    (void)cpu, (void)user;
    if (++count == kill_at) {
        usleep((useconds_t)settle * 1000);
        kill(getpid(), SIGKILL);
    }
}

static void on_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++)
        qemu_plugin_register_vcpu_insn_exec_cb(
            qemu_plugin_tb_get_insn(tb, i), on_each, QEMU_PLUGIN_CB_NO_REGS,
            NULL);
}

static void on_exit_(qemu_plugin_id_t id, void *user)
{
    (void)id, (void)user;
    printf("instructions %llu\n", (unsigned long long)count);
    fflush(stdout);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
                               int argc, char **argv)
{
    static const struct { const char *name; uint64_t *value; } options[] = {
        { "kill=", &kill_at }, { "settle=", &settle },
    };

    (void)info;
    for (int i = 0; i < argc; i++)
        for (size_t o = 0; o < sizeof options / sizeof options[0]; o++)
            if (!strncmp(argv[i], options[o].name, strlen(options[o].name)))
                *options[o].value =
                    strtoull(strchr(argv[i], '=') + 1, NULL, 0);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
    qemu_plugin_register_atexit_cb(id, on_exit_, NULL);
    return 0;
}
