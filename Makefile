# `make lab` opens the course, `make test` proves it. Both set up .venv first, and again when the lock changed.
#
#   TORCH_BACKEND=cpu make lab     the small CPU build of PyTorch (about 1 GB instead of 5; needs uv)
#   PYTHON=python3.12 make lab     another interpreter (3.11 or newer)

.DEFAULT_GOAL := help
.PHONY: help lab test book zoo scale wheel build pictures bench lock clean

PYTHON        ?= python3
TORCH_BACKEND ?=
BIN           := .venv/bin
# One more than two cores: the browser's tests mostly wait.
JOBS          ?= 3
# Images of containers often set this; then every kernel and every test compiles torch's Python anew, 8 s each time.
unexport PYTHONDONTWRITEBYTECODE
# Test processes share the cores already; threads of each would only be in one another's way.
test zoo scale wheel: export OMP_NUM_THREADS := 1

help:
	@sed -n '1,4p' Makefile

# uv where it can be had (it also keeps a cache between clones), else plain pip: the same pins either way.
# `.venv/ready-lab` is what a learner needs, `.venv/ready-test` adds the extra that tests need.
.venv/ready-%: pyproject.toml requirements.lock
	@[ -x $(BIN)/python ] || { command -v uv >/dev/null && uv venv -q --python $(PYTHON) .venv; } || $(PYTHON) -m venv .venv
	@command -v uv >/dev/null || [ -x $(BIN)/uv ] || $(BIN)/python -m pip install -q uv \
	    || echo "uv could not be installed; going on with pip, which takes longer"
	@uv=$$(command -v uv || echo $(BIN)/uv); \
	if [ -x "$$uv" ]; then VIRTUAL_ENV=$(CURDIR)/.venv "$$uv" pip install \
	    $(if $(TORCH_BACKEND),--torch-backend=$(TORCH_BACKEND)) -c requirements.lock -e '.$(filter-out [lab],[$*])'; \
	else $(BIN)/python -m pip install -c requirements.lock -e '.$(filter-out [lab],[$*])'; fi
	@touch $@

lab: .venv/ready-lab
	$(BIN)/hookedu lab

test: .venv/ready-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/hookedu build --check
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --nbval --nbval-cell-timeout 120 tests solutions

# The reading site, in .book/html: open index.html, or let any web server serve the folder. Sphinx reads a copy in which
# the solutions stand for the lessons, so that links between lessons, guides and code are those of the repository.
BOOK ?= .book
book: .venv/ready-book
	rm -rf $(BOOK) && mkdir -p $(BOOK)/source
	cp -R course hookedu README.md CONTRIBUTING.md LICENSE course/book/index.md $(BOOK)/source
	cp -R solutions $(BOOK)/source/lessons
	$(BIN)/sphinx-build -q -W --keep-going -c course/book -d $(BOOK)/doctrees $(BOOK)/source $(BOOK)/html

# The pictures of the README and the guides, from the browser tests that look at the lessons.
pictures: .venv/ready-test
	HOOKEDU_PICTURES=1 $(BIN)/python -m pytest tests/browser

# Every model of torchvision, the huge ones too (about 10 GB of memory).
zoo: .venv/ready-test
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m "zoo or not zoo" tests/hooks/test_capture_zoo.py

# A class of a thousand submissions, graded, killed and resumed; nbgrader on a class of twenty and on all lessons (about ten minutes).
scale: .venv/ready-test
	$(BIN)/python -m pytest -m scale tests/grading/test_scale.py tests/authoring/test_nbgrader.py

# The wheel, installed where nothing of the repository is: JupyterLab, Notebook 7, upgrades, grading (about two minutes).
wheel: .venv/ready-test
	$(BIN)/python -m pytest -m wheel tests/browser/test_wheel.py

build: .venv/ready-test
	$(BIN)/hookedu build

bench: .venv/ready-bench
	@for script in tests/bench/[a-z]*.py; do echo "== $$script"; \
	    $(BIN)/python -m tests.bench.$$(basename $$script .py) || exit 1; done

# Pins for every package and platform, without a URL: the lock names no index.
lock:
	uv pip compile -q pyproject.toml --all-extras --universal --python-version 3.11 --no-header --no-annotate \
	    --no-emit-index-url --no-emit-find-links --upgrade -o requirements.lock

clean:
	rm -rf .venv .book dist .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
