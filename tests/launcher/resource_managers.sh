#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# resource_managers.sh: take hosts from recorded data of resource managers.
# Also hosts that need no agent. The agents of other hosts are started by a command that notes the hosts and fails.
. "$(dirname "$0")/cases.sh"
host=$(hostname)
unset "${!SLURM@}" "${!PBS@}" "${!LSB@}"

cat >note <<'SH'
#!/bin/sh
echo "$1" >>"${0%/*}/asked"
exit 3
SH
chmod +x note

# asks NAME HOSTS ARGS...: for agents on HOSTS, in any order
asks() {
    local name=$1 hosts=$2
    shift 2
    rm -f asked
    : >asked
    run 10 --agent "$PWD/note" --fanout 64 "$@"
    if [ "$(sort asked | tr '\n' ' ')" = "$hosts${hosts:+ }" ]; then good "$name"; else bad "$name" "asked: $(sort asked | tr '\n' ' ')"; fi
    clean "$name"
}
# slots NAME WANTED: "host slots" of each, with ranks enough for all, by the map of a dry run
slots() {
    local name=$1 wanted=$2
    run 10 -n 1 --dry-run --json-map map.json true
    if [ "$(python3 -c 'import json; print(*(h["name"]+" "+str(h["slots"]) for h in json.load(open("map.json"))["hosts"]), sep=", ")' 2>&1)" = "$wanted" ]; then
        check "$name" 0 ''
    else
        bad "$name" "$(cat map.json)"
    fi
}

# ------------------------------------------------------------------------------------------- node files
# A chunk's lines follow each other, or hosts come in turn: names are counted wherever they stand.
printf '%s\n' node3.cluster node3.cluster node7.cluster node3.cluster node7.cluster >pbs
PBS_NODEFILE=$PWD/pbs asks "PBS: all hosts of the file" "node3.cluster node7.cluster" -n 5 true
printf '%s\n' "$host" "$host" "$host" >here
PBS_NODEFILE=$PWD/here slots "PBS: a line a slot" "$host 3"
# As Torque writes it for nodes=2:ppn=4+1:ppn=1: the last node first, a name a slot; PBS Pro with full names, in chunks
# (select=2:mpiprocs=2+1:mpiprocs=1 on three vnodes of two hosts).
printf '%s\n' r2i0n17 r2i0n17 r2i0n17 r2i0n17 r2i0n16 r2i0n16 r2i0n16 r2i0n16 login2 >torque
PBS_NODEFILE=$PWD/torque asks "PBS: a Torque file" "login2 r2i0n16 r2i0n17" -n 9 true
PBS_NODEFILE=$PWD/torque asks "PBS: the first of a Torque file suffices" "r2i0n17" -n 4 true
printf '%s\n' x1001c0s2b0n0.hpc.example.org x1001c0s2b0n0.hpc.example.org x1001c0s3b0n1.hpc.example.org \
    x1001c0s3b0n1.hpc.example.org x1001c0s2b0n0.hpc.example.org >pbspro
PBS_NODEFILE=$PWD/pbspro asks "PBS: chunks that return to a host" "x1001c0s2b0n0.hpc.example.org" -n 3 true
PBS_NODEFILE=$PWD/pbspro asks "PBS: a rank more than that" "x1001c0s2b0n0.hpc.example.org x1001c0s3b0n1.hpc.example.org" -n 4 true
# A line a slot, hosts one after the other; a word may stand behind the name.
printf '%s\n' 'hostk' 'hostk' 'hostl' 'hostl' >lsf
LSB_DJOB_HOSTFILE=$PWD/lsf asks "LSF: all hosts of the file" "hostk hostl" -n 4 true
LSB_DJOB_HOSTFILE=$PWD/here LSB_MCPU_HOSTS='x 1' LSB_HOSTS=y slots "LSF: the file comes first" "$host 3"
LSB_MCPU_HOSTS='hostk 2 hostl 2 ' LSB_HOSTS='hosty' asks "LSF: pairs" "hostk hostl" -n 4 true
# bsub -n 84 with a host for the job's script: in the file it stands once, first; among the pairs it may have no slot.
{ echo batch5; for h in h36n05 h36n06; do yes $h | head -n 42; done; } >csm
LSB_DJOB_HOSTFILE=$PWD/csm LSB_MCPU_HOSTS='batch5 1 h36n05 42 h36n06 42 ' asks "LSF: a host for the job's script" \
    "batch5 h36n05 h36n06" -n 85 true
LSB_DJOB_HOSTFILE=$PWD/csm asks "LSF: --host leaves it out" "h36n05 h36n06" --host h36n05,h36n06 -n 84 true
LSB_MCPU_HOSTS='batch5 0 h36n05 42 h36n06 42 ' LSB_HOSTS='batch5' asks "LSF: a host without slots gets no ranks" \
    "h36n05 h36n06" -n 84 true
