# `make lab` opens the course, `make test` runs all checks. Both create .venv, and update it when the lock changes.
#
#   TORCH_BACKEND=cpu make lab     the small CPU build of PyTorch (about 1 GB instead of 5; needs uv)
#   PYTHON=python3.12 make lab     another interpreter (3.11 or newer)

.DEFAULT_GOAL := help
.PHONY: help lab test book zoo scale wheel release mutants build pictures bench lock clean

PYTHON        ?= python3
TORCH_BACKEND ?=
BIN           := .venv/bin
# Three workers on two cores: the browser tests spend most of their time waiting.
JOBS          ?= 3
# Container images often set this; every kernel and test process would then recompile torch's Python files, in 8 s each.
unexport PYTHONDONTWRITEBYTECODE
# Test processes already share the cores; several threads per process would only compete for them.
test zoo scale wheel release: export OMP_NUM_THREADS := 1

help:
	@sed -n '1,4p' Makefile

# Install with uv where it is available (its cache is shared between clones), else with pip; the pins are the same. Either
# compiles Python's files here, in a quarter of a minute, which the first start and the first cell would otherwise wait for.
# `.venv/ready-lab` holds what a learner needs, `.venv/ready-NAME` adds the extra NAME (`test`, `book`, `zoo`, `release`, `bench`).
.venv/ready-%: pyproject.toml requirements.lock
	@[ -x $(BIN)/python ] || echo "准备 Python 环境，约十秒 … · Setting up Python, some ten seconds …"
	@[ -x $(BIN)/python ] || { command -v uv >/dev/null && uv venv -q --python $(PYTHON) .venv; } || $(PYTHON) -m venv .venv
	@command -v uv >/dev/null || [ -x $(BIN)/uv ] || $(BIN)/python -m pip install -q uv \
	    || echo "uv could not be installed; going on with pip, which takes longer"
	@echo "下载、安装并编译软件包，可能有一阵没有输出 … · Downloading, installing and compiling; it may be silent for a while …"
	@uv=$$(command -v uv || echo $(BIN)/uv); \
	if [ -x "$$uv" ]; then VIRTUAL_ENV="$(CURDIR)/.venv" "$$uv" pip install --compile-bytecode \
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

# Build the reading site: .book/html/en and .book/html/zh, between which .book/html/index.html chooses. Open it, or serve
# the folder with any web server. `make book RUN=no` saves the ten minutes in which the lessons run in Chinese: the
# Chinese pages then show what the code prints in English. MyST-NB leaves the notebooks that it read beside the pages.
BOOK ?= .book
RUN  ?= yes
book: .venv/ready-book
	rm -rf $(BOOK)/html $(BOOK)/doctrees
	OMP_NUM_THREADS=1 $(BIN)/python course/book/sources.py $(BOOK)/source $(if $(filter no,$(RUN)),--stored)
	for language in en zh; do \
	    $(BIN)/sphinx-build -q -W --keep-going -t $$language -c course/book -d $(BOOK)/doctrees/$$language \
	        $(BOOK)/source/$$language $(BOOK)/html/$$language || exit; \
	done
	rm -rf $(BOOK)/html/jupyter_execute
	cp course/book/choose.html $(BOOK)/html/index.html

# Regenerate the pictures of the README and the guides: the browser tests save screenshots; then the films are taken.
pictures: .venv/ready-test
	HOOKEDU_PICTURES=1 $(BIN)/python -m pytest tests/browser
	$(BIN)/python -m tests.browser.films
	$(BIN)/python course/images/opening.py

# Test capture on every torchvision model, including the very large ones (about 10 GB of memory), on models of
# transformers and timm, and on 50,000 random ones. `python -m tests.hooks.zoo` prints the table of those by others.
zoo: .venv/ready-test .venv/ready-zoo
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m "zoo or not zoo" \
	    tests/hooks/test_capture_zoo.py tests/hooks/test_capture_zoo_others.py tests/hooks/test_capture_properties.py \
	    tests/hooks/test_diagnosis_zoo.py tests/hooks/test_diagnosis_properties.py tests/widgets/test_gradient_flow.py

# Grade 1,000 submissions, killed and resumed; run nbgrader on a class of 20 and on all lessons (about ten minutes);
# diagnose 300 held-out runs of lesson 15; and open, switch and run all lessons in JupyterLab, in each language (about half an hour).
scale: .venv/ready-test
	$(BIN)/python -m pytest -m scale tests/grading tests/authoring/test_nbgrader.py \
	    tests/exercises/test_diagnosis_of_runs.py tests/browser/test_language_everywhere.py \
	    tests/browser/test_language_of_lessons.py

# Test the wheel, installed outside the repository: JupyterLab, Notebook 7, upgrades, grading (about two minutes); and
# that two copies of the clone make the same wheel, sdist and zips.
wheel: .venv/ready-test
	$(BIN)/python -m pytest -m wheel tests/browser/test_wheel.py tests/release

# Make and check the files of a release in dist/: wheel, sdist, the lessons and the reading site in each language. The
# version in CHANGELOG.md gets its date. Nothing is published. RUN=no as for `make book`.
release: .venv/ready-test .venv/ready-release
	$(BIN)/python -m tests.release --run $(RUN)

# Check every mutant of every known right answer, and all known answers with 200 first seeds (about an hour).
mutants: .venv/ready-test
	$(BIN)/python -m tests.answers.mutants
	$(BIN)/python -m tests.answers.mutants --known 200

build: .venv/ready-test
	$(BIN)/hookedu build

bench: .venv/ready-bench
	@for script in tests/bench/[a-z]*.py; do echo "== $$script"; \
	    $(BIN)/python -m tests.bench.$$(basename $$script .py) || exit 1; done

# Update the pins for every package and platform. The lock contains no URL, so that it works with any package index.
lock:
	uv pip compile -q pyproject.toml --all-extras --universal --python-version 3.11 --no-header --no-annotate \
	    --no-emit-index-url --no-emit-find-links --upgrade -o requirements.lock

clean:
	rm -rf .venv .book dist .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
