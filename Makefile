# Everything that a contributor runs. Each target makes the virtual environment that it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO := build/demo
WHEEL_ENV := build/wheel-env
COMPUTING_TESTS := $(addprefix tests/,audit combine grid importers plan recommend render)
OTHER_TESTS := $(addprefix --ignore=,$(COMPUTING_TESTS))

.PHONY: demo test lint wheel bench clean

$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

# A small net is trained and measured: a record, and its statement in every format.
demo: $(VENV)/.installed
	rm -rf $(DEMO)
	$(BIN)/carbonreport run --out $(DEMO) --name demo --zone DE --pue desktop -- $(BIN)/python examples/train.py
	$(BIN)/carbonreport statement $(DEMO)/*.jsonl --bib $(DEMO)/energy.bib $(foreach suffix,tex md html pdf json,-o $(DEMO)/energy.$(suffix))
	$(BIN)/carbonreport statement $(DEMO)/*.jsonl --style modelcard -o $(DEMO)/energy.yaml
	$(BIN)/carbonreport verify $(DEMO)/energy.tex $(DEMO)/*.jsonl
	@ls -l $(DEMO)

# Tests that only compute keep one core busy; those that start programs and measure run beside them.
test: $(VENV)/.installed
	mkdir -p build
	$(BIN)/python -m pytest $(COMPUTING_TESTS) > build/computing-tests.log 2>&1 & computing=$$!; \
	$(BIN)/python -m pytest $(OTHER_TESTS); others=$$?; \
	wait $$computing; computing=$$?; cat build/computing-tests.log; exit $$((computing | others))

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The wheel is built from the source distribution and installed without extras into an environment of its own;
# it, and the editable install, render one statement each.
wheel: $(VENV)/.installed
	rm -rf dist $(WHEEL_ENV)
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv $(WHEEL_ENV)
	$(WHEEL_ENV)/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	sh scripts/render_one.sh $(abspath $(WHEEL_ENV))/bin/carbonreport
	sh scripts/render_one.sh $(abspath $(BIN))/carbonreport

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/peers.py
	$(BIN)/python benchmarks/span_cost.py
	$(BIN)/python benchmarks/week.py

clean:
	rm -rf build dist $(VENV)
