#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh: test and measure device memory on a machine with a GPU, in 8 minutes.
#
#   run.sh [-q] [-s STEP,...] [-o OUT] [BUILD]
#
# BUILD is a bundle (default: the one that run.sh lies in) or the build folder of a checkout. OUT (default: $OUT, or
# ./gpu-results) gets results.json, one record a line, and the output of each step.
#   -q   a few sizes, a moment each
#   -s   of the steps environment, probes, suite, kernels, rates only these
# Without a device all records are skipped. Exit code: 0, 1 if a record failed, 77 if all were skipped.
set -u
limit_s=480
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
    sed -n '3,/^set/s/^# \{0,1\}//p' "$0"
    exit "$1"
}

quick='' steps=environment,probes,suite,kernels,rates out=${OUT:-gpu-results}
while getopts "qs:o:h" option; do
    case $option in
    q) quick=1 ;;
    s) steps=$OPTARG ;;
    o) out=$OPTARG ;;
    h) usage 0 ;;
    *) usage 2 >&2 ;;
    esac
done
shift $((OPTIND - 1))
dir=${1:-$here/../..}
if [ -x "$dir/bin/xrun" ]; then
    dir=$(cd "$dir" && pwd)
    bin=$dir/bin
elif [ -x "$dir/xrun" ]; then
    dir=$(cd "$dir" && pwd)
    bin=$dir
    export RANK_MODULES=$dir/.libs
else
    echo "run.sh: $dir holds neither bin/xrun nor xrun; name a bundle or a build folder" >&2
    exit 2
fi
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2
export RANK_CONF=/dev/null
unset RANK_CUDA

# ----------------------------------------------------------------------------------------------- records
passed=0 failed=0 skipped=0
records=$out/records.jsonl
: >"$records"

# quoted TEXT: a JSON string
quoted() {
    local text=${1//\\/\\\\}
    text=${text//\"/\\\"}
    text=${text//[[:cntrl:]]/ }
    printf '"%s"' "$text"
}

# record STEP NAME STATUS VALUE UNIT TEXT [LIMIT]; "-" for no value
record() {
    local value=null limit=''
    [ "$4" = - ] || value=$4
    [ -z "${7:-}" ] || limit=", \"limit\": $7"
    printf '{"step": "%s", "name": %s, "status": "%s", "value": %s%s, "unit": %s, "text": %s}\n' \
        "$1" "$(quoted "$2")" "$3" "$value" "$limit" "$(quoted "$5")" "$(quoted "$6")" >>"$records"
    case $3 in
    pass) passed=$((passed + 1)) ;;
    fail) failed=$((failed + 1)) ;;
    *) skipped=$((skipped + 1)) ;;
    esac
    printf '%-4s %-11s %s%s%s%s\n' "$3" "$1" "$2" "$([ "$4" = - ] || echo ": $4 $5")" "${7:+ (limit $7)}" "${6:+: $6}"
    write_results
}

# At any time a whole file: the machine may be taken away.
write_results() {
    {
        echo '['
        sed '$!s/$/,/' "$records"
        echo ']'
    } >"$out/results.new"
    mv "$out/results.new" "$out/results.json"
}

wanted() { [[ ,$steps, == *,$1,* ]]; }

# within SECONDS FILE COMMAND...: its output goes to OUT/FILE. 124: it took longer, or the time of all is up.
within() {
    local seconds=$1 file=$2 left=$((limit_s - SECONDS))
    shift 2
    ((seconds < left)) || seconds=$left
    if ((seconds <= 0)); then
        echo "the $limit_s s of all steps are up" >"$out/$file"
        return 124
    fi
    timeout -k 5 "$seconds" "$@" >"$out/$file" 2>&1 </dev/null
}

# ------------------------------------------------------------------------------------------- environment
if wanted environment; then
    if command -v nvidia-smi >/dev/null && within 20 smi.csv nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader; then
        record environment nvidia-smi pass - - "$(paste -sd ';' "$out/smi.csv")"
        within 20 smi_topo.txt nvidia-smi topo -m
    else
        record environment nvidia-smi skip - - "not there, or it fails"
    fi
    within 20 topo.txt "$bin/xrun" --topo &&
        record environment topology pass - - "$(sed -n 's/^  GPUs* *//p' "$out/topo.txt" | paste -sd ';')" ||
        record environment topology fail - - "$(tail -n 1 "$out/topo.txt")"
    within 30 channels.txt "$bin/rankinfo" --channels --load
    within 30 paths.txt "$bin/rankinfo" --paths
    grep -q '^  cuda  *one copy\|^  cuda  *through' "$out/paths.txt" && status=pass || status=skip
    record environment paths $status - - "$(sed -n 's/^  cuda *//p' "$out/channels.txt" "$out/paths.txt" | paste -sd ';')"
