# SPDX-License-Identifier: BSD-3-Clause
# install.sh: install, build programs against the installation, uninstall.
bad=0
work=$(mktemp -d "$top_builddir/tests/install.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL

. "$top_srcdir/tests/judge.sh"

make -C "$top_builddir" install DESTDIR="$work/dest" >"$work/log" 2>&1
judge $? "make install DESTDIR=..."
[ $bad = 0 ] || exit 1

prefix=$(sed -n "s/^prefix='\(.*\)'/\1/p" "$top_builddir/lib/xcc")
here=$work/dest$prefix
: >"$work/log"
for f in bin/xrun bin/xcc bin/rankinfo bin/rankbench include/rank.h include/rank/coll.h include/rank/prank.h lib/librank.so lib/librank.a \
    lib/librank/librank-topo.so include/rank/device.h \
    lib/pkgconfig/rank.pc lib/librank/examples/cg share/man/man1/xrun.1 share/man/man1/rankinfo.1 \
    share/bash-completion/completions/xrun share/man/man1/rankbench.1 share/man/man3/rank.3 share/man/man3/rank_send.3 \
    share/man/man1/xcc.1 share/librank/lsan.supp share/doc/xrun/README.md share/doc/xrun/examples/cg.c share/doc/xrun/examples/data/1138_bus.mtx; do
    [ -s "$here/$f" ]
    judge $? "$f is installed"
done
! grep -q '^#define HAVE_UCX 1' "$top_builddir/config.h" || [ -s "$here/lib/librank/librank-ucx.so" ]
judge $? "the ucx module is installed where it was built"

readelf -d "$here/lib/librank.so" >"$work/log"
grep -q 'SONAME.*\[librank\.so\.[0-9]*\]' "$work/log"
judge $? "librank.so has a soname"
! grep -E 'NEEDED.*(libucp|libhwloc|libcuda|libevent)' "$work/log" | grep -v libevent_ | grep -q .
judge $? "librank.so needs neither UCX nor hwloc"
for f in lib/librank.so lib/librank/examples/cg bin/xrun bin/rankinfo bin/rankbench; do
    readelf -d "$here/$f" | grep -E 'R(UN)?PATH'
done >"$work/log"
! grep -qF "$top_builddir/" "$work/log" || [ "${prefix#"$top_builddir"/}" != "$prefix" ]
judge $? "nothing points back to the build folder"

# xcc as if the prefix were where DESTDIR put it.
sed "s|^prefix='.*|prefix='$here'|" "$here/bin/xcc" >"$work/xcc"
grep -qF "$here" "$work/xcc" && sh "$work/xcc" ${SAN_CFLAGS:-} "$top_srcdir/examples/hello.c" -o "$work/hello" \
    >"$work/log" 2>&1
judge $? "xcc hello.c"
RANK_MODULES=$here/lib/librank "$work/hello" >"$work/log" 2>&1 &&
    grep -q '^hello from rank 0 of 1 on ' "$work/log"
judge $? "hello runs alone"
for n in 1 3; do
    timeout 60 "$XRUN" -n $n "$work/hello" >"$work/log" 2>&1 </dev/null &&
        [ "$(grep -c "^hello from rank [0-9] of $n on " "$work/log")" = $n ]
    judge $? "hello runs on $n ranks"
done
sh "$work/xcc" --show a.c -O2 -o "b c" >"$work/log" && grep -q -- "-lrank" "$work/log"
judge $? "xcc --show"
sh "$work/xcc" -c "$top_srcdir/examples/hello.c" -o "$work/hello.o" >"$work/log" 2>&1 && [ -s "$work/hello.o" ]
judge $? "xcc -c"

# What libpmix keeps does not fail a rank of the user's sanitizer build.
if [ -z "${SAN_CFLAGS:-}" ] && sh "$work/xcc" -fsanitize=address "$top_srcdir/examples/hello.c" -o "$work/hello_asan" 2>/dev/null; then
    LSAN_OPTIONS=suppressions=$here/share/librank/lsan.supp timeout 60 "$XRUN" -n 2 "$work/hello_asan" >"$work/log" 2>&1 </dev/null &&
        grep -q 'Suppressions used' "$work/log"
    judge $? "lsan.supp hides what libpmix keeps"
fi

if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH=$here/lib/pkgconfig
    flags=$(pkg-config --define-variable=prefix="$here" --cflags --libs rank) &&
        ${CC:-cc} ${SAN_CFLAGS:-} "$top_srcdir/examples/hello.c" -o "$work/hello2" $flags >"$work/log" 2>&1 &&
        LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$work/hello2" >>"$work/log" 2>&1
    judge $? "a program by pkg-config rank"
    flags=$(pkg-config --define-variable=prefix="$here" --static --cflags --libs rank) &&
        flags=$(echo "$flags" | sed 's/-lrank\b/-l:librank.a/') &&
        ${CC:-cc} ${SAN_CFLAGS:-} "$top_srcdir/examples/hello.c" -o "$work/hello3" $flags >"$work/log" 2>&1 &&
        ! readelf -d "$work/hello3" | grep -q 'NEEDED.*librank' && "$work/hello3" >>"$work/log" 2>&1
    judge $? "a program with librank.a"
fi

make -C "$top_builddir" uninstall DESTDIR="$work/dest" >"$work/log" 2>&1
judge $? "make uninstall"
find "$work/dest" ! -type d >"$work/log"
! [ -s "$work/log" ]
judge $? "uninstall leaves nothing"
exit $bad
