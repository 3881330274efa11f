#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# xrun.sh: run xrun and real programs, each under a time limit.
# Covers options, output, exit codes, failures, signals, kill -9 of each process of xrun, and what is left behind.

. "$(dirname "$0")/cases.sh"
client=$top_builddir/tests/launcher/programs/pmix_client

# ------------------------------------------------------------------------------ bad input
mark="touch $work/started"
refused "unknown option, near one" 2 'no option --bnid; did you mean --bind\?' --bnid none $mark
refused "unknown option, none near" 2 'no option --qqqqqqqqqq; xrun --help' --qqqqqqqqqq $mark
refused "option without its value" 2 'needs a value' -n
refused "no program" 2 'no program given' -n 2
refused "empty program" 2 'no program given' -n 2 ''
for n in 0 -1 x 1x '' 99999999999999999999 1.5; do
    refused "-n '$n'" 2 "-n is '$n'; give a number" -n "$n" $mark
done
refused "missing program" 127 'no program no-such-program in PATH, nor in /' no-such-program
refused "missing program with a path" 127 'no program \./no/such \(seen from /' ./no/such
echo '#!/bin/sh' >plain
refused "program that is not executable" 126 'cannot execute .*/plain: it is not executable' ./plain
refused "a directory as program" 126 'it is a directory' /tmp
printf '#!/no/such/interpreter\n' >badshebang; chmod +x badshebang
refused "program without its interpreter" 127 'cannot execute .*/badshebang' -n 2 ./badshebang
printf 'touch started\n' >noshebang; chmod +x noshebang
refused "script without an interpreter" 126 'cannot execute .*#!' -n 2 ./noshebang
refused "bad -x: no name" 2 "-x is '=1'" -x =1 $mark
refused "bad -x: not a name" 2 "-x is '1A=2'" -x 1A=2 $mark
refused "bad -x: not set" 2 'RK_NOT_SET is not set' -x RK_NOT_SET $mark
refused "missing wdir" 2 'working directory /no/such/dir: No such file' --wdir /no/such/dir $mark
refused "wdir that is a file" 2 'is not a directory' --wdir "$work/plain" $mark
refused "bad --timeout" 2 "--timeout is '-1'" --timeout -1 $mark
refused "bad --bind" 2 "--bind is 'board'; give share, none, hwthread, core, l3, numa or package" --bind board $mark
refused "bad --on-failure" 2 'give kill or continue' --on-failure ignore $mark
refused "value for an option that takes none" 2 'takes no value' --tag-output=yes $mark
RANK_LOG=loud refused "bad RANK_ value in the environment" 2 "RANK_LOG is 'loud'; allowed is one of error|warn" $mark
refused "bad RANK_ value in -x" 2 "RANK_CHANNELS is 'shm,pigeon'; allowed" -x RANK_CHANNELS=shm,pigeon $mark
refused "bad algorithm in -x" 2 "RANK_COLL: allreduce has no 'rign'; it has: shm, " -x RANK_COLL=bcast:chain,allreduce:rign $mark
run 10 -n $(($(nproc) + 1)) --bind core true
check "more ranks than cores: they run, and one line reports it" 0 "$(($(nproc) + 1)) ranks share $(nproc) cores? on .*no rank is bound"
for n in 0 1; do
    run 20 -n $(($(nproc) + n)) "$client" crowded
    [ $n = 0 ] && word="a core for each" || word="more ranks than cores"
    [ "$(grep -cx "$word" out)" = $(($(nproc) + n)) ] && check "ranks get whether there is $word" 0 || bad "ranks get whether there is $word" "$(cat out)"
done
run 10 -v -n 2 --mpi none true
check "-v: what the start took; --mpi none starts no PMIx server" 0 '^xrun: start-up in ms: front end [0-9.]+, agent [0-9.]+, ranks [0-9.]+; in all [0-9.]+ for 2 ranks on '
run 10 -n 2 printenv PMIX_RANK
[ "$(sort out | tr '\n' ' ')" = "0 1 " ] && check "each program has PMIx's variables" 0 || bad "each program has PMIx's variables" "$(cat out)"
run 10 -v -n 2 sh -c 'echo "$PMIX_RANK"' : true
[ "$(sort out | tr '\n' ' ')" = "0 1 " ] && good "a program that may start a client has PMIx's variables" || bad "a program that may start a client has PMIx's variables" "$(cat out)"
check "-v: what the start took, with a PMIx server" 0 '^xrun: start-up in ms: front end [0-9.]+, agent [0-9.]+, PMIx server [0-9.]+, namespace [0-9.]+, ranks [0-9.]+; in all [0-9.]+ for 3 ranks on '
(failed=0; ulimit -n 64; refused "too few descriptors" 2 ' 100 ranks need [0-9]* open files' -n 100 $mark; ulimit -n 48; refused "too few for one" 2 ' 1 rank needs [0-9]* open files' $mark; exit $failed) || failed=$((failed + 1))
(failed=0; ulimit -s 192; refused "too small a stack" 2 ' a stack of 192 KiB is too small .* 256 KiB are needed; .*ulimit -s' -n 2 $mark; exit $failed) || failed=$((failed + 1))
passed=$((passed + 2))

