#!/usr/bin/env bash
# Builds raidlab, measures the disk under a directory of this checkout with two profiles, prints the
# table and writes an HTML report. Three rounds on a fast disk; a slow one gets as many as begin within
# the budget, so that measuring ends within two minutes. Leaves nothing but the report and its own small store.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-demo-out}
mkdir -p "$out"
echo "building raidlab (release) ..." >&2
cargo build --release --locked --quiet -p raidlab
raidlab=target/release/raidlab
"$raidlab" doctor "$out" || true
exec "$raidlab" --store "$out/results.sqlite" bench "$out" \
  --profile bonnie,random --repeats 3 --budget 50s \
  --size 1GiB --files 1 --fast --set seeks=2048 \
  --block-size 8KiB --depth 16 --runtime 3s \
  --html "$out/report.html"
