#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# gpus.sh: give ranks their GPUs and NICs, on recorded machines.
# HWLOC_XMLFILE makes hwloc read a machine that is not there. Ranks are bound only on one that has this host's CPUs.
. "$(dirname "$0")/cases.sh"
live=${HWLOC_COMPONENTS:-} # with it hwloc ignores HWLOC_XMLFILE
unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER UCX_NET_DEVICES RANK_NICS HWLOC_COMPONENTS
machines=$(cd "$top_srcdir/tests/data/topologies" && pwd)
mark="touch $work/started"
show='echo "$XRUN_RANK ${CUDA_VISIBLE_DEVICES-unset} ${CUDA_DEVICE_ORDER-unset}"'

# on MACHINE ARGS...: run on it
on() {
    local machine=$1
    shift
    HWLOC_XMLFILE=$machine run 10 --mpi none --bind none "$@"
    sort -n out >sorted && mv sorted out
}
# no NAME PATTERN ARGS...: refused on the machine with 8 T4
no() {
    local name=$1 pattern=$2
    shift 2
    HWLOC_XMLFILE=$machines/g4dnmetal.xml refused "$name" 2 "$pattern" --mpi none --bind none "$@" $mark
}
# uuid FIRST [SECOND]: the UUIDs of GPUs of the machine with 8 T4
uuid() {
    grep -o 'GPU-[0-9a-f-]*' "$machines/g4dnmetal.xml" | awk -v want="$*" '
        { all[NR - 1] = $0 }
        END { n = split(want, part, " "); for (i = 1; i <= n; i++) printf "%s%s", (i > 1 ? "," : ""), all[part[i]] }'
}
t4=$machines/g4dnmetal.xml

run 10 -n 2 sh -c "$show"; sort -n out >sorted && mv sorted out
same "without the options no variable changes" "0 unset unset
1 unset unset"
CUDA_VISIBLE_DEVICES=5 on "$t4" -n 1 --gpu-bind none sh -c "$show"; same "nor with --gpu-bind none" "0 5 unset"
on "$t4" -n 4 --gpus-per-rank 2 sh -c "$show"
same "two GPUs a rank, by UUID" "0 $(uuid 0 1) unset
1 $(uuid 2 3) unset
2 $(uuid 4 5) unset
3 $(uuid 6 7) unset"
on "$t4" -n 3 --gpu-bind map:5,1 sh -c "$show"
same "by a list, which is repeated" "0 $(uuid 5) unset
1 $(uuid 1) unset
2 $(uuid 5) unset"
on "$t4" -n 16 --gpu-bind closest sh -c "$show"
[ "$(awk '{ print $2 }' out | uniq -c | awk '$1 == 2' | wc -l)" = 8 ] && check "consecutive ranks share" 0 || bad "consecutive ranks share" "$(cat out)"
CUDA_VISIBLE_DEVICES=6,2 on "$t4" -n 2 --gpus-per-rank 1 sh -c "$show"
same "an inherited value is dealt from" "0 $(uuid 2) unset
1 $(uuid 6) unset"
uuids=$(uuid 7)
on "$t4" -n 1 --gpus-per-rank 1 -x CUDA_VISIBLE_DEVICES="${uuids:0:12}" sh -c "$show"
same "one of -x, by the start of a UUID, too" "0 $(uuid 7) unset"
sed 's/NVIDIAUUID/Other/' "$t4" >numbers.xml
on "$work/numbers.xml" -n 2 --gpus-per-rank 1 --gpu-bind map:3,4 sh -c "$show"
same "numbers where UUIDs are not known" "0 3 PCI_BUS_ID
1 4 PCI_BUS_ID"

