# messages.sh: no two kinds of the launcher's messages have the same number, in whatever enum they are.
work=$(mktemp -d "$top_builddir/messages.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
{
    echo '#include "launcher/overlay/protocol.h"'
    echo 'int all(int kind); int all(int kind) { switch (kind) {'
    grep -rhoE '^ +XR_MSG_[A-Z_]+( =|,| +/\*)' "$top_srcdir"/launcher --include='*.h' | grep -oE 'XR_MSG_[A-Z_]+' | sort -u | sed 's/.*/case &: return 1;/'
    echo 'default: return 0; } }'
} >"$work/all.c"
n=$(grep -c '^case' "$work/all.c")
if [ "$n" -gt 40 ] && ${CC:-cc} -std=gnu11 -I"$top_srcdir" -c "$work/all.c" -o "$work/all.o" 2>"$work/err"; then
    echo "ok - $n kinds of messages have each a number of its own"
else
    echo "not ok - kinds of messages ($n)"
    sed 's/^/    /' "$work/err"
    exit 1
fi
