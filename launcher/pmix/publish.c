/* SPDX-License-Identifier: BSD-3-Clause */
/* publish.c: forward publish, lookup and unpublish of clients. */
#include "launcher/pmix/pmix_internal.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

struct simple {
    struct xr_rpc_call call;
    pmix_op_cbfunc_t done;
    void *done_arg;
};

struct lookup {
    struct xr_rpc_call call;
    pmix_lookup_cbfunc_t done;
    void *done_arg;
};

/* Read range and persistence. Returns false if the value is not supported. */
static bool read_directive(const pmix_info_t *info, enum xr_range *range, enum xr_keep *keep)
{
    if (PMIX_CHECK_KEY(info, PMIX_RANGE)) {
        switch (info->value.data.range) {
        case PMIX_RANGE_LOCAL:
            *range = XR_RANGE_HOST;
            return true;
        case PMIX_RANGE_NAMESPACE:
            *range = XR_RANGE_JOB;
            return true;
        case PMIX_RANGE_PROC_LOCAL:
            *range = XR_RANGE_PROCESS;
            return true;
        default:
            *range = XR_RANGE_ALL;
            return info->value.data.range != PMIX_RANGE_CUSTOM;
        }
    }
    if (keep && PMIX_CHECK_KEY(info, PMIX_PERSISTENCE)) {
        switch (info->value.data.persist) {
        case PMIX_PERSIST_FIRST_READ:
            *keep = XR_KEEP_ONE_READ;
            return true;
        case PMIX_PERSIST_PROC:
            *keep = XR_KEEP_PROCESS;
            return true;
        case PMIX_PERSIST_APP:
            *keep = XR_KEEP_APP;
            return true;
        default:
            *keep = XR_KEEP_ALWAYS;
            return true;
        }
    }
    return true;
}

/* Is it a directive, not a value to publish? */
static bool is_directive(const pmix_info_t *info)
{
    static const char *const keys[] = {PMIX_RANGE, PMIX_PERSISTENCE, PMIX_USERID, PMIX_GRPID, PMIX_TIMEOUT,
                                       PMIX_WAIT, PMIX_ACCESS_PERMISSIONS, PMIX_EVENT_CUSTOM_RANGE};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (PMIX_CHECK_KEY(info, keys[i]))
            return true;
    }
    return false;
}

/* A string is packed as it is, so that PMI-1 clients can read it; other values as libpmix packs them. */
static bool pack_value(struct xr_packer *p, const pmix_value_t *v)
{
    struct xr_packer bytes = {0};
    char kind = XR_VALUE_TEXT;
    pmix_data_buffer_t buffer;
    pmix_byte_object_t packed = {NULL, 0};
    bool ok = true;

    if (v->type == PMIX_STRING && v->data.string) {
        xr_pack_raw(&bytes, &kind, 1);
        xr_pack_raw(&bytes, v->data.string, strlen(v->data.string));
    } else {
        kind = XR_VALUE_PMIX;
        PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
        ok = PMIx_Data_pack(NULL, &buffer, (void *)(uintptr_t)v, 1, PMIX_VALUE) == PMIX_SUCCESS &&
             PMIx_Data_unload(&buffer, &packed) == PMIX_SUCCESS;
        xr_pack_raw(&bytes, &kind, 1);
        xr_pack_raw(&bytes, packed.bytes, packed.size);
        free(packed.bytes);
        PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    }
    xr_pack_bytes(p, bytes.data, bytes.len);
    ok = ok && !bytes.failed;
    xr_packer_free(&bytes);
    return ok;
}

static bool unpack_value(const char *bytes, size_t len, pmix_value_t *out)
{
    pmix_byte_object_t packed;
    pmix_data_buffer_t buffer;
    int32_t one = 1;
    bool ok;

    if (len == 0)
        return false;
    if (*bytes == XR_VALUE_TEXT) {
        out->type = PMIX_STRING;
        out->data.string = strndup(bytes + 1, len - 1);
        return out->data.string != NULL;
    }
    packed.size = len - 1;
    packed.bytes = malloc(packed.size ? packed.size : 1);
    if (!packed.bytes)
        return false;
    memcpy(packed.bytes, bytes + 1, packed.size);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    ok = PMIx_Data_load(&buffer, &packed) == PMIX_SUCCESS &&
         PMIx_Data_unpack(NULL, &buffer, out, &one, PMIX_VALUE) == PMIX_SUCCESS;
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return ok;
}

static void publish_on_done(struct xr_server *server, struct xr_rpc_call *call, pmix_status_t status,
                    struct xr_unpacker *answer)
{
    struct simple *s = (struct simple *)call;

    (void)server;
    (void)answer;
    s->done(status, s->done_arg);
}

static struct simple *publish_begin(enum xr_rpc what, const pmix_proc_t *proc, pmix_op_cbfunc_t done, void *done_arg,
                            pmix_status_t *refused)
{
    struct simple *s;
    uint32_t rank;

    *refused = PMIX_ERR_NOT_SUPPORTED;
    if (!xr_server_rank_of(xr_server_serving(), proc, &rank))
        return NULL;
    *refused = PMIX_ERR_NOMEM;
    s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->call.what = what;
    s->call.rank = rank;
    s->call.done = publish_on_done;
    s->done = done;
    s->done_arg = done_arg;
    return s;
}

