# rank3.awk: make the pages of section 3 from lib/rank.h. Run by doc/update.sh.
#
#   awk -v out=DIR -v examples=DIR -f rank3.awk rank.h rank/*.h, in the order that rank.h includes them
#
# Writes rank.3 (the overview), a page for each section of the header, and rank3.links: a line "FUNCTION PAGE" for
# each function that is on a page of another name. The form of these files that it needs:
#   - A line "/* ---- PAGE: title */" starts a section. A page may have several; the page "rank" is the overview.
#   - A comment belongs to the declarations below it, up to an empty line. Without any it introduces the page.
#   - In a comment, a sentence "Returns ..." that begins a line goes to RETURN VALUE, and "RANK_ERR_X: ..." to ERRORS.
#     The rest of a sentence, and lines that are indented by two spaces, belong to it. "  - " starts an item of a list.
#   - The opening comment of rank.h has parts: a line of one or two words, then a list.
#   - Statuses are the lines X(code, name, "text").

function escape(s) {
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    return s
}

# A line of running text, which must not start like a request.
function text(s) {
    sub(/^[ \t]+/, "", s)
    s = escape(s)
    return (s ~ /^[.']/ ? "\\&" : "") s "\n"
}

# A line of code: quotes and accents stay what they are.
function code(s) {
    s = escape(s)
    gsub(/'/, "\\(aq", s)
    gsub(/`/, "\\(ga", s)
    gsub(/\^/, "\\(ha", s)
    gsub(/~/, "\\(ti", s)
    return (s ~ /^[.]/ ? "\\&" : "") s "\n"
}

function start_page(name, name_title) {
    page = name
    if (!(page in title)) {
        order[++npages] = page
        title[page] = name_title
    }
}

# The names that a block of declarations is known by: its functions, or else its type or macro.
function find_names(    i, s, type) {
    names = type = ""
    for (i = 1; i <= ndecl; i++) {
        s = decl[i]
        if (is_function[i] && match(s, /rank_[a-z0-9_]+\(/)) {
            s = substr(s, RSTART, RLENGTH - 1)
            names = names (names ? ", " : "") s "()"
            nfunctions[page]++
            functions[page] = functions[page] (functions[page] ? ", " : "") s
            page_of[s] = page
            if (decl[i] ~ /^rank_status_t /)
                returns_status[page] = 1
        } else if (match(s, /^} [a-z0-9_]+;/))
            type = substr(s, 3, RLENGTH - 3)
        else if (match(s, /^typedef uint64_t [a-z_]+;/))
            type = substr(s, 18, RLENGTH - 18)
        else if (s ~ /^typedef / && match(s, /\(\*?rank_[a-z_]+\)\(/)) { # a function of the program
            type = substr(s, RSTART + 1, RLENGTH - 3)
            sub(/^\*/, "", type)
        } else if (s ~ /^enum / && !type && match(s, /RANK_[A-Z0-9_]+/))
            type = substr(s, RSTART, RLENGTH)
        else if (s ~ /^#define / && !type) {
            split(s, word, " ")
            type = word[2]
        }
    }
    if (!names)
        names = type
    if (split(names, word, ", ") > 8) # the forms of all collectives
        names = word[1] ~ /_init/ ? "rank_X_init()" : "rank_iX()"
}

# Sort the lines of a comment into the three sections of the page.
function sort_comment(    i, s, where, body, returned, failed, list, colon, open) {
    where = "body"
    while (ncomment && comment[ncomment] == "")
        ncomment--
    for (i = 1; i <= ncomment; i++) {
        s = comment[i]
        open = i > 1 && comment[i - 1] != "" && comment[i - 1] !~ /[.:;]$/ # inside a sentence
        if (!open && match(s, /^RANK_ERR_[A-Z_]+(, RANK_ERR_[A-Z_]+)*: /)) {
            where = "error"
            colon = RLENGTH - 2
            failed = failed ".TP\n\\fB" substr(s, 1, colon) "\\fR" (names ? " (" names ")" : "") "\n" \
                text(substr(s, colon + 3))
        } else if (!open && s ~ /^Returns /) {
            where = "return"
            returned = returned text(s)
        } else if ((open || s ~ /^  [^ -]/) && where == "error")
            failed = failed text(s)
        else if ((open || s ~ /^  [^ -]/) && where == "return")
            returned = returned text(s)
        else {
            where = "body"
            if (s ~ /^  - /) {
                body = body (list || !names ? "" : ".RS\n") ".IP \\(bu 2\n" text(substr(s, 5))
                list = 1
            } else if (s ~ /^    / && list)
                body = body text(s)
            else {
                if (list && names)
                    body = body ".RE\n"
                list = 0
                body = body (s == "" ? (names ? ".IP\n" : ".PP\n") : text(s))
            }
        }
    }
    if (list && names)
        body = body ".RE\n"
    if (!body)
        body = returned
    if (body)
        description[page] = description[page] (names ? ".TP\n\\fB" names "\\fR\n" : ".PP\n") body
    if (returned)
        return_value[page] = return_value[page] ".TP\n\\fB" names "\\fR\n" returned
    errors[page] = errors[page] failed
}

function flush(    i) {
    names = ""
    if (ndecl) {
        if (synopsis[page])
            synopsis[page] = synopsis[page] "\n"
        find_names()
        for (i = 1; i <= ndecl; i++) {
            # The other forms of a collective: their arguments are those of the blocking one, and a request.
            if (page ~ /^rank_coll/ && is_function[i] && match(decl[i], /rank_(i[a-z_]+|[a-z_]+_init)\(/)) {
                synopsis[page] = synopsis[page] code("rank_status_t " substr(decl[i], RSTART, RLENGTH) "..., rank_request_t *req);")
                while (decl[i] !~ /;/)
                    i++
            } else
                synopsis[page] = synopsis[page] code(decl[i])
        }
    }
    if (ncomment)
        sort_comment()
    ndecl = ncomment = 0
    split("", is_function)
}

function add_comment(s) {
    sub(/[ \t]*\*\/[ \t]*$/, "", s)
    sub(/^[ \t]*\/\*[ \t]?/, "", s)
    sub(/^[ \t]*\*[ ]?/, "", s)
    if (s != "" || ncomment)
        comment[++ncomment] = s
}

BEGIN {
    related["rank_status"] = "rank_init"
    related["rank_dtype"] = "rank_send rank_coll rank_atomic"
    related["rank_init"] = "rank_status rank_team rank_spawn"
    related["rank_team"] = "rank_init rank_spawn rank_coll"
    related["rank_spawn"] = "rank_init rank_team"
    related["rank_send"] = "rank_sendv rank_probe rank_request rank_start"
    related["rank_probe"] = "rank_send rank_request"
    related["rank_sendv"] = "rank_send rank_put rank_request"
    related["rank_request"] = "rank_send rank_start rank_progress rank_put rank_coll"
    related["rank_start"] = "rank_send rank_request"
    related["rank_progress"] = "rank_request"
    related["rank_mem"] = "rank_put rank_atomic rank_signal"
    related["rank_put"] = "rank_mem rank_atomic rank_signal rank_request"
    related["rank_atomic"] = "rank_mem rank_put rank_signal"
    related["rank_signal"] = "rank_mem rank_put rank_atomic"
    related["rank_coll"] = "rank_team rank_dtype rank_request rank_coll_init"
    related["rank_coll_init"] = "rank_coll rank_start rank_request"
    related["rank_ctx"] = "rank_connect rank_init rank_mem"
    related["rank_connect"] = "rank_ctx rank_team rank_send rank_put"
    related["rank_queue"] = "rank_start rank_coll_init rank_request"
    in_opening = 1
}

FNR == 1 { page = "" }

/^\/\* SPDX-/ { next }

$1 == "#define" && $2 ~ /^RANK_VERSION_/ { version = version (version ? "." : "") $3 }

in_opening {
    if ($0 ~ /\*\//) {
        in_opening = 0
        next
    }
    line = $0
    sub(/^ \*[ ]?/, "", line)
    if (line ~ /^[A-Z][a-z]+( [a-z]+)?$/)
        opening = opening ".SH " toupper(line) "\n"
    else if (line ~ /^  - /)
        opening = opening ".IP \\(bu 2\n" text(substr(line, 5))
    else if (opening && line !~ /^[ \t]*$/)
        opening = opening text(line)
    next
}

/^\/\* -+ / {
    flush()
    line = $0
    sub(/^\/\* -+ /, "", line)
    sub(/[ ]*\*\/$/, "", line)
    split(line, word, /: /)
    start_page(word[1], word[2])
    next
}

!page { next }

# The statuses are a list of their own. The enum that is made of them is not printed.
/^#define RANK_STATUS_MAP/ {
    ncomment = 0
    in_status = 1
    next
}
in_status {
    if (match($0, /X\(-?[0-9]+, [A-Z_]+, ".*"\)/)) {
        n = split(substr($0, RSTART + 2, RLENGTH - 3), part, /, /)
        meaning = part[3]
        for (i = 4; i <= n; i++)
            meaning = meaning ", " part[i]
        gsub(/"/, "", meaning)
        description[page] = description[page] ".TP\n\\fBRANK_" part[2] "\\fR (" escape(part[1]) ")\n" \
            text(toupper(substr(meaning, 1, 1)) substr(meaning, 2) ".")
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

/^#ifdef __cplusplus/ {
    flush()
    page = ""
    next
}

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
    is_function[ndecl] = ($0 ~ /^RANK_API/)
}

# -------------------------------------------------------------------------------------------------- the pages

# The program of a page, from its file. Pages other than rank leave out what all programs share: head, includes and must().
function print_example(name, to,    file, line, n, skip) {
    file = examples "/" name ".c"
    print ".SH EXAMPLE" >to
    if (name == "rank")
        print "Other pages show their programs without the head, the includes and must() of this one." >to
    print ".EX" >to
    while ((getline line < file) > 0) {
        if (name != "rank") {
            if (match(line, /^ \* [a-z_]+\.c: /))
                printf "%s\n", code("/* " toupper(substr(line, RLENGTH + 1, 1)) substr(line, RLENGTH + 2) " */") >to
            if (line ~ /^(\/\*$|static void must)/)
                skip = 1
            n++
            if (skip || line ~ /^#include/ || (line == "" && blank)) {
                if (line ~ /^( \*\/|})$/) {
                    skip = 0
                    blank = 1
                }
                continue
            }
        }
        blank = line == ""
        printf "%s", code(line) >to
        n++
    }
    close(file)
    if (!n) {
        print "rank3.awk: " file " is missing" >"/dev/stderr"
        failed_example = 1
    }
    print ".EE" >to
}

function print_see_also(list, to,    n, i, other) {
    print ".SH SEE ALSO" >to
    n = split(list, other, " ")
    for (i = 1; i <= n; i++)
        print "\\fB" other[i] "\\fR(3)," >to
    print "\\fBxrun\\fR(1)" >to
}

function print_head(name, to) {
    print ".\\\" Made by doc/update.sh." >to
    print ".TH " toupper(name) " 3 \"\" \"librank " version "\" \"librank\"" >to
    print ".SH NAME" >to
}

function print_overview(to,    i, p, list) {
    print_head("rank", to)
    print "rank \\- communication between the ranks of a job" >to
    print ".SH SYNOPSIS\n.EX\n#include <rank.h>\n\nxcc program.c \\-o program\nxrun \\-n 4 ./program\n.EE" >to
    print ".SH DESCRIPTION" >to
    print "A job is a set of processes, the ranks. librank sends messages between them,\naccesses the memory of peers," >to
    print "and runs collective operations on teams of ranks.\nEach group of calls has a page, and each call is a name of it:" >to
    for (i = 1; i <= npages; i++) {
        p = order[i]
        if (p == "rank")
            continue
        print ".TP\n\\fB" p "\\fR(3)\n" toupper(substr(title[p], 1, 1)) substr(title[p], 2) "." >to
        list = list " " p
    }
    printf "%s", opening >to
    print ".SH HANDLES AND CONSTANTS\n.EX" >to
    printf "%s", synopsis["rank"] >to
    print ".EE" >to
    printf "%s", description["rank"] >to
    print_example("rank", to)
    print_see_also("", to)
    close(to)
}

function print_page(p, to,    list) {
    print_head(p, to)
    list = (p in page_of ? "" : p ", ") functions[p]
    # The name of the page comes first.
    if (p in page_of) {
        list = ", " list ","
        sub(", " p ",", ",", list)
        list = p list
        sub(/,$/, "", list)
    }
    gsub(/, /, ",\n", list)
    print list "\n\\- " title[p] >to
    print ".SH SYNOPSIS\n.EX\n#include <rank.h>\n" >to
    printf "%s", synopsis[p] >to
    print ".EE\n.SH DESCRIPTION" >to
    printf "%s", description[p] >to
    print ".SH RETURN VALUE" >to
    if (returns_status[p])
        print "RANK_OK, or an error." >to
    printf "%s", return_value[p] >to
    print ".SH ERRORS" >to
    printf "%s", errors[p] >to
    if (errors[p])
        print ".PP" >to
    print "Others: \\fBrank\\fR(3)." >to
    print_example(p, to)
    print_see_also("rank " related[p], to)
    close(to)
}

END {
    flush()
    print_overview(out "/rank.3")
    for (i = 1; i <= npages; i++)
        if (order[i] != "rank")
            print_page(order[i], out "/" order[i] ".3")
    links = out "/rank3.links"
    for (i = 1; i <= npages; i++) {
        n = split(functions[order[i]], part, ", ")
        for (j = 1; j <= n; j++)
            if (part[j] != order[i])
                print part[j], order[i] >links
    }
    if (failed_example)
        exit 1
}
