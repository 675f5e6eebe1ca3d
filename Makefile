# SPDX-License-Identifier: 0BSD
# Everything there is to do with idem.h: `make help`.  POSIX make will do.
.POSIX:

CC     = cc
CFLAGS = -std=c99 -Og -g
WARN   = -Wall -Wextra -Wpedantic -Wshadow -Werror
B      = build

CRASH = $(B)/crash $(B)/crash_narrow

# Every tests/unit/*.c is one, by being there; UNIT="table keys" runs these.
test:                    ## run the unit, model and thread tests
	@CC="$(CC)" CFLAGS="$(CFLAGS) $(WARN)" B="$(B)" sh tests/unit.sh $(UNIT)

help:                    ## list the targets; SHORT=1 shortens the long ones
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 16

crash: $(CRASH)          ## power cuts at every step of many workloads
	@if [ "$(SHORT)" = 1 ]; then \
	    $(B)/crash_narrow --short && $(B)/crash_cells --short; else \
	    for c in $(CRASH); do $$c || exit 1; done; fi

crash-faults:            ## bugs that are planted must be found
	@SHORT="$(SHORT)" python3 tests/mutate/faults.py $(FAULTS)

file:                    ## the file storage under strace and kill -9
	@SHORT="$(SHORT)" sh tests/file/file.sh

deps:                    ## install what the tests need
	@sh tests/deps.sh libcmocka-dev

deps-check:              ## install what check, size and docs need besides
	@sh tests/deps.sh libcmocka-dev clang-19 llvm-19 libclang-rt-19-dev \
	    gcc-12-multilib libc6-dev-i386 gcc-arm-none-eabi \
	    libnewlib-arm-none-eabi gcc-avr avr-libc tcc sdcc \
	    gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user strace

check:                   ## every configuration, compiler and sanitizer
	@SHORT="$(SHORT)" sh tests/check.sh

model:                   ## the long differential run: ten million calls
	@$(MAKE) test UNIT=model
	@[ "$(SHORT)" = 1 ] || \
	    IDEM_CALLS=$${IDEM_CALLS:-10000000} $(B)/unit/model

once: $(B)/file $(B)/inspect  ## a journal in a file, and what inspect says
	@rm -f $(B)/file.journal
	@$(B)/file $(B)/file.journal 42 'pour 5 ml' && \
	    $(B)/file $(B)/file.journal 42 'pour 5 ml' && \
	    $(B)/inspect $(B)/file.journal

format:                  ## a second reader of the format; SEEDS=
	@SHORT="$(SHORT)" CC="$(CC)" sh tests/format/format.sh

deps-mqtt:               ## install what the MQTT example needs
	@sh tests/deps.sh mosquitto libmosquitto-dev

mqtt: $(B)/pumpd $(B)/pour $(B)/proxy $(B)/inspect  ## commands over MQTT
	@SHORT="$(SHORT)" B=$(B) sh tests/mqtt.sh

docs:                    ## compile and run every C block of manual and README
	@sh tests/docs.sh

size:                    ## text, RAM and stack; rewrites the table in README
	@sh tests/size.sh

deps-bench:              ## install what bench compares with
	@sh tests/deps.sh libhts-dev uthash-dev libsqlite3-dev

bench:                   ## speed, wear, bytes beside budgets and others
	@SHORT="$(SHORT)" B="$(B)" CC="$(CC)" sh tests/bench/bench.sh

demo: $(B)/serial/demo $(B)/serial/controller $(B)/serial/device  ## a bad line and kill -9
	@$(B)/serial/demo

hello: $(B)/hello        ## the first example of README
	@$(B)/hello

patterns: $(B)/patterns  ## reboot, emergency stop, lease, poison, outbox
	@$(B)/patterns

examples: hello once patterns demo  ## build and run all examples

fuzz-template:           ## the harness for your parser, and a bug it must find
	@SHORT="$(SHORT)" sh fuzz/template.sh

deps-fuzz:               ## install what fuzz-template needs
	@sh tests/deps.sh afl++ clang-19 libclang-rt-19-dev

S = examples/serial
DEVICE = $(S)/device.c $(S)/flash_file.c $(S)/protocol.c $(S)/host.c
DEVICE_C = $(S)/device_main.c $(S)/naive.c $(DEVICE)
DEMO_C = $(S)/demo.c $(S)/line.c $(S)/audit.c $(S)/traffic.c $(DEVICE)
CONTROLLER_C = $(S)/controller.c $(S)/traffic.c $(S)/protocol.c $(S)/host.c
HEADERS = $(S)/device.h $(S)/flash_file.h $(S)/protocol.h $(S)/host.h \
          $(S)/naive.h $(S)/line.h $(S)/audit.h $(S)/traffic.h idem.h
SERIAL = $(CC) $(CFLAGS) $(WARN) -D_XOPEN_SOURCE=700 -I.
ROOMY = -DDEVICE_KEYS=1000

