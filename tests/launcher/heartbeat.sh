#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# heartbeat.sh: watch ranks by --heartbeat and xrun --status, end them by signals.
# Also: unauthenticated clients of the status socket, stack traces, --kill-grace.

. "$(dirname "$0")/cases.sh"
stall=$top_builddir/tests/launcher/programs/stall
client=$top_builddir/tests/launcher/programs/pmix_client
stranger=$top_builddir/tests/launcher/programs/unauthenticated_client
mkdir "$work/run" "$work/bin" "$work/none"
export XDG_RUNTIME_DIR=$work/run
xpid=

# begin ARGS: xrun in the background, which has a rank that prints "ready"
begin() {
    new_case
    : >out
    : >err
    set -m # a background job without it would ignore INT
    timeout -k 5 $((60 * slow)) "$XRUN" "$@" >out 2>err </dev/null &
    waiter=$!
    set +m
    xpid=
    until_true 20 started
}
started() { xpid=$(pgrep -P $waiter -x "$(basename "$XRUN" | cut -c1-15)" | head -1); [ -n "$xpid" ] && grep -q ready out; }
said() { grep -qE -e "$1" err; }
silent() { [ -z "$(alive)" ] && [ -z "$(ls -A "$work/tmp" "$work/run" | grep -v :)" ]; }
# reap NAME CODE: xrun ends by itself with this code and leaves nothing
reap() {
    local t0=${EPOCHREALTIME/./}
    wait $waiter
    rc=$?
    ms=$(((${EPOCHREALTIME/./} - t0) / 1000))
    if [ $rc != "$2" ]; then
        bad "$1" "exit code $rc, not $2"
    elif ! until_true 3 silent; then
        bad "$1" "left behind: $(for p in $(alive); do what "$p"; done) $(ls -AR "$work/tmp" "$work/run")"
        kill_all
        rm -rf "$work/run/xrun"
    else
        good "$1"
        return 0
    fi
    return 1
}
job() { ls "$work/run/xrun"; }
rank_pid() { "$XRUN" --status "$(job)" | sed -n "s/^rank $1: .*, pid \([0-9]*\),.*/\1/p"; }
state_of() { sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null; }
is_state() { [ "$(state_of "$1")" = "$2" ]; }
sock() { ls "$work"/run/xrun/*; }

# ------------------------------------------------------------- what ranks wait for

waits() { # HOW VICTIM PATTERN
    begin -n 4 --heartbeat 0.5 "$stall" "$1" "$2"
    until_true 10 said "$3" || { bad "stalled in $1" "no '$3'"; kill_all; wait $waiter; return; }
    kill -USR1 "$xpid"
    reap "stalled in $1" 0
}
# Those that read the same share a line, unless a busy machine has them seen at different times.
waits recv 3 'ranks? [0-9,-]+: no progress for .* s: receive of 100 bytes on world, tag 7, waits for rank 3, which sleeps$'
waits any 3 'ranks? [0-9,-]+: .*: receive of 100 bytes on world, any tag, waits for any rank$'
waits probe 3 'ranks? [0-9,-]+: .*: probe on world, tag 7, waits for rank 3,'
waits waitany 3 'ranks? [0-9,-]+: .*: receive of 100 bytes on world, tag 7, waits for rank 3,'
waits ssend 3 'ranks? [0-9,-]+: .*: synchronous send of 100 bytes on world, tag 7, waits for rank 3,'
waits large 3 'ranks? [0-9,-]+: .*: send of 8388608 bytes on world, tag 7, waits for rank 3,'
waits barrier 1 'ranks? [0-9,-]+: .*: barrier #11 on world, waits for rank 1,'
waits allreduce 3 'ranks? [0-9,-]+: .*: allreduce #11 on world, waits for rank 3,'
waits bcast 0 'ranks? [0-9,-]+: .*: bcast #11 on world, waits for rank 0,'
waits allreduce-large 3 'ranks? [0-9,-]+: .*: allreduce #11 on world, waits for rank 3,'
waits iallreduce 3 'allreduce #11 on world, waits for rank 3,'
waits team 3 'ranks? [0-9,-]+: .*: allreduce #3 on team 1 of rank 0 \(4 ranks\), waits for rank 3,'
waits init 3 'ranks? [0-9,-]+: .*: rank_init, waits for rank 3,'
waits finalize 3 'ranks? [0-9,-]+: .*: rank_finalize, waits for rank 3,'
waits compute 3 'ranks? [0-9,-]+: .*: barrier #1 on world, waits for rank 3, which computes$'
grep -q 'rank 3:' err && bad "a computing rank is not stalled" "it is" || good "a computing rank is not stalled"

# A receiver that may fetch no more ahead, and its sender: the report gives both waits and the least limit that would be enough.
begin -n 2 --heartbeat 0.5 -x RANK_RNDV_UNEXPECTED_MAX=20M "$stall" ahead
until_true 10 said 'rank 0: .*: send of 8388608 bytes on world, tag 2, waits for rank 1$' &&
    until_true 10 said 'rank 1: .*: receive of 8388608 bytes on world, tag 3, waits for rank 0$' &&
    good "more is sent than may be fetched ahead" || bad "more is sent than may be fetched ahead" "no such lines"
kill "$xpid"
reap "and then xrun gets TERM" 143
new_case
timeout -k 5 $((60 * slow)) "$XRUN" -n 2 -x RANK_RNDV_UNEXPECTED_MAX=25M "$stall" ahead >out 2>err && [ "$(grep -cx ok out)" = 2 ] &&
    good "as much is sent as may be fetched ahead" || bad "as much is sent as may be fetched ahead" "no end"

# Over the network no rank can read the status page of another; each has its own.
RANK_CHANNELS=self,ucx; export RANK_CHANNELS
if "$XRUN" -n 2 --timeout 20 "$stall" finalize 9 >/dev/null 2>&1; then
    waits allreduce 3 'allreduce #11 on world, waits for rank 3,'
fi
unset RANK_CHANNELS

# More ranks than watch each other.
begin -n 20 --heartbeat 0.5 "$stall" allreduce 18
until_true 20 said 'ranks? [0-9,-]+: .*allreduce #11 on world, waits for rank 18,' &&
    { kill -USR1 "$xpid"; reap "stalled among 20" 0; } || { bad "stalled among 20" "no line"; kill_all; wait $waiter; }

# A program that is not ours, and behind a shell.
begin -n 2 --heartbeat 0.5 bash -c 'trap : USR1; echo ready; sleep 1000 & wait; exit 0'
until_true 10 said 'ranks? [01,]+: no progress for .*: sleeps in ' && { kill -USR1 "$xpid"; reap "any program that sleeps is reported" 0; } ||
    { bad "any program that sleeps is reported" "no line"; kill_all; wait $waiter; }

# A PMIx client without librank: at least the ranks that have not called PMIx yet are named.
begin -n 3 --heartbeat 0.5 sh -c "[ \$XRUN_RANK != 1 ] || { echo ready; trap : USR1; sleep 1000 & wait; }; trap '' USR1; exec $client fence"
if until_true 10 said 'ranks? [02,]+: .*: sleeps .*; not connected to PMIx: rank 1$'; then
    kill -USR1 "$xpid"
    reap "a rank that has not called PMIx is named" 0
else
    bad "a rank that has not called PMIx is named" "no line"; kill_all; wait $waiter
fi

# A barrier of PMI-1: the ranks that have not entered it are named.
begin -n 3 --heartbeat 0.5 bash -c 'ask() { echo "cmd=$1" >&3 && read -ru 3 _; }; ask "init pmi_version=1 pmi_subversion=1"
    [ $XRUN_RANK != 1 ] || { echo ready; trap : USR1; sleep 1000 & wait; }; trap "" USR1; ask barrier_in; ask finalize'
if until_true 10 said 'ranks? [02,]+: .*: sleeps in read of descriptor 3; its PMI-1 barrier waits for rank 1$'; then
    "$XRUN" --status "$(job)" >st 2>&1
    [ "$(grep -cE '^rank [02]: sleeps .*; its PMI-1 barrier waits for rank 1, for [0-9.]+ s \(host ' st)" = 2 ] &&
        good "--status shows a barrier of PMI-1" || bad "--status shows a barrier of PMI-1" "$(cat st)"
    kill -USR1 "$xpid"
    reap "a rank missing in a barrier of PMI-1 is named" 0
else
    bad "a rank missing in a barrier of PMI-1 is named" "no line"; kill_all; wait $waiter
fi

# Fault 4: a stopped rank is reported, no rank is killed, and the job continues.
begin -n 4 --heartbeat 0.5 "$stall" loop
p=$(rank_pid 1)
kill -STOP "$p"
if ! until_true 10 said 'rank 1: no progress for .*: is stopped by a signal'; then
    bad "a stopped rank is reported" "it is not"
elif ! until_true 10 said 'ranks? [0-9,-]+: .*: allreduce #[0-9]+ on world, waits for rank 1, which is stopped'; then
    bad "a wait for a stopped rank is reported" "no line"
else
    kill -CONT "$p"
    until_true 10 said 'ranks? [0-9,-]+ (go|goes) on after' && good "a stopped rank goes on" || bad "a stopped rank goes on" "no line"
fi
kill -CONT "$p"
kill -USR1 "$xpid"
reap "a stopped rank is reported and not killed" 0
[ "$(grep -c 'rank 1: no progress' err)" = 1 ] && good "one line a stall" || bad "one line a stall" "$(grep -c 'rank 1: no progress' err) lines"

# :kill ends what cannot go on, and only that.
begin -n 3 --heartbeat 0.5:kill "$stall" recv
reap "--heartbeat S:kill ends a job that hangs" 124
said 'no rank makes progress \(--heartbeat 0.5:kill\)' && good "and gives the reason" || bad "and gives the reason" "no"
begin -n 2 --heartbeat 0.5:kill bash -c 'echo ready; [ $XRUN_RANK = 0 ] || exec sleep 1000; for ((i = 0; i < 300000; i++)); do :; done'
reap "--heartbeat S:kill, after the last that worked has ended" 124
begin -n 3 --heartbeat 0.3:kill "$stall" compute
until_true 10 said 'ranks? [01,]+: .*which computes'
read -rt 1.2 <> <(:) # several heartbeats in which it must not be killed
kill -USR1 "$xpid"
reap "--heartbeat S:kill lets one that computes live" 0

# ------------------------------------------------------------------------- status

begin -n 3 "$stall" recv
job=$(job)
"$XRUN" --status >st 2>st.err && grep -q "^$job: 3 of 3 ranks of $stall run on " st && good "--status lists jobs" || bad "--status lists jobs" "$(cat st st.err)"
until_true 5 eval '"$XRUN" --status "$job" >st 2>st.err && grep -q "^rank 1: receive of 100 bytes on world, tag 7, waits for rank 2" st' &&
    [ "$(grep -c '^rank' st)" = 3 ] && good "--status JOB" || bad "--status JOB" "$(cat st st.err)"
grep -qE '^rank 2: sleeps in sigwait.*\(host .*, pid [0-9]+, cpu 0\.[0-9]+ s\)$' st && good "--status lists every rank" || bad "--status lists every rank" "$(cat st)"
"$XRUN" --status "${job#xrun-}" >st 2>&1 && good "--status takes a part of the name" || bad "--status takes a part of the name" "$(cat st)"
"$XRUN" --status nosuchjob >st 2>&1; [ $? = 1 ] && grep -q 'no job of yours .* nosuchjob' st && good "--status of no job" || bad "--status of no job" "$(cat st)"
"$XRUN" --status a b >st 2>&1; [ $? = 2 ] && good "--status of two" || bad "--status of two" "$(cat st)"
[ "$(stat -c %a "$work/run/xrun" "$(sock)" | tr '\n' ' ')" = "700 600 " ] && good "the socket is the user's own" || bad "the socket is the user's own" "$(stat -c %a "$work/run/xrun" "$(sock)")"

for how in garbage half silent more flood; do
    timeout 20 "$stranger" $how "$(sock)" 2>st.err && good "an unauthenticated peer gets a close: $how" || bad "an unauthenticated peer gets a close: $how" "$? $(cat st.err)"
done
for i in 1 2 3 4 5 6 7 8; do "$stranger" silent "$(sock)" & done # all places taken, for 2 s
"$XRUN" --status "$job" >st 2>&1 && grep -q '^rank 1: receive' st && good "unauthenticated peers do not lock others out" || bad "unauthenticated peers do not lock others out" "$(cat st)"
timeout 20 "$stranger" deaf "$(sock)"
"$XRUN" --status >st && grep -qE "^$job.*; [0-9]+ strangers were turned away\$" st && good "unauthenticated peers are counted" || bad "unauthenticated peers are counted" "$(cat st)"
kill -STOP "$xpid"
"$XRUN" --status "$job" >st 2>&1; [ $? = 1 ] && grep -q 'does not answer' st && good "--status of a stopped xrun" || bad "--status of a stopped xrun" "$(cat st)"
kill -CONT "$xpid"
kill -USR1 "$xpid"
reap "the job has not noticed" 0

# The user does not read what the ranks write.
mkfifo hold
exec 9<>hold
new_case
timeout -k 5 60 "$XRUN" -n 2 sh -c 'trap "exit 0" USR1; yes ready' >hold 2>err </dev/null &
waiter=$!
blocked() { "$XRUN" --status "$(job)" >st 2>&1 && [ "$(grep -cE '^rank [01]: sleeps in write of descriptor 1 \(stdout\)' st)" = 2 ]; }
until_true 10 blocked && good "--status answers while output stands still" || bad "--status answers while output stands still" "$(cat st)"
kill -9 "$(pgrep -P $waiter)"
wait $waiter 2>/dev/null
until_true 5 silent && good "the socket of a killed xrun is removed" || bad "the socket of a killed xrun is removed" "$(ls -AR "$work/run")"
exec 9>&-

# What was left behind, when really all were killed.
mkdir -m 700 "$work/run/xrun"
"$stranger" leave "$work/run/xrun/dead"
"$XRUN" --status >st 2>&1 && ! grep -q dead st && [ ! -e "$work/run/xrun" ] && good "--status removes a dead socket" || bad "--status removes a dead socket" "$(cat st; ls -AR "$work/run")"
mkdir -m 700 "$work/run/xrun"
"$stranger" leave "$work/run/xrun/dead"
"$XRUN" true && [ ! -e "$work/run/xrun" ] && good "xrun removes a dead socket" || bad "xrun removes a dead socket" "$(ls -AR "$work/run")"

# A directory that others can write to is not used, nor one that cannot be made; the job runs.
mkdir -m 777 "$work/run/xrun"
"$XRUN" sh -c "ls $work/run/xrun" >st 2>&1 && [ ! -s st ] && good "a directory open to others is not used" || bad "a directory open to others is not used" "$(cat st)"
rmdir "$work/run/xrun"
XDG_RUNTIME_DIR='' "$XRUN" sh -c "ls /tmp/xrun-\$(id -u)/\$XRUN_JOB" >st 2>&1 && good "without XDG_RUNTIME_DIR" || bad "without XDG_RUNTIME_DIR" "$(cat st)"
ls "$(cat st)" 2>/dev/null && bad "without XDG_RUNTIME_DIR nothing is left" "$(cat st)" || good "without XDG_RUNTIME_DIR nothing is left"

# ------------------------------------------------------------------------- traces

tool() { printf '#!/bin/sh\n%s\n' "$2" >"bin/$1"; chmod +x "bin/$1"; }
traced() { # NAME PATTERN [seconds]
    begin -n 3 --timeout 1 --timeout-traces "$stall" recv
    reap "$1" 124 && [ $ms -gt $((${3:-20} * 1000 * slow)) ] && bad "$1: in time" "$ms ms"
    grep '^xrun: error: ' err | grep -vE "did not end within" >st && bad "$1: no other error" "$(cat st)"
    [ "$(grep -cE "$2" err)" = 3 ] && good "$1: of every rank" || bad "$1: of every rank" "$(grep -cE "$2" err) of 3"
}
if command -v gdb >/dev/null; then
    traced "traces by gdb" '^xrun: rank [012] \(pid [0-9]+\): #[0-9]+ .*main \('
    grep '^xrun: rank' err | grep -vE '^xrun: rank [012] \(pid [0-9]+\): (#[0-9]+ |Thread [0-9]+ )' >st && bad "frames alone" "$(head -3 st)" ||
        good "frames alone"
    grep -q libpmix err && bad "no threads of libpmix" "$(grep libpmix err | head -2)" || good "no threads of libpmix"
fi
tool gdb 'for pid; do :; done; echo "#0 in $pid"; echo "no line end"'
PATH=$work/bin:$PATH traced "traces by a tool" '^xrun: rank [012] \(pid ([0-9]+)\): #0 in \1$'
tool gdb 'echo begun; exec sleep 1000'
PATH=$work/bin:$PATH traced "a tool that hangs" '^xrun: rank [012] .*: no stack trace: the tool did not end in time' 15
tool gdb 'exit 1'
PATH=$work/bin:$PATH traced "a tool that says nothing" '^xrun: rank [012] .*: no stack trace: the tool printed nothing'
rm bin/gdb
for t in timeout env sh bash cut ls grep pgrep basename head tr sed sleep; do ln -s "$(command -v $t)" bin/$t; done
# The tool itself where it is installed.
if tool=$(command -v eu-stack); then
    ln -s "$tool" bin/eu-stack
    want='^xrun: rank [012] \(pid [0-9]+\): #[0-9]+ .* main( |$)'
else
    tool eu-stack 'echo "eu $*"'
    want='^xrun: rank [012] \(pid ([0-9]+)\): eu -m -p \1$'
fi
PATH=$work/bin traced "traces by eu-stack" "$want"
rm bin/eu-stack
PATH=$work/bin begin -n 3 --timeout 1 --timeout-traces "$stall" recv
PATH=$work/bin reap "no tool for traces" 124
[ "$(grep -c 'neither gdb nor eu-stack is in PATH' err)" = 1 ] && good "a missing tool for traces is reported once" || bad "a missing tool for traces is reported once" "no"
"$XRUN" --timeout-traces true 2>st; [ $? = 2 ] && good "--timeout-traces alone" || bad "--timeout-traces alone" "$(cat st)"

# ------------------------------------------------------------------------ signals

for s in USR1 USR2 WINCH CONT; do
    begin -n 2 bash -c "trap 'echo got $s; exit 0' $s; echo ready; while :; do sleep 0.02; done"
    until_true 10 eval '[ "$(grep -c ready out)" = 2 ]'
    kill -$s "$xpid"
    reap "$s goes to the ranks" 0 && { [ "$(grep -c "got $s" out)" = 2 ] || bad "$s goes to the ranks" "not to all"; }
done
for s in INT:130 HUP:129 TERM:143; do
    begin -n 2 bash -c "trap 'echo got ${s%:*}; exit 0' ${s%:*}; echo ready; while :; do sleep 0.02; done"
    until_true 10 eval '[ "$(grep -c ready out)" = 2 ]'
    kill -"${s%:*}" "$xpid"
    reap "the ranks get ${s%:*} as ${s%:*}" "${s#*:}" && { [ "$(grep -c "got ${s%:*}" out)" = 2 ] || bad "the ranks get ${s%:*}" "not all"; }
done
begin -n 1 bash -c "trap '' INT; trap 'echo got TERM; exit 0' TERM; echo ready; while :; do sleep 0.02; done"
kill -INT "$xpid"
reap "a rank that ignores INT gets TERM" 130 && { grep -q 'got TERM' out || bad "a rank that ignores INT gets TERM" "no"; }

begin -n 2 --heartbeat 1 "$stall" loop
p=$(rank_pid 0)
kill -TSTP "$xpid"
if until_true 5 is_state "$xpid" T && until_true 5 is_state "$p" T; then
    good "TSTP stops xrun and the ranks"
else
    bad "TSTP stops xrun and the ranks" "$(state_of "$xpid") $(state_of "$p")"
fi
n=$(grep -c 'no progress' err) # on a busy machine they may have stood still before
read -rt 3 <> <(:) # several heartbeats, none of which may report it
kill -CONT "$xpid"
until_true 5 eval '! is_state "$p" T' && good "CONT lets them go on" || bad "CONT lets them go on" "$(state_of "$p")"
kill -USR1 "$xpid"
reap "TSTP and CONT" 0
[ "$(grep -c 'no progress' err)" = "$n" ] && good "the user's stop is no stall" || bad "the user's stop is no stall" "it was reported"

# --------------------------------------------------------------------------- ends

begin -n 2 --kill-grace 0 bash -c "trap '' TERM; echo ready; while :; do sleep 0.02; done"
t0=${EPOCHREALTIME/./}
kill -TERM "$xpid"
reap "--kill-grace 0" 143
[ $(((${EPOCHREALTIME/./} - t0) / 1000)) -lt $((1500 * slow)) ] && good "--kill-grace 0 is at once" || bad "--kill-grace 0 is at once" "no"
begin -n 2 --kill-grace 10 bash -c 'trap "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.1; done; echo saved; exit 0" TERM; echo ready; [ $XRUN_RANK = 0 ] || { sleep 0.2; exit 9; }; while :; do sleep 0.02; done'
reap "--kill-grace 10" 9 && { grep -q saved out && good "--kill-grace gives time" || bad "--kill-grace gives time" "nothing was saved"; }
"$XRUN" --kill-grace x true 2>st; [ $? = 2 ] && grep -q 'give seconds' st && good "bad --kill-grace" || bad "bad --kill-grace" "$(cat st)"
for v in 0.1 0:kill x 1:x 1: ; do
    "$XRUN" --heartbeat "$v" true 2>st; [ $? = 2 ] && grep -q -- '--heartbeat is' st && good "bad --heartbeat $v" || bad "bad --heartbeat $v" "$(cat st)"
done

# Within a second, also where the others do not mind TERM. A busy machine may be late, once and twice.
for try in 1 2 3; do
    run 30 -n 4 sh -c 'trap "" TERM; exec "$0" abort 2' "$stall"
    aborted
    [ "$ms" -gt $((1000 * slow)) ] || break
done
if [ $rc = 42 ] && said 'rank 2 .* aborted the job with code 42: the sky is falling' && [ "$ms" -le $((1000 * slow)) ] && until_true 2 silent; then
    good "rank_abort shows its text and ends all, $ms ms"
else
    bad "rank_abort shows its text and ends all" "code $rc, $ms ms"
fi

echo "# heartbeat: $passed passed, $failed failed"
[ $failed = 0 ]
