#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# salloc_tree.sh: build a tree of agents that one srun has started.
# xrun holds no more connections than the fan-out. A host's end, at any moment, ends what is below it, and is named. See
# launcher/bootstrap/parent_lookup.h.
. "$(dirname "$0")/../inside.sh"
inside_slurm 4 "a tree of agents inside Slurm"
here="hosta hostb hostc hostd"
. "$top_srcdir/tests/elsewhere/salloc_common.sh"

# The TCP connections of a host's processes of that name that are up.
connections() { # HOST NAME
    on "$1" bash -c 'for p in $(pgrep -x "$0"); do
        for s in $(ls -l "/proc/$p/fd" 2>/dev/null | sed -n "s/.*socket:\[\([0-9]*\)\]/\1/p"); do
            awk -v s="$s" "\$4 == \"01\" && \$10 == s" /proc/net/tcp /proc/net/tcp6
        done
    done | wc -l' "$2"
}

four="-N4 -n4 --ntasks-per-node=1"
# ------------------------------------------------------------------------- the tree
for fanout in 1 2 3 ""; do
    begin_in "$four" "$XRUN" -q -n 4 ${fanout:+--fanout $fanout} sh -c "echo ready; exec '$rest' 1000"
    until_true 20 ready 4 || bad "fan-out $fanout: start" "$(cat out err)"
    have="$(connections hosta xrun) $(connections hosta xrun-agent) $(connections hostb xrun-agent)"
    case $fanout in # hosta: to xrun, and to hosts below it
    1) want="1 2 2" ;;
    2) want="2 3 1" ;;
    3) want="3 2 1" ;;
    *) want="4 1 1" ;;
    esac
    [ "$have" = "$want" ] && good "fan-out ${fanout:-not set}: connections" || bad "fan-out ${fanout:-not set}: connections" "$have, not $want"
    on hosta pkill -TERM -x xrun
    finish_in 15
    verdict "fan-out ${fanout:-not set}" 143
done
salloc 60 "$four" "$XRUN" -q -n 8 --fanout 1 --map-by node --timeout 50 "$mp/team_create.mp" --short
verdict "teams along it" 0
salloc 30 "$four" "$XRUN" -q -n 4 --fanout 1 sh -c '[ $XRUN_RANK != 3 ] || exit 7; exec sleep 1000'
verdict "a rank fails at its end" 7 'rank 3 \(host hostd, pid [0-9]+\) exited with code 7'
# A script has its agent from xrun, and the others are below that one.
batch "-N4 -n4" "$XRUN -q -n 4 --fanout 1 sh -c 'echo \$XRUN_RANK \$(hostname)'"
batch_ends 20
verdict "a tree from a script" 0
[ "$(sort out | tr '\n' ' ')" = "0 hosta 1 hostb 2 hostc 3 hostd " ] && good "all are in it" || bad "all are in it" "$(cat out)"

# ------------------------------------------------------------------------- losses
begin_in "$four" "$XRUN" -q -n 4 --fanout 1 --timeout 60 sh -c "echo ready; exec '$rest' 1000"
until_true 20 ready 4 || bad "an agent within dies: start" "$(cat out err)"
on hostb pkill -9 -x xrun-agent
finish_in 15
verdict "an agent within dies" 1 'the agent on hostb died'

# Before the tree is whole: on hostc the agent comes on command.
mkdir -p prefix/bin
cat >prefix/bin/xrun <<END
#!/bin/bash
[ "\$(hostname)" != "\$(cat "$PWD/late")" ] || while [ ! -e "$PWD/go" ]; do read -rt 0.05 <> <(:); done
[ "\$(hostname)" != "\$(cat "$PWD/never")" ] || exit 9
exec "$XRUN" "\$@"
END
chmod +x prefix/bin/xrun
echo hostc >late
echo none >never
waits() { [ "$(connections hosta xrun)" = "$1" ]; } # one that waits for its parent's listener is connected to xrun
begin_in "$four" "$XRUN" -q -n 4 --fanout 1 --prefix "$PWD/prefix" sh -c 'echo $XRUN_RANK'
until_true 20 waits 2 || bad "a late parent: start" "$(connections hosta xrun); $(cat err)"
touch go
finish_in 20
verdict "a late parent" 0
[ "$(sort out | tr '\n' ' ')" = "0 1 2 3 " ] && good "is waited for" || bad "is waited for" "$(cat out)"
rm go
begin_in "$four" "$XRUN" -q -n 4 --fanout 1 --prefix "$PWD/prefix" true
until_true 20 waits 2 || bad "its parent dies meanwhile: start" "$(connections hosta xrun); $(cat err)"
on hostb pkill -9 -x xrun-agent
touch go
finish_in 20
verdict "its parent dies meanwhile" 1 'the agent on hostb died|srun ended'
rm go
salloc 30 "$four" "$XRUN" -q -n 4 --fanout 1 --prefix "$PWD/prefix" --start-timeout 3 true
verdict "a parent that does not come" 1 'did not come within 3 s.*hostc'
within "a parent that does not come" 8000
touch go
echo hostc >never
salloc 30 "$four" "$XRUN" -q -n 4 --fanout 1 --prefix "$PWD/prefix" true
verdict "a parent that cannot start" 1 'error: (the agent on host. died|srun ended).*hostc'
within "a parent that cannot start" 8000
finish
