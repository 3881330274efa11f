#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# faults.sh: cause faults around a job, on one host and on several.
# tests/hosts.sh makes the hosts. Each case has a bound, and leaves no process, no file in /tmp, /dev/shm or /run, and no port on
# any host. tests/README.md lists the faults and their tests.
. "$(dirname "$0")/../inside.sh"
inside 2 "faults on several hosts"
. "$(dirname "$0")/../launcher/cases.sh"
. "$top_srcdir/tests/left.sh"
. "$top_srcdir/tests/launcher/output_rate.sh"
stall=$top_builddir/tests/launcher/programs/stall
client=$top_builddir/tests/launcher/programs/pmix_client
boot=$top_builddir/tests/mp/startup.mp

one="-n 4 --host hosta:4" two="-n 4 --host hosta:2,hostb:2"
places=two # every day; much of the rest goes on one host in launcher/xrun.sh, too
[ -z "${FULL:-}" ] || places="one two"
remember hosta hostb

# xrun LIMIT ARGS...: on hosta, with out, err, rc and ms set
xrun() {
    local limit=$(($1 * slow)) t0=${EPOCHREALTIME/./}
    shift
    on hosta timeout -k 5 "$limit" env XDG_RUNTIME_DIR=/run "$XRUN" -q --bind none "$@" >out 2>err </dev/null
    rc=$?
    ms=$(((${EPOCHREALTIME/./} - t0) / 1000))
}
quiet=-q
begin_on() {
    : >out # the output of the case before is no answer
    : >err
    set -m
    on hosta env XDG_RUNTIME_DIR=/run "$XRUN" $quiet --bind none "$@" >out 2>err </dev/null &
    xpid=$!
    set +m
}
finish_in() { # LIMIT in s
    local t0=${EPOCHREALTIME/./}
    if until_true "$1" ended; then wait "$xpid"; rc=$?; else rc=hung; fi
    ms=$(((${EPOCHREALTIME/./} - t0) / 1000))
}
# verdict NAME CODES [pattern of err]: CODES may be several, or "any" for all but that of a time-out
verdict() {
    case " $2 " in *" $rc "*) ;; *" any "*) case $rc in 124 | hung) bad "$1" "does not end"; return ;; esac ;; *) bad "$1" "exit code $rc, not $2; $ms ms"; return ;; esac
    if [ -n "${3:-}" ] && ! grep -qE -e "$3" err; then
        bad "$1" "stderr does not say '$3'"
    elif grep -qE 'Sanitizer|runtime error:' err; then
        bad "$1" "a sanitizer spoke"
    elif ! until_true 5 none_left; then
        bad "$1" "left behind: $(left)"
        sweep
    else
        good "$1"
    fi
}
within() { [ "$ms" -le $(($2 * slow)) ] && good "$1: in time" || bad "$1: in time" "$ms ms, not $2"; }
oks() { [ "$(grep -cx "$2" out)" = "$3" ] && good "$1: all are right" || bad "$1: all are right" "$(grep -cx "$2" out), not $3"; }

# ------------------------------------------------- 1, 2, 3: kill -9 of each in the midst of an allreduce
# killed WHAT: in a job at $where
killed() {
    local what=$1 host=hostb
    begin_on ${!where} --timeout 60 "$stall" loop
    until_true 20 ready 1 || bad "kill -9 of $what, $where: start" "$(cat out err)"
    [ $where = two ] && [ $what != xrun ] || host=hosta
    [ $what != stall ] || watch_ends hosta hostb || bad "kill -9 of $what, $where: the processes" "$(cat "$work"/ends.*)"
    killed_at=${EPOCHREALTIME/./}
    on $host pkill -9 -o -x $what
    finish_in 12
}
for where in one two; do
    # Until all has ended, everywhere. A busy machine may be late, once and twice.
    [ $where = one ] && limit=1000 || limit=10000
    for try in 1 2 3; do
        killed stall
        all_ended || bad "kill -9 of a rank in an allreduce, $where: all end" "$(left)"
        ms=$(((ended_at - killed_at) / 1000))
        [ "$ms" -gt $((limit * slow)) ] || break
    done
    verdict "kill -9 of a rank in an allreduce, $where" 137 'rank [0-3] .*killed by signal 9' # and not the ranks that fail by it
    [ "$watched" -ge 7 ] || bad "kill -9 of a rank in an allreduce, $where" "only $watched processes were there"
    within "kill -9 of a rank in an allreduce, $where: all $watched processes end, $ms ms" $limit
    # If a rank that has failed by it is the only one reported to xrun for 100 ms, xrun names that one.
    for try in 1 2 3; do
        killed xrun-agent
        ! grep -q '^xrun: error: the agent on' err || break
    done
    verdict "kill -9 of an agent in an allreduce, $where" 1 'the agent on host[ab] died'
    killed xrun
    verdict "kill -9 of xrun in an allreduce, $where" 137