fi

# --------------------------------------------------------------------------------- is there a device at all?
# take STEP FILE: the records in an output. Without any, the step's last line is a failed one.
take() {
    local name status value unit text limit any=''
    while IFS=$'\t' read -r name status value unit text limit; do
        [[ $status =~ ^(pass|fail|skip)$ ]] || continue
        any=1
        if [ "$1" = rates ]; then
            rate "$name" "$status" "$value" "$unit" "$text" "$limit"
        else
            record "$1" "$name" "$status" "$value" "$unit" "$text" "$limit"
        fi
    done <"$out/$2"
    [[ $any ]] || record "$1" "$2" fail - - "$(tail -n 1 "$out/$2")"
}

# rate NAME STATUS VALUE UNIT TEXT LIMIT: a record of the rates. On the stand-in a limit says nothing: the record is skipped.
rate() {
    if [ "$standin" ] && [ "$2" != skip ]; then
        record rates "$1" skip "$3" "$4" "stand-in, no limit applies${5:+: $5}" "${6:-}"
    else
        record rates "$@"
    fi
}

within 40 device.txt "$dir/tests/gpu/probes" device
no_device=''
if grep -q $'^device\tskip' "$out/device.txt"; then
    no_device=$(cut -f 5 "$out/device.txt")
    case $no_device in *libcuda.so.1*) no_device="no libcuda: $no_device" ;; esac
fi
standin=''
! grep -q 'stand-in' "$out/device.txt" || standin=1
[ -z "$standin" ] || record environment driver pass - - "the tests' stand-in for libcuda, no GPU"

if [ -z "$no_device" ]; then
    "$dir/tests/gpu/probes" --hold >"$out/hold.txt" 2>&1 </dev/null &
    hold=$!
    disown # bash would report its end
    trap 'kill $hold 2>/dev/null' EXIT
fi

# skip_all STEP NAME...: true, with their records, if there is no device
skip_all() {
    local step=$1 name
    [[ $no_device ]] || return 1
    shift
    for name; do
        record "$step" "$name" skip - - "$no_device"
    done
}

# ------------------------------------------------------------------------------------------------ probes
if wanted probes && ! skip_all probes "all"; then
    within 100 probes.txt "$dir/tests/gpu/probes"
    take probes probes.txt
    if [ ! -e /dev/nvidiactl ]; then
        record probes "RANK_CUDA=auto" skip - - "no /dev/nvidiactl"
    elif within 30 auto.txt "$bin/xrun" -n 1 -x LD_PRELOAD=libcuda.so.1 "$bin/rankbench" --mem cuda --time 10ms allreduce -b 8 -e 8; then
        record probes "RANK_CUDA=auto" pass - - "used where the program has loaded libcuda"
    else
        record probes "RANK_CUDA=auto" fail - - "$(tail -n 1 "$out/auto.txt")"
    fi
fi

# ------------------------------------------------------------------------------------------------- suite
# ranks NAME N PROGRAM ARGUMENT...: all ranks end well. With lost=1 one of them is killed, and the others end well.
# via: options of xrun.
lost=0 case_no=0 via=()
ranks() {
    local name="$1, $2 ranks" n=$2 options=("${via[@]}") want=0 rc file
    shift 2
    file=suite_$((case_no += 1)).txt
    ((lost == 0)) || { options+=(--on-failure continue) want=137; }
    within 40 "$file" "$bin/xrun" -n "$n" "${options[@]}" -x RANK_CUDA=on -x DEVICE_MAPPED=1 "$dir/$@"
    rc=$?
    if ((rc == want)) && [ "$(grep -c 'mp: done' "$out/$file")" = $((n - lost)) ]; then
        record suite "$name" pass - - "$*"
    elif ((rc == 124)); then
        record suite "$name" fail - - "no end within 40 s, or the time of all steps is up; $file: $*"
    else
        record suite "$name" fail - - "exit code $rc, $file: $(grep -vE '^ *$|mp: done' "$out/$file" | tail -n 1)"
    fi
}

