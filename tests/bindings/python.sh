# SPDX-License-Identifier: BSD-3-Clause
# python.sh: build bindings/python for an installed librank, and run its tests.
# By pip where pip and wheel are installed, else by setup.py. No network is used.
bad=0
work=$(mktemp -d "$top_builddir/tests/python.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL LD_LIBRARY_PATH

skip() { echo "ok - Python # SKIP $1"; exit 77; }

. "$top_srcdir/tests/judge.sh"

# Print what this Python lacks, or nothing.
lacks() {
    "$1" - 2>&1 <<'CODE' || echo "a Python that runs"
import importlib.util, os, sys, sysconfig
if sys.version_info < (3, 11):
    print("Python 3.11")
elif not os.path.exists(sysconfig.get_paths()["include"] + "/Python.h"):
    print("Python.h (python3-dev)")
else:
    for name in ("setuptools", "pytest"):
        if not importlib.util.find_spec(name):
            print(name, f"(python3-{name})")
CODE
}

[ -z "${SAN_CFLAGS:-}" ] || skip "a sanitizer must be linked with Python itself"
command -v pkg-config >/dev/null || skip "no pkg-config"
python="" missing="python3"
for candidate in ${PYTHON:-python3 /usr/bin/python3}; do
    command -v "$candidate" >/dev/null || continue
    missing=$(lacks "$candidate" | tr '\n' ' ')
    [ -n "$missing" ] || { python=$candidate; break; }
done
[ -n "$python" ] || skip "no $missing"

make -C "$top_builddir" install DESTDIR="$work/dest" >"$work/log" 2>&1
judge $? "make install DESTDIR=..."
[ $bad = 0 ] || exit 1
here=$work/dest$(sed -n "s/^prefix='\(.*\)'/\1/p" "$top_builddir/lib/xcc")
export PKG_CONFIG_PATH=$here/lib/pkgconfig PKG_CONFIG="pkg-config --define-variable=prefix=$here"
export RANK_MODULES=$here/lib/librank CFLAGS=-Werror
unset CC # pip passes it on; that of Python is right

cp -r "$top_srcdir/bindings/python" "$work/source" && chmod -R u+w "$work/source" && cd "$work/source" || exit 1
if "$python" -c 'import pip, wheel' 2>/dev/null; then
    "$python" -m pip install -q --no-build-isolation --no-deps --no-index --root-user-action=ignore --target "$work/site" . \
        >"$work/log" 2>&1
    judge $? "pip install --no-build-isolation ./bindings/python"
else
    "$python" setup.py -q build --build-lib "$work/site" >"$work/log" 2>&1
    judge $? "setup.py build"
fi
[ $bad = 0 ] || exit 1
export PYTHONPATH=$work/site
case $(echo "$work"/site/rank/_rank*.so) in
*/_rank.abi3.so) judge 0 "the extension is of the stable ABI" ;;
*) judge 1 "the extension is of the stable ABI" ;;
esac

(cd "$work/source/tests" && timeout -k 5 150 "$python" -X faulthandler -m pytest -v -p no:cacheprovider -c ../pyproject.toml . \
    >"$work/log" 2>&1)
rc=$?
sed -n 's/^\([a-z_]*\.py::[^ ]*\) PASSED.*/ok - \1/p' "$work/log"
judge $rc "pytest: $(tail -n 1 "$work/log")"

if "$python" -m mypy --version >/dev/null 2>&1; then
    "$python" -m mypy --strict "$work/source/rank" >"$work/log" 2>&1
    judge $? "mypy --strict"
fi

# Each example starts its processes, and checks what they did.
cp -r "$top_srcdir/examples/python" "$work/examples" || exit 1
for name in kv_cache parameter_server; do
    if [ $name = parameter_server ] && ! "$python" -c 'import numpy' 2>/dev/null; then
        echo "ok - $name.py # SKIP no numpy"
        continue
    fi
    timeout -k 5 60 "$python" -X faulthandler "$work/examples/$name.py" >"$work/log" 2>&1
    judge $? "$name.py"
done

