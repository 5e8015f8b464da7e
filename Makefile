# `make demo` and `make test` need only Python 3.11, pip, make and git; both make the environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo proof test test-cluster lint clean

# The environment is made anew when what it is made of changes.
$(VENV)/.made: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --constraint constraints.txt --editable ".[dev]"
	touch $@

# Ten minutes at most on two cores; run again, seconds: each step finds what is done.
demo: $(VENV)/.made
	@echo "1 of 4: moving digits. Do links beat kernels?"
	$(BIN)/python sweeps/links_vs_kernel.py
	@echo "2 of 4: the radar benchmark on synthetic rain, offline and online"
	$(BIN)/python sweeps/hko7_benchmark.py
	@echo "3 of 4: the rain it was run on"
	$(BIN)/python -m data_pipeline info work/synthetic-demo.zarr --picture work/rain.png
	@echo "4 of 4: both tables as pages"
	$(BIN)/nowcastlab report --table mnist --scale demo --format html --out work/report-digits.html
	$(BIN)/nowcastlab report --table hko7 --scale demo --format html --out work/report.html
	@echo
	@echo "At demo scale the tables prove the way, and decide nothing. Next:"
	@echo "  open work/report.html, work/report-digits.html and work/rain.png"
	@echo "  $(BIN)/nowcastlab ui                                     every trial, its curves, its pictures"
	@echo "  $(BIN)/python sweeps/links_vs_kernel.py --scale laptop   an hour or more: kinds of networks begin to differ"
	@echo "  $(BIN)/nowcastlab --help                                 everything else"

# Three claims of the paper, with one seed: ten minutes on two cores. What it does not show is in the script.
proof: $(VENV)/.made
	$(BIN)/python sweeps/balanced_loss_proof.py

test: lint
	$(BIN)/python -m pytest --numprocesses 2 --dist loadscope --no-loadscope-reorder

# `ray up` over three machines made of Linux namespaces, one of which is lost: root on Linux, about five minutes.
test-cluster: $(VENV)/.made
	$(BIN)/python -m pytest -rs tests/cluster/test_ray_up.py

lint: $(VENV)/.made
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy nowcastlab data_pipeline sweeps

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