# ------------------------------------------------------------------------------------------- refusals
no "too many GPUs a rank" '9 GPUs for each rank are too many: there are 8' -n 2 --gpus-per-rank 9
no "a doubled GPU" 'GPU 1 is listed twice' -n 2 --gpu-bind map:1,0,1
no "an unknown GPU" 'GPU 8 is not there: the machine has 8' -n 2 --gpu-bind map:8
no "a malformed list" "gpu-bind is 'map:1,'; give closest, none or map:" --gpu-bind map:1,
no "an unknown word" "gpu-bind is 'near'; give closest" --gpu-bind near
no "no number" "gpus-per-rank is '0'; give a number" --gpus-per-rank 0
no "a contradiction" 'gpus-per-rank 1 and --gpu-bind none contradict' --gpus-per-rank 1 --gpu-bind none
CUDA_VISIBLE_DEVICES=0,3 no "a hidden GPU" 'GPU 1 is hidden from this job' --gpu-bind map:1
CUDA_VISIBLE_DEVICES= no "all hidden" '1 GPU for each rank is too many: there are 0' --gpus-per-rank 1
CUDA_VISIBLE_DEVICES=0,9 no "an inherited GPU that is not there" "CUDA_VISIBLE_DEVICES has '9', which is no GPU" --gpus-per-rank 1
CUDA_VISIBLE_DEVICES=0,0 no "an inherited GPU twice" "has '0', which is listed twice" --gpus-per-rank 1
no "programs that differ" 'is not the same for all programs' --gpus-per-rank 1 -x CUDA_VISIBLE_DEVICES=1 true : -n 1
HWLOC_XMLFILE=$machines/epyc-corona.xml refused "a machine with GPUs of AMD only" 2 'has no GPU of NVIDIA, which --gpus-per-rank needs' \
    --mpi none --bind none --gpus-per-rank 1 $mark

# ------------------------------------------------------------------------------------------------- NICs
lassen=$machines/coral-lassen.xml nics='echo "$XRUN_RANK ${RANK_NICS-unset} ${CUDA_VISIBLE_DEVICES-unset}"'
RANK_NICS=eth7 on "$lassen" -n 1 --gpus-per-rank 1 sh -c "$nics"
[ "$(cut -d' ' -f2 out)" = eth7 ] && check "without its options RANK_NICS stays" 0 || bad "without its options RANK_NICS stays" "$(cat out)"
RANK_NICS=eth7 on "$lassen" -n 4 --nics-per-rank 1 sh -c "$nics"
same "the NIC nearest to the GPU; equals share the ranks" "0 mlx5_0,hsi0 unset
1 mlx5_1,hsi1 unset
2 mlx5_2,hsi2 unset
3 mlx5_3,hsi3 unset"
CUDA_VISIBLE_DEVICES=2 on "$lassen" -n 1 --nic-bind closest sh -c "$nics"
same "a visible GPU decides, too" "0 mlx5_2,hsi2 2"
on "$lassen" -n 3 --nic-bind map:5,2 -x RANK_NICS=eth7 sh -c "$nics"
same "NICs by a list" "0 mlx5_3,hsi3 unset
1 enP5p1s0f0 unset
2 mlx5_3,hsi3 unset"
on "$lassen" -n 1 --nics-per-rank 2 --gpus-per-rank 1 --gpu-bind map:3 sh -c "$nics"
[ "$(cut -d' ' -f2 out)" = mlx5_2,hsi2,mlx5_3,hsi3 ] && check "two NICs, by the GPU of a list" 0 || bad "two NICs, by the GPU of a list" "$(cat out)"
no "too many NICs a rank" '3 NICs for each rank are too many: there are 2' --nics-per-rank 3
no "an unknown NIC" 'NIC 2 is not there: the machine has 2' --nic-bind map:2
no "a doubled NIC" 'NIC 0 is listed twice' --nic-bind map:0,0
no "a malformed list of NICs" "nic-bind is 'map:'; give closest, none or map: and numbers of NICs" --nic-bind map:
no "a contradiction of NICs" 'nics-per-rank 1 and --nic-bind none contradict' --nics-per-rank 1 --nic-bind none
sed 's/osdev_type="[23]"/osdev_type="0"/' "$t4" >none.xml
HWLOC_XMLFILE=$work/none.xml refused "no NIC" 2 'has no NIC on PCI that is up, which --nic-bind needs' --mpi none --bind none --nic-bind closest $mark
# UCX, if it is there, opens the NIC: the loopback interface stands in for it.
sed 's/name="eth0"/name="lo"/' "$t4" >lo.xml
run 10 -n 1 "$top_builddir/rankinfo" --channels --load
if grep -q 'rails .*tcp/lo' out; then
    HWLOC_XMLFILE=$work/lo.xml run 10 -n 1 --mpi none --bind none --nic-bind map:1 "$top_builddir/rankinfo" --channels --load
    grep -q 'rails  tcp/lo$' out && check "UCX gets the NIC" 0 || bad "UCX gets the NIC" "$(cat out)"
    UCX_NET_DEVICES=lo run 10 -n 1 -x RANK_NICS=none "$top_builddir/rankinfo" --channels --load
    grep -q 'rails  tcp/lo$' out && check "UCX_NET_DEVICES wins" 0 || bad "UCX_NET_DEVICES wins" "$(cat out)"
    run 10 -n 1 -x RANK_NICS=nosuch "$top_builddir/rankinfo" --channels --load
    check "a NIC that UCX does not have" 0 'UCX has none of the network devices nosuch of RANK_NICS'
