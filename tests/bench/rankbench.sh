# SPDX-License-Identifier: BSD-3-Clause
# rankbench.sh: run every benchmark, check its data and its JSON.
# Wrong command lines get one line and a code.
bench=$top_builddir/rankbench
work=$(mktemp -d "$top_builddir/tests/bench.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

ok() { echo "ok - $1"; }
not_ok() {
    echo "not ok - $1"
    sed 's/^/    /' "$work/out" "$work/err" | tail -n 30
    bad=1
}

# job RANKS words...: what it printed is in out and err
job() {
    local n=$1
    shift
    timeout 120 "$XRUN" -n "$n" "$bench" "$@" >"$work/out" 2>"$work/err" </dev/null
}

p2p="lat bw bibw rate mrate random_pairs overlap put_lat put_bw put_rate get_lat get_bw get_rate put_signal_lat put_strided_bw get_strided_bw write_bw read_bw"
single="put_signal_near_lat atomics_fetch_add_lat atomics_fetch_add_rate atomics_add_rate atomics_swap_rate atomics_compare_swap_rate write_list read_list" # of one size
coll="barrier bcast reduce allreduce gather allgather allgatherv scatter reduce_scatter alltoall gatherv scatterv alltoallv reduce_scatterv scan exscan iallreduce allreduce_persistent iallreduce_overlap"

# json FILE RANKS: valid, each record whole, nothing wrong; prints how many records
json() {
    python3 - "$1" "$2" <<'END'
import json, sys
records = json.load(open(sys.argv[1]))
for r in records:
    for key in 'min_us median_us p99_us algbw_gbyte_per_s busbw_gbyte_per_s'.split():
        assert isinstance(r[key], (int, float)), (key, r)
    assert r['wrong'] == 0 and r['iters'] > 0 and r['bytes'] >= 0, r
    assert r['min_us'] <= r['median_us'] <= r['p99_us'], r
    # Of some an answer's way is taken off, which was measured before: on a busy machine little may be left, or nothing.
    assert 0 < r['min_us'] or r['bench'] in 'lat bw bibw overlap wake'.split(), r
    assert r['ranks'] == int(sys.argv[2]) and r['library'].startswith('librank ') and r['version'] and r['host'], r
    assert r['channel'] in ('self', 'shm', 'ucx'), r
print(len(records))
END
}
have_python=yes
command -v python3 >/dev/null || have_python=

# every RANKS RECORDS benchmarks...
every() {
    local n=$1 records=$2 got
    shift 2
    rm -f "$work/j"
    if ! job "$n" -b 8 -e 64K -f 128 -c 3 --time 2ms -j "$work/j" "$@"; then
        not_ok "$* at $n ranks"
    elif [ -n "$have_python" ] && { ! got=$(json "$work/j" "$n" 2>>"$work/err") || [ "$got" != "$records" ]; }; then
        echo "records: $got, not $records" >>"$work/err"
        not_ok "JSON of $* at $n ranks"
    else
        ok "$* at $n ranks"
    fi
}

# Two sizes of each, one of barrier; 3 blocks of an element do not fit in 8 bytes.
# shellcheck disable=SC2086
{
    every 2 36 $p2p
    every 3 36 $p2p
    every 2 8 $single
    every 3 5 atomics
    every 1 37 $coll
    every 2 37 $coll
    every 3 27 $coll
}

job 2 -b 4K -e 4K -d all -o all -r all --time 1ms -c 2 reduce allreduce reduce_scatter &&
    [ "$(grep -c ' 4096 ' "$work/out")" -gt 300 ] && ok "every datatype and operation, every root" ||
    not_ok "every datatype and operation, every root"
job 2 -b 1 -e 1000 -f 1000 --time 2ms -c 2 -j "$work/j" matchq && grep -q '^1000 ' "$work/out" &&
    { [ -z "$have_python" ] || [ "$(json "$work/j" 2 2>>"$work/err")" = 8 ]; } &&
    ok "both queues, empty and 1000 deep" || not_ok "both queues, empty and 1000 deep"
job 2 -b 2000 -e 2000 -n 2 -w 1 -j "$work/j" wake && grep -q '^2000 ' "$work/out" &&
    grep -q '"idle_us": 2000, .*"waiting_cpu_pct": ' "$work/j" && ok "wake" || not_ok "wake"
job 5 -b 8 -e 8 --time 2ms -c 2 --pairs 2 -j "$work/j" mrate random_pairs &&
    { [ -z "$have_python" ] || [ "$(json "$work/j" 5 2>>"$work/err")" = 2 ]; } &&
    ok "two pairs of five ranks, and random ones" || not_ok "two pairs of five ranks, and random ones"
# Each iteration is a sample of its own: the lines of the histogram count all of them.
job 2 -b 8 -e 8 -n 500 -w 10 --hist lat && grep -q '^# p50 .* of 500$' "$work/out" &&
    [ "$(awk '/^# .* - .* %/ { n += $7 } END { print n + 0 }' "$work/out")" = 500 ] &&
    ok "--hist" || not_ok "--hist"

# columns BW|LAT RECORDS TEXT words...: rows have the columns of ib_write_bw or ib_write_lat, and agree with records that have the text
columns() {
    local kind=$1 records=$2 text=$3
    shift 3
    [ -n "$have_python" ] || return 0
    if job 2 -c 2 -j "$work/j" "$@" && [ "$(grep -c -- "$text" "$work/j")" = "$records" ] && json "$work/j" 2 >>"$work/out" 2>>"$work/err" &&
        python3 - "$work/out" "$work/j" "$kind" "$records" 2>>"$work/err" <<'END'; then
import json, sys
kind, records = sys.argv[3], json.load(open(sys.argv[2]))
assert len(records) == int(sys.argv[4]), len(records)
lines = open(sys.argv[1]).read().splitlines()
rows = [l.split() for l in lines if l[:1] == ' ' and l.split()[0].isdigit()]
heads = [l.split(None, 2) for l in lines if l.startswith(' #bytes')]
unit = 'Gb/sec' if any('Gb/sec' in l for l in lines) else 'MiB/sec'
scale = 8 if unit == 'Gb/sec' else 1e9 / 2**20
want = {'BW': f'BW peak[{unit}] BW average[{unit}] MsgRate[Mpps] #wrong',
        'LAT': 't_min[usec] t_max[usec] t_typical[usec] t_avg[usec] t_stdev[usec] 99% percentile[usec] 99.9% percentile[usec] #wrong'}
assert heads and all(h[1] == '#iterations' and ' '.join(h[2].split()) == want[kind] for h in heads), heads
assert len(rows) == len(records), (rows, len(records))
for row, r in zip(rows, records):
    v = [float(x) for x in row]
    near = lambda x, y: abs(x - y) <= 0.006 + 1e-4 * abs(y)
    assert v[0] == r['bytes'] and v[1] == r['operations'] and v[-1] == 0, (row, r)
    if kind == 'BW':
        assert len(v) == 6 and near(v[2], r['peak_gbyte_per_s'] * scale) and near(v[3], r['average_gbyte_per_s'] * scale), (row, r)
        # Each value is rounded for itself.
        assert abs(v[4] * 1e6 * r['bytes'] - r['average_gbyte_per_s'] * 1e9) <= r['bytes'] + 1e-4 * r['average_gbyte_per_s'] * 1e9, (row, r)
        assert v[2] >= v[3] >= 0, (row, r)
    else:
        keys = 'min_us max_us median_us avg_us stdev_us p99_us p999_us'.split()
        assert len(v) == 10 and all(near(x, r[k]) for x, k in zip(v[2:9], keys)), (row, r)
        assert v[2] <= v[4] <= v[3] and v[2] <= v[5] <= v[3], (row, r)
END
        ok "$*: the columns of perftest"
    else
        not_ok "$*: the columns of perftest"
    fi
}
sizes="-b 8 -e 64K -f 8192 --time 2ms"
# shellcheck disable=SC2086
{
    columns BW 6 '"bidirectional": false' $sizes bw put_bw get_bw
    columns BW 6 '"bidirectional": true' $sizes --bidirectional bw put_bw get_bw
    columns BW 6 '"operations": 5000, ' $sizes --tx-depth 128 -n 5000 bw put_bw get_bw
    columns BW 6 '"tx_depth": 3, ' $sizes -t 3 -n 100 --bidirectional --report-gbits bw put_bw get_bw
    columns BW 2 '"bytes": 20000, "blocks": 100, ' --blocks 100 --block 200 --time 2ms write_list read_list
    columns LAT 6 '"stdev_us": ' $sizes lat put_lat get_lat
}
job 3 -b 0 -e 1 -f 2 --time 2ms --bidirectional bw put_bw get_bw bibw && job 3 -b 0 -e 1 -f 2 -n 100 -t 4 --bidirectional bw put_bw get_bw &&
    ok "both ways and a rank that takes no part" || not_ok "both ways and a rank that takes no part"
# within CODE TEXT words...: the code of a limit, and its one line
within() {
    local code=$1 text=$2 rc
    shift 2
    job 2 -b 8 -e 64 -f 8 --time 1ms "$@"
    rc=$?
    if [ $rc = "$code" ] && { [ -z "$text" ] && ! grep -q "miss\|limit" "$work/err" || [ "$(grep -cE "$text" "$work/err")" = 1 ]; }; then
        ok "$*: code $code"
    else
        echo "exit code $rc" >>"$work/err"
        not_ok "$*: code $code"
    fi
}
for name in bw put_bw get_bw; do
    within 3 "^rankbench: $name of 8 B: [0-9.e+-]+ GB/s, less than --limit-bw 1e\+06; sizes that miss a limit: 2\$" --limit-bw 1e6 $name
    within 0 "" --limit-bw 1e-9 $name
done
for name in lat put_lat get_lat; do
    within 3 "^rankbench: $name of 8 B: [0-9.e+-]+ us, more than --limit-lat 1e-06; sizes that miss a limit: 2\$" --limit-lat 1e-6 $name
    within 0 "" --limit-lat 1e9 $name
done
within 0 "" --limit-lat 1e9 --limit-bw 1e-9 lat put_bw
for mem in alloc any shared; do
    job 2 -b 8 -e 1M -f 512 --time 2ms -c 2 -m $mem --untouched lat bw allreduce && ok "--mem $mem, --untouched" ||
        not_ok "--mem $mem, --untouched"
done
# shellcheck disable=SC2086
for target in private shared; do
    job 3 -b 8 -e 64K -f 128 --time 2ms -c 2 --target $target $single && ok "--target $target" || not_ok "--target $target"
done
# Device memory of a stand-in for the driver, which has no sanitizer's addresses.
standin=$top_builddir/tests/standin/.libs
case "${SAN_CFLAGS:-}" in *sanitize*) standin= ;; esac
if [ -n "$standin" ] && [ -e "$standin/libcuda.so.1" ]; then
    gpus() { LD_LIBRARY_PATH=$standin STANDIN_GPUS=2 job "$@"; }
    gpus 2 -b 8 -e 8 -n 10 -m cuda:1 -j "$work/j" lat && grep -q '"gpus": "[^"]*cuda:1' "$work/j" && ! grep -q 'cuda:0' "$work/j" &&
        ok "a device without a buffer is not opened, on a stand-in" || not_ok "a device without a buffer is not opened, on a stand-in"
    for mem in cuda host,cuda managed cuda:1,cuda:0; do
        # shellcheck disable=SC2086
        gpus 2 -b 8 -e 64K -f 8192 -n 10 -w 2 -c 2 -m $mem -j "$work/j" lat bw bibw rate overlap put_signal_lat $coll &&
            grep -q "\"mem\": \"$mem\", .*\"gpus\": \"rank" "$work/j" && ok "--mem $mem, on a stand-in" ||
            not_ok "--mem $mem, on a stand-in"
    done
    # windows RECORDS TEXT words...: where the window is, by the records
    windows() {
        local records=$1 text=$2
        shift 2
        gpus 2 -b 8 -e 64K -f 8192 -n 10 -w 2 -c 2 -j "$work/j" "$@" && [ "$(grep -c "\"target\": \"$text\"" "$work/j")" = "$records" ] &&
            ok "$*: the window is in $text memory, on a stand-in" || not_ok "$*: the window is in $text memory, on a stand-in"
    }
    windows 8 cuda -m cuda put_lat put_bw get_lat get_bw
    windows 4 cuda:1 -m host,cuda:1 put_lat put_bw
    windows 4 alloc -m host,cuda get_lat get_bw
    windows 2 cuda -m cuda,host --bidirectional get_bw
    windows 2 cuda -m cuda --bidirectional put_bw
    windows 4 cuda -m cuda -t 4 -n 100 --bidirectional put_bw get_bw
    windows 2 cuda:0 -m cuda:0,cuda:1 -t 4 -n 100 get_bw
    windows 2 cuda:1 -m managed --target cuda:1 put_bw
    windows 2 alloc -m cuda --target alloc put_bw
    if [ "${HAVE_UCX:-yes}" = yes ]; then
        RANK_CHANNELS=ucx,self
        export RANK_CHANNELS
        windows 8 cuda -m cuda put_lat put_bw get_lat get_bw
        windows 4 cuda -m cuda -t 4 -n 50 --bidirectional put_bw get_bw
        unset RANK_CHANNELS
    fi
    gpus 2 -b 8 -e 512 -f 64 -n 10 -w 2 -c 2 --target cuda -m cuda -j "$work/j" put_lat put_bw get_lat get_bw put_rate get_rate \
        put_strided_bw get_strided_bw && grep -q '"target": "cuda"' "$work/j" && ok "--target cuda, on a stand-in" ||
        not_ok "--target cuda, on a stand-in"
