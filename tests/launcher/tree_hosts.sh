#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# tree_hosts.sh: run a tree of agents on seven hosts, fan-out 2, three deep.
# Covers start and end, output that is not read for a while, files on a full disk, and ranks and agents that die in the leaves and
# above them.
#
#   xrun - node01 (hosta) - node03 (hostc) - node07 (hostg)
#        |                + node04 (hostd)
#        + node02 (hostb) - node05 (hoste)
#                         + node06 (hostf)
. "$(dirname "$0")/../inside.sh"
inside 7 "a tree of hosts"
. "$(dirname "$0")/cases.sh"
. "$top_srcdir/tests/left.sh"
names="hosta hostb hostc hostd hoste hostf hostg"
all=${names// /,}
lines=$top_builddir/tests/launcher/programs/many_lines

front=hosta # where xrun runs
begin_on() { # ARGS: there, in the background
    : >out # the output of the case before is no answer
    : >err
    on $front env XDG_RUNTIME_DIR=/run "$XRUN" -q --fanout 2 "$@" >out 2>err </dev/null &
    xpid=$!
}
finish_in() { # LIMIT in s
    if until_true "$1" ended; then wait "$xpid"; rc=$?; else rc=hung; on $front pkill -9 "xrun"; fi
}
xrun() { # LIMIT ARGS...
    local limit=$1
    shift
    begin_on "$@"
    finish_in "$limit"
}
# All that left.sh checks takes its time on seven hosts: it is checked once more, at the end.
stays() { for h in $names; do on $h ps -e -o comm= | grep -xE 'xrun|xrun-agent|ssh|sh|cat|many_lines|sleep-forever' | sed "s/^/$h: /"; done; }
tidy() { for h in $names; do on $h pkill -9 'xrun|many_lines'; done; }
patience=10
cp "$(command -v sleep)" sleep-forever
remember $names

# ------------------------------------------------------------------------- the tree
# A file with ranges and comments. xrun does not find its own host by such a name: all agents are started by ssh.
printf '# The cluster, and a line that is empty\n\nnode[01-03] slots=2 # the first three\n node04:1\n' >file
printf 'node[05-06,07]\tslots=3\tmax_slots=3\n' >>file
begin_on -n 16 --hostfile "$PWD/file" sh -c "echo ready \$XRUN_RANK \$(hostname) \$XRUN_NODE_RANK \$XRUN_LOCAL_RANK/\$XRUN_LOCAL_SIZE; exec $PWD/sleep-forever 1000"
until_true 40 ready 16 || bad "a tree: start" "$(cat out err)"
started_by() { # HOST: the hosts with agents that were started there
    on "$1" ps -e -o args= | sed -n 's/^\([^ ]*\/\)\{0,1\}ssh .* -- \(node[0-9]*\|host[a-g]\) .*/ \2/p' | sort | tr -d '\n'
}
tree=$(for h in $names; do echo "$h:$(started_by $h)"; done)
on hostg pkill -9 -o -x sleep-forever
finish_in 20
verdict "a rank dies at the end of a tree" 137 'rank 1[345] \(host hostg.*killed by signal 9'
[ "$(sed 's/^ready //' out | sort -n)" = "0 hosta 0 0/2
1 hosta 0 1/2
2 hostb 1 0/2
3 hostb 1 1/2
4 hostc 2 0/2
5 hostc 2 1/2
6 hostd 3 0/1
7 hoste 4 0/3
8 hoste 4 1/3
9 hoste 4 2/3
10 hostf 5 0/3
11 hostf 5 1/3
12 hostf 5 2/3
13 hostg 6 0/3
14 hostg 6 1/3
15 hostg 6 2/3" ] && good "ranges of a file: ranks and hosts" || bad "ranges of a file: ranks and hosts" "$(cat out)"
[ "$tree" = "hosta: node01 node02 node03 node04
hostb: node05 node06
hostc: node07
hostd:
hoste:
hostf:
hostg:" ] && good "the tree has its branches" || bad "the tree has its branches" "$tree"
# xrun's own host is the last but one: its agent is above others, and no process starts more than two.
front=hostf
begin_on -n 7 --host $all --map-by node sh -c 'echo ready $XRUN_RANK $(hostname) $XRUN_NODE_RANK; until [ -e over ]; do sleep 0.05; done'
until_true 40 ready 7 || bad "from another host: start" "$(cat out err)"
tree=$(for h in $names; do echo "$h:$(started_by $h)"; done)
touch over
finish_in 20
rm -f over
verdict "from another host" 0
[ "$(sed 's/^ready //' out | sort -n | tr '\n' ';')" = "0 hosta 0;1 hostb 1;2 hostc 2;3 hostd 3;4 hoste 4;5 hostf 5;6 hostg 6;" ] &&
    good "from another host: ranks and hosts are the same" || bad "from another host: ranks and hosts are the same" "$(cat out)"
[ "$tree" = "hosta:
hostb: hosta hoste
hostc: hostg
hostd:
hoste:
hostf: hostb hostc hostd
hostg:" ] && good "from another host: the tree has its branches" || bad "from another host: the tree has its branches" "$tree"
front=hosta
begin_on -n 7 --host $all --map-by node --on-failure continue sh -c 'echo ready; until [ -e over ]; do sleep 0.05; done; echo over'
until_true 40 ready 7 || bad "an agent dies that has others below: start" "$(cat out err)"
on hostc pkill -9 -x xrun-agent
gone_there() { ! { on hostc ps -e -o comm=; on hostg ps -e -o comm=; } | grep -qxE 'sh|xrun-agent|xrun-supervisor'; }
until_true 20 gone_there && good "with it go its ranks and those below" || bad "with it go its ranks and those below" "$(stays)"
touch over
finish_in 20
rm -f over
verdict "an agent dies that has others below: the others go on" 1 'the agent on hostc died'
[ "$(grep -c over out)" = 5 ] && good "they come to their end" || bad "they come to their end" "$(cat out)"
if [ -n "${FULL:-}" ]; then
    begin_on -n 14 --host $all --map-by node --kill-grace 20 sh -c 'trap "echo got \$XRUN_RANK; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
    until_true 40 ready 14 || bad "TERM: start" "$(cat out err)"
    on hosta pkill -TERM -x xrun
    finish_in 20
    verdict "TERM ends a tree" 143
    [ "$(grep -c got out)" = 14 ] && good "all ranks have got it" || bad "all ranks have got it" "$(cat out)"
    for program in startup team_create; do
        xrun 100 -n 14 --host $all --map-by node --timeout $((90 * slow)) "$top_builddir/tests/mp/$program.mp"
        verdict "$program in a tree" 0
    done
fi

# ------------------------------------------------------------------------- PMIx
# Ranks of one host and of all, on one way up the tree and on several.
far=$top_builddir/tests/launcher/programs/pmix_hosts_client
for what in "fence-some 0" "get-late 13" "get-in-vain 13" "absent-some 13" "leave-before-some 13" "notify 13 session" "notify 13 custom"; do
    come=14
    [ "$what" != "absent-some 13" ] || come=13
    rm -f came.* left.*
    # shellcheck disable=SC2086 # a mode and a rank
    xrun 60 -n 14 --host hosta:2,hostb:2,hostc:2,hostd:2,hoste:2,hostf:2,hostg:2 "$far" $what
    verdict "plain PMIx clients in a tree: $what" 0
    [ "$(grep -cx ok out)" = $come ] && good "all $come are right" || bad "all $come are right" "$(cat out)"
done
front=hostg
xrun 60 -n 14 --host hosta:2,hostb:2,hostc:2,hostd:2,hoste:2,hostf:2,hostg:2 "$far" fence-some 0
verdict "plain PMIx clients in a tree with the last host as head" 0
[ "$(grep -cx ok out)" = 14 ] && good "all 14 are right" || bad "all 14 are right" "$(cat out)"
front=hosta

# A rank that exchanges with two neighbours on other hosts gets what these two and the first rank of its own host have put, and
# in its first collective what four partners have put: not the data of all others.
xrun 60 -n 14 --host $all --map-by node -x RANK_LOG=debug "$top_builddir/examples/ring" 2
verdict "a ring of librank's" 0
asked=$(sed -n 's/.*debug: asked for \([0-9]*\) cards\?$/\1/p' err | sort -n)
[ "$(echo "$asked" | wc -l)" = 14 ] && [ "$(echo "$asked" | head -n 1)" -ge 1 ] && [ "$(echo "$asked" | tail -n 1)" -le 9 ] &&
    good "cards are fetched when they are needed, and no others" || bad "cards are fetched when they are needed, and no others" "$asked"

# ------------------------------------------------------------------------- output
# The output is not read until ranks of each host are blocked by that, and then slowly.
cat >slow.py <<'PY'
import os, sys, time
while not os.path.exists("read"):
    time.sleep(0.02)
for i in range(100):  # first as a terminal does
    data = os.read(0, 4096)
    os.write(1, data)
    time.sleep(0.01)
while data:
    data = os.read(0, 65536)
    os.write(1, data)
PY
mkfifo wire
python3 slow.py <wire >out 2>slow.err &
reader=$!
: >err
on hosta env XDG_RUNTIME_DIR=/run "$XRUN" -q --fanout 2 -n 32 --host $all --map-by node "$lines" flood 1500 >wire 2>err </dev/null &
xpid=$!
held_on() { # how many hosts have a rank that cannot write
    on hosta env XDG_RUNTIME_DIR=/run "$XRUN" --status xrun >st 2>&1
    grep -oE '^rank [0-9]+: sleeps in write of descriptor 1 .*host host[a-g]' st | grep -o 'host[a-g]$' | sort -u | wc -l
}
all_held() { [ "$(held_on)" = 7 ]; }
until_true 40 all_held && good "ranks of all hosts are blocked while output is not read" || bad "ranks of all hosts are blocked while output is not read" "$(cat st)"
touch read
finish_in 60
wait $reader
verdict "32 ranks of seven hosts, and a slow reader" 0
"$lines" check 32 1500 flood <out >wrong && good "no byte is lost" || bad "no byte is lost" "$(cat wrong)"

head -c 600000 /dev/zero >blob
mkdir full
on hosta mount -t tmpfs -o size=1m none full
xrun 40 -n 7 --host $all --map-by node --output-dir "$PWD/full" sh -c '[ $XRUN_RANK -lt 5 ] || cat blob blob; echo end $XRUN_RANK >>ends'
verdict "files on a full disk, of ranks far away" 74 'cannot write .*/full/rank\.[56]\.out: No space left on device; output is lost, the job goes on'
[ "$(grep -c . err)" = 1 ] && [ "$(sort ends | tr '\n' ' ')" = "end 0 end 1 end 2 end 3 end 4 end 5 end 6 " ] &&
    good "it is reported once, and the job goes on" || bad "it is reported once, and the job goes on" "$(cat ends)"
on hosta umount full
# Files need descriptors: the soft limit is raised, but not for the ranks; a hard one that is too low is reported at once.
mkdir files
few() { # LIMIT as ulimit takes it
    on hosta timeout -k 5 $((40 * slow)) env XDG_RUNTIME_DIR=/run bash -c "ulimit $1 && exec \"\$@\"" bash "$XRUN" -q --fanout 2 -n 14 --host $all --map-by node \
        --output-dir "$PWD/files" sh -c 'ulimit -Sn; echo $XRUN_RANK >>ran' >out 2>err </dev/null
    rc=$?
}
few "-n 80"
verdict "too few descriptors for files" 2 'error: --output-dir for 14 ranks needs [0-9]+ open files .* hard limit is 80; start fewer or raise it'
[ "$(grep -c . err)" = 1 ] && [ ! -e ran ] && good "that is one line, and nothing runs" || bad "that is one line, and nothing runs" "$(cat err)"
few "-Sn 100"
verdict "few, but they may be more" 0
[ "$(cat files/rank.*.out | sort | uniq -c | tr -s ' ')" = " 14 100" ] && good "ranks have the user's limit" || bad "ranks have the user's limit" "$(cat files/rank.*)"
until_true 30 none_left && good "nothing is left on any host: process, port, socket, file or segment" ||
    bad "nothing is left on any host" "$(left)"
echo "# tree_hosts: $passed passed, $failed failed"
[ $failed -eq 0 ]
