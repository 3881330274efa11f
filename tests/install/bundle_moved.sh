# SPDX-License-Identifier: BSD-3-Clause
# bundle_moved.sh: make a bundle, move it, run it beside glibc and nothing else.
# A root folder with glibc, bash and a few programs stands for the bare machine. Where none can be entered, the loader's
# log is searched for libraries outside the bundle instead.
. "$top_srcdir/tests/env.sh"
skip() { echo "ok - bundle # SKIP $1"; exit 77; }
case "${SAN_CFLAGS:-}" in *sanitize*) skip "a sanitizer build" ;; esac
command -v patchelf >/dev/null || skip "patchelf is missing"
bad=0
work=$(mktemp -d "$top_builddir/tests/bundle.XXXXXX") || exit 1
work=$(cd "$work" && pwd)
trap 'rm -rf "$work"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL RANK_MODULES

# judge RC WHAT: with the end of the log if it failed
judge() {
    if [ "$1" = 0 ]; then
        echo "ok - $2"
    else
        echo "not ok - $2"
        tail -n 20 "$work/log" | sed 's/^/    /'
        bad=1
    fi
}

# No network is asked.
BUNDLE_UCX=system sh "$top_srcdir/tests/gpu/bundle.sh" "$top_builddir" "$work/first" >"$work/log" 2>&1
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
! sh "$top_srcdir/tests/gpu/bundle.sh" "$top_builddir" "$work/other" >"$work/log" 2>&1 && grep -q 'is there and is no bundle' "$work/log" &&
    [ -e "$work/other/file" ]
judge $? "another folder is not overwritten"

root=$work/root
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/bin"
for f in bash env dirname basename timeout; do
    f=$(command -v $f)
    cp -L "$f" "$root/bin/"
    ldd "$f" | grep -oE '/[^ ()]+'
done | sort -u >"$work/libraries"
# Of glibc all that a program may need.
find "$root/opt/moved" -type f \( -path '*/libexec/*' -o -name '*.so*' \) -exec ldd {} + 2>/dev/null |
    grep -oE '/[^ ()]+/(ld-linux.*|lib(c|m|dl|rt|pthread|resolv))\.so[^ ]*' | sort -u >>"$work/libraries"
while read -r f; do
    mkdir -p "$root$(dirname "$f")"
    cp -L "$f" "$root$f"
done <"$work/libraries"
cp "$root/bin/bash" "$root/bin/sh"
cat >"$work/enter.sh" <<'END'
for d in proc sys dev; do
    mount --rbind "/$d" "$1/$d" || exit 99
done
root=$1
shift
exec chroot "$root" /bin/env -i PATH=/bin HOME=/tmp "$@"
END
for how in "unshare -m" "unshare -rm" none; do
    $how sh "$work/enter.sh" "$root" /bin/bash -c : >"$work/log" 2>&1 && break
done
in_root() {
    if [ "$how" = none ]; then
        env -i PATH="$PATH" HOME="$work" LD_DEBUG=libs LD_DEBUG_OUTPUT="$work/loaded" timeout 60 "$@"
    else
        $how sh "$work/enter.sh" "$root" /bin/timeout 60 "$@"
    fi >"$work/log" 2>&1 </dev/null
}
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
if [ "$how" = none ]; then
    cat "$work"/loaded.* | grep -oE 'calling init: .*' | grep -vE "$root|/pmix_mca_|/(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|nss_.*)\.so[^ ]*)$" | sort -u >"$work/log"
    ! [ -s "$work/log" ]
    judge $? "only glibc (and plugins of a libpmix that is there) is loaded from elsewhere"
fi
exit $bad