LSB_MCPU_HOSTS="batch5 0 $host 16" slots "LSF: nor is it among the hosts" "$host 16"
LSB_MCPU_HOSTS="$host 16" slots "LSF: the slots of a pair" "$host 16"
LSB_HOSTS='hostk hostl hostk hostl' asks "LSF: words" "hostk hostl" -n 4 true
LSB_HOSTS="$host $host" slots "LSF: each word is a slot" "$host 2"
SLURM_JOB_NODELIST='gpu[01-02,10],login' SLURM_TASKS_PER_NODE='2(x3),1' asks "Slurm: ranges" "gpu01 gpu02 gpu10 login" -n 7 true
SLURM_JOB_NODELIST='gpu[01-02,10],login' SLURM_TASKS_PER_NODE='2(x3),1' run 10 -n 7 --agent "$PWD/note" --host login,gpu10 true
[ "$(tail -n 2 asked | sort | tr '\n' ' ')" = "gpu10 login " ] && good "Slurm: --host chooses" || bad "Slurm: --host chooses" "$(cat asked)"
for bad in "PBS_NODEFILE=$PWD/none" "LSB_DJOB_HOSTFILE=$PWD/none" LSB_MCPU_HOSTS='a 2 b' LSB_MCPU_HOSTS='a 0' LSB_MCPU_HOSTS='a -1' LSB_HOSTS='  ' SLURM_TASKS_PER_NODE=3; do
    export "$bad"
    [ "${bad%%=*}" != SLURM_TASKS_PER_NODE ] || export SLURM_JOB_NODELIST=a,b
    run 10 -n 1 true
    check "refused: $bad" 2 "${bad%%=*}"
    unset "${bad%%=*}"
done
unset SLURM_JOB_NODELIST
: >none
PBS_NODEFILE=$PWD/none run 10 -n 1 true
check "a node file without nodes" 2 'none, which PBS_NODEFILE names, holds no hosts'

# ------------------------------------------------------------------------------------------- hosts without ranks
printf 'n%02d slots=2\n' $(seq 64) >many
printf 'a slots=2\nb slots=2\nc\n' >few
asks "two ranks over 64 hosts: one agent" "n01" -n 2 --hostfile many true
asks "a third needs another" "n01 n02" -n 3 --hostfile many true
# Without -n as many as there are slots, if slots are given.
asks "no -n: all hosts of a file" "a b c" --hostfile few true
asks "no -n: all that --host chooses" "b c" --hostfile few --host b,c true
asks "no -n: all of --host with slots" "a b" --host a:1,b:1 true
asks "no -n: one rank on hosts without slots" "a" --host a,b true
asks "no -n: one of each of several programs" "a" --hostfile few true : true
all() { # NAME SIZE ARGS...: so many ranks
    local name=$1 size=$2
    shift 2
    run 10 "$@" sh -c 'echo $XRUN_SIZE'
    if [ "$(sort out | uniq -c | tr -s ' ')" = " $size $size" ]; then check "$name" 0 ''; else bad "$name" "$(cat out)"; fi
}
PBS_NODEFILE=$PWD/here all "no -n: the slots of PBS" 3
LSB_MCPU_HOSTS="$host 2" all "no -n: the slots of LSF" 2
SLURM_JOB_NODELIST=$host SLURM_TASKS_PER_NODE=4 all "no -n: the slots of Slurm" 4
all "no -n: the slots of --host" 5 --host "$host:3,localhost:2"
PBS_NODEFILE=$PWD/here all "no -n: another number of --host" 2 --host "$host:2"
PBS_NODEFILE=$PWD/here all "no -n: ppr says it" 1 --map-by ppr:1:node
PBS_NODEFILE=$PWD/here all "-n says it" 1 -n 1
echo "$host" >unsaid
all "no -n: a line without slots has one for each core" "$(nproc)" --hostfile unsaid --map-by hwthread
all "no -n: this host alone" 1
PBS_NODEFILE=$PWD/here run 10 --pty 3 true
check "a rank that is too many" 2 '--pty is 3, but the ranks are 0 to 2'
run 10 --pty 1 true
check "a rank that is too many here" 2 '--pty is 1, but the ranks are 0 to 0'
asks "one on each in turn" "n01 n02 n03" -n 3 --hostfile many --map-by node true
asks "without slots, one for each rank at most" "a b" -n 2 --host a,b,c,d true
asks "several programs are counted together" "a b c" --host a,b,c,d -n 1 true : -n 2 true
asks "as many as there are" "a b c d" --map-by ppr:1:node --host a,b,c,d true
asks "but not more than -n" "a b" -n 2 --map-by ppr:1:node --host a,b,c,d true
printf 'here.cluster slots=2\nfar.cluster slots=2\n' >full
asks "--host chooses by short names" "far.cluster" -n 1 --hostfile full --host far true
PBS_NODEFILE=$PWD/here run 10 -n 1 --host localhost --json-map map.json true
grep -q '"slots": 3' map.json && check "--host localhost is this host of PBS" 0 '' || bad "--host localhost is this host of PBS" "$(cat map.json)"
asks "--host twice: hosts of both" "a b c" -n 3 --host a:1 --host b:1,c:1 true
XRUN_HOST=a:1 asks "but in place of a variable's" "b c" -n 2 --host b:1 --host c:1 true
printf 'x slots=1\n' >first; printf 'y slots=1\n' >second
asks "--hostfile twice: hosts of both" "x y" -n 2 --hostfile first --hostfile second true
XRUN_HOSTFILE=first asks "but in place of a variable's file" "y" -n 1 --hostfile second true
printf 'rank 0=b\nrank 1=a\n' >ranks
asks "a rankfile names them" "a b" --rankfile ranks --host a,b,c,d true
run 10 -n 2 --host "$host:2,no-such-host:2" --agent "$PWD/note" sh -c 'echo $XRUN_NODES'
[ "$(sort -u out)" = 1 ] && check "this host suffices" 0 '' || bad "this host suffices" "$(cat out)"

echo "# resource_managers: $passed passed, $failed failed"
[ $failed -eq 0 ]
