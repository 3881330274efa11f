#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# job_end_hosts.sh: end jobs on two hosts, also jobs with stopped agents.
# Checks --json for both hosts, and signals for ranks and files of ranks there.
. "$(dirname "$0")/../inside.sh"
inside 2 "ends on two hosts"
. "$(dirname "$0")/cases.sh"
. "$top_srcdir/tests/left.sh"
control=$top_builddir/tests/launcher/programs/job_control_client
both=hosta:2,hostb:2

job() { # LIMIT ARGS
    local limit=$(($1 * slow)) t0=${EPOCHREALTIME/./}
    shift
    on hosta timeout -k 5 "$limit" env XDG_RUNTIME_DIR="$work/tmp" "$XRUN" -q "$@" >out 2>err </dev/null
    rc=$?
    ms=$(((${EPOCHREALTIME/./} - t0) / 1000))
}
begin_on() {
    : >out
    : >err
    on hosta env XDG_RUNTIME_DIR="$work/tmp" "$XRUN" -q "$@" >out 2>err </dev/null &
    xpid=$!
}
finish_in() { # LIMIT
    local t0=${EPOCHREALTIME/./}
    if until_true "$1" ended; then wait "$xpid"; rc=$?; else rc=hung; on hosta pkill -9 'xrun'; on hostb pkill -9 'xrun'; wait "$xpid"; fi
    ms=$(((${EPOCHREALTIME/./} - t0) / 1000))
}
remember hosta hostb
cp "$(command -v sleep)" sleep-forever
# The ends of an ssh may take a moment longer than the job.
none_of_job() { ! left | grep -v sshd | grep -q 'process '; }

# ------------------------------------------------------------- the report
before=$(date +%s)
job 30 -n 4 --host $both --json "$PWD/r.json" bash -c 'echo $XRUN_RANK $$ $(hostname); [ $XRUN_RANK != 3 ] || for ((i = 0; i < 60000; i++)); do :; done'
after=$(($(date +%s) + 1))
verdict "a report of two hosts" 0
python3 - $before $after <<'PY' && good "its record of each" || bad "its record of each" "$(cat r.json)"
import json, sys
before, after = map(int, sys.argv[1:])
def no(pairs):
    assert len({k for k, _ in pairs}) == len(pairs), pairs
    return dict(pairs)
r = json.load(open("r.json"), object_pairs_hook=no)
parts = {"PMIx server", "namespace", "ranks"}
assert r["startup_ms"]["total"] > 0 and parts <= set(r["startup_ms"]), r
assert len(r["hosts"]) == 2 and all(set(h["startup_ms"]) == parts for h in r["hosts"]), r
said = {int(a): (int(b), c) for a, b, c in map(str.split, open("out"))}
assert len(r["ranks"]) == len(said) == 4, said
for i, x in enumerate(r["ranks"]):
    assert x["rank"] == i and (x["pid"], x["host"]) == said[i], (x, said[i])
    assert x["host"] == ("hosta", "hosta", "hostb", "hostb")[i] and x["exit_code"] == 0 and x["signal"] is None, x
    assert before <= x["start"] <= x["end"] <= after and 0 < x["seconds"] <= x["end"] - x["start"] + 0.1, x
    assert x["rusage"]["max_rss_kib"] > 500 and x["rusage"]["minor_faults"] > 0, x
assert r["ranks"][3]["rusage"]["user"] > 0.01, r["ranks"][3] # this rank has computed
PY

# ------------------------------------------------------------- agents that stand still
for host in hosta hostb; do
    begin_on -n 4 --host $both sh -c "echo ready; exec $PWD/sleep-forever 1000"
    until_true 20 ready 4 || bad "the agent of $host stands still: start" "$(cat out err)"
    on $host pkill -STOP -x xrun-agent
    on hosta pkill -TERM -x xrun
    on hosta pkill -TERM -x xrun
    finish_in 30
    verdict "the agent of $host stands still" 143 "the agent on $host stands still; killing it and its ranks"
