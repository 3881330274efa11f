# SPDX-License-Identifier: BSD-3-Clause
# peer_programs.sh: find other MPI libraries and compile their programs.
# Sourced by foreign.sh and foreign_hosts.sh.
#
# Debian's Open MPI 4 and MPICH 4 are used where their compilers are installed; Open MPI 5, MPICH 5 and mpi4py where
# bench/peers.sh --libraries has put them: in $PEERS_DIR, or in the build folder. PEERS="mpich4 ompi5" names those
# that are meant; one that is not there is then a failure. PEER=mpich4: this one alone, of those that are meant.
PEERS_DIR=${PEERS_DIR:-${top_builddir:-$PWD}/peers}
case $PEERS_DIR in /*) ;; *) PEERS_DIR=$PWD/$PEERS_DIR ;; esac
export PEERS_DIR
# Their messages as root, and without a network that they support.
export OMPI_MCA_btl_base_warn_component_unused=0
skipped=0

skip() {
    skipped=$((skipped + 1))
    echo "ok - $1 # SKIP $2"
}

# absent PEER WHAT: skipped by name, or a failure if it was demanded
absent() {
    case " ${PEERS:-} " in
    *" $1 "*) bad "$2" "asked for by PEERS" ;;
    *) skip "$2" "not there" ;;
    esac
}

# in_turn ARGS...: sets turn, what stands before an xrun with these arguments. Many ranks of libraries that spin where they
# wait would starve the tests beside them twice over: one such job at a time.
in_turn() {
    turn=()
    case " $* " in *" -n 16 "* | *" -n 32 "*) turn=(flock -o "$top_builddir/tests/foreign.turn") ;; esac
}

# prepared PEER PROGRAM...: its environment is ours, and the programs of this folder are compiled: PROGRAM.PEER
prepared() {
    local mpicc=mpicc program
    peer=$1
    shift
    case $peer in
    ompi4) mpicc=mpicc.openmpi ;;
    mpich4) mpicc=mpicc.mpich ;;
    *)
        if [ ! -f "$PEERS_DIR/$peer.sh" ]; then
            absent $peer "$peer: no $PEERS_DIR/$peer.sh (bench/peers.sh --libraries)"
            return 1
        fi
        . "$PEERS_DIR/$peer.sh"
        ;;
    esac
    if ! command -v $mpicc >/dev/null; then
        absent $peer "$peer: no $mpicc (Debian: openmpi-bin libopenmpi-dev, mpich libmpich-dev)"
        return 1
    fi
    for program do
        $mpicc -O1 "$top_srcdir/tests/foreign/mpi_$program.c" -o "$program.$peer" 2>err && continue
        bad "$peer: a program is compiled" "$mpicc failed: mpi_$program.c"
        return 1
    done
}

# with_each_peer [PROGRAM...]: calls "one" with mpi_world.c and mpi_PROGRAM.c compiled, for each library; then the script is at
# its end. In subshells, for their environments: the counts come back in a file.
with_each_peer() {
    local name
    for name in ompi4 mpich4 ompi5 mpich5; do
        case " ${PEER:-$name} " in *" $name "*) ;; *) continue ;; esac
        case " ${PEERS:-$name} " in *" $name "*) ;; *) continue ;; esac
        (prepared $name world "$@" && one; echo "passed=$passed failed=$failed skipped=$skipped" >counts)
        . ./counts
    done
    echo "# $passed passed, $failed failed, $skipped skipped"
    [ $failed -eq 0 ] || exit 1
    [ $passed -gt 0 ] || exit 77
    exit 0
}
