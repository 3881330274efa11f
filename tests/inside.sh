# SPDX-License-Identifier: BSD-3-Clause
# inside.sh: start a script once more inside simulated hosts (hosts.sh).
# Only there the script goes on. Sourced at the beginning of a script, before anything that makes a folder or a process.
#
#   inside N WHAT                on N hosts; where none can be made, the test is skipped: "ok - WHAT # SKIP why"
#   inside_if_able N             the same, but where none can be made the script goes on without: RK_INSIDE is empty
#   inside_slurm N WHAT [CPUS]   on N hosts with Slurm, each configured with that many CPUs (elsewhere/slurm.sh)
#
# Inside, RK_INSIDE is set, and "on HOST COMMAND..." runs something there.
top_srcdir=${top_srcdir:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)} top_builddir=${top_builddir:-$PWD}
# The script will work in a folder of its own.
case $top_builddir in /*) ;; *) top_builddir=$PWD/$top_builddir ;; esac
export top_srcdir top_builddir
hosts=$top_srcdir/tests/hosts.sh

on() { "$hosts" exec "$@"; }

# able_or_skip WHAT PROGRAM: its command "able" prints the reason
able_or_skip() {
    local why
    why=$("$2" able 2>&1) && return
    echo "ok - $1 # SKIP $why"
    exit 77
}

inside() {
    [ -z "${RK_INSIDE:-}" ] || return 0
    able_or_skip "$2" "$hosts"
    RK_INSIDE=1 exec "$hosts" run "$1" bash "$0"
}

inside_if_able() {
    [ -z "${RK_INSIDE:-}" ] && "$hosts" able >/dev/null 2>&1 || return 0
    RK_INSIDE=1 exec "$hosts" run "$1" bash "$0"
}

inside_slurm() {
    local slurm=$top_srcdir/tests/elsewhere/slurm.sh
    [ -z "${RK_INSIDE:-}" ] || return 0
    able_or_skip "$2" "$slurm"
    RK_INSIDE=1 exec "$hosts" run "$1" bash -c '"$0" start "$2" && exec bash "$1"' "$slurm" "$0" "${3:-}"
}
