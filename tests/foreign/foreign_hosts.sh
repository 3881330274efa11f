#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# foreign_hosts.sh: run programs of other MPI libraries on two hosts and three.
# Unmodified, under xrun. Checks what they compute, how they end, what is left on each host. peer_programs.sh lists the libraries
# and the places where they are searched.
. "$(dirname "$0")/../inside.sh"
. "$(dirname "$0")/peer_programs.sh"
[ ! -d "$PEERS_DIR" ] || export HOSTS_BIND="${HOSTS_BIND:-} $(readlink -f "$PEERS_DIR")"
inside 3 "programs of other MPI libraries on two hosts"
. "$(dirname "$0")/../launcher/cases.sh"
# Hosts have a /tmp of their own.
unset TMPDIR
. "$top_srcdir/tests/left.sh"

# job LIMIT ARGS...: xrun on both hosts, with out, err, rc and ms set
job() {
    local limit=$(($1 * slow)) t0=${EPOCHREALTIME/./}
    shift
    in_turn "$@"
    on hosta "${turn[@]}" timeout -k 5 "$limit" env XDG_RUNTIME_DIR=/run "$XRUN" --bind none --host "${on_hosts:-hosta,hostb}" --map-by node "$@" >out 2>err </dev/null
    rc=$?
    ms=$(((${EPOCHREALTIME/./} - t0) / 1000))
    [ $rc != 124 ] || [ $ms -lt $((limit * 1000)) ] || rc=hung
}
# verdict NAME CODE [pattern of err]
verdict() {
    if [ "$rc" != "$2" ]; then
        bad "$1" "exit code $rc, not $2; $ms ms"
    elif [ -n "${3:-}" ] && ! grep -qE -e "$3" err; then
        bad "$1" "stderr does not say: $3"
    elif [ -z "${3:-}" ] && grep '^xrun: ' err | grep -qv ': waiting for [0-9]* of [0-9]* hosts: '; then # but that a busy host is slow
        bad "$1" "xrun complains"
    elif ! until_true 5 none_left; then
        bad "$1" "left behind: $(left)"
        sweep
    else
        good "$1"
    fi
}
# job_of WHAT N: N ranks compute. MPICH 4.0 with UCX 1.13 may wait in MPI_Finalize, under its own launcher too, for a peer on
# another host that waits in its server's barrier. That what it had to say came is then all that there is to see: it has
# three seconds to end, and is ended.
job_of() {
    stuck=
    if [ $peer != mpich4 ] || [ "$2" = 1 ]; then
        job 60 -n "$2" ./world.$peer "$1"
        return
    fi
    : >out
    on hosta timeout -k 5 $((60 * slow)) env XDG_RUNTIME_DIR=/run "$XRUN" --bind none --host hosta,hostb --map-by node -n "$2" ./world.$peer "$1" >out 2>err </dev/null &
    xpid=$!
    until_true 60 told_or_ended
    if ! until_true 3 ended && [ "$(cat out)" = "$1: $2 ranks are right" ]; then
        stuck=yes
        on hosta pkill -TERM -x xrun
    fi
    rc=hung
    if until_true 60 ended; then
        wait $xpid
        rc=$?
    fi
}
told_or_ended() { [ -s out ] || ended; }
# right WHAT N: the program has printed once that its N ranks are right
right() {
    if [ -n "$stuck" ]; then
        verdict "$peer: $1, $2 ranks, but for MPI_Finalize" 143 'xrun: '
        return
    fi
    if [ "$(cat out)" = "$1: $2 ranks are right" ]; then verdict "$peer: $1, $2 ranks" 0; else bad "$peer: $1, $2 ranks" "rc $rc after $ms ms: '$(head -c 300 out)'"; fi
}

computes() {
    local what n
    for what in hello ring allreduce split; do
        for n in 1 2 4 16 32; do
            # Every day: one of them at each size, and each at one.
            [ -n "${FULL:-}" ] || [ $what = allreduce ] || [ $n = 4 ] || continue
            job_of $what $n
            right $what $n
        done
    done
}

# killed WHAT HOST PROCESS: nothing is left when that is killed with -9 while all ranks wait
killed() {
    : >out
    on hosta env XDG_RUNTIME_DIR=/run timeout -k 5 $((60 * slow)) "$XRUN" --bind none --host hosta,hostb --map-by node -n 4 ./world.$peer wait >out 2>err </dev/null &
    xpid=$!
    until_true 30 grep -qs 'all wait' out || bad "$peer: $1" "the job does not come up"
    on "$2" pkill -9 -x "$3"
    rc=hung
    if until_true 15 ended; then
        wait $xpid
        rc=$?
    fi
    [ "$rc" = 0 ] || [ "$rc" = hung ] || rc=ended
    # Ranks that are killed with their agent leave segments, except those of MPICH 5, which name the job.
    [ "$3" = xrun ] || on "$2" sh -c 'rm -f /dev/shm/vader_segment.* /dev/shm/sm_segment.* /dev/shm/mpich_shar_tmp*'
    verdict "$peer: $1" ended "${4:-}"
}

