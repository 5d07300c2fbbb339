# Two commands do all the set-up on a fresh machine: `make serve` and `make test`.

# The folder make was started in, also under `make -C`.
WORKSPACE ?= $(PWD)
CARGO ?= cargo
NEEDS := target/needs

.PHONY: serve test check bench fuzz soak needs clean-needs

## serve the folder you stand in over MCP, on embedded defaults; the first build takes some minutes
serve:
	$(CARGO) run --release -p haft-cli -- serve --workspace "$(WORKSPACE)" $(ARGS)

## everything that must hold: format, lints, tests, docs, dependencies
test: needs check
	HAFT_NEEDS="$(CURDIR)/$(NEEDS)" $(CARGO) test --workspace --all-features
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet
	@if [ -x $(NEEDS)/deny/bin/cargo-deny ]; then \
	  $(NEEDS)/deny/bin/cargo-deny check bans licenses sources; \
	else echo "SKIPPED: cargo-deny could not be installed; licences and sources were not checked"; fi

check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --all-features --quiet -- -D warnings

## what the tests drive: MCP clients in Python and Node, cargo-deny; installed below target/
needs:
	@scripts/needs "$(NEEDS)"

## figures against peers, in a workspace of its own; a peer that is missing makes it fail
bench:
	scripts/bench

## the fuzz targets at length (SECONDS each, default 60)
fuzz:
	HAFT_FUZZ_SECONDS=$(or $(SECONDS),60) $(CARGO) test --release --workspace --all-features fuzz -- --nocapture

## tests that know `HAFT_SOAK`, with far larger numbers, those of a review among them; each of them is listed here
soak: needs
	HAFT_SOAK=1 $(CARGO) test -p haft --lib --all-features what_a_killed_process_left
	HAFT_SOAK=1 HAFT_NEEDS="$(CURDIR)/$(NEEDS)" $(CARGO) test -p haft-builtins --test lines
	HAFT_SOAK=1 HAFT_NEEDS="$(CURDIR)/$(NEEDS)" $(CARGO) test -p haft-cli -p haft-mcp --test it --all-features bounds:: -- --test-threads=1

clean-needs:
	rm -rf $(NEEDS)
