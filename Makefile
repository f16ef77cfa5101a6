# `make demo` and `make test` set everything up by themselves; nothing but Python 3.11+ and make is needed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PAGE := src/odkanon/publish/report/page.html
# A machine with Node builds the page beside the installation; else Node comes from the installation.
NPM := $(shell command -v npm)
WEB_NEEDS := $(if $(NPM),,$(READY))
WEB_PYTHON := $(if $(NPM),$(PYTHON),$(BIN)/python)
PIP := -m pip install --quiet --no-compile --disable-pip-version-check
# uv installs in a third of the time, on all cores; where it cannot be had or finds no packages, pip does it.
UV := $(if $(PIP_FIND_LINKS),UV_FIND_LINKS='$(PIP_FIND_LINKS)') $(if $(PIP_INDEX_URL),UV_DEFAULT_INDEX='$(PIP_INDEX_URL)')

# Tests start hundreds of processes: what one of them compiled is there for the others.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow wheel-test cluster-test transport-test data-test qgis qgis-test lint web-test docs notebooks mutants bench pictures clean

help:  ## show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "ODkAnon needs Python 3.11 or newer; point to one with: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	{ $(BIN)/python $(PIP) uv 2>/dev/null && $(UV) $(BIN)/python -m uv pip install --quiet --editable '.[dev]'; } || \
	  $(BIN)/python $(PIP) --editable '.[dev]'
	@touch $@

$(PAGE): $(WEB_NEEDS) $(wildcard web/*.mjs web/*.json web/src/* web/src/*/*)
	$(if $(NPM),,$(BIN)/python $(PIP) --editable '.[node]')
	$(WEB_PYTHON) scripts/build_web.py

demo: $(READY) $(PAGE)  ## protect the built-in sample survey and explain the result
	$(BIN)/odkanon demo

test:  ## run the linters, the type checker and every test
	@$(MAKE) --no-print-directory --jobs=2 lint web-test
	$(BIN)/python -m pytest -n auto

test-slow: $(READY) $(PAGE)  ## run what `make test` leaves out: the same claims on more data and more examples (minutes)
	$(BIN)/python -m pytest -n auto -m 'slow or hypothesis' --hypothesis-profile thorough

wheel-test: $(READY) $(PAGE)  ## build wheel and source archive, and run them in empty environments (minutes)
	$(BIN)/python -m pytest tests/outside/wheel.py

qgis:  ## pack the QGIS plugin into build/odkanon_qgis.zip
	@$(PYTHON) scripts/package_qgis.py

qgis-test: $(READY) $(PAGE)  ## run the plugin in a real QGIS, which is installed where there is none (Debian; minutes)
	@command -v qgis_process > /dev/null || { apt-get update -qq && apt-get install -qq --no-install-recommends qgis python3-qgis; }
	$(BIN)/python -m pytest tests/outside/qgis.py

transport-test: $(READY) $(PAGE)  ## let ActivitySim and AequilibraE read matrices, in an environment of their own (minutes)
	$(BIN)/python -m pytest tests/outside/transport.py

data-test: $(READY) $(PAGE)  ## publish and audit public data of ActivitySim and vega-datasets, downloaded by name (minutes)
	$(BIN)/python -m pytest tests/outside/real_data.py -s

cluster-test: $(READY) $(PAGE)  ## start a small Spark cluster on this machine and run on it (minutes)
	$(BIN)/python -m pytest tests/outside/cluster.py

lint: $(READY)  ## ruff and mypy only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	MYPY_NUM_WORKERS=2 $(BIN)/mypy

web-test: $(PAGE)  ## the page's own types and tests
	$(WEB_PYTHON) scripts/build_web.py --test

docs: $(READY) $(PAGE)  ## build the documentation into build/site; nothing in it needs a network
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

notebooks: $(READY) $(PAGE)  ## make and run the tutorials as notebooks, in build/notebooks
	$(BIN)/python $(PIP) --editable '.[notebooks]'
	mkdir -p build/notebooks
	cp docs/tutorial-*.md build/notebooks
	cd build/notebooks && ../../$(BIN)/jupytext --to ipynb --execute tutorial-*.md

mutants: $(READY)  ## mutation tests of model, linked, cascade and audit; dotted names go into MUTANTS='...'
	$(BIN)/python scripts/mutants.py $(MUTANTS)

bench: $(READY)  ## measure the speed claims, as ratios; options of benchmarks/run.py go into BENCH='...'
	$(BIN)/python benchmarks/run.py $(BENCH)

pictures: $(READY) $(PAGE)  ## make the screenshots and pictures of the docs anew
	$(BIN)/python scripts/make_pictures.py

clean:  ## remove what make created
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist $(PAGE) src/odkanon/publish/report/world.bin.gz src/odkanon/publish/report/names.bin.gz
	rm -rf web/node_modules tests/web/browser/node_modules tests/web/browser/unpacked