done

# ------------------------------------------------------------------- 4: a rank that is stopped, and goes on
said() { grep -qE -e "$1" err; }
for where in ${FULL:+two} one; do
    begin_on ${!where} --timeout 60 --heartbeat 0.5 "$stall" loop
    until_true 20 ready 1 || bad "a stopped rank, $where: start" "$(cat out err)"
    on hosta pkill -STOP -o -x stall
    until_true 10 said 'rank [0-3]: no progress for .*: is stopped by a signal' &&
        until_true 10 said 'ranks? [0-9,-]+: .*: allreduce #[0-9]+ on world, waits for rank [0-3]' &&
        good "a stopped rank and the ranks that wait for it are reported, $where" || bad "a stopped rank and the ranks that wait for it are reported, $where" "$(cat err)"
    [ "$(on hosta pgrep -c -x stall)" = $([ $where = one ] && echo 4 || echo 2) ] || bad "a stopped rank, $where" "not all live"
    on hosta pkill -CONT -x stall
    until_true 10 said 'ranks? [0-9,-]+ (go|goes) on after' && good "it goes on, $where" || bad "it goes on, $where" "$(cat err)"
    on hosta pkill -USR1 -x xrun
    finish_in 20
    verdict "a stopped rank is not killed, $where" 0
    oks "a stopped rank is not killed, $where" ok 4
done

# ------------------------------------------------------------------------ 5: no memory for segments
# rank_init prints the reason and fails, and tests/mp/mp.c ends its rank with 99.
broken=99
[ -z "${SAN_CFLAGS:-}" ] || broken="99 86" # what one that gives up has not freed may be reported
ends_by() { # NAME: the last line of output, and no process has ended by a signal
    [[ $(grep '^xrun: ' err) =~ ^"xrun: error: rank "[0-3]" (host host"[ab]", pid "[0-9]+") exited with code "(99|86)" after "[0-9.]+" s; ending the job"$ ]] &&
        good "$1: xrun's one line" || bad "$1: xrun's one line" "$(grep '^xrun: ' err)"
}
for where in $places; do
    xrun 40 ${!where} bash -c "ulimit -f 0; exec $boot"
    verdict "no room for the node's segment, $where" "$broken" \
        "^librank: rank [02] \(host[ab]\): error: the node's segment: [0-9]+ bytes of shared memory are more than the file size limit of 0 allows \(ulimit -f\)"
    ends_by "no room for the node's segment, $where"
    # The library's segments have no name there, and do not count.
    for h in hosta hostb; do on $h mount -o remount,size=64k /dev/shm; done
    xrun 40 ${!where} "$boot"
    for h in hosta hostb; do on $h mount -o remount,size=50% /dev/shm; done
    verdict "a small /dev/shm, $where" 0
    oks "a small /dev/shm, $where" 'mp: done' 4
    [ -z "${SAN_CFLAGS:-}" ] || continue # it takes more at once
    # Enough for all libraries, but not for a segment of 270 MB.
    [ $where = one ] && box=16M || box=64M
    xrun 40 ${!where} -x RANK_SHM_BOX=$box bash -c "ulimit -v 150000; exec $boot"
    verdict "little memory in all, $where" "$broken" \
        "^librank: rank [0-3] \(host[ab]\): error: the node's segment: cannot map [0-9]+ bytes \(ulimit -v\?\)"
    ends_by "little memory in all, $where"
