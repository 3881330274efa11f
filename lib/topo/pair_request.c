/* SPDX-License-Identifier: BSD-3-Clause */
/* pair_request.c: make a request for rk_pair. See pair_request.h. */
#include "lib/topo/pair_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool rk_pair_gives(const char *words)
{
    return *words && strcmp(words, "none") != 0;
}

/* ---------------------------------------------------------------- visible */

bool rk_pair_set_visible(struct rk_pair_words *words, const char *const *value, uint32_t n, char *err, size_t errlen)
{
    words->visible = NULL;
    for (uint32_t i = 1; i < n; i++) {
        if (!value[i] == !value[0] && (!value[i] || strcmp(value[i], value[0]) == 0))
            continue;
        if (!rk_pair_gives(words->gpus))
            return true;
        snprintf(err, errlen, "CUDA_VISIBLE_DEVICES is not the same for all programs; --gpus-per-rank needs one value");
        return false;
    }
    words->visible = n ? value[0] : NULL;
    return true;
}

/* Return the n-th GPU that CUDA may use, or RK_TOPO_NONE. */
static uint32_t cuda_gpu(const struct rk_machine *m, unsigned long n)
{
    for (uint32_t i = 0; i < m->ngpus; i++) {
        if (m->gpu[i].nvidia && n-- == 0)
            return i;
    }
    return RK_TOPO_NONE;
}

uint32_t rk_gpu_of_word(const struct rk_machine *m, const char *word, size_t len)
{
    uint32_t found = RK_TOPO_NONE;

    if (len && strspn(word, "0123456789") >= len)
        return cuda_gpu(m, strtoul(word, NULL, 10));
    for (uint32_t i = 0; len > 4 && i < m->ngpus; i++) {
        if (strncasecmp(m->gpu[i].uuid, word, len) != 0)
            continue;
        if (found != RK_TOPO_NONE)
            return RK_TOPO_NONE;
        found = i;
    }
    return found;
}

/*
 * Show the GPUs that the value names. Returns false, with one line in err, if a word is no GPU, or is there twice. CUDA
 * stops at that word, so the GPUs behind it stay hidden.
 */
static bool show_visible(const char *value, const char *where, const struct rk_machine *m, bool *hidden, char *err,
                         size_t errlen)
{
    for (const char *at = value; *at;) {
        size_t len = strcspn(at, ",");
        uint32_t gpu = rk_gpu_of_word(m, at, len);

        if (gpu == RK_TOPO_NONE || !hidden[gpu]) {
            snprintf(err, errlen, "CUDA_VISIBLE_DEVICES has '%.*s', which is %s of %s with %u of NVIDIA", (int)len, at,
                     gpu == RK_TOPO_NONE ? "no GPU" : "listed twice among the GPUs", where, m->ngpus);
            return false;
        }
        hidden[gpu] = false;
        at += len;
        at += *at == ',';
    }
    return true;
}

/* Hide the GPUs that CUDA_VISIBLE_DEVICES hides. A bad word is an error only if ranks are given GPUs. */
static rank_status_t hide_gpus(const struct rk_pair_words *words, const char *where, const struct rk_machine *m,
                               struct rk_pair_prepared *out, char *err, size_t errlen)
{
    bool gives = rk_pair_gives(words->gpus);

    if (!words->visible)
        return RANK_OK;
    out->hidden = malloc((m->ngpus + 1) * sizeof(*out->hidden));
    if (!out->hidden)
        return RANK_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < m->ngpus; i++)
        out->hidden[i] = m->gpu[i].nvidia;
    out->rq.gpus.hidden = out->hidden;
    if (show_visible(words->visible, where, m, out->hidden, gives ? err : NULL, gives ? errlen : 0) || !gives)
        return RANK_OK;
    return RANK_ERR_ARG;
}

/* ------------------------------------------------------------------ lists */

static rank_status_t read_words(const char *words, struct rk_pair_devices *rq, uint32_t **list)
{
    if (strcmp(words, "none") == 0)
        rq->bind = RK_PAIR_NONE;
    if (!rk_pair_gives(words) || strcmp(words, "closest") == 0)
        return RANK_OK;
    rq->bind = RK_PAIR_MAP;
    if (!rk_device_list(words, list, &rq->nmap)) /* its form was checked before */
        return RANK_ERR_NO_MEMORY;
    rq->map = *list;
    return RANK_OK;
}

/* Returns false, with one line in err, if the machine has no such device at all. */
static bool check_any(const struct rk_pair_words *words, const char *where, const struct rk_machine *m, char *err, size_t errlen)
{
    if (rk_pair_gives(words->gpus) && !m->ngpus)
        snprintf(err, errlen, "%s has no GPU of NVIDIA, which --%s needs", where,
                 words->gpus_per_rank ? "gpus-per-rank" : "gpu-bind");
    else if (rk_pair_gives(words->nics) && !m->nnics)
        snprintf(err, errlen, "%s has no NIC on PCI that is up, which --%s needs", where,
                 words->nics_per_rank ? "nics-per-rank" : "nic-bind");
    else
        return true;
    return false;
}

rank_status_t rk_pair_request_make(const struct rk_pair_words *words, const char *where, struct rk_machine *m,
                                   struct rk_pair_prepared *out, char *err, size_t errlen)
{
    rank_status_t st;

    *out = (struct rk_pair_prepared){.rq = {.gpus = {.per_rank = words->gpus_per_rank}, .nics = {.per_rank = words->nics_per_rank}}};
    if (rk_pair_gives(words->gpus)) {
        rk_machine_keep_nvidia(m);
        if (!out->rq.gpus.per_rank)
            out->rq.gpus.per_rank = 1;
    }
    if (rk_pair_gives(words->nics) && !out->rq.nics.per_rank)
        out->rq.nics.per_rank = 1;
    if (!check_any(words, where, m, err, errlen))
        return RANK_ERR_ARG;
    st = read_words(words->gpus, &out->rq.gpus, &out->gpu_list);
    if (!st)
        st = read_words(words->nics, &out->rq.nics, &out->nic_list);
    if (!st)
        st = hide_gpus(words, where, m, out, err, errlen);
    if (st == RANK_ERR_NO_MEMORY)
        snprintf(err, errlen, "out of memory for the devices of the ranks");
    return st;
}

void rk_pair_request_clear(struct rk_pair_prepared *prepared)
{
    free(prepared->gpu_list);
    free(prepared->nic_list);
    free(prepared->hidden);
    memset(prepared, 0, sizeof(*prepared));
}
