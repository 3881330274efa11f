# SPDX-License-Identifier: BSD-3-Clause
# wheel_alone.sh: make a wheel, install it in a new environment, and use it there.
# Python, C programs and xrun have no other variable than PATH, and Python runs in a root without our libraries.
. "$top_srcdir/tests/env.sh"
skip() { echo "ok - wheel # SKIP $1"; exit 77; }
case "${SAN_CFLAGS:-}" in *sanitize*) skip "a sanitizer build" ;; esac
command -v patchelf >/dev/null || skip "patchelf is missing"
suits='import setuptools, os, pip, sys, sysconfig, venv, wheel
sys.exit(sys.version_info < (3, 11) or not os.path.exists(sysconfig.get_paths()["include"] + "/Python.h"))'
python=
for candidate in ${PYTHON:-python3 /usr/bin/python3}; do
    ! "$candidate" -c "$suits" 2>/dev/null || { python=$candidate; break; }
done
[ -n "$python" ] || skip "no Python 3.11 with Python.h, pip, setuptools and wheel"
bad=0
work=$(mktemp -d "$top_builddir/tests/wheel.XXXXXX") || exit 1
work=$(cd "$work" && pwd)
. "$top_srcdir/tests/install/bare_root.sh"
trap 'rm -rf "$work"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL RANK_MODULES
root=$work/root venv=$work/root/opt/venv

# No network is used.
PYTHON=$python PORTABLE_UCX=system sh "$top_srcdir/packaging/wheel.sh" "$top_builddir" "$work/out" >"$work/log" 2>&1
judge $? "make a wheel"
[ $bad = 0 ] || exit 1
case $(cd "$work/out" && echo *) in
librank-*-cp311-abi3-manylinux_2_[0-9]*.whl) judge 0 "its name has the stable ABI and the version of glibc" ;;
*) judge 1 "its name has the stable ABI and the version of glibc" ;;
esac
{ "$python" -m venv --without-pip --copies "$venv" &&
    env -i PATH="$PATH" "$python" -m pip --python "$venv/bin/python" install -q --no-index "$work"/out/*.whl; } >"$work/log" 2>&1
judge $? "pip install FILE"
[ $bad = 0 ] || exit 1
cat >"$venv/prog.py" <<'END'
import array, os, rank

rank.init()
world = rank.world()
mine, total = array.array("d", [world.rank + 1.0]), array.array("d", [0.0])
world.allreduce(mine, total)
print("sum", total[0], [name for name in os.environ if name.startswith("PMIX_MCA_mca_base")], flush=True)
rank.finalize()
END

# The programs are those of the environment, as a user has them: no variable but PATH.
if command -v cc >/dev/null; then
    env -i PATH="$venv/bin:$PATH" sh -c 'xcc "$1" -o "$2/hello" && exec timeout 60 xrun -n 2 "$2/hello"' sh \
        "$top_srcdir/examples/hello.c" "$work" >"$work/log" 2>&1 </dev/null && [ "$(grep -c '^hello from rank [01] of 2' "$work/log")" = 2 ]
    judge $? "xcc and xrun of a C program"
fi

mapfile -t paths < <("$python" -c 'import sysconfig; print(sysconfig.get_paths()["stdlib"])')
bare_root "$root" "${paths[@]}"
ldd "$venv/bin/python" | grep -oE '/[^ ()]+' | while read -r file; do # Python and its libraries are the machine's
    mkdir -p "$root${file%/*}" && cp -L "$file" "$root$file"
done
prefix=/opt/venv
[ "$how" != none ] || prefix=$venv
bare_path=$prefix/bin:/bin
for options in "" "-x RANK_CHANNELS=ucx,self"; do
    [ -z "$options" ] || [ -e "$venv/lib/librank/librank-ucx.so" ] || continue
    # shellcheck disable=SC2086 # options
    in_root xrun -n 4 $options python $prefix/prog.py && [ "$(grep -c '^sum 10.0 \[\]$' "$work/log")" = 4 ]
    judge $? "xrun -n 4 $options python prog.py ($how)"
done
in_root rankinfo --channels && grep -q "cuda  *$prefix/.*librank-cuda.so" "$work/log"
judge $? "rankinfo finds the modules of the wheel"
[ -e "$venv/lib/librank/libsodium.so.23" ]
judge $? "libsodium, which is opened by name, is in it"
only_glibc "|${paths[0]}|$(ldd "$venv/bin/python" | grep -oE '/[^ ()]+' | paste -sd '|')"
exit $bad
