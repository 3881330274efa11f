#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# quickstart.sh: from a fresh clone to a running job or to tested code. See usage.
set -eu

usage()
{
    cat <<'END'
usage: ./quickstart.sh [--no-install] [configure options]
       ./quickstart.sh check [--full] [--no-install] [configure options]
       ./quickstart.sh wheel DIR [--no-install] [configure options]
       ./quickstart.sh bundle DIR [--no-install] [configure options]

Installs the Debian or Ubuntu packages that are missing (as root, or through sudo), builds in
./_build, installs into ./_install and runs a first job: conjugate gradients on 4 ranks. With
"check" it runs the tests instead: five to ten minutes, in which the long scripts take turns. With
--full all of them run. Those need more packages, among them sshd and Slurm. The tests start
their daemons, as root. With "wheel" it makes a file in DIR for pip install, with all libraries that
Python programs, C programs and xrun need beside glibc. With "bundle" it copies the installation, the libraries that it needs and
the tests for a GPU into DIR, which then runs on machines that have glibc and nothing else.

  --no-install   install no packages; use what is there
  --with-X=DIR   take X from DIR and not from a package: pmix, hwloc, event, ucx, verbs, cmocka.
                 This and every other option goes to configure and is remembered for later runs.
END
}

say() { echo "quickstart: $*"; }

die()
{
    echo "quickstart: $*" >&2
    exit 1
}

cd "$(dirname "$0")"
top=$(pwd -P)
build=$top/_build

# ----------------------------------------------------------------------------------------- arguments
mode=run full=no may_install=yes
if [ "${1-}" = check ]; then
    mode=check
    shift
