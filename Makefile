# SPDX-License-Identifier: 0BSD
# Everything there is to do with idem.h: `make help`.  POSIX make will do.
.POSIX:

CC     = cc
CFLAGS = -std=c99 -O1 -g
WARN   = -Wall -Wextra -Wpedantic -Wshadow -Werror
B      = build

TESTS = $(B)/test_hash $(B)/test_table $(B)/test_keys $(B)/test_time \
        $(B)/test_full $(B)/test_api $(B)/test_threads $(B)/test_model \
        $(B)/test_flash $(B)/test_journal $(B)/test_cells $(B)/test_file

test: $(TESTS) examples  ## run the unit, model and thread tests
	@set -e; for t in $(TESTS); do echo "== $$t"; $$t; done

help:                    ## list the targets; SHORT=1 shortens the long ones
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 14

demo: $(B)/hello         ## what it does, in one screen
	@$(B)/hello

crash: $(B)/crash $(B)/crash_cells  ## power cuts at every step of many workloads
	@for c in $(B)/crash $(B)/crash_cells; do \
	    if [ "$(SHORT)" = 1 ]; then $$c --short; else $$c; fi || exit 1; done

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

deps-bench:              ## install the peers of the benchmark
	@sh tests/deps.sh libhts-dev uthash-dev valgrind

check: $(TESTS)          ## every configuration, compiler and sanitizer
	@SHORT="$(SHORT)" sh tests/check.sh

model:                   ## the long differential run: ten million calls
	@$(MAKE) $(B)/test_model
	@if [ "$(SHORT)" = 1 ]; then $(B)/test_model; else \
	    IDEM_CALLS=$${IDEM_CALLS:-10000000} $(B)/test_model; fi

examples: $(B)/hello     ## build and run the examples
	@$(B)/hello > $(B)/hello.out

docs:                    ## compile and run every C block of manual and README
	@sh tests/docs.sh

size:                    ## text, RAM and stack; rewrites the table in README
	@sh tests/size.sh

bench: $(B)/bench $(B)/bench_flash $(B)/bench_file  ## speed, wear, bytes
	@if [ "$(SHORT)" = 1 ]; then short=--short; fi; \
	    $(B)/bench $$short && $(B)/bench_file $$short && \
	    { $(B)/bench_flash $$short || echo "flash: a budget is missed"; }

clean:                   ## remove build/
	rm -rf $(B)

$(B)/hello: examples/hello.c idem.h
	@mkdir -p $(B)
	$(CC) $(CFLAGS) $(WARN) -I. examples/hello.c -o $@

$(B)/bench: tests/bench/bench.c idem.h
	@mkdir -p $(B)
	$(CC) -std=gnu99 -O2 -DBENCH_FLAGS='"-std=gnu99 -O2"' -I. tests/bench/bench.c \
	    -o $@

$(B)/bench_flash: tests/bench/flash.c tests/flash.h idem.h
	@mkdir -p $(B)
	$(CC) -std=gnu99 -O2 -I. tests/bench/flash.c -o $@

$(B)/bench_file: tests/bench/file.c idem.h
	@mkdir -p $(B)
	$(CC) -std=gnu99 -O2 -I. tests/bench/file.c -o $@

$(B)/crash: tests/crash.c tests/crash_model.h tests/flash.h idem.h
	@mkdir -p $(B)
	$(CC) -std=c99 -O2 $(WARN) -I. tests/crash.c -o $@

$(B)/crash_cells: tests/crash.c tests/crash_model.h tests/flash.h idem.h
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
$(B)/test_journal: tests/test_journal.c tests/journal.h tests/flash.h
$(B)/test_cells: tests/test_cells.c tests/fixture.h tests/flash.h
$(B)/test_file: tests/test_file.c
$(TESTS): idem.h
	@mkdir -p $(B)
	$(CC) $(CFLAGS) $(WARN) -I. tests/$(@F).c -o $@ -lcmocka -lpthread

.PHONY: test help demo deps deps-check deps-bench check model examples docs \
        size bench clean crash crash-faults file
