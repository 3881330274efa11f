# SPDX-License-Identifier: BSD-3-Clause
# portable.sh: make an installation that runs from any place beside glibc alone.
# bundle.sh and wheel.sh source it.
#
#   bin, include, share        what make install gives
#   lib/librank.so.0           the library
#   lib/librank                its modules, and libpmix, hwloc, libevent, libsodium, UCX and what they need
#   lib/librank/ucx            modules of UCX: UCX searches beside its libraries
#   lib/librank/pmix-plugins   plugins of libpmix: librank and xrun name the folder to it
#
# UCX 1.22 comes from PyPI (libucx-cu13), because Debian's is built without CUDA. PORTABLE_UCX=system takes the installed UCX,
# PORTABLE_UCX=DIR one with DIR/lib.

self=$(basename "$0" .sh)
say() { echo "$self: $*"; }

die()
{
    echo "$self: $*" >&2
    exit 1
}

# logged WHAT COMMAND...: show the end of its output if it fails
logged()
{
    what=$1
    shift
    "$@" >"$work/log" 2>&1 || { tail "$work/log" >&2; die "$what failed"; }
}

# portable_begin BUILD: check what is needed, and make a folder to work in
portable_begin()
{
    build=$(cd "$1" && pwd)
    for tool in patchelf ldd strip objdump; do
        command -v $tool >/dev/null || die "$tool is missing; install it (Debian: patchelf, libc-bin, binutils)"
    done
    ! grep -q '^SAN_CFLAGS = .*sanitize' "$build/Makefile" || die "$build is a sanitizer build; name another build folder"
    work=$(mktemp -d "$build/$self.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    logged "make install" make -s -C "$build" install DESTDIR="$work/dest"
    installed=$work/dest$(sed -n "s/^prefix='\(.*\)'/\1/p" "$build/lib/xcc")
}

# The installation, and UCX with its modules: portable_copy DIR
portable_copy()
{
    to=$1
    mkdir -p "$to/bin" "$to/lib/librank"
    cp -p "$installed"/bin/* "$to/bin/"
    cp -Rp "$installed/include" "$installed/share" "$to/"
    cp -p "$installed"/lib/librank.so.0 "$to/lib/"
    cp -p "$installed"/lib/librank.so.0 "$to/lib/librank.so"
    cp -p "$installed"/lib/librank/librank-*.so "$to/lib/librank/"
    [ ! -d "$installed/lib/librank/examples" ] || cp -Rp "$installed/lib/librank/examples" "$to/lib/librank/"
    for f in xcc xcc++; do # the prefix and the compiler of this machine
        # shellcheck disable=SC2016 # the script expands it
        sed -e 's|^prefix=.*|prefix=$(cd "$(dirname "$0")/.." \&\& pwd)|' -e 's|XCC_CC:-[^}]*}|XCC_CC:-cc}|' \
            -e 's|XCC_CXX:-[^}]*}|XCC_CXX:-c++}|' -e 's|-Wl,-rpath,|-Wl,-rpath-link,"$libdir/librank" &|' "$installed/bin/$f" >"$to/bin/$f"
    done

    # It is opened by name (lib/base/auth.c), so ldd does not list it.
    sodium=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p | sed -n 's|^[[:space:]]*libsodium\.so\.23 .*=> ||p' | head -n 1)
    [ -n "$sodium" ] || die "libsodium.so.23 is missing; install it (Debian: libsodium23)"
    cp -L "$sodium" "$to/lib/librank/libsodium.so.23"

    ucx=
    [ ! -f "$to/lib/librank/librank-ucx.so" ] || portable_ucx
    # Of hwloc no plugin is needed: it reads PCI from /sys.
    pmix=$(ldd "$to/bin/xrun" | sed -n 's|^[[:space:]]*libpmix\.so\.2 => \(/[^ ]*\) .*|\1|p')
    [ -n "$pmix" ] || die "xrun has no libpmix.so.2"
    pmix=$(dirname "$(readlink -f "$pmix")")
    mkdir "$to/lib/librank/pmix-plugins"
    for f in "$pmix"/pmix/*.so; do
        [ ! -e "$f" ] || cp -L "$f" "$to/lib/librank/pmix-plugins/"
    done
}

# What is installed here: the folder of libucp.
system_ucx()
{
    ldd "$to/lib/librank/librank-ucx.so" | sed -n 's|^[[:space:]]*libucp\.so\.0 => \(/.*\)/libucp\.so\.0 .*|\1|p'
}

portable_ucx()
{
    case ${PORTABLE_UCX:-pypi} in
    pypi)
        ucx=$build/ucx-wheel/libucx/lib
        if [ ! -e "$ucx/libucp.so.0" ] && ! python3 -m pip install -q --root-user-action=ignore --no-deps \
            --target "$build/ucx-wheel" 'libucx-cu13>=1.22,<1.23' >"$work/log" 2>&1; then
            tail -n 3 "$work/log" >&2
            ucx=$(system_ucx)
            say "warning: UCX 1.22 cannot be fetched from PyPI; taking that of $ucx, which may be without CUDA" >&2
        fi
        ;;
    system) ucx=$(system_ucx) ;;
    *) ucx=$PORTABLE_UCX/lib ;;
    esac
    [ -e "$ucx/libucp.so.0" ] || die "there is no libucp.so.0 in '$ucx'"
    mkdir "$to/lib/librank/ucx"
    for f in libucp libuct libucs libucm libucs_signal; do
        [ ! -e "$ucx/$f.so.0" ] || cp -L "$ucx/$f.so.0" "$to/lib/librank/"
    done
    # UCX loads NAME.so, which is a link elsewhere.
    for f in "$ucx"/ucx/*.so; do
        [ ! -e "$f" ] || cp -L "$f" "$to/lib/librank/ucx/"
    done
}

# elf_files DIR
elf_files()
{
    find "$1" -type f -exec sh -c 'for f; do [ "$(head -c 4 "$f" | tail -c 3)" != ELF ] || echo "$f"; done' sh {} +
}

# portable_close TREE: copy the libraries that the files of TREE need, and have each file find them.
# The copy of portable_copy, $to, lies in TREE.
portable_close()
{
    within=$1
    # Of glibc and the driver: a machine has its own.
    theirs='^(ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv|libutil|libnsl|libcuda|libnvidia-ml)\.so'
    found=$to/lib/librank:$to/lib:$ucx:$build/ucx-wheel/libucx_cu13.libs:$pmix${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    copied=yes
    while [ $copied = yes ]; do # a plugin of a copied library may need more
        copied=no
        for f in $(elf_files "$within"); do
            LD_LIBRARY_PATH=$found ldd "$f" 2>/dev/null
        done >"$work/ldd"
        sed -n 's|^[[:space:]]*\([^ ]*\) => \(/[^ ]*\) .*|\1 \2|p' "$work/ldd" | sort -u >"$work/needed"
        while read -r name path; do
            [ ! -e "$to/lib/$name" ] && [ ! -e "$to/lib/librank/$name" ] || continue
            ! echo "$name" | grep -qE "$theirs" || continue
            cp -L "$path" "$to/lib/librank/$name"
            copied=yes
        done <"$work/needed"
    done
    sed -n 's|^[[:space:]]*\([^ ]*\) => not found.*|\1|p' "$work/ldd" | grep -vE "$theirs" >"$work/missing" || :
    [ ! -s "$work/missing" ] || die "cannot find $(head -n 1 "$work/missing")"

    for f in $(elf_files "$within"); do
        below=$(realpath --relative-to="$(dirname "$f")" "$to/lib")
        chmod u+w "$f"
        strip --strip-unneeded "$f"
        # DT_RPATH goes before LD_LIBRARY_PATH, in which other versions may be.
        # shellcheck disable=SC2016 # the loader expands it
        patchelf --force-rpath --set-rpath '$ORIGIN/'"$below/librank:"'$ORIGIN/'"$below" "$f"
    done
}

# Print the version of glibc that the files of a folder need.
needed_glibc()
{
    for f in $(elf_files "$1"); do objdump -p "$f"; done |
        sed -n -e 's/.* GLIBC_\(2\.[0-9]*\)\(\..*\)\{0,1\}$/\1/p' -e 's/.* GLIBC_ABI_DT_RELR$/2.36/p' | sort -uV | tail -n 1
}