elif [ "${1-}" = bundle ] || [ "${1-}" = wheel ]; then
    mode=$1
    case ${2-} in
    "" | -*) die "$mode needs a folder: ./quickstart.sh $mode DIR" ;;
    /*) folder=$2 ;;
    *) folder=$OLDPWD/$2 ;;
    esac
    shift 2
fi
count=$#
while [ "$count" -gt 0 ]; do # what is left over in "$@" is configure's
    arg=$1
    shift
    count=$((count - 1))
    case $arg in
    -h | --help)
        usage
        exit 0
        ;;
    --full) full=yes ;;
    --no-install) may_install=no ;;
    -* | [A-Z]*=*) set -- "$@" "$arg" ;;
    *)
        usage >&2
        die "'$arg' is neither 'check', 'wheel', 'bundle' nor an option"
        ;;
    esac
done
[ $full = no ] || [ $mode = check ] || die "--full goes with check: ./quickstart.sh check --full"

# Options once given hold until others are given.
changed=no
if [ $# -gt 0 ]; then
    mkdir -p "$build"
    printf '%s\n' "$@" >"$build/quickstart.options.new"
    cmp -s "$build/quickstart.options.new" "$build/quickstart.options" || changed=yes
    mv "$build/quickstart.options.new" "$build/quickstart.options"
elif [ -f "$build/quickstart.options" ]; then
    while IFS= read -r arg; do
        set -- "$@" "$arg"
    done <"$build/quickstart.options"
fi
prefix=$top/_install
for arg do
    case $arg in
    --prefix=*) prefix=${arg#--prefix=} ;;
    esac
done

# ------------------------------------------------------------------------------------------ packages
# Each by its name, so that nothing depends on what happened to be installed. The libraries that the
# options take from elsewhere are left out.
packages="gcc libc6-dev libsodium23 make pkg-config"
if [ -e .git ] || [ ! -f configure ]; then
    packages="$packages autoconf automake libtool"
fi
for pair in pmix:libpmix-dev hwloc:libhwloc-dev event:libevent-dev ucx:libucx-dev \
    verbs:libibverbs-dev cmocka:libcmocka-dev; do
    [ $pair != cmocka:libcmocka-dev ] || [ $mode = check ] || [ $mode = bundle ] || continue
    wanted=yes
    for arg do
        case $arg in
        --with-"${pair%:*}"=yes | --with-"${pair%:*}"=check) ;;
        --with-"${pair%:*}"=* | --without-"${pair%:*}") wanted=no ;;
        esac
    done
    [ $wanted = no ] || packages="$packages ${pair#*:}"
done
[ $mode != check ] || packages="$packages bash golang-go python3 python3-dev python3-mypy python3-numpy python3-pytest python3-setuptools"
[ $mode != bundle ] || packages="$packages bash g++ patchelf python3-pip"
[ $mode != wheel ] || packages="$packages patchelf python3 python3-dev python3-pip python3-setuptools python3-wheel"
[ $full = no ] || packages="$packages clang elfutils gdb groff-base libmpich-dev libopenmpi-dev mpich patchelf python3-pip python3-wheel strace valgrind xz-utils"
# Several hosts on this one, and launchers that are not ours.
[ $full = no ] || packages="$packages openssh-server openssh-client nftables iproute2 util-linux \
    openmpi-bin slurmctld slurmd slurm-client munge"

# The packages of "$@" that are not installed.
missing()
{
    for package do
        case " $(dpkg-query -W -f '${db:Status-Status} ' "$package" 2>/dev/null)" in
        *" installed "*) ;;
        *) printf '%s ' "$package" ;;
        esac
    done
}

# Some releases keep clang's sanitizer and fuzzer libraries in a package of their own: its name, if so.
clang_runtime()
{
    major=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p')
    [ -n "$major" ] && known "libclang-rt-$major-dev" && echo "libclang-rt-$major-dev"
    return 0
}

# How to become root: nothing to do, sudo, or not at all.
find_root()
{
    if [ "$(id -u)" = 0 ]; then
        echo env
    elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
        echo sudo
    fi
}

# apt LOG ARGUMENT...
apt()
{
    apt_log=$1
    shift
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 "$@" \
        >>"$apt_log" 2>&1 </dev/null
}

# Do the package lists know every one of "$@"?
known()
{
    for package do
        apt-cache policy "$package" 2>/dev/null | grep -q '^  Candidate: [^(]' || return 1
    done
}

# install_packages PACKAGE...: those that are missing
install_packages()
{
    lacking=$(missing "$@")
    [ -n "$lacking" ] || return 0
    line="apt-get install --no-install-recommends $lacking"
    line=${line% }
    as_root=$(find_root)
    if [ -z "$as_root" ]; then
        die "packages are missing and I can become root neither directly nor by sudo.
Please have this run (or see --with-X=DIR in ./quickstart.sh --help), then start me again:

    sudo $line"
    fi
    say "installing ${lacking% }"
    mkdir -p "$build"
    : >"$build/apt.log"
    # Lists are fetched only when they do not know a package, or point to one that is gone.
    # shellcheck disable=SC2086 # a list of names
    if ! { known $lacking && apt "$build/apt.log" install --no-install-recommends $lacking; }; then
        apt "$build/apt.log" update || say "warning: 'apt-get update' failed" >&2
        if ! apt "$build/apt.log" install --no-install-recommends $lacking; then
            tail -n 20 "$build/apt.log" >&2
            die "this failed (the whole log: _build/apt.log): $line"
        fi
    fi
    installed_some=yes
}

# Other systems: say what is needed. Called when something is found missing.
needs()
{
    cat >&2 <<'END'

xrun and librank need:
  gcc or clang, make, pkg-config; in a clone also autoconf 2.69, automake 1.16, libtool 2.4.6
  PMIx 4      pmix.h and libpmix           or --with-pmix=DIR
  hwloc 2     hwloc.h and libhwloc         or --with-hwloc=DIR
  libevent 2  event2/event.h, libevent     or --with-event=DIR
and can use:
  UCX         1.12 or later                or --with-ucx=DIR, --without-ucx
  libibverbs                               or --with-verbs=DIR, --without-verbs
  cmocka      for the unit tests           or --with-cmocka=DIR, --without-cmocka
  libsodium   (libsodium.so.23) for jobs on several hosts, and when a program connects with a secret
with their headers: DIR holds include/ and lib/. Give the options to ./quickstart.sh.
END
    if command -v dpkg-query >/dev/null; then
        echo "On this system: apt-get install --no-install-recommends $packages" >&2
    fi
    exit 1
}

installed_some=no
if [ $may_install = yes ] && command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
    [ $full = no ] || packages="$packages $(clang_runtime)"
    # shellcheck disable=SC2086 # a list of names
    install_packages $packages
    # Now the package lists are there for certain.
    # shellcheck disable=SC2046 # a name or nothing
    [ $full = no ] || install_packages $(clang_runtime)
else
    for tool in "${CC:-cc}" make pkg-config; do
        if ! command -v "$tool" >/dev/null; then
            say "$tool is missing" >&2
            needs
        fi
    done
fi

# --------------------------------------------------------------------------------------------- build
# quiet LOG WHAT COMMAND...: its output goes to a log, of which a failure shows the end
quiet()
{
    quiet_log=$build/$1 what=$2
    shift 2
    if ! "$@" >"$quiet_log" 2>&1 </dev/null; then
        tail -n 40 "$quiet_log" >&2
        die "$what failed; the whole log: $quiet_log"
    fi
}

mkdir -p "$build"
for file in configure Makefile.in config.h.in build-aux/ltmain.sh build-aux/install-sh; do
    [ ! -f $file ] || continue
    if ! command -v autoreconf >/dev/null; then
        say "autoconf is missing" >&2
        needs
    fi
    say "generating configure"
    quiet autoreconf.log autoreconf autoreconf -f -i
    break
done

# Unit tests are left out of a tree that was configured before cmocka came.
if [ $mode != run ] && [ -f "$build/config.h" ] &&
    ! grep -q '^#define HAVE_CMOCKA 1' "$build/config.h" && pkg-config --exists cmocka; then
    installed_some=yes
fi
if [ ! -f "$build/Makefile" ] || [ $changed = yes ] || [ $installed_some = yes ]; then
    say "configuring"
    had=no
    [ ! -f "$build/Makefile" ] || had=yes
    (cd "$build" && "$top/configure" -q --prefix="$prefix" "$@" </dev/null) || needs
    # Objects do not depend on the options they were compiled with.
    [ $had = no ] || [ $changed = no ] || make -s -C "$build" clean
fi

jobs=$(nproc 2>/dev/null || echo 2)
if ! make -q -C "$build" all >/dev/null 2>&1; then
    say "building"
fi
quiet make.log "the build" make -s -j "$jobs" -C "$build" all
[ $mode != check ] || quiet make-tests.log "the build of the tests" make -s -j "$jobs" -C "$build" check TESTS=
[ $mode = bundle ] || [ $mode = wheel ] || quiet install.log "the installation" make -C "$build" quickstart.stamp

# ----------------------------------------------------------------------------------------- main job
if [ $mode = run ]; then
    PATH=$prefix/bin:$PATH
    export PATH
    # Once on a machine. Where it cannot be measured (one core, no home) the rates that are built in do.
    if rankinfo --paths 2>/dev/null | grep -q '^  rates    built in'; then
        say "measuring how large messages go here (rankinfo --calibrate)"
        rankinfo --calibrate >"$build/calibrate.log" 2>&1 || say "not measured: $(head -n 1 "$build/calibrate.log")"
    fi
    for job in "xrun -n 4 cg examples/data/1138_bus.mtx" "xrun -n 4 rankbench allreduce"; do
        printf '\n$ %s\n' "$job"
        $job || die "the job failed"
    done
    cat <<END

To go on in this shell:

    export PATH=$prefix/bin:\$PATH MANPATH=$prefix/share/man:
    xcc examples/hello.c -o hello && xrun -n 4 ./hello
END
    exit 0
fi

# ---------------------------------------------------------------------------------- wheel and bundle
if [ $mode = wheel ] || [ $mode = bundle ]; then
    exec "$top/packaging/$mode.sh" "$build" "$folder"
fi

# -------------------------------------------------------------------------------------------- tests
if [ $full = yes ]; then
    target=check-full
    side_by_side=3
else
    target=check-all
    side_by_side=2
    # Of the long scripts a third runs, another one with the next commit or day.
    LONG_TURN=$(git -C "$top" rev-list --count HEAD 2>/dev/null || date +%j | sed 's/^0*//')
    export LONG_TURN
fi
result=0
# Not more: many of them are jobs of several ranks themselves.
make -s -k -j $side_by_side -C "$build" $target || result=1
"$top/tests/summary.sh" "$build" || result=1
exit $result
