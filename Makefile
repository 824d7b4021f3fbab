# Makefile - a short way to everything; CMakeLists.txt does the work.
#
#: make           the libraries, tests, examples and benchmarks, in build/release;
#:                build/lowbit, the command, and build/lowbit-bench, which
#:                measures (--help)
#: make demo      train a small network, quantize it to each type and compare;
#:                quantize a model directory; writes build/demo/index.html
#: make test      all tests
#: make check     what is slower: lint, install, both compilers, sanitizers,
#:                instruction sets this machine lacks, conformance
#: make nightly   what is slowest: the tests' long forms, memory sanitizer,
#:                valgrind, a CPU with AVX-512, arm64
#: make fuzz      T=gguf TIME=60: one fuzzer of fuzz/, for so many seconds
#: make interop   our files in other programs, and theirs here: safetensors, numpy,
#:                gguf, bitsandbytes, transformers (the first time installs 6 GB
#:                of Python packages in the user's cache)
#: make bench     measures, next to what the machine can do, in some minutes, and
#:                draws build/roofline.svg;
#:                bench-parts: parts of the library, next to others' of the kind
#: make lint      style, layers, clang-tidy, cppcheck
#: make install   PREFIX=/usr/local DESTDIR=
#: make clean
#:
#: demo, test, check, nightly, bench and lint first install what they lack from
#: Debian's packages (tools/setup); the others do not. Parts of check are
#: targets too: make check-asan.

PREFIX ?= /usr/local
CONFORMANCE ?= ../shared/conformance

CTEST := ctest --output-on-failure --no-tests=error -j 2
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:
.PHONY: all help demo test check bench bench-parts lint install nightly clean \
    fuzz interop
.PRECIOUS: build/%/build.ninja

all: build-release
	@ln -sf release/lowbit release/bench/lowbit-bench build/

help:
	@sed -n 's/^#: \{0,1\}//p' Makefile

demo: setup-build setup-fashion build/release/build.ninja
	@cmake --build build/release --target fashion tiny_llama lowbit_cli
	@ln -sf release/lowbit build/
	@tools/demo build/release

test: setup-build all
	$(CTEST) --test-dir build/release

# At real-time priority where that is allowed: others use the machine too.
FIFO = $$(chrt -f 10 true 2>/dev/null && echo chrt -f 10)

bench: setup-build setup-bench all
	@set -e; bench() { \
	    printf '\n-- lowbit-bench %s\n' "$$*"; \
	    $(FIFO) build/lowbit-bench "$$@"; \
	}; \
	bench --m 1,8,32,128,512 --seconds 0.4 --svg build/roofline.svg; \
	bench --m 1 --weights dram --seconds 0.4; \
	bench --openblas --m 1024,2048 --shape 1024x1024,2048x2048; \
	bench --codec --act f32,bf16 --seconds 0.4; \
	bench --ops --seconds 0.3; \
	bench --calls; \
	bench --error

bench-parts: setup-build setup-bench
	cmake -S . -B build/release >/dev/null # to see what setup installed
	cmake --build build/release
	@set -e; for b in build/release/bench/bench_*; do echo "-- $$b"; $$b; done

# What it finds new goes to build/fuzz/corpus; what is kept is in fuzz/corpus.
T ?= gguf
TIME ?= 60
fuzz: setup-build setup-clang build/fuzz/build.ninja
	cmake --build build/fuzz --target fuzz_$(T)
	@mkdir -p build/fuzz/corpus/$(T)
	build/fuzz/fuzz/fuzz_$(T) -max_total_time=$(TIME) -timeout=10 \
	    -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0 \
	    -artifact_prefix=build/fuzz/ build/fuzz/corpus/$(T) fuzz/corpus/$(T) \
	    tests/golden/io tests/golden/layouts

interop: setup-build setup-interop build/release/build.ninja
	cmake --build build/release --target lowbit_cli test_io_golden test_io_save
	tools/interop build/release $(CONFORMANCE)

lint: setup-build setup-lint build/release/build.ninja
	@$(if $(SEEN),,cmake -S . -B build/release >/dev/null) # to see new files
	tools/lint build/release '$(LINT)'

install: build/release/build.ninja
	cmake --build build/release --target lowbit_installed
	@cmake -S . -B build/release -DCMAKE_INSTALL_PREFIX='$(abspath $(PREFIX))' \
	    >/dev/null
	DESTDIR='$(DESTDIR)' cmake --install build/release

