#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# hosts_test.sh: test the simulated hosts of hosts.sh, and kill their processes.
# Nothing of them is left.

top_srcdir=${top_srcdir:-$(cd "$(dirname "$0")/.." && pwd)}
top_builddir=${top_builddir:-$PWD}
export top_srcdir top_builddir
hosts=$top_srcdir/tests/hosts.sh

if ! why=$("$hosts" able); then
    echo "ok - simulated hosts # SKIP $why"
    exit 77
fi
if ! command -v python3 >/dev/null; then
    echo "ok - simulated hosts # SKIP the probe needs python3"
    exit 77
fi

work=$(mktemp -d "$top_builddir/hosts-test.XXXXXX") || exit 1
export HOSTS=test$$
trap '"$hosts" down; HOSTS=other$$ "$hosts" down; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
passed=0 failed=0

# check WHAT COMMAND...
check() {
    local what=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        passed=$((passed + 1))
        echo "ok - $what"
    else
        failed=$((failed + 1))
        echo "not ok - $what: $*"
        tail -n 5 "$work/out" | sed 's/^/# /'
    fi
}
not() { ! "$@"; }
says() { # TEXT COMMAND...
    local text=$1
    shift
    "$@" 2>&1 | grep -qF -e "$text"
}
on() { timeout 30 "$hosts" exec "$@"; }
between() { # LOW HIGH COMMAND...: the command prints such a number
    local low=$1 high=$2 got
    shift 2
    got=$("$@") || return 1
    echo "$got, wanted $low to $high"
    awk -v g="$got" -v l="$low" -v h="$high" 'BEGIN { exit !(g != "" && g + 0 >= l && g + 0 <= h) }'
}
until_true() { # SECONDS COMMAND...: an upper limit, not a pause
    local end=$((${EPOCHREALTIME/./} + $1 * 1000000))
    shift
    until "$@"; do
        [ "${EPOCHREALTIME/./}" -lt $end ] || return 1
        read -rt 0.02 <> <(:)
    done
    return 0
}
# with_word WORD: the processes that have it in their environment
with_word() { grep -lszxF "$1" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3; }
others_of() { # the processes of a cluster but for this script and what it runs just now
    local p line
    for p in $(with_word "HOSTS=$1"); do
        line=$({ tr '\0' ' ' <"/proc/$p/cmdline"; } 2>/dev/null)
        case $line in '' | *hosts_test.sh* | grep\ * | cut\ *) ;; *) echo "$p $line" ;; esac
    done
}
gone() { [ -z "$(others_of "$1")" ] && [ ! -e "/run/rank-hosts/$1" ]; }
interfaces() { ls /sys/class/net; }

cat >"$work/probe.py" <<'END'
"""rtt HOST: milliseconds of a connect; bytes HOST: milliseconds for a MiB and an answer; udp HOST: percent that came;
listen: serve the last two until killed; wait: hold a connection and say how it ends."""
import socket, sys, threading, time
what, peer = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
MIB, GRAMS = 1 << 20, 2000
def connect(limit):
    return socket.create_connection((peer, 7000), limit)
if what == "listen":
    s = socket.create_server(("", 7000))
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    u.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)
    u.bind(("", 7001))
    came = 0
    def grams():
        global came
        while True:
            u.recv(100)
            came += 1
    threading.Thread(target=grams, daemon=True).start()
    print("listening", flush=True)
    def serve(c):
        try:
            order = c.recv(1)
            if order == b"c":
                c.sendall(b"%d" % came)
            elif order == b"b":
                left = MIB
                while left:
                    left -= len(c.recv(min(left, 65536)))
                c.sendall(b".")
            else:
                c.recv(1)
            c.close()
        except OSError:
            pass
    while True:
        threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
elif what == "rtt":
    best = 1e9
    for i in range(3):
        t = time.monotonic()
        connect(3)
        best = min(best, time.monotonic() - t)
    print(best * 1000)
elif what == "once":
    connect(1)