done

# ------------------------------------------------------------- 6: few open files, few processes
limited() { # LIMIT as ulimit takes it, ARGS of xrun
    local limit=$1
    shift
    on hosta timeout -k 5 $((30 * slow)) env XDG_RUNTIME_DIR=/run bash -c "ulimit $limit && exec \"\$@\"" bash "$XRUN" -q --bind none "$@" >out 2>err </dev/null
    rc=$?
}
limited "-n 64" -n 4 "$boot"
verdict "ulimit -n 64, 4 ranks" 2 '^xrun: error: 4 ranks need [0-9]+ open files .* hard limit is 64; start fewer or raise it'
limited "-n 64" -n 2 --stdin all "$boot"
verdict "ulimit -n 64, 2 ranks" 0
limited "-Sn 64" -n 16 "$boot"
verdict "ulimit -Sn 64, 16 ranks" 0
# There each has fewer. What else this script has open decides whether it is enough.
limited "-n 80" $two "$boot"
says=
[ $rc = 0 ] || says='^xrun: error: .*needs? [0-9]+ open files .* hard limit is 80'
verdict "ulimit -n 80, two hosts" "0 2" "$says"
[ $rc != 0 ] || oks "ulimit -n 80, two hosts" 'mp: done' 4
# The kernel does not hold root to it.
other() { on hosta timeout -k 5 $((30 * slow)) setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
other test -x "$XRUN" || echo "ok - ulimit -u # SKIP another user cannot reach $XRUN"
for n in 4 17 20 40; do
    other test -x "$XRUN" || break
    other env XDG_RUNTIME_DIR=/nonexistent TMPDIR=/tmp bash -c "cd /; ulimit -u $n && exec \"\$@\"" bash "$XRUN" -q --bind none -n 8 "$boot" >out 2>err </dev/null
    rc=$?
    case $n in
    4) verdict "ulimit -u 4" "1 2" '^xrun: (error: |.*too many processes)' ;;
    40) verdict "ulimit -u 40" 0 ;;
    *) [ $rc = 0 ] && says= || says='^xrun: error: '
       verdict "ulimit -u $n" any "$says"
       [ $rc != 0 ] || oks "ulimit -u $n" 'mp: done' 8 ;;
    esac
done

# ------------------------------------------------------------- 7: a full disk, 8: a hostfile with bad lines
head -c 600000 /dev/zero >blob
mkdir full
for where in $places; do
    rm -f ends
    on hosta mount -t tmpfs -o size=1m none "$PWD/full"
    xrun 40 ${!where} --output-dir "$PWD/full" sh -c '[ $XRUN_RANK = 0 ] || cat blob blob; echo end $XRUN_RANK >>ends'
    on hosta umount "$PWD/full"
    verdict "a full disk, $where" 74 'cannot write .*/full/rank\.[1-3]\.out: No space left on device; output is lost, the job goes on'
    [ "$(grep -c . err)" = 1 ] && [ "$(sort ends | tr '\n' ' ')" = "end 0 end 1 end 2 end 3 " ] &&
        good "a full disk, $where: one line, and the job goes on" || bad "a full disk, $where: one line, and the job goes on" "$(cat ends)"
done
printf '%s\n' "hosta slots=2" "hostb slots=x" "# a comment" "" "host[a-" "hostb:2" "hostb slots=1 what" >bad-hosts
xrun 10 -n 3 --hostfile "$PWD/bad-hosts" touch "$PWD/ran"
verdict "a hostfile with bad lines" 2 'the hostfile .*bad-hosts has 3 bad lines'
[ "$(sed -n 's/.*bad-hosts:\([0-9]*\): .*/\1/p' err | tr '\n' ' ')" = "2 5 7 " ] && [ ! -e ran ] &&
    good "all are named, and nothing is started" || bad "all are named, and nothing is started" "$(ls ran)"