# early NAME N: a rank has ended before MPI_Init, and no rank waits for it
early() {
    case $rc in
    0)
        # Open MPI does without a peer that it has not met.
        if [ "${peer%[45]}: $(cat out)" = "ompi: never: $2 ranks are right" ]; then
            : >err
            verdict "$1" 0
        else
            bad "$1" "exit code $rc"
        fi
        ;;
    hung | 124) bad "$1" "exit code $rc" ;;
    *) verdict "$1" "$rc" 'xrun: error: rank' ;;
    esac
}

ends() {
    local n go_on code
    for n in 4 16 32; do
        [ -n "${FULL:-}" ] || [ $n = 4 ] || continue
        job 60 -n $n ./world.$peer abort
        verdict "$peer: MPI_Abort of one of $n ends the job with its code" 7 "rank $((n - 1)) .*aborted the job with code 7"
    done
    job 30 -n 4 ./world.$peer leave
    verdict "$peer: a rank that leaves without MPI_Finalize" 1 'rank 3 .* exited with code 0, without finalizing'
    job 30 -n 4 ./world.$peer die
    verdict "$peer: a rank that is killed" 137 'rank 3 .* was killed by signal 9'
    # Alone on its host, or beside one that joins.
    for n in 2 4; do
        job 30 -n $n ./world.$peer never 5
        verdict "$peer: a rank of $n that fails before MPI_Init" 5 'rank 1 .* exited with code 5'
        for go_on in kill continue; do
            for code in 0 5; do
                [ $go_on$code != kill5 ] || continue
                job 30 -n $n --on-failure $go_on ./world.$peer never $code
                early "$peer: a rank of $n that ends with $code before MPI_Init ends the others' wait, on failure $go_on" $n
            done
        done
    done
    # The host between two others, through which all goes that these say, has no rank left.
    on_hosts=hosta,hostb,hostc job 30 -n 3 --fanout 1 ./world.$peer never 0
    early "$peer: a rank that ends before MPI_Init, between two hosts" 3
    job 30 -n 4 --timeout 3 ./world.$peer wait
    verdict "$peer: --timeout" 124 'did not end within 3 s'
    killed "kill -9 of xrun" hosta xrun
    killed "kill -9 of an agent" hostb xrun-agent 'the agent on hostb died'
}

# As foreign.sh tests spawning on one host, with parents and children on both.
spawns() {
    local n children stuck=
    if [ $peer = mpich4 ]; then
        job 30 -n 2 ./spawn.$peer 2
        case $rc in
        0 | hung | 124) bad "$peer: MPI_Comm_spawn is an error" "exit code $rc" ;;
        *) verdict "$peer: MPI_Comm_spawn is an error" "$rc" 'Comm_spawn.* failed' ;;
        esac
        return
    fi
    for n in 1 2 4; do
        for children in 2 4; do
            [ -n "${FULL:-}" ] || [ $n$children = 12 ] || [ $n$children = 24 ] || continue
            job 60 -n $n ./spawn.$peer $children
            spawned "$n ranks spawn $children on two hosts, all compute" $children $n
        done
    done
    for n in 8 16; do
        [ -n "${FULL:-}" ] || break
        job 90 -n $n ./spawn.$peer $n
        spawned "$n ranks spawn as many on two hosts, all compute" $n $n
    done
    job 30 -n 2 ./spawn.$peer die
    case $rc in
    0 | hung | 124) bad "$peer: a spawned rank that dies is the end of all" "exit code $rc" ;;
    *) verdict "$peer: a spawned rank that dies is the end of all" "$rc" 'xrun: error: ' ;;
    esac
    # MPICH 5 with UCX has no room for its port's name in a name's text.
    if [ $peer != mpich5 ]; then
        job 30 -n 2 ./spawn.$peer name
        spawned "two on two hosts meet by a published name" name 2
    fi
}
# spawned NAME WHAT N: N parents have printed that all is right
spawned() {
    if [ "$(cat out)" = "$2: $3 ranks are right" ]; then verdict "$peer: $1" 0; else bad "$peer: $1" "rc $rc after $ms ms: '$(head -c 300 out)'"; fi
}

one() {
    remember hosta hostb hostc
    computes
    spawns
    ends
}
with_each_peer spawn
