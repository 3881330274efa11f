# SPDX-License-Identifier: BSD-3-Clause
# bare_root.sh: make a root folder that stands for a bare machine.
# It has glibc, bash and a few programs. Tests of this folder source this file; they set work and bad.

. "$top_srcdir/tests/judge.sh"

# bare_root ROOT [FOLDER...]: fill ROOT for the programs in ROOT/opt, and find a way into it ($how, "none" if there is none).
# The folders are mounted there.
bare_root() {
    local root=$1 f
    mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/bin" "${@/#/$root}"
    for f in bash env dirname basename timeout; do
        f=$(command -v $f)
        cp -L "$f" "$root/bin/"
        ldd "$f" | grep -oE '/[^ ()]+'
    done | sort -u >"$work/libraries"
    # Of glibc all that a program may need.
    find "$root/opt" -type f \( -path '*/bin/*' -o -name '*.so*' \) -exec ldd {} + 2>/dev/null |
        grep -oE '/[^ ()]+/(ld-linux.*|lib(c|m|dl|rt|pthread|resolv))\.so[^ ]*' | sort -u >>"$work/libraries"
    while read -r f; do
        mkdir -p "$root$(dirname "$f")"
        cp -L "$f" "$root$f"
    done <"$work/libraries"
    cp "$root/bin/bash" "$root/bin/sh"
    cat >"$work/enter.sh" <<END
for d in /proc /sys /dev ${*:2}; do
    mount --rbind "\$d" "\$1\$d" || exit 99
done
root=\$1
shift
exec chroot "\$root" /bin/env -i PATH="\$BARE_PATH" HOME=/tmp "\$@"
END
    for how in "unshare -m" "unshare -rm" none; do
        BARE_PATH=/bin $how sh "$work/enter.sh" "$root" /bin/bash -c : >"$work/log" 2>&1 && break
    done
}

# in_root COMMAND...: in $root, or here with the log of what the loader loads in loaded.*
in_root() {
    if [ "$how" = none ]; then
        env -i PATH="${bare_path:-$PATH}" HOME="$work" LD_DEBUG=libs LD_DEBUG_OUTPUT="$work/loaded" timeout 60 "$@"
    else
        BARE_PATH=${bare_path:-/bin} $how sh "$work/enter.sh" "$root" /bin/timeout 60 "$@"
    fi >"$work/log" 2>&1 </dev/null
}

# only_glibc [|PATTERN]: without a bare root, search the log of the loader for libraries from elsewhere
only_glibc() {
    [ "$how" = none ] || return 0
    cat "$work"/loaded.* | grep -oE 'calling init: .*' |
        grep -vE "$root|/pmix_mca_|/(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|nss_.*)\.so[^ ]*)\$${1-}" | sort -u >"$work/log"
    ! [ -s "$work/log" ]
    judge $? "only glibc (and plugins of a libpmix that is there) is loaded from elsewhere"
}
