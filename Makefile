# `make demo` and `make test` need nothing but Python 3.11 to 3.13; the rest is set up here, once.
# Debian packages are installed where that needs no password, and named where it does.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOG := $(VENV)/install.log
SYSTEM := bwrap=bubblewrap chromium-headless-shell,chromium=chromium-headless-shell

# A thousand processes of the tests would otherwise compile the same modules, each for itself.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo practice test test-all expected compare quick site tutorials doors real-tasks test-rows flakes lint types style rehearse rehearse-proof bench-harness bench-gpu \
  bench-adversary bench-forgery bench-crowns bench-sampling bench-audit bench-sandbox bench-tolerance bench-uncertainty \
  bench-page bench-receipts bench-scale bench-atlas \
  pictures page-shots github-contract vendor mutants generate lock clean

# An environment that is there goes on being used, unless its interpreter is gone or PYTHON is named
# and is another than the one that made it.
MINOR := import sys; print("%d.%d" % sys.version_info[:2])
MADE_BY := $(if $(wildcard $(VENV)),$(shell $(BIN)/python -c 'import pip; $(MINOR)' 2>/dev/null))
WANTED := $(if $(filter file,$(origin PYTHON)),$(MADE_BY),$(shell $(PYTHON) -c '$(MINOR)' 2>/dev/null))
KEPT := $(if $(MADE_BY),$(filter $(MADE_BY),$(WANTED)))

INSTALL_LOCK := tools/install-lock $(BIN)/uv

.PHONY: new-venv
new-venv:
	@tools/new-venv $(PYTHON) $(VENV)

$(READY): requirements/dev.txt requirements/torch.txt pyproject.toml tools/system-packages $(if $(KEPT),,new-venv)
	@tools/system-packages $(LOG) $(SYSTEM)
	@tools/quietly $(LOG) "installing $$(grep -c == requirements/dev.txt) packages in $(VENV) (0.5 GB)" \
	  $(INSTALL_LOCK) $(BIN)/python requirements/dev.txt
	@tools/quietly $(LOG) "installing torch in $(VENV) (0.8 GB for the CPU; 5 GB where the index gives the build with CUDA)" \
	  $(BIN)/python -m pip install -q --no-compile -r requirements/torch.txt
	@tools/quietly $(LOG) "installing geneb-ci from this folder in $(VENV)" \
	  $(BIN)/python -m pip install -q --no-deps --no-build-isolation --editable .
	@touch $@

# Validators of others, which cannot be installed beside the package.
VALIDATORS := $(VENV)/validators

$(VALIDATORS)/.ready: requirements/validators.txt requirements/validators-alone.txt | $(READY)
	@$(BIN)/python -m venv --clear $(VALIDATORS)
	@tools/quietly $(LOG) "installing $$(grep -c == requirements/validators.txt) packages in $(VALIDATORS) (0.6 GB): validators of others" \
	  $(INSTALL_LOCK) $(VALIDATORS)/bin/python requirements/validators.txt
	@tools/quietly $(LOG) "installing $$(grep -c == requirements/validators-alone.txt) more of them, whatever Python they name" \
	  $(VALIDATORS)/bin/python -m pip install -q --require-hashes --no-deps --ignore-requires-python -r requirements/validators-alone.txt
	@touch $@

# What builds the site, which nothing else needs.
SITE := $(VENV)/site

$(SITE)/.ready: requirements/docs.txt | $(READY)
	@$(BIN)/python -m venv --clear $(SITE)
	@tools/quietly $(LOG) "installing $$(grep -c == requirements/docs.txt) packages in $(SITE): the site of the pages" \
	  $(INSTALL_LOCK) $(SITE)/bin/python requirements/docs.txt
	@touch $@

# What makes wrong changes to the code.
MUTANTS := $(VENV)/mutants

$(MUTANTS)/.ready: requirements/mutants.txt | $(READY)
	@$(BIN)/python -m venv --clear $(MUTANTS)
	@tools/quietly $(LOG) "installing $$(grep -c == requirements/mutants.txt) packages in $(MUTANTS): what makes wrong changes" \
	  $(INSTALL_LOCK) $(MUTANTS)/bin/python requirements/mutants.txt
	@touch $@