run 10 -x RANK_LGO=info true
check "unknown RANK_ variable: a warning with the nearest" 0 'RANK_LGO is not a variable.*did you mean RANK_LOG'
[ "$(grep -c RANK_LGO err)" = 1 ] && good "warned once" || bad "warned once" "more than one warning"
run 10 --help
check "--help" 0
grep -q -- '--on-failure kill|continue' out && good "--help lists the options" || bad "--help lists the options" "no"
run 10 --help=man
sed -e '1,/^\.\\" xrun --help=man/d' -e '/^\.\\" end of/,$d' "$top_srcdir/doc/xrun.1" | cmp -s - out &&
    good "the options in xrun.1 are those of the table" || bad "the options in xrun.1 are those of the table" "put 'xrun --help=man' between its marks"
sed -e '/^\.\\"/d' -e 's/\\f[A-Z]/ /g' -e 's/\\-/-/g' "$top_srcdir/doc/xrun.1" | grep -oE -e '--[a-z][a-z-]*' | sort -u >inman
"$XRUN" --help | grep -oE -e '--[a-z][a-z-]*' | sort -u | cmp -s - inman && good "and xrun.1 speaks of no others" || bad "and xrun.1 speaks of no others" "$(cat inman)"
run 10 --version
check "--version" 0
grep -qE '^xrun [0-9]+\.[0-9]+\.[0-9]+$' out && good "--version prints it" || bad "--version prints it" "$(cat out)"

# ------------------------------------------------------------------- options and environment
run 10 -n 1 pwd; same "ranks start where xrun is" "$work"
mkdir -p real && ln -s real link
(cd link && new_case && timeout 10 "$XRUN" sh -c 'echo $PWD; pwd' >../out 2>../err); rc=$?
same "through a link, if the shell calls it so" "$work/link
$work/link"
(cd real && new_case && PWD=$work/link/../real timeout 10 "$XRUN" sh -c 'echo $PWD' >../out 2>../err); rc=$?
same "not by a name that only leads there" "$work/real"
(new_case && PWD=/tmp timeout 10 "$XRUN" sh -c 'echo $PWD' >out 2>err); rc=$?
same "a PWD that is wrong is put right" "$work"
run 10 --wdir link/ sh -c 'echo $PWD' : --wdir "$work/link" sh -c 'echo $PWD' : --wdir real -x PWD=/x printenv PWD; sort out >sorted; mv sorted out
same "PWD is what --wdir gives, or the user" "$work/link
$work/link
/x"
mkdir sub; printf '#!/bin/sh\necho here' >sub/only-here; chmod +x sub/only-here
run 10 --wdir sub pwd; same "--wdir" "$work/sub"
run 10 --wdir=sub only-here; same "a program in wdir is found after PATH" here
run 10 --wdir sub ./only-here; same "a relative path is seen from wdir" here
RK_A=1 run 10 -x RK_B=two -x RK_A sh -c 'echo $RK_A $RK_B'; same "-x" "1 two"
run 10 -x 'RK_B=a b=c' sh -c 'echo "$RK_B"'; same "-x with = and blanks in the value" "a b=c"
PMIX_RANK=7 PMI_RANK=7 OMPI_COMM_WORLD_RANK=7 SLURM_PROCID=7 XRUN_RANK=7 PMIX_MCA_x=1 OMPI_MCA_y=2 SLURM_JOB_ID=3 \
    run 10 sh -c 'echo $PMIX_RANK $PMI_RANK $OMPI_COMM_WORLD_RANK $SLURM_PROCID $XRUN_RANK $PMIX_MCA_x $OMPI_MCA_y $SLURM_JOB_ID'
