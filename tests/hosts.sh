#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# hosts.sh: simulate several hosts on one Linux machine.
#
#   hosts.sh able                   exit 0, or 1 and a line that gives the reason why this machine cannot do it
#   hosts.sh run N COMMAND...       N hosts for as long as the command runs; its exit code is ours
#   hosts.sh up N | down            the same by hand
#   hosts.sh list                   address and names of each: hosta hostb ... hostz hostaa ...
#   hosts.sh exec HOST COMMAND...   run it there, on the host's core, in the same folder if it is there
#   hosts.sh net COMMAND...         run it at the switch: the bridge is br0, the port to host I is vI (0, 1, ...)
#   hosts.sh link HOST down|up      pull the host's cable, and plug it in again
#   hosts.sh second HOST            a second network device, eth1, on a switch of its own; its port there is wI
#   hosts.sh drop HOST PERCENT      lose that share of the packets that reach the host (0: none)
#   hosts.sh rate HOST RATE         limit its cable in both directions, as tc writes it: 100mbit (0: no limit)
#   hosts.sh delay HOST US [PCT]    a cable that takes US microseconds each way and loses PCT % (0: a straight one)
#   hosts.sh crash HOST             power cut: the cable first, so that no peer gets a notice, then all processes
#
# A host has network, pid, ipc, UTS and mount namespaces of its own, a /tmp, /dev/shm, /run, /sys, /etc and /var that
# the others do not see, its own sshd, keys and boot id, and one core. The rest of the file system is shared, as by
# NFS. "ssh hostb" works from each to each; hosta6 and so on are the same hosts by IPv6, node01 and so on once more, as
# where names are numbers. All of it lies in one more pid namespace, the fabric; when that one's first process ends,
# everything ends and nothing had a name outside. It needs root. No packet leaves the namespaces.
#
# Environment:
#   HOSTS          name of the cluster; several may be up at once. "run" invents one and exports it.
#   HOSTS_BIND     "FROM[:TO] ...": what stays visible although it lies in /tmp or /run. The folders that
#                  top_srcdir and top_builddir name always do.
#   HOSTS_CABLE    the program for "delay" ($top_builddir/tests/simdelay)
#   HOSTS_NO_PIN   set: hosts may use all cores
#   HOSTS_TWINS    set: hosts share the ipc namespace and the boot id, but no memory: what some programs
#                  take for the signs of one host
set -u

me=$(readlink -f "$0")
invented=
if [ -z "${HOSTS:-}" ]; then
    HOSTS=hosts
    [ "${1:-}" != run ] || HOSTS=run$$ invented=yes
fi
export HOSTS
base=/run/rank-hosts
state=$base/$HOSTS
net4=10.78.0 net6=fd78:
most=250

die() {
    echo "hosts.sh: $*" >&2
    exit 1
}

# Functions that give a word set REPLY: no process for it.

# host_name I: hosta, ..., hostz, hostaa, ...
host_name() {
    local i=$1 letter
    REPLY=
    while :; do
        printf -v letter "\\$(printf %03o $((97 + i % 26)))"
        REPLY=$letter$REPLY
        i=$((i / 26 - 1))
        [ $i -ge 0 ] || break
    done
    REPLY=host$REPLY
}

address() { REPLY=$net4.$(($1 + 1)); }

