# Tollgate's few commands. `make` lists them.

CARGO ?= cargo
FEATURES := --features tollgate/file,tollgate/tokio,tollgate/redis
export CARGO_TERM_COLOR ?= auto

.PHONY: help run test bench docs fmt fmt-check lint doc-check servers unit model clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Build everything and serve on the embedded default
	$(CARGO) run --release --bin tollgate -- serve

test: fmt-check lint doc-check unit model ## Everything that must pass: formatting, lints, docs, all tests
	@echo "make test: everything passed"

bench: ## Measure against the peers, side by side, in one run
	cd bench && $(CARGO) run --release

docs: ## Build the API documentation
	$(CARGO) doc --workspace --no-deps $(FEATURES)

fmt: ## Format the code
	$(CARGO) fmt --all

lint: ## Clippy, warnings denied
	$(CARGO) clippy --workspace --all-targets $(FEATURES) -- -D warnings
	$(CARGO) clippy -p tollgate --no-default-features -- -D warnings

fmt-check:
	$(CARGO) fmt --all -- --check

doc-check:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items $(FEATURES)

servers: ## Fetch the Redis and Valkey servers that tests run against
	tests/servers target/servers

# Unit, property, documentation and end-to-end tests; the last run the real binary on free ports, and
# real servers.
unit: servers
	$(CARGO) test --workspace $(FEATURES)

# The memory store under the model checkers: every interleaving and reordering of its sequence lock
# (loom), random schedules of the whole store (shuttle).
model: ## Model-check the memory store
	RUSTFLAGS="--cfg loom" $(CARGO) test --profile model -p tollgate --lib --target-dir target/loom model
	RUSTFLAGS="--cfg shuttle" $(CARGO) test --profile model -p tollgate --test store_shuttle --target-dir target/shuttle

clean: ## Remove everything that was built
	$(CARGO) clean
	rm -rf bench/target fuzz/target