demo: $(READY)  ## check the public submissions, rebuild the board, audit an honest and a forged row
	@$(BIN)/python -m tools.demo

FOLDER ?= build/practice

practice: $(READY)  ## a board with twelve open pull requests on this machine, in FOLDER
	@$(BIN)/python -m tools.practice $(FOLDER)

# pyproject.toml leaves out what is marked `nightly`, wherever pytest is called without `-m`.
test: $(READY) $(VALIDATORS)/.ready  ## what gates a change; AREA=github for one folder of tests/
	$(BIN)/python -m pytest -n auto --dist worksteal $(AREA:%=tests/%)

# Each night tries another order, of the files and of the tests in each.
ORDER ?= $(shell date -u +%Y%m%d)

test-all: $(READY) $(VALIDATORS)/.ready  ## every test, with those marked `nightly`; ORDER=20261129 repeats an order
	$(BIN)/python -m pytest -n auto --dist worksteal -m "" --random-order-bucket=module --random-order-seed=$(ORDER)

expected: $(READY) $(VALIDATORS)/.ready  ## rewrites expected outputs and generated files; read git diff afterwards
	$(BIN)/python tools/generate.py
	$(BIN)/python -m tests.rules.update --all
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "" --update-golden \
	  $$(git grep -lE 'update_golden|golden\(' -- 'tests/*/test_*.py' 'tests/statistics/*/test_*.py')

compare: $(READY)  ## what this checkout makes of public rows, fixtures, generated rows and audits, beside BASE=main
	$(BIN)/python -m tools.compare_outputs $(or $(BASE),main)

QUICK := $(addprefix tests/,rules submission statistics render check)

quick: $(READY)  ## in a minute: rules, submissions, statistics, reports, and the rules of the house
	$(BIN)/python -m pytest -q -n auto --dist worksteal $(QUICK)
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "" $(STRUCTURE)

site: $(SITE)/.ready  ## the pages as a site in build/site/public, every link checked
	$(SITE)/bin/python tools/site.py
	$(SITE)/bin/python -m zensical build --strict --clean

tutorials:  ## the tutorials of docs typed in an empty environment, the installation included
	@$(PYTHON) -m tools.tutorials

doors:  ## docs/contributor/install.md by uv, pipx, pre-commit and prek, in an empty home
	@$(PYTHON) -m tools.doors

real-tasks: $(READY)  ## fetch the six real tasks that some tests need, by digest
	$(BIN)/python -m tools.real_tasks build/real-tasks

ROWS ?= 100

test-rows: $(READY) $(VALIDATORS)/.ready  ## every test, in a copy whose submissions/ has ROWS rows
	$(BIN)/python -m tests.house.enlarged $(ROWS) -n auto --dist worksteal

SEEDS ?= 50

flakes: $(READY)  ## the property tests with SEEDS seeds: what fails with one is fixed and pinned
	$(BIN)/python -m tests.flakes $(SEEDS)

# What reads the code and the pages and runs no command; the rest of tests/house is part of `make test`.
STRUCTURE := $(addsuffix .py,$(addprefix tests/house/test_,architecture dependencies direction docs glossary names no_leaks public wording))

lint: types style  ## ruff, mypy, codespell, hadolint, zizmor, generated files, locks, import directions

types: $(READY)
	$(BIN)/mypy

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	git ls-files -z | xargs -0 $(BIN)/codespell
	$(BIN)/hadolint --failure-threshold style Containerfile
	$(BIN)/zizmor --offline --no-progress --quiet --persona auditor .github
	$(BIN)/python tools/generate.py --check
	$(BIN)/python -m tools.lock --check
	$(BIN)/python -m pytest -q --collect-only --no-summary tests/house/test_collection.py tests/house/test_live_rows.py >/dev/null
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "" $(STRUCTURE) tests/house/test_dead_code.py

rehearse: $(READY)  ## every job of every workflow, on loopback; JOB=publish.push for one
	@$(BIN)/python -m tools.rehearse $(JOB:%=--job %)

rehearse-proof: $(READY)  ## that the rehearsal is red where a job would fail: minutes
	$(BIN)/python -m pytest -q -m "" tests/rehearse/test_red.py