fi

# ---------------------------------------------------------------------------- a machine that is not here
corona=$machines/epyc-corona.xml
run 10 --dry-run --xml "$corona" -n 8 --map-by numa --bind numa ./no-program
grep '^ *[0-9]  GPU' out | sed 's/^ *//; s/ (.*) \(NODE\|SYS\),.*;.*/ \1/' >near
[ "$(grep NODE near | tr '\n' ,)" = "1  GPU 0 NODE,2  GPU 1 NODE,5  GPU 2 NODE,7  GPU 3 NODE," ] && grep -q '^ *7  .* 42-47,90-95$' out &&
    [ "$(grep -c 'NIC 2 (mlx5_0) SYS' out)" = 8 ] && check "--dry-run --xml, a rank a NUMA node" 0 ||
    bad "--dry-run --xml, a rank a NUMA node" "$(cat out)"
run 10 --dry-run --xml "$t4" --host a:4,b:4 -n 8 --gpus-per-rank 2 true
[ "$(grep -c '^ *[0-9]  GPU . (cuda.) NODE, .*GPU . (cuda.) NODE' out)" = 8 ] && grep -q '^b: devices$' out && check "--xml of several hosts" 0 ||
    bad "--xml of several hosts" "$(cat out)"
run 10 --topo --xml "$corona" -n 8 ./no-program
"$top_builddir/rankinfo" --topo --xml "$corona" --ranks 8 >wanted && cmp -s wanted out && check "--topo --xml prints what rankinfo prints" 0 ||
    bad "--topo --xml prints what rankinfo prints" "$(cat out)"
run 10 --topo --xml "$t4" -n 1 a : -n 1 b
grep -q '^pairs of 2 ranks' out && check "--topo of two programs" 0 || bad "--topo of two programs" "$(cat out)"
run 10 --topo --xml "$t4" -n 3 --gpu-bind map:5,1
[ "$(grep -o 'GPU [0-9] [A-Z]*, by the list' out | tr '\n' ';')" = "GPU 5 NODE, by the list;GPU 1 NODE, by the list;GPU 5 NODE, by the list;" ] &&
    check "--topo with --gpu-bind" 0 || bad "--topo with --gpu-bind" "$(cat out)"
for how in environment -x; do
    own=(-x CUDA_VISIBLE_DEVICES=6,2) inherited=0
    [ $how = -x ] || own=() inherited=6,2
    HWLOC_XMLFILE=$t4 CUDA_VISIBLE_DEVICES=$inherited run 10 --topo --gpus-per-rank 1 "${own[@]}"
    [ "$(grep -o '; GPU [0-9]' out | tr -d '\n')" = "; GPU 2; GPU 6" ] && check "--topo by CUDA_VISIBLE_DEVICES, $how" 0 ||
        bad "--topo by CUDA_VISIBLE_DEVICES, $how" "$(cat out)"
done
CUDA_VISIBLE_DEVICES=6,2 run 10 --topo --xml "$t4" -n 1
grep -q '; GPU 0' out && check "--topo --xml without the variable of this machine" 0 || bad "--topo --xml without the variable of this machine" "$(cat out)"
HWLOC_COMPONENTS=$live run 10 --topo
grep -q '^topology$' out && grep -q '^  rank 0 ' out && check "--topo of this machine" 0 || bad "--topo of this machine" "$(cat out)"
refused "--topo with too few GPUs" 2 '9 GPUs for each rank are too many: there are 8' --topo --xml "$t4" --gpus-per-rank 9 $mark
refused "--topo with GPUs of AMD only" 2 'has no GPU of NVIDIA' --topo --xml "$corona" --gpus-per-rank 1 $mark
refused "--topo of other hosts" 2 'topo shows one machine, and --host names others' --topo --host a,b $mark
refused "--xml without --dry-run" 2 'add --dry-run or --topo' --xml "$t4" $mark
refused "--xml that is missing" 2 'cannot read no.xml as a machine .* No such file' --dry-run --xml no.xml $mark
refused "--xml that is none" 2 'cannot read .*mapper.c as a machine' --dry-run --xml "$top_srcdir/launcher/map/mapper.c" $mark
refused "--xml with too few GPUs" 2 '9 GPUs for each rank are too many: there are 8' --dry-run --xml "$t4" --gpus-per-rank 9 $mark
refused "--xml with GPUs of AMD only" 2 'has no GPU of NVIDIA' --dry-run --xml "$corona" --gpus-per-rank 1 $mark