$(B)/serial/demo: $(DEMO_C) $(HEADERS)
	@mkdir -p $(B)/serial
	$(SERIAL) $(ROOMY) $(DEMO_C) -o $@

$(B)/serial/controller: $(CONTROLLER_C) $(HEADERS)
	@mkdir -p $(B)/serial
	$(SERIAL) $(CONTROLLER_C) -o $@

$(B)/serial/device: $(DEVICE_C) $(HEADERS)
	@mkdir -p $(B)/serial
	$(SERIAL) $(ROOMY) $(DEVICE_C) -o $@

$(B)/patterns: examples/patterns.c idem.h
	@mkdir -p $(B)
	$(CC) $(CFLAGS) $(WARN) -I. examples/patterns.c -o $@

cover:                   ## lines, branches, MC/DC of idem.h by the tests
	@sh tests/cover/cover.sh

fuzz:                    ## libFuzzer and AFL++ on fuzz/; IDEM_SECONDS for each
	@SHORT="$(SHORT)" sh fuzz/fuzz.sh

mutate:                  ## plants small faults in idem.h: do the tests see them?
	@SHORT="$(SHORT)" python3 tests/mutate/mutate.py $(MUTATE)

deps-trust:              ## install what cover, fuzz, mutate, crash-faults need
	@sh tests/deps.sh libcmocka-dev clang-19 llvm-19 libclang-rt-19-dev \
	    afl++ python3 tcc

deps-targets:            ## install compilers and emulators for targets
	@sh tests/deps.sh gcc-arm-none-eabi libnewlib-arm-none-eabi \
	    gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf \
	    qemu-system-arm qemu-system-misc gcc-avr avr-libc \
	    libsimavr-dev libelf-dev qemu-user gcc-s390x-linux-gnu \
	    libc6-dev-s390x-cross gcc-12-multilib libc6-dev-i386 sdcc \
	    sdcc-ucsim cmake

targets:                 ## emulated boards: self-tests, power cuts, figures
	@SHORT="$(SHORT)" sh tests/targets/run.sh

demo-firmware: $(B)/firmware/demo $(B)/firmware/controller $(B)/firmware/firmware.elf  ## the demo with firmware, emulated
	@if [ "$(SHORT)" = 1 ]; then count=100; else count=140; fi; \
	    FLASH_AT=$(FLASH_AT) FLASH_PAGES=$(FLASH_PAGES) $(B)/firmware/demo \
	    --device $(S)/firmware/device.sh --count $$count --early 300

# A nRF51 has 256 KB of flash, the code in front, and 16 KB of RAM, for 140
# commands.  Who reads the journal must have the same sizes and hash.
FLASH_AT = 0x18000
FLASH_PAGES = 64
NRF51 = arm-none-eabi-gcc -mthumb -mcpu=cortex-m0
NRF51_SIZES = -DDEVICE_KEYS=140 -DFLASH_SECTOR=1024 -DFLASH_GRANULE=4 \
              -DFLASH_SECTORS=$(FLASH_PAGES) -DIDEM_HASH=IDEM_HASH_HALFSIPHASH
NRF51_BOARD = -DCODE_AT=0 -DCODE_SIZE=96K -DMEMORY_AT=0x20000000 \
              -DMEMORY_SIZE=16K -DNVMC_AT=$(FLASH_AT) \
              -DNVMC_PAGES=$(FLASH_PAGES) '-DNVMC_FILE="flash"' \
              -DBOARD_INTERRUPT=2
T = tests/targets
FIRMWARE_C = $(S)/firmware/firmware.c $(S)/device.c $(S)/naive.c \
             $(S)/protocol.c $(T)/medium_nvmc.c $(T)/start.c $(T)/string.c

$(B)/firmware/firmware.elf: $(FIRMWARE_C) $(HEADERS) $(T)/board.ld $(T)/board.h $(T)/medium.h
	@mkdir -p $(B)/firmware
	$(NRF51) -E -P -x c $(NRF51_BOARD) $(T)/board.ld > $(B)/firmware/board.ld
	$(NRF51) -std=c99 -Os -g -ffreestanding -nostdlib -ffunction-sections \
	    -fdata-sections -Wl,--gc-sections $(WARN) $(NRF51_SIZES) \
	    $(NRF51_BOARD) -I. -I$(S) -I$(T) -T $(B)/firmware/board.ld \
	    $(FIRMWARE_C) -lgcc -o $@

$(B)/firmware/demo: $(DEMO_C) $(HEADERS)
	@mkdir -p $(B)/firmware
	$(SERIAL) $(NRF51_SIZES) $(DEMO_C) -o $@

$(B)/firmware/controller: $(CONTROLLER_C) $(HEADERS)
	@mkdir -p $(B)/firmware
	$(SERIAL) $(CONTROLLER_C) -o $@

golden:                  ## write tests/golden/ anew, if the format changes
	@sh tests/golden.sh write