# ----------------------------------------------------------- 9: ends without finalize, and before init
for where in $places; do
    for rank in 0 3; do
        xrun 30 ${!where} "$client" unfinished $rank
        verdict "rank $rank exits with 0 without finalizing, $where" 1 "rank $rank .* exited with code 0, without finalizing"
        within "rank $rank exits with 0 without finalizing, $where" 5000
        xrun 30 ${!where} sh -c "[ \$XRUN_RANK != $rank ] || exit 3; exec $boot"
        verdict "rank $rank exits with 3 before rank_init, $where" 3 "rank $rank .* exited with code 3"
        within "rank $rank exits with 3 before rank_init, $where" 5000
        xrun 30 ${!where} sh -c "[ \$XRUN_RANK != $rank ] || exit 0; exec $boot"
        verdict "rank $rank exits with 0 before rank_init, $where" "$broken" 'xrun: error: rank [0-3] .*exited with code (99|86) '
        within "rank $rank exits with 0 before rank_init, $where" 5000
    done
done

# ------------------------------------------------------------- 11: 32 ranks, each 10,000 lines a second
paced() { xrun 60 -n 32 --host hosta:16,hostb:16 "$lines" "$@"; }
in_pace paced
verdict "32 ranks of two hosts x 10,000 lines a second arrive byte-exact" 0
[ -z "$late" ] && good "and at that rate: $ms ms for 2 s" || bad "and at that rate" "$late"
rm -f out

# --------------------------------------------- 12: standard input at its end, closed output, ^C twice
at_once() { [ "$ms" -le $((2000 * slow)) ]; }
for where in $places; do
    xrun 30 ${!where} --stdin all sh -c 'cat; echo end'
    verdict "standard input at its end, $where" 0
    oks "standard input at its end, $where" end 4
    on hosta timeout -k 5 30 env XDG_RUNTIME_DIR=/run "$XRUN" -q ${!where} sh -c 'echo a; echo b >&2; echo c' <&- >&- 2>err
    rc=$?
    verdict "closed input and output, $where" 1
    grep -q 'cannot write the output: Bad file descriptor' err && good "and it is reported, $where" || bad "and it is reported, $where" "$(cat err)"
    # INT twice, as by others, and ^C typed twice. The ranks get the first and go on, and do not mind TERM; they would have 60 s.
    deaf='trap "echo heard" INT; trap "" TERM; echo ready; while :; do sleep 0.05; done'
    for try in 1 2 3; do
        quiet=
        begin_on ${!where} --kill-grace 60 sh -c "$deaf"
        quiet=-q
        until_true 20 ready 4 || bad "INT twice: start" "$(cat out err)"
        on hosta pkill -INT -x xrun
        all_heard() { [ "$(grep -c heard out)" = 4 ] && grep -q 'once more to kill it at once' err; }
        until_true 20 all_heard || bad "INT twice: the first" "$(cat out err)"
        killed_at=${EPOCHREALTIME/./}
        on hosta pkill -INT -x xrun
        finish_in 30
        ms=$(((${EPOCHREALTIME/./} - killed_at) / 1000))
        ! at_once || break
    done
    verdict "INT twice, $where" 130
    at_once && good "INT twice, $where: the second is at once, $ms ms" || bad "INT twice, $where: the second is at once" "$ms ms"
    for try in 1 2 3; do
        RK_LIMIT=$((30 * slow)) on hosta timeout -k 5 $((40 * slow)) env XDG_RUNTIME_DIR=/run python3 "$top_srcdir/tests/launcher/programs/terminal.py" twice \
            "$XRUN" --bind none ${!where} --kill-grace 60 sh -c "$deaf" >out 2>err </dev/null
        rc=$?
        ms=$(sed -n 's/^ms from the second .*: //p' out)
        [ $rc = 0 ] && ! at_once || break
    done
    [ $rc = 0 ] && rc=$(sed -n '$s/.* //p' out) || bad "^C typed twice, $where" "$(cat err)"
    verdict "^C typed twice, $where" 130
    at_once && good "^C typed twice, $where: the second is at once, $ms ms" || bad "^C typed twice, $where: the second is at once" "$ms ms"