same "what another launcher left is taken out, settings stay" "0 0 0 1 2 3"
run 10 -n 3 sh -c 'echo $XRUN_RANK $XRUN_SIZE $XRUN_LOCAL_RANK $XRUN_LOCAL_SIZE $XRUN_NODE_RANK $XRUN_NODES ${XRUN_JOB:+job}'
[ "$(sort out)" = "0 3 0 3 0 1 job
1 3 1 3 0 1 job
2 3 2 3 0 1 job" ] && check "XRUN_ variables" 0 || bad "XRUN_ variables" "$(cat out)"
run 10 -np 2 -- sh -c 'echo x'; same "-np and --" "x
x"
# Signals 32 and 33 are the C library's own: its posix_spawn, which make uses, leaves them ignored.
run 10 sh -c 'sed -n "s/^Sig\(Blk\|Ign\):[^0-9a-f]*/0x/p" /proc/self/status' &&
    while read -r mask; do echo $((mask & ~0x180000000)); done <out >masks && mv masks out
same "no signal is blocked or ignored in a rank" "0
0"
# 3 is PMI-1's, 4 the one by which ls reads
run 10 -n 20 ls /proc/self/fd 8</dev/null && sort -n out | uniq -c | sed 's/^ *//' >fds && mv fds out
same "a rank has four descriptors, whatever xrun holds or was given" "20 0
20 1
20 2
20 3
20 4"
lim=$(ulimit -Sn); run 10 -n 2 sh -c 'ulimit -Sn' && same "the limit of open files is the user's" "$lim
$lim"

# ---------------------------------------------------------------------------------- binding
cpus=$(sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)
ncpu=$(nproc)
run 10 --bind none sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status; same "--bind none" "$cpus"
run 10 -n 1 sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status; same "one rank gets all" "$cpus"
run 10 -n $((ncpu + 1)) sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status
[ "$(sort -u out)" = "$cpus" ] && check "more ranks than cores: no rank is bound" 0 || bad "more ranks than cores: no rank is bound" "$(cat out)"
if [ "$ncpu" -ge 2 ]; then
    run 10 -n 2 nproc
    [ "$(awk '{s+=$1} END {print s}' out)" = "$ncpu" ] && check "two ranks share all cores" 0 || bad "two ranks share all cores" "$(cat out)"
    run 10 -n 2 --bind core sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status
    [ "$(sort -u out | wc -l)" = 2 ] && check "--bind core: different ones" 0 || bad "--bind core: different ones" "$(cat out)"
    one=${cpus%%[-,]*}
    new_case
    taskset -c "$one" timeout 10 "$XRUN" -n 1 sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status >out 2>err; rc=$?
    same "inherited affinity is honoured" "$one"
    taskset -c "$one" timeout 10 "$XRUN" -n 2 sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status >out 2>err; rc=$?
    same "and more ranks than that are not bound" "$one
$one"
fi

# ----------------------------------------------------------------------------------- output
cat >lines.sh <<'EOS'
exec awk -v r="$XRUN_RANK" -v n="$1" 'BEGIN {
    srand(r); pad = "abcdefghijklmnopqrstuvwxyz0123456789"; while (length(pad) < 3000) pad = pad pad
    for (i = 0; i < n; i++) printf "rank %d line %d %s\n", r, i, substr(pad, 1, int(rand() * 400)) }'
