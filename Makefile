# make demo: the main job on the demo data. make test: the tests of the package.
# make lint: what reads code, docs, tables and results. .ci/run: make test, and make lint after it.
# make attacks: the tests of tests/README.md and those on random inputs in full, which take long.
# All do the set-up themselves, once.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST_ARGS ?=
# Test files that run at a time, each in one thread.
JOBS ?= 2

PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q

export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= false
# Tests start many processes, which would each compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test attacks lint size dist clean

demo: $(READY)
	@start=$$(date +%s); . $(BIN)/activate && python -m spacy project run demo \
		&& echo "The demo took $$(($$(date +%s) - start)) seconds."

test: $(READY)
	$(PYTEST) -n $(JOBS) --dist loadfile --ignore tests/lint $(PYTEST_ARGS)

attacks: $(READY)
	$(PYTEST) -m "attack or hypothesis or nightly" --attacks all --hypothesis-profile nightly $(PYTEST_ARGS)

# What reads code and docs, tests of these among it.
lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy spacy_arbo_el
	$(BIN)/deptry spacy_arbo_el
	$(PYTEST) -n $(JOBS) tests/lint

# Tokens of the core, of add-ons and of tests, and what else has a ceiling.
size: $(READY)
	$(PYTEST) tests/lint/test_size.py

# torch first, and by this version: anything else that asks for torch is content with it then.
$(READY): setup.cfg pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q torch==2.13.0
	$(BIN)/python -m pip install -q -e ".[dev]"
	touch $(READY)

# Wheel and source archive in dist/, checked.
dist: $(READY)
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

clean:
	rm -rf $(VENV) corpus kb training metrics packages build
