# SPDX-License-Identifier: BSD-3-Clause
# tutorial.sh: run the programs of doc/tutorial.md and README.md, compare output.
#
# A step is a heading "## N. Title" with one block ```c, which names the file in its first line, and one block ```console:
# commands behind "$ " and their output, both streams. In ```console any-order the order of the lines is free.
# In README.md the section "A program" is such a step.
work=$(mktemp -d "$top_builddir/tests/tutorial.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
least_steps=10
limit_s=60
bad=0
export XRUN_QUIET=on # the page notes that xrun may add a line where ranks outnumber cores

# Split the pages into N/title, N/program.c, N/order, N/command.K and N/expected.K; N is "readme" for README.md.
awk -v work="$work" '
    function put(file, text) { print text >(work "/" step "/" file) }
    FNR == 1 { step = "" }
    /^## / && !block { step = "" }
    /^## ([0-9]+\. |A program$)/ && !block {
        step = $2 ~ /^[0-9]/ ? $2 + 0 : "readme"
        command = 0
        system("mkdir -p " work "/" step)
        title = $0
        sub(/^## ([0-9]+\. )?/, "", title)
        put("title", title)
        next
    }
    /^```/ && block { block = ""; next }
    /^```/ {
        block = substr($1, 4)
        if (block == "")
            block = "plain"
        if (step && block == "console")
            put("order", $2 == "any-order" ? "any" : "given")
        if (step && block == "c")
            put("programs", "1")
        next
    }
    step && block == "c" { put("program.c", $0) }
    step && block == "console" && /^\$ / { command++; put("command." command, substr($0, 3)); next }
    step && block == "console" && command { put("expected." command, $0) }
' "$top_srcdir/doc/tutorial.md" "$top_srcdir/README.md" || exit 1

# The commands of the page find these two.
mkdir "$work/bin"
cat >"$work/bin/xcc" <<END
#!/bin/sh
exec ${CC:-cc} ${SAN_CFLAGS:-} -std=gnu11 -Wall -Wextra -Werror -O1 -I"$top_srcdir/lib" "\$@" \
    -L"$top_builddir/.libs" -Wl,-rpath,"$top_builddir/.libs" -lrank
END
printf '#!/bin/sh\nexec "%s" "$@"\n' "$(realpath "$XRUN")" >"$work/bin/xrun"
chmod +x "$work/bin/xcc" "$work/bin/xrun"
PATH=$work/bin:$PATH

# Print a file without what differs from run to run; sorted if the order is free.
normalized() {
    sed -E 's/host [^ ,]+, pid [0-9]+/host HOST, pid PID/; s/[0-9]+\.[0-9]+ s\b/T s/g' "$1" |
        if [ "$2" = any ]; then LC_ALL=C sort; else cat; fi
}

# run_step N: run its commands one after the other; $? of a command is that of the one before it.
run_step() {
    local dir=$work/$1 file order k rc=0
    file=$(sed -n '1s,^/\* \([a-z]*\.c\): .*,\1,p' "$dir/program.c" 2>/dev/null)
    order=$(cat "$dir/order" 2>/dev/null)
    [ -n "$file" ] || { echo "no program, or its first line names no file"; return 1; }
    [ "$(wc -l <"$dir/programs")" = 1 ] || { echo "more than one program"; return 1; }
    [ -s "$dir/command.2" ] || { echo "fewer than two commands"; return 1; }
    cp "$dir/program.c" "$dir/$file"
    for ((k = 1; ; k++)); do
        [ -e "$dir/command.$k" ] || return 0
        (cd "$dir" && timeout -k 5 $limit_s bash -c "(exit $rc); $(cat "command.$k")" >"out.$k" 2>&1 </dev/null)
        rc=$?
        touch "$dir/expected.$k"
        normalized "$dir/expected.$k" "$order" >"$dir/want"
        normalized "$dir/out.$k" "$order" >"$dir/got"
        cmp -s "$dir/want" "$dir/got" && continue
        echo "\$ $(cat "$dir/command.$k") (exit code $rc)"
        diff "$dir/want" "$dir/got"
        return 1
    done
}

# judge N NAME
judge() {
    if run_step "$1" >"$work/log"; then
        echo "ok - $2, $(cat "$work/$1/title")"
    else
        echo "not ok - $2, $(cat "$work/$1/title")"
        sed 's/^/    /' "$work/log"
        bad=1
    fi
}

steps=0
while [ -d "$work/$((steps + 1))" ]; do
    steps=$((steps + 1))
    judge $steps "step $steps"
done
if [ $steps -lt $least_steps ]; then
    echo "not ok - the tutorial has $least_steps steps: $steps found"
    bad=1
fi
if [ -d "$work/readme" ]; then
    judge readme README.md
else
    echo "not ok - README.md has no section \"A program\""
    bad=1
fi
exit $bad