EOS
stress() { # NAME READER: 32 ranks, every line whole, each rank's in order, none lost
    local r
    new_case
    timeout $((60 * slow)) "$XRUN" -n 32 sh lines.sh 2000 2>err | $2 >out
    rc=${PIPESTATUS[0]}
    if [ "$rc" = 0 ]; then
        for r in $(seq 0 31); do
            XRUN_RANK=$r sh lines.sh 2000 | cmp -s - <(grep "^rank $r line " out) || { rc="rank $r differs"; break; }
        done
        [ "$(wc -l <out)" = 64000 ] || rc="$(wc -l <out) lines"
    fi
    check "$1" 0
}
stress "32 ranks x 2000 lines arrive whole and in order" cat
slow_reader() { read -rt 1.5 <> <(:); cat; }
stress "a slow reader loses nothing" slow_reader
head -c 3000000 /dev/urandom >blob
run 20 cat blob; cmp -s blob out && check "binary output is untouched" 0 || bad "binary output is untouched" "differs"
run 20 -n 2 sh -c 'cat blob >&2'
[ "$(wc -c <err)" = 6000000 ] && [ ! -s out ] && rc2=$rc && : >err && rc=$rc2 && check "stderr is apart, and whole" 0 || bad "stderr is apart, and whole" "$(wc -c <err) bytes"
run 10 -n 4 printf x; same "no newline is added" "xxxx"
run 20 -n 4 awk 'BEGIN { for (i = 0; i < 700000; i++) printf "%s", ENVIRON["XRUN_RANK"]; print "" }'
[ "$(sort out | awk '{ print length($0), substr($0, 1, 1) }')" = "700000 0
700000 1
700000 2
700000 3" ] && check "long lines are not mixed" 0 || bad "long lines are not mixed" "$(awk '{print length($0)}' out | head)"
run 10 -n 2 --label-host echo x; same "--label-host" "[$(uname -n)] x
[$(uname -n)] x"
before=$(date +%Y-%m-%dT%H:%M:%S)
run 10 --timestamp --tag-output --label-host sh -c 'printf "one\ntwo\n"'
after=$(date +%Y-%m-%dT%H:%M:%S)
label="\.[0-9]\{3\} \[$(uname -n):0\]"
if [ "$(grep -c "$label \(one\|two\)\$" out)" = 2 ] && [ "$(wc -l <out)" = 2 ] &&
    cut -d. -f1 out | { ! grep -vxF -e "$before" -e "$after"; }; then
    check "--timestamp with the other labels" 0
else
    bad "--timestamp with the other labels" "$before to $after: $(cat out)"
fi
run 10 -n 2 --tag-output sh -c 'echo one; printf two'
[ "$(sort out)" = "[0] one
[0] two
[1] one
[1] two" ] && check "--tag-output" 0 || bad "--tag-output" "$(cat out)"
new_case
coproc P { exec timeout 20 "$XRUN" -n 2 sh -c '[ $XRUN_RANK = 1 ] || { printf "name? "; read -r a; echo "hello $a"; }' 2>err; }
p=$P_PID
t0=${EPOCHREALTIME/./}
IFS= read -rd '?' -t $((5 * slow)) -u "${P[0]}" prompt
t1=${EPOCHREALTIME/./}
echo you >&"${P[1]}"
read -rt $((5 * slow)) -u "${P[0]}" answer
wait "$p"; rc=$?
if [ "$prompt" = name ] && [ "$answer" = "hello you" ] && [ $((t1 - t0)) -lt $((1000000 * slow)) ]; then
    check "a prompt shows and is answered through stdin" 0
else
    bad "a prompt shows and is answered through stdin" "'$prompt' '$answer' after $((t1 - t0)) us"
fi
new_case
timeout 20 "$XRUN" -n 3 sh -c '[ $XRUN_RANK = 0 ] && exec sha256sum; cat | wc -c' <blob >out 2>err; rc=$?
[ "$(sort -r out | tail -n 1 | cut -c1-64) $(grep -c '^0$' out)" = "$(sha256sum <blob | cut -c1-64) 2" ] ||
    [ "$(grep -o '^[0-9a-f]\{64\}' out) $(grep -c '^0$' out)" = "$(sha256sum <blob | cut -c1-64) 2" ] && check "stdin goes to rank 0 whole, the others have none" 0 || bad "stdin goes to rank 0 whole, the others have none" "$(cat out)"
new_case
cat blob | timeout 20 "$XRUN" -n 1 sha256sum >out 2>err; rc=$?
[ "$(cut -c1-64 out)" = "$(sha256sum <blob | cut -c1-64)" ] && check "stdin from a pipe" 0 || bad "stdin from a pipe" "differs"
new_case
yes | timeout 20 "$XRUN" -n 2 true >out 2>err; rc=$?
check "stdin that is not read" 0
new_case
timeout 20 "$XRUN" -n 2 true <&- >&- 2>&-; rc=$?
check "closed standard descriptors" 0
for one in /dev/full '&-'; do
    new_case
    eval 'timeout 20 "$XRUN" -n 2 echo lost >'"$one"' 2>err'; rc=$?
    check "output to $one" 1 "cannot write the output: "
done
new_case
timeout 20 "$XRUN" -n 4 yes 2>err | head -n 1 >out; rc=${PIPESTATUS[0]}
check "a reader that goes away ends the job" 141
new_case
printf 'a\nb\n' >appended
timeout 20 "$XRUN" -n 2 echo c >>appended 2>err; rc=$?
[ "$(cat appended)" = "a
b
c
c" ] && check "appending to a file" 0 || bad "appending to a file" "$(cat appended)"

# ------------------------------------------------------------------------ how ranks may end
# soon NAME ARGS: the run before lasted less than a second, or one of three more like it does: a busy machine may be late
soon() {
    local name=$1 i
    shift
    for i in 1 2 3; do
        [ $ms -lt $((1000 * slow)) ] || run "$@"
    done
    [ $ms -lt $((1000 * slow)) ] && good "$name" || bad "$name" "$ms ms"
}
fails='[ $XRUN_RANK = 2 ] && exit 7; sleep 60'
run 10 -n 4 sh -c "$fails"
check "exit code of the first that fails" 7 'rank 2 \(host [^,]+, pid [0-9]+\) exited with code 7 after 0\.[0-9]+ s; ending the job'
soon "within a second" 10 -n 4 sh -c "$fails"
run 10 -n 4 sh -c '[ $XRUN_RANK = 3 ] && kill -SEGV $$; sleep 60'
check "killed by a signal: 128 + 11" 139 'rank 3 .* was killed by signal 11 \(Segmentation fault'
fails='trap "" TERM; [ $XRUN_RANK = 1 ] && exit 5; while :; do sleep 60; done'
run 10 -n 4 sh -c "$fails"
check "ranks that ignore TERM are killed" 5
soon "also within a second" 10 -n 4 sh -c "$fails"
rm -f armed
run 10 -n 2 sh -c 'trap "echo bye; exit 0" TERM
    [ $XRUN_RANK = 0 ] || { until [ -e armed ]; do sleep 0.01; done; exit 5; }
    : >armed; sleep 60 & wait'
[ "$(cat out)" = bye ] && check "TERM comes first" 5 || bad "TERM comes first" "$(cat out)"
run 10 -n 2 sh -c 'echo last word; echo to stderr >&2; exit 3'
grep -q 'to stderr' err && [ "$(grep -c 'last word' out)" -ge 1 ] && check "nothing is lost at a failing exit" 3 || bad "nothing is lost at a failing exit" "lost"
run 10 -n 2 sh -c 'sleep 60 & exit 0'
check "processes left behind end with the job" 0
run 10 -n 2 sh -c '(setsid sh -c "trap \"\" TERM; sleep 60" &) ; exit 0'
check "also daemons that ignore TERM" 0
run 10 -n 3 --on-failure continue sh -c '[ $XRUN_RANK = 1 ] && exit 4; sleep 0.3; echo lived'
[ "$(grep -c lived out)" = 2 ] && check "--on-failure continue" 4 'rank 1 .* exited with code 4.*the others go on' || bad "--on-failure continue" "$(cat out)"
run 10 -n 2 --timeout 0.3 sleep 60
check "--timeout" 124 'did not end within 0.3 s'
[ $ms -lt $((1500 * slow)) ] && good "--timeout in time" || bad "--timeout in time" "$ms ms"
new_case
timeout -k 5 15 "$XRUN" -n 2 --timeout 0.5 yes 2>err | { read -rt $((7 * slow)) <> <(:); cat >/dev/null; } &
p=$!
t0=${EPOCHREALTIME/./}
until_true 5 nothing_left
t1=${EPOCHREALTIME/./}
wait $p
[ $((t1 - t0)) -lt $((4000000 * slow)) ] && rc=0 && check "--timeout with a reader that stands still" 0 || bad "--timeout with a reader that stands still" "$((t1 - t0)) us"
run 10 "$XRUN" -n 2 sh -c 'echo inner $XRUN_RANK of $XRUN_SIZE'
[ "$(sort out)" = "inner 0 of 2
inner 1 of 2" ] && check "xrun inside xrun" 0 || bad "xrun inside xrun" "$(cat out)"

# Other users of this host are the only unauthenticated peers that PMIx can have: its port, the one that an agent of this host has,
# is the loopback's.
if command -v ss >/dev/null; then
    run 10 sh -c 'ss -Htlnp | awk -v agent="pid=$PPID," "index(\$0, agent) { print \$4 }"'
    if [ -s out ] && ! grep -qvE '^(127\.0\.0\.1|\[::1\]):[0-9]+$' out; then
        check "PMIx is served on the loopback alone" 0
    else
        bad "PMIx is served on the loopback alone" "$(cat out)"
    fi
fi

# --------------------------------------------------------------------------------- signals
for s in INT:130 TERM:143 HUP:129; do
    begin -n 3 sh -c 'echo ready; sleep 60'
    until_true 5 ready 3
    t0=${EPOCHREALTIME/./}
    kill -"${s%:*}" "$xpid"
    reap 5
    t1=${EPOCHREALTIME/./}
    [ $((t1 - t0)) -lt $((1000000 * slow)) ] || rc="$rc after $((t1 - t0)) us"
    check "SIG${s%:*} ends the job" "${s#*:}" 'ending the job'
done
begin -n 2 --kill-grace 20 bash -c 'trap "echo got it; exit 0" QUIT; echo ready; while :; do sleep 0.02; done'
until_true 5 ready 2
kill -QUIT "$xpid"
reap 20
[ "$(grep -c 'got it' out)" = 2 ] && check "QUIT ends the job and comes to its ranks" 131 'got Quit; ending the job' || bad "QUIT ends the job and comes to its ranks" "$(cat out)"
begin -n 2 sh -c 'trap "" TERM; echo ready; while :; do sleep 60; done'
until_true 5 ready 2
kill -TERM "$xpid"; kill -HUP "$xpid" # two different ones, so that none is lost
t0=${EPOCHREALTIME/./}
reap 5
t1=${EPOCHREALTIME/./}
[ $((t1 - t0)) -lt $((1000000 * slow)) ] || rc="$rc after $((t1 - t0)) us"
case $rc in 129) rc=143 ;; esac # either may be seen first
check "a second signal kills at once" 143
begin -n 2 sh -c 'trap "echo got it; exit 0" USR1; echo ready; while :; do sleep 0.02; done'
until_true 5 ready 2
kill -USR1 "$xpid"
reap 5
[ "$(grep -c 'got it' out)" = 2 ] && check "USR1 is passed on" 0 || bad "USR1 is passed on" "$(cat out)"

# ----------------------------------------------------------------- kill -9, and what is left
children() { # the one child of a process
    local f pid name state parent
    for f in /proc/[0-9]*/stat; do
        read -r pid name state parent _ 2>/dev/null <"$f" || continue
        [ "$parent" != "$1" ] || echo "$pid"
    done
} 2>/dev/null
agent_of() { # PID of xrun: its supervisor, then its agent
    look() { supervisor=$(children "$1"); [ -n "$supervisor" ] && agent=$(children "$supervisor") && [ -n "$agent" ]; }
    until_true 2 look "$1"
}
swept() { "$XRUN" --status >/dev/null; nothing_left; }
hard() { # NAME PIDS-EXPRESSION PROGRAM...
    local name=$1 which=$2 left=nothing_left t0 t1
    # With all of them gone no process can remove the job's socket: the next xrun does.
    [ "$which" != '$xpid $supervisor $agent' ] || left=swept
    shift 2
    begin -n 3 "$@"
    until_true 10 ready 3 || { bad "$name" "did not start"; kill_all; wait "$xpid"; return; }
    agent_of "$xpid"
    t0=${EPOCHREALTIME/./}
    eval "kill -9 $which"
    if ! until_true 4 "$left"; then
        bad "$name" "left: $(for p in $(alive); do what "$p"; echo -n "($p) "; done)"
        kill_all
    else
        t1=${EPOCHREALTIME/./}
        [ $((t1 - t0)) -lt $((2000000 * slow)) ] && good "$name" || bad "$name" "after $((t1 - t0)) us"
    fi
    wait "$xpid" 2>/dev/null
}
plain='echo ready; exec sleep 60'
wrapped='echo ready; sh -c "sleep 60; true"; true'
stubborn='trap "" TERM; echo ready; (setsid sleep 60 &); while :; do sleep 60; done'
for p in plain wrapped stubborn; do
    hard "kill -9 of xrun ($p)" '$xpid' sh -c "${!p}"
    hard "kill -9 of the agent ($p)" '$agent' sh -c "${!p}"
    hard "kill -9 of the supervisor ($p)" '$supervisor' sh -c "${!p}"
    [ "$(grep -c ' error: ' err)" = 1 ] && grep -q 'error: the supervisor on .* was killed; ending the job' err &&
        good "and it is named as the cause ($p)" || bad "and it is named as the cause ($p)" "$(cat err)"
    hard "kill -9 of xrun and agent ($p)" '$xpid $agent' sh -c "${!p}"
    hard "kill -9 of supervisor and agent ($p)" '$supervisor $agent' sh -c "${!p}"
    hard "kill -9 of xrun and supervisor ($p)" '$xpid $supervisor' sh -c "${!p}"
done
hard "kill -9 of xrun, supervisor and agent (plain)" '$xpid $supervisor $agent' sh -c "$plain"
# A killed xrun that does not come to run, or is slow to give its memory back, is its supervisor's parent for a while yet.
mkdir -pm 700 "$work/held"
held=$(XDG_RUNTIME_DIR=$work/held timeout -k 5 120 python3 "$top_srcdir/tests/launcher/programs/killed_xrun_socket.py" "$XRUN" 2>&1); rc=$?
case $rc-$held in
0-gone) good "kill -9 of xrun and agent, xrun's end the last" ;;
77-*) good "kill -9 of xrun and agent, xrun's end the last # SKIP needs two cores and a real-time process" ;;
*) bad "kill -9 of xrun and agent, xrun's end the last" "exit code $rc: $held" ;;
esac
begin -n 2 sh -c "$plain"; until_true 5 ready 2; agent_of "$xpid"; kill -9 "$agent"; reap 5
check "xrun reports that the agent died" 1 'the agent on .* died'
check "and by what" 1 'the agent was killed by signal 9 \(Killed\)'

