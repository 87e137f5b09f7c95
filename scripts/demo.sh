#!/usr/bin/env bash
# Builds raidlab, predicts an experiment of four disks on modelled disks, then measures the disk under a
# directory of this checkout with two profiles, prints the table and writes two HTML reports. Three rounds
# on a fast disk; a slow one gets as many as begin within the budget, so that all of it ends within two
# minutes. Leaves nothing but the reports and its own small store.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-demo-out}
mkdir -p "$out"
raidlab=$(scripts/build.sh)
echo "predicting experiments/home-lab.toml: RAID5, RAID6 or RAID10 of four disks?" >&2
"$raidlab" --store "$out/results.sqlite" run experiments/home-lab.toml --on sim --repeats 5 --fresh \
  --html "$out/prediction.html" > "$out/prediction.txt"
echo "measuring the disk under $out" >&2
"$raidlab" doctor "$out" || true
"$raidlab" --store "$out/results.sqlite" bench "$out" \
  --profile bonnie,random --repeats 3 --budget 50s \
  --size 1GiB --files 1 --fast --set seeks=2048 \
  --block-size 8KiB --depth 16 --runtime 3s \
  --html "$out/report.html"
echo "measured: $out/report.html; predicted: $out/prediction.html" >&2
