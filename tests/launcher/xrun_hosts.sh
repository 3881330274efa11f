#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# xrun_hosts.sh: run jobs on several hosts, and lose a host, an agent or a rank.
# tests/hosts.sh makes the hosts. Checks where ranks run, their input and output, and every way to lose a host, an agent or a
# rank. After each case nothing of a job is left on any host.
. "$(dirname "$0")/../inside.sh"
inside 3 "several hosts"
. "$(dirname "$0")/cases.sh"
. "$top_srcdir/tests/left.sh"
mp=$top_builddir/tests/mp
all=hosta:2,hostb:2,hostc:2

# xrun LIMIT ARGS...: on hosta, with out, err, rc and ms set
xrun() {
    local limit=$(($1 * slow)) t0=${EPOCHREALTIME/./}
    shift
    on hosta timeout -k 5 "$limit" env XDG_RUNTIME_DIR=/run "$XRUN" -q "$@" >out 2>err </dev/null
    rc=$?
    ms=$(((${EPOCHREALTIME/./} - t0) / 1000))
}
begin_on() { # ARGS: in the background
    : >out # the output of the case before is no answer
    : >err
    on hosta env XDG_RUNTIME_DIR=/run "$XRUN" -q "$@" >out 2>err </dev/null &
    xpid=$!
}
finish_in() { # LIMIT in s
    local t0=${EPOCHREALTIME/./}
    if until_true "$1" ended; then wait "$xpid"; rc=$?; else rc=hung; fi
    ms=$(((${EPOCHREALTIME/./} - t0) / 1000))
}
here="hosta hostb hostc"
remember $here
# verdict NAME CODE [pattern of err]: nothing is left on the hosts in $here
verdict() {
    if [ "$rc" != "$2" ]; then
        bad "$1" "exit code $rc, not $2; $ms ms"
    elif [ -n "${3:-}" ] && ! grep -qE -e "$3" err; then
        bad "$1" "stderr does not say '$3'"
    elif ! until_true 5 none_left $here; then
        bad "$1" "left behind: $(left $here)"
        sweep $here
    else
        good "$1"
    fi
}
within() { [ "$ms" -le $(($2 * slow)) ] && good "$1: in time" || bad "$1: in time" "$ms ms, not $2"; }
pid_on() { # HOST PATTERN: the first process that matches
    on "$1" pgrep -f "$2" | head -n 1
}