# ------------------------------------------------------------------------------ PMIx clients
all_ok() { [ "$(grep -cx ok out)" = "$1" ]; }
for n in 1 2 8 32 128; do
    run 60 -n $n "$client" basic
    all_ok $n && check "put, commit, fence, get at $n ranks" 0 || bad "put, commit, fence, get at $n ranks" "$(grep -cx ok out) of $n, exit code $rc"
done
run 20 -n 4 sh -c "$client basic; true"
all_ok 4 && check "clients behind a shell" 0 || bad "clients behind a shell" "$(cat out)"
# Plain clients have to meet in between. libpmix (4.2.2 to 5.0) counts a client's closing of its connection as a loss in
# a fence of its rank that is open then, also if the client has finalized: a fence of the other rank's second client
# that begins before this rank's first one has closed fails with PARTIAL SUCCESS (seen 2 times in 120 without this).
rm -f first.0 first.1
run 20 -n 2 sh -c "$client basic && : >first.\$XRUN_RANK || exit
    until [ -e first.\$((1 - XRUN_RANK)) ]; do sleep 0.01; done; exec $client basic"
all_ok 4 && check "one client after another in a rank" 0 || bad "one client after another in a rank" "$(cat out)"
# Those of librank do it in rank_finalize, and must not find their predecessors' cards.
hello=$top_builddir/examples/hello
# Later than what libpmix's server waits, by itself, for what a rank of its host has not committed (2 s).
run 30 -q -n 2 sh -c "[ \$XRUN_RANK != 0 ] || sleep 3; exec $hello"
[ "$(grep -c . out)" = 2 ] && check "a rank that joins 3 s after the other" 0 ||
    bad "a rank that joins 3 s after the other" "exit code $rc: $(head -n 1 err)"
