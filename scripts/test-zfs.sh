#!/usr/bin/env bash
# ZFS in a guest: builds it for the guest's kernel unless the cache has it (minutes), tests its pools there, and prints the
# figures of ashift 9 and ashift 12, measured by ZFS itself beside the simulator and the published study.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/tools.sh zfs
out=${1:-demo-out}
mkdir -p "$out"
export RAIDLAB_CACHE=${RAIDLAB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/raidlab}

step() { printf '== %s (%s s so far)\n' "$*" "$SECONDS" >&2; }

step "raidlab"
raidlab=$(scripts/build.sh)
step "ZFS for the guest's kernel"
"$raidlab" vm setup --zfs
step "tests"
cargo clippy --release --locked --quiet -p raidlab --features test-zfs --test zfs -- -D warnings
cargo clippy --release --locked --quiet -p raidlab-host --features test-zfs --lib --tests -- -D warnings
cargo test --release --locked -p raidlab --features test-zfs --test zfs
step "ashift 9 against ashift 12"
"$raidlab" --store "$out/zfs.sqlite" run experiments/vm-zfs-ashift.toml --on vm --with-sim --fresh --html "$out/zfs.html"
step "done"
