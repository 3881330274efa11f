#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# device_pairs.sh: ask for the devices of ranks on recorded machines.
# HWLOC_XMLFILE makes hwloc read a machine that is not there. What rank_device_query finds is compared with the pairs of
# rankinfo --topo: under xrun with and without its options about devices, under other launchers, and alone.
. "$top_srcdir/tests/env.sh"
unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER UCX_NET_DEVICES RANK_NICS HWLOC_COMPONENTS
program=$top_builddir/tests/device/device_query.mp
machines=$top_srcdir/tests/data/topologies
work=$(mktemp -d "$top_builddir/tests/device_pairs.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
export RANK_ERRORS=quiet
bad=0

verdict() { # NAME
    if sort -n "$work/lines" | cmp -s - "$work/wanted"; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        diff "$work/wanted" <(sort -n "$work/lines") | sed 's/^/# /'
        head -n 8 "$work/err" | sed 's/^/# err: /'
        bad=1
    fi
}
# on MACHINE COMMAND...: run it there; leaves the lines of the program
on() {
    local machine=$machines/$1.xml
    shift
    HWLOC_XMLFILE=$machine TMPDIR=$work timeout -k 5 60 "$@" >"$work/out" 2>"$work/err" </dev/null
    grep -E '^[0-9]+ ' "$work/out" >"$work/lines"
}
# pairs MACHINE RANKS [OPTIONS]: what rankinfo finds, in the form of the program
pairs() {
    local machine=$machines/$1.xml ranks=$2
    shift 2
    "$top_builddir/rankinfo" --topo --xml "$machine" --ranks "$ranks" "$@" >"$work/topo"
    awk '/^  NIC [0-9]/ { nic[$2] = $4 == "" ? $3 : $4; sub(/,$/, "", nic[$2]) }
         /^  rank / { line = $0; sub(/^  rank /, "", line); rank = line; sub(/ .*/, "", rank)
                      sub(/^[0-9]+ +cpus /, "", line)
                      while (match(line, /; NIC [0-9]+ /)) {
                          n = substr(line, RSTART + 6, RLENGTH - 7)
                          line = substr(line, 1, RSTART - 1) "; nic " nic[n] " " substr(line, RSTART + RLENGTH)
                      }
                      gsub(/; nic /, "; NIC ", line)
                      print rank " " line }' "$work/topo" | sort -n >"$work/wanted"
}

for machine in coral-lassen g4dnmetal; do
    pairs $machine 3
    on $machine "$XRUN" --bind none -n 3 "$program"
    verdict "$machine: the library finds the pairs"
    pairs $machine 1
    on $machine "$program"
    verdict "$machine: a program alone"
    pairs $machine 2 --gpus-per-rank 2 --nics-per-rank 2
    on $machine "$XRUN" --bind none -n 2 --gpus-per-rank 2 --nics-per-rank 2 "$program"
    verdict "$machine: what xrun has given"
done
pairs coral-lassen 6
on coral-lassen "$XRUN" --bind none -n 6 "$program"
verdict "more ranks than GPUs"
on coral-lassen env RANK_CHANNELS=self,ucx "$XRUN" --bind none -n 6 "$program"
grep -q 'the module ucx is needed' "$work/err" || verdict "without shared memory"
wanted() { printf '%s\n' "$@" >"$work/wanted"; }
on g4dnmetal "$XRUN" --bind none -n 2 "$program" --ordinals
wanted "0 0=0" "1 1=1"
verdict "ordinals without CUDA_VISIBLE_DEVICES"
on g4dnmetal "$XRUN" --bind none -n 2 -x CUDA_VISIBLE_DEVICES=5,2,7 "$program" --ordinals
wanted "0 1=2" "1 0=5"
verdict "ordinals by numbers"
on g4dnmetal "$XRUN" --bind none -n 2 sh -c 'CUDA_VISIBLE_DEVICES=$((XRUN_RANK + 4)) exec "$0" --ordinals' "$program"
wanted "0 0=4" "1 0=5"
verdict "each rank with one of its own"
uuid=$(grep -o 'GPU-[0-9a-f-]*' "$machines/g4dnmetal.xml" | awk '!seen[$0]++' | sed -n 4p)
on g4dnmetal "$XRUN" --bind none -n 1 -x "CUDA_VISIBLE_DEVICES=6,${uuid:0:12}" --gpus-per-rank 2 "$program" --ordinals
wanted "0 0=3 1=6"
verdict "ordinals of GPUs that xrun has given"
on epyc-corona "$XRUN" --bind none -n 2 "$program" --ordinals
wanted "0 -1=-1" "1 -1=-1"
verdict "GPUs that CUDA does not use"
on g4dnmetal "$XRUN" --bind none -q -n 1 -x XRUN_DEVICES=x "$program"
grep -q 'xrun itself sets that variable' "$work/err" || { echo "not ok - the variable is xrun's"; bad=1; }
# 0,2,...,198 is longer than the field of 256 bytes, which ends inside of 154.
on g4dnmetal "$XRUN" --bind none -n 1 sh -c 'XRUN_DEVICES="numa=-1;cpus=$(seq -s, 0 2 198);" exec "$0"' "$program"
wanted "0 $(seq -s, 0 2 152)"
verdict "a list of cores that is too long"
on g4dnmetal env RANK_ERRORS=report RANK_MODULES="$work" "$XRUN" --bind none -n 2 "$program" --missing
[ "$(grep -c 'mp: done$' "$work/out")" = 2 ] && grep -q 'the module topo is needed' "$work/err" && echo "ok - without the module" ||
    { echo "not ok - without the module"; cat "$work/out" "$work/err"; bad=1; }
if command -v mpirun.openmpi >/dev/null; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    pairs coral-lassen 2
    on coral-lassen mpirun.openmpi --oversubscribe --bind-to none -n 2 "$program"
    verdict "under Open MPI's mpirun"
    on coral-lassen "$XRUN" --bind none -n 1 --gpus-per-rank 4 mpirun.openmpi --oversubscribe --bind-to none -n 2 "$program"
    verdict "not by the variable of an outer xrun"
fi
exit $bad
