#!/usr/bin/env bash
# Builds raidlab for use and prints where the program is: cargo's target directory can be elsewhere, by
# CARGO_TARGET_DIR or by a configuration file.
set -euo pipefail
cd "$(dirname "$0")/.."
echo "building raidlab (release) ..." >&2
cargo build --release --locked --quiet -p raidlab >&2
directory=$(cargo metadata --no-deps --locked --format-version 1 |
  sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
echo "$directory/release/raidlab"
