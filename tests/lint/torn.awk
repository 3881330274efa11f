# torn.awk: find paragraphs of manual pages that are no sentences. Run by man.sh.
# Each paragraph of DESCRIPTION, RETURN VALUE and ERRORS begins with a capital, except a list's item, an error and a name of the
# synopsis. It ends with a stop, or with a colon before a list.
function finish() {
    if (para == "") return
    page = FILENAME
    sub(/.*\//, "", page)
    if (para !~ /[.]$/ && !(para ~ /:$/ && next_is_list))
        print page ": no stop: ..." substr(para, length(para) - 60)
    if (section != "ERRORS" && para !~ /^(\\&)?[A-Z0-9]/ && !item && !(match(para, /^[*a-z_]+/) && index(synopsis, substr(para, RSTART, RLENGTH))))
        print page ": no capital: " substr(para, 1, 60)
    para = ""
}
FNR == 1 { finish(); synopsis = ""; section = "" }
/^\.SH/ { next_is_list = 0; finish(); section = substr($0, 5); next }
section == "SYNOPSIS" { synopsis = synopsis " " $0; next }
section != "DESCRIPTION" && section != "RETURN VALUE" && section != "ERRORS" { next }
/^\.B/ && !prev_tp { $1 = ""; para = para (para == "" ? "" : " ") $0; next }
/^\./ {
    next_is_list = $0 ~ /^\.(RS|TP|IP \\\(bu)/
    finish()
    if (prev_tp && para == "") { tag = $0; prev_tp = 0; next }
    prev_tp = /^\.TP/
    item = /^\.IP \\\(bu/
    if (/^\.TP/ && empty && tag != "") print page ": no text: " tag
    empty = /^\.TP/
    next
}
prev_tp { tag = $0; prev_tp = 0; next }
{ empty = 0; para = para (para == "" ? "" : " ") $0 }
END { finish() }
