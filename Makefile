# `make demo` and `make test` need only Python 3.11, pip, make and git; both make the environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo proof test lint clean

# The environment is made anew when what it is made of changes.
$(VENV)/.made: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

demo: $(VENV)/.made
	$(BIN)/python -m data_pipeline synth work/demo.zarr --days 4 --size 120 --seed 1
	$(BIN)/python -m data_pipeline info work/demo.zarr --picture work/demo.png

# Three claims of the paper, with one seed: ten minutes on two cores. What it does not show is in the script.
proof: $(VENV)/.made
	$(BIN)/python sweeps/balanced_loss_proof.py

test: lint
	$(BIN)/python -m pytest

lint: $(VENV)/.made
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy nowcastlab data_pipeline sweeps

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
