# SPDX-License-Identifier: 0BSD
# Everything there is to do with idem.h: `make help`.  POSIX make will do.
.POSIX:

CC     = cc
CFLAGS = -std=c99 -Og -g
WARN   = -Wall -Wextra -Wpedantic -Wshadow -Werror
B      = build

TESTS = $(B)/test_hash $(B)/test_table $(B)/test_keys $(B)/test_time \
        $(B)/test_full $(B)/test_api $(B)/test_threads $(B)/test_model \
        $(B)/test_flash $(B)/test_journal $(B)/test_edges $(B)/test_cells \
        $(B)/test_file $(B)/test_protocol $(B)/test_inspect $(B)/test_port \
        $(B)/test_anomalies $(B)/test_images $(B)/test_failures \
        $(B)/test_failures_cells

CRASH = $(B)/crash $(B)/crash_narrow $(B)/crash_cells

test: $(TESTS) patterns  ## run the unit, model and thread tests
	@set -e; for t in $(TESTS); do echo "== $$t"; $$t; done

help:                    ## list the targets; SHORT=1 shortens the long ones
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 16

crash: $(CRASH)          ## power cuts at every step of many workloads
	@if [ "$(SHORT)" = 1 ]; then \
	    $(B)/crash_narrow --short && $(B)/crash_cells --short; else \
	    for c in $(CRASH); do $$c || exit 1; done; fi

crash-faults:            ## the same must find bugs that are planted
	@SHORT="$(SHORT)" sh tests/crash_faults.sh

file:                    ## the file storage under strace and kill -9
	@SHORT="$(SHORT)" sh tests/file.sh

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
	@$(MAKE) $(B)/test_model
	@if [ "$(SHORT)" = 1 ]; then $(B)/test_model; else \
	    IDEM_CALLS=$${IDEM_CALLS:-10000000} $(B)/test_model; fi

once: $(B)/file $(B)/inspect  ## a journal in a file, and what inspect says
	@rm -f $(B)/file.journal
	@$(B)/file $(B)/file.journal 42 'pour 5 ml' && \
	    $(B)/file $(B)/file.journal 42 'pour 5 ml' && \
	    $(B)/inspect $(B)/file.journal

inspect: $(B)/test_inspect  ## the second reader of the format, sanitized
	$(CC) $(CFLAGS) -fsanitize=address,undefined -fno-sanitize-recover=all \
	    examples/inspect.c -o $(B)/inspect_sanitized
	@if [ "$(SHORT)" = 1 ]; then n=1; else n=20; fi; \
	    HISTORIES=$$n INSPECT=$(B)/inspect_sanitized $(B)/test_inspect

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
ROOMY = -DDEVICE_KEYS=1000 -DFLASH_SECTORS=96

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
	@SHORT="$(SHORT)" python3 tests/mutate/mutate.py

deps-trust:              ## install what cover, fuzz and mutate need
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
	@if [ "$(SHORT)" = 1 ]; then count=100; else count=300; fi; \
	    FLASH_AT=$(FLASH_AT) FLASH_PAGES=$(FLASH_PAGES) $(B)/firmware/demo \
	    --device $(S)/firmware/device.sh --count $$count --early 300

# A nRF51 has 256 KB of flash: the code in front, then the pages that the journal
# of 300 commands needs.  Who reads it must have the same sizes and hash.
FLASH_AT = 0x18000
FLASH_PAGES = 72
NRF51 = arm-none-eabi-gcc -mthumb -mcpu=cortex-m0
NRF51_SIZES = -DDEVICE_KEYS=300 -DFLASH_SECTOR=1024 -DFLASH_GRANULE=4 \
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

failures:                ## every callback fails at every call
	@mkdir -p $(B)
	@for f in "" -DIDEM_WIDE=0 -DIDEM_CELLS; do \
	    $(CC) -std=c99 -O2 $(WARN) -Wno-unused-function $$f -I. -Itests \
	        fuzz/failures.c -o $(B)/failures || exit 1; \
	    if [ "$(SHORT)" = 1 ]; then $(B)/failures 4999; \
	    else $(B)/failures $${IDEM_ONE_IN:-29}; fi || exit 1; done

