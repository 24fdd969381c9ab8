# Every target sets up what it needs: python3, make and git are enough.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready-$(shell cat requirements.lock pyproject.toml | cksum | cut -d' ' -f1)
RUN    := $(VENV)/.run-$(shell cat requirements-run.lock | cksum | cut -d' ' -f1)
# A lock names every package: pip resolves nothing (--no-deps), so that no later release of one can be chosen or refused.
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check

# What takes long says what it is, and a dot each second.
dots = @printf '%s ' '$(1)'; $(2) & pid=$$!; while kill -0 $$pid 2>/dev/null; do printf .; sleep 1; done; wait $$pid && echo ' done'

# Packages whose branches are counted, by their own tests alone: the floor is fail_under in pyproject.toml.
PURE   := tests/apimachinery tests/gang tests/place
# What is printed of it; empty: only whether the floor is kept.
COVERAGE_REPORT ?= term:skip-covered

.DEFAULT_GOAL := help
.PHONY: help setup test lint format demo trees bench lock clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: $(READY) ## make the virtual environment from requirements.lock

$(READY): requirements.lock pyproject.toml | $(BIN)/python
	$(call dots,all packages for work on Kohort ($(shell grep -c '^[a-z].*==' requirements.lock)) go into $(VENV) (once; minutes),$(PIP) --no-deps --require-hashes -r requirements.lock)
	@$(PIP) --no-deps --editable .
	@$(BIN)/pip check --quiet --disable-pip-version-check
	@$(BIN)/python -m compileall -q src
	@rm -f $(VENV)/.ready-* && touch $@

$(RUN): requirements-run.lock | $(BIN)/python
	$(call dots,packages that running needs ($(shell grep -c '^[a-z].*==' requirements-run.lock)) go into $(VENV) (once; half a minute),$(PIP) --no-deps --require-hashes -r requirements-run.lock)
	@rm -f $(VENV)/.run-* && touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Kohort needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Name another: make $(or $(MAKECMDGOALS),setup) PYTHON=python3.12"; exit 1; }
	@echo 'a virtual environment of $(PYTHON), in $(VENV)'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo 'python3 -m venv does not work here; on Debian and Ubuntu: apt install python3-venv'; exit 1; }

test: $(READY) ## all tests that need nothing but Python
	$(BIN)/pytest -q -n auto --cov --cov-report=$(COVERAGE_REPORT) --no-cov-on-fail $(PURE)
	$(BIN)/pytest -q -n auto --ignore=tests/kubernetes $(addprefix --ignore=,$(PURE))
	@echo 'skipped: tests/kubernetes, which need real Kubernetes (make test-kubernetes)'

lint: $(READY) ## ruff, mypy, pyright on the public types, import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src/kohort tests
	$(BIN)/basedpyright
	$(BIN)/lint-imports

format: $(READY) ## let ruff rewrite the tree
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

demo: $(RUN) ## a cluster in one process: a gang starts, one waits, one preempts, a node dies; half a minute
	@PYTHONPATH=src $(BIN)/python -m kohort.cli.demo

trees: $(READY) ## the tree of every example, as Kubernetes 1.37 would see it
	@$(BIN)/python -m hack.trees

bench: $(READY) ## compile + render, command start-up
	$(BIN)/python -m bench

lock: | $(BIN)/python ## choose newer dependencies; write requirements.lock, and of it what running needs
	@$(PIP) pip-tools
	$(BIN)/pip-compile --quiet --upgrade --extra dev --strip-extras --no-emit-index-url --no-emit-find-links \
	  --no-emit-trusted-host --generate-hashes --output-file requirements.lock pyproject.toml
	$(BIN)/python -m hack.run_lock

clean: ## remove what make made
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist

-include mk/*.mk
