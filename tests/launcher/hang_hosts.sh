#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# hang_hosts.sh: report a cycle of waits that spans two hosts, without any option.
. "$(dirname "$0")/../inside.sh"
inside 2 "a hang on two hosts"
. "$(dirname "$0")/cases.sh"
job=$top_builddir/tests/launcher/programs/hang_job

# on_two ARGS...: xrun on hosta and hostb
on_two() {
    on hosta timeout -k 5 $((90 * slow)) env XDG_RUNTIME_DIR="$work/tmp" "$XRUN" --host hosta:2,hostb:2 "$@" >out 2>err </dev/null
    rc=$?
}
# explained NAME ARGS...: a ring is explained, and ended then
explained() {
    local name=$1 r lines=0
    shift
    : >err
    on_two -n 4 "$@" "$job" ring &
    until_true 80 grep -q '^xrun: cycle:' err
    for r in 0 1 2 3; do
        lines=$((lines + $(grep -cE "^xrun: rank $r: no progress for [0-9.]+ s: receive of 4 bytes on world, tag 0, waits for rank $(((r + 1) % 4))\$" err)))
    done
    [ $lines = 4 ] && [ "$(grep -c '^xrun: cycle: 0 -> 1 -> 2 -> 3 -> 0$' err)" = 1 ] && good "$name" || bad "$name" "$lines lines of ranks"
    on hosta pkill -TERM -x xrun
    wait
}
explained "a ring over two hosts, by default"
# UCX's keepalive is no progress.
explained "a ring over two hosts that UCX keeps alive" -x UCX_KEEPALIVE_INTERVAL=7s
explained "a ring over two hosts, with a heartbeat" --heartbeat 2
on_two -n 4 "$job" sleep $((28 * slow))
[ $rc = 0 ] && ! grep -q 'no progress' err && good "a rank of another host that sleeps" || bad "a rank of another host that sleeps" "exit code $rc"

echo "# $passed passed, $failed failed"
[ $failed = 0 ]
