# Each target sets up what it needs: a virtual environment in .venv with the
# versions in requirements/. Recipes use relative paths only, so the project may
# live in a folder whose name has spaces.

# The locked versions have wheels for Python 3.11 to 3.14; a newer one is tried if there is nothing else.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null && echo $$p && exit; done; \
	python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo python3)
VENV := .venv
MINIMUM := .venv-minimum
SCIENCE := .venv-science
# The lowest versions have wheels for Python 3.11; the newest Python is too new for some of them.
MINIMUM_PYTHON ?= $(shell python3.11 -c '' 2>/dev/null && echo python3.11 || echo $(PYTHON))
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(SCRIPTS)
PIP := -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --require-hashes -r
EDITABLE := $(PIP) install --quiet --no-deps --no-build-isolation --editable .
# One test process more than there are cores, since some tests wait for a browser or for another process, and one
# thread in each, so that they don't fight for cores.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 VECLIB_MAXIMUM_THREADS=1
PROCESSES := $(shell python3 -c 'import os; print(len(os.sched_getaffinity(0)) + 1)' 2>/dev/null || echo auto)
WORKERS := -n $(PROCESSES) --dist worksteal --durations=10
# What is slow may take its time: neither limit of pyproject.toml ends it.
UNLIMITED := --timeout 0 -o faulthandler_timeout=0
# The help that docs/cli.md holds is laid out by the locked version of typer.
MINIMUM_TESTS := -W ignore::DeprecationWarning -k "not the_page_is_what_help_prints"
# Tests of the science, and its doctests; what draws needs matplotlib, which the science does without.
SCIENCE_TESTS := $(addprefix tests/,core device methods model_selection ensemble conformal population test_contract.py) \
	src/transduce --ignore=src/transduce/app --ignore=src/transduce/display.py
LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-strip-extras --no-header --no-annotate --quiet
COMPILE := $(LOCK) pyproject.toml

# Files are UTF-8 on every system, and what Python compiled once is found by the processes that tests start.
export PYTHONUTF8 := 1
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test coverage minimum science slow mutants check format papers bench docs lock clean

help:  ## show this list
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

demo: $(VENV)/run.stamp  ## a real table with hidden labels: filled, reported, and held against the truth
	$(BIN)/transduce demo

test: $(VENV)/dev.stamp  ## all fast tests and doctests, on all cores
	$(ONE_THREAD) $(BIN)/python -m pytest $(WORKERS)

coverage: $(VENV)/dev.stamp  ## the same tests one after another, and which lines they run
	$(BIN)/python -m pytest --cov

minimum: $(MINIMUM)/stamp  ## the same tests with the lowest versions that pyproject.toml promises
	$(MINIMUM)/$(SCRIPTS)/python requirements/check_minimum.py
	$(ONE_THREAD) $(MINIMUM)/$(SCRIPTS)/python -m pytest $(WORKERS) $(MINIMUM_TESTS)

science: $(SCIENCE)/stamp  ## the science's tests with its seven libraries alone
	$(ONE_THREAD) $(SCIENCE)/$(SCRIPTS)/python -m pytest $(WORKERS) $(SCIENCE_TESTS)

slow: $(VENV)/dev.stamp  ## coverage statistically, the contract in all variants, laws with 300 examples (an hour)
	$(ONE_THREAD) $(BIN)/python -m pytest $(WORKERS) $(UNLIMITED) tests/slow
	$(ONE_THREAD) $(BIN)/python -m pytest $(WORKERS) $(UNLIMITED) -m slow tests
	$(ONE_THREAD) HYPOTHESIS_PROFILE=slow $(BIN)/python -m pytest $(WORKERS) $(UNLIMITED) -m hypothesis tests

mutants: $(VENV)/dev.stamp  ## whether tests notice changes of the modules on which guarantees rest (an hour)
	$(ONE_THREAD) $(BIN)/python .ci/mutants.py

check: $(VENV)/dev.stamp  ## format, lint, types, docs without warnings; a report of how the code reads
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python .ci/reading_report.py

format: $(VENV)/dev.stamp  ## rewrite the code in the house format
	$(BIN)/python -m ruff format .
	$(BIN)/python -m ruff check --fix .

docs: $(VENV)/dev.stamp  ## build the documentation into docs/_build/html
	$(BIN)/python -m sphinx -b html docs docs/_build/html

papers: $(VENV)/run.stamp  ## the papers' tables and figures in quick mode (minutes each), from the data in TRANSDUCE_DATA
	$(BIN)/python papers/nouretdinov2001.py
	$(BIN)/python papers/graepel1999.py
	$(BIN)/python papers/chapelle1999.py
	$(BIN)/python papers/le2006.py
	$(BIN)/python papers/joachims2003.py

bench: $(VENV)/dev.stamp  ## speed against the peers, as ratios in one run, and how cost grows (about ten minutes)
	$(BIN)/python benchmarks/run.py

lock:  ## renew requirements/*.txt (needs uv)
	$(COMPILE) --extra dev --upgrade --output-file requirements/dev.txt
	$(COMPILE) requirements/build.in --constraint requirements/dev.txt --output-file requirements/run.txt
	$(LOCK) requirements/science.in --constraint requirements/dev.txt --output-file requirements/science.txt
	$(COMPILE) requirements/build.in --extra test --resolution lowest-direct --upgrade --output-file requirements/minimum.txt

clean:  ## remove the environment and everything that was made
	rm -rf $(VENV) $(MINIMUM) $(SCIENCE) demo-output papers/output benchmarks/output docs/_build docs/auto_examples docs/api/generated .coverage .mypy_cache .ruff_cache .pytest_cache

$(VENV)/python.stamp:
	@test -n "$(PYTHON)" || { echo "transduce needs Python 3.11 or newer; none was found. Try: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

# __init__.py holds the version, which the installed metadata repeat.
$(VENV)/run.stamp: $(VENV)/python.stamp requirements/run.txt pyproject.toml src/transduce/__init__.py
	@echo "installing the pinned versions into $(VENV) (once, about a minute) ..."
	$(BIN)/python $(INSTALL) requirements/run.txt
	$(BIN)/python $(EDITABLE)
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp requirements/dev.txt
	@echo "installing the development tools into $(VENV) (once, about a minute) ..."
	$(BIN)/python $(INSTALL) requirements/dev.txt
	@touch $@

$(MINIMUM)/stamp: requirements/minimum.txt pyproject.toml
	@echo "installing the lowest versions into $(MINIMUM) (once, about a minute) ..."
	$(MINIMUM_PYTHON) -m venv --clear $(MINIMUM)
	$(MINIMUM)/$(SCRIPTS)/python $(INSTALL) requirements/minimum.txt
	$(MINIMUM)/$(SCRIPTS)/python $(EDITABLE)
	@touch $@

$(SCIENCE)/stamp: requirements/science.txt pyproject.toml
	@echo "installing the science's libraries into $(SCIENCE) (once, about a minute) ..."
	$(PYTHON) -m venv --clear $(SCIENCE)
	$(SCIENCE)/$(SCRIPTS)/python $(INSTALL) requirements/science.txt
	$(SCIENCE)/$(SCRIPTS)/python $(EDITABLE)
	@touch $@
