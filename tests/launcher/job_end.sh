#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# job_end.sh: end a job with a stopped agent, and clean up after ranks.
# Also: ^Z, signals that the parent has ignored or blocked, segments that ranks leave, PMIx_Job_control.

# What lies in /dev/shm is judged: where we may, in one of our own, in which no other job removes what we put there.
if [ -z "${RK_OWN_SHM:-}" ] && [ "$(id -u)" = 0 ] && unshare -m mount -t tmpfs tmpfs /dev/shm 2>/dev/null; then
    export RK_OWN_SHM=1
    exec unshare -m sh -c 'mount -t tmpfs -o mode=1777 tmpfs /dev/shm && exec bash "$0" "$@"' "$0" "$@"
fi
. "$(dirname "$0")/cases.sh"
control=$top_builddir/tests/launcher/programs/job_control_client
state_of() { sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null; }
is_state() { [ "$(state_of "$1")" = "$2" ]; }
in_time() { # NAME MS
    [ $(((${EPOCHREALTIME/./} - t0) / 1000)) -lt $(($2 * slow)) ] && good "$1: in time" || bad "$1: in time" "$(((${EPOCHREALTIME/./} - t0) / 1000)) ms"
}
# still ARGS: a job of sleeping ranks; its agent is then stopped
still() {
    begin "$@" sh -c 'echo ready; exec sleep 1000'
    until_true 10 ready 2
    supervisor=$(pgrep -P "$xpid" -x xrun-supervisor) agent=$(pgrep -P "${supervisor:-0}" -x xrun-agent)
    kill -STOP "${agent:-0}"
}

# ------------------------------------------------------------- an agent that stands still
still -n 2
t0=${EPOCHREALTIME/./}
kill -TERM "$xpid"; until_true 5 grep -q 'got Terminated' err; kill -TERM "$xpid"
reap 20
check "TERM, and TERM, of a job with a stopped agent" 143 'the agent on .* stands still'
in_time "TERM, and TERM" 9000
still -n 2
kill -INT "$xpid"
reap 20
check "INT of a job with a stopped agent" 130 'the agent on .* stands still'
still -n 2 --timeout 1
reap 20
check "a time-out of a job with a stopped agent" 124 'the agent on .* stands still'
still -n 2
kill -STOP "$supervisor"
kill -TERM "$xpid"
reap 60
check "its supervisor is stopped, too" 143 'the agent on .* stands still'

# The user has stopped xrun, for longer than an agent may be silent, and goes on.
begin -n 2 --kill-grace 30 bash -c 'trap "echo ended; exit 0" TERM; echo ready; while [ ! -e go ]; do sleep 0.02; done; sleep 0.5'
until_true 10 ready 2
kill -STOP "$xpid"
kill -TERM "$xpid"
read -rt 4 <> <(:)
touch go
kill -CONT "$xpid"
reap 20
check "a stop of xrun is none of its agent" 143
grep -q 'stands still' err && bad "no agent is reported as stopped" "$(cat err)" || good "no agent is reported as stopped"

# ------------------------------------------------------------- what a parent has ignored or blocked
printf '#!/bin/sh\nexec env --ignore-signal=CHLD "%s" "$@"\n' "$XRUN" >childless
printf '#!/bin/sh\nexec env --block-signal "%s" "$@"\n' "$XRUN" >deaf
chmod +x childless deaf
XRUN=$PWD/childless run 20 -n 2 sh -c 'exit 3'
check "the parent of xrun ignores CHLD" 3 'exited with code 3'
XRUN=$PWD/deaf begin -n 2 sh -c 'echo ready; exec sleep 1000'
until_true 10 ready 2
kill -TERM "$xpid"
reap 20
check "the parent of xrun blocks all signals" 143 'got Terminated'

# ------------------------------------------------------------- segments, by names as MPI libraries give them
# holders N: a rank with N processes, each of which has one
holders() {
    begin -n 1 sh -c 'i=0; while [ $i -lt '"$1"' ]; do exec 9>/dev/shm/vader_segment.$RK_XRUN_CASE.$i; sleep 1000 & i=$((i + 1)); done
        exec 9>&-; echo ready; wait'
    until_true 20 ready 1 || bad "a rank with $1 segments" "not ready"
    [ "$(segments | wc -l)" = "$1" ] || bad "a rank with $1 segments" "it has $(segments | wc -l)"
}
segments() { ls /dev/shm | grep -F "vader_segment.$tag."; }
none_stays() { [ -z "$(segments)" ] && good "$1" || { bad "$1" "$(segments | wc -l) stay"; rm -f /dev/shm/vader_segment.$tag.*; }; }

