# rank3.awk: makes the manual page rank(3) from lib/rank.h. Run by doc/update.sh.
#
# What it relies on in rank.h: sections start with a line "/* ---- title */"; a comment that is followed by
# declarations with no empty line between belongs to them; the opening comment has "Conventions" and
# "Errors", each a list of "  - " items; statuses are the lines X(code, name, "text").

function escape(s) {
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    return s
}

# One line of running text: nothing at its start may look like a request.
function text(s) {
    sub(/^[ \t]+/, "", s)
    s = escape(s)
    if (s ~ /^[.']/)
        s = "\\&" s
    print s
}

function code(s) {
    s = escape(s)
    if (s ~ /^[.']/)
        s = "\\&" s
    print s
}

function flush_comment(    i) {
    for (i = 1; i <= ncomment; i++) {
        if (comment[i] ~ /^[ \t]*$/)
            print ".PP"
        else
            text(comment[i])
    }
    ncomment = 0
}

# What was gathered: declarations in a block, and what was said about them, indented.
function flush(    i) {
    if (ndecl) {
        print ".PP"
        print ".EX"
        for (i = 1; i <= ndecl; i++)
            code(decl[i])
        print ".EE"
        if (ncomment) {
            print ".RS 4"
            flush_comment()
            print ".RE"
        }
    } else if (ncomment) {
        print ".PP"
        flush_comment()
    }
    ndecl = ncomment = 0
}

function add_comment(s) {
    sub(/[ \t]*\*\/[ \t]*$/, "", s)
    sub(/^[ \t]*\/\*[ \t]?/, "", s)
    sub(/^[ \t]*\*[ ]?/, "", s)
    if (s != "" || ncomment)
        comment[++ncomment] = s
}

FNR == 1 { file++ }

# ------------------------------------------------------------- first pass: names for the NAME section
file == 1 {
    if ($0 ~ /^RANK_API/ && match($0, /rank_[a-z0-9_]+\(/))
        names = names (names ? ",\n" : "") escape(substr($0, RSTART, RLENGTH - 1))
    if ($2 == "RANK_VERSION_MAJOR" && $1 == "#define") version = $3
    if ($2 == "RANK_VERSION_MINOR") version = version "." $3
    if ($2 == "RANK_VERSION_PATCH") version = version "." $3
    next
}

# ------------------------------------------------------------------------------------- second pass
FNR == 1 {
    print ".\\\" Made by doc/update.sh from lib/rank.h: change that."
    print ".TH RANK 3 \"\" \"librank " version "\" \"librank\""
    print ".SH NAME"
    print "rank,"
    print names
    print "\\- communication between the ranks of a job"
    print ".SH SYNOPSIS"
    print ".EX"
    print "#include <rank.h>"
    print ""
    print "xcc program.c \\-o program"
    print "xrun \\-n 4 ./program"
    print ".EE"
    in_opening = 1
    next
}

in_opening {
    if ($0 ~ /\*\//) {
        in_opening = 0
        next
    }
    line = $0
    sub(/^ \*[ ]?/, "", line)
    if (line ~ /^(Conventions|Errors)$/)
        print ".SH " toupper(line)
    else if (line ~ /^  - /) {
        print ".IP \\(bu 2"
        text(substr(line, 5))
    } else if (line !~ /^[ \t]*$/ && seen_first++)
        text(line)
    else
        seen_first++
    next
}

/^\/\* -+ / {
    flush()
    title = $0
    sub(/^\/\* -+ /, "", title)
    sub(/[ ]*\*\/$/, "", title)
    print ".SH " toupper(title)
    started = 1
    next
}

!started { next }

# Statuses: a list of their own; the enum made of them needs no printing.
/^#define RANK_STATUS_MAP/ {
    flush()
    in_status = 1
    next
}
in_status {
    if (match($0, /X\(-?[0-9]+, [A-Z_]+, ".*"\)/)) {
        n = split(substr($0, RSTART + 2, RLENGTH - 3), part, /, /)
        what = part[3]
        for (i = 4; i <= n; i++)
            what = what ", " part[i]
        gsub(/"/, "", what)
        print ".TP"
        print ".BR RANK_" part[2] " \" (" escape(part[1]) ")\""
        text(what)
    }
    if ($0 !~ /\\$/)
        in_status = 0
    next
}
/^typedef enum rank_status / { skipping = 1 }
skipping {
    if ($0 ~ /^}/)
        skipping = 0
    next
}

/^#ifdef __cplusplus/ { exit_now = 1 }
exit_now { next }

in_comment {
    add_comment($0)
    if ($0 ~ /\*\//)
        in_comment = 0
    next
}
/^\/\*/ {
    if (ndecl)
        flush()
    add_comment($0)
    if ($0 !~ /\*\//)
        in_comment = 1
    next
}

/^$/ && !in_block {
    flush()
    next
}

{
    line = $0
    sub(/^RANK_API /, "", line)
    if ($0 ~ /\{[^}]*$/ && $0 !~ /^ /)
        in_block = 1
    if ($0 ~ /^\}/)
        in_block = 0
    # Continued lines keep their place under the first argument.
    if ($0 ~ /^ +[^ ]/ && !in_block && !(line ~ /^    [A-Z]/)) {
        if (continued)
            sub(/^         /, "", line)
    } else
        continued = ($0 ~ /^RANK_API/)
    decl[++ndecl] = line
}

END {
    flush()
    print ".SH SEE ALSO"
    print ".BR xrun (1),"
    print ".BR rankinfo (1),"
    print ".BR rankbench (1)"
}
