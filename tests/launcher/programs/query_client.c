/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * query_client.c: query the PMIx server for known and unknown keys.
 *
 * query_client             all of it
 */
#include "client_common.h"

#include <stdbool.h>
#include <string.h>

static bool failed;

/* Two queries of a key each, for libpmix 4.2.2 handles several keys of one query wrongly. */
static pmix_status_t ask(const char *one, const char *two, pmix_info_t **answer, size_t *n)
{
    pmix_query_t *queries;
    pmix_status_t rc;

    PMIX_QUERY_CREATE(queries, 2);
    PMIX_ARGV_APPEND(rc, queries[0].keys, one);
    need("append", rc);
    if (two)
        PMIX_ARGV_APPEND(rc, queries[1].keys, two);
    need("append", rc);
    *answer = NULL;
    *n = 0;
    rc = PMIx_Query_info(queries, two ? 2 : 1, answer, n);
    PMIX_QUERY_FREE(queries, 2);
    return rc;
}

static void expect(const char *one, const char *two, pmix_status_t wanted, size_t values)
{
    pmix_info_t *answer;
    size_t n;
    pmix_status_t rc = ask(one, two, &answer, &n);
    bool good = rc == wanted && n == values;

    for (size_t i = 0; i < n && wanted == PMIX_SUCCESS; i++)
        good = good && (strcmp(answer[i].key, one) == 0 || strcmp(answer[i].key, two) == 0) &&
               (answer[i].value.type != PMIX_STRING || answer[i].value.data.string[0]);
    if (!good) {
        fprintf(stderr, "rank %u: %s and %s: %s, %zu values; not %s, %zu\n", me.rank, one, two ? two : "none",
                PMIx_Error_string(rc), n, PMIx_Error_string(wanted), values);
        failed = true;
    }
    if (answer)
        PMIX_INFO_FREE(answer, n);
}

int main(void)
{
    /* A client of version 4 drops the values that come with a part of an answer. */
    size_t part = PMIX_VERSION_MAJOR < 5 ? 0 : 1;

    start();
    expect(PMIX_QUERY_LOCAL_PROC_TABLE, NULL, PMIX_SUCCESS, 1);
    expect(PMIX_QUERY_LOCAL_PROC_TABLE, PMIX_VERSION_INFO, PMIX_SUCCESS, 2);
    expect(PMIX_QUERY_SUPPORTED_KEYS, NULL, PMIX_SUCCESS, 1);
    expect(PMIX_QUERY_STABLE_ABI_VERSION, NULL, PMIX_SUCCESS, 1);
    expect(PMIX_QUERY_PROVISIONAL_ABI_VERSION, PMIX_QUERY_LOCAL_PROC_TABLE, PMIX_SUCCESS, 2);
    expect(PMIX_QUERY_LOCAL_PROC_TABLE, "an.unknown.key", PMIX_ERR_PARTIAL_SUCCESS, part);
    expect("an.unknown.key", PMIX_QUERY_LOCAL_PROC_TABLE, PMIX_ERR_PARTIAL_SUCCESS, part);
    expect("an.unknown.key", "another.one", PMIX_ERR_NOT_SUPPORTED, 0);
    need("PMIx_Fence", fence());
    return failed ? 9 : finish();
}
