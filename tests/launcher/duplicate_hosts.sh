#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# duplicate_hosts.sh: run a job on two hosts that look like one.
# They share the ipc namespace and the boot id, by which programs distinguish hosts, but no memory.
export HOSTS_TWINS=1
. "$(dirname "$0")/../inside.sh"
inside 2 "two hosts that look like one"
. "$(dirname "$0")/cases.sh"
for program in tests/mp/startup.mp tests/mp/team_create.mp examples/ring; do
    new_case
    on hosta timeout -k 5 $((60 * slow)) env XDG_RUNTIME_DIR="$work/tmp" "$XRUN" -q -n 4 --host hosta:2,hostb:2 --timeout 50 \
        "$top_builddir/$program" >out 2>err </dev/null
    rc=$?
    check "$program on two hosts that look like one" 0
done
echo "# duplicate_hosts: $passed passed, $failed failed"
[ $failed -eq 0 ]
