# SPDX-License-Identifier: BSD-3-Clause
# link.sh: link programs with an installed librank.
# By pkg-config (also --static), xcc++ and CMake; also symbol versions.
bad=0
for cc in ${CC:-cc}; do # cmake wants the compiler without what stands around it
    case $cc in *ccache | -*) ;; *) break ;; esac
done
work=$(mktemp -d "$top_builddir/tests/link.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL LD_LIBRARY_PATH

. "$top_srcdir/tests/judge.sh"

# hello PROGRAM: it runs alone, without help from the environment
hello() { "$1" >>"$work/log" 2>&1 && "$1" 2>/dev/null | grep -q '^hello from rank 0 of 1 on '; }

make -C "$top_builddir" install DESTDIR="$work/dest" >"$work/log" 2>&1
judge $? "make install DESTDIR=..."
[ $bad = 0 ] || exit 1
prefix=$(sed -n "s/^prefix='\(.*\)'/\1/p" "$top_builddir/lib/xcc")
here=$work/dest$prefix
export RANK_MODULES=$here/lib/librank

if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH=$here/lib/pkgconfig
    : >"$work/log"
    for more in "" --static; do
        # shellcheck disable=SC2046,SC2086
        ${CC:-cc} ${SAN_CFLAGS:-} "$top_srcdir/examples/hello.c" -o "$work/hello$more" \
            $(pkg-config --define-variable=prefix="$here" $more --cflags --libs rank) >"$work/log" 2>&1 && hello "$work/hello$more"
        judge $? "pkg-config $more rank: the program runs without LD_LIBRARY_PATH"
    done
    if [ -s "$here/lib/librank.a" ]; then
        rm -rf "$work/static" && mkdir "$work/static" && cp "$here/lib/librank.a" "$work/static" &&
            flags=$(pkg-config --define-variable=prefix="$here" --static --cflags --libs rank) &&
            ${CC:-cc} ${SAN_CFLAGS:-} "$top_srcdir/examples/hello.c" -o "$work/hello_a" -L"$work/static" $flags >"$work/log" 2>&1 &&
            ! readelf -d "$work/hello_a" | grep -q 'NEEDED.*librank' && hello "$work/hello_a"
        judge $? "pkg-config --static rank, librank.a alone: all that it needs is named"
    fi
    ! grep -qF "$top_builddir" "$here/lib/pkgconfig/rank.pc" || [ "${prefix#"$top_builddir"/}" != "$prefix" ]
    judge $? "rank.pc does not name the build folder"
fi

cxx=$(sed -n 's/.*XCC_CXX:-\(.*\)} source.*/\1/p' "$here/bin/xcc")
if command -v "${cxx%% *}" >/dev/null; then
    sed "s|^prefix='.*|prefix='$here'|" "$here/bin/xcc++" >"$work/xcc++"
    printf '%s\n' '#include <rank.h>' '#include <iostream>' 'int main() {' \
        'if (rank_init(nullptr)) return 1;' 'std::cout << "hello from rank 0 of 1 on " << rank_version() << std::endl;' \
        'return rank_finalize(); }' >"$work/hello.cc"
    sh "$work/xcc++" ${SAN_CFLAGS:-} "$work/hello.cc" -o "$work/hello_cc" >"$work/log" 2>&1 && hello "$work/hello_cc"
    judge $? "xcc++ builds a C++ program"
    sh "$work/xcc++" --version >"$work/log" && grep -q "^xcc++ .*($cxx)" "$work/log"
    judge $? "xcc++ names itself and its compiler"
fi

if command -v cmake >/dev/null; then
    mkdir "$work/project"
    cp "$top_srcdir/examples/hello.c" "$work/project"
    printf '%s\n' 'cmake_minimum_required(VERSION 3.10)' 'project(hello C)' 'find_package(rank 0.1 REQUIRED)' \
        'add_executable(hello hello.c)' 'target_link_libraries(hello PRIVATE rank::rank)' >"$work/project/CMakeLists.txt"
    cmake -S "$work/project" -B "$work/project/b" -DCMAKE_PREFIX_PATH="$here" -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_C_FLAGS="${SAN_CFLAGS:-}" >"$work/log" 2>&1 &&
        cmake --build "$work/project/b" >>"$work/log" 2>&1 && hello "$work/project/b/hello"
    judge $? "find_package(rank) and rank::rank"
    sed -i 's/rank 0.1/rank 9/' "$work/project/CMakeLists.txt"
    ! cmake -S "$work/project" -B "$work/project/b9" -DCMAKE_PREFIX_PATH="$here" >"$work/log" 2>&1 && grep -q 'not accepted' "$work/log"
    judge $? "find_package refuses a version that is not there"
fi

# A program needs the version that it was linked with.
if [ -s "$here/lib/librank.so" ] && grep -q 'version-script' "$top_builddir/Makefile"; then
    nm -D --defined-only "$here/lib/librank.so" | grep -E ' W rank_' >"$work/log"
    [ "$(wc -l <"$work/log")" = "$(wc -l <"$top_srcdir/lib/rank.sym")" ] && ! grep -v '@@RANK_0\.1$' "$work/log"
    judge $? "every exported function has the version RANK_0.1"
fi

# A tool counts the calls of a program, and none of the library's own.
cat >"$work/count.c" <<'end'
#include <rank/prank.h>
#include <stdio.h>
static int sends, gathers;
rank_status_t rank_send(const void *buf, int64_t count, rank_dtype_t dtype, int peer, int64_t tag, rank_team_t team)
{
    sends++;
    return prank_send(buf, count, dtype, peer, tag, team);
}
rank_status_t rank_allgather(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_team_t team)
{
    gathers++;
    return prank_allgather(sbuf, rbuf, count, dtype, team);
}
rank_status_t rank_finalize(void)
{
    printf("sends %d allgathers %d\n", sends, gathers);
    return prank_finalize();
}
end
cat >"$work/counted.c" <<'end'
#include <rank.h>
int main(void)
{
    rank_team_t team;
    rank_request_t req;
    int32_t in;
    int bad = rank_init(0);
    for (int32_t i = 0; i < 3 && !bad; i++)
        bad = rank_irecv(&in, 1, RANK_INT32, 0, 0, rank_world(), &req) || rank_send(&i, 1, RANK_INT32, 0, 0, rank_world()) ||
              rank_wait(&req, 0) || in != i;
    bad = bad || rank_team_split(rank_world(), 0, 0, &team) || rank_team_free(&team);
    return rank_finalize() || bad;
}
end
if [ -s "$here/lib/librank.so" ]; then
    sed "s|^prefix='.*|prefix='$here'|" "$here/bin/xcc" >"$work/xcc"
    sh "$work/xcc" ${SAN_CFLAGS:-} "$work/counted.c" -o "$work/counted" >"$work/log" 2>&1 &&
        ${CC:-cc} ${SAN_CFLAGS:-} -shared -fPIC -I"$here/include" "$work/count.c" -o "$work/count.so" >"$work/log" 2>&1 &&
        LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}$work/count.so" "$work/counted" >"$work/log" 2>&1 &&
        grep -qx 'sends 3 allgathers 0' "$work/log"
    judge $? "a preloaded tool counts the calls of a program by prank_send"
fi

# quickstart.sh puts examples where PATH finds them.
for f in "$here"/lib/librank/examples/*; do
    [ -x "/usr/bin/${f##*/}" ] && dpkg -S "/usr/bin/${f##*/}" 2>/dev/null | grep '^coreutils:'
done >"$work/log"
! [ -s "$work/log" ]
judge $? "no example has the name of a command of coreutils"
exit $bad
