# Every target sets up what it needs in .venv; nothing has to be active.
# Needs make and Python 3.11 or later; `make PYTHON=/path/to/python ...` picks one.
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
  && echo $$p && break; done)
VENV := .venv
OLDEST := .venv-oldest
BIN := $(VENV)/bin
WORKERS ?= 2
PYTEST_ARGS ?=
PIP_ARGS ?=
BENCH_ARGS ?= --out softcvi-bench --repeats 3

# Stamps are newer than what they were made from, so a second call installs nothing.
DEMO := $(VENV)/.stamp-demo
ALL := $(VENV)/.stamp-all
PINS := pyproject.toml experiments/pyproject.toml constraints.txt constraints-3.12.txt

.PHONY: help demo test test-rest test-all test-oldest install lint format bench docs \
  checked checked-oldest
.DEFAULT_GOAL := help

help:
	@echo 'make demo     fit two posteriors and write a report page (about a minute)'
	@echo 'make test     all tests but the slow ones, within twelve minutes'
	@echo 'make test-all these, the slow ones, docstring examples and executed pages'
	@echo 'make test-oldest  core tests with the oldest versions that are allowed'
	@echo 'make install  .venv with every extra'
	@echo 'make lint     ruff and mypy;  make format  lets ruff mend what it can'
	@echo 'make bench    compare speed with other libraries (about ten minutes)'
	@echo 'make docs     build the documentation into site/'

demo: $(DEMO)
	@$(BIN)/softcvi demo

# Studies in small, compilers, executed pages and the examples of docstrings would take
# as long again.
test: $(ALL)
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m 'not slow and not study' tests $(PYTEST_ARGS)

# What `make test` leaves out: slow tests, docstring examples, executed pages.
test-rest: $(ALL)
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m slow tests $(PYTEST_ARGS)
	@$(BIN)/python -m pytest -q -n $(WORKERS) softcvi experiments/softcvi_experiments
	@$(BIN)/mkdocs build --strict --quiet

test-all: test test-rest

# An environment of its own, so that .venv keeps its versions.
test-oldest: | $(OLDEST)/bin/python
	@$(OLDEST)/bin/python -m pip install --quiet $(PIP_ARGS) \
	  --constraint constraints-oldest.txt --editable '.[numpyro,blackjax,report,test]'
	@$(OLDEST)/bin/python -m pytest -q -n $(WORKERS) -m 'not slow' \
	  -W ignore::DeprecationWarning \
	  tests/targets tests/objectives tests/posterior tests/diagnostics tests/fitting

$(OLDEST)/bin/python:
	@$(PYTHON) -m venv $(OLDEST)

install: $(ALL)

lint: $(ALL)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy

format: $(ALL)
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

bench: $(ALL)
	@$(BIN)/softcvi bench --suite peers $(BENCH_ARGS)

docs: $(ALL)
	@$(BIN)/mkdocs build --strict

# For continuous integration: files whose checksums are known. With
# PIP_ARGS='--no-index --no-build-isolation' the other targets then fetch nothing else.
CHECKED := --quiet --require-hashes --no-deps --requirement .github/checksums

checked: | $(BIN)/python
	@minor=$$($(BIN)/python -c 'import sys; print(sys.version_info[1])'); \
	pins=constraints.txt; [ "$$minor" -lt 12 ] || pins=constraints-3.12.txt; \
	$(BIN)/python -m pip install $(CHECKED)/$$pins

checked-oldest: | $(OLDEST)/bin/python
	@$(OLDEST)/bin/python -m pip install $(CHECKED)/constraints-oldest.txt

$(DEMO): $(PINS) | $(BIN)/python
	@$(call install,report)
	@touch $@

$(ALL): $(PINS) | $(BIN)/python
	@$(call install,all)
	@touch $(DEMO) $@

$(BIN)/python:
	@test -n '$(PYTHON)' || { echo 'Python 3.11 or later was not found; \
	install it or name it: make PYTHON=/path/to/python' >&2; exit 1; }
	@echo 'Creating $(VENV) with $(PYTHON)'
	@$(PYTHON) -m venv $(VENV)

# $(call install,extras): an environment made by hand is used as it is, if it can be.
# A current pip that leaves compiling to the first import took less than half the
# time of the one that Python 3.11 brings.
define install
set -e; py=$(BIN)/python; \
minor=$$($$py -c 'import sys; print(sys.version_info[1])'); \
if [ "$$minor" -lt 11 ]; then \
  echo '$(VENV) has Python 3.'$$minor', softcvi needs 3.11: move it away' >&2; exit 1; \
fi; \
$$py -m pip --version >/dev/null 2>&1 || $$py -m ensurepip >/dev/null; \
pins=constraints.txt; [ "$$minor" -lt 12 ] || pins=constraints-3.12.txt; \
echo "Installing softcvi[$(1)] with $$pins"; \
pip="$$py -m pip install --quiet --no-input --disable-pip-version-check $(PIP_ARGS)"; \
$$pip 'pip>=26'; \
$$pip --no-compile --constraint $$pins --editable '.[$(1)]' --editable ./experiments
endef