done
# An ssh may end before what it has started there: only the connection shows that xrun has given the agent up.
printf '#!/bin/sh\nhost=$1\nshift\nexec ssh "$host" "exec 3<&0; ($*) <&3 3<&- & exec 3<&-; wait"\n' >loose-ssh
chmod +x loose-ssh
for how in "--fanout 32 hostb" "--fanout 1 hostb"; do
    begin_on --agent "$PWD/loose-ssh" ${how% *} -n 4 --host $both sh -c "echo ready; exec $PWD/sleep-forever 1000"
    until_true 20 ready 4 || bad "an agent stands still and its ssh is loose, ${how% *}: start" "$(cat out err)"
    on hostb pkill -STOP -x xrun-agent
    on hosta pkill -TERM -x xrun
    on hosta pkill -TERM -x xrun
    finish_in 30
    # None is left when xrun has ended; here its parent is another agent, which does not wait for that.
    [ "${how% *}" = "--fanout 1" ] || none_of_job || bad "xrun waits for it" "left: $(left)"
    verdict "an agent stands still and its ssh is loose, ${how% *}" 143 "the agent on hostb stands still; killing it and its ranks"
    ! grep -q 'left there' err || bad "it is seen to end" "$(cat err)"
done
begin_on --agent "$PWD/loose-ssh" -n 4 --host $both sh -c "echo ready; exec $PWD/sleep-forever 1000"
until_true 20 ready 4 || bad "an agent and its supervisor are stopped: start" "$(cat out err)"
on hostb pkill -STOP 'xrun-agent|xrun-supervisor'
on hosta pkill -TERM -x xrun
on hosta pkill -TERM -x xrun
finish_in 30
grep -q 'agent on hostb stands still' err || bad "an agent and its supervisor are stopped" "$(cat err)"
on hostb pkill -CONT 'xrun-supervisor'
verdict "an agent and its supervisor are stopped" 143 'nothing shows that the agent on hostb has ended; its ranks, if any, are left there'

# Ranks that went with their host are none that may still compute.
begin_on -n 4 --host $both --heartbeat 4:kill --on-failure continue "$top_builddir/tests/launcher/programs/stall" recv 0
until_true 20 ready 1 || bad "a host is lost and no rank goes on: start" "$(cat out err)"
on hostb pkill -KILL -x xrun-agent
finish_in 30
verdict "a host is lost and no rank goes on" 1 'the agent on hostb died.*the others go on'
grep -q 'no rank makes progress' err && good "and gives the reason" || bad "and gives the reason" "$(cat err)"

# A stopped agent is found by its silence, also if it need not end. xrun ends when that agent's ranks have ended. With fan-out 1
# the agent of hosta is its parent and waits in the same way.
for how in "--fanout 32" ${FULL:+"--fanout 1"}; do
    begin_on $how -n 4 --host $both sh -c "echo ready; exec $PWD/sleep-forever 1000"
    until_true 20 ready 4 || bad "an agent falls silent, $how: start" "$(cat out err)"
    on hostb pkill -STOP -x xrun-agent
    finish_in 40
    none_of_job && good "xrun ends after all of an agent that fell silent, $how: $ms ms" || bad "xrun ends after all of an agent that fell silent, $how" "left: $(left)"
    verdict "an agent falls silent, $how" 1 'the agent on hostb died: it has not answered for 6 s'
    ! grep -q 'left there' err || bad "an agent falls silent, $how: its end is seen" "$(cat err)"
