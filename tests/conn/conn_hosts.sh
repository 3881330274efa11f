#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# conn_hosts.sh: connect processes of two hosts, and end them in several ways.
. "$(dirname "$0")/../inside.sh"
inside 2 "connections between hosts"
. "$top_srcdir/tests/launcher/cases.sh"
remote=$top_builddir/tests/conn/conn_remote

# begin WHAT OTHER: hosta listens and does WHAT; hostb connects and does OTHER
begin() {
    : >out
    : >err
    : >out.b
    on hosta "$remote" listen "${address:-:0}" "$1" >out 2>err </dev/null &
    pid_a=$!
    until_true 20 grep -q '^listens' out || bad "$1: it listens" "$(cat out err)"
    port=$(sed -n 's/^listens .*:\([0-9]*\)$/\1/p' out)
    on hostb "$remote" connect "${name:-hosta}:$port" "$2" >out.b 2>>err </dev/null &
    pid_b=$!
}
end_all() {
    on hosta pkill -9 -x conn_remote
    on hostb pkill -9 -x conn_remote
    wait "$pid_a" "$pid_b"
}
# The bound, and more on a busy machine.
in_a_second() { awk -v killed="$killed" '/^at / { exit $2 - killed > 1e9 + $3 }' out; }
is_dead() { grep -q '^ended: .*died\|^ended: .*dead' out; }
are_ready() { grep -q '^ready' out && grep -q '^ready' out.b; }

for name in hosta hosta6; do
    begin 11 11
    wait "$pid_a" && wait "$pid_b" && grep -q '^done' out && grep -q '^done' out.b && good "random operations, $name" ||
        bad "random operations, $name" "$(cat out out.b err)"
done
name=hosta
for what in recv send put get write read; do
    begin "$what" idle
    until_true 20 are_ready
    on hostb pkill -9 -x conn_remote
    killed=$(date +%s%N)
    until_true 5 is_dead && in_a_second && good "the other side is killed, in $what" || bad "the other side is killed, in $what" "$(cat out err)"
    end_all
done
# The silence that conn_remote allows is 3 s.
for what in recv put; do
    begin "$what" idle
    until_true 20 are_ready
    "$hosts" link hostb down
    until_true 12 is_dead && good "a cable is pulled, in $what" || bad "a cable is pulled, in $what" "$(cat out err)"
    end_all
    "$hosts" link hostb up
done
begin recv idle
until_true 20 are_ready
on hostb pkill -STOP -x conn_remote
sleep 5 # longer than the silence
is_dead && bad "a stopped process is not dead" "$(cat out err)" || good "a stopped process is not dead"
on hostb pkill -CONT -x conn_remote
pkill -CONT -x nsenter # it stops with its child
"$hosts" crash hostb
until_true 12 is_dead && good "a host crashes" || bad "a host crashes" "$(cat out err)"
on hosta pkill -9 -x conn_remote
kill -9 "$pid_b"
echo "# conn_hosts: $passed passed, $failed failed"
[ $failed -eq 0 ]
