# SPDX-License-Identifier: 0BSD
# Everything there is to do with idem.h.  POSIX make will do.
#     SHORT=1         the short form of what takes long
#     UNIT= PART=     only these unit tests; these parts of storage, of targets
.POSIX:

CC     = cc
CFLAGS = -std=c99 -Og -g
WARN   = -Wall -Wextra -Wpedantic -Wshadow -Werror
B      = build
BUILD  = $(CC) $(CFLAGS) $(WARN) -I.

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 16

S = examples/serial
DEVICE = $(S)/device.c $(S)/flash_file.c $(S)/protocol.c $(S)/host.c
DEVICE_C = $(S)/device_main.c $(S)/naive.c $(DEVICE)
DEMO_C = $(S)/demo.c $(S)/line.c $(S)/audit.c $(S)/traffic.c $(DEVICE)
CONTROLLER_C = $(S)/controller.c $(S)/traffic.c $(S)/protocol.c $(S)/host.c
SERIAL_H = $(S)/device.h $(S)/flash_file.h $(S)/protocol.h $(S)/host.h \
           $(S)/naive.h $(S)/line.h $(S)/audit.h $(S)/traffic.h idem.h
SERIAL = $(BUILD) -D_XOPEN_SOURCE=700
ROOMY  = -DDEVICE_KEYS=1000
DEMO   = $(B)/serial/demo $(B)/serial/controller $(B)/serial/device

demo: $(DEMO)            ## a bad line and kill -9
	@$(B)/serial/demo

hello: $(B)/hello        ## the first example of README
	@$(B)/hello

deps:                    ## install what test needs
	@sh tests/deps.sh libcmocka-dev

test:                    ## unit, model and thread tests; UNIT="table keys"
	@CC="$(CC)" CFLAGS="$(CFLAGS) $(WARN)" B="$(B)" sh tests/unit.sh $(UNIT)

examples: hello patterns once demo  ## build and run hello, patterns, once, demo

patterns: $(B)/patterns
	@$(B)/patterns

# A journal in a file, and what inspect says of it.
once: $(B)/file $(B)/inspect
	@B="$(B)" sh tests/once.sh

deps-all:                ## install what all below needs
	@sh tests/deps.sh $(PACKAGES)

check:                   ## every configuration, compiler and sanitizer
	@SHORT="$(SHORT)" sh tests/check.sh

crash: $(B)/crash $(B)/crash_narrow  ## power cuts at every step
	@SHORT="$(SHORT)" B="$(B)" sh tests/storage/crash.sh

storage:                 ## failing callbacks, sizes, erases, a file, the format
	@SHORT="$(SHORT)" CC="$(CC)" B="$(B)" \
	    sh tests/storage/storage.sh $(PART)

fuzz:                    ## libFuzzer and AFL++, IDEM_SECONDS for each
	@SHORT="$(SHORT)" sh fuzz/fuzz.sh
	@SHORT="$(SHORT)" sh fuzz/template.sh

prove:                   ## all states of a model, proofs, value analysis
	@SHORT="$(SHORT)" sh tests/spin.sh
	@SHORT="$(SHORT)" sh tests/prove.sh

cover:                   ## lines, branches, MC/DC of idem.h by the tests
	@sh tests/cover/cover.sh

mutate:                  ## plants small faults; FAULTS=1: those of a list
	@[ "$(FAULTS)" = 1 ] || SHORT="$(SHORT)" \
	    python3 tests/mutate/mutate.py $(MUTATE)
	@[ "$(FAULTS)" != 1 ] || SHORT="$(SHORT)" python3 tests/mutate/faults.py

lint:                    ## static analysis, MISRA, complexity, stack, spelling
	@SHORT="$(SHORT)" sh tests/lint.sh

attack:                  ## crafted keys cost nothing, time tells no secret
	@CC="$(CC)" B="$(B)" sh tests/chosen.sh
	@SHORT="$(SHORT)" CC="$(CC)" sh tests/ct.sh

size:                    ## text, RAM and stack; rewrites the table in README
	@sh tests/size.sh

