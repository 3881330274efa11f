#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# foreign.sh: run unmodified programs of other MPI libraries under xrun.
# Checks what they compute, how they end, what is left.
#
# peer_programs.sh lists the libraries and the places where they are searched. PYTHON set: mpi4py on them, and nothing else.

# What lies in /dev/shm is judged: where we may, in one of our own, in which no other job leaves anything.
if [ -z "${RK_OWN_SHM:-}" ] && [ "$(id -u)" = 0 ] && unshare -m mount -t tmpfs tmpfs /dev/shm 2>/dev/null; then
    export RK_OWN_SHM=1
    exec unshare -m sh -c 'mount -t tmpfs -o mode=1777 tmpfs /dev/shm && exec bash "$0" "$@"' "$0" "$@"
fi

. "$(dirname "$0")/peer_programs.sh"
. "$(dirname "$0")/../launcher/cases.sh"

# Segments of this library that no process has mapped: those of other jobs, which may run now, are in use.
segments() {
    case $peer in
    ompi4) ls /dev/shm | grep '^vader_segment\.' ;;
    ompi5) ls /dev/shm | grep '^sm_segment\.' ;;
    *) ls /dev/shm | grep '^mpich_' ;;
    esac | LC_ALL=C sort
}
new_segments() {
    local s
    for s in $(segments | LC_ALL=C comm -13 before -); do
        grep -qsF "/dev/shm/$s" /proc/[0-9]*/maps || echo "$s"
    done
}
nothing_left() { [ -z "$(alive)" ] && [ -z "$(ls -A "$work/tmp")" ] && [ -z "$(new_segments)" ]; }
# The ranks were killed before the agent could read their maps. Then only segments that name the job are removed, as MPICH 5's.
drop_unread_segments() {
    local s
    [ $peer != mpich5 ] || return
    until_true 2 none_alive
    for s in $(new_segments); do rm -f "/dev/shm/$s"; done
}
none_alive() { [ -z "$(alive)" ]; }

# job LIMIT ARGS...: xrun as in the peer's own environment, with out, err, rc and ms set
job() {
    local limit=$(($1 * slow)) t0 t1
    shift
    new_case
    segments >before
    in_turn "$@"
    t0=${EPOCHREALTIME/./}
    "${turn[@]}" timeout -k 5 "$limit" "$XRUN" --bind none "$@" >out 2>err </dev/null
    rc=$?
    t1=${EPOCHREALTIME/./}
    ms=$(((t1 - t0) / 1000))
    [ $rc != 124 ] || [ $ms -lt $((limit * 1000)) ] || rc=hung
}
# check NAME CODE [pattern of err]
check() {
    if [ "$rc" != "$2" ]; then
        bad "$1" "exit code $rc, not $2"
    elif [ -n "${3:-}" ] && ! grep -qE -e "$3" err; then
        bad "$1" "stderr does not say: $3"
    elif [ -z "${3:-}" ] && grep -q '^xrun: ' err; then
        bad "$1" "xrun complains"
    elif ! until_true 2 nothing_left; then
        bad "$1" "left behind: $(alive | tr '\n' ' ')$(cd tmp && find . ! -name . | head -n 5 | tr '\n' ' ')$(new_segments | tr '\n' ' ')"
        kill_all
        rm -rf "$work/tmp"; mkdir "$work/tmp"
    else
        good "$1"
    fi
}
# right NAME WHAT N: the program has printed once that its N ranks are right
right() {
    if [ "$(cat out)" = "$2: $3 ranks are right" ]; then check "$1" 0; else bad "$1" "rc $rc after $ms ms: '$(head -c 300 out)'"; fi
}

# ------------------------------------------------------------------------------------------- one library
computes() {
    local what n
    for what in hello ring allreduce split; do
        for n in 1 4 16 32; do
            # Every day: one of them at each size, and each at one.
            [ -n "${FULL:-}" ] || [ $what = allreduce ] || [ $n = 4 ] || continue
            job 60 -n $n ./world.$peer $what
            right "$peer: $what, $n ranks" $what $n
        done
    done
}

# killed WHAT PROCESS: nothing is left when that is killed with -9 while all ranks wait
killed() {
    local p job
    new_case
    segments >before
    : >out
    timeout -k 5 $((60 * slow)) "$XRUN" -n 4 ./world.$peer wait >out 2>err </dev/null &
    job=$!
    if ! until_true 20 grep -qs 'all wait' out; then
        bad "$peer: $1" "the job does not come up"
    fi
    for p in $(alive); do
        [ "$(cat "/proc/$p/comm" 2>/dev/null)" != "$2" ] || kill -9 "$p"
    done
    wait $job 2>/dev/null
    rc=$?
    [ $2 = xrun ] || [ $rc = 1 ] || bad "$peer: $1" "exit code $rc, not 1"
    [ $2 = xrun ] || drop_unread_segments
    if until_true 4 nothing_left; then good "$peer: $1"; else bad "$peer: $1" "left: $(alive | tr '\n' ' ')$(ls tmp) $(new_segments)"; kill_all; fi
}