# started PID: when it did, which distinguishes it from a later process of the same number
started() {
    local line
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    # shellcheck disable=SC2086 # its words
    set -- ${line##*) }
    [ "$1" != Z ] && [ "$1" != X ] || return 1
    REPLY=${20}
}

# outer_pid: of this process as the machine sees it; only where /proc is still the machine's
outer_pid() {
    local line
    read -r line </proc/self/stat
    REPLY=${line%% *}
}

# lives FILE: does the process of "PID START ..." in the file?
lives() {
    [ -r "$1" ] && read -r pid birth rest <"$1" && started "$pid" && [ "$REPLY" = "$birth" ]
}

fabric_of() { lives "$state/fabric" || die "the cluster '$HOSTS' is not up; see hosts.sh up"; }

# find_host HOST: sets host_pid, host_index, host_core
find_host() {
    fabric_of
    [ -r "$state/pid.$1" ] || die "there is no host '$1'; see hosts.sh list"
    lives "$state/pid.$1" || die "$1 has crashed"
    host_pid=$pid
    read -r host_index host_core <<<"$rest"
}

at_switch() {
    fabric_of
    nsenter -t "$pid" -n -u -- "$@"
}

# ------------------------------------------------------------------------------------ the machine

able() {
    local tool
    [ "$(id -u)" = 0 ] || { echo "simulated hosts need root"; return 1; }
    PATH=$PATH:/usr/sbin:/sbin
    for tool in ip tc nft ssh ssh-keygen nsenter unshare setpriv taskset /usr/sbin/sshd; do
        command -v $tool >/dev/null || { echo "simulated hosts need the program ${tool##*/}"; return 1; }
    done
    unshare -m -n -p -i -u -f sh -c '
        mount -t tmpfs t /mnt && mkdir /mnt/u /mnt/w /mnt/m &&
        mount -t overlay -o lowerdir=/etc,upperdir=/mnt/u,workdir=/mnt/w o /mnt/m &&
        ip link add name v0 type veth peer name v1 && ip link add name br0 type bridge' >/dev/null 2>&1 ||
        { echo "simulated hosts need namespaces, overlay, veth and bridge, which this machine refuses"; return 1; }
}

# ---------------------------------------------------------------------------------- up and down

# up N [owned]: an owned cluster ends with the process that has file descriptor 6 open
up() {
    local n=$1 answer i why
    case $n in '' | *[!0-9]* | 0) die "how many hosts? up N" ;; esac
    [ "$n" -le $most ] || die "$n hosts are too many, $most is the most"
    why=$(able) || die "$why"
    ! lives "$state/fabric" || die "the cluster '$HOSTS' is up already; hosts.sh down first, or set HOSTS"
    forget_dead
    mkdir -p "$state/stage" "$state/over" "$state/key" || exit 1
    chmod 700 $base "$state"
    mkfifo "$state/ready" "$state/done" "$state/owner"
    ssh-keygen -q -t ed25519 -N '' -C hosts -f "$state/key/id"
    for ((i = 0; i < n; i++)); do
        host_name $i
        local name=$REPLY
        address $i
        printf '%s %s node%02d\n%s:%x %s6\n' "$REPLY" "$name" $((i + 1)) $net6 $((i + 1)) "$name"
    done >"$state/hosts"
    : >"$state/log"
    exec 4<"$state/log" 7<>"$state/done" 6<>"$state/owner"
    setsid bash "$me" keep "$n" "${2:-}" </dev/null >>"$state/log" 2>&1 4<&- 6>&- 7>&- &
    read -rt 60 -u 7 answer
    exec 7>&-
    [ -n "${2:-}" ] || exec 6>&-
    if [ "${answer:-}" != up ]; then
        down
        cat <&4 >&2 # its readers still have it open
        die "the hosts did not come up"
    fi
    exec 4<&-
}

