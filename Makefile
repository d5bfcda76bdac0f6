# Two commands: `make demo` and `make test`. Only Python 3.11+ (with venv) must be there.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest

# uv does not read pip's configuration, so it gets the mirror that is set for pip.
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
ifeq ($(UV_DEFAULT_INDEX),)
unexport UV_DEFAULT_INDEX
endif

# Without bytecode on disk, every process of a test run compiles the modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## Show these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(VENV)/.installed ## Create the environment from the lock and fetch the jars; what is there is not fetched again
	@$(BIN)/lockstep jars

.PHONY: demo
demo: setup ## Start the stack, simulate the shop, and end with the verdict
	@$(BIN)/lockstep demo

.PHONY: down
down: $(VENV)/.installed ## Stop the stack; nothing is lost
	@$(BIN)/lockstep down

.PHONY: test
test: setup ## Lint, types, and all tests but soak and browser
	@$(MAKE) --jobs 2 --output-sync lint test-fast
	$(PYTEST) tests/integration tests/shop/integration --numprocesses 3 --dist loadscope --no-loadscope-reorder --durations 40 -m "not slow"
	.ci/as-ordinary-user $(PYTEST) tests/e2e --durations 20 -m 'not slow'

.PHONY: test-fast
test-fast: setup ## Unit and contract tests, under a minute
	$(PYTEST) tests/unit tests/contract tests/shop/unit tests/shop/contract --numprocesses 2

.PHONY: soak
soak: setup ## The long fault and load runs, at most an hour each
	$(PYTEST) tests/soak
	$(PYTEST) tests/integration -m slow
	$(PYTEST) tests/e2e

.PHONY: test-browser
test-browser: setup ## The pages, in Debian's Chromium
	$(PYTEST) tests/browser

.PHONY: lint
lint: $(VENV)/.installed ## Ruff, mypy, import-linter and sqlfluff
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/sqlfluff lint dbt/models dbt/tests

.PHONY: lock
lock: $(VENV)/.installed ## Write requirements.lock and infra/jars.lock anew
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes pyproject.toml --all-extras --group dev -o requirements.lock
	$(BIN)/lockstep jars --relock

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' || \
	  { echo "$(PYTHON) is $$($(PYTHON) -V 2>&1); Lockstep needs Python 3.11 or 3.12: make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "creating $(VENV) with $$($(PYTHON) -V)"
	@$(PYTHON) -m venv $(VENV)

# uv itself comes out of the lock, with its hashes, through the pip of the new environment.
$(VENV)/.synced: requirements.lock | $(VENV)/bin/python
	@if [ ! -x $(BIN)/uv ]; then \
	  awk '/^[^ #]/ {own = /^uv==/} own' requirements.lock > $(VENV)/uv.lock; \
	  $(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r $(VENV)/uv.lock; \
	fi
	@echo "installing the $$(grep -c '^[^ #].*==' requirements.lock) packages of the lock"
	@$(BIN)/uv pip sync -q --python $(BIN)/python --require-hashes --compile-bytecode requirements.lock
	@touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.synced
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@
