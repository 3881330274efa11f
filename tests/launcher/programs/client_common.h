/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client_common.h: begin and end a PMIx client of the tests, and fail.
 */
#ifndef TESTS_LAUNCHER_CLIENT_COMMON_H
#define TESTS_LAUNCHER_CLIENT_COMMON_H

#include <pmix.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static pmix_proc_t me, all; /* all: of this job */
static uint32_t size;

static inline void need(const char *what, pmix_status_t rc)
{
    if (rc == PMIX_SUCCESS)
        return;
    fprintf(stderr, "rank %u of %s: %s: %s\n", me.rank, me.nspace, what, PMIx_Error_string(rc));
    exit(9);
}

/* The size of a job, by its job info. */
static inline uint32_t get_u32(const pmix_proc_t *job, const char *key)
{
    pmix_value_t *v;
    uint32_t n;

    need(key, PMIx_Get(job, key, NULL, 0, &v));
    n = v->data.uint32;
    PMIX_VALUE_RELEASE(v);
    return n;
}

static inline void start(void)
{
    need("PMIx_Init", PMIx_Init(&me, NULL, 0));
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    size = get_u32(&all, PMIX_JOB_SIZE);
}

static inline pmix_status_t fence(void)
{
    return PMIx_Fence(NULL, 0, NULL, 0);
}

static inline int finish(void)
{
    need("PMIx_Finalize", PMIx_Finalize(NULL, 0));
    puts("ok");
    return 0;
}

#endif
