# Sluicegate's few commands. `make` lists them.

CARGO ?= cargo
FEATURES := --features sluicegate/file,sluicegate/tokio,sluicegate/redis,sluicegate/axum
# Where the machine has no Node.js, or an old one, `tests/browser` has fetched one.
NPM := PATH="$(CURDIR)/target/browser/node/bin:$$PATH" npm --prefix dashboard --silent
TARGET := $(or $(CARGO_TARGET_DIR),target)
export CARGO_TERM_COLOR ?= auto

.PHONY: help run dist test test-faults bench bench-redis bench-server docs fmt fmt-check lint doc-check servers redis-cell schemathesis clients unit page page-test browser model clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Build everything and serve on the embedded default
	@echo "make run: building the page and the service; a first build takes about four minutes on two cores"
	@dashboard/build || echo "make run: the page was not built; going on with everything else" >&2
	@$(CARGO) build --release --bin sluicegate
	@echo "make run: starting $(TARGET)/release/sluicegate serve"
	@exec $(TARGET)/release/sluicegate serve

dist: page ## Build the fully optimised, stripped binary, with the page inside
	@echo "make dist: optimising the whole program at once; a first build takes about ten minutes on two cores"
	@$(CARGO) build --profile dist --bin sluicegate
	@echo "make dist: $(TARGET)/dist/sluicegate, $$(( $$(wc -c <$(TARGET)/dist/sluicegate) / 1000000 )) MB"

test: browser page fmt-check lint doc-check unit page-test model ## Everything that must pass: formatting, lints, docs, all tests
	@echo "make test: everything passed"

# One after the other, so that they do not disturb each other's timing.
test-faults: servers ## All faults in full size on real servers, and a million steps of the differential test
	SLUICEGATE_FAULTS=full $(CARGO) test -p sluicegate-tests --test it -- faults:: clusters:: --include-ignored --nocapture --test-threads=1
	SLUICEGATE_FAULTS=full $(CARGO) test -p sluicegate-server --test it -- trouble:: --nocapture --test-threads=1
	SLUICEGATE_STEPS=1000000 $(CARGO) test -p sluicegate $(FEATURES) --test it -- --nocapture redis::differential::t3

bench: ## Measure against the peers, side by side, in one run
	cd bench && $(CARGO) run --profile dist

bench-redis: dist servers redis-cell ## Measure the Redis store on a private Redis
	cd bench && $(CARGO) run --profile dist --bin redis

# A peer that cannot be had is left out, and the run says so.
bench-server: dist peers ## Measure HTTP, gRPC and RESP beside null servers and peers
	cd bench && $(CARGO) run --profile dist --bin server

peers:
	-CARGO="$(CARGO)" bench/peers bench/target/peers

# First of all in `make test`, so that it is part of every binary that is tested.
page: ## Build the page, for the binary to carry
	dashboard/build

# Its logic, and every flow of it in a real browser, on the binary that `unit` has tested.
page-test: browser page ## Test the page in a real browser
	$(CARGO) build --bin sluicegate
	$(NPM) run lint
	$(NPM) test
	$(NPM) run test:browser

browser: ## Fetch the browser that the page's tests drive
	tests/browser target/browser

docs: ## Build the API documentation
	$(CARGO) doc --workspace --no-deps $(FEATURES)

fmt: ## Format the code
	$(CARGO) fmt --all

lint: ## Clippy, warnings denied
	$(CARGO) clippy --workspace --all-targets $(FEATURES) -- -D warnings
	$(CARGO) clippy -p sluicegate --no-default-features -- -D warnings

fmt-check:
	$(CARGO) fmt --all -- --check

doc-check:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items $(FEATURES)

servers: ## Fetch the servers and proxies that tests run against
	tests/servers target/servers

# The module is a peer, and what CL.THROTTLE is held against; where it cannot be built, both go on and say so.
redis-cell: ## Build the redis-cell module
	-$(CARGO) build --release -p redis-cell --manifest-path bench/redis-cell/Cargo.toml --target-dir bench/target/redis-cell

schemathesis: ## Fetch what drives the API from its OpenAPI document
	tests/schemathesis target/schemathesis

clients: ## Fetch the languages and Redis clients that tests run
	tests/clients target/clients

# Unit, property, documentation and end-to-end tests; the last run the real binary on free ports, and
# real servers.
unit: servers redis-cell schemathesis clients
	$(CARGO) test --workspace $(FEATURES)

# The memory store under the model checkers: every interleaving and reordering of its sequence lock
# (loom), random schedules of the whole store (shuttle).
model: ## Model-check the memory store
	$(CARGO) test -p sluicegate-loom -p sluicegate-shuttle

clean: ## Remove everything that was built
	$(CARGO) clean
	rm -rf bench/target fuzz/target dashboard/dist/page dashboard/node_modules
