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

echo "$passed passed, $failed failed, $skipped skipped: $out/results.json"
((failed == 0)) || exit 1
((passed > 0)) || exit 77
