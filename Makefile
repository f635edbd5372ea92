# `make` alone says what there is. PYTHON names another interpreter: make test PYTHON=python3.12

PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# A lock names every package, so nothing is left to resolve.
FROM_LOCK := $(PIP) install --require-hashes --no-deps --only-binary :all: --requirement

# Each stamp is newer than what it was made from, so a second run has nothing to do.
CREATED := $(VENV)/.created
RUNTIME := $(VENV)/.runtime
DEV := $(VENV)/.dev
DOCS := $(VENV)/.docs

# Several processes share the cores here; the threads of one library in each of them would only fight.
export OPENBLAS_NUM_THREADS ?= 1
# Coverage by sys.monitoring where Python has it (3.12), which costs little.
export COVERAGE_CORE ?= $(shell $(BIN)/python -c 'import sys; print("sysmon" if hasattr(sys, "monitoring") else "ctrace")' 2>/dev/null)

# Servers and commands start some hundred times: without bytecode each would compile the product anew.
export PYTHONDONTWRITEBYTECODE :=

# make test COVERAGE= measures none.
COVERAGE ?= --cov --cov-report=term:skip-covered

# One more than two cores: a test that waits for a server, a slot or a disk leaves its core to another.
WORKERS ?= 3

LOCK_VENV := .venv-lock
UV_VERSION := 0.13.7
UPGRADE ?=
LOCK_HEADER := \# Exact versions with hashes, for Python 3.11 and newer. Made by `make lock`: do not edit by hand.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check lint types suite docs bench lab web screenshots lock clean

help: ## say what each target does
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | awk -F '\t' '{ printf "  make %-11s %s\n", $$1, $$2 }'

demo: $(RUNTIME) ## install what Sharewell needs to run, and show it at work
	@$(BIN)/sharewell demo --script

test: lint ## run the checks and every test; types are checked beside the tests
	@$(MAKE) --no-print-directory --jobs 2 types suite

check: lint types ## lint, formatting, types, and which way imports point

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/lint-imports --config research/pyproject.toml

types: $(DEV)
	$(BIN)/mypy

suite: $(DEV)
	@scripts/fetch_nginx .nginx
	@scripts/fetch_chromium
	@scripts/fetch_node_packages
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(COVERAGE)

lab: $(DEV) ## install sharewell-lab: sharewell reproduce, simulate and theory
	@echo "Ready: $(BIN)/sharewell reproduce --help"

web: ## build the console from web/ into the package; needs Node 20 or newer
	@scripts/fetch_node_packages
	@cd web && npm run --silent build

screenshots: $(DEV) ## take the pictures of the console for README and docs
	@$(BIN)/python scripts/screenshots.py

docs: $(DOCS) ## build the documentation site in site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "Open site/index.html"

bench: $(DEV) ## measure speed and print the figures
	$(BIN)/python -m benchmarks

lock: ## write the pinned versions anew; UPGRADE=1 takes the newest that the bounds allow
	@PYTHON='$(PYTHON)' scripts/bootstrap $(LOCK_VENV)
	@$(LOCK_VENV)/bin/python -m pip --disable-pip-version-check --quiet install uv==$(UV_VERSION)
	@$(call compile,runtime)
	@$(call compile,dev,--extra dev --constraint requirements/runtime.lock)
	@$(call compile,docs,--extra docs --constraint requirements/dev.lock)

clean: ## remove all that was made here: environments, caches, builds
	rm -rf $(VENV) $(LOCK_VENV) .nginx web/node_modules build dist site .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src research tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(CREATED):
	@PYTHON='$(PYTHON)' scripts/bootstrap $(VENV)
	@touch $@

$(RUNTIME): $(CREATED) requirements/runtime.lock pyproject.toml
	@echo "Installing what Sharewell runs on, pinned by hash (once; a minute or two)."
	@$(FROM_LOCK) requirements/runtime.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@echo "Installed. The first start reads all of it from disk, which may take half a minute."
	@touch $@

$(DEV): $(RUNTIME) requirements/dev.lock research/pyproject.toml
	@echo "Installing sharewell-lab and the tools that test it, pinned by hash (once)."
	@$(FROM_LOCK) requirements/dev.lock --no-binary pyspark --no-build-isolation
	@$(PIP) install --no-deps --no-build-isolation --editable research
	@touch $@

$(DOCS): $(RUNTIME) requirements/docs.lock
	@echo "Installing the tools that build the documentation, pinned by hash (once)."
	@$(FROM_LOCK) requirements/docs.lock
	@touch $@

# compile NAME OPTIONS: one lock for every platform and Python, without the name of any index.
define compile
set -e; echo "Locking requirements/$(1).lock"; \
$(LOCK_VENV)/bin/uv pip compile pyproject.toml --group backend $(2) --quiet --no-config \
	--universal --python-version 3.11 --generate-hashes --no-header $(if $(UPGRADE),--upgrade) \
	--output-file requirements/$(1).lock; \
{ echo '$(LOCK_HEADER)'; cat requirements/$(1).lock; } > requirements/$(1).new; \
mv requirements/$(1).new requirements/$(1).lock
endef