if wanted suite && ! skip_all suite messages buffers reductions queues death; then
    messages=tests/standin/device_messages.mp buffers=tests/standin/device_buffers.mp reductions=tests/standin/device_reductions.mp
    queue=tests/standin/device_queue.mp
    ranks "messages" 2 $messages
    ranks "operations in streams" 2 $queue --random 3
    ranks "reductions" 3 $reductions
    ranks "all calls at random" 2 $buffers
    if ! "$bin/rankinfo" --channels 2>/dev/null | grep -q '^  ucx *not found'; then
        via=(-x RANK_CHANNELS=ucx,self -x UCX_TLS=tcp,self)
        ranks "messages in pieces, over TCP" 2 tests/standin/device_pieces.mp --rounds 8
        via=()
    fi
    lost=1
    ranks "a sender is killed" 2 $messages --die 0
    ranks "a rank dies while streams wait for it" 3 $queue --kill
    lost=0
    if [ -z "$quick" ]; then
        ranks "messages" 4 $messages
        ranks "rules of queues" 2 $queue --rules
        ranks "reductions" 8 $reductions
        ranks "all calls at random" 4 $buffers
        lost=1
        ranks "a receiver is killed" 3 $messages --die 1
        ranks "a rank dies in reductions" 3 $reductions --die
        lost=0
    fi
fi

# ----------------------------------------------------------------------------------------------- kernels
if wanted kernels && ! skip_all kernels "as the CPU" compute-sanitizer; then
    kernels=$dir/tests/gpu/reduce_on_card
    if [ ! -x "$kernels" ]; then
        record kernels "as the CPU" skip - - "the build is without cmocka"
    elif ! grep -q 'reduction kernels: ' "$out/channels.txt" 2>/dev/null && ! within 30 channels.txt "$bin/rankinfo" --channels --load; then
        record kernels "as the CPU" fail - - "rankinfo fails: $(tail -n 1 "$out/channels.txt")"
    elif grep -q 'reduction kernels: none' "$out/channels.txt" && [ -z "${STANDIN_KERNELS:-}" ]; then
        record kernels "as the CPU" skip - - "$(sed -n 's/.*reduction kernels: //p' "$out/channels.txt")"
    else
        within 60 kernels.txt "$kernels" && record kernels "as the CPU" pass - - "every type and operation" ||
            record kernels "as the CPU" fail - - "$(tail -n 1 "$out/kernels.txt")"
        sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
        if [ -z "$sanitizer" ]; then
            record kernels compute-sanitizer skip - - "not there"
        else
            within 90 sanitizer.txt "$sanitizer" --error-exitcode 9 "$kernels" && record kernels compute-sanitizer pass - - "" ||
                record kernels compute-sanitizer fail - - "$(tail -n 1 "$out/sanitizer.txt")"
        fi
    fi
fi

# ------------------------------------------------------------------------------------------------- rates
# row NAME A B SENSE LIMIT TEXT: A / B is at least (ge) or at most (le) LIMIT
row() {
    local ratio status
    if [ -z "$2" ] || [ -z "$3" ]; then
        record rates "$1" fail - - "no figure: $6"
        return
    fi
    read -r ratio status < <(awk -v a="$2" -v b="$3" -v sense="$4" -v limit="$5" 'BEGIN {
        r = b > 0 ? a / b : 0
        printf "%.4g %s\n", r, (sense == "ge" ? r >= limit : r <= limit) ? "pass" : "fail" }')
    rate "$1" "$status" "$ratio" "$([ "$4" = ge ] && echo "at least" || echo "at most")" "$6" "$5"
}

# bench FILE N OPTION... -- ARGUMENT...: rankbench on N ranks, OPTIONs to xrun; its figures go to OUT/FILE.json.
# Without --mem it runs as a program that uses no CUDA.
bench() {
    local file=$1 n=$2 options=() cuda=off
    [[ " $* " != *" --mem "* ]] || cuda=on
    shift 2
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    within 60 "$file.txt" "$bin/xrun" -n "$n" -x RANK_CUDA=$cuda "${options[@]}" "$bin/rankbench" --time $([ "$quick" ] && echo 2ms || echo 50ms) \
        -j "$out/$file.json" "$@"
}

