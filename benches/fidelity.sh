#!/bin/sh
# Does a profile measure what the tool of its name measures?
#
# Runs raidlab and the tool alternately on the same file system, with the same sizes, and prints for
# each phase the median of the ratios raidlab / tool. A phase is faithful when that is within 10 %.
#
#   benches/fidelity.sh [bonnie] [tiobench] [dd] [hdparm]       all of them when none is named
#
#   RAIDLAB=PATH   the program to test; built when none is named
#   DIR=/var/tmp                     a directory with 4 x SIZE of free space
#   ROUNDS=10                        rounds; the order within a round alternates
#   SIZE=1024                        data set in MiB
#   MEMORY=256                       MiB of memory that both may use, page cache included: a control
#                                    group (v1 or v2) keeps the cache from answering, as bonnie++'s
#                                    "twice the memory" would. 0: no limit; SIZE must then be that
#   RATE=200 IOPS=4000               MiB and operations a second that the disk does, by the kernel's
#                                    throttling of the loop device, so that the disk is the limit as
#                                    disks are and not the processor. 0: as fast as DIR's disk is;
#                                    tools then differ by what they themselves cost
#   SEEKS=8192                       seeks of bonnie; without a limit give more, for bonnie++ prints no
#                                    figure of what takes less than 0.5 s
#   TIOTEST=tiotest                  a tiotest to compare with; left out when there is none
#
# The file system is ext4 on a loop device on a file in DIR, past the cache of that file.
#
# Needs root (control group, loop device, mount), bonnie++ 2.00a, hdparm, losetup, mkfs.ext4, GNU dd.
# Ends with 1 when a phase is not faithful, with 4 when something needed is missing, with 5 when
# raidlab failed.
#
# cached-read measures the processor alone: believe it on an idle machine only. hdparm also looks at
# one byte of each sector that it has read, which costs it a tenth there.
set -eu

ROUNDS=${ROUNDS:-10}
SIZE=${SIZE:-1024}
MEMORY=${MEMORY:-256}
RATE=${RATE:-200}
IOPS=${IOPS:-4000}
SEEKS=${SEEKS:-8192}
DIR=${DIR:-/var/tmp}
TIOTEST=${TIOTEST:-tiotest}
RAIDLAB=${RAIDLAB:-$("$(dirname "$0")/../scripts/build.sh")}
THREADS=4
MIB=1048576

die() {
    echo "fidelity: $*" >&2
    exit 4
}

[ "$(id -u)" = 0 ] || die "run it as root: it makes a control group and a loop device"
for tool in losetup mkfs.ext4 mount; do
    command -v $tool >/dev/null || die "$tool is missing"
done
[ -x "$RAIDLAB" ] || die "$RAIDLAB is not a program"
work=$(mktemp -d "$DIR/raidlab-fidelity.XXXXXX")
results=$work/results
disk=$work/disk
group=
loop=
v1=/sys/fs/cgroup/blkio

# Limits the loop device: bytes and operations a second, 0 for none. The first group's root knows
# limits, and there the write-back of all groups belongs; the second's has none, and gives write-back
# to the group that wrote.
throttle() {
    number=$(cat "/sys/class/block/${loop#/dev/}/dev")
    if [ -d $v1 ]; then
        for way in read write; do
            echo "$number $1" >$v1/blkio.throttle.${way}_bps_device
            echo "$number $2" >$v1/blkio.throttle.${way}_iops_device
        done
    elif [ -n "$group" ]; then
        bytes=$1 ops=$2
        [ "$1" != 0 ] || bytes=max
        [ "$2" != 0 ] || ops=max
        echo "$number rbps=$bytes wbps=$bytes riops=$ops wiops=$ops" >"$group/io.max"
    else
        return 1
    fi
}

