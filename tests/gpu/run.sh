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
        record "$1" "$name" "$status" "$value" "$unit" "$text" "$limit"
    done <"$out/$2"
    [[ $any ]] || record "$1" "$2" fail - - "$(tail -n 1 "$out/$2")"
}

within 40 device.txt "$dir/tests/gpu/probes" device
no_device=''
if grep -q $'^device\tskip' "$out/device.txt"; then
    no_device=$(cut -f 5 "$out/device.txt")
    case $no_device in *libcuda.so.1*) no_device="no libcuda: $no_device" ;; esac
fi
# What runs on the stand-in shows nothing of a card.
! grep -q 'stand-in' "$out/device.txt" || record environment driver pass - - "the tests' stand-in for libcuda, no GPU"

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
lost=0 case_no=0
ranks() {
    local name="$1, $2 ranks" n=$2 options=() want=0 rc file
    shift 2
    file=suite_$((case_no += 1)).txt
    ((lost == 0)) || { options=(--on-failure continue) want=137; }
    within 40 "$file" "$bin/xrun" -n "$n" "${options[@]}" -x RANK_CUDA=on -x MEMORY_KINDS_MAPPED=1 "$dir/$@"
    rc=$?
    if ((rc == want)) && [ "$(grep -c 'mp: done' "$out/$file")" = $((n - lost)) ]; then
        record suite "$name" pass - - "$*"
    elif ((rc == 124)); then
        record suite "$name" fail - - "no end within 40 s, or the time of all steps is up; $file: $*"
    else
        record suite "$name" fail - - "exit code $rc, $file: $(grep -vE '^ *$|mp: done' "$out/$file" | tail -n 1)"
    fi
}

if wanted suite && ! skip_all suite messages kinds reductions queues death; then
    messages=tests/standin/device_messages.mp kinds=tests/mp/memory_kinds.mp reductions=tests/standin/device_reductions.mp
    queue=tests/standin/device_queue.mp
    ranks "messages" 2 $messages
    ranks "operations in streams" 2 $queue --random 3
    ranks "reductions" 3 $reductions
    ranks "all calls at random" 2 $kinds
    lost=1
    ranks "a sender is killed" 2 $messages --die 0
    ranks "a rank dies while streams wait for it" 3 $queue --kill
    lost=0
    if [ -z "$quick" ]; then
        ranks "messages" 4 $messages
        ranks "rules of queues" 2 $queue --rules
        ranks "reductions" 8 $reductions
        ranks "all calls at random" 4 $kinds
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

echo "$passed passed, $failed failed, $skipped skipped: $out/results.json"
((failed == 0)) || exit 1
((passed > 0)) || exit 77
