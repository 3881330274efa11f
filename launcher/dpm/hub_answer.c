/* SPDX-License-Identifier: BSD-3-Clause */
/* hub_answer.c: answer the requests of agents. See hub_internal.h. */
#include "launcher/dpm/hub_internal.h"
#include "launcher/dpm/job_info.h"

void xr_hub_begin_answer(const struct xr_rpc_origin *to, struct xr_packer *p,
                         enum xr_rpc_status status)
{
    xr_pack_u32(p, to->node);
    xr_pack_u32(p, to->id);
    xr_pack_u32(p, status);
}

void xr_hub_send_answer(struct xr_hub *h, const struct xr_rpc_origin *to, struct xr_packer *p)
{
    const struct xr_hub_job *j = xr_hub_job_of(h, to->job);

    if (!j || j->gone)
        xr_packer_free(p);
    else
        h->ops->send(h->arg, to->job, XR_DOWN_ANSWER, p);
}

void xr_hub_answer(struct xr_hub *h, const struct xr_rpc_origin *to, enum xr_rpc_status status)
{
    struct xr_packer p = {0};

    xr_hub_begin_answer(to, &p, status);
    xr_hub_send_answer(h, to, &p);
}

void xr_hub_answer_with(struct xr_hub *h, const struct xr_rpc_origin *to, enum xr_rpc_status status,
                        const void *data, size_t len, const struct xr_hub_job *about)
{
    struct xr_packer p = {0};

    xr_hub_begin_answer(to, &p, status);
    xr_pack_bytes(&p, data, len);
    if (about)
        xr_hub_pack_job_info(h, to, about, &p);
    else
        xr_pack_u32(&p, 0);
    xr_hub_send_answer(h, to, &p);
}

/* Always with the job info: PMI-1 clients request it, too, and their agent keeps none. */
void xr_hub_answer_spawn(struct xr_hub *h, struct xr_hub_job *j, enum xr_rpc_status status)
{
    struct xr_packer p = {0};

    if (!j->starting)
        return;
    j->starting = false;
    xr_hub_begin_answer(&j->spawner, &p, status);
    xr_pack_bytes(&p, NULL, 0);
    xr_pack_u32(&p, status == XR_DONE);
    if (status == XR_DONE)
        xr_job_info_pack(&j->info, &p);
    xr_hub_send_answer(h, &j->spawner, &p);
}