cleanup() {
    mountpoint -q "$disk" 2>/dev/null && umount "$disk"
    if [ -n "$loop" ]; then
        throttle 0 0 2>/dev/null || true
        [ ! -f "${cache:-}/max_ratio" ] || { echo 100 >"$cache/max_ratio"; echo 0 >"$cache/strict_limit"; } 2>/dev/null || true
        losetup -d "$loop" || true
    fi
    [ -z "$group" ] || rmdir "$group" || true
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

if [ "$MEMORY" -gt 0 ]; then
    if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
        echo "+memory +io" >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || true
        group=/sys/fs/cgroup/raidlab-fidelity.$$
        limit=memory.max
    else
        group=/sys/fs/cgroup/memory/raidlab-fidelity.$$
        limit=memory.limit_in_bytes
    fi
    mkdir "$group" 2>/dev/null || { group=; die "no memory control group can be made here; set MEMORY=0 and a SIZE of twice the memory"; }
    echo $((MEMORY * MIB)) >"$group/$limit" || die "the memory control group takes no limit; set MEMORY=0"
fi

# Allocated, so that writing does not depend on what DIR's file system does with holes, and past the
# cache of the image, so that reading twice means reading twice.
fallocate -l $((SIZE * 3 * MIB)) "$work/image" || die "there is no room for an image of $((SIZE * 3)) MiB in $DIR"
loop=$(losetup --find --show --direct-io=on "$work/image") || die "no loop device can be made here"
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$loop"
mkdir "$disk"
mount "$loop" "$disk"
# A machine of so little memory would not let a quarter of it be dirty for one disk; the group alone
# does not hold writers back until its memory is full, and then at random. Linux 6.2 and later.
cache=/sys/class/bdi/$(cat "/sys/class/block/${loop#/dev/}/dev")
if [ "$MEMORY" -gt 0 ] && [ -f "$cache/max_bytes" ]; then
    echo $((MEMORY * MIB / 4)) >"$cache/max_bytes"
    echo 1 >"$cache/strict_limit"
fi
if [ "$RATE" -gt 0 ] || [ "$IOPS" -gt 0 ]; then
    throttle $((RATE * MIB)) "$IOPS" || die "the kernel does not limit devices here; set RATE=0 IOPS=0"
fi

# Runs a command within the memory limit.
limited() {
    if [ -n "$group" ]; then
        sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
    else
        "$@"
    fi
}

# Nothing left over from the run before: neither dirty pages nor cached ones.
settle() {
    sync
    echo 3 >/proc/sys/vm/drop_caches
}

# ours ROUND PROFILE PATH SETTING=VALUE...: appends "profile round raidlab phase rate" lines.
ours() {
    round=$1 profile=$2 path=$3
    shift 3
    settings=
    for setting in "$@"; do
        settings="$settings --set $setting"
    done
    # shellcheck disable=SC2086
    limited "$RAIDLAB" --store "$work/store.sqlite" bench "$path" --profile "$profile" --repeats 1 \
        --data "${DATA:-seeded}" $settings --csv >"$work/ours" 2>"$work/ours.err" ||
        { cat "$work/ours.err" >&2; exit 5; }
    awk -v p="$profile" -v r="$round" '
        # Splits a line of CSV: reasons have commas within quotes.
        function fields(line, list, n, quoted, i, c) {
            n = 1
            list[1] = ""
            quoted = 0
            for (i = 1; i <= length(line); i++) {
                c = substr(line, i, 1)
                if (c == "\"") quoted = !quoted
                else if (c == "," && !quoted) list[++n] = ""
                else list[n] = list[n] c
            }
            return n
        }
        NR == 1 { n = fields($0, names); for (i = 1; i <= n; i++) column[names[i]] = i; next }
        {
            fields($0, row)
            rate = row[column["rate_bytes_per_second"]]
            if (rate == "") rate = row[column["rate_per_second"]]
            print p, r, "raidlab", row[column["phase"]], rate
        }' "$work/ours" >>"$results"
}

# theirs PROFILE ROUND PHASE RATE
theirs() {
    echo "$1 $2 tool $3 $4" >>"$results"
}

bonnie_ours() {
    ours "$1" bonnie "$disk" "size=${SIZE}MiB" "seeks=$SEEKS" seek-time=0 fast=yes files=0 cold=no
}

bonnie_theirs() {
    limited bonnie++ -d "$disk" -s "${SIZE}m:8k:$SEEKS:5" -r 0 -n 0 -f -q -u root -x 1 2>/dev/null |
        awk -F, -v r="$1" '
            NF > 40 {
                print "bonnie", r, "tool block-write", $12 * 1024
                print "bonnie", r, "tool rewrite", $14 * 1024
                print "bonnie", r, "tool block-read", $18 * 1024
                print "bonnie", r, "tool seeks", $20
            }' >>"$results"
}

tiobench_ours() {
    ours "$1" tiobench "$disk" "size=${SIZE}MiB" threads=$THREADS block=4KiB random=20000 random-time=0 cold=no
}

tiobench_theirs() {
    limited "$TIOTEST" -d "$disk" -t $THREADS -f $((SIZE / THREADS)) -b 4096 -r $((20000 / THREADS)) -T |
        awk -F '[:,]' -v r="$1" '
            $1 == "write" { print "tiobench", r, "tool write", $2 * 1048576 / $3 }
            $1 == "read" { print "tiobench", r, "tool read", $2 * 1048576 / $3 }
            # By the operations that were asked for: 0.4.2 credits the whole file.
            $1 == "rwrite" { print "tiobench", r, "tool random-write", 20000 * 4096 / $3 }
            $1 == "rread" { print "tiobench", r, "tool random-read", 20000 * 4096 / $3 }' >>"$results"
}

dd_ours() {
    DATA=zeros ours "$1" dd "$disk" bs=1MiB "count=$SIZE" conv=fdatasync cold=no
}

# The rate is bytes by seconds: the printed one has two digits.
dd_rate() {
    LC_ALL=C awk '/copied/ { for (i = 1; i <= NF; i++) if ($i == "s,") print $1 / $(i - 1) }' "$work/dd"
}

dd_theirs() {
    for pass in first second; do
        rm -f "$disk/dd.file"
        LC_ALL=C limited dd if=/dev/zero of="$disk/dd.file" bs=1M count="$SIZE" conv=fdatasync 2>"$work/dd"
        written=$(dd_rate)
        LC_ALL=C limited dd if="$disk/dd.file" of=/dev/null bs=1M count="$SIZE" 2>"$work/dd"
        read=$(dd_rate)
    done
    : "$pass is kept"
    theirs dd "$1" write "$written"
    theirs dd "$1" read "$read"
    rm -f "$disk/dd.file"
}

hdparm_ours() {
    ours "$1" hdparm "$loop"
}

hdparm_theirs() {
    hdparm -tT "$loop" >"$work/hdparm"
    hdparm -tT --direct "$loop" >>"$work/hdparm"
    # MB in seconds: the printed rate is the same, but kB/sec below 1 MB/sec.
    awk -v r="$1" '
        / reads:/ {
            phase = /O_DIRECT cached/ ? "direct-cached-read" : /O_DIRECT/ ? "direct-read" : /cached/ ? "cached-read" : "buffered-read"
            sub(/.*reads:/, "")
            print "hdparm", r, "tool", phase, $1 * 1048576 / $4
        }' "$work/hdparm" >>"$results"
}

# report PROFILE: the table, and 1 when a phase is not within 10 %.
report() {
    awk -v p="$1" '
        $1 != p { next }
        $3 == "raidlab" { ours[$4, $2] = $5 }
        $3 == "tool" { tool[$4, $2] = $5; if (!($4 in seen)) { seen[$4] = 1; order[++phases] = $4 } }
        $2 > rounds { rounds = $2 }
        function sorted(list, n, i, j, t) {
            for (i = 2; i <= n; i++) {
                t = list[i]
                for (j = i - 1; j > 0 && list[j] > t; j--) list[j + 1] = list[j]
                list[j + 1] = t
            }
        }
        function median(list, n) {
            return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
        }
        END {
            printf "%-10s %-20s %14s %14s %8s %17s\n", p, "phase", "raidlab", "tool", "ratio", "(least - most)"
            bad = 0
            for (k = 1; k <= phases; k++) {
                phase = order[k]
                n = 0
                for (r = 1; r <= rounds; r++)
                    if (ours[phase, r] + 0 > 0 && tool[phase, r] + 0 > 0) {
                        n++
                        a[n] = ours[phase, r]; b[n] = tool[phase, r]; q[n] = a[n] / b[n]
                    }
                if (n == 0) { printf "%-10s %-20s NO PAIR OF FIGURES\n", "", phase; bad = 1; continue }
                sorted(a, n); sorted(b, n); sorted(q, n)
                ratio = median(q, n)
                faithful = ratio >= 0.9 && ratio <= 1.1
                if (!faithful) bad = 1
                printf "%-10s %-20s %14.0f %14.0f %8.3f   (%.3f - %.3f) %s\n", "", phase, median(a, n), median(b, n), ratio, q[1], q[n], faithful ? "" : "NOT WITHIN 10 %"
            }
            exit bad
        }' "$results"
}

profile() {
    name=$1
    round=1
    while [ $round -le "$ROUNDS" ]; do
        printf '\r%s: round %d of %d ' "$name" $round "$ROUNDS" >&2
        if [ $((round % 2)) = 1 ]; then
            settle; "${name}_ours" $round
            settle; "${name}_theirs" $round
        else
            settle; "${name}_theirs" $round
            settle; "${name}_ours" $round
        fi
        round=$((round + 1))
    done
    printf '\r%40s\r' '' >&2
    report "$name" || failed=1
}

failed=0
for name in ${*:-bonnie tiobench dd hdparm}; do
    case $name in
    bonnie)
        command -v bonnie++ >/dev/null || die "bonnie++ is missing: apt-get install bonnie++"
        ;;
    tiobench)
        if ! command -v "$TIOTEST" >/dev/null; then
            echo "tiobench   left out: there is no tiotest (set TIOTEST=)"
            continue
        fi
        ;;
    dd) ;;
    hdparm)
        command -v hdparm >/dev/null || die "hdparm is missing: apt-get install hdparm"
        ;;
    *) die "there is nothing to compare '$name' with: choose from bonnie, tiobench, dd, hdparm" ;;
    esac
    profile "$name"
done
exit $failed
