#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# output.sh: route the output and the input of ranks.
# Covers --output-dir, also on a full disk, --quiet, --stdin, --pty, colours, many lines of many ranks, and stopped readers.
. "$(dirname "$0")/cases.sh"
. "$top_srcdir/tests/launcher/output_rate.sh"
client=$top_builddir/tests/launcher/programs/pmix_client
mark="touch $work/started"
sorted() { sort out >sorted && mv sorted out; }

# ----------------------------------------------------------------------------- --output-dir
head -c 3000000 /dev/urandom >blob
run 20 -n 11 --output-dir new/dir sh -c 'cat blob; echo "to err $XRUN_RANK" >&2'
n=0
for r in 00 01 02 03 04 05 06 07 08 09 10; do
    cmp -s blob new/dir/rank.$r.out && [ "$(cat new/dir/rank.$r.err)" = "to err $((10#$r))" ] && n=$((n + 1))
done
[ "$(ls new/dir | wc -l)" = 22 ] && [ ! -s out ] && echo $n >out
same "--output-dir: a file a rank and stream, byte-exact" 11
echo "longer than what comes" >new/dir/rank.00.out
run 10 -n 11 --output-dir new/dir printf x
[ "$(cat new/dir/rank.00.out)" = x ] && [ ! -s new/dir/rank.03.err ] && check "what was there is replaced" 0 || bad "what was there is replaced" "$(head -c 50 new/dir/rank.00.out)"
run 10 -n 2 --output-dir lab --tag-output sh -c 'echo one; printf two'
[ "$(cat lab/rank.1.out)" = "[1] one
[1] two" ] && check "labels there, too" 0 || bad "labels there, too" "$(cat lab/rank.1.out)"
run 10 -n 2 --output-dir bad sh -c 'echo word; exit 3'
[ "$(cat bad/rank.0.out bad/rank.1.out | sort -u)" = word ] && check "errors of the job stay on stderr" 3 '^xrun: error: rank [01] ' || bad "errors of the job stay on stderr" "$(ls bad)"
: >plain
refused "--output-dir under a file" 2 '--output-dir plain/x: cannot make the directory plain: Not a directory|--output-dir plain/x: cannot make the directory plain' --output-dir plain/x $mark
mkdir -p pipes; mkfifo pipes/rank.1.err
refused "--output-dir with a pipe in the place of a file" 2 'cannot write pipes/rank.1.err: ' -n 2 --output-dir pipes $mark

full() { # NAME PREFIX...: ranks 1 and 2 write more than fits, rank 0 little; all end well
    local name=$1
    shift
    new_case
    "$@" timeout -k 5 20 "$XRUN" -n 3 --bind none --output-dir full sh -c '[ $XRUN_RANK = 0 ] || cat blob blob; echo end $XRUN_RANK >>ends' >out 2>err </dev/null
    rc=$?
    if [ "$(grep -c 'cannot write' err)" != 1 ] || [ "$(wc -l <err)" != 1 ]; then
        bad "$name" "not one line: $(head -n 3 err)"
    elif [ "$(sort -u ends | wc -l)" != 3 ]; then
        bad "$name" "the job did not go on"
    else
        check "$name" 74 'cannot write full/rank\.[12]\.out: .*; output is lost, the job goes on'
    fi
    rm -rf ends full/*
}
limited() { (ulimit -f 1000; trap '' XFSZ; exec "$@"); }
mkdir full
full "files that may grow no more" limited
if unshare -m true 2>/dev/null; then
    small() { unshare -m sh -c 'mount -t tmpfs -o size=1m none full && exec "$@"' sh "$@"; }
    full "a full disk" small
fi
new_case
(ulimit -f 1000; timeout 20 "$XRUN" -n 2 --output-dir full sh -c '[ $XRUN_RANK = 0 ] || { cat blob; exit 5; }' >out 2>err); rc=$?
check "a failing rank's code goes before that of lost output" 5
if [ "$(id -u)" != 0 ]; then
    mkdir closed; chmod a-w closed
    refused "--output-dir without permission" 2 'cannot write closed/rank.0.out: Permission denied' --output-dir closed $mark
fi

# ---------------------------------------------------------------------------------- --stdin
new_case
timeout 30 "$XRUN" -n 5 --stdin all sha256sum <blob >out 2>err; rc=$?
[ "$(sort out | uniq -c | awk '{ print $1, $2 }')" = "5 $(sha256sum <blob | cut -c1-64)" ] && check "--stdin all" 0 || bad "--stdin all" "$(cat out)"
new_case
cat blob | timeout 30 "$XRUN" -n 3 --stdin all sh -c '[ $XRUN_RANK != 1 ] || { until [ -e later ]; do read -t 0.01 x </dev/null || sleep 0.01; done; }
    sha256sum; [ $XRUN_RANK = 1 ] || : ' >out 2>err &
p=$!
: >later
wait $p; rc=$?
[ "$(sort out | uniq -c | awk '{ print $1, $2 }')" = "3 $(sha256sum <blob | cut -c1-64)" ] && check "--stdin all with one that begins late" 0 || bad "--stdin all with one that begins late" "$(cat out)"
new_case
timeout 30 "$XRUN" -n 4 --stdin all sh -c '[ $XRUN_RANK -ge 2 ] || exec sha256sum; [ $XRUN_RANK = 3 ] || head -c 100000 >/dev/null' <blob >out 2>err; rc=$?
[ "$(sort out | uniq -c | awk '{ print $1, $2 }')" = "2 $(sha256sum <blob | cut -c1-64)" ] && check "--stdin all with two that do not read on" 0 || bad "--stdin all with two that do not read on" "$(cat out)"
new_case
yes | timeout 20 "$XRUN" -n 3 --stdin all true >out 2>err; rc=$?
check "--stdin all without a reader" 0
new_case
timeout 20 "$XRUN" -n 3 --stdin 2 sh -c 'echo $XRUN_RANK $(sha256sum | cut -c1-64)' <blob >out 2>err; rc=$?
none=$(sha256sum </dev/null | cut -c1-64)
sorted; same "--stdin of a rank" "0 $none
1 $none
2 $(sha256sum <blob | cut -c1-64)"
new_case
{ timeout 20 "$XRUN" -n 2 --stdin none sh -c 'wc -c' >out 2>err; echo $? >code; cat >rest; } <blob
rc=$(cat code); sorted
cmp -s rest blob && same "--stdin none leaves it all" "0
0" || bad "--stdin none leaves it all" "$(wc -c <rest) bytes are left"
new_case
timeout $((20 * slow)) "$XRUN" -n 2 sh -c 'wc -c' >out 2>err <.; rc=$?
sorted; same "an input that cannot be read is its end" "0
0" && grep -q '^xrun: error: cannot read standard input: Is a directory; it ends here' err && good "and it is reported" || bad "and it is reported" "it is not"
timeout $((20 * slow)) "$XRUN" -n 2 sh -c 'wc -c' >out 2>err 0>/dev/null; rc=$?
sorted; same "one that is for writing only, as nohup leaves it" "0
0" && ! grep -q "standard input" err && good "needs no report" || bad "needs no report" "it is"
refused "--stdin of no rank" 2 '--stdin is 4, but the ranks are 0 to 3' --stdin 4 -n 4 $mark
refused "bad --stdin" 2 "--stdin is '-1'; give all, none or a rank" --stdin -1 $mark

# Another process may read from the same pipe: xrun opens it a second time, and only that descriptor is nonblocking.
new_case
mkfifo shared
"$XRUN" -q sh -c 'echo ready; exec cat' <shared >out 2>err & xpid=$!
exec 9>shared
waits() { # descriptor: does it? (O_NONBLOCK)
    local flags
    flags=$(sed -n 's/^flags:\t*//p' "/proc/$xpid/fdinfo/$1")
    [ $((8#$flags & 8#4000)) = 0 ]
}
opened() { # how many of the pipe's descriptors wait, and how many do not
    local f yes=0 no=0
    for f in /proc/$xpid/fd/*; do
        [ "$(readlink "$f")" = "$PWD/shared" ] || continue
        if waits "${f##*/}"; then yes=$((yes + 1)); else no=$((no + 1)); fi
    done
    echo "$yes $no"
}
twice() { [ "$(opened)" = "1 1" ]; }
until_true 10 ready 1 && until_true 5 twice && good "the user's input is left as it is" || bad "the user's input is left as it is" "$(opened)"
echo word >&9
exec 9>&-
wait $xpid; rc=$?
grep -v ready out >sorted; mv sorted out; same "and read from another descriptor" word

# ------------------------------------------------------------------------------------ --pty
run 10 -n 2 --pty 1 sh -c 'if [ -t 0 ] && [ -t 1 ] && [ -t 2 ]; then echo $XRUN_RANK at a terminal; else echo $XRUN_RANK at none; fi'
tr -d '\r' <out >sorted; sort sorted >out; same "--pty" "0 at none
1 at a terminal"
new_case
printf 'one\ntwo' | timeout 10 "$XRUN" -n 2 --pty 1 sh -c 'test $XRUN_RANK = 0 || stty -echo; cat; echo ended' >out 2>err; rc=$?
tr -d '\r' <out >sorted; sort sorted >out
grep -q 'two' out && [ "$(grep -c ended out)" = 2 ] && check "--pty reads to the end of the input" 0 || bad "--pty reads to the end of the input" "$(cat out)"
run 10 --pty 0 sh -c 'ps -o tpgid= -o pgid= -p $$ | { read -r a b; [ "$a" = "$b" ] && echo foreground; }'
[ ! -x /bin/ps ] || { tr -d '\r' <out >sorted; mv sorted out; same "--pty is the rank's controlling terminal" foreground; }
run 10 -n 2 --pty 0 sh -c 'exit $XRUN_RANK'; check "a failure beside --pty" 1
run 10 -n 2 --pty 0 sh -c 'sleep 60 & exit 4'; check "a failure at --pty" 4
begin -n 2 --pty 1 sh -c 'echo ready; sleep 60 & sleep 60'; until_true 5 ready 2; kill -9 "$xpid"; wait "$xpid" 2>/dev/null
clean "kill -9 of xrun with --pty" && good "kill -9 of xrun with --pty"
refused "--pty of no rank" 2 '--pty is 2, but the ranks are 0 to 1' --pty 2 -n 2 $mark

parts=$top_srcdir/tests/launcher/programs
if command -v python3 >/dev/null; then
    new_case
    timeout -k 5 30 python3 "$parts/terminal.py" keys "$XRUN" -n 2 --pty 1 python3 "$parts/terminal_return.py" >out 2>err; rc=$?
    [ -s out ] && sed -i 's/.* //' out
    same "keys, ^C and window size go to the program at --pty; the terminal comes back" 130
    new_case
    timeout -k 5 30 python3 "$parts/terminal.py" killed "$XRUN" --pty 0 sh -c 'echo ready; sleep 60' >out 2>err; rc=$?
    sed -i 's/.* //' out; same "TERM ends a job with --pty" 143
    for how in jobs jobs-pty; do
        [ $how = jobs ] && what="" || what="--pty 0"
        new_case
        RK_LIMIT=$((60 * slow)) timeout -k 5 $((70 * slow)) python3 "$parts/terminal.py" $how "$XRUN" $what sh -c 'echo ready; while read -r l; do echo "got $l"; done; exit 5' >out 2>err; rc=$?
        sed -i 's/.* //' out; same "a terminal is read again after fg${what:+, $what}" 5
    done
    new_case
    timeout -k 5 30 python3 "$parts/terminal.py" colour "$XRUN" -n 2 --tag-output sh -c 'echo x; exit 3' >out 2>err; rc=$?
    grep -qF '\x1b[31m[0]\x1b[0m x' out && grep -qF '\x1b[1mxrun: error: rank' out && check "colours on a terminal" 0 || bad "colours on a terminal" "$(cat out)"
    new_case
    timeout -k 5 30 python3 "$parts/terminal.py" no-colour "$XRUN" -n 2 --tag-output sh -c 'echo x; exit 3' >out 2>err; rc=$?
    grep -qF '[0] x' out && ! grep -qF '\x1b' out && check "none with NO_COLOR" 0 || bad "none with NO_COLOR" "$(cat out)"
    new_case
    timeout -k 5 30 python3 "$parts/terminal.py" prompt "$XRUN" -n 2 sh -c '
        if [ $XRUN_RANK = 0 ]; then printf "name? "; until [ -e said ]; do sleep 0.02; done; printf "again? "; exit 3; fi
        until [ -e shown ]; do sleep 0.02; done; echo other >&2; : >said; sleep 60' >out 2>err; rc=$?
    grep -qF 'name? \r\nother\r\nagain? \r\n\x1b[1mxrun: error: rank 0' out && check "an open line of stdout ends before one of stderr on the same terminal" 0 ||
        bad "an open line of stdout ends before one of stderr on the same terminal" "$(cat out)"
fi
run 10 -n 2 --tag-output sh -c 'echo x; exit 3'
! grep -q $'\033' out err && check "none elsewhere" 3 || bad "none elsewhere" "$(cat out err)"

# ---------------------------------------------------------------------------------- --quiet
run 10 -q -x RANK_LGO=1 true
[ ! -s err ] && check "--quiet: no warnings" 0 || bad "--quiet: no warnings" "$(cat err)"
run 10 --quiet -n 2 sh -c 'exit 3'
check "--quiet: errors are printed" 3 'rank [01] .* exited with code 3'
begin --quiet sh -c 'echo ready; sleep 60'; until_true 5 ready 1; kill -TERM "$xpid"; reap 5
[ ! -s err ] && check "--quiet: nothing of signals" 143 || bad "--quiet: nothing of signals" "$(cat err)"

# ------------------------------------------------------------- much output, and slow readers
paced() {
    run 60 -n 32 $opts "$lines" "$@"
    [ $to = stdout ] || cat many/*.out >out
}
for to in stdout files; do
    opts=; [ $to = stdout ] || opts='--output-dir many'
    in_pace paced
    check "32 ranks x 10,000 lines a second arrive byte-exact ($to)" 0
    [ -z "$late" ] && good "and at that rate ($to): $ms ms for 2 s" || bad "and at that rate ($to)" "$late"
done
rm -rf many
# As fast as they can: then pages change hands, where the user's end can take them.
for to in pipe file append; do
    new_case
    case $to in
    pipe) timeout -k 5 $((60 * slow)) "$XRUN" -n 3 "$lines" flood 60000 2>err | "$lines" check 3 60000 flood >verdict
          rc=${PIPESTATUS[0]} ;;
    file) timeout -k 5 $((60 * slow)) "$XRUN" -n 3 "$lines" flood 60000 2>err >out; rc=$?; "$lines" check 3 60000 flood <out >verdict ;;
    append) : >out; timeout -k 5 $((60 * slow)) "$XRUN" -n 3 "$lines" flood 20000 2>err >>out; rc=$?; "$lines" check 3 20000 flood <out >verdict ;;
    esac
    [ ! -s verdict ] || rc="wrong lines: $(cat verdict)"
    check "long and short lines of ranks that flood arrive byte-exact ($to)" 0
done
# The user's reader goes away in the middle.
new_case
timeout -k 5 20 "$XRUN" -n 3 "$lines" flood 1000000 2>err | head -c 3000000 >out; rc=${PIPESTATUS[0]}
[ "$(stat -c %s out)" = 3000000 ] && [ "$rc" -ne 124 ] && rc=0; check "and a reader that goes away ends it" 0
rm -f out
# Ranks flood and the output is not read; their PMIx clients finish all the same. Then the output is read.
new_case
rm -f clients.*
timeout -k 5 40 "$XRUN" -n 4 sh -c 'head -c 20000000 /dev/zero & '"$client"' basic >clients.$XRUN_RANK; wait' 2>err |
    { for i in 0 1 2 3; do until_true 15 grep -qsx ok clients.$i || echo stalled >>stalled; done; wc -c >bytes; }
rc=${PIPESTATUS[0]}
[ ! -e stalled ] && [ "$(cat bytes)" = 80000000 ] && check "the output is not read: PMIx goes on, no byte is lost" 0 || bad "the output is not read: PMIx goes on, no byte is lost" "$(cat bytes) bytes, $(cat stalled 2>/dev/null | wc -l) stalled"

# A process outside the job has a rank's pipe and writes without a pause: the job ends all the same.
begin sh -c 'echo ready $$; until [ -e go ]; do sleep 0.02; done; echo last'
until_true 10 ready 1
pid=$(sed -n 's/ready //p' out)
(while echo outside; do read -rt 0.02 <> <(:); done) >"/proc/$pid/fd/1" 2>/dev/null &
outside=$!
until_true 10 grep -qs outside out || bad "a process outside writes" "nothing comes"
touch go
reap 10
kill $outside 2>/dev/null
wait $outside 2>/dev/null
[ "$(grep -c last out)" = 1 ] && check "a job ends though a process outside writes on" 0 || bad "a job ends though a process outside writes on" "rc $rc, $(grep -c last out) last words"

echo "# output: $passed passed, $failed failed"
[ $failed -eq 0 ]