bench:                   ## speed, wear, bytes beside budgets and others
	@SHORT="$(SHORT)" CC="$(CC)" B="$(B)" sh tests/bench/bench.sh

docs:                    ## compile and run every C block of manual and README
	@CC="$(CC)" sh tests/docs.sh

targets:                 ## emulated boards: self-tests, power cuts, figures
	@SHORT="$(SHORT)" CC="$(CC)" sh tests/targets/run.sh $(PART)

demo-firmware:           ## the demo with firmware, emulated
	@SHORT="$(SHORT)" CC="$(CC)" B="$(B)" sh $(S)/firmware/demo.sh

mqtt: $(B)/pumpd $(B)/pour $(B)/proxy $(B)/inspect  ## commands over MQTT
	@SHORT="$(SHORT)" B="$(B)" sh tests/mqtt.sh

clean:                   ## remove build/
	rm -rf $(B)

.PHONY: help demo hello deps test examples patterns once deps-all check crash \
        storage fuzz prove cover mutate lint attack size bench docs targets \
        demo-firmware mqtt clean

# Compilers and C libraries; emulators; what analyses; what is compared with.
PACKAGES = libcmocka-dev clang-19 llvm-19 libclang-rt-19-dev tcc sdcc \
    gcc-12-multilib libc6-dev-i386 gcc-s390x-linux-gnu libc6-dev-s390x-cross \
    gcc-arm-none-eabi libnewlib-arm-none-eabi gcc-avr avr-libc \
    gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf cmake \
    qemu-user qemu-system-arm qemu-system-misc libsimavr-dev libelf-dev \
    sdcc-ucsim \
    afl++ clang-tidy-19 cppcheck pmccabe codespell python3 git strace valgrind \
    frama-c-base why3 cvc4 z3 spin \
    mosquitto libmosquitto-dev libhts-dev uthash-dev libsqlite3-dev

$(B)/hello: examples/hello.c idem.h
	@mkdir -p $(B)
	$(BUILD) examples/hello.c -o $@

$(B)/patterns: examples/patterns.c idem.h
	@mkdir -p $(B)
	$(BUILD) examples/patterns.c -o $@

$(B)/file: examples/file.c idem.h
	@mkdir -p $(B)
	$(BUILD) examples/file.c -o $@

$(B)/inspect: examples/inspect.c
	@mkdir -p $(B)
	$(BUILD) examples/inspect.c -o $@

$(B)/serial/demo: $(DEMO_C) $(SERIAL_H)
	@mkdir -p $(B)/serial
	$(SERIAL) $(ROOMY) $(DEMO_C) -o $@

$(B)/serial/controller: $(CONTROLLER_C) $(SERIAL_H)
	@mkdir -p $(B)/serial
	$(SERIAL) $(CONTROLLER_C) -o $@

$(B)/serial/device: $(DEVICE_C) $(SERIAL_H)
	@mkdir -p $(B)/serial
	$(SERIAL) $(ROOMY) $(DEVICE_C) -o $@

$(B)/pumpd: examples/mqtt/pumpd.c idem.h
	@mkdir -p $(B)
	$(BUILD) examples/mqtt/pumpd.c -lmosquitto -o $@

$(B)/pour: examples/mqtt/pour.c
	@mkdir -p $(B)
	$(BUILD) examples/mqtt/pour.c -lmosquitto -o $@

$(B)/proxy: tests/mqtt/proxy.c
	@mkdir -p $(B)
	$(BUILD) tests/mqtt/proxy.c -o $@

T = tests/storage
M = tests/model
CRASH_C = $(T)/crash.c $(T)/flash.h $(M)/device.h $(M)/model.h idem.h
CRASH   = $(CC) -std=c99 -O2 $(WARN) -I. $(T)/crash.c

$(B)/crash: $(CRASH_C)
	@mkdir -p $(B)
	$(CRASH) -o $@

$(B)/crash_narrow: $(CRASH_C)
	@mkdir -p $(B)
	$(CRASH) -DIDEM_WIDE=0 -o $@
