#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# refused_calls.sh: run a job whose system calls are refused one by one.
# A container's profile does that.
# Each ends by itself: well, by another way; or, for a call without which there is none, with a line that names it.
. "$(dirname "$0")/cases.sh"
filter=$top_builddir/tests/launcher/programs/syscall_filter
job=$top_builddir/tests/mp/random_mixed.mp # short and long messages, puts, gets, counts, fences
real=$XRUN
if [ -n "${SAN_CFLAGS:-}" ]; then # their run times make calls of their own
    echo "ok - refused calls # SKIP not tried under a sanitizer"
    exit 77
fi
if "$filter" userfaultfd EPERM true; [ $? = 77 ]; then
    echo "ok - refused calls # SKIP no filter of system calls can be set here"
    exit 77
fi

# Calls that nothing replaces: xrun's and libpmix's, those of starting a rank, those of memory that ranks share.
needed=" accept bind connect dup3 epoll_create1 epoll_ctl epoll_wait eventfd2 fcntl getsockname getsockopt ioctl listen pipe2 pselect6 recvfrom \
sendto setsockopt shutdown signalfd4 socket socketpair wait4 waitid writev prctl sched_setaffinity setpgid fallocate ftruncate memfd_create "

# behind CALL ERROR: XRUN is xrun with that call refused, to it and all that it starts
behind() {
    XRUN=$work/behind
    printf '#!/bin/sh\nexec "%s" %s %s "%s" "$@"\n' "$filter" "$1" "$2" "$real" >behind; chmod +x behind
}

# refused_call CALL ERROR
refused_call() {
    [[ "$1 $2" =~ ${CASES:-} ]] || return 0
    behind "$1" "$2"
    run 20 -n 2 "$job" --rounds 1 --steps 50
    if [[ $needed != *" $1 "* && "$1 $2" != "clone3 EPERM" ]]; then
        check "$2 for $1: by another way" 0
    elif [ "$rc" = 0 ] || [ "$rc" = hung ]; then
        bad "$2 for $1: a line and an end" "exit code $rc"
    else
        check "$2 for $1: a line and an end" "$rc" "error: .*\<$1\>.*(profile|--bind none)"
    fi
}

others= # calls that can be done without, of which most are not made at all
for call in $("$filter" --list); do
    case $call in
    clone3 | close_range | getrandom | pidfd_open | process_vm_* | sched_getaffinity)
        refused_call "$call" EPERM
        refused_call "$call" ENOSYS
        ;;
    *)
        if [[ $needed = *" $call "* ]]; then refused_call "$call" EPERM; else others+=${others:+,}$call; fi
        ;;
    esac
done
refused_call "$others" EPERM
refused_call "$others" ENOSYS
refused_call waitid ENOSYS

behind sched_getaffinity EPERM # of which hwloc asks for ever
run 20 -n 1 --bind core true; check "EPERM for sched_getaffinity: no binding" 2 'cannot load .* sched_getaffinity: Operation not permitted'
behind sched_setaffinity EPERM
run 20 -n 2 --bind none true; check "EPERM for sched_setaffinity: without binding" 0

echo "# refused calls: $passed passed, $failed failed"
[ "$failed" = 0 ]
