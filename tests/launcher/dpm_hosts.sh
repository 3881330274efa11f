#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# dpm_hosts.sh: publish, connect and spawn by PMIx on several hosts.
# The ranks of spawned jobs are on other hosts than the first front end. Checks what is left when such a host dies.
. "$(dirname "$0")/../inside.sh"
inside 3 "several hosts"
. "$(dirname "$0")/cases.sh"
. "$top_srcdir/tests/left.sh"
client=$top_builddir/tests/launcher/programs/dpm_client
both=hosta:1,hostb:1

# xrun LIMIT ARGS...: on hosta, with out, err, rc and ms set
xrun() {
    local limit=$(($1 * slow))
    shift
    on hosta timeout -k 5 "$limit" env XDG_RUNTIME_DIR=/run "$XRUN" -q "$@" >out 2>err </dev/null
    rc=$?
}
begin_on() { # ARGS: in the background
    : >out # the output of the case before is no answer
    : >err
    on hosta env XDG_RUNTIME_DIR=/run "$XRUN" -q "$@" >out 2>err </dev/null &
    xpid=$!
}
here="hosta hostb hostc"
remember $here
# verdict NAME CODE [OKS [pattern of err]]
verdict() {
    if [ "$rc" != "$2" ]; then
        bad "$1" "exit code $rc, not $2: $(head -c 300 out)"
    elif [ -n "${3:-}" ] && [ "$(grep -c '^ok$' out)" != "$3" ]; then
        bad "$1" "not $3 that came to their end: $(head -c 300 out)"
    elif [ -n "${4:-}" ] && ! grep -qE -e "$4" err; then
        bad "$1" "stderr does not say '$4'"
    elif ! until_true 5 none_left $here; then
        bad "$1" "left behind: $(left $here)"
        sweep $here
    else
        good "$1"
    fi
}

xrun 60 -n 4 --host $both "$client" names
verdict "published names" 0 4
xrun 60 -n 4 --host $both "$client" connect
verdict "connect and disconnect" 0 4
xrun 60 -n 4 --host $both --on-failure continue "$client" connect-without 3
verdict "a process of the other host dies before it connects" 137 3
for fanout in 1 2; do
    xrun 60 -n 2 --host $both --map-by node --fanout $fanout "$client" spawn 3
    verdict "a spawned job on the same hosts, fan-out $fanout" 0 5
done
for fanout in 1 2; do
    xrun 60 -n 2 --host $both --map-by node --fanout $fanout "$client" events 3
    verdict "events of all ranges between jobs on the same hosts, fan-out $fanout" 0 8
done
xrun 60 -n 1 --host hostb:1 "$client" spawn 2
verdict "none of it where xrun is" 0 3
# Files that are not there any more when a job is spawned, and hosts that only a rankfile has named.
printf 'hosta:1\nhostb:1\n' >once
echo 'RK_ONCE=given' >vars
xrun 60 -n 2 --hostfile "$PWD/once" --env-file "$PWD/vars" --label-host sh -c "rm -f once vars; [ \$RK_ONCE = given ] && exec '$client' spawn 3"
sed -i 's/^\[*\(host[ab]\)\]* *:* *ok$/\1/' out
verdict "the hostfile and the file of variables are gone" 0
[ "$(grep -c hosta out) $(grep -c hostb out)" = "3 2" ] && good "spawned ranks are on its hosts" || bad "spawned ranks are on its hosts" "$(cat out)"
printf 'rank 0=hosta\nrank 1=hostb\n' >ranks
xrun 60 -n 2 --rankfile "$PWD/ranks" --label-host "$client" spawn 2
sed -i 's/^\[*\(host[ab]\)\]* *:* *ok$/\1/' out
verdict "a rankfile alone" 0
[ "$(grep -c hosta out) $(grep -c hostb out)" = "2 2" ] && good "spawned ranks are on the hosts that it names" || bad "spawned ranks are on the hosts that it names" "$(cat out)"
xrun 60 -n 2 --host $both --map-by node "$client" grandparent 2
verdict "a spawned job spawns" 0 6
xrun 60 -n 2 --host $both --map-by node "$client" spawn-fail 2
verdict "a spawned rank fails" 7
# librank's: each side has ranks on both hosts, which all exchange messages; then one dies, and the others get that.
spawn=$top_builddir/tests/mp/rank_spawn.mp
xrun 90 -n 2 --host $both --map-by node "$spawn"
verdict "rank_spawn on two hosts" 0
# The output of all of them is here, and not on hostb; they have the first job's -x, and of xrun's variables their own job's.
xrun 60 -n 2 --host $both --map-by node -x MP_GIVEN=by-x --output-dir "$PWD/files" "$spawn" --beside 3 --shown
verdict "rank_spawn with --output-dir on two hosts" 0
[ "$(cd files && find . -name '*.out' | LC_ALL=C sort | tr '\n' ' ')" = "./job1/rank.0.out ./job1/rank.1.out ./job1/rank.2.out ./rank.0.out ./rank.1.out " ] &&
    [ "$(find files -name '*.err' | wc -l)" = 5 ] && [ ! -s out ] && good "each rank has its files" || bad "each rank has its files" "$(cat out; find files)"
