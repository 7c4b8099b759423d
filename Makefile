# Every command first makes its prerequisites. `make help` lists the commands.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python -W ignore::DeprecationWarning -m
FK := $(VENV)/bin/factorykit
STAMP := $(VENV)/.setup-done
SHELL := /bin/bash
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export JUPYTER_PLATFORM_DIRS := 1
# Tests and builds run as many processes as cores; threads of each would only wait for one another.
export OPENBLAS_NUM_THREADS := 1
unexport PYTHONDONTWRITEBYTECODE  # without stored bytecode each notebook and test process compiles every package anew

.DEFAULT_GOAL := help
.PHONY: help setup uv quarto audit data site serve lab quick changed test stored cells test-long check lock bench clean

help: ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

setup: $(STAMP) ## make .venv and install everything into it

$(STAMP): pyproject.toml requirements.lock hatch_build.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; name it: make PYTHON=python3.12 …"; exit 1; }
	@test -x $(VENV)/bin/pip || $(PYTHON) -m venv --clear $(VENV) || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -q && apt-get install -y -q python3-venv && $(PYTHON) -m venv --clear $(VENV); } || { \
	  echo "python3 cannot make virtual environments here; install the package python3-venv and try again"; exit 1; }
	@$(MAKE) --no-print-directory uv
ifeq ($(RESOLUTION),lowest)
	@$(VENV)/bin/uv pip install --quiet --python $(VENV)/bin/python --resolution lowest-direct --editable '.[dev]'
else
	@$(VENV)/bin/uv pip install --quiet --compile-bytecode --python $(VENV)/bin/python --constraint requirements.lock --editable '.[dev]'
endif
	@touch $@

uv: ## install uv into .venv, checked against its hashes
	@$(VENV)/bin/pip install --quiet --require-hashes --requirement <(sed -n '/^uv==/,/[^\\]$$/p' requirements.lock)

QUARTO := quarto-cli==1.7.34 --hash=sha256:a23eb0b817c0e224f49b6f639094c0b56731ff301b9f18b29a33de760bc95c71
quarto: setup ## install Quarto into .venv; its package downloads that version
	@$(VENV)/bin/uv pip install --quiet --python $(VENV)/bin/python --no-deps --require-hashes --requirement <(echo "$(QUARTO)")

data: setup ## build the Parquet tables from data/sources
	@$(FK) data build

site: data ## build tables, run changed notebooks, render the site to _site
	@$(FK) site build

serve: ## show the site on http://127.0.0.1:8000
	@$(FK) site serve

lab: setup ## open the notebooks in JupyterLab
	@$(FK) lab

check: setup ## lint and types
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/oxlint --quiet --deny-warnings factorykit tests
	@$(VENV)/bin/basedpyright

quick: setup ## lint, types, and the unit tests of what differs from main
	@$(MAKE) --no-print-directory --jobs 2 check changed

changed: setup
	@$(RUN) pytest -q -n 2 --dist loadfile -m "not long and not browser" $$($(VENV)/bin/python tests/changed.py)

test: setup ## everything that CI runs
	@$(MAKE) --no-print-directory --jobs 3 check stored cells
	@$(RUN) pytest -q -p no:nbval -n 3 --dist loadfile --no-loadscope-reorder

stored: setup ## render the site from stored notebooks, for the tests
	@$(FK) site build --stored --renderer embedded --out .cache/site

cells: setup ## run every notebook again and compare what it stores
	@$(RUN) pytest -q notebooks --nbval --nbval-current-env --nbval-cell-timeout=120 -n 2 --dist loadfile

test-long: setup ## the tests that take minutes: all pairs, all kills
	@$(RUN) pytest -q -n 2 --dist loadfile -m long

bench: setup ## run the benchmarks, each beside its alternative
	@$(VENV)/bin/python -m benchmarks

audit: setup ## check the locked packages for known vulnerabilities
	@$(VENV)/bin/uv tool run pip-audit@2.10.1 --strict --require-hashes --disable-pip --requirement requirements.lock

lock: ## renew requirements.lock from pyproject.toml
	$(VENV)/bin/uv pip compile --quiet --universal --all-extras --no-emit-index-url --no-header --no-annotate --generate-hashes --upgrade pyproject.toml -o requirements.lock

clean: ## remove all build products except the tables
	rm -rf $(VENV) _site _site.* .cache dist build .pytest_cache .ruff_cache .hypothesis
