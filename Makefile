# One virtual environment per Python, set up on first use; every target works on a fresh clone.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: test unit lint types contracts

test: lint types contracts unit

$(VENV)/ready: pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "explorer needs Python 3.11 or newer: '$(PYTHON)' was not found (set PYTHON=…)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "explorer needs Python 3.11 or newer: $(PYTHON) is $$($(PYTHON) -V) (set PYTHON=…)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $@

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/ready
	$(BIN)/basedpyright

contracts: $(VENV)/ready
	$(BIN)/lint-imports

unit: $(VENV)/ready
	$(BIN)/python -m pytest tests/unit --cov=explorer --cov-report=term