# --------------------------------------------------------------------------------------- bound ranks
mapfile -t cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
# machine CPU CPU: two NUMA nodes of one core, each with a GPU. hwloc's own parser wants each tag on one line.
machine() {
    local i kind mask both sets
    both=$(printf '0x%08x' $((1 << $1 | 1 << $2)))
    sets() { echo "cpuset=\"$1\" complete_cpuset=\"$1\" nodeset=\"$2\" complete_nodeset=\"$2\""; }
    printf '%s\n' '<?xml version="1.0" encoding="UTF-8"?>' '<!DOCTYPE topology SYSTEM "hwloc2.dtd">' '<topology version="2.0">' \
        "<object type=\"Machine\" os_index=\"0\" $(sets "$both" 0x3) allowed_cpuset=\"$both\" allowed_nodeset=\"0x3\" gp_index=\"1\">"
    for i in 0 1; do
        mask=$(printf '0x%08x' $((1 << $1)))
        sets=$(sets "$mask" 0x$((i + 1)))
        printf '%s\n' "<object type=\"Package\" os_index=\"$i\" $sets gp_index=\"2$i\">" \
            "<object type=\"NUMANode\" os_index=\"$i\" $sets gp_index=\"3$i\" local_memory=\"1048576\"/>" \
            "<object type=\"Core\" os_index=\"$i\" $sets gp_index=\"4$i\">" \
            "<object type=\"PU\" os_index=\"$1\" $sets gp_index=\"5$i\"/>" '</object>' \
            "<object type=\"Bridge\" gp_index=\"6$i\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"000$i:[00-01]\">" \
            "<object type=\"PCIDev\" gp_index=\"7$i\" pci_busid=\"000$i:01:00.0\" pci_type=\"0302 [10de:2330] [10de:0000] 00\" pci_link_speed=\"31.500000\"/>" \
            '</object>' '</object>'
        shift
    done
    printf '%s\n' '</object>' '</topology>'
}
if [ ${#cpus[@]} -lt 2 ] || [ "${cpus[1]}" -gt 30 ]; then
    echo "ok - bound ranks # SKIP two of the CPUs 0 to 30 are needed"
else
    machine "${cpus[0]}" "${cpus[1]}" >two.xml
    printf 'rank 0=localhost slot=1\nrank 1=localhost slot=0\n' >ranks
    HWLOC_XMLFILE=$work/two.xml HWLOC_THISSYSTEM=1 run 10 --mpi none --host localhost --rankfile ranks --gpus-per-rank 1 sh -c "$show"
    sort -n out >sorted && mv sorted out
    same "the nearest to the cores" "0 1 PCI_BUS_ID
1 0 PCI_BUS_ID"
    HWLOC_XMLFILE=$work/two.xml HWLOC_THISSYSTEM=1 run 20 --host localhost --rankfile ranks "$top_builddir/tests/device/device_query.mp" --ordinals
    grep '^[01] ' out | sort -n >sorted && mv sorted out
    same "the library finds the nearest, too" "0 1=1
1 0=0"
    # Rank 1 is bound, rank 0 is not: both must find the same pairs.
    HWLOC_XMLFILE=$work/two.xml HWLOC_THISSYSTEM=1 run 20 --bind none -n 2 sh -c \
        'if [ "$XRUN_RANK" = 1 ]; then exec taskset -c "$1" "$0" --ordinals; fi; exec "$0" --ordinals' \
        "$top_builddir/tests/device/device_query.mp" "${cpus[0]}"
    grep '^[01] ' out | sort -n >sorted && mv sorted out
    same "of two ranks one is bound" "0 1=1
1 0=0"
    # A core is outside of the cpuset: a rank that has all others is not bound.
    machine "${cpus[0]}" 31 | sed "1,4s/ allowed_cpuset=\"[^\"]*\"/ allowed_cpuset=\"$(printf '0x%08x' $((1 << cpus[0])))\"/" >cpuset.xml
    HWLOC_XMLFILE=$work/cpuset.xml HWLOC_THISSYSTEM=1 run 20 --bind none -n 1 "$top_builddir/tests/device/device_query.mp"
    [ "$(grep '^0 ' out)" = "0 ${cpus[0]}; GPU 0 NODE, ranks have GPUs in PCI order" ] && check "a rank with all of the cpuset is not bound" 0 ||
        bad "a rank with all of the cpuset is not bound" "$(cat out)"
fi

echo "# gpus: $passed passed, $failed failed"
[ $failed -eq 0 ]
