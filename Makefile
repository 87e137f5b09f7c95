# Two commands matter: `make demo` and `make test`. `make demo-vm` needs QEMU.
CARGO ?= cargo
DEMO_OUT ?= demo-out

.PHONY: demo demo-vm test test-zfs soak build release-pgo tools tools-vm lint unit fuzz-smoke fidelity clean

## Predict an experiment, measure this machine's disk with two profiles, print the table; both reports as
## HTML in demo-out/.
demo: tools
	@scripts/demo.sh $(DEMO_OUT)

## Five layouts of four modelled disks, on a real kernel in a virtual machine beside the simulator.
demo-vm: tools-vm
	@scripts/demo-vm.sh $(DEMO_OUT)

## Everything CI checks; the last line says how many tests ran.
test: tools
	@scripts/test.sh

## ZFS in a guest: built unless the cache has it (minutes), its pools tested, ashift 9 and 12 measured.
test-zfs:
	@scripts/test-zfs.sh $(DEMO_OUT)

## The property tests in ten rounds, each with new seeds; CI has one.
soak: tools
	@scripts/soak.sh 10

build: tools
	$(CARGO) build --release -p raidlab

## The program laid out by a profile of itself at work: simulates faster, takes three times as long to build. Prints where it is.
release-pgo: tools
	@scripts/release-pgo.sh

## Installs what is missing (a C compiler for SQLite; nothing when it is there).
tools:
	@scripts/tools.sh

## And what virtual machines need.
tools-vm:
	@scripts/tools.sh vm

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
