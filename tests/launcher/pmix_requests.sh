#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# pmix_requests.sh: query the PMIx server for known and unknown keys.
. "$(dirname "$0")/cases.sh"

run 30 -n 2 --bind none "$top_builddir/tests/launcher/programs/query_client"
same "queries of several keys" "ok
ok"
run 60 -n 2 --bind none "$top_builddir/tests/launcher/programs/unsupported_client"
check "what the server does not do is refused at once" 0

echo "# pmix_requests: $passed passed, $failed failed"
[ "$failed" = 0 ]