pmix_status_t xr_upcall_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                                pmix_op_cbfunc_t done, void *done_arg)
{
    enum xr_range range = XR_RANGE_ALL;
    enum xr_keep keep = XR_KEEP_APP;
    pmix_status_t refused;
    struct simple *s = publish_begin(XR_RPC_PUBLISH, proc, done, done_arg, &refused);
    uint32_t n = 0;
    bool ok = true;

    if (!s)
        return refused;
    for (size_t i = 0; i < ninfo; i++) {
        if (!read_directive(&info[i], &range, &keep))
            s->call.refused = PMIX_ERR_NOT_SUPPORTED;
        n += !is_directive(&info[i]);
    }
    xr_pack_u32(&s->call.payload, range);
    xr_pack_u32(&s->call.payload, keep);
    xr_pack_u32(&s->call.payload, n);
    for (size_t i = 0; i < ninfo && ok; i++) {
        char key[PMIX_MAX_KEYLEN + 1];
        if (is_directive(&info[i]))
            continue;
        PMIX_LOAD_KEY(key, info[i].key);
        xr_pack_string(&s->call.payload, key);
        ok = pack_value(&s->call.payload, &info[i].value);
    }
    if (!ok)
        s->call.refused = PMIX_ERR_PACK_FAILURE;
    xr_rpc_post(&s->call);
    return PMIX_SUCCESS;
}

static void pack_keys(struct xr_packer *p, char **keys)
{
    char *none[] = {NULL};

    xr_pack_strings(p, keys ? keys : none);
}

pmix_status_t xr_upcall_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                                  size_t ninfo, pmix_op_cbfunc_t done, void *done_arg)
{
    enum xr_range range = XR_RANGE_ANY;
    pmix_status_t refused;
    struct simple *s = publish_begin(XR_RPC_UNPUBLISH, proc, done, done_arg, &refused);

    if (!s)
        return refused;
    for (size_t i = 0; i < ninfo; i++) {
        if (!read_directive(&info[i], &range, NULL))
            s->call.refused = PMIX_ERR_NOT_SUPPORTED;
    }
    xr_pack_u32(&s->call.payload, range);
    pack_keys(&s->call.payload, keys);
    xr_rpc_post(&s->call);
    return PMIX_SUCCESS;
}

/* ------------------------------------------------------------------------- lookup */

static void on_found(struct xr_server *server, struct xr_rpc_call *call, pmix_status_t status,
                     struct xr_unpacker *u)
{
    struct lookup *l = (struct lookup *)call;
    uint32_t n = u && status != PMIX_ERROR ? xr_unpack_u32(u) : 0, got = 0;
    pmix_pdata_t *data = NULL;

    (void)server;
    if (u && n > u->left / 16)
        n = 0;
    if (n)
        PMIX_PDATA_CREATE(data, n);
    for (; data && got < n; got++) {
        const char *key = xr_unpack_string(u), *job = xr_unpack_string(u), *value;
        uint32_t rank = xr_unpack_u32(u);
        size_t len;
        value = xr_unpack_bytes(u, &len);
        if (u->failed || !key || !job)
            break;
        PMIX_LOAD_KEY(data[got].key, key);
        PMIX_LOAD_PROCID(&data[got].proc, job, rank);
        if (!unpack_value(value, len, &data[got].value))
            break;
    }
    status = xr_partial_lookup_status(status, got);
    if (status == PMIX_SUCCESS && got < n)
        status = PMIX_ERR_UNPACK_FAILURE;
    l->done(status, data, got, l->done_arg);
    if (data)
        PMIX_PDATA_FREE(data, n);
}

pmix_status_t xr_upcall_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                               size_t ninfo, pmix_lookup_cbfunc_t done, void *done_arg)
{
    enum xr_range range = XR_RANGE_ALL;
    uint32_t want = XR_LOOKUP_NOW, s = 0, rank;
    struct lookup *l;

    if (!xr_server_rank_of(xr_server_serving(), proc, &rank))
        return PMIX_ERR_NOT_SUPPORTED;
    l = calloc(1, sizeof(*l));
    if (!l)
        return PMIX_ERR_NOMEM;
    for (size_t i = 0; i < ninfo; i++) {
        if (!read_directive(&info[i], &range, NULL))
            l->call.refused = PMIX_ERR_NOT_SUPPORTED;
        if (PMIX_CHECK_KEY(&info[i], PMIX_WAIT) &&
            (info[i].value.type != PMIX_BOOL || info[i].value.data.flag))
            want = xr_value_number(&info[i].value); /* a flag gives 0: wait for all keys */
        else if (PMIX_CHECK_KEY(&info[i], PMIX_TIMEOUT))
            s = xr_value_number(&info[i].value);
    }
    xr_pack_u32(&l->call.payload, range);
    xr_pack_u32(&l->call.payload, want);
    xr_pack_u32(&l->call.payload, s > 1000000 ? 0 : s * 1000);
    pack_keys(&l->call.payload, keys);
    l->call.what = XR_RPC_LOOKUP;
    l->call.rank = rank;
    l->call.done = on_found;
    l->done = done;
    l->done_arg = done_arg;
    xr_rpc_post(&l->call);
    return PMIX_SUCCESS;
}
