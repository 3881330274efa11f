# SPDX-License-Identifier: BSD-3-Clause
# words.sh: check the rules of words that a script can check; words.txt has exceptions.
cd "$top_srcdir" || exit 1
command -v python3 >/dev/null || { echo "ok - words # SKIP no python3"; exit 77; }
work=$(mktemp -d "$top_builddir/tests/words.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

# check KIND WHAT: fails if $work/found has lines of this kind
check() {
    if grep -q "^$1 " "$work/found"; then
        echo "not ok - $2"
        sed -n "s/^$1 /    /p" "$work/found"
        bad=1
    else
        echo "ok - $2"
    fi
}

# A sample with a fault of each kind, and with what is none.
mkdir -p "$work/lib" "$work/doc" && {
    printf '/* SPDX-License-Identifier: BSD-3-Clause */\n/* usher.c: %080d */\n' 0
    printf 'int who_is; /* Nobody knows. */\n'
    printf 'const char *s = "he said"; int other, whole; /* The theme, echo. */\n'
} >"$work/lib/usher.c"
printf 'Send it to whom it belongs.\nNobody?\n' >"$work/doc/sample.md"
printf 'doc/ nobody is excused here\ndoc/ who nothing to excuse\nlib/ reason\n' >"$work/exceptions"
python3 tests/lint/words.py "$work" "$work/exceptions" | sed 's/\([a-z]* [^ ]*\).*/\1/' | LC_ALL=C sort >"$work/found"
if printf '%s\n' "exception words.txt:3:" "head lib/usher.c:2:" "person doc/sample.md:1:" "person lib/usher.c:3:" \
    "person lib/usher.c:4:" "term lib/usher.c:1:" "term lib/usher.c:3:" "unused words.txt:2:" | cmp -s - "$work/found"; then
    echo "ok - each fault of a sample is found"
else
    echo "not ok - each fault of a sample is found"
    sed 's/^/    /' "$work/found"
    bad=1
fi

python3 tests/lint/words.py . tests/lint/words.txt >"$work/found" || { echo "not ok - words.py failed"; exit 1; }
check person "no who, whom, nobody, somebody and he in comments, documents and messages"
check head "the first comment line of a file has at most 80 characters"
check term "no word that a term of doc/glossary.md has replaced is an identifier"
check exception "each exception has a reason"
sed -n 's/^unused /# needed no more: /p' "$work/found"
exit $bad