fi
# As many iterations as given; without a warm-up also as many as the time holds, of which waiting is a part.
if [ -n "$have_python" ]; then
    # iterations LEAST MOST words...
    iterations() {
        local least=$1 most=$2
        shift 2
        if job 2 -j "$work/j" "$@" && json "$work/j" 2 >>"$work/out" 2>>"$work/err" &&
            python3 - "$work/j" "$least" "$most" >>"$work/out" 2>>"$work/err" <<'END'; then
import json, sys
for r in json.load(open(sys.argv[1])):
    print(r['bench'], r['iters'])
    assert int(sys.argv[2]) <= r['iters'] <= int(sys.argv[3])
END
            ok "$*: $least to $most iterations"
        else
            not_ok "$*: $least to $most iterations"
        fi
    }
    for warmup in 0 1 2 11; do
        for n in 1 2 7 150; do
            iterations $n $n -b 8 -e 8 -n $n -w $warmup lat rate allreduce bcast
        done
    done
    iterations 30000 30000 -b 8 -e 8 -n 30000 bcast
    iterations 11 1000000000000 -b 8 -e 8 -w 0 --time 500ms lat
    iterations 3 3 -b 100000 -e 100000 --time 200ms wake
fi
job 2 -b 8 -e 8 -n 2 -c 0 -j "$work/j" lat matchq_posted && [ "$(grep -c '"wrong": null' "$work/j")" = 2 ] &&
    ok "-c 0: nothing is checked" || not_ok "-c 0: nothing is checked"
