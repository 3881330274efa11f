# SPDX-License-Identifier: BSD-3-Clause
# bundle_moved.sh: make a bundle, move it, run it beside glibc and nothing else.
# Where a bare root cannot be entered, the loader's log is searched for libraries outside the bundle instead.
. "$top_srcdir/tests/env.sh"
skip() { echo "ok - bundle # SKIP $1"; exit 77; }
case "${SAN_CFLAGS:-}" in *sanitize*) skip "a sanitizer build" ;; esac
command -v patchelf >/dev/null || skip "patchelf is missing"
bad=0
work=$(mktemp -d "$top_builddir/tests/bundle.XXXXXX") || exit 1
work=$(cd "$work" && pwd)
. "$top_srcdir/tests/install/bare_root.sh"
trap 'rm -rf "$work"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL RANK_MODULES

# No network is asked.
PORTABLE_UCX=system sh "$top_srcdir/packaging/bundle.sh" "$top_builddir" "$work/first" >"$work/log" 2>&1
judge $? "make a bundle"
[ $bad = 0 ] || exit 1
[ "$(du -sm "$work/first" | cut -f1)" -lt 60 ]
judge $? "it has less than 60 MiB"
mkdir -p "$work/root/opt"
mv "$work/first" "$work/root/opt/moved"
grep -rlF "$work/first" "$work/root/opt/moved" >"$work/log"
! [ -s "$work/log" ]
judge $? "no file has the path of the bundle"
mkdir "$work/other" && : >"$work/other/file"
! sh "$top_srcdir/packaging/bundle.sh" "$top_builddir" "$work/other" >"$work/log" 2>&1 && grep -q 'exists and is not a bundle' "$work/log" &&
    [ -e "$work/other/file" ]
judge $? "another folder is not overwritten"

root=$work/root
bare_root "$root"
bundle=/opt/moved
[ "$how" != none ] || bundle=$root$bundle
in_root $bundle/bin/xrun -n 2 $bundle/bin/rankbench --time 1ms lat -b 8 -e 8 && grep -qE '^ *8 .* 0$' "$work/log"
judge $? "two ranks by shared memory ($how)"
if [ -e "$root/opt/moved/lib/librank/librank-ucx.so" ]; then
    in_root $bundle/bin/xrun -n 2 -x RANK_CHANNELS=ucx,self $bundle/bin/rankbench --time 1ms lat -b 8 -e 8 &&
        grep -q 'by ucx' "$work/log"
    judge $? "two ranks by UCX"
fi
in_root $bundle/bin/rankinfo --channels && grep -q "cuda  *$bundle/.*librank-cuda.so" "$work/log"
judge $? "rankinfo finds the modules of the bundle"
in_root $bundle/bin/xrun --topo && grep -q '^  cores ' "$work/log"
judge $? "xrun --topo"
[ -e "$root/opt/moved/lib/librank/libsodium.so.23" ]
judge $? "libsodium, which is opened by name, is in it"
only_glibc
exit $bad
