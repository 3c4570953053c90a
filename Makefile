# Two commands matter: `make run` and `make test`. Each makes its virtual environment when needed.
PYTHON ?= python3
VENV ?= .venv
EXTRAS ?= dev
CONSTRAINTS ?= constraints.txt
OUT ?= out/run
WORKERS ?= auto
BASELINE := reports/baselines/kvcs-00-moqt-22/reference
BIN := $(VENV)/bin

.PHONY: run test check selftest baseline accept schemas bench clean

run: $(VENV)/.installed
	$(BIN)/kvcs run --main-job --out $(OUT)

test: $(VENV)/.installed-$(EXTRAS) check
	$(BIN)/python -m pytest -n $(WORKERS)
	$(MAKE) --no-print-directory baseline

# Every known-bad peer must be caught, as the committed kill matrix says; minutes.
selftest: $(VENV)/.installed-$(EXTRAS)
	$(BIN)/kvcs selftest --out out/selftest

# The reference must be judged as the published baseline says; `make accept` after a wanted change.
baseline: $(VENV)/.installed-$(EXTRAS)
	$(BIN)/kvcs run --out out/baseline
	$(BIN)/kvcs diff $(BASELINE)-memory.json out/baseline --exact

accept: $(VENV)/.installed-$(EXTRAS) schemas
	$(BIN)/kvcs run --out out/baseline
	$(BIN)/kvcs diff $(BASELINE)-memory.json out/baseline --accept
	$(BIN)/kvcs run --link quic --out out/baseline-quic
	$(BIN)/kvcs diff $(BASELINE)-quic.json out/baseline-quic --accept
	KVCS_ACCEPT=1 $(BIN)/python -m pytest -q tests/harness/test_pairs.py
	$(BIN)/kvcs selftest --accept

check: $(VENV)/.installed-$(EXTRAS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy reference/moqt reference/kvcs harness/kvcs_conformance
	$(BIN)/lint-imports

schemas: $(VENV)/.installed-$(EXTRAS)
	$(BIN)/python -m kvcs_conformance.cases.schema testcases/schemas/case.schema.json

bench: $(VENV)/.installed
	$(BIN)/kvcs bench

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml $(CONSTRAINTS) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e .
	touch $@

$(VENV)/.installed-$(EXTRAS): pyproject.toml $(CONSTRAINTS) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[$(EXTRAS)]'
	touch $(VENV)/.installed $@

clean:
	rm -rf $(VENV) out build