# With a wide index and a narrow one, ring and cells; and seeds of their own.
extremes:                ## the smallest and largest configurations
	@mkdir -p $(B)
	@seed=1; count=$${IDEM_SEEDS:-250}; [ "$(SHORT)" != 1 ] || count=12; \
	for f in -DIDEM_WIDE=1 -DIDEM_WIDE=0 "-DIDEM_WIDE=1 -DIDEM_CELLS" \
	    "-DIDEM_WIDE=0 -DIDEM_CELLS"; do \
	    $(CC) -std=c99 -O1 $(WARN) $$f -I. tests/extremes.c \
	        -o $(B)/extremes || exit 1; \
	    $(B)/extremes $$seed $$count || exit 1; \
	    seed=$$((seed + count)); done

erases:                  ## no call erases more than it may, on random rings
	@mkdir -p $(B)
	@seed=1; count=$${IDEM_SEEDS:-30000}; [ "$(SHORT)" != 1 ] || count=1500; \
	for wide in 0 1; do \
	    $(CC) -std=c99 -O2 $(WARN) -DIDEM_WIDE=$$wide -I. tests/erases.c \
	        -o $(B)/erases || exit 1; \
	    figures=; [ -n "$$IDEM_SEEDS" ] || figures=tests/erases.txt; \
	    $(B)/erases $$seed $$count $$figures || exit 1; \
	    seed=$$((seed + count)); done

extremes-faults:         ## the same must find bugs that are planted
	@SHORT="$(SHORT)" sh tests/extremes_faults.sh

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

$(B)/inspect: examples/inspect.c
	@mkdir -p $(B)
	$(CC) $(CFLAGS) $(WARN) examples/inspect.c -o $@

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

$(B)/crash_cells:
	@mkdir -p $(B)
	$(CC) -std=c99 -O2 $(WARN) -DIDEM_CELLS -I. tests/crash.c -o $@

$(B)/test_hash: tests/test_hash.c tests/vectors_siphash.h tests/vectors_fnv.h
$(B)/test_table: tests/test_table.c tests/fixture.h
$(B)/test_keys: tests/test_keys.c tests/fixture.h
$(B)/test_time: tests/test_time.c tests/fixture.h
$(B)/test_full: tests/test_full.c tests/fixture.h
$(B)/test_api: tests/test_api.c tests/fixture.h
$(B)/test_threads: tests/test_threads.c tests/fixture.h
$(B)/test_model: tests/test_model.c tests/model.h
$(B)/test_flash: tests/test_flash.c tests/flash.h
$(B)/test_journal: tests/test_journal.c tests/journal.h tests/flash.h \
    tests/ready.h
$(B)/test_edges: tests/test_edges.c tests/journal.h tests/flash.h \
    tests/ready.h
$(B)/test_cells: tests/test_cells.c tests/fixture.h tests/flash.h \
    tests/ready.h
$(B)/test_file: tests/test_file.c
$(B)/test_port: tests/test_port.c tests/flash.h examples/port/check.h
$(B)/test_protocol: tests/test_protocol.c examples/serial/protocol.c \
    examples/serial/protocol.h
$(B)/test_inspect: tests/test_inspect.c tests/journal.h tests/flash.h \
    tests/ready.h
$(B)/test_inspect: $(B)/inspect
$(B)/test_anomalies: tests/test_anomalies.c tests/journal.h tests/flash.h \
    tests/ready.h
$(B)/test_failures: tests/test_failures.c tests/flash.h fuzz/calls.c \
    fuzz/device.h fuzz/harness.h fuzz/promises.h tests/found.h tests/ready.h
$(B)/test_failures_cells: tests/test_failures_cells.c $(B)/test_failures
$(B)/test_images: tests/test_images.c tests/flash.h fuzz/image.c fuzz/device.h \
    fuzz/harness.h tests/found.h tests/ready.h
$(TESTS): idem.h
	@mkdir -p $(B)
	$(CC) $(CFLAGS) $(WARN) -I. tests/$(@F).c -o $@ -lcmocka -lpthread

.PHONY: test help demo deps deps-check deps-bench check model \
        examples docs size bench clean crash crash-faults file hello patterns \
        fuzz-template deps-fuzz once inspect deps-mqtt mqtt targets golden \
        deps-targets demo-firmware cover fuzz mutate deps-trust crash-long \
        failures extremes erases extremes-faults chosen ct deps-ct lint deps-lint \
        prove deps-prove repro