done
# A rank that ends badly in the moment in which another host is lost does so by that, whichever report comes first: here that of the rank.
for lost in yes no; do
    begin_on -n 2 --host hosta:1,hostb:1 sh -c "echo ready; [ \$XRUN_RANK = 0 ] || exec $PWD/sleep-forever 1000; until [ -e over ]; do sleep 0.02; done; exit 3"
    until_true 20 ready 2 || bad "a host is lost and a rank fails by it: start" "$(cat out err)"
    rank=$(on hosta pgrep -f '^sh -c echo ready')
    on hosta pkill -STOP -x xrun
    touch over
    until_true 10 eval '! on hosta kill -0 $rank 2>/dev/null' || bad "the rank has ended" "$(on hosta ps -ef)"
    [ $lost = no ] || { on hostb pkill -KILL -x xrun-agent; until_true 10 eval '! on hostb pgrep -x xrun-agent >/dev/null'; }
    on hosta pkill -CONT -x xrun
    pkill -CONT -P "$xpid" # as below
    kill -CONT "$xpid" 2>/dev/null
    finish_in 30
    rm over
    if [ $lost = yes ]; then
        verdict "the cause is the host that was lost, not the rank that failed by it" 1 'the agent on hostb died'
        ! grep -q 'rank 0' err || bad "and it alone is named" "$(cat err)"
    else
        verdict "and without such a loss the rank" 3 'rank 0 .* exited with code 3'
    fi
done
if [ -n "${FULL:-}" ]; then
    begin_on -n 4 --host $both sh -c "echo ready; exec $PWD/sleep-forever 1000"
    until_true 20 ready 4 || bad "an agent and its supervisor fall silent: start" "$(cat out err)"
    on hostb pkill -STOP 'xrun-agent|xrun-supervisor'
    finish_in 40
    grep -q 'agent on hostb died: it has not answered for 6 s' err || bad "an agent and its supervisor fall silent" "$(cat err)"
    on hostb pkill -CONT 'xrun-supervisor'
    verdict "an agent and its supervisor fall silent" 1 'nothing shows that the agent on hostb has ended; its ranks, if any, are left there'
fi

# ------------------------------------------------------------- signals
for sig in USR1 USR2 WINCH CONT; do
    begin_on -n 2 --host hosta:1,hostb:1 bash -c "trap 'echo got \$XRUN_RANK; exit 0' $sig; echo ready; while :; do sleep 0.02; done"
    until_true 20 ready 2 || bad "$sig: start" "$(cat out err)"
    on hosta pkill -$sig -x xrun
    finish_in 10
    verdict "$sig reaches both hosts" 0
    [ "$(grep got out | sort | tr '\n' ' ')" = "got 0 got 1 " ] || bad "$sig reaches both hosts" "$(cat out)"
done
begin_on -n 4 --host $both --kill-grace 10 bash -c 'trap "echo got \$XRUN_RANK; exit 0" HUP; echo ready; while :; do sleep 0.02; done'
until_true 20 ready 4 || bad "HUP: start" "$(cat out err)"
on hosta pkill -HUP -x xrun
finish_in 20
verdict "HUP ends a job on two hosts" 129
[ "$(grep got out | sort | tr '\n' ' ')" = "got 0 got 1 got 2 got 3 " ] && good "all have got it" || bad "all have got it" "$(cat out)"
# ^Z: ranks that handle it and ranks that ignore it, on both hosts, and xrun
cp "$(command -v bash)" rank-shell
begin_on -n 4 --host $both "$PWD/rank-shell" -c '[ $((XRUN_RANK % 2)) = 0 ] && trap "echo saving" TSTP || trap "" TSTP
    echo ready; while [ ! -e over ]; do sleep 0.02; done; echo over'
