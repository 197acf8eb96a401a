# Every target works on a fresh clone with Python and make: it sets up what it needs on first use, in virtual environments here.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LAB := $(VENV)-lab
NEWEST := $(VENV)-newest
PEERS := $(VENV)-peers
DOCS := $(VENV)-docs
JS := explorer/view/js
CORES := $(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2)

# Parts of the tests. Each is one process: workers of pytest-xdist would each import JAX and all test files, and compile
# what another worker has compiled. A new folder is in the first part.
UNIT := unit-1 unit-2 unit-3
NOTEBOOKS := notebooks-nbval notebooks-kernel

.PHONY: help lab demo test lint lint-js types contracts bundle unit hardware coverage slow slow-newest fuzz unit-newest notebooks docs browser $(UNIT) $(NOTEBOOKS) compilers compatibility release bench bench-peers pins clean

help:
	@echo "make lab          open the tutorial in JupyterLab"
	@echo "make demo         explore a training step, write report.html"
	@echo "make test         run what every change must pass: lint types contracts bundle unit hardware unit-newest notebooks docs browser"
	@echo "make unit-2       run a part of the tests in one process: $(UNIT) $(UNIT_NEWEST) $(NOTEBOOKS)"
	@echo "make slow         run what a release must pass in addition: whole corpora, thousands of damaged files, clusters (20 minutes)"
	@echo "make slow-newest  run all unit tests on the newest JAX"
	@echo "make fuzz         open mutated files of every format for FUZZ_SECONDS=600, and hypothesis's with new seeds"
	@echo "make compilers    install XLA's compilers for GPUs and TPUs (340 MB), without which their tests are skipped"
	@echo "make docs         build the documentation site: docs/_build/html/index.html"
	@echo "make compatibility  run the unit tests on each release of JAX, write docs/compatibility.md"
	@echo "make release      build the wheel and the sdist, install and use them on Python 3.11, 3.12 and 3.13"
	@echo "make bench        measure what Explorer costs, against its targets"
	@echo "make bench-peers  measure XLA, torch and mlx side by side, write docs/peers.json and the table of docs/peers.md"
	@echo "make pins         write hashes.txt for the versions in constraints.txt (needs uv)"
	@echo "make clean        remove what these made"

lab: $(LAB)/ready
	$(LAB)/bin/jupyter lab notebooks/00_start_here.ipynb $(LAB_ARGS)

demo: $(LAB)/ready
	@$(LAB)/bin/python -m tests.examples.demo report.html

# Not here, but each night and before a release: `slow` and `slow-newest`. Their corpora and measurements take as long as
# all of this. As many parts run at a time as there are cores, the longest first. Browser tests run without company, since
# a busy machine makes them wait.
PARALLEL := --no-print-directory -Otarget -j$(CORES)
test:
	@$(MAKE) $(PARALLEL) $(UNIT) docs $(UNIT_NEWEST) hardware notebooks-nbval types notebooks-kernel bundle lint contracts
	@$(MAKE) --no-print-directory browser

lint: $(VENV)/ready lint-js
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tests.one_door

types: $(VENV)/ready
	$(BIN)/basedpyright

contracts: $(VENV)/ready
	$(BIN)/lint-imports

# Code that is never timed needn't be fast: LLVM's own optimisations take a third of a small program's compile. XLA's
# passes, and so all that Explorer shows, are the same.
QUICKLY := --xla_backend_optimization_level=0

