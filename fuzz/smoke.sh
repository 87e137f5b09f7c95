#!/bin/sh
# Runs every fuzz target for some seconds (10 unless told), starting from the importers' samples and
# the experiments.
# Usage: fuzz/smoke.sh [SECONDS] [TARGET...]
#
# Works with stable Rust and g++ alone: coverage instrumentation is a stable code generation option,
# only the sanitizers need nightly, and the importers have no unsafe code for them to watch.
set -eu

seconds=${1:-10}
case $seconds in
'' | *[!0-9]* | 0)
    echo "fuzz/smoke.sh: '$seconds' is no number of seconds: write fuzz/smoke.sh 10" >&2
    exit 2
    ;;
esac
[ $# -eq 0 ] || shift

here=$(cd "$(dirname "$0")" && pwd)
samples=$here/../crates/raidlab-results/tests
cd "$here"
target=${CARGO_TARGET_DIR:-$here/target}

# What `cargo fuzz build --sanitizer none` passes, without having to install it first, and with more than one unit of code
# generation: the build is most of a smoke run.
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
for part in inline-8bit-counters pc-table trace-compares stack-depth; do
    coverage="$coverage -Cllvm-args=-sanitizer-coverage-$part"
done
coverage="$coverage -Cllvm-args=-simplifycfg-branch-fold-threshold=0 -Cdebug-assertions --cfg fuzzing"

# With a triple, build scripts and macros are built without the coverage.
triple=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS="${RUSTFLAGS:-} $coverage" cargo build --release --locked --target "$triple" --target-dir "$target"

all=
for file in fuzz_targets/*.rs; do
    all="$all $(basename "$file" .rs)"
done
targets=${*:-$all}
for name in $targets; do
    mkdir -p "corpus/$name" "artifacts/$name"
    seeds=
    [ ! -d "seeds/$name" ] || seeds=seeds/$name
    # New inputs go into the first directory; the samples are only read. A run that hangs for 10 s
    # or takes 1 GiB is a finding too.
    log=artifacts/$name.log
    if ! "$target/$triple/release/$name" \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
        -artifact_prefix="artifacts/$name/" \
        "corpus/$name" "$samples/raw" "$samples/samples" "$samples/reports" "$here/../experiments" $seeds >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        echo "fuzz/smoke.sh: $name found something; the input is in fuzz/artifacts/$name" >&2
        exit 1
    fi
    inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    echo "$name: $inputs inputs, no finding"
done
