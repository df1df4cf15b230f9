# Two commands for a start: `make demo` and `make test`. Each makes .venv when it is missing.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PACKAGES := curate pipelines samples schemas train

.PHONY: demo test lint types bench docs samples clean

demo: .venv/core.done
	$(BIN)/curate demo -o demo-out

test: .venv/dev.done
	$(BIN)/python -m pytest $(ARGS)

lint: .venv/dev.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev.done .links/done
	$(BIN)/mypy -p trajcurate

bench: .venv/dev.done
	$(BIN)/python benchmarks/speed.py

docs: .venv/core.done
	$(BIN)/python docs/make_reference.py
	$(BIN)/python docs/make_picture.py

samples: .venv/core.done
	$(BIN)/python samples/make_samples.py

clean:
	rm -rf .venv .links demo-out build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/core.done: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) install -c constraints.txt -e .
	touch $@

.venv/dev.done: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) install -c constraints.txt -e ".[dev]"
	touch .venv/core.done $@

# The type checker finds `trajcurate.curate` through links, since no folder has that name.
.links/done:
	mkdir -p .links/trajcurate
	for name in $(PACKAGES); do ln -sfn ../../$$name .links/trajcurate/$$name; done
	touch $@
