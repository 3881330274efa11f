#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# wheel.sh BUILD DIR: make a wheel for Python that needs glibc and nothing else.
# ./quickstart.sh wheel calls this script.
#
# It has the package rank, and the installation of portable.sh for the environment's bin, lib, include and share. xrun is
# there as it is: it finds its libraries, and agents on other hosts, from its own path.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/packaging/portable.sh"

python=
for candidate in ${PYTHON:-python3 /usr/bin/python3}; do
    ! "$candidate" -c 'import setuptools, wheel, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { python=$candidate; break; }
done
[ -n "$python" ] || die "no Python 3.11 with setuptools and wheel (Debian: python3-dev python3-setuptools python3-wheel)"
mkdir -p "$2"
dir=$(cd "$2" && pwd)
portable_begin "$1"

# The package alone, as a wheel, is the frame.
cp -R "$top/bindings/python" "$work/source"
chmod -R u+w "$work/source"
(cd "$work/source" && logged "the build of the binding" env PKG_CONFIG_PATH="$installed/lib/pkgconfig" \
    PKG_CONFIG="pkg-config --define-variable=prefix=$installed" "$python" setup.py -q bdist_wheel -d "$work/plain")
logged "wheel unpack" "$python" -m wheel unpack -d "$work/tree" "$work"/plain/*.whl
tree=$(echo "$work"/tree/*)

# Laid out as pip will install it, so that paths from file to file are the same; "V" stands for pythonX.Y.
root=$work/root
mkdir -p "$root/lib/V/site-packages"
mv "$tree/rank" "$root/lib/V/site-packages/"
portable_copy "$root"
rm -rf "$root/lib/librank/examples" "$root/share/doc"
portable_close "$root"

mv "$root/lib/V/site-packages/rank" "$tree/"
rm -r "$root/lib/V"
data=$tree/$(basename "$tree").data
mkdir -p "$data"
mv "$root/bin" "$data/scripts"
mv "$root" "$data/data"
platform=manylinux_$(needed_glibc "$tree" | tr . _)_$(uname -m)
sed -i "s/^Tag: .*/Tag: cp311-abi3-$platform/" "$tree"/*.dist-info/WHEEL
rm -f "$dir"/librank-*-"cp311-abi3-$platform".whl
logged "wheel pack" "$python" -m wheel pack -d "$dir" "$tree"
for file in "$dir"/librank-*-"cp311-abi3-$platform".whl; do
    say "$file: $(($(stat -c %s "$file") >> 20)) MiB"
done
