#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# silent_peer_hosts.sh: end a wait for a rank of another host when that host dies.
# Under a launcher that reports nothing (a real Slurm). The death of the rank or its host ends the wait in ten seconds; a stop does
# not. See lib/core/peer_death.c.
. "$(dirname "$0")/../inside.sh"
inside_slurm 2 "the end of a link" 64
. "$top_srcdir/tests/launcher/cases.sh"
mute=$top_builddir/tests/faults/silent_peer
[ -z "${SAN_CFLAGS:-}" ] || export RK_LEAKS=0

ranks=2 # the last of which is tested; place: srun's options for where they run
place="-N2 --ntasks-per-node=1"
begin_mute() { # ARGS: in the background; pid is that of the last rank, on hostb
    : >out
    : >err
    # shellcheck disable=SC2086 # words
    on hosta env RANK_LOG=debug srun -Q $place -n$ranks --kill-on-bad-exit=0 --mpi=pmix "$mute" "$@" >out 2>err </dev/null &
    xpid=$!
    until_true $((20 + ranks)) grep -q '^ready' out || bad "$*: start" "$(cat out err)"
    # Only a rank that waits connects to it.
    until_true 20 grep -q "first contact of rank $((ranks - 1)) " err || bad "$*: it is contacted" "$(cat out err)"
    pid=$(sed -n 's/^ready //p' out)
}
says() { grep -q "^ended: $1" out; }
# Its code gives the same, as srun now and then loses the last line of a rank that ends beside a killed one.
is_told() { says '.*\(dead\|died\)' || grep -q 'task 0: Exited with exit code 5$' err; }
end_mute() { # NAME: whatever is left
    until_true 10 ended || { on hosta pkill -9 -x srun; on hosta scancel -u root; }
    wait "$xpid"
    on hosta pkill -9 -x "${mute##*/}"
    on hostb pkill -9 -x "${mute##*/}"
    until_true 20 eval '[ -z "$(on hosta squeue -h 2>/dev/null)" ]' || on hosta scancel -u root
}

for how in "" --flooded; do
    begin_mute $how
    on hostb kill -9 "$pid"
    until_true 10 is_told && good "a rank is killed, $([ "$how" ] && echo "and its child lives" || echo "without any message before")" || bad "a rank is killed $how" "$(cat out err)"
    end_mute
done
begin_mute
on hostb kill -STOP "$pid"
sleep 12 # longer than a death may take
says '' && bad "a stopped rank is not dead" "$(cat out err)" || good "a stopped rank is not dead"
on hostb kill -CONT "$pid"
on hostb kill -USR1 "$pid"
until_true 10 says '.*succ' && good "and speaks when it goes on" || bad "and speaks when it goes on" "$(cat out err)"
end_mute
# A rank with threads, of which one polls for another rank; more ranks are there than are watched without being waited for.
ranks=38 place="-N2 -m arbitrary"
export SLURM_HOSTFILE=$PWD/where
{ echo hosta; for ((i = 1; i < ranks; i++)); do echo hostb; done; } >"$SLURM_HOSTFILE"
begin_mute --threads
on hostb kill -9 "$pid"
until_true 10 is_told && good "a thread waits, and another polls" || bad "a thread waits, and another polls" "$(cat out err)"
end_mute
unset SLURM_HOSTFILE
ranks=2 place="-N2 --ntasks-per-node=1"
# Last, since Slurm does not get over it.
begin_mute --met
"$hosts" link hostb down
until_true 10 is_told && good "a host is cut off" || bad "a host is cut off" "$(cat out err)"
on hosta pkill -9 -x srun
wait "$xpid"
echo "# silent_peer_hosts: $passed passed, $failed failed"
[ $failed -eq 0 ]
exit
