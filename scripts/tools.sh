#!/usr/bin/env bash
# Installs what the build needs and this machine lacks. Debian packages only; says what it does.
set -euo pipefail

missing=()
command -v cc >/dev/null 2>&1 || missing+=(gcc libc6-dev)
# `make test` drives loop devices and file systems.
if [ "${1:-}" = test ]; then
  command -v losetup >/dev/null 2>&1 || [ -x /usr/sbin/losetup ] || missing+=(mount)
  command -v mkfs.ext4 >/dev/null 2>&1 || [ -x /usr/sbin/mkfs.ext4 ] || missing+=(e2fsprogs)
  command -v g++ >/dev/null 2>&1 || missing+=(g++)
fi
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing ${missing[*]}" >&2
  if [ "$(id -u)" = 0 ]; then as_root=""; else as_root=sudo; fi
  $as_root apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq "${missing[@]}" >/dev/null
fi
if ! command -v cargo >/dev/null 2>&1; then
  echo "cargo is missing: install Rust (https://rustup.rs), 1.88 or newer" >&2
  exit 4
fi