for n in 4 16; do
    run 60 -q -n $n sh -c "$hello && $hello && $hello"
    [ "$(grep -c . out)" = $((3 * n)) ] && check "programs of librank one after another at $n ranks" 0 ||
        bad "programs of librank one after another at $n ranks" "$(grep -c . out) lines, exit code $rc: $(head -n 1 err)"
done
run 20 -n 4 "$client" die-in-fence 2
check "a client that dies in a fence ends the job" 137 'rank 2 .* was killed by signal 9'
run 20 -n 4 --on-failure continue "$client" die-in-fence 2
all_ok 3 && check "with continue, the fence of the others ends" 137 || bad "with continue, the fence of the others ends" "$(cat out), exit code $rc"
run 20 -n 4 --on-failure continue "$client" die-in-fence-forked 2
all_ok 3 && check "nor does a process that the dead rank had forked keep it open" 137 'rank 2 .* its connection to PMIx: they are killed' ||
    bad "nor does a process that the dead rank had forked keep it open" "$(cat out), exit code $rc"
run 20 -n 4 "$client" absent 1
all_ok 3 && check "a rank that never joins does not hang the others' fence" 0 || bad "a rank that never joins does not hang the others' fence" "$(cat out), exit code $rc"
run 20 -n 4 --on-failure continue "$client" absent-fail 1
all_ok 3 && check "nor one that failed before" 7 || bad "nor one that failed before" "$(cat out), exit code $rc"
run 20 -n 4 --on-failure continue "$client" event-kill 1
all_ok 3 && check "a killed rank is an event" 137 || bad "a killed rank is an event" "$(cat out), exit code $rc"
run 20 -n 4 --on-failure continue "$client" event-exit 1
all_ok 3 && check "a failed rank is an event" 3 || bad "a failed rank is an event" "$(cat out), exit code $rc"
# On request, the server reports processes that ended before any client could register for it.
run 20 -n 4 --on-failure continue "$client" table-fail 1
all_ok 3 && check "a rank that failed is in the table of processes" 7 || bad "a rank that failed is in the table of processes" "$(cat out), exit code $rc"
run 20 -n 4 --on-failure continue "$client" table-kill 0
all_ok 3 && check "and one that was killed" 137 || bad "and one that was killed" "$(cat out), exit code $rc"
run 20 -n 3 "$client" unfinished 1
check "exit without finalize" 1 'rank 1 .* exited with code 0, without finalizing'
run 20 -n 3 "$client" abort 2
check "PMIx_Abort" 42 'rank 2 .* aborted the job with code 42: the sky is falling'
run 20 -n 3 "$client" log 1
check "PMIx_Log" 0 '^a word to the log$'
begin -n 4 "$client" stay
until_true 10 eval '[ "$(grep -c staying out)" = 4 ]'
agent_of "$xpid"; kill -9 "$agent"; reap 5
check "kill -9 of the agent under PMIx clients" 1

