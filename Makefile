# `make demo` and `make test` do all set-up on a fresh machine that has Python 3.11+ and make.
PYTHON ?= python3
BIN    := .venv/bin
STAMP  := .venv/.installed

.PHONY: demo test check bench clean

demo: $(STAMP)
	$(BIN)/nearkin demo --out demo

test: check
	$(BIN)/python -m pytest -n 2

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --level error

bench: $(STAMP)
	$(BIN)/python benchmarks/rotation.py --quick
	$(BIN)/python benchmarks/quantization.py --quick

# PyTorch comes first and by its exact version: a bare `torch` would pull gigabytes of CUDA.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch==2.13.0 hatchling editables
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv demo
