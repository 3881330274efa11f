#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# bundle.sh BUILD DIR: copy an installation and the libraries it needs into DIR.
#
# DIR runs from any place, on a machine that has glibc and nothing else. ./quickstart.sh bundle calls this script.
#   bin, lib, include, share   what make install gives; libpmix, hwloc, libevent, UCX and their plugins
#   tests                      the programs that run.sh starts
#   run.sh                     tests/gpu/run.sh
#
# UCX 1.22 comes from PyPI (libucx-cu13), because Debian's is built without CUDA. BUNDLE_UCX=system takes the installed UCX,
# BUNDLE_UCX=DIR one with DIR/lib.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
to=$2
limit_mib=60

say() { echo "bundle: $*"; }

die()
{
    echo "bundle: $*" >&2
    exit 1
}

for tool in patchelf ldd strip; do
    command -v $tool >/dev/null || die "$tool is missing; install it (Debian: patchelf, libc-bin, binutils)"
done
if [ -e "$to" ] && [ ! -f "$to/lib/bundle.txt" ] && [ -n "$(ls -A "$to")" ]; then
    die "$to is there and is no bundle; name a new folder"
fi
! grep -q '^SAN_CFLAGS = .*sanitize' "$build/Makefile" || die "$build is a sanitizer build; name another build folder"
rm -rf "$to"
mkdir -p "$to/lib"
: >"$to/lib/bundle.txt" # another try overwrites what this one leaves
to=$(cd "$to" && pwd)
work=$(mktemp -d "$build/bundle.XXXXXX")
trap 'rm -rf "$work"' EXIT