# A rank gets the name of its job's KVS by PMI-1, and MPICH names its memory by it: no other job gets it.
told_place='ask() { echo "cmd=$1" >&$PMI_FD && read -ru $PMI_FD answer; }; ask "init pmi_version=1 pmi_subversion=1" && ask get_my_kvsname &&
    echo "${answer#cmd=my_kvsname rc=0 kvsname=}" && until [ -e over ]; do sleep 0.02; done && ask finalize'
new_case
: >err
pids=
for job in one two; do
    timeout -k 5 $((30 * slow)) "$XRUN" -q -n 2 bash -c "$told_place" >place.$job 2>>err </dev/null &
    pids="$pids $!"
done
all_told() { [ "$(cat place.one place.two | wc -l)" = 4 ]; }
until_true 20 all_told
touch over
rc=0
for p in $pids; do wait $p || rc=$?; done
timeout -k 5 $((30 * slow)) "$XRUN" -q -n 2 bash -c "$told_place" >place.later 2>>err </dev/null || rc=$?
rm -f over
sort place.* | uniq -c | awk '$1 == 2 && NF == 2 { n++ } END { exit n != 3 || NR != 3 }' && check "PMI-1: two jobs at once, and a later one, have each a place of its own" 0 ||
    bad "PMI-1: two jobs at once, and a later one, have each a place of its own" "$(head place.*)"

# PMIx has one thread, which reads the first bytes of each peer and waits for the rest: 4 s in all, unless it is changed.
heard_soon() {
    run 30 -q -n 1 bash -c 'exec 3<>/dev/tcp/127.0.0.1/${PMIX_SERVER_URI41##*:} && printf half >&3 || exit 9
        from=$(date +%s%N); "$0" basic || exit; [ $((($(date +%s%N) - from) / 1000000)) -lt 3000 ] && echo soon' "$client"
    [ "$rc" = 0 ] && grep -qx soon out
}
until_true 60 heard_soon && check "a client is served although an unauthenticated peer has sent half a word" 0 ||
    bad "a client is served although an unauthenticated peer has sent half a word" "exit code $rc: $(cat out err)"

