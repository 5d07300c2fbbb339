# Two commands set up a fresh machine completely: `make serve` and `make test`.

# The folder in which make was started, also with `make -C`.
WORKSPACE ?= $(PWD)
CARGO ?= cargo
NEEDS := target/needs
# So many test programs run at a time as well (scripts/run-tests), and each so many of its tests: most wait for processes.
TEST_THREADS := $(shell nproc)

.PHONY: serve dist test check fmt bench toolchains dogfood fuzz soak injection nightly needs clean-needs

## serve the current folder over MCP, with built-in defaults; the first build takes some minutes
serve:
	$(CARGO) run --profile serve -p haft-cli -- serve --workspace "$(WORKSPACE)" $(ARGS)

## build the binary that a release ships: target/dist/haft
dist:
	$(CARGO) build --profile dist --locked -p haft-cli

## run every check: format, lints, tests, docs, dependencies
# What the tests need is installed while the lints run: the one waits for the network, the others for the processor.
test:
	@$(MAKE) --no-print-directory -j2 needs check
	RUST_TEST_THREADS=$(TEST_THREADS) HAFT_NEEDS="$(CURDIR)/$(NEEDS)" CARGO="$(CARGO)" scripts/run-tests
	@if [ -x $(NEEDS)/deny/bin/cargo-deny ]; then \
	  $(NEEDS)/deny/bin/cargo-deny check bans licenses sources; \
	else echo "SKIPPED: cargo-deny could not be installed; licences and sources were not checked"; fi

check:
	$(CARGO) fmt --all --check
# A macro declares these, where cargo fmt does not look.
	rustfmt --edition 2024 --check crates/haft-command/src/programs/*.rs crates/haft-command/src/programs/*/*.rs
	$(CARGO) fmt --manifest-path benches/Cargo.toml --all --check
	$(CARGO) clippy --workspace --all-targets --all-features --quiet -- -D warnings
	$(CARGO) clippy -p haft -p haft-store -p haft-builtins --no-default-features --quiet -- -D warnings
	@for feature in commands web images; do \
	  $(CARGO) clippy -p haft-builtins --no-default-features --features $$feature --quiet -- -D warnings || exit 1; done
# In the same target folder, so that little is built for them alone.
	$(CARGO) check --manifest-path benches/Cargo.toml --workspace --locked --quiet --target-dir "$(or $(CARGO_TARGET_DIR),target)"

## format everything
fmt:
	$(CARGO) fmt --all
	$(CARGO) fmt --manifest-path benches/Cargo.toml --all
	rustfmt --edition 2024 crates/haft-command/src/programs/*.rs crates/haft-command/src/programs/*/*.rs

## install what the tests need (MCP clients in Python and Node, cargo-deny) below target/
needs:
	@CARGO="$(CARGO)" scripts/needs "$(CURDIR)/$(NEEDS)"

## measure haft and its peers, in a separate workspace; fails if a peer is missing
bench:
	scripts/bench

## run a day's work with each toolchain in haft's commands, and write docs/guide/toolchains.md; uses the registries of this machine's settings
toolchains:
	$(CARGO) build --quiet -p haft-cli
	scripts/toolchains "$(or $(CARGO_TARGET_DIR),target)/debug/haft" --write

## work on haft through haft in a throw-away clone: checks, tests, the pages, a browser, a commit; says how long the same takes without it
# Built for use, as a debug build would make commands look slow.
dogfood: needs
	$(CARGO) build --quiet --profile serve -p haft-cli
	scripts/dogfood "$(or $(CARGO_TARGET_DIR),target)/serve/haft" --bare

## run each fuzz target for SECONDS (default 60)
fuzz:
	HAFT_FUZZ_SECONDS=$(or $(SECONDS),60) $(CARGO) test --release --workspace --all-features fuzz -- --nocapture

## run the tests that read `HAFT_SOAK` with much larger numbers; all of them are listed here; and measure what one hostile principal costs the others
soak: needs
	HAFT_SOAK=1 $(CARGO) test -p haft-sandbox --test it -- a_thousand_commands
	HAFT_SOAK=1 $(CARGO) test -p haft-cli --test it servers_cycles:: -- --nocapture
	HAFT_SOAK=1 $(CARGO) test -p haft-cli --test it hook_prompts:: -- --nocapture
	HAFT_SOAK=1 HAFT_NEEDS="$(CURDIR)/$(NEEDS)" $(CARGO) test -p haft-cli --test agents working_day:: -- --nocapture --test-threads=1
	HAFT_SOAK=1 $(CARGO) test -p haft --lib --all-features what_a_killed_process_left
	HAFT_SOAK=1 HAFT_NEEDS="$(CURDIR)/$(NEEDS)" $(CARGO) test -p haft-builtins --test lines
	HAFT_SOAK=1 HAFT_NEEDS="$(CURDIR)/$(NEEDS)" $(CARGO) test -p haft-cli -p haft-mcp --test it --all-features bounds:: -- --test-threads=1
	$(CARGO) build --profile serve -p haft-cli -p haft-mcp --bin haft --example fairness
	taskset --cpu-list 1 "$(or $(CARGO_TARGET_DIR),target)/serve/examples/fairness" "$(or $(CARGO_TARGET_DIR),target)/serve/haft" 4
	$(MAKE) --no-print-directory injection

## play prompt injections and ordinary tasks through haft, with the guard and without: some minutes
injection:
	$(CARGO) build --quiet -p haft-cli
	$(CARGO) run --quiet --locked --manifest-path benches/Cargo.toml -p injection --target-dir "$(or $(CARGO_TARGET_DIR),target)" -- \
	  "$(or $(CARGO_TARGET_DIR),target)/debug/haft"

## run what takes too long for every change: once a night
nightly: soak dogfood
	scripts/toolchains "$(or $(CARGO_TARGET_DIR),target)/serve/haft" --times

clean-needs:
	rm -rf $(NEEDS)
