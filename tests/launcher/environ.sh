#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# environ.sh: set the environment of ranks, and options by variables and files.
# Covers --env-file, --env torch, --path, --prefix, variables of options and configuration files.
. "$(dirname "$0")/cases.sh"
mark="touch $work/started"
sorted() { sort out >sorted && mv sorted out; }
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT

# ------------------------------------------------------------------------------- --env-file
printf '# a comment\n\nRK_A=1\nRK_B= two words, "quotes" and = signs \nRK_C=\n' >vars
printf 'RK_A=other' >vars2
show='echo "$RK_A|$RK_B|${RK_C-unset}|${RK_D-unset}"'
run 10 --env-file vars sh -c "$show"; same "--env-file" '1| two words, "quotes" and = signs ||unset'
run 10 --env-file vars -x RK_A=x --env-file=vars2 -x RK_D=d sh -c "$show"; same "-x wins over --env-file" 'x| two words, "quotes" and = signs ||d'
run 10 --env-file vars --env-file vars2 sh -c 'echo $RK_A'; same "of two files, the later" other
run 10 --env-file vars2 sh -c 'echo $RK_A' : --env-file vars sh -c 'echo $RK_A'; sorted; same "a file of each program" "1
other"
refused "--env-file that is missing" 2 '^xrun: error: --env-file no-such: No such file' --env-file no-such $mark
printf 'A=1\nexport B=2\n1=3\n=4\nC\n' >badvars
refused "--env-file with bad lines" 2 'badvars:2: write NAME=value.* \(and 3 more\)' --env-file badvars $mark
printf 'A=1\nB=\0\n' >badvars
refused "--env-file with a NUL" 2 'badvars:2: the line holds a NUL' --env-file badvars $mark
printf 'XRUN_RANK=4\n' >badvars
refused "--env-file with a variable of xrun's" 2 'badvars:1: xrun itself sets' --env-file badvars $mark
refused "-x with a variable of xrun's" 2 "-x is 'XRUN_SIZE=4'; xrun itself sets" -x XRUN_SIZE=4 $mark
PMIX_MINE=7 run 10 -x PMIX_MINE sh -c 'echo $PMIX_MINE'; same "-x passes on what is taken out else" 7

# ----------------------------------------------------------------------------- --env torch
run 10 -n 3 --env torch sh -c 'echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR ${MASTER_PORT:+port}'
sorted; same "--env torch" "0 3 0 3 127.0.0.1 port
1 3 1 3 127.0.0.1 port
2 3 2 3 127.0.0.1 port"
RANK=9 LOCAL_RANK=9 run 10 --env torch env
[ "$(grep -c '^\(LOCAL_\)\?RANK=' out)" = 2 ] && [ "$(grep '^RANK=' out)" = RANK=0 ] && check "each is there once" 0 || bad "each is there once" "$(grep RANK out)"
RANK=9 run 10 sh -c 'echo $RANK $MASTER_PORT'; same "without it they are the user's" 9
MASTER_ADDR=here MASTER_PORT=1 run 10 --env torch sh -c 'echo $MASTER_ADDR $MASTER_PORT'; same "the user's MASTER_ADDR and _PORT stay" "here 1"
run 10 --env torch -x MASTER_PORT=2 -x MASTER_ADDR=there sh -c 'echo $MASTER_ADDR $MASTER_PORT'; same "those of -x, too" "there 2"
run 10 --env torch "$XRUN" -n 2 sh -c 'echo ${RANK-none} ${WORLD_SIZE-none} ${MASTER_PORT-none}'
sorted; same "an xrun below does not hand them on" "none none none
none none none"
run 10 --env torch sh -c 'echo $MASTER_PORT; '"$XRUN"' --env torch sh -c "echo \$MASTER_PORT"'
[ "$(grep -c '^[0-9]*$' out)" = 2 ] && [ "$(sort -u out | wc -l)" = 2 ] && check "and has a port of its own" 0 || bad "and has a port of its own" "$(cat out)"
run 20 -n 2 --env torch -x LD_PRELOAD="$top_builddir/tests/launcher/programs/.libs/libmpi_none.so" sh -c 'sleep 0.3'
[ ! -s err ] && check "a library that uses MPI is no fault with --env torch" 0 || bad "a library that uses MPI is no fault with --env torch" "$(cat err)"
refused "-x RANK beside --env torch" 2 '-x RANK=1: --env torch sets' --env torch -x RANK=1 $mark
refused "bad --env" 2 "--env is 'tensor'; give torch or none" --env tensor $mark
cat >meet.py <<'EOS'
# Every rank comes to rank 0 at MASTER_ADDR:MASTER_PORT with its number and gets the sum of all.
import os, socket, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
at = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    with socket.create_server(at, backlog=size) as server:
        peers = [server.accept()[0] for _ in range(size - 1)]
        total = sum(int(p.makefile().readline()) for p in peers)
        for p in peers:
            p.sendall(b"%d\n" % total)