# figure FILE BYTES FIELD: of a record of rankbench; nothing if there is none
figure() { sed -n "s/.*\"bytes\": $2, .*\"$3\": \([-0-9.e+]*\),.*/\1/p" "$out/$1.json" 2>/dev/null | tail -n 1; }

# limit NAME: the value of a record of device_rates
limit() { awk -F '\t' -v name="$1" '$1 == name { print $3 }' "$out/device_rates.txt"; }

sum() { awk 'BEGIN { for (i = 1; i < ARGC; i++) { if (ARGV[i] == "") exit; s += ARGV[i] } print s }' "$@"; }

# ucx_latency BYTES: of ucx_perftest in device memory, in us; nothing if it fails
ucx_latency() {
    local port=$((20000 + RANDOM % 20000)) iterations=1000
    (($1 < 1 << 20)) || iterations=100
    (($1 < 1 << 28)) || iterations=10
    timeout 30 "$ucx" -p $port -t tag_lat -m cuda -s "$1" -n $iterations -w $((iterations / 10)) >"$out/ucx_server.txt" 2>&1 </dev/null &
    sleep 1
    within 30 "ucx_$1.txt" "$ucx" 127.0.0.1 -p $port -t tag_lat -m cuda -s "$1" -n $iterations -w $((iterations / 10)) -f -v
    wait $!
    awk -F , '/^ *[0-9]+,/ { print $3 }' "$out/ucx_$1.txt"
}

