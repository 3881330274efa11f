/* SPDX-License-Identifier: BSD-3-Clause */
/* ask.c: request another rank's address blob without waiting for it. */
#include "lib/boot/boot_client.h"

#include <stdlib.h>
#include <string.h>

static void came(pmix_status_t rc, pmix_value_t *v, void *arg)
{
    struct rk_answer *a = arg;

    rk_tsan_acquire(a);
    if (rc == PMIX_SUCCESS && v && v->type == PMIX_BYTE_OBJECT) {
        a->bytes = malloc(v->data.bo.size + 1);
        if (a->bytes)
            memcpy(a->bytes, v->data.bo.bytes, v->data.bo.size);
        a->size = v->data.bo.size;
    }
    rk_answer_arrived(rc, a);
}

struct rk_answer *rk_client_request(struct rk_boot *boot, int rank, const char *key)
{
    char room[PMIX_MAX_KEYLEN + 1];
    struct rk_answer *a = rk_answer_new();
    pmix_proc_t proc;

    if (!a)
        return NULL;
    PMIX_LOAD_PROCID(&proc, rk_client_of(boot)->me.nspace, (pmix_rank_t)rank);
    rk_tsan_release(a);
    if (PMIx_Get_nb(&proc, rk_client_key(boot, key, room), NULL, 0, came, a) == PMIX_SUCCESS)
        return a;
    rk_answer_free(a);
    return NULL;
}

bool rk_client_request_end(struct rk_boot *boot, struct rk_answer *a, void *data, size_t len)
{
    bool good = false;

    (void)boot;
    if (!rk_answer_is_ready(a)) {
        rk_answer_abandon(a);
        return false;
    }
    if (a->rc == PMIX_SUCCESS && a->bytes && a->size == len) {
        memcpy(data, a->bytes, len);
        good = true;
    }
    rk_answer_free(a);
    return good;
}
