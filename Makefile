# `make demo` and `make test` need nothing but Python 3.11 to 3.13; the rest is set up here, once.
# Debian packages are installed where that needs no password, and named where it does.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SYSTEM := bwrap=bubblewrap chromium=chromium

.PHONY: demo test lint bench bench-harness bench-forgery bench-sampling bench-audit bench-sandbox \
  bench-tolerance bench-uncertainty bench-page page-shots mutants generate lock clean

$(READY): requirements/dev.txt requirements/torch.txt pyproject.toml tools/system-packages
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else "geneb-ci needs Python 3.11, 3.12 or 3.13, but $(PYTHON) is %d.%d: run `make PYTHON=python3.12`" % v)'
	@tools/system-packages $(SYSTEM)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install -q -r requirements/torch.txt
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY)  ## check the public submissions, rebuild the board, audit an honest and a forged row
	@$(BIN)/python -m tools.demo

test: $(READY)  ## every test
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: $(READY)  ## ruff, mypy, zizmor, generated files, import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/zizmor --offline --no-progress --quiet --persona auditor .github
	$(BIN)/python tools/generate.py --check
	$(BIN)/python -m pytest -q tests/house

bench: $(READY)  ## speed of check and build, as a table for the README
	$(BIN)/python tests/bench/bench.py

bench-harness: $(READY)  ## speed of the reference harness beside the stock loop, as a table
	$(BIN)/python tests/bench/bench_harness.py

bench-forgery: $(READY)  ## how many forged scores each family of rules detects
	$(BIN)/python -m tests.bench.bench_forgery --write

bench-tolerance: $(READY)  ## false alarms and power of an audit's comparison
	$(BIN)/python -m tests.bench.bench_tolerance --work .tolerance --write

bench-sampling: $(READY)  ## what a draw of audited tasks finds, simulated and computed
	$(BIN)/python -m tests.bench.bench_sampling

bench-audit: $(READY)  ## what each step of an audit costs, as a table
	$(BIN)/python -m tests.bench.bench_audit --write

bench-sandbox: $(READY)  ## what starting a sandbox costs, as a table
	$(BIN)/python -m tests.bench.bench_sandbox

bench-uncertainty: $(READY)  ## coverage and speed of intervals, as tables for the docs
	$(BIN)/python -m tests.bench.bench_coverage
	$(BIN)/python -m tests.bench.bench_uncertainty

bench-page: $(READY)  ## how fast the page is with a thousand models, as tables for the docs
	$(BIN)/python -m tests.bench.bench_page

page-shots: $(READY)  ## pictures of every view in build/page-shots: look at them when you change the page
	$(BIN)/python -m tests.page.shots build/page-shots

mutants: $(READY)  ## do the tests notice a wrong line? hours; a run that was stopped goes on
	$(BIN)/python -m tools.mutants

generate: $(READY)  ## schemas, RULES.md, help texts
	$(BIN)/python tools/generate.py

COMPILE := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate \
  --no-header --no-emit-index-url --no-emit-find-links

lock: $(READY)  ## resolve the hashed requirements anew: dev, and from it what hosted jobs install
	$(BIN)/python -m pip install -q uv
	$(COMPILE) --overrides requirements/overrides.txt pyproject.toml --extra dev \
	  requirements/torch-needs.in requirements/build.in -o requirements/dev.txt
	$(COMPILE) --constraints requirements/dev.txt pyproject.toml -o requirements/check.txt
	$(COMPILE) --constraints requirements/dev.txt pyproject.toml \
	  --extra build --extra github --extra hub --extra records -o requirements/action.txt

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .mutants
