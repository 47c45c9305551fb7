# The two commands of the README are `make demo` and `make test`; both set everything up themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# With its bytecode kept, a container starts in half the time.
unexport PYTHONDONTWRITEBYTECODE

SANITIZED := build/sanitized
SANITIZE := LD_PRELOAD="$$(cc -print-file-name=libasan.so)" PYTHONMALLOC=malloc \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	PYTHONPATH=$(SANITIZED)/lib:tests

# More than there are cores: most of a system test is waiting.
TEST_PROCESSES ?= 5

# Tests whose types hold; a comparison that mypy knows to fail is often one after something was called.
# What `cogwork pipeline run` runs has names that it is given.
TYPED_TESTS := bench tests/conformance tests/fuzz tests/oslo tests/property tests/sim tests/unit tests/wires \
	$(wildcard tests/*.py tests/interop/*.py tests/system/*.py) \
	$(filter-out %_job.py %/conftest.py,$(wildcard tests/spark/*.py))
# Programs: their folder is where they look for modules.
TYPED_PROGRAMS := tests/interop/peers tests/system/clients

.PHONY: setup build test lint architecture docs demo bench soak wheel sim sanitized fuzz fuzz-short clean

setup:
	@$(PYTHON) tools/set_up.py test

build: setup

test: setup
	@$(BIN)/python tests/spark/quick_java.py
	$(BIN)/python tests/suite.py --numprocesses $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --disable-error-code comparison-overlap $(TYPED_TESTS)
	$(foreach folder,$(TYPED_PROGRAMS),MYPYPATH=$(folder) $(BIN)/mypy --explicit-package-bases $(folder) &&) true
	$(BIN)/lint-imports

# The packages and the imports between them, as a picture; a test compares it with the sources.
architecture:
	@$(PYTHON) tools/architecture.py

# The documentation site, in build/site; a dead link or a page without a place in it is an error.
docs:
	@$(PYTHON) tools/set_up.py docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# The compiled modules once more, under AddressSanitizer and UndefinedBehaviorSanitizer.
sanitized: setup
	COGWORK_SANITIZE=1 $(BIN)/python setup.py --quiet build --build-base $(SANITIZED) --build-lib $(SANITIZED)/lib

fuzz: sanitized
	$(SANITIZE) $(BIN)/python -m fuzz

fuzz-short: sanitized
	$(SANITIZE) $(BIN)/python -m fuzz --count 20000
	$(SANITIZE) $(BIN)/python -m pytest --numprocesses 2 --dist loadfile -o pythonpath=$(SANITIZED)/lib tests/unit/dataplane tests/unit/router/test_topics.py tests/unit/router/exchanges tests/property/test_columns_properties.py tests/property/test_data_plane_properties.py tests/property/test_topics_properties.py tests/property/test_raft_wire_properties.py tests/unit/plugin/test_chunks.py

bench/build/%: bench/%.c
	mkdir -p bench/build && $${CC:-cc} -O2 -Wall -o $@ $<

bench: setup bench/build/relay bench/build/quorum
	$(BIN)/python bench/run.py
	$(BIN)/python bench/delay.py
	$(BIN)/python bench/arrow.py
	$(BIN)/python bench/spark.py
	$(BIN)/python bench/archive.py
	$(BIN)/python bench/audit.py
	$(BIN)/python bench/rpc.py
	$(BIN)/python bench/oslo.py
	$(BIN)/python bench/attached.py
	$(BIN)/python bench/basic.py
	$(BIN)/python bench/basic_quorum.py
	$(BIN)/python bench/zeromq.py
	$(BIN)/python bench/attacks.py

# A wheel that installs without a compiler, and the source distribution that it is built from; then
# the wheel is tried where there is none.
wheel: setup
	$(PYTHON) tools/wheel.py
	COGWORK_WHEEL="$$(ls -t dist/cogwork-*manylinux*.whl | head -1)" $(BIN)/python -m pytest -m soak tests/system/test_wheel.py

soak: setup
	COGWORK_EXAMPLES=2000 $(BIN)/python -m pytest --numprocesses 2 --dist loadfile --timeout 3600 tests/property tests/fuzz tests/unit
	COGWORK_LEDGER_ITEMS=100000 $(BIN)/python -m pytest -s tests/system/test_work_ledger.py
	COGWORK_MESH_ITEMS=1000000 $(BIN)/python -m pytest -s tests/system/test_mesh_ledger.py
	COGWORK_MESH_CYCLES=30 $(BIN)/python -m pytest -s -m soak tests/system/test_mesh_topics.py
	COGWORK_ENGINE_KILLS=20 $(BIN)/python -m pytest -s --timeout 900 tests/conformance -k killed
	COGWORK_DISK_ITEMS=1000000 $(BIN)/python -m pytest -s tests/system/test_disk_ledger.py
	COGWORK_BASIC_ITEMS=1000000 $(BIN)/python -m pytest -s tests/system/test_basic_ledger.py
	COGWORK_HISTORIES=500 $(BIN)/python -m pytest --timeout 7200 tests/system/test_any_node.py
	COGWORK_CHAOS_S=600 COGWORK_CHAOS_SEEDS=1,2,3,4,5,6 $(BIN)/python -m pytest -s --timeout 900 tests/system/test_cluster_chaos.py
	COGWORK_CELERY_TASKS=20000 $(BIN)/python -m pytest -s --timeout 3600 tests/system/test_celery.py
	COGWORK_HANDLER_ITEMS=1000000 $(BIN)/python -m pytest -s --timeout 30000 tests/system/test_handler_ledger.py
	COGWORK_REPLICATED_ITEMS=1000000 $(BIN)/python -m pytest -s tests/system/test_replicated_ledger.py
	COGWORK_STREAM_RECORDS=300000 COGWORK_STREAM_KILLS=5 $(BIN)/python -m pytest -s tests/system/test_replicated_streams.py
	COGWORK_KILLS=6 $(BIN)/python -m pytest -s -m soak --timeout 1200 tests/spark
	$(BIN)/python -m pytest -s -m soak --timeout 600 tests/oslo tests/system/test_stream_outages.py
	$(BIN)/python -m pytest -s -m soak tests/system/test_attacks.py
	COGWORK_ZEROMQ_CLIENTS=10000 $(BIN)/python -m pytest -s -m soak tests/system/test_zeromq_waves.py
	COGWORK_AWAY_S=60 $(BIN)/python -m pytest -s --timeout 600 tests/spark/test_source_faults.py tests/spark/test_query_faults.py
	COGWORK_CHURN_CYCLES=1000 $(BIN)/python -m pytest -s --timeout 1200 tests/system/test_churn.py
	COGWORK_OSLO_ALL=1 $(BIN)/python -m pytest -s tests/oslo/test_brokers.py
	COGWORK_STREAM_MOVES=30 $(BIN)/python -m pytest -s tests/system/test_moved_streams.py
	COGWORK_NOVA_COMPUTES=1000 COGWORK_NOVA_MINUTES=5 COGWORK_NOVA_KILL_EACH_S=15 $(BIN)/python -m pytest -s -m soak tests/system/test_nova_load.py
	COGWORK_NOVA_DRIVER=oslo COGWORK_NOVA_COMPUTES=1000 COGWORK_NOVA_MINUTES=5 COGWORK_NOVA_KILL_EACH_S=15 $(BIN)/python -m pytest -s -m soak tests/system/test_nova_load.py

# Seeded scenarios: SEEDS of a raft group, hundreds of meshes of up to 200 containers; a failure names
# its seed. Then the simulator is graded: each known mistake, put into the core, must be found.
SEEDS ?= 100000

sim: setup
	$(BIN)/python -m cogwork.sim raft --seeds $(SEEDS)
	PYTHONPATH=tests/sim $(BIN)/python -m mutants
	$(BIN)/python -m cogwork.sim --count 300
	$(BIN)/python -m cogwork.sim --count 1 --containers 200

demo:
	@$(PYTHON) tools/set_up.py demo
	$(BIN)/python examples/flights/demo.py

clean:
	rm -rf build dist $(VENV) src/*.egg-info
	find src -name '*.so' -delete
