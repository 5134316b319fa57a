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

# The engine's tests with the loops in C under the sanitizers of addresses and of
# undefined behaviour. PyTorch's own leaks are not looked at.
sanitize: $(READY)
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	cp -r setup.py pyproject.toml README.md LICENSE elugcn tests "$$folder" && cd "$$folder" && \
	rm -f elugcn/engine/*.so && export PYTHONPATH="$$folder" && \
	ELUGCN_SANITIZE=1 $(CURDIR)/$(BIN)/python setup.py -q build_ext --inplace && \
	export LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" && \
	export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 && \
	$(CURDIR)/$(BIN)/python -c 'from elugcn import engine; assert engine.engine_name() == "fast"' && \
	$(CURDIR)/$(BIN)/python -m pytest tests/engine

$(READY): pyproject.toml setup.py constraints.txt reproduction/pyproject.toml $(wildcard elugcn/engine/loops/*.[ch])
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("elugcn needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Say which one to use: make demo PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (torch is large: a few minutes the first time)"
	@PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' -e reproduction
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
