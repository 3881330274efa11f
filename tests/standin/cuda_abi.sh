#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# cuda_abi.sh: compare lib/mem/cuda with the headers of a CUDA toolkit.
# Skipped without one.
for dir in ${CUDA_HOME:+"$CUDA_HOME"} /usr/local/cuda /opt/cuda /usr; do
    [[ -e $dir/include/cuda.h && -e $dir/include/cudaTypedefs.h ]] && break
    dir=
done
[[ $dir ]] || { echo "skipped: no cuda.h in CUDA_HOME, /usr/local/cuda, /opt/cuda or /usr"; exit 77; }
version=$(sed -n 's/^#define CUDA_VERSION *\([0-9]*\).*/\1/p' "$dir/include/cuda.h")
((version >= 12000)) || { echo "skipped: cuda.h of CUDA $version has too old prototypes"; exit 77; }

rc=0
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    if $compiler -std=gnu11 -Wall -Werror -fsyntax-only -I"$top_srcdir" -isystem "$dir/include" \
        "$top_srcdir/tests/standin/cuda_abi.c"; then
        echo "ok - $compiler: types, constants and prototypes are those of CUDA $version"
    else
        echo "not ok - $compiler: types, constants and prototypes are those of CUDA $version"
        rc=1
    fi
done
exit $rc