# Another user of the host that sends a long word byte by byte is dropped. AddressSanitizer of clang has an accept of its
# own in the program, before ours.
if [ -z "${SAN_CFLAGS:-}" ] && [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    drips='trap "" PIPE; exec 3<>/dev/tcp/127.0.0.1/$0 || exit; echo drips
        printf "\0\0\0\0\0\0\0\0\240\206\1\0\0\0\0\0" 2>/dev/null >&3 || { echo closed; exit; }
        for i in {1..400}; do printf x >&3 2>/dev/null || { echo closed; exit; }; sleep 0.05; done; echo was listened to'
    export drips
    run 60 -v -n 1 bash -c 'setpriv --reuid=65534 --clear-groups bash -c "$drips" "${PMIX_SERVER_URI41##*:}" >drips & p=$!
        until grep -q drips drips; do kill -0 $p || grep -q drips drips || exit; done
        from=$(date +%s%N); "$0" basic || exit; echo "heard after $((($(date +%s%N) - from) / 1000000)) ms"; wait $p; cat drips' "$client"
    [ "$rc" = 0 ] && grep -qx closed out && grep -q "1 stranger came to the door" err &&
        [ "$(sed -n 's/heard after \(.*\) ms/\1/p' out)" -lt 10000 ] && check "another user that drips is dropped" 0 ||
        bad "another user that drips is dropped" "exit code $rc: $(cat out err)"
    # The agent stands still meanwhile, so that it accepts the connection of a process that is gone: in FIN_WAIT2 (05).
    leaves='exec 3<>/dev/tcp/127.0.0.1/$0 && printf "\0\0\0\0\0\0\0\0\240\206\1\0\0\0\0\0" >&3'
    export leaves
    run 60 -v -n 1 bash -c 'kill -STOP $PPID; setpriv --reuid=65534 --clear-groups bash -c "$leaves" "${PMIX_SERVER_URI41##*:}"
        port=$(printf %04X "${PMIX_SERVER_URI41##*:}")
        until grep -q "0100007F:$port 05" /proc/net/tcp; do kill -0 $PPID || exit; done; kill -CONT $PPID; exec "$0" basic' "$client"
    [ "$rc" = 0 ] && grep -q "1 stranger came to the door" err && check "another user that has left is dropped" 0 ||
        bad "another user that has left is dropped" "exit code $rc: $(cat out err)"
fi

# ------------------------------------------------------------------------------- singletons
# 0.3 s: so long that the library is seen before the first rank ends.
alone=$top_builddir/tests/launcher/programs/.libs/libmpi_none.so
warned() { [ "$(grep -c 'none of the 2 ranks has joined the job although their program uses libmpi_none.so' err)" = "$1" ]; }
run 20 -n 2 -x LD_PRELOAD="$alone" sh -c 'sleep 0.7'
warned 1 && check "singletons are reported in one line" 0 || bad "singletons are reported in one line" "$(cat err)"
run 20 -n 2 -x LD_PRELOAD="$alone" sh -c "sleep 0.3; [ \$XRUN_RANK = 0 ] || { sleep 0.7; exec $client init; }"
warned 0 && check "one that joins when the first has ended is none" 0 || bad "one that joins when the first has ended is none" "$(cat err)"
one_line() { [ "$(grep -c ' warning: ' err)" = 1 ] && grep -qE "$1 joined the job although (its|their) program uses $2:" err; }
told() { one_line "$2" "$3" && check "$1" 0 || bad "$1" "$(cat err)"; }
run 20 -n 2 "$client" init : -n 2 -x LD_PRELOAD="$alone" sh -c 'sleep 0.7'
told "the second program is so, the first is not" "none of ranks 2 to 3 has" libmpi_none.so
run 20 -n 2 -x LD_PRELOAD="$alone" sh -c 'sleep 0.7' : -n 1 -x LD_PRELOAD="$alone" sh -c 'sleep 0.7'
told "both programs are so" "none of ranks 0 to 1 has" libmpi_none.so
run 20 -n 1 -x LD_PRELOAD="$alone" sh -c 'sleep 0.7' : -n 1 true
told "a program of one rank, when no rank has joined" "rank 0 has not" libmpi_none.so
run 20 -n 2 "$client" init : -n 1 -x LD_PRELOAD="$alone" sh -c 'sleep 0.7'
! grep -q warning err && check "but not beside a program that has" 0 || bad "but not beside a program that has" "$(cat err)"
run 20 -n 2 "$XRUN" -q true
! grep -q warning err && check "a starter of programs of an MPI gets no warning" 0 || bad "a starter of programs of an MPI gets no warning" "$(cat err)"

# ------------------------------------------------------------------------------- --mpi none
run 20 -n 2 --mpi none sh -c 'env | grep -cE "^(PMIX|PMI)_"; :'
[ "$(grep -c '^0$' out)" = 2 ] && check "--mpi none: no rank is served by PMIx or PMI-1" 0 || bad "--mpi none: no rank is served by PMIx or PMI-1" "$(cat out)"
refused "--mpi of a kind that there is not" 2 "give auto or none" --mpi pmi2 $mark

echo "# xrun: $passed passed, $failed failed"
[ $failed -eq 0 ]