done

# ------------------------------------------------------------------------- 13: wrappers
printf '#!/bin/bash\n"$@"\n' >wrapper
chmod +x wrapper
for where in $places; do
    xrun 60 ${!where} bash -c "$boot"
    verdict "behind bash -c, $where" 0
    oks "behind bash -c, $where" 'mp: done' 4
    xrun 60 ${!where} "$PWD/wrapper" "$PWD/wrapper" "$boot"
    verdict "behind two scripts, $where" 0
    oks "behind two scripts, $where" 'mp: done' 4
    xrun 30 ${!where} "$PWD/wrapper" sh -c '[ $XRUN_RANK != 1 ] || kill -9 $$; exec sleep 100'
    verdict "one that is killed behind a script, $where" 137 'rank 1 .* exited with code 137'
    [ -n "${SAN_CFLAGS:-}" ] && continue # they do not go together
    if command -v gdb >/dev/null; then
        xrun 120 ${!where} gdb -q -nx -batch -ex 'set confirm off' -ex run --args "$boot"
        verdict "behind gdb, $where" 0
        oks "behind gdb, $where" 'mp: done' 4
    else
        echo "ok - behind gdb, $where # SKIP it is not installed"
    fi
    if command -v valgrind >/dev/null; then
        xrun 240 ${!where} valgrind -q --error-exitcode=0 "$boot"
        verdict "behind valgrind, $where" 0
        oks "behind valgrind, $where" 'mp: done' 4
    else
        echo "ok - behind valgrind, $where # SKIP it is not installed"
    fi
    if command -v strace >/dev/null; then
        xrun 120 ${!where} strace -f -qq -o /dev/null "$boot"
        verdict "behind strace, $where" 0
        oks "behind strace, $where" 'mp: done' 4
    else
        echo "ok - behind strace, $where # SKIP it is not installed"
    fi
done

# --------------------------------------------------- 14: a rank that dies inside PMIx's initialization
cat >dies.py <<'PY'
# dies.py MS PROGRAM...: become the program, which is killed after that many ms
import os, signal, sys, time
pid = os.getpid()
if os.fork() == 0:
    os.closerange(0, 3)
    time.sleep(float(sys.argv[1]) / 1000)
    os.kill(pid, signal.SIGKILL)
    os._exit(0)
os.execv(sys.argv[2], sys.argv[2:])
PY
for where in $places; do
    for after in 1 3 6 10 15 25; do
        xrun 30 ${!where} sh -c "[ \$XRUN_RANK != 3 ] || exec python3 dies.py $after $client stay; exec $client stay"
        verdict "a rank that dies $after ms after its start, $where" 137 'xrun: error: rank 3 .*killed by signal 9'
        within "a rank that dies $after ms after its start, $where" 10000
    done
done

# ------------------------------------------------ 16: unauthenticated peers at each port and socket
cat >strangers.py <<'PY'
# strangers.py: talk to all that listens on this host but sshd, at once and byte by byte, and stay there until the job has
# ended (standard input does). None may get more than a close: a line for each that does.
import os, select, socket, stat, subprocess, sys
where, files = [], []
for folder, _, names in os.walk("/run"):
    paths = [os.path.join(folder, name) for name in names]
    files += [path for path in paths if stat.S_ISSOCK(os.lstat(path).st_mode)]
for line in subprocess.run(["ss", "-Htlnp"], capture_output=True, text=True).stdout.splitlines():
    words = line.split()
    if '"sshd"' not in line:
        host, port = words[3].rsplit(":", 1)
        where.append((host.strip("[]").replace("*", "::").split("%")[0], int(port)))
for line in subprocess.run(["ss", "-Hxlp"], capture_output=True, text=True).stdout.splitlines():
    if '"sshd"' not in line:
        path = line.split()[4]
        # That of --status was bound under another name.
        where.append(files.pop() if path.startswith("/proc/self/fd/") and files else path)
def meet(to):
    if isinstance(to, str):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(10)
        s.connect("\0" + to[1:] if to[0] == "@" else to)
        return s
    host, port = to
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"
    return socket.create_connection((host, port), 10)