# ------------------------------------------------------------------------------- what make install gives
make -s -C "$build" install DESTDIR="$work/dest" >"$work/log" 2>&1 || { tail "$work/log" >&2; die "make install failed"; }
prefix=$(sed -n "s/^prefix='\(.*\)'/\1/p" "$build/lib/xcc")
from=$work/dest$prefix
mkdir "$to/bin" "$to/tests"
cp -p "$from"/bin/* "$to/bin/"
cp -Rp "$from/include" "$from/share" "$to/"
cp -p "$from"/lib/librank.so.0 "$to/lib/"
cp -p "$from"/lib/librank.so.0 "$to/lib/librank.so"
mkdir "$to/lib/librank"
cp -p "$from"/lib/librank/librank-*.so "$to/lib/librank/"
[ ! -d "$from/lib/librank/examples" ] || cp -Rp "$from/lib/librank/examples" "$to/lib/librank/"
for f in xcc xcc++; do # the prefix and the compiler of this machine
    # shellcheck disable=SC2016 # the script expands it
    sed -e 's|^prefix=.*|prefix=$(cd "$(dirname "$0")/.." \&\& pwd)|' -e 's|XCC_CC:-[^}]*}|XCC_CC:-cc}|' \
        -e 's|XCC_CXX:-[^}]*}|XCC_CXX:-c++}|' "$from/bin/$f" >"$to/bin/$f"
done

# ------------------------------------------------------------------------------------------------- tests
make -s -C "$build" gpu-programs >"$work/log" 2>&1 || { tail "$work/log" >&2; die "the build of the tests failed"; }
for f in $(make -s -C "$build" gpu-list); do
    mkdir -p "$to/$(dirname "$f")"
    cp -p "$build/$f" "$to/$f"
done
mkdir -p "$to/tests/gpu"
cp -p "$top"/tests/gpu/*.sh "$to/tests/gpu/"
rm "$to/tests/gpu/bundle.sh"

# --------------------------------------------------------------------------------------------------- UCX
# What is installed here: the folder of libucp.
system_ucx()
{
    ldd "$to/lib/librank/librank-ucx.so" | sed -n 's|^[[:space:]]*libucp\.so\.0 => \(/.*\)/libucp\.so\.0 .*|\1|p'
}

ucx=
if [ -f "$to/lib/librank/librank-ucx.so" ]; then
    case ${BUNDLE_UCX:-wheel} in
    wheel)
        ucx=$build/ucx-wheel/libucx/lib
        if [ ! -e "$ucx/libucp.so.0" ] && ! python3 -m pip install -q --root-user-action=ignore --no-deps \
            --target "$build/ucx-wheel" 'libucx-cu13>=1.22,<1.23' >"$work/log" 2>&1; then
            tail -n 3 "$work/log" >&2
            ucx=$(system_ucx)
            say "warning: UCX 1.22 cannot be fetched from PyPI; taking that of $ucx, which may be without CUDA" >&2
        fi
        ;;
    system) ucx=$(system_ucx) ;;
    *) ucx=$BUNDLE_UCX/lib ;;
    esac
    [ -e "$ucx/libucp.so.0" ] || die "there is no libucp.so.0 in '$ucx'"
    mkdir "$to/lib/ucx"
    for f in libucp libuct libucs libucm libucs_signal; do
        [ ! -e "$ucx/$f.so.0" ] || cp -L "$ucx/$f.so.0" "$to/lib/"
    done
    # UCX loads NAME.so, which is a link elsewhere.
    for f in "$ucx"/ucx/*.so; do
        [ ! -e "$f" ] || cp -L "$f" "$to/lib/ucx/"
    done
    for f in ucx_perftest ucx_info; do
        [ ! -x "$ucx/../bin/$f" ] || cp -p "$ucx/../bin/$f" "$to/bin/"
    done
fi

# ------------------------------------------------------------------------------ libraries and their plugins
# Of hwloc no plugin is needed: it reads PCI from /sys.
pmix=$(ldd "$to/bin/xrun" | sed -n 's|^[[:space:]]*libpmix\.so\.2 => \(/[^ ]*\) .*|\1|p')
[ -n "$pmix" ] || die "xrun has no libpmix.so.2"
pmix=$(dirname "$(readlink -f "$pmix")")
mkdir "$to/lib/pmix"
for f in "$pmix"/pmix/*.so; do
    [ ! -e "$f" ] || cp -L "$f" "$to/lib/pmix/"
done
elf_files() { find "$to" -type f -exec sh -c 'for f; do [ "$(head -c 4 "$f" | tail -c 3)" != ELF ] || echo "$f"; done' sh {} +; }

# Of glibc and the driver: a machine has its own.
theirs='^(ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv|libutil|libnsl|libcuda|libnvidia-ml)\.so'
found=$to/lib:$ucx:$build/ucx-wheel/libucx_cu13.libs:$pmix${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
copied=yes
while [ $copied = yes ]; do # a plugin of a copied library may need more
    copied=no
    for f in $(elf_files); do
        LD_LIBRARY_PATH=$found ldd "$f" 2>/dev/null
    done | sed -n 's|^[[:space:]]*\([^ ]*\) => \(/[^ ]*\) .*|\1 \2|p' | sort -u >"$work/needed"
    while read -r name path; do
        [ ! -e "$to/lib/$name" ] || continue
        ! echo "$name" | grep -qE "$theirs" || continue
        cp -L "$path" "$to/lib/$name"
        copied=yes
    done <"$work/needed"
done

for f in $(elf_files); do
    LD_LIBRARY_PATH=$found ldd "$f" 2>/dev/null | sed -n "s|^[[:space:]]*\([^ ]*\) => not found|\1, which $(basename "$f") needs|p"
done | grep -vE "$theirs" >"$work/missing" || :
[ ! -s "$work/missing" ] || die "cannot find $(head -n 1 "$work/missing")"

for f in $(elf_files); do
    chmod u+w "$f"
    strip --strip-unneeded "$f"
    below=${f#"$to"/}
    # Up to the top, then into lib. DT_RPATH goes before LD_LIBRARY_PATH, in which other versions may be.
    # shellcheck disable=SC2016 # the loader expands it
    patchelf --force-rpath --set-rpath '$ORIGIN/'"$(dirname "$below" | sed 's|[^/][^/]*|..|g')/lib" "$f"
done

# --------------------------------------------------------------------------------------------- programs
# Plugins are found by variables only, which xrun passes on to ranks.
mkdir "$to/libexec"
for f in xrun rankinfo rankbench; do
    mv "$to/bin/$f" "$to/libexec/$f"
    cat >"$to/bin/$f" <<'END'
#!/bin/sh
# Start the program of the same name in libexec: its libraries take plugins from the bundle.
dir=$(cd "$(dirname "$0")/.." && pwd)
export PMIX_MCA_mca_base_component_path="$dir/lib/pmix" UCX_MODULE_DIR="$dir/lib/ucx" HWLOC_PLUGINS_PATH="$dir/lib/hwloc"
exec "$dir/libexec/$(basename "$0")" "$@"
END
    chmod +x "$to/bin/$f"
done
cat >"$to/run.sh" <<'END'
#!/bin/sh
# Run the tests for a machine with a GPU; see tests/gpu/run.sh.
exec bash "$(dirname "$0")/tests/gpu/run.sh" "$@"
END
chmod +x "$to/run.sh"

{
    "$to/bin/xrun" --version | head -n 1
    ldd --version | sed -n '1s/.* /needs glibc /p'
    [ ! -x "$to/bin/ucx_info" ] || "$to/bin/ucx_info" -v | sed -n '1s/^# //p'
} >"$to/lib/bundle.txt"
mib=$(du -sm "$to" | cut -f1)
[ "$mib" -lt $limit_mib ] || die "$to has $mib MiB, more than $limit_mib"
say "$to: $mib MiB"
sed 's/^/  /' "$to/lib/bundle.txt"
