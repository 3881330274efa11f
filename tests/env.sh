# SPDX-License-Identifier: BSD-3-Clause
# env.sh: set what every test of an uninstalled build needs.
# Sourced by make, mp.sh and the scripts.
#
# Settings for people: FULL=1, XRUN=path, UCX_DIR=prefix of another UCX, RANKS=4,8, CHANNELS=ucx.
# FULL_UNTIL=SECONDS since 1970: tests that begin later run in their short form. TURN=N: of the scripts a sixth runs in
# its full form, which rotates with N; mp.sh does so with its sizes and channels. LONG_TURN=N: of the scripts with 40
# seconds or more in budget.txt a third runs at all, and mp.sh runs each program on fewer sizes and channels.

# What the user has set for his own runs must not decide ours; RANK_CHANNELS, XRUN_TIMEOUT and the like are the
# matter of each case.
for v in $(env | sed -n 's/^\(RANK_[A-Z0-9_]*\)=.*/\1/p; s/^\(XRUN_[A-Z0-9_]*\)=.*/\1/p'); do
    unset "$v"
done
unset v

if [ -n "${FULL:-}" ] && [ -n "${FULL_UNTIL:-}" ] && [ "$(date +%s)" -ge "$FULL_UNTIL" ]; then
    FULL=
fi
turns=6 # until all have run in their full form
case ${0##*/} in
mp.sh) ;;
*.sh)
    if [ -n "${TURN:-}" ] && [ -n "${FULL:-}" ]; then # with that word the long ones are spread evenly
        [ $((($(printf %s "full${0##*/}" | cksum | cut -d ' ' -f 1) + TURN) % turns)) = 0 ] || FULL=
    fi
    if [ -n "${LONG_TURN:-}" ] && awk -v test="${0##*/}" -v turn="$LONG_TURN" '
        $2 + 0 >= 40 { n++; sub(/^.*\//, "", $1); if ($1 ".sh" == test) found = (n + turn) % 3 != 0 }
        END { exit !found }' "$top_srcdir/tests/budget.txt"; then
        echo "ok - ${0##*/} # SKIP a long test: it takes turns; check --full runs it"
        exit 77
    fi
    ;;
esac

# Modules lie beside the library, which libtool has put here.
RANK_MODULES=$top_builddir/.libs
RANK_CONF=/dev/null
XRUN=${XRUN:-$top_builddir/xrun}
# Where jobs listen for xrun --status: not in /tmp, where tests that run side by side search for leftovers.
XDG_RUNTIME_DIR=$(cd "$top_builddir" && pwd)/tests
export RANK_MODULES RANK_CONF XRUN XDG_RUNTIME_DIR

if [ -n "${UCX_DIR:-}" ]; then
    LD_LIBRARY_PATH=$UCX_DIR/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
fi

# A report of a sanitizer is a failure of its own kind, not a rank's 1. gcc 12's guess where a loaded library's
# thread-local block begins ("DTLS n at 0x688") crashes the leak check with glibc 2.36 and UCX's modules; without
# thread-local block begins ("DTLS n at 0x688") crashes the leak check with glibc 2.36 and UCX's modules; without
# it the block is found as what it is, memory from malloc that the thread's vector points at.
# What our PMIx leaves (lsan.supp) is recognized by its library's file. To look up functions as well takes each process a quarter of
# a second, nine tenths of a short job; symbols.sh does it for the reports.
ASAN_OPTIONS=exitcode=86:symbolize=0:detect_leaks=${RK_LEAKS:-1}:abort_on_error=0:allocator_may_return_null=1:intercept_tls_get_addr=0
LSAN_OPTIONS=suppressions=$top_srcdir/lib/lsan.supp:print_suppressions=0
UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1:exitcode=86
TSAN_OPTIONS=exitcode=86:halt_on_error=1:suppressions=$top_srcdir/tests/tsan.supp
# UCX rewrites the beginning of mmap and its like to watch over memory, and with the thread sanitizer those are not the
# functions that it takes them for.
case "${SAN_CFLAGS:-}" in *thread*) export UCX_MEM_EVENTS=n ;; esac
# libpciaccess, which hwloc loads and unloads, keeps some memory. Without it hwloc reads PCI from sysfs.
case "${SAN_CFLAGS:-}" in *sanitize*) export HWLOC_COMPONENTS=-pci ;; esac
export ASAN_OPTIONS LSAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS
