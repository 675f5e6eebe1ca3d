# SPDX-License-Identifier: 0BSD
# All tasks for idem.h.  Any POSIX make will do.
#     SHORT=1     a shorter form of a long target
#     PART=       only these parts of a target; tests/README.md names them
.POSIX:

CC     = cc
CXX    = c++
CFLAGS = -std=c99 -O0 -g
WARN   = -Wall -Wextra -Wpedantic -Wshadow -Werror
B      = build
BUILD  = $(CC) $(CFLAGS) $(WARN) -I.

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 16
	@echo 'SHORT=1: a shorter form; PART=...: only parts; see tests/README.md'

S = examples/serial
DEVICE = $(S)/device.c $(S)/flash_file.c $(S)/protocol.c $(S)/host.c
BETWEEN = $(S)/line.c $(S)/traffic.c $(DEVICE)
SERIAL = $(BUILD) -D_XOPEN_SOURCE=700
ROOMY  = -DDEVICE_KEYS=1000
DEMO   = $(B)/serial/demo $(B)/serial/controller $(B)/serial/device

demo:                    ## a device on a bad line, killed again and again
	@for part in $${PART:-serial}; do $(MAKE) -s demo-$$part || exit 1; done

hello: $(B)/hello        ## the first example of README
	@$(B)/hello

test:                    ## unit, model and thread tests
	@CC="$(CC)" CFLAGS="$(CFLAGS) $(WARN)" B="$(B)" \
	    sh tests/unit/unit.sh $(PART)

check:                   ## every compiler, option, sanitizer; static analysis
	@CC="$(CC)" B="$(B)" sh tests/check/check.sh $(PART)

STORAGE = cuts pairs extremes erases file format

crash:                   ## power cuts, storage that fails or is damaged
	@for part in $${PART:-$(STORAGE)}; do \
	    $(MAKE) -s crash-$$part || exit 1; done

fuzz:                    ## libFuzzer, AFL++, random lives
	@SEEDS="$(SEEDS)" FIRST="$(FIRST)" sh fuzz/fuzz.sh $(PART)

prove:                   ## proofs, value analysis
	@sh tests/proofs/prove.sh $(PART)

cover:                   ## lines, branches, MC/DC of idem.h that tests cover
	@sh tests/cover/cover.sh

mutate:                  ## small faults that the tests must find
	@if [ "$(FAULTS)" = 1 ]; then tool=faults; else tool=mutate; fi; \
	    CC="$(CC)" CFLAGS="$(CFLAGS) $(WARN)" B="$(B)" python3 tests/mutate/$$tool.py $(PART)

size:                    ## code, RAM, stack; rewrites tables in README, FIGURES
	@sh tests/size/size.sh $(PART)

figures:                 ## all tables and plots that CI compares; 40 s
	@SHORT=1 sh tests/size/size.sh
	@SHORT=1 CC="$(CC)" sh tests/targets/run.sh figures keys
	@SHORT=1 CC="$(CC)" B="$(B)" sh tests/bench/bench.sh counts

bench:                   ## speed, wear, bytes beside budgets and others
	@CC="$(CC)" B="$(B)" sh tests/bench/bench.sh $(PART)

docs:                    ## compile and run every C block of manual and README
	@CC="$(CC)" sh tests/docs/docs.sh

package:                 ## folders for CMake, Arduino, ESP-IDF, Zephyr ...
	@sh examples/port/package.sh $(B)/package $(URL)
	@CC="$(CC)" B="$(B)" sh tests/demo/package.sh

release: package         ## the single file, packages, checksums
	@sh tests/tools/release.sh $(B)/release $(B)/package $(TAG)

