#!/usr/bin/env bash
# Formatting, lints, documentation, every test, and a short fuzz run; the last line counts the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/tools.sh test

step() { printf '== %s\n' "$*" >&2; }

step "format"
cargo fmt --all --check
step "lints"
cargo clippy --workspace --all-targets --locked -- -D warnings
step "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked --quiet

log=$(mktemp)
trap 'rm -f "$log"' EXIT
step "tests"
status=0
# One seed for all property tests: a red run is the change's doing. `make soak` draws others.
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-20021008}
INSTA_UPDATE=no cargo test --workspace --locked --no-fail-fast 2>&1 | tee "$log" || status=$?

step "fuzz smoke"
fuzz/smoke.sh 3 || status=$?

# What this kernel cannot show (UNTESTED, with the test's name) counts as skipped, though the harness calls it passed, unless
# the same test has passed in a guest (TESTED).
untested=$({ grep -aoE '(UN)?TESTED [a-z_0-9]+:.*' "$log" || true; } |
  awk '$1 == "TESTED" { shown[$2] = 1 } $1 == "UNTESTED" { left[$2] = $0 }
    END { for (name in left) if (!(name in shown)) print left[name] }')
# `cargo test` prints one result line for each binary; this is their sum.
summary=$(awk -v untested="$(printf '%s' "$untested" | grep -c . || true)" '/^test result:/ {
    for (i = 1; i <= NF; i++) {
      if ($(i + 1) == "passed;") passed += $i
      if ($(i + 1) == "failed;") failed += $i
      if ($(i + 1) == "ignored;") ignored += $i
    }
  }
  END { printf "%d passed, %d failed, %d skipped", passed - untested, failed, ignored + untested }' "$log")
if [ -n "$untested" ]; then
  printf '%s\n' "$untested" >&2
  [ -z "${CI:-}" ] || status=1
fi
# A test that needed something it did not find says SKIPPED with its name; in CI nothing may.
if [ -n "${CI:-}" ] && grep -a '^SKIPPED' "$log" >&2; then
  echo "tests were skipped in CI" >&2
  status=1
fi
# What failed and why stands beside the sum: whoever sees only the end of the output must not have to run it again to know.
if [ "$status" -ne 0 ]; then
  # Without the calls that led there, which are many and have no words: a report that is cut short would keep them and lose the message.
  awk '/^---- .* stdout ----$/ { lines = 40 } /^failures:$/ { lines = 0 }
    /^stack backtrace:$/ || /^ +[0-9]+: / || /^ +at / { next }
    lines > 0 { print; lines-- }' "$log" >&2
  # A test program that was killed, or never built, has an error of cargo's alone.
  grep -aE '^(test .* \.\.\. FAILED|error(\[.*\])?: .*)$' "$log" >&2 || true
fi
echo "$summary"
exit "$status"
