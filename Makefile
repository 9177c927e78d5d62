# One command sets up and runs: `make demo`, `make test`. Everything lives in .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
TOOLS  := $(VENV)/.tools
WARNED := $(VENV)/.warned
COMPILED := $(shell find solvers remat_cli tests/oracle -name "*.[ch]" -o -name "*.[ch]pp")

.PHONY: demo docs examples-torch test test-all test-torch test-torch-all campaign sanitize lint notes words setup clean

setup: $(READY)

$(READY): pyproject.toml setup.py constraints.txt $(COMPILED)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[runtime,plot]'
	touch $(READY)

# linters, type checkers and tests, which a user does not need
$(TOOLS): $(READY)
	test -x $(BIN)/check-jsonschema || \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(TOOLS)

# an installation that somebody made in .venv by hand stays as it is
demo:
	@if test ! -x $(BIN)/remat || test -e $(READY); then $(MAKE) -s setup; fi
	PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo/run.sh

# the pages as a site, in build/site; a broken link fails
docs: $(READY)
	test -x $(BIN)/mkdocs || \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt 'mkdocs-material>=9.7,<10'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# needs torch and onnxscript in the environment of this Python, beside remat
examples-torch:
	$(PYTHON) examples/pytorch/train.py

# a warning of the compiler is an error in what is developed, not where remat is installed
$(WARNED): $(COMPILED)
	sh .ci/warnings $(BIN)/python
	touch $(WARNED)

lint: $(TOOLS) $(WARNED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/towncrier build --draft --version next >/dev/null
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml

# what the next release will say, from changelog.d
notes: $(TOOLS)
	$(BIN)/towncrier build --draft --version next

# sentences of the pages that are longer than 30 words
words: $(READY)
	$(BIN)/python -m tests.words

# what gates a change: some minutes
test: lint
	$(BIN)/python -m pytest -n auto --dist worksteal

# all there is, before a release: half an hour and more on two cores
test-all: lint test-torch-all sanitize
	$(BIN)/python -m pytest -m "slow or not slow" -n auto --dist worksteal
	sh .ci/wheel.sh

# the same with other random cases in each run, whose seed it names
campaign: $(TOOLS)
	FRESH_SEED=$$(od -An -N3 -tu4 /dev/urandom | tr -d ' ') $(BIN)/python -m pytest -m "slow or not slow" -n auto --dist worksteal

# the tests of remat_cli.torch; without torch they are skipped
test-torch: $(TOOLS)
	sh .ci/test-torch $(BIN)/python $(VENV)/with-torch

# the loops in C++ with every place checked, by asserts and by g++'s sanitizers; some minutes
sanitize: $(TOOLS)
	.ci/sanitize $(BIN)/python

test-torch-all: $(TOOLS)
	sh .ci/test-torch $(BIN)/python $(VENV)/with-torch -m "slow or not slow"
	sh .ci/torch-versions.sh $(BIN)/python $(VENV) all

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build *.egg-info