if wanted rates && ! skip_all rates messages "8 B" "small allreduce" "large allreduce" kernels rank_start_on "staged over TCP"; then
    cores=$(nproc)
    within 90 device_rates.txt "$dir/tests/gpu/device_rates" ${quick:+-q}
    take rates device_rates.txt

    # Two ranks on one device.
    for bytes in $([ "$quick" ] && echo 1048576 || echo 67108864 268435456 1073741824); do
        bench "bw_$bytes" 2 -- --mem cuda:0 -b "$bytes" -e "$bytes" bw
        row "bandwidth of two ranks, $bytes B" "$(figure "bw_$bytes" "$bytes" algbw_gbyte_per_s)" "$(limit "copy on the device, $bytes B")" ge 0.9 "of cuMemcpyDtoD"
    done
    [ "$quick" ] && to=4K || to=128M
    bench lat 2 -- --mem cuda:0 -b 8 -e $to -f 8 lat
    bench lat_host 2 -- -b 8 -e 8 lat
    row "latency, 8 B, device to device" "$(figure lat 8 median_us)" "$(sum "$(limit "copy on the device, 8 B")" "$(figure lat_host 8 median_us)")" le 1.3 \
        "of a copy on the device and a message of the host"
    ucx=$bin/ucx_perftest
    [ -x "$ucx" ] || ucx=$(command -v ucx_perftest)
    [ ! -d "$dir/lib/ucx" ] || export UCX_MODULE_DIR=$dir/lib/ucx
    if [ "$standin" ] || [ -z "$ucx" ]; then
        record rates "against ucx_perftest -m cuda" skip - - "$([ "$ucx" ] && echo "UCX needs a driver" || echo "not there")"
    else
        for bytes in $(sed -n 's/.*"bytes": \([0-9]*\),.*/\1/p' "$out/lat.json"); do
            theirs=$(ucx_latency "$bytes")
            if [ "$theirs" ]; then
                row "latency, $bytes B, against ucx_perftest -m cuda" "$(figure lat "$bytes" median_us)" "$theirs" le 1 "of UCX's: $theirs us"
            else
                record rates "latency, $bytes B, against ucx_perftest -m cuda" skip - - "it fails: $(tail -n 1 "$out/ucx_$bytes.txt")"
            fi
        done
    fi

    # Collectives.
    for n in 2 $([ "$quick" ] || echo 4 8); do
        ((n == 2 || n <= cores)) || { record rates "allreduce, $n ranks" skip - - "$cores cores"; continue; }
        bench "small_$n" "$n" -- --mem cuda:0 -b 8 -e 4K -f 8 allreduce
        bench "small_host_$n" "$n" -- -b 8 -e 4K -f 8 allreduce
        for bytes in 8 64 512 4096; do
            row "allreduce, $n ranks, $bytes B" "$(figure "small_$n" $bytes median_us)" \
                "$(sum "$(limit "copies to the host and back, $bytes B")" "$(figure "small_host_$n" $bytes median_us)")" le 1.3 \
                "of copies to the host and back and the host's allreduce"
        done
    done
    large='1048576 16777216 268435456' to=256M
    [ -z "$quick" ] || { large=1048576 to=1M; }
    for type in f32 bf16; do
        for n in 2 $([ "$quick" ] || echo 4); do
            bench "large_${type}_$n" "$n" -- --mem cuda:0 -d $type -b 1M -e $to -f 16 allreduce
            for bytes in $large; do
                # Each input is loaded once, and each result is stored once: n copies, one after the other.
                copy=$(limit "copy on the device, $bytes B")
                row "allreduce, $n ranks, $type, $bytes B" "$(figure "large_${type}_$n" "$bytes" algbw_gbyte_per_s)" \
                    "$(awk -v c="$copy" -v n="$n" 'BEGIN { if (c != "") print c / n }')" ge 0.8 "of the copy bound: $n copies on the device"
            done
        done
        [ "$quick" ] && continue
        bench "large_${type}_1G" 2 -- --mem cuda:0 -d $type -b 1G -e 1G allreduce
        row "allreduce, 2 ranks, $type, 1073741824 B" "$(figure "large_${type}_1G" 1073741824 algbw_gbyte_per_s)" \
            "$(limit "copy on the device, 1073741824 B" | awk '{ print $1 / 2 }')" ge 0.8 "of the copy bound: 2 copies on the device"
    done

    # shellcheck disable=SC2086 # a list of sizes
    within 90 nccl.txt "$bin/xrun" -n 2 -x RANK_CUDA=on -x NCCL_MULTI_RANK_GPU_ENABLE=1 "$dir/tests/gpu/nccl_rate.mp" $large
    if grep -q $'\tpass\t' "$out/nccl.txt"; then
        for type in f32 bf16; do
            for bytes in $large; do
                theirs=$(awk -F '\t' -v name="NCCL, allreduce, $type, $bytes B" '$1 == name { print $3 }' "$out/nccl.txt")
                row "allreduce, 2 ranks, $type, $bytes B, against NCCL" "$(figure "large_${type}_2" "$bytes" median_us)" "$theirs" le 1 "of NCCL's: $theirs us"
            done
        done
    else
        why=$(sed -n 's/^NCCL\tskip\t-\t-\t//p' "$out/nccl.txt")
        record rates "allreduce against NCCL" skip - - "${why:-it fails: $(grep -v '^ *$' "$out/nccl.txt" | tail -n 1)}"
    fi

    if within 60 start_rate.txt "$bin/xrun" -n 2 -x RANK_CUDA=on "$dir/tests/gpu/start_rate.mp" --starts $([ "$quick" ] && echo 20 || echo 300); then
        take rates start_rate.txt
    else
        record rates rank_start_on fail - - "$(tail -n 1 "$out/start_rate.txt")"
    fi

    # Staged over TCP between two ranks of this host.
    [ "$quick" ] && bytes=1048576 size=1M || bytes=67108864 size=64M
    tcp=(-x RANK_CHANNELS=ucx,self -x UCX_TLS=tcp,self)
    if "$bin/rankinfo" --channels 2>/dev/null | grep -q '^  ucx *not found'; then
        record rates "staged over TCP" skip - - "built without UCX"
    else
        bench tcp 2 "${tcp[@]}" -- --mem cuda:0 -b $size -e $size bw
        bench tcp_host 2 "${tcp[@]}" -- -b $size -e $size bw
        row "staged over TCP, $bytes B" "$(figure tcp $bytes algbw_gbyte_per_s)" \
            "$(printf '%s\n' "$(figure tcp_host $bytes algbw_gbyte_per_s)" "$(limit "copy to the host, $bytes B")" "$(limit "copy to the device, $bytes B")" |
                sort -g | head -n 1)" ge 0.85 "of the least of wire and copies"
    fi
fi

echo "$passed passed, $failed failed, $skipped skipped: $out/results.json"
((failed == 0)) || exit 1
((passed > 0)) || exit 77