elif what == "bytes":
    c = connect(3)
    c.settimeout(20)
    t = time.monotonic()
    c.sendall(b"b" + bytes(MIB))
    c.recv(1)
    print((time.monotonic() - t) * 1000)
elif what == "udp":
    def count():
        c = connect(20) # its packets may be lost, too
        c.settimeout(20)
        c.sendall(b"c")
        return int(c.recv(20))
    before = count()
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for i in range(GRAMS):
        u.sendto(b"gram", (peer, 7001))
        if i % 50 == 49:
            time.sleep(0.001)
    last, now = -1, count()
    while now != last: # until no more come
        time.sleep(0.02)
        last, now = now, count()
    print(100 * (now - before) / GRAMS)
elif what == "hold": # for a second at most: no packet shows that the peer is gone
    c = connect(3)
    c.sendall(b"h")
    print("held", flush=True)
    c.settimeout(1)
    sys.stdin.readline()
    try:
        c.sendall(b"x")
        print("ended" if c.recv(1) == b"" else "answered")
    except socket.timeout:
        print("silence")
    except OSError as e:
        print(e)
END
probe() { on "$1" python3 "$work/probe.py" "${@:2}"; }
# listen HOST: start the other side of the probe, and return when it listens
listen() {
    exec 5< <(exec timeout 120 "$hosts" exec "$1" python3 "$work/probe.py" listen)
    read -rt 20 -u 5 _
}

interfaces >"$work/interfaces"
check "two hosts come up" "$hosts" up 2
check "a second cluster of the same name is refused" says "is up already" "$hosts" up 2
check "they are listed" says "10.78.0.2 hostb" "$hosts" list
check "a command runs on its host" says hostb on hostb hostname
check "its exit code comes back" eval 'on hosta bash -c "exit 7"; [ $? = 7 ]'
check "no such host is an error" says "no host 'hostc'" "$hosts" exec hostc true
check "ssh from a to b" says hostb on hosta ssh hostb hostname
check "ssh from b to a" says hosta on hostb ssh hosta hostname
check "ssh by IPv6" says hostb on hosta ssh hostb6 hostname
check "ssh by a name that is a number" says hostb on hosta ssh node02 hostname
check "a stays on its core" says 1 on hosta nproc
for dir in /tmp /dev/shm /run /etc /var/tmp; do
    on hosta touch "$dir/only-a.$$"
    check "$dir of a is not b's" not on hostb test -e "$dir/only-a.$$"
    check "nor the machine's" not test -e "$dir/only-a.$$"
done
for ns in net pid ipc uts mnt; do
    check "each has a $ns namespace" test "$(on hosta readlink /proc/self/ns/$ns)" != "$(on hostb readlink /proc/self/ns/$ns)"
done
check "each has its boot id" test "$(on hosta cat /proc/sys/kernel/random/boot_id)" != "$(on hostb cat /proc/sys/kernel/random/boot_id)"
check "no way out of the namespaces" not on hosta timeout 2 bash -c 'exec 3<>/dev/tcp/1.1.1.1/53'
check "the build folder is there" on hosta test -d "$work"

listen hostb
check "a straight cable is quick" between 0 15 probe hosta rtt hostb
check "delay" "$hosts" delay hostb 20000
check "20 ms each way are seen" between 40 90 probe hosta rtt hostb
check "delay and loss" "$hosts" delay hostb 1000 100
check "all is lost" not probe hosta once hostb
check "straight again" "$hosts" delay hostb 0
check "and quick again" between 0 15 probe hosta rtt hostb
check "no packets are lost" between 100 100 probe hosta udp hostb
check "drop" "$hosts" drop hostb 30
check "30 % are lost" between 62 78 probe hosta udp hostb
check "drop all" "$hosts" drop hostb 100
check "all is lost" not probe hosta once hostb
check "drop nothing" "$hosts" drop hostb 0
check "no packets are lost" between 100 100 probe hosta udp hostb
check "rate" "$hosts" rate hostb 20mbit
check "a MiB takes its 0.4 s" between 300 1500 probe hosta bytes hostb
check "no rate" "$hosts" rate hostb 0
check "a MiB takes no time" between 0 250 probe hosta bytes hostb
check "link down" "$hosts" link hostb down
check "no process is there" not probe hosta once hostb
check "link up" "$hosts" link hostb up
check "a process is there" probe hosta once hostb