until_true 20 ready 4 || bad "TSTP: start" "$(cat out err)"
states() { for h in hosta hostb; do on $h ps -e -o stat=,comm= | awk '$2 == "xrun" || $2 == "rank-shell" { print substr($1, 1, 1) $2 }'; done; }
all_stopped() { # a child of a rank's that is about to become sleep has its name, too
    states | awk '!/^T/ { bad = 1 } /xrun/ { x++ } /rank-shell/ { n++ } END { exit bad || x != 1 || n < 4 }'
}
on hosta pkill -TSTP -x xrun
until_true 10 all_stopped && good "TSTP stops xrun and the ranks of both hosts" || bad "TSTP stops xrun and the ranks of both hosts" "$(states)"
touch over
on hosta pkill -CONT -x xrun
pkill -CONT -P "$xpid" # nsenter stops when what it started does
kill -CONT "$xpid" 2>/dev/null
finish_in 20
verdict "and CONT lets all go on" 0
[ "$(grep -c '^saving' out)" = 2 ] && [ "$(grep -c '^over' out)" = 4 ] && good "handlers of ^Z have run" || bad "handlers of ^Z have run" "$(cat out)"
rm over
begin_on -n 2 --host hosta:1,hostb:1 --kill-grace 10 bash -c 'trap "sleep 2.5; echo saved; exit 0" TERM; echo ready; [ $XRUN_RANK = 1 ] || while :; do sleep 0.02; done; while :; do sleep 0.02; done'
until_true 20 ready 2 || bad "--kill-grace: start" "$(cat out err)"
on hosta pkill -TERM -x xrun
finish_in 20
verdict "--kill-grace on another host" 143
[ "$(grep -c saved out)" = 2 ] && good "it gives time" || bad "it gives time" "$(cat out)"
begin_on -n 2 --host hosta:1,hostb:1 --kill-grace 0 bash -c 'trap "" TERM; echo ready; while :; do sleep 0.02; done'
until_true 20 ready 2 || bad "--kill-grace 0: start" "$(cat out err)"
on hosta pkill -TERM -x xrun
finish_in 10
verdict "--kill-grace 0 on another host" 143
[ "$ms" -lt $((1500 * slow)) ] && good "it is at once" || bad "it is at once" "$ms ms"
# Everywhere within a second, also where ranks do not mind TERM. A busy machine may be late, once and twice.
for try in 1 2 3; do
    job 30 -n 4 --host $both sh -c 'trap "" TERM; exec "$0" abort 3' "$top_builddir/tests/launcher/programs/stall"
    aborted
    there=$(on hosta pgrep -x stall; on hostb pgrep -x stall)
    [ "$ms" -gt $((1000 * slow)) ] || break
done
verdict "rank_abort on another host" 42 'rank 3 \(host hostb.* aborted the job with code 42: the sky is falling'
[ "$ms" -le $((1000 * slow)) ] && [ -z "$there" ] && good "rank_abort ends all within a second, $ms ms" || bad "rank_abort ends all within a second" "$ms ms, ranks $there"

# xrun is stopped while ranks write: longer than the kernel waits for a host that is gone
begin_on -n 2 --host hosta:1,hostb:1 bash -c 'line=$(head -c 99999 /dev/zero | tr "\0" y)
    echo ready; until [ -e over ]; do sleep 0.02; done
    for ((i = 0; i < 200; i++)); do echo "$line"; done'
until_true 20 ready 2 || bad "xrun is stopped: start" "$(cat err)"
on hosta pkill -STOP -x xrun
touch over
sleep 10
on hosta pkill -CONT -x xrun
pkill -CONT -x nsenter # stops when what it started does
finish_in 60
verdict "xrun is stopped while ranks write" 0
awk 'length == 99999 && !/[^y]/ { whole++ } END { exit NR != 402 || whole != 400 }' out && good "what they wrote is whole" || bad "what they wrote is whole" "$(cut -c1-80 out | sort | uniq -c)"

# ------------------------------------------------------------- traces
mkdir tools
printf '#!/bin/sh\nfor pid; do :; done\necho "#0 in $pid"\n' >tools/gdb
chmod +x tools/gdb
PATH=$PWD/tools:$PATH job 40 -n 4 --host $both --timeout 2 --timeout-traces -x PATH "$PWD/sleep-forever" 1000
verdict "traces of two hosts" 124
# The agent of hostb searches the path that ssh gives it, where there may be a tool or none.
[ "$(grep -cE '^xrun: rank [01] \(pid ([0-9]+)\): #0 in \1$' err)" = 2 ] && [ "$(grep -c '^xrun: error: ' err)" = 1 ] &&
    { [ "$(grep -oE '^xrun: rank [23] \(pid [0-9]+\): #0 ' err | sort -u | wc -l)" = 2 ] || grep -q 'neither gdb nor eu-stack' err; } &&
    good "they are of each rank" || bad "they are of each rank" "$(cat err)"