# Thousands of tests share processes and a busy machine. One that fails is run again, alone, in a process of its own, and
# only what fails there as well is a failure; what failed first stays on the screen. Without --nbval its plugin isn't
# loaded: that takes 2 s of each process.
# $(call pytest,virtual environment,name of its cache,arguments)
define pytest
	@rm -f .pytest_cache/$(2)/*.xml
	@$(1)/bin/python -m pytest $(if $(findstring --nbval,$(3)),,-p no:nbval) -o cache_dir=.pytest_cache/$(2) --junitxml=.pytest_cache/$(2)/all.xml --durations=12 --durations-min=5 $(3) || { \
	  [ $$? = 1 ] && echo "again, alone, what failed:" && \
	  $(1)/bin/python -m pytest $(if $(findstring --nbval,$(3)),,-p no:nbval) -o cache_dir=.pytest_cache/$(2) --junitxml=.pytest_cache/$(2)/again.xml $(filter-out -n auto 2 $(shell expr $(CORES) + 1) --dist loadfile worksteal,$(3)) --last-failed --last-failed-no-failures none -v; }
endef

# Balanced by the CPU seconds that each folder takes.
ROOMS_2 := measure pitfalls padding notebook
ROOMS_3 := analysis hotpath ledger executors
ELSEWHERE := $(ROOMS_2:%=--ignore=tests/unit/%) $(ROOMS_3:%=--ignore=tests/unit/%)

unit:
	@$(MAKE) $(PARALLEL) $(UNIT)

$(UNIT): export XLA_FLAGS = $(QUICKLY)
unit-1: $(VENV)/ready
	$(call pytest,$(VENV),unit-1,-m "not slow" $(ELSEWHERE) tests/unit tests/seeds)
unit-2: $(VENV)/ready
	$(call pytest,$(VENV),unit-2,-m "not slow" $(ROOMS_2:%=tests/unit/%))
unit-3: $(VENV)/ready
	$(call pytest,$(VENV),unit-3,-m "not slow" $(ROOMS_3:%=tests/unit/%))

# A real compile each for a GPU and a TPU that aren't here, where `make compilers` was run. One GPU stands for those of
# which XLA has no table; `make slow` takes the others.
hardware: $(VENV)/ready
	$(call pytest,$(VENV),hardware,-m slow -k "not a100 and not rtx4090" tests/unit/hardware/test_explore_target.py)

compilers: $(VENV)/ready
	$(BIN)/python -m explorer targets install cuda tpu

compatibility: $(VENV)/ready
	$(BIN)/python -m tests.compatibility $(RELEASES)

release: $(VENV)/ready
	$(BIN)/python -m tests.release $(RELEASE_ARGS)

coverage: $(VENV)/ready
	$(BIN)/python -m pytest -n auto -m "not slow" tests/unit tests/seeds --cov=explorer --cov-report=term

slow: $(VENV)/ready
	$(call pytest,$(VENV),slow,-n auto --dist worksteal -m slow tests/unit tests/seeds)
	$(call pytest,$(VENV),slow-notebooks,-n 2 --dist worksteal -m slow tests/notebooks)
	$(call pytest,$(VENV),slow-browser,-n 2 --dist loadfile -m slow tests/browser)

# Mutants of the crafted files of tests/corpus_hostile, from a new seed each time. FUZZ_SEED=… and FUZZ_FORMATS="ledgers …"
# repeat what was printed; `python -m tests.corpus_hostile.fuzz again FORMAT SEED` opens one file once more.
FUZZ_SECONDS ?= 600
fuzz: export XLA_FLAGS = $(QUICKLY)
fuzz: $(VENV)/ready
	$(BIN)/python -m tests.corpus_hostile.fuzz $(FUZZ_SECONDS) $(FUZZ_FORMATS)
	$(BIN)/python -m pytest -q -m "not slow" --hypothesis-seed=random tests/unit/capture/readers/test_fuzz.py \
	  tests/unit/analysis/test_query.py tests/unit/analysis/cost/test_cost.py tests/unit/files

notebooks:
	@$(MAKE) $(PARALLEL) $(NOTEBOOKS)

notebooks-nbval: export XLA_FLAGS = $(QUICKLY)
notebooks-nbval: $(VENV)/ready
	$(call pytest,$(VENV),nbval,--nbval-lax --nbval-current-env --nbval-sanitize-with tests/notebooks/sanitize.cfg notebooks)
notebooks-kernel: $(VENV)/ready
	$(call pytest,$(VENV),notebooks,-m "not slow" tests/notebooks)

# Without a network: everything that a page shows lies beside it.
docs: $(DOCS)/ready
	$(DOCS)/bin/sphinx-build -W --keep-going --quiet -d docs/_build/doctrees docs docs/_build/html
	@echo "docs/_build/html/index.html is written"

# One worker more than cores: a third of the time each waits for a page or a kernel.
browser: export XLA_FLAGS = $(QUICKLY)
browser: $(VENV)/ready
	$(call pytest,$(VENV),browser,-n $(shell expr $(CORES) + 1) --dist loadfile -m "not slow" tests/browser)

bench: $(VENV)/ready
	@missed=0; for part in bench bench_compile bench_padding bench_files bench_memory bench_growth bench_ledger ledger_memory bench_lint bench_golden bench_devices bench_hot bench_time bench_profile bench_browser; do $(BIN)/python -m tests.benchmarks.$$part || missed=1; done; exit $$missed

bench-peers: $(PEERS)/ready
	$(PEERS)/bin/python -m tests.benchmarks.peers $(PEERS_ARGS)

clean:
	rm -rf $(VENV) $(LAB) $(NEWEST) $(PEERS) $(DOCS) .venv-jax-* $(JS)/node_modules report.html artefacts tests/browser/artefacts dist docs/_build
	rm -rf .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage

# Virtual environments ------------------------------------------------------------------------------------------------

# Each package has a pinned version, and is installed if its file has a hash that is known. Not the newest JAX, on purpose,
# nor the peers, whose files another index may have.
PINS := constraints.txt hashes.txt tests/pins.py

pins:
	python3 tests/pins.py --write

PIP_INSTALL := -m pip install --quiet --quiet --disable-pip-version-check

# $(call environment,folder,command): a new environment, and what its Python runs to fill it.
define environment
	@command -v $(PYTHON) >/dev/null || { echo "explorer needs Python 3.11 or newer: '$(PYTHON)' was not found (set PYTHON=…)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "explorer needs Python 3.11 or newer: $(PYTHON) is $$($(PYTHON) -V) (set PYTHON=…)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "explorer needs Python's venv module: $(PYTHON) has none (on Debian: apt install python3-venv)" >&2; exit 1; }
	@echo "setting up $(1) (once, some minutes)"
	@$(PYTHON) -m venv $(1)
	@$(1)/bin/python $(2)
	@touch $(1)/ready
endef

$(VENV)/ready: pyproject.toml $(PINS)
	$(call environment,$(VENV),tests/pins.py test)

$(LAB)/ready: pyproject.toml $(PINS)
	$(call environment,$(LAB),tests/pins.py lab)

$(DOCS)/ready: pyproject.toml $(PINS)
	$(call environment,$(DOCS),tests/pins.py docs)

# On Linux, PyPI's torch comes with gigabytes of CUDA; PEERS_PIP='--extra-index-url …' names an index of torch for CPUs alone.
$(PEERS)/ready: pyproject.toml constraints.txt
	$(call environment,$(PEERS),$(PIP_INSTALL) -c constraints.txt $(PEERS_PIP) -e '.[peers]')

# The other end: the newest JAX needs Python 3.12; looked for on the PATH and under pyenv.
NEWEST_PYTHON ?= $(shell for p in python3.13 python3.12 $$HOME/.pyenv/versions/3.13.*/bin/python $$HOME/.pyenv/versions/3.12.*/bin/python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && { echo "$$p"; break; }; done)

