#!/usr/bin/env bash
# The property tests again and again, each round with seeds of its own: `scripts/soak.sh ROUNDS`. CI runs them with one seed
# (scripts/test.sh), so that it fails for what was changed and not for what was drawn; this looks for more. Each test takes as
# many cases as it says, or PROPTEST_CASES where that is set (some take a second a case). Ends with the first round that fails.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-10}
unset PROPTEST_RNG_SEED
packages=(core experiment host io layout nbd results sim stats vm)

# Names of the tests within `proptest!`.
names=$(find crates -name '*.rs' -print0 | sort -z | xargs -0 awk '
  FNR == 1 { within = 0; test = 0; name = "" }
  /proptest! *\{/ { within = 1 }
  /^}/ { within = 0 }
  within && /^ *#\[test\]/ { test = 1 }
  /^ *(pub )?fn [a-z_0-9]+/ {
    match($0, /fn [a-z_0-9]+/); name = substr($0, RSTART + 3, RLENGTH - 3)
    if (within && test) print name
    test = 0
  }
  /proptest! *\(/ { print name }' | sort -u)
for round in $(seq "$rounds"); do
  printf 'round %s of %s, %s tests\n' "$round" "$rounds" "$(wc -l <<<"$names")" >&2
  # shellcheck disable=SC2086 # one argument a name
  INSTA_UPDATE=no cargo test --locked --no-fail-fast -q \
    $(printf -- '-p raidlab-%s ' "${packages[@]}") --lib --tests -- $names
done
echo "$rounds rounds passed"
