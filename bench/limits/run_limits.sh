#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run_limits.sh: print what this machine does without any library, as a table.
# Name, figure, unit, the rows of bench/compare.py that it bounds ("-": none by itself), and a description.
#
#   bench/limits/run_limits.sh [--quick] [--hosts] BUILDDIR
#
# --quick: a few rounds each, to see that they work. --hosts: sockets between two simulated hosts, too
# (tests/hosts.sh; needs root). Exit code 1 if a program failed.
set -u
quick=
hosts=
while :; do
    case ${1-} in
    --quick) quick=--quick ;;
    --hosts) hosts=yes ;;
    *) break ;;
    esac
    shift
done
[ $# -eq 1 ] && [ -x "$1/bench/limits/flag" ] ||
    { echo "usage: bench/limits/run_limits.sh [--quick] [--hosts] BUILDDIR (a built one)" >&2; exit 2; }
src=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
bad=0

# Rows of bench/compare.py (its --list names them) that are to be held against a figure: what is between is ours to lose.
table() {
    awk 'BEGIN {
        split("flag lat8 flag_8B lat8,sig8near miss_load getlat8 miss_fetch_add faddlat8 " \
              "copy_mapped_64K lat64ka copy_mapped_1M lat1ma,bw1ma,bibw1ma,putbw1m,getbw1m copy_cma_64K lat64k " \
              "copy_cma_1M lat1m,bw1m,bibw1m yield_8 ar8 yield_random_64 random64 wake_futex_1s wake net_8B tcplat8 " \
              "net_stream tcplat1m,tcpbw net_rate_1 tcprate8 start_2 true2 start_pmix_2 init2", list)
        for (i = 1; list[i] != ""; i += 2)
            bounds[list[i]] = list[i + 1]
        format = "%-24s %9s %-5s %-36s %s\n"
        printf format, "limit", "figure", "unit", "bounds", "what it is"
    }
    {
        what = $0
        sub(/^[^ ]+ +[^ ]+ +[^ ]+ +/, "", what)
        printf format, $1, $2, $3, $1 in bounds ? bounds[$1] : "-", what
        fflush()
    }'
}

all() {
    for p in flag miss copy_mapped copy_ways copy_cma copy_ring copy_cached reduce_slices yield wake tcp start; do
        "$build/bench/limits/$p" $quick || bad=1
    done
    [ -n "$hosts" ] || return $bad
    # shellcheck disable=SC2016 # they are for the shell that it starts
    top_srcdir=$src top_builddir=$build "$src/tests/hosts.sh" run 2 bash -c '
        "$0" exec hostb "$1/bench/limits/tcp" --serve 7000 &
        read -r address _ < <("$0" list | grep -w hostb)
        "$0" exec hosta "$1/bench/limits/tcp" --to "$address" 7000 $2 && wait $!' \
        "$src/tests/hosts.sh" "$build" "$quick" | sed 's/^tcp/net/; s/over a socket/between two hosts/'
    [ "${PIPESTATUS[0]}" = 0 ] || bad=1
    return $bad
}

all | table
exit "${PIPESTATUS[0]}"