clean:
	rm -rf build

# ---- builds: each variant in build/<variant> ----------------------------------

# Built at -O1 with lines and no variables, which takes half the time of -O2 -g;
# the tests take hardly more then.
SANITIZE = -DCMAKE_BUILD_TYPE=RelWithDebInfo -DLB_SHARED=OFF -DLB_BENCH=OFF \
    -DLB_MPI=OFF -DLB_WERROR=OFF $(FLAGS_quick) -DLB_SANITIZE
FLAGS_quick = "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -g1 -DNDEBUG"
# gcc's sanitizers confuse some of its warnings, so those are left to the other
# builds; clang takes four times as long to build with its own for addresses. That
# for threads is clang's, whose programs run in half the time; it is also the build
# in which warnings of the other compiler are errors (but those of src/mpi, and of
# what is compiled for each number of rows: make nightly-clang).
FLAGS_asan = $(SANITIZE)=address,undefined
FLAGS_tsan = $(SANITIZE)=thread -DCMAKE_C_COMPILER=clang -DLB_WERROR=ON \
    -DLB_BENCH=ON
# libzip is not instrumented.
FLAGS_msan = $(SANITIZE)=memory -DCMAKE_C_COMPILER=clang -DLB_IO=OFF
FLAGS_clang = -DCMAKE_C_COMPILER=clang
FLAGS_fuzz = $(SANITIZE)= -DCMAKE_C_COMPILER=clang -DLB_FUZZ=ON
# At -O3 it takes almost twice as long to build, and tests three quarters as long.
FLAGS_simde = -DLB_SIMDE=ON -DLB_MPI=OFF -DLB_SHARED=OFF -DLB_BENCH=OFF \
    "-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG"
FLAGS_arm64 = -DLB_BENCH=OFF -DLB_IO=OFF -DLB_MPI=OFF \
    -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    "-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64;-L;/usr/aarch64-linux-gnu"

build/%/build.ninja:
	@cmake -G Ninja -S . -B build/$* -DLB_WERROR=ON -DLB_BENCH=ON $(FLAGS_$*)

# Of these only what runs is built; the others also show that all of it builds.
PARTS = simde
build-%: build/%/build.ninja
	cmake --build build/$* $(if $(filter $*,$(PARTS)),--target \
	    $$(tools/picked build/$* $(PICK_$*)))

setup-%:
	@tools/setup $*

# Memory that is asked for and not there is part of the tests. Where a test has
# very many cases, one in nineteen is tried (tests/check.h: with more, tests of few
# cases are thinned, too): all of them are in make test, and with a sanitizer,
# emulated, or from the other compiler in make nightly (but aarch64, which would
# take hours: there it is one in thirty).
FEW = LB_TEST_EVERY=19
ENV_simde = $(FEW)
ENV_arm64 = LB_TEST_EVERY=30
ENV_asan = $(FEW) $(OPTIONS_asan)
OPTIONS_asan = ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:$\
    strict_string_checks=1:allocator_may_return_null=1 \
    UBSAN_OPTIONS=print_stacktrace=1
ENV_tsan = $(FEW) TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1

# Laws that use one thread, but for moments, have nothing for it to see and take
# it minutes; what the others do to threads law 5 does for every primitive.
# How ranks share test_shard shows; make nightly-tsan runs all.
PICK_tsan = -E 'test_law_(blocks|codec|gradients|memory|transparency|shards)|$\
    test_(coded|coded_block|coded_panel|coded_thin|decode_kernels|encode|$\
    dotint|dotbyte|dotf32|dottab|dotpair|dotturn|gemm_codes|outerf32|outerint|unpack|$\
    gemvq|few|lanes_f32|mathf|gemm|gemv|quantize_levels|golden.*|ternary|binary|int8|$\
    reduce|structure|gather|coded_labels|shard_grad|far_reads|rows_across|$\
    product_edges|convert|smoke)$$|test_io_|test_cli_|fuzz_|example_(fashion|transformer)'
# Threads are what the thread sanitizer looks at; programs that are killed, and the
# list of instructions, say nothing of memory; the longest examples do with real
# numbers what test_io_training and test_grad_nets do with few; and what
# test_cli_shard, test_shard_grad and law 7 call is called by test_io_ranks and
# test_shard. make nightly-asan runs all but law 5.
PICK_asan = -E 'test_law_(threads|shards)|test_shard_grad|test_cli_(kill|shard)|$\
    no_stray|example_(fashion|transformer|lora)'
