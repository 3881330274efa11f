#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# forked.sh: start ranks by fork, for tools such as valgrind that lack clone.
. "$(dirname "$0")/cases.sh"
printf 'no program\n' >text; chmod +x text
printf '\177ELF' >elf; chmod +x elf

# tools NAME COMMAND...: xrun behind that
tools() {
    local name=$1 XRUN=$work/behind
    shift
    printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$*" "$real" >behind; chmod +x behind
    run 60 -n 3 --stdin all sh -c 'cat; echo $XRUN_RANK; ls /proc/self/fd | wc -l' <text
    sort -o out out
    same "$name: ranks, and no file more than they should have" "$(sort <<<$'0\n1\n2\n5\n5\n5')"
    run 60 -n 2 --wdir / --bind core pwd; same "$name: a folder" "/
/"
    run 60 -n 2 ./elf; check "$name: a program that cannot be executed" 126 'exec.*[Ff]ormat error'
    run 60 -n 2 sh -c 'kill -9 $$'; check "$name: a rank that is killed" 137 'killed by signal 9'
}
real=$XRUN
# The case has this name; ranks are not to load it.
tools "as if behind valgrind" env LD_PRELOAD=/nonexistent/vgpreload_core.so
if command -v valgrind >/dev/null && [ -z "${SAN_CFLAGS:-}" ]; then
    tools "behind valgrind" valgrind -q
else
    echo "ok - behind valgrind # SKIP it is not installed, or the build is sanitized"
fi

echo "# forked: $passed passed, $failed failed"
[ "$failed" = 0 ]
