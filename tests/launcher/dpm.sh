#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# dpm.sh: publish, connect and spawn by PMIx on one host.
# Checks how the end of one job ends connected ones, and that a death leaves no process waiting. After each case no process and
# no file is left.
. "$(dirname "$0")/cases.sh"
client=$top_builddir/tests/launcher/programs/dpm_client
count() { [ "$(grep -c "^$2\$" out)" = "$3" ] && good "$1: $3 times $2" || bad "$1: $3 times $2" "$(sort out | uniq -c | tr '\n' ' ')"; }
# The xruns of the case that runs: the first, or those that it has started
spawned_xrun() {
    local p
    for p in $(alive); do
        case $(what "$p") in
        xrun*--spawned-process*) [ "$(cat "/proc/$p/comm")" != xrun ] || echo "$p" ;;
        esac
    done 2>/dev/null
}

# ------------------------------------------------------------------------- one job
for n in 1 3; do
    run 30 -q -n $n "$client" names
    check "published names, $n ranks" 0
    count "published names, $n ranks" ok $n
    run 30 -q -n $n "$client" connect
    check "connect and disconnect, $n ranks" 0
    count "connect and disconnect, $n ranks" ok $n
    run 60 -q -n $n "$client" unknown
    check "a job that is not there, $n ranks" 0
    count "a job that is not there, $n ranks" ok $n
done
run 30 -q -n 3 --on-failure continue "$client" names-of-dead 1
check "the names of a process that dies go with it" 137 'rank 1 .* was killed'
count "the others see that" ok 2
run 30 -q -n 3 --on-failure continue "$client" connect-without 1
check "a process dies before it connects" 137 'rank 1 .* was killed'
count "the others do not wait for it" ok 2

# --------------------------------------------------------------------------- two jobs
for n in 1 2; do
    for children in 1 3; do
        run 30 -q -n $n "$client" spawn $children
        check "$n ranks spawn $children" 0
        count "$n ranks spawn $children, all meet" ok $((n + children))
    done
done
run 30 -q -n 2 "$client" spawn-twice 2
check "two jobs are spawned" 0
count "two jobs are spawned" ok 6
run 30 -q -n 1 "$client" grandparent 2
check "a spawned job spawns" 0
count "a spawned job spawns" ok 5
run 30 -q -n 1 "$client" spawn-go 1
check "a spawned job outlives the first" 0
count "a spawned job outlives the first" late 1
run 30 -q -n 2 "$client" spawn-orphan 2
check "a spawned job gets the end of the first" 0
count "a spawned job gets the end of the first" ok 4
for n in 1 2; do
    run 60 -q -n $n "$client" spawn-late
    check "a late caller of connect, fence or disconnect, $n ranks" 0
    count "a late caller, $n ranks" ok $((n + 1))
done
run 60 -q -n 1 --json r.json "$client" spawn-many 40
check "40 jobs one after the other" 0
[ "$(grep -c '"parent": "xrun-.*"parent_rank": 0, "size": 1, "started": true, .*"exit_code": 0' r.json)" = 40 ] &&
    good "and all are in the report" || bad "and all are in the report" "$(grep -A3 spawned r.json)"
run 30 -v -n 1 "$client" spawn 1
check "-v names the job in its report" 0 '^xrun: (xrun-[^ ]+), spawned by rank 0 of xrun-[^ ]+: start-up in ms:'
run 30 -q -n 2 "$client" spawn-nothing
check "a program that is not there is an error of the call alone" 0 'no program /nowhere/nothing'
count "a program that is not there" ok 2
for policy in l3 ppr:1:node ppr:1:node:OVERSUBSCRIBE core:PE=1 dist:gpu; do
    RK_MAPBY=$policy run 30 -q -n 1 "$client" spawn 1
    check "a spawned job is mapped by $policy" 0
done
RK_MAPBY=ppr:1:node run 30 -q -n 1 "$client" spawn 2
check "one of more ranks than its policy makes is refused" 9 '--map-by ppr:1:node makes 1 rank on these hosts, but -n is 2'
run 30 --tag-output --output-dir files -q -n 1 "$client" spawn 1
check "the options of the first job go for the others" 0
[ "$(cat files/rank.0.out files/job1/rank.0.out)" = "[0] ok
[0] ok" ] && good "but each has files of its own" || bad "but each has files of its own" "$(ls -R files)"

run 30 -q -n "$(nproc)" "$client" spawn-crowd
check "a spawned rank counts the cores as taken" 0
count "a spawned rank counts the cores as taken" 'yield: yes' 1

# librank's ranks of both jobs, on two cores: one of each fits, and of three all report it.
cores=$(taskset -cp $$ | sed 's/.*: //; s/-/,/' | cut -d, -f1-2)
crowded() { # NAME PARENTS CHILDREN LINES
    new_case
    RANK_LOG=info timeout -k 5 $((60 * slow)) taskset -c "$cores" "$XRUN" -q --bind none -n "$2" "$top_builddir/tests/mp/rank_spawn.mp" --beside "$3" >out 2>err </dev/null
    rc=$?
    local reports
    reports=$(grep -c 'this host has fewer cores than ranks of all jobs' err)
    [ "$reports" = "$4" ] || { bad "$1" "$reports ranks report it, not $4"; return; }
    check "$1" 0
}
if [ "$(nproc)" -ge 2 ]; then
    crowded "ranks of two jobs that fit" 1 1 0
    crowded "ranks of two jobs that do not" 2 1 3
    crowded "a spawned job that does not even fit alone" 1 3 1
fi

# A silent launcher is waited for as long as the user wants.
new_case
timeout -k 5 $((30 * slow)) sh -c 'FIRST_XRUN=$$ RANK_SPAWN_TIMEOUT=1s exec "$@"' sh "$XRUN" -q -n 1 \
    "$top_builddir/tests/launcher/programs/spawn_no_answer" >out 2>err </dev/null
rc=$?
check "rank_spawn gives up a launcher that does not answer" 0 'has not reported within 1 s that it started /bin/true'

# Both write as fast as they can, and the reader is slow.
new_case
timeout -k 5 $((60 * slow)) "$XRUN" -q -n 2 "$client" spawn-lines 2 2>err </dev/null | dd ibs=600 obs=64k status=none >out
rc=${PIPESTATUS[0]}
check "output of two jobs" 0
[ "$(grep -cE '^<(parent|child) [01] says that this is line number [0-9]+ of its own, and that it is whole>$' out)" = 20000 ] &&
    [ "$(wc -l <out)" = 20004 ] && good "in whole lines, and all of it" || bad "in whole lines, and all of it" "$(grep -vcE '^<.* whole>$' out) others"

for n in 1 2; do
    run 60 -q -n $n "$client" events $n
    check "events of all ranges between jobs of $n ranks" 0
    count "events of all ranges between jobs of $n ranks" ok $((3 * n))
done

# ------------------------------------------------------------------------------ ends
run 30 -q -n 2 "$client" spawn-fail 2
check "a spawned rank fails: its code, and the end of all" 7 'rank 0 .* exited with code 7'
run 30 -q -n 2 --on-failure continue "$client" spawn-dies 1
check "a spawned rank dies before it connects" 137 'rank 0 .* was killed'
count "its parents do not wait for it" ok 2
# Four heartbeats, in which one of two jobs waits for the other.
for mode in spawn-computing spawn-compute; do
    run 30 -q -n 1 --heartbeat 0.5:kill "$client" $mode 2
    check "--heartbeat S:kill spares jobs that wait for one that computes, $mode" 0 'no progress for'
    count "$mode" ok 3
done
run 30 -q -n 1 --heartbeat 0.5:kill "$client" spawn-wait 2
check "and ends them when no rank computes" 124 'no rank makes progress \(--heartbeat 0.5:kill\)'
run 30 -q -n 1 --heartbeat 0.5:kill "$client" spawn-leave 2
check "also the remaining jobs" 124 'no rank makes progress \(--heartbeat 0.5:kill\)'
run 30 -q -n 1 --timeout 2 "$client" spawn-wait 2
check "--timeout ends all jobs" 124 'did not end within 2 s'
begin -q -n 1 "$client" spawn-wait 2
until_true 20 ready 3 || bad "INT: start" "$(cat out)"
"$XRUN" --status | grep -E -e "-$xpid-" >jobs # others of this user may run elsewhere
[ "$(grep -c . jobs)" = 2 ] && grep -qE "2 of 2 ranks of .*; spawned by rank 0 of xrun-.*-$xpid-" jobs && good "--status lists both jobs" ||
    bad "--status lists both jobs" "$(cat jobs)"
kill -INT "$xpid"; reap 5
check "INT ends all jobs" 130
begin -q -n 1 "$client" spawn-wait 2
until_true 20 ready 3 || bad "kill -9 of the first xrun: start" "$(cat out)"
kill -9 "$xpid"; reap 5
clean "kill -9 of the first xrun" && good "kill -9 of the first xrun leaves nothing"
begin -q -n 1 "$client" spawn-wait 2
until_true 20 ready 3 || bad "kill -9 of a spawned xrun: start" "$(cat out)"
p=$(spawned_xrun | head -n 1)
kill -9 "$p"; reap 10
check "kill -9 of a spawned xrun" 137 'the xrun of the spawned job .* was killed by signal 9'
begin -q -n 1 "$client" spawn-wait 2
until_true 20 ready 3 || bad "kill -9 of a spawned rank: start" "$(cat out)"
for p in $(alive); do case $(what "$p") in *dpm_client\ wait*) kill -9 "$p"; break ;; esac; done
reap 10
check "kill -9 of a spawned rank" 137 'was killed by signal 9'

echo "# dpm: $passed passed, $failed failed"
[ $failed -eq 0 ]
