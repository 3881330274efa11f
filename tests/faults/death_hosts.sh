#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# death_hosts.sh: kill ranks on another host inside each kind of call.
# Also a host that is cut off, and random programs between hosts (FULL=1: over slow cables). Each death is reported within
# the 10 s that are promised between hosts.
. "$(dirname "$0")/../inside.sh"
inside 2 "deaths on other hosts"
. "$(dirname "$0")/../launcher/cases.sh"
. "$top_srcdir/tests/left.sh"
remember hosta hostb

# job LIMIT ARGS...: four ranks on two hosts (or as n and at give), with out, rc and ms
n=4 at=hosta:2,hostb:2
job() {
    local limit=$(($1 * slow)) t0=${EPOCHREALTIME/./} lib=()
    shift
    [ -z "${LD_LIBRARY_PATH:-}" ] || lib=(-x "LD_LIBRARY_PATH=$LD_LIBRARY_PATH")
    on hosta timeout -k 5 "$limit" env XDG_RUNTIME_DIR=/run "$XRUN" -q --bind none --on-failure continue \
        --host $at -n $n "${lib[@]}" "$@" >out 2>err </dev/null
    rc=$?
    ms=$(((${EPOCHREALTIME/./} - t0) / 1000))
}
# verdict NAME DONE CODES...: so many ranks came to their end
verdict() {
    local name=$1 done=$2
    shift 2
    case " $* " in *" $rc "*) ;; *) bad "$name" "exit code $rc, not $*; $ms ms"; return ;; esac
    if [ "$(grep -c 'mp: done$' out)" != "$done" ]; then
        bad "$name" "$(grep -c 'mp: done$' out) ranks came to their end, not $done: $(grep seed out)"
    elif grep -qE 'Sanitizer|runtime error:' err; then
        bad "$name" "a sanitizer spoke"
    elif ! until_true 10 none_left; then
        bad "$name" "left behind: $(left)"
        sweep
    else
        good "$name, $ms ms"
    fi
}

within=$((5 * slow)) # of the 10 s; the rest is for going on and leaving
dies() { # PROGRAM ARGS
    job 40 "$top_builddir/tests/faults/$1.mp" "${@:2}" --within $within
    verdict "$*" 3 137
}
dies death_in_call --in stream
dies death_in_call --in stream-300K
dies death_in_call --in any-source --victim 0
dies death_in_call --in put
dies death_in_call --in fetch-add
dies death_in_call --in signal
dies death_of_origin
dies death_of_origin --alloc
dies death_rndv_early --after 30000
job 40 "$top_builddir/tests/faults/death_twice.mp"
verdict "two deaths" 2 137
job 40 -x RANK_RNDV_UNEXPECTED_MAX=0 "$top_builddir/tests/faults/death_pending_requests.mp" --within $within
verdict "requests of every kind" 3 137
# in_turn WORD...: all of them; if runs take turns, the one of this turn
in_turn() { if [ -n "${TURN:-}" ]; then shift $((TURN / turns % $#)); echo "$1"; else echo "$@"; fi; }
if [ -n "${FULL:-}" ]; then
    for victim in $(in_turn 3 0); do
        dies death_in_call --in echo-5M --victim $victim
        dies death_in_call --in ssend --victim $victim
        dies death_in_call --in sends-asleep --victim $victim
        dies death_in_call --in allreduce --victim $victim
        dies death_in_call --in waitany --victim $victim
        dies death_in_call --in test --victim $victim
    done
    for call in get many vector put-signal any-signal value; do dies death_in_call --in $call; done
fi

# Collectives on two levels: a phase in shared memory, one between hosts, and one in shared memory. Eleven of twelve ranks die,
# one after the other, each at a random step of any of them.
forced=
for c in barrier bcast reduce allreduce allgather reduce_scatter alltoall; do forced="$forced,$c:two_level"; done
n=12 at=hosta:6,hostb:6
for first in 0 ${FULL:+$(in_turn 4 8 12)}; do
    job 90 -x RANK_COLL="${forced#,}" -x RANK_LOG=debug "$top_builddir/tests/faults/death_in_coll.mp" --first $first \
        --seed $((SRANDOM % 1000000)) --within $within
    verdict "collectives on two levels, from kind $first" 1 137
    grep -q 'its 6 ranks on this one use shared memory' err || bad "collectives on two levels" "no host uses shared memory: $(tail -n 3 err)"
done

# Each call that waits, with a victim of its own on the other host. Many have sent nothing to the victim before it dies: what
# comes then is dead, and not unreachable, though the news of the death may still be on its way.
n=32 at=hosta:2,hostb:30
for how in "" ${FULL:+--asleep}; do
    job 90 -x RANK_RNDV_UNEXPECTED_MAX=0 "$top_builddir/tests/faults/death_in_wait.mp" $how --within $within
    verdict "each call that waits${how:+, victims asleep}" 2 137
done
n=4 at=hosta:2,hostb:2

# The lock of the example, in the hands of a rank that dies; its memory is at rank 0, on the other host.
job 40 "$top_builddir/examples/account" 400 --die 3
if [ $rc = 137 ] && [ $ms -lt $((10000 * slow)) ] && [ "$(grep -c 'the lock is broken after [0-9]* rounds, for a peer died' out)" = 3 ]; then
    good "the lock of a rank that dies, $ms ms"
else
    bad "the lock of a rank that dies" "exit code $rc, $ms ms, $(head -n 3 out)"
fi

# Random programs between hosts: messages through UCX and through the node's segment at once.
job 60 "$top_builddir/tests/mp/random_mixed.mp" --rounds 2 --steps 40
verdict "random programs" 4 0
# Shared memory of the program's own: peers of the host map it, the others do not.
job 60 "$top_builddir/tests/mp/rma/rma_shared_memory.mp"
verdict "registered shared memory" 4 0
if [ -n "${FULL:-}" ]; then
    for delay in $(in_turn 300 2000); do
        for h in hosta hostb; do "$hosts" delay $h $delay; done
        job 200 "$top_builddir/tests/mp/random_mixed.mp" --rounds 3
        verdict "random programs over cables of $delay us" 4 0
        for h in hosta hostb; do "$hosts" delay $h 0; done
    done
fi

# A cable is pulled.
: >out
job 80 "$top_builddir/tests/faults/cable_pulled.mp" &
pid=$!
until_true 20 grep -q ready out || bad "a cable is pulled" "it does not begin"
"$hosts" link hostb down
t0=${EPOCHREALTIME/./}
wait $pid
ms=$(((${EPOCHREALTIME/./} - t0) / 1000))
if [ "$(grep -c 'mp: done$' out)" = 2 ]; then good "a cable is pulled, and the others go on, $ms ms"; else bad "a cable is pulled" "$(grep -c 'mp: done$' out) ranks came to their end, not 2: $(tail -n 3 out)"; fi
# Those there have noticed, too. Only their sshd has still to report it: it tries more and more seldom.
of_job() { left | grep -v ' sshd: '; }
until_true 5 eval '[ -z "$(of_job)" ]' && good "a cable is pulled: nothing is left" || bad "a cable is pulled" "left behind: $(of_job)"

echo "# death_hosts: $passed passed, $failed failed"
[ $failed -eq 0 ]