# Folders that load without JAX, and examples that are run as documentation: one Python is enough for each change;
# `make slow-newest` runs them every night.
WITHOUT_JAX := model view files assistants golden analysis test_structure.py test_written_pages.py test_docs.py \
	test_release.py test_doctests.py test_english.py
UNIT_NEWEST := unit-newest-1 unit-newest-2
.PHONY: $(UNIT_NEWEST)

ifeq ($(NEWEST_PYTHON),)
UNIT_NEWEST := unit-newest
unit-newest slow-newest:
	@echo "skipped: the unit tests on the newest JAX need Python 3.12 or newer; found none (set NEWEST_PYTHON=…)"
else
unit-newest:
	@$(MAKE) $(PARALLEL) $(UNIT_NEWEST)

$(UNIT_NEWEST) slow-newest: export XLA_FLAGS = $(QUICKLY)
unit-newest-1: $(NEWEST)/ready
	$(call pytest,$(NEWEST),newest-1,-m "not slow" $(WITHOUT_JAX:%=--ignore=tests/unit/%) $(ROOMS_2:%=--ignore=tests/unit/%) tests/unit tests/seeds)
unit-newest-2: $(NEWEST)/ready
	$(call pytest,$(NEWEST),newest-2,-m "not slow" $(ROOMS_2:%=tests/unit/%))
slow-newest: $(NEWEST)/ready
	$(call pytest,$(NEWEST),newest,-n auto tests/unit tests/seeds)

$(NEWEST)/ready: pyproject.toml
	@echo "setting up $(NEWEST) (once, some minutes)"
	@$(NEWEST_PYTHON) -m venv $(NEWEST)
	@$(NEWEST)/bin/python $(PIP_INSTALL) --upgrade -e '.[unit]'
	@touch $@
endif

# The viewer's bundle ---------------------------------------------------------------------------------------------------

ifeq ($(shell command -v npm 2>/dev/null),)
bundle:
	@echo "skipped: whether the bundle is fresh can't be seen, because npm (Node.js) was not found"
	@test "$$EXPLORER_CI" != 1

lint-js:
	@echo "skipped: the TypeScript is not linted, because npm (Node.js) was not found"
	@test "$$EXPLORER_CI" != 1
else
browser: $(JS)/node_modules/ready  # axe-core, which looks for what a screen reader would miss

bundle: $(JS)/node_modules/ready
	cd $(JS) && npm run --silent check && npm test --silent

lint-js: $(JS)/node_modules/ready
	cd $(JS) && npm run --silent lint

$(JS)/node_modules/ready: $(JS)/package.json $(JS)/package-lock.json
	cd $(JS) && npm ci --silent --no-fund --no-audit
	@touch $@
endif
