# SPDX-License-Identifier: BSD-3-Clause
# gpu_run.sh: run tests/gpu/run.sh without a GPU, and on the stand-in for libcuda.
. "$top_srcdir/tests/env.sh"
case "${SAN_CFLAGS:-}" in *sanitize*) echo "ok - standin/gpu_run # SKIP under sanitizers cuda_ranks.sh runs these programs"; exit 77 ;; esac
work=$(mktemp -d "$top_builddir/tests/gpu_run.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

# judge RC WHAT: with the log if it failed
judge() {
    if [ "$1" = 0 ]; then
        echo "ok - standin/$2"
    else
        echo "not ok - standin/$2"
        sed 's/^/    /' "$work/log"
        bad=1
    fi
}

run() { bash "$top_srcdir/tests/gpu/run.sh" -q -o "$work/out" "$@" "$top_builddir" >"$work/log" 2>&1; }

# count STATUS STEP: records in results.json
count() { grep -c "\"step\": \"$2\", .*\"status\": \"$1\"" "$work/out/results.json"; }

if [ "$(ldconfig -p 2>/dev/null | grep -c 'libcuda\.so\.1')" = 0 ]; then
    run -s probes,suite,kernels,rates
    [ $? = 77 ] && [ "$(grep -c '"status": "skip".*no libcuda' "$work/out/results.json")" = "$(grep -c '"step"' "$work/out/results.json")" ]
    judge $? "without a GPU all is skipped"
fi

kernels=$top_builddir/tests/standin/reduce_kernel.so
[ -s "$kernels" ] && [ -x "$top_builddir/tests/gpu/reduce_on_card" ] || kernels= # no C++ compiler, or no cmocka
STANDIN_KERNELS=$kernels LD_LIBRARY_PATH=$top_builddir/tests/standin/.libs run
[ $? -le 1 ]
judge $? "gpu/run.sh runs through"
for step in probes suite ${kernels:+kernels}; do
    [ "$(count pass $step)" -ge 1 ] && [ "$(count fail $step)" = 0 ]
    judge $? "gpu/run.sh, $step"
done
# Each row has its figure: a missing one is a failure there.
[ "$(count fail rates)" = 0 ] && [ "$(grep -c '"step": "rates", .*"limit": ' "$work/out/results.json")" -ge 8 ] &&
    ! grep '"step": "rates", .*"limit": ' "$work/out/results.json" | grep -q '"value": null'
judge $? "gpu/run.sh, rates"
grep -q 'stand-in for libcuda, no GPU' "$work/out/results.json"
judge $? "gpu/run.sh names the stand-in"
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/out/results.json" >"$work/log" 2>&1
    judge $? "gpu/run.sh, results.json"
fi
exit $bad