# Including what was left by clusters with a killed keeper.
forget_dead() {
    local d
    for d in "$base"/*/; do
        [ -d "$d" ] && [ -e "${d}keeper" ] && ! lives "${d}keeper" && ! lives "${d}fabric" &&
            rm -rf --one-file-system "$d"
    done
    rm -rf --one-file-system "$state"
}

# Outside of the fabric: waits for its end, however it comes, and then removes its folder.
keep() {
    outer_pid
    local self=$REPLY
    started "$self" && echo "$self $REPLY" >"$state/keeper"
    setpriv --pdeathsig KILL unshare -f -p -m -n -u -i --kill-child bash "$me" fabric "$@"
    echo down 1<>"$state/done" # opened so, it does not wait for a reader
    rm -rf --one-file-system "$state"
    rmdir --ignore-fail-on-non-empty $base 2>/dev/null
}

down() {
    local i pid birth rest
    if lives "$state/fabric"; then
        kill -9 "$pid"
    elif ! lives "$state/keeper"; then
        rm -rf --one-file-system "$state"
        return
    fi
    for ((i = 0; i < 3000; i++)); do
        [ -d "$state" ] || return 0
        lives "$state/keeper" || { rm -rf --one-file-system "$state"; return 0; }
        sleep 0.01
    done
    die "the cluster '$HOSTS' does not end; its folder is $state"
}

# ------------------------------------------------------------------------------------ the fabric

# First process of the fabric: the switch, and the parent of all hosts.
fabric() {
    local n=$1 owned=$2 i got pin line unshared="-f -p -m -n -u"
    outer_pid
    local self=$REPLY
    started "$self" || exit 1
    echo "$self $REPLY" >"$state/fabric"
    if [ -n "$owned" ]; then exec 3<"$state/owner"; else exec 3<>"$state/owner"; fi
    hostname "$HOSTS-fabric"
    ip -batch - <<'END' || exit 1
link set lo up
link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0
link set br0 up
END
    [ -n "${HOSTS_TWINS:-}" ] || unshared="$unshared -i"
    exec 9<>"$state/ready" 8</proc/self/ns/net
    for ((i = 0; i < n; i++)); do
        host_name $i
        pin="taskset -c $((i % $(nproc --all)))"
        [ -z "${HOSTS_NO_PIN:-}" ] || pin=
        $pin unshare $unshared --kill-child bash "$me" host $i "$n" "$REPLY" 3<&- &
    done
    for ((i = 0; i < n; i++)); do
        got=
        read -rt 50 -u 9 got
        case $got in host*) ;; *) echo "hosts.sh: only $i of $n hosts came up"; exit 1 ;; esac
    done
    exec 8<&- 9>&-
    for ((i = 0; i < n; i++)); do
        host_name $i
        got=$REPLY
        read -r line <"$state/key/h.$got.pub"
        address $i
        printf '%s,%s6,node%02d,%s,%s,%s:%x %s\n' "$got" "$got" $((i + 1)) "$REPLY" "${REPLY/10.78/10.79}" $net6 $((i + 1)) "${line% *}"
    done >"$state/key/known"
    echo up >"$state/done"
    # The owner never writes: this ends with its end. Meanwhile bash reaps orphans.
    read -r got <&3
    exit 0
}

# First process of a host.
host() {
    local i=$1 n=$2 name=$3 self core
    trap 'echo "failed: $name" >&9' EXIT
    set -e
    core=$((i % $(nproc --all)))
    outer_pid
    self=$REPLY
    started "$self"
    echo "$self $REPLY $i $core" >"$state/pid.$name"
    hostname "$name"
    make_tmp
    make_etc "$i" "$name"
    make_network "$i" "$n"
    # Only now: what is bound above may lie under these names.
    mount -n --move "$state/stage" /tmp
    mount -t tmpfs -o mode=1777 shm /dev/shm
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts /dev/pts
    mount --bind /dev/pts/ptmx /dev/ptmx
    mount -t sysfs sysfs "$state/over" # shows this host's own interfaces
    [ ! -d /sys/fs/cgroup ] || mount --rbind /sys/fs/cgroup "$state/over/fs/cgroup"
    mount -n --move "$state/over" /sys
    make_run
    mount -t proc proc /proc
    if [ -z "${HOSTS_TWINS:-}" ]; then
        printf '%08x-0000-4000-8000-%012x\n' $((0x51300000 + i)) $((i + 1)) >/run/boot_id
        mount --bind /run/boot_id /proc/sys/kernel/random/boot_id
    fi
    mkdir -p /run/sshd /run/lock
    cd /
    # It returns when it listens.
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /usr/sbin/sshd 8<&- 9>&-
    echo "$name" >&9
    exec 8<&- 9>&-
    trap - EXIT
    set +e
    sleep infinity &
    while :; do wait -n; done # reaps orphans
}

# What stays visible: "FROM TO" lines.
binds() {
    local b seen=
    for b in ${HOSTS_BIND:-} ${top_srcdir:-} ${top_builddir:-}; do
        case " $seen " in *" ${b##*:} "*) continue ;; esac
        seen="$seen ${b##*:}"
        case ${b##*:} in "$1"/*) echo "${b%%:*} ${b##*:}" ;; esac
    done
}

bind_one() { # FROM TO
    if [ -d "$1" ]; then
        mkdir -p "$2"
    else
        mkdir -p "${2%/*}"
        : >>"$2"
    fi
    mount --bind "$1" "$2"
}

# Filled aside and moved over /tmp later: until then what lies there can be bound.
make_tmp() {
    local from to
    mount -t tmpfs -o mode=1777 tmp "$state/stage"
    while read -r from to; do
        bind_one "$from" "$state/stage/${to#/tmp/}"
    done < <(binds /tmp)
}

# The same for /run, which hides the cluster's own folder from now on.
make_run() {
    local from to
    mkdir /tmp/.run
    mount -t tmpfs -o mode=755 run /tmp/.run
    while read -r from to; do
        bind_one "$from" "/tmp/.run/${to#/run/}"
    done < <(binds /run)
    mount -n --move /tmp/.run /run
    rmdir /tmp/.run
}

make_etc() { # I NAME
    local name=$2
    mount -t tmpfs over "$state/over"
    mkdir "$state"/over/{etc,etc.work,var,var.work}
    mount -t overlay -o "lowerdir=/etc,upperdir=$state/over/etc,workdir=$state/over/etc.work" etc /etc
    mount -t overlay -o "lowerdir=/var,upperdir=$state/over/var,workdir=$state/over/var.work" var /var
    umount -l "$state/over" # the overlays hold it
    { echo "127.0.0.1 localhost"; echo "::1 localhost"; cat "$state/hosts"; } >/etc/hosts
    echo "$name" >/etc/hostname
    rm -f /etc/resolv.conf
    : >/etc/resolv.conf
    printf '%032x\n' $(($1 + 1)) >/etc/machine-id
    rm -rf /etc/ssh
    mkdir -p /etc/ssh/hosts
    mount --bind "$state/key" /etc/ssh/hosts
    ssh-keygen -q -t ed25519 -N '' -C "$name" -f "/etc/ssh/hosts/h.$name"
    cat >/etc/ssh/ssh_config <<'END'
Host *
  IdentityFile /etc/ssh/hosts/id
  IdentitiesOnly yes
  GlobalKnownHostsFile /etc/ssh/hosts/known
  UserKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  BatchMode yes
  ControlPath none
END
    cat >/etc/ssh/sshd_config <<END
HostKey /etc/ssh/hosts/h.$name
AuthorizedKeysFile /etc/ssh/hosts/id.pub
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
MaxStartups 500
MaxSessions 500
UseDNS no
PidFile /run/sshd.pid
Subsystem sftp internal-sftp
END
}

# From inside, so that hosts do it at the same time; descriptor 8 is the switch's namespace.
make_network() { # I N
    local i=$1 n=$2 j mac
    printf -v mac '02:78:00:00:00:%02x' $((i + 1))
    ip link add eth0 address "$mac" type veth peer name "v$i" netns /proc/self/fd/8
    nsenter --net=/proc/self/fd/8 ip link set "v$i" master br0 up
    {
        echo "link set lo up"
        echo "link set eth0 up"
        address "$i"
        echo "addr add $REPLY/24 dev eth0"
        printf 'addr add %s:%x/64 dev eth0 nodad\n' $net6 $((i + 1))
        # One table of neighbours for the whole machine overflows at 1024; what is permanent does not count.
        for ((j = 0; n > 24 && j < n; j++)); do
            [ $j -ne "$i" ] || continue
            address $j
            printf 'neigh add %s dev eth0 lladdr 02:78:00:00:00:%02x nud permanent\n' "$REPLY" $((j + 1))
        done
    } | ip -batch -
}

# ---------------------------------------------------------------------------------------- cables

rate() {
    local where
    find_host "$1"
    for where in switch host; do
        local tc=(nsenter -t "$host_pid" -n tc) dev=eth0
        [ $where = host ] || tc=(at_switch tc) dev=v$host_index
        "${tc[@]}" qdisc del dev "$dev" root 2>/dev/null
        [ "$2" = 0 ] || "${tc[@]}" qdisc add dev "$dev" root tbf rate "$2" burst 64k latency 50ms || exit 1
    done
}

# 10.79 instead of 10.78.
second() {
    find_host "$1"
    at_switch ip link show br1 >/dev/null 2>&1 ||
        printf '%s\n' "link add br1 type bridge stp_state 0 forward_delay 0 mcast_snooping 0" "link set br1 up" |
        at_switch ip -batch - || exit 1
    fabric_of
    address "$host_index"
    printf '%s\n' "link add eth1 type veth peer name w$host_index netns $pid" "link set eth1 up" \
        "addr add ${REPLY/10.78/10.79}/24 dev eth1" | nsenter -t "$host_pid" -n ip -batch - || exit 1
    at_switch ip link set "w$host_index" master br1 up
}

drop() {
    local some="numgen random mod 10000 < $(($2 * 100))"
    [ "$2" != 100 ] || some= # nft refuses what is always true
    find_host "$1"
    nsenter -t "$host_pid" -n nft delete table inet hosts_drop 2>/dev/null
    [ "$2" = 0 ] || nsenter -t "$host_pid" -n nft -f - <<END
table inet hosts_drop {
  chain in {
    type filter hook input priority -10;
    iif "eth0" $some counter drop;
  }
}
END
}

# The kernel may have no netem: the port leaves the bridge, and a program carries packets between it and a new one.
delay() {
    local us=$2 percent=${3:-0} cable=${HOSTS_CABLE:-${top_builddir:-.}/tests/simdelay} old
    find_host "$1"
    [ -x "$cable" ] || die "delay needs the program simdelay; 'make tests/simdelay', or name it by HOSTS_CABLE"
    local i=$host_index
    if [ -s "$state/cable.$i" ]; then
        read -r old <"$state/cable.$i"
        kill -9 "$old" 2>/dev/null
        rm -f "$state/cable.$i"
        at_switch ip link del "p$i"
        at_switch ip link set "v$i" master br0
    fi
    [ "$us$percent" != 00 ] || return 0
    printf '%s\n' "link add p$i type veth peer name q$i" "link set v$i nomaster" "link set p$i up" \
        "link set q$i master br0 up" | at_switch ip -batch - || exit 1
    fabric_of
    # It prints its number, as the machine sees it, when it carries, and goes on in the background.
    nsenter -t "$pid" -n -u -p "$(readlink -f "$cable")" "v$i" "p$i" "$us" $((percent * 100)) \
        </dev/null >"$state/cable.$i" || die "the cable of $1 could not be laid"
}

# -------------------------------------------------------------------------------------- commands

# Dies with its caller, as a command does that was started by ssh -t.
in_host() {
    local pin
    find_host "$1"
    shift
    pin="taskset -c $host_core"
    [ -z "${HOSTS_NO_PIN:-}" ] || pin=
    # shellcheck disable=SC2016,SC2086
    exec nsenter -t "$host_pid" -m -u -i -n -p -- $pin setpriv --pdeathsig KILL -- \
        bash -c 'cd "$0" 2>/dev/null || cd /; exec "$@"' "$PWD" "$@"
}

run() {
    local n=$1 child rc
    shift
    up "$n" owned
    trap down EXIT
    # shellcheck disable=SC2064
    setpriv --pdeathsig KILL env --default-signal=INT,QUIT "$@" <&0 6>&- &
    child=$!
    trap 'kill -TERM $child 2>/dev/null; exit 143' TERM HUP
    trap 'exit 130' INT
    wait $child
    rc=$?
    exit $rc
}

want() { [ "$1" -ge "$2" ] || { sed -n '3,/^set -u/s/^# \{0,1\}//p' "$me" >&2; exit 2; }; }

verb=${1:-help}
[ $# -eq 0 ] || shift
case $verb in
able) able ;;
up) want $# 1; up "$1" ;;
down) down ;;
list) fabric_of; cat "$state/hosts" ;;
exec) want $# 2; in_host "$@" ;;
net) want $# 1; at_switch "$@" ;;
link) want $# 2; find_host "$1"; at_switch ip link set "v$host_index" "$2" ;;
second) want $# 1; second "$@" ;;
drop) want $# 2; drop "$@" ;;
rate) want $# 2; rate "$@" ;;
delay) want $# 2; delay "$@" ;;
crash) want $# 1; find_host "$1"; at_switch ip link set "v$host_index" down; kill -9 "$host_pid" ;;
run) want $# 2; run "$@" ;;
keep | fabric | host) $verb "$@" ;; # parts of up, each in its namespace
*) want 0 1 ;;
esac
