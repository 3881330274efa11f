#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# salloc.sh: run xrun inside a real Slurm on two hosts, by salloc and sbatch.
# Hosts and slots come from Slurm, one srun starts the agents, and however a job ends nothing of it is left. See slurm.sh.
. "$(dirname "$0")/../inside.sh"
if [ -z "${RK_INSIDE:-}" ]; then
    (part=all; export part; inside_slurm 2 "xrun inside Slurm")
    rc=$?
    [ $rc != 77 ] || exit 77
    # Where Slurm gives single cores away: hosts with two, which both are this machine's.
    if [ "$(nproc)" -ge 2 ]; then
        (part=cores HOSTS_NO_PIN=1 SLURM_TASKS=task/affinity; export part HOSTS_NO_PIN SLURM_TASKS; inside_slurm 2 "the cores that Slurm gives" 2) || rc=1
    else
        echo "ok - the cores that Slurm gives # SKIP this machine has one"
    fi
    exit $rc
fi
here="hosta hostb"
. "$top_srcdir/tests/elsewhere/salloc_common.sh"
# ------------------------------------------------------------------------- the cores that Slurm gives
if [ "$part" = cores ]; then
    cores='echo $XRUN_RANK $(hostname) $(taskset -cp $$ | sed "s/.*: //")'
    salloc 30 "-N2 -n2" "$XRUN" -q -n 4 --map-by node sh -c "$cores"
    verdict "a core on each host" 0
    [ "$(sort out | cut -d' ' -f 1,2 | tr '\n' ' ')" = "0 hosta 1 hostb 2 hosta 3 hostb " ] && ! grep -q '[0-9][,-][0-9]' out &&
        good "and no other" || bad "and no other" "$(cat out)"
    salloc 30 "-N2 -n4" "$XRUN" -q -n 4 sh -c "$cores"
    verdict "two cores on each host" 0
    [ "$(sort out | tr '\n' ' ')" = "0 hosta 0 1 hosta 1 2 hostb 0 3 hostb 1 " ] && good "each rank has its own" ||
        bad "each rank has its own" "$(cat out)"
    batch "-N2 -n2" "$XRUN -q -n 2 sh -c '$cores'"
    batch_ends 20
    verdict "a core on each, in a script" "0"
    [ "$(sort out | cut -d' ' -f 1,2 | tr '\n' ' ')" = "0 hosta 1 hostb " ] && ! grep -q '[0-9][,-][0-9]' out &&
        good "and no other, in a script" || bad "and no other, in a script" "$(cat out)"
    finish
fi