# ------------------------------------------------------------------------- ranks and their hosts
xrun 30 -n 6 --host $all sh -c 'echo $XRUN_RANK $XRUN_SIZE $XRUN_LOCAL_RANK $XRUN_LOCAL_SIZE $XRUN_NODE_RANK $XRUN_NODES $(hostname)'
verdict "three hosts" 0
[ "$(sort out)" = "0 6 0 2 0 3 hosta
1 6 1 2 0 3 hosta
2 6 0 2 1 3 hostb
3 6 1 2 1 3 hostb
4 6 0 2 2 3 hostc
5 6 1 2 2 3 hostc" ] && good "variables" || bad "variables" "$(cat out)"
for how in "--map-by slot --rank-by node:a b a b b" "--map-by node --rank-by fill:a a b b b"; do
    xrun 30 -n 5 --host hosta:2,hostb:3 ${how%:*} --show-map sh -c 'echo is $XRUN_RANK $(hostname)'
    [ "$(sed -n 's/^is . host//p' <(sort out) | xargs)" = "${how#*:}" ] &&
        [ "$(grep '^is' out | sort)" = "$(awk '$1 ~ /^[0-9]+$/ && $2 ~ /^host/ { print "is", $1, $2 }' out | sort)" ] || bad "ranks in the order of ${how%:*}" "$(cat out)"
    verdict "ranks in the order of ${how%:*}" 0
done
xrun 30 -n 6 --host $all --map-by node --label-host --tag-output sh -c 'echo here'
verdict "by node" 0
[ "$(sort out)" = "[hosta:0] here
[hosta:3] here
[hostb:1] here
[hostb:4] here
[hostc:2] here
[hostc:5] here" ] && good "labels" || bad "labels" "$(cat out)"
printf 'hostc slots=1 # last first\nhostb:2\n' >file
xrun 30 -n 3 --hostfile "$PWD/file" sh -c 'echo $XRUN_RANK $(hostname)'
verdict "a hostfile without the host of xrun" 0
[ "$(sort out | tr '\n' ' ')" = "0 hostc 1 hostb 2 hostb " ] && good "its order" || bad "its order" "$(cat out)"
xrun 30 --map-by ppr:1:node --host hosta,hostb,hostc --dry-run --json-map "$PWD/map" sh -c 'touch /tmp/ran'
verdict "a dry run" 0
python3 -c 'import json,sys; m=json.load(open("map")); assert [r["host"] for r in m["ranks"]]==[0,1,2], m; assert [h["name"] for h in m["hosts"]]==["hosta","hostb","hostc"]' &&
    good "its map" || bad "its map" "$(cat map)"
grep -A 1 '^hostc: 1 rank' out | tail -n 1 | grep -q ' 2 ' && good "its drawings have each host's own ranks" || bad "its drawings have each host's own ranks" "$(cat out)"
mkdir kept
echo precious | tee kept/rank.0.out >report
xrun 30 -n 2 --host hosta:1,hostb:1 --dry-run --json "$PWD/report" --output-dir "$PWD/kept" sh -c 'touch /tmp/ran'
verdict "a dry run with files to be written" 0
[ "$(cat kept/rank.0.out report)" = "$(printf 'precious\nprecious')" ] && [ "$(ls kept)" = rank.0.out ] &&
    good "it touches none" || bad "it touches none" "$(ls kept; cat report)"
[ -z "$(on hostb ls /tmp | grep ran)" ] && good "it starts nothing" || bad "it starts nothing" "it did"
xrun 30 -n 3 --host hosta6:1,hostb6:1,hostc6:1 hostname
verdict "names that are addresses of IPv6" 0
[ "$(sort out | tr '\n' ' ')" = "hosta hostb hostc " ] && good "they answer" || bad "they answer" "$(cat out)"
for fanout in 1 2; do
    xrun 30 -n 6 --host $all --fanout $fanout sh -c 'echo $XRUN_RANK $(hostname)'
    verdict "fan-out $fanout" 0
    [ "$(sort out | tr '\n' ' ')" = "0 hosta 1 hosta 2 hostb 3 hostb 4 hostc 5 hostc " ] && good "fan-out $fanout: all" || bad "fan-out $fanout: all" "$(cat out)"
done

# ------------------------------------------------------------------------- several programs
# The second has a rank on each of two hosts, and each finds the tool of its own host.
mkdir one two
echo 'FOO=a file says' >vars
for h in hosta hostb hostc; do
    printf '#!/bin/sh\necho "$XRUN_RANK/$XRUN_SIZE the tool of %s, $FOO, $(basename "$PWD")"\n' $h >tool
    chmod +x tool
    on $h install -D tool /tmp/tools/rk-tool
done
remember $here
say='echo "$XRUN_RANK/$XRUN_SIZE $(hostname), $FOO, $(basename "$PWD")"'
FOO=inherited xrun 30 --host hosta:2,hostb:1,hostc:2 -n 1 --wdir "$PWD/one" -x FOO=given sh -c "$say" : \
    -n 2 --wdir "$PWD/two" --path /tmp/tools rk-tool : -n 1 --env-file vars sh -c "$say" : -n 1 --env-file vars -x FOO=given sh -c "$say"
verdict "four programs: directories, paths, variables, files of these" 0
[ "$(sort out)" = "0/5 hosta, given, one
1/5 the tool of hosta, inherited, two
2/5 the tool of hostb, inherited, two
3/5 hostc, a file says, $(basename "$PWD")
4/5 hostc, given, $(basename "$PWD")" ] && good "each has its own" || bad "each has its own" "$(cat out)"
xrun 30 --host hosta:1,hostb:1 -n 1 true : -n 1 --path /tmp/tools sh -c 'exit 9'
verdict "the second program fails elsewhere" 9 'rank 1 \(host hostb.* exited with code 9'
for h in hosta hostb; do on $h mkdir /tmp/only-here.d; done
remember $here
xrun 30 --host hosta:1,hostb:1,hostc:1 -n 1 true : -n 2 --wdir /tmp/only-here.d true
verdict "a directory that one of the second program's hosts has not" 2 'program 2: cannot start in /tmp/only-here.d on hostc'
# What a rank elsewhere is given arrives as it is, byte by byte.
cat >told.py <<'PY'
import os, sys
if os.environ["XRUN_RANK"] == "1":
    sys.stdout.buffer.write(b"".join(os.fsencode(w) + b"\0" for w in sys.argv[1:] + [os.environ[v] for v in ("RK_GIVEN", "RK_OURS")]))
PY
words=($'two\nlines\n' '  blanks  around ' "it's" '"quoted"' '' '$HOME `id` \ * ~' $'tab\tand\rreturn' $'\xff\xfe\x80\x81 no UTF-8 \xc3' -n :x $'\n' '=')
odd=$'a\n"b" \'c\'  \xff\x81 $d \\ = '
RK_OURS="$odd." xrun 30 -n 2 --host hosta:1,hostb:1 -x "RK_GIVEN=$odd" -x RK_OURS python3 "$PWD/told.py" "${words[@]}"
verdict "newlines, blanks, quotes and bytes that are no text, in words and variables of a rank elsewhere" 0
printf '%s\0' "${words[@]}" "$odd" "$odd." | cmp - out && good "they arrive as they are" || bad "they arrive as they are" "$(od -c out | head -n 20)"

# ------------------------------------------------------------------------- input and output
head -c 3000000 /dev/urandom >blob
xrun 60 -n 3 --host hosta:1,hostb:1,hostc:1 --output-dir "$PWD/dir" sh -c 'cat blob; echo end >&2'
verdict "much output" 0
cmp -s blob dir/rank.0.out && cmp -s blob dir/rank.1.out && cmp -s blob dir/rank.2.out && [ "$(cat dir/rank.2.err)" = end ] &&
    good "it comes whole" || bad "it comes whole" "$(ls -l dir)"
on hosta env XDG_RUNTIME_DIR=/run timeout 30 "$XRUN" -q -n 2 --host hostb:1,hostc:1 cat <blob >out 2>err
rc=$?
verdict "input for a rank that is elsewhere" 0
cmp -s blob out && good "it comes whole, too" || bad "it comes whole, too" "$(wc -c <out)"
on hosta env XDG_RUNTIME_DIR=/run timeout 30 "$XRUN" -q --stdin all -n 3 --host hosta:1,hostb:1,hostc:1 sh -c 'cat | md5sum' <blob >out 2>err
rc=$?
verdict "input for all" 0
[ "$(sort -u out)" = "$(md5sum <blob)" ] && [ "$(wc -l <out)" = 3 ] && good "all get it" || bad "all get it" "$(cat out)"
RK_LIMIT=$((20 * slow)) on hosta timeout -k 5 $((30 * slow)) env XDG_RUNTIME_DIR=/run python3 "$top_srcdir/tests/launcher/programs/terminal.py" keys \
    "$XRUN" -q -n 2 --host hosta:1,hostb:1 --pty 1 python3 "$top_srcdir/tests/launcher/programs/terminal_return.py" >out 2>err </dev/null
rc=$?
verdict "--pty of a rank that is elsewhere: keys, ^C, the window's size, and its end" 0
grep -q 'on hostb ready 40 100.* 130$' out && good "it is there, and the terminal comes back" || bad "it is there, and the terminal comes back" "$(cat out)"
printf 'one\ntwo' | on hosta timeout -k 5 $((30 * slow)) env XDG_RUNTIME_DIR=/run "$XRUN" -q -n 2 --host hosta:1,hostb:1 --pty 1 \
    sh -c '[ ! -t 0 ] || cat >heard; echo $(hostname) ends' >out 2>err
rc=$?
verdict "--pty elsewhere, of an input that is no terminal" 0
[ "$(cat heard)" = "$(printf 'one\ntwo')" ] && grep -q 'hosta ends' out && grep -q 'hostb ends' out && good "it reads to the end" || bad "it reads to the end" "$(cat out heard)"
# Each host has one core. Open MPI 4 does not check whether ranks outnumber cores; what the user has set stays.
yields='echo $(hostname) ${OMPI_MCA_mpi_yield_when_idle-unset}'
xrun 30 -n 5 --host hosta:2,hostb:1,hostc:2 sh -c "$yields"
verdict "ranks that share a core are set to yield, on each host for itself" 0
[ "$(sort -u out | tr '\n' ' ')" = "hosta 1 hostb unset hostc 1 " ] && good "and those with one are not" || bad "and those with one are not" "$(cat out)"
xrun 30 -n 3 --host hosta:1,hostb:2 -x OMPI_MCA_mpi_yield_when_idle=0 sh -c "$yields"
[ "$(sort -u out | tr '\n' ' ')" = "hosta 0 hostb 0 " ] && good "unless the user sets it" || bad "unless the user sets it" "$(cat out)"
cat >meet.py <<'PY'
import os, socket
rank, n = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
where = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    s = socket.create_server(("", where[1]), family=socket.AF_INET6, dualstack_ipv6=True)
    for _ in range(n - 1):
        s.accept()[0].sendall(b"hello")
else:
    while True:
        try:
            c = socket.create_connection(where, 5)
            break
        except ConnectionRefusedError:
            pass
    assert c.recv(5) == b"hello"
print("met", rank, *where)
PY
# meets NAME WHERE ARGS...: three ranks, of which the others come to rank 0 at WHERE, address and port
meets() {
    local name=$1 where=$2
    shift 2
    xrun 30 -n 3 "$@" --env torch python3 "$PWD/meet.py"
    verdict "--env torch: $name" 0
    grep -qxE "met 0 $where" out && [ "$(cut -d' ' -f 1,2 out | sort | tr '\n' ' ')" = "met 0 met 1 met 2 " ] && good "they meet" || bad "they meet" "$(cat out)"
}
meets "between hosts" 'hosta [1-9][0-9]*' --host hosta:1,hostb:1,hostc:1
printf 'rank 0=root@hostb\nrank 1=hosta\nrank 2=hosta\n' >torch.ranks
meets "rank 0 elsewhere, by a user's name" 'hostb [1-9][0-9]*' --rankfile "$PWD/torch.ranks"
meets "this host as localhost" '[0-9a-f.:]* [1-9][0-9]*' --host localhost:1,hostb:2
# Its kernel gives out all ports but two, and at the first of those a process listens.
on hostb sh -c 'cat /proc/sys/net/ipv4/ip_local_port_range && echo 10002 65535 >/proc/sys/net/ipv4/ip_local_port_range' >range
"$hosts" exec hostb python3 -c 'import socket, time; s = socket.create_server(("", 10000)); print("ready", flush=True); time.sleep(1000)' >listener &
lpid=$!
listens() { grep -q ready listener; }
until_true 20 listens || bad "a port that is in use on rank 0's host: a listener" "it does not come up"
remember $here
meets "a port that is in use on rank 0's host" 'hostb 10001' --rankfile "$PWD/torch.ranks"
kill $lpid
wait $lpid 2>/dev/null
on hostb sh -c 'cat >/proc/sys/net/ipv4/ip_local_port_range' <range

# ------------------------------------------------------------------------- librank and PMIx
for args in "-n 6 --host $all" "-n 6 --host $all --map-by node --fanout 1"; do
    for program in "startup.mp" "team_create.mp --short"; do
        # shellcheck disable=SC2086 # a name, and options
        xrun 60 $args --timeout 50 $mp/$program
        verdict "$program $args" 0
    done
done
xrun 60 -n 6 --host $all --timeout 50 "$top_builddir/examples/ring"
verdict "a ring" 0

# ------------------------------------------------------------------------- a network of IPv6 alone
for h in $here; do on $h ip -4 addr flush dev eth0; done
six=hosta6:1,hostb6:1,hostc6:1
xrun 30 -n 3 --host $six --fanout 1 sh -c 'echo $XRUN_RANK $(hostname)'
verdict "hosts have no address of IPv4" 0
[ "$(sort out | tr '\n' ' ')" = "0 hosta 1 hostb 2 hostc " ] && good "they run all" || bad "they run all" "$(cat out)"
meets "no address of IPv4" 'hosta6 [1-9][0-9]*' --host $six
xrun 60 -n 3 --host $six --timeout 50 "$top_builddir/examples/ring"
verdict "a ring, without IPv4" 0
i=0
for h in $here; do i=$((i + 1)); on $h ip addr add 10.78.0.$i/24 dev eth0; done

# ------------------------------------------------------------------------- ends
xrun 30 -n 6 --host $all sh -c '[ $XRUN_RANK != 3 ] || exit 7; exec sleep 1000'
verdict "a rank fails elsewhere" 7 'rank 3 \(host hostb, pid [0-9]+\) exited with code 7'
within "a rank fails elsewhere" 5000
xrun 30 -n 3 --host hosta:1,hostb:1,hostc:1 "$mp/rank_abort.mp"
[ "$rc" != 0 ] && grep -q 'aborted the job' err && rc=0
verdict "rank_abort" 0
xrun 30 -n 3 --host hosta:1,hostb:1,hostc:1 --timeout 1 sleep 1000
verdict "--timeout" 124 'did not end within 1 s'
begin_on -n 3 --host hosta:1,hostb:1,hostc:1 sh -c 'trap "echo got TERM >&2; exit 0" INT TERM; echo ready; while :; do sleep 0.1; done'
until_true 10 ready 3 || bad "INT: start" "$(cat out err)"
on hosta pkill -INT -x xrun
finish_in 10
verdict "INT" 130
[ "$(grep -c 'got TERM' err)" = 3 ] && good "INT reaches all" || bad "INT reaches all" "$(cat err)"
for what in rank agent supervisor xrun; do
    begin_on -n 6 --host $all --timeout 60 sh -c 'echo ready; exec sleep 1000'
    until_true 10 ready 6 || bad "kill -9 of $what: start" "$(cat out err)"
    case $what in
    rank) on hostb pkill -9 -x sleep; want=137 says='rank [23] \(host hostb.*killed by signal 9' ;;
    agent) on hostb pkill -9 -x xrun-agent; want=1 says='the agent on hostb died' ;;
    supervisor) on hostb pkill -9 -x xrun-supervisor; want=1 says="the supervisor on hostb was killed" ;; # its agent ends the ranks
    xrun) on hosta pkill -9 -x xrun; want=137 says= ;;
    esac
    finish_in 10
    verdict "kill -9 of a $what" $want "$says"
