# SPDX-License-Identifier: BSD-3-Clause
# api.sh: compare the functions of rank.h, export list, library and manual.
bad=0
work=$(mktemp -d "$top_builddir/tests/api.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# same WHAT FILE FILE
same() {
    if [ -s "$2" ] && cmp -s "$2" "$3"; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        diff "$2" "$3" | sed 's/^/    /'
        bad=1
    fi
}

export LC_ALL=C
sed -n 's/^RANK_API.*[ *]\(rank_[a-z0-9_]*\)(.*/\1/p' "$top_srcdir"/lib/rank/*.h | sort >"$work/header"
sort "$top_srcdir/lib/rank.sym" >"$work/list"
same "rank.sym lists what rank.h declares" "$work/header" "$work/list"

nm -D --defined-only "$top_builddir/.libs/librank.so" |
    awk '$2 ~ /^[B-Z]$/ && $3 !~ /^__asan_|^__ubsan_|^__tsan_|^_(init|fini|end|edata|_bss_start)$/ { print $3 }' |
    sed 's/@.*//' | sort -u >"$work/built"
sed 'p; s/^/p/' "$work/header" | sort >"$work/exports"
same "librank.so exports that, the same as prank_X, and nothing else" "$work/exports" "$work/built"
nm "$top_builddir/.libs/librank.so" | awk '$2 == "W" && $3 ~ /^rank_/ { print $3 }' | sed 's/@.*//' | sort -u >"$work/weak"
same "each rank_X is a weak name (RK_PUBLIC)" "$work/header" "$work/weak"

# Each function of the header once more in the manual: declared on one page, which the links of the others name.
synopsis='/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/s/^[a-z].*[ *]\(rank_[a-z0-9_]*\)(.*/\1/p'
for page in "$top_srcdir"/doc/rank_*.3; do
    name=$(basename "$page" .3)
    for function in $(sed -n "$synopsis" "$page"); do
        echo "$function" >>"$work/declared"
        [ "$function" = "$name" ] || echo "$function $name" >>"$work/links"
    done
done
sort "$work/declared" >"$work/manual"
same "the pages of section 3 declare each function once" "$work/header" "$work/manual"
sort "$work/links" >"$work/links.expected"
sort "$top_srcdir/doc/rank3.links" >"$work/links.listed"
same "rank3.links lists the page of each other function" "$work/links.expected" "$work/links.listed"

# Each page has all sections, in this order.
for page in "$top_srcdir"/doc/rank_*.3; do
    sections=$(sed -n 's/^\.SH //p' "$page" | paste -sd,)
    if [ "$sections" != "NAME,SYNOPSIS,DESCRIPTION,RETURN VALUE,ERRORS,EXAMPLE,SEE ALSO" ]; then
        echo "not ok - $(basename "$page") has the sections $sections"
        bad=1
    fi
done

# The header alone is enough, in C of any age that has stdint.h, and in C++ where there is a compiler.
echo '#include "lib/rank.h"' >"$work/alone.c"
for std in c99 c11 gnu17; do
    if ${CC:-cc} -std=$std -pedantic-errors -Wall -Wextra -Werror -fsyntax-only -I"$top_srcdir" \
        "$work/alone.c" 2>"$work/err"; then
        echo "ok - rank.h compiles alone as $std"
    else
        echo "not ok - rank.h as $std"
        sed 's/^/    /' "$work/err"
        bad=1
    fi
done
if command -v c++ >/dev/null; then
    cp "$work/alone.c" "$work/alone.cc"
    if c++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only -I"$top_srcdir" "$work/alone.cc" 2>"$work/err"; then
        echo "ok - rank.h compiles as C++11"
    else
        echo "not ok - rank.h as C++11"
        sed 's/^/    /' "$work/err"
        bad=1
    fi
fi

# One version everywhere.
version=$(sed -n 's/^AC_INIT(\[xrun\], \[\(.*\)\])/\1/p' "$top_srcdir/configure.ac")
header=$(sed -n 's/^#define RANK_VERSION_[A-Z]* //p' "$top_srcdir/lib/rank/types.h" | paste -sd.)
if [ -n "$version" ] && [ "$version" = "$header" ] && grep -q "^## $version" "$top_srcdir/NEWS.md"; then
    echo "ok - configure.ac, rank.h and NEWS.md say $version"
else
    echo "not ok - the version is '$version' in configure.ac, '$header' in rank.h; NEWS.md:"
    grep '^## ' "$top_srcdir/NEWS.md"
    bad=1
fi
exit $bad
