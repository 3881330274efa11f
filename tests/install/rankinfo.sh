# SPDX-License-Identifier: BSD-3-Clause
# rankinfo.sh: check the output of rankinfo, and what it refuses.
info=$top_builddir/rankinfo
work=$(mktemp -d "$top_builddir/tests/rankinfo.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

# hwloc's plugins keep memory until exit, which is theirs to do.
ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
export ASAN_OPTIONS

judge() {
    if [ "$1" = 0 ]; then
        echo "ok - $2"
    else
        echo "not ok - $2"
        sed 's/^/    out: /' "$work/out"
        sed 's/^/    err: /' "$work/err"
        bad=1
    fi
}

# run ARGUMENT...: leaves out, err, rc
run() {
    timeout 60 "$info" "$@" >"$work/out" 2>"$work/err"
    rc=$?
}

says() { grep -qE -- "$1" "$work/out"; }
complains() { [ "$(wc -l <"$work/err")" = 1 ] && grep -qE -- "$1" "$work/err"; }

run
[ $rc = 0 ] && [ ! -s "$work/err" ] && says '^librank [0-9.]+$' && says '^channels$' && says '^  shm ' &&
    says '^topology$' && says '^  allowed +cpus [0-9]' && says '^  RANK_LOG = warn$'
judge $? "all parts without options"

# Every row of the table is there, with its default.
run --conf
missing=
for name in $(grep -o '{"RANK_[A-Z0-9_]*"' "$top_srcdir/lib/base/conf_table.c" | tr -d '{"'); do
    says "^  $name = " || missing="$missing $name"
done
[ -z "$missing" ] && [ "$(grep -c '^      from: ' "$work/out")" = "$(grep -c '^  RANK_' "$work/out")" ]
judge $? "--conf has every variable${missing:+, but not$missing}"

RANK_EAGER_MAX=4096 run --conf
[ $rc = 0 ] && says '^  RANK_EAGER_MAX = 4K$' && says '^      from: environment$'
judge $? "a value from the environment"

printf '# ours\nRANK_SPIN = 3ms\n' >"$work/rank.conf"
RANK_CONF=$work/rank.conf run --conf
[ $rc = 0 ] && says '^  RANK_SPIN = 3ms$' && says "^      from: $work/rank.conf$"
judge $? "a value from a file"

RANK_CMA=sometimes run --conf
[ $rc = 1 ] && complains "RANK_CMA is 'sometimes'; allowed is one of auto.on.off" && says '^  RANK_CMA = auto$'
judge $? "a bad value is named, the rest is shown"

RANK_CHANELS=shm run --build
[ $rc = 0 ] && complains 'RANK_CHANELS .* did you mean RANK_CHANNELS'
judge $? "an unknown variable is warned about"

run --channels
if grep -q '^#define HAVE_UCX 1' "$top_builddir/config.h"; then
    says "^  ucx +$top_builddir/.libs/librank-ucx.so(;|$)"
    judge $? "the ucx module is found"
    run --load
    [ $rc = 0 ] && says '^ +loaded; UCX 1\.[0-9]+'
    judge $? "and loads"
    UCX_TLS=tcp,self UCX_NET_DEVICES=lo run --load
    [ $rc = 0 ] && [ ! -s "$work/err" ] && says '^ +rails  tcp/lo$' && says 'UCX_MAX_EAGER_RAILS=[0-9]+'
    judge $? "the rails that UCX takes"
    UCX_TLS=tcp UCX_NET_DEVICES=none9 run --load
    says '^ +rails  none' || grep -q 'UCX does not start' "$work/err"
    judge $? "a network device that is not there"
fi
RANK_MODULES=/nonexistent run --channels
[ $rc = 0 ] && says '^  ucx +not found'
judge $? "a ucx module that is not there"

XDG_CACHE_HOME=$work/cache run --paths
[ $rc = 0 ] && [ ! -s "$work/err" ] && says '^  rates +built in' && says '^  4 MiB ' && says '^  64 KiB ' &&
    [ ! -e "$work/cache" ]
judge $? "--paths shows what is built in, and makes no file"

if [ "$(nproc)" -ge 2 ]; then
    XDG_CACHE_HOME=$work/cache run --calibrate
    file=$(echo "$work"/cache/librank/*)
    [ $rc = 0 ] && [ ! -s "$work/err" ] && [ -f "$file" ] && says "^wrote $file\$" && says "^  rates +measured here: $file\$"
    judge $? "--calibrate leaves one file, which is used"
    echo x >>"$file"
    XDG_CACHE_HOME=$work/cache run --paths
    [ $rc = 0 ] && complains 'is not used: it is damaged; rankinfo --calibrate' && says '^  rates +built in'
    judge $? "a damaged one is not"
    : >"$work/plain"
    RANK_PATHS=$work/plain/y run --calibrate
    [ $rc = 1 ] && grep -q "cannot write the table of paths to $work/plain/y: " "$work/err"
    judge $? "a place where no file can be is named"
    taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')" timeout 60 "$info" --calibrate >"$work/out" 2>"$work/err"
    [ $? = 1 ] && complains 'needs two cores'
    judge $? "one core is too few to calibrate"
fi
# Recorded machines: AMD's GPUs are of class 0300 and without driver here.
recorded=$top_srcdir/tests/data/topologies
run --topo --xml "$recorded/epyc-corona.xml"
[ $rc = 0 ] && [ ! -s "$work/err" ] && says '^  GPU 3 +0000:73:00.0, Vega 20, .*near cpus 42-47,90-95$' &&
    says '^  NIC 2 +0000:33:00.0 mlx5_0 \(hsi0\).* RDMA' && says '^  rank 3 +cpus 42-47,90-95; GPU 3 NODE, .*; NIC 2 SYS, '
judge $? "--topo of a machine with AMD GPUs"
run --topo --xml "$recorded/coral-lassen.xml" --ranks 2 --gpus-per-rank 2
[ $rc = 0 ] && says '^  rank 0 .*; GPU 0 NODE.*; GPU 1 NODE.*; NIC 0 NODE' && says '^  rank 1 .*; GPU 2 NODE.*; GPU 3 NODE.*; NIC 4 NODE' &&
    says '^  GPU1 +PIX +X +SYS +SYS +NODE '
judge $? "--topo with two GPUs a rank"
env -u HWLOC_COMPONENTS HWLOC_XMLFILE="$recorded/g4dnmetal.xml" CUDA_VISIBLE_DEVICES=6,2 "$info" --topo >"$work/out" 2>"$work/err"
[ $? = 0 ] && says '^  rank 0 .*; GPU 2 ' && says '^  rank 1 .*; GPU 6 ' && ! says '^  rank 2'
judge $? "--topo with CUDA_VISIBLE_DEVICES"
run --topology --xml "$recorded/g4dnmetal.xml"
[ $rc = 0 ] && says '^  GPU 7 +0000:f5:00.0 cuda7, Tesla T4' && ! says '^  rank'
judge $? "--topology of a recorded machine has no ranks"
run --topo --xml "$recorded/g4dnmetal.xml" --gpus-per-rank 9
[ $rc = 1 ] && complains '9 GPUs for each rank are too many: there are 8$'
judge $? "more GPUs a rank than there are"
run --topo --xml "$work/none.xml"
[ $rc = 1 ] && complains "cannot read $work/none.xml .*: No such file"
judge $? "a machine that is not there"
run --topo --xml "$top_srcdir/README.md"
[ $rc = 1 ] && complains "cannot read .*README.md as a machine in hwloc's XML"
judge $? "a file that is no machine"
run --topo --xml "$recorded/epyc-corona.xml" --ranks 8 --svg "$work/map.svg"
lines=$(grep -c '^<line ' "$work/map.svg")
[ $rc = 0 ] && [ "$lines" = 16 ] && grep -q '>NIC 2 mlx5_0, 15.8 GB/s' "$work/map.svg" &&
    { ! command -v python3 >/dev/null || python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$work/map.svg"; }
judge $? "a drawing with a line for each choice"
run --topo --svg "$work/none/map.svg"
[ $rc = 1 ] && complains "cannot write $work/none/map.svg: No such file"
judge $? "a drawing that cannot be written"
run --build --xml "$recorded/g4dnmetal.xml"
[ $rc = 2 ] && complains 'xml needs --topo'
judge $? "--xml without --topo"

RANK_PATHS=none RANK_LARGE=cma2 run --paths
[ $rc = 0 ] && says '^  1 MiB +cma2 .*RANK_LARGE=cma2'
judge $? "a path that is forced"

run --coll
missing=
for name in barrier bcast reduce allreduce gather allgather allgatherv scatter reduce_scatter alltoall gatherv scatterv alltoallv reduce_scatterv scan exscan; do
    says "$name" || missing="$missing $name"
done
[ $rc = 0 ] && [ -z "$missing" ]
judge $? "--coll has every collective${missing:+, but not$missing}"

RANK_COLL=allreduce:ring@64K-1M run --coll allreduce --ranks 64 --nodes 4
[ $rc = 0 ] && says '^64K-1M +ring +set by RANK_COLL' && says 'passed over: the rule for shm: for one node'
judge $? "--coll NAME prints ranges, reasons and what was passed over"
run --coll allreduced --ranks 64
[ $rc = 1 ] && complains "there is no collective 'allreduced'"
judge $? "--coll with an unknown name"
run --coll allreduce --ranks 2 --nodes 4
[ $rc = 2 ] && complains "4 nodes for 2 ranks"
judge $? "--coll with fewer ranks than nodes"

run --version
[ $rc = 0 ] && says "^rankinfo [0-9]+\.[0-9]+\.[0-9]+$"
judge $? "--version"
run --help
[ $rc = 0 ] && says '^usage: rankinfo'
judge $? "--help"
run --topolgy
[ $rc = 2 ] && [ ! -s "$work/out" ] && complains 'unknown option --topolgy; did you mean --topology\?'
judge $? "an unknown option"
run extra
[ $rc = 2 ] && complains "unexpected argument 'extra'"
judge $? "an argument"

if [ -e /dev/full ]; then
    for option in --build --version --help; do
        timeout 60 "$info" $option >/dev/full 2>"$work/err"
        [ $? = 1 ] && grep -q 'cannot write: No space left' "$work/err"
        judge $? "a full disk is noticed, $option"
    done
fi
exit $bad