done
begin_on -n 6 --host $all --fanout 1 --timeout 60 sh -c 'echo ready; exec sleep 1000'
until_true 10 ready 6 || bad "kill -9 of an agent that has others below: start" "$(cat out err)"
on hostb pkill -9 -x xrun-agent
finish_in 10
verdict "kill -9 of an agent that has others below" 1 'the agent on hostb died'
verdict "and the cause of its death is reported" 1 'hostb: xrun-agent: error: the agent was killed by signal 9'

# ------------------------------------------------------------------------- what does not start
xrun 30 -n 3 --host hosta:1,hostb:1,no-such-host:1 sh -c 'touch /tmp/ran'
verdict "a name that does not resolve" 1 'host no-such-host: ssh ended with code 255: .*no-such-host'
within "a name that does not resolve" 6000
xrun 30 -n 3 --host hosta:1,hostb:1,10.255.255.1:1 sh -c 'touch /tmp/ran'
verdict "a host that cannot be reached" 1 'host 10\.255\.255\.1: ssh ended with code 255'
within "a host that cannot be reached" 6000
# It is there, and silent: what ends the wait is a time-out, the one that xrun gives ssh, the user's or xrun's own. All at once.
"$hosts" drop hostc 100
silent() { # NAME ARGS...: in the background, with files of that name
    local name=$1 t0=${EPOCHREALTIME/./} rc
    shift
    on hosta timeout -k 5 $((40 * slow)) env XDG_RUNTIME_DIR=/run "$XRUN" -q -n 3 --map-by node "$@" sh -c 'touch /tmp/ran' >$name.out 2>$name.err </dev/null
    rc=$?
    echo $rc $(((${EPOCHREALTIME/./} - t0) / 1000)) >$name.end
}
printf 'hosta slots=1\nhostc slots=1 # the silent one\nhostb slots=1\n' >file
silent ours --hostfile "$PWD/file" & one=$!
silent given --host $all --ssh-args '-o ConnectTimeout=2' & two=$!
silent start --host $all --start-timeout $((2 * slow))
wait $one $two
"$hosts" drop hostc 0
ended_so() { read -r rc ms <$1.end; cp $1.err err; }
ended_so ours
verdict "a silent host of a hostfile" 1 'host hostc: ssh ended with code 255: .*hostc .*timed out'
within "a silent host of a hostfile" 14000
[ $ms -ge 10000 ] && [ "$(grep -c . err)" = 1 ] && good "it is given 10 s, and named in one line" || bad "it is given 10 s, and named in one line" "$ms ms"
ended_so given
verdict "a host that does not answer" 1 'host hostc: ssh ended with code 255: .*hostc .*timed out'
within "a host that does not answer" 6000
[ $ms -ge 2000 ] && good "it was waited for" || bad "it was waited for" "$ms ms: not a host that is silent"
ended_so start
verdict "a host that does not answer, --start-timeout" 1 '1 of 3 hosts did not come within '$((2 * slow))' s \(--start-timeout\): hostc$'
within "a host that does not answer, --start-timeout" 6000
xrun 30 -n 2 --host hosta:1,hostb:1 --prefix /no/such sh -c 'touch /tmp/ran'
verdict "xrun is not there" 1 'host hostb: /no/such/bin/xrun is not there'
xrun 30 -n 2 --host hosta:1,hostb:1 --if 192.0.2.0/24 sh -c 'touch /tmp/ran'
verdict "no such network" 2 'no network address of 192\.0\.2\.0/24'
xrun 30 -n 2 --host hosta:1,hostb:1 --agent /no/such/ssh sh -c 'touch /tmp/ran'
verdict "no such command" 2 'error: --agent: there is no program /no/such/ssh$'
printf '#!/bin/sh\nhost=$1\nshift\nexec ssh "$host" "head -c 5 >/dev/null; $*"\n' >eating-ssh
chmod +x eating-ssh
xrun 30 -n 2 --host hosta:1,hostb:1 --agent "$PWD/eating-ssh" sh -c 'touch /tmp/ran'
verdict "a login shell that reads what is the agent's" 1 "host hostb: .*does not hold an agent's setup \(does a start-up file of the login shell read it\?\)"
printf '#!/bin/sh\nexec sleep 100\n' >stuck-ssh
chmod +x stuck-ssh
xrun 30 -n 2 --host hosta:1,hostb:1 --start-timeout 1 --agent "$PWD/stuck-ssh" sh -c 'touch /tmp/ran'
verdict "a command that never connects" 1 'hosts did not come within 1 s \(--start-timeout\): hostb'
within "a command that never connects" 3900 # not 3 s for the command
# --timeout, which counts from xrun's start, and a single ^C end that, too, though the command gets neither.
xrun 30 -n 2 --host hosta:1,hostb:1 --timeout 1 --agent "$PWD/stuck-ssh" sh -c 'touch /tmp/ran'
verdict "--timeout while hosts are awaited" 124 'the job did not end within 1 s \(--timeout\)'
within "--timeout while hosts are awaited" 20000
begin_on -n 2 --host hosta:1,hostb:1 --agent "$PWD/stuck-ssh" sh -c 'touch /tmp/ran'
until_true 20 on hosta pgrep -x -f 'sleep 100' >pids || bad "^C while hosts are awaited: start" "$(cat out err)"
on hosta pkill -INT -x xrun
finish_in 20
verdict "^C while hosts are awaited" 130
# ^C twice while it hangs is at once. A machine that stands still is given three chances.
for try in 1 2 3; do
    : >err
    on hosta env XDG_RUNTIME_DIR=/run "$XRUN" -n 2 --host hosta:1,hostb:1 --agent "$PWD/stuck-ssh" true >out 2>err </dev/null &
    xpid=$!
    until_true 20 on hosta pgrep -x -f 'sleep 100' >pids || bad "^C twice: start" "$(cat out err)"
    on hosta pkill -INT -x xrun
    until_true 20 grep -q 'once more to kill it' err || bad "^C twice: the first" "$(cat out err)"
    t0=${EPOCHREALTIME/./}
    on hosta pkill -INT -x xrun
    finish_in 20
    ms=$(((${EPOCHREALTIME/./} - t0) / 1000))
    [ "$ms" -gt 2000 ] || break
