# SPDX-License-Identifier: BSD-3-Clause
# setting.sh: report where rankbench measured, in header, JSON and CSV.
# And compare.py prints its headings.
bench=$top_builddir/rankbench
work=$(mktemp -d "$top_builddir/tests/setting.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

judge() {
    if [ "$1" = 0 ]; then
        echo "ok - $2"
    else
        echo "not ok - $2"
        tail -n 20 "$work/out" "$work/err" | sed 's/^/    /'
        bad=1
    fi
}
job() { timeout 120 "$XRUN" "$@" >"$work/out" 2>"$work/err" </dev/null; }
command -v python3 >/dev/null || { echo "ok - setting # SKIP no python3"; exit 77; }

# records CONDITION: of each record r of JSON, and of each line c of CSV
records() {
    python3 - "$work/j" "$work/c" "$1" >>"$work/out" 2>>"$work/err" <<'END'
import csv, json, sys
records, lines = json.load(open(sys.argv[1])), list(csv.DictReader(open(sys.argv[2])))
assert len(records) == len(lines) > 0
for r, c in zip(records, lines):
    print(r, c)
    assert eval('(' + sys.argv[3] + ')')
    for key, value in r.items(): # the same in both
        same = c[key] == ('' if value is None else str(value).lower() if isinstance(value, bool) else value if isinstance(value, str) else None)
        assert same or not isinstance(value, (str, bool)) and float(c[key]) == value, (key, value, c[key])
    assert all(key in r or value == '' for key, value in c.items()), c
END
}

host=$(uname -n)
job -n 2 "$bench" -b 8 -e 8 -n 20000 -j "$work/j" --csv "$work/c" lat allreduce matchq_posted overlap
rc=$?
[ $rc = 0 ] && grep -qE '^# 20[0-9-]+T[0-9:]+Z, librank ' "$work/out" && grep -qxF "# hosts: $host: ranks 0-1" "$work/out" &&
    grep -qE '^# placement: rank' "$work/out" && grep -qE '^# device: shm: eager up to [0-9]+K, [a-z0-9_]+ ' "$work/out"
judge $? "the header has date, hosts, placement and device"
records "r['hosts'] == '$host: ranks 0-1' and r['date'] == records[0]['date'] and r['date'][10] == 'T' and 'cpus ' in r['placement']
    and r['channel'] == 'shm' and r['device'].startswith('shm: eager up to ')"
judge $? "and so have the records of JSON and CSV"
records "abs(r['algbw_gbyte_per_s'] - (r['bytes'] / r['median_us'] / 1e3)) <= 1e-4 * r['algbw_gbyte_per_s'] or r['bench'] == 'overlap'"
judge $? "a bandwidth is in the unit of its name"

RANK_EAGER_MAX=64K job -n 2 "$bench" -b 8 -e 8 --time 1ms -m alloc lat && grep -q '^# device: shm: eager up to 64K, m[a-z0-9_]* above 64K' "$work/out"
judge $? "the protocols are those of this run's configuration and memory"
if [ "${HAVE_UCX:-yes}" = yes ]; then
    UCX_TLS=tcp,self RANK_CHANNELS=ucx,self job -n 2 "$bench" -b 8 -e 8 --time 1ms -j "$work/j" --csv "$work/c" lat &&
        grep -qE '^# device: ucx: tcp/' "$work/out" && records "r['channel'] == 'ucx' and r['device'].startswith('ucx: tcp/')"
    judge $? "over tcp it names the device"
fi

job -n 2 "$bench" -b 8 -e 16 -n 20 -w 2 --hist -j "$work/j" --csv "$work/c" lat &&
    [ "$(grep -c '^# p99 is the slowest of 20 samples, no percentile' "$work/out")" = 1 ] && records "r['samples'] == 20"
judge $? "20 samples have no p99"
job -n 2 "$bench" -b 8 -e 8 -n 100 -w 2 --hist lat && ! grep -q 'no percentile' "$work/out"
judge $? "100 have one"
job -n 2 "$bench" --csv /nowhere/c lat
[ $? = 2 ] && [ "$(grep -c -- '--csv /nowhere/c: No such file' "$work/err")" = 1 ]
judge $? "a CSV file that cannot be opened is named"

# With device memory: GPUs, NICs, the paths of a recorded machine, and the way of a message.
standin=$top_builddir/tests/standin/.libs
case "${SAN_CFLAGS:-}" in *sanitize*) standin= ;; esac
if [ -n "$standin" ] && [ -e "$standin/libcuda.so.1" ]; then
    for mem in cuda,host cuda:3; do
        (
            unset HWLOC_COMPONENTS CUDA_VISIBLE_DEVICES
            export HWLOC_XMLFILE=$top_srcdir/tests/data/topologies/coral-lassen.xml LD_LIBRARY_PATH=$standin STANDIN_GPUS=4
            export STANDIN_PCI=0004:04:00.0,0004:05:00.0,0035:03:00.0,0035:04:00.0
            job -n 2 --bind none "$bench" -b 8 -e 8 -n 10 -m $mem -j "$work/j" --csv "$work/c" lat
        ) && grep -qE '^# device: .*; cuda: one copy; mapped by ' "$work/out" && records "'; cuda: one copy' in r['device']" &&
            case $mem in
            cuda,host)
                grep -qxF '# gpus: rank 0: cuda:0 stand-in 0 0004:04:00.0 NODE; rank 1: cuda:1 stand-in 1 0004:05:00.0 NODE' "$work/out" &&
                    grep -qxF '# nics: rank 0: mlx5_0 NODE from cuda:0; rank 1: mlx5_1 NODE from cuda:1' "$work/out" &&
                    records "r['nics'].startswith('rank 0: mlx5_0 NODE from')"
                ;;
            *) grep -qxF '# nics: rank 0: mlx5_0; rank 1: mlx5_1' "$work/out" ;; # the path from another GPU is not known
            esac
        judge $? "--mem $mem: the header has GPU, NIC, path and way, on a stand-in"
    done
fi

# A peer that starts two processes of true by itself.
mkdir "$work/peers"
printf 'run() { "$2"; }\n' >"$work/peers/fake.sh"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$XRUN" >"$work/xrun"
chmod +x "$work/xrun"
timeout 60 "$top_srcdir/bench/compare.py" "$work" --runs 1 --rows true2 >"$work/out" 2>"$work/err" </dev/null &&
    grep -qx '# what (unit)  ours  fake  ratio  spread  reach  verdict' "$work/out" && grep -q '^start 2 x true (s)  0' "$work/out"
judge $? "compare.py has headings without --md"
exit $bad