# Under a launcher: each rank knows its place, and the sum is that of all.
cd "$work/examples" || exit 1 # the sources have a folder rank, too
PATH=$here/bin:$PATH tests=$work/source/tests
for n in 1 3; do
    xrun -n $n "$python" "$tests/sum_ranks.py" >"$work/log" 2>&1 &&
        [ "$(grep -c "^sum of $n: $((n * (n + 1) / 2))$" "$work/log")" = $n ]
    judge $? "xrun -n $n python sum_ranks.py"
    timeout -k 5 90 xrun -n $n "$python" -X faulthandler "$tests/ranks_calls.py" >"$work/log" 2>&1 &&
        [ "$(grep -c "^all is well$" "$work/log")" = $n ]
    judge $? "xrun -n $n python ranks_calls.py"
done
if [ -e "$here/lib/librank/librank-ucx.so" ]; then # no memory of a peer is mapped
    RANK_CHANNELS=ucx timeout -k 5 90 xrun -n 3 "$python" -X faulthandler "$tests/ranks_calls.py" >"$work/log" 2>&1
    judge $? "xrun -n 3 python ranks_calls.py, by UCX"
fi
if "$python" -c 'import numpy' 2>/dev/null; then
    timeout -k 5 120 xrun -n 3 "$python" -X faulthandler "$tests/model_collectives.py" 8 >"$work/log" 2>&1
    judge $? "all collectives are as in NumPy: $(grep -o 'seed [0-9]*' "$work/log" | head -n 1)"
else
    echo "ok - model_collectives.py # SKIP no numpy"
fi

# ends CODE WHAT ARGUMENT...: rank 1 of a job ends while the others wait for it
ends() {
    code=$1 what=$2
    shift 2
    timeout -k 5 90 xrun -n 3 "$python" "$@" >"$work/log" 2>&1
    [ $? = "$code" ]
    judge $? "$what: $code"
}
begin='import rank, sys, threading; rank.init(); w = rank.world()'
ends 0 "no finalize(), and a thread that waits" -c "$begin
threading.Thread(target=lambda: w.recv(bytearray(1), peer=0), daemon=True).start(); w.barrier()"
ends 0 "finalize() by an exit handler" -c "import atexit, rank; atexit.register(rank.finalize); $begin; w.barrier()"
[ "$(grep -c Error "$work/log")" = 0 ]
judge $? "no traceback then"
for run in "" "-m rank"; do
    # shellcheck disable=SC2086
    ends 3 "sys.exit(3) of one, python $run" $run -c "$begin; w.rank == 1 and sys.exit(3); w.barrier()"
    # shellcheck disable=SC2086
    ends 1 "an exception of one, python $run" $run -c "$begin; w.rank == 1 and 1 / 0; w.barrier()"
done
ends 1 "an exception beside a thread that waits, python -m rank" -m rank -c "$begin
threading.Thread(target=lambda: w.recv(bytearray(1), peer=0)).start(); w.rank == 1 and 1 / 0; w.barrier()"
grep -q '^ZeroDivisionError' "$work/log" && ! grep -q __main__.py "$work/log"
judge $? "the traceback is of the program"
ends 0 "python -m rank, no finalize()" -m rank "$tests/ranks_calls.py"
ends 1 "abort()" -c "$begin; w.rank == 1 and rank.abort(text='by abort'); w.barrier()"
grep -q 'aborted the job with code 1: by abort' "$work/log"
judge $? "abort() has a text"

# A wait in slices is one wait for xrun: of a receive, and of a collective, which is nonblocking within.
cat >"$work/hang.py" <<'CODE'
import rank
rank.init()
w = rank.world()
w.recv(bytearray(4), 1, 7) if w.rank == 0 else w.barrier()
CODE
timeout -k 5 60 xrun --heartbeat 1:kill -n 2 "$python" "$work/hang.py" >"$work/log" 2>&1
grep -q 'rank 0: no progress for .*: receive of 4 bytes on world, tag 7, waits for rank 1$' "$work/log" &&
    grep -q 'rank 1: no progress for .*: barrier #1 on world, waits for rank 0$' "$work/log" && grep -q 'cycle: 0 -> 1 -> 0$' "$work/log"
judge $? "a hang is explained"
exit $bad
