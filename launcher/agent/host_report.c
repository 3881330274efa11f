/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host_report.c: send xrun the properties of this host.
 *
 * Most hosts of a job are alike. So each sends a hash of its topology, and xrun
 * requests the topology itself from one host of each kind. Names and other
 * <info> lines are left out, since they differ on every host.
 */
#include "launcher/agent/agent_internal.h"
#include "launcher/alloc/local_host.h"
#include "launcher/job/machine_pack.h"
#include "launcher/overlay/protocol.h"
#include "launcher/util/netif.h"
#include "lib/base/fnv.h"
#include "lib/topo/topo.h"

#include <stdlib.h>
#include <string.h>

/* Return the topology as XML without its <info> lines, or NULL. Caller frees. */
static char *host_report_describe(struct xr_agent *agent)
{
    hwloc_topology_t t = NULL;
    char *xml = NULL, *text = NULL, *to;
    int len;

    if (!agent->topology) {
        if (rk_topo_load(true, &t))
            return NULL;
        agent->topology = t;
    }
    if (hwloc_topology_export_xmlbuffer(agent->topology, &xml, &len, 0))
        return NULL;
    to = text = malloc((size_t)len + 1);
    for (const char *line = xml; text && *line;) {
        size_t n = strcspn(line, "\n");
        n += line[n] == '\n';
        if (strncmp(line + strspn(line, " "), "<info ", 6) != 0) {
            memcpy(to, line, n);
            to += n;
        }
        line += n;
    }
    if (text)
        *to = '\0';
    hwloc_free_xmlbuffer(agent->topology, xml);
    return text;
}

/* Return a hash that is never 0, which stands for no text. */
static uint64_t topology_text_hash(const char *text)
{
    uint64_t h = rk_fnv64(RK_FNV64_START, text, strlen(text));

    return h ? h : 1;
}

void xr_agent_send_ready(struct xr_agent *agent)
{
    struct xr_packer p = {0};
    char *text = host_report_describe(agent);

    xr_pack_u32(&p, agent->node);
    xr_pack_string(&p, agent->host);
    xr_pack_u32(&p, rk_topo_units());
    xr_pack_u64(&p, text ? topology_text_hash(text) : 0);
    xr_pack_u64(&p, xr_local_host_machine());
    xr_pack_u32(&p, xr_netif_free_port());
    xr_conn_send(agent->wire, XR_MSG_READY, &p);
    free(text);
}

void xr_agent_send_topology(struct xr_agent *agent)
{
    struct xr_packer p = {0};
    char *text = host_report_describe(agent);

    xr_pack_u32(&p, agent->node);
    xr_pack_string(&p, text ? text : "");
    xr_conn_send(agent->wire, XR_MSG_TOPOLOGY, &p);
    free(text);
}

rank_status_t xr_agent_load_machine(struct xr_agent *agent, char *err, size_t errlen)
{
    return agent->machine.ncores ? RANK_OK : rk_machine_load(NULL, &agent->machine, err, errlen);
}

/* The machine stays for the choice of devices. */
void xr_agent_send_machine(struct xr_agent *agent)
{
    struct xr_packer p = {0};
    char why[512] = "";
    rank_status_t st = xr_agent_load_machine(agent, why, sizeof(why));

    xr_pack_u32(&p, agent->node);
    xr_pack_string(&p, why);
    if (!st)
        xr_machine_pack(&agent->machine, &p);
    xr_conn_send(agent->wire, XR_MSG_MACHINE, &p);
}
