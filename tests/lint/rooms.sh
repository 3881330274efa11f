# SPDX-License-Identifier: BSD-3-Clause
# rooms.sh: check the rules of rooms, files and folders that a script can check.
cd "$top_srcdir" || exit 1
bad=0
shopt -s lastpipe # judge, at the end of a pipe, sets bad in this shell

# judge WHAT: fail if stdin is not empty
judge() {
    found=$(cat)
    if [ -z "$found" ]; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        printf '%s\n' "$found" | sed 's/^/    /'
        bad=1
    fi
}

# Print the C sources in folders $@.
sources() { find "$@" -name '*.[ch]' | LC_ALL=C sort; }

ours="lib collectives launcher tools bench examples bindings tests"
[ "$(sources $ours | wc -l)" -gt 30 ] || { echo "not ok - the sources are not under $PWD"; exit 1; }

# A file belongs to the room with the longest name that its path begins with.
sources lib collectives launcher tools bench examples | while read -r file; do
    sed -n 's/^[ \t]*#[ \t]*include[ \t]*"\([^"]*\)".*/\1/p' "$file" | sed "s|^|$file |"
done | awk '
    NR == FNR {
        if ($0 ~ /^#/ || NF == 0)
            next
        room[$1] = 1
        for (i = 2; i <= NF; i++)
            may[$1, $i] = 1
        next
    }
    function room_of(path,    p) {
        for (p = path; p != ""; ) {
            if (p in room)
                return p
            if (!sub(/\/[^\/]*$/, "", p))
                return ""
        }
        return ""
    }
    {
        file = $1
        header = $2
        from = room_of(file)
        if (file ~ /^lib\/rank[.\/]/ && header !~ /^lib\//) # they are installed, and name each other from their folder
            next
        if (header == "config.h" || header == "lib/rank.h")
            next
        if (from == "examples" && header !~ /\//) # they are built elsewhere too, side by side
            next
        to = room_of(header)
        if (from == "")
            print file " includes " header ", but is in no room"
        else if (to == "")
            print file " includes " header ": write it from the top"
        else if (from != to && !((from, to) in may) && !((from, header) in may))
            print file " includes " header ": " from " may not include " to
    }' tests/lint/rooms.txt - | judge "no room includes a higher one"

sources lib collectives launcher tools bench | grep -v '^lib/base/conf_load\.c$' |
    xargs grep -nwE 'getenv|secure_getenv' | judge "the environment is read in lib/base/conf_load.c only"

# Their numbers must differ, and may be guessed: names of jobs, and ids of teams that a launcher has connected.
sources lib collectives | grep -v '^lib/base/random\.[ch]$\|^lib/boot/boot_alone\.c$\|^lib/dpm/api_spawn\.c$\|^lib/p2p/team\.c$' |
    xargs grep -nw rk_random_word | judge "what a stranger may name is no rk_random_word, but a rk_random_secret or of secret_id.h"

# A change of the time of day moves deadlines of the others. Bindings set the clock of a condition.
sources lib collectives launcher tools bench bindings | while read -r file; do
    calls='(pthread_cond|sem|pthread_mutex|pthread_rwlock)_timed[a-z]*'
    grep -q pthread_condattr_setclock "$file" && calls='(sem|pthread_mutex|pthread_rwlock)_timed[a-z]*'
    grep -nHE "$calls *\\(" "$file"
done | judge "timed waits use CLOCK_MONOTONIC: rk_cond_wait_until"

# bench/limits measures what PMIx costs by itself.
sources lib collectives launcher tools bench | grep -v '^lib/boot/\|^launcher/pmix/\|^launcher/agent/proxy_client\.c$\|^bench/limits/start\.c$' |
    xargs grep -nE 'include *<pmix[a-z_]*\.h>' | judge "only lib/boot and launcher/pmix include libpmix"

# Not counted: headers, and files that a script only reads.
find $ours .ci doc m4 -type f \( -name '*.c' -o -name '*.cu' -o -name '*.sh' -o -name '*.mp' -o -name '*.py' \) |
    sed 's|/[^/]*$||' | sort | uniq -c | awk '$1 > 40 { print $2 " has " $1 " sources" }' |
    judge "no folder has more than 40 sources"

sources $ours | xargs awk 'FNR > 800 { print FILENAME " has more than 800 lines"; nextfile }' |
    judge "no file has more than 800 lines"

git ls-files '*.[ch]' '*.sh' '*.py' 2>/dev/null | grep -v '^doc/examples/' | xargs -r grep -L 'SPDX-License-Identifier: BSD-3-Clause' |
    judge "each source names its licence"

sources $ours | xargs awk 'FNR == 2 && $0 !~ /^\/\*/ { print FILENAME " does not open with a comment" }' |
    judge "each file opens with a comment that describes it"

sources $ours | xargs grep -nE '(^|[ /*(])(TODO|FIXME|XXX)([ :.(]|$)' | judge "nothing is left to do in comments"

sources $ours | xargs grep -nE '^[ ]*	|[ 	]+$' | judge "no tabs, no blanks at the end of a line"

exit $bad
