# Everything a newcomer needs: `make demo` runs the main job, `make test` passes the tests. Both build what they need;
# crates come from the package registry. No target needs root.

CARGO    ?= cargo
# Tests, demo and benches share this profile and one target folder, so that dependencies build once.
PROFILE   = --release --locked
TARGET    = $(abspath $(or $(CARGO_TARGET_DIR),target))
TACIT     = $(or $(CARGO_TARGET_DIR),target)/release/tacit
# Rows of `make bench`; the documentation quotes larger runs.
ROWS     ?= 200k
# Rows of `make bench-ray`.
RAY_ROWS ?= 3000000
# Seconds of the attacks of `make soak`.
SOAK_SECONDS ?= 600
# How many times `make soak` kills a party of each kind of study.
SOAK_KILLS ?= 200
# How many orders of killed daemons at the transitions of a study, and studies killed at other moments.
SOAK_ORDERS ?= 20
# Test programs of `kernels`, `ot` and `accel`.
KERNEL_TESTS = $(sort $(basename $(notdir $(wildcard $(patsubst %,crates/%/tests/*.rs,kernels ot accel)))))
# Seconds of each target of `make fuzz`; FUZZ="study hello" names some.
FUZZ_SECONDS ?= 30
FUZZ         ?=
# The commit that `tacit --version` names, or nothing where this folder is no checkout.
ifndef TACIT_COMMIT
TACIT_COMMIT := $(shell packaging/commit.sh)
endif
export TACIT_COMMIT

.DEFAULT_GOAL := help
.PHONY: help axe setup build boolean ckks fabric demo dist wheel test test-dist test-wheel test-python bench-python bench-service test-ray bench-ray test-store test-browser fuzz soak constant-time timing lint deny doc bench clean install-osprey rtl rtl-test rtl-report

help:
	@echo 'make demo    run a whole study on this machine: two parties, the 1954 poliomyelitis trial'
	@echo 'make test    all tests'
	@echo 'make test-python   the Python package as an installed wheel; epsilons and noise against OpenDP and dp-accounting, questions against numpy; in virtual environments that it makes (needs python3)'
	@echo 'make bench-python  what the Python package costs, its import, and over the command at a million rows (needs python3)'
	@echo 'make bench-service   what tacit service costs: its pages over 10,000 studies, 200 people at once, its memory'
	@echo 'make test-ray    workers as actors of two Ray clusters on this machine, in a virtual environment that it makes (needs python3)'
	@echo 'make bench-ray   what Ray costs over worker processes, in CPU time, at RAY_ROWS=$(RAY_ROWS) rows (needs python3)'
	@echo 'make test-store    state of runs and data in S3, played by moto on this machine, in a virtual environment that it makes (needs python3)'
	@echo 'make test-browser   the pages of tacit service in Debian'"'"'s chromium, by clicks, with axe-core on each; pictures in target/browser (needs chromium-driver and npm)'
	@echo 'make fuzz    every decoder under libFuzzer, FUZZ_SECONDS=$(FUZZ_SECONDS) each (needs a C++ compiler; docs/fuzzing.md)'
	@echo 'make soak    what is too long for every change: attacks on ring4 for SOAK_SECONDS=$(SOAK_SECONDS), SOAK_KILLS=$(SOAK_KILLS) kills of a party, SOAK_ORDERS=$(SOAK_ORDERS) orders of killed daemons, whole audits, coverage of derived statistics, memory at 4 and 16 million rows, and make fuzz'
	@echo 'make build   the tacit command, in $(TACIT)'
	@echo 'make wheel   the Python package, in dist (needs python3; docs/python.md)'
	@echo 'make boolean osprey and osprey-boolean: five workloads of two parties under garbled circuits'
	@echo 'make ckks    osprey-ckks beside osprey: Microsoft SEAL under Osprey (needs cmake and a C++20 compiler)'
	@echo 'make fabric  the shim to libfabric, beside tacit (needs libfabric-dev); tacit runs without it'
	@echo 'make dist    static tacit and osprey, a .deb, a root for a container, list of parts and checksums, in dist/ (needs musl-tools; docs/install.md)'
	@echo 'make test-dist   the packages of two builds in two folders have the same bytes; the image of docs/deploy, where this machine can build it'
	@echo 'make test-wheel  the wheel of two builds in two folders has the same bytes (needs python3)'
	@echo 'make rtl     tacit-rtl-sim: the accelerator in SystemVerilog as a device (needs verilator, make and a C++ compiler)'
	@echo 'make rtl-test, rtl-report   tests of its blocks and as a device; what it takes on a chip (needs yosys)'
	@echo 'make constant-time   no branch and no address of a kernel depends on a secret: its tests under valgrind'
	@echo 'make timing  no time of a kernel depends on a secret: a t-test, for a quiet machine'
	@echo 'make lint    formatting and clippy'
	@echo 'make deny    licences, bans and sources of dependencies (installs cargo-deny when absent)'
	@echo 'make doc     the documentation of all crates'
	@echo 'make bench   tacit bench yao, lift and match over TCP and TLS (ROWS=$(ROWS))'
	@echo 'make install-osprey PREFIX=/usr/local   the osprey command, its C and C++ libraries and headers'
	@echo 'make clean   remove what was built, and the demo'

# What building needs besides cargo: a C compiler, for SQLite and the TLS library. Cargo fetches the rest.
setup:
	@command -v $(CARGO) >/dev/null || { \
	  echo 'error: there is no cargo; install Rust 1.89 or newer, with rustup or as a package of your system' >&2; exit 1; }
	@command -v $(or $(CC),cc) >/dev/null || { \
	  echo 'error: there is no C compiler; on Debian: sudo apt-get install gcc libc6-dev' >&2; exit 1; }

build: setup
	$(CARGO) build $(PROFILE) -p cli

boolean: setup
	$(CARGO) build $(PROFILE) -p launcher -p workloads

# SEAL's sources come with a package of the registry; ckks/README.md says how. Its binary goes where cargo's go.
ckks: setup
	@command -v cmake >/dev/null || { echo 'error: there is no cmake; on Debian: sudo apt-get install cmake g++' >&2; exit 1; }
	$(CARGO) build $(PROFILE) -p osprey-c
	cmake -S ckks -B $(TARGET)/ckks -DOSPREY_LIBRARY=$(TARGET)/release/libosprey_c.a -DOSPREY_BIN=$(TARGET)/release
	cmake --build $(TARGET)/ckks --parallel

# The shim between tacit and libfabric, opened at run time where a party asks for that transport; it goes beside tacit.
fabric: setup
	@pkg-config --exists libfabric || { \
	  echo 'error: there is no libfabric; on Debian: sudo apt-get install libfabric-dev pkg-config' >&2; exit 1; }
	@mkdir -p $(TARGET)/release
	$(or $(CC),cc) -std=c11 -O2 -Wall -Wextra -fPIC -shared crates/fabric/shim/tacit_fabric.c \
	  $$(pkg-config --cflags --libs libfabric) -o $(TARGET)/release/libtacit_fabric.so

# Packages in dist/, from static programs of a profile of their own; other files there stay.
dist: setup
	CARGO=$(CARGO) packaging/build.sh

test-dist: dist
	CARGO=$(CARGO) packaging/twice.sh dist
	packaging/image.sh docs/deploy/Containerfile /usr/bin/tacit --version

# The accelerator of rtl/, in TARGET/rtl, where the device `rtl` looks for it.
rtl:
	@command -v verilator >/dev/null || { echo 'error: there is no verilator; on Debian: sudo apt-get install verilator' >&2; exit 1; }
	rtl/build.sh $(TARGET) simulator

rtl-test: setup rtl
	rtl/lint.sh
	$(CARGO) test $(PROFILE) -p accel-rtl

rtl-report:
	@command -v yosys >/dev/null || { echo 'error: there is no yosys; on Debian: sudo apt-get install yosys' >&2; exit 1; }
	rtl/build.sh $(TARGET) elaborated
	$(TARGET)/rtl/tacit-rtl-elaborated test
	rtl/report.sh $(TARGET)

demo: build
	$(TACIT) demo

# The second run takes the portable kernels, as a CPU without AES instructions would. `cli` is named beside those that are
# tested so that their dependencies have the features of the first run, and are not built again.
test: setup
	$(CARGO) test $(PROFILE) --workspace
	TACIT_PORTABLE=1 $(CARGO) test $(PROFILE) -p kernels -p ot -p accel -p cli --lib $(addprefix --test ,$(KERNEL_TESTS))

PYTHON3   = @command -v python3 >/dev/null || { \
	  echo 'error: there is no python3; on Debian: sudo apt-get install python3-venv' >&2; exit 1; }
PIP       = bin/pip install --quiet --disable-pip-version-check

# By maturin, from the package index, by the profile of `make dist`: the same bytes in any folder.
wheel: setup
	$(PYTHON3)
	CARGO=$(CARGO) packaging/wheel.sh

test-wheel: wheel
	CARGO=$(CARGO) packaging/twice.sh wheel

# Other implementations of what epsilon and noise are, from the package index; then the package in an environment that has
# nothing but its wheel, its extras and the tests' own tools. Besides these targets only test-store needs Python.
test-python: wheel build
	python3 -m venv $(TARGET)/witnesses
	$(TARGET)/witnesses/$(PIP) -r crates/release/witnesses/requirements.txt
	$(CARGO) build $(PROFILE) -p release --example witness
	$(TARGET)/witnesses/bin/python crates/release/witnesses/check.py $(TARGET)/release/examples/witness
	mkdir -p $(TARGET)/numpy
	TACIT_NUMPY=$(TARGET)/numpy $(CARGO) test $(PROFILE) -p job --test questions -- --ignored numbers_for_numpy
	$(TARGET)/witnesses/bin/python crates/release/witnesses/questions.py $(TARGET)/numpy
	python3 -m venv --clear $(TARGET)/package
	$(TARGET)/package/$(PIP) "$$(echo dist/tacit-*.whl)[test]" -c python/tests/requirements.txt
	TACIT_COMMAND=$(abspath $(TACIT)) $(TARGET)/package/bin/python -m pytest python/tests

bench-python: wheel build
	python3 -m venv --clear $(TARGET)/package
	$(TARGET)/package/$(PIP) "$$(echo dist/tacit-*.whl)"
	$(TARGET)/package/bin/python python/tools/bench.py --command $(TACIT) --wheel "$$(echo dist/tacit-*.whl)"

# Two daemons over TLS, minutes. SERVICE_BENCH="studies=1000 seconds=10" makes it smaller.
bench-service: build
	$(CARGO) build $(PROFILE) -p service --example service_bench
	$(TARGET)/release/examples/service_bench tacit=$(TACIT) $(SERVICE_BENCH)

# Two clusters of Ray on this machine, one for each party: minutes, and some GB of memory.
test-ray: wheel build
	python3 -m venv --clear $(TARGET)/ray
	$(TARGET)/ray/$(PIP) "$$(echo dist/tacit-*.whl)" -r python/tests_ray/requirements.txt
	TACIT_COMMAND=$(abspath $(TACIT)) $(TARGET)/ray/bin/python -m pytest -c python/pyproject.toml python/tests_ray
	packaging/image.sh docs/deploy/kuberay/Containerfile python -c 'import ray, tacit; print(ray.__version__, tacit.__version__)'

bench-ray: wheel
	python3 -m venv --clear $(TARGET)/ray
	$(TARGET)/ray/$(PIP) "$$(echo dist/tacit-*.whl)" -r python/tests_ray/requirements.txt
	$(TARGET)/ray/bin/python python/tools/bench_ray.py --rows $(RAY_ROWS)

# The tests of `store` and `data` against S3 as moto plays it, over loopback; `make test` runs those of `store` in a local folder.
test-store: setup
	$(PYTHON3)
	python3 -m venv $(TARGET)/moto
	$(TARGET)/moto/bin/pip install --quiet --disable-pip-version-check -r crates/store/moto/requirements.txt
	$(TARGET)/moto/bin/python crates/store/moto/run.py $(CARGO) test $(PROFILE) -p store -p data

# The browser and axe-core (MPL-2.0, never shipped) are for these tests alone. Pictures of the pages: target/browser.
AXE = axe-core-4.14.1
axe:
	@command -v chromedriver >/dev/null || { \
	  echo 'error: there is no chromedriver; on Debian: sudo apt-get install chromium-driver' >&2; exit 1; }
	mkdir -p $(TARGET)/axe
	test -f $(TARGET)/axe/$(AXE).tgz || (cd $(TARGET)/axe && npm pack --silent axe-core@$(AXE:axe-core-%=%))
	tar -xzf $(TARGET)/axe/$(AXE).tgz -C $(TARGET)/axe package/axe.min.js

test-browser: setup axe
	TACIT_BROWSER=required TACIT_AXE=$(TARGET)/axe/package/axe.min.js $(CARGO) test $(PROFILE) -p cli --test browser

# Both run the tests of docs/testing.md, "Constant time", once per backend that crates above `kernels` take by themselves.
TIMED     = $(CARGO) test $(PROFILE) --workspace --lib
constant-time: export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER = $(CURDIR)/crates/timing/memcheck.sh
constant-time: setup
	@command -v valgrind >/dev/null || { \
	  echo 'error: there is no valgrind; on Debian: sudo apt-get install valgrind' >&2; exit 1; }
	for portable in 0 1; do \
	  TACIT_PORTABLE=$$portable $(TIMED) secrets_steer_nothing -- --ignored --nocapture --test-threads=1 || exit 1; done

timing: setup
	for portable in 0 1; do \
	  TACIT_PORTABLE=$$portable $(TIMED) secrets_take_no_time -- --ignored --nocapture --test-threads=1 || exit 1; done

# Its own target folder and toolchain flags; `make test` replays the kept corpora without it.
fuzz: setup
	FUZZ_SECONDS=$(FUZZ_SECONDS) fuzz/run.sh $(FUZZ)

# Attacks at random places for as long as one likes; a failure prints the seed that repeats it. Then the audits that the
# documentation quotes, and whether memory grows with the rows.
soak: setup
	TACIT_ATTACK_SECONDS=$(SOAK_SECONDS) $(CARGO) test $(PROFILE) -p ring4 --test attack
	$(CARGO) test $(PROFILE) -p ring4 --test conformance --test devices -- --ignored
	TACIT_KILLS=$(SOAK_KILLS) $(CARGO) test $(PROFILE) -p cli --test cli kills
	TACIT_KILLS=$(SOAK_KILLS) $(CARGO) test $(PROFILE) -p cli --test cli workers
	TACIT_KILLS=$(SOAK_KILLS) $(CARGO) test $(PROFILE) -p cli --test cli going_on
	TACIT_KILLS=$(SOAK_ORDERS) $(CARGO) test $(PROFILE) -p cli --test service agreed
	TACIT_LEAVERS=64 $(CARGO) test $(PROFILE) -p job --test holding who_leaves_before
	$(CARGO) test $(PROFILE) -p release --test derived -- --ignored
	$(CARGO) test $(PROFILE) -p job --lib audit -- --ignored
	$(CARGO) test $(PROFILE) -p statements --lib -- --ignored
	$(CARGO) test $(PROFILE) -p service --lib -- --ignored
	$(CARGO) test $(PROFILE) -p cli --test cli audit -- --ignored
	$(CARGO) test $(PROFILE) -p cli --test cli scale -- --ignored
	$(MAKE) fuzz

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) metadata --manifest-path fuzz/Cargo.toml --locked --format-version 1 > /dev/null
	PYO3_NO_PYTHON=1 $(CARGO) clippy $(PROFILE) --workspace --all-targets -- -D warnings

# Advisories need the network every time and are not part of it.
deny: setup
	@$(CARGO) deny --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-deny
	$(CARGO) deny check licenses bans sources

doc: setup
	PYO3_NO_PYTHON=1 RUSTDOCFLAGS='-D warnings' $(CARGO) doc $(PROFILE) --workspace --no-deps --document-private-items

bench: build
	for transport in tcp tls; do for what in yao lift; do \
	  echo "== $$what, $$transport"; $(TACIT) bench $$what --rows $(ROWS) --transport $$transport || exit 1; done; done
	echo '== match, tcp'; $(TACIT) bench match --rows 20k

clean:
	$(CARGO) clean
	rm -rf demo-out dist

# Libraries, headers, CMake package and pkg-config file of Osprey, and its launcher, under PREFIX (docs/osprey/c-api.md).
install-osprey: setup
	@test -n '$(PREFIX)' || { echo 'error: say where: make install-osprey PREFIX=/usr/local' >&2; exit 1; }
	$(CARGO) build $(PROFILE) -p osprey-c -p launcher
	crates/osprey-c/install.sh $(or $(CARGO_TARGET_DIR),target)/release $(PREFIX)
