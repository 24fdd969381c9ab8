# Every target sets up what it needs: python3, make and git are enough.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready-$(shell cat requirements.lock pyproject.toml | cksum | cut -d' ' -f1)

# Packages whose branches are counted, by their own tests alone: the floor is fail_under in pyproject.toml.
PURE   := tests/apimachinery tests/gang tests/place

.DEFAULT_GOAL := help
.PHONY: help setup test lint format demo trees bench lock clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: $(READY) ## make the virtual environment from requirements.lock

$(READY): requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@$(BIN)/python -m compileall -q src
	@rm -f $(VENV)/.ready-* && touch $@

test: $(READY) ## all tests that need nothing but Python
	$(BIN)/pytest -q -n auto --cov --cov-report=term:skip-covered --no-cov-on-fail $(PURE)
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

demo: $(READY) ## a cluster in one process: gangs start together, finish, or say why they wait
	@$(BIN)/python -m kohort.cli.demo

trees: $(READY) ## the tree of every example, as Kubernetes 1.37 would see it
	@$(BIN)/python -m kohort.cli.trees

bench: $(READY) ## compile + render, command start-up
	$(BIN)/python -m bench

lock: ## choose newer dependencies and write them to requirements.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet pip-tools
	$(BIN)/pip-compile --quiet --upgrade --extra dev --strip-extras --no-emit-index-url --no-emit-find-links \
	  --no-emit-trusted-host --generate-hashes --output-file requirements.lock pyproject.toml

clean: ## remove what make made
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist

-include mk/*.mk
