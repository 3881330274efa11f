#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# hang.sh: report a hang without any option.
# All ranks wait for each other. There is no report if a rank computes or sleeps, nor for programs without librank.
. "$(dirname "$0")/cases.sh"
job=$top_builddir/tests/launcher/programs/hang_job

# aside NAME ARGS...: xrun in the background; its standard error is in NAME.err
aside() {
    local name=$1
    shift
    timeout -k 5 $((90 * slow)) "$XRUN" "$@" >"$name.out" 2>"$name.err" </dev/null &
}
count() { grep -cE -e "$2" "$1.err"; }
# finds NAME TIMES PATTERN: a case
finds() {
    local n
    n=$(count "$1" "$3")
    if [ "$n" = "$2" ]; then good "$1: $2 x $3"; else cp "$1.err" err; bad "$1: $3" "$n times, not $2"; fi
}

new_case
stands=$((20 + 12 * slow)) # a job is reported after 20 s
aside default -n 3 --timeout $stands "$job" ring
aside off -n 3 --heartbeat 0 --timeout $stands "$job" ring
aside sleeps -n 3 "$job" sleep $stands
aside computes -n 3 nice -n 19 "$job" compute $stands
aside threads -n 2 nice -n 19 "$job" thread $stands
aside foreign -n 2 sleep $stands

# With a heartbeat each rank has its line, and the cycle follows once.
XRUN_HEARTBEAT=2 timeout -k 5 $((30 * slow)) "$XRUN" -n 3 --timeout $((4 + 4 * slow)) "$job" ring >beats.out 2>beats.err
for r in 0 1 2; do
    finds beats 1 "^xrun: rank $r: no progress for [0-9.]+ s: receive of 4 bytes on world, tag 0, waits for rank $(((r + 1) % 3))\$"
done
finds beats 1 '^xrun: cycle: 0 -> 1 -> 2 -> 0$'
XRUN_HEARTBEAT=1 timeout -k 5 $((30 * slow)) "$XRUN" -n 3 "$job" sleep 4 >slept.out 2>slept.err
finds slept 1 '^xrun: ranks? [0-9,-]+: no progress for .*, waits for rank 2, which sleeps$'
finds slept 0 'cycle'

# TERM by an outer tool, or ^C: the report comes before the end, and not for a job that is busy, or was explained before.
for how in "ring 3" "sleep 60" "compute 60"; do
    timeout -k 10 $((3 + 2 * slow)) "$XRUN" -n 3 "$job" $how >term.out 2>"term ${how% *}.err"
    [ $? = 124 ] && grep -q 'got Terminated' "term ${how% *}.err" && good "TERM ends $how" || bad "TERM ends $how" "it does not"
done
finds "term ring" 3 '^xrun: rank [0-2]: no progress for [0-9.]+ s: receive of 4 bytes on world, tag 0, waits for rank [0-2]$'
finds "term ring" 1 '^xrun: cycle: 0 -> 1 -> 2 -> 0$'
for how in sleep compute; do finds "term $how" 0 'no progress|cycle'; done
timeout -s INT -k 10 $((3 + 2 * slow)) "$XRUN" -n 3 "$job" ring >term.out 2>interrupt.err
finds interrupt 3 '^xrun: rank [0-2]: no progress for [0-9.]+ s: receive of 4 bytes on world, tag 0, waits for rank [0-2]$'
timeout -k 10 $((3 + 2 * slow)) "$XRUN" -n 3 --heartbeat 1 "$job" ring >term.out 2>"term again.err"
finds "term again" 3 'no progress'
finds "term again" 1 'cycle'

wait
for r in 0 1 2; do
    finds default 1 "^xrun: rank $r: no progress for 2[0-9.]+ s: receive of 4 bytes on world, tag 0, waits for rank $(((r + 1) % 3))\$"
done
finds default 1 '^xrun: cycle: 0 -> 1 -> 2 -> 0$'
finds default 1 '^xrun: error: the job did not end within'
for quiet in off sleeps computes threads foreign; do
    finds $quiet 0 'no progress|cycle'
done
clean "a hang that was explained" && good "nothing is left"

echo "# $passed passed, $failed failed"
[ $failed = 0 ]
