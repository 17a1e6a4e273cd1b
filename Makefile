# Everything a developer types. `make` alone makes the environment and says what else there is.
#
#   PYTHON=python3.13 VENV=.venv313 make test     another interpreter, beside the first
#
# The environment is kept fresh by a stamp: a changed lock or pyproject installs again.

SHELL := /bin/bash

PYTHON ?= $(shell for p in python3.11 python3.13 python3.12 python3; do \
    "$$p" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOCK = requirements/py$(shell "$(or $(PYTHON),false)" -c 'import sys; print(min(313, sys.version_info[0] * 100 + sys.version_info[1]))' 2>/dev/null).txt
NEWEST ?= $(shell for p in python3.13 $(HOME)/.pyenv/versions/3.13*/bin/python; do \
    "$$p" -c 'import venv' 2>/dev/null && { echo "$$p"; break; }; done)

# Two processes; tests/distribution.py says which tests share brokers or Spark, and so a process.
# A test without a mark runs in `make test`. SLOW holds FAST's brokers again: its recordings need them.
PYTEST := $(BIN)/python -m pytest
QUICK := -n 2 -m "not (interop or slow or soak)"
FAST := -n 2 -m "broker or not (interop or slow or soak)"
SLOW := -n 2 -m "(interop or slow) and not soak"
ALONE := -n 2 -m "not interop and not soak"

# Else hundreds of programs that tests start compile all our modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup kernel demo test quick slow check fmt lint type newest fuzz soak bench docs pictures site golden samples wheel spark-package lock clean

help: setup
	@echo
	@echo 'make demo      look at the shipped capture; without a terminal, list some of it'
	@echo 'make test      what a change has to pass first: 9 minutes on two cores; one real broker and three'
	@echo '               client libraries, which are skipped without Java and Maven'
	@echo 'make check     format, lint, types, import arrows, and `make test` without the broker: 9 minutes'
	@echo 'make slow      all brokers and clients, Spark, and what else takes long: 20 minutes'
	@echo '.ci/run        lint, types, `make test` and `make slow` with no test skipped, `make newest`, the'
	@echo '               wheels: 35 minutes on two cores'
	@echo 'make newest    lint, types and `make test` on Python 3.13, in an environment of its own: 10 minutes'
	@echo 'make soak      full matrices and long runs: hours'
	@echo 'more:          fmt lint type quick fuzz bench docs site golden samples wheel spark-package lock clean'

setup: kernel

# Compiled for this Python, unless that is done for the same sources: 10 seconds. Without a C compiler
# it runs as plain Python; this says so, and `kafkascope doctor`.
kernel: $(READY)
	@$(BIN)/python hatch_build.py

# A lock has all there is to install; of mitmproxy's own bounds see requirements/override.in.
$(READY): pyproject.toml $(wildcard requirements/*.txt)
	@test -n "$(PYTHON)" || { echo 'Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11' >&2; exit 1; }
	test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup
	$(BIN)/kafkascope demo

test: setup
	$(PYTEST) -q -rs $(FAST)

quick: setup
	$(PYTEST) -q $(QUICK)

slow: setup
	$(PYTEST) -q -rs $(SLOW)

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) -q $(QUICK)

fmt: setup
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

type: setup
	$(BIN)/mypy

# The newest Python we support, in an environment of its own; where it is missing, nothing is done.
newest:
	@test -n "$(NEWEST)" || echo 'skipped: there is no Python 3.13'
	test -z "$(NEWEST)" || $(MAKE) lint type test PYTHON="$(NEWEST)" VENV=.venv313

# Many more examples of every property, with new seeds each time.
fuzz: setup
	HYPOTHESIS_PROFILE=soak $(PYTEST) -q -n 2 --timeout 3600 -m "not interop"

# Every client against every broker, long runs, and the long tests without brokers on the newest Python.
soak: setup
	$(PYTEST) -q -rs --timeout 3600 -m soak
	ORACLE_EXAMPLES=40 $(PYTEST) -q -rs --timeout 3600 tests/interop/test_oracle.py
	test -z "$(NEWEST)" || $(MAKE) quick QUICK='$(ALONE)' PYTHON="$(NEWEST)" VENV=.venv313

# The goals of speed and memory beside what is measured, and the proxy beside HAProxy.
bench: setup
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/proxy.py

# Printed documents; `git diff docs` is the review.
docs: setup
	@for script in docs/print_*.py; do test ! -e "$$script" || $(BIN)/python "$$script" || exit 1; done

# A picture of each screen, in docs/images.
pictures: setup
	$(BIN)/python docs/pictures.py

# The site of docs/, in build/site.
site: setup
	$(BIN)/mkdocs build --strict --quiet

golden: setup docs
	UPDATE_GOLDEN=1 $(PYTEST) -q $(ALONE)

# Real brokers and clients, captured again: needs Java, Maven and the right to run tcpdump.
samples: setup
	$(BIN)/python -m tests.interop.make_samples

# What spark-submit needs: our code and its dependencies in one archive.
spark-package: setup
	$(BIN)/python -m kafkascope.analyzer.spark.package dist

# Of kafkascope there are two: for every platform, and for this one with the kernel compiled.
WHEEL := $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist
wheel: setup
	rm -rf dist
	$(WHEEL) . ./bindings/python ./pyspark_kafkascope
	KAFKASCOPE_COMPILE=1 $(WHEEL) .
	@ls dist

# One lock for each Python, because its newest mitmproxy and numpy differ, and one for the image. What
# is pinned stays, as far as it fits: to raise it, `make lock UPGRADE="--upgrade-package NAME"`, or
# UPGRADE=--upgrade. pip verifies the hashes, and takes no package without one.
UPGRADE ?=
UV := .cache/lock/bin/uv
LOCK_OPTIONS := --quiet --no-header --no-annotate --no-python-downloads --generate-hashes \
    --override requirements/override.in
LOCKED := tui web proxy tls parquet spark schemas mcp telemetry test
IN_IMAGE := tui web proxy tls parquet telemetry
lock:
	@test -n "$(PYTHON)"
	test -x $(UV) || { "$(PYTHON)" -m venv --clear .cache/lock && .cache/lock/bin/pip install --quiet uv; }
	for version in 311 312 313; do \
	    $(UV) pip compile $(LOCK_OPTIONS) $(UPGRADE) $(LOCKED:%=--extra %) --python-version $${version/3/3.} \
	        --output-file requirements/py$$version.txt pyproject.toml requirements/build.in || exit; \
	done
	$(UV) pip compile $(LOCK_OPTIONS) $(UPGRADE) $(IN_IMAGE:%=--extra %) --python-version 3.11 \
	    --constraint requirements/py311.txt --output-file requirements/image.txt pyproject.toml requirements/build.in
	sed -i -E 's/^(mitmproxy-linux==[0-9.]+)( \\)$$/\1 ; sys_platform == "linux"\2/' requirements/*.txt
	sed -i -E 's/^(uvloop==[0-9.]+)( \\)$$/\1 ; sys_platform != "win32" and implementation_name == "cpython"\2/' requirements/*.txt
	rm -rf .cache/lock

clean:
	rm -rf dist build kernel/*.so kernel/stamp.* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