# At ref: tests of kernels and of coded products run every level as it is, and
# files, meshes and memory that lacks have none. make nightly-ref runs all.
PICK_ref = -E 'test_(io_|cli|mesh|shard|spec|pool|law_(shards|memory|blocks)|apart|$\
    convert$$|coded_|dot[a-z]|gemm|gemv|few|outer|encode|unpack|decode_kernels|$\
    lanes_f32|mathf|quantize_levels|reduce|rows_across|tuning|random)|$\
    no_stray|fuzz_|doc_fragments|test_lowbit_bench|example_(fashion|transformer)'
# What has kernels of its own for an emulated level; make nightly-simde also runs
# law 5, of which the tests of coded products have a part.
HAVE_simde = apart binary coded coded_block coded_labels coded_panel coded_thin \
    convert cpu decode_kernels dot dotbyte dotf32 dotint dotlines dotpair dottab dotturn \
    dynamic8 elementwise encode few gemm gemm_codes gemv gemvq gguf_types golden \
    int8 intrin lanes_f32 law_codec law_transparency levels nf4 outerf32 outerint \
    product_edges quantize_levels reduce rows_across smoke ternary tuning unpack
empty :=
space := $(empty) $(empty)
PICK_simde = -R '^test_($(subst $(space),|,$(HAVE_simde) $(ALSO_simde)))(_.)?$$'

# qemu 7.2 trips an assertion of its own where a program forks with threads.
# The others take the emulator minutes each, run every kernel through whole calls
# and half of law 7 again: make nightly-arm64 ENV_arm64= PICK_arm64='-E test_pool' has
# them as well, and every case.
PICK_arm64 = -E 'test_(pool|tuning|quantize_levels|$\
    law_(memory|threads|transparency|shards_b).*)$$'

run-%: build-%
	$(ENV_$*) $(CTEST) $(PICK_$*) --test-dir build/$*

# First whether the runner can fail, then the cases, on 1, 2 and 7 threads. Other
# builds than users' have nothing new to see in the former, nor in bits that do
# not depend on the number of threads.
THREADS_asan = 2
THREADS_tsan = 7
THREADS_simde = 2
conformance-%: build-%
	@cmake -S . -B build/$* >/dev/null # to see what setup installed
	@cmake --build build/$* --target conformance
	$(if $(THREADS_$*),,$(ENV_$*) tests/test_conformance_runner.sh \
	    build/$*/tools/conformance)
	$(ENV_$*) tests/conformance.sh build/$*/tools/conformance $(CONFORMANCE) \
	    $(THREADS_$*)

# ---- stages -------------------------------------------------------------------

# Those that wait for one program most of the time run beside lint, which waits
# for one file. What two cannot do at once is done before: installing packages, and
# configuring build/release.
LIGHT := check-interop check-mpi check-nehalem
CHECKS := check-install check-conformance check-beside check-ref check-asan check-tsan \
    check-simde
.PHONY: check check-lint $(LIGHT) $(CHECKS)
check: $(CHECKS)

check-beside: setup-build all
	@for part in lint interop mpi nehalem; do tools/setup $$part || true; done
	@cmake -S . -B build/release >/dev/null
	@tools/beside '$(MAKE) -k check-lint SEEN=1' '$(MAKE) -k $(LIGHT)'

check-lint: setup-build setup-lint
	@tools/stage lint $(MAKE) lint LINT=quick SEEN=$(SEEN)

check-install: setup-build setup-install all
	@tools/stage install tests/install.sh

check-conformance: setup-build setup-conformance all
	@tools/stage conformance $(MAKE) conformance-release

# A machine that cannot have the packages is no mistake of the change: said, and
# passed by. make interop fails there.
check-interop: setup-build setup-interop all
	@tools/stage interop sh -c 'PATIENCE=420 tools/interop build/release $(CONFORMANCE); \
	    r=$$?; [ $$r != 77 ] || exec tools/stage "interop SKIPPED" true; exit $$r'

check-mpi: setup-build setup-mpi all
	@tools/stage mpi tests/mpi.sh build/release --short

