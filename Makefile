# The whole interface for people: `make serve` and `make test` need nothing but Python 3.11.

PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000
DATA_DIR ?= .data
ROUNDS ?= 40
SECONDS_OF_CHAOS ?= 600
SEED ?=
SEEDS ?= 5
FIRST_SEED ?= 4
ONLY ?=
IMAGES ?= cpu
UPGRADE ?=
VENV := .venv
SANDBOX_VENV := .venv-sandbox
LM_VENV := .venv-lm
TRAINERS_VENV := .venv-trainers
LAB_VENV := .venv-lab
RUN := $(VENV)/bin/reward-server

.PHONY: help serve prepared test test-unit test-docker test-lm test-trainers chaos check demo bench lab lab-full images lock clean
.DEFAULT_GOAL := help

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

serve:  ## set up and serve on 127.0.0.1:8000
	@$(MAKE) --no-print-directory --jobs 2 prepared $(SANDBOX_VENV)/.ready
	@exec $(RUN) serve --host $(HOST) --port $(PORT) --data-dir $(DATA_DIR)

prepared: $(VENV)/.server
	@$(RUN) tasks prepare --missing --twin --data-dir $(DATA_DIR)

test-unit: $(VENV)/.dev  ## set up and run the tests that need no server, no Postgres and no sandbox
	@$(VENV)/bin/pytest --numprocesses $$(nproc) --dist worksteal $(or $(TESTS),tests/unit)

test: $(VENV)/.dev $(SANDBOX_VENV)/.ready  ## set up and run the tests (TESTS=tests/integration/api for some)
	@.ci/test $(TESTS)

test-docker: $(VENV)/.dev $(SANDBOX_VENV)/.ready  ## test the docker sandbox with an engine of its own (root)
	@.ci/docker

test-lm: $(VENV)/.dev $(SANDBOX_VENV)/.ready $(LM_VENV)/.ready  ## test instrumentation by a real vLLM on the CPU
	@.ci/lm

test-trainers: $(TRAINERS_VENV)/.ready $(SANDBOX_VENV)/.ready  ## train for real with veRL and TRL on the CPU, and try other trainers' own code
	@.ci/trainers $(TESTS)

chaos: $(VENV)/.dev $(SANDBOX_VENV)/.ready  ## break everything at random and check the jobs (SECONDS_OF_CHAOS=600 SEED=1)
	@$(VENV)/bin/python -m tests.integration.chaos --seconds $(SECONDS_OF_CHAOS) $(if $(SEED),--seed $(SEED))

check: $(VENV)/.dev  ## run all linters
	@$(VENV)/bin/ruff check
	@$(VENV)/bin/ruff format --check
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

demo: $(VENV)/.server $(SANDBOX_VENV)/.ready  ## score a handful of programs and show the table
	@$(VENV)/bin/python benchmarks/demo.py

bench: $(VENV)/.server $(SANDBOX_VENV)/.ready  ## measure the pipeline against bare processes
	@$(VENV)/bin/python benchmarks/pipeline.py --rounds $(ROUNDS)

lab: $(VENV)/.server $(SANDBOX_VENV)/.ready $(LAB_VENV)/.ready  ## train a small policy in five ways, one seed: the three effects in about ten minutes
	@$(LAB_VENV)/bin/python -m trainer_client.lab --server $(RUN) --folder $(DATA_DIR)/lab

lab-full: $(VENV)/.server $(SANDBOX_VENV)/.ready $(LAB_VENV)/.ready  ## the same with more steps and five seeds, under an hour (SEEDS=8 FIRST_SEED=4 ONLY=credit)
	@$(LAB_VENV)/bin/python -m trainer_client.lab --server $(RUN) --folder $(DATA_DIR)/lab-full \
		--first-seed $(FIRST_SEED) --seeds $(SEEDS) --steps 18 $(if $(ONLY),--only $(ONLY))

images:  ## build the image programs run in (IMAGES=gpu, IMAGES=server; without a registry: IMAGES="--debootstrap cpu")
	@PYTHON="$(PYTHON)" sandbox_images/build $(IMAGES)

lock:  ## write the versions and hashes of the programs' packages anew (UPGRADE=1 for newer versions)
	@UPGRADE=$(UPGRADE) .ci/setup lock "$(PYTHON)"

clean:  ## remove everything that was set up, the data too
	@rm -rf $(VENV) $(SANDBOX_VENV) $(LM_VENV) $(TRAINERS_VENV) $(LAB_VENV) .venv-uv .venv-uv.lock .ci-logs $(DATA_DIR)

$(VENV)/.server: pyproject.toml .ci/setup
	@.ci/setup server "$(PYTHON)" $(VENV)

$(VENV)/.dev: pyproject.toml .ci/setup
	@.ci/setup dev "$(PYTHON)" $(VENV)

$(SANDBOX_VENV)/.ready: sandbox_images/cpu/requirements.txt .ci/setup
	@.ci/setup sandbox "$(PYTHON)" $(SANDBOX_VENV)

$(LM_VENV)/.ready: .ci/lm-requirements.txt pyproject.toml .ci/setup
	@.ci/setup lm "$(PYTHON)" $(LM_VENV)

$(TRAINERS_VENV)/.ready: .ci/trainers-requirements.txt .ci/trl-requirements.txt pyproject.toml .ci/setup
	@.ci/setup trainers "$(PYTHON)" $(TRAINERS_VENV)

$(LAB_VENV)/.ready: .ci/lab-requirements.txt pyproject.toml .ci/setup
	@.ci/setup lab "$(PYTHON)" $(LAB_VENV)
