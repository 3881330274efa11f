#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# host_aliases_hosts.sh: give one machine under several names.
# Names of xrun's own host count as one host. Names of another host are refused in one line, unless a command other than ssh
# makes hosts of them.
. "$(dirname "$0")/../inside.sh"
inside_if_able 3
. "$(dirname "$0")/cases.sh"
. "$top_srcdir/tests/left.sh"
[ -z "${RK_INSIDE:-}" ] || remember hosta hostb hostc
unset "${!SLURM@}" "${!PBS@}" "${!LSB@}"
host=$(hostname)

# ------------------------------------------------------------------------- names of this host
show='echo $XRUN_NODES $XRUN_LOCAL_SIZE'
run 10 -q --bind none -n 3 --host "localhost,127.0.0.1,$host" sh -c "$show"
same "three names of this host" "1 3
1 3
1 3"
run 10 -q -n 1 --host "localhost:3,127.0.0.1:4" --dry-run --json-map map.json true
grep -q '"slots": 7' map.json && check "it has the slots of all" 0 || bad "it has the slots of all" "$(cat map.json)"
printf 'rank 0=localhost\nrank 1=127.0.0.1\nrank 2=%s\n' "$host" >ranks
run 10 -q --rankfile ranks sh -c "$show"
same "in a rankfile" "1 3
1 3
1 3"
run 10 -q --host 127.0.0.1 --rankfile ranks sh -c "$show"
same "in a rankfile with --host" "1 3
1 3
1 3"

# ------------------------------------------------------------------------- names of others
twins() { # NAME CODE PATTERN ARGS...
    local name=$1 code=$2 pattern=$3
    shift 3
    rm -f ran.*
    on hosta timeout -k 5 $((30 * slow)) env XDG_RUNTIME_DIR="$work/tmp" "$XRUN" "$@" sh -c 'echo $XRUN_RANK; : >'"'$PWD'"'/ran.$XRUN_RANK' >out 2>err </dev/null
    rc=$?
    if [ "$code" = 2 ] && { [ "$(grep -vc '^xrun: waiting for ' err)" != 1 ] || [ -e ran.0 ]; }; then
        bad "$name" "not one line, or something was started"
    elif ! until_true 5 none_left; then
        bad "$name" "left behind: $(left)"
        sweep
    else
        check "$name" "$code" "$pattern"
    fi
}
if [ -n "${RK_INSIDE:-}" ]; then
    says='; name each host once, with all its slots, as NAME:SLOTS$'
    twins "this host and a name of it" 2 "error: hosta and hosta6 are one host$says" -n 3 --host hosta,hostb,hosta6
    twins "two names of another" 2 "error: hostb and hostb6 are one host$says" -n 3 --host hosta,hostb,hostb6
    twins "two names of each of three" 2 "are one host \(and there are 2 more such names\)$says" -n 6 --host hosta,hostb,hostc,hosta6,hostb6,hostc6
    twins "with fan-out 1" 2 "error: hostb and root@hostb are one host$says" --fanout 1 -n 3 --host hostc,hostb,root@hostb
    # hosta calls itself by a name without a domain; the same name with one belongs to another.
    on hosta sh -c 'echo "$(getent hosts hostb | cut -d" " -f1) hosta.other" >>/etc/hosts'
    on hosta timeout -k 5 $((30 * slow)) env XDG_RUNTIME_DIR="$work/tmp" "$XRUN" -q --ssh-args '-o StrictHostKeyChecking=no' -n 2 --host hosta:1,hosta.other:1 hostname >out 2>err </dev/null
    rc=$?
    [ "$(sort out | tr '\n' ' ')" = "hosta hostb " ] && check "a name with a domain that leads elsewhere" 0 || bad "a name with a domain that leads elsewhere" "$(cat out)"
    on hosta sed -i '$d' /etc/hosts
    twins "a dry run" 2 "are one host$says" --dry-run -n 3 --host hosta,hostb,hostb6
    twins "a name that gets no rank" 0 "" -q -n 2 --host hosta:1,hostb:1,hostb6:1
    printf '#!/bin/sh\nexec ssh "$@"\n' >other
    chmod +x other
    twins "hosts that another command makes" 0 '^xrun: hostb and hostb6 are one host: no rank is bound there$' --agent "$PWD/other" -n 3 --host hosta:1,hostb:1,hostb6:1
    [ "$(sort out | tr '\n' ' ')" = "0 1 2 " ] && good "they run" || bad "they run" "$(cat out)"
    on hosta timeout -k 5 $((30 * slow)) env XDG_RUNTIME_DIR="$work/tmp" "$XRUN" -q --agent "$PWD/other" -n 3 --host hosta:1,hostb:1,hostb6:1 --dry-run --json-map "$PWD/map.json" true >out 2>err </dev/null
    python3 -c 'import json; b=[bool(r["cpus"]) for r in json.load(open("map.json"))["ranks"]]; assert b==[True,False,False], b' &&
        good "ranks that share a machine are not bound" || bad "ranks that share a machine are not bound" "$(cat map.json)"
fi
echo "# host_aliases_hosts: $passed passed, $failed failed"
[ $failed -eq 0 ]