if [ -w /dev/full ]; then
    : >"$work/out"
    for words in "--time 1ms barrier" --list; do
        # shellcheck disable=SC2086
        "$bench" $words >/dev/full 2>"$work/err"
        rc=$?
        [ $rc = 1 ] && grep -q 'cannot write to the standard output: No space left' "$work/err" && ok "a full disk: $words" ||
            not_ok "a full disk: $words (exit code $rc)"
    done
fi

if [ "${HAVE_UCX:-yes}" = yes ] && [ -n "$have_python" ]; then
    RANK_CHANNELS=ucx,self job 2 -b 8 -e 64K -f 128 -c 2 --time 2ms -j "$work/j" lat bw allreduce &&
        grep -q '"channel": "ucx"' "$work/j" && [ "$(json "$work/j" 2 2>>"$work/err")" = 6 ] &&
        ok "over ucx, and it reports that" || not_ok "over ucx, and it reports that"
    # shellcheck disable=SC2086
    RANK_CHANNELS=ucx,self job 2 -b 8 -e 64K -f 128 -c 2 --time 2ms -j "$work/j" $p2p $single &&
        [ "$(json "$work/j" 2 2>>"$work/err")" = 44 ] && ok "messages and one-sided operations over ucx" ||
        not_ok "messages and one-sided operations over ucx"
    # Ours and UCX's puts of the same pieces; it checks every word itself.
    timeout 120 "$XRUN" -q -n 2 "$top_builddir/bench/putv_vs_ucx" 3 16 64 >"$work/out" 2>"$work/err" </dev/null &&
        [ "$(awk '/^pieces_(own|any|shared)_(putv|ucx) / && $2 > 0 && $3 == "us"' "$work/out" | wc -l)" = 6 ] &&
        ok "pieces in one call, and UCX's loop" || not_ok "pieces in one call, and UCX's loop"
