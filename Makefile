# `make demo` and `make test` do all of their own set-up, into .venv.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
PEERS := .venv-peers

# Python keeps what it compiles: importing JAX takes two seconds instead of four, and tests start many processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo pictures test test-quick lint types unit fuzz bench bench-core bench-gpu bench-peers bench-quick accuracy accuracy-paper \
	calibration calibration-quick refinement textbook zoo frontier yardsticks nonlinear systems inverse lock clean

# The heat equation in 50 dimensions, from 600 points.
demo: $(VENV)/ready
	$(VENV)/bin/pdedkl solve heat --dim 50 --out runs/demo --force

# The pictures of the README.
pictures: demo
	cp runs/demo/figures/truth.png docs/heat-50-truth.png
	cp runs/demo/figures/slice.png docs/heat-50-slice.png

# Types are checked beside the tests; what is wrong with them is said at the end.
test: lint
	@said=$$(mktemp); $(VENV)/bin/mypy > $$said 2>&1 & types=$$!; \
	$(MAKE) --no-print-directory unit; failed=$$?; \
	wait $$types || failed=1; cat $$said; rm $$said; exit $$failed

lint: $(VENV)/ready
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(VENV)/ready
	$(VENV)/bin/mypy

# Most of a test's time is compilation, so tests compile without optimisation, in half the time. What has to be tested as
# users have it asks for optimisation by itself (`oracles.as_users_have_it`).
QUICK := --xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0 \
	--xla_llvm_disable_expensive_passes=true --xla_cpu_parallel_codegen_split_count=1

unit: $(VENV)/ready
	XLA_FLAGS="$(QUICK)" $(RUN) -m pytest -n 2 --dist loadscope

# Lint, types, and the tests that neither train nor start processes: for use while writing.
SLOW := $(addprefix tests/,benchmarks checking cli embeddings fuzz inference kernels reports runs training test_compilation.py \
	test_damaged_files.py test_determinism.py test_docstrings.py test_examples.py test_jobs.py test_saving.py test_search.py)

test-quick: lint types
	XLA_FLAGS="$(QUICK)" $(RUN) -m pytest -n 2 --dist worksteal tests $(addprefix --ignore=,$(SLOW))

# Ten thousand damaged files and commands, in some minutes; `make test` has 1,600. Another seed has others.
fuzz: $(VENV)/ready
	PDEDKL_FUZZ_CASES=10000 XLA_FLAGS="$(QUICK)" $(RUN) -m pytest -n 2 --dist worksteal tests/fuzz

bench-core: $(VENV)/ready
	$(RUN) benchmarks/core.py

# A few minutes: what is measured against a limit. Every part runs; the exit status says whether one missed.
bench-quick: $(VENV)/ready
	@missed=0; for part in "core.py --quick" "prediction.py --name prediction-quick" \
		"large.py --alone 0 --name large-quick"; do \
		$(RUN) benchmarks/$$part || missed=1; done; exit $$missed

# Long: all of it, with 50,000 values and without their matrix; then the page of the documentation.
bench: $(VENV)/ready
	@missed=0; for part in core.py "prediction.py --f" large.py "table.py benchmarks.md"; do \
		$(RUN) benchmarks/$$part || missed=1; done; exit $$missed

# For a machine with a GPU, with `pip install -e .[cuda]`.
bench-gpu: $(VENV)/ready
	@missed=0; for part in gpu.py "large.py --both 40000 --alone 200000 --name gpu-large" "table.py benchmarks-gpu.md"; do \
		$(RUN) benchmarks/$$part || missed=1; done; exit $$missed

# Long: ten problems, three models, three seeds; called again, it goes on.
accuracy: $(VENV)/ready
	$(RUN) benchmarks/accuracy.py --page docs/benchmarks-accuracy.md

# The paper's recipe on its seven problems. For a GPU: on two cores the 4,000 points of Poisson in 50 dimensions take
# an hour and a half for each seed.
accuracy-paper: $(VENV)/ready
	$(RUN) benchmarks/accuracy.py --recipe paper --models dkl --only \
		poisson-10 poisson-50 heat-10 heat-50 adr-10 adr-50 parametric-heat

# Very long: twelve problems, three levels of noise, five seeds, two fits at a time; called again, it goes on.
calibration: $(VENV)/ready
	$(RUN) benchmarks/calibration.py --page docs/benchmarks-calibration.md

# The same on 24 cells, in about 20 minutes: no noise and 10 %, one seed.
calibration-quick: $(VENV)/ready
	$(RUN) benchmarks/calibration.py --quick

# Fifteen equations as they stand in textbooks, in a quarter of an hour; then the page of the documentation.
textbook: $(VENV)/ready
	$(RUN) benchmarks/textbook.py && $(RUN) benchmarks/table.py benchmarks-textbook.md

# Long: 95 problems as people write them, one fit each, with truths from outside the library; called again, it goes on.
zoo: $(VENV)/ready
	$(RUN) benchmarks/zoo.py --page docs/benchmarks-zoo.md

# Long: solutions with many directions, three seeds each; called again, it goes on.
frontier: $(VENV)/ready
	$(RUN) benchmarks/frontier.py --page docs/benchmarks-frontier.md

# Problems with a published figure.
yardsticks: $(VENV)/ready
	$(RUN) benchmarks/frontier.py --table yardsticks --page docs/benchmarks-yardsticks.md

# Unknown numbers from measurements, and whether their intervals hold; called again, it goes on.
inverse: $(VENV)/ready
	$(RUN) benchmarks/inverse.py --page docs/benchmarks-inverse.md

# Nonlinear equations, three seeds each; called again, it goes on.
nonlinear: $(VENV)/ready
	$(RUN) benchmarks/nonlinear.py --page docs/benchmarks-nonlinear.md

# Systems of several fields, linear and nonlinear.
systems: $(VENV)/ready
	$(RUN) benchmarks/nonlinear.py --table systems --page docs/benchmarks-systems.md

# Chosen points against random ones.
refinement: $(VENV)/ready
	$(RUN) benchmarks/refinement.py

# Seconds to a given error against other methods, on the paper's seven problems. Some hours; called again, it goes on.
bench-peers: $(VENV)/ready $(PEERS)/ready
	$(RUN) benchmarks/peers/race.py --peers $(PEERS)/bin/python --page docs/benchmarks-peers.md

# DeepXDE and PyTorch stay out of our own environment.
$(PEERS)/ready: benchmarks/peers/requirements.lock
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/peers/requirements.lock
	touch $@

# Everything is pinned with hashes; the package itself is installed in place.
$(VENV)/ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "pdedkl needs Python 3.11 or newer; name one with: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements.lock
	$(RUN) -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	touch $@

# Versions for every supported Python and platform. The lock records no download addresses.
lock:
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --quiet -o requirements.lock

clean:
	rm -rf $(VENV) $(PEERS) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