# ------------------------------------------------------------- what clients want
for target in ALL 3; do
    job 30 -n 4 --host $both "$control" signal $target
    verdict "a signal for $target" 0
    [ "$(grep -cx ok out)" = 4 ] || bad "a signal for $target" "$(cat out)"
done
job 30 -n 4 --host $both "$control" end kill 3
verdict "a rank that one of another host kills" 137 'rank 3 .*killed by signal 9'
job 30 -n 4 --host $both "$control" end kill ALL
verdict "all of a job, which one of it kills" 137 'killed by signal 9'
client=$top_builddir/tests/launcher/programs/pmix_client
job 60 -n 4 --host $both "$top_builddir/tests/launcher/programs/unsupported_client"
verdict "what the server does not do is refused at once" 0
job 30 -n 4 --host $both "$client" log 3
verdict "PMIx_Log" 0
[ "$(cat err)" = 'a word to the log' ] && good "a rank's word comes from the other host" || bad "a rank's word comes from the other host" "$(cat err)"
# Ranks of both hosts write and the output is not read; PMIx clients finish all the same. Then the output is read.
on hosta timeout -k 5 $((60 * slow)) env XDG_RUNTIME_DIR="$work/tmp" "$XRUN" -q -n 4 --host $both bash -c '
    (head -c 9000000 /dev/zero; >written.$XRUN_RANK) &
    until [ -e meet ]; do sleep 0.02; done
    "$0" fence >clients.$XRUN_RANK; wait' "$client" 2>err </dev/null | {
    case $(uname -m) in # the number of write
    x86_64) call=1 ;;
    i?86 | ppc* | s390*) call=4 ;;
    *) call=64 ;; # aarch64, riscv64 and later ones
    esac
    blocked() { [ "$(for h in hosta hostb; do on $h sh -c 'for p in $(pgrep -x head); do cat /proc/$p/syscall; done'; done | grep -c "^$call 0x1 ")" = 4 ]; }
    until_true 20 blocked || echo "they are not held up" >wrong
    touch meet
    for i in 0 1 2 3; do until_true 20 grep -qsx ok clients.$i || echo "rank $i does not meet the others" >>wrong; done
    ! ls written.* >>wrong 2>/dev/null
    wc -c >bytes
}
rc=${PIPESTATUS[0]}
verdict "the output of two hosts is not read" 0
[ ! -s wrong ] && [ "$(cat bytes)" = 36000000 ] && good "PMIx goes on, and no byte is lost" || bad "PMIx goes on, and no byte is lost" "$(cat bytes) bytes; $(cat wrong)"
job 30 -n 2 --host hosta:1,hostb:1 sh -c "exec $control cleanup $PWD/left.\$XRUN_RANK end"
verdict "files that go with the job" 0
[ ! -e left.0 ] && [ ! -e left.1 ] && good "they are gone" || bad "they are gone" "$(ls)"

# ------------------------------------------------------------- bad cables
"$hosts" drop hostb 20
job 60 -n 4 --host $both --timeout 50 "$control" signal ALL
verdict "a job that loses packets" 0
"$hosts" drop hostb 0
if [ -x "$top_builddir/tests/simdelay" ]; then
    "$hosts" delay hostb 50000
    job 60 -n 4 --host $both --timeout 50 "$control" signal ALL
    verdict "a job far away" 0
fi
echo "# job_end_hosts: $passed passed, $failed failed"
[ $failed -eq 0 ]
