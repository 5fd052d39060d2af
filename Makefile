# Sluicegate's few commands. `make` lists them.

CARGO ?= cargo
# Where the machine has no Node.js, or an old one, `tests/browser` has fetched one.
NPM := PATH="$(CURDIR)/target/browser/node/bin:$$PATH" npm --prefix dashboard --silent
TARGET := $(or $(CARGO_TARGET_DIR),target)
export CARGO
export CARGO_TERM_COLOR ?= auto

.PHONY: help run dist check test fuzz test-faults bench bench-redis bench-server bench-smoke bench-bodies peers docs fmt lint servers redis-cell schemathesis clients page page-test browser model clean

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

check: ## Formatting, lints and unit tests, without servers: what to run between edits
	@tests/run check

test: ## Everything that must pass: formatting, lints, docs, all tests
	@tests/run test

# Needs Rust's nightly toolchain. FUZZ_SECONDS is the time for each target; a crash ends the run, and names its input.
fuzz: ## Fuzz every parser of foreign bytes for a minute each
	@tests/fuzz target/fuzz

test-faults: bench-smoke ## All faults in full size on real servers, a million steps of the differential test, each benchmark once
	@tests/run test-faults

bench: ## Measure against the peers, side by side, in one run
	cd bench && $(CARGO) run --profile dist

bench-redis: dist servers redis-cell ## Measure the Redis store on a private Redis
	cd bench && $(CARGO) run --profile dist --bin redis

# A peer that cannot be had is left out, and the run says so.
bench-server: dist peers ## Measure HTTP, gRPC and RESP beside null servers and peers
	cd bench && $(CARGO) run --profile dist --bin server

bench-bodies: ## Count the instructions of hostile bodies, which must not exceed three times those of accepted ones
	cd bench && $(CARGO) run --release --bin bodies

# Every part of every benchmark once, so that none rots; the figures mean nothing.
bench-smoke: page servers redis-cell peers
	$(CARGO) build --release --bin sluicegate
	cd bench && $(CARGO) run --release -- --smoke
	cd bench && SLUICEGATE_BIN=$(abspath $(TARGET))/release/sluicegate $(CARGO) run --release --bin redis -- --smoke
	cd bench && SLUICEGATE_BIN=$(abspath $(TARGET))/release/sluicegate $(CARGO) run --release --bin server -- --smoke

peers:
	-CARGO="$(CARGO)" bench/peers bench/target/peers

page: ## Build the page, for the binary to carry
	dashboard/build

page-test: browser page ## Test the page in a real browser
	$(CARGO) build --bin sluicegate
	$(NPM) run lint
	$(NPM) test
	$(NPM) run test:browser

browser: ## Fetch the browser that the page's tests drive
	tests/browser target/browser

docs: ## Build the API documentation
	$(CARGO) doc --workspace --no-deps --features sluicegate/file,sluicegate/tokio,sluicegate/redis,sluicegate/axum

fmt: ## Format the code
	$(CARGO) fmt --all

lint: ## Clippy, warnings denied
	@tests/run lint

servers: ## Fetch the servers and proxies that tests run against
	tests/servers target/servers

# The module is a peer, and what CL.THROTTLE is held against; where it cannot be built, both go on and say so.
redis-cell: ## Build the redis-cell module
	-$(CARGO) build --release -p redis-cell --manifest-path bench/redis-cell/Cargo.toml --target-dir bench/target/redis-cell

schemathesis: ## Fetch what drives the API from its OpenAPI document
	tests/schemathesis target/schemathesis

clients: ## Fetch the languages and Redis clients that tests run
	tests/clients target/clients

# The memory store under the model checkers: every interleaving and reordering of its sequence lock
# (loom), random schedules of the whole store (shuttle).
model: ## Model-check the memory store
	$(CARGO) test -p sluicegate-loom -p sluicegate-shuttle

clean: ## Remove everything that was built
	$(CARGO) clean
	rm -rf bench/target fuzz/target dashboard/dist/page dashboard/node_modules
