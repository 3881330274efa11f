#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# listener_hosts.sh: crowd the listeners of agents with unauthenticated peers.
# They exceed the descriptors of xrun and the backlog of the listener, or come again and again. The agents connect all the same,
# the job continues, and xrun counts the peers.
. "$(dirname "$0")/../inside.sh"
inside 3 "crowds of strangers"
. "$(dirname "$0")/cases.sh"
. "$top_srcdir/tests/left.sh"
remember hosta hostb hostc

# An ssh that waits until the file "go" is there.
cat >slow-ssh <<'SH'
#!/bin/bash
while [ ! -e "${0%/*}/go" ]; do read -rt 0.05 <> <(:); done
exec ssh "$@"
SH
chmod +x slow-ssh
# N connections that send nothing, or only the begin of a handshake; they stay until the other side closes them. With "again"
# each is then made once more, until no process listens there.
cat >crowd.py <<'PY'
import resource, select, socket, sys, time
host, port, n, again = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:] == ["again"]
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
crowd, turned_away, p = {}, 0, select.poll()
def come(i):
    s = socket.create_connection((host, port), 30)
    if i % 2:
        s.sendall(b"xrunwire")
    crowd[s.fileno()] = s
    p.register(s.fileno(), select.POLLIN)
for i in range(n):
    come(i)
print("there", flush=True)
end = time.monotonic() + 100
while crowd:
    left = end - time.monotonic()
    assert left > 0, "%d are still let in" % len(crowd)
    for fd, _ in p.poll(left * 1000):
        p.unregister(fd)
        s = crowd.pop(fd)
        try:
            assert s.recv(100) == b"", "a stranger got an answer"
        except ConnectionResetError:
            pass
        s.close()
        turned_away += 1
        if again:
            try:
                come(turned_away)
            except OSError:
                again = False
print("gone", turned_away, flush=True)
PY
port() { port=$(on hosta ss -Htlnp 2>/dev/null | sed -n "s/.*:\([0-9]*\) .*\"$1\".*/\1/p" | head -n 1); [ -n "$port" ]; }
cpu_ticks() { # PID
    local line
    line=$(on hosta cat "/proc/$1/stat") || return
    # shellcheck disable=SC2086
    set -- ${line##*) }
    echo $((${12} + ${13}))
}
there() { grep -q there crowd.out; }

# crowded NAME PROCESS N HOW FILES HOST...: N peers connect to PROCESS, which has FILES descriptors, when agents come
crowded() {
    local name=$1 process=$2 n=$3 how=$4 files=$5 pid spent counted t0 ms
    shift 5
    rm -f go
    : >out
    : >err
    : >crowd.out
    on hosta sh -c 'ulimit -n "$0" && exec "$@"' "$files" env XDG_RUNTIME_DIR="$work/tmp" \
        "$XRUN" -v --timeout 100 --agent "$PWD/slow-ssh" --fanout 1 -n $# --host "$(echo "$@" | tr ' ' ,)" hostname >out 2>err </dev/null &
    xpid=$!
    if ! until_true 20 port "$process"; then
        bad "$name" "no process listens"
        on hosta pkill -TERM -x xrun
        wait $xpid
        return
    fi
    pid=$(on hosta pgrep -x "$process" | head -n 1)
    # shellcheck disable=SC2086
    on hostc python3 crowd.py hosta "$port" "$n" $how >crowd.out 2>&1 &
    cpid=$!
    until_true 60 there || bad "$name: they come" "$(tail -n 3 crowd.out)"
    # For a second there is nothing to do but to wait.
    spent=$(cpu_ticks "$pid")
    read -rt 1 <> <(:)
    spent=$(($(cpu_ticks "$pid") - spent))
    [ $spent -lt $((50 * slow)) ] && good "$name: the listener does not spin" || bad "$name: the listener does not spin" "$spent ticks in a second"
    : >go
    t0=${EPOCHREALTIME/./}
    rc=hung
    if until_true 60 ended; then
        wait $xpid
        rc=$?
    else
        on hosta pkill -9 'xrun'
    fi
    ms=$(((${EPOCHREALTIME/./} - t0) / 1000))
    wait $cpid || bad "$name: they get nothing but a close" "$(tail -n 3 crowd.out)"
    counted=$(sed -n 's/^xrun: \([0-9]*\) strangers came to the door$/\1/p' err)
    if [ "$rc" != 0 ]; then
        bad "$name" "exit code $rc"
    elif [ "$(sort out | tr '\n' ' ')" != "$* " ]; then
        bad "$name" "said: $(head -c 200 out)"
    elif ! until_true 5 none_left; then
        bad "$name" "left behind: $(left)"
        sweep
    else
        good "$name"
    fi
    # Unauthenticated peers have 5 s each to send something where there is room.
    [ $ms -le $((10000 * slow)) ] && good "$name: agents do not stand in line" || bad "$name: agents do not stand in line" "$ms ms"
    # Connections still in the kernel's queue when the listener was closed are not counted.
    [ "${counted:-0}" -ge $((n / 2)) ] && good "$name: they are counted" || bad "$name: they are counted" "${counted:-none} of $n"
}

crowded "more strangers than descriptors" xrun 300 "" 100 hostb
crowded "more strangers than a door has room for" xrun 1200 "" 4096 hostb
crowded "unauthenticated peers that come again and again" xrun 600 again 4096 hostb
crowded "more strangers than an agent has descriptors" xrun-agent 300 "" 100 hosta hostb
echo "# listener_hosts: $passed passed, $failed failed"
[ $failed -eq 0 ]
