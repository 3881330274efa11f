#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# bundle.sh BUILD DIR: copy an installation and the libraries it needs into DIR.
# ./quickstart.sh bundle calls this script.
#
# DIR runs from any place, on a machine that has glibc and nothing else. Beside what portable.sh describes it has
#   tests    the programs that run.sh starts
#   run.sh   tests/gpu/run.sh
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/packaging/portable.sh"
dir=$2
limit_mib=60

if [ -e "$dir" ] && [ ! -f "$dir/lib/bundle.txt" ] && [ -n "$(ls -A "$dir")" ]; then
    die "$dir exists and is not a bundle; name a new folder"
fi
portable_begin "$1"
rm -rf "$dir"
mkdir -p "$dir/lib"
: >"$dir/lib/bundle.txt" # another try overwrites what this one leaves
dir=$(cd "$dir" && pwd)
portable_copy "$dir"
for f in ucx_perftest ucx_info; do
    [ ! -x "$ucx/../bin/$f" ] || cp -p "$ucx/../bin/$f" "$dir/bin/"
done

logged "the build of the tests" make -s -C "$build" gpu-programs
for f in $(make -s -C "$build" gpu-list); do
    mkdir -p "$dir/$(dirname "$f")"
    cp -p "$build/$f" "$dir/$f"
done
mkdir -p "$dir/tests/gpu"
cp -p "$top"/tests/gpu/*.sh "$dir/tests/gpu/"
portable_close "$dir"

cat >"$dir/run.sh" <<'END'
#!/bin/sh
# Run the tests for a machine with a GPU; see tests/gpu/run.sh.
exec bash "$(dirname "$0")/tests/gpu/run.sh" "$@"
END
chmod +x "$dir/run.sh"
{
    "$dir/bin/xrun" --version | head -n 1
    echo "needs glibc $(needed_glibc "$dir")"
    [ ! -x "$dir/bin/ucx_info" ] || "$dir/bin/ucx_info" -v | sed -n '1s/^# //p'
} >"$dir/lib/bundle.txt"
mib=$(du -sm "$dir" | cut -f1)
[ "$mib" -lt $limit_mib ] || die "$dir has $mib MiB, more than $limit_mib"
say "$dir: $mib MiB"
sed 's/^/  /' "$dir/lib/bundle.txt"