first=$(sed -n 's/^parent .* \(xrun-[^ ]*\) .*/\1/p' files/rank.0.out) second=$(sed -n 's/^child .* \(xrun-[^ ]*\) .*/\1/p' files/job1/rank.0.out)
shown=$(cd files && grep -E '^(parent|child) ' rank.?.out job1/rank.?.out | sed "s/ $first / first /; s/ $second / second /")
[ "$first" != "$second" ] && [ "$shown" = "rank.0.out:parent on hosta: 0 2 0 1 0 2 first by-x -
rank.1.out:parent on hostb: 1 2 0 1 1 2 first by-x -
job1/rank.0.out:child on hosta: 0 3 0 2 0 2 second by-x 1
job1/rank.1.out:child on hostb: 1 3 0 1 1 2 second by-x 1
job1/rank.2.out:child on hosta: 2 3 1 2 0 2 second by-x 1" ] && good "and its job's variables" || bad "and its job's variables" "$shown"
for order in $both hostb:1,hosta:1; do
    for dies in child parent; do
        xrun 60 -n 2 --host $order --map-by node --on-failure continue "$spawn" --die $dies --spoke
        verdict "rank_spawn on $order: a $dies dies" 137
        [ "$(grep -c '^mp: done' out) $(grep -c '^child: done' out)" = "$([ $dies = child ] && echo 2 1 || echo 1 2)" ] &&
            good "and all others come to their end" || bad "and all others come to their end" "$(cat out)"
    done
done
begin_on -n 2 --host $both --map-by node "$client" spawn-wait 2
until_true 20 ready 4 || bad "kill -9 of xrun: start" "$(cat out err)"
kill -9 "$(on hosta pgrep -o -x xrun)" 2>/dev/null || on hosta pkill -9 -o -x xrun
until_true 10 ended || bad "kill -9 of xrun" "it goes on"
wait "$xpid" 2>/dev/null
rc=0
verdict "kill -9 of the first xrun leaves nothing on any host" 0
begin_on -n 2 --host $both --map-by node --timeout 100 "$client" spawn-wait 2
until_true 20 ready 4 || bad "a host crashes: start" "$(cat out err)"
"$hosts" crash hostb
if until_true 20 ended; then wait "$xpid"; rc=$?; else rc=hung; fi
here=hosta
verdict "a host of both jobs crashes" 1 '' 'the agent on hostb died'

# A host dies between the arrival of its job and the report that it runs. Its cable is slow, so that there is time for
# that; where this script is too slow still, the call has had its answer before.
"$hosts" delay hostc 400000 || bad "a slow cable" "it cannot be laid"
begin_on -v -n 1 --host hosta:1 --on-failure continue "$client" spawn-on 2 hosta:1,hostc:1
until_true 60 grep -q '2 hosts are there' err || bad "a host dies before its job has started" "$(cat err)"
"$hosts" crash hostc
if until_true 30 ended; then wait "$xpid"; rc=$?; else rc=hung; fi
here=hosta
if [ "$rc" != hung ] && grep -q '^spawned' out; then rc=spawned; fi
verdict "a host dies before its job has started: the call returns" spawned

echo "# dpm_hosts: $passed passed, $failed failed"
[ $failed -eq 0 ]
