#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# leader_exits.sh: end the main thread of a rank while another thread lives.
# /proc shows such a rank as a zombie. It is alive: it ends by itself, --status shows it, and each way to end a job kills it.
. "$(dirname "$0")/cases.sh"
name=leader$$ # its own: another run of this script may be there
rank=$PWD/$name
cp "$top_builddir/tests/launcher/programs/leader_exits" "$rank"
grown() { [ "$(grep -c ready out)" = 2 ] && [ "$(for p in $(alive); do what_state "$p"; done | grep -c Z)" = 2 ]; }
what_state() { [ "$(cat "/proc/$1/comm")" = "$name" ] && sed 's/.*) \(.\).*/\1/' "/proc/$1/stat"; } 2>/dev/null
# A zombie's environment and command line cannot be read: it is found by its name and its parent.
eval "$(declare -f alive | sed '1s/alive/alive_others/')"
alive() { alive_others; pgrep -x "$name"; }

run 30 -n 2 "$rank" 1
check "it ends by itself" 0
run 30 -n 2 --timeout 1 "$rank"
check "--timeout ends it" 124 'did not end within'
[ $ms -le $((5000 * slow)) ] && good "in time" || bad "in time" "$ms ms"

begin -n 2 "$rank"
until_true 20 grown || bad "main threads end" "$(cat out)"
"$XRUN" --status "$(ls "$work/tmp/xrun")" >st 2>&1
[ "$(grep -cE '^rank [01]: sleeps' st)" = 2 ] && good "--status shows it" || bad "--status shows it" "$(cat st)"
kill -TERM "$xpid"
reap 20
check "TERM ends it" 143

for victim in xrun xrun-supervisor xrun-agent; do
    begin -n 2 "$rank"
    until_true 20 grown || bad "main threads end" "$(cat out)"
    if [ $victim = xrun ]; then kill -9 "$xpid"; else for p in $(of_case); do [ "$(cat "/proc/$p/comm" 2>/dev/null)" = $victim ] && kill -9 "$p"; done; fi
    reap 20
    until_true 10 nothing_left && good "kill -9 of $victim leaves none" || { bad "kill -9 of $victim leaves none" "$(alive)"; kill_all; }
done

echo "# $passed passed, $failed failed"
[ $failed = 0 ]
