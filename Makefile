# Two commands do all set-up on a machine with Python 3.11 or newer:
#   make demo    installs into .venv, trains on the embedded graph, says where the report is
#   make test    installs into .venv, runs the whole test suite
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test lint types sanitize clean

demo: $(READY)
	@$(BIN)/elugcn train

test: $(READY)
	$(BIN)/python -m pytest -n 2 $(PYTEST_ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/codespell elugcn reproduction tests examples docs *.md

types: $(READY)
	$(BIN)/mypy

$(READY): pyproject.toml setup.py constraints.txt reproduction/pyproject.toml $(wildcard elugcn/engine/loops/*.[ch])
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("elugcn needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Say which one to use: make demo PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (torch is large: a few minutes the first time)"
	@PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' -e reproduction
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