held, drips, lines = [], [], []
for to in where:
    met = 0
    for data in (os.urandom(4096), b"GET / HTTP/1.0\r\n\r\n", b"\0" * 64, b"\xff" * 64, b"x", b"", None):
        try:
            s = meet(to)
            met += 1
            held.append((to, s))  # half a message, or nothing: it stays open
            if data is None:
                drips.append((s, iter(b"xrunwire" + b"status\n" + bytes(10000))))
            else:
                s.sendall(data)
        except OSError:
            pass
    if not met:
        lines.append("no process listens at %s" % (to,))
print(len(where), "listen", flush=True)
while not select.select([sys.stdin], [], [], 0.05)[0]:
    for s, bytes_left in drips:
        try:
            s.send(bytes([next(bytes_left)]))
        except OSError:
            pass
for to, s in held:
    s.setblocking(False)
    try:
        try:
            said = s.recv(100)
        except BlockingIOError:
            s.settimeout(10)
            # The kernel passes a peer to PMIx's listener only after its first byte (TCP_DEFER_ACCEPT).
            s.send(b"x")
            said = s.recv(100)
        if said:
            lines.append("%s says %r" % (to, said))
    except ConnectionError:
        pass
    except OSError as e:
        lines.append("%s: %s" % (to, e))
print("\n".join(["over"] + lines), flush=True)
PY
strangers_for() { # NAME CHANNELS HOW-THE-RANKS-WAIT
    local h pids=
    mkfifo "hold.$1"
    begin_on $two --timeout 60 --heartbeat 0.5 -x RANK_CHANNELS="$2" "$stall" "$3"
    # All that will listen does when the others wait for the last rank.
    if [ "$3" = init ]; then until_true 20 grep -q 'rank_init, waits for rank 3' err; else until_true 20 ready 1; fi ||
        bad "unauthenticated peers, $1: start" "$(cat out err)"
    exec 8<>"hold.$1"
    for h in hosta hostb; do on $h python3 strangers.py <"hold.$1" >met.$h 2>&1 8>&- & pids="$pids $!"; done
    until_true 30 grep -q listen met.hosta && until_true 30 grep -q listen met.hostb || bad "unauthenticated peers, $1: they meet" "$(cat met.*)"
    grep -qE '^[1-9]' met.hosta && grep -qE '^[1-9]' met.hostb || bad "unauthenticated peers, $1" "no process listens"
    echo "# strangers, $1: at $(sed -n 's/ listen/ sockets/p' met.* | tr '\n' ' ')"
    on hosta pkill -USR1 -x xrun
    finish_in 40
    exec 8>&-
    # shellcheck disable=SC2086 # numbers
    wait $pids
    [ "$(cat met.* | grep -cx over)" = 2 ] && ! grep -vE '^[0-9]+ listen$|^over$' met.hosta met.hostb >said &&
        good "unauthenticated peers, $1: they get nothing but a close" || bad "unauthenticated peers, $1: they get nothing but a close" "$(head -n 5 said; tail -n 3 met.*)"
    verdict "unauthenticated peers at all that listens, $1" 0
    oks "strangers at all that listens, $1" ok 4
}
strangers_for run self,shm,ucx loop
strangers_for start self,shm,ucx init

# -------------------------------------------------------- 18: a child that holds the rank's output
for where in $places; do
    xrun 30 ${!where} sh -c 'sleep 1000 & echo word'
    verdict "a child that holds the output, $where" 0
    within "a child that holds the output, $where" 5000
    oks "a child that holds the output, $where" word 4
    xrun 30 ${!where} sh -c '(setsid sh -c "trap \"\" TERM HUP; sleep 1000; :" &); echo word'
    verdict "a daemon that holds it and ignores TERM, $where" 0
    within "a daemon that holds it and ignores TERM, $where" 5000
    oks "a daemon that holds it and ignores TERM, $where" word 4
done

echo "# faults: $passed passed, $failed failed"
[ $failed -eq 0 ]