fi

# refused CODE TEXT RANKS words...
refused() {
    local code=$1 text=$2 n=$3 rc
    shift 3
    job "$n" "$@"
    rc=$?
    if [ $rc = "$code" ] && [ "$(grep -cF -- "$text" "$work/err")" = 1 ]; then
        ok "$*: $text"
    else
        echo "exit code $rc" >>"$work/err"
        not_ok "$*: $text"
    fi
}
[ -z "$standin" ] || LD_LIBRARY_PATH=$standin STANDIN_GPUS=0 refused 2 "finds no device" 2 -m cuda lat
[ -z "$standin" ] || LD_LIBRARY_PATH=$standin refused 2 "there is no device 7" 2 -m cuda:7 lat
refused 2 "--mem gpu: there are any, host" 2 -m gpu lat
refused 2 "atomics work on host memory only" 2 --target cuda atomics
refused 2 "transfers work on host memory only" 2 -m cuda write_list
refused 2 "--blocks" 2 --blocks 0 write_list
refused 2 "put_lat has no --bidirectional" 2 --bidirectional put_lat
refused 2 "rate has no --tx-depth" 2 -t 8 rate
refused 2 "--limit-bw: no bandwidth is named" 2 --limit-bw 1 lat
refused 2 "--limit-lat: no latency is named" 2 --limit-lat 1 bw
refused 2 "--limit-lat -1: a number of us above 0" 2 --limit-lat=-1 lat
refused 2 "leave out --tx-depth" 2 --hist -t 8 bw
refused 2 "did you mean allreduce?" 2 allredcue
refused 2 "did you mean --maxbytes?" 2 --maxbyte 8 lat
refused 2 "no benchmark is named" 2
refused 2 "lat needs 2 ranks" 1 lat
refused 2 "there are 2 ranks" 2 -r 2 bcast
refused 2 "--iters 20000000 is more than" 2 --hist -n 20000000 lat
refused 2 "allreduce: there is no sum of pair_f32" 2 -d pair_f32 allreduce
refused 2 "there are 3 ranks" 3 --pairs 2 mrate
refused 2 "did you mean get_lat?" 2 get_la
refused 2 "unknown benchmark mat" 2 mat
refused 2 "rank 1 is to measure 'bw -b 8' and rank 0 'lat'" 1 lat : -n 1 "$bench" bw -b 8
refused 2 "/nowhere/j" 2 -j /nowhere/j lat
job 3 -b 8 -e 23 -d f64 --time 1ms allgather && grep -q '^# no size from 8 to 23 B is so much as one f64 for each rank$' "$work/out" &&
    ok "a size that is too small" || not_ok "a size that is too small"