crash-long: $(B)/crash $(B)/crash_narrow  ## three cuts deep, sampled: ten million states
	@if [ "$(SHORT)" = 1 ]; then \
	    $(B)/crash --states 100000 --geometry nor8; else \
	    for c in $(B)/crash $(B)/crash_narrow; do \
	        $$c --states $${IDEM_STATES:-5000000} || exit 1; done; fi

JUDGE = $(CC) -std=c99 $(WARN) -I. -Itests/storage -Itests

failures:                ## every callback fails at every call
	@mkdir -p $(B)
	@$(JUDGE) -O2 -Wno-unused-function tests/storage/failures.c \
	    -o $(B)/failures
	@if [ "$(SHORT)" = 1 ]; then $(B)/failures 997; \
	    else $(B)/failures $${IDEM_ONE_IN:-29}; fi

# With a wide index and a narrow one, and seeds of their own.
extremes:                ## the smallest and largest configurations
	@mkdir -p $(B)
	@seed=1; count=$${IDEM_SEEDS:-250}; [ "$(SHORT)" != 1 ] || count=24; \
	for wide in 0 1; do \
	    $(JUDGE) -O1 -DIDEM_WIDE=$$wide tests/storage/extremes.c \
	        -o $(B)/extremes || exit 1; \
	    $(B)/extremes $$seed $$count || exit 1; \
	    seed=$$((seed + count)); done

erases:                  ## no call erases more than it may, on random rings
	@mkdir -p $(B)
	@$(JUDGE) -O2 tests/storage/erases.c -o $(B)/erases
	@count=$${IDEM_SEEDS:-30000}; [ "$(SHORT)" != 1 ] || count=1500; \
	    $(B)/erases 1 $$count

chosen:                  ## what keys cost that an enemy has crafted
	@mkdir -p $(B)
	@set -e; for hash in SIPHASH HALFSIPHASH FNV; do \
	    keys=20000; [ $$hash != FNV ] || keys=3000; \
	    $(CC) -std=c99 -O2 $(WARN) -DIDEM_HASH=IDEM_HASH_$$hash -I. \
	        tests/chosen.c -o $(B)/chosen; \
	    $(B)/chosen $$keys; done

deps-lint:               ## install what lint needs
	@sh tests/deps.sh cppcheck python3 clang-tidy-19 pmccabe codespell git

lint:                    ## static analysis, MISRA, complexity, stack, spelling
	@SHORT="$(SHORT)" sh tests/lint.sh

deps-prove:              ## install what prove needs
	@sh tests/deps.sh frama-c-base why3 cvc4 z3 spin

prove:                   ## all states of a model, proofs, value analysis
	@SHORT="$(SHORT)" sh tests/spin.sh
	@SHORT="$(SHORT)" sh tests/prove.sh

repro:                   ## two builds give the same bytes
	@SHORT="$(SHORT)" sh tests/repro.sh

deps-ct:                 ## install what ct needs
	@sh tests/deps.sh valgrind

ct:                      ## what an attacker can measure tells him no secret
	@SHORT="$(SHORT)" sh tests/ct.sh

clean:                   ## remove build/
	rm -rf $(B)

$(B)/hello: examples/hello.c idem.h
	@mkdir -p $(B)
	$(CC) $(CFLAGS) $(WARN) -I. examples/hello.c -o $@

$(B)/file: examples/file.c idem.h
	@mkdir -p $(B)
	$(CC) $(CFLAGS) $(WARN) -I. examples/file.c -o $@

$(B)/inspect: examples/inspect.c idem.h
	@mkdir -p $(B)
	$(CC) $(CFLAGS) $(WARN) -I. examples/inspect.c -o $@

$(B)/pumpd: examples/mqtt/pumpd.c idem.h
	@mkdir -p $(B)
	$(CC) $(CFLAGS) $(WARN) -I. examples/mqtt/pumpd.c -lmosquitto -o $@

$(B)/pour: examples/mqtt/pour.c
	@mkdir -p $(B)
	$(CC) $(CFLAGS) $(WARN) examples/mqtt/pour.c -lmosquitto -o $@

$(B)/proxy: tests/mqtt/proxy.c
	@mkdir -p $(B)
	$(CC) $(CFLAGS) $(WARN) tests/mqtt/proxy.c -o $@

$(CRASH): tests/crash.c tests/crash_model.h tests/flash.h tests/ready.h idem.h

$(B)/crash:
	@mkdir -p $(B)
	$(CC) -std=c99 -O2 $(WARN) -I. tests/crash.c -o $@

$(B)/crash_narrow:
	@mkdir -p $(B)
	$(CC) -std=c99 -O2 $(WARN) -DIDEM_WIDE=0 -I. tests/crash.c -o $@

.PHONY: test help demo deps deps-check deps-bench check model \
        examples docs size bench clean crash crash-faults file hello patterns \
        fuzz-template deps-fuzz once format deps-mqtt mqtt targets golden \
        deps-targets demo-firmware cover fuzz mutate deps-trust crash-long \
        failures extremes erases chosen ct deps-ct lint deps-lint \
        prove deps-prove repro
