#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# crash_stack.sh: print the stack of a rank that crashes.
# It ends by its signal as without.
. "$(dirname "$0")/../launcher/cases.sh"
crash=$top_builddir/tests/faults/crash.mp
command -v gdb >/dev/null || command -v eu-stack >/dev/null || { echo "ok - crash_stack # SKIP neither gdb nor eu-stack"; exit 77; }
[ -z "${SAN_CFLAGS:-}" ] || { echo "ok - crash_stack # SKIP the sanitizer has handlers of its own"; exit 77; }

# crashes HOW CODE TEXT FUNCTION [FIRST]: the stack names the function, in its first frame if asked, and xrun the signal
crashes() {
    run 30 -q -n 2 $options "$crash" "$1"
    if [ "$rc" = "$2" ] && grep -q "^librank: rank 1 .*error: $3\$" err && grep '^#' err >frames && grep -q "$4" frames &&
        { [ -z "${5-}" ] || head -n 1 frames | grep -q "$4"; } && ! grep -qE 'libpmix|on_crash|signal handler' frames &&
        grep -q "xrun: error: rank 1 .*was killed by signal $(($2 - 128)) " err; then
        good "a rank that crashes: $1"
    else
        bad "a rank that crashes: $1" "exit code $rc"
    fi
}
options=
crashes null 139 "Segmentation fault" write_to_null first
crashes overflow 139 "Segmentation fault" recurse_deeply
crashes abort 134 Aborted '\bmain\b'
crashes vfork 139 "Segmentation fault" crash_after_child
if eu=$(command -v eu-stack); then
    mkdir bin
    for tool in sh awk "$eu"; do ln -s "$(command -v "$tool")" bin/; done
    options="-x PATH=$work/bin" crashes null 139 "Segmentation fault" write_to_null first
fi

RANK_CRASH_STACK=off run 30 -q -n 2 "$crash" null
[ "$rc" = 139 ] && ! grep -q write_to_null err && good "RANK_CRASH_STACK=off" || bad "RANK_CRASH_STACK=off" "exit code $rc"

echo "# crash_stack: $passed passed, $failed failed"
[ "$failed" = 0 ]