else:
    end = time.monotonic() + 20
    while True:
        try:
            with socket.create_connection(at) as s:
                s.sendall(b"%d\n" % rank)
                total = int(s.makefile().readline())
            break
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
print(rank, total, flush=True)
EOS
if command -v python3 >/dev/null; then
    run 40 -n 8 --env torch python3 meet.py
    sort -n out >sorted; mv sorted out
    same "a script of 8 ranks meets on a socket by them" "$(for r in 0 1 2 3 4 5 6 7; do echo $r 28; done)"
fi

# ------------------------------------------------------------------------- --path, --prefix
mkdir -p first/bin second sub/rel
for d in first/bin second sub/rel; do printf '#!/bin/sh\necho %s\n' $d >$d/rk-tool; chmod +x $d/rk-tool; done
printf '#!/bin/sh\necho mine\n' >second/true; chmod +x second/true
run 10 --path "$work/none:$work/second" rk-tool; same "--path" second
run 10 --path "$work/second" true; same "--path comes before PATH" mine
run 10 --path rel --wdir sub rk-tool; same "a relative --path is seen from wdir" sub/rel
run 10 --path "$work/second" rk-tool : --path "$work/first/bin" rk-tool; sorted; same "--path of each program" "first/bin
second"
refused "not in --path" 127 'no program nope in /no:/such, in PATH, nor in ' --path /no:/such nope
run 10 --prefix "$work/first" rk-tool; same "--prefix finds programs" first/bin
LD_LIBRARY_PATH=/old run 10 --prefix "$work/first" sh -c 'echo "$PATH"; echo "$LD_LIBRARY_PATH"'
same "--prefix sets PATH and LD_LIBRARY_PATH" "$work/first/bin:$PATH
$work/first/lib:/old"
refused "a relative --prefix" 2 "--prefix is 'first'; give a path from /" --prefix first $mark

# -------------------------------------------------------------------- variables and files
XRUN_N=3 run 10 echo x; same "XRUN_N" "x
x
x"
XRUN_N=3 run 10 -n 1 echo x; same "the command line wins" x
# A command line may be right only together with a variable.
XRUN_TIMEOUT=60 run 10 --timeout-traces true; check "XRUN_TIMEOUT and --timeout-traces" 0
XRUN_N=4 run 10 --stdin 2 true; check "XRUN_N and --stdin" 0
XRUN_N=4 run 10 --pty 3 true; check "XRUN_N and --pty" 0
XRUN_MAP_BY=ppr:3:node run 10 --pty 2 true; check "XRUN_MAP_BY and --pty" 0
XRUN_N=2 refused "XRUN_N and a rank too many" 2 '--pty is 3, but the ranks are 0 to 1' --pty 3 $mark
XRUN_TAG_OUTPUT=yes run 10 echo x; same "a flag" "[0] x"
XRUN_TAG_OUTPUT=0 run 10 echo x; same "a flag that is off" x
XRUN_WDIR=$work/sub run 10 pwd : --wdir first pwd; sorted; same "one that is each program's" "$work/first
$work/sub"
XRUN_ENV_FILE=vars run 10 sh -c 'echo $RK_A' : --env-file vars2 sh -c 'echo $RK_A$RK_B'; sorted; same "XRUN_ENV_FILE is for those that have none" "1
other"
XRUN_X='RK_A=1 RK_B="two words" RK_C' RK_C=c run 10 -x RK_A=2 sh -c 'echo "$RK_A|$RK_B|$RK_C"' : sh -c 'echo "$RK_A|$RK_B|$RK_C"'
sorted; same "XRUN_X is for all, and -x wins over it" "1|two words|c
2|two words|c"
XRUN_X='RK_A="' refused "XRUN_X with an open quote" 2 'XRUN_X: -x is .RK_A=".: ' $mark
XRUN_X='RK_A=1 2=3' refused "a bad word in XRUN_X" 2 "XRUN_X: -x is '2=3'; write -x NAME" $mark
XRUN_TIMEOUT=0.3 run 10 sleep 60; check "XRUN_TIMEOUT" 124 'within 0.3 s'
XRUN_TIMEOUT=soon refused "a bad variable" 2 "XRUN_TIMEOUT: --timeout is 'soon'; give seconds" $mark
XRUN_TAG_OUTPUT=maybe refused "a bad flag" 2 "XRUN_TAG_OUTPUT: --tag-output is 'maybe'; give on or off" $mark
# Each option of --help, but those that only print something: what makes no sense for it is refused in its name.
n=0
for option in $("$XRUN" --help | sed -n 's/^  \(-.*\)/\1/p' | sed 's/ [^-].*//; s/^-[a-z], --/--/; s/,.*//'); do
    case $option in --status | --topo | --version | --help | -env | -genv) continue ;; esac
    name=XRUN_$(printf %s "${option#-}" | sed 's/^-//; y/abcdefghijklmnopqrstuvwxyz-/ABCDEFGHIJKLMNOPQRSTUVWXYZ_/')
    value=
    [ $option != -x ] || value='"'
    env "$name=$value" "$XRUN" true >out 2>err
    [ $? = 2 ] && grep -qE "^xrun: error: $name: -[a-z-]* is ('$value'|empty)" err || bad "$name" "$(cat err)"
    n=$((n + 1))
