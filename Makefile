# One virtual environment per Python, set up on first use; every target works on a fresh clone.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: test unit unit-newest lint types contracts

test: lint types contracts unit unit-newest

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

# The other end: the newest JAX needs Python 3.12; looked for on the PATH and under pyenv.
NEWEST_PYTHON ?= $(shell for p in python3.13 python3.12 $$HOME/.pyenv/versions/3.13.*/bin/python $$HOME/.pyenv/versions/3.12.*/bin/python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && { echo "$$p"; break; }; done)

unit-newest:
ifeq ($(NEWEST_PYTHON),)
	@echo "skipped: the unit tests on the newest JAX need Python 3.12 or newer, and none was found (set NEWEST_PYTHON=…)"
else
	@test -e $(VENV)-newest/ready || { $(NEWEST_PYTHON) -m venv $(VENV)-newest && \
		$(VENV)-newest/bin/python -m pip install --quiet --disable-pip-version-check -e '.[test]' && touch $(VENV)-newest/ready; }
	$(VENV)-newest/bin/python -m pytest tests/unit -p no:cacheprovider
endif
