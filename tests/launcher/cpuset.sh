#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# cpuset.sh: run xrun and an agent in a control group with one CPU.
# Both count and use that CPU alone. Works with control groups v2 and with the hierarchy of v1.
export HOSTS_NO_PIN=1 # hosts of one CPU would show nothing
. "$(dirname "$0")/../inside.sh"
inside_if_able 2
. "$(dirname "$0")/cases.sh"

leave() {
    echo "ok - cpuset # SKIP $1"
    exit 77
}
# new_group: $group is one that may be given CPUs
new_group() {
    local root
    for root in /sys/fs/cgroup /sys/fs/cgroup/unified; do
        grep -qsw cpuset $root/cgroup.controllers || continue
        echo +cpuset 2>/dev/null >$root/cgroup.subtree_control
        grep -qsw cpuset $root/cgroup.subtree_control || continue
        group=$root/xrun-test.$$
        mkdir "$group" 2>/dev/null && [ -w "$group/cpuset.cpus" ] && return
        rmdir "$group" 2>/dev/null
    done
    root=/sys/fs/cgroup/cpuset
    [ -e $root/cpuset.cpus ] || return 1
    group=$root/xrun-test.$$
    mkdir "$group" 2>/dev/null || return 1
    # A group of v1 takes no process before it has both.
    cat $root/cpuset.mems >"$group/cpuset.mems" && return
    rmdir "$group"
    return 1
}

mapfile -t cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
[ ${#cpus[@]} -ge 2 ] || leave "this machine, or what it lets us use, has but one CPU"
last=${cpus[-1]}
new_group || leave "no control group with a cpuset can be made here: not root, or none is mounted"
# Processes that end are gone from their group a little later.
remove() { rmdir "$group" 2>/dev/null; }
trap '[ $BASHPID != $$ ] || { kill_all; until_true 5 remove; cd /; rm -rf "$work"; }' EXIT
echo "$last" >"$group/cpuset.cpus" 2>err || leave "a control group takes no CPUs: $(head -n 1 err)"

# put COMMAND...: run in the group
cat >put <<SH
#!/bin/sh
echo \$\$ >"$group/cgroup.procs" || exit 99
exec "\$@"
SH
chmod +x put
./put true || leave "no process may go into the group"
XRUN_THERE=$XRUN XRUN=$PWD/put
cpus_of='sed -n "s/^Cpus_allowed_list:[[:space:]]*//p" /proc/self/status'

run 20 "$XRUN_THERE" -n 1 --bind core --json-map map sh -c "$cpus_of"
same "a rank is on the CPU of the group" "$last"
python3 -c 'import json; m = json.load(open("map")); assert m["ranks"][0]["cpus"] == ['"$last"'] and m["hosts"][0]["cores"] == 1, m' &&
    good "the map shows it" || bad "the map shows it" "$(cat map)"
run 20 "$XRUN_THERE" sh -c 'echo rank'
same "one rank is started where no number is given" rank
run 20 "$XRUN_THERE" -n 2 sh -c "$cpus_of"
same "two are more than the group's cores" "$last
$last"
grep -qE '^xrun: .*2 ranks.* 1 core' err && [ "$(grep -c . err)" = 1 ] && good "one line reports it" || bad "one line reports it" "$(cat err)"
run 20 "$XRUN_THERE" -n 2 --show-map --dry-run true
check "its map" 0
grep -q '2 ranks on 1 core' out && good "has one core" || bad "has one core" "$(cat out)"
# Affinity and group: what both allow.
run 20 taskset -c "${cpus[0]},$last" "$XRUN_THERE" -n 1 --bind core sh -c "$cpus_of"
same "with an affinity beside it" "$last"
echo "rank 0=$(hostname) slot=1" >ranks
refused "a rankfile that names a core outside" 2 "gives rank 0 cores that host .* does not have or xrun may not use" "$XRUN_THERE" --rankfile "$PWD/ranks" sh -c 'touch started'

# ------------------------------------------------------------------------- an agent elsewhere
if [ -n "${RK_INSIDE:-}" ]; then
    printf '#!/bin/sh\nhost=$1\nshift\nexec ssh "$host" "echo 0 >%s/cgroup.procs; $*"\n' "$group" >ssh-put
    chmod +x ssh-put
    new_case
    on hosta timeout 30 env XDG_RUNTIME_DIR="$work/tmp" "$XRUN_THERE" -q --agent "$PWD/ssh-put" -n $((${#cpus[@]} + 1)) --host hosta,hostb --map-by core --bind core \
        --json-map "$PWD/map" sh -c "echo \$(hostname) \$($cpus_of)" >out 2>err </dev/null
    rc=$?
    sort -o out out
    want=$(for c in "${cpus[@]}"; do echo "hosta $c"; done; echo "hostb $last")
    same "an agent's group counts on its host" "$want"
    python3 -c 'import json; m = json.load(open("map")); assert m["hosts"][1]["cores"] == 1 and m["ranks"][-1]["cpus"] == ['"$last"'], m' &&
        good "its map shows it" || bad "its map shows it" "$(cat map)"
else
    echo "ok - an agent's group counts on its host # SKIP no hosts can be made here"
fi
echo "# cpuset: $passed passed, $failed failed"
[ $failed -eq 0 ]
