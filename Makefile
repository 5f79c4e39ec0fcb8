# Everything that is built or downloaded, except .venv, lives in $ARCFLEET_CACHE, which may be deleted at any time.
ARCFLEET_CACHE ?= $(HOME)/.cache/arcfleet
PYTHON ?= python3
UPGRADE ?=
PYTEST_ARGS ?=
BENCH_ARGS ?=
FUZZ_SECONDS ?= 60

# Clones share downloads, but each has its own results: two may build or test at once, and cargo would take one clone's
# extension module for the other's, because its file name carries no hash.
CLONE := $(shell pwd | cksum | cut -d' ' -f1)
ARCFLEET_REPORTS ?= $(ARCFLEET_CACHE)/reports/$(CLONE)
USER_CARGO_HOME := $(or $(CARGO_HOME),$(HOME)/.cargo)

export ARCFLEET_CACHE ARCFLEET_REPORTS
export CARGO_HOME := $(ARCFLEET_CACHE)/cargo
export CARGO_TARGET_DIR := $(ARCFLEET_CACHE)/target/$(CLONE)
export HYPOTHESIS_STORAGE_DIRECTORY := $(ARCFLEET_CACHE)/hypothesis
export MYPY_CACHE_DIR := $(ARCFLEET_CACHE)/mypy/$(CLONE)
export PIP_CACHE_DIR := $(ARCFLEET_CACHE)/pip
export PYTHONPYCACHEPREFIX := $(ARCFLEET_CACHE)/pycache
export RUFF_CACHE_DIR := $(ARCFLEET_CACHE)/ruff
export UV_CACHE_DIR := $(ARCFLEET_CACHE)/uv

PINS := requirements/build.txt requirements/dev.txt
# Folders are listed too: their time changes when a file is removed.
SOURCES := pyproject.toml Cargo.toml Cargo.lock README.md LICENSE \
	$(shell find afa arcfleet worker schemas -name __pycache__ -prune -o -name '_native*.so' -prune -o -print)
PIP_INSTALL := .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes
COMPILE := .venv/bin/uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --custom-compile-command 'make lock'

.PHONY: help setup develop demo test fuzz soak check lint types format bench lock clean cargo-home
.DELETE_ON_ERROR:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' Makefile

setup: .venv/installed ## make .venv, build and install the wheel, fetch the Kafka jars
	@.venv/bin/python -P -m arcfleet.local.jars

develop: .venv/pins ## install in place: edits count at once, and the extension module lies in afa/ (git-ignored)
	rm -f .venv/installed
	.venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .
	@.venv/bin/python -P -m arcfleet.local.jars

demo: setup ## a fleet on a local Kafka, in half a minute
	.venv/bin/python examples/demo.py

test: setup ## all tests, on the installed wheel
	@mkdir -p "$(ARCFLEET_REPORTS)"
	start=$$(date +%s) && cargo test --workspace --locked --quiet && \
		echo $$(($$(date +%s) - start)) > "$(ARCFLEET_REPORTS)/native.seconds"
	.venv/bin/python -P -m pytest -o cache_dir="$(ARCFLEET_CACHE)/pytest/$(CLONE)" \
		--junit-xml="$(ARCFLEET_REPORTS)/pytest.xml" $(PYTEST_ARGS)

# One target at a time, each with its share of the seconds. Not captured: what ends the whole process has a seed, too.
fuzz: cargo-home ## new random cases for what reads input (FUZZ_SECONDS=60 in all; a failure says how to repeat it)
	ARCFLEET_FUZZ_SECONDS=$(FUZZ_SECONDS) cargo test --profile fuzz --package afa-engine --test fuzz --locked --quiet -- \
		--test-threads=1 --nocapture

soak: setup ## a fleet for ten minutes: 100,000 events, workers and broker killed; lost answers; a long backlog
	ARCFLEET_SOAK=1 .venv/bin/python -P -m pytest -s -o cache_dir="$(ARCFLEET_CACHE)/pytest/$(CLONE)" \
		tests/worker/test_soak.py tests/worker/test_lost_answers.py tests/worker/test_scaling.py \
		tests/worker/test_backlog.py $(PYTEST_ARGS)

check: lint types test fuzz ## linters, types, tests and a minute of random cases

lint: .venv/pins ## ruff, rustfmt and clippy
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings

types: .venv/pins ## mypy
	.venv/bin/mypy

format: .venv/pins ## repair what the linters can repair
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .
	cargo fmt --all

bench: setup ## the native engine beside loops by hand (BENCH_ARGS=--quick for a short form)
	@mkdir -p "$(ARCFLEET_REPORTS)"
	.venv/bin/arcfleet bench --plot "$(ARCFLEET_REPORTS)/bench.svg" $(BENCH_ARGS)

lock: .venv/pins ## remake requirements/ from pyproject.toml (UPGRADE=--upgrade takes newer versions)
	$(COMPILE) --group build --output-file requirements/build.txt
	$(COMPILE) --extra dev pyproject.toml --output-file requirements/dev.txt

clean: ## remove .venv and what an install in place left; the cache stays
	rm -rf .venv afa/_native*.so

# Made anew whenever a pin changes, so that no package outlives its pin.
# uv is the faster installer, but does not know of mirrors and certificates that only pip was told of.
.venv/pins: $(PINS) | cargo-home
	@$(PYTHON) tools/prerequisites.py
	$(PYTHON) -m venv --clear .venv
	$(PIP_INSTALL) -r requirements/build.txt
	.venv/bin/uv pip sync --quiet --python .venv/bin/python --require-hashes $(PINS) || $(PIP_INSTALL) $(addprefix -r ,$(PINS))
	@touch $@

# The user's own settings for cargo (a mirror, a linker) stay in force.
cargo-home:
	@mkdir -p "$(CARGO_HOME)"
	@if [ -f "$(USER_CARGO_HOME)/config.toml" ] && [ "$(USER_CARGO_HOME)" != "$(CARGO_HOME)" ]; then \
		ln -sf "$(USER_CARGO_HOME)/config.toml" "$(CARGO_HOME)/config.toml"; fi

.venv/installed: .venv/pins $(SOURCES)
	rm -f afa/_native*.so
	@mkdir -p "$(ARCFLEET_CACHE)/wheels"
	wheels=$$(mktemp -d "$(ARCFLEET_CACHE)/wheels/XXXXXX") && \
		.venv/bin/maturin build --quiet --release --locked --interpreter .venv/bin/python --out "$$wheels" && \
		.venv/bin/uv pip install --quiet --python .venv/bin/python --offline --no-deps --reinstall "$$wheels"/*.whl && \
		rm -r "$$wheels"
	@touch $@
