#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# two_level_hosts.sh: run collectives on two levels over three hosts.
# Ranks lie in blocks, dealt round robin, and unevenly; the messages between hosts travel over TCP.
# On each host the phases run in shared memory, as the debug log has it; without arenas they are messages.
. "$(dirname "$0")/../inside.sh"
inside 3 "collectives over three hosts"
. "$top_srcdir/tests/launcher/cases.sh"
all=
for c in barrier bcast reduce allreduce allgather reduce_scatter alltoall; do all="$all,$c:two_level"; done

# run NAME RANKS LEADERS XRUN-OPTION...: LEADERS are the first ranks of hosts with several; they report chunks in cells
run() {
    local name=$1 n=$2 leaders=$3 r most
    shift 3
    new_case
    on hosta timeout -k 5 $((90 * slow)) env XDG_RUNTIME_DIR="$work/tmp" RANK_LOG=debug RANK_COLL="${all#,}" "$XRUN" -q -n "$n" "$@" \
        "$top_builddir/tests/coll/mp_coll.mp" >out 2>err </dev/null
    rc=$?
    check "$name" 0
    # The teams of all ranks do have two levels.
    if grep -q "two_level cannot do a .* with $n ranks: needs several hosts" err; then
        bad "$name: the hosts are known" "$(grep -m 3 two_level err)"
    fi
    for r in $leaders; do
        most=$(sed -n "s/^.*rank $r (.*: \([0-9]*\) chunks went through the cells of .*/\1/p" err | sort -n | tail -1)
        [ "${most:-0}" -ge 100 ] || bad "$name: rank $r shares cells" "at most ${most:-no} chunks"
    done
    if [ -z "$leaders" ] && grep -q 'use shared memory' err; then
        bad "$name: no host uses shared memory" "$(grep -m 3 'use shared memory' err)"
    fi
}

run "two hosts, blocks of three" 6 "0 3" --host hosta:3,hostb:3
run "two hosts, round robin" 4 "0 1" --host hosta:2,hostb:2 --map-by node
run "three hosts of one, two and three ranks" 6 "1 3" --host hosta:1,hostb:2,hostc:3
run "three hosts, round robin, of two ranks and one" 5 "0 1" --host hosta:2,hostb:2,hostc:1 --map-by node
run "two hosts without arenas" 4 "" --host hosta:2,hostb:2 -x RANK_COLL_SHM=off
run "two hosts without shared memory" 4 "" --host hosta:2,hostb:2 -x RANK_CHANNELS=ucx,self

# The first call of a team may be any, and several may be under way before its hosts are known.
new_case
on hosta timeout -k 5 $((90 * slow)) env XDG_RUNTIME_DIR="$work/tmp" "$XRUN" -q -n 4 --host hosta:2,hostb:2 \
    "$top_builddir/tests/coll/coll_many.mp" --calls 400 --teams 300 >out 2>err </dev/null
rc=$?
check "many calls and teams on two hosts" 0
echo "# two_level_hosts: $passed passed, $failed failed"
[ $failed -eq 0 ]
