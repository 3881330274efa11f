#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# universe.sh: query the size of the universe over PMI-1.
. "$(dirname "$0")/cases.sh"

cat >ask <<'END'
printf 'cmd=init pmi_version=1 pmi_subversion=1\n' >&3; read -r _ <&3
printf 'cmd=get_universe_size\n' >&3; read -r answer <&3
printf 'cmd=finalize\n' >&3; read -r _ <&3
echo "${answer##*=}"
END
universe() { # NAME SIZE ARGS...
    local name=$1 size=$2
    shift 2
    run 10 "$@" -n 1 bash ask
    same "$name" "$size"
}
printf 'localhost slots=5\n' >slots
echo localhost >bare
universe "no hosts: no limit" -1
universe "a host without slots: no limit" -1 --host localhost
universe "a hostfile without slots: no limit" -1 --hostfile bare
universe "slots of a hostfile" 5 --hostfile slots
universe "slots of --host" 7 --host localhost:7
SLURM_JOB_NODELIST=$(hostname) SLURM_TASKS_PER_NODE=3 universe "slots of a resource manager" 3 --agent ssh

echo "# universe: $passed passed, $failed failed"
[ "$failed" = 0 ]
