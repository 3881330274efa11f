#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# resolve_hosts.sh: resolve where ranks run, of this job and of a spawned one.
# On one host and on two.
. "$(dirname "$0")/../inside.sh"
inside_if_able 2
. "$(dirname "$0")/cases.sh"
client=$top_builddir/tests/launcher/programs/resolve_client

# found NAME OKS: all processes of both jobs have found each other
found() {
    [ "$(grep -c '^ok$' out)" = "$2" ] && check "$1" 0 || bad "$1" "got '$(head -c 300 out)'"
}
for n in 1 3; do
    run 30 -q -n $n "$client" 2
    found "$n ranks find two that they have spawned, and those them" $((n + 2))
done
if [ -n "${RK_INSIDE:-}" ]; then
    on hosta timeout -k 5 $((60 * slow)) env XDG_RUNTIME_DIR=/run "$XRUN" -q --host hosta:2,hostb:2 -n 4 "$client" 3 2 2 2 >out 2>err </dev/null
    rc=$?
    found "ranks of two hosts find others on two hosts" 7
    # The ranks of the first job are on one host only, those of the second on both.
    on hosta timeout -k 5 $((60 * slow)) env XDG_RUNTIME_DIR=/run "$XRUN" -q --host hosta:2,hostb:2 -n 2 "$client" 4 1 2 2 >out 2>err </dev/null
    rc=$?
    found "ranks of one host find others on two hosts" 6
fi

echo "# resolve_hosts: $passed passed, $failed failed"
[ "$failed" = 0 ]
