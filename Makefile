# Two commands matter: `make demo` and `make test`.
CARGO ?= cargo
DEMO_OUT ?= demo-out

.PHONY: demo test build tools lint unit fuzz-smoke fidelity engine clean

## Measure this machine's disk with two profiles, print the table, write demo-out/report.html.
demo: tools
	@scripts/demo.sh $(DEMO_OUT)

## Everything CI checks; the last line says how many tests ran.
test: tools
	@scripts/test.sh

build: tools
	$(CARGO) build --release -p raidlab

## Installs what is missing (a C compiler for SQLite; nothing when it is there).
tools:
	@scripts/tools.sh

lint: tools
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

unit: tools
	$(CARGO) test --workspace --locked

## A few seconds of each fuzz target.
fuzz-smoke:
	fuzz/smoke.sh 5

## raidlab's profiles beside the tools they are named after, interleaved.
fidelity: build
	benches/fidelity.sh

clean:
	$(CARGO) clean
	rm -rf $(DEMO_OUT)
