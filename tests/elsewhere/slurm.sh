#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# slurm.sh: start a real Slurm on the simulated hosts of ../hosts.sh.
# As on a small cluster.
#
#   slurm.sh able           exit 0, or 1 and a line that names what is missing
#   slurm.sh start [CPUS]   on all hosts of the cluster that HOSTS names; the first has the controller. Returns when
#                           all nodes are idle. CPUS (16): the CPUs that each node is configured with.
#
# Environment: SLURM_TASKS, the plugin that binds tasks (task/none).
#
# It ends with the hosts. Inside them srun, salloc and sbatch work as usual; hosts.sh exec hosta srun ...
set -u

here=$(cd "$(dirname "$0")" && pwd)
hosts=$here/../hosts.sh

die() {
    echo "slurm.sh: $*" >&2
    exit 1
}

able() {
    local tool
    "$hosts" able || return 1
    PATH=$PATH:/usr/sbin:/sbin
    for tool in srun sinfo slurmctld slurmd munged; do
        command -v $tool >/dev/null || { echo "Slurm needs the program $tool"; return 1; }
    done
    compgen -G '/usr/lib/*/slurm*/mpi_pmix*.so' >/dev/null || { echo "this Slurm has no PMIx plugin"; return 1; }
    compgen -G '/usr/lib/*/libpmix.so' >/dev/null || compgen -G '/usr/lib/*/pmix*/lib/libpmix.so' >/dev/null ||
        { echo "Slurm's PMIx plugin needs libpmix.so, which libpmix-dev brings"; return 1; }
}

names() { "$hosts" list | awk '$2 !~ /6$/ { print $2 }'; }

# Inside a host: its daemons.
daemons() { # FIRST ALL CPUS
    local first=$1 all=$2 cpus=$3
    mkdir -p /etc/slurm /run/munge /run/slurmctld /run/slurmd /var/log/munge /var/lib/munge
    cat >/etc/slurm/slurm.conf <<END
ClusterName=hosts
SlurmctldHost=$first
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=${SLURM_TASKS:-task/none}
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
StateSaveLocation=/run/slurmctld
SlurmdSpoolDir=/run/slurmd
SlurmctldLogFile=/run/slurmctld.log
SlurmdLogFile=/run/slurmd.log
SlurmdParameters=config_overrides
KillWait=2
NodeName=$all CPUs=$cpus Boards=1 SocketsPerBoard=1 CoresPerSocket=$cpus ThreadsPerCore=1 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
END
    chown munge: /run/munge /var/log/munge /var/lib/munge
    # Hosts see one file system, so they have one key, as a cluster should.
    [ -s /etc/munge/munge.key ] || die "munge has no key; /usr/sbin/mungekey makes one"
    setpriv --reuid munge --regid munge --clear-groups /usr/sbin/munged || die "munged did not start"
    [ "$(hostname)" != "$first" ] || /usr/sbin/slurmctld || die "slurmctld did not start"
    /usr/sbin/slurmd || die "slurmd did not start"
}

start() {
    local cpus=${1:-16} list first name child children=() i
    list=$(names)
    [ -n "$list" ] || exit 1
    first=${list%%$'\n'*}
    for name in $list; do
        "$hosts" exec "$name" bash "$here/slurm.sh" daemons "$first" "${list//$'\n'/,}" "$cpus" </dev/null &
        children+=($!)
    done
    for child in "${children[@]}"; do
        wait "$child" || die "a host's daemons did not start"
    done
    for ((i = 0; i < 150; i++)); do
        [ "$("$hosts" exec "$first" sinfo -h -N -t idle -o %N 2>/dev/null | wc -l)" != "${#children[@]}" ] || return 0
        sleep 0.1
    done
    "$hosts" exec "$first" bash -c 'sinfo; tail -n 5 /run/slurmctld.log' >&2
    die "the nodes did not become idle"
}

case ${1:-} in
able) able ;;
start) start "${2:-}" ;;
daemons) shift; daemons "$@" ;;
*) sed -n '3,/^set -u/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