job 2 --help && grep -q -- --untouched "$work/out" && grep -q reduce_scatter "$work/out" && ok "--help" || not_ok "--help"
# Two processes that no launcher started: the one that listens gets the words of the other one.
linked() {
    local address server rc
    timeout 120 "$bench" --listen 127.0.0.1:0 2>"$work/at" >"$work/served" &
    server=$!
    for _ in $(seq 600); do
        address=$(sed -n 's/^rankbench: listening at //p' "$work/at")
        [ -z "$address" ] || break
        read -r -t 0.1 <> <(:) || :
    done
    timeout 120 "$bench" --connect "$address" "$@" >"$work/out" 2>"$work/err" </dev/null
    rc=$?
    wait $server || rc=$?
    return $rc
}
rm -f "$work/j"
linked -b 8 -e 256K -f 32 -c 3 --time 2ms -j "$work/j" lat bw put_lat get_bw atomics_fetch_add_lat allreduce &&
    [ ! -s "$work/served" ] && grep -q '"bench": "get_bw"' "$work/j" && grep -q '"channel": "shm"' "$work/j" && ok "--listen and --connect" ||
    not_ok "--listen and --connect"
linked --target private -b 8 -e 256K -f 32 -c 3 --time 2ms put_bw && ok "--listen and --connect, registered memory" ||
    not_ok "--listen and --connect, registered memory"
for target in private shared alloc; do
    rm -f "$work/j"
    linked --target $target -b 8 -e 256K -f 32 -c 2 --time 2ms --blocks 300 --block 100 -j "$work/j" write read put_signal_near_lat atomics_add_rate &&
        [ "$(grep -c "\"wrong\": 0, .*\"target\": \"$target\"" "$work/j")" = 12 ] && ok "--connect, transfers and lists, $target memory" ||
        not_ok "--connect, transfers and lists, $target memory"
done
many=$(printf ' -c 1%.0s' $(seq 80))
# shellcheck disable=SC2086 # words
linked -b 8 -e 8 --time 1ms $many bw && grep -q 'bw: ' "$work/out" && ok "--connect with many words" || not_ok "--connect with many words"
if [ -n "$standin" ] && [ -e "$standin/libcuda.so.1" ]; then
    for name in lat bw put_bw allreduce; do
        LD_LIBRARY_PATH=$standin RANK_CUDA=on linked -m cuda -b 8 -e 256K -f 32 -c 3 --time 2ms $name && [ ! -s "$work/err" ] &&
            ok "--connect with device memory, $name, on a stand-in" || not_ok "--connect with device memory, $name, on a stand-in"
    done
    ! LD_LIBRARY_PATH=$standin linked -m cuda lat && grep -q 'set RANK_CUDA=on' "$work/err" && ok "--listen without RANK_CUDA" ||
        not_ok "--listen without RANK_CUDA"
fi
job 2 --list && [ "$(wc -l <"$work/out")" = 50 ] && ok "--list" || not_ok "--list"
exit $bad