# What is started by exec ends with it.
RK_HOSTS_TEST=$$ "$hosts" exec hosta sleep 100 &
child=$!
sleeper() {
    local p
    for p in $(with_word "RK_HOSTS_TEST=$$"); do
        [ "$(cat "/proc/$p/comm" 2>/dev/null)" != sleep ] || return 0
    done
    return 1
}
check "exec starts it" until_true 10 sleeper
kill -9 $child
{ wait $child; } 2>/dev/null
check "a killed exec takes its program along" until_true 10 not sleeper

mkfifo "$work/go"
exec 6<>"$work/go"
exec 4< <(exec timeout 60 "$hosts" exec hosta python3 "$work/probe.py" hold hostb <"$work/go")
read -rt 20 -u 4 _
check "crash" "$hosts" crash hostb
echo go >&6
read -rt 20 -u 4 answer
check "a crashed host sends nothing more" test "$answer" = silence
check "it runs nothing more" says "has crashed" "$hosts" exec hostb true
check "the other lives" on hosta true
exec 4<&- 5<&- 6>&-

check "a second cluster comes up beside" env HOSTS=other$$ HOSTS_TWINS=1 "$hosts" up 2
twins() { HOSTS=other$$ on hosta cat "$1"; HOSTS=other$$ on hostb cat "$1"; }
check "twins have one boot id" between 1 1 eval 'twins /proc/sys/kernel/random/boot_id | sort -u | wc -l'
check "and one ipc namespace" test "$(HOSTS=other$$ on hosta readlink /proc/self/ns/ipc)" = "$(HOSTS=other$$ on hostb readlink /proc/self/ns/ipc)"
HOSTS=other$$ on hosta touch /dev/shm/only-a
check "but no memory" not env HOSTS=other$$ "$hosts" exec hostb test -e /dev/shm/only-a
check "the other cluster goes down" env HOSTS=other$$ "$hosts" down
check "nothing of it is left" until_true 5 gone other$$
check "the first is still up" on hosta true
check "down" "$hosts" down
check "nothing of it is left" until_true 5 gone "$HOSTS"
check "a second down is fine" "$hosts" down

# run, and its ends
unset HOSTS
check "run runs, with hosts" says hostc "$hosts" run 3 bash -c '"$0" exec hosta ssh hostc hostname' "$hosts"
check "run gives the exit code" eval '"$hosts" run 1 bash -c "exit 5"; [ $? = 5 ]'
killed() { # WHOM: kill -9 it while hosts are up
    local name=killed$$$1 owner line
    HOSTS=$name "$hosts" run 2 bash -c '"$0" delay hosta 1000; echo up >"$1"; exec sleep 100' "$hosts" "$work/go" &
    owner=$!
    exec 6<>"$work/go"
    read -rt 30 -u 6 line || echo "not up"
    exec 6>&-
    case $1 in
    owner) kill -9 $owner ;;
    keeper) read -r line _ <"/run/rank-hosts/$name/keeper" && kill -9 "$line" ;;
    fabric) read -r line _ <"/run/rank-hosts/$name/fabric" && kill -9 "$line" ;;
    term) kill -TERM $owner ;;
    esac
    # The command that "run" runs gets no notice of the cluster's end; its own end is the owner's matter.
    case $1 in keeper | fabric) kill -TERM $owner ;; esac
    wait $owner 2>/dev/null
    until_true 5 gone "$name" || { others_of "$name"; ls /run/rank-hosts; HOSTS=$name "$hosts" down; return 1; }
}
for victim in owner keeper fabric term; do
    check "nothing is left when the $victim is killed" killed $victim
done
# Interfaces go a little after their namespaces.
check "no interface is left" until_true 5 eval 'interfaces | cmp -s - "$work/interfaces"'

echo "# hosts: $passed passed, $failed failed"
[ $failed -eq 0 ]