PREFIX = /usr/local
install:                 ## header, ports, pkg-config and CMake files: PREFIX=
	@umask 022; P="$(DESTDIR)$(PREFIX)" && mkdir -p "$$P/include" \
	    "$$P/lib/pkgconfig" "$$P/share/cmake/idem" "$$P/share/idem/port" && \
	cp idem.h "$$P/include" && \
	cp examples/port/pkg-config/idem.pc "$$P/lib/pkgconfig" && \
	cp examples/port/cmake/*.cmake "$$P/share/cmake/idem" && \
	cp examples/port/*.h examples/port/*.hpp "$$P/share/idem/port" && \
	echo "idem.h, idem.pc and idem-config.cmake are in $$P"

fleet:                   ## gateways that share Redis, PostgreSQL, DynamoDB
	@CC="$(CC)" CFLAGS="$(CFLAGS) $(WARN)" B="$(B)" \
	    sh tests/fleet/fleet.sh $(PART)

targets:                 ## emulated boards: self-tests, power cuts, figures
	@CC="$(CC)" sh tests/targets/run.sh $(PART)

deps:                    ## install packages for test; ALL=1: for all targets
	@sh tests/tools/deps.sh libcmocka-dev
	@[ "$(ALL)" != 1 ] || sh tests/tools/deps.sh $(PACKAGES)
	@[ "$(ALL)" != 1 ] || command -v npm >/dev/null || \
	    sh tests/tools/deps.sh npm

clean:                   ## remove build/
	rm -rf $(B)

# The parts of demo
demo-serial: $(DEMO)
	@$(B)/serial/demo
	@echo
	@$(B)/serial/demo --numbers 1 --only 0

demo-patterns: $(B)/patterns
	@$(B)/patterns

# The same command twice: it is executed once
demo-file: $(B)/file $(B)/inspect
	@rm -f $(B)/file.journal $(B)/file.journal.secret
	@$(B)/file $(B)/file.journal 42 'pour 5 ml'
	@$(B)/file $(B)/file.journal 42 'pour 5 ml'
	@$(B)/inspect $(B)/file.journal

demo-sender: $(B)/sender_test $(B)/sender $(B)/serial/device \
    $(B)/answers_test
	@rm -f $(B)/outbox $(B)/outbox.secret
	@$(B)/answers_test $(B)/outbox
	@$(B)/sender_test

demo-mqtt: $(B)/pumpd $(B)/pour $(B)/inspect
	@B="$(B)" sh tests/demo/mqtt.sh

demo-migrate: $(B)/migrate_test
	@$(B)/migrate_test

# What each program prints for --help, and when it fails
demo-words: $(B)/file $(B)/inspect $(B)/patterns $(B)/migrate $(B)/sender \
    $(B)/burst $(B)/pumpd $(B)/pour $(DEMO) $(B)/answers_test \
    $(B)/controller_test
	@B="$(B)" sh tests/demo/words.sh

# The Arduino sketch, fed with lines
demo-sketch: $(B)/sketch_test
	@$(B)/sketch_test

# Commands over other links: each a server and its sender, killed, links cut
demo-burst: $(B)/burst $(B)/inspect
	@B="$(B)" sh tests/links/burst.sh

demo-coap: $(B)/coap/coapd $(B)/coap/pour
	@B="$(B)" sh tests/links/coap.sh

demo-http: $(B)/http/httpd
	@B="$(B)" sh tests/links/http.sh

demo-modbus: $(B)/modbus/gateway $(B)/modbus/master $(B)/modbus/statuses
	@B="$(B)" sh tests/links/modbus.sh

demo-python: $(B)/python/retry $(B)/pumpd
	@B="$(B)" sh tests/links/python.sh

demo-firmware:
	@CC="$(CC)" B="$(B)" sh tests/demo/firmware/demo.sh

# The parts of crash
crash-cuts crash-pairs crash-extremes crash-erases:
	@part=$@; IDEM_STATES="$(STATES)" IDEM_SEEDS="$(SEEDS)" CC="$(CC)" \
	    B="$(B)" sh tests/storage/storage.sh $${part#crash-}

crash-file:
	@CC="$(CC)" sh tests/file/file.sh

crash-format:
	@CC="$(CC)" sh tests/format/format.sh

.PHONY: help demo hello test check crash fuzz prove cover mutate size bench \
        docs package install release fleet targets deps clean demo-serial \
        demo-patterns demo-file demo-sender demo-mqtt demo-migrate demo-words \
        demo-sketch demo-firmware demo-burst demo-coap demo-http demo-modbus \
        demo-python crash-cuts crash-pairs crash-extremes crash-erases \
        crash-file crash-format FORCE

# Compilers and C libraries; emulators; analysers; libraries to compare with.
PACKAGES = libcmocka-dev clang-19 llvm-19 libclang-rt-19-dev tcc sdcc \
    gcc-12-multilib libc6-dev-i386 gcc-s390x-linux-gnu libc6-dev-s390x-cross \
    gcc-arm-none-eabi libnewlib-arm-none-eabi gcc-avr avr-libc \
    arduino-core-avr pkg-config \
    gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf cmake \
    qemu-user qemu-system-arm qemu-system-misc libsimavr-dev libelf-dev \
    sdcc-ucsim \
    afl++ clang-tidy-19 cppcheck pmccabe codespell python3 git strace \
    valgrind \
    frama-c-base why3 cvc4 z3 \
    mosquitto libmosquitto-dev libhts-dev uthash-dev libsqlite3-dev \
    liblmdb-dev librocksdb-dev redis-server libhiredis-dev postgresql-15 \
    libpq-dev pgbouncer \
    librdkafka-dev libcurl4-gnutls-dev libjansson-dev curl \
    libcoap3-dev libcoap3-bin libmicrohttpd-dev libmodbus-dev \
    python3-paho-mqtt mosquitto-clients

# Programs.  build.sh decides whether one is up to date: it knows the headers,
# the flags and the compiler.
FORCE:

MADE = @sh tests/tools/build.sh $@

$(B)/hello $(B)/patterns $(B)/file $(B)/migrate $(B)/inspect \
    $(B)/burst: FORCE
	$(MADE) $(BUILD) examples/$(@F).c -o $@

M = examples/mqtt
PUMPD = $(M)/pumpd.c $(M)/memory.c $(M)/broker.c $(M)/pump.c

$(B)/pumpd: FORCE
	$(MADE) $(BUILD) $(PUMPD) -lmosquitto -o $@

$(B)/pour: FORCE
	$(MADE) $(BUILD) $(M)/pour.c -lmosquitto -o $@

$(B)/sketch_test: FORCE
	$(MADE) $(CXX) -std=c++11 -g $(WARN) -I. -Itests/demo/stand_in \
	    tests/demo/sketch.cpp -o $@

$(B)/coap/coapd $(B)/coap/pour: FORCE
	$(MADE) $(BUILD) examples/coap/$(@F).c -lcoap-3-notls -o $@

$(B)/http/httpd: FORCE
	$(MADE) $(BUILD) examples/http/httpd.c -lmicrohttpd -lpthread -o $@

$(B)/modbus/gateway $(B)/modbus/master: FORCE
	$(MADE) $(BUILD) examples/modbus/$(@F).c -lmodbus -o $@

$(B)/modbus/statuses: FORCE
	$(MADE) $(BUILD) tests/links/statuses.c -lmodbus -o $@

$(B)/python/retry: FORCE
	$(MADE) $(BUILD) tests/links/retry.c -o $@

$(B)/migrate_test: $(B)/migrate FORCE
	$(MADE) $(BUILD) tests/demo/migrate.c -o $@

$(B)/serial/demo: FORCE
	$(MADE) $(SERIAL) $(ROOMY) $(S)/demo.c $(S)/run.c $(S)/audit.c \
	    $(BETWEEN) -o $@

$(B)/serial/controller: FORCE
	$(MADE) $(SERIAL) $(S)/controller.c $(S)/traffic.c $(S)/protocol.c \
	    $(S)/host.c -o $@

$(B)/serial/device: FORCE
	$(MADE) $(SERIAL) $(ROOMY) $(S)/device_main.c $(S)/naive.c $(DEVICE) \
	    -o $@

$(B)/sender: FORCE
	$(MADE) $(SERIAL) examples/sender.c $(S)/protocol.c $(S)/host.c -o $@

$(B)/answers_test: FORCE
	$(MADE) $(SERIAL) tests/demo/answers.c $(S)/protocol.c $(S)/host.c \
	    -o $@

$(B)/controller_test: FORCE
	$(MADE) $(SERIAL) tests/demo/controller.c $(S)/traffic.c \
	    $(S)/protocol.c $(S)/host.c -o $@

$(B)/sender_test: FORCE
	$(MADE) $(SERIAL) $(ROOMY) tests/demo/sender.c $(BETWEEN) -o $@
