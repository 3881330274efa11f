#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# symbols.sh: copy a sanitizer's report from stdin to stdout, resolve addresses.
# Each "(FILE+0xOFFSET)" gets its function and line. The address sanitizer's own look-up is off (env.sh).

while IFS= read -r line; do
    where=
    if [[ $line =~ \((/[^()]*)\+(0x[0-9a-f]+)\) ]] && [ -f "${BASH_REMATCH[1]}" ]; then
        where=$(addr2line -f -p -s -e "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" 2>/dev/null)
    fi
    printf '%s\n' "$line${where:+ $where}"
done
