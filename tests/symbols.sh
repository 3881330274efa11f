#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# symbols.sh: copies what a sanitizer has said from standard input, and says of each "(FILE+0xOFFSET)" what is there. The address
# sanitizer is told not to look it up itself (env.sh).

while IFS= read -r line; do
    where=
    if [[ $line =~ \((/[^()]*)\+(0x[0-9a-f]+)\) ]] && [ -f "${BASH_REMATCH[1]}" ]; then
        where=$(addr2line -f -p -s -e "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" 2>/dev/null)
    fi
    printf '%s\n' "$line${where:+ $where}"
done