ends() {
    local what n slack=$((2000 * slow))
    for n in 16 32; do
        [ -n "${FULL:-}" ] || [ $n = 16 ] || continue
        job 60 -n $n ./world.$peer abort
        check "$peer: MPI_Abort of one of $n" 7 "rank $((n - 1)) .*aborted the job with code 7"
    done
    job 30 -n 4 ./world.$peer abort
    check "$peer: MPI_Abort ends the job with its code" 7 'rank 3 .*aborted the job with code 7'
    [ "$ms" -lt $((slack * 2)) ] && good "$peer: soon" || bad "$peer: soon" "$ms ms"
    job 30 -n 4 ./world.$peer leave
    check "$peer: a rank that leaves without MPI_Finalize" 1 'rank 3 .* exited with code 0, without finalizing'
    job 30 -n 4 ./world.$peer die
    check "$peer: a rank that is killed" 137 'rank 3 .* was killed by signal 9'
    for what in die:137 abort:7; do
        job 30 -n 1 ./world.$peer ${what%:*}
        [ $what != die:137 ] || drop_unread_segments
        check "$peer: a rank that is alone, and ends so: ${what%:*}" ${what#*:} 'rank 0 '
    done
    job 30 -n 4 ./world.$peer never 5
    check "$peer: a rank that fails before MPI_Init" 5 'rank 1 .* exited with code 5'
    job 30 -n 4 ./world.$peer never 0
    case $rc in
    0 | hung | 124) bad "$peer: a rank that ends well before MPI_Init ends the others' wait" "exit code $rc" ;;
    *) check "$peer: a rank that ends well before MPI_Init ends the others' wait" $rc 'xrun: error: rank' ;;
    esac
    job 30 -n 4 --on-failure continue ./world.$peer never 5
    check "$peer: also where the others go on" 5 'the others go on'
    job 30 -n 4 --timeout 3 ./world.$peer wait
    check "$peer: --timeout" 124 'did not end within 3 s'
    killed "kill -9 of xrun" xrun
    killed "kill -9 of its agent" xrun-agent
}

# Debian's MPICH 4 cannot open ports, by which it would spawn: it reports that, under any launcher.
spawns() {
    local n children
    if [ $peer = mpich4 ]; then
        job 30 -n 2 ./spawn.$peer 2
        [ "$rc" = hung ] && bad "$peer: MPI_Comm_spawn" "it hangs" || check "$peer: MPI_Comm_spawn is an error" "$rc" 'Comm_spawn.* failed'
        return
    fi
    for n in 1 2; do
        for children in 2 4; do
            [ -n "${FULL:-}" ] || [ $n = 2 ] || [ $children = 2 ] || continue
            [ -n "${FULL:-}" ] || [ $n$children != 24 ] || continue
            job 60 -n $n ./spawn.$peer $children
            right "$peer: $n ranks spawn $children, all compute" $children $n
        done
    done
    for n in 8 16; do
        [ -n "${FULL:-}" ] || continue
        job 90 -n $n ./spawn.$peer $n
        right "$peer: $n ranks spawn as many, all compute" $n $n
    done
    # Open MPI 4 lets its other ranks wait for ever, under its own mpirun too.
    n=2
    [ $peer != ompi4 ] || n=1
    job 30 -n $n ./spawn.$peer nothing
    if [ "$(cat out)" = "nothing: $n ranks are right" ]; then
        check "$peer: to spawn what is not there is an error" 0 'there is no program /nowhere/nothing'
    else
        bad "$peer: to spawn what is not there is an error" "rc $rc after $ms ms: '$(head -c 300 out)'"
    fi
    job 30 -n 2 ./spawn.$peer die
    case $rc in
    0 | hung | 124) bad "$peer: a spawned rank that dies is the end of all" "exit code $rc" ;;
    *) check "$peer: a spawned rank that dies is the end of all" $rc 'xrun: error: ' ;;
    esac
    # MPICH 5 with UCX has no room for its port's name in a name's text.
    if [ $peer != mpich5 ]; then
        job 30 -n 2 ./spawn.$peer name
        right "$peer: two meet by a published name" name 2
    fi
}

wrapped() {
    job 30 -n 2 sh -c "./world.$peer allreduce; exit \$?"
    right "$peer: behind a shell" allreduce 2
    job 30 -n 2 ./world.$peer alone
    grep -cE '^xrun: warning: none of the 2 ranks has joined' err | grep -qx 1 &&
        good "$peer: singletons are reported" || bad "$peer: singletons are reported" "no such line, or more"
    until_true 2 nothing_left || { kill_all; rm -rf "$work/tmp" && mkdir "$work/tmp"; }
    job 30 -n 2 sh -c "./world.$peer alone 1; exit 0"
    grep -cE '^xrun: warning: none of the 2 ranks has joined' err | grep -qx 1 &&
        good "$peer: also behind a shell" || bad "$peer: also behind a shell" "no such line, or more"
    until_true 2 nothing_left || { kill_all; rm -rf "$work/tmp" && mkdir "$work/tmp"; }
}