check-ref: setup-build all
	@LOWBIT_ISA=ref tools/stage ref $(CTEST) $(PICK_ref) --test-dir build/release

# A CPU without AVX, as an emulator has it: it knows no instruction that such a
# CPU does not.
check-nehalem: setup-build setup-nehalem all
	@tools/stage nehalem sh -ec 'for t in "cpu" "levels" "smoke 1"; do \
	    qemu-x86_64 -cpu Nehalem build/release/tests/test_$$t; done'

check-asan: setup-build setup-conformance
	@tools/stage asan $(MAKE) run-asan conformance-asan

check-tsan: setup-build setup-clang setup-conformance
	@tools/stage tsan $(MAKE) run-tsan conformance-tsan

# Nothing to emulate where the machine has every level: make run-simde does it
# all the same.
check-simde: setup-build setup-simde setup-conformance all
	@if build/lowbit cpu --json | grep -q '"best": "avx512vnni"'; then \
	    tools/stage "simde, not needed here" true; \
	else \
	    tools/stage simde $(MAKE) run-simde conformance-simde; \
	fi

NIGHTLY := nightly-lint nightly-ref nightly-clang nightly-long nightly-asan \
    nightly-tsan nightly-simde nightly-avx512 nightly-msan nightly-valgrind \
    nightly-arm64 nightly-mpi
.PHONY: $(NIGHTLY)
nightly: $(NIGHTLY)

nightly-lint: setup-build setup-lint
	@tools/stage lint $(MAKE) lint

nightly-ref: setup-build all
	@LOWBIT_ISA=ref tools/stage ref $(MAKE) run-release

nightly-clang: setup-build setup-clang
	@tools/stage clang $(MAKE) run-clang

# With all cases of every test.
nightly-asan: setup-build setup-conformance
	@tools/stage asan $(MAKE) run-asan conformance-asan FEW= THREADS_asan= \
	    PICK_asan='-E test_law_threads'

nightly-tsan: setup-build setup-clang setup-conformance
	@tools/stage tsan $(MAKE) run-tsan conformance-tsan FEW= THREADS_tsan= \
	    PICK_tsan='-E "test_io_|test_cli_|fuzz_"'

# As check-simde does, with all cases of every test.
nightly-simde:
	@$(MAKE) check-simde FEW= THREADS_simde= ALSO_simde=law_threads

# The files that users get, on a CPU that Bochs emulates: asm and the choice of a
# level, which SIMDe does not see. Its vcvtps2ph rounds some ties up where the
# manual says to even, so what rounds to f16 is left out: dotf32, outerf32, unpack,
# decode_kernels, gemm_codes, and some kernels of gemvq that are not of this level;
# and encode, whose nf4 differs there at AVX2, too, as it does on no real CPU. It is
# slow: one case in 300 of very many.
AVX512 = cpu levels intrin dotlines dotbyte dotint gemm gemv few apart
nightly-avx512: setup-build setup-bochs all
	@LB_TEST_EVERY=300 tools/stage avx512 tools/bochs build/release \
	    'lowbit cpu' 'test_gemvq avx512' $(AVX512:%=test_%)

nightly-long: setup-build all
	@tools/stage long sh -ec 'for t in mathf lanes_f32 law_transparency law_threads \
	    law_memory law_codec io_damage; do \
	    build/release/tests/test_$$t --all; done'
	@tools/stage long-slices build/release/tests/test_io_slices --big

nightly-msan: setup-build setup-clang
	@tools/stage msan $(MAKE) run-msan

nightly-valgrind: setup-build setup-valgrind all
	@tools/stage valgrind sh -ec 'for t in build/release/tests/test_*; do \
	    valgrind -q --error-exitcode=1 --leak-check=full $$t; done'

# The emulator's own CPU has what any has; then one without dotprod.
A53 = qemu-aarch64 -cpu cortex-a53 -L /usr/aarch64-linux-gnu
nightly-arm64: setup-build setup-arm64
	@tools/stage arm64 $(MAKE) run-arm64
	@tools/stage arm64-a53 sh -ec 'for t in cpu levels dotbyte "smoke 1"; do \
	    $(A53) build/arm64/tests/test_$$t; done'

# Meshes as processes, with two kinds of MPI and all numbers of ranks.
nightly-mpi: setup-build setup-mpi all
	@tools/stage mpi tests/mpi.sh build/release
