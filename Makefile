# Two commands on a fresh machine: `make run` shows Ostinato at work, `make test` checks everything.
# They need Python 3.11 or later, make and a package registry; uv is used when it is there, pip otherwise.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# pyright and its Node both come in wheels: no Node on the machine is needed or used, and nothing else is fetched.
export PYRIGHT_PYTHON_GLOBAL_NODE := off
export PYRIGHT_PYTHON_CACHE_DIR := $(CURDIR)/$(VENV)/pyright

.DEFAULT_GOAL := help
.PHONY: help setup run test check bench format lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## make the virtual environment in .venv

run: $(READY) ## serve the examples on this machine, with a few jobs to look at, until Ctrl-C
	$(BIN)/ostinato dev examples/demo.py --submit examples/demo.json

test: check ## everything: lint, types, layers and all tests
	$(BIN)/python -m pytest -n 2

check: $(READY) ## lint, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports

bench: $(READY) ## measure
	$(BIN)/python -m bench

format: $(READY) ## sort imports, fix what can be fixed, format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lock: ## resolve the dependencies anew (needs uv)
	uv lock --default-index https://pypi.org/simple
	uv export --quiet --frozen --all-extras --no-hashes --no-emit-project --no-annotate --no-header --output-file constraints.txt

clean: ## remove everything that make and the tools made
	rm -rf $(VENV) dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache ostinato.db*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml uv.lock constraints.txt
	@echo "Setting up $(VENV) ..."
	@if command -v uv >/dev/null 2>&1; then \
		uv sync --frozen --quiet; \
	else \
		$(PYTHON) -m venv $(VENV) && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'; \
	fi
	@touch $@
