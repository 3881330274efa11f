#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# gpus_hosts.sh: give ranks their GPUs on several hosts with different machines.
# HWLOC_XMLFILE makes hwloc read a machine that is not there: one of its own on each host. A host that is short of devices
# must be found before a rank starts on any host.
. "$(dirname "$0")/../inside.sh"
inside 3 "GPUs on several hosts"
. "$(dirname "$0")/cases.sh"
unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER UCX_NET_DEVICES RANK_NICS HWLOC_COMPONENTS
cp "$top_srcdir/tests/data/topologies/coral-lassen.xml" hosta.xml
cp "$top_srcdir/tests/data/topologies/g4dnmetal.xml" hostb.xml
cp "$top_srcdir/tests/data/topologies/epyc-corona.xml" hostc.xml
cat >agent <<SH
#!/bin/sh
host=\$1
shift
exec ssh "\$host" "export HWLOC_XMLFILE=$work/\$host.xml; \$*"
SH
chmod +x agent

# xrun ARGS...: on hosta, with out, err and rc set
xrun() {
    new_case
    on hosta timeout -k 5 $((30 * slow)) env XDG_RUNTIME_DIR="$work/tmp" HWLOC_XMLFILE="$work/hosta.xml" \
        "$XRUN" -q --agent "$work/agent" --bind none --mpi none "$@" >out 2>err </dev/null
    rc=$?
}
# short NAME PATTERN ARGS...: one line, and no rank on any host
short() {
    local name=$1 pattern=$2
    shift 2
    rm -f started.*
    xrun "$@" sh -c "touch $work/started.\$XRUN_RANK"
    if [ "$(grep -c . err)" != 1 ] || ! grep -qE -e "$pattern" err || ls started.* >/dev/null 2>&1; then
        bad "$name" "$(cat err) $(ls started.* 2>/dev/null)"
    else
        check "$name" 2
    fi
}
uuid() { # HOST N
    grep -o 'GPU-[0-9a-f-]*' "$1.xml" | awk -v n="$2" '!seen[$0]++ && k++ == n'
}

xrun --host hosta:2,hostb:2 --gpus-per-rank 2 --nics-per-rank 1 sh -c 'echo $XRUN_RANK $CUDA_VISIBLE_DEVICES $RANK_NICS'
sort -n out >sorted && mv sorted out
same "each host's own devices" "0 $(uuid hosta 0),$(uuid hosta 1) mlx5_0,hsi0
1 $(uuid hosta 2),$(uuid hosta 3) mlx5_2,hsi2
2 $(uuid hostb 0),$(uuid hostb 1) rdmap197s0
3 $(uuid hostb 2),$(uuid hostb 3) rdmap197s0"
xrun --dry-run --json-map map.json --host hosta:2,hostb:2 --gpu-bind map:3,1 true
cat >compare.py <<'PY'
import json
ranks = json.load(open("map.json"))["ranks"]
got = [(r["gpus"][0]["number"], r["gpus"][0]["pci"], r["gpus"][0]["reason"], r["nics"][0]["name"]) for r in ranks]
assert got == [(3, "0035:04:00.0", "by the list", "mlx5_2"), (1, "0004:05:00.0", "by the list", "mlx5_0"),
               (3, "0000:36:00.0", "by the list", "rdmap197s0"), (1, "0000:19:00.0", "by the list", "rdmap197s0")], got
PY
python3 compare.py 2>wrong && grep -q '^hostb: devices$' out && check "a dry run of each host" 0 || bad "a dry run of each host" "$(tail -n 1 wrong) $(cat out)"
for dry in '' --dry-run; do
    short "the first host is short${dry:+ in a dry run}" 'host hosta: 5 GPUs for each rank are too many: there are 4$' $dry --host hosta:1,hostb:1 --gpus-per-rank 5
    short "the last host is short${dry:+ in a dry run}" 'host hosta: GPU 5 is not there: the machine has 4$' $dry --host hostb:1,hosta:1 --gpu-bind map:5
    short "the last host has none${dry:+ in a dry run}" 'host hostc has no GPU of NVIDIA, which --gpus-per-rank needs$' $dry --host hosta:1,hostb:1,hostc:1 --gpus-per-rank 1
    short "too few NICs${dry:+ in a dry run}" 'host hostb: 3 NICs for each rank are too many: there are 2$' $dry --host hosta:1,hostb:1 --nics-per-rank 3
done
CUDA_VISIBLE_DEVICES=0,5 short "a GPU of the variable that one host lacks" "CUDA_VISIBLE_DEVICES has '5', which is no GPU of host hosta with 4" \
    --host hosta:1,hostb:1 --gpus-per-rank 1
for dry in '' --dry-run; do
    CUDA_VISIBLE_DEVICES=$'\e[31m' short "control characters of the variable${dry:+ in a dry run}" \
        "CUDA_VISIBLE_DEVICES has '.\[31m', which is no GPU" $dry --host hosta:1,hostb:1 --gpus-per-rank 1
    grep -q $'\e' err && bad "control characters are printed" "$(cat -v err)"
done
printf 'no machine\n' >hostb.xml
xrun --host hosta:1,hostb:1 --gpus-per-rank 1 touch "$work/started.0"
[ ! -e started.0 ] && check "a host that cannot read its machine" 2 "host hostb: cannot read this machine's topology" ||
    bad "a host that cannot read its machine" "a rank was started"

echo "# gpus_hosts: $passed passed, $failed failed"
[ $failed -eq 0 ]