# ------------------------------------------------------------------------- ranks and their hosts
cat >where <<'SH'
#!/bin/bash
# Which processes are this one's ancestors?
p=$$ under=
while [ "$p" -gt 1 ]; do
    read -r line <"/proc/$p/stat"
    name=${line#*(}
    case ${name%%)*} in slurmstepd*) under=step ;; xrun) under=${under:-xrun} ;; esac
    set -- ${line##*) }
    p=$2
done
echo "$XRUN_RANK $XRUN_SIZE $XRUN_LOCAL_RANK $XRUN_NODE_RANK $XRUN_NODES $(hostname) $under"
SH
# Each process called srun reports itself.
mkdir counted
printf '#!/bin/sh\necho "$@" >>"%s"\nexec "%s" "$@"\n' "$PWD/sruns" "$(command -v srun)" >counted/srun
chmod +x where counted/srun
salloc 30 "-N2 -n4 --ntasks-per-node=2" env PATH="$PWD/counted:$PATH" "$XRUN" -q "$PWD/where"
verdict "salloc: four ranks on two hosts" 0
[ "$(grep -c . sruns)" = 1 ] && good "one srun starts them" || bad "one srun starts them" "$(cat sruns)"
[ "$(sort out)" = "0 4 0 0 2 hosta step
1 4 1 0 2 hosta step
2 4 0 1 2 hostb step
3 4 1 1 2 hostb step" ] && good "all of them in a step of Slurm's" || bad "all of them in a step of Slurm's" "$(cat out)"
rm sruns
batch "-N2 -n4 --ntasks-per-node=2" "PATH=$PWD/counted:\$PATH $XRUN -q -n 4 $PWD/where" 'echo steps $(squeue -h -s -j $SLURM_JOB_ID -o %i | grep -c "\.[0-9]")'
batch_ends 20
verdict "sbatch: four ranks on two hosts" 0
[ "$(grep -v steps out | sort | cut -d' ' -f 1-6 | tr '\n' ,)" = "0 4 0 0 2 hosta,1 4 1 0 2 hosta,2 4 0 1 2 hostb,3 4 1 1 2 hostb," ] &&
    good "slots are Slurm's" || bad "slots are Slurm's" "$(cat out)"
[ "$(grep -c . sruns)" = 1 ] && good "one srun for the other host" || bad "one srun for the other host" "$(cat sruns)"
salloc 30 "-N2 -n3" sh -c "'$XRUN' -q -n 2 --map-by node hostname; '$XRUN' -q -n 1 --host hostb hostname; '$XRUN' -q -n 2 --agent ssh --map-by node hostname"
verdict "several in one allocation" 0
[ "$(sort out | tr '\n' ' ')" = "hosta hosta hostb hostb hostb " ] && good "--host and --agent choose" || bad "--host and --agent choose" "$(cat out)"
printf 'hostb\nhosta\n' >file
salloc 30 "-N2 -n2" "$XRUN" -q -n 2 --hostfile "$PWD/file" "$PWD/where"
verdict "a hostfile of the job's own hosts" 0
[ "$(sort out | tr '\n' ,)" = "0 2 0 0 2 hostb step,1 2 0 1 2 hosta step," ] && good "in its order" || bad "in its order" "$(cat out)"
salloc 30 "-N2 -n2" "$XRUN" -q -n 2 --host hosta,hostx true
verdict "a host that the job has not" 2 'host hostx of --host is not among the 2 hosts that Slurm gives'
# In a step of one of the job's nodes srun has replaced the counts of the job, but not its nodes.
salloc 30 "-N2 -n2" srun -N1 -n1 -w hosta "$XRUN" -q -n 2 hostname
verdict "in a step of one node" 0
[ "$(tr '\n' ' ' <out)" = "hosta hosta " ] && good "it is that node" || bad "it is that node" "$(cat out)"
# Options that srun would take from its environment are the user's own, and not for the agents.
salloc 30 "-N2 -n4 --ntasks-per-node=2 -c2 --mem-per-cpu=10" env SLURM_LABELIO=1 SLURM_EXPORT_ENV=NONE SLURM_DISTRIBUTION=arbitrary \
    SLURM_STDINMODE=none SLURM_MPI_TYPE=pmix SLURM_MULTI_PROG=1 SLURM_EXACT=1 "$XRUN" -q -n 2 --map-by node hostname
verdict "options of Slurm in the environment" 0
[ "$(sort out | tr '\n' ' ')" = "hosta hostb " ] && good "they do not matter" || bad "they do not matter" "$(cat out)"
# Another step has all cores of the job: the agents need none of their own.
salloc 30 "-N2 -n2" sh -c "srun -n2 '$rest' 1000 & p=\$!; until squeue -h -s -o %j | grep -q rest; do :; done; '$XRUN' -q -n 2 hostname; kill \$p; wait"
verdict "beside a step that has all cores" 0
[ "$(sort out | tr '\n' ' ')" = "hosta hostb " ] && good "they share" || bad "they share" "$(cat out)"

# ------------------------------------------------------------------------- input and output
head -c 3000000 /dev/urandom | base64 >text
salloc 60 "-N2 -n2" "$XRUN" -q -n 2 --output-dir "$PWD/dir" cat "$PWD/text"
verdict "much output" 0
cmp -s text dir/rank.0.out && cmp -s text dir/rank.1.out && good "it comes whole" || bad "it comes whole" "$(ls -l dir)"
batch "-N2 -n2" "$XRUN -q -n 2 --map-by node sh -c '[ \$XRUN_RANK = 0 ] || exec cat $PWD/text' <text"
batch_ends 20
verdict "much output in a script" 0
cmp -s text out && good "it comes whole, too" || bad "it comes whole, too" "$(wc -c <out)"
salloc 30 "-N2 -n2" sh -c "'$XRUN' -q --stdin 1 -n 2 sh -c '[ \$XRUN_RANK = 0 ] || exec md5sum' <'$PWD/text'"
verdict "input for the other host" 0
[ "$(cat out)" = "$(md5sum <text)" ] && good "it gets all" || bad "it gets all" "$(cat out)"

# ------------------------------------------------------------------------- librank
for program in "startup.mp" "team_create.mp --short"; do
    # shellcheck disable=SC2086 # a name, and options
    salloc 60 "-N2 -n4" "$XRUN" -q -n 4 --map-by node --timeout 50 $mp/$program
    verdict "$program over both hosts" 0
done
batch "-N2 -n4" "$XRUN -q -n 4 --timeout 50 $top_builddir/examples/ring"
batch_ends 60
verdict "a ring, in a script" 0

# ------------------------------------------------------------------------- ends
salloc 30 "-N2 -n2" "$XRUN" -q -n 2 --map-by node sh -c "[ \$XRUN_RANK = 0 ] || exit 7; exec '$rest' 1000"
verdict "a rank fails" 7 'rank 1 \(host hostb, pid [0-9]+\) exited with code 7'
batch "-N2 -n2" "exec $XRUN -q -n 2 --map-by node sh -c '[ \$XRUN_RANK = 0 ] || exit 7; exec $rest 1000'"
batch_ends 20
verdict "a rank fails in a script" 7 'rank 1 \(host hostb, pid [0-9]+\) exited with code 7'
salloc 30 "-N2 -n2" "$XRUN" -q -n 2 --timeout 1 "$rest" 1000
verdict "--timeout" 124 'did not end within 1 s'
begin_in "-N2 -n2" "$XRUN" -q -n 2 sh -c 'trap "echo got TERM >&2; exit 0" INT TERM; echo ready; while :; do sleep 0.1; done'
until_true 20 ready 2 || bad "INT: start" "$(cat out err)"
on hosta pkill -INT -x xrun
finish_in 10
verdict "INT" 130
[ "$(grep -c 'got TERM' err)" = 2 ] && good "INT reaches all" || bad "INT reaches all" "$(cat err)"
batch "-N2 -n2" "$XRUN -q -n 2 --map-by node sh -c 'echo ready; exec $rest 1000'"
until_true 20 ready 2 || bad "scancel: start" "$(cat out err)"
on hosta scancel "$job"
batch_ends 20
verdict "scancel of a script" 0 # the signal is what it ended by
begin_in "-N2 -n2" "$XRUN" -q -n 2 --map-by node sh -c "echo ready; exec '$rest' 1000"
until_true 20 ready 2 || bad "scancel: start" "$(cat out err)"
on hosta scancel -u root
finish_in 20
[ "$rc" != 0 ] && [ "$rc" != hung ] && rc=ended
verdict "scancel of an allocation" ended
oldest() { on hosta pgrep -o -x srun; }
for what in xrun srun "all of srun" agent supervisor; do
    begin_in "-N2 -n2" "$XRUN" -q -n 2 --map-by node --timeout 60 sh -c "echo ready; exec '$rest' 1000"
    until_true 20 ready 2 || bad "kill -9 of $what: start" "$(cat out err)"
    case $what in
    agent) on hostb pkill -9 -x xrun-agent; want=1 says='the agent on hostb died' ;;
    # Its agent ends the ranks, or Slurm ends what is left of its task: either may be first.
    supervisor) on hostb pkill -9 -x xrun-supervisor; want=ended says='host hostb|(agent|supervisor) on hostb' ;;
    xrun) on hosta pkill -9 -x xrun; want=0 says= ;; # salloc takes that for no failure
    # srun has a helper, which has Slurm end all that it had started; without that the job goes on.
    srun) on hosta kill -9 "$(oldest)"; want=1 says='the agent on host[ab] died(: srun was killed by signal 9)?; its ranks end with it' ;; # Slurm may end the agents before xrun learns of it
    "all of srun") on hosta pkill -STOP -x srun; on hosta pkill -9 -x srun; on hostb pkill -TERM -x rest; want=143 says='rank 1 .* signal 15' ;;
    esac
    finish_in 15
    [ $want != ended ] || { [ "$rc" != 0 ] && [ "$rc" != hung ] && rc=ended; }
    verdict "kill -9 of $what" $want "$says"
