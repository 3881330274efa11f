#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# hang_hosts.sh: report a cycle of waits that spans two hosts, without any option.
. "$(dirname "$0")/../inside.sh"
inside 2 "a hang on two hosts"
. "$(dirname "$0")/cases.sh"
job=$top_builddir/tests/launcher/programs/hang_job

# on_two LIMIT ARGS...: xrun on hosta and hostb
on_two() {
    local limit=$(($1 * slow))
    shift
    on hosta timeout -k 5 "$limit" env XDG_RUNTIME_DIR="$work/tmp" "$XRUN" --host hosta:2,hostb:2 "$@" >out 2>err </dev/null
    rc=$?
}
explained() { # NAME
    local r lines=0
    for r in 0 1 2 3; do
        lines=$((lines + $(grep -cE "^xrun: rank $r: no progress for [0-9.]+ s: receive of 4 bytes on world, tag 0, waits for rank $(((r + 1) % 4))\$" err)))
    done
    [ $rc = 124 ] && [ $lines = 4 ] && [ "$(grep -c '^xrun: cycle: 0 -> 1 -> 2 -> 3 -> 0$' err)" = 1 ] &&
        good "$1" || bad "$1" "exit code $rc, $lines lines of ranks"
}
on_two 60 -n 4 --timeout $((32 * slow)) "$job" ring
explained "a ring over two hosts, by default"
# UCX's keepalive is no progress.
on_two 60 -n 4 --timeout $((40 * slow)) -x UCX_KEEPALIVE_INTERVAL=7s "$job" ring
explained "a ring over two hosts that UCX keeps alive"
on_two 60 -n 4 --timeout $((10 * slow)) --heartbeat 2 "$job" ring
explained "a ring over two hosts, with a heartbeat"
on_two 60 -n 4 "$job" sleep $((28 * slow))
[ $rc = 0 ] && ! grep -q 'no progress' err && good "a rank of another host that sleeps" || bad "a rank of another host that sleeps" "exit code $rc"

echo "# $passed passed, $failed failed"
[ $failed = 0 ]
