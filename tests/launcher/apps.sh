#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# apps.sh: run several programs in one job.
# Checks which rank runs which program, on which host, with which environment, and that errors name their program.
. "$(dirname "$0")/cases.sh"
client=$top_builddir/tests/launcher/programs/pmix_client
mark="touch $work/started"

say='echo $XRUN_RANK/$XRUN_SIZE "$@" ${FOO-none} ${BAR-none} $(basename "$PWD")'
mkdir one two
sorted() { sort out >sorted && mv sorted out; }

FOO=env run 10 -n 2 --wdir one sh -c "$say" sh a : -n 3 --wdir two -x FOO=1 -x BAR=b=c sh -c "$say" sh b y : --wdir . sh -c "$say" sh c
sorted; same "three programs: ranks, arguments, directories, variables" "0/6 a env none one
1/6 a env none one
2/6 b y 1 b=c two
3/6 b y 1 b=c two
4/6 b y 1 b=c two
5/6 c env none $(basename "$work")"
printf '#!/bin/sh\necho only in two\n' >two/tool; chmod +x two/tool
run 10 --wdir one echo x : --wdir two tool
sorted; same "a program is searched in its own directory" "only in two
x"
mkdir bin; printf '#!/bin/sh\necho own PATH\n' >bin/rk-own-tool; chmod +x bin/rk-own-tool
run 10 echo x : -x PATH="$work/bin:$PATH" rk-own-tool
sorted; same "and in its own PATH" "own PATH
x"
run 10 -x FOO=1 -x FOO=2 sh -c 'env | grep FOO'; same "of a name that comes twice, the last counts" "FOO=2"
FOO=outer run 10 -x FOO=inner sh -c 'env | grep FOO'; same "and it is there once" "FOO=inner"
printf 'localhost slots=5\nno-such-host slots=6\n' >universe # no rank needs the second host
run 20 --bind none -n 2 --hostfile universe "$client" universe; sed -i /ok/d out; same "the universe is the sum of the slots" "11
11"
run 20 --bind none -n 3 --host localhost:2 "$client" universe; sed -i /ok/d out; same "and not less than there are ranks" "3
3
3"
run 20 -n 3 "$client" basic : -n 5 "$client" basic
[ "$(grep -cx ok out)" = 8 ] && check "the ranks of two programs are one PMIx job" 0 || bad "the ranks of two programs are one PMIx job" "$(cat out)"
run 20 -n 2 "$client" app : -n 1 "$client" app : -n 2 "$client" app
grep rank out | sort >sorted; mv sorted out; same "PMIx gives each its own program" "rank 0 app 0 app rank 0 local rank 0 of 3 apps
rank 1 app 0 app rank 1 local rank 1 of 3 apps
rank 2 app 1 app rank 0 local rank 2 of 3 apps
rank 3 app 2 app rank 0 local rank 3 of 3 apps
rank 4 app 2 app rank 1 local rank 4 of 3 apps"
run 10 -n 2 sleep 60 : -n 2 sh -c 'exit 9'
check "a failure of a later program ends the job" 9 'rank [23] .* exited with code 9'
args=()
for i in $(seq 200); do args+=(: -x "FOO=$i" sh -c 'echo $XRUN_RANK $FOO'); done
run 30 sh -c 'echo 0 0' "${args[@]}"
sort -n out | awk '$1 == NR - 1 && $2 == $1 { n++ } END { print n }' >n && mv n out
same "201 programs" 201

refused "a missing later program" 127 'program 2: there is no program nope' $mark : nope
refused "a missing first program" 127 'program 1: there is no program nope' nope : $mark
refused "a bad option of a later program" 2 "program 3: -n is 'x'" $mark : $mark : -n x $mark
refused "an option for the whole job after a :" 2 'program 2: --timeout is for the whole job.*before the first program' $mark : --timeout 5 $mark
refused "a : and nothing after it" 2 'program 2: no program given' $mark :
refused "a bad directory of a later program" 2 'program 2: the working directory /no/such' $mark : --wdir /no/such $mark
refused "-x of a later program, not set" 2 'program 2: -x RK_NOT_SET' $mark : -x RK_NOT_SET $mark
refused "a bad RANK_ value of a later program" 2 "RANK_LOG is 'loud'" $mark : -x RANK_LOG=loud $mark
printf '#!/no/such/interpreter\n' >badshebang; chmod +x badshebang
run 10 true : ./badshebang
check "a later program that cannot be executed" 127 'program 2: cannot execute .*/badshebang'
run 10 -x RANK_LGO=1 true : -x FOO=1 true : -x RANK_LOG=info true
[ "$(grep -c RANK_LGO err)" = 1 ] && check "an error in one is reported once" 0 || bad "an error in one is reported once" "$(cat err)"

echo "# apps: $passed passed, $failed failed"
[ $failed -eq 0 ]
