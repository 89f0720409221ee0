# Everything runs in one virtual environment that the first target creates: `make demo` on a
# fresh machine needs Python 3.11 or 3.12 and a C++ compiler, nothing else.

PYTHON ?= python3
TORCH  ?= 2.14
VENV   ?= .venv
PYTEST_ARGS ?=

BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed
PINS  := requirements/torch-$(TORCH).txt

# ExecuTorch calls flatc, which pip installs beside the interpreter.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all lint format bench docs clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP)  ## create .venv and install what development needs

$(STAMP): pyproject.toml $(PINS)
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' || \
		{ echo "fxpasses needs Python 3.11 or 3.12: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "$(PYTHON) cannot create virtual environments: install its venv package (Debian: python3-venv)"; exit 1; }
	@command -v $(CXX) >/dev/null || \
		{ echo "AOTInductor needs a C++ compiler: install g++, or name one with CXX=..."; exit 1; }
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint $(PINS) --editable '.[test,models,dev]'
	touch $@

demo: setup  ## take a real model from export to a checked .pte
	fxpasses demo

test: setup  ## run the tests
	pytest $(PYTEST_ARGS)

test-all:  ## run the tests with each supported pair of torch and ExecuTorch
	$(MAKE) test
	$(MAKE) test TORCH=2.13 VENV=.venv-torch-2.13
	$(MAKE) test TORCH=2.11 VENV=.venv-torch-2.11

lint: setup  ## check formatting, style and types
	ruff format --check .
	ruff check .
	mypy

format: setup  ## rewrite what the linter can mend
	ruff check --fix .
	ruff format .

bench: setup  ## measure the engine beside its peers, and print the table
	pytest benchmarks/bench_*.py -q -W ignore $(PYTEST_ARGS) \
		--benchmark-quiet --benchmark-timer=time.process_time

docs: setup  ## build the documentation pages into site/
	$(BIN)/pip install --quiet --constraint $(PINS) --editable '.[docs]'
	mkdocs build --strict

clean:  ## remove the environments and everything built
	rm -rf .venv .venv-* build dist site demo-output .mypy_cache .pytest_cache .ruff_cache .hypothesis
