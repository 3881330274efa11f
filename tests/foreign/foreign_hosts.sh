#!/bin/bash
# foreign_hosts.sh: programs of other MPI libraries, unmodified, under xrun on two hosts (and three): what they compute, how they end,
# what is left on either host. Which libraries, and where they are looked for: see foreign.sh.
hosts=$(cd "$(dirname "$0")/.." && pwd)/hosts.sh
if [ -z "${RK_INSIDE:-}" ]; then
    if ! why=$("$hosts" able 2>&1); then
        echo "ok - programs of other MPI libraries on two hosts # SKIP $why"
        exit 77
    fi
    export top_srcdir=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)} top_builddir=${top_builddir:-$PWD}
    PEERS_DIR=${PEERS_DIR:-$top_builddir/peers}
    case $PEERS_DIR in /*) ;; *) PEERS_DIR=$PWD/$PEERS_DIR ;; esac
    [ ! -d "$PEERS_DIR" ] || HOSTS_BIND="${HOSTS_BIND:-} $(readlink -f "$PEERS_DIR")"
    export PEERS_DIR HOSTS_BIND
    RK_INSIDE=1 exec "$hosts" run 3 bash "$0"
fi
. "$(dirname "$0")/../launcher/cases.sh"
export OMPI_MCA_btl_base_warn_component_unused=0
# Hosts have a /tmp of their own.
unset TMPDIR
skipped=0
skip() {
    skipped=$((skipped + 1))
    echo "ok - $1 # SKIP $2"
}

on() { "$hosts" exec "$@"; }
of_job() { on "$1" ps -e -o pid=,comm= | grep -E ' (xrun|job-keeper|xrun-agent|ssh|world\.[a-z0-9]*)$' | grep -v sshd; }
files() { on "$1" sh -c 'ls -A /dev/shm /tmp'; } # HOST
left() {
    local h
    for h in hosta hostb hostc; do
        of_job $h | sed "s/^/$h: /"
        files $h | diff "files.$h" - | sed -n "s/^>/$h:/p"
    done
}
none_left() { [ -z "$(left)" ]; }

# job LIMIT ARGS...: xrun on both hosts, with out, err, rc and ms set
job() {
    local limit=$(($1 * slow)) t0=${EPOCHREALTIME/./}
    shift
    on hosta timeout -k 5 "$limit" env XDG_RUNTIME_DIR=/run "$XRUN" --bind none --host "${on_hosts:-hosta,hostb}" --map-by node "$@" >out 2>err </dev/null
    rc=$?
    ms=$(((${EPOCHREALTIME/./} - t0) / 1000))
    [ $rc != 124 ] || [ $ms -lt $((limit * 1000)) ] || rc=hung
}
# verdict NAME CODE [pattern of err]
verdict() {
    local h
    if [ "$rc" != "$2" ]; then
        bad "$1" "exit code $rc, not $2; $ms ms"
    elif [ -n "${3:-}" ] && ! grep -qE -e "$3" err; then
        bad "$1" "stderr does not say: $3"
    elif [ -z "${3:-}" ] && grep -q '^xrun: ' err; then
        bad "$1" "xrun complains"
    elif ! until_true 5 none_left; then
        bad "$1" "left behind: $(left | tr '\n' ' ')"
        for h in hosta hostb hostc; do
            on $h pkill -9 'xrun|job|world'
            files $h >"files.$h"
        done
    else
        good "$1"
    fi
}
# MPICH 4.0 with UCX 1.13 may wait in MPI_Finalize, under its own launcher too, for a peer on another host that waits in
# its server's barrier. That what it had to say came is then all that there is to see.
patience() {
    [ $peer != mpich4 ] || echo "--timeout $((($1 > 4 ? 30 : 8) * slow))"
}
stuck_at_end() { [ $peer = mpich4 ] && [ "$2" -gt 1 ] && [ $rc = 124 ] && [ "$(cat out)" = "$1: $2 ranks are right" ]; }
# right WHAT N: the program has said that its N ranks are right, once
right() {
    if stuck_at_end "$1" "$2"; then
        verdict "$peer: $1, $2 ranks, but for MPI_Finalize" 124 'did not end within'
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
            # shellcheck disable=SC2046 # words
            job 60 $(patience $n) -n $n ./world.$peer $what
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
    [ "$3" != xrun-agent ] || forget_segments "$2" # their names were known to the agent alone
    verdict "$peer: $1" ended "${4:-}"
}
forget_segments() { on "$1" sh -c 'rm -f /dev/shm/vader_segment* /dev/shm/sm_segment* /dev/shm/mpich_*'; }

# early NAME N: a rank has ended before MPI_Init, and nobody waits for it
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
    job 30 -n 4 ./world.$peer abort
    verdict "$peer: MPI_Abort ends the job with its code" 7 'rank 3 .*aborted the job with code 7'
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

# absent PEER WHAT: skipped by name, or a failure if it was asked for
absent() {
    case " ${PEERS:-} " in
    *" $1 "*) bad "$2" "asked for by PEERS" ;;
    *) skip "$2" "not there" ;;
    esac
}

one() { # in a subshell, for its environment: the counts come back in a file
    local mpicc=mpicc h
    peer=$1
    case $peer in
    ompi4) mpicc=mpicc.openmpi ;;
    mpich4) mpicc=mpicc.mpich ;;
    *)
        if [ ! -f "$PEERS_DIR/$peer.sh" ]; then
            absent $peer "$peer: no $PEERS_DIR/$peer.sh (bench/peers.sh --libraries)"
            return
        fi
        . "$PEERS_DIR/$peer.sh"
        ;;
    esac
    if ! command -v $mpicc >/dev/null; then
        absent $peer "$peer: no $mpicc (Debian: openmpi-bin libopenmpi-dev, mpich libmpich-dev)"
        return
    fi
    if ! $mpicc -O1 "$top_srcdir/tests/foreign/world.c" -o world.$peer 2>err; then
        bad "$peer: a program is compiled" "$mpicc failed"
        return
    fi
    for h in hosta hostb hostc; do files $h >"files.$h"; done
    computes
    ends
}

for name in ompi4 mpich4 ompi5 mpich5; do
    case " ${PEERS:-ompi4 mpich4 ompi5 mpich5} " in *" $name "*) ;; *) continue ;; esac
    (one $name; echo "passed=$passed failed=$failed skipped=$skipped" >counts)
    . ./counts
done
echo "# foreign_hosts: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
