# Two commands on a fresh machine: `make run` shows Ostinato at work, `make test` checks everything.
# They need Python 3.11 or later, make and a package registry; uv is used when it is there, pip otherwise. Node builds the
# web UI: the machine's own if it is new enough, else one from a wheel.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# pyright and its Node both come in wheels: no Node on the machine is needed or used, and nothing else is fetched.
export PYRIGHT_PYTHON_GLOBAL_NODE := off
export PYRIGHT_PYTHON_CACHE_DIR := $(CURDIR)/$(VENV)/pyright

.DEFAULT_GOAL := help
.PHONY: help setup ui pages screenshots snapshots browser run test check bench mutants format lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## make the virtual environment in .venv

ui: $(READY) ## build the web UI, if its sources have changed
	@$(BIN)/python ui/build.py

pages: $(READY) # the same, but what is run goes on without it, and says how to build it
	@$(BIN)/python ui/build.py || true

run: pages ## serve the examples on this machine, with a few jobs to look at, until Ctrl-C
	$(BIN)/ostinato dev examples/demo.py --submit examples/demo.json

test: check browser ## everything: lint, types, layers and all tests
	$(BIN)/python -m pytest -n 3

check: ui ## lint, types and layers, of the web UI too, and the tests of its models
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python ui/build.py run check

screenshots: ui browser ## take the pictures of the docs anew
	OSTINATO_UI_SCREENSHOTS=1 $(BIN)/python -m pytest -q tests/ui/test_screenshots.py

snapshots: $(READY) ## write what users and databases see of this version to tests/snapshots
	@$(BIN)/python -m devtools.snapshots

browser: $(READY) # Chromium for the tests of the web UI: what $CHROMIUM names, or the package of Debian
	@$(BIN)/python -m devtools.browser

bench: $(READY) ## measure
	$(BIN)/python -m bench

mutants: $(READY) ## plant bugs where things are decided, for an hour, and say which of them no test finds
	$(BIN)/python -m devtools.mutants

format: $(READY) ## sort imports, fix what can be fixed, format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/python ui/build.py run format

lock: ## resolve the dependencies anew (needs uv)
	uv lock --default-index https://pypi.org/simple
	uv export --quiet --frozen --all-extras --no-hashes --no-emit-project --no-annotate --no-header --output-file constraints.txt

clean: ## remove everything that make and the tools made
	rm -rf $(VENV) dist thumbnails ui/node_modules src/ostinato/_ui .pytest_cache .ruff_cache .hypothesis .import_linter_cache ostinato.db*
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
