# Everything runs in a virtual environment of its own; python3 and make are all it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export JAX_PLATFORMS ?= cpu

.PHONY: demo test test-all lint bounds audit licences docs bench clean

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $(STAMP)

demo: $(STAMP)  ## the posterior of the Sachs cytometry data, a table, and a report to open
	$(BIN)/gflowdag demo

test: $(STAMP)  ## the test suite, without the long checks, on two cores
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-all: $(STAMP)  ## every test, minutes to an hour
	$(BIN)/python -m pytest -m ""

lint: $(STAMP)
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/pyright

bounds:  ## the lowest and the newest versions of the dependencies, a few minutes
	.ci/bounds lowest docs/laboratory/trust/lowest.csv
	.ci/bounds newest docs/laboratory/trust/newest.csv

audit:  ## published advisories against the versions in requirements-dev.lock
	.ci/audit docs/laboratory/trust/advisories.csv

licences: $(STAMP)  ## docs/reference/licences.md
	$(BIN)/python docs/make_licences.py

docs: $(STAMP)  ## the documentation, in docs/_build
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build

bench: $(STAMP)  ## all benchmark cases, small
	$(BIN)/python -m gflowdag_lab.measurements --quick

clean:
	rm -rf $(VENV) .jax_cache .pytest_cache .ruff_cache dist build