# Linked in, and without its symbols; Debian has MPICH so.
linked_in() {
    [ $peer = mpich4 ] || return 0
    # shellcheck disable=SC2046 # words
    if ! gcc -O1 -s "$top_srcdir/tests/foreign/mpi_world.c" -o world.static $(pkg-config --cflags mpich 2>/dev/null) -l:libmpich.a \
        -lhwloc -lucp -lucs -lpthread -lm 2>err; then
        skip "$peer: linked statically and stripped" "it cannot be linked: $(head -n 1 err)"
        return
    fi
    job 30 -n 2 ./world.static allreduce
    right "$peer: linked statically and stripped" allreduce 2
}

# mpi4py's own programs that print a world, and its own tests
from_python() {
    local libmpi
    if ! PYTHONPATH=$PEERS_DIR/python python3 -c 'import mpi4py' 2>/dev/null; then
        absent mpi4py "mpi4py on $peer: not in $PEERS_DIR/python (bench/peers.sh --libraries)"
        return
    fi
    # It loads the library under its most common name; Debian's MPICH has another.
    libmpi=$(LC_ALL=C ldd ./world.$peer | sed -n 's/.*=> \(.*\/libmpi\(ch\)\?\.so\.[0-9]*\) .*/\1/p' | head -n 1)
    case $libmpi in
    *libmpich.so.*)
        mkdir -p lib
        ln -sf "$libmpi" lib/libmpi.so.12
        libmpi=$work/lib/libmpi.so.12
        ;;
    esac
    export PYTHONPATH=$PEERS_DIR/python PYTHONDONTWRITEBYTECODE=1 MPI4PY_LIBMPI=$libmpi \
        LD_LIBRARY_PATH=${libmpi%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    job 60 -n 4 python3 -m mpi4py.bench helloworld
    if [ "$(sed -n 's/^Hello, World! I am process \([0-9]\) of 4 .*/\1/p' out | sort | tr -d '\n')" = 0123 ]; then
        check "$peer: mpi4py's helloworld, 4 ranks" 0
    else
        bad "$peer: mpi4py's helloworld, 4 ranks" "rc $rc: $(head -c 300 out)"
    fi
    if [ ! -f "$PEERS_DIR/mpi4py-test/main.py" ]; then
        absent mpi4py "$peer: mpi4py's tests: not in $PEERS_DIR/mpi4py-test (bench/peers.sh --libraries)"
        return
    fi
    mpi4py_tests "of the world" -i comm -i group -i environ -i msgzero -i p2p_obj
    # MPICH 4 cannot spawn, and spins where it waits, which takes minutes where ranks exceed cores.
    if [ -n "${FULL:-}" ] && [ $peer != mpich4 ]; then
        mpi4py_tests "of collectives on the world" -i cco_obj -i cco_buf
        mpi4py_tests "of a world that spawns" -i spawn
    fi
}

# mpi4py_tests NAME MODULE...: its own test program, each rank of which reports success, of the same number of tests
mpi4py_tests() {
    local name="$peer: mpi4py's tests $1, 4 ranks" ran without=-
    shift
    # It needs PMIx groups, which are not there yet. Open MPI 5 reports it, and from then on waits for ever in most runs of
    # MPI_Comm_create_group.
    [ $peer != ompi5 ] || without=testCreateFromGroup
    job 240 -n 4 --timeout $((200 * slow)) --timeout-traces python3 "$top_srcdir/tests/foreign/mpi4py_tests.py" "$without" \
        "$PEERS_DIR/mpi4py-test/main.py" --no-builddir -f -k World -e inter "$@"
    ran=$(sed -n 's/^Ran \([0-9]*\) tests in .*/\1/p' err)
    if [ "$rc" = 0 ] && [ "$(grep -cE '^OK( \(skipped=[0-9]*\))?$' err)" = 4 ] && [ "$(echo "$ran" | sort -u | wc -l)" = 1 ] &&
        [ "${ran%%$'\n'*}" -ge 10 ]; then
        check "$name" 0
    else
        bad "$name" "rc $rc after $ms ms: $(tail -n 3 err | tr '\n' ' ')"
        # Where they all stand, if they do.
        sed -n '/--timeout/,$p' err | grep -E '^(#[0-9]+ |.*rank)' | cut -c1-120 | head -n 60 | sed 's/^/# /'
        kill_all
        rm -rf "$work/tmp"; mkdir "$work/tmp"
    fi
}

one() {
    if [ -n "${PYTHON:-}" ]; then
        from_python
        return
    fi
    computes
    ends
    spawns
    wrapped
    linked_in
}
with_each_peer spawn