done
verdict "^C twice at the start" 130
[ "$ms" -le 2000 ] && good "^C twice at the start is at once" || bad "^C twice at the start is at once" "$ms ms"
# An ssh that first prints, on the other host, what may be used there.
printf '#!/bin/sh\nhost=$1\nshift\nexec ssh "$host" "ulimit -n 70; $*"\n' >tight-ssh
chmod +x tight-ssh
xrun 30 -n 5 --host hosta:1,hostb:4 --agent "$PWD/tight-ssh" sleep 100
verdict "too few open files on one of the hosts" 2 'host hostb: 4 ranks need [0-9]+ open files .* hard limit is 70'
[ "$(grep -c . err)" = 1 ] && good "that is one line" || bad "that is one line" "$(cat err)"
xrun 30 -n 3 --host hosta:1,hostb:2 --agent "$PWD/tight-ssh" sh -c 'ulimit -n'
verdict "as few as are enough" 0
# What the user's shell has set is so on all hosts, as far as each lets it; but locked memory is not lowered.
printf '#!/bin/sh\nhost=$1\nshift\ncase $host in hostb) s="ulimit -s 6000; ulimit -Sl 32" ;; *) s="ulimit -Sl 64" ;; esac\nexec ssh "$host" "umask 002; $s; ulimit -Sc 0; $*"\n' >odd-ssh
chmod +x odd-ssh
on hosta timeout -k 5 $((30 * slow)) env XDG_RUNTIME_DIR=/run bash -c 'umask 027; ulimit -Ss 7000; ulimit -Sc 100; ulimit -St 4000; ulimit -Sf 8000000; ulimit -Sl 48; exec "$@"' \
    bash "$XRUN" -q -n 3 --host hosta:1,hostb:1,hostc:1 --agent "$PWD/odd-ssh" bash -c 'echo $XRUN_RANK $(umask) $(ulimit -Ss) $(ulimit -Sc) $(ulimit -St) $(ulimit -Sf) $(ulimit -Sl)' >out 2>err </dev/null
