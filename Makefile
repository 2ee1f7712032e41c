# The two commands of the README, `make demo` and `make test`, and their parts. Each makes the
# virtual environment first where it is missing or older than pyproject.toml.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OUT := demo-out
# Half of what fast-minecart does by default, with exploration to match.
FAST := --preset fast-minecart --steps 8388608 --epsilon-steps 5500000
CN := --env minecart --observation features --agent cn --replay der --width 64 --steps 60000 --epsilon-steps 40000
BENCH := .venv-bench
TORCH ?= torch==2.13.0
PEER := 'mo-gymnasium>=1.3' cvxpy pycddlib==2.1.6 pymoo seaborn setuptools wandb

.PHONY: help install demo test lint format types unit slow docs docs-serve docs-pictures bench bench-replay bench-training bench-host bench-fast bench-utility bench-finetune bench-studio bench-tune studio-policies studio-pictures readme-film check-intervals oracle-data oracle-check study-dst study-maps study-quick study-minecart dist clean

help:
	@echo "make demo    train a policy for every weight on Minecart, and CN beside it; judge, draw and film them; into $(OUT)/"
	@echo "make test    lint, types and the quick tests"
	@echo "make slow    the tests that take minutes"
	@echo "make docs    the documentation as a site, into site/; make docs-serve shows it while you write"
	@echo "make docs-pictures  the pictures of the setting in the docs"
	@echo "make bench   speed beside MO-Gymnasium, into results/environments.md"
	@echo "make bench-replay  replay buffers beside morl-baselines', into results/replay.md"
	@echo "make bench-training  training beside morl-baselines' agents, into results/training-speed.md"
	@echo "make bench-host  the host driver beside morl-baselines' Envelope, into results/host.md"
	@echo "make bench-fast  the fast agent on this machine, into results/fast.md"
	@echo "make bench-utility  utility against seconds beside morl-baselines, into results/time-to-utility.md"
	@echo "make bench-finetune  a policy trained in advance, frozen and fine-tuned in other mines, into results/finetune.md"
	@echo "make bench-studio  how soon the page follows a drag, and 20 viewers, into results/studio.md"
	@echo "make bench-tune  a search for settings, killed on the way, into results/tune.md"
	@echo "make studio-policies  train the policies that come with windvane studio"
	@echo "make studio-pictures  the pictures of windvane studio in the docs; needs Chromium"
	@echo "make readme-film  the film at the top of the README"
	@echo "make oracle-data   compute the coverage sets that ship with the package"
	@echo "make oracle-check  attack the oracle at full size, into results/oracle.md"
	@echo "make check-intervals  how often intervals hold the true mean, by simulation, into results/intervals.md"
	@echo "make study-dst     why results on DST differ from the paper's, into results/dst-study.md"
	@echo "make study-maps    how much of the results on DST hangs on the map, into results/dst-maps.md"
	@echo "make study-quick   what the settings of quick-dst do, into results/training.md"
	@echo "make study-minecart  what regrets on Minecart are made of, into results/minecart-study.md"
	@echo "make dist    the wheel and the source archive of a release, into dist/; see RELEASING.md"
	@echo "make lint    ruff alone; make format mends what it can"
	@echo "make clean   remove $(VENV), $(BENCH), $(OUT) and caches"

install: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Windvane needs Python 3.11 or later; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,human]'
	@touch $@

demo: $(STAMP)
	@mkdir -p $(OUT)
	@rm -rf $(OUT)/fast $(OUT)/cn
	@echo "A policy for every weight: one network on 256 carts at once, about 80 seconds on 2 cores."
	$(BIN)/windvane train $(FAST) --out $(OUT)/fast
	@echo "Beside it the paper's agent, CN with DER: 60,000 steps of one cart, about half a minute."
	$(BIN)/windvane train $(CN) --out $(OUT)/cn
	$(BIN)/windvane evaluate $(OUT)/fast
	$(BIN)/windvane evaluate $(OUT)/cn
	$(BIN)/windvane front $(OUT)/fast --out $(OUT)/front
	$(BIN)/windvane watch $(OUT)/fast --weights 0.8,0.1,0.1 --out $(OUT)/first-ore.gif
	$(BIN)/windvane watch $(OUT)/fast --weights 0.1,0.8,0.1 --out $(OUT)/second-ore.gif
	$(BIN)/windvane render minecart --weights 0.2,0.3,0.5 --out $(OUT)/optimal.gif
	@$(BIN)/python -m scripts.demo_summary $(OUT)

test: lint types unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP)
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright

# Most tests compile much and compute little: without optimisations they take half the time.
unit: $(STAMP)
	JAX_DISABLE_MOST_OPTIMIZATIONS=1 $(BIN)/pytest -n auto --dist loadfile

slow: $(STAMP) $(VENV)/.docs
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cluster,mlflow,wandb]'
	$(BIN)/pytest -m slow

# Warnings are errors: a link or an anchor that leads nowhere ends the build (but not with --quiet).
$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "written: site/index.html"

docs-serve: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve --strict

docs-pictures: $(STAMP)
	$(BIN)/python -m scripts.docs_pictures

bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check opencv-python-headless
	$(BIN)/python -m benchmarks.environments --out results/environments.md

# Only the peer needs PyTorch, so both go into a virtual environment of their own. Without --no-deps
# the peer would bring along far more than it imports for its buffers and agents, which is PEER.
# pycddlib is compiled where it is installed and needs a C compiler; setuptools holds distutils.
$(BENCH)/.installed: pyproject.toml Makefile
	@test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --editable . '$(TORCH)' $(PEER)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps morl-baselines==1.3.0
	@touch $@

bench-replay: $(BENCH)/.installed
	$(BENCH)/bin/python -m benchmarks.replay --out results/replay.md

bench-training: $(BENCH)/.installed
	$(BENCH)/bin/python -m benchmarks.training --out results/training-speed.md

# Envelope takes about seven minutes per seed on four-room, and half an hour on Minecart. What is
# there already is kept.
bench-host: $(BENCH)/.installed
	for job in four-room-v0:20000:0 four-room-v0:20000:1 four-room-v0:20000:2 minecart-v0:100000:0 \
	  minecart-v0:100000:1 minecart-v0:100000:2 minecart-v0:100000:3 minecart-v0:100000:4; do \
	  set -- $$(echo $$job | tr : ' '); out=results/host/peers/$$1-$$3.json; test -f $$out || \
	  $(BENCH)/bin/python -m benchmarks.host_peers --settings scaled --env $$1 --steps $$2 --seed $$3 \
	    --out $$out || exit 1; done
	for seed in 0 1 2 3 4; do for job in deep-sea-treasure-v0:60000:cn four-room-v0:20000:cn \
	  minecart-v0:100000:cn minecart-v0:100000:envelope; do set -- $$(echo $$job | tr : ' '); \
	  out=results/host/learn-$$3-$$1-$$2-$$seed.json; test -f $$out || \
	  $(BENCH)/bin/python -m benchmarks.host learn --agent $$3 --env mo:$$1 --steps $$2 --seeds $$seed \
	    --out $$out || exit 1; done; done
	$(BENCH)/bin/python -m benchmarks.host speed --peers --out results/host/speed.json
	$(BENCH)/bin/python -m benchmarks.host page

# Half an hour on two cores. The page shows what results/fast holds, of other machines too.
bench-fast: $(STAMP)
	for preset in fast-minecart fast-dst; do \
	  $(BIN)/python -m benchmarks.fast train --preset $$preset --out results/fast/cpu-$$preset.json || exit 1; done
	$(BIN)/python -m benchmarks.fast page

# Up to 20 minutes for each of six contenders in four environments, one core each; what is there
# already is not measured again. CORES="2 3" measures two at a time.
CORES ?= 0
bench-utility: $(BENCH)/.installed
	$(BENCH)/bin/python -m benchmarks.time_to_utility all --minutes 20 --cores $(CORES)
	$(BENCH)/bin/python -m benchmarks.time_to_utility page

# Ten policies first. Made for a GPU: two cores take hours. What is measured already is kept.
bench-finetune: $(STAMP)
	test -d out/pretrained || $(BIN)/python -m benchmarks.fast train --preset fast-minecart \
	  --seeds 0 1 2 3 4 5 6 7 8 9 --policies out/pretrained --out out/pretrained.json
	for mines in paper ore moved; do \
	  $(BIN)/python -m benchmarks.finetune run --policies out/pretrained --instance $$mines \
	    --out results/finetune/$$mines.json || exit 1; done
	$(BIN)/python -m benchmarks.finetune page

# The parts that need a browser are left out where there is no Chromium.
bench-studio: $(STAMP)
	$(BIN)/python -m benchmarks.studio

# A quarter of an hour on two cores of its own. What is in out/bench-tune already goes on.
bench-tune: $(STAMP)
	$(BIN)/python -m benchmarks.tune

# About ten minutes on two cores; what is in out/studio already is not trained again.
studio-policies: $(STAMP)
	$(BIN)/python -m scripts.ship_studio

studio-pictures: $(STAMP)
	$(BIN)/python -m scripts.studio_pictures

# No training: the policy comes with the package.
readme-film: $(STAMP)
	$(BIN)/python -m scripts.readme_film

oracle-data: $(STAMP)
	$(BIN)/python -m scripts.ship_oracle

oracle-check: $(STAMP)
	$(BIN)/python -m scripts.check_oracle

# A minute or two; no training.
check-intervals: $(STAMP)
	$(BIN)/python -m scripts.check_intervals

study-dst: $(STAMP)
	$(BIN)/python -m scripts.study_dst

study-maps: $(STAMP)
	$(BIN)/python -m scripts.study_maps

study-quick: $(STAMP)
	$(BIN)/python -m scripts.study_quick

study-minecart: $(STAMP)
	$(BIN)/python -m scripts.study_minecart

# What an earlier build left would end up in the wheel.
dist: $(STAMP)
	rm -rf build dist windvane.egg-info
	$(BIN)/python -m build
	rm -rf build windvane.egg-info
	@ls -l dist

clean:
	rm -rf $(VENV) $(BENCH) $(OUT) site build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