bench-harness: $(READY)  ## speed of the reference harness beside the stock loop, as a table
	$(BIN)/python benchmarks/bench_harness.py

bench-gpu: $(READY)  ## embedding and TF32 on the GPU, as tables, in eight minutes; small on the CPU where there is none
	$(BIN)/python -m benchmarks.bench_device

bench-forgery: $(READY)  ## how many forged scores each family of rules detects
	$(BIN)/python -m benchmarks.bench_forgery --write

bench-crowns: $(READY)  ## how many rows with one raised category are noted or drawn
	$(BIN)/python -m benchmarks.bench_crowns --write

# A bench whose main process loads NumPy names the kernel of the scorer of record before it starts.
HELD := OPENBLAS_CORETYPE=Haswell OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

bench-tolerance: $(READY)  ## false alarms and power of an audit's comparison
	$(HELD) $(BIN)/python -m benchmarks.bench_tolerance --work .tolerance --write

bench-adversary: $(READY)  ## which cheats an audit finds: memorised labels, and the best forgery
	$(BIN)/python -m benchmarks.bench_memorised --work .adversary --write
	$(HELD) $(BIN)/python -m benchmarks.bench_adversary --work .adversary --write
	$(HELD) $(BIN)/python -m benchmarks.bench_receipt_forger --write
	$(HELD) $(BIN)/python -m benchmarks.bench_levers --work .adversary --write
	$(BIN)/python -m benchmarks.bench_real_attacks --keep .adversary/real --write

bench-sampling: $(READY)  ## what a draw of audited tasks finds, simulated and computed
	$(BIN)/python -m benchmarks.bench_sampling

bench-audit: $(READY)  ## what each step of an audit costs, as a table
	$(BIN)/python -m benchmarks.bench_audit --write

bench-sandbox: $(READY)  ## what starting a sandbox costs, as a table
	$(BIN)/python -m benchmarks.bench_sandbox

bench-receipts: $(READY)  ## what verifying and auditing receipts takes and finds, as tables; goes on where stopped
	$(BIN)/python -m benchmarks.bench_receipts --keep build/receipts --write
	$(BIN)/python -m benchmarks.bench_embedding_audits --real --keep build/receipts/rows --write
	rm -r build/receipts

bench-uncertainty: $(READY)  ## how often decisions hold, as a table for the docs
	$(BIN)/python -m benchmarks.bench_decisions

bench-page: $(READY)  ## how fast the page is with a thousand models, as tables for the docs
	$(BIN)/python -m benchmarks.bench_page

bench-scale: $(READY)  ## what check, build and advice cost, as the table of docs/developer/scale.md
	$(BIN)/python -m benchmarks.bench_scale --write

bench-atlas: $(READY)  ## how far devices, dtypes, kernels and batches lie apart: schemas/atlas.json, for the docs
	$(BIN)/python -m benchmarks.bench_atlas --write

pictures: $(READY)  ## docs/pictures, which the README shows: the board, and terminals
	$(BIN)/python -m tools.pictures

page-shots: $(READY)  ## pictures of every view in build/page-shots: look at them when you change the page
	$(BIN)/python -m tests.page.shots build/page-shots

github-contract: $(READY)  ## fetch what GitHub publishes of the requests that tests imitate, by digest; needs npm
	$(BIN)/python -m tools.github_contract

vendor: $(READY)  ## fetch the modules of d3 that the page uses, by version and digest; needs npm
	$(BIN)/python -m tools.vendor_d3

NUMBER ?= 200
SEED ?= 1

mutants: $(MUTANTS)/.ready  ## do the tests notice NUMBER wrong changes? half an hour; a run that was stopped goes on
	$(MUTANTS)/bin/python -m tools.mutants --number $(NUMBER) --seed $(SEED)

generate: $(READY)  ## schemas, RULES.md, help texts
	$(BIN)/python tools/generate.py

lock: $(READY)  ## resolve the hashed requirements anew; UPGRADE=1 takes the newest versions
	@$(BIN)/python -m tools.lock $(if $(UPGRADE),--upgrade)

clean:
	rm -rf $(VENV) build/site .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build/mutants