done
begin_in "-N2 -n2" "$XRUN" -q -n 2 --map-by node --timeout 60 --on-failure continue \
    sh -c "echo ready; [ \$XRUN_RANK = 0 ] || exec '$rest' 1000; while [ ! -e '$PWD/go' ]; do sleep 0.05; done; echo on"
until_true 20 ready 2 || bad "the others go on: start" "$(cat out err)"
# Its agent ends rank 1, or Slurm the agent; srun leaves the other task alone.
on hostb pkill -9 -x xrun-supervisor
until_true 10 grep -q 'the others go on' err || bad "the others go on: the loss" "$(cat err)"
touch go
finish_in 15
[ "$rc" = 0 ] || [ "$rc" = hung ] || rc=ended
[ "$(grep -cx on out)" = 1 ] && verdict "the others go on without a host" ended 'the others go on' || bad "the others go on without a host" "$(cat out)"

# ------------------------------------------------------------------------- what does not start
salloc 30 "-N2 -n2" "$XRUN" -q -n 2 --map-by node --prefix /no/such true
verdict "xrun is not there" 1 'srun ended with code 2 before the agents on hosta, hostb came: .*/no/such/bin/xrun: No such file.*--prefix'
mkdir -p prefix/bin
version=$("$XRUN" --version) version=${version#xrun }
sed "s/${version//./\\.}/${version//[0-9]/9}/g" "$XRUN" >prefix/bin/xrun
chmod +x prefix/bin/xrun
salloc 30 "-N2 -n2" "$XRUN" -q -n 2 --map-by node --prefix "$PWD/prefix" true
verdict "another version" 1 "host host[ab]: .*/prefix/bin/xrun is version ${version//[0-9]/9} there, and this is version $version;"
[ "$(grep -c . err)" = 1 ] && good "that is one line" || bad "that is one line" "$(cat err)"
printf '#!/bin/sh\n[ "$(hostname)" != hostb ] || exec "%s" 1000\nexec "%s" "$@"\n' "$rest" "$XRUN" >prefix/bin/xrun
chmod +x prefix/bin/xrun
salloc 30 "-N2 -n2" "$XRUN" -n 2 --map-by node --prefix "$PWD/prefix" --start-timeout 3 true
verdict "an agent that does not come" 1 '1 of 2 hosts did not come within 3 s \(--start-timeout\): hostb'
grep -q '^xrun: waiting for 1 of 2 hosts: hostb' err && good "it is waited for" || bad "it is waited for" "no such line"
within "an agent that does not come" 6000
salloc 30 "-N2 -n2" "$XRUN" -q -n 2 --agent "srun --no-such-option" true
verdict "srun refuses" 1 'srun ended with code [0-9]+ before'
salloc 30 "-N2 -n2" env SLURM_JOB_ID=9999 "$XRUN" -q -n 2 true
verdict "a job that is over" 1 'srun ended with code [0-9]+ before .*9999.*--agent ssh does without srun'
salloc 30 "-N2 -n2" "$XRUN" -q -n 2 --map-by node --if 192.0.2.0/24 true
verdict "no such network" 2 'no network address of 192\.0\.2\.0/24'

# ------------------------------------------------------------------------- a lost host: last, since Slurm waits for it
begin_in "-N2 -n2" "$XRUN" -q -n 2 --map-by node --timeout 100 sh -c "echo ready; exec '$rest' 1000"
until_true 20 ready 2 || bad "a host is cut off: start" "$(cat out err)"
"$hosts" link hostb down
until_true 12 grep -q 'agent on hostb died' err && good "a host is cut off: noticed" || bad "a host is cut off: noticed" "$(cat err)"
gone() { ! left | grep -qvE ' slurmstepd: | /run/slurmd/'; }
finish_in 20
[ "$rc" = 1 ] && until_true 20 gone && good "a host is cut off: all ends" ||
    bad "a host is cut off: all ends" "exit code $rc; $(left)"
finish
