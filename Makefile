# SPDX-License-Identifier: 0BSD
# Everything there is to do with idem.h: `make help`.  POSIX make will do.
.POSIX:

CC     = cc
CFLAGS = -std=c99 -O1 -g
WARN   = -Wall -Wextra -Wpedantic -Wshadow -Werror
B      = build

TESTS = $(B)/test_hash $(B)/test_table $(B)/test_keys $(B)/test_time \
        $(B)/test_full $(B)/test_api $(B)/test_threads $(B)/test_model \
        $(B)/test_flash $(B)/test_journal $(B)/test_file $(B)/test_anomalies

test: $(TESTS) examples  ## run the unit, model and thread tests
	@set -e; for t in $(TESTS); do echo "== $$t"; $$t; done

help:                    ## list the targets; SHORT=1 shortens the long ones
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 14

demo: $(B)/hello         ## what it does, in one screen
	@$(B)/hello

crash: $(B)/crash        ## power cuts at every step of many workloads
	@if [ "$(SHORT)" = 1 ]; then $(B)/crash --short; else $(B)/crash; fi

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

crash-long: $(B)/crash   ## three cuts deep, sampled: ten million states
	@if [ "$(SHORT)" = 1 ]; then $(B)/crash --states 100000 \
	    --geometry nor8; else \
	    $(B)/crash --states $${IDEM_STATES:-10000000}; fi

chosen:                  ## what keys cost that an enemy has crafted
	@mkdir -p $(B)
	@set -e; keys=1000000; [ "$(SHORT)" != 1 ] || keys=100000; \
	for hash in SIPHASH HALFSIPHASH FNV; do \
	    [ $$hash != FNV ] || keys=3000; \
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

list-builds:             # what repro builds
	@echo $(TESTS) $(B)/hello $(B)/crash

deps-ct:                 ## install what ct needs
	@sh tests/deps.sh valgrind

ct:                      ## what an attacker can measure tells him no secret
	@SHORT="$(SHORT)" sh tests/ct.sh

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
$(B)/test_file: tests/test_file.c
$(B)/test_anomalies: tests/test_anomalies.c tests/journal.h tests/flash.h
$(TESTS): idem.h
	@mkdir -p $(B)
	$(CC) $(CFLAGS) $(WARN) -I. tests/$(@F).c -o $@ -lcmocka -lpthread

.PHONY: test help demo deps deps-check deps-bench check model examples docs \
        size bench clean crash crash-faults file crash-long chosen ct deps-ct lint deps-lint \
        prove deps-prove repro list-builds