done
[ $n -ge 30 ] && good "each of $n options has its variable" || bad "each of $n options has its variable" "too few are seen"
XRUN_TIMOUT=5 run 10 true; check "an unknown variable: a warning with the nearest" 0 'XRUN_TIMOUT is not a variable.*did you mean XRUN_TIMEOUT'
XRUN_TIMEOUT=bad run 10 --help; check "help in spite of a bad variable" 0
XRUN_TIMEOUT=50 XRUN_BIND=none run 10 sh -c 'env | grep -c "^XRUN_\(TIMEOUT\|BIND\)="; true'; same "ranks do not get them" 0
XRUN_N=2 run 10 "$XRUN" echo x; same "and an xrun below does not" "x
x"
run 10 -x XRUN_N=2 "$XRUN" echo x; same "but by -x" "x
x"
run 10 "$XRUN" sh -c 'echo $XRUN_SIZE'
[ ! -s err ] && same "a rank's own are not taken for options" 1 || bad "a rank's own are not taken for options" "$(cat err)"
printf 'RANK_LOG = info\nXRUN_N = 2 # no comment here\n' >rank.conf
RANK_CONF=$work/rank.conf refused "a bad line of a file" 2 "rank.conf:2: XRUN_N: -n is '2 # no comment here'" $mark
printf '# ours\nXRUN_N = 2\nXRUN_TAG_OUTPUT=on\nXRUN_BNID = core\n' >rank.conf
RANK_CONF=$work/rank.conf run 10 echo x
sorted; same "a configuration file" "[0] x
[1] x"
grep -q 'rank.conf:4: XRUN_BNID is not a variable of xrun; did you mean XRUN_BIND' err && [ "$(wc -l <err)" = 1 ] && good "an unknown one there" || bad "an unknown one there" "$(cat err)"
RANK_CONF=$work/rank.conf XRUN_TAG_OUTPUT=off run 10 -n 1 echo x; same "environment before file, command line before both" x
mkdir home; printf 'XRUN_N = 3\n' >home/.rank.conf
(failed=0; unset RANK_CONF; HOME=$work/home run 10 echo x; same "the user's file" "x
x
x"; exit $failed) || failed=$((failed + 1))
# The system's, where the build would search it: over that folder, and for this process alone, lies one of ours.
etc=$(sed -n 's/^sysconfdir = //p' "$top_builddir/Makefile") prefix=$(sed -n 's/^prefix = //p' "$top_builddir/Makefile")
etc=${etc/'${prefix}'/$prefix}
mkdir etc
with_system() { # COMMAND...: as xrun, without RANK_CONF, which would replace both files
    timeout -k 5 $((10 * slow)) unshare $as_root -m sh -c 'mount --bind "$1" "$2" && shift 2 && exec env -u RANK_CONF HOME="$0" "$@"' \
        "$work/home" "$work/etc" "$etc" "$@" >out 2>err </dev/null
    rc=$?
}
as_root=-r
[ "$(id -u)" != 0 ] || as_root=
if [ -d "$etc" ] && unshare $as_root -m mount --bind etc "$etc" 2>err; then
    new_case
    printf 'RANK_SPIN = 5ms\nRANK_EAGER_MAX = 3K\nXRUN_N = 2\nXRUN_TAG_OUTPUT = on\n' >etc/rank.conf
    printf 'RANK_SPIN = 7ms\n' >home/.rank.conf
    with_system "$XRUN" echo x; sorted; same "the system's file" "[0] x
[1] x"
    printf 'XRUN_N = 3\nRANK_SPIN = 7ms\n' >home/.rank.conf
    with_system "$XRUN" echo x; sorted; same "the user's before the system's" "[0] x
[1] x
[2] x"
    with_system env XRUN_TAG_OUTPUT=off "$XRUN" -n 1 "$top_builddir/rankinfo" --conf
    awk '/^  RANK_/ { name = $1 "=" $3 } /^      from: / && name ~ /^RANK_(SPIN|EAGER_MAX)=/ { print name, $2 }' out | sort >values
    [ "$(cat values)" = "RANK_EAGER_MAX=3K $etc/rank.conf
RANK_SPIN=7ms $work/home/.rank.conf" ] && check "ranks read both" 0 '' || bad "ranks read both" "$(cat values)"
    with_system env RANK_CONF=/dev/null "$XRUN" -n 1 echo x; same "RANK_CONF stands for both" x
    printf '\nRANK_SPIN = soon\n' >etc/rank.conf
    with_system "$top_builddir/rankinfo" --conf
    check "a bad line of the system's file" 1 "$etc/rank.conf:2: RANK_SPIN is 'soon'"
    rm etc/rank.conf
    printf 'XRUN_N = 3\n' >home/.rank.conf
    with_system "$XRUN" echo x; same "a system without one" "x
x
x"
else
    echo "ok - the system's file # SKIP nothing can be put over $etc: $(cat err)"
fi
RANK_CONF=$work/none refused "a file that is not there" 2 'RANK_CONF names .*/none' $mark

# ------------------------------------------------------------------------- bash completion
complete_words() { # WORDS...: complete the last one of a command line of xrun
    bash --norc -c '
        . "$0"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _xrun 2>/dev/null
        [ ${#COMPREPLY[@]} = 0 ] || printf "%s\n" "${COMPREPLY[@]}"' "$top_srcdir/completion/xrun" "$XRUN" "$@"
}
completes() { # NAME WANTED WORDS...
    local name=$1 wanted=$2 got
    shift 2
    got=$(complete_words "$@" | sort | tr '\n' ' ')
    [ "$got" = "$wanted" ] && good "$name" || bad "$name" "got '$got', not '$wanted'"
}
: >err
completes "completion of an option" "--tag-output " --tag
complete_words - | sort >got
"$XRUN" --help | sed -n 's/^  \(-[^ ,]*\(, -[^ ,]*\)*\).*/\1/p' | tr -s ', ' '\n' | sort >wanted
cmp -s got wanted && [ "$(wc -l <got)" -ge 15 ] && good "completion has all options" || bad "completion has all options" "$(diff got wanted)"
completes "completion of a value" "core " --bind c
completes "completion of a value behind =" "core " --bind = c
completes "completion right behind =" "none torch " --env =
completes "completion of a folder" "second " -n 4 --wdir sec
completes "completion of an interface" "lo " --if lo
RK_LONG_NAME=1 completes "which is no variable" "" --if RK_LONG_NAME
RK_LONG_NAME=1 completes "completion of a variable" "RK_LONG_NAME " -x RK_LONG_N
printf '127.0.0.9 rk-one rk-two\n127.0.0.8 rk-two other\n' >known
HOSTFILE=$work/known completes "completion of a host" "rk-one rk-two " --host rk-
HOSTFILE=$work/known completes "completion of another" "a:2,rk-two " -H a:2,rk-t
completes "completion of a file" "vars vars2 " --env-file vars
completes "no options behind the program" "" -n 4 ls --tag
completes "options again behind a :" "--wdir " ls : --wd
mkdir cbin; : >cbin/rk-own-program-xyz; chmod +x cbin/rk-own-program-xyz
PATH=$PATH:$work/cbin completes "completion of a program" "rk-own-program-xyz " -n 2 rk-own-pr
echo "# environ: $passed passed, $failed failed"
[ $failed -eq 0 ]
