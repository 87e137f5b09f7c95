#!/usr/bin/env bash
# Builds raidlab with a profile of itself at work, and prints where the program is: `scripts/release-pgo.sh`.
#
# A first build counts which ways it goes while it simulates what users do (studies, experiments, the benchmarks); a second one
# is laid out by these counts. Takes three times as long as `cargo build --release`, which is left alone, as is what it has built. Fails
# when the two builds do not print the same simulated figures.
set -euo pipefail
cd "$(dirname "$0")/.."
rustc=${RUSTC:-rustc}
host=$("$rustc" -vV | sed -n 's/^host: //p')
llvm=$("$rustc" -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')

step() { printf '== %s (%s s so far)\n' "$*" "$SECONDS" >&2; }

# The llvm-profdata that reads what this rustc writes: formats change with LLVM's major version.
profdata() {
  local candidate says
  for candidate in "$("$rustc" --print sysroot)/lib/rustlib/$host/bin/llvm-profdata" "llvm-profdata-$llvm" \
    "/usr/lib/llvm-$llvm/bin/llvm-profdata" llvm-profdata; do
    says=$("$candidate" --version 2>/dev/null) || continue
    case $says in *"LLVM version $llvm."*) echo "$candidate" && return ;; esac
  done
  echo "no llvm-profdata of LLVM $llvm, which $("$rustc" -V) has; one of these would do:" >&2
  echo "  rustup component add llvm-tools        (where rustup installed Rust)" >&2
  echo "  apt-get install llvm-$llvm             (a distribution or apt.llvm.org that has it)" >&2
  exit 4
}
profdata=$(profdata)

work=$(cargo metadata --no-deps --locked --format-version 1 |
  sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')/pgo
mkdir -p "$work"
rm -rf "$work/counts"

# build NAME FLAG: raidlab and two benchmarks with a flag more, as links raidlab, machine and disk in NAME. A target is named so
# that build scripts and macros, which run while it builds, are not counted; both builds name the same packages, so that functions
# are called the same in both.
build() {
  local name=$1 flag=$2 file
  mkdir -p "$work/$name"
  RUSTFLAGS="${RUSTFLAGS:-} $flag" cargo build --release --locked --quiet --target "$host" --target-dir "$work/$name" \
    -p raidlab --bin raidlab -p raidlab-sim --bench machine --bench disk --message-format json-render-diagnostics |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | while read -r file; do
    ln -sf "$file" "$work/$name/$(basename "$file" | sed 's/-[0-9a-f]*$//')"
  done
}

log=$work/stderr.txt
store=$(mktemp -d)
trap 'rm -rf "$store"' EXIT

# quietly COMMAND...: progress goes to a file, of which the end is shown when the command fails.
quietly() {
  "$@" 2>"$log" || { echo "failed: $*" >&2 && tail -n 5 "$log" >&2 && exit 1; }
}

# work_with NAME: what a build prints of a minute of the work that users have for it, without the times that it took.
# One thread, since threads would lose counts of each other.
work_with() {
  local bin=$work/$1 experiment bench
  quietly "$bin/raidlab" reference run pata-raid0 scsi-hdbench -n 1 -j 1
  for experiment in home-lab zfs-ashift state-rebuilding state-degraded vm-levels; do
    quietly "$bin/raidlab" --store "$store/$1.sqlite" run "experiments/$experiment.toml" --on sim -n 1 -j 1 --fresh
  done
  for bench in machine disk; do
    quietly "$bin/$bench" --count | sed 's/ [ 0-9.]* M .*(/ (/'
  done
}

# One profile of all that was counted, each run weighted to the same sum: else the longest would decide what is hot for all, and
# what the others do most would be laid out as what is seldom done.
merge() {
  local file most=0 inputs=()
  local -A sums=()
  for file in "$work"/counts/*.profraw; do
    "$profdata" merge -o "$work/one.profdata" "$file"
    sums[$file]=$("$profdata" show --detailed-summary "$work/one.profdata" | sed -n 's/^Total count: //p')
    if [ "${sums[$file]}" -gt "$most" ]; then most=${sums[$file]}; fi
  done
  for file in "$work"/counts/*.profraw; do
    inputs+=("-weighted-input=$((most / sums[$file])),$file")
  done
  "$profdata" merge -o "$work/new.profdata" "${inputs[@]}"
  rm "$work/one.profdata"
}

step "a build that counts"
build counting "-Cprofile-generate=$work/counts"
step "counting"
LLVM_PROFILE_FILE=$work/counts/%m_%p.profraw work_with counting >"$work/counting.txt"
merge
# Named after what is in it: cargo looks at flags, not into the files that they name.
profile=$work/$(sha256sum "$work/new.profdata" | cut -c1-16).profdata
rm -f "$work"/????????????????.profdata
mv "$work/new.profdata" "$profile"
step "a build by these counts"
build fast "-Cprofile-use=$profile"
step "the same figures?"
work_with fast >"$work/fast.txt"
if ! cmp -s "$work/counting.txt" "$work/fast.txt"; then
  echo "the two builds do not simulate the same:" >&2
  diff "$work/counting.txt" "$work/fast.txt" | head -20 >&2
  exit 1
fi
rm -rf "$work/counts"
step "done; the same $(wc -l <"$work/fast.txt") lines of figures of both builds"
echo "$work/fast/raidlab"
