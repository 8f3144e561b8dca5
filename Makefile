# `make demo` and `make test` do all set-up on a fresh machine that has Python 3.11+ and make.
PYTHON ?= python3
BIN    := .venv/bin
STAMP  := .venv/.installed
DEV    := .venv/.dev
PIP    := install -qq --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test suite check matrix faults guard bench peers kits lowest docs referees release clean

demo: $(STAMP)
	$(BIN)/nearkin demo --out demo --overwrite
	@echo "The command nearkin, in this shell: . $(BIN)/activate"

# Side by side: the type checker alone would leave a core idle for a minute.
test: $(DEV)
	$(MAKE) --jobs 2 check suite

# What failed the last time comes first. Compiled tests are kept whatever the environment says: else every process
# compiles all of them again.
suite: $(DEV)
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --failed-first

check: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --level error

# The tests of figures under other kinds of CPU, and of servers in random order without HOME: one line each.
matrix: $(DEV)
	.ci/matrix

# A million damaged inputs and every kill point (45 minutes of one core); its table
# goes into docs/reliability.md.
faults: $(DEV)
	$(BIN)/python -m tests.faults

# Quick, or everything with FULL=1; peers are measured where `make peers` has installed them.
bench: $(DEV)
	$(BIN)/python -m benchmarks $(if $(FULL),--full)

# Plain calls on the shared data against kept values, paired by query: a loss beyond two standard errors fails. STORE=1
# keeps the values of this tree. NEARKIN_DATA names another folder of data.
guard: $(DEV)
	$(BIN)/python -m benchmarks.guard.run $(if $(STORE),--store)

# What nearkin is measured against, apart from it: several pin NumPy 1.26.
peers:
	$(PYTHON) -m venv .peers
	.peers/bin/python -m pip install -qq --requirement benchmarks/peers.txt

# Tests of implicit, geoopt, pymanopt, cblearn and PEFT on nearkin; fails if the table in docs/reliability.md differs.
kits: $(DEV)
	.ci/kits

# The tests with the lowest versions that pyproject.toml names, databases left out, in an environment of their own.
# Torch stays at the version above: older wheels from PyPI bring CUDA. Warnings of old packages about newer neighbours
# are no failures. What numba compiles is kept apart from that of a newer numba.
lowest:
	$(PYTHON) -m venv .lowest
	.lowest/bin/python -m pip $(LOWEST_PIP) torch==2.13.0 $$($(PYTHON) -c "$$LOWEST") pytest pytest-xdist hypothesis httpx pandas qdrant-client langchain-core
	.lowest/bin/python -m pip $(LOWEST_PIP) --no-deps --editable .
	NUMBA_CACHE_DIR=$(CURDIR)/.lowest/numba PYTHONPATH=$(CURDIR) .lowest/bin/python -m pytest -n 2 -o filterwarnings=default -o addopts=--import-mode=importlib tests

LOWEST_PIP := install -qq --disable-pip-version-check
define LOWEST
import tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
extras = project["optional-dependencies"]
wanted = [*project["dependencies"], *(need for name in ("excel", "hdf5", "rl", "web") for need in extras[name])]
print(" ".join(need.replace(">=", "==") for need in wanted if not need.startswith(("torch", "nearkin"))))
endef
export LOWEST

docs: $(DEV)
	$(BIN)/python -m pip $(PIP) --group docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs docs/_build
	$(BIN)/python -m pagefind --site docs/_build --exclude-selectors .headerlink --silent
	@echo "Docs: docs/_build/index.html; searched with excerpts: $(BIN)/python -m http.server --directory docs/_build"

# pyproject.toml and the repository as other projects' checks read them; deptry looks at the packages of .venv. Every
# public name has a type, where those of SciPy, scikit-learn and all extras are known: STUBS, apart from .venv.
referees: $(DEV)
	$(PYTHON) -m venv .release/referees
	.release/referees/bin/python -m pip $(PIP) deptry 'sp-repo-review[cli]' validate-pyproject
	.release/referees/bin/validate-pyproject pyproject.toml
	.release/referees/bin/repo-review .
	PYTHONPATH=$$($(BIN)/python -c "import site; print(*site.getsitepackages())") .release/referees/bin/deptry src
	$(BIN)/python -m pip $(PIP) --no-deps --target .release/stubs --upgrade $(STUBS)
	PATH=$(CURDIR)/$(BIN):$$PATH PYTHONPATH=$(CURDIR)/src:$(CURDIR)/.release/stubs $(BIN)/pyright --verifytypes nearkin --ignoreexternal | grep 'score: 100%'

STUBS := scipy-stubs optype scikit-learn-stubs llama-index-core haystack-ai

# The wheel and the source distribution in dist/, checked; the wheel is tried in an environment of its own. Nothing is
# uploaded. The version is that of src/nearkin/__init__.py.
release:
	rm -rf dist .release
	$(PYTHON) -m venv .release/tools
	.release/tools/bin/python -m pip $(PIP) build twine check-wheel-contents
	.release/tools/bin/python -m build
	.release/tools/bin/twine check --strict dist/*
	.release/tools/bin/check-wheel-contents dist/*.whl
	$(PYTHON) -m venv .release/try
	.release/try/bin/python -m pip $(PIP) torch==2.13.0
	.release/try/bin/python -m pip $(PIP) "$$(echo dist/*.whl)[web]"
	.ci/try-installed .release/try

# PyTorch comes first and by its exact version: a bare `torch` would pull gigabytes of CUDA.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip $(PIP) 'pip>=25.1' torch==2.13.0 hatchling editables hatch-fancy-pypi-readme
	$(BIN)/python -m pip $(PIP) --no-build-isolation --editable '.[web]'
	touch $@

# What the tests use: every extra, so that none skips for want of a package.
$(DEV): $(STAMP)
	$(BIN)/python -m pip $(PIP) --no-build-isolation --group dev --editable '.[all]'
	$(BIN)/python -m pip $(PIP) --no-deps langchain-tests # its suite of stores, without the plugins of its others
	touch $@

clean:
	rm -rf .venv .peers .kits .lowest .release dist demo docs/_build
