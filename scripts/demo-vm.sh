#!/usr/bin/env bash
# Builds raidlab, runs single, RAID0, RAID1, RAID5 and RAID10 of four modelled disks on a real kernel in a virtual
# machine and on the simulator, and prints one table with both. Leaves nothing but its own small store.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-demo-out}
mkdir -p "$out"
raidlab=$(scripts/build.sh)
exec "$raidlab" --store "$out/vm.sqlite" run experiments/vm-levels.toml \
  --on vm --with-sim --fresh --html "$out/vm.html"
