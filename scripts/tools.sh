#!/usr/bin/env bash
# Installs what the build needs and this machine lacks. Debian packages only; says what it does.
set -euo pipefail

missing=()
# need PROGRAM PACKAGE...: the packages, unless the program is there.
need() {
  local program=$1
  shift
  PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null 2>&1 || missing+=("$@")
}

need cc gcc libc6-dev
if [ "${1:-}" = test ]; then
  # `make test` drives loop devices and file systems.
  need losetup mount
  need g++ g++
  need fio fio
  # The shells that complete commands.
  need zsh zsh
  need fish fish
  # What holds devices, in a guest where the kernel has it: the gates before a device are tested with it.
  need dmsetup dmsetup
  need lvm lvm2
  need cryptsetup cryptsetup-bin
fi
if [ "${1:-}" = zfs ]; then
  # A module for the guest's kernel is compiled with the compiler that the kernel was (Debian 12: gcc-12, which is its gcc).
  need make make
  need strip binutils
  need perl perl
  need awk mawk
fi
if [ "${1:-}" = test ] || [ "${1:-}" = vm ] || [ "${1:-}" = zfs ]; then
  # Real kernels in virtual machines, with the tools that build and measure arrays.
  need mkfs.ext4 e2fsprogs
  need qemu-system-x86_64 qemu-system-x86
  # ... and modelled disks over NBD, with other people's clients.
  need qemu-img qemu-utils
  need nbdinfo libnbd-bin
  need mdadm mdadm
  need mkfs.xfs xfsprogs
  need mkfs.btrfs btrfs-progs
  need sgdisk gdisk
  need hdparm hdparm
  need bonnie++ bonnie++
  [ -x /usr/bin/busybox ] || [ -x /bin/busybox ] || missing+=(busybox-static)
fi

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# A newer qemu-utils (from backports) than the distribution's qemu-system-x86 is in the way of it. In CI it
# gives way; on a person's machine that is the person's decision.
qemu() {
  local version
  version=$(apt-cache policy qemu-system-x86 | sed -n 's/^ *Candidate: //p')
  if [ -n "${CI:-}" ]; then
    as_root apt-get install -y -qq --no-remove --allow-downgrades "qemu-utils=$version" "qemu-system-x86=$version" >/dev/null
  else
    echo "qemu-system-x86 cannot be installed beside the qemu-utils that is here; this would do:" >&2
    echo "  apt-get install --allow-downgrades qemu-utils=$version qemu-system-x86=$version" >&2
    exit 4
  fi
}

if [ ${#missing[@]} -gt 0 ]; then
  echo "installing ${missing[*]}" >&2
  export DEBIAN_FRONTEND=noninteractive
  as_root apt-get update -qq
  # Never at the price of what is there: apt would remove a program that is in the way without a question.
  if ! as_root apt-get install -y -qq --no-remove "${missing[@]}" >/dev/null; then
    case " ${missing[*]} " in *" qemu-system-x86 "*) qemu ;; *) exit 4 ;; esac
    as_root apt-get install -y -qq --no-remove "${missing[@]}" >/dev/null
  fi
fi
# Guests boot the distribution's kernel package, which apt must know.
if [ -n "${1:-}" ] && ! apt-cache show linux-image-cloud-amd64 >/dev/null 2>&1; then
  as_root apt-get update -qq
fi
if ! command -v cargo >/dev/null 2>&1; then
  echo "cargo is missing: install Rust (https://rustup.rs), 1.88 or newer" >&2
  exit 4
fi
