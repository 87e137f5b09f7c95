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

if ! cargo fuzz --version >/dev/null 2>&1; then
    tools=$target/tools
    PATH=$tools/bin:$PATH
    if ! cargo fuzz --version >/dev/null 2>&1; then
        echo "fuzz/smoke.sh: cargo-fuzz is missing; installing it into $tools"
        cargo install --quiet --locked --version "^0.13" --root "$tools" cargo-fuzz
    fi
fi

# The host's triple: cargo-fuzz may itself be built for another one (musl).
triple=$(rustc -vV | sed -n 's/^host: //p')
cargo fuzz build --sanitizer none --target "$triple"

targets=${*:-$(cargo fuzz list)}
for name in $targets; do
    mkdir -p "corpus/$name" "artifacts/$name"
    # New inputs go into the first directory; the samples are only read. A run that hangs for 10 s
    # or takes 1 GiB is a finding too.
    log=artifacts/$name.log
    if ! "$target/$triple/release/$name" \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
        -artifact_prefix="artifacts/$name/" \
        "corpus/$name" "$samples/raw" "$samples/samples" "$here/../experiments" >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        echo "fuzz/smoke.sh: $name found something; the input is in fuzz/artifacts/$name" >&2
        exit 1
    fi
    inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    echo "$name: $inputs inputs, no finding"
done