holders 100
kill -TERM "$xpid"
reap 20
check "a job with many segments" 143
none_stays "all of them are gone"
# Files that no process of the job has open, of another user or without a library's name, stay.
mine=/dev/shm/vader_segment.$$
stay="$mine.old /dev/shm/own.$$"
: >$mine.old
: >/dev/shm/own.$$
if [ -n "${RK_OWN_SHM:-}" ] && : >$mine.other && chown 65534 $mine.other; then stay="$stay $mine.other"; fi
holders 3
kill -TERM "$xpid"
reap 20
check "a job with segments beside those of others" 143
none_stays "what its ranks had in /dev/shm is gone"
# shellcheck disable=SC2086 # names
ls $stay >kept 2>&1 && good "and nothing else" || bad "and nothing else" "$(cat kept)"
# shellcheck disable=SC2086
rm -f $stay kept
# The ranks are killed with their agent, before it can read what they have open.
holders 3
kill -9 "$(pgrep -P "$(pgrep -P "$xpid" -x xrun-supervisor)" -x xrun-agent)"
reap 20
check "kill -9 of an agent" 1 'xrun: error: '
rm -f /dev/shm/vader_segment.$tag.*
holders 3
supervisor=$(pgrep -P "$xpid" -x xrun-supervisor)
both="$supervisor $(pgrep -P "$supervisor" -x xrun-agent)"
kill -STOP $both # or the agent may yet end its ranks, at the supervisor's end
kill -9 $both
reap 20
check "kill -9 of an agent and its supervisor" 1 'xrun: error: '
rm -f /dev/shm/vader_segment.$tag.*

# ------------------------------------------------------------- ^Z
begin -n 2 bash -c 'trap "echo saving" TSTP; echo ready $$; while [ ! -e over ]; do sleep 0.02; done; echo over'
until_true 10 ready 2
ranks=$(sed -n 's/ready //p' out)
kill -TSTP "$xpid"
all_stopped() { local p; for p in $ranks $xpid; do is_state "$p" T || return 1; done; }
until_true 5 all_stopped && good "TSTP stops ranks that handle it" || bad "TSTP stops ranks that handle it" "not all"
touch over
kill -CONT "$xpid"
reap 10
check "and CONT lets them go on" 0
# On a busy machine a shell may come to that only after CONT.
[ "$(grep -c '^saving' out)" = 2 ] && [ "$(grep -c '^over' out)" = 2 ] && good "all have handled it" || bad "all have handled it" "$(cat out)"
rm over
# A stop that is taken back at once.
begin -n 2 sh -c 'echo ready; while [ ! -e over ]; do sleep 0.02; done'
until_true 10 ready 2
kill -TSTP "$xpid"; kill -CONT "$xpid"; touch over
reap 10
check "TSTP and CONT at once" 0

# ------------------------------------------------------------- what clients want
for target in ALL 2; do
    run 30 -n 4 --bind none "$control" signal $target
    same "a signal for $target" "$(printf 'ok\nok\nok\nok')"
done
run 30 -n 4 --bind none "$control" end kill 2
check "a rank that another kills" 137 'rank 2 .*killed by signal 9'
run 30 -n 4 --bind none "$control" end terminate 2
check "a rank that another ends" 143 'rank 2 .*killed by signal 15'
run 30 -n 4 --bind none "$control" end kill ALL
check "all of a job, which one of it kills" 137 'killed by signal 9'
run 30 -n 4 --bind none "$control" end terminate ALL
check "all of a job, which one of it ends" 143 'killed by signal 15'
run 30 -n 2 --bind none "$control" refused
check "what is refused" 0
refused=$top_builddir/tests/launcher/programs/unsupported_client
run 60 -n 2 --bind none "$refused"
check "what the server does not do is refused at once" 0
begin -n 2 --bind none "$refused" show
until_true 10 ready 2
uri=$(sed -n 's/^ready //p' out | tail -n 1)
if timeout 30 "$refused" tool "$uri" >tool 2>&1 && timeout 30 "$refused" tool-of "$(pgrep -P "$(pgrep -P "$xpid" -x xrun-supervisor)" -x xrun-agent)" >>tool 2>&1; then
    good "tools are sent away"
else
    bad "tools are sent away" "uri '$uri': $(cat tool)"
fi
alive | grep -qx "$xpid" && [ "$(alive | wc -l)" -ge 4 ] && good "and the job goes on" || bad "and the job goes on" "$(alive)"
kill -TERM "$xpid"; reap 10
check "until it is ended" 143
gone() { [ ! -e "$1" ]; }
run 30 -n 2 --bind none "$control" cleanup "$work/left" end
check "a file that goes with the job" 0
gone left && good "it is gone" || bad "it is gone" "it is not"
begin -n 2 --bind none "$control" cleanup "$work/left" stay
until_true 10 ready 2
[ -e left ] || bad "it is there while the job runs" "it is not"
kill -TERM "$xpid"
reap 10
check "a file that goes with a job that is ended" 143
gone left && good "it is gone, too" || bad "it is gone, too" "it is not"
run 30 -n 2 --bind none --timeout 1 "$control" cleanup "$work/left" stay
check "a file that goes with a job that takes too long" 124
gone left && good "it is gone then" || bad "it is gone then" "it is not"
run 30 -n 2 --bind none "$control" cleanup-dir "$work/left.d" end
check "a folder that goes with the job" 0
gone left.d && good "it is gone with all in it" || bad "it is gone with all in it" "$(find left.d)"
begin -n 2 --bind none "$control" cleanup-dir "$work/left.d" stay
until_true 10 ready 2
[ -e left.d/in/file ] || bad "it is there while the job runs" "it is not"
kill -TERM "$xpid"
reap 10
check "a folder that goes with a job that is ended" 143
gone left.d && good "it is gone with all in it, too" || bad "it is gone with all in it, too" "$(find left.d)"

echo "# job_end: $passed passed, $failed failed"
[ $failed -eq 0 ]
