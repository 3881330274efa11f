/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rails.c: print the devices that UCX uses for messages, for rankinfo.
 *
 * Prints the devices that UCX has opened here, subject to UCX_TLS, UCX_NET_DEVICES and RANK_NICS, and the maximum number
 * for one message. Which of them reach a peer shows only in a job. UCX reports both as text only (devices.h).
 */
#include "lib/channel/ucx/devices.h"
#include "lib/channel/ucx/ucx.h"

#include <stdlib.h>
#include <string.h>

/* Capture what a UCX function prints; NULL: out of memory. Caller frees. */
static char *printed(struct rk_ucx *ucx, const ucp_config_t *config)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return NULL;
    if (config)
        ucp_config_print(config, out, NULL, UCS_CONFIG_PRINT_CONFIG);
    else
        ucp_context_print_info(ucx->context, out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

bool rk_ucx_has_rdma(struct rk_ucx *ucx, bool *found)
{
    char *text = printed(ucx, NULL);

    *found = text && rk_ucx_lists_rdma(text);
    free(text);
    return text != NULL;
}

bool rk_ucx_has_nic(struct rk_ucx *ucx, const char *nics, bool *found)
{
    char *text = printed(ucx, NULL);

    *found = text && rk_ucx_has_net_device(text, nics);
    free(text);
    return text != NULL;
}

bool rk_ucx_has_tcp(struct rk_ucx *ucx, bool *found)
{
    char *text = printed(ucx, NULL);

    *found = text && rk_ucx_lists_tcp(text);
    free(text);
    return text != NULL;
}

/* Devices within the process are no rails. */
static void rails_print_devices(FILE *out, const char *text)
{
    const char *before = "rails  ", *name;
    size_t len;

    while ((name = rk_ucx_next_device(&text, &len)) != NULL) {
        if (strncmp(name, "self/", 5) == 0)
            continue;
        fprintf(out, "%s%.*s", before, (int)len, name);
        before = ", ";
    }
    fprintf(out, "%s\n", *before == ',' ? "" : "rails  none: UCX_TLS, UCX_NET_DEVICES and RANK_NICS leave no device");
}

/* Parse lines "UCX_MAX_RNDV_RAILS=2". */
static void print_most(FILE *out, const char *text)
{
    static const char *const what[] = {"EAGER", "RNDV", "RMA"};
    const char *before = "       of these for one message at most: ";

    for (size_t i = 0; i < RK_ARRAY_LEN(what); i++) {
        char name[32];
        const char *at;

        snprintf(name, sizeof(name), "UCX_MAX_%s_RAILS=", what[i]);
        at = strstr(text, name);
        if (!at)
            continue;
        fprintf(out, "%s%.*s", before, (int)strcspn(at, "\n"), at);
        before = ", ";
    }
    if (*before == ',')
        fputc('\n', out);
}

rank_status_t rk_ucx_rails(FILE *out)
{
    struct rk_ucx *ucx = calloc(1, sizeof(*ucx));
    ucp_config_t *config = NULL;
    char *devices = NULL, *most = NULL;
    rank_status_t st;

    if (!ucx)
        return RANK_ERR_NO_MEMORY;
    st = rk_ucx_open_context(ucx, 2, &config);
    if (!st) {
        devices = printed(ucx, NULL);
        most = printed(ucx, config);
        st = devices && most ? RANK_OK : RANK_ERR_NO_MEMORY;
    }
    if (!st) {
        rails_print_devices(out, devices);
        print_most(out, most);
        fprintf(out, "       puts and gets: %s (RANK_UCX_RMA)\n",
                ucx->rma ? "UCX's" : "frames that the memory's owner checks");
        fprintf(out, "       device memory: %s (RANK_CUDA_UCX)\n", ucx->cuda ? "UCX's" : "through host memory");
    }
    free(devices);
    free(most);
    if (config)
        ucp_config_release(config);
    rk_ucx_teardown(ucx);
    free(ucx);
    return st;
}