rc=$?
verdict "umask and limits on other hosts" 0
core=100
[ -z "${SAN_CFLAGS:-}" ] || core=0 # AddressSanitizer takes it from xrun itself
[ "$(sort out)" = "0 0027 7000 $core 4000 8000000 48
1 0027 6000 $core 4000 8000000 48
2 0027 7000 $core 4000 8000000 64" ] && good "they are the user's" || bad "they are the user's" "$(sort out)"
xrun 30 -n 2 --host hosta:1,hostb:1 /no/such/program
verdict "no such program" 127 'there is no program /no/such/program'
printf '#!/bin/sh\n' >only-here
on hosta install only-here /tmp/only-here
xrun 30 -n 2 --host hosta:1,hostb:1 /tmp/only-here
on hosta rm /tmp/only-here
verdict "a program that one host has not" 127 'there is no program /tmp/only-here on hostb$'
# Where xrun's own host has no ranks, programs and directories are the others' matter.
on hostb mkdir /tmp/only-there.d
printf '#!/bin/sh\npwd\necho $PWD\n' | on hostb sh -c 'cat >/tmp/only-there.d/rk-there; chmod +x /tmp/only-there.d/rk-there'
remember $here
for how in "--wdir /tmp/only-there.d ./rk-there" "--wdir /tmp/only-there.d --path /tmp/only-there.d rk-there" "--wdir /tmp/only-there.d rk-there"; do
    xrun 30 -n 1 --host hostb $how
    verdict "only there: $how" 0
    [ "$(cat out)" = "/tmp/only-there.d
/tmp/only-there.d" ] && good "it runs there" || bad "it runs there" "$(cat out)"
done
on hostb rm -r /tmp/only-there.d
remember $here
xrun 30 -n 2 --host hostb:1,hostc:1 /tmp/only-there.d/rk-there
verdict "nowhere: a path" 127 'there is no program /tmp/only-there\.d/rk-there on host[bc]$'
[ "$(grep -c . err)" = 1 ] && good "that is one line" || bad "that is one line" "$(cat err)"
xrun 30 -n 2 --host hostb:1,hostc:1 rk-there
verdict "nowhere: a name" 127 'host host[bc]: there is no program rk-there in PATH'
[ "$(grep -c . err)" = 1 ] && good "that is one line" || bad "that is one line" "$(cat err)"
xrun 30 -n 2 --host hostb:1,hostc:1 --wdir /tmp/only-there.d true
verdict "nowhere: a directory" 2 'cannot start in /tmp/only-there\.d on host[bc]: No such file'
LD_LIBRARY_PATH=$(printf '/a/long/way/to/a/library/%.0s' {1..200}) xrun 30 -n 2 --host hosta:1,hostb:1 true
verdict "a long LD_LIBRARY_PATH" 0
# xrun itself, but that it has another version's number.
mkdir -p prefix/bin
version=$("$XRUN" --version) version=${version#xrun }
sed "s/${version//./\\.}/${version//[0-9]/9}/g" "$XRUN" >prefix/bin/xrun
chmod +x prefix/bin/xrun
[ "$(prefix/bin/xrun --version)" = "xrun ${version//[0-9]/9}" ] || bad "another version: its number" "$(prefix/bin/xrun --version)"
for fanout in 32 1; do
    xrun 30 -n 3 --host hosta:1,hostb:1,hostc:1 --fanout $fanout --prefix "$PWD/prefix" sh -c 'touch /tmp/ran'
    verdict "another version, fan-out $fanout" 1 "host host[bc]: .*/prefix/bin/xrun is version ${version//[0-9]/9} there, and this is version $version;"
    [ "$(grep -c . err)" = 1 ] && good "another version, fan-out $fanout: that is one line" || bad "another version, fan-out $fanout: that is one line" "$(cat err)"
done
# An xrun with another form of its messages to agents: the greeting before them has not changed.
cat >other-ssh <<'SH'
#!/bin/sh
host=$1
shift
python3 -c '
import sys
said = sys.stdin.buffer.read()
sys.stdout.buffer.write(said[:8] + b"\x63\0\0\0" + b"7.7.7".ljust(32, b"\0") + said[44:108] + b"\x05\0\0\0other")
' | ssh "$host" "$@"
SH
chmod +x other-ssh
xrun 30 -n 3 --host hosta:1,hostb:1,hostc:1 --agent "$PWD/other-ssh" sh -c 'touch /tmp/ran'
verdict "another protocol" 1 "host (host[bc]): .*error: xrun is version $version \(protocol [0-9]+\) on host[bc], and version 7\.7\.7 \(protocol 99\) on hosta, which starts it; install"
[ "$(grep -c . err)" = 1 ] && good "another protocol: that is one line" || bad "another protocol: that is one line" "$(cat err)"
[ -z "$(for h in $here; do on $h ls /tmp | grep ran; done)" ] && good "nothing was started" || bad "nothing was started" "something was"

# ------------------------------------------------------------------------- the network, and another place
for h in hosta hostb hostc; do "$hosts" second $h; done
met() { # the agent's peer, of each host
    for h in hosta hostb hostc; do
        on $h ss -Htnp state established 2>/dev/null | awk '/"xrun-agent"/ && $4 !~ /^(127\.|\[?::1)/ { sub(/:[0-9]*$/, "", $4); gsub(/^\[::ffff:|\]$/, $4 ~ /ffff/ ? "" : "&", $4); print $4 }' | sort -u
    done | tr '\n' ' '
}
over() { : >"$PWD/over"; finish_in 20; rm -f over; }
# A chain of agents.
for net in "eth1 10.79.0.H" "10.79.0.0/24 10.79.0.H" "fd78::/64 [fd78::H]"; do
    begin_on -n 3 --host hosta:1,hostb:1,hostc:1 --fanout 1 --if "${net% *}" sh -c 'echo ready ${UCX_NET_DEVICES-all}; until [ -e over ]; do sleep 0.02; done'
    until_true 20 ready 3 || bad "--if ${net% *}: start" "$(cat out err)"
    got=$(met) want=
    for h in 2 1 3 2; do want="$want${net#* } " want=${want/H/$h}; done
    over
    verdict "--if ${net% *}" 0
    [ "$got" = "$want" ] && good "--if ${net% *}: agents meet there" || bad "--if ${net% *}: agents meet there" "$got, not $want"
    [ "$(grep -c '^ready all$' out)" = 3 ] && good "--if ${net% *}: nothing of it for UCX" || bad "--if ${net% *}: nothing of it for UCX" "$(cat out)"
done
# Without --if it is the one that leads there.
by() { # NAME WANTED HOSTS
    begin_on -n 3 --host "$3" --fanout 1 sh -c 'echo ready; until [ -e over ]; do sleep 0.02; done'
    until_true 20 ready 3 || bad "$1: start" "$(cat out err)"
    got=$(met) want=
    for h in 2 1 3 2; do want="$want$2 " want=${want/H/$h}; done
    over
    verdict "$1" 0
    [ "$got" = "$want" ] && good "$1: agents meet there" || bad "$1: agents meet there" "$got, not $want"
}
# UCX gets the network that ranks use.
begin_on -n 2 --host hosta:1,hostb:1 -x UCX_NET_DEVICES=eth1 --timeout 60 "$top_builddir/tests/launcher/programs/stall" loop
until_true 20 ready 1 || bad "UCX_NET_DEVICES: start" "$(cat out err)"
between() { on hosta ss -Htnp state established 2>/dev/null | grep '"stall"' | grep -v 127.0.0.1 | awk '{ print $3, $4 }' | sed 's/:[0-9]*//g'; }
until_true 20 eval '[ -n "$(between)" ]'
got=$(between)
on hosta pkill -USR1 -x xrun
finish_in 20
verdict "UCX_NET_DEVICES" 0
[ "$(echo "$got" | sort -u)" = "10.79.0.1 10.79.0.2" ] && good "ranks talk there" || bad "ranks talk there" "$got"
by "two networks, hosts of the first" 10.78.0.H hosta:1,hostb:1,hostc:1
by "two networks, hosts of the second" 10.79.0.H 10.79.0.1:1,10.79.0.2:1,10.79.0.3:1
on hostb ip link del eth1
xrun 30 -n 2 --host hosta:1,hostb:1 --if eth1 sh -c 'touch /tmp/ran'
verdict "a host that is not in that network" 1 'host hostb: .*10\.79\.0\.1'
for h in hosta hostc; do on $h ip link del eth1; done
# xrun lies somewhere else there; its own host has only the program
for h in hosta hostb hostc; do
    [ $h = hosta ] || on $h install -D "$XRUN" /tmp/there/bin/xrun
    printf '#!/bin/sh\necho ready on %s; until [ -e over ]; do sleep 0.02; done\n' $h >tool
    chmod +x tool
    on $h install -D tool /tmp/there/bin/rk-tool
done
remember $here
begin_on -n 3 --host hosta:1,hostb:1,hostc:1 --fanout 1 --prefix /tmp/there rk-tool
until_true 20 ready 3 || bad "--prefix: start" "$(cat out err)"
got=$(for h in hostb hostc; do on $h sh -c 'readlink /proc/$(pgrep -x xrun-agent)/exe'; done)
over
verdict "--prefix" 0
[ "$got" = "$(printf '/tmp/there/bin/xrun\n/tmp/there/bin/xrun')" ] && [ "$(sort out)" = "ready on hosta
ready on hostb
ready on hostc" ] && good "agents and programs are those there" || bad "agents and programs are those there" "$got; $(cat out)"

# ------------------------------------------------------------------------- unauthenticated peers
cat >slow-ssh <<'SH'
#!/bin/bash
while [ ! -e "${0%/*}/go" ]; do read -rt 0.05 <> <(:); done
exec ssh "$@"
SH
chmod +x slow-ssh
rm -f go
on hosta env XDG_RUNTIME_DIR=/run "$XRUN" -v -n 2 --host hosta:1,hostb:1 --agent "$PWD/slow-ssh" sh -c 'echo ready' >out 2>err </dev/null &
xpid=$!
port() { port=$(on hosta ss -Htlnp 2>/dev/null | sed -n "s/.*:\([0-9]*\) .*\"$1\".*/\1/p" | head -n 1); [ -n "$port" ]; }
cat >strangers.py <<'PY'
import os, select, socket, sys, time
def meet(data):
    s = socket.create_connection(("hosta", int(sys.argv[1])), 5)
    s.settimeout(10)
    if data:
        s.sendall(data)
    return s
def gets_a_close(s):
    try:
        assert s.recv(1) == b""
    except ConnectionError:
        pass
for data in (os.urandom(64), b"GET / HTTP/1.0\r\n\r\n", b"xrunwire" + os.urandom(56)):
    gets_a_close(meet(data))
half = [meet(b"xrun"), meet(b"")]
# A byte a second of what could become a hello: it gets no more time for that than the others.
drips, end = meet(b"xrunw"), time.monotonic() + 12 * int(sys.argv[2])
for byte in b"ire" + 60 * b"\0":
    if select.select([drips], [], [], 1)[0]:
        break
    assert time.monotonic() < end, "it may go on for ever"
    drips.send(bytes([byte]))
gets_a_close(drips)
for s in half:
    gets_a_close(s)
PY
strangers_at() { # PROCESS WHAT
    if until_true 10 port "$1"; then
        on hostc python3 strangers.py "$port" "$slow" && good "unauthenticated peers get a close$2" || bad "unauthenticated peers get a close$2" "python: $?"
    else
        bad "unauthenticated peers get a close$2" "no port"
    fi
    on hosta touch "$PWD/go"
    finish_in 20
    verdict "unauthenticated peers do not disturb$2" 0 '6 strangers came to the door'
}
strangers_at xrun ""
# The silent ones took 5 s.
grep -qx 'xrun: waiting for 1 of 2 hosts: hostb' err && good "missing hosts are named after 2 s" || bad "missing hosts are named after 2 s" "$(cat err)"
rm -f go
on hosta env XDG_RUNTIME_DIR=/run "$XRUN" -v --fanout 1 -n 2 --host hosta:1,hostb:1 --agent "$PWD/slow-ssh" sh -c 'echo ready' >out 2>err </dev/null &
xpid=$!
strangers_at xrun-agent " at the door of an agent"

# ------------------------------------------------------------------------- singletons
# 0.3 s: so long that the library is seen before the first rank ends.
alone=$top_builddir/tests/launcher/programs/.libs/libmpi_none.so client=$top_builddir/tests/launcher/programs/pmix_client
warned() { [ "$(grep -c 'none of the 2 ranks has joined the job although their program uses libmpi_none.so' err)" = "$1" ]; }
xrun 30 -n 2 --host hosta:1,hostb:1 -x LD_PRELOAD="$alone" sh -c 'sleep 0.3'
verdict "singletons on two hosts" 0
warned 1 && good "they are reported in one line" || bad "they are reported in one line" "$(cat err)"
xrun 30 --host hosta:1,hostb:2 -n 1 "$client" init : -n 2 -x LD_PRELOAD="$alone" sh -c "sleep 0.3"
verdict "the second program is singletons, elsewhere" 0
[ "$(grep -c . err)" = 1 ] && grep -q 'none of ranks 1 to 2 has joined the job although their program uses libmpi_none.so' err &&
    good "it is reported in one line" || bad "it is reported in one line" "$(cat err)"
xrun 30 -n 2 --host hosta:1,hostb:1 sh -c "[ \$XRUN_RANK = 0 ] || exec $client init; sleep 0.1"
verdict "one that others have joined in without" 0
[ ! -s err ] && good "it may have its reasons" || bad "it may have its reasons" "$(cat err)"
xrun 30 -n 2 --host hosta:1,hostb:1 -x LD_PRELOAD="$alone" sh -c "sleep 0.3; [ \$XRUN_RANK = 0 ] || { sleep 0.7; exec $client init; }"
verdict "one that joins when the first has ended, on another host" 0
warned 0 && good "it is no singleton" || bad "it is no singleton" "$(cat err)"

# ------------------------------------------------------------------------- signs of life
begin_on -n 3 --host hosta:1,hostb:1,hostc:1 --heartbeat 0.5 --timeout 60 "$top_builddir/tests/launcher/programs/stall" loop
until_true 20 ready 1 || bad "a stopped rank on another host: start" "$(cat out err)"
said() { grep -qE -e "$1" err; }
state_is() { on hosta env XDG_RUNTIME_DIR=/run "$XRUN" --status >st 2>&1; grep -qE -e "$1" st; }
state_is ': 3 of 3 ranks of .*stall run on 3 hosts for' && good "--status of several hosts" || bad "--status of several hosts" "$(cat st)"
on hostb pkill -STOP -x stall
until_true 10 said 'rank 1: no progress for .*: is stopped by a signal' && good "a stopped rank on another host is reported" || bad "a stopped rank on another host is reported" "no line"
job=$(sed -n 's/^\(xrun-[^:]*\): .*/\1/p' st)
tells() { # of each rank: its process and its host
    on hosta env XDG_RUNTIME_DIR=/run "$XRUN" --status "$job" >st 2>&1 && [ "$(grep -c '^rank' st)" = 3 ] &&
        grep -qE "^rank 0: allreduce #[0-9]+ on world, waits for rank 1, .*\(host hosta, pid $(on hosta pgrep -x stall), cpu [0-9.]+ s\)" st &&
        grep -qE "^rank 1: is stopped by a signal.*\(host hostb, pid $(on hostb pgrep -x stall), cpu [0-9.]+ s\)" st &&
        grep -qE "^rank 2: allreduce #[0-9]+ on world, waits for rank [01], .*\(host hostc, pid $(on hostc pgrep -x stall), cpu [0-9.]+ s\)" st
}
until_true 10 tells && good "--status JOB lists each rank of each host" || bad "--status JOB lists each rank of each host" "$(cat st)"
until_true 10 said 'allreduce #[0-9]+ on world, waits for rank 1' && good "and the rank it waits for" || bad "and the rank it waits for" "no line"
on hostb pkill -CONT -x stall
until_true 10 said 'ranks? [0-9,-]+ (go|goes) on after' && good "it goes on" || bad "it goes on" "no line"
on hosta pkill -USR1 -x xrun
finish_in 20
verdict "a stopped rank on another host is not killed" 0

# Of programs that are not ours: which host has not come to a fence. In a chain that comes from below, as far as it goes.
late="[ \$XRUN_RANK != 1 ] || { echo ready; trap : USR1; sleep 1000 & wait; }; trap '' USR1"
asks='ask() { echo "cmd=$1" >&3 && read -ru 3 _; }; ask "init pmi_version=1 pmi_subversion=1"'
for way in "PMIx fence:32:host hostb:host hostb" "PMI-1 barrier:1:some of hosts hostb,hostc:other hosts"; do
    IFS=: read -r what fanout first third <<<"$way"
    [ $fanout = 1 ] && does="$asks; $late; ask barrier_in; ask finalize" || does="$late; exec $top_builddir/tests/launcher/programs/pmix_client fence"
    begin_on -n 3 --host hosta:1,hostb:1,hostc:1 --fanout $fanout --heartbeat 0.5 --timeout 60 bash -c "$does"
    until_true 20 ready 1 || bad "a late host, $what: start" "$(cat out err)"
    tells() {
        on hosta env XDG_RUNTIME_DIR=/run "$XRUN" --status xrun >st 2>&1 && grep -qE "^rank 0: sleeps .*; its $what waits for $first, for .* \(host hosta" st &&
            grep -qE "^rank 2: sleeps .*; its $what waits for $third, for .* \(host hostc" st && ! grep '^rank 1: ' st | grep -q 'waits for'
    }
    until_true 10 tells && good "a late host, $what" || bad "a late host, $what" "$(cat st)"
    until_true 10 said "ranks? [02,]+: no progress for .*: sleeps .*; its $what waits for $third\$" && good "a late host, $what: heartbeat" ||
        bad "a late host, $what: heartbeat" "no line"
    on hosta pkill -USR1 -x xrun
    finish_in 20
    verdict "a late host is waited for, $what" 0
done

# ------------------------------------------------------------------------- a start that takes long
# The first process that opens the program waits, as where a file system is mounted only then: the agent, in the middle of its start, and
# with it what it passes on. /tmp is each host's own.
cat >asleep.py <<'PY'
import fcntl, os, signal, sys, time
fd = os.open("/tmp/asleep", os.O_RDONLY)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
open("sleeps", "w").close()
signal.sigwait([signal.SIGIO])
open("asked", "w").close()
time.sleep(float(sys.argv[1]))
PY
falls_asleep() { # HOST SECONDS
    rm -f sleeps asked
    on hosta cp "$(type -P true)" /tmp/asleep # xrun's own host is not to miss it
    on "$1" cp "$(type -P true)" /tmp/asleep
    on "$1" python3 asleep.py "$2" 2>slept &
    sleeper=$!
    until_true 20 test -e sleeps || bad "a program that is asleep" "$(cat slept)"
}
falls_asleep hostb 9
xrun 60 --fanout 1 --host hosta:1,hostb:1,hostc:1 -n 1 true : -n 1 /tmp/asleep : -n 1 true
[ "$ms" -ge 9000 ] && [ -e asked ] || bad "a start that takes long" "it took $ms ms; $(cat slept)"
wait $sleeper
on hosta rm /tmp/asleep
on hostb rm /tmp/asleep
verdict "an agent that is busy with the start for 9 s is not given up" 0

falls_asleep hostb 4 # the signal stops the agent as soon as its system call returns
begin_on --host hosta:1,hostb:1 -n 1 true : -n 1 /tmp/asleep
until_true 20 test -e asked || bad "an agent is stopped in the middle of its start: start" "$(cat out err slept)"
on hostb pkill -STOP -o -x xrun-agent # not its child, which opens the program
finish_in 40
on hostb pkill -KILL -f asleep.py
wait $sleeper 2>/dev/null
on hosta rm /tmp/asleep
on hostb rm /tmp/asleep
verdict "an agent that is stopped in the middle of its start is given up" 1 'the agent on hostb died'
grep -q 'the agent has been stopped for 6 s' err && good "and its supervisor gives the reason" || bad "and its supervisor gives the reason" "$(cat err)"

# ------------------------------------------------------------------------- lost hosts: last, since they do not come back
begin_on -n 3 --host hosta:1,hostb:1,hostc:1 --timeout 100 sh -c 'echo ready; exec sleep 1000'
until_true 10 ready 3 || bad "a host is cut off: start" "$(cat out err)"
unwatched=' sshd: ' # without a report
watch_ends hostb || bad "a host is cut off: the processes there" "$(cat ends.hostb)"
cut_at=${EPOCHREALTIME/./}
"$hosts" link hostb down
finish_in 20
here="hosta hostc"
verdict "a host is cut off" 1 'the agent on hostb died'
within "a host is cut off" 10000
# The agent there sees by its kernel alone that no peer answers what it sends; it ends what it has started.
all_ended && [ "$watched" -ge 3 ] || bad "what ran there ends by itself" "of $watched: $(left hostb)"
ms=$(((ended_at - cut_at) / 1000))
within "what ran there ends by itself, $ms ms after the cut" 10000
of_job() { left hostb | grep -v ' sshd: '; }
until_true 20 eval '[ -z "$(of_job)" ]' && good "nothing else is left there" || bad "nothing else is left there" "$(of_job)"
"$hosts" link hostb up
here="hosta hostb hostc"
# Its agent is not through with the start: its silence alone would show nothing.
falls_asleep hostc 1000
begin_on --host hosta:1,hostb:1,hostc:1 --timeout 100 -n 2 sh -c 'echo ready; exec sleep 1000' : -n 1 /tmp/asleep
until_true 20 ready 2 && until_true 20 test -e asked || bad "a host crashes: start" "$(cat out err slept)"
"$hosts" crash hostc
on hosta rm /tmp/asleep
finish_in 20
here="hosta hostb"
verdict "a host crashes" 1 'the agent on hostc died'
within "a host crashes" 10000

echo "# xrun_hosts: $passed passed, $failed failed"
[ $failed -eq 0 ]
